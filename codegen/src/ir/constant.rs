//! Computing with constants, as the IR's essay says.

use super::expression::{BinaryOperator, Literal, LogicalOperator, UnaryOperator};
use super::types::Scalar;

impl Literal {
    /// An integer of a type from its bits; `None` if it is no integer type.
    pub const fn integer(scalar: Scalar, bits: u32) -> Option<Self> {
        match scalar {
            Scalar::I32 => Some(Self::I32(bits.cast_signed())),
            Scalar::U32 => Some(Self::U32(bits)),
            Scalar::Index => Some(Self::Index(bits)),
            _ => None,
        }
    }

    /// The value of an integer; `None` for others.
    pub const fn as_integer(self) -> Option<i64> {
        match self {
            Self::I32(value) => Some(value as i64),
            Self::U32(value) | Self::Index(value) => Some(value as i64),
            _ => None,
        }
    }
}

/// The result of an operation on a constant; `None` if it is not one that is computed here.
pub fn unary(operator: UnaryOperator, value: Literal) -> Option<Literal> {
    Some(match (operator, value) {
        (UnaryOperator::Not, Literal::Bool(value)) => Literal::Bool(!value),
        (UnaryOperator::Not, Literal::I32(value)) => Literal::I32(!value),
        (UnaryOperator::Not, Literal::U32(value)) => Literal::U32(!value),
        (UnaryOperator::Not, Literal::Index(value)) => Literal::Index(!value),
        (UnaryOperator::Negate, Literal::I32(value)) => Literal::I32(value.wrapping_neg()),
        (UnaryOperator::Negate, Literal::F32(value)) => Literal::F32(-value),
        _ => return None,
    })
}

/// The result of an operation on two integer or `bool` constants; floats are left to the device.
pub fn binary(operator: BinaryOperator, left: Literal, right: Literal) -> Option<Literal> {
    use BinaryOperator as B;
    if let (Literal::Bool(left), Literal::Bool(right)) = (left, right) {
        return Some(Literal::Bool(match operator {
            B::And => left & right,
            B::Or => left | right,
            B::Xor | B::NotEqual => left ^ right,
            B::Equal => left == right,
            _ => return None,
        }));
    }
    let (a, b) = (left.as_integer()?, right.as_integer()?);
    if operator.is_comparison() {
        return Some(Literal::Bool(match operator {
            B::Equal => a == b,
            B::NotEqual => a != b,
            B::Less => a < b,
            B::LessEqual => a <= b,
            B::Greater => a > b,
            _ => a >= b,
        }));
    }
    // Both fit 33 bits, so that no operation but a multiplication of large numbers leaves an i64, and that wraps alike.
    let wide = match operator {
        B::Add => a + b,
        B::Subtract => a - b,
        B::Multiply => a.wrapping_mul(b),
        B::Divide => a.checked_div(b).unwrap_or(0),
        B::Remainder => a.checked_rem(b).unwrap_or(0),
        B::And => a & b,
        B::Or => a | b,
        B::Xor => a ^ b,
        B::ShiftLeft => a << (b & 31),
        B::ShiftRight => a >> (b & 31),
        _ => return None,
    };
    Literal::integer(left.scalar(), wide as u32)
}

/// The result of `&&` or `||` on constants.
pub const fn logical(operator: LogicalOperator, left: bool, right: bool) -> bool {
    match operator {
        LogicalOperator::And => left && right,
        LogicalOperator::Or => left || right,
    }
}

/// `value as scalar` of an integer or `bool` constant.
pub fn convert(value: Literal, scalar: Scalar) -> Option<Literal> {
    let integer = match value {
        Literal::Bool(value) => i64::from(value),
        value => value.as_integer()?,
    };
    match scalar {
        Scalar::F32 => Some(Literal::F32(integer as f32)),
        scalar => Literal::integer(scalar, integer as u32),
    }
}
