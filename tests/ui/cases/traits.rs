use trefoil_dsl::prelude::*;

trait Scale {
    fn scale(self) -> f32;
}

impl Scale for f32 {
    fn scale(self) -> f32 {
        self * 2.0
    }
}

#[kernel(workgroup(64))]
fn scaled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i].scale();
}

#[kernel(workgroup(64))]
fn dynamic(f: &dyn Fn(f32) -> f32, y: &mut [f32]) {
    y[0] = f(1.0);
}

#[kernel(workgroup(64), instances(T = [f32]))]
fn unbounded<T>(x: &[T], y: &mut [T]) {
    let i = global_index();
    y[i] = x[i] + x[i];
}

fn main() {}
