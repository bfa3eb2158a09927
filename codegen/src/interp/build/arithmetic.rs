//! Which instructions do the work of operators, mathematical functions and conversions.

use super::{Builder, Frame, Result, Value};
use crate::interp::program::{Comparison, Instruction, One, Register, Two};
use crate::ir::{BinaryOperator, Expression, Handle, MathFunction, Scalar};

/// The instruction of `min` or `max`.
pub(super) const fn extreme(function: MathFunction, scalar: Scalar) -> Two {
    match (function, scalar) {
        (MathFunction::Min, Scalar::F32) => Two::MinFloat,
        (MathFunction::Min, Scalar::I32) => Two::MinSigned,
        (MathFunction::Min, _) => Two::MinUnsigned,
        (_, Scalar::F32) => Two::MaxFloat,
        (_, Scalar::I32) => Two::MaxSigned,
        _ => Two::MaxUnsigned,
    }
}

impl<'a> Builder<'a> {
    pub(super) fn math(
        &mut self,
        function: MathFunction,
        scalar: Scalar,
        to: Register,
        values: &[Register],
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        let float = scalar == Scalar::F32;
        let signed = scalar == Scalar::I32;
        let (min, max) = (extreme(MathFunction::Min, scalar), extreme(MathFunction::Max, scalar));
        let one = match function {
            MathFunction::Abs if float => One::AbsFloat,
            MathFunction::Abs if signed => One::AbsInteger,
            MathFunction::Abs => {
                out.push(Instruction::Copy { to, from: values[0] });
                return Ok(());
            }
            MathFunction::Min
            | MathFunction::Max
            | MathFunction::Copysign
            | MathFunction::Powf
            | MathFunction::Atan2 => {
                let operation = match function {
                    MathFunction::Min => min,
                    MathFunction::Max => max,
                    MathFunction::Copysign => Two::Copysign,
                    MathFunction::Powf => Two::Powf,
                    _ => Two::Atan2,
                };
                out.push(Instruction::Two { operation, to, a: values[0], b: values[1] });
                return Ok(());
            }
            MathFunction::Clamp => {
                if float {
                    self.clamp_float(to, [values[0], values[1], values[2]], out);
                } else {
                    let above = self.two(max, values[0], values[1], out);
                    out.push(Instruction::Two { operation: min, to, a: above, b: values[2] });
                }
                return Ok(());
            }
            MathFunction::MulAdd => {
                out.push(Instruction::MulAdd { to, a: values[0], b: values[1], c: values[2] });
                return Ok(());
            }
            MathFunction::Dot => return Err(self.error("`dot` of scalars")),
            MathFunction::Signum if float => One::SignumFloat,
            MathFunction::Signum => One::SignumInteger,
            MathFunction::Floor => One::Floor,
            MathFunction::Ceil => One::Ceil,
            MathFunction::RoundTiesEven => One::RoundTiesEven,
            MathFunction::Trunc => One::Trunc,
            MathFunction::Sqrt => One::Sqrt,
            MathFunction::InverseSqrt => One::InverseSqrt,
            MathFunction::Exp => One::Exp,
            MathFunction::Exp2 => One::Exp2,
            MathFunction::Ln => One::Ln,
            MathFunction::Log2 => One::Log2,
            MathFunction::Sin => One::Sin,
            MathFunction::Cos => One::Cos,
            MathFunction::Tan => One::Tan,
            MathFunction::Tanh => One::Tanh,
            MathFunction::Atan => One::Atan,
            MathFunction::Erf => One::Erf,
            MathFunction::IsNan => One::IsNan,
            MathFunction::IsInfinite => One::IsInfinite,
            MathFunction::CountOnes => One::CountOnes,
            MathFunction::LeadingZeros => One::LeadingZeros,
            MathFunction::TrailingZeros => One::TrailingZeros,
            MathFunction::UnpackHalf => One::HalfToFloat,
            MathFunction::NearestHalf => One::NearestHalf,
            MathFunction::NearestBrain => One::NearestBrain,
            MathFunction::PackHalf => One::FloatToHalf,
            _ => {
                let given = values.iter().map(|value| vec![*value]).collect();
                out.push(Instruction::Math { function, scalar, to: vec![to], given });
                return Ok(());
            }
        };
        out.push(Instruction::One { operation: one, to, a: values[0] });
        Ok(())
    }

    pub(super) fn convert(
        &mut self,
        from: Scalar,
        to: Scalar,
        value: Value,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let words = value.registers.len() as u32;
        if from.is_wide() || to.is_wide() {
            return self.wide_convert(from, to, value, want, out);
        }
        let operation = match (from, to) {
            (Scalar::BF16, Scalar::F32) => None,
            (Scalar::F32, Scalar::BF16) => Some(One::NearestBrain),
            (from, to) if from.is_narrow() && to == from.widened() && from.is_integer() => None,
            (from, to) if to.is_narrow() && from == to.widened() && to.is_integer() => Some(wrap(to)),
            (from, to) if from == to => None,
            (Scalar::F16, Scalar::F16) | (Scalar::Bool, Scalar::Bool) | (Scalar::F32, Scalar::F32) => None,
            (from, to) if from.is_integer() && to.is_integer() => None,
            (Scalar::Bool, Scalar::F32) => Some(One::BoolToFloat),
            (Scalar::Bool, to) if to.is_integer() => Some(One::BoolToInteger),
            (Scalar::F32, Scalar::I32) => Some(One::FloatToSigned),
            (Scalar::F32, to) if to.is_integer() => Some(One::FloatToUnsigned),
            (Scalar::I32, Scalar::F32) => Some(One::SignedToFloat),
            (from, Scalar::F32) if from.is_integer() => Some(One::UnsignedToFloat),
            (Scalar::F16, Scalar::F32) => Some(One::HalfToFloat),
            (Scalar::F32, Scalar::F16) => Some(One::FloatToHalf),
            (Scalar::F32, Scalar::Bool) => Some(One::NotZeroFloat),
            (from, Scalar::Bool) if from.is_integer() => Some(One::NotZero),
            // By way of f32, as the IR's table says for halves.
            (Scalar::F16, _) => {
                let float = self.convert(Scalar::F16, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, float, want, out);
            }
            (_, Scalar::F16) => {
                let float = self.convert(from, Scalar::F32, value, None, out)?;
                return self.convert(Scalar::F32, to, float, want, out);
            }
            _ => return Err(self.error("a conversion of or to a type parameter")),
        };
        let Some(operation) = operation else { return Ok(value) };
        let to = self.target(want, words);
        self.each(operation, &to, &value.registers, out);
        Ok(Value { registers: to, stable: true })
    }
}

impl Builder<'_> {
    /// The same bits as another scalar of 8 or 16 bits.
    pub(super) fn narrow_bitcast(
        &mut self,
        frame: &mut Frame<'_>,
        value: Handle<Expression>,
        (from, to): (Scalar, Scalar),
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let mut value = self.expression(frame, value, None, out)?;
        // To the low bits, and from there.
        let steps = [
            (from == Scalar::BF16).then_some(One::Upper),
            match to {
                Scalar::BF16 => Some(One::FromUpper),
                Scalar::F16 => Some(One::WrapU16),
                to => Some(wrap(to)),
            },
        ];
        for operation in steps.into_iter().flatten() {
            let registers = self.take(value.registers.len() as u32);
            self.each(operation, &registers, &value.registers, out);
            value = Value { registers, stable: true };
        }
        if let Some(want) = want {
            self.copy(&value.registers, want, out);
            value = Value { registers: want.to_vec(), stable: true };
        }
        Ok(value)
    }
}

/// The operation that wraps a word to a narrow integer.
const fn wrap(to: Scalar) -> One {
    match to {
        Scalar::I8 => One::WrapI8,
        Scalar::U8 => One::WrapU8,
        Scalar::I16 => One::WrapI16,
        _ => One::WrapU16,
    }
}

/// The instruction of an operator, and whether its sides change places.
pub(super) fn binary(operator: BinaryOperator, scalar: Scalar) -> (Two, bool) {
    use Comparison as C;
    const LESS: [C; 3] = [C::LessFloat, C::LessSigned, C::LessUnsigned];
    const LESS_EQUAL: [C; 3] = [C::LessEqualFloat, C::LessEqualSigned, C::LessEqualUnsigned];
    let pick = |float, signed, unsigned| match scalar {
        Scalar::F32 => float,
        Scalar::I32 => signed,
        _ => unsigned,
    };
    let compare =
        |[float, signed, unsigned]: [C; 3]| pick(Two::Compare(float), Two::Compare(signed), Two::Compare(unsigned));
    match operator {
        BinaryOperator::Add => (pick(Two::AddFloat, Two::Add, Two::Add), false),
        BinaryOperator::Subtract => (pick(Two::SubtractFloat, Two::Subtract, Two::Subtract), false),
        BinaryOperator::Multiply => (pick(Two::MultiplyFloat, Two::Multiply, Two::Multiply), false),
        BinaryOperator::Divide => (pick(Two::DivideFloat, Two::DivideSigned, Two::DivideUnsigned), false),
        BinaryOperator::Remainder => (pick(Two::RemainderFloat, Two::RemainderSigned, Two::RemainderUnsigned), false),
        BinaryOperator::And => (Two::And, false),
        BinaryOperator::Or => (Two::Or, false),
        BinaryOperator::Xor => (Two::Xor, false),
        BinaryOperator::ShiftLeft => (Two::ShiftLeft, false),
        BinaryOperator::ShiftRight => {
            (pick(Two::ShiftRightUnsigned, Two::ShiftRightSigned, Two::ShiftRightUnsigned), false)
        }
        BinaryOperator::Equal => (compare([C::EqualFloat, C::Equal, C::Equal]), false),
        BinaryOperator::NotEqual => (compare([C::NotEqualFloat, C::NotEqual, C::NotEqual]), false),
        BinaryOperator::Less => (compare(LESS), false),
        BinaryOperator::LessEqual => (compare(LESS_EQUAL), false),
        BinaryOperator::Greater => (compare(LESS), true),
        BinaryOperator::GreaterEqual => (compare(LESS_EQUAL), true),
    }
}

/// The comparison that an operator is, and whether its sides change places.
pub(super) fn comparison(operator: BinaryOperator, scalar: Scalar) -> Option<(Comparison, bool)> {
    match binary(operator, scalar) {
        (Two::Compare(comparison), swapped) => Some((comparison, swapped)),
        _ => None,
    }
}
