//! Which instructions do the work of operators, mathematical functions and conversions where a 64-bit scalar takes part.

use super::{Builder, Frame, Result, Value, words_of};
use crate::interp::program::{Constant, Instruction, Register, Wide};
use crate::ir::{BinaryOperator, Expression, Handle, MathFunction, Scalar, UnaryOperator};

impl<'a> Builder<'a> {
    /// An operation lane by lane; the result has `words` words.
    pub(super) fn wide(
        &mut self,
        frame: &mut Frame<'_>,
        operation: Wide,
        operands: &[Handle<Expression>],
        words: u32,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let mut values = Vec::new();
        let mut lanes = 1;
        for operand in operands {
            let scalar = self.scalar_of(frame.function, *operand)?;
            let registers = self.expression(frame, *operand, None, out)?.registers;
            lanes = registers.len() / words_of(scalar) as usize;
            values.push(registers);
        }
        let to = self.target(want, words);
        self.wide_lanes(operation, &to, &values, lanes, out);
        Ok(Value { registers: to, stable: true })
    }

    /// One instruction a lane.
    fn wide_lanes(
        &mut self,
        operation: Wide,
        to: &[Register],
        values: &[Vec<Register>],
        lanes: usize,
        out: &mut Vec<Instruction>,
    ) {
        let part = |registers: &[Register], lane: usize| {
            let each = registers.len() / lanes.max(1);
            registers[lane * each..(lane + 1) * each].to_vec()
        };
        for lane in 0..lanes {
            let from = values.iter().flat_map(|registers| part(registers, lane)).collect();
            out.push(Instruction::Wide { operation, to: part(to, lane), from });
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what an expression is made of")]
    pub(super) fn wide_math(
        &mut self,
        frame: &mut Frame<'_>,
        function: MathFunction,
        scalar: Scalar,
        arguments: &[Handle<Expression>],
        words: u32,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let min = pick(scalar, Wide::MinFloat, Wide::MinSigned, Wide::MinUnsigned);
        let max = pick(scalar, Wide::MaxFloat, Wide::MaxSigned, Wide::MaxUnsigned);
        let operation = match function {
            MathFunction::Abs => pick(scalar, Wide::AbsFloat, Wide::AbsInteger, Wide::AbsInteger),
            MathFunction::Signum => Wide::SignumInteger,
            MathFunction::Min => min,
            MathFunction::Max => max,
            MathFunction::Floor => Wide::Floor,
            MathFunction::Ceil => Wide::Ceil,
            MathFunction::RoundTiesEven => Wide::RoundTiesEven,
            MathFunction::Trunc => Wide::Trunc,
            MathFunction::Sqrt => Wide::Sqrt,
            MathFunction::Exp => Wide::Exp,
            MathFunction::Exp2 => Wide::Exp2,
            MathFunction::ExpM1 => Wide::ExpM1,
            MathFunction::Ln => Wide::Ln,
            MathFunction::Log2 => Wide::Log2,
            MathFunction::Log10 => Wide::Log10,
            MathFunction::Ln1p => Wide::Ln1p,
            MathFunction::Sinh => Wide::Sinh,
            MathFunction::Cosh => Wide::Cosh,
            MathFunction::Tanh => Wide::Tanh,
            MathFunction::Asinh => Wide::Asinh,
            MathFunction::Acosh => Wide::Acosh,
            MathFunction::Atanh => Wide::Atanh,
            MathFunction::Powf => Wide::Powf,
            MathFunction::Sin => Wide::Sin,
            MathFunction::Cos => Wide::Cos,
            MathFunction::Tan => Wide::Tan,
            MathFunction::Asin => Wide::Asin,
            MathFunction::Acos => Wide::Acos,
            MathFunction::Atan => Wide::Atan,
            MathFunction::Atan2 => Wide::Atan2,
            MathFunction::Erf => Wide::Erf,
            MathFunction::IsNan => Wide::IsNan,
            MathFunction::IsInfinite => Wide::IsInfinite,
            MathFunction::MulAdd => Wide::MulAdd,
            MathFunction::Clamp => {
                let lanes = words / 2;
                let x = self.expression(frame, arguments[0], None, out)?.registers;
                let low = self.expression(frame, arguments[1], None, out)?.registers;
                let high = self.expression(frame, arguments[2], None, out)?.registers;
                let above = self.take(words);
                self.wide_lanes(max, &above, &[x.clone(), low], lanes as usize, out);
                let within = if scalar == Scalar::F64 { self.take(words) } else { self.target(want, words) };
                self.wide_lanes(min, &within, &[above, high], lanes as usize, out);
                if scalar != Scalar::F64 {
                    return Ok(Value { registers: within, stable: true });
                }
                let nan = self.take(lanes);
                self.wide_lanes(Wide::IsNan, &nan, std::slice::from_ref(&x), lanes as usize, out);
                let to = self.target(want, words);
                for (word, to) in to.iter().enumerate() {
                    let condition = nan[word / 2];
                    out.push(Instruction::Select { to: *to, condition, accept: x[word], reject: within[word] });
                }
                return Ok(Value { registers: to, stable: true });
            }
            MathFunction::Dot => {
                let a = self.expression(frame, arguments[0], None, out)?.registers;
                let b = self.expression(frame, arguments[1], None, out)?.registers;
                let mut sum: Option<Vec<Register>> = None;
                for (a, b) in a.chunks(2).zip(b.chunks(2)) {
                    let product = self.take(2);
                    self.wide_lanes(Wide::MultiplyFloat, &product, &[a.to_vec(), b.to_vec()], 1, out);
                    sum = Some(match sum {
                        None => product,
                        Some(before) => {
                            let next = self.take(2);
                            self.wide_lanes(Wide::AddFloat, &next, &[before, product], 1, out);
                            next
                        }
                    });
                }
                let registers = sum.ok_or_else(|| self.error("`dot` of no lanes"))?;
                return Ok(Value { registers, stable: true });
            }
            other => return Err(self.error(format!("`{}` of a 64-bit type", other.name()))),
        };
        self.wide(frame, operation, arguments, words, want, out)
    }

    /// A conversion from or to a 64-bit scalar.
    pub(super) fn wide_convert(
        &mut self,
        from: Scalar,
        to: Scalar,
        value: Value,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let lanes = value.registers.len() / words_of(from) as usize;
        let operation = match (from, to) {
            (from, to) if from == to => return Ok(value),
            (Scalar::I64 | Scalar::U64, Scalar::I64 | Scalar::U64) => return Ok(value),
            (Scalar::I64 | Scalar::U64, to) if to.is_integer() => {
                let registers = value.registers.chunks(2).map(|words| words[0]).collect();
                return Ok(Value { registers, stable: value.stable });
            }
            (Scalar::I64 | Scalar::U64 | Scalar::F64, Scalar::Bool) => {
                let none = self.constant(Constant::Literal(0));
                let operation = pick(from, Wide::NotEqualFloat, Wide::NotEqual, Wide::NotEqual);
                let to = self.target(want, lanes as u32);
                self.wide_lanes(operation, &to, &[value.registers, vec![none; 2 * lanes]], lanes, out);
                return Ok(Value { registers: to, stable: true });
            }
            // By way of 32 bits, as the IR's table says for halves and bools.
            (Scalar::F16, _) => {
                let single = self.convert(from, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, single, want, out);
            }
            (_, Scalar::F16) => {
                let single = self.convert(from, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, single, want, out);
            }
            (Scalar::Bool, _) => {
                let word = self.convert(from, Scalar::U32, value, None, out)?;
                return self.convert(Scalar::U32, to, word, want, out);
            }
            (Scalar::I64, Scalar::F64) => Wide::LongSignedToDouble,
            (Scalar::U64, Scalar::F64) => Wide::LongUnsignedToDouble,
            (Scalar::I64, Scalar::F32) => Wide::LongSignedToSingle,
            (Scalar::U64, Scalar::F32) => Wide::LongUnsignedToSingle,
            (Scalar::F64, Scalar::I64) => Wide::DoubleToLongSigned,
            (Scalar::F64, Scalar::U64) => Wide::DoubleToLongUnsigned,
            (Scalar::F64, Scalar::F32) => Wide::DoubleToSingle,
            (Scalar::F64, Scalar::I32) => Wide::DoubleToSigned,
            (Scalar::F64, to) if to.is_integer() => Wide::DoubleToUnsigned,
            (Scalar::F32, Scalar::F64) => Wide::SingleToDouble,
            (Scalar::F32, Scalar::I64) => Wide::SingleToSigned,
            (Scalar::F32, Scalar::U64) => Wide::SingleToUnsigned,
            (Scalar::I32, Scalar::F64) => Wide::SignedToDouble,
            (Scalar::I32, _) => Wide::ExtendSigned,
            (from, Scalar::F64) if from.is_integer() => Wide::UnsignedToDouble,
            (from, _) if from.is_integer() => Wide::ExtendUnsigned,
            _ => return Err(self.error("a conversion of or to a type parameter")),
        };
        let to = self.target(want, lanes as u32 * words_of(to));
        self.wide_lanes(operation, &to, &[value.registers], lanes, out);
        Ok(Value { registers: to, stable: true })
    }
}

/// One of three, by the kind of scalar.
const fn pick(scalar: Scalar, float: Wide, signed: Wide, unsigned: Wide) -> Wide {
    match scalar {
        Scalar::F64 => float,
        Scalar::I64 => signed,
        _ => unsigned,
    }
}

pub(super) const fn unary(operator: UnaryOperator, scalar: Scalar) -> Wide {
    match operator {
        UnaryOperator::Not => Wide::Not,
        UnaryOperator::Negate => pick(scalar, Wide::NegateFloat, Wide::NegateInteger, Wide::NegateInteger),
    }
}

/// The operation of an operator, and whether its sides change places.
pub(super) const fn binary(operator: BinaryOperator, scalar: Scalar) -> (Wide, bool) {
    let operation = match operator {
        BinaryOperator::Add => pick(scalar, Wide::AddFloat, Wide::Add, Wide::Add),
        BinaryOperator::Subtract => pick(scalar, Wide::SubtractFloat, Wide::Subtract, Wide::Subtract),
        BinaryOperator::Multiply => pick(scalar, Wide::MultiplyFloat, Wide::Multiply, Wide::Multiply),
        BinaryOperator::Divide => pick(scalar, Wide::DivideFloat, Wide::DivideSigned, Wide::DivideUnsigned),
        BinaryOperator::Remainder => pick(scalar, Wide::RemainderFloat, Wide::RemainderSigned, Wide::RemainderUnsigned),
        BinaryOperator::And => Wide::And,
        BinaryOperator::Or => Wide::Or,
        BinaryOperator::Xor => Wide::Xor,
        BinaryOperator::ShiftLeft => Wide::ShiftLeft,
        BinaryOperator::ShiftRight => {
            pick(scalar, Wide::ShiftRightUnsigned, Wide::ShiftRightSigned, Wide::ShiftRightUnsigned)
        }
        BinaryOperator::Equal => pick(scalar, Wide::EqualFloat, Wide::Equal, Wide::Equal),
        BinaryOperator::NotEqual => pick(scalar, Wide::NotEqualFloat, Wide::NotEqual, Wide::NotEqual),
        BinaryOperator::Less | BinaryOperator::Greater => {
            pick(scalar, Wide::LessFloat, Wide::LessSigned, Wide::LessUnsigned)
        }
        BinaryOperator::LessEqual | BinaryOperator::GreaterEqual => {
            pick(scalar, Wide::LessEqualFloat, Wide::LessEqualSigned, Wide::LessEqualUnsigned)
        }
    };
    (operation, matches!(operator, BinaryOperator::Greater | BinaryOperator::GreaterEqual))
}
