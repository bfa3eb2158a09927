//! views: slices with extents and strides

use trefoil::prelude::*;
use trefoil::{BufferView, BufferViewMut, Device};

use crate::{Outcome, expect};

/// out = the transpose of x.
#[kernel(workgroup(8, 8))]
pub fn transposed(x: &View<f32, 2>, out: &mut View<f32, 2>) {
    let at = global_id();
    if at.y < out.extent(0) && at.x < out.extent(1) {
        out.set([at.y, at.x], x.at([at.x, at.y]));
    }
}

/// Runs it on a part of a larger matrix.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<f32>(6)?;
    let view = BufferView::new(&x, [2, 3], [4, 1])?;
    let launch = transposed(view, BufferViewMut::contiguous(&mut out, [3, 2])?)?;
    device.run(launch.over_axes([2, 3, 1]))?;
    expect(&out.read()?, &[0.0, 4.0, 1.0, 5.0, 2.0, 6.0])
}
