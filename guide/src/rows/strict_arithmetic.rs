//! sums and products that are rounded one by one

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// 0, and what rounding takes from the product where that is contracted with the difference. It is as strict as the kernel that calls it.
#[device]
fn nothing(x: f32, y: f32) -> f32 {
    let product = x * y;
    x * y - product
}

/// A sum of two floats that are not rounded, as a sum and what rounding takes from it. No bit may change.
#[device(strict)]
fn two_sum(a: f32, b: f32) -> Vec2<f32> {
    let sum = a + b;
    let part = sum - a;
    Vec2::new(sum, (a - (sum - part)) + (b - part))
}

/// Products, and sums of two parts.
#[kernel(workgroup(64), targets(spirv, cuda, cpu), strict)]
pub fn exact(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        let v = x[i];
        let sum = two_sum(v * 1e6, v);
        y[4 * i] = v * v - 2.0 * v;
        y[4 * i + 1] = nothing(v, v);
        y[4 * i + 2] = sum.x;
        y[4 * i + 3] = sum.y;
    }
}

/// Runs it: every bit is what Rust computes.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (1..=1000).map(|i| 1.0 / i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(4000)?;
    device.run(exact(&x, &mut y)?.over(numbers.len()))?;
    let expected: Vec<u32> = numbers
        .iter()
        .flat_map(|v| {
            let sum = two_sum(v * 1e6, *v);
            [v * v - 2.0 * v, 0.0, sum.x, sum.y].map(f32::to_bits)
        })
        .collect();
    let given: Vec<u32> = y.read()?.into_iter().map(f32::to_bits).collect();
    expect(&given, &expected)
}
