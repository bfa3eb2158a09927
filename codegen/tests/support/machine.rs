//! A plain evaluator of lowered modules, one invocation after the other, for tests: what the IR's essay says, in the simplest way.

#![expect(clippy::unwrap_used, reason = "what does not hold here fails the test that asked")]

use std::collections::HashMap;

use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator as B, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Local,
    LogicalOperator, MathFunction as M, Module, Place, Projection, Root, Scalar, Statement, StatementKind, Type,
    UnaryOperator,
};

/// A value: the bits of its lanes (or elements).
pub type Bits = Vec<u32>;

/// Memory and parameters of a run.
pub struct Machine<'a> {
    pub module: &'a Module,
    /// Words of each binding, one a scalar of its elements.
    pub bindings: Vec<Vec<u32>>,
    /// Lengths of the slices.
    pub lengths: Vec<u32>,
    pub params: Vec<Bits>,
    pub global_index: u32,
}

enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Bits>),
}

struct Frame<'f> {
    function: &'f Function,
    arguments: Vec<Bits>,
    locals: HashMap<Handle<Local>, Bits>,
}

impl<'a> Machine<'a> {
    /// Runs the kernel for one invocation.
    pub fn run(&mut self, global_index: u32) {
        self.global_index = global_index;
        let module = self.module;
        self.call(&module.entry, Vec::new());
    }

    /// Calls a function.
    pub fn call(&mut self, function: &'a Function, arguments: Vec<Bits>) -> Option<Bits> {
        let mut frame = Frame { function, arguments, locals: HashMap::new() };
        match self.block(&mut frame, &function.body) {
            Flow::Return(value) => value,
            _ => None,
        }
    }

    fn block(&mut self, frame: &mut Frame<'a>, block: &'a [Statement]) -> Flow {
        for statement in block {
            match self.statement(frame, statement) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }

    fn statement(&mut self, frame: &mut Frame<'a>, statement: &'a Statement) -> Flow {
        match &statement.kind {
            StatementKind::Let { local, value } => {
                if let Some(value) = value {
                    let value = self.value(frame, *value);
                    frame.locals.insert(*local, value);
                }
            }
            StatementKind::Store { place, value } => {
                let value = self.value(frame, *value);
                self.store(frame, place, &value);
            }
            StatementKind::Evaluate(value) => {
                self.expression(frame, *value);
            }
            StatementKind::If { condition, accept, reject, .. } => {
                let taken = self.value(frame, *condition)[0] != 0;
                return self.block(frame, if taken { accept } else { reject });
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let end = self.value(frame, *end)[0];
                let step = self.value(frame, *step)[0].max(1);
                let mut counter = self.value(frame, *start)[0];
                while counter < end {
                    frame.locals.insert(*local, vec![counter]);
                    match self.block(frame, body) {
                        Flow::Break => break,
                        Flow::Return(value) => return Flow::Return(value),
                        Flow::Next | Flow::Continue => {}
                    }
                    counter += step;
                }
            }
            StatementKind::Break => return Flow::Break,
            StatementKind::Continue => return Flow::Continue,
            StatementKind::Return(value) => {
                return Flow::Return(value.map(|value| self.value(frame, value)));
            }
            StatementKind::Atomic { result, place, function, value, .. } => {
                let old = self.load(frame, place, 1);
                let value = value.map(|value| self.value(frame, value)[0]);
                let new = match (function, value) {
                    (AtomicFunction::Load, _) => None,
                    (AtomicFunction::Store, Some(value)) => Some(value),
                    (AtomicFunction::And, Some(value)) => Some(old[0] & value),
                    (AtomicFunction::Or, Some(value)) => Some(old[0] | value),
                    (AtomicFunction::Add, Some(value)) => Some(old[0].wrapping_add(value)),
                    other => panic!("{other:?} is not evaluated"),
                };
                if let Some(new) = new {
                    self.store(frame, place, &[new]);
                }
                if let Some(result) = result {
                    frame.locals.insert(*result, old);
                }
            }
            other => panic!("{other:?} is not evaluated"),
        }
        Flow::Next
    }

    /// Where a place begins in its variable's words, or nothing if it is out of range.
    fn locate(&mut self, frame: &mut Frame<'a>, place: &'a Place) -> Option<usize> {
        let module = self.module;
        let (mut ty, mut at, is_element) = match place.root {
            Root::Binding(binding) => (&module.types[module.bindings[binding as usize].element], 0, true),
            Root::Local(local) => (&module.types[frame.function.locals[local].ty], 0, false),
            _ => panic!("{:?} is not evaluated", place.root),
        };
        for (step, projection) in place.path.iter().enumerate() {
            if is_element && step == 0 {
                let Root::Binding(binding) = place.root else { return None };
                let packed = module.bindings[binding as usize].packed;
                let length = self.lengths[binding as usize].div_ceil(packed) as usize;
                let (index, lanes) = match projection {
                    Projection::Index(index) => (*index, 1),
                    Projection::Vector { index, lanes } => (*index, usize::from(*lanes)),
                    Projection::Member(_) => panic!("a member of a buffer"),
                };
                let index = self.value(frame, index)[0] as usize;
                if (index + 1) * lanes > length {
                    assert!(place.guarded, "an access without a guard is out of range");
                    return None;
                }
                at = index * lanes * words(module, ty);
                continue;
            }
            let index = match projection {
                Projection::Index(index) => self.value(frame, *index)[0] as usize,
                Projection::Member(member) => *member as usize,
                Projection::Vector { .. } => panic!("a vector inside an element"),
            };
            let (part, count) = match ty {
                Type::Vector { lanes, .. } => (1, usize::from(*lanes)),
                Type::Array { element, length } => {
                    ty = &module.types[*element];
                    (words(module, ty), length.literal().unwrap() as usize)
                }
                other => panic!("a part of {other:?}"),
            };
            if index >= count {
                assert!(place.guarded, "an access without a guard is out of range");
                return None;
            }
            at += index * part;
        }
        Some(at)
    }

    fn load(&mut self, frame: &mut Frame<'a>, place: &'a Place, count: usize) -> Bits {
        let Some(at) = self.locate(frame, place) else { return vec![0; count] };
        match place.root {
            Root::Binding(binding) => self.bindings[binding as usize][at..at + count].to_vec(),
            Root::Local(local) => frame.locals[&local][at..at + count].to_vec(),
            other => panic!("{other:?} is not evaluated"),
        }
    }

    fn store(&mut self, frame: &mut Frame<'a>, place: &'a Place, value: &[u32]) {
        let Some(at) = self.locate(frame, place) else { return };
        let target = match place.root {
            Root::Binding(binding) => &mut self.bindings[binding as usize],
            Root::Local(local) => {
                let size = words(self.module, &self.module.types[frame.function.locals[local].ty]);
                frame.locals.entry(local).or_insert_with(|| vec![0; size])
            }
            other => panic!("{other:?} is not evaluated"),
        };
        target[at..at + value.len()].copy_from_slice(value);
    }

    fn value(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>) -> Bits {
        self.expression(frame, handle).expect("a value")
    }

    fn expression(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>) -> Option<Bits> {
        let module = self.module;
        let expression = &frame.function.expressions[handle];
        let ty = &module.types[expression.ty];
        let scalar_of = |handle: Handle<Expression>| module.types[frame.function.expressions[handle].ty].scalar();
        Some(match &expression.kind {
            ExpressionKind::Literal(literal) => vec![literal.bits() as u32],
            ExpressionKind::Param(param) => self.params[*param as usize].clone(),
            ExpressionKind::Length(binding) => vec![self.lengths[*binding as usize]],
            ExpressionKind::Builtin(Builtin::GlobalIndex) => vec![self.global_index],
            ExpressionKind::Argument(argument) => frame.arguments[*argument as usize].clone(),
            ExpressionKind::Local(local) => frame.locals[local].clone(),
            ExpressionKind::Load(place) => self.load(frame, place, words(module, ty)),
            ExpressionKind::Member { base, index } => vec![self.value(frame, *base)[*index as usize]],
            ExpressionKind::Element { base, index } => {
                let index = self.value(frame, *index)[0] as usize;
                vec![self.value(frame, *base).get(index).copied().unwrap_or(0)]
            }
            ExpressionKind::Compose(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.value(frame, *part));
                }
                all
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let base = self.value(frame, *base);
                lanes.iter().map(|lane| base[usize::from(*lane)]).collect()
            }
            ExpressionKind::Splat(value) => {
                let value = self.value(frame, *value);
                value.repeat(words(module, ty) / value.len())
            }
            ExpressionKind::Unary { operator, value } => {
                let scalar = scalar_of(*value);
                self.value(frame, *value).into_iter().map(|value| unary(*operator, scalar, value)).collect()
            }
            ExpressionKind::Binary { operator, left, right } => {
                let scalar = scalar_of(*left).unwrap();
                let (left, right) = (self.value(frame, *left), self.value(frame, *right));
                left.iter().zip(&right).map(|(a, b)| binary(*operator, scalar, *a, *b)).collect()
            }
            ExpressionKind::Logical { operator, left, right } => {
                let left = self.value(frame, *left);
                if (left[0] != 0) == (*operator == LogicalOperator::And) { self.value(frame, *right) } else { left }
            }
            ExpressionKind::Math { function, arguments } => {
                let scalar = scalar_of(arguments[0]).unwrap();
                let arguments: Vec<Bits> = arguments.iter().map(|argument| self.value(frame, *argument)).collect();
                if *function == M::Dot {
                    let numbers = |at: usize| arguments[at].iter().map(|bits| f32::from_bits(*bits));
                    let sum: f32 = numbers(0).zip(numbers(1)).map(|(a, b)| a * b).sum();
                    return Some(vec![sum.to_bits()]);
                }
                (0..arguments[0].len())
                    .map(|lane| math(*function, scalar, &arguments.iter().map(|a| a[lane]).collect::<Vec<_>>()))
                    .collect()
            }
            ExpressionKind::Select { condition, accept, reject } => {
                let condition = self.value(frame, *condition);
                let (accept, reject) = (self.value(frame, *accept), self.value(frame, *reject));
                (0..accept.len())
                    .map(|lane| if condition[lane % condition.len()] != 0 { accept[lane] } else { reject[lane] })
                    .collect()
            }
            ExpressionKind::Convert(value) => {
                let (from, to) = (scalar_of(*value).unwrap(), ty.scalar().unwrap());
                self.value(frame, *value).into_iter().map(|value| convert(from, to, value)).collect()
            }
            ExpressionKind::Bitcast(value) => self.value(frame, *value),
            ExpressionKind::Call { function, arguments } => {
                let arguments = arguments
                    .iter()
                    .map(|argument| match argument {
                        CallArgument::Value(value) => self.value(frame, *value),
                        CallArgument::Reference(_) => panic!("references are not evaluated"),
                    })
                    .collect();
                return self.call(&module.functions[*function], arguments);
            }
            other => panic!("{other:?} is not evaluated"),
        })
    }
}

fn words(module: &Module, ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) | Type::Enum(_) => 1,
        Type::Vector { lanes, .. } => usize::from(*lanes),
        Type::Array { element, length } => words(module, &module.types[*element]) * length.literal().unwrap() as usize,
        Type::Struct(_) => panic!("structs are not evaluated"),
        Type::Matrix(_) => panic!("matrices are not evaluated"),
    }
}

fn unary(operator: UnaryOperator, scalar: Option<Scalar>, value: u32) -> u32 {
    match (operator, scalar) {
        (UnaryOperator::Not, Some(Scalar::Bool)) => value ^ 1,
        (UnaryOperator::Not, _) => !value,
        (UnaryOperator::Negate, Some(Scalar::F32)) => value ^ 0x8000_0000,
        (UnaryOperator::Negate, _) => value.wrapping_neg(),
    }
}

/// As targets do it: division by zero and shifts by 32 and more must not come here.
fn binary(operator: B, scalar: Scalar, a: u32, b: u32) -> u32 {
    if operator.is_comparison() {
        let ordering = match scalar {
            Scalar::F32 => f32::from_bits(a).partial_cmp(&f32::from_bits(b)),
            Scalar::I32 => Some(a.cast_signed().cmp(&b.cast_signed())),
            _ => Some(a.cmp(&b)),
        };
        return u32::from(match operator {
            B::Equal => ordering.is_some_and(|o| o.is_eq()),
            B::NotEqual => ordering.is_none_or(|o| o.is_ne()),
            B::Less => ordering.is_some_and(|o| o.is_lt()),
            B::LessEqual => ordering.is_some_and(|o| o.is_le()),
            B::Greater => ordering.is_some_and(|o| o.is_gt()),
            _ => ordering.is_some_and(|o| o.is_ge()),
        });
    }
    if scalar == Scalar::F32 {
        let (a, b) = (f32::from_bits(a), f32::from_bits(b));
        return match operator {
            B::Add => a + b,
            B::Subtract => a - b,
            B::Multiply => a * b,
            B::Divide => a / b,
            _ => a % b,
        }
        .to_bits();
    }
    let signed = scalar == Scalar::I32;
    match operator {
        B::Add => a.wrapping_add(b),
        B::Subtract => a.wrapping_sub(b),
        B::Multiply => a.wrapping_mul(b),
        B::Divide if signed => (a.cast_signed() / b.cast_signed()).cast_unsigned(),
        B::Remainder if signed => (a.cast_signed() % b.cast_signed()).cast_unsigned(),
        B::Divide => a / b,
        B::Remainder => a % b,
        B::And => a & b,
        B::Or => a | b,
        B::Xor => a ^ b,
        B::ShiftLeft => a.checked_shl(b).expect("a shift by less than 32"),
        _ if signed => a.cast_signed().checked_shr(b).expect("a shift by less than 32").cast_unsigned(),
        _ => a.checked_shr(b).expect("a shift by less than 32"),
    }
}

fn convert(from: Scalar, to: Scalar, value: u32) -> u32 {
    match (from, to) {
        (Scalar::F32, Scalar::I32) => {
            let value = f32::from_bits(value);
            assert!(
                (-2_147_483_648.0..2_147_483_648.0).contains(&value),
                "{value} as i32 is undefined on some targets"
            );
            (value as i32).cast_unsigned()
        }
        (Scalar::F32, Scalar::U32 | Scalar::Index) => {
            let value = f32::from_bits(value);
            assert!((0.0..4_294_967_296.0).contains(&value), "{value} as u32 is undefined on some targets");
            value as u32
        }
        (Scalar::I32, Scalar::F32) => (value.cast_signed() as f32).to_bits(),
        (Scalar::U32 | Scalar::Index | Scalar::Bool, Scalar::F32) => (value as f32).to_bits(),
        (Scalar::F16, Scalar::F32) => half::f16::from_bits(value as u16).to_f32().to_bits(),
        (Scalar::F32, Scalar::F16) => u32::from(half::f16::from_f32(f32::from_bits(value)).to_bits()),
        _ => value,
    }
}

fn math(function: M, scalar: Scalar, arguments: &[u32]) -> u32 {
    let float = |at: usize| f32::from_bits(arguments[at]);
    if scalar.is_integer() {
        return match function {
            M::Min => arguments[0].min(arguments[1]),
            M::Max => arguments[0].max(arguments[1]),
            M::Abs => arguments[0].cast_signed().wrapping_abs().cast_unsigned(),
            M::UnpackHalf => half::f16::from_bits(arguments[0] as u16).to_f32().to_bits(),
            other => panic!("{other:?} of integers is not evaluated"),
        };
    }
    match function {
        M::Abs => float(0).abs(),
        M::Min => float(0).min(float(1)),
        M::Max => float(0).max(float(1)),
        M::Trunc => float(0).trunc(),
        M::RoundTiesEven => float(0).round_ties_even(),
        M::Exp => float(0).exp(),
        M::Exp2 => float(0).exp2(),
        M::Sin => float(0).sin(),
        M::Cos => float(0).cos(),
        M::Tan => float(0).tan(),
        M::Sqrt => float(0).sqrt(),
        M::InverseSqrt => 1.0 / float(0).sqrt(),
        // Targets give NaN for negative x.
        M::Powf => (f64::from(float(1)) * f64::from(float(0)).log2()).exp2() as f32,
        // Two roundings, which is the worse case.
        M::MulAdd => float(0) * float(1) + float(2),
        M::IsNan => return u32::from(float(0).is_nan()),
        M::IsInfinite => return u32::from(float(0).is_infinite()),
        M::PackHalf => return u32::from(half::f16::from_f32(float(0)).to_bits()),
        other => panic!("{other:?} is not evaluated"),
    }
    .to_bits()
}
