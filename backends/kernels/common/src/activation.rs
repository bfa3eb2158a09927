//! Activations that kernels apply to what they have computed, before they write it.

use trefoil_dsl::prelude::*;

/// What is applied to a product before it is written.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// max(x, 0); NaN for NaN.
    Relu,
    /// x / 2 * (1 + erf(x / sqrt 2)); 0 for minus infinity.
    Gelu,
    /// x / (1 + exp(-x)); 0 for minus infinity.
    Silu,
    /// tanh(x)
    Tanh,
    /// 1 / (1 + exp(-x))
    Sigmoid,
}

/// 1 / sqrt 2.
#[device]
#[expect(clippy::approx_constant, reason = "kernels know constants of `f32` alone by name")]
const HALF_ROOT: f64 = 0.707_106_781_186_547_6;

/// Where a factor x stops that would be infinite as the other is 0: the limit at minus infinity is 0, as of the functions of these names.
#[device]
pub const FAR: f32 = -1000.0;

/// The same of doubles.
#[device]
const FAR_OF_DOUBLES: f64 = FAR as f64;

/// `activation` of numbers of a type, with 1 / sqrt 2 of that type.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident $number:ty, $half_root:ident, $far:ident;)*) => {
        $(
            $(#[$doc])*
            #[device]
            pub fn $name(x: $number, activation: Activation) -> $number {
                match activation {
                    Activation::Identity => x,
                    // A NaN stays one, which a maximum would lose.
                    Activation::Relu => select(is_nan(x), x, max(x, 0.0)),
                    Activation::Gelu => 0.5 * max(x, $far) * (1.0 + erf(x * $half_root)),
                    Activation::Silu => max(x, $far) / (1.0 + exp(-x)),
                    Activation::Tanh => tanh(x),
                    Activation::Sigmoid => 1.0 / (1.0 + exp(-x)),
                }
            }
        )*
    };
}

activations! {
    /// `activation` of `x`.
    activate f32, FRAC_1_SQRT_2, FAR;
    /// `activation` of a double.
    activate_f64 f64, HALF_ROOT, FAR_OF_DOUBLES;
}
