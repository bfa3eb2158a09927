//! Workgroup memory by lifetime: arrays that are never alive together are one array.
//!
//! No driver does this: what a kernel declares in workgroup memory lies side by side, and how much it declares decides how many workgroups a processor holds and whether a
//! device takes the kernel at all. So it is done before anything is checked against a limit or emitted, in the one form that every target has: two arrays of the same
//! elements become one of the greater length. Arrays of different elements would have to share bytes, which WGSL cannot say and SPIR-V only with an extension, while a
//! kernel's limits are the same on every device.
//!
//! An array lives from the first statement of the kernel's own body that touches it, itself or in a function, to the last. Two may share where the one ends before the other begins
//! and a barrier stands between, outside of every branch and loop: then all invocations are done with the one before any touches the other. Functions that are called there count as
//! if their statements stood there, unless they may return early, past their barriers. What an array holds is unspecified until written, so that nobody relies
//! on what the other left.
//!
//! * A guard compares with the array's length. The shorter array shares only if none of its accesses has one, for past its end it would be the longer one's elements.
//! * Arrays of atomics share with such, and arrays that a specialisation constant sizes with none.
//! * An array that is written by asynchronous copies shares with none: they are accesses until they are waited for. Nor does a tile.

use crate::ir::{
    Arena, Asynchronous, Block, Expression, ExpressionKind, Function, Handle, MatrixOperation, Module, Place, Root,
    Statement, StatementKind, WorkgroupVariable, statements,
};
use crate::verify::{functions, places, places_of};

/// Makes arrays that are never alive together one; gives whether there were any. The guards of the module have been looked at.
pub fn reuse(module: &mut Module) -> bool {
    if module.workgroup.len() < 2 {
        return false;
    }
    let lives = Lives::of(module);
    let mut order: Vec<usize> = (0..module.workgroup.len()).filter(|variable| lives.of[*variable].is_some()).collect();
    order.sort_by_key(|variable| lives.of[*variable]);
    // Of each array that stays, those that it stands for, the last one last.
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for variable in order {
        let fits = |others: &Vec<usize>| {
            others.iter().all(|other| lives.apart(*other, variable) && alike(module, &lives, *other, variable))
        };
        match kept.iter().position(fits) {
            Some(place) => kept[place].push(variable),
            None => kept.push(vec![variable]),
        }
    }
    if kept.iter().all(|group| group.len() == 1) {
        return false;
    }
    let mut stands = vec![None; module.workgroup.len()];
    for group in kept {
        for variable in &group {
            stands[*variable] = Some(group.clone());
        }
    }
    merge(module, &stands);
    true
}

/// Whether two arrays may be one as far as what they hold and how they are read goes.
fn alike(module: &Module, lives: &Lives, a: usize, b: usize) -> bool {
    let variable = |index: usize| &module.workgroup[Handle::from_index(index)];
    let (first, second) = (variable(a), variable(b));
    let (Some(left), Some(right)) = (first.length.literal(), second.length.literal()) else { return false };
    let guarded = if left < right { lives.guarded[a] } else { left > right && lives.guarded[b] };
    first.element == second.element
        && first.atomic == second.atomic
        && first.exact.is_none()
        && second.exact.is_none()
        && !guarded
        && !lives.copied[a]
        && !lives.copied[b]
}

/// Puts for each array the one that stands for it.
fn merge(module: &mut Module, stands: &[Option<Vec<usize>>]) {
    let old = std::mem::take(&mut module.workgroup);
    let mut new: Arena<WorkgroupVariable> = Arena::new();
    let mut places: Vec<Option<Handle<WorkgroupVariable>>> = vec![None; old.len()];
    for (handle, variable) in old.iter() {
        if places[handle.index()].is_some() {
            continue;
        }
        let group = stands[handle.index()].clone().unwrap_or_else(|| vec![handle.index()]);
        let members: Vec<_> = group.iter().map(|member| &old[Handle::from_index(*member)]).collect();
        let longest = members.iter().max_by_key(|member| member.length.literal()).unwrap_or(&variable);
        let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
        let merged = new.add(WorkgroupVariable { name: names.join("_and_"), ..(*longest).clone() });
        for member in group {
            places[member] = Some(merged);
        }
    }
    module.workgroup = new;
    let functions = module.functions.iter_mut().map(|(_, function)| function).chain([&mut module.entry]);
    for function in functions {
        for (_, expression) in function.expressions.iter_mut() {
            if let ExpressionKind::Load(place) = &mut expression.kind {
                redirect(place, &places);
            }
        }
        redirect_block(&mut function.body, &places);
    }
}

fn redirect(place: &mut Place, places: &[Option<Handle<WorkgroupVariable>>]) {
    if let Root::Workgroup(variable) = &mut place.root
        && let Some(merged) = places[variable.index()]
    {
        *variable = merged;
    }
}

fn redirect_block(block: &mut Block, places: &[Option<Handle<WorkgroupVariable>>]) {
    for statement in block {
        match &mut statement.kind {
            StatementKind::Store { place, .. }
            | StatementKind::UniformLoad { place, .. }
            | StatementKind::Atomic { place, .. }
            | StatementKind::Matrix {
                operation: MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. },
                ..
            } => redirect(place, places),
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) => {
                redirect(to, places);
                redirect(from, places);
            }
            // A tile has no place in the language, and so no life here: it stays, with another number.
            StatementKind::Tile(operation) => {
                for tile in operation.tiles_mut() {
                    *tile = places[tile.index()].unwrap_or(*tile);
                }
            }
            kind => {
                for inner in kind.blocks_mut() {
                    redirect_block(inner, places);
                }
            }
        }
    }
}

/// When arrays are touched.
struct Lives<'m> {
    module: &'m Module,
    /// For each function, the arrays that it touches, itself or in what it calls.
    touched: Vec<Vec<usize>>,
    /// For each array, the first and the last moment.
    of: Vec<Option<(u32, u32)>>,
    /// Whether an access of it may be out of range.
    guarded: Vec<bool>,
    /// Whether asynchronous copies write it.
    copied: Vec<bool>,
    /// The moments of barriers that all invocations reach.
    barriers: Vec<u32>,
    now: u32,
}

impl<'m> Lives<'m> {
    fn of(module: &'m Module) -> Self {
        let count = module.workgroup.len();
        let mut lives = Self {
            module,
            touched: Vec::new(),
            of: vec![None; count],
            guarded: vec![false; count],
            copied: vec![false; count],
            barriers: Vec::new(),
            now: 0,
        };
        for (_, function) in module.functions.iter() {
            let mut touched = Vec::new();
            for statement in &function.body {
                lives.touches(function, statement, &mut |variable| touched.push(variable));
            }
            lives.touched.push(touched);
        }
        for function in functions(module) {
            places(function, &mut |place, _| {
                if let Root::Workgroup(variable) = place.root {
                    lives.guarded[variable.index()] |= place.guarded;
                }
            });
            statements(&function.body, &mut |statement| {
                if let StatementKind::Asynchronous(Asynchronous::Copy { to, .. }) = &statement.kind
                    && let Root::Workgroup(variable) = to.root
                {
                    lives.copied[variable.index()] = true;
                }
            });
        }
        lives.run(&module.entry);
        lives
    }

    /// Whether a barrier stands between the end of one array and the beginning of another.
    fn apart(&self, earlier: usize, later: usize) -> bool {
        let (Some((_, end)), Some((start, _))) = (self.of[earlier], self.of[later]) else { return false };
        self.barriers.iter().any(|barrier| end < *barrier && *barrier < start)
    }

    /// Calls `visit` with each array that a statement touches, in blocks and callees too.
    fn touches(&self, function: &Function, statement: &Statement, visit: &mut dyn FnMut(usize)) {
        places_of(&statement.kind, &mut |place, _| {
            if let Root::Workgroup(variable) = place.root {
                visit(variable.index());
            }
        });
        statement.kind.operands(&mut |operand| self.reads(function, *operand, visit));
        for inner in statement.kind.blocks().into_iter().flatten() {
            self.touches(function, inner, visit);
        }
    }

    /// Calls `visit` with each array that an expression touches.
    fn reads(&self, function: &Function, handle: Handle<Expression>, visit: &mut dyn FnMut(usize)) {
        function.tree(handle, &mut |part| match &function.expressions[part].kind {
            ExpressionKind::Load(Place { root: Root::Workgroup(variable), .. }) => visit(variable.index()),
            ExpressionKind::Call { function, .. } => {
                self.touched[function.index()].iter().copied().for_each(&mut *visit)
            }
            _ => {}
        });
    }

    fn touch(&mut self, variables: Vec<usize>) {
        for variable in variables {
            let now = self.now;
            let (_, last) = self.of[variable].get_or_insert((now, now));
            *last = now;
        }
    }

    /// Goes through the statements of a function that all invocations run.
    fn run(&mut self, function: &Function) {
        for statement in &function.body {
            self.now += 1;
            if let StatementKind::Let { value: Some(value), .. } | StatementKind::Evaluate(value) = statement.kind
                && let ExpressionKind::Call { function: callee, .. } = function.expressions[value].kind
                && self.is_straight(callee)
            {
                // What it is given is computed before.
                let mut given = Vec::new();
                function.expressions[value].kind.operands(&mut |operand| {
                    self.reads(function, *operand, &mut |variable| given.push(variable));
                });
                self.touch(given);
                self.run(&self.module.functions[callee]);
                continue;
            }
            // A uniform load has a barrier on each side.
            let waits = matches!(statement.kind, StatementKind::Barrier | StatementKind::UniformLoad { .. });
            if waits {
                self.barriers.push(self.now);
                self.now += 1;
            }
            let mut touched = Vec::new();
            self.touches(function, statement, &mut |variable| touched.push(variable));
            self.touch(touched);
            if waits {
                self.now += 1;
                self.barriers.push(self.now);
            }
        }
    }

    /// Whether a function runs to its end.
    fn is_straight(&self, function: Handle<Function>) -> bool {
        let body = &self.module.functions[function].body;
        let mut returns = 0;
        statements(body, &mut |statement| returns += usize::from(matches!(statement.kind, StatementKind::Return(_))));
        let last = body.last().is_some_and(|statement| matches!(statement.kind, StatementKind::Return(_)));
        returns == usize::from(last)
    }
}
