use trefoil_dsl::prelude::*;

#[device]
struct Plain {
    x: f32,
}

#[device]
impl Plain {
    fn twice(self) -> f32 {
        self.x * 2.0
    }
}

#[device(methods)]
struct Listed {
    x: f32,
}

#[device]
impl Listed {
    fn twice(self) -> f32 {
        self.x * 2.0
    }
}

#[kernel(workgroup(64))]
fn unlisted(p: &[Plain], y: &mut [f32]) {
    y[0] = p[0].twice();
}

#[kernel(workgroup(64))]
fn unknown(p: &[Listed], y: &mut [f32]) {
    y[0] = p[0].thrice() + p[1].twice();
    y[1] = (p[0] + p[1]).x;
}

fn main() {}
