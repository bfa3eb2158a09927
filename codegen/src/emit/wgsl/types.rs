//! Types, constants, and which structs WGSL lays out as the host does.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::emit::EmitError;
use crate::emit::text::{Code, Dialect, Printer, no_matrices};
use crate::hashing::HashSet;
use crate::ir::{Handle, Literal, MathFunction, Scalar, Struct, Type};
use crate::layout;

use super::Wgsl;

type Result<T> = std::result::Result<T, EmitError>;

/// Names that the emitter itself uses beside the language's own.
const HELPERS: [&str; 9] = [
    "float_from_bits",
    "runtime_f32",
    "runtime_i32",
    "runtime_u32",
    "runtime_i64",
    "runtime_u64",
    "runtime_f64",
    "dot4_i8",
    "dot4_u8",
];

/// Builtin functions that kernels' expressions are printed with, which locals must not hide.
const FUNCTIONS: [&str; 35] = [
    "abs",
    "atan",
    "atan2",
    "atomicLoad",
    "bitcast",
    "ceil",
    "clamp",
    "cos",
    "countLeadingZeros",
    "countOneBits",
    "countTrailingZeros",
    "dot",
    "exp",
    "exp2",
    "floor",
    "fma",
    "inverseSqrt",
    "log",
    "log2",
    "max",
    "min",
    "pack2x16float",
    "pow",
    "round",
    "select",
    "sign",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "unpack2x16float",
    "array",
    "ptr",
    "atomic",
];

const TYPES: [&str; 11] = ["bool", "i32", "u32", "f32", "f16", "i64", "u64", "f64", "vec2", "vec3", "vec4"];

/// Words that every name of a text is looked up in.
type Words = LazyLock<HashSet<&'static str>>;

/// Whether a name is a word of the language.
pub fn is_keyword(name: &str) -> bool {
    static KEYWORDS: Words = Words::new(|| naga::keywords::wgsl::RESERVED.iter().copied().collect());
    KEYWORDS.contains(name)
}

/// Whether a local of that name would hide something that the emitted text needs.
pub fn hides(name: &str) -> bool {
    static HIDDEN: Words = Words::new(|| HELPERS.into_iter().chain(FUNCTIONS).chain(TYPES).collect());
    is_keyword(name) || HIDDEN.contains(name)
}

/// Whether the language tells by that name where a variable of the text lies, or what is done with it.
pub fn is_enumerant(name: &str) -> bool {
    matches!(name, "uniform" | "storage" | "read" | "read_write")
}

/// Whether a helper function may get that name once something calls it: these, or these with a type behind, and what reads or repeats parts of arrays.
pub fn is_helper_name(name: &str) -> bool {
    static STEMS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let functions = [
            MathFunction::IsNan.name(),
            MathFunction::IsInfinite.name(),
            MathFunction::Signum.name(),
            MathFunction::PackHalf.name(),
            MathFunction::UnpackHalf.name(),
            "choose",
            "over_itself",
            "rest_by_itself",
            "rest_of",
            "less_itself",
        ];
        functions.iter().map(|function| function.replace(' ', "_")).collect()
    });
    let is_function = |function: &String| {
        name.strip_prefix(function.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    STEMS.iter().any(is_function) || name.ends_with("_splat") || (name.starts_with("array_") && name.ends_with("_at"))
}

/// Whether a global of that name would hide anything that the language declares.
pub fn hides_anything(name: &str) -> bool {
    static BUILTIN: Words = Words::new(|| naga::keywords::wgsl::BUILTIN_IDENTIFIERS.iter().copied().collect());
    hides(name) || BUILTIN.contains(name)
}

/// A scalar's name.
pub const fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I32 => "i32",
        Scalar::U32 | Scalar::Index => "u32",
        Scalar::F16 => "f16",
        Scalar::F32 => "f32",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F64 => "f64",
        // Lowering leaves none.
        Scalar::I8 => "i8",
        Scalar::U8 => "u8",
        Scalar::I16 => "i16",
        Scalar::U16 => "u16",
        Scalar::BF16 => "bf16",
        Scalar::Generic(_) => "a type parameter",
    }
}

/// A type's name.
pub fn type_name(p: &Printer<'_, Wgsl>, ty: &Type) -> Result<String> {
    match ty {
        Type::Scalar(Scalar::Generic(_)) => Err(p.error("a type parameter is left")),
        Type::Scalar(scalar) => Ok(scalar_name(*scalar).to_owned()),
        Type::Vector { lanes, scalar } => Ok(format!("vec{lanes}<{}>", scalar_name(*scalar))),
        Type::Array { element, length } => Ok(format!("array<{}, {}>", type_name(p, p.ty(*element))?, p.size(length)?)),
        Type::Struct(handle) => Ok(p.structs[handle.index()].clone()),
        Type::Enum(_) => Ok("u32".to_owned()),
        Type::Matrix(matrix) => Err(no_matrices(p, matrix)),
    }
}

/// A constant.
pub fn literal(p: &mut Printer<'_, Wgsl>, literal: Literal, opaque: bool) -> Result<Code> {
    Ok(match literal {
        Literal::Bool(value) => Code::atom(value.to_string()),
        Literal::I32(i32::MIN) => Code::atom("i32(-2147483648)"),
        Literal::I32(value) if opaque => hidden(p, "i32", &format!("{value}i"))?,
        Literal::I32(value) => number(format!("{value}i")),
        Literal::U32(value) | Literal::Index(value) if opaque => hidden(p, "u32", &format!("{value}u"))?,
        Literal::U32(value) | Literal::Index(value) => Code::atom(format!("{value}u")),
        Literal::F32(value) if !value.is_finite() => bits_literal(p, value.to_bits())?,
        Literal::F32(value) if opaque => hidden(p, "f32", &format!("{value:?}f"))?,
        Literal::F32(value) => number(format!("{value:?}f")),
        Literal::I8(_) | Literal::U8(_) | Literal::I16(_) | Literal::U16(_) | Literal::BF16(_) => {
            return Err(p.error(format!("a constant of type {} is left", literal.scalar().rust_name())));
        }
        Literal::F16(bits) => {
            let value = half::f16::from_bits(bits).to_f32();
            if value.is_finite() {
                number(format!("{value:?}h"))
            } else {
                Code::call("f16", [bits_literal(p, value.to_bits())?])
            }
        }
        // No literal has this magnitude.
        Literal::I64(i64::MIN) => Code::atom(format!("({} - 1li)", hidden(p, "i64", "-9223372036854775807li")?.text)),
        Literal::I64(value) if opaque => hidden(p, "i64", &format!("{value}li"))?,
        Literal::I64(value) => number(format!("{value}li")),
        Literal::U64(value) if opaque => hidden(p, "u64", &format!("{value}lu"))?,
        Literal::U64(value) => Code::atom(format!("{value}lu")),
        Literal::F64(value) if !value.is_finite() => {
            let top = if value.is_nan() { "0.0lf" } else { "1.0lf" };
            let bottom = if value.is_sign_negative() { "-0.0lf" } else { "0.0lf" };
            let (top, bottom) = (hidden(p, "f64", top)?, hidden(p, "f64", bottom)?);
            Code::atom(format!("({} / {})", top.text, bottom.text))
        }
        Literal::F64(value) if opaque => hidden(p, "f64", &format!("{value:?}lf"))?,
        Literal::F64(value) => number(format!("{value:?}lf")),
        Literal::Generic { .. } => return Err(p.error("a generic literal is left")),
    })
}

/// A number, which a sign makes an operation.
fn number(text: String) -> Code {
    let level = if text.starts_with('-') { crate::emit::text::Level::Unary } else { crate::emit::text::Level::Atom };
    Code { text, level }
}

/// A constant that naga and browsers do not compute with.
fn hidden(p: &mut Printer<'_, Wgsl>, ty: &'static str, text: &str) -> Result<Code> {
    p.prelude(&format!("runtime_{ty}"), || {
        format!(
            "// A constant that is not computed with before the kernel runs, where an overflow would be an error.\n\
             fn runtime_{ty}(value: {ty}) -> {ty} {{\n    return value;\n}}\n"
        )
    });
    Ok(Code::atom(format!("runtime_{ty}({text})")))
}

/// Infinities and NaN, which the language has no constants for.
fn bits_literal(p: &mut Printer<'_, Wgsl>, bits: u32) -> Result<Code> {
    p.prelude("float_from_bits", || {
        "// Infinities and NaN, which WGSL cannot write as constants.\n\
         fn float_from_bits(bits: u32) -> f32 {\n    return bitcast<f32>(bits);\n}\n"
            .to_owned()
    });
    Ok(Code::atom(format!("float_from_bits({bits:#x}u)")))
}

/// Size and alignment that WGSL gives a type in a buffer.
fn wgsl_layout(p: &Printer<'_, Wgsl>, ty: &Type) -> Option<(u32, u32)> {
    match ty {
        Type::Scalar(scalar) => scalar.bytes().map(|bytes| (bytes, bytes)),
        Type::Vector { lanes, scalar } => {
            let bytes = scalar.bytes()?;
            Some((bytes * u32::from(*lanes), bytes * u32::from(if *lanes == 3 { 4 } else { *lanes })))
        }
        Type::Array { element, length } => {
            let (size, align) = wgsl_layout(p, p.ty(*element))?;
            Some((size.next_multiple_of(align) * length.literal()?, align))
        }
        Type::Struct(handle) => {
            let (mut size, mut align) = (0u32, 1);
            for (_, field) in &p.lowered.module.structs[*handle].fields {
                let (field_size, field_align) = wgsl_layout(p, p.ty(*field))?;
                size = size.next_multiple_of(field_align) + field_size;
                align = align.max(field_align);
            }
            Some((size.next_multiple_of(align), align))
        }
        Type::Enum(_) => Some((4, 4)),
        Type::Matrix(_) => None,
    }
}

/// Whether WGSL lays out the elements of a buffer as the host does.
pub fn same_layout(p: &Printer<'_, Wgsl>, ty: Handle<Type>) -> bool {
    let module = &p.lowered.module;
    let strides = match (layout::of(module, ty), wgsl_layout(p, p.ty(ty))) {
        (Some(host), Some((size, align))) => host.size == size.next_multiple_of(align),
        _ => false,
    };
    strides
        && match p.ty(ty) {
            Type::Struct(handle) => same_offsets(p, *handle),
            Type::Array { element, .. } => same_layout(p, *element),
            Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) | Type::Matrix(_) => true,
        }
}

fn same_offsets(p: &Printer<'_, Wgsl>, handle: Handle<Struct>) -> bool {
    let module = &p.lowered.module;
    let Some(offsets) = layout::field_offsets(module, handle) else {
        return false;
    };
    let mut end = 0u32;
    module.structs[handle].fields.iter().zip(offsets).all(|((_, field), offset)| {
        let Some((size, align)) = wgsl_layout(p, p.ty(*field)) else {
            return false;
        };
        let here = end.next_multiple_of(align);
        end = here + size;
        here == offset
            && match p.ty(*field) {
                Type::Struct(inner) => same_offsets(p, *inner),
                Type::Array { element, .. } => same_layout(p, *element),
                _ => true,
            }
    })
}

/// The declaration of a struct.
pub fn structure(p: &mut Printer<'_, Wgsl>, handle: Handle<Struct>) -> Result<String> {
    let mut text = format!("struct {} {{\n", p.structs[handle.index()]);
    for index in 0..p.lowered.module.structs[handle].fields.len() as u32 {
        let ty = Wgsl::field_type(p, handle, index)?;
        let (name, ty) = (p.field_name(handle, index)?, type_name(p, &ty)?);
        let _ = writeln!(text, "    {name}: {ty},");
    }
    text.push_str("}\n");
    Ok(text)
}
