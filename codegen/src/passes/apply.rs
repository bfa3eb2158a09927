//! Writes into a function what was decided: names for what is computed once, declared where it is computed, and read everywhere else.

use super::common::Group;
use super::values::Values;
use crate::hashing::{HashMap, HashSet};
use crate::ir::{
    BinaryOperator, Block, Builtin, Expression, ExpressionKind, Function, Handle, Local, Module, Place, Root, Span,
    Statement, StatementKind,
};

/// Makes each group one computation.
pub fn apply(module: &Module, function: &mut Function, values: &Values, mut groups: Vec<Group>) {
    if groups.is_empty() {
        return;
    }
    // A part of a value has a lower number than the value, and is declared before it.
    groups.sort_by_key(|group| {
        let leader = &values.occurrences[group.leader];
        (leader.lead, leader.number)
    });
    let mut edits = Edits { declared: Vec::new(), dropped: HashSet::default(), next: 0, position: 0 };
    let mut aliases: HashMap<Handle<Local>, Handle<Local>> = HashMap::default();
    for group in groups {
        let leader = &values.occurrences[group.leader];
        let members = group.members.iter().map(|member| &values.occurrences[*member]);
        let named = leader.local.or_else(|| members.clone().find_map(|member| member.local));
        let Expression { kind, ty, span } = function.expressions[leader.expression].clone();
        let local = match (leader.local, named) {
            (Some(local), _) => local,
            (None, Some(named)) => {
                let local = function.locals[named].clone();
                function.locals.add(local)
            }
            (None, None) => {
                let name = name(module, function, &kind);
                function.locals.add(Local { name, ty, mutable: false, span })
            }
        };
        if leader.local.is_none() {
            let value = function.expressions.add(Expression { kind, ty, span });
            function.expressions[leader.expression].kind = ExpressionKind::Local(local);
            edits.declare(leader.lead, local, value, span);
        } else if leader.moves {
            edits.dropped.insert(leader.position);
            edits.declare(leader.lead, local, leader.expression, span);
        }
        for member in members {
            function.expressions[member.expression].kind = ExpressionKind::Local(local);
            if let Some(other) = member.local {
                edits.dropped.insert(member.position);
                aliases.insert(other, local);
            }
        }
    }
    if !aliases.is_empty() {
        for (_, expression) in function.expressions.iter_mut() {
            if let ExpressionKind::Local(local) = &mut expression.kind
                && let Some(alias) = aliases.get(local)
            {
                *local = *alias;
            }
        }
    }
    let mut body = std::mem::take(&mut function.body);
    edits.block(&mut body);
    function.body = body;
}

/// Statements that are added and dropped, by position.
struct Edits {
    /// In the order of positions.
    declared: Vec<(u32, Statement)>,
    dropped: HashSet<u32>,
    /// Which of `declared` comes next.
    next: usize,
    position: u32,
}

impl Edits {
    fn declare(&mut self, position: u32, local: Handle<Local>, value: Handle<Expression>, span: Span) {
        let kind = StatementKind::Let { local, value: Some(value) };
        self.declared.push((position, Statement { kind, span }));
    }

    fn block(&mut self, block: &mut Block) {
        let mut out = Block::with_capacity(block.len());
        for mut statement in std::mem::take(block) {
            let position = self.position;
            self.position += 1;
            while let Some((_, declaration)) = self.declared.get(self.next).filter(|(at, _)| *at == position) {
                out.push(declaration.clone());
                self.next += 1;
            }
            for inner in statement.kind.blocks_mut() {
                self.block(inner);
            }
            if !self.dropped.contains(&position) {
                out.push(statement);
            }
        }
        *block = out;
    }
}

/// What a value that the author gave no name is called: by the first thing in it that has one, and by what makes it.
fn name(module: &Module, function: &Function, kind: &ExpressionKind) -> String {
    use BinaryOperator as B;
    let what = match kind {
        ExpressionKind::Convert(value) => return name(module, function, &function.expressions[*value].kind),
        ExpressionKind::Call { function, .. } => return format!("{}_value", module.functions[*function].name),
        ExpressionKind::Binary { operator, .. } => match operator {
            B::Add => "sum",
            B::Subtract => "difference",
            B::Multiply => "product",
            B::Divide => "quotient",
            B::Remainder => "rest",
            B::And | B::Or | B::Xor => "bits",
            B::ShiftLeft | B::ShiftRight => "shifted",
            _ => "compared",
        },
        ExpressionKind::Logical { .. } => "condition",
        ExpressionKind::Select { .. } => "choice",
        _ => "value",
    };
    match named(module, function, kind) {
        Some(first) if first.strip_suffix(what).is_some_and(|rest| rest.ends_with('_')) => first.to_owned(),
        Some(first) => format!("{first}_{what}"),
        None => what.to_owned(),
    }
}

/// The first thing in an expression that has a name.
fn named<'n>(module: &'n Module, function: &'n Function, kind: &ExpressionKind) -> Option<&'n str> {
    Some(match kind {
        ExpressionKind::Local(local) => &function.locals[*local].name,
        ExpressionKind::Argument(argument) => &function.arguments[*argument as usize].name,
        ExpressionKind::Param(param) => &module.params[*param as usize].name,
        ExpressionKind::Builtin(builtin) => Builtin::ALL.into_iter().find(|(known, _)| known == builtin)?.1,
        ExpressionKind::Length(binding)
        | ExpressionKind::ViewExtent { binding, .. }
        | ExpressionKind::ViewStride { binding, .. }
        | ExpressionKind::Load(Place { root: Root::Binding(binding), .. }) => &module.bindings[*binding as usize].name,
        ExpressionKind::Load(Place { root: Root::Workgroup(variable), .. }) => &module.workgroup[*variable].name,
        ExpressionKind::Load(Place { root: Root::Local(local), .. }) => &function.locals[*local].name,
        ExpressionKind::Load(Place { root: Root::Argument(argument), .. }) => {
            &function.arguments[*argument as usize].name
        }
        kind => {
            let mut first = None;
            kind.operands(&mut |operand| {
                first = first.or_else(|| named(module, function, &function.expressions[*operand].kind));
            });
            first?
        }
    })
}
