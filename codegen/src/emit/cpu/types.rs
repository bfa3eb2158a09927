//! Types of the IR as Rust types, and their zero values.
//!
//! `usize` is `u32`, halves are their bits in a `u16`, vectors are arrays: memory holds no padding in structs, so sizes and offsets
//! are the host's, and loads do not rely on the alignment of vectors.

use std::fmt::Write;

use crate::ir::{Handle, Module, Scalar, Type};

/// The Rust type of a scalar.
pub(super) const fn scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I32 => "i32",
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => "u32",
        Scalar::I8 => "i8",
        Scalar::U8 => "u8",
        Scalar::I16 => "i16",
        Scalar::U16 | Scalar::F16 | Scalar::BF16 => "u16",
        Scalar::F32 => "f32",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F64 => "f64",
    }
}

/// The Rust type of a type.
pub(super) fn rust(module: &Module, ty: Handle<Type>) -> String {
    match &module.types[ty] {
        Type::Scalar(s) => scalar(*s).to_owned(),
        Type::Vector { lanes, scalar: s } => format!("[{}; {lanes}]", scalar(*s)),
        Type::Array { element, length } => {
            format!("[{}; {}]", rust(module, *element), length.literal().unwrap_or(0))
        }
        Type::Struct(handle) => format!("Struct{}", handle.index()),
        Type::Enum(_) => "u32".to_owned(),
        // Lowering has made arrays of them.
        Type::Matrix(_) => "()".to_owned(),
    }
}

/// The zero of a scalar.
pub(super) const fn zero_scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "false",
        Scalar::I32 => "0i32",
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => "0u32",
        Scalar::I8 => "0i8",
        Scalar::U8 => "0u8",
        Scalar::I16 => "0i16",
        Scalar::U16 | Scalar::F16 | Scalar::BF16 => "0u16",
        Scalar::F32 => "0f32",
        Scalar::I64 => "0i64",
        Scalar::U64 => "0u64",
        Scalar::F64 => "0f64",
    }
}

/// The value of a type whose bits are all zero.
pub(super) fn zero(module: &Module, ty: Handle<Type>) -> String {
    match &module.types[ty] {
        Type::Scalar(s) => zero_scalar(*s).to_owned(),
        Type::Vector { lanes, scalar: s } => format!("[{}; {lanes}]", zero_scalar(*s)),
        Type::Array { element, length } => {
            format!("[{}; {}]", zero(module, *element), length.literal().unwrap_or(0))
        }
        Type::Struct(handle) => {
            let fields: Vec<String> = module.structs[*handle]
                .fields
                .iter()
                .enumerate()
                .map(|(i, (_, field))| format!("f{i}: {}", zero(module, *field)))
                .collect();
            format!("Struct{} {{ {} }}", handle.index(), fields.join(", "))
        }
        Type::Enum(_) => "0u32".to_owned(),
        Type::Matrix(_) => "()".to_owned(),
    }
}

/// The definitions of the module's structs; fields have their position as name, since authors' names may be anything.
pub(super) fn structs(module: &Module) -> String {
    let mut text = String::new();
    for (handle, definition) in module.structs.iter() {
        let fields: Vec<String> = definition
            .fields
            .iter()
            .enumerate()
            .map(|(i, (_, field))| format!("pub f{i}: {}", rust(module, *field)))
            .collect();
        let _ = writeln!(
            text,
            "/* {} */ #[derive(Clone, Copy)] #[repr(C)] pub struct Struct{} {{ {} }}",
            definition.name,
            handle.index(),
            fields.join(", ")
        );
    }
    text
}

/// How a value is spread over arrays with one entry for each invocation: the lengths of its nested arrays and the innermost type;
/// `None` for what holds a struct, which stays whole.
pub(super) fn spread(module: &Module, ty: Handle<Type>) -> Option<(Vec<u32>, &'static str, &'static str)> {
    match &module.types[ty] {
        Type::Scalar(s) => Some((Vec::new(), scalar(*s), zero_scalar(*s))),
        Type::Enum(_) => Some((Vec::new(), "u32", "0u32")),
        Type::Vector { lanes, scalar: s } => Some((vec![u32::from(*lanes)], scalar(*s), zero_scalar(*s))),
        Type::Array { element, length } => {
            let (mut lengths, name, zero) = spread(module, *element)?;
            lengths.insert(0, length.literal()?);
            Some((lengths, name, zero))
        }
        Type::Struct(_) | Type::Matrix(_) => None,
    }
}
