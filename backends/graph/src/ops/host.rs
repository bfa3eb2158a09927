//! What candidates that are functions of the host share.

use std::sync::Arc;

use crate::dim::Dim;
use crate::op::{HostStep, Implementation, Slot, Step};

/// Floating-point operations in a microsecond, on two cores: a guess, to compare candidates.
pub const FLOPS_PER_MICROSECOND: f64 = 1.0e5;

/// An implementation that is one function of `f32` operands, one result and sizes; `cost` is in microseconds.
pub fn one_function<F>(name: &'static str, reads: Vec<Slot>, sizes: Vec<Dim>, cost: f64, function: F) -> Implementation
where
    F: Fn(&[&[f32]], &mut [f32], &[usize]) -> Result<(), String> + Send + Sync + 'static,
{
    let of_bytes = move |reads: &[&[u8]], writes: &mut [&mut [u8]], sizes: &[i64]| {
        let misaligned = |error| format!("an operand of `{name}`: {error}");
        let reads: Vec<&[f32]> = reads
            .iter()
            .map(|bytes| bytemuck::try_cast_slice(whole(bytes)).map_err(misaligned))
            .collect::<Result<_, _>>()?;
        let [out] = writes else { return Err(format!("`{name}` writes one result, {} given", writes.len())) };
        let count = out.len() / 4 * 4;
        let out = bytemuck::try_cast_slice_mut(&mut out[..count]).map_err(misaligned)?;
        let sizes: Vec<usize> = sizes
            .iter()
            .map(|size| usize::try_from(*size).map_err(|_| format!("`{name}`: {size} given, no size or stride")))
            .collect::<Result<_, _>>()?;
        function(&reads, out, &sizes)
    };
    let step = HostStep { name, function: Arc::new(of_bytes), reads, writes: vec![Slot::Output(0)], params: sizes };
    Implementation { steps: vec![Step::Host(step)], scratch: Vec::new(), cost }
}

/// The bytes that make whole elements.
fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 4 * 4]
}
