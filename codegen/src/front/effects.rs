//! The building of what acts: control flow, assignments, calls, atomics and collective operations.

use super::build::{Build, indices, whole};
use super::infer::Ty;
use super::session::FunctionKey;
use super::tree::{self, Block, Callee, For, Kind, Node, Root};
use crate::ir::{
    self, BinaryOperator, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Scalar,
    StatementKind, UnaryOperator,
};

impl Build<'_> {
    /// Does what an expression does, without its value.
    pub(super) fn effect(&mut self, node: &Node) {
        let span = node.span;
        match &node.kind {
            Kind::Block(block) => self.block_effect(block),
            Kind::If(condition, accept, reject, constant) => {
                let condition = self.value(condition);
                let accept = self.nested(|this| this.block_effect(accept));
                let reject = self.nested(|this| this.block_effect(reject));
                self.push(StatementKind::If { condition, accept, reject, constant: *constant }, span);
            }
            Kind::Match(selector, arms) => self.match_arms(selector, arms, None, span),
            Kind::For(range) => self.for_loop(range, node),
            Kind::While(condition, body) => {
                if self.complex(condition) {
                    let body = self.nested(|this| {
                        let value = this.value(condition);
                        let ty = this.scalar_type(Scalar::Bool);
                        let kind = ExpressionKind::Unary { operator: UnaryOperator::Not, value };
                        let done = this.add(kind, ty, condition.span);
                        let accept = this.nested(|this| this.push(StatementKind::Break, condition.span));
                        this.push(
                            StatementKind::If { condition: done, accept, reject: Vec::new(), constant: false },
                            condition.span,
                        );
                        this.block_effect(body);
                    });
                    return self.push(StatementKind::Loop { body }, span);
                }
                let condition = self.value(condition);
                let body = self.nested(|this| this.block_effect(body));
                self.push(StatementKind::While { condition, body }, span);
            }
            Kind::Loop(body) => {
                let body = self.nested(|this| this.block_effect(body));
                self.push(StatementKind::Loop { body }, span);
            }
            Kind::Break => self.push(StatementKind::Break, span),
            Kind::Continue => self.push(StatementKind::Continue, span),
            Kind::Return(value) => {
                let value = value.as_ref().map(|value| self.value(value));
                self.push(StatementKind::Return(value), span);
            }
            Kind::Assign(place, update, value) => self.assign(place, *update, value, span),
            Kind::Set(place, value) => self.set(place, value, true, span),
            Kind::Barrier => {
                self.effects = true;
                self.push(StatementKind::Barrier, span);
            }
            Kind::Asynchronous(kind) => self.asynchronous(kind, span),
            Kind::Tile(node) => self.tile(node, span),
            Kind::Report(report) => self.report(report, span),
            Kind::Fence(scope) => {
                self.effects = true;
                self.push(StatementKind::Fence(*scope), span);
            }
            Kind::UniformLoad(_) | Kind::Subgroup(..) => {
                let _ = self.value(node);
            }
            Kind::Matrix(operation) if matches!(**operation, tree::MatrixNode::Store(..)) => {
                self.collective(node, None);
            }
            Kind::Atomic(function, ..) => {
                let result = (*function == ir::AtomicFunction::Load).then(|| {
                    let ty = self.ir_type(&node.ty, span);
                    self.new_local("value", ty, false, span)
                });
                self.collective(node, result);
            }
            Kind::Call(callee, arguments) => {
                let (call, stores, effects) = self.call(callee, arguments, node);
                if effects {
                    self.push(StatementKind::Evaluate(call), span);
                    self.block.extend(stores);
                }
            }
            Kind::Error | Kind::Unit => {}
            _ => {
                if self.complex(node) {
                    let _ = self.value(node);
                }
            }
        }
    }

    /// A block that is run for reports alone: the condition and the values are computed in it.
    fn report(&mut self, report: &tree::ReportNode, span: ir::Span) {
        // Whoever calls a function that reports calls it for that.
        self.effects = true;
        let tree::ReportNode { condition, text, values } = report;
        let body = self.nested(|this| {
            let tell = |this: &mut Self| {
                let values = this.ordered(&values.iter().collect::<Vec<_>>());
                let report = ir::Report { fails: condition.is_some(), text: text.clone(), values };
                this.push(StatementKind::Report(report), span);
            };
            let Some(condition) = condition else { return tell(this) };
            let holds = this.value(condition);
            let accept = this.nested(|_| {});
            let reject = this.nested(tell);
            this.push(StatementKind::If { condition: holds, accept, reject, constant: false }, span);
        });
        self.push(StatementKind::Reporting(body), span);
    }

    pub(super) fn block_effect(&mut self, block: &Block) {
        self.statements(block);
        if let Some(tail) = &block.tail {
            self.effect(tail);
        }
    }

    /// Writes the value of an expression to a mutable local.
    pub(super) fn into(&mut self, node: &Node, local: Handle<ir::Local>) {
        let span = node.span;
        match &node.kind {
            Kind::Block(block) => self.block_into(block, local),
            Kind::If(condition, accept, reject, constant) => {
                let condition = self.value(condition);
                let accept = self.nested(|this| this.block_into(accept, local));
                let reject = self.nested(|this| this.block_into(reject, local));
                self.push(StatementKind::If { condition, accept, reject, constant: *constant }, span);
            }
            Kind::Match(selector, arms) => self.match_arms(selector, arms, Some(local), span),
            Kind::Break | Kind::Continue | Kind::Return(_) | Kind::Loop(_) | Kind::Error => self.effect(node),
            _ => {
                let value = self.value(node);
                self.store(whole(ir::Root::Local(local)), value, span);
            }
        }
    }

    fn block_into(&mut self, block: &Block, local: Handle<ir::Local>) {
        self.statements(block);
        if let Some(tail) = &block.tail {
            self.into(tail, local);
        }
    }

    pub(super) fn arm_body(&mut self, body: &Node, target: Option<Handle<ir::Local>>) {
        match target {
            Some(local) => self.into(body, local),
            None => self.effect(body),
        }
    }

    /// As in Rust: the value is evaluated before the place, but where `operator=` is a call, which has the place first.
    fn assign(&mut self, place: &tree::Place, update: Option<tree::Update>, value: &Node, span: ir::Span) {
        let Some(tree::Update { operator, is_of_parameter }) = update else {
            return self.set(place, value, false, span);
        };
        let is_call = is_of_parameter || self.assigns_by_call(&place.ty);
        let (value, values) = self.assigned(place, value, is_call);
        let (first, second) = values.into_iter().map(|index| self.twice(index, "index")).unzip();
        let read = self.place(place, first);
        let ty = self.ir_type(&place.ty, span);
        let left = self.add(ExpressionKind::Load(read), ty, span);
        let result = self.add(ExpressionKind::Binary { operator, left, right: value }, ty, span);
        let written = self.place(place, second);
        self.store(written, result, span);
    }

    /// Stores a value; its place is evaluated before it or after it.
    fn set(&mut self, place: &tree::Place, value: &Node, place_first: bool, span: ir::Span) {
        let (value, values) = self.assigned(place, value, place_first);
        let place = self.place(place, values);
        self.store(place, value, span);
    }

    /// Whether Rust's `operator=` is a call for that type: of all but its own numbers.
    fn assigns_by_call(&self, ty: &Ty) -> bool {
        match self.table.shallow(ty) {
            Ty::Scalar(scalar) => matches!(scalar, Scalar::F16 | Scalar::BF16 | Scalar::Generic(_)),
            Ty::Vector(..) | Ty::Matrix(..) => true,
            _ => false,
        }
    }

    /// What is assigned, and the indices of the place that it is assigned to, which are evaluated before it or after it.
    fn assigned(
        &mut self,
        place: &tree::Place,
        value: &Node,
        place_first: bool,
    ) -> (Handle<Expression>, Vec<Handle<Expression>>) {
        let mut nodes = indices(place);
        let at = if place_first { nodes.len() } else { 0 };
        nodes.insert(at, value);
        let mut values = self.ordered(&nodes);
        let value = values.remove(at);
        (value, values)
    }

    /// An atomic, subgroup operation or uniform load, with a local for its result.
    pub(super) fn collective(&mut self, node: &Node, result: Option<Handle<ir::Local>>) {
        let span = node.span;
        self.effects = true;
        match (&node.kind, result) {
            (Kind::UniformLoad(place), Some(result)) => {
                let values = self.ordered(&indices(place));
                let place = self.place(place, values);
                self.push(StatementKind::UniformLoad { result, place }, span);
            }
            (Kind::Atomic(function, ordering, place, value, compare), result) => {
                let mut nodes = indices(place);
                let count = nodes.len();
                nodes.extend(compare.as_deref());
                nodes.extend(value.as_deref());
                let mut values = self.ordered(&nodes);
                let mut operands = values.split_off(count).into_iter();
                let compare = compare.as_ref().and_then(|_| operands.next());
                let value = value.as_ref().and_then(|_| operands.next());
                let place = self.place(place, values);
                let (function, ordering) = (*function, *ordering);
                self.push(StatementKind::Atomic { result, place, function, value, compare, ordering }, span);
            }
            (Kind::Subgroup(function, value, lane), Some(result)) => {
                let mut nodes = vec![&**value];
                nodes.extend(lane.as_deref());
                let mut values = self.ordered(&nodes).into_iter();
                if let Some(value) = values.next() {
                    let lane = values.next();
                    self.push(StatementKind::Subgroup { result, function: *function, value, lane }, span);
                }
            }
            (Kind::Matrix(operation), result) => {
                if let Some(operation) = self.matrix(operation) {
                    self.push(StatementKind::Matrix { result, operation }, span);
                }
            }
            _ => {}
        }
    }

    /// The function that is called, made for these types, constants and origins if it is new.
    pub(super) fn callee(&mut self, callee: &Callee) -> Option<Handle<Function>> {
        let mut types = Vec::new();
        for ty in &callee.types {
            types.push(self.full(ty, callee.span));
        }
        let mut constants = Vec::new();
        for length in &callee.constants {
            match self.table.length(length) {
                Some(size) => constants.push(size),
                None => {
                    self.session.error_at(
                        callee.span,
                        "a const parameter of this function is not known: write it, as in `f::<4>(..)`",
                    );
                    return None;
                }
            }
        }
        if types.contains(&Ty::Error) {
            return None;
        }
        let Callee { hash, origins, functions, .. } = callee.clone();
        let precision = self.session.precision_of(&hash);
        let key = FunctionKey { hash, types, constants, origins, functions, precision };
        self.session.function(&key, callee.span)
    }

    /// A call, what is to be stored after it, and whether it must be the root of a statement.
    pub(super) fn call(
        &mut self,
        callee: &Callee,
        arguments: &[tree::Argument],
        node: &Node,
    ) -> (Handle<Expression>, Vec<ir::Statement>, bool) {
        let span = node.span;
        let mut nodes = Vec::new();
        for argument in arguments {
            match argument {
                tree::Argument::Value(node) => nodes.push(node),
                tree::Argument::Reference(place) => nodes.extend(indices(place)),
            }
        }
        let mut values = self.ordered(&nodes).into_iter();
        let function = self.callee(callee);
        let mut effects = function.is_some_and(|function| self.session.effects.get(&function) == Some(&true));
        self.effects |= effects;
        let (mut passed, mut stores) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                tree::Argument::Value(_) => passed.extend(values.next().map(CallArgument::Value)),
                tree::Argument::Reference(place) => {
                    effects = true;
                    if !matches!(place.root, Root::Local(_)) {
                        self.effects = true;
                    }
                    let given: Vec<_> = values.by_ref().take(indices(place).len()).collect();
                    if place.path.is_empty() && !matches!(place.root, Root::Memory(_)) {
                        let place = self.place(place, given);
                        passed.push(CallArgument::Reference(place.root));
                        continue;
                    }
                    // A part of a variable is copied to a local, and back afterwards.
                    let (first, second) = given.into_iter().map(|index| self.twice(index, "index")).unzip();
                    let ty = self.ir_type(&place.ty, span);
                    let from = self.place(place, first);
                    let to = self.place(place, second);
                    let value = self.add(ExpressionKind::Load(from), ty, span);
                    let local = self.new_local("part", ty, true, span);
                    self.push(StatementKind::Let { local, value: Some(value) }, span);
                    passed.push(CallArgument::Reference(ir::Root::Local(local)));
                    let value = self.add(ExpressionKind::Load(whole(ir::Root::Local(local))), ty, span);
                    stores.push(ir::Statement { kind: StatementKind::Store { place: to, value }, span });
                }
            }
        }
        let ty = match self.table.shallow(&node.ty) {
            // What gives nothing has the type of nothing that is looked at.
            Ty::Unit | Ty::Never | Ty::Error => self.scalar_type(Scalar::U32),
            ty => self.ir_type(&ty, span),
        };
        let function = function.unwrap_or(Handle::from_index(0));
        let call = self.add(ExpressionKind::Call { function, arguments: passed }, ty, span);
        (call, stores, effects)
    }

    fn for_loop(&mut self, range: &For, node: &Node) {
        let span = node.span;
        let fixed = is_fixed(&range.end);
        if range.inclusive && !fixed && !range.unroll {
            return self.inclusive_loop(range, node);
        }
        let mut nodes = vec![&range.start, &range.end];
        nodes.extend(range.step.as_ref());
        let mut values = self.ordered(&nodes).into_iter();
        let (Some(start), Some(end)) = (values.next(), values.next()) else {
            return;
        };
        let ty = self.function.expressions[start].ty;
        let step = self.step(values.next(), ty, range.unroll, span);
        let end = if range.inclusive { self.after(end, ty) } else { end };
        if !range.reversed {
            let local = self.counter(range.local);
            let body = self.nested(|this| this.block_effect(&range.body));
            return self.push(StatementKind::For { local, start, end, step, body, unroll: range.unroll }, span);
        }
        // Counts up, and looks from the other end: i = (end - 1) - (up - start).
        let zero =
            matches!(self.function.expressions[start].kind, ExpressionKind::Literal(literal) if literal.bits() == 0);
        let (start, start_again) =
            if range.unroll { (start, self.value(&range.start)) } else { self.twice(start, "start") };
        let (end, end_again) = if range.unroll {
            let again = self.value(&range.end);
            (end, if range.inclusive { self.after(again, ty) } else { again })
        } else {
            self.twice(end, "end")
        };
        let name = format!("{}_up", self.tree_locals[range.local].name);
        let up = self.new_local(&name, ty, false, span);
        let body = self.nested(|this| {
            let one = this.number(1, ty, span);
            let last = this.binary(BinaryOperator::Subtract, end_again, one, span);
            let mut distance = this.read(up, span);
            if !zero {
                distance = this.binary(BinaryOperator::Subtract, distance, start_again, span);
            }
            let value = this.binary(BinaryOperator::Subtract, last, distance, span);
            let local = this.counter(range.local);
            this.push(StatementKind::Let { local, value: Some(value) }, span);
            this.block_effect(&range.body);
        });
        self.push(StatementKind::For { local: up, start, end, step, body, unroll: range.unroll }, span);
    }

    /// `a..=b` where b may be the largest number, after which there is none: the loop looks before it counts on.
    fn inclusive_loop(&mut self, range: &For, node: &Node) {
        let span = node.span;
        let mut nodes = vec![&range.start, &range.end];
        nodes.extend(range.step.as_ref());
        let mut values = self.ordered(&nodes).into_iter();
        let (Some(start), Some(end)) = (values.next(), values.next()) else {
            return;
        };
        let ty = self.function.expressions[start].ty;
        let step = values.next().map(|step| {
            let step = self.step(Some(step), ty, false, span);
            if matches!(self.function.expressions[step].kind, ExpressionKind::Literal(_)) {
                return step;
            }
            // As in every loop a step of 0 counts as 1.
            let arguments = vec![step, self.number(1, ty, span)];
            self.add(ExpressionKind::Math { function: MathFunction::Max, arguments }, ty, span)
        });
        let first = self.spill(start, "first");
        let last = self.spill(end, "last");
        let step = step.map(|step| self.spill(step, "step"));
        let (from, to) = if range.reversed { (last, first) } else { (first, last) };
        let name = self.tree_locals[range.local].name.clone();
        let bool_type = self.scalar_type(Scalar::Bool);
        let next = self.new_local(&format!("{name}_next"), ty, true, span);
        let value = self.read(from, span);
        self.push(StatementKind::Let { local: next, value: Some(value) }, span);
        let more = self.new_local(&format!("{name}_more"), bool_type, true, span);
        let (a, b) = (self.read(first, span), self.read(last, span));
        let value = self.binary(BinaryOperator::LessEqual, a, b, span);
        self.push(StatementKind::Let { local: more, value: Some(value) }, span);
        let condition = self.read(more, span);
        let body = self.nested(|this| {
            let value = this.read(next, span);
            let local = this.counter(range.local);
            this.push(StatementKind::Let { local, value: Some(value) }, span);
            let (i, to) = (this.read(local, span), this.read(to, span));
            let value = match step {
                None => this.binary(BinaryOperator::NotEqual, i, to, span),
                // Indices may have more bits than a word, and have no sign.
                Some(step) if this.is_wide_index(ty) => {
                    let (high, low) = if range.reversed { (i, to) } else { (to, i) };
                    let distance = this.binary(BinaryOperator::Subtract, high, low, span);
                    let step = this.read(step, span);
                    this.binary(BinaryOperator::GreaterEqual, distance, step, span)
                }
                // The distance is below 2^32 in either type, so it is compared without a sign.
                Some(step) => {
                    let (high, low) = if range.reversed { (i, to) } else { (to, i) };
                    let distance = this.binary(BinaryOperator::Subtract, high, low, span);
                    let word = this.scalar_type(Scalar::U32);
                    let distance = this.as_type(distance, word);
                    let step = this.read(step, span);
                    let step = this.as_type(step, word);
                    this.binary(BinaryOperator::GreaterEqual, distance, step, span)
                }
            };
            this.store(whole(ir::Root::Local(more)), value, span);
            let i = this.read(local, span);
            let amount = match step {
                None => this.number(1, ty, span),
                Some(step) => this.read(step, span),
            };
            let operator = if range.reversed { BinaryOperator::Subtract } else { BinaryOperator::Add };
            let value = this.binary(operator, i, amount, span);
            this.store(whole(ir::Root::Local(next)), value, span);
            this.block_effect(&range.body);
        });
        self.push(StatementKind::While { condition, body }, span);
    }

    fn is_wide_index(&self, ty: Handle<ir::Type>) -> bool {
        self.session.module.types[ty] == ir::Type::Scalar(Scalar::Index) && self.session.has_wide_indices()
    }

    /// The step as the counter's type, 1 if there is none. A larger one than the type holds counts as the largest, and a number that is larger is a mistake.
    fn step(
        &mut self,
        step: Option<Handle<Expression>>,
        ty: Handle<ir::Type>,
        unroll: bool,
        span: ir::Span,
    ) -> Handle<Expression> {
        let Some(step) = step else {
            return self.number(1, ty, span);
        };
        let most = match self.session.module.types[ty].scalar() {
            Some(Scalar::I32) => i32::MAX.unsigned_abs(),
            Some(Scalar::U32) if self.session.has_wide_indices() => u32::MAX,
            _ => return self.as_type(step, ty),
        };
        let Expression { kind, ty: index, span } = self.function.expressions[step].clone();
        let number = match kind {
            ExpressionKind::Literal(literal) => literal.as_integer(),
            // An index that 32 bits do not hold.
            ExpressionKind::Convert(inner) => match self.function.expressions[inner].kind {
                ExpressionKind::Literal(literal) => literal.as_integer(),
                _ => None,
            },
            _ => None,
        };
        match number {
            Some(number) if number > i128::from(most) => {
                let (name, wider) = if most == u32::MAX { ("u32", "usize") } else { ("i32", "u32") };
                self.session.error_at(span, format!("a range of `{name}` has steps up to {most}: count in `{wider}`, and convert the counter in the body"));
                self.number(1, ty, span)
            }
            // How often an unrolled loop goes round must be seen, and its step is a constant.
            None if !unroll => {
                let arguments = vec![step, self.number(most, index, span)];
                let step = self.add(ExpressionKind::Math { function: MathFunction::Min, arguments }, index, span);
                self.as_type(step, ty)
            }
            _ => self.as_type(step, ty),
        }
    }

    fn as_type(&mut self, value: Handle<Expression>, ty: Handle<ir::Type>) -> Handle<Expression> {
        let Expression { ty: found, span, .. } = self.function.expressions[value].clone();
        if found == ty {
            return value;
        }
        match self.fold_convert(value, ty) {
            Some(literal) => self.literal(literal, span),
            None => self.add(ExpressionKind::Convert(value), ty, span),
        }
    }

    /// `end + 1` of a constant.
    fn after(&mut self, end: Handle<Expression>, ty: Handle<ir::Type>) -> Handle<Expression> {
        let Expression { kind, span, .. } = self.function.expressions[end].clone();
        let next = match kind {
            ExpressionKind::Literal(Literal::Index(u32::MAX)) if self.session.has_only_wide_indices() => {
                return self.wide_index(1 << 32, span);
            }
            ExpressionKind::Literal(literal) if literal.as_integer().is_some() => {
                literal.as_integer().and_then(|value| Literal::exact_integer(literal.scalar(), value + 1))
            }
            _ => {
                let one = self.number(1, ty, span);
                return self.binary(BinaryOperator::Add, end, one, span);
            }
        };
        match next {
            Some(literal) => self.literal(literal, span),
            None => {
                self.session.error_at(span, "a range up to the largest number never ends: end it before, as in `0..n`");
                end
            }
        }
    }

    pub(super) fn number(&mut self, value: u32, ty: Handle<ir::Type>, span: ir::Span) -> Handle<Expression> {
        let scalar = self.session.module.types[ty].scalar().unwrap_or(Scalar::U32);
        let literal = Literal::integer(scalar, value.into()).unwrap_or(Literal::U32(value));
        self.literal(literal, span)
    }
}

/// Whether a value is a constant of the instance.
pub(super) fn is_fixed(node: &Node) -> bool {
    match &node.kind {
        Kind::Integer(_) | Kind::Literal(_) => true,
        Kind::Constant(size) => !size.is_specialised(),
        Kind::Fixed(value) | Kind::Convert(value) => is_fixed(value),
        Kind::Binary(_, left, right) => is_fixed(left) && is_fixed(right),
        _ => false,
    }
}
