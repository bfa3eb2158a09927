//! The kernels of `examples/kernels`.

use trefoil::{Device, Dispatch};
use trefoil_example_kernels::workload::Maker;

use crate::Outcome;
use crate::figure::Figure;
use crate::measure::{Scale, medians};
use crate::row::{self, Order};

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

/// Measures a workload: the sum of its launches' times, and on a GPU also the time of many in a row.
pub fn measure(device: &Device, name: &str, make: Maker, scale: Scale) -> Outcome<Figure> {
    let elements = elements(name, scale);
    let first = make(device, elements)?;
    let (about, bytes, flops) = (first.about.clone(), first.bytes, first.flops);
    let mut sets: Vec<Vec<Dispatch>> = vec![first.launches];
    for _ in 1..scale.sets(bytes) {
        sets.push(make(device, elements)?.launches);
    }
    let [alone] = medians(sets.len(), |round| {
        // A device that had nothing to do lowers its clock; and what is timed is in no cache.
        device.run_all(sets[(round + sets.len() / 2) % sets.len()].iter().cloned())?;
        let mut time = 0;
        for launch in &sets[round % sets.len()] {
            time += device.time(launch.clone())?;
        }
        Ok([time])
    })?;
    let commands = row::commands(device, &sets)?;
    let of = |order| row::measure(device, &commands, alone, order);
    let in_a_row = scale.has_rows().then(|| of(Order::InARow)).transpose()?;
    let overlapping = (scale.has_rows() && sets.len() > 1).then(|| of(Order::Overlapping)).transpose()?;
    let name = format!("{name}, {about}");
    Ok(Figure { in_a_row, overlapping, bytes: Some(bytes), flops, ..Figure::alone(name, alone) })
}
