//! Which instructions do the work of operators, mathematical functions and conversions.

use super::{Builder, Result, Value};
use crate::interp::program::{Instruction, One, Register, Two};
use crate::ir::{BinaryOperator, MathFunction, Scalar};

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
            MathFunction::Min | MathFunction::Max | MathFunction::Powf | MathFunction::Atan2 => {
                let operation = match function {
                    MathFunction::Min => min,
                    MathFunction::Max => max,
                    MathFunction::Powf => Two::Powf,
                    _ => Two::Atan2,
                };
                out.push(Instruction::Two { operation, to, a: values[0], b: values[1] });
                return Ok(());
            }
            MathFunction::Clamp => {
                let above = self.two(max, values[0], values[1], out);
                out.push(Instruction::Two { operation: min, to, a: above, b: values[2] });
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
        let operation = match (from, to) {
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

/// The instruction of an operator, and whether its sides change places.
pub(super) fn binary(operator: BinaryOperator, scalar: Scalar) -> (Two, bool) {
    let pick = |float, signed, unsigned| match scalar {
        Scalar::F32 => float,
        Scalar::I32 => signed,
        _ => unsigned,
    };
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
        BinaryOperator::Equal => (pick(Two::EqualFloat, Two::Equal, Two::Equal), false),
        BinaryOperator::NotEqual => (pick(Two::NotEqualFloat, Two::NotEqual, Two::NotEqual), false),
        BinaryOperator::Less => (pick(Two::LessFloat, Two::LessSigned, Two::LessUnsigned), false),
        BinaryOperator::LessEqual => (pick(Two::LessEqualFloat, Two::LessEqualSigned, Two::LessEqualUnsigned), false),
        BinaryOperator::Greater => (pick(Two::LessFloat, Two::LessSigned, Two::LessUnsigned), true),
        BinaryOperator::GreaterEqual => (pick(Two::LessEqualFloat, Two::LessEqualSigned, Two::LessEqualUnsigned), true),
    }
}
