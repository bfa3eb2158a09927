//! Activations as attributes of products and convolutions: which elements they are known of, and what they mean.

use trefoil_kernels::activation::Activation;

use super::real;
use crate::op::OpError;
use crate::types::ElementType;

/// Where a factor x stops that would be infinite as the other is 0.
pub(in crate::ops) const FAR: f64 = trefoil_kernels::activation::FAR as f64;

/// Refuses activations that kernels do not know of a result's elements.
///
/// # Errors
/// It is such a one.
pub(super) fn expect_known(activation: Activation, element: ElementType) -> Result<(), OpError> {
    if !element.is_integer() || activation == Activation::Identity {
        return Ok(());
    }
    let expected = format!("{:?} of {element}, others by functions of the result", Activation::Identity);
    Err(OpError::Attribute { attribute: "activation", given: format!("{activation:?}"), expected })
}

/// The activation in `f64`, for references.
pub(super) fn activated(x: f64, activation: Activation) -> f64 {
    match activation {
        // A NaN is not below zero, and stays.
        Activation::Relu if x < 0.0 => 0.0,
        Activation::Identity | Activation::Relu => x,
        Activation::Gelu => 0.5 * x.max(FAR) * (1.0 + real::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::Silu => x.max(FAR) / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}
