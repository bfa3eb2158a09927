//! By-value parameters of kernels, as words of the parameter block.

use crate::vector::{Lane, Vec2, Vec3, Vec4};

/// A type that kernels take by value: numbers, `bool`, vectors and arrays of those, and
/// `#[device]` structs and enums.
pub trait Param: Copy {
    /// How many parameters of the block it is: the scalars, vectors and arrays of scalars in it.
    const LEAVES: usize = 1;

    /// Appends the 32-bit words of each leaf, of which there are [`Self::LEAVES`].
    ///
    /// # Errors
    /// Says which value does not fit into 32 bits.
    fn words(self, leaves: &mut [Vec<u32>]) -> Result<(), String>;
}

/// The words of the only leaf.
fn only(leaves: &mut [Vec<u32>]) -> Result<&mut Vec<u32>, String> {
    leaves.first_mut().ok_or_else(|| "it has no place in the block".to_owned())
}

/// The scalars among parameters, of which vectors and arrays may be made.
pub trait ScalarParam: Param {}

macro_rules! scalar_params {
    ($($ty:ty: $value:ident => $word:expr;)*) => {
        $(
            impl Param for $ty {
                fn words(self, leaves: &mut [Vec<u32>]) -> Result<(), String> {
                    let $value = self;
                    let word = $word;
                    only(leaves)?.push(word);
                    Ok(())
                }
            }
            impl ScalarParam for $ty {}
        )*
    };
}

scalar_params! {
    f32: value => value.to_bits();
    i32: value => value.cast_unsigned();
    u32: value => value;
    bool: value => u32::from(value);
    i8: value => i32::from(value).cast_unsigned();
    u8: value => value.into();
    i16: value => i32::from(value).cast_unsigned();
    u16: value => value.into();
    half::f16: value => value.to_f32().to_bits();
    half::bf16: value => value.to_f32().to_bits();
    usize: value => u32::try_from(value).map_err(|_| format!("{value} does not fit into 32 bits"))?;
}

macro_rules! wide_params {
    ($($ty:ty: $value:ident => $bits:expr;)*) => {
        $(
            impl Param for $ty {
                fn words(self, leaves: &mut [Vec<u32>]) -> Result<(), String> {
                    let $value = self;
                    let bits: u64 = $bits;
                    only(leaves)?.extend([bits as u32, (bits >> 32) as u32]);
                    Ok(())
                }
            }
            impl ScalarParam for $ty {}
        )*
    };
}

wide_params! {
    i64: value => value.cast_unsigned();
    u64: value => value;
    f64: value => value.to_bits();
}

macro_rules! vector_params {
    ($($Vector:ident),*) => {
        $(impl<S: ScalarParam + Lane> Param for $Vector<S> {
            fn words(self, leaves: &mut [Vec<u32>]) -> Result<(), String> {
                self.to_array().words(leaves)
            }
        })*
    };
}

vector_params!(Vec2, Vec3, Vec4);

/// Each leaf holds that of every element, one after the other.
impl<P: Param, const N: usize> Param for [P; N] {
    const LEAVES: usize = P::LEAVES;

    fn words(self, leaves: &mut [Vec<u32>]) -> Result<(), String> {
        self.into_iter().try_for_each(|value| value.words(leaves))
    }
}
