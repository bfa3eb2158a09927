//! The product of Q4_K weights and a vector, against weights taken apart bit by bit in `f64`.

use trefoil::DeviceKind;
use trefoil::f16;
use trefoil_example_kernels::q4_k::{BLOCK, matvec};

use crate::common::{Subject, devices};
use crate::held::{EPSILON, Held, repeat};
use crate::numbers::numbers;

/// Bytes of a block.
const BYTES: usize = 144;

/// Blocks of random bits, with scales that are numbers of a usual size.
fn blocks(count: usize, seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) * 2 + 1;
    let mut bytes = Vec::with_capacity(count * BYTES);
    for _ in 0..count {
        for scale in [0.0123f32, 0.0271] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let factor = (state >> 40) as f32 / (1 << 24) as f32;
            bytes.extend(f16::from_f32(scale * (factor + 0.25)).to_le_bytes());
        }
        for _ in 0..(BYTES - 4) / 4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend(((state >> 32) as u32).to_le_bytes());
        }
    }
    bytes
}

/// The 256 weights of a block.
fn weights(block: &[u8]) -> Vec<f64> {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f64();
    let packed = &block[4..16];
    (0..BLOCK)
        .map(|i| {
            let sub = i / 32;
            let (scale, min) = if sub < 4 {
                (packed[sub] % 64, packed[sub + 4] % 64)
            } else {
                (packed[sub + 4] % 16 + packed[sub - 4] / 64 * 16, packed[sub + 4] / 16 + packed[sub] / 64 * 16)
            };
            let byte = block[16 + i / 64 * 32 + i % 32];
            let number = if i / 32 % 2 == 0 { byte % 16 } else { byte / 16 };
            half(0) * f64::from(scale) * f64::from(number) - half(2) * f64::from(min)
        })
        .collect()
}

fn held(subject: &Subject, bytes: &[u8]) -> Held<u32> {
    Held::new(&subject.device, &bytemuck::pod_collect_to_vec::<u8, u32>(bytes))
}

fn check(subject: &Subject, rows: usize, columns: usize) {
    let about = format!("{rows} rows of {columns} on {}", subject.name);
    let packed = blocks(rows * columns / BLOCK, 5);
    let x = numbers(columns, 6, 2.0);
    let (there, x_there) = (held(subject, &packed), Held::new(&subject.device, &x));
    let mut y = Held::output(&subject.device, rows);
    subject.device.run_all(matvec(there.slice(), x_there.slice(), y.slice_mut()).unwrap()).unwrap();
    for (row, given) in y.read(&about).iter().enumerate() {
        let bytes = columns / BLOCK * BYTES;
        let weights = packed[row * bytes..(row + 1) * bytes].chunks(BYTES).flat_map(weights);
        let (mut expected, mut sizes) = (0.0, 0.0);
        for (weight, x) in weights.zip(&x) {
            expected += weight * f64::from(*x);
            // A weight is a product less a min, each summed by itself.
            sizes += (weight.abs() + 2.0 * 0.0271 * 1.25 * 63.0) * f64::from(x.abs());
        }
        // Additions one after the other: 16 of a sub-block, one for each group of an invocation, 32 sums of a quarter of the workgroup, and the quarters.
        let depth = (16 + columns / 4096 + 1 + 32 + 4) as f64;
        assert!(
            (f64::from(*given) - expected).abs() <= sizes * EPSILON * depth,
            "{about}: row {row} is {given}, {expected} expected"
        );
    }
}

#[test]
fn products() {
    for subject in devices() {
        for (rows, columns) in
            [(0, 256), (3, 0), (1, 256), (3, 512), (4, 256), (5, 4096), (7, 4352), (127, 768), (1031, 256)]
        {
            check(&subject, rows, columns);
        }
        if subject.device.properties().software {
            check(&subject, 67, 4096);
        } else {
            check(&subject, 11_008, 4096);
        }
    }
}

#[test]
fn products_are_the_same_each_time() {
    for subject in devices() {
        let rows = if subject.device.kind() == DeviceKind::Cuda { 11_008 } else { 67 };
        let weights = held(&subject, &blocks(rows * 4, 9));
        let x = Held::new(&subject.device, &numbers(1024, 3, 1.0));
        let mut y = Held::output(&subject.device, rows);
        let launches = matvec(weights.slice(), x.slice(), y.slice_mut()).unwrap();
        repeat(&subject.device, &launches, &y, &subject.name);
    }
}

#[test]
fn parts_of_blocks_are_refused() {
    for subject in devices() {
        let weights = held(&subject, &blocks(1, 9));
        for (columns, rows, argument) in [(255, 1, "x"), (256, 2, "weights"), (512, 1, "weights")] {
            let x = Held::new(&subject.device, &vec![1.0f32; columns]);
            let mut y = Held::output(&subject.device, rows);
            let error = matvec(weights.slice(), x.slice(), y.slice_mut()).unwrap_err().to_string();
            assert!(error.contains(&format!("argument `{argument}`")), "{error}");
        }
    }
}
