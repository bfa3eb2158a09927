use trefoil_dsl::prelude::*;

#[device]
fn wrong(x: f32) -> f32 {
    x + true
}

#[device]
fn pair(x: f32) -> [f32; 2] {
    [x, true]
}

#[device]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

#[device]
fn both<T: Number>(a: T, b: T) -> T {
    a + b
}

#[device]
fn first<T: Number, const N: usize>(values: [T; N]) -> T {
    values[0]
}

// Types that would have come from a mistake are not asked for.
#[kernel(workgroup(64))]
fn used(y: &mut [f32]) {
    let i = global_index();
    let v = Vec2::new(wrong(1.0), wrong(2.0)) * 2.0;
    let a = [wrong(v.x), wrong(v.y)];
    let late;
    late = wrong(a[1]);
    y[i] = apply(late, wrong);
    y[i] = both(wrong(1.0), wrong(2.0));
    y[i] = first([wrong(1.0), wrong(2.0)]);
    y[i] = first(pair(1.0));
    y[i] = both(wrong(1.0), wrong(2.0)) + both(1.0, 2.0);
}

fn main() {}
