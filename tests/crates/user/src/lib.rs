//! Kernels that use `#[device]` items of another crate, under a renamed trefoil, and items of their own with equal names.

use gpu::prelude::*;
use trefoil_test_helpers::deep as far;
use trefoil_test_helpers::{Body, LANES, group_sum};

/// Has the name of a private function of the other crate.
#[device]
fn weigh(x: f32) -> f32 {
    x + 1.0
}

/// Each workgroup writes the other crate's weighted sum of `x`, weighed again by this crate's function; with indices of either width.
#[kernel(workgroup(64), index = [32, 64])]
pub fn weighed_sum(x: &[f32], y: &mut [f32]) {
    let mut scratch = workgroup_array::<f32>(LANES);
    let sum = group_sum(x, &mut scratch);
    if local_index() == 0 {
        y[group_index()] = weigh(sum);
    }
}

/// Moves every body.
#[kernel(workgroup(64))]
pub fn advance(bodies: &mut [Body], time: f32) {
    let i = global_index();
    if i < bodies.len() {
        bodies[i] = far::moved(bodies[i], time);
    }
}

/// Items that a glob brings in.
pub mod glob {
    use gpu::prelude::*;
    pub use inner::*;

    mod inner {
        use gpu::prelude::*;

        /// How `bent` goes.
        #[device]
        #[derive(Debug)]
        pub enum Shape {
            /// As it is.
            Straight,
            /// Not below zero.
            Bent = 4,
        }

        #[device]
        pub(crate) fn bend(x: f32, shape: Shape) -> f32 {
            match shape {
                Shape::Straight => x,
                Shape::Bent => select(x < 0.0, 0.0, x),
            }
        }
    }

    /// `y = bend(x)`.
    #[kernel(workgroup(64))]
    pub(crate) fn bent(x: &[f32], y: &mut [f32], shape: Shape) {
        let i = global_index();
        if i < y.len() {
            y[i] = bend(x[i], shape);
        }
    }

    #[test]
    fn visible_as_the_author_says() {
        let _ = bent::KERNELS;
    }
}

/// `y = bend(x) * affine[0] + affine[1]`, by the glob's items; for elements of two types, in workgroups of two sizes.
#[kernel(workgroup(LANES_WANTED), instances(T = [f32, f16], LANES_WANTED = [32, 64]))]
pub fn bend_rows<T: Float, const LANES_WANTED: usize>(x: &[T], y: &mut [f32], shape: glob::Shape, affine: [f32; 2]) {
    let i = global_index();
    if i < y.len() {
        y[i] = glob::bend(x[i].to_f32(), shape) * affine[0] + affine[1];
    }
}

#[cfg(test)]
mod tests {
    use gpu::prelude::*;

    #[test]
    fn kernels_of_a_function_body_see_its_items() {
        #[device]
        const STEP: f32 = 0.5;

        #[device]
        fn stepped(x: f32) -> f32 {
            later(x) + STEP
        }

        #[kernel(workgroup(32))]
        fn step(y: &mut [f32]) {
            let i = global_index();
            if i < y.len() {
                y[i] = stepped(y[i]);
            }
        }

        #[device]
        fn later(x: f32) -> f32 {
            x * 2.0
        }

        let _ = step::KERNELS;
    }
}
