//! What of the IR is exercised: for each kind of node and type, in how many kernels its value reaches an output.
//!
//! A value reaches an output if it is stored to a buffer, decides whether something is stored that reaches one, or goes into a variable, workgroup memory or an argument of which this holds. It is found in
//! the instance by going backwards until nothing is new, without a look at what runs.

use std::collections::{BTreeMap, BTreeSet};

use trefoil_codegen::ir::{
    Block, CallArgument, Expression, ExpressionKind, Function, Handle, Module, Place, Root, StatementKind, Type,
};

/// Kernels in which a kind of node with a type reached an output.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By kind and type.
    pub counts: BTreeMap<(String, String), u32>,
}

impl Table {
    /// Counts a kernel.
    pub fn add(&mut self, kernel: &BTreeSet<(String, String)>) {
        for key in kernel {
            *self.counts.entry(key.clone()).or_default() += 1;
        }
    }

    /// As lines, one a kind, with its types.
    pub fn lines(&self) -> Vec<String> {
        let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((kind, ty), count) in &self.counts {
            kinds.entry(kind).or_default().push(format!("{ty} {count}"));
        }
        kinds.iter().map(|(kind, types)| format!("{kind}: {}", types.join(", "))).collect()
    }

    /// The least count of all.
    pub fn least(&self) -> u32 {
        self.counts.values().copied().min().unwrap_or(0)
    }
}

/// The nodes of a module whose values reach an output.
pub fn reached(module: &Module) -> BTreeSet<(String, String)> {
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

struct Slice<'m> {
    module: &'m Module,
    /// Locals whose values reach an output, by function.
    live: BTreeSet<(usize, usize)>,
    /// Arguments of which this holds.
    arguments: BTreeSet<(usize, u32)>,
    /// Functions that are called for what reaches one.
    called: BTreeSet<usize>,
    found: BTreeSet<(String, String)>,
}

impl Slice<'_> {
    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => scalar.rust_name().to_owned(),
            Type::Vector { lanes, scalar } => format!("Vec{lanes}<{}>", scalar.rust_name()),
            Type::Array { .. } => "array".to_owned(),
            Type::Struct(_) => "struct".to_owned(),
            Type::Enum(_) => "enum".to_owned(),
            Type::Matrix(_) => "matrix".to_owned(),
        }
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
        let name = match &expression.kind {
            ExpressionKind::Literal(_) => "literal".to_owned(),
            ExpressionKind::Param(_) => "param".to_owned(),
            ExpressionKind::Length(_) => "length".to_owned(),
            ExpressionKind::Builtin(builtin) => format!("{builtin:?}"),
            ExpressionKind::Argument(_) => "argument".to_owned(),
            ExpressionKind::Local(_) => "local".to_owned(),
            ExpressionKind::Load(place) => format!(
                "load of {}",
                match place.root {
                    Root::Binding(_) => "binding",
                    Root::Workgroup(_) => "workgroup memory",
                    Root::Local(_) => "local",
                    Root::Argument(_) => "argument",
                }
            ),
            ExpressionKind::Member { .. } => "member".to_owned(),
            ExpressionKind::Element { .. } => "element".to_owned(),
            ExpressionKind::Compose(_) => "compose".to_owned(),
            ExpressionKind::Splat(_) => "splat".to_owned(),
            ExpressionKind::Swizzle { .. } => "swizzle".to_owned(),
            ExpressionKind::Unary { operator, .. } => format!("{operator:?}"),
            ExpressionKind::Binary { operator, left, .. } => {
                let of = self.ty(&self.module.types[function.expressions[*left].ty]);
                self.found.insert((format!("{operator:?}"), of));
                String::new()
            }
            ExpressionKind::Logical { operator, .. } => format!("logical {operator:?}"),
            ExpressionKind::Math { function, .. } => function.name().to_owned(),
            ExpressionKind::Select { .. } => "select".to_owned(),
            ExpressionKind::Convert(value) => {
                format!("convert from {}", self.ty(&self.module.types[function.expressions[*value].ty]))
            }
            ExpressionKind::Bitcast(_) => "bitcast".to_owned(),
            ExpressionKind::Call { .. } => "call".to_owned(),
            _ => "other".to_owned(),
        };
        if !name.is_empty() {
            let ty = self.ty(&self.module.types[expression.ty]);
            self.found.insert((name, ty));
        }
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
        let mut name = None;
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
                    name = Some("store".to_owned());
                    self.indices(number, function, place);
                    self.expression(number, function, *value);
                }
                live
            }
            StatementKind::Return(value) => {
                name = Some("return".to_owned());
                value.iter().for_each(|value| self.expression(number, function, *value));
                true
            }
            StatementKind::Break | StatementKind::Continue => {
                name = Some(format!("{kind:?}"));
                true
            }
            StatementKind::Barrier => {
                name = Some("barrier".to_owned());
                true
            }
            StatementKind::Atomic { place, function: atomic, value, compare, .. } => {
                name = Some(format!("atomic {}", atomic.name()));
                self.indices(number, function, place);
                for value in [value, compare].into_iter().flatten() {
                    self.expression(number, function, *value);
                }
                true
            }
            StatementKind::UniformLoad { result, place } => {
                let live = self.live.contains(&(number, result.index()));
                if live {
                    name = Some("uniform load".to_owned());
                    self.indices(number, function, place);
                }
                live
            }
            StatementKind::Subgroup { result, function: operation, value, lane } => {
                let live = self.live.contains(&(number, result.index()));
                if live {
                    name = Some(operation.name().to_owned());
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
                    name = Some(
                        match other {
                            StatementKind::If { .. } => "if",
                            StatementKind::Switch { .. } => "switch",
                            StatementKind::For { unroll: true, .. } => "unrolled for",
                            StatementKind::For { .. } => "for",
                            StatementKind::While { .. } => "while",
                            StatementKind::Loop { .. } => "loop",
                            _ => "other",
                        }
                        .to_owned(),
                    );
                }
                any
            }
        };
        if let (true, Some(name)) = (live, name) {
            self.found.insert((name, "statement".to_owned()));
        }
        live
    }
}
