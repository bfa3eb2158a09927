//! matrices that a subgroup holds together

use trefoil::{Device, DeviceKind};
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Rows and columns of the products, and what each invocation of a subgroup adds up.
#[device]
const SIDE: usize = 16;

/// The product of two matrices of 16 rows and columns, doubled, and 1 where it is negative.
#[kernel(workgroup(128), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
pub fn multiplied(a: &[f16], b: &[f16], out: &mut [f32]) {
    let left = MatrixA::<f16, SIDE, SIDE>::load(a, 0, SIDE);
    let right = MatrixB::<f16, SIDE, SIDE>::load(b, 0, SIDE);
    let product = multiply_add(left, right, Accumulator::<f32, SIDE, SIDE>::fill(0.0));
    product.map(|x| if x < 0.0 { 1.0 } else { 2.0 * x }).store(out, 0, SIDE);
}

/// What a device must list.
const PRODUCT: &str = "16x16x16 of f16 in f32";
/// Or, since larger ones are made of these.
const PARTS: &str = "8x8x8 of f16 in f32";

/// Runs it where the device lists such products, or ones that they are made of; elsewhere loading it is an error that names them.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let element = |i: usize| (i * 7 % 11) as f32 - 5.0;
    let numbers: Vec<f16> = (0..256).map(|i| f16::from_f32(element(i))).collect();
    let (a, b) = (device.buffer(&numbers)?, device.buffer(&numbers)?);
    let mut out = device.zeros::<f32>(256)?;
    let products = &device.properties().matrices;
    let lists = |product: &str| products.iter().any(|one| one.to_string() == product);
    let listed = device.kind() == DeviceKind::Cpu || lists(PRODUCT) || lists(PARTS);
    match device.run(multiplied(&a, &b, &mut out)?.groups(1)) {
        Err(error) if !listed && error.to_string().contains(PRODUCT) => return Ok(()),
        ran => ran?,
    }
    let expected: Vec<f32> = (0..256)
        .map(|at| (0..16).map(|k| element(at / 16 * 16 + k) * element(k * 16 + at % 16)).sum())
        .map(|x: f32| if x < 0.0 { 1.0 } else { 2.0 * x })
        .collect();
    expect(&out.read()?, &expected)
}
