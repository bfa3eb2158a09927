//! What the workgroup does together and what each invocation does alone, and where locals live because of it.
//!
//! A kernel without collective operations is one region: a loop over invocations around the whole body. Otherwise the body is cut
//! into regions at barriers, subgroup operations, stores to locals that all invocations share, and around loops and branches that
//! contain such. A loop over a row that starts at the invocation's own index and advances uniformly counts as one of the latter too: run
//! round by round, all invocations of a round touch neighbouring elements, which is what vectors and caches want; that is legal, since without
//! a barrier no invocation may rely on another's progress.

use std::collections::BTreeSet;

use super::expr::{Class, Kernel};
use crate::ir::{
    BinaryOperator, Block, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Local, Place, Root,
    Scalar, StatementKind, Type, escapes,
};

/// Where a local of the kernel's body lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the one region that uses it.
    Region,
    /// Once for the workgroup: all invocations have the same value.
    Workgroup,
    /// In an array over invocations.
    Lanes,
    /// Nowhere: it is immutable and cheap, and computed again where it is wanted.
    Again,
    /// It counts a loop that starts at each invocation's own index: the workgroup's first value plus the invocation's index.
    Strided,
}

/// Computations of more operations than this are kept, not repeated.
const CHEAP: usize = 24;

/// The plan for the kernel's body.
pub(super) struct Plan<'a> {
    pub(super) kernel: &'a Kernel<'a>,
    pub(super) function: &'a Function,
    pub(super) storage: Vec<Storage>,
    /// The value of each immutable local that a `Let` declares.
    pub(super) values: Vec<Option<Handle<Expression>>>,
    /// In which order locals are declared.
    pub(super) order: Vec<usize>,
    uniform: Vec<bool>,
    strided: BTreeSet<usize>,
}

#[derive(Clone, Copy, Default)]
struct Jumps {
    loops: bool,
    returns: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn new(kernel: &'a Kernel<'a>, function: &'a Function) -> Self {
        let count = function.locals.len();
        let mut plan = Plan {
            kernel,
            function,
            storage: vec![Storage::Region; count],
            values: vec![None; count],
            order: vec![usize::MAX; count],
            uniform: vec![true; count],
            strided: BTreeSet::new(),
        };
        let mut position = 0;
        crate::ir::statements(&function.body, &mut |statement| {
            if let Some(local) = statement.kind.declares() {
                plan.order[local.index()] = position;
                position += 1;
            }
            if let StatementKind::Let { local, value: Some(value) } = statement.kind
                && !function.locals[local].mutable
            {
                plan.values[local.index()] = Some(value);
            }
        });
        loop {
            let before = plan.uniform.clone();
            plan.strided.clear();
            plan.spread_in(&function.body, false);
            if plan.uniform == before {
                break;
            }
        }
        if plan.splits() {
            plan.place_locals();
        }
        plan
    }

    /// Whether the body is more than one region.
    pub(super) fn splits(&self) -> bool {
        collective(&self.function.body) || !self.strided.is_empty()
    }

    // Uniformity: optimistic, until nothing changes.

    fn varies(&mut self, local: Handle<Local>) {
        self.uniform[local.index()] = false;
    }

    fn spread_in(&mut self, block: &Block, mut varying: bool) -> Jumps {
        let mut jumps = Jumps::default();
        for statement in block {
            let mut referenced = Vec::new();
            statement.kind.operands(&mut |operand| {
                self.function.tree(*operand, &mut |part| {
                    if let ExpressionKind::Call { arguments, .. } = &self.function.expressions[part].kind {
                        for argument in arguments {
                            if let CallArgument::Reference(Root::Local(local)) = argument {
                                referenced.push(*local);
                            }
                        }
                    }
                });
            });
            for local in referenced {
                self.varies(local);
            }
            let inner = match &statement.kind {
                StatementKind::Let { local, value } => {
                    let mutable = self.function.locals[*local].mutable;
                    if let Some(value) = value
                        && (!self.is_uniform(*value) || (varying && self.reads_memory(*value)))
                    {
                        self.varies(*local);
                    }
                    if varying && mutable {
                        self.varies(*local);
                    }
                    Jumps::default()
                }
                StatementKind::Store { place, value } => {
                    if let Root::Local(local) = place.root
                        && (varying || !self.is_uniform(*value) || !self.indices_uniform(place))
                    {
                        self.varies(local);
                    }
                    Jumps::default()
                }
                StatementKind::If { condition, accept, reject, .. } => {
                    let inner = varying || !self.is_uniform(*condition);
                    let (a, b) = (self.spread_in(accept, inner), self.spread_in(reject, inner));
                    Jumps { loops: a.loops || b.loops, returns: a.returns || b.returns }
                }
                StatementKind::Switch { selector, cases, default } => {
                    let inner = varying || !self.is_uniform(*selector);
                    let mut all = self.spread_in(default, inner);
                    for case in cases {
                        let one = self.spread_in(&case.body, inner);
                        all = Jumps { loops: all.loops || one.loops, returns: all.returns || one.returns };
                    }
                    all
                }
                StatementKind::For { local, start, end, step, body, .. } => {
                    let same = self.is_uniform(*step) && self.is_uniform(*end);
                    if !self.is_uniform(*start) || !self.is_uniform(*step) {
                        self.varies(*local);
                    }
                    let strides = !varying && same && !self.is_uniform(*start) && self.may_stride(*local, *start, body);
                    // Looked at again in a loop that some invocations leave early, it is none.
                    if strides {
                        self.strided.insert(local.index());
                    } else {
                        self.strided.remove(&local.index());
                    }
                    // A strided loop is run in rounds; what varies is only how many invocations take part in the last.
                    let inner = varying || !same || !self.is_uniform(*start);
                    self.spread_loop(body, inner)
                }
                StatementKind::While { condition, body } => {
                    let inner = varying || !self.is_uniform(*condition);
                    self.spread_loop(body, inner)
                }
                StatementKind::Loop { body } => self.spread_loop(body, varying),
                StatementKind::Break | StatementKind::Continue => Jumps { loops: varying, returns: false },
                StatementKind::Return(_) => Jumps { loops: false, returns: varying },
                StatementKind::Atomic { result, .. } => {
                    if let Some(result) = result {
                        self.varies(*result);
                    }
                    Jumps::default()
                }
                StatementKind::Subgroup { result, .. } => {
                    self.varies(*result);
                    Jumps::default()
                }
                StatementKind::UniformLoad { .. }
                | StatementKind::Evaluate(_)
                | StatementKind::Reporting(_)
                | StatementKind::Report(_)
                | StatementKind::Matrix { .. }
                | StatementKind::Barrier
                | StatementKind::Asynchronous(_)
                | StatementKind::Tile(_)
                | StatementKind::Fence(_) => Jumps::default(),
            };
            varying |= inner.loops || inner.returns;
            jumps.loops |= inner.loops;
            jumps.returns |= inner.returns;
        }
        jumps
    }

    fn spread_loop(&mut self, body: &Block, varying: bool) -> Jumps {
        let mut jumps = self.spread_in(body, varying);
        if !varying && (jumps.loops || jumps.returns) {
            let again = self.spread_in(body, true);
            jumps.returns |= again.returns;
        }
        // Those that left the loop meet the others behind it.
        Jumps { loops: false, returns: jumps.returns }
    }

    fn indices_uniform(&self, place: &Place) -> bool {
        let mut uniform = true;
        place.indices(&mut |index| uniform &= self.is_uniform(*index));
        uniform
    }

    /// Whether all invocations of a workgroup that evaluate it together get the same.
    pub(super) fn is_uniform(&self, expression: Handle<Expression>) -> bool {
        match &self.function.expressions[expression].kind {
            ExpressionKind::Builtin(builtin) => !builtin.varies_in_workgroup(),
            ExpressionKind::Local(local) => self.uniform[local.index()],
            ExpressionKind::Argument(_) => false,
            ExpressionKind::Load(place) => {
                let root = match place.root {
                    Root::Binding(binding) => self.kernel.class(binding) == Class::Shared,
                    Root::Workgroup(_) | Root::Argument(_) => false,
                    Root::Local(local) => self.uniform[local.index()],
                };
                root && self.indices_uniform(place)
            }
            ExpressionKind::Call { function, arguments } => {
                self.kernel.names.functions[function.index()].uniform
                    && arguments.iter().all(|argument| match argument {
                        CallArgument::Value(value) => self.is_uniform(*value),
                        CallArgument::Reference(_) => false,
                    })
            }
            kind => {
                let mut uniform = true;
                kind.operands(&mut |operand| uniform &= self.is_uniform(*operand));
                uniform
            }
        }
    }

    /// Whether it reads buffers or workgroup memory, so that it may not run where the author's code would not run it.
    pub(super) fn reads_memory(&self, expression: Handle<Expression>) -> bool {
        let mut reads = false;
        self.function.tree(expression, &mut |part| {
            reads |= match &self.function.expressions[part].kind {
                ExpressionKind::Load(place) => !matches!(place.root, Root::Local(_)),
                ExpressionKind::Call { .. } => true,
                _ => false,
            };
        });
        reads
    }

    /// The text of what the workgroup's first invocation has, if the value is that plus the invocation's index.
    pub(super) fn lane_offset(&self, expression: Handle<Expression>) -> Option<&'static str> {
        match &self.function.expressions[expression].kind {
            ExpressionKind::Builtin(Builtin::GlobalIndex) => Some("base"),
            ExpressionKind::Builtin(Builtin::LocalIndex) => Some("0u32"),
            ExpressionKind::Local(local) => self.lane_offset(self.values[local.index()]?),
            ExpressionKind::Member { base, index: 0 } if self.kernel.names.flat => {
                let base = match &self.function.expressions[*base].kind {
                    ExpressionKind::Local(local) => self.values[local.index()]?,
                    _ => *base,
                };
                match self.function.expressions[base].kind {
                    ExpressionKind::Builtin(Builtin::LocalId) => Some("0u32"),
                    ExpressionKind::Builtin(Builtin::GlobalId) => Some("base_x"),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the value is the invocation's index plus something uniform; the sum may wrap.
    fn affine(&self, expression: Handle<Expression>) -> bool {
        if self.lane_offset(expression).is_some() {
            return true;
        }
        match &self.function.expressions[expression].kind {
            ExpressionKind::Local(local) => self.values[local.index()].is_some_and(|value| self.affine(value)),
            ExpressionKind::Binary { operator: BinaryOperator::Add, left, right } => {
                (self.affine(*left) && self.is_uniform(*right)) || (self.is_uniform(*left) && self.affine(*right))
            }
            _ => false,
        }
    }

    fn may_stride(&self, local: Handle<Local>, start: Handle<Expression>, body: &Block) -> bool {
        let counts = matches!(
            self.kernel.module.types[self.function.locals[local].ty],
            Type::Scalar(Scalar::Index | Scalar::U32)
        );
        let mut leaves = collective(body) || escapes(body);
        crate::ir::statements(body, &mut |statement| leaves |= matches!(statement.kind, StatementKind::Return(_)));
        self.kernel.names.flat && counts && !leaves && self.affine(start)
    }

    pub(super) fn is_strided(&self, local: Handle<Local>) -> bool {
        self.strided.contains(&local.index())
    }

    /// Whether the workgroup runs a statement of its own level together, instead of each invocation alone.
    pub(super) fn together(&self, statement: &StatementKind) -> bool {
        let shared = |local: Handle<Local>| self.storage[local.index()] == Storage::Workgroup;
        match statement {
            StatementKind::Barrier
            | StatementKind::UniformLoad { .. }
            | StatementKind::Subgroup { .. }
            | StatementKind::Matrix { .. }
            | StatementKind::Tile(_)
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Return(_) => true,
            StatementKind::Let { local, .. } => shared(*local),
            StatementKind::Store { place, .. } => matches!(place.root, Root::Local(local) if shared(local)),
            StatementKind::If { condition, accept, reject, .. } => {
                [accept, reject].into_iter().any(|block| self.needs_company(block, self.is_uniform(*condition)))
            }
            StatementKind::Switch { selector, cases, default } => {
                let uniform = self.is_uniform(*selector);
                cases.iter().map(|case| &case.body).chain([default]).any(|block| self.needs_company(block, uniform))
            }
            StatementKind::For { local, body, .. } => {
                self.is_strided(*local) || collective(body) || self.company_inside(body)
            }
            StatementKind::While { body, .. } | StatementKind::Loop { body } => {
                collective(body) || self.company_inside(body)
            }
            StatementKind::Evaluate(_)
            | StatementKind::Reporting(_)
            | StatementKind::Report(_)
            | StatementKind::Atomic { .. }
            | StatementKind::Fence(_)
            | StatementKind::Asynchronous(_) => false,
        }
    }

    fn needs_company(&self, block: &Block, uniform: bool) -> bool {
        let mut returns = false;
        crate::ir::statements(block, &mut |inner| returns |= matches!(inner.kind, StatementKind::Return(_)));
        collective(block) || escapes(block) || (uniform && (returns || self.company_inside(block)))
    }

    /// Whether a block holds a strided loop or writes a local of the workgroup; both occur under uniform control alone.
    fn company_inside(&self, block: &Block) -> bool {
        let mut found = false;
        crate::ir::statements(block, &mut |inner| {
            found |= match &inner.kind {
                StatementKind::For { local, .. } => self.is_strided(*local),
                StatementKind::Let { local, .. } => {
                    self.function.locals[*local].mutable && self.storage[local.index()] == Storage::Workgroup
                }
                StatementKind::Store { place, .. } => {
                    matches!(place.root, Root::Local(local) if self.storage[local.index()] == Storage::Workgroup)
                }
                _ => false,
            };
        });
        found
    }

    /// Whether the `Let` of a workgroup's immutable local may run before the region in which it stands.
    pub(super) fn moves_up(&self, statement: &StatementKind) -> bool {
        match statement {
            StatementKind::Let { local, value: Some(value) } => {
                self.storage[local.index()] == Storage::Workgroup
                    && !self.function.locals[*local].mutable
                    && !self.reads_memory(*value)
            }
            _ => false,
        }
    }

    // Placement: regions are numbered, and locals that are used in other regions than their own get a place outside.

    fn place_locals(&mut self) {
        // The fixed ones.
        let body = &self.function.body;
        let mut fixed = Vec::new();
        crate::ir::statements(body, &mut |statement| match &statement.kind {
            StatementKind::UniformLoad { result, .. } => fixed.push((*result, Storage::Workgroup)),
            StatementKind::Subgroup { result, .. } => fixed.push((*result, Storage::Lanes)),
            StatementKind::For { local, .. } if self.is_strided(*local) => fixed.push((*local, Storage::Strided)),
            StatementKind::For { local, body, .. } if collective(body) => fixed.push((*local, Storage::Workgroup)),
            _ => {}
        });
        for (local, storage) in fixed {
            self.storage[local.index()] = storage;
        }
        loop {
            let mut numbering = Numbering {
                plan: self,
                region: 0,
                declared: vec![None; self.storage.len()],
                elsewhere: vec![false; self.storage.len()],
            };
            numbering.block(body);
            let elsewhere = numbering.elsewhere;
            let mut changed = false;
            for (handle, local) in self.function.locals.iter() {
                let index = handle.index();
                if !elsewhere[index] || self.storage[index] != Storage::Region {
                    continue;
                }
                self.storage[index] = if self.uniform[index] {
                    Storage::Workgroup
                } else if !local.mutable && self.values[index].is_some_and(|value| self.is_cheap(value)) {
                    Storage::Again
                } else {
                    Storage::Lanes
                };
                changed = true;
            }
            // The counter of a loop that the workgroup runs together is the workgroup's.
            let mut counters = Vec::new();
            crate::ir::statements(body, &mut |statement| {
                if let StatementKind::For { local, .. } = &statement.kind
                    && self.storage[local.index()] == Storage::Region
                    && self.together(&statement.kind)
                {
                    counters.push(*local);
                }
            });
            for local in counters {
                self.storage[local.index()] = Storage::Workgroup;
                changed = true;
            }
            if !changed {
                break;
            }
        }
    }

    fn is_cheap(&self, value: Handle<Expression>) -> bool {
        let mut nodes = 0;
        let mut pure = true;
        self.function.tree(value, &mut |part| {
            nodes += 1;
            pure &= match &self.function.expressions[part].kind {
                ExpressionKind::Load(_) | ExpressionKind::Call { .. } | ExpressionKind::Math { .. } => false,
                ExpressionKind::Local(local) => !self.function.locals[*local].mutable,
                _ => true,
            };
        });
        pure && nodes <= CHEAP
    }

    /// The locals that code with these expressions wants from outside, in the order of their declaration, with what their
    /// computation wants in turn.
    pub(super) fn wanted(&self, roots: &[Handle<Local>]) -> Vec<Handle<Local>> {
        let mut all = BTreeSet::new();
        let mut open = roots.to_vec();
        while let Some(local) = open.pop() {
            if !all.insert((self.order[local.index()], local)) {
                continue;
            }
            if self.storage[local.index()] == Storage::Again
                && let Some(value) = self.values[local.index()]
            {
                self.function.tree(value, &mut |part| {
                    if let ExpressionKind::Local(inner) = self.function.expressions[part].kind {
                        open.push(inner);
                    }
                });
            }
        }
        all.into_iter().map(|(_, local)| local).collect()
    }
}

struct Numbering<'p, 'a> {
    plan: &'p Plan<'a>,
    region: usize,
    declared: Vec<Option<usize>>,
    elsewhere: Vec<bool>,
}

impl Numbering<'_, '_> {
    fn uses(&mut self, roots: &[Handle<Local>], region: usize) {
        for local in self.plan.wanted(roots) {
            if self.declared[local.index()] != Some(region) {
                self.elsewhere[local.index()] = true;
            }
        }
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            let kind = &statement.kind;
            let mut used = Vec::new();
            if self.plan.moves_up(kind) {
                own_locals(self.plan.function, kind, &mut used);
                self.uses(&used, usize::MAX);
            } else if self.plan.together(kind) {
                // What the workgroup evaluates is a region of its own.
                self.region += 1;
                own_locals(self.plan.function, kind, &mut used);
                let region = self.region;
                self.uses(&used, region);
                for inner in kind.blocks() {
                    self.region += 1;
                    self.block(inner);
                }
                self.region += 1;
            } else {
                let region = self.region;
                crate::ir::statements(std::slice::from_ref(statement), &mut |inner| {
                    if let Some(local) = inner.kind.declares() {
                        self.declared[local.index()] = Some(region);
                    }
                    own_locals(self.plan.function, &inner.kind, &mut used);
                });
                self.uses(&used, region);
            }
        }
    }
}

/// Appends the locals that a statement itself reads or writes; not those that it declares, and not those of its blocks.
pub(super) fn own_locals(function: &Function, kind: &StatementKind, out: &mut Vec<Handle<Local>>) {
    kind.operands(&mut |operand| expression_locals(function, *operand, out));
    match kind {
        StatementKind::Store { place, .. }
        | StatementKind::UniformLoad { place, .. }
        | StatementKind::Atomic { place, .. } => {
            if let Root::Local(local) = place.root {
                out.push(local);
            }
        }
        _ => {}
    }
}

/// Appends the locals that an expression reads.
pub(super) fn expression_locals(function: &Function, root: Handle<Expression>, out: &mut Vec<Handle<Local>>) {
    function.tree(root, &mut |part| match &function.expressions[part].kind {
        ExpressionKind::Local(local) => out.push(*local),
        ExpressionKind::Load(Place { root: Root::Local(local), .. }) => out.push(*local),
        ExpressionKind::Call { arguments, .. } => {
            for argument in arguments {
                if let CallArgument::Reference(Root::Local(local)) = argument {
                    out.push(*local);
                }
            }
        }
        _ => {}
    });
}

/// Whether a block holds a barrier or a subgroup operation.
pub(super) fn collective(block: &Block) -> bool {
    let mut found = false;
    crate::ir::statements(block, &mut |statement| {
        found |= matches!(
            statement.kind,
            StatementKind::Barrier | StatementKind::UniformLoad { .. } | StatementKind::Subgroup { .. }
        );
    });
    found
}
