//! By-value parameters of kernels, as words of the parameter block.

use crate::vector::{Lane, Vec2, Vec3, Vec4};

/// A type that kernels take by value: `f32`, `i32`, `u32`, `usize`, `bool`, vectors and arrays of those, and field-less
/// `#[device]` enums.
pub trait Param: Copy {
    /// Appends its 32-bit words.
    ///
    /// # Errors
    /// Says which value does not fit into 32 bits.
    fn words(self, words: &mut Vec<u32>) -> Result<(), String>;
}

/// The scalars among parameters, of which vectors and arrays may be made.
pub trait ScalarParam: Param {}

macro_rules! scalar_params {
    ($($ty:ty: $value:ident => $word:expr;)*) => {
        $(
            impl Param for $ty {
                fn words(self, words: &mut Vec<u32>) -> Result<(), String> {
                    let $value = self;
                    words.push($word);
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
    usize: value => u32::try_from(value).map_err(|_| format!("{value} does not fit into 32 bits"))?;
}

macro_rules! vector_params {
    ($($Vector:ident),*) => {
        $(impl<S: ScalarParam + Lane> Param for $Vector<S> {
            fn words(self, words: &mut Vec<u32>) -> Result<(), String> {
                self.to_array().words(words)
            }
        })*
    };
}

vector_params!(Vec2, Vec3, Vec4);

impl<S: ScalarParam, const N: usize> Param for [S; N] {
    fn words(self, words: &mut Vec<u32>) -> Result<(), String> {
        self.into_iter().try_for_each(|value| value.words(words))
    }
}
