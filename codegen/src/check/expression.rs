//! Expressions, over all lanes at once: what takes part decides what is accessed and told of, not what is computed.

use super::lanes::{Lanes, divide};
use super::machine::{Frame, Machine, Run, Stop};
use super::math;
use super::report::{Finding, Kind, Same, Wrong};
use super::scalar::{self, canonical};
use crate::ir::{
    BinaryOperator as B, Builtin, Expression, ExpressionKind as E, Handle, LogicalOperator, MathFunction, OperandType,
    Root, Scalar, Type, UnaryOperator,
};
use crate::target::Feature;

impl<'m> Machine<'m> {
    /// The value of an expression.
    pub(super) fn value(&mut self, frame: &Frame<'m>, handle: Handle<Expression>, lanes: &Lanes) -> Run<Vec<u64>> {
        let function = frame.function;
        let expression = &function.expressions[handle];
        let n = self.count;
        self.work += (self.shape(expression.ty).count() * n) as u64;
        match &expression.kind {
            E::Literal(literal) => {
                let word = canonical(literal.scalar(), literal.bits());
                Ok(self.same(&[word]))
            }
            E::Param(index) => {
                let words = std::mem::take(&mut self.params[*index as usize]);
                let all = self.same(&words);
                self.params[*index as usize] = words;
                Ok(all)
            }
            E::Length(binding) => Ok(self.same(&[self.lengths[*binding as usize]])),
            E::ViewExtent { binding, axis } => Ok(self.same(&[self.extents[*binding as usize][*axis as usize]])),
            E::ViewStride { binding, axis } => Ok(self.same(&[self.strides[*binding as usize][*axis as usize]])),
            E::TargetHas(feature) => {
                let has = *feature == Feature::Subgroups && self.options.has_subgroups;
                Ok(self.same(&[u64::from(has || self.program.features.has(*feature))]))
            }
            E::Argument(_) | E::Local(_) | E::Builtin(_) | E::Member { .. } => self.part(frame, handle, lanes),
            E::Load(place) => self.load(frame, place, lanes, self.at(expression.span)),
            E::Element { base, index } => self.element_of(frame, *base, *index, lanes, self.at(expression.span)),
            E::Compose(parts) => {
                let mut all = self.take(0);
                for part in parts {
                    let words = self.value(frame, *part, lanes)?;
                    all.extend_from_slice(&words);
                    self.give(words);
                }
                Ok(all)
            }
            E::Splat(value) => {
                let words = self.value(frame, *value, lanes)?;
                let wanted = self.shape(expression.ty).count() * n;
                let mut all = self.take(0);
                while all.len() < wanted && !words.is_empty() {
                    all.extend_from_slice(&words);
                }
                self.give(words);
                Ok(all)
            }
            E::Swizzle { base, lanes: order } => {
                let words = self.value(frame, *base, lanes)?;
                let mut all = self.take(0);
                for part in order {
                    all.extend_from_slice(&words[usize::from(*part) * n..][..n]);
                }
                self.give(words);
                Ok(all)
            }
            E::Unary { operator, value } => {
                let mut words = self.value(frame, *value, lanes)?;
                let scalar = self.scalar(expression.ty);
                if *operator == UnaryOperator::Negate && self.options.overflow && scalar.is_integer() {
                    let zeros = self.take(words.len());
                    self.watch(B::Subtract, scalar, (&zeros, &words), lanes, expression)?;
                    self.give(zeros);
                }
                words.iter_mut().for_each(|word| *word = scalar::unary(*operator, scalar, *word));
                Ok(words)
            }
            E::Binary { operator, left, right } => {
                let scalar = self.scalar(function.expressions[*left].ty);
                let left = self.value(frame, *left, lanes)?;
                let right = self.value(frame, *right, lanes)?;
                self.watch(*operator, scalar, (&left, &right), lanes, expression)?;
                let left = binary(*operator, scalar, left, &right);
                self.give(right);
                Ok(left)
            }
            E::Logical { operator, left, right } => {
                let mut words = self.value(frame, *left, lanes)?;
                let (yes, no) = divide(&words, lanes);
                let undecided = if *operator == LogicalOperator::And { yes } else { no };
                if !undecided.is_empty() {
                    let right = self.value(frame, *right, &undecided)?;
                    for lane in undecided.iter().map(|lane| *lane as usize) {
                        words[lane] = right[lane];
                    }
                    self.give(right);
                }
                Ok(words)
            }
            E::Math { function: math, arguments } => self.math(frame, *math, arguments, lanes, expression),
            E::Select { condition, accept, reject } => {
                let vector = self.shape(function.expressions[*condition].ty).count() > 1;
                let words = self.value(frame, *condition, lanes)?;
                let (yes, no) = if vector { (lanes.clone(), lanes.clone()) } else { divide(&words, lanes) };
                if !vector && (yes.is_empty() || no.is_empty()) {
                    self.give(words);
                    return self.value(frame, if no.is_empty() { *accept } else { *reject }, lanes);
                }
                let mut all = self.value(frame, *accept, &yes)?;
                let other = self.value(frame, *reject, &no)?;
                for (index, (to, from)) in all.iter_mut().zip(&other).enumerate() {
                    if words[index % words.len()] == 0 {
                        *to = *from;
                    }
                }
                self.give(words);
                self.give(other);
                Ok(all)
            }
            E::Convert(value) => {
                let from = self.scalar(function.expressions[*value].ty);
                let to = self.scalar(expression.ty);
                let mut words = self.value(frame, *value, lanes)?;
                if from != to {
                    words.iter_mut().for_each(|word| *word = scalar::convert(from, to, *word));
                }
                Ok(words)
            }
            E::Bitcast(value) => {
                let words = self.value(frame, *value, lanes)?;
                let from = self.shape(function.expressions[*value].ty).scalars.clone();
                let to = &self.shape(expression.ty).scalars;
                let mut all = self.take(to.len() * n);
                for lane in 0..n {
                    let mut bits = Vec::with_capacity(16);
                    for (part, scalar) in from.iter().enumerate() {
                        let bytes = (scalar.bits() / 8) as usize;
                        bits.extend_from_slice(&words[part * n + lane].to_le_bytes()[..bytes]);
                    }
                    let mut bits = bits.into_iter();
                    for (part, scalar) in to.iter().enumerate() {
                        let bytes = bits.by_ref().take((scalar.bits() / 8) as usize);
                        let word = bytes.enumerate().fold(0, |word, (at, byte)| word | u64::from(byte) << (8 * at));
                        all[part * n + lane] = canonical(*scalar, word);
                    }
                }
                self.give(words);
                Ok(all)
            }
            E::Call { function, arguments } => {
                let (result, changed) = self.call(frame, *function, arguments, lanes, expression.span)?;
                changed.into_iter().for_each(|(_, words)| self.give(words));
                Ok(result)
            }
            E::GenericConstant(_) | E::MatrixLength(_) => {
                Err(Stop::Broken("an expression that no instance holds".to_owned()))
            }
        }
    }

    /// The same words for all lanes.
    fn same(&mut self, words: &[u64]) -> Vec<u64> {
        let mut all = self.take(0);
        for word in words {
            all.resize(all.len() + self.count, *word);
        }
        all
    }

    /// A part of a local, argument, builtin or other value, of which only that part is copied.
    fn part(&mut self, frame: &Frame<'m>, handle: Handle<Expression>, lanes: &Lanes) -> Run<Vec<u64>> {
        let n = self.count;
        let count = self.shape(frame.function.expressions[handle].ty).count();
        let (mut base, mut first) = (handle, 0);
        while let E::Member { base: inner, index } = &frame.function.expressions[base].kind {
            first += self.member(frame.function.expressions[*inner].ty, *index as usize)?.0;
            base = *inner;
        }
        if let E::Builtin(builtin) = frame.function.expressions[base].kind {
            let place = builtin as usize;
            if self.builtins[place].is_empty() {
                self.builtins[place] = self.builtin(builtin, self.scalar(frame.function.expressions[base].ty));
            }
            let mut words = self.take(0);
            words.extend_from_slice(&self.builtins[place][first * n..(first + count) * n]);
            return Ok(words);
        }
        let known = match &frame.function.expressions[base].kind {
            E::Local(local) => Some(&frame.locals[local.index()]),
            E::Argument(index) => Some(&frame.arguments[*index as usize]),
            _ => None,
        };
        if let Some(words) = known {
            return match words.get(first * n..(first + count) * n) {
                Some(words) => Ok(self.copy(words)),
                None => Err(Stop::Broken("a local that was not declared".to_owned())),
            };
        }
        let words = self.value(frame, base, lanes)?;
        let part = self.copy(&words[first * n..(first + count) * n]);
        self.give(words);
        Ok(part)
    }

    fn element_of(
        &mut self,
        frame: &Frame<'m>,
        base: Handle<Expression>,
        index: Handle<Expression>,
        lanes: &Lanes,
        span: u32,
    ) -> Run<Vec<u64>> {
        let n = self.count;
        let ty = frame.function.expressions[base].ty;
        let (length, each) = match &self.module.types[ty] {
            Type::Array { element, length } => (length.literal().unwrap_or(0), self.shape(*element).count()),
            _ => (self.shape(ty).count() as u32, 1),
        };
        let words = self.value(frame, base, lanes)?;
        let index = self.value(frame, index, lanes)?;
        let mut out = self.take(each * n);
        let mut outside = None;
        for lane in lanes.iter().map(|lane| *lane as usize) {
            if index[lane] >= u64::from(length) {
                outside.get_or_insert(lane);
                continue;
            }
            let first = index[lane] as usize * each;
            for part in 0..each {
                out[part * n + lane] = words[(first + part) * n + lane];
            }
        }
        if let Some(lane) = outside {
            let root = match &frame.function.expressions[base].kind {
                E::Local(local) => Some(Root::Local(*local)),
                E::Argument(index) => Some(Root::Argument(*index)),
                _ => None,
            };
            if let Some(root) = root {
                let past = (index[lane], u64::from(length));
                self.past_end(frame, root, past, lane as u32, (span, false))?;
            }
        }
        self.give(words);
        self.give(index);
        Ok(out)
    }

    fn builtin(&mut self, builtin: Builtin, scalar: Scalar) -> Vec<u64> {
        let n = self.count;
        let size = self.program.verified.info.workgroup_size.map(u64::from);
        let groups = self.groups.map(|count| u64::from(count).max(1));
        let group = u64::from(self.group);
        let id = [group % groups[0], group / groups[0] % groups[1], group / groups[0] / groups[1]];
        let subgroup = self.subgroup as u64;
        let local = |lane: u64| [lane % size[0], lane / size[0] % size[1], lane / size[0] / size[1]];
        let mut each = |of: &dyn Fn(u64) -> u64| {
            let mut words = self.take(n);
            words.iter_mut().zip(0..).for_each(|(word, lane)| *word = canonical(scalar, of(lane)));
            words
        };
        let axes = |machine: &mut Self, of: &dyn Fn(u64, usize) -> u64| {
            let mut words = machine.take(3 * n);
            for axis in 0..3 {
                for lane in 0..n {
                    words[axis * n + lane] = canonical(scalar, of(lane as u64, axis));
                }
            }
            words
        };
        match builtin {
            Builtin::GlobalIndex => each(&|lane| group * n as u64 + lane),
            Builtin::LocalIndex => each(&|lane| lane),
            Builtin::GroupIndex => each(&|_| group),
            Builtin::GroupCount => {
                let count = u64::from(self.group_count);
                self.same(&[count])
            }
            Builtin::SubgroupSize => each(&|_| subgroup),
            Builtin::SubgroupLane => each(&|lane| lane % subgroup),
            Builtin::SubgroupIndex => each(&|lane| lane / subgroup),
            Builtin::GlobalId => axes(self, &|lane, axis| id[axis] * size[axis] + local(lane)[axis]),
            Builtin::LocalId => axes(self, &|lane, axis| local(lane)[axis]),
            Builtin::GroupId => axes(self, &|_, axis| id[axis]),
            Builtin::GroupCounts => {
                let counts = self.groups.map(u64::from);
                self.same(&counts)
            }
        }
    }

    /// Tells of integers that are divided by zero, and, on request, of results that do not fit or are no numbers.
    fn watch(
        &mut self,
        operator: B,
        scalar: Scalar,
        (left, right): (&[u64], &[u64]),
        lanes: &Lanes,
        expression: &Expression,
    ) -> Run<()> {
        let divides = matches!(operator, B::Divide | B::Remainder);
        let zero = scalar.is_integer() && divides && self.options.division_by_zero;
        let overflow = self.options.overflow
            && scalar.is_integer()
            && matches!(operator, B::Add | B::Subtract | B::Multiply | B::Divide)
            && !self.module.locations.wraps(expression.span);
        let nan = self.options.not_a_number && scalar.is_float() && !operator.is_comparison();
        if !(zero || overflow || nan) {
            return Ok(());
        }
        let span = self.at(expression.span);
        let is_nan = |word| scalar::float(scalar, word).is_nan();
        for (x, y) in left.chunks_exact(self.count).zip(right.chunks_exact(self.count)) {
            for lane in lanes.iter() {
                let (x, y) = (x[*lane as usize], y[*lane as usize]);
                let wrong = if zero && y == 0 {
                    Wrong::DivisionByZero
                } else if overflow && scalar::overflows(operator, scalar, x, y) {
                    Wrong::Overflow
                } else if nan && !is_nan(x) && !is_nan(y) && is_nan(scalar::binary(operator, scalar, x, y)) {
                    Wrong::NotANumber
                } else {
                    continue;
                };
                let operation =
                    format!("{} {} {}", scalar::shown(scalar, x), operator.sign(), scalar::shown(scalar, y));
                self.tell_of_number(wrong, operation, scalar, *lane, span)?;
            }
        }
        Ok(())
    }

    /// Tells of an operation on numbers of a type, in an invocation.
    fn tell_of_number(&mut self, wrong: Wrong, operation: String, scalar: Scalar, lane: u32, span: u32) -> Run<()> {
        let (invocation, at) = (self.invocation(lane), self.located(span));
        let same = Same { kind: Kind::Number(wrong), span, other: 0, memory: 0 };
        self.found(same, || match wrong {
            Wrong::DivisionByZero => Finding::DivisionByZero { operation, invocation, at },
            Wrong::Overflow => Finding::Overflow { operation, ty: scalar.rust_name(), invocation, at },
            Wrong::NotANumber => Finding::NotANumber { operation, invocation, at },
        })
    }

    /// The same of functions of integers: a remainder by zero, and on request the size of the least number.
    fn watch_function(
        &mut self,
        function: MathFunction,
        scalar: Scalar,
        given: &[Vec<u64>],
        lanes: &Lanes,
        expression: &Expression,
    ) -> Run<()> {
        let divides = function == MathFunction::RemEuclid && self.options.division_by_zero;
        let overflow = function == MathFunction::Abs
            && scalar.is_signed()
            && self.options.overflow
            && !self.module.locations.wraps(expression.span);
        if !scalar.is_integer() || !(divides || overflow) {
            return Ok(());
        }
        let (wrong, number) = if divides { (Wrong::DivisionByZero, 0) } else { (Wrong::Overflow, scalar.limits()[0]) };
        let Some(deciding) = given.last() else { return Ok(()) };
        let span = self.at(expression.span);
        for part in 0..deciding.len() / self.count {
            for lane in lanes.iter() {
                let at = part * self.count + *lane as usize;
                if scalar::integer(scalar, deciding[at]) != number {
                    continue;
                }
                let shown: Vec<String> = given.iter().map(|words| scalar::shown(scalar, words[at])).collect();
                let operation = format!("{}({})", function.name(), shown.join(", "));
                self.tell_of_number(wrong, operation, scalar, *lane, span)?;
            }
        }
        Ok(())
    }

    /// A place in the source, in words.
    pub(super) fn located(&self, span: u32) -> String {
        self.module.locations.describe(crate::ir::Span(span))
    }

    fn math(
        &mut self,
        frame: &Frame<'m>,
        function: MathFunction,
        arguments: &'m [Handle<Expression>],
        lanes: &Lanes,
        expression: &'m Expression,
    ) -> Run<Vec<u64>> {
        let n = self.count;
        let scalar = self.scalar(frame.function.expressions[arguments[0]].ty);
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(self.value(frame, *argument, lanes)?);
        }
        self.watch_function(function, scalar, &given, lanes, expression)?;
        let parts = self.shape(expression.ty).count();
        let mut out = self.take(parts * n);
        let mut operands = Vec::with_capacity(12);
        let mut broken = None;
        let nan = self.options.not_a_number && matches!(function.gives(), OperandType::Same | OperandType::Lane);
        for lane in lanes.iter().map(|lane| *lane as usize) {
            if function.is_lanewise() {
                for part in 0..parts {
                    operands.clear();
                    // An amount is one for all lanes of a vector.
                    operands.extend(given.iter().map(|words| words[(part * n + lane) % words.len()]));
                    out[part * n + lane] = math::lanewise(function, scalar, &operands);
                }
            } else {
                operands.clear();
                operands.extend(given.iter().flat_map(|words| words.chunks_exact(n).map(|part| part[lane])));
                let lanes = given[0].len() / n;
                let results = math::whole(function, scalar, lanes, &operands);
                for (part, word) in results.into_iter().enumerate().take(parts) {
                    out[part * n + lane] = word;
                }
            }
            if nan && scalar.is_float() && broken.is_none() {
                let is_nan = |word: &u64| scalar::float(scalar, *word).is_nan();
                let gives = (0..parts).any(|part| is_nan(&out[part * n + lane]));
                let takes = given.iter().any(|words| words.chunks_exact(n).any(|part| is_nan(&part[lane])));
                broken = (gives && !takes).then_some(lane);
            }
        }
        if let Some(lane) = broken {
            let shown: Vec<String> = given
                .iter()
                .flat_map(|words| words.chunks_exact(n).map(|part| scalar::shown(scalar, part[lane])))
                .collect();
            let operation = format!("{}({})", function.name(), shown.join(", "));
            self.tell_of_number(Wrong::NotANumber, operation, scalar, lane as u32, self.at(expression.span))?;
        }
        given.into_iter().for_each(|words| self.give(words));
        Ok(out)
    }
}

/// An operation on two values, in the memory of the left one. What loops are made of has loops of its own here.
fn binary(operator: B, scalar: Scalar, mut left: Vec<u64>, right: &[u64]) -> Vec<u64> {
    fn each(left: &mut [u64], right: &[u64], of: impl Fn(u64, u64) -> u64) {
        left.iter_mut().zip(right).for_each(|(x, y)| *x = of(*x, *y));
    }
    fn floats(left: &mut [u64], right: &[u64], of: impl Fn(f32, f32) -> f32) {
        each(left, right, |x, y| u64::from(of(f32::from_bits(x as u32), f32::from_bits(y as u32)).to_bits()));
    }
    let to = &mut left;
    match (operator, scalar) {
        (B::Add, Scalar::F32) => floats(to, right, |x, y| x + y),
        (B::Subtract, Scalar::F32) => floats(to, right, |x, y| x - y),
        (B::Multiply, Scalar::F32) => floats(to, right, |x, y| x * y),
        (B::Add, Scalar::Index | Scalar::U32) => each(to, right, |x, y| u64::from((x as u32).wrapping_add(y as u32))),
        (B::Multiply, Scalar::Index | Scalar::U32) => {
            each(to, right, |x, y| u64::from((x as u32).wrapping_mul(y as u32)));
        }
        (B::Less, Scalar::Index | Scalar::U32) => each(to, right, |x, y| u64::from(x < y)),
        _ => each(to, right, |x, y| scalar::binary(operator, scalar, x, y)),
    }
    left
}
