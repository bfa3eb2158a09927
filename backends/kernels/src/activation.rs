//! Activations that kernels apply to what they have computed, before they write it.

use trefoil_dsl::prelude::*;

/// What is applied to a product before it is written.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// max(x, 0)
    Relu,
    /// x / 2 * (1 + erf(x / sqrt 2))
    Gelu,
    /// x / (1 + exp(-x))
    Silu,
    /// tanh(x)
    Tanh,
    /// 1 / (1 + exp(-x))
    Sigmoid,
}

/// `activation` of `x`.
#[device]
pub fn activate(x: f32, activation: Activation) -> f32 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => max(x, 0.0),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2)),
        Activation::Silu => x / (1.0 + exp(-x)),
        Activation::Tanh => tanh(x),
        Activation::Sigmoid => 1.0 / (1.0 + exp(-x)),
    }
}
