use trefoil_dsl::prelude::*;

#[device]
#[repr(packed)]
struct Packed {
    id: u32,
}

fn main() {}
