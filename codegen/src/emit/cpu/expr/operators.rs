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
        Literal::F16(bits) => Code::atom(format!("{bits}u16")),
        Literal::F32(value) => float(value),
        Literal::Generic { value, .. } => float(value as f32),
    }
}

fn float(value: f32) -> Code {
    if value.is_finite() {
        let text = format!("{value:?}f32");
        if value.is_sign_negative() { Code::loose(text) } else { Code::atom(text) }
    } else {
        Code::atom(format!("f32::from_bits({:#x}u32)", value.to_bits()))
    }
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
        (UnaryOperator::Negate, Scalar::F32) => Code::loose(format!("-{}", value.operand())),
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
    let float = scalar == Scalar::F32;
    // A divisor of 0 or -1 needs care; any other literal does not.
    let careless = divisor.is_some_and(|d| d.bits() != 0 && d != Literal::I32(-1));
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
                (BinaryOperator::Divide, _) => "divide_u32",
                (_, Scalar::I32) => "remainder_i32",
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
        MathFunction::Abs if scalar == Scalar::I32 => call("wrapping_abs"),
        MathFunction::Abs if scalar == Scalar::F32 => call("abs"),
        MathFunction::Abs => operands[0].clone(),
        MathFunction::Min => call("min"),
        MathFunction::Max => call("max"),
        MathFunction::Clamp => Code::atom(format!("{x}.max({}).min({})", operands[1].text(), operands[2].text())),
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
            Code::atom(format!("{}::<FMA>({})", kernel.helper("mul_add"), texts.join(", ")))
        }
        MathFunction::Dot => return Err(kernel.error("`dot` of scalars")),
        MathFunction::IsNan => call("is_nan"),
        MathFunction::IsInfinite => call("is_infinite"),
        MathFunction::CountOnes => call("count_ones"),
        MathFunction::LeadingZeros => call("leading_zeros"),
        MathFunction::TrailingZeros => call("trailing_zeros"),
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
        (Scalar::Bool, Scalar::F32) => Code::loose(format!("{x} as u32 as f32")),
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

/// A scalar's bits as a `u32`.
pub(in crate::emit::cpu) fn to_bits(value: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 => Code::atom(format!("{}.to_bits()", value.operand())),
        Scalar::I32 | Scalar::Bool | Scalar::F16 => Code::loose(format!("{} as u32", value.operand())),
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => value.clone(),
    }
}

/// The scalar of those bits.
pub(in crate::emit::cpu) fn bits_to(bits: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 => Code::atom(format!("f32::from_bits({})", bits.text())),
        Scalar::I32 => Code::loose(format!("{} as i32", bits.operand())),
        Scalar::F16 => Code::loose(format!("{} as u16", bits.operand())),
        Scalar::Bool => Code::loose(format!("{} != 0", bits.operand())),
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => bits.clone(),
    }
}
