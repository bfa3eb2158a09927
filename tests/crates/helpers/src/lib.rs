//! `#[device]` items for kernels of another crate.

use trefoil_dsl::prelude::*;

/// Invocations of a workgroup, and elements of its array.
#[device]
pub const LANES: usize = 64;

/// A body in a buffer.
#[device]
#[derive(Debug, PartialEq)]
pub struct Body {
    /// Position and mass.
    pub place: Vec4<f32>,
    /// Where it goes.
    pub velocity: Vec3<f32>,
    /// Who it is.
    pub id: u32,
}

/// The sum over a workgroup of what `weigh` makes of the elements of `x`, through `scratch`; the workgroup has [`LANES`] invocations.
#[device]
pub fn group_sum(x: &[f32], scratch: &mut [f32]) -> f32 {
    let lane = local_index();
    let mut sum = 0.0;
    let mut i = lane;
    while i < x.len() {
        sum += weigh(x[i]);
        i += LANES;
    }
    scratch[lane] = sum;
    barrier();
    let mut width = LANES / 2;
    while width > 0 {
        if lane < width {
            scratch[lane] += scratch[lane + width];
        }
        barrier();
        width /= 2;
    }
    scratch[0]
}

// Private, and defined after its use: whoever uses `group_sum` needs to know neither.
#[device]
fn weigh(x: f32) -> f32 {
    x * deep::FACTOR
}

/// Modules work alike.
pub mod deep {
    use trefoil_dsl::prelude::*;

    /// A constant by another constant, of another module.
    #[device]
    pub const FACTOR: f32 = crate::TWO * 1.5;

    /// Where a body will be; by a path that leads out of the module.
    #[device]
    pub fn moved(body: super::Body, time: f32) -> super::Body {
        let step = body.velocity * time;
        super::Body { place: body.place + Vec4::new(step.x, step.y, step.z, 0.0), velocity: body.velocity, id: body.id }
    }
}

#[device]
const TWO: f32 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_functions_run_on_the_host() {
        assert_eq!(weigh(2.0), 6.0);
        let body = Body { place: Vec4::splat(1.0), velocity: Vec3::new(1.0, 2.0, 3.0), id: 7 };
        assert_eq!(deep::moved(body, 2.0).place, Vec4::new(3.0, 5.0, 7.0, 1.0));
    }
}
