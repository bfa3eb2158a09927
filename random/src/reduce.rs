//! Programs that fail, made smaller as long as they fail: statements are left out or replaced by what is in them, expressions by their operands or by constants, loops run less often, and fewer invocations run.

use trefoil_codegen::ir::Scalar;

use crate::syntax::{Argument, Block, Expr, Kind, Place, Program, Root, Step, Stmt, Ty};

/// The most programs that are tried.
const MOST_TRIES: u32 = 4000;

/// The smallest program found of which `fails` holds, as it does of the one given.
pub fn reduced(program: &Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut tries = 0;
    loop {
        let before = tries;
        let mut smaller = false;
        for pass in [launch as Pass, statements, expressions] {
            smaller |= improve(&mut best, pass, fails, &mut tries);
        }
        if !smaller || tries >= MOST_TRIES || before == tries {
            return best;
        }
    }
}

/// The change with a number, if there are so many.
type Pass = fn(&Program, usize) -> Option<Program>;

fn improve(best: &mut Program, pass: Pass, fails: &dyn Fn(&Program) -> bool, tries: &mut u32) -> bool {
    let (mut number, mut smaller) = (0, false);
    while *tries < MOST_TRIES
        && let Some(candidate) = pass(best, number)
    {
        *tries += 1;
        if candidate != *best && fails(&candidate) {
            *best = candidate;
            smaller = true;
        } else {
            number += 1;
        }
    }
    smaller
}

/// Fewer workgroups, no functions that nobody calls.
fn launch(program: &Program, number: usize) -> Option<Program> {
    let mut new = program.clone();
    match number {
        0 => new.groups = 1,
        1 => new.needs.subgroups = false,
        2 => new.needs.int64 = false,
        3 => new.needs.float64 = false,
        _ => {
            let function = number - 4;
            // A function that is kept for its place has nothing in it.
            let old = new.functions.get_mut(function)?;
            old.body.clear();
            old.result = constant(&old.result.ty, &program.structs);
        }
    }
    Some(new)
}

/// A constant of a type.
fn constant(ty: &Ty, structs: &[Vec<Ty>]) -> Expr {
    let kind = match ty {
        Ty::Scalar(_) => Kind::Literal(0),
        Ty::Vector(_, scalar) => Kind::Splat(Box::new(Expr::literal(*scalar, 0))),
        Ty::Array(element, _) => Kind::Splat(Box::new(constant(element, structs))),
        Ty::Struct(index) => Kind::Compose(structs[*index].iter().map(|field| constant(field, structs)).collect()),
    };
    Expr::new(ty.clone(), kind)
}

/// Every block of the program, outer before inner.
fn blocks<'p>(program: &'p mut Program, visit: &mut dyn FnMut(&mut Block)) {
    fn inside(block: &mut Block, visit: &mut dyn FnMut(&mut Block)) {
        visit(block);
        for statement in block {
            match statement {
                Stmt::If(_, accept, reject) => {
                    inside(accept, visit);
                    inside(reject, visit);
                }
                Stmt::Match(_, arms, default) => {
                    arms.iter_mut().for_each(|(_, body)| inside(body, visit));
                    inside(default, visit);
                }
                Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::Loop { body, .. } => inside(body, visit),
                _ => {}
            }
        }
    }
    inside(&mut program.body, visit);
    for function in &mut program.functions {
        inside(&mut function.body, visit);
    }
}

/// Leaves out a statement, or puts what is in it into its place.
fn statements(program: &Program, number: usize) -> Option<Program> {
    let mut new = program.clone();
    let structs = program.structs.clone();
    let vars = program.vars.clone();
    let (mut seen, mut done) = (0, false);
    blocks(&mut new, &mut |block| {
        if done || number >= seen + 3 * block.len() {
            seen += 3 * block.len();
            return;
        }
        done = true;
        let (at, way) = ((number - seen) / 3, (number - seen) % 3);
        let old = block[at].clone();
        let inner = match (&old, way) {
            (_, 0) => Some(Vec::new()),
            (Stmt::If(_, accept, _), 1) => Some(accept.clone()),
            (Stmt::If(_, _, reject), 2) => Some(reject.clone()),
            (Stmt::Match(_, _, default), 1) => Some(default.clone()),
            (Stmt::Match(_, arms, _), 2) => arms.first().map(|(_, body)| body.clone()),
            (Stmt::While { var, times, condition, body }, 1) if *times > 1 => {
                let (var, times, condition, body) = (*var, times / 2, condition.clone(), body.clone());
                Some(vec![Stmt::While { var, times, condition, body }])
            }
            (Stmt::Loop { var, times, condition, body }, 1) if *times > 1 => {
                let (var, times, condition, body) = (*var, times / 2, condition.clone(), body.clone());
                Some(vec![Stmt::Loop { var, times, condition, body }])
            }
            // A counter becomes a variable.
            (Stmt::For { var, start, body, .. }, 1) => {
                let first = Stmt::Let { var: *var, mutable: false, value: start.clone() };
                Some([vec![first], body.clone()].concat())
            }
            // What was declared stays known.
            (Stmt::Let { var, mutable, .. }, 1) => {
                let value = constant(&vars[*var].ty, &structs);
                Some(vec![Stmt::Let { var: *var, mutable: *mutable, value }])
            }
            (Stmt::Atomic { var: Some(var), .. } | Stmt::Subgroup { var, .. } | Stmt::UniformLoad { var, .. }, 1) => {
                let value = constant(&vars[*var].ty, &structs);
                Some(vec![Stmt::Let { var: *var, mutable: false, value }])
            }
            _ => None,
        };
        if let Some(inner) = inner {
            block.splice(at..=at, inner);
        }
    });
    done.then_some(new)
}

/// Every expression that is a root or an operand, outer before inner.
fn each_expression(program: &mut Program, visit: &mut dyn FnMut(&mut Expr)) {
    let mut result = Vec::new();
    for function in &mut program.functions {
        result.push(&mut function.result);
    }
    for expr in result {
        inside(expr, visit);
    }
    blocks(program, &mut |block| {
        for statement in block {
            match statement {
                Stmt::Let { value, .. } | Stmt::Evaluate(value) | Stmt::Return(value) => inside(value, visit),
                Stmt::Assign(place, _, value) => {
                    in_place(place, visit);
                    inside(value, visit);
                }
                Stmt::SetSeveral(_, index, value) => {
                    inside(index, visit);
                    inside(value, visit);
                }
                Stmt::If(condition, ..)
                | Stmt::Match(condition, ..)
                | Stmt::While { condition, .. }
                | Stmt::Loop { condition, .. } => inside(condition, visit),
                Stmt::For { start, end, .. } => {
                    inside(start, visit);
                    inside(end, visit);
                }
                Stmt::Atomic { index, values, .. } => {
                    inside(index, visit);
                    values.iter_mut().for_each(|value| inside(value, visit));
                }
                Stmt::Subgroup { value, lane, .. } => {
                    inside(value, visit);
                    lane.iter_mut().for_each(|lane| inside(lane, visit));
                }
                Stmt::UniformLoad { index, .. } => inside(index, visit),
                Stmt::Break | Stmt::Continue | Stmt::Barrier => {}
            }
        }
    });
}

fn in_place(place: &mut Place, visit: &mut dyn FnMut(&mut Expr)) {
    if let Root::Element(_, index) = &mut place.root {
        inside(index, visit);
    }
    for step in &mut place.path {
        if let Step::Index(index) = step {
            inside(index, visit);
        }
    }
}

fn inside(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    visit(expr);
    match &mut expr.kind {
        Kind::Read(place) => in_place(place, visit),
        Kind::Part(base, step) => {
            inside(base, visit);
            if let Step::Index(index) = step {
                inside(index, visit);
            }
        }
        kind => operands(kind).into_iter().for_each(|operand| inside(operand, visit)),
    }
}

/// The operands of an expression that is no place.
fn operands(kind: &mut Kind) -> Vec<&mut Expr> {
    match kind {
        Kind::Negate(value)
        | Kind::Not(value)
        | Kind::Convert(value)
        | Kind::Bitcast(value)
        | Kind::Splat(value)
        | Kind::Several(_, value) => vec![value],
        Kind::Binary(_, left, right) | Kind::Logical(_, left, right) => vec![left, right],
        Kind::Math(_, all) | Kind::Compose(all) => all.iter_mut().collect(),
        Kind::Select(parts) | Kind::If(parts) => parts.iter_mut().collect(),
        Kind::Match(selector, arms, default) => {
            let mut all = vec![&mut **selector];
            all.extend(arms.iter_mut().map(|(_, arm)| arm));
            all.push(default);
            all
        }
        Kind::Call(_, arguments) => arguments
            .iter_mut()
            .filter_map(|argument| match argument {
                Argument::Value(value) => Some(value),
                Argument::Mutable(_) | Argument::Slice(_) => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The most operands of an expression that are tried in its place.
const OPERANDS: usize = 4;

/// Puts an operand, or a constant, in the place of an expression.
fn expressions(program: &Program, number: usize) -> Option<Program> {
    let mut new = program.clone();
    let structs = program.structs.clone();
    let (at, way) = (number / (OPERANDS + 2), number % (OPERANDS + 2));
    let (mut seen, mut found) = (0, false);
    each_expression(&mut new, &mut |expr| {
        if seen == at && !found {
            found = true;
            let ty = expr.ty.clone();
            let simple = matches!(expr.kind, Kind::Literal(_));
            let replaced = match way {
                _ if simple => None,
                0 => Some(constant(&ty, &structs)),
                1 => ty.scalar().filter(|scalar| *scalar != Scalar::Index && ty.lanes() == 1).map(|scalar| {
                    let one = if scalar.is_float() { crate::value::bits_of(scalar, 1.0) } else { 1 };
                    Expr::literal(scalar, one)
                }),
                way => {
                    let mut all = operands(&mut expr.kind);
                    (way - 2 < all.len()).then(|| all.swap_remove(way - 2).clone()).filter(|operand| operand.ty == ty)
                }
            };
            if let Some(replaced) = replaced {
                *expr = replaced;
            }
        }
        seen += 1;
    });
    found.then_some(new)
}
