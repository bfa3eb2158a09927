//! A number for the memory layout of a type: kinds, sizes, alignments and offsets of everything in it.
//!
//! The host computes it in constants from Rust's own types, the compiler from the IR's; expansions of the macros assert that both
//! are equal. It is a check against mistakes of this project, not against an adversary.

use crate::ir::{Handle, Module, Scalar, Type};
use crate::layout;

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The fingerprint `so_far`, with one more number.
const fn mix(so_far: u64, number: u64) -> u64 {
    let mut hash = so_far;
    let mut byte = 0;
    while byte < 8 {
        hash = (hash ^ ((number >> (8 * byte)) & 0xff)).wrapping_mul(0x0100_0000_01b3);
        byte += 1;
    }
    hash
}

/// Of a scalar of a [`kind`].
pub const fn of_scalar(kind: u64, size: usize, align: usize) -> u64 {
    mix(mix(mix(mix(START, 1), kind), size as u64), align as u64)
}

/// Of a vector of `lanes` scalars.
pub const fn of_vector(scalar: u64, lanes: usize, size: usize, align: usize) -> u64 {
    mix(mix(mix(mix(mix(START, 2), scalar), lanes as u64), size as u64), align as u64)
}

/// Of an array.
pub const fn of_array(element: u64, length: usize) -> u64 {
    mix(mix(mix(START, 3), element), length as u64)
}

/// Of a struct: the offset and the fingerprint of each field.
pub const fn of_struct(size: usize, align: usize, fields: &[(usize, u64)]) -> u64 {
    let mut hash = mix(mix(mix(START, 4), size as u64), align as u64);
    let mut field = 0;
    while field < fields.len() {
        hash = mix(mix(hash, fields[field].0 as u64), fields[field].1);
        field += 1;
    }
    hash
}

/// The kinds of scalars that memory holds, for [`of_scalar`].
pub mod kind {
    /// `i32`
    pub const I32: u64 = 1;
    /// `u32`
    pub const U32: u64 = 2;
    /// `f16`
    pub const F16: u64 = 4;
    /// `f32`
    pub const F32: u64 = 5;
    /// `i8`
    pub const I8: u64 = 9;
    /// `u8`
    pub const U8: u64 = 10;
    /// `i16`
    pub const I16: u64 = 11;
    /// `u16`
    pub const U16: u64 = 12;
    /// `bf16`
    pub const BF16: u64 = 13;
    /// `i64`
    pub const I64: u64 = 6;
    /// `u64`
    pub const U64: u64 = 7;
    /// `f64`
    pub const F64: u64 = 8;
}

/// Of a type of an instance; `None` for what host memory does not hold.
pub fn of(module: &Module, ty: Handle<Type>) -> Option<u64> {
    let whole = layout::of(module, ty)?;
    let (size, align) = (whole.size as usize, whole.align as usize);
    match &module.types[ty] {
        Type::Scalar(scalar) => Some(of_scalar(scalar_kind(*scalar)?, size, align)),
        Type::Vector { lanes, scalar } => {
            let bytes = scalar.bytes()? as usize;
            let lane = of_scalar(scalar_kind(*scalar)?, bytes, bytes);
            Some(of_vector(lane, usize::from(*lanes), size, align))
        }
        Type::Array { element, length } => Some(of_array(of(module, *element)?, length.literal()? as usize)),
        Type::Struct(handle) => {
            let offsets = layout::field_offsets(module, *handle)?;
            let fields = offsets
                .iter()
                .zip(&module.structs[*handle].fields)
                .map(|(offset, (_, field))| Some((*offset as usize, of(module, *field)?)))
                .collect::<Option<Vec<_>>>()?;
            Some(of_struct(size, align, &fields))
        }
        Type::Enum(_) | Type::Matrix(_) => None,
    }
}

const fn scalar_kind(scalar: Scalar) -> Option<u64> {
    match scalar {
        Scalar::I32 => Some(kind::I32),
        Scalar::U32 => Some(kind::U32),
        Scalar::F16 => Some(kind::F16),
        Scalar::F32 => Some(kind::F32),
        Scalar::I8 => Some(kind::I8),
        Scalar::U8 => Some(kind::U8),
        Scalar::I16 => Some(kind::I16),
        Scalar::U16 => Some(kind::U16),
        Scalar::BF16 => Some(kind::BF16),
        Scalar::I64 => Some(kind::I64),
        Scalar::U64 => Some(kind::U64),
        Scalar::F64 => Some(kind::F64),
        Scalar::Bool | Scalar::Index | Scalar::Generic(_) => None,
    }
}
