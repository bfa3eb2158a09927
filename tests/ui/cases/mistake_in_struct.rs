use trefoil_dsl::prelude::*;

#[device(methods)]
struct Flags {
    all: bool,
    weight: f32,
}

#[device]
impl Flags {
    fn of(weight: f32) -> Self {
        Self { all: true, weight }
    }
    fn weighed(self, f: impl Fn(f32) -> f32) -> f32 {
        f(self.weight)
    }
    fn add(self, sum: &mut f32) {
        *sum += self.weight;
    }
}

#[device]
fn weight(flags: Flags) -> f32 {
    flags.weight
}

#[device]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

// Nothing follows from it.
#[kernel(workgroup(64))]
fn used(all: &[Flags], y: &mut [f32]) {
    let i = global_index();
    let mut sum = 0.0;
    all[i].add(&mut sum);
    let flags = Flags { all: true, weight: bitcast(1u32) };
    sum += weight(flags) + Flags::of(bitcast(1u32)).weight;
    y[i] = all[i].weighed(|v| v + 1.0) + apply(flags.weight, sqrt) + sum;
}

fn main() {}
