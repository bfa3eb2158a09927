//! The kernels of `examples/kernels`.

use std::time::Instant;

use trefoil::{Device, Dispatch};
use trefoil_example_kernels::workload::Maker;

use crate::Outcome;
use crate::measure::{Figure, Scale, median, medians};

/// How long a row takes at least, so that a device that lowers its clock between launches has raised it.
const ROW: u64 = 50_000_000;
/// How often a row is timed, the first ones not counted.
const ROUNDS: usize = 20;
const WARM_UP: usize = 5;

/// Elements of a workload: models have shapes of their own within them.
fn elements(name: &str, scale: Scale) -> usize {
    match (scale, name) {
        (Scale::Gpu, "kernel radix_sort" | "kernel stencil" | "kernel philox") => 1 << 26,
        (Scale::Gpu, _) => 1 << 28,
        (Scale::Cpu, "kernel radix_sort") => 1 << 22,
        (Scale::Cpu, _) => 1 << 24,
        (Scale::Software, _) => 1 << 18,
    }
}

/// Measures a workload: the sum of its launches' times, and on a GPU also the time of many in a row, by the host's clock: what a clock around a launch costs does not count there, and no
/// device lowers its clock between launches.
pub fn measure(device: &Device, name: &str, make: Maker, scale: Scale) -> Outcome<Vec<Figure>> {
    let elements = elements(name, scale);
    let first = make(device, elements)?;
    let (about, bytes, flops) = (first.about.clone(), first.bytes, first.flops);
    let mut sets: Vec<Vec<Dispatch>> = vec![first.launches];
    for _ in 1..scale.sets(bytes) {
        sets.push(make(device, elements)?.launches);
    }
    let [nanoseconds] = medians(sets.len(), |round| {
        // A device that had nothing to do lowers its clock; and what is timed is in no cache.
        device.run_all(sets[(round + sets.len() / 2) % sets.len()].iter().cloned())?;
        let mut time = 0;
        for launch in &sets[round % sets.len()] {
            time += device.time(launch.clone())?;
        }
        Ok([time])
    })?;
    let figure = |name: String, nanoseconds| Figure { name, nanoseconds, bytes: Some(bytes), flops };
    let mut figures = vec![figure(format!("kernel {about}"), nanoseconds)];
    if scale == Scale::Gpu {
        let launches: usize = sets.iter().map(Vec::len).sum();
        let rounds = ROW.div_ceil(nanoseconds.max(1) * sets.len() as u64) as usize;
        let row = device.record(sets.iter().flatten().cycle().take(rounds * launches).cloned())?;
        let mut times = Vec::new();
        for _ in 0..WARM_UP + ROUNDS {
            let start = Instant::now();
            row.run()?;
            times.push(start.elapsed().as_nanos() as u64 / (rounds * sets.len()) as u64);
        }
        figures.push(figure(format!("  {} in a row", rounds * sets.len()), median(times.split_off(WARM_UP))));
    }
    Ok(figures)
}
