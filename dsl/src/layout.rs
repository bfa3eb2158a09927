//! The fingerprints of host types, which expansions hold against the compiler's ([`trefoil_codegen::fingerprint`]).

use half::{bf16, f16};
use trefoil_codegen::fingerprint::{kind, of_scalar, of_vector};

use crate::vector::{Lane, Vec2, Vec3, Vec4};

/// A type whose layout is known.
pub trait Layout {
    /// Its fingerprint.
    const LAYOUT: u64;
}

macro_rules! scalars {
    ($($ty:ty = $kind:ident;)*) => {
        $(impl Layout for $ty {
            const LAYOUT: u64 = of_scalar(kind::$kind, size_of::<$ty>(), align_of::<$ty>());
        })*
    };
}

scalars! {
    f32 = F32;
    i32 = I32;
    u32 = U32;
    f16 = F16;
    bf16 = BF16;
    i8 = I8;
    u8 = U8;
    i16 = I16;
    u16 = U16;
    i64 = I64;
    u64 = U64;
    f64 = F64;
}

macro_rules! vectors {
    ($($Vector:ident = $lanes:literal;)*) => {
        $(impl<T: Lane + Layout> Layout for $Vector<T> {
            const LAYOUT: u64 = of_vector(T::LAYOUT, $lanes, size_of::<Self>(), align_of::<Self>());
        })*
    };
}

vectors! {
    Vec2 = 2;
    Vec3 = 3;
    Vec4 = 4;
}
