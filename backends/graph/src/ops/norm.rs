//! Norms of rows, where a row is what a tensor has along any set of axes: softmax and its logarithm (`softmax`), and norms by a root of squares (`scaled`), which layer, group, instance and root-mean-square
//! norms are, with an optional residual and bias added first and optional vectors that scale and shift the result. How rows lie and who shares them is said in `plan`; `builders` has the methods of
//! [`crate::Graph`], of which batch norms are maps.

mod builders;
#[cfg(feature = "cpu")]
mod host;
mod plan;
mod scaled;
mod softmax;

pub use self::builders::{BatchMoments, NormOperands, Normed};
pub use self::scaled::{Norm, NormKind};
pub use self::softmax::Softmax;
use crate::op::OpError;
use crate::types::TensorType;

/// Checks the axes of an op that normalises.
///
/// # Errors
/// They are not in ascending order, or the tensor lacks one.
fn expect_axes(x: &TensorType, axes: &[usize]) -> Result<(), OpError> {
    if axes.is_sorted_by(|a, b| a < b) && axes.last().is_none_or(|axis| *axis < x.rank()) {
        return Ok(());
    }
    let expected = format!("axes of {x} in ascending order");
    Err(OpError::Attribute { attribute: "axes", given: format!("{axes:?}"), expected })
}

/// Checks what is added to a square before its root is taken.
///
/// # Errors
/// It is negative, infinite or no number.
fn expect_epsilon(epsilon: f32) -> Result<(), OpError> {
    if epsilon >= 0.0 && epsilon.is_finite() {
        return Ok(());
    }
    let expected = "a number not below 0".to_owned();
    Err(OpError::Attribute { attribute: "epsilon", given: epsilon.to_string(), expected })
}

/// For each row the positions of its elements, in the order of the axes: what references go over.
fn rows_of(shape: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let kept = |axis: &usize| !axes.contains(axis);
    let count: usize = (0..shape.len()).filter(kept).map(|axis| shape[axis]).product();
    let mut rows = vec![Vec::new(); count];
    for position in 0..shape.iter().product() {
        let (mut rest, mut row, mut stride) = (position, 0, 1);
        for axis in (0..shape.len()).rev() {
            if kept(&axis) {
                row += rest % shape[axis] * stride;
                stride *= shape[axis];
            }
            rest /= shape[axis];
        }
        rows[row].push(position);
    }
    rows
}
