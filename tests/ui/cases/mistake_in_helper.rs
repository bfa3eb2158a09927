use trefoil_dsl::prelude::*;

#[device]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x) + true
}

#[device]
fn doubled(x: f32) -> f32 {
    x * 2.0
}

#[device]
fn wrong(x: f32) -> f32 {
    x + 1u32
}

#[device]
fn twice<F: Fn(f32) -> f32 + Copy>(x: f32, f: F) -> f32 {
    apply(apply(x, f), f)
}

// Whatever function is handed to it, nothing more is said.
#[kernel(workgroup(64))]
fn handed(y: &mut [f32]) {
    let i = global_index();
    y[i] = apply(y[i], doubled) + apply(y[i], wrong) + apply(y[i], sqrt) + apply(y[i], |v| v * v);
    y[i] = twice(y[i], doubled);
}

// But an argument may have a mistake of its own.
#[kernel(workgroup(64))]
fn of_their_own(y: &mut [f32], factor: f32) {
    y[0] = apply(y[0], |v| v * factor);
    y[1] = apply(y[1] + true, doubled);
}

fn main() {}
