//! The kernel that the examples run, each on a device that the program opened by itself: nothing of trefoil's devices, only what the
//! macro left in the program ([`trefoil::artefact::Kernel`] and the typed parameter block). And the graph that the others run, with trefoil's devices on the program's own ([`edges`]).

pub mod edges;

use trefoil::prelude::*;

/// y = a x + y.
#[kernel(workgroup(256))]
pub fn axpy(x: &[f32], y: &mut [f32], a: f32) {
    let i = global_index();
    if i < y.len() {
        y[i] = a * x[i] + y[i];
    }
}

/// Elements of the examples.
pub const LENGTH: u32 = 1 << 16;

/// The parameter block for buffers that are bound from their first byte on; workgroups are counted along x.
#[must_use]
pub fn params(a: f32) -> axpy::Params {
    let [width, ..] = axpy::KERNEL.workgroup_size;
    axpy::Params { x_len: LENGTH, y_len: LENGTH, a, group_count: LENGTH.div_ceil(width), ..axpy::Params::default() }
}

/// What the buffers hold before.
#[must_use]
pub fn inputs() -> (Vec<f32>, Vec<f32>) {
    (0..LENGTH).map(|i| (i as f32, 1.0)).unzip()
}

/// Compares what the device gave for `a` = 2.
///
/// # Errors
/// Names the first element that differs.
pub fn check(y: &[f32]) -> Result<(), String> {
    let wrong = (0..LENGTH as usize).find(|i| y.get(*i) != Some(&(2.0 * *i as f32 + 1.0)));
    wrong.map_or(Ok(()), |i| Err(format!("element {i} is {:?}", y.get(i))))
}
