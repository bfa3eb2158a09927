//! Two kernels, the code that was emitted for them, and their results on every device of this machine.
//!
//! ```text
//! cargo run --release --example quickstart
//! cargo run --release --example quickstart --features wgpu,vulkan,cuda
//! ```
//!
//! The first runs them on the CPU, the second on GPUs too.

use std::error::Error;

use trefoil::artefact::{Kernel, Target};
use trefoil::prelude::*;
use trefoil::{Device, DeviceOptions, Dispatch, devices};

/// x / 2 * (1 + erf(x / sqrt 2)): kernels call it, and plain Rust does too.
#[device]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
}

/// y = gelu(x * scale + bias), element by element.
#[kernel(workgroup(256))]
fn scaled_gelu(x: &[f32], bias: &[f32], y: &mut [f32], scale: f32) {
    let i = global_index();
    if i < y.len() {
        y[i] = gelu(x[i] * scale + bias[i % bias.len()]);
    }
}

/// Each workgroup adds up its 256 elements of x.
#[kernel(workgroup(256))]
fn block_sums(x: &[f32], sums: &mut [f32]) {
    let mut partial = workgroup_array::<f32>(256);
    let i = global_index();
    let local = local_index();
    partial[local] = if i < x.len() { x[i] } else { 0.0 };
    barrier();
    let mut half = 128;
    while half > 0 {
        if local < half {
            partial[local] += partial[local + half];
        }
        barrier();
        half /= 2;
    }
    if local == 0 {
        sums[group_index()] = partial[0];
    }
}

/// Not a multiple of a workgroup, so that the last one is not full.
const ELEMENTS: usize = 4_000_037;
const SCALE: f32 = 0.75;
/// How far a result may lie from plain Rust's: devices round sums in another order, and have an error function of their own.
const TOLERANCE: f64 = 3e-5;

/// What a kernel did on a device.
struct Row {
    device: String,
    kernel: &'static str,
    error: f64,
    nanoseconds: Option<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for kernel in [&scaled_gelu::KERNEL, &block_sums::KERNEL] {
        print_code(kernel);
    }

    let x = numbers(ELEMENTS, 1);
    let bias = numbers(1000, 2);
    // The same function in plain Rust, and sums in twice the precision.
    let expected_gelu: Vec<f64> =
        x.iter().enumerate().map(|(i, x)| f64::from(gelu(x * SCALE + bias[i % bias.len()]))).collect();
    let expected_sums: Vec<f64> = x.chunks(256).map(|block| block.iter().copied().map(f64::from).sum()).collect();

    let mut rows = Vec::new();
    let mut absent = Vec::new();
    for listing in devices::list(&DeviceOptions::default()) {
        let device = match listing.device {
            Ok(device) => device,
            Err(error) => {
                absent.push(format!("{:<7} {error}", listing.kind.name()));
                continue;
            }
        };
        let name = format!("{} ({})", listing.kind, device.properties().name);
        let (on_device, bias) = (device.buffer(&x)?, device.buffer(&bias)?);
        let mut y = device.uninit::<f32>(x.len())?;
        let nanoseconds = best_time(&device, || Ok(scaled_gelu(&on_device, &bias, &mut y, SCALE)?.over(ELEMENTS)))?;
        let error = largest_difference(&y.read()?, &expected_gelu);
        rows.push(Row { device: name.clone(), kernel: "scaled_gelu", error, nanoseconds });

        let mut sums = device.uninit::<f32>(expected_sums.len())?;
        let nanoseconds = best_time(&device, || Ok(block_sums(&on_device, &mut sums)?.over(ELEMENTS)))?;
        let error = largest_difference(&sums.read()?, &expected_sums);
        rows.push(Row { device: name, kernel: "block_sums", error, nanoseconds });
    }

    println!("{:<44} {:<12} {:>9} {:>10} {:>12}", "device", "kernel", "elements", "max error", "time");
    for Row { device, kernel, error, nanoseconds } in &rows {
        let time = match nanoseconds {
            Some(nanoseconds) => format!("{:.3} ms", *nanoseconds as f64 / 1e6),
            None => "no clock".to_owned(),
        };
        println!("{device:<44} {kernel:<12} {ELEMENTS:>9} {error:>10.1e} {time:>12}");
    }
    for line in absent {
        println!("{line}");
    }
    match rows.iter().find(|row| row.error.is_nan() || row.error > TOLERANCE) {
        Some(row) => Err(format!("{} on {} is off by {:e}", row.kernel, row.device, row.error).into()),
        None => Ok(()),
    }
}

/// Prints what was emitted for a kernel while this program was compiled.
fn print_code(kernel: &Kernel) {
    for (target, language) in [(Target::Wgsl, "WGSL"), (Target::Spirv, "SPIR-V"), (Target::Cuda, "CUDA C")] {
        if let Some(text) = kernel.text(target) {
            println!("---- {}: {language}\n{text}", kernel.name);
        }
    }
}

/// Runs a kernel a few times and gives the shortest time; `None` if the device has no clock.
fn best_time(device: &Device, mut dispatch: impl FnMut() -> trefoil::Result<Dispatch>) -> trefoil::Result<Option<u64>> {
    // The first run compiles the kernel on devices that load text.
    device.run(dispatch()?)?;
    let mut best = None;
    for _ in 0..5 {
        let time = match device.time(dispatch()?) {
            Ok(time) => time,
            Err(trefoil::Error::Driver { call: "timing", .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        best = Some(best.map_or(time, |best: u64| best.min(time)));
    }
    Ok(best)
}

/// Numbers between -4 and 4 that look random.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 21) as f32 - 4.0
    };
    (0..count).map(|_| next()).collect()
}

fn largest_difference(results: &[f32], expected: &[f64]) -> f64 {
    let differences = results.iter().zip(expected).map(|(result, expected)| (f64::from(*result) - expected).abs());
    // Unlike `f64::max`, this keeps a NaN.
    differences.fold(0.0, |largest, difference| if difference <= largest { largest } else { difference })
}
