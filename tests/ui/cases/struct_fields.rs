use trefoil_dsl::prelude::*;
use trefoil_dsl::{Buffer, Device};

#[device]
struct Flagged {
    value: f32,
    flag: bool,
    bytes: [u8; 4],
}

#[kernel(workgroup(64))]
fn flagged(y: &mut [Flagged]) {
    y[global_index()].value = 1.0;
}

// What follows from a struct with a mistake is no second one.
fn upload(device: &Device, all: &[Flagged]) -> trefoil_dsl::Result<Buffer<Flagged>> {
    device.buffer(all)
}

// And what is no element at all is told in these words.
fn flags(device: &Device, all: &[bool]) -> trefoil_dsl::Result<Buffer<u32>> {
    let _ = device.buffer(all);
    device.buffer(&[0u32])
}

fn main() {}
