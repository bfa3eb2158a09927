//! What candidates that are functions of the host share.

use std::sync::Arc;

use crate::dim::Dim;
use crate::op::{CallStep, Callee, Implementation, Ineligible, Operand, Slot, Step};
use crate::types::{ElementType, TensorType};

/// Elements of a row.
///
/// # Errors
/// The axes are not the last ones, or the elements no `f32`.
pub fn columns(x: &TensorType, axes: &[usize]) -> Result<Dim, Ineligible> {
    let last = axes.iter().rev().zip((0..x.rank()).rev()).all(|(axis, last)| *axis == last);
    if !last || x.element != ElementType::F32 {
        return Err(Ineligible::Other(format!("axes {axes:?} of {x} are not the last ones of f32")));
    }
    Ok(axes.iter().map(|axis| x.shape[*axis].clone()).product())
}

/// Elements along some axes that follow on each other, and those behind them, which lie side by side: 1 where the axes are the last ones.
///
/// # Errors
/// The axes do not follow on each other, or the elements are no `f32`.
pub fn rows_by_columns(x: &TensorType, axes: &[usize]) -> Result<[Dim; 2], Ineligible> {
    if axes.windows(2).any(|pair| pair[0] + 1 != pair[1]) || x.element != ElementType::F32 {
        return Err(Ineligible::Other(format!("axes {axes:?} of {x} do not follow on each other, or are not of f32")));
    }
    let behind = axes.last().map_or(x.rank(), |last| last + 1);
    Ok([axes.iter().map(|axis| x.shape[*axis].clone()).product(), x.shape[behind..].iter().cloned().product()])
}

/// An implementation that is one function of `f32` operands, one result of elements `T` and sizes; `cost` is in microseconds.
pub fn one_function<T, F>(
    name: &'static str,
    reads: Vec<Slot>,
    sizes: Vec<Dim>,
    cost: f64,
    function: F,
) -> Implementation
where
    T: bytemuck::Pod,
    F: Fn(&[&[f32]], &mut [T], &[usize]) -> Result<(), String> + Send + Sync + 'static,
{
    let of_bytes = move |reads: &[&[u8]], writes: &mut [&mut [u8]], sizes: &[i64]| {
        let misaligned = |error| format!("an operand of `{name}`: {error}");
        let reads: Vec<&[f32]> = reads
            .iter()
            .map(|bytes| bytemuck::try_cast_slice(&bytes[..whole::<f32>(bytes.len())]).map_err(misaligned))
            .collect::<Result<_, _>>()?;
        let [out] = writes else { return Err(format!("`{name}` writes one result, {} given", writes.len())) };
        let length = whole::<T>(out.len());
        let out = bytemuck::try_cast_slice_mut(&mut out[..length]).map_err(misaligned)?;
        function(&reads, out, &lengths(name, sizes)?)
    };
    let step = CallStep {
        name,
        callee: Callee::Host(Arc::new(of_bytes)),
        reads,
        writes: vec![Slot::Output(0)],
        params: sizes,
    };
    Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost }
}

/// Sizes and strides as they come to a host step.
///
/// # Errors
/// One is negative.
pub fn lengths(name: &str, sizes: &[i64]) -> Result<Vec<usize>, String> {
    let length = |size: &i64| usize::try_from(*size).map_err(|_| format!("`{name}`: {size} given, no size or stride"));
    sizes.iter().map(length).collect()
}

/// How many of some bytes are whole elements.
pub fn whole<T>(bytes: usize) -> usize {
    bytes / size_of::<T>().max(1) * size_of::<T>()
}

/// Demands that inputs are contiguous.
///
/// # Errors
/// Names those that are not.
pub fn contiguous(inputs: &[Operand]) -> Result<(), Ineligible> {
    let strided: Vec<_> = inputs
        .iter()
        .enumerate()
        .filter(|(_, operand)| !operand.layout.is_contiguous(&operand.ty.shape))
        .map(|(position, _)| position)
        .collect();
    if strided.is_empty() { Ok(()) } else { Err(Ineligible::NeedsContiguous(strided)) }
}
