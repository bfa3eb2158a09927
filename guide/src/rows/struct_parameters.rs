//! structs by value as parameters, nested and with arrays

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Which elements are weighted.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its first element, in each direction.
    pub origin: Vec2<u32>,
    /// Its weights.
    pub weights: [f32; 4],
}

/// A plan of two windows.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// One after the other.
    pub windows: [Window; 2],
    /// Added to even and to odd elements.
    pub offset: [f32; 2],
}

/// Every second element by the second window.
#[kernel(workgroup(64))]
pub fn weighted(x: &[f32], y: &mut [f32], plan: Plan) {
    let i = global_index();
    if i < y.len() {
        let window = plan.windows[i % 2];
        let first = i + window.origin.x as usize;
        let mut sum = plan.offset[i % 2];
        for k in 0..4usize {
            sum += x[first + k] * window.weights[k];
        }
        y[i] = sum;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..80).map(|i| i as f32).collect();
    let window = |at, weights| Window { origin: Vec2::new(at, 0), weights };
    let plan = Plan { windows: [window(0, [1.0, 0.0, 0.5, 0.0]), window(2, [0.0, 2.0, 0.0, 1.0])], offset: [0.25, 4.0] };
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(70)?;
    device.run(weighted(&x, &mut y, plan)?.over(70))?;
    let at = |i: usize| numbers[i];
    let expected: Vec<f32> = (0..70)
        .map(|i| if i % 2 == 0 { at(i) + 0.5 * at(i + 2) + 0.25 } else { 2.0 * at(i + 3) + at(i + 5) + 4.0 })
        .collect();
    expect(&y.read()?, &expected)
}
