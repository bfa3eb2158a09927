//! What of the IR is exercised: for each kind of node, type and target, in how many kernels its value reaches an output.
//!
//! A value reaches an output if it is stored to a buffer, decides whether something is stored that reaches one, or goes into a variable, workgroup memory or an argument of which this holds. It is found in
//! the instance by going backwards until nothing is new, without a look at what runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trefoil_codegen::ir::{
    Block, CallArgument, Expression, ExpressionKind, Function, Handle, Local, Module, Place, Root, StatementKind, Type,
};

use crate::combination::{Operation, Place as Where};

/// A kind of node with the type that it works on, of vectors and arrays that of the elements.
pub type Row = (String, String);

/// Kernels in which a kind of node with a type reached an output, on each target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// By kind and type, and then by target.
    pub counts: BTreeMap<Row, BTreeMap<String, u32>>,
}

impl Table {
    /// Counts a kernel that targets computed as it is meant.
    pub fn add(&mut self, kernel: &BTreeSet<Row>, targets: &[String]) {
        for row in kernel {
            let counts = self.counts.entry(row.clone()).or_default();
            for target in targets {
                *counts.entry(target.clone()).or_default() += 1;
            }
        }
    }

    /// Adds the counts of other kernels.
    pub fn join(&mut self, other: Self) {
        for (row, counts) in other.counts {
            add_counts(self.counts.entry(row).or_default(), counts);
        }
    }

    /// The count of a row for a target.
    pub fn count(&self, row: &Row, target: &str) -> u32 {
        self.counts.get(row).and_then(|counts| counts.get(target)).copied().unwrap_or(0)
    }
}

/// Adds counts to others.
pub(crate) fn add_counts(all: &mut BTreeMap<String, u32>, counts: BTreeMap<String, u32>) {
    for (name, count) in counts {
        *all.entry(name).or_default() += count;
    }
}

/// The nodes of a module whose values reach an output.
pub fn reached(module: &Module) -> BTreeSet<Row> {
    let functions: Vec<&Function> =
        module.functions.iter().map(|(_, function)| function).chain([&module.entry]).collect();
    let mut slice = Slice {
        module,
        live: BTreeSet::new(),
        arguments: BTreeSet::new(),
        called: BTreeSet::from([functions.len() - 1]),
        found: BTreeSet::new(),
    };
    loop {
        let before = (slice.live.len(), slice.arguments.len(), slice.called.len(), slice.found.len());
        for (number, function) in functions.iter().enumerate().rev() {
            if slice.called.contains(&number) {
                slice.block(number, function, &function.body);
            }
        }
        if before == (slice.live.len(), slice.arguments.len(), slice.called.len(), slice.found.len()) {
            return slice.found;
        }
    }
}

fn of_root(root: Root) -> Where {
    match root {
        Root::Binding(_) => Where::Binding,
        Root::Workgroup(_) => Where::Workgroup,
        Root::Local(_) => Where::Local,
        Root::Argument(_) => Where::Argument,
    }
}

struct Slice<'m> {
    module: &'m Module,
    /// Locals whose values reach an output, by function.
    live: BTreeSet<(usize, usize)>,
    /// Arguments of which this holds.
    arguments: BTreeSet<(usize, u32)>,
    /// Functions that are called for what reaches one.
    called: BTreeSet<usize>,
    found: BTreeSet<Row>,
}

impl Slice<'_> {
    /// A type's name, of vectors and arrays that of the elements.
    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) | Type::Vector { scalar, .. } => scalar.rust_name().to_owned(),
            Type::Array { element, .. } => self.ty(&self.module.types[*element]),
            Type::Struct(_) => "struct".to_owned(),
            Type::Enum(_) => "enum".to_owned(),
            Type::Matrix(_) => "matrix".to_owned(),
        }
    }

    fn of(&self, function: &Function, value: Handle<Expression>) -> String {
        self.ty(&self.module.types[function.expressions[value].ty])
    }

    /// Whether a write there reaches an output.
    fn is_live(&self, number: usize, place: &Place) -> bool {
        match place.root {
            Root::Binding(_) | Root::Workgroup(_) | Root::Argument(_) => true,
            Root::Local(local) => self.live.contains(&(number, local.index())),
        }
    }

    fn indices(&mut self, number: usize, function: &Function, place: &Place) {
        place.indices(&mut |index| self.expression(number, function, *index));
    }

    /// A value that reaches an output.
    fn expression(&mut self, number: usize, function: &Function, handle: Handle<Expression>) {
        let expression = &function.expressions[handle];
        let operand = |value: &Handle<Expression>| self.of(function, *value);
        let scalar = |value: &Handle<Expression>| self.module.types[function.expressions[*value].ty].scalar();
        let own = self.ty(&self.module.types[expression.ty]);
        let row = match &expression.kind {
            ExpressionKind::Literal(_) => Some((Operation::Literal, own)),
            ExpressionKind::Param(_) => Some((Operation::Param, own)),
            ExpressionKind::Length(_) => Some((Operation::Length, own)),
            ExpressionKind::Builtin(builtin) => Some((Operation::Builtin(*builtin), own)),
            ExpressionKind::Argument(_) => Some((Operation::Argument, own)),
            ExpressionKind::Local(_) => Some((Operation::Local, own)),
            ExpressionKind::Load(place) => Some((Operation::Load(of_root(place.root)), own)),
            ExpressionKind::Member { .. } => Some((Operation::Member, own)),
            ExpressionKind::Element { .. } => Some((Operation::Element, own)),
            ExpressionKind::Compose(_) => Some((Operation::Compose, own)),
            ExpressionKind::Splat(_) => Some((Operation::Splat, own)),
            ExpressionKind::Unary { operator, .. } => Some((Operation::Unary(*operator), own)),
            ExpressionKind::Binary { operator, left, .. } => Some((Operation::Binary(*operator), operand(left))),
            ExpressionKind::Logical { operator, .. } => Some((Operation::Logical(*operator), own)),
            ExpressionKind::Math { function, arguments } => {
                arguments.first().map(|first| (Operation::Math(*function), operand(first)))
            }
            ExpressionKind::Select { .. } => Some((Operation::Select, own)),
            ExpressionKind::Convert(value) => scalar(value).map(|from| (Operation::Convert(from), own)),
            ExpressionKind::Bitcast(value) => scalar(value).map(|from| (Operation::Bitcast(from), own)),
            ExpressionKind::Call { .. } => Some((Operation::Call, own)),
            _ => None,
        };
        self.found.extend(row.map(|(operation, ty)| (operation.name(), ty)));
        match &expression.kind {
            ExpressionKind::Local(local) => {
                self.live.insert((number, local.index()));
            }
            ExpressionKind::Load(place) => {
                if let Root::Local(local) = place.root {
                    self.live.insert((number, local.index()));
                }
            }
            ExpressionKind::Argument(argument) => {
                self.arguments.insert((number, *argument));
            }
            ExpressionKind::Call { function: callee, arguments } => {
                self.called.insert(callee.index());
                for argument in arguments {
                    if let CallArgument::Reference(Root::Local(local)) = argument {
                        self.live.insert((number, local.index()));
                    }
                }
                for (position, argument) in arguments.iter().enumerate() {
                    if let CallArgument::Value(value) = argument
                        && self.arguments.contains(&(callee.index(), position as u32))
                    {
                        self.expression(number, function, *value);
                    }
                }
                return;
            }
            _ => {}
        }
        let mut operands = Vec::new();
        expression.kind.operands(&mut |operand| operands.push(*operand));
        for operand in operands {
            self.expression(number, function, operand);
        }
    }

    /// Whether something in the block reaches an output.
    fn block(&mut self, number: usize, function: &Function, block: &Block) -> bool {
        let mut any = false;
        for statement in block.iter().rev() {
            any |= self.statement(number, function, &statement.kind);
        }
        any
    }

    fn statement(&mut self, number: usize, function: &Function, kind: &StatementKind) -> bool {
        // What is no operation on values of a type has none.
        let mut row: Option<(String, String)> = None;
        let alone = |name: &str| Some((name.to_owned(), String::new()));
        let of_local = |slice: &Self, local: Handle<Local>| slice.ty(&slice.module.types[function.locals[local].ty]);
        let live = match kind {
            StatementKind::Let { local, value } => {
                let calls =
                    value.is_some_and(|value| matches!(function.expressions[value].kind, ExpressionKind::Call { .. }));
                let live = self.live.contains(&(number, local.index())) || calls;
                if let (true, Some(value)) = (live, value) {
                    self.expression(number, function, *value);
                }
                live
            }
            StatementKind::Store { place, value } => {
                let live = self.is_live(number, place);
                if live {
                    row = Some((Operation::Store(of_root(place.root)).name(), self.of(function, *value)));
                    self.indices(number, function, place);
                    self.expression(number, function, *value);
                }
                live
            }
            StatementKind::Return(value) => {
                row = value.map(|value| (Operation::Return.name(), self.of(function, value)));
                value.iter().for_each(|value| self.expression(number, function, *value));
                true
            }
            StatementKind::Break | StatementKind::Continue => {
                row = alone(if matches!(kind, StatementKind::Break) { "`break`" } else { "`continue`" });
                true
            }
            StatementKind::Barrier => {
                row = alone("`barrier`");
                true
            }
            StatementKind::Atomic { place, function: atomic, value, compare, result, .. } => {
                let ty = match (value, result) {
                    (Some(value), _) => self.of(function, *value),
                    (None, Some(result)) => of_local(self, *result),
                    (None, None) => String::new(),
                };
                row = Some((Operation::Atomic(*atomic).name(), ty));
                self.indices(number, function, place);
                for value in [value, compare].into_iter().flatten() {
                    self.expression(number, function, *value);
                }
                true
            }
            StatementKind::UniformLoad { result, place } => {
                let live = self.live.contains(&(number, result.index()));
                if live {
                    row = Some((Operation::UniformLoad.name(), of_local(self, *result)));
                    self.indices(number, function, place);
                }
                live
            }
            StatementKind::Subgroup { result, function: operation, value, lane } => {
                let live = self.live.contains(&(number, result.index()));
                if live {
                    row = Some((Operation::Subgroup(*operation).name(), self.of(function, *value)));
                    self.expression(number, function, *value);
                    lane.iter().for_each(|lane| self.expression(number, function, *lane));
                }
                live
            }
            other => {
                let mut any = false;
                for inner in other.blocks() {
                    any |= self.block(number, function, inner);
                }
                if any {
                    let mut operands = Vec::new();
                    other.operands(&mut |operand| operands.push(*operand));
                    operands.into_iter().for_each(|operand| self.expression(number, function, operand));
                    row = alone(match other {
                        StatementKind::If { .. } => "`if`",
                        StatementKind::Switch { .. } => "`match`",
                        StatementKind::For { unroll: true, .. } => "`for`, unrolled",
                        StatementKind::For { .. } => "`for`",
                        StatementKind::While { .. } => "`while`",
                        StatementKind::Loop { .. } => "`loop`",
                        _ => "other",
                    });
                }
                any
            }
        };
        self.found.extend(row.filter(|_| live));
        live
    }
}
