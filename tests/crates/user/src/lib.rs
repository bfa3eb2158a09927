//! Kernels that use `#[device]` items of another crate, under a renamed trefoil, and items of their own with equal names.

use gpu::prelude::*;
use trefoil_test_helpers::deep as far;
use trefoil_test_helpers::{Body, LANES, group_sum};

/// Has the name of a private function of the other crate.
#[device]
fn weigh(x: f32) -> f32 {
    x + 1.0
}

/// Each workgroup writes the other crate's weighted sum of `x`, weighed again by this crate's function.
#[kernel(workgroup(64))]
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
    use inner::*;

    mod inner {
        use gpu::prelude::*;

        #[device]
        pub enum Shape {
            Straight,
            Bent = 4,
        }

        #[device]
        pub(super) fn bend(x: f32, shape: Shape) -> f32 {
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
