use trefoil_dsl::prelude::*;

#[device]
#[derive(Clone, Copy)]
struct Pair {
    low: f32,
    high: f32,
}

#[device]
#[derive(Clone, Copy)]
struct Range {
    low: f32,
    high: f32,
}

#[kernel(workgroup(64))]
fn choose(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let both = if x[i] > 0.0 { Pair { low: 0.0, high: x[i] } } else { Range { low: x[i], high: 0.0 } };
    y[i] = both.high - both.low;
}

#[kernel(workgroup(64))]
fn add(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let both = Pair { low: x[i], high: 1.0 } + Pair { low: 1.0, high: x[i] };
    y[i] = both.low;
}

#[kernel(workgroup(64))]
fn part(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let both = Pair { low: x[i] };
    y[i] = both.low;
}

fn main() {}
