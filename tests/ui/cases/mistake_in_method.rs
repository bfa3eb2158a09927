use trefoil_dsl::prelude::*;

#[device(methods)]
struct Pair {
    a: f32,
    b: f32,
}

#[device]
impl Pair {
    fn sum(&self) -> f32 {
        self.a + self.c
    }
    fn clear(&self) {
        self.b = 0.0;
    }
}

// It says nothing more.
#[kernel(workgroup(64))]
fn sums(p: &[Pair], y: &mut [f32]) {
    y[0] = p[0].sum();
}

fn main() {}
