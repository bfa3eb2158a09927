//! What a function computes where: the number of every expression, and each occurrence of those that may be shared, in the order of evaluation.
//!
//! Statements are numbered as they stand, outer before inner, so that a block is a range of positions, and what comes earlier in a block or in one around it
//! has been computed wherever the later is reached: it *dominates* it. A variable has a version, which a store changes; so does memory, which writes, barriers, fences, atomics, subgroup
//! and asynchronous operations change, and calls of what does such things. Where a loop begins, all that it stores has another version, and where it or a branch ends, once
//! more.
//!
//! No occurrences are matrices, operations of subgroups, atomics (which are no expressions), values of structs and arrays, or what costs nothing: literals, params, locals.

use super::invariant::Loops;
use super::numbers::{NONE, Number, Numbers};
use crate::hashing::HashMap;
use crate::ir::{
    Asynchronous, BinaryOperator, BindingKind, Block, CallArgument, Expression, ExpressionKind, Function, Handle,
    Local, MathFunction, MatrixOperation, Module, Place, Projection, Root, Scalar, Statement, StatementKind,
    TileOperation, Type, statements,
};
use crate::verify::function_facts;

/// What calls of a module's functions do.
pub struct Callees {
    /// For each function, whether it writes memory or orders it.
    writes: Vec<bool>,
    /// For each function, whether its result depends on its arguments alone.
    pure: Vec<bool>,
}

impl Callees {
    /// Of a module.
    pub fn of(module: &Module) -> Self {
        let (collective, effects) = function_facts(module);
        let writes: Vec<bool> = collective.iter().zip(&effects).map(|(waits, writes)| *waits || *writes).collect();
        let mut pure = Vec::<bool>::new();
        for (handle, function) in module.functions.iter() {
            let mut reads = writes[handle.index()] || function.arguments.iter().any(|argument| argument.by_reference);
            statements(&function.body, &mut |statement| {
                reads |= matches!(statement.kind, StatementKind::Atomic { .. });
            });
            function.live(&function.body, &mut |part| match &function.expressions[part].kind {
                ExpressionKind::Load(place) => reads |= is_memory(place.root),
                ExpressionKind::Call { function, .. } => reads |= !pure.get(function.index()).is_some_and(|pure| *pure),
                _ => {}
            });
            pure.push(!reads);
        }
        Self { writes, pure }
    }
}

/// Once that something is computed.
#[derive(Clone, Debug)]
pub struct Occurrence {
    pub expression: Handle<Expression>,
    pub number: Number,
    /// The statement that evaluates it.
    pub position: u32,
    /// The statement before which it may be computed: its own, or a loop around it.
    pub lead: u32,
    /// The block that holds that statement.
    pub block: u32,
    /// Whether it is always computed where its statement is reached, so that a name for it may be made there.
    pub leads: bool,
    /// Whether it is to be computed before a loop.
    pub moves: bool,
    /// The immutable local that has it as its value.
    pub local: Option<Handle<Local>>,
    /// Roughly what computing it costs, in operations.
    pub weight: u32,
}

/// Everything that a function computes.
pub struct Values {
    pub occurrences: Vec<Occurrence>,
    /// For each expression, its occurrence.
    pub of: Vec<u32>,
    /// For each block, the position behind its last statement.
    pub ends: Vec<u32>,
}

/// What is known of an expression beside its number.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub number: Number,
    pub weight: u32,
    /// The innermost loop, counted from outside, in which what it depends on is made.
    pub depth: u32,
    /// Whether computing it where the program does not costs little and does nothing.
    pub harmless: bool,
}

/// Numbers what a function computes. With `invariant`, what loops do not change is marked to be moved.
pub fn number(module: &Module, callees: &Callees, function: &Function, invariant: bool) -> Values {
    let nothing = Known { number: NONE, weight: 0, depth: 0, harmless: false };
    let mut walk = Walk {
        module,
        callees,
        function,
        numbers: Numbers::default(),
        known: vec![nothing; function.expressions.len()],
        locals: vec![None; function.locals.len()],
        versions: HashMap::default(),
        memory: Version::default(),
        version: 0,
        next: 0,
        position: 0,
        block: 0,
        conditional: false,
        evaluated_again: false,
        local: None,
        loops: Loops::new(invariant),
        values: Values { occurrences: Vec::new(), of: vec![u32::MAX; function.expressions.len()], ends: Vec::new() },
    };
    walk.block(&function.body);
    walk.values
}

/// Which of the values that a variable has one after the other, and the loop in which it got it.
#[derive(Clone, Copy, Default)]
struct Version {
    number: u32,
    depth: u32,
}

struct Walk<'a> {
    module: &'a Module,
    callees: &'a Callees,
    function: &'a Function,
    numbers: Numbers,
    known: Vec<Known>,
    /// For each immutable local, the number of its value and the loop that it is declared in.
    locals: Vec<Option<(Number, u32)>>,
    versions: HashMap<Root, Version>,
    /// Of all memory that somebody else may write.
    memory: Version,
    version: u32,
    /// The position of the statement that comes next, of the one at hand, and the block that it is in.
    next: u32,
    position: u32,
    block: u32,
    /// Whether what is looked at is computed only if something else says so.
    conditional: bool,
    /// Whether it is the condition of a loop, for which there is no place to compute something before it.
    evaluated_again: bool,
    /// The immutable local that the root of the expression looked at is the value of.
    local: Option<Handle<Local>>,
    loops: Loops,
    values: Values,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        let outer = self.block;
        self.block = self.values.ends.len() as u32;
        self.values.ends.push(0);
        for statement in block {
            self.position = self.next;
            self.next += 1;
            self.statement(statement);
        }
        self.values.ends[self.block as usize] = self.next;
        self.block = outer;
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Let { local, value: Some(value) } if !self.function.locals[*local].mutable => {
                self.local = Some(*local);
                let known = self.root(*value);
                self.local = None;
                self.locals[local.index()] = Some((known.number, known.depth));
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                // The start itself stays where it is: that a loop begins at the invocation's own index is what emitters look for.
                let function = self.function;
                function.expressions[*start].kind.operands(&mut |operand| {
                    self.root(*operand);
                });
                self.root(*end);
                self.root(*step);
                self.begin_loop(statement);
                self.locals[local.index()] = Some((self.numbers.fresh(), self.loops.depth()));
                self.block(body);
                return self.end_loop(statement);
            }
            StatementKind::While { condition, body } => {
                self.begin_loop(statement);
                self.evaluated_again = true;
                self.root(*condition);
                self.evaluated_again = false;
                self.block(body);
                return self.end_loop(statement);
            }
            StatementKind::Loop { body } => {
                self.begin_loop(statement);
                self.block(body);
                return self.end_loop(statement);
            }
            StatementKind::If { .. } | StatementKind::Switch { .. } => {
                statement.kind.operands(&mut |operand| {
                    self.root(*operand);
                });
                let before = (self.versions.clone(), self.memory);
                self.loops.enter_branch();
                for block in statement.kind.blocks() {
                    self.versions.clone_from(&before.0);
                    self.memory = before.1;
                    self.block(block);
                }
                self.loops.leave_branch();
                return self.change(statement);
            }
            // Numbers that are known while building are looked for where they are written.
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) => {
                self.indices(to);
                self.indices(from);
            }
            StatementKind::Asynchronous(_) => {}
            StatementKind::Matrix { operation, .. } => match operation {
                MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. } => self.indices(place),
                MatrixOperation::MultiplyAdd { .. } => {}
            },
            kind => kind.operands(&mut |operand| {
                self.root(*operand);
            }),
        }
        if let Some(local) = statement.kind.declares()
            && self.locals[local.index()].is_none()
        {
            self.locals[local.index()] = Some((self.numbers.fresh(), self.loops.depth()));
        }
        self.change(statement);
    }

    fn indices(&mut self, place: &Place) {
        place.indices(&mut |index| {
            self.root(*index);
        });
    }

    fn begin_loop(&mut self, statement: &Statement) {
        self.loops.enter(self.position, self.block);
        self.change(statement);
    }

    fn end_loop(&mut self, statement: &Statement) {
        self.loops.leave();
        self.change(statement);
    }

    /// Everything that a statement and those inside it write has another version from here on.
    fn change(&mut self, statement: &Statement) {
        let Statement { kind, .. } = statement;
        let mut memory = false;
        match kind {
            StatementKind::Store { place, .. } => self.touch(place.root),
            StatementKind::Let { local, .. } if self.function.locals[*local].mutable => self.touch(Root::Local(*local)),
            StatementKind::Tile(operation) => {
                memory = true;
                if let TileOperation::Multiply { sums, .. } = operation {
                    self.touch(sums.root);
                }
            }
            StatementKind::UniformLoad { .. }
            | StatementKind::Barrier
            | StatementKind::Fence(_)
            | StatementKind::Asynchronous(_)
            | StatementKind::Subgroup { .. }
            | StatementKind::Atomic { .. }
            | StatementKind::Matrix { .. } => memory = true,
            _ => {}
        }
        // A call that writes anything is the root of one of these.
        if let StatementKind::Let { value: Some(value), .. } | StatementKind::Evaluate(value) = kind
            && let ExpressionKind::Call { function, arguments } = &self.function.expressions[*value].kind
        {
            memory |= self.callees.writes.get(function.index()).is_none_or(|writes| *writes);
            for argument in arguments {
                if let CallArgument::Reference(root) = argument {
                    self.touch(*root);
                }
            }
        }
        if memory {
            self.memory = self.fresh_version();
        }
        for inner in kind.blocks().into_iter().flatten() {
            self.change(inner);
        }
    }

    const fn fresh_version(&mut self) -> Version {
        self.version += 1;
        Version { number: self.version, depth: self.loops.depth() }
    }

    fn touch(&mut self, root: Root) {
        let version = self.fresh_version();
        self.versions.insert(root, version);
    }

    /// The version of what a variable holds; nothing if what is read of it is never shared.
    fn version_of(&self, root: Root) -> Option<Version> {
        let own = self.versions.get(&root).copied().unwrap_or_default();
        let newer = if own.number > self.memory.number { own } else { self.memory };
        match root {
            Root::Binding(binding) => match self.module.bindings[binding as usize].kind {
                BindingKind::Shared => Some(Version::default()),
                BindingKind::Mutable => Some(newer),
                BindingKind::Atomic => None,
            },
            Root::Workgroup(variable) => Some(newer).filter(|_| !self.module.workgroup[variable].atomic),
            Root::Local(local) => {
                let ty = &self.module.types[self.function.locals[local].ty];
                Some(own).filter(|_| !matches!(ty, Type::Matrix(_)))
            }
            Root::Argument(_) => Some(own),
        }
    }

    /// Looks at an expression that a statement evaluates.
    fn root(&mut self, handle: Handle<Expression>) -> Known {
        let mut known = self.value(handle);
        self.known[handle.index()] = known;
        if self.loops.enabled() {
            self.move_invariants(handle, self.loops.depth());
        }
        // What the value of a local depends on is the local, unless that moves too.
        known.depth = self.loops.depth();
        if let Some(occurrence) =
            self.values.of.get(handle.index()).and_then(|at| self.values.occurrences.get(*at as usize))
            && occurrence.moves
        {
            known.depth = self.known[handle.index()].depth;
        }
        known
    }

    /// Marks the largest parts of an expression that depend on fewer than `depth` loops.
    fn move_invariants(&mut self, handle: Handle<Expression>, mut depth: u32) {
        let known = self.known[handle.index()];
        let function = self.function;
        if known.depth < depth
            && let Some(occurrence) = self.values.occurrences.get_mut(self.values.of[handle.index()] as usize)
            && self.loops.moves(self.module, function, &known, occurrence)
        {
            // Of what moves there a part may move on.
            depth = known.depth;
        }
        if depth > 0 {
            function.expressions[handle].kind.operands(&mut |operand| self.move_invariants(*operand, depth));
        }
    }

    fn value(&mut self, handle: Handle<Expression>) -> Known {
        let local = self.local.take();
        let function = self.function;
        let Expression { kind, ty, .. } = &function.expressions[handle];
        let mut sum = Known { number: NONE, weight: 0, depth: 0, harmless: true };
        if let ExpressionKind::Logical { left, right, .. } = kind {
            self.operand(*left, &mut sum);
            let outside = std::mem::replace(&mut self.conditional, true);
            self.operand(*right, &mut sum);
            self.conditional = outside;
        } else {
            kind.operands(&mut |operand| self.operand(*operand, &mut sum));
        }
        let ty_of = &self.module.types[*ty];
        let shared = self.finish(kind, *ty, &mut sum);
        self.known[handle.index()] = sum;
        if shared && sum.weight > 0 && matches!(ty_of, Type::Scalar(_) | Type::Vector { .. }) {
            self.values.of[handle.index()] = self.values.occurrences.len() as u32;
            self.values.occurrences.push(Occurrence {
                expression: handle,
                number: sum.number,
                position: self.position,
                lead: self.position,
                block: self.block,
                leads: !self.conditional && !self.evaluated_again,
                moves: false,
                local,
                weight: sum.weight,
            });
        }
        sum
    }

    fn operand(&mut self, handle: Handle<Expression>, sum: &mut Known) {
        let known = self.value(handle);
        sum.weight += known.weight;
        sum.depth = sum.depth.max(known.depth);
        sum.harmless &= known.harmless;
    }

    /// What an expression adds to what is known of its operands; gives whether it may be shared.
    fn finish(&mut self, kind: &ExpressionKind, ty: Handle<Type>, sum: &mut Known) -> bool {
        let ty_of = &self.module.types[ty];
        let is_integer = ty_of.scalar().is_some_and(Scalar::is_integer);
        let all = &self.known;
        let of = |handle: &Handle<Expression>| all[handle.index()].number;
        match kind {
            ExpressionKind::Local(local) => {
                let (number, depth) = self.locals[local.index()].unwrap_or((NONE, self.loops.depth()));
                (sum.number, sum.depth) = (number, depth);
                return false;
            }
            ExpressionKind::Load(place) => {
                let Some(version) = self.version_of(place.root) else {
                    *sum = Known { number: self.numbers.fresh(), depth: self.loops.depth(), harmless: false, ..*sum };
                    return false;
                };
                sum.number = self.numbers.of_load(place, ty, version.number, of);
                sum.depth = sum.depth.max(version.depth);
                let is_indexed = place.path.iter().any(|step| !matches!(step, Projection::Member(_)));
                if is_memory(place.root) {
                    sum.weight += if place.guarded { 6 } else { 4 };
                    sum.harmless = false;
                } else if is_indexed {
                    sum.harmless = false;
                }
                return true;
            }
            ExpressionKind::Call { function, arguments } => {
                sum.harmless = false;
                sum.weight += 10;
                if !self.callees.pure.get(function.index()).is_some_and(|pure| *pure) {
                    *sum = Known { number: self.numbers.fresh(), depth: self.loops.depth(), ..*sum };
                    return false;
                }
                let values = arguments.iter().map(|argument| match argument {
                    CallArgument::Value(value) => of(value),
                    CallArgument::Reference(_) => NONE,
                });
                sum.number = self.numbers.of_call(function.index(), ty, values);
                return true;
            }
            _ => {}
        }
        // What a comparison gives is no number, whatever it compares.
        let is_exact = match kind {
            ExpressionKind::Binary { left, .. } => {
                let scalar = self.module.types[self.function.expressions[*left].ty].scalar();
                scalar.is_some_and(|scalar| scalar.is_integer() || scalar == Scalar::Bool)
            }
            _ => false,
        };
        sum.number = self.numbers.of(kind, ty, is_exact, of);
        let (weight, harmless) = self.cost(kind, is_integer);
        sum.weight += weight;
        sum.harmless &= harmless;
        true
    }

    /// Roughly how many operations an expression is without its operands, and whether it may be computed for nothing.
    fn cost(&self, kind: &ExpressionKind, is_integer: bool) -> (u32, bool) {
        use BinaryOperator as B;
        match kind {
            ExpressionKind::Binary { operator: B::Divide | B::Remainder, .. } if !is_integer => (6, false),
            ExpressionKind::Binary { operator: operator @ (B::Multiply | B::Divide | B::Remainder), left, right }
                if is_integer =>
            {
                let number = |side: &Handle<Expression>| match self.function.expressions[*side].kind {
                    ExpressionKind::Literal(literal) => literal.as_integer(),
                    _ => None,
                };
                let power = |number: i128| number > 0 && number.count_ones() == 1;
                match (operator, number(left), number(right)) {
                    (B::Multiply, Some(number), _) | (_, _, Some(number)) if power(number) => (1, true),
                    (B::Multiply, ..) => (2, true),
                    (_, _, Some(_)) => (4, true),
                    _ => (12, true),
                }
            }
            ExpressionKind::Math { function, .. } => match function {
                MathFunction::Min | MathFunction::Max | MathFunction::Clamp | MathFunction::Abs => (2, true),
                _ if is_integer => (3, true),
                _ => (8, false),
            },
            ExpressionKind::Unary { .. }
            | ExpressionKind::Binary { .. }
            | ExpressionKind::Logical { .. }
            | ExpressionKind::Select { .. }
            | ExpressionKind::Convert(_) => (1, true),
            // Of a number that is written down it is a part like a member.
            ExpressionKind::Element { index, .. } => match self.function.expressions[*index].kind {
                ExpressionKind::Literal(_) => (0, true),
                _ => (2, true),
            },
            _ => (0, true),
        }
    }
}

const fn is_memory(root: Root) -> bool {
    matches!(root, Root::Binding(_) | Root::Workgroup(_))
}
