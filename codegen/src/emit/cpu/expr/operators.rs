//! Literals, builtins, operators, functions and conversions of one lane as Rust text.

use super::{Code, Kernel, Printed};
use crate::emit::cpu::types;
use crate::ir::{BinaryOperator, Builtin, Literal, MathFunction, Scalar, UnaryOperator};

/// A constant.
pub(in crate::emit::cpu) fn literal(value: Literal) -> Code {
    match value {
        Literal::Bool(value) => Code::atom(value.to_string()),
        Literal::I32(value) if value < 0 => Code::loose(format!("{value}i32")),
        Literal::I32(value) => Code::atom(format!("{value}i32")),
        Literal::U32(value) | Literal::Index(value) => Code::atom(format!("{value}u32")),
        Literal::I8(value) => number(format!("{value}i8")),
        Literal::U8(value) => Code::atom(format!("{value}u8")),
        Literal::I16(value) => number(format!("{value}i16")),
        Literal::U16(bits) | Literal::F16(bits) | Literal::BF16(bits) => Code::atom(format!("{bits}u16")),
        Literal::F32(value) if !value.is_finite() => Code::atom(format!("f32::from_bits({:#x}u32)", value.to_bits())),
        Literal::F32(value) => number(format!("{value:?}f32")),
        Literal::I64(value) => number(format!("{value}i64")),
        Literal::U64(value) => Code::atom(format!("{value}u64")),
        Literal::F64(value) if !value.is_finite() => Code::atom(format!("f64::from_bits({:#x}u64)", value.to_bits())),
        Literal::F64(value) => number(format!("{value:?}f64")),
        Literal::Generic { value, .. } => number(format!("{:?}f32", value as f32)),
    }
}

/// A number, which a sign makes an operation.
fn number(text: String) -> Code {
    if text.starts_with('-') { Code::loose(text) } else { Code::atom(text) }
}

pub(super) fn builtin(which: Builtin) -> Code {
    match which {
        Builtin::GlobalIndex => Code::atom("global"),
        Builtin::LocalIndex => Code::atom("lane"),
        Builtin::GroupIndex => Code::atom("group"),
        Builtin::GroupCount => Code::atom("group_count"),
        Builtin::GlobalId => Code::atom("global_id"),
        Builtin::LocalId => Code::atom("local_id"),
        Builtin::GroupId => Code::atom("group_id"),
        Builtin::GroupCounts => Code::atom("groups"),
        Builtin::SubgroupSize => Code::atom("p.subgroup_size"),
        Builtin::SubgroupLane => Code::loose("lane % p.subgroup_size".to_owned()),
        Builtin::SubgroupIndex => Code::loose("lane / p.subgroup_size".to_owned()),
    }
}

pub(super) fn unary(operator: UnaryOperator, scalar: Scalar, value: &Code) -> Printed {
    Ok(match (operator, scalar) {
        (UnaryOperator::Negate, Scalar::F32 | Scalar::F64) => Code::loose(format!("-{}", value.operand())),
        (UnaryOperator::Negate, _) => Code::atom(format!("{}.wrapping_neg()", value.operand())),
        (UnaryOperator::Not, _) => Code::loose(format!("!{}", value.operand())),
    })
}

pub(super) fn binary(
    kernel: &Kernel<'_>,
    operator: BinaryOperator,
    scalar: Scalar,
    left: &Code,
    right: &Code,
    divisor: Option<Literal>,
) -> Printed {
    let (l, r) = (left.operand(), right.operand());
    let plain = |sign: &str| Code::loose(format!("{l} {sign} {r}"));
    let float = scalar.is_float();
    // A divisor of 0 or -1 needs care; any other literal does not.
    let careless = divisor.and_then(Literal::as_integer).is_some_and(|d| d != 0 && d != -1);
    Ok(match operator {
        BinaryOperator::Add if float => plain("+"),
        BinaryOperator::Subtract if float => plain("-"),
        BinaryOperator::Multiply if float => plain("*"),
        BinaryOperator::Divide if float || careless => plain("/"),
        BinaryOperator::Remainder if float || careless => plain("%"),
        BinaryOperator::Add => Code::atom(format!("{l}.wrapping_add({})", right.text())),
        BinaryOperator::Subtract => Code::atom(format!("{l}.wrapping_sub({})", right.text())),
        BinaryOperator::Multiply => Code::atom(format!("{l}.wrapping_mul({})", right.text())),
        BinaryOperator::Divide | BinaryOperator::Remainder => {
            let name = match (operator, scalar) {
                (BinaryOperator::Divide, Scalar::I32) => "divide_i32",
                (BinaryOperator::Divide, Scalar::I64) => "divide_i64",
                (BinaryOperator::Divide, Scalar::U64) => "divide_u64",
                (BinaryOperator::Divide, _) => "divide_u32",
                (_, Scalar::I32) => "remainder_i32",
                (_, Scalar::I64) => "remainder_i64",
                (_, Scalar::U64) => "remainder_u64",
                _ => "remainder_u32",
            };
            Code::atom(format!("{}({}, {})", kernel.helper(name), left.text(), right.text()))
        }
        BinaryOperator::And => plain("&"),
        BinaryOperator::Or => plain("|"),
        BinaryOperator::Xor => plain("^"),
        BinaryOperator::ShiftLeft => Code::atom(format!("{l}.wrapping_shl({})", right.text())),
        BinaryOperator::ShiftRight => Code::atom(format!("{l}.wrapping_shr({})", right.text())),
        BinaryOperator::Equal => plain("=="),
        BinaryOperator::NotEqual => plain("!="),
        // `a as u32 < b` would be read as the start of generics.
        BinaryOperator::Less => plain("<"),
        BinaryOperator::LessEqual => plain("<="),
        BinaryOperator::Greater => plain(">"),
        BinaryOperator::GreaterEqual => plain(">="),
    })
}

pub(super) fn math(kernel: &Kernel<'_>, function: MathFunction, scalar: Scalar, operands: &[Code]) -> Printed {
    let x = operands[0].operand();
    let call = |name: &str| {
        let rest: Vec<&str> = operands.iter().skip(1).map(Code::text).collect();
        Code::atom(format!("{x}.{name}({})", rest.join(", ")))
    };
    Ok(match function {
        MathFunction::Abs if scalar.is_signed() => call("wrapping_abs"),
        MathFunction::Abs if scalar.is_float() => call("abs"),
        MathFunction::Abs => operands[0].clone(),
        MathFunction::Min => call("min"),
        MathFunction::Max => call("max"),
        MathFunction::Clamp if scalar.is_integer() => {
            Code::atom(format!("{x}.max({}).min({})", operands[1].text(), operands[2].text()))
        }
        MathFunction::Signum => call("signum"),
        MathFunction::Floor => call("floor"),
        MathFunction::Ceil => call("ceil"),
        MathFunction::RoundTiesEven => call("round_ties_even"),
        MathFunction::Trunc => call("trunc"),
        MathFunction::Sqrt => call("sqrt"),
        MathFunction::InverseSqrt => Code::loose(format!("1f32 / {x}.sqrt()")),
        MathFunction::Exp => call("exp"),
        MathFunction::Exp2 => call("exp2"),
        MathFunction::Ln => call("ln"),
        MathFunction::Log2 => call("log2"),
        MathFunction::Powf => call("powf"),
        MathFunction::Sin => call("sin"),
        MathFunction::Cos => call("cos"),
        MathFunction::Tan => call("tan"),
        MathFunction::Tanh => call("tanh"),
        MathFunction::Atan => call("atan"),
        MathFunction::Atan2 => call("atan2"),
        MathFunction::MulAdd => {
            let texts: Vec<&str> = operands.iter().map(Code::text).collect();
            let name = if scalar == Scalar::F64 { "mul_add_f64" } else { "mul_add" };
            Code::atom(format!("{}::<FMA>({})", kernel.helper(name), texts.join(", ")))
        }
        MathFunction::Dot => return Err(kernel.error("`dot` of scalars")),
        MathFunction::IsNan => call("is_nan"),
        MathFunction::IsInfinite => call("is_infinite"),
        MathFunction::CountOnes => call("count_ones"),
        MathFunction::LeadingZeros => call("leading_zeros"),
        MathFunction::TrailingZeros => call("trailing_zeros"),
        MathFunction::NearestBrain => {
            return Err(kernel.error("a half is rounded after lowering"));
        }
        MathFunction::UnpackHalf => Code::atom(format!("{}({x} as u16)", kernel.helper("half_to_f32"))),
        MathFunction::PackHalf => {
            Code::loose(format!("{}({}) as u32", kernel.helper("f32_to_half"), operands[0].text()))
        }
        MathFunction::ReverseBits => call("reverse_bits"),
        MathFunction::RotateLeft | MathFunction::RotateRight => {
            Code::atom(format!("{x}.{}({} % 32)", function.name(), operands[1].operand()))
        }
        MathFunction::MulHigh => {
            let (wide, narrow) = if scalar == Scalar::I32 { ("i64", "i32") } else { ("u64", "u32") };
            let y = operands[1].operand();
            Code::loose(format!("(({x} as {wide} * {y} as {wide}) >> 32) as {narrow}"))
        }
        other => return Err(kernel.error(format!("lowering has left `{}`", other.name()))),
    })
}

pub(super) fn convert(kernel: &Kernel<'_>, from: Scalar, to: Scalar, value: &Code) -> Code {
    let x = value.operand();
    let as_type = |ty: &str| Code::loose(format!("{x} as {ty}"));
    match (from, to) {
        (Scalar::Bool, Scalar::F32 | Scalar::F64) => Code::loose(format!("{x} as u32 as {}", types::scalar(to))),
        (Scalar::F16, Scalar::F16) | (Scalar::Bool, Scalar::Bool) => value.clone(),
        (Scalar::F16, Scalar::F32) => Code::atom(format!("{}({})", kernel.helper("half_to_f32"), value.text())),
        (Scalar::F32, Scalar::F16) => Code::atom(format!("{}({})", kernel.helper("f32_to_half"), value.text())),
        (Scalar::F16, to) => {
            Code::loose(format!("{}({}) as {}", kernel.helper("half_to_f32"), value.text(), types::scalar(to)))
        }
        (_, Scalar::F16) => Code::atom(format!("{}({x} as f32)", kernel.helper("f32_to_half"))),
        (_, Scalar::Bool) => Code::loose(format!("{x} != {}", types::zero_scalar(from))),
        (_, to) => as_type(types::scalar(to)),
    }
}

/// The unsigned type as wide as a narrow scalar.
const fn unsigned(scalar: Scalar) -> &'static str {
    if scalar.bits() == 8 { "u8" } else { "u16" }
}

/// A scalar's bits as a `u32`, or a `u64` if it is wide.
pub(in crate::emit::cpu) fn to_bits(value: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 | Scalar::F64 => Code::atom(format!("{}.to_bits()", value.operand())),
        Scalar::I64 => Code::loose(format!("{} as u64", value.operand())),
        Scalar::U64 => value.clone(),
        Scalar::I8 | Scalar::I16 => Code::loose(format!("{} as {} as u32", value.operand(), unsigned(scalar))),
        Scalar::I32 | Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
            Code::loose(format!("{} as u32", value.operand()))
        }
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => value.clone(),
    }
}

/// The scalar of those bits.
pub(in crate::emit::cpu) fn bits_to(bits: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 => Code::atom(format!("f32::from_bits({})", bits.text())),
        Scalar::F64 => Code::atom(format!("f64::from_bits({})", bits.text())),
        Scalar::I64 => Code::loose(format!("{} as i64", bits.operand())),
        Scalar::U64 => bits.clone(),
        Scalar::I32 => Code::loose(format!("{} as i32", bits.operand())),
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => {
            Code::loose(format!("{} as {}", bits.operand(), types::scalar(scalar)))
        }
        Scalar::Bool => Code::loose(format!("{} != 0", bits.operand())),
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => bits.clone(),
    }
}
