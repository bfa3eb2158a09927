use trefoil_dsl::prelude::*;

#[device]
enum Mode {
    Keep,
    Double,
}

#[device]
struct Settings {
    scale: f32,
    mode: Mode,
}

#[kernel(workgroup(64))]
fn struct_with_enum(y: &mut [f32], settings: Settings) {
    y[0] = settings.scale;
}

fn main() {}
