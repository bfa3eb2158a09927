//! Expressions: each leaves its value in registers, its own or those that the caller wants it in. Calls are inlined.

use super::arithmetic::binary;
use super::place::is_memory;
use super::{Builder, FIXED, Frame, Result, Value, words_of};
use crate::artefact::ParamRole;
use crate::interp::program::{Bound, Constant, Given, Held, Instruction, One, Register, Term, Two};
use crate::ir::{
    Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, LogicalOperator, MathFunction, Root,
    Scalar, Statement, StatementKind, Type, UnaryOperator,
};
use crate::layout;

impl<'a> Builder<'a> {
    pub(super) fn two(&mut self, operation: Two, a: Register, b: Register, out: &mut Vec<Instruction>) -> Register {
        let to = self.one();
        out.push(Instruction::Two { operation, to, a, b });
        to
    }

    pub(super) fn copy(&mut self, from: &[Register], to: &[Register], out: &mut Vec<Instruction>) {
        for (to, from) in to.iter().zip(from) {
            if to != from {
                out.push(Instruction::Copy { to: *to, from: *from });
            }
        }
    }

    /// The value in registers that nothing changes.
    pub(super) fn keep_value(&mut self, value: Value, out: &mut Vec<Instruction>) -> Value {
        if value.stable {
            return value;
        }
        let registers = self.take(value.registers.len() as u32);
        self.copy(&value.registers, &registers, out);
        Value { registers, stable: true }
    }

    pub(super) fn target(&mut self, want: Option<&[Register]>, words: u32) -> Vec<Register> {
        match want {
            Some(want) => want.to_vec(),
            None => self.take(words),
        }
    }

    /// Builds an expression; what has to be computed is computed into `want`, if given.
    pub(super) fn expression(
        &mut self,
        frame: &mut Frame<'_>,
        handle: Handle<Expression>,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let expression = &frame.function.expressions[handle];
        let words = self.words(expression.ty)?;
        let fixed = |registers: Vec<Register>| Ok(Value { registers, stable: true });
        match &expression.kind {
            ExpressionKind::Literal(literal) => {
                let bits = match literal {
                    Literal::Bool(value) => {
                        if *value {
                            u32::MAX
                        } else {
                            0
                        }
                    }
                    Literal::Generic { .. } => return Err(self.error("a generic literal in an instance")),
                    Literal::I8(value) => i32::from(*value).cast_unsigned(),
                    Literal::I16(value) => i32::from(*value).cast_unsigned(),
                    Literal::BF16(bits) => u32::from(*bits) << 16,
                    other => other.bits() as u32,
                };
                let low = self.constant(Constant::Literal(bits));
                if words == 1 {
                    return fixed(vec![low]);
                }
                let high = self.constant(Constant::Literal((literal.bits() >> 32) as u32));
                fixed(vec![low, high])
            }
            ExpressionKind::TargetHas(feature) => {
                let bits = if self.features.has(*feature) { u32::MAX } else { 0 };
                fixed(vec![self.constant(Constant::Literal(bits))])
            }
            ExpressionKind::GenericConstant(_) => Err(self.error("a generic constant in an instance")),
            ExpressionKind::Param(index) => {
                let offset = self.field(layout::param_role(self.module, *index))?;
                let bool = self.module.types[expression.ty].scalar() == Some(Scalar::Bool);
                fixed((0..words).map(|i| self.constant(Constant::Param { offset: offset + 4 * i, bool })).collect())
            }
            ExpressionKind::Length(binding) => {
                let offset = self.field(ParamRole::Length(*binding))?;
                fixed(self.param_words(offset, words))
            }
            ExpressionKind::ViewExtent { binding, axis } => {
                let offset = self.field(ParamRole::Extents(*binding))? + 4 * words * axis;
                fixed(self.param_words(offset, words))
            }
            ExpressionKind::ViewStride { binding, axis } => {
                let offset = self.field(ParamRole::Strides(*binding))? + 4 * words * axis;
                fixed(self.param_words(offset, words))
            }
            ExpressionKind::Builtin(builtin) => fixed(self.builtin(*builtin)),
            ExpressionKind::Argument(index) => fixed(frame.arguments[*index as usize].clone()),
            ExpressionKind::Local(local) => fixed(frame.locals[local.index()].clone()),
            ExpressionKind::Load(place) => self.load(frame, place, want, out),
            ExpressionKind::Member { base, index } => {
                let (first, count) = self.part(frame.function.expressions[*base].ty, *index)?;
                let base = self.expression(frame, *base, None, out)?;
                let registers = base.registers[first as usize..(first + count) as usize].to_vec();
                Ok(Value { registers, stable: base.stable })
            }
            ExpressionKind::Element { base, index } => {
                let ty = frame.function.expressions[*base].ty;
                let (_, count) = self.part(ty, 0)?;
                let length = self.words(ty)? / count.max(1);
                let base = self.expression(frame, *base, None, out)?;
                let consecutive = base.registers.windows(2).all(|pair| pair[1] == pair[0] + 1);
                let base = if consecutive && base.registers.iter().all(|register| *register < FIXED) {
                    base.registers
                } else {
                    let copied = self.take(base.registers.len() as u32);
                    self.copy(&base.registers, &copied, out);
                    copied
                };
                let index = self.expression(frame, *index, None, out)?.registers[0];
                let to = self.target(want, words);
                let terms = vec![Term { index, upper: None, stride: count, bound: Bound::Count(length) }];
                out.push(Instruction::Pick { to: to.clone(), base: base[0], terms });
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Compose(parts) => {
                let mut registers = Vec::new();
                let mut stable = true;
                for part in parts {
                    let value = self.expression(frame, *part, None, out)?;
                    stable &= value.stable;
                    registers.extend(value.registers);
                }
                Ok(Value { registers, stable: stable && want.is_none() })
            }
            ExpressionKind::Splat(value) => {
                let value = self.expression(frame, *value, None, out)?;
                let times = words as usize / value.registers.len().max(1);
                Ok(Value { registers: value.registers.repeat(times), stable: value.stable })
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let base = self.expression(frame, *base, None, out)?;
                let each = words as usize / lanes.len().max(1);
                let registers = lanes
                    .iter()
                    .flat_map(|lane| &base.registers[usize::from(*lane) * each..(usize::from(*lane) + 1) * each])
                    .copied()
                    .collect();
                Ok(Value { registers, stable: base.stable })
            }
            ExpressionKind::Unary { operator, value } => {
                let scalar = self.scalar_of(frame.function, *value)?;
                if scalar.is_wide() {
                    let operation = super::wide::unary(*operator, scalar);
                    return self.wide(frame, operation, &[*value], words, want, out);
                }
                let operation = match (operator, scalar) {
                    (UnaryOperator::Not, _) => One::Not,
                    (UnaryOperator::Negate, Scalar::F32) => One::NegateFloat,
                    (UnaryOperator::Negate, _) => One::NegateInteger,
                };
                let value = self.expression(frame, *value, None, out)?;
                let to = self.target(want, words);
                self.each(operation, &to, &value.registers, out);
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Binary { operator, left, right } => {
                let scalar = self.scalar_of(frame.function, *left)?;
                if scalar.is_wide() {
                    let (operation, swapped) = super::wide::binary(*operator, scalar);
                    let operands = if swapped { [*right, *left] } else { [*left, *right] };
                    return self.wide(frame, operation, &operands, words, want, out);
                }
                let left = self.expression(frame, *left, None, out)?;
                let right = self.expression(frame, *right, None, out)?;
                let (operation, swapped) = binary(*operator, scalar);
                let to = self.target(want, words);
                for (i, to) in to.iter().enumerate() {
                    let (mut a, mut b) = (left.registers[i], right.registers[i]);
                    if swapped {
                        (a, b) = (b, a);
                    }
                    out.push(Instruction::Two { operation, to: *to, a, b });
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Logical { operator, left, right } => {
                let left = self.expression(frame, *left, None, out)?.registers[0];
                let mut inner = Vec::new();
                let right = self.expression(frame, *right, None, &mut inner)?.registers[0];
                if inner.iter().any(|instruction| {
                    !matches!(
                        instruction,
                        Instruction::One { .. }
                            | Instruction::Two { .. }
                            | Instruction::MulAdd { .. }
                            | Instruction::Math { .. }
                            | Instruction::Wide { .. }
                            | Instruction::Select { .. }
                            | Instruction::Choose { .. }
                            | Instruction::Copy { .. }
                    )
                }) {
                    // The right side reads memory that may not be there.
                    let (accept, reject) = match operator {
                        LogicalOperator::And => (inner, Vec::new()),
                        LogicalOperator::Or => (Vec::new(), inner),
                    };
                    out.push(Instruction::If { condition: left, accept, reject });
                } else {
                    out.extend(inner);
                }
                let to = self.target(want, 1);
                let operation = match operator {
                    LogicalOperator::And => Two::And,
                    LogicalOperator::Or => Two::Or,
                };
                out.push(Instruction::Two { operation, to: to[0], a: left, b: right });
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Math { function, arguments } => {
                let scalar = self.scalar_of(frame.function, arguments[0])?;
                let function = *function;
                if scalar.is_wide() {
                    return self.wide_math(frame, function, scalar, arguments, words, want, out);
                }
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.expression(frame, *argument, None, out)?.registers);
                }
                let to = self.target(want, words);
                if function == MathFunction::Dot {
                    let mut sum = self.two(Two::MultiplyFloat, values[0][0], values[1][0], out);
                    for (a, b) in values[0].iter().zip(&values[1]).skip(1) {
                        let product = self.two(Two::MultiplyFloat, *a, *b, out);
                        sum = self.two(Two::AddFloat, sum, product, out);
                    }
                    out.push(Instruction::Copy { to: to[0], from: sum });
                } else if !function.is_lanewise() {
                    out.push(Instruction::Math { function, scalar, to: to.clone(), given: values });
                } else {
                    for (i, to) in to.iter().enumerate() {
                        // An amount is one for all lanes.
                        let lane: Vec<Register> =
                            values.iter().map(|value| value[if value.len() == 1 { 0 } else { i }]).collect();
                        self.math(function, scalar, *to, &lane, out)?;
                    }
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Select { .. } => self.select(frame, handle, want, out),
            ExpressionKind::Convert(value) => {
                let from = self.scalar_of(frame.function, *value)?;
                let to = self.scalar_of(frame.function, handle)?;
                if let (Scalar::F16, Scalar::F32, ExpressionKind::Load(place)) =
                    (from, to, &frame.function.expressions[*value].kind)
                    && is_memory(place.root)
                {
                    return self.load_held(frame, place, Some(Held::Float), want, out);
                }
                let value = self.expression(frame, *value, None, out)?;
                self.convert(from, to, value, want, out)
            }
            ExpressionKind::Bitcast(value) => {
                let function = frame.function;
                let from = &self.module.types[function.expressions[*value].ty];
                let pair = |ty: &Type| matches!(ty, Type::Vector { lanes: 2, scalar: Scalar::F16 });
                let to = &self.module.types[expression.ty];
                // Two halves are a word, and as many other elements of 16 bits.
                let is_word = |ty: &Type| ty.scalar().is_some_and(|scalar| !scalar.is_narrow());
                let (packs, unpacks) = (pair(from) && is_word(to), pair(to) && is_word(from));
                if let Some(narrow) = from.scalar().filter(|scalar| scalar.is_narrow())
                    && !packs
                {
                    let to = self.scalar_of(function, handle)?;
                    return self.narrow_bitcast(frame, *value, (narrow, to), want, out);
                }
                let value = self.expression(frame, *value, None, out)?;
                if packs == unpacks {
                    return Ok(value);
                }
                let to = self.target(want, words);
                if packs {
                    let (a, b) = (value.registers[0], value.registers[1]);
                    out.push(Instruction::Two { operation: Two::Pair, to: to[0], a, b });
                } else {
                    let a = value.registers[0];
                    out.push(Instruction::One { operation: One::LowHalf, to: to[0], a });
                    out.push(Instruction::One { operation: One::HighHalf, to: to[1], a });
                }
                Ok(Value { registers: to, stable: true })
            }
            ExpressionKind::Call { function, arguments } => self.call(frame, *function, arguments, out),
            ExpressionKind::MatrixLength(_) => Err(self.error("a matrix is left")),
        }
    }

    /// So many words of the parameter block.
    fn param_words(&mut self, offset: u32, words: u32) -> Vec<Register> {
        (0..words).map(|word| self.constant(Constant::Param { offset: offset + 4 * word, bool: false })).collect()
    }

    pub(super) fn each(&mut self, operation: One, to: &[Register], from: &[Register], out: &mut Vec<Instruction>) {
        for (to, a) in to.iter().zip(from) {
            out.push(Instruction::One { operation, to: *to, a: *a });
        }
    }

    fn builtin(&mut self, builtin: Builtin) -> Vec<Register> {
        let axes = |builder: &mut Self, what: &dyn Fn(u8) -> Given| {
            (0..3).map(|axis| builder.given(what(axis))).collect::<Vec<_>>()
        };
        match builtin {
            Builtin::GlobalIndex => vec![self.given(Given::GlobalIndex)],
            Builtin::LocalIndex => vec![self.given(Given::LocalIndex)],
            Builtin::GroupIndex => vec![self.given(Given::GroupIndex)],
            Builtin::GroupCount => vec![self.constant(Constant::GroupCount)],
            Builtin::GlobalId => axes(self, &Given::GlobalId),
            Builtin::LocalId => axes(self, &Given::LocalId),
            Builtin::GroupId => axes(self, &Given::GroupId),
            Builtin::GroupCounts => (0..3).map(|axis| self.constant(Constant::Groups(axis))).collect(),
            Builtin::SubgroupSize => vec![self.constant(Constant::SubgroupSize)],
            Builtin::SubgroupLane => vec![self.given(Given::SubgroupLane)],
            Builtin::SubgroupIndex => vec![self.given(Given::SubgroupIndex)],
        }
    }

    /// Where a part of a value known by number lies in its registers: the first, and how many.
    pub(super) fn part(&self, ty: Handle<Type>, index: u32) -> Result<(u32, u32)> {
        match &self.module.types[ty] {
            Type::Vector { scalar, .. } => Ok((index * words_of(*scalar), words_of(*scalar))),
            Type::Array { element, .. } => {
                let count = self.words(*element)?;
                Ok((index * count, count))
            }
            Type::Struct(handle) => {
                let mut first = 0;
                for (position, (_, field)) in self.module.structs[*handle].fields.iter().enumerate() {
                    let count = self.words(*field)?;
                    if position == index as usize {
                        return Ok((first, count));
                    }
                    first += count;
                }
                Err(self.error("a struct has no such field"))
            }
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => Err(self.error("a part of a scalar")),
        }
    }

    fn call(
        &mut self,
        frame: &mut Frame<'_>,
        function: Handle<Function>,
        arguments: &[CallArgument],
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let callee = &self.module.functions[function];
        let result = match callee.result {
            Some(ty) => self.take(self.words(ty)?),
            None => Vec::new(),
        };
        let mut given = Vec::new();
        for argument in arguments {
            given.push(match argument {
                CallArgument::Value(value) => {
                    let value = self.expression(frame, *value, None, out)?;
                    self.keep_value(value, out).registers
                }
                CallArgument::Reference(Root::Local(local)) => frame.locals[local.index()].clone(),
                CallArgument::Reference(Root::Argument(index)) => frame.arguments[*index as usize].clone(),
                CallArgument::Reference(Root::Binding(_) | Root::Workgroup(_)) => {
                    return Err(self.error("a buffer is passed by reference"));
                }
            });
        }
        // A function that only returns a value at its end needs no mask.
        let simple = match callee.body.split_last() {
            Some((Statement { kind: StatementKind::Return(Some(value)), .. }, before)) => {
                let mut returns = false;
                crate::ir::statements(before, &mut |statement| {
                    returns |= matches!(statement.kind, StatementKind::Return(_));
                });
                (!returns).then_some((before, *value))
            }
            _ => None,
        };
        if let Some((before, value)) = simple {
            let mut inner = self.frame(callee, given, Vec::new(), None);
            let top = self.top;
            for statement in before {
                self.statement(&mut inner, &statement.kind, out)?;
            }
            let found = self.expression(&mut inner, value, Some(&result), out)?;
            self.copy(&found.registers, &result, out);
            self.top = top;
            return Ok(Value { registers: result, stable: true });
        }
        let returned = self.one();
        let mut inner = self.frame(callee, given, result.clone(), Some(returned));
        let mut body = Vec::new();
        self.block(&mut inner, &callee.body, &mut body)?;
        out.push(Instruction::Function { body, returned });
        Ok(Value { registers: result, stable: true })
    }
}
