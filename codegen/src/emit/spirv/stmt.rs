//! Statements: structured control flow, barriers, atomics and subgroup operations.
//!
//! What follows a jump in a block is dead and is not written. A merge block that no path reaches ends in `OpUnreachable`.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, GroupOperation, LoopControl, MemorySemantics, Op, Scope, StorageClass, Word};

use super::expr::{Kind, kind_of};
use super::function::{FunctionWriter, Loop};
use super::module::contains_barrier;
use crate::emit::EmitError;
use crate::ir::{
    AtomicFunction, Block, Case, Expression, ExpressionKind, Handle, Literal, Local, Order, Ordering, Place, Root,
    Scalar, Scope as Reach, Statement, StatementKind, SubgroupFunction, SubgroupOperator, breaks,
};
use crate::target::Feature;

/// A loop over a range.
struct Range {
    local: Handle<Local>,
    start: Handle<Expression>,
    end: Handle<Expression>,
    step: Handle<Expression>,
}

impl FunctionWriter<'_, '_> {
    /// Writes statements until the first that leaves the block.
    pub(super) fn block(&mut self, block: &Block) -> Result<(), EmitError> {
        for statement in block {
            if !self.is_open() {
                break;
            }
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), EmitError> {
        match &statement.kind {
            StatementKind::Let { local, value } => self.declare(*local, *value),
            StatementKind::Store { place, value } => self.store(place, *value),
            StatementKind::Evaluate(value) => match &self.function.expressions[*value].kind {
                ExpressionKind::Call { function, arguments } => {
                    // The type is that of the callee, which may give nothing.
                    let ty = match self.writer.lowered.module.functions[*function].result {
                        Some(ty) => self.value_type(ty)?,
                        None => self.void(),
                    };
                    self.call(*function, arguments, ty).map(|_| ())
                }
                _ => self.value(*value).map(|_| ()),
            },
            StatementKind::If { condition, accept, reject, .. } => self.choose(*condition, accept, reject),
            StatementKind::Switch { selector, cases, default } => self.switch(*selector, cases, default),
            StatementKind::For { local, end, body, .. } if self.matrix_arithmetic(*local, *end, body)? => Ok(()),
            StatementKind::For { local, start, end, step, body, .. } => {
                self.range(&Range { local: *local, start: *start, end: *end, step: *step }, body)
            }
            StatementKind::While { condition, body } => self.repeat(Some(*condition), body),
            StatementKind::Loop { body } => self.repeat(None, body),
            StatementKind::Break => self.leave("break", |target| target.merge),
            StatementKind::Continue => self.leave("continue", |target| target.next),
            StatementKind::Return(value) => {
                match value {
                    Some(value) => {
                        let value = self.value(*value)?;
                        self.terminate(Op::ReturnValue, vec![Operand::IdRef(value)]);
                    }
                    None => self.terminate(Op::Return, Vec::new()),
                }
                Ok(())
            }
            StatementKind::Barrier => {
                self.barrier();
                Ok(())
            }
            StatementKind::UniformLoad { result, place } => {
                self.barrier();
                let value = self.load(place)?;
                self.barrier();
                self.define(*result, value)
            }
            StatementKind::Asynchronous(kind) => Err(self.writer.fail(format!("a `{}` is left", kind.name()))),
            StatementKind::Tile(operation) => Err(self.writer.fail(format!("a `{}` is left", operation.name()))),
            StatementKind::Reporting(_) | StatementKind::Report(_) => Err(self.writer.fail("a report is left")),
            StatementKind::Fence(reach) => {
                self.fence(*reach);
                Ok(())
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let value = self.atomic(*function, place, *value, *compare, *ordering)?;
                match result {
                    Some(result) => self.define(*result, value),
                    None => Ok(()),
                }
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let value = self.subgroup(*function, *value, *lane)?;
                self.define(*result, value)
            }
            StatementKind::Matrix { result, operation } => match (self.matrix(*result, operation)?, result) {
                (Some(value), Some(result)) => self.define(*result, value),
                _ => Ok(()),
            },
        }
    }

    fn declare(&mut self, local: Handle<Local>, value: Option<Handle<Expression>>) -> Result<(), EmitError> {
        if self.is_variable(local) {
            self.local_variable(local)?;
        }
        match value {
            Some(value) if self.fill_matrices(local, value)? => Ok(()),
            Some(value) => {
                let value = self.value(value)?;
                self.define(local, value)
            }
            None => Ok(()),
        }
    }

    /// Gives a local its value.
    fn define(&mut self, local: Handle<Local>, value: Word) -> Result<(), EmitError> {
        if self.is_variable(local) {
            let variable = self.local_variable(local)?;
            self.effect(Op::Store, vec![Operand::IdRef(variable), Operand::IdRef(value)]);
        } else {
            let function = self.function;
            self.writer.name_value(value, &function.locals[local].name);
            self.values.insert(local, value);
        }
        Ok(())
    }

    fn leave(&mut self, what: &str, target: impl Fn(&Loop) -> Word) -> Result<(), EmitError> {
        let Some(target) = self.loops.last().map(target) else {
            return Err(self.writer.fail(format!("a `{what}` outside of any loop")));
        };
        self.branch(target);
        Ok(())
    }

    fn choose(&mut self, condition: Handle<Expression>, accept: &Block, reject: &Block) -> Result<(), EmitError> {
        let condition = self.value(condition)?;
        let (yes, merge) = (self.writer.id(), self.writer.id());
        let no = if reject.is_empty() { merge } else { self.writer.id() };
        self.select_branch(condition, yes, no, merge);
        self.begin(yes);
        self.block(accept)?;
        let mut reached = self.is_open() || reject.is_empty();
        self.branch_if_open(merge);
        if !reject.is_empty() {
            self.begin(no);
            self.block(reject)?;
            reached |= self.is_open();
            self.branch_if_open(merge);
        }
        self.merge(merge, reached);
        Ok(())
    }

    /// Starts a merge block; one that is not reached ends at once.
    fn merge(&mut self, label: Word, reached: bool) {
        self.begin(label);
        if !reached {
            self.terminate(Op::Unreachable, Vec::new());
        }
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &[Case], default: &Block) -> Result<(), EmitError> {
        let selector = self.value(selector)?;
        let merge = self.writer.id();
        let otherwise = if default.is_empty() { merge } else { self.writer.id() };
        let mut operands = vec![Operand::IdRef(selector), Operand::IdRef(otherwise)];
        let mut labels = Vec::new();
        for case in cases {
            let label = self.writer.id();
            labels.push(label);
            for value in &case.values {
                operands.push(Operand::LiteralBit32(*value));
                operands.push(Operand::IdRef(label));
            }
        }
        self.selection_merge(merge);
        self.terminate(Op::Switch, operands);
        let mut reached = default.is_empty();
        for (case, label) in cases.iter().zip(labels) {
            self.begin(label);
            self.block(&case.body)?;
            reached |= self.is_open();
            self.branch_if_open(merge);
        }
        if !default.is_empty() {
            self.begin(otherwise);
            self.block(default)?;
            reached |= self.is_open();
            self.branch_if_open(merge);
        }
        self.merge(merge, reached);
        Ok(())
    }

    fn loop_merge(&mut self, merge: Word, next: Word) {
        let control = Operand::LoopControl(LoopControl::NONE);
        self.effect(Op::LoopMerge, vec![Operand::IdRef(merge), Operand::IdRef(next), control]);
    }

    /// Runs a body inside a loop.
    fn body(&mut self, merge: Word, next: Word, body: &Block) -> Result<(), EmitError> {
        let outer = self.in_rounds;
        self.in_rounds |= contains_barrier(body);
        self.loops.push(Loop { merge, next });
        let written = self.block(body);
        self.loops.pop();
        self.in_rounds = outer;
        written?;
        self.branch_if_open(next);
        if self.loops.is_empty() {
            self.settle_barriers();
        }
        Ok(())
    }

    /// `while` with a condition, `loop` without.
    fn repeat(&mut self, condition: Option<Handle<Expression>>, body: &Block) -> Result<(), EmitError> {
        let [header, start, next, merge] = [(); 4].map(|()| self.writer.id());
        self.branch(header);
        self.begin(header);
        self.loop_merge(merge, next);
        self.branch(start);
        self.begin(start);
        if let Some(condition) = condition {
            let condition = self.value(condition)?;
            let inside = self.writer.id();
            self.branch_conditional(condition, inside, merge);
            self.begin(inside);
        }
        self.body(merge, next, body)?;
        self.begin(next);
        self.branch(header);
        self.merge(merge, condition.is_some() || breaks(body));
        Ok(())
    }

    fn range(&mut self, range: &Range, body: &Block) -> Result<(), EmitError> {
        let function = self.function;
        let kind = self.kind(range.start)?;
        let ty = self.value_type(function.locals[range.local].ty)?;
        let flag = self.writer.bool_type();
        let known_step = self.known_number(range.step);
        let start = self.value(range.start)?;
        let end = self.value(range.end)?;
        let scalar = self.writer.ir(function.locals[range.local].ty).scalar().unwrap_or(Scalar::U32);
        let one = Literal::integer(scalar, 1).ok_or_else(|| self.writer.fail("a loop counts no integers"))?;
        let one = self.writer.literal(one)?;
        let step = match known_step {
            Some(0 | 1) => one,
            Some(_) => self.value(range.step)?,
            None => {
                // A step of 0 is taken as 1; steps are positive, so this is right for signed ones.
                let step = self.value(range.step)?;
                self.glsl(rspirv::spirv::GlslStd450Op::UMax, ty, &[step, one])
            }
        };
        let before = self.label();
        let [header, inside, next, merge, advanced] = [(); 5].map(|()| self.writer.id());
        self.branch(header);
        self.begin(header);
        let index = self.phi(ty, [(start, before), (advanced, next)]);
        let compare = if kind == Kind::Signed { Op::SLessThan } else { Op::ULessThan };
        let more = self.op(compare, flag, &[index, end]);
        self.loop_merge(merge, next);
        self.branch_conditional(more, inside, merge);
        self.begin(inside);
        self.define(range.local, index)?;
        self.body(merge, next, body)?;
        self.begin(next);
        if step == one {
            self.op_as(Op::IAdd, ty, advanced, &[index, one]);
        } else {
            // The last step must not wrap around: it goes to the end, where nothing more runs.
            let left = self.op(Op::ISub, ty, &[end, index]);
            let fits = self.op(Op::UGreaterThan, flag, &[left, step]);
            let sum = self.op(Op::IAdd, ty, &[index, step]);
            self.op_as(Op::Select, ty, advanced, &[fits, sum, end]);
        }
        self.branch(header);
        self.merge(merge, true);
        Ok(())
    }

    /// A workgroup barrier.
    fn barrier(&mut self) {
        let position = self.position();
        let orders_buffers = self.touched;
        let semantics = self.semantics(orders_buffers);
        let scope = self.writer.u32(Scope::Workgroup as u32);
        self.effect(
            Op::ControlBarrier,
            vec![Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)],
        );
        if !orders_buffers && !self.loops.is_empty() {
            self.pending_barriers.push(position);
        }
    }

    /// What a barrier orders. Ordering buffers costs caches, so it is left out where no access to a written buffer comes before.
    fn semantics(&mut self, orders_buffers: bool) -> Word {
        let mut semantics = MemorySemantics::ACQUIRE_RELEASE
            | MemorySemantics::WORKGROUP_MEMORY
            | MemorySemantics::MAKE_AVAILABLE
            | MemorySemantics::MAKE_VISIBLE;
        if orders_buffers {
            semantics |= MemorySemantics::UNIFORM_MEMORY;
        }
        self.writer.u32(semantics.bits())
    }

    /// Once the outermost loop is written, its barriers know what comes before them in the next round.
    fn settle_barriers(&mut self) {
        let pending = std::mem::take(&mut self.pending_barriers);
        if !self.touched {
            return;
        }
        let semantics = self.semantics(true);
        for position in pending {
            if let Some(operand) = self.instruction_at(position).and_then(|barrier| barrier.operands.last_mut()) {
                *operand = Operand::IdMemorySemantics(semantics);
            }
        }
    }

    /// What an atomic or a fence orders: accesses of buffers and of workgroup memory, which are made available to those who acquire, and
    /// visible to who does.
    fn order_semantics(&mut self, order: Order) -> Word {
        let mut semantics = match order {
            Order::Relaxed => return self.writer.u32(MemorySemantics::RELAXED.bits()),
            Order::Acquire => MemorySemantics::ACQUIRE | MemorySemantics::MAKE_VISIBLE,
            Order::Release => MemorySemantics::RELEASE | MemorySemantics::MAKE_AVAILABLE,
            Order::AcquireRelease => {
                MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::MAKE_AVAILABLE | MemorySemantics::MAKE_VISIBLE
            }
        };
        semantics |= MemorySemantics::UNIFORM_MEMORY;
        if !self.writer.workgroup.is_empty() {
            semantics |= MemorySemantics::WORKGROUP_MEMORY;
        }
        self.writer.u32(semantics.bits())
    }

    fn fence(&mut self, reach: Reach) {
        let scope = self.writer.u32(scope_of(reach) as u32);
        let semantics = self.order_semantics(Order::AcquireRelease);
        self.effect(Op::MemoryBarrier, vec![Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)]);
    }

    fn atomic(
        &mut self,
        function: AtomicFunction,
        place: &Place,
        value: Option<Handle<Expression>>,
        compare: Option<Handle<Expression>>,
        ordering: Ordering,
    ) -> Result<Word, EmitError> {
        use AtomicFunction as A;
        let module = &self.writer.lowered.module;
        let element = match place.root {
            Root::Binding(binding) => module.bindings.get(binding as usize).map(|binding| binding.element),
            Root::Workgroup(variable) => Some(module.workgroup[variable].element),
            Root::Local(_) | Root::Argument(_) => None,
        };
        if element.is_some_and(|element| module.types[element].scalar().is_some_and(Scalar::is_wide)) {
            self.writer.require(Feature::Int64Atomics, "an atomic has 64 bits")?;
            self.writer.capability(Capability::Int64Atomics);
        }
        let given = match value {
            Some(value) => Some((self.value(value)?, self.kind(value)?)),
            None => None,
        };
        let compare = match compare {
            Some(compare) => Some(self.value(compare)?),
            None => None,
        };
        let signed = given.is_some_and(|(_, kind)| kind == Kind::Signed);
        let op = match function {
            A::Load => Op::AtomicLoad,
            A::Store => Op::AtomicStore,
            A::Add => Op::AtomicIAdd,
            A::Subtract => Op::AtomicISub,
            A::Min if signed => Op::AtomicSMin,
            A::Min => Op::AtomicUMin,
            A::Max if signed => Op::AtomicSMax,
            A::Max => Op::AtomicUMax,
            A::And => Op::AtomicAnd,
            A::Or => Op::AtomicOr,
            A::Xor => Op::AtomicXor,
            A::Exchange => Op::AtomicExchange,
            A::CompareExchange => Op::AtomicCompareExchange,
        };
        if given.is_none() != (function == A::Load) || compare.is_some() != (function == A::CompareExchange) {
            return Err(self.writer.fail(format!("an atomic {function:?} with the wrong operands")));
        }
        self.with_pointer(place, |this, pointer, class, ty| {
            let reach = if class == StorageClass::Workgroup { Reach::Workgroup } else { ordering.scope };
            let scope = this.writer.u32(scope_of(reach) as u32);
            let semantics = this.order_semantics(ordering.order);
            let mut operands =
                vec![Operand::IdRef(pointer), Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
            if compare.is_some() {
                operands.push(Operand::IdMemorySemantics(this.order_semantics(ordering.order.of_load())));
            }
            operands.extend(given.map(|(value, _)| Operand::IdRef(value)));
            operands.extend(compare.map(Operand::IdRef));
            if op == Op::AtomicStore {
                this.effect(op, operands);
                return 0;
            }
            this.op_with(op, ty, operands)
        })
    }

    fn subgroup(
        &mut self,
        function: SubgroupFunction,
        value: Handle<Expression>,
        lane: Option<Handle<Expression>>,
    ) -> Result<Word, EmitError> {
        use SubgroupFunction as S;
        let ty = self.value_type(self.function.expressions[value].ty)?;
        let kind = kind_of(self.type_of(value)).ok_or_else(|| self.writer.fail("a subgroup operation on no number"))?;
        let value = self.value(value)?;
        let known_lane = lane.and_then(|lane| self.known_number(lane));
        let lane = match lane {
            Some(lane) => Some(self.value(lane)?),
            None => None,
        };
        self.writer.require(Feature::Subgroups, "a subgroup operation is used")?;
        self.writer.capability(Capability::GroupNonUniform);
        let (op, capability) = match function {
            S::Reduce(operator) | S::InclusiveScan(operator) | S::ExclusiveScan(operator) => {
                let op = combination(operator, kind)
                    .ok_or_else(|| self.writer.fail(format!("`{}` of this scalar", function.name())))?;
                (op, Capability::GroupNonUniformArithmetic)
            }
            // A lane that is not a constant would need the feature subgroupBroadcastDynamicId.
            S::Broadcast if known_lane.is_some() => (Op::GroupNonUniformBroadcast, Capability::GroupNonUniformBallot),
            S::Broadcast | S::Shuffle => (Op::GroupNonUniformShuffle, Capability::GroupNonUniformShuffle),
            S::ShuffleXor => (Op::GroupNonUniformShuffleXor, Capability::GroupNonUniformShuffle),
            S::ShuffleUp => (Op::GroupNonUniformShuffleUp, Capability::GroupNonUniformShuffleRelative),
            S::ShuffleDown => (Op::GroupNonUniformShuffleDown, Capability::GroupNonUniformShuffleRelative),
            S::Ballot => (Op::GroupNonUniformBallot, Capability::GroupNonUniformBallot),
            S::Any => (Op::GroupNonUniformAny, Capability::GroupNonUniformVote),
            S::All => (Op::GroupNonUniformAll, Capability::GroupNonUniformVote),
        };
        self.writer.capability(capability);
        let ty = if function == S::Ballot {
            let word = self.writer.u32_type();
            self.writer.vector_of(word, 4)
        } else {
            ty
        };
        let scope = self.writer.u32(Scope::Subgroup as u32);
        let mut operands = vec![Operand::IdScope(scope)];
        match function {
            S::Reduce(_) => operands.push(Operand::GroupOperation(GroupOperation::Reduce)),
            S::InclusiveScan(_) => operands.push(Operand::GroupOperation(GroupOperation::InclusiveScan)),
            S::ExclusiveScan(_) => operands.push(Operand::GroupOperation(GroupOperation::ExclusiveScan)),
            _ => {}
        }
        operands.push(Operand::IdRef(value));
        if function.takes_lane() {
            let Some(lane) = lane else {
                return Err(self.writer.fail(format!("`{}` without a lane", function.name())));
            };
            operands.push(Operand::IdRef(lane));
        }
        Ok(self.op_with(op, ty, operands))
    }
}

/// A device's scope would need a feature of its own; a dispatch runs on the queues of one family.
const fn scope_of(reach: Reach) -> Scope {
    match reach {
        Reach::Workgroup => Scope::Workgroup,
        Reach::Device => Scope::QueueFamily,
    }
}

/// The instruction that combines the values of a subgroup.
fn combination(operator: SubgroupOperator, kind: Kind) -> Option<Op> {
    use SubgroupOperator as O;
    Some(match (operator, kind) {
        (O::Add, Kind::Float) => Op::GroupNonUniformFAdd,
        (O::Add, Kind::Signed | Kind::Unsigned) => Op::GroupNonUniformIAdd,
        (O::Multiply, Kind::Float) => Op::GroupNonUniformFMul,
        (O::Multiply, Kind::Signed | Kind::Unsigned) => Op::GroupNonUniformIMul,
        (O::Max, Kind::Float) => Op::GroupNonUniformFMax,
        (O::Max, Kind::Signed) => Op::GroupNonUniformSMax,
        (O::Max, Kind::Unsigned) => Op::GroupNonUniformUMax,
        (O::Min, Kind::Float) => Op::GroupNonUniformFMin,
        (O::Min, Kind::Signed) => Op::GroupNonUniformSMin,
        (O::Min, Kind::Unsigned) => Op::GroupNonUniformUMin,
        (O::And, Kind::Signed | Kind::Unsigned) => Op::GroupNonUniformBitwiseAnd,
        (O::Or, Kind::Signed | Kind::Unsigned) => Op::GroupNonUniformBitwiseOr,
        (O::Xor, Kind::Signed | Kind::Unsigned) => Op::GroupNonUniformBitwiseXor,
        _ => return None,
    })
}
