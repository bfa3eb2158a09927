//! Expressions: where WGSL's words and forms are its own.

use crate::artefact::ParamField;
use crate::emit::EmitError;
use crate::emit::text::{Code, Printer, Writer, infix, prefix, word_value};
use crate::ir::{BinaryOperator, Literal, MathFunction, Precision, Scalar, Type, UnaryOperator};
use crate::target::Feature;

use super::Wgsl;
use super::types::{self, type_name};

type Result<T> = std::result::Result<T, EmitError>;
type P<'a> = Printer<'a, Wgsl>;

const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// A constructor call.
pub fn construct(p: &mut P<'_>, ty: &Type, parts: Vec<Code>) -> Result<Code> {
    Ok(Code::call(&type_name(p, ty)?, parts))
}

/// Zero bits.
pub fn zero(p: &mut P<'_>, ty: &Type) -> Result<Code> {
    Ok(match ty {
        Type::Scalar(Scalar::Bool) => Code::atom("false"),
        Type::Scalar(Scalar::I32) => Code::atom("0i"),
        Type::Scalar(Scalar::U32 | Scalar::Index) | Type::Enum(_) => Code::atom("0u"),
        Type::Scalar(Scalar::F32) => Code::atom("0.0f"),
        Type::Scalar(Scalar::F16) => Code::atom("0.0h"),
        Type::Scalar(Scalar::I64) => Code::atom("0li"),
        Type::Scalar(Scalar::U64) => Code::atom("0lu"),
        Type::Scalar(Scalar::F64) => Code::atom("0.0lf"),
        other => Code::atom(format!("{}()", type_name(p, other)?)),
    })
}

/// Equal parts.
pub fn splat(p: &mut P<'_>, ty: &Type, value: Code) -> Result<Code> {
    let Type::Array { .. } = ty else {
        return construct(p, ty, vec![value]);
    };
    let (count, part, name) = (p.parts(ty)?, p.part_type(ty)?, type_name(p, ty)?);
    let (part, tag) = (type_name(p, &part)?, p.type_tag(ty)?);
    let helper = p.helper(&format!("splat {name}"), &format!("{tag}_splat"), |_, helper| {
        let mut out = Writer::default();
        out.open(format!("fn {helper}(value: {part}) -> {name} {{"));
        if count <= 32 {
            out.line(format!("return {name}({});", vec!["value"; count as usize].join(", ")));
        } else {
            out.line(format!("var parts: {name};"));
            out.open(format!("for (var i = 0u; i < {count}u; i++) {{"));
            out.line("parts[i] = value;");
            out.close("}");
            out.line("return parts;");
        }
        out.close("}");
        Ok(out.finish())
    })?;
    Ok(Code::call(&helper, [value]))
}

/// `-x`, `!x` and `~x`.
pub fn unary(operator: UnaryOperator, ty: &Type, value: Code) -> Code {
    match operator {
        UnaryOperator::Negate => prefix("-", value),
        UnaryOperator::Not if ty.scalar() == Some(Scalar::Bool) => prefix("!", value),
        UnaryOperator::Not => prefix("~", value),
    }
}

/// Infix operators; bools have no `^`. Of two floats, one of them NaN, naga's SPIR-V says that `!=` is false; it is right about `==`.
pub fn binary(
    p: &mut P<'_>,
    operator: BinaryOperator,
    ty: &Type,
    left: Code,
    right: Code,
    is_same: bool,
) -> Result<Code> {
    use BinaryOperator::{Divide, Remainder, Subtract};
    if is_same
        && matches!(operator, Divide | Remainder | Subtract)
        && ty.scalar().is_some_and(Scalar::is_float)
        && p.precision != Precision::Fast
    {
        return with_itself(p, operator, ty, left);
    }
    if operator == Remainder && ty.scalar().is_some_and(Scalar::is_float) && p.precision != Precision::Fast {
        return remainder(p, ty, left, right);
    }
    Ok(match operator {
        BinaryOperator::Xor if ty.scalar() == Some(Scalar::Bool) => infix(BinaryOperator::NotEqual, left, right),
        BinaryOperator::NotEqual if ty.scalar().is_some_and(Scalar::is_float) => {
            prefix("!", infix(BinaryOperator::Equal, left, right))
        }
        _ => infix(operator, left, right),
    })
}

/// `x / x`, `x % x` and `x - x`: WGSL's compilers may take it that there are neither infinities nor NaNs, and then make 1 or 0 of them whatever x is.
fn with_itself(p: &mut P<'_>, operator: BinaryOperator, ty: &Type, x: Code) -> Result<Code> {
    let (float, tag) = (type_name(p, ty)?, p.type_tag(ty)?);
    let doubles = ty.scalar() == Some(Scalar::F64);
    let word = type_name(p, &ty.with_scalar(Scalar::U32))?;
    let number = |value: f64| if doubles { Literal::F64(value) } else { Literal::F32(value as f32) };
    let [nan, zero, one] = [f64::NAN, 0.0, 1.0].map(|value| types::literal(p, number(value), false));
    let (nan, zero, one) = (nan?.text, zero?.text, one?.text);
    let (is_finite, is_zero) = (is_finite(&float, &word, doubles, "x"), is_zero(&float, &word, doubles, "x"));
    // A remainder has the sign of its left side.
    let signed = format!("bitcast<{float}>(bitcast<{word}>(x) & {word}(0x80000000u))");
    let (function, usual) = match operator {
        BinaryOperator::Divide => ("over_itself", format!("{float}({one})")),
        BinaryOperator::Remainder if !doubles => ("rest_by_itself", signed),
        BinaryOperator::Remainder => ("rest_by_itself", format!("{float}({zero})")),
        _ => ("less_itself", format!("{float}({zero})")),
    };
    let is_usual = match operator {
        BinaryOperator::Subtract => is_finite,
        _ => format!("{is_finite} & !{is_zero}"),
    };
    let helper = p.helper(&format!("{function} {tag}"), &format!("{function}_{tag}"), |_, name| {
        Ok(format!(
            "fn {name}(x: {float}) -> {float} {{\n    return select({float}({nan}), {usual}, {is_usual});\n}}\n"
        ))
    })?;
    Ok(Code::call(&helper, [x]))
}

/// `x % y`: NaN where x is endless or y is 0, by their bits, since compilers take 0 for the remainder of two values that they find to be equal.
fn remainder(p: &mut P<'_>, ty: &Type, x: Code, y: Code) -> Result<Code> {
    let (float, tag) = (type_name(p, ty)?, p.type_tag(ty)?);
    let doubles = ty.scalar() == Some(Scalar::F64);
    let word = type_name(p, &ty.with_scalar(Scalar::U32))?;
    let nan = if doubles { Literal::F64(f64::NAN) } else { Literal::F32(f32::NAN) };
    let nan = types::literal(p, nan, false)?.text;
    let is_usual = format!("{} & !{}", is_finite(&float, &word, doubles, "x"), is_zero(&float, &word, doubles, "y"));
    let helper = p.helper(&format!("rest_of {tag}"), &format!("rest_of_{tag}"), |_, name| {
        Ok(format!(
            "fn {name}(x: {float}, y: {float}) -> {float} {{\n    return select({float}({nan}), x % y, {is_usual});\n}}\n"
        ))
    })?;
    Ok(Code::call(&helper, [x, y]))
}

/// That a variable is neither infinite nor NaN: a float's bits tell, and of a double its size, since its bits are an integer that a device may not have.
fn is_finite(float: &str, word: &str, doubles: bool, x: &str) -> String {
    match doubles {
        true => format!("(abs({x}) <= {float}({:?}lf))", f64::MAX),
        false => format!("((bitcast<{word}>({x}) & {word}(0x7fffffffu)) < {word}(0x7f800000u))"),
    }
}

/// That a variable is 0 of either sign.
fn is_zero(float: &str, word: &str, doubles: bool, x: &str) -> String {
    match doubles {
        true => format!("({x} == {float}(0.0lf))"),
        false => format!("((bitcast<{word}>({x}) & {word}(0x7fffffffu)) == {word}())"),
    }
}

/// Functions of the library.
pub fn math(p: &mut P<'_>, function: MathFunction, ty: &Type, mut arguments: Vec<Code>) -> Result<Code> {
    let name = match function {
        MathFunction::Abs => "abs",
        MathFunction::Min => "min",
        MathFunction::Max => "max",
        // The language's own wants its ends in order, and refuses constant ones that are not.
        MathFunction::Clamp => {
            let [x, low, high] = <[Code; 3]>::try_from(arguments).map_err(|_| p.error("`clamp` takes three values"))?;
            return Ok(Code::call("min", [Code::call("max", [x, low]), high]));
        }
        MathFunction::Signum if ty.scalar() == Some(Scalar::F32) => return bits(p, function, ty, arguments),
        MathFunction::Signum => "sign",
        MathFunction::Floor => "floor",
        MathFunction::Ceil => "ceil",
        MathFunction::RoundTiesEven => "round",
        MathFunction::Trunc => "trunc",
        MathFunction::Sqrt => "sqrt",
        MathFunction::InverseSqrt => "inverseSqrt",
        MathFunction::Exp => "exp",
        MathFunction::Exp2 => "exp2",
        MathFunction::Ln => "log",
        MathFunction::Log2 => "log2",
        MathFunction::Powf => "pow",
        MathFunction::Sin => "sin",
        MathFunction::Cos => "cos",
        MathFunction::Tan => "tan",
        MathFunction::Tanh => "tanh",
        MathFunction::Atan => "atan",
        MathFunction::Atan2 => "atan2",
        MathFunction::MulAdd => "fma",
        MathFunction::Dot => "dot",
        MathFunction::IsNan | MathFunction::IsInfinite if ty.scalar() == Some(Scalar::F64) => {
            return double_class(p, function, ty, arguments);
        }
        MathFunction::IsNan | MathFunction::IsInfinite => return bits(p, function, ty, arguments),
        MathFunction::CountOnes | MathFunction::LeadingZeros | MathFunction::TrailingZeros => {
            let name = match function {
                MathFunction::CountOnes => "countOneBits",
                MathFunction::LeadingZeros => "countLeadingZeros",
                _ => "countTrailingZeros",
            };
            let count = Code::call(name, arguments);
            // WGSL gives the argument's type, the IR always `u32`.
            return if ty.scalar() == Some(Scalar::I32) {
                construct(p, &ty.with_scalar(Scalar::U32), vec![count])
            } else {
                Ok(count)
            };
        }
        MathFunction::UnpackHalf if ty.lanes() == Some(1) => {
            return Ok(Code::call("unpack2x16float", arguments).member("x"));
        }
        MathFunction::PackHalf if ty.lanes() == Some(1) => {
            arguments.push(Code::atom("0.0f"));
            return Ok(Code::call("pack2x16float", [Code::call("vec2<f32>", arguments)]));
        }
        MathFunction::UnpackHalf | MathFunction::PackHalf => return halves(p, function, ty, arguments),
        MathFunction::ReverseBits => "reverseBits",
        MathFunction::Dot4I8 | MathFunction::Dot4U8 => {
            let name = function.name();
            // In a function, so that a sum of constants that wraps is no error.
            p.prelude(name, || {
                let (native, sum) =
                    if function == MathFunction::Dot4I8 { ("dot4I8Packed", "i32") } else { ("dot4U8Packed", "u32") };
                format!("fn {name}(a: u32, b: u32, c: {sum}) -> {sum} {{\n    return {native}(a, b) + c;\n}}\n")
            });
            name
        }
        other => return Err(p.error(format!("lowering has left `{}`", other.name()))),
    };
    Ok(Code::call(name, arguments))
}

/// Functions that look at a float's bits.
fn bits(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
    let float = type_name(p, ty)?;
    let word = type_name(p, &ty.with_scalar(Scalar::U32))?;
    let result =
        type_name(p, &ty.with_scalar(if function == MathFunction::Signum { Scalar::F32 } else { Scalar::Bool }))?;
    let tag = p.type_tag(ty)?;
    let wanted = if tag == "f32" { function.name().to_owned() } else { format!("{}_{tag}", function.name()) };
    let helper = p.helper(&format!("{} {tag}", function.name()), &wanted, |_, name| {
        let magnitude = format!("(bitcast<{word}>(x) & {word}(0x7fffffffu))");
        let body = match function {
            MathFunction::IsNan => format!("{magnitude} > {word}(0x7f800000u)"),
            MathFunction::IsInfinite => format!("{magnitude} == {word}(0x7f800000u)"),
            _ => format!(
                "select(bitcast<{float}>((bitcast<{word}>(x) & {word}(0x80000000u)) | {word}(0x3f800000u)), x, \
                 {magnitude} > {word}(0x7f800000u))"
            ),
        };
        Ok(format!("fn {name}(x: {float}) -> {result} {{\n    return {body};\n}}\n"))
    })?;
    Ok(Code::call(&helper, arguments))
}

/// Whether an `f64` is of a class: by its bits where there are integers for them, else by comparisons, of which compilers may take it that there are neither infinities nor NaNs.
fn double_class(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
    let (double, tag) = (type_name(p, ty)?, p.type_tag(ty)?);
    let result = type_name(p, &ty.with_scalar(Scalar::Bool))?;
    let has_words = p.lowered.profile.features.has(Feature::Int64);
    let word = has_words.then(|| type_name(p, &ty.with_scalar(Scalar::U64))).transpose()?;
    let helper =
        p.helper(&format!("{} {tag}", function.name()), &format!("{}_{tag}", function.name()), |_, name| {
            let body = match (function, &word) {
                (_, Some(word)) => {
                    let relation = if function == MathFunction::IsNan { ">" } else { "==" };
                    let magnitude = format!("(bitcast<{word}>(x) & {word}(0x7ffffffffffffffflu))");
                    format!("{magnitude} {relation} {word}(0x7ff0000000000000lu)")
                }
                (MathFunction::IsNan, None) => "!(x == x)".to_owned(),
                (_, None) => format!("abs(x) > {double}({:?}lf)", f64::MAX),
            };
            Ok(format!("fn {name}(x: {double}) -> {result} {{\n    return {body};\n}}\n"))
        })?;
    Ok(Code::call(&helper, arguments))
}

/// Halves of a vector, packed or unpacked lane by lane: the builtin functions take two at most.
fn halves(p: &mut P<'_>, function: MathFunction, ty: &Type, arguments: Vec<Code>) -> Result<Code> {
    let unpacks = function == MathFunction::UnpackHalf;
    let result = ty.with_scalar(if unpacks { Scalar::F32 } else { Scalar::U32 });
    let (from, to, tag) = (type_name(p, ty)?, type_name(p, &result)?, p.type_tag(ty)?);
    let lanes = usize::from(ty.lanes().unwrap_or(1));
    let wanted = format!("{}_{tag}", function.name().replace(' ', "_"));
    let helper = p.helper(&format!("{} {tag}", function.name()), &wanted, |_, name| {
        let parts: Vec<_> = ["x", "y", "z", "w"][..lanes.min(4)]
            .iter()
            .map(|lane| match unpacks {
                true => format!("unpack2x16float(h.{lane}).x"),
                false => format!("pack2x16float(vec2<f32>(h.{lane}, 0.0f))"),
            })
            .collect();
        Ok(format!("fn {name}(h: {from}) -> {to} {{\n    return {to}({});\n}}\n", parts.join(", ")))
    })?;
    Ok(Code::call(&helper, arguments))
}

/// One of two values; WGSL's `select` takes scalars and vectors.
pub fn select(p: &mut P<'_>, ty: &Type, condition: Code, accept: Code, reject: Code) -> Result<Code> {
    if matches!(ty, Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_)) {
        return Ok(Code::call("select", [reject, accept, condition]));
    }
    let (name, tag) = (type_name(p, ty)?, p.type_tag(ty)?);
    let helper = p.helper(&format!("choose {name}"), &format!("choose_{tag}"), |_, helper| {
        let mut out = Writer::default();
        out.open(format!("fn {helper}(condition: bool, accept: {name}, reject: {name}) -> {name} {{"));
        out.open("if (condition) {");
        out.line("return accept;");
        out.close("}");
        out.line("return reject;");
        out.close("}");
        Ok(out.finish())
    })?;
    Ok(Code::call(&helper, [condition, accept, reject]))
}

/// A part of a value at an index that may be out of range.
pub fn part(p: &mut P<'_>, ty: &Type, base: Code, index: Code) -> Result<Code> {
    let (count, part) = (p.parts(ty)?, p.part_type(ty)?);
    let (name, tag, result, zero) = (type_name(p, ty)?, p.type_tag(ty)?, type_name(p, &part)?, zero(p, &part)?.text);
    let helper = p.helper(&format!("part {name}"), &format!("{tag}_at"), |_, helper| {
        let mut out = Writer::default();
        out.open(format!("fn {helper}(value: {name}, i: u32) -> {result} {{"));
        // NVIDIA's driver has given another lane of a variable of 64-bit lanes that is indexed.
        if matches!(ty, Type::Vector { scalar, .. } if scalar.is_wide()) {
            let lanes = LANES.iter().take(count as usize).enumerate().rev();
            let chosen = lanes
                .fold(zero.clone(), |others, (lane, name)| format!("select({others}, value.{name}, i == {lane}u)"));
            out.line(format!("return {chosen};"));
            out.close("}");
            return Ok(out.finish());
        }
        out.line("var parts = value;");
        out.open(format!("if (i < {count}u) {{"));
        out.line("return parts[i];");
        out.close("}");
        out.line(format!("return {zero};"));
        out.close("}");
        Ok(out.finish())
    })?;
    Ok(Code::call(&helper, [base, index]))
}

/// The name of a function that gives a vector with another value in a lane.
pub fn with_lane(p: &mut P<'_>, vector: &Type) -> Result<String> {
    let (name, tag, part) = (type_name(p, vector)?, p.type_tag(vector)?, p.part_type(vector)?);
    let (lane, count) = (type_name(p, &part)?, p.parts(vector)? as usize);
    p.helper(&format!("with lane {name}"), &format!("{tag}_with"), |_, helper| {
        let chosen = LANES.iter().take(count).enumerate();
        let lanes = chosen.map(|(lane, name)| format!("select(vector.{name}, value, i == {lane}u)"));
        let mut out = Writer::default();
        out.open(format!("fn {helper}(vector: {name}, i: u32, value: {lane}) -> {name} {{"));
        out.line(format!("return {name}({});", lanes.collect::<Vec<_>>().join(", ")));
        out.close("}");
        Ok(out.finish())
    })
}

/// Other lanes of a vector.
pub fn swizzle(base: Code, lanes: &[u8]) -> Code {
    let names: String = lanes.iter().filter_map(|lane| LANES.get(usize::from(*lane))).copied().collect();
    base.member(&names)
}

/// How many elements of an array parameter share a vector of 16 bytes.
pub const fn elements_per_vector(field: &ParamField) -> u32 {
    16 / field.ty.scalar.bytes()
}

/// The vector of the block that an array parameter's element lies in.
fn array_word(p: &P<'_>, field: &ParamField, index: &str) -> String {
    format!("params.{}[{index}]", p.param_name(field))
}

/// A part of an array parameter known by number.
pub fn param_part(p: &mut P<'_>, field: &ParamField, part: u32) -> Code {
    let per = elements_per_vector(field);
    let lane = LANES[(part % per) as usize];
    let word = Code::atom(array_word(p, field, &(part / per).to_string())).member(lane);
    word_value(field, word)
}

/// A part of an array parameter at an index that may be out of range.
pub fn param_element(p: &mut P<'_>, field: &ParamField, scalar: Scalar, index: Code) -> Result<Code> {
    let ty = Type::Scalar(scalar);
    let (name, zero) = (type_name(p, &ty)?, zero(p, &ty)?.text);
    let field = field.clone();
    let helper = p.helper(&format!("param {}", field.name), &format!("{}_at", field.name), |p, helper| {
        let per = elements_per_vector(&field);
        let word = Code::atom(format!("{}[i % {per}u]", array_word(p, &field, &format!("i / {per}u"))));
        let mut out = Writer::default();
        out.open(format!("fn {helper}(i: u32) -> {name} {{"));
        out.open(format!("if (i < {}u) {{", field.ty.count));
        out.line(format!("return {};", word_value(&field, word).text));
        out.close("}");
        out.line(format!("return {zero};"));
        out.close("}");
        Ok(out.finish())
    })?;
    Ok(Code::call(&helper, [index]))
}
