//! The product of matrices of halves, against sums in `f64`.

use trefoil::prelude::{Vec4, f16};
use trefoil::{Buffer, Device, DeviceKind, Dispatch, Result};
use trefoil_example_kernels::matmul_f16::{matmul, padded};

use crate::common::{Subject, devices};
use crate::held::EPSILON;
use crate::numbers::numbers;

/// Products of which either is enough, since the compiler makes the larger of smaller ones.
const PRODUCTS: [&str; 2] = ["16x16x16 of f16 in f32", "8x8x8 of f16 in f32"];

/// Whether the device has the products that the kernel is made of.
pub fn has_matrices(device: &Device) -> bool {
    device.kind() == DeviceKind::Cpu
        || device.properties().matrices.iter().any(|product| PRODUCTS.contains(&product.to_string().as_str()))
}

/// Numbers that halves hold.
pub fn halves(count: usize, seed: u32) -> Vec<f16> {
    numbers(count, seed, 1.0).into_iter().map(f16::from_f32).collect()
}

/// What gives the launches of a product.
type Product = fn(&Buffer<Vec4<u32>>, &Buffer<Vec4<u32>>, &mut Buffer<f32>, [usize; 3]) -> Result<Vec<Dispatch>>;

pub fn check(subject: &Subject, [m, n, k]: [usize; 3], matmul: Product) {
    let about = format!("{m} by {n} by {k} on {}", subject.name);
    let (a, b) = (halves(m * k, 3), halves(k * n, 4));
    let device = &subject.device;
    let (left, right) = (device.buffer(&padded(&a, k)).unwrap(), device.buffer(&padded(&b, n)).unwrap());
    // Poison, which a place that is not written keeps.
    let mut c = device.buffer(&vec![f32::NAN; m * n]).unwrap();
    let launches = matmul(&left, &right, &mut c, [m, n, k]).unwrap();
    if !has_matrices(device) {
        let error = device.run_all(launches).unwrap_err().to_string();
        let reasons = ["matri", "is not compiled for wgsl", "bytes of workgroup memory"];
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{about}: {error}");
        return;
    }
    device.run_all(launches).unwrap();
    for (at, given) in c.read().unwrap().into_iter().enumerate() {
        let (row, column) = (at / n, at % n);
        let (mut expected, mut sizes) = (0.0f64, 0.0f64);
        for d in 0..k {
            let product = a[row * k + d].to_f64() * b[d * n + column].to_f64();
            expected += product;
            sizes += product.abs();
        }
        // Matrix units cut off where they might round, and add several products at once.
        let bound = sizes * EPSILON * (k as f64 + 2.0) + 1e-6;
        assert!((f64::from(given) - expected).abs() <= bound, "{about}: ({row}, {column}) is {given}, not {expected}");
    }
}

#[test]
fn products() {
    for subject in devices() {
        for size in [[1, 1, 1], [16, 16, 16], [127, 129, 33], [130, 7, 65], [128, 128, 64], [257, 136, 40]] {
            check(&subject, size, matmul);
        }
        if !subject.device.properties().software && subject.device.kind() != DeviceKind::Cpu {
            check(&subject, [1000, 1048, 520], matmul);
        }
    }
}
