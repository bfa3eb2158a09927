//! By-value parameters of kernels, as words of the parameter block.

use trefoil_codegen::artefact::ParamScalar;

use crate::vector::{Lane, Vec2, Vec3, Vec4};

/// A type that kernels take by value: numbers, `bool`, vectors and arrays of those, and
/// `#[device]` structs and enums.
pub trait Param: Copy {
    /// How many parameters of the block it is: the scalars, vectors and arrays of scalars in it.
    const LEAVES: usize = 1;

    /// Appends the values of each leaf, of which there are [`Self::LEAVES`].
    ///
    /// # Errors
    /// Says what has no place in the block.
    fn words(self, leaves: &mut [Leaf]) -> Result<(), String>;
}

/// What is given for one parameter of the block. How wide an index lies there is for the kernel to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// The type of the numbers; none if there are none.
    scalar: Option<ParamScalar>,
    words: Vec<u32>,
    indices: Vec<usize>,
}

impl Leaf {
    /// The words for numbers of that type in the block.
    pub(crate) fn words(&self, scalar: ParamScalar) -> Result<Vec<u32>, String> {
        let is_index = |given| given == ParamScalar::Index && scalar == ParamScalar::U64;
        if let Some(given) = self.scalar
            && given != scalar
            && !is_index(given)
        {
            return Err(format!("`{}` given, `{}` expected", given.rust_name(), scalar.rust_name()));
        }
        if scalar.bytes() == 8 {
            let both = |index: &usize| halves(*index as u64);
            return Ok(if self.indices.is_empty() {
                self.words.clone()
            } else {
                self.indices.iter().flat_map(both).collect()
            });
        }
        let word = |index: &usize| u32::try_from(*index).map_err(|_| format!("{index} does not fit into 32 bits"));
        if self.indices.is_empty() { Ok(self.words.clone()) } else { self.indices.iter().map(word).collect() }
    }
}

/// The two words of a number, the lower first.
pub(crate) const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// The only leaf, of numbers of that type.
fn only(leaves: &mut [Leaf], scalar: ParamScalar) -> Result<&mut Leaf, String> {
    let leaf = leaves.first_mut().ok_or_else(|| "it has no place in the block".to_owned())?;
    leaf.scalar = Some(scalar);
    Ok(leaf)
}

/// The scalars among parameters, of which vectors and arrays may be made.
pub trait ScalarParam: Param {}

macro_rules! scalar_params {
    ($($ty:ty as $scalar:ident: $value:ident => $word:expr;)*) => {
        $(
            impl Param for $ty {
                fn words(self, leaves: &mut [Leaf]) -> Result<(), String> {
                    let $value = self;
                    let word = $word;
                    only(leaves, ParamScalar::$scalar)?.words.push(word);
                    Ok(())
                }
            }
            impl ScalarParam for $ty {}
        )*
    };
}

scalar_params! {
    f32 as F32: value => value.to_bits();
    i32 as I32: value => value.cast_unsigned();
    u32 as U32: value => value;
    bool as Bool: value => u32::from(value);
    i8 as I32: value => i32::from(value).cast_unsigned();
    u8 as U32: value => value.into();
    i16 as I32: value => i32::from(value).cast_unsigned();
    u16 as U32: value => value.into();
    half::f16 as F32: value => value.to_f32().to_bits();
    half::bf16 as F32: value => value.to_f32().to_bits();
}

impl Param for usize {
    fn words(self, leaves: &mut [Leaf]) -> Result<(), String> {
        only(leaves, ParamScalar::Index)?.indices.push(self);
        Ok(())
    }
}
impl ScalarParam for usize {}

macro_rules! wide_params {
    ($($ty:ty as $scalar:ident: $value:ident => $bits:expr;)*) => {
        $(
            impl Param for $ty {
                fn words(self, leaves: &mut [Leaf]) -> Result<(), String> {
                    let $value = self;
                    let bits: u64 = $bits;
                    only(leaves, ParamScalar::$scalar)?.words.extend(halves(bits));
                    Ok(())
                }
            }
            impl ScalarParam for $ty {}
        )*
    };
}

wide_params! {
    i64 as I64: value => value.cast_unsigned();
    u64 as U64: value => value;
    f64 as F64: value => value.to_bits();
}

macro_rules! vector_params {
    ($($Vector:ident),*) => {
        $(impl<S: ScalarParam + Lane> Param for $Vector<S> {
            fn words(self, leaves: &mut [Leaf]) -> Result<(), String> {
                self.to_array().words(leaves)
            }
        })*
    };
}

vector_params!(Vec2, Vec3, Vec4);

/// Each leaf holds that of every element, one after the other.
impl<P: Param, const N: usize> Param for [P; N] {
    const LEAVES: usize = P::LEAVES;

    fn words(self, leaves: &mut [Leaf]) -> Result<(), String> {
        self.into_iter().try_for_each(|value| value.words(leaves))
    }
}
