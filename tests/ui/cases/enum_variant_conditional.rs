use trefoil_dsl::prelude::*;

#[device]
enum Mode {
    Plain,
    #[cfg(debug_assertions)]
    Traced,
    Last,
}

#[kernel(workgroup(64))]
fn conditional(y: &mut [u32], mode: Mode) {
    y[global_index()] = if mode == Mode::Last { 1 } else { 0 };
}

fn main() {}
