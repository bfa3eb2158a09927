//! Expressions: scalars in CUDA's own words, vectors through overloads that are printed as they are used.

use crate::emit::EmitError;
use crate::emit::text::{Code, Printer, infix, prefix};
use crate::ir::{BinaryOperator, MathFunction, Scalar, Type, UnaryOperator};

use super::Cuda;
use super::precision;
use super::types::{array_prelude, bitcast_prelude, scalar_name, type_name};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Cuda>;

const LANES: [&str; 4] = ["x", "y", "z", "w"];
const OPERANDS: [&str; 3] = ["a", "b", "c"];

/// A function of vectors that is one of scalars lane by lane, as an overload of `name`: `types` are the arguments' (scalars are the
/// same for each lane), `scalar` prints one lane.
pub fn lanewise(
    p: &mut P<'_>,
    name: &str,
    types: &[&Type],
    result: &Type,
    mut scalar: impl FnMut(&mut P<'_>, Vec<Code>) -> Result<Code>,
) -> Result<()> {
    let Type::Vector { lanes, .. } = result else {
        return Err(p.error(format!("`{name}` is no operation on vectors")));
    };
    let result_name = type_name(p, result)?;
    let mut parameters = Vec::new();
    for (ty, operand) in types.iter().zip(OPERANDS) {
        parameters.push(format!("{} {operand}", type_name(p, ty)?));
    }
    let key = format!("{name}({}) {result_name}", parameters.join(", "));
    if p.has_prelude(&key) {
        return Ok(());
    }
    let mut values = Vec::new();
    for lane in LANES.iter().take(usize::from(*lanes)) {
        let operands = types.iter().zip(OPERANDS).map(|(ty, operand)| match ty {
            Type::Vector { .. } => Code::atom(format!("{operand}.{lane}")),
            _ => Code::atom(operand),
        });
        let operands = operands.collect();
        values.push(scalar(p, operands)?.argument());
    }
    p.prelude(&key, || {
        format!(
            "__device__ __forceinline__ {result_name} {name}({}) {{\n    return make_{result_name}({});\n}}\n",
            parameters.join(", "),
            values.join(", ")
        )
    });
    Ok(())
}

/// The scalar of a type's lanes, as a type.
fn lane_type(ty: &Type) -> Type {
    ty.scalar().map_or_else(|| ty.clone(), Type::Scalar)
}

/// What C++ takes a type for: halves are `unsigned short`, and so the text has one function for both.
fn as_told_apart(ty: &Type) -> Type {
    match ty.scalar() {
        Some(Scalar::F16 | Scalar::BF16) => ty.with_scalar(Scalar::U16),
        _ => ty.clone(),
    }
}

/// A vector, array or struct.
pub fn construct(p: &mut P<'_>, ty: &Type, parts: Vec<Code>) -> Result<Code> {
    let name = type_name(p, ty)?;
    Ok(match ty {
        Type::Vector { .. } => Code::call(&format!("make_{name}"), parts),
        _ => Code::atom(format!("{name}{{{}}}", parts.into_iter().map(Code::argument).collect::<Vec<_>>().join(", "))),
    })
}

/// Zero bits.
pub fn zero(p: &mut P<'_>, ty: &Type) -> Result<Code> {
    Ok(match ty {
        Type::Scalar(Scalar::Bool) => Code::atom("false"),
        Type::Scalar(Scalar::I32) => Code::atom("0"),
        Type::Scalar(Scalar::U32 | Scalar::Index) | Type::Enum(_) => Code::atom("0u"),
        Type::Scalar(Scalar::F32) => Code::atom("0.0f"),
        Type::Scalar(Scalar::I64) => Code::atom("0ll"),
        Type::Scalar(Scalar::U64) => Code::atom("0ull"),
        Type::Scalar(Scalar::F64) => Code::atom("0.0"),
        other => Code::atom(format!("{}{{}}", type_name(p, other)?)),
    })
}

/// Equal parts.
pub fn splat(p: &mut P<'_>, ty: &Type, value: Code) -> Result<Code> {
    let name = type_name(p, ty)?;
    match ty {
        Type::Vector { .. } => {
            let part = lane_type(ty);
            let function = format!("splat_{name}");
            lanewise(p, &function, &[&part], ty, |_, mut operands| Ok(operands.remove(0)))?;
            Ok(Code::call(&function, [value]))
        }
        _ => {
            array_prelude(p);
            p.prelude("splat", || {
                "template <typename T, uint N> __device__ __forceinline__ Array<T, N> splat(const T& value) {\n    \
                 Array<T, N> parts;\n    for (uint i = 0u; i < N; i++) {\n        parts[i] = value;\n    }\n    return parts;\n}\n"
                    .to_owned()
            });
            if let Type::Matrix(matrix) = ty {
                return super::matrix::fill(p, matrix, value);
            }
            let part = p.part_type(ty)?;
            let function = format!("splat<{}, {}>", type_name(p, &part)?, p.parts(ty)?);
            Ok(Code::call(&function, [value]))
        }
    }
}

/// `-x`, `!x` and `~x`.
pub fn unary(p: &mut P<'_>, operator: UnaryOperator, ty: &Type, value: Code) -> Result<Code> {
    let sign = match operator {
        UnaryOperator::Negate => "-",
        UnaryOperator::Not if ty.scalar() == Some(Scalar::Bool) => "!",
        UnaryOperator::Not => "~",
    };
    if let Type::Vector { .. } = ty {
        lanewise(p, &format!("operator{sign}"), &[ty], ty, |p, mut operands| {
            unary(p, operator, &lane_type(ty), operands.remove(0))
        })?;
    } else if let (UnaryOperator::Negate, Some(scalar)) = (operator, ty.scalar().filter(|s| s.is_signed())) {
        return wrapping(p, "negate", scalar, vec![value]);
    }
    Ok(prefix(sign, value))
}

/// Signed arithmetic that wraps, which C++ leaves undefined. The negative of a magnitude is hidden from compilers: they would make it the instruction for magnitudes, whose result ptxas 13.0 takes for
/// one that is never negative, so that remainders by it and comparisons with it are wrong where it is the least number. Other negatives are one more than the inverted bits, of which the latter are hidden: of a number that is
/// 0 or 1, ptxas takes the negative for one that is never below 0.
fn wrapping(p: &mut P<'_>, name: &'static str, scalar: Scalar, operands: Vec<Code>) -> Result<Code> {
    let function = format!("wrapping_{name}");
    let (int, uint) = signs(p, scalar)?;
    p.prelude(&format!("{function} {int}"), || {
        let (register, zero, one) = if scalar.is_wide() { ('l', "0ull", "1ull") } else { ('r', "0u", "1u") };
        let (parameters, value) = match name {
            "negate" => (format!("{int} a"), format!("{int}(inverted + {one})")),
            "abs" => (format!("{int} a"), format!("a < 0 ? {int}(negated) : a")),
            "add" => (format!("{int} a, {int} b"), format!("{int}({uint}(a) + {uint}(b))")),
            "subtract" => (format!("{int} a, {int} b"), format!("{int}({uint}(a) - {uint}(b))")),
            _ => (format!("{int} a, {int} b"), format!("{int}({uint}(a) * {uint}(b))")),
        };
        let hidden = match name {
            "abs" => format!("    {uint} negated = {zero} - {uint}(a);\n    asm(\"\" : \"+{register}\"(negated));\n"),
            "negate" => format!("    {uint} inverted = ~{uint}(a);\n    asm(\"\" : \"+{register}\"(inverted));\n"),
            _ => String::new(),
        };
        format!("__device__ __forceinline__ {int} {function}({parameters}) {{\n{hidden}    return {value};\n}}\n")
    });
    Ok(Code::call(&function, operands))
}

/// The names of a signed integer and of the unsigned one as wide.
fn signs(p: &mut P<'_>, scalar: Scalar) -> Result<(String, String)> {
    let unsigned = if scalar.is_wide() { Scalar::U64 } else { Scalar::U32 };
    Ok((type_name(p, &Type::Scalar(scalar))?, type_name(p, &Type::Scalar(unsigned))?))
}

/// Binary operators.
pub fn binary(p: &mut P<'_>, operator: BinaryOperator, ty: &Type, left: Code, right: Code) -> Result<Code> {
    if let Some(name) = precision::binary(p.precision, operator, ty.scalar()) {
        return precise(p, name, ty, vec![left, right]);
    }
    let plain = infix(operator, left.clone(), right.clone());
    if let Type::Vector { .. } = ty {
        let lane = lane_type(ty);
        let shift = matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight);
        let right_type = if shift { ty.with_scalar(Scalar::U32) } else { ty.clone() };
        let result = if operator.is_comparison() { ty.with_scalar(Scalar::Bool) } else { ty.clone() };
        // Between two atoms stands the operator with a space on either side.
        let sign = infix(operator, Code::atom(""), Code::atom("")).text.trim().to_owned();
        lanewise(p, &format!("operator{sign}"), &[ty, &right_type], &result, |p, mut operands| {
            let right = operands.pop().unwrap_or_else(|| Code::atom(""));
            let left = operands.pop().unwrap_or_else(|| Code::atom(""));
            binary(p, operator, &lane, left, right)
        })?;
        return Ok(plain);
    }
    Ok(match (ty.scalar(), operator) {
        (Some(Scalar::F32), BinaryOperator::Remainder) => Code::call("fmodf", [left, right]),
        (Some(Scalar::F64), BinaryOperator::Remainder) => Code::call("fmod", [left, right]),
        (Some(scalar), BinaryOperator::Add) if scalar.is_signed() => wrapping(p, "add", scalar, vec![left, right])?,
        (Some(scalar), BinaryOperator::Subtract) if scalar.is_signed() => {
            wrapping(p, "subtract", scalar, vec![left, right])?
        }
        (Some(scalar), BinaryOperator::Multiply) if scalar.is_signed() => {
            wrapping(p, "multiply", scalar, vec![left, right])?
        }
        (Some(scalar), BinaryOperator::ShiftLeft) if scalar.is_signed() => {
            let (int, uint) = signs(p, scalar)?;
            p.prelude(&format!("shift_left {int}"), || {
                format!(
                    "__device__ __forceinline__ {int} shift_left({int} a, uint n) {{\n    return {int}({uint}(a) << n);\n}}\n"
                )
            });
            Code::call("shift_left", [left, right])
        }
        (Some(Scalar::Bool), BinaryOperator::Xor) => infix(BinaryOperator::NotEqual, left, right),
        _ => plain,
    })
}

/// A call of a function that is more or less precise than what C writes, of vectors lane by lane.
fn precise(p: &mut P<'_>, name: &'static str, ty: &Type, operands: Vec<Code>) -> Result<Code> {
    precision::prelude(p, name);
    if let Type::Vector { .. } = ty {
        let overload = precision::overload(p.precision, name);
        let types = vec![ty; operands.len()];
        lanewise(p, &overload, &types, ty, |_, lanes| Ok(Code::call(name, lanes)))?;
        return Ok(Code::call(&overload, operands));
    }
    Ok(Code::call(name, operands))
}

/// Functions of the library.
pub fn math(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
    if function == MathFunction::Dot {
        return dot(p, ty, arguments);
    }
    let scalar = ty.scalar().ok_or_else(|| p.error(format!("`{}` of something that is no number", function.name())))?;
    let float = scalar.is_float();
    let signed = scalar == Scalar::I32;
    if let Some(name) = precision::math(p.precision, function, scalar) {
        return precise(p, name, ty, arguments);
    }
    if let Type::Vector { .. } = ty {
        let name = function.name().replace(' ', "_");
        // The overload has the scalar's name where that is a plain function, so that the text reads alike.
        let name = plain_name(function, scalar).map_or(name, str::to_owned);
        let types = vec![ty; arguments.len()];
        let result = function.gives().of(ty);
        let lane = lane_type(ty);
        lanewise(p, &name, &types, &result, |p, operands| math(p, function, &lane, operands))?;
        return Ok(Code::call(&name, arguments));
    }
    if let Some(name) = plain_name(function, scalar) {
        return Ok(Code::call(name, arguments));
    }
    let operand = |index: usize| arguments.get(index).cloned().unwrap_or_else(|| Code::atom(""));
    Ok(match function {
        MathFunction::Abs => wrapping(p, "abs", scalar, arguments)?,
        MathFunction::Clamp if !float => Code::call("min", [Code::call("max", [operand(0), operand(1)]), operand(2)]),
        MathFunction::Signum if float => {
            helper(p, "signum", "float signum(float x)", "x != x ? x : copysignf(1.0f, x)", arguments)
        }
        MathFunction::Signum => {
            let int = type_name(p, ty)?;
            helper(p, "signum", &format!("{int} signum({int} x)"), &format!("{int}(x > 0) - {int}(x < 0)"), arguments)
        }
        MathFunction::IsNan if scalar == Scalar::F64 => {
            bitcast_prelude(p);
            let word = type_name(p, &Type::Scalar(Scalar::U64))?;
            let body = format!("(bitcast<{word}>(x) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull");
            helper(p, "is_nan", "bool is_nan(double x)", &body, arguments)
        }
        MathFunction::IsInfinite if scalar == Scalar::F64 => {
            bitcast_prelude(p);
            let word = type_name(p, &Type::Scalar(Scalar::U64))?;
            let body = format!("(bitcast<{word}>(x) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull");
            helper(p, "is_infinite", "bool is_infinite(double x)", &body, arguments)
        }
        MathFunction::IsNan => {
            bitcast_prelude(p);
            let body = "(bitcast<uint>(x) & 0x7fffffffu) > 0x7f800000u";
            helper(p, "is_nan", "bool is_nan(float x)", body, arguments)
        }
        MathFunction::IsInfinite => {
            bitcast_prelude(p);
            let body = "(bitcast<uint>(x) & 0x7fffffffu) == 0x7f800000u";
            helper(p, "is_infinite", "bool is_infinite(float x)", body, arguments)
        }
        MathFunction::CountOnes => helper(p, "count_ones", "uint count_ones(uint x)", "uint(__popc(x))", arguments),
        MathFunction::LeadingZeros => {
            helper(p, "leading_zeros", "uint leading_zeros(uint x)", "uint(__clz(int(x)))", arguments)
        }
        MathFunction::TrailingZeros => {
            let body = "x == 0u ? 32u : uint(__ffs(int(x)) - 1)";
            helper(p, "trailing_zeros", "uint trailing_zeros(uint x)", body, arguments)
        }
        MathFunction::UnpackHalf => {
            half_prelude(p, "to_float");
            Code::call("to_float", [Code::call("half", arguments)])
        }
        MathFunction::PackHalf => {
            half_prelude(p, "to_half");
            Code::call("uint", [Code::call("to_half", arguments)])
        }
        MathFunction::NearestBrain => {
            bitcast_prelude(p);
            p.prelude("nearest_brain", || {
                "// One instruction where there is one, and by the bits elsewhere.\n\
                 __device__ __forceinline__ float nearest_brain(float x) {\n\
                 #if __CUDA_ARCH__ >= 800\n    \
                 unsigned short upper;\n    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(upper) : \"f\"(x));\n    \
                 return bitcast<float>(uint(upper) << 16u);\n\
                 #else\n    \
                 const uint bits = bitcast<uint>(x);\n    \
                 const uint kept = x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16u & 1u);\n    \
                 return bitcast<float>(kept & 0xffff0000u);\n\
                 #endif\n}\n"
                    .to_owned()
            });
            Code::call("nearest_brain", arguments)
        }
        MathFunction::ReverseBits if signed => {
            helper(p, "reverse_bits", "int reverse_bits(int x)", "int(__brev(uint(x)))", arguments)
        }
        MathFunction::ReverseBits => Code::call("__brev", arguments),
        MathFunction::MulHigh => Code::call(if signed { "__mulhi" } else { "__umulhi" }, arguments),
        MathFunction::Dot4I8 | MathFunction::Dot4U8 => {
            let name = function.name();
            p.prelude(name, || {
                let (part, sum) = if function == MathFunction::Dot4I8 { ("s32", "int") } else { ("u32", "uint") };
                format!(
                    "__device__ __forceinline__ {sum} {name}(uint a, uint b, {sum} c) {{\n    {sum} d;\n    \
                     asm(\"dp4a.{part}.{part} %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c));\n    \
                     return d;\n}}\n"
                )
            });
            Code::call(name, arguments)
        }
        other => return Err(p.error(format!("CUDA C has no `{}` for this type", other.name()))),
    })
}

/// A function of one line, printed once.
fn helper(p: &mut P<'_>, name: &str, signature: &str, body: &str, arguments: Vec<Code>) -> Code {
    p.prelude(signature, || format!("__device__ __forceinline__ {signature} {{\n    return {body};\n}}\n"));
    Code::call(name, arguments)
}

/// The function of CUDA that is exactly the IR's, for scalars.
const fn plain_name(function: MathFunction, scalar: Scalar) -> Option<&'static str> {
    let float = matches!(scalar, Scalar::F32);
    if matches!(scalar, Scalar::F64) {
        return Some(match function {
            MathFunction::Abs => "fabs",
            MathFunction::Min => "fmin",
            MathFunction::Max => "fmax",
            MathFunction::Floor => "floor",
            MathFunction::Ceil => "ceil",
            MathFunction::RoundTiesEven => "rint",
            MathFunction::Trunc => "trunc",
            MathFunction::Sqrt => "sqrt",
            MathFunction::MulAdd => "fma",
            MathFunction::Exp => "exp",
            MathFunction::Exp2 => "exp2",
            MathFunction::ExpM1 => "expm1",
            MathFunction::Ln => "log",
            MathFunction::Log2 => "log2",
            MathFunction::Log10 => "log10",
            MathFunction::Ln1p => "log1p",
            MathFunction::Sinh => "sinh",
            MathFunction::Cosh => "cosh",
            MathFunction::Tanh => "tanh",
            MathFunction::Asinh => "asinh",
            MathFunction::Acosh => "acosh",
            MathFunction::Atanh => "atanh",
            MathFunction::Powf => "pow",
            MathFunction::Sin => "sin",
            MathFunction::Cos => "cos",
            MathFunction::Tan => "tan",
            MathFunction::Asin => "asin",
            MathFunction::Acos => "acos",
            MathFunction::Atan => "atan",
            MathFunction::Atan2 => "atan2",
            MathFunction::Erf => "erf",
            _ => return None,
        });
    }
    Some(match function {
        MathFunction::Abs if float => "fabsf",
        MathFunction::Min if float => "fminf",
        MathFunction::Max if float => "fmaxf",
        MathFunction::Min => "min",
        MathFunction::Max => "max",
        MathFunction::Floor => "floorf",
        MathFunction::Ceil => "ceilf",
        MathFunction::RoundTiesEven => "rintf",
        MathFunction::Trunc => "truncf",
        MathFunction::Sqrt => "sqrtf",
        MathFunction::InverseSqrt => "rsqrtf",
        MathFunction::Ln => "logf",
        MathFunction::Log2 => "log2f",
        MathFunction::Powf => "powf",
        MathFunction::Sin => "sinf",
        MathFunction::Cos => "cosf",
        MathFunction::Tan => "tanf",
        MathFunction::Tanh => "tanhf",
        MathFunction::Atan => "atanf",
        MathFunction::Atan2 => "atan2f",
        MathFunction::MulAdd => "fmaf",
        MathFunction::Round => "roundf",
        MathFunction::Copysign => "copysignf",
        MathFunction::Asin => "asinf",
        MathFunction::Acos => "acosf",
        MathFunction::Sinh => "sinhf",
        MathFunction::Cosh => "coshf",
        MathFunction::Asinh => "asinhf",
        MathFunction::Acosh => "acoshf",
        MathFunction::Atanh => "atanhf",
        MathFunction::ExpM1 => "expm1f",
        MathFunction::Ln1p => "log1pf",
        MathFunction::Log10 => "log10f",
        MathFunction::Cbrt => "cbrtf",
        MathFunction::Hypot => "hypotf",
        _ => return None,
    })
}

/// The scalar product.
fn dot(p: &mut P<'_>, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
    let Type::Vector { lanes, scalar } = ty else {
        return Err(p.error("a scalar product of something that is no vector"));
    };
    let (vector, part, lane) = (type_name(p, ty)?, scalar_name(*scalar), Type::Scalar(*scalar));
    let mut sum: Option<Code> = None;
    for name in LANES.iter().take(usize::from(*lanes)) {
        let (a, b) = (Code::atom(format!("a.{name}")), Code::atom(format!("b.{name}")));
        let product = binary(p, BinaryOperator::Multiply, &lane, a, b)?;
        sum = Some(match sum {
            Some(sum) => binary(p, BinaryOperator::Add, &lane, sum, product)?,
            None => product,
        });
    }
    let body = sum.map_or_else(String::new, |sum| sum.text);
    let name = p.precision.suffixed("dot");
    Ok(helper(p, &name, &format!("{part} {name}({vector} a, {vector} b)"), &body, arguments))
}

/// One of two values; for vectors of conditions lane by lane.
pub fn select(
    p: &mut P<'_>,
    ty: &Type,
    condition_type: &Type,
    condition: Code,
    accept: Code,
    reject: Code,
) -> Result<Code> {
    if let Type::Vector { .. } = condition_type {
        let ty = &as_told_apart(ty);
        lanewise(p, "choose", &[condition_type, ty, ty], ty, |_, mut operands| {
            let reject = operands.pop().unwrap_or_else(|| Code::atom(""));
            let accept = operands.pop().unwrap_or_else(|| Code::atom(""));
            let condition = operands.pop().unwrap_or_else(|| Code::atom(""));
            Ok(Printer::<Cuda>::conditional(condition, accept, reject))
        })?;
        return Ok(Code::call("choose", [condition, accept, reject]));
    }
    Ok(Printer::<Cuda>::conditional(condition, accept, reject))
}

/// A conversion, lane by lane.
pub fn convert(p: &mut P<'_>, from: &Type, to: &Type, value: Code) -> Result<Code> {
    if let (Type::Matrix(_), Type::Matrix(matrix)) = (from, to) {
        return super::matrix::convert(p, matrix, value);
    }
    let (Some(source), Some(target)) = (from.scalar(), to.scalar()) else {
        return Err(p.error("a conversion of something that is no number"));
    };
    if let Type::Vector { .. } = to {
        let function = format!("to_{}", type_name(p, to)?);
        let lane = (lane_type(from), lane_type(to));
        lanewise(p, &function, &[from], to, |p, mut operands| convert(p, &lane.0, &lane.1, operands.remove(0)))?;
        return Ok(Code::call(&function, [value]));
    }
    Ok(match (source, target) {
        // The plain casts are undefined where the value does not fit; these saturate, and give 0 for NaN.
        (Scalar::F32, Scalar::I32) => Code::call("__float2int_rz", [value]),
        (Scalar::F32, Scalar::U32 | Scalar::Index) => Code::call("__float2uint_rz", [value]),
        (Scalar::F16, Scalar::F32) => {
            half_prelude(p, "to_float");
            Code::call("to_float", [value])
        }
        (Scalar::F32, Scalar::F16) => {
            half_prelude(p, "to_half");
            Code::call("to_half", [value])
        }
        (Scalar::F16, _) => {
            let float = convert(p, from, &Type::Scalar(Scalar::F32), value)?;
            convert(p, &Type::Scalar(Scalar::F32), to, float)?
        }
        (_, Scalar::F16) => {
            let float = convert(p, from, &Type::Scalar(Scalar::F32), value)?;
            convert(p, &Type::Scalar(Scalar::F32), to, float)?
        }
        _ => Code::call(&type_name(p, to)?, [value]),
    })
}

/// Conversions between halves and floats, in PTX because no header is included.
pub fn half_prelude(p: &mut P<'_>, name: &'static str) {
    p.prelude("half", || "typedef unsigned short half;\n".to_owned());
    p.prelude(name, || {
        if name == "to_float" {
            "__device__ __forceinline__ float to_float(half x) {\n    float y;\n    \
             asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n    return y;\n}\n"
        } else {
            "__device__ __forceinline__ half to_half(float x) {\n    half y;\n    \
             asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n    return y;\n}\n"
        }
        .to_owned()
    });
}

/// The same bits.
pub fn bitcast(p: &mut P<'_>, to: &Type, value: Code) -> Result<Code> {
    bitcast_prelude(p);
    Ok(Code::call(&format!("bitcast<{}>", type_name(p, to)?), [value]))
}

/// A part of a value at an index that may be out of range.
pub fn part(p: &mut P<'_>, ty: &Type, base: Code, index: Code) -> Result<Code> {
    if let Type::Vector { .. } = ty {
        return lane_read(p, ty, base, index);
    }
    array_at(p);
    Ok(Code::call("array_at", [base, index]))
}

/// Reads an array within its length.
pub fn array_at(p: &mut P<'_>) {
    array_prelude(p);
    p.prelude("array_at", || {
        "template <typename T, uint N> __device__ __forceinline__ T array_at(const Array<T, N>& parts, uint i) {\n    \
         return i < N ? parts[i] : T{};\n}\n"
            .to_owned()
    });
}

/// Reads a lane by number; registers have no addresses, so it is a choice.
pub fn lane_read(p: &mut P<'_>, ty: &Type, base: Code, index: Code) -> Result<Code> {
    let ty = as_told_apart(ty);
    let Type::Vector { lanes, scalar } = &ty else {
        return Err(p.error("a lane is taken of something that is no vector"));
    };
    let vector = type_name(p, &ty)?;
    let zero = zero(p, &Type::Scalar(*scalar))?.text;
    let choice: String = LANES
        .iter()
        .take(usize::from(*lanes))
        .enumerate()
        .map(|(lane, name)| format!("i == {lane}u ? v.{name} : "))
        .collect();
    let signature = format!("{} lane(const {vector}& v, uint i)", scalar_name(*scalar));
    Ok(helper(p, "lane", &signature, &format!("{choice}{zero}"), vec![base, index]))
}

/// Makes sure that lanes can be written by number.
pub fn lane_write(p: &mut P<'_>, ty: &Type) -> Result<()> {
    let ty = as_told_apart(ty);
    let Type::Vector { lanes, scalar } = &ty else {
        return Err(p.error("a lane is written of something that is no vector"));
    };
    let (vector, part) = (type_name(p, &ty)?, scalar_name(*scalar));
    let lines: String = LANES
        .iter()
        .take(usize::from(*lanes))
        .enumerate()
        .map(|(lane, name)| format!("    if (i == {lane}u) {{\n        v.{name} = value;\n    }}\n"))
        .collect();
    p.prelude(&format!("set_lane {vector}"), || {
        format!("__device__ __forceinline__ void set_lane({vector}& v, uint i, {part} value) {{\n{lines}}}\n")
    });
    Ok(())
}

/// Other lanes of a vector.
pub fn swizzle(p: &mut P<'_>, from: &Type, to: &Type, base: Code, lanes: &[u8]) -> Result<Code> {
    let names: Vec<&str> = lanes.iter().filter_map(|lane| LANES.get(usize::from(*lane))).copied().collect();
    let (vector, result) = (type_name(p, &as_told_apart(from))?, type_name(p, &as_told_apart(to))?);
    let function = format!("swizzle_{}", names.concat());
    let parts: Vec<String> = names.iter().map(|name| format!("v.{name}")).collect();
    let body = format!("make_{result}({})", parts.join(", "));
    Ok(helper(p, &function, &format!("{result} {function}(const {vector}& v)"), &body, vec![base]))
}
