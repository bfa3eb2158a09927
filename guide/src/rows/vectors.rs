//! vectors of 2, 3 and 4 lanes: arithmetic, and each lane by its name

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each point turned by a right angle about z, and twice as far away.
#[kernel(workgroup(64))]
pub fn rotated(points: &[Vec3<f32>], out: &mut [Vec3<f32>]) {
    let i = global_index();
    if i < out.len() {
        let p = points[i];
        out[i] = Vec3::new(-p.y, p.x, p.z) * 2.0;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let points = device.buffer(&[Vec3::new(1.0f32, 2.0, 3.0), Vec3::new(0.0, -1.0, 0.5)])?;
    let mut out = device.zeros::<Vec3<f32>>(2)?;
    device.run(rotated(&points, &mut out)?.over(2))?;
    expect(&out.read()?, &[Vec3::new(-4.0, 2.0, 6.0), Vec3::new(2.0, 0.0, 1.0)])
}
