//! How closely a function's arithmetic keeps to what is written.
//!
//! The author says it of a function, by `strict` or `fast` on its `#[kernel]` or `#[device]`. A function that says neither is as the one that calls it, so
//! that a kernel's word holds for all that it calls; there is a copy of a function for each precision that it is called with. What lowering puts in
//! the place of an operation is as the function that holds the operation.
//!
//! | | sums, differences, products | quotients, roots, functions |
//! |---|---|---|
//! | usual | each nearest, or a product and a sum contracted to one rounding | within the accuracy that the DSL states |
//! | `strict` | each nearest, none contracted or reordered: the same bits on every target, denormals apart | as usual |
//! | `fast` | as usual | the target's cheapest, see [`Precision::Fast`] |
//!
//! `mul_add` is contracted by the author and stays what it is. Halves are rounded after every operation and so are never contracted; doubles obey `strict`,
//! and have no `fast`. Sums over subgroups and products of matrices have no stated order in any precision.

use serde::{Deserialize, Serialize};

/// How closely a function's arithmetic keeps to what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Precision {
    /// Contraction is allowed.
    #[default]
    Usual,
    /// No contraction: [`crate::target::Feature::Strict`].
    Strict,
    /// Contraction is allowed, and of `f32` less accurate forms where a target has cheaper ones:
    ///
    /// * On CUDA `exp`, `ln`, `log2`, `log10`, `sin`, `cos`, `tan` and `powf` are as the `__` intrinsics (`exp` within `2 + |1.2 x|` ulp, logarithms within 3 ulp or
    ///   an absolute 2^-21 between 1/2 and 2, `sin` and `cos` within an absolute 2^-21 between -pi and pi and worse beyond), `/` is `__fdividef` (2 ulp; 0 for
    ///   divisors above 2^126), `sqrt` is the approximate one (1 ulp, denormals apart).
    /// * `powf` has no negative base, `tanh` is within an absolute 2^-20, and `log10` is a multiple of `log2`, everywhere.
    /// * Where WGSL computes `min`, `max` or `clamp` with a NaN the result is any of the operands.
    Fast,
}

impl Precision {
    /// The word of the attribute.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Strict => "strict",
            Self::Fast => "fast",
        }
    }

    /// The precision of that word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Strict, Self::Fast].into_iter().find(|precision| precision.name() == name)
    }

    /// The name of a function's copy: that of the usual one, and the word.
    pub fn suffixed(self, name: &str) -> String {
        match self {
            Self::Usual => name.to_owned(),
            // What is of one precision alone says so in front.
            Self::Strict | Self::Fast if name.starts_with(self.name()) => name.to_owned(),
            Self::Strict | Self::Fast => format!("{name}_{}", self.name()),
        }
    }
}
