//! Computing with constants, as the IR's essay says.

use super::arena::Handle;
use super::expression::{BinaryOperator, Expression, ExpressionKind, Literal, LogicalOperator, UnaryOperator};
use super::module::{Function, Module};
use super::types::{Scalar, Type};
use crate::target::Feature;

/// The single that rounds to a 16-bit float as the double itself does: where digits are lost, the last one left is odd, so that no tie arises that is none.
/// (`from_f64` of the crate `half` looks at the upper 32 bits alone.)
pub fn single_of(value: f64) -> f32 {
    let nearest = value as f32;
    if !nearest.is_finite() || f64::from(nearest) == value || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The single on the other side of the double is odd.
    let away = value.abs() > f64::from(nearest).abs();
    f32::from_bits(if away { nearest.to_bits() + 1 } else { nearest.to_bits() - 1 })
}

impl Literal {
    /// An integer of a type from the low bits of a number; `None` if it is no integer type.
    pub const fn integer(scalar: Scalar, bits: u64) -> Option<Self> {
        match scalar {
            Scalar::I32 => Some(Self::I32((bits as u32).cast_signed())),
            Scalar::U32 => Some(Self::U32(bits as u32)),
            Scalar::Index => Some(Self::Index(bits as u32)),
            Scalar::I8 => Some(Self::I8((bits as u8).cast_signed())),
            Scalar::U8 => Some(Self::U8(bits as u8)),
            Scalar::I16 => Some(Self::I16((bits as u16).cast_signed())),
            Scalar::U16 => Some(Self::U16(bits as u16)),
            Scalar::I64 => Some(Self::I64(bits.cast_signed())),
            Scalar::U64 => Some(Self::U64(bits)),
            _ => None,
        }
    }

    /// The integer of a type; `None` if it is no integer type, or has no such value.
    pub fn exact_integer(scalar: Scalar, value: i128) -> Option<Self> {
        Self::integer(scalar, value as u64).filter(|literal| literal.as_integer() == Some(value))
    }

    /// The value of an integer; `None` for others.
    pub const fn as_integer(self) -> Option<i128> {
        match self {
            Self::I32(value) => Some(value as i128),
            Self::U32(value) | Self::Index(value) => Some(value as i128),
            Self::I8(value) => Some(value as i128),
            Self::U8(value) => Some(value as i128),
            Self::I16(value) => Some(value as i128),
            Self::U16(value) => Some(value as i128),
            Self::I64(value) => Some(value as i128),
            Self::U64(value) => Some(value as i128),
            _ => None,
        }
    }

    /// The value of a float, exactly; `None` for others.
    pub fn as_float(self) -> Option<f64> {
        match self {
            Self::F16(bits) => Some(half::f16::from_bits(bits).to_f64()),
            Self::BF16(bits) => Some(half::bf16::from_bits(bits).to_f64()),
            Self::F32(value) => Some(f64::from(value)),
            Self::F64(value) => Some(value),
            _ => None,
        }
    }

    /// The float of a type nearest to `value`; `None` if it is no float type.
    pub fn float(scalar: Scalar, value: f64) -> Option<Self> {
        match scalar {
            Scalar::F16 => Some(Self::F16(half::f16::from_f32(single_of(value)).to_bits())),
            Scalar::BF16 => Some(Self::BF16(half::bf16::from_f32(single_of(value)).to_bits())),
            Scalar::F32 => Some(Self::F32(value as f32)),
            Scalar::F64 => Some(Self::F64(value)),
            _ => None,
        }
    }

    /// Zero bits of a type; `None` for what a literal cannot be.
    pub fn zero(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::Bool => Some(Self::Bool(false)),
            Scalar::Generic(_) => Some(Self::Generic { scalar, value: 0.0 }),
            scalar => Self::integer(scalar, 0).or_else(|| Self::float(scalar, 0.0)),
        }
    }
}

/// The result of an operation on a constant; `None` if it is not one that is computed here.
pub fn unary(operator: UnaryOperator, value: Literal) -> Option<Literal> {
    match (operator, value) {
        (UnaryOperator::Not, Literal::Bool(value)) => Some(Literal::Bool(!value)),
        (UnaryOperator::Not, value) => Literal::integer(value.scalar(), !value.as_integer()? as u64),
        (UnaryOperator::Negate, Literal::F32(value)) => Some(Literal::F32(-value)),
        (UnaryOperator::Negate, Literal::F64(value)) => Some(Literal::F64(-value)),
        (UnaryOperator::Negate, value) if value.scalar().is_signed() => {
            Literal::integer(value.scalar(), value.as_integer()?.wrapping_neg() as u64)
        }
        _ => None,
    }
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
    let amount = b & i128::from(left.scalar().bits() - 1);
    // Both fit 65 bits, so that no operation but a multiplication of large numbers leaves an i128, and that wraps alike.
    let wide = match operator {
        B::Add => a + b,
        B::Subtract => a - b,
        B::Multiply => a.wrapping_mul(b),
        B::Divide => a.checked_div(b).unwrap_or(0),
        B::Remainder => a.checked_rem(b).unwrap_or(0),
        B::And => a & b,
        B::Or => a | b,
        B::Xor => a ^ b,
        B::ShiftLeft => a << amount,
        B::ShiftRight => a >> amount,
        _ => return None,
    };
    Literal::integer(left.scalar(), wide as u64)
}

/// The result of `&&` or `||` on constants.
pub const fn logical(operator: LogicalOperator, left: bool, right: bool) -> bool {
    match operator {
        LogicalOperator::And => left && right,
        LogicalOperator::Or => left || right,
    }
}

/// `value as scalar` of a float: toward zero, saturating; `None` if it is no integer type.
pub fn convert_float(value: f64, scalar: Scalar) -> Option<Literal> {
    if !scalar.is_integer() {
        return None;
    }
    let [least, most] = scalar.limits();
    Literal::exact_integer(scalar, (value as i128).clamp(least, most))
}

/// `value as scalar` of an integer or `bool` constant.
pub fn convert(value: Literal, scalar: Scalar) -> Option<Literal> {
    let integer = match value {
        Literal::Bool(value) => i128::from(value),
        value => value.as_integer()?,
    };
    match scalar {
        // Halves are made of `f32` by the author, and rounded once.
        Scalar::F16 | Scalar::BF16 => None,
        Scalar::F32 => Some(Literal::F32(integer as f32)),
        Scalar::F64 => Some(Literal::F64(integer as f64)),
        scalar => Literal::integer(scalar, integer as u64),
    }
}

/// The value of an expression made of literals, what `has` says of features, and operators alone.
pub fn evaluate(
    module: &Module,
    function: &Function,
    handle: Handle<Expression>,
    has: &dyn Fn(Feature) -> Option<bool>,
) -> Option<Literal> {
    let expression = &function.expressions[handle];
    let of = |handle: Handle<Expression>| evaluate(module, function, handle, has);
    match &expression.kind {
        ExpressionKind::Literal(literal) => Some(*literal),
        ExpressionKind::TargetHas(feature) => has(*feature).map(Literal::Bool),
        ExpressionKind::Unary { operator, value } => unary(*operator, of(*value)?),
        ExpressionKind::Binary { operator, left, right } => binary(*operator, of(*left)?, of(*right)?),
        ExpressionKind::Logical { operator, left, right } => match (of(*left)?, of(*right)?) {
            (Literal::Bool(left), Literal::Bool(right)) => Some(Literal::Bool(logical(*operator, left, right))),
            _ => None,
        },
        ExpressionKind::Convert(value) => match &module.types[expression.ty] {
            Type::Scalar(scalar) => convert(of(*value)?, *scalar),
            _ => None,
        },
        _ => None,
    }
}
