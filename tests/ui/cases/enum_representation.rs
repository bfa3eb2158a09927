use trefoil_dsl::prelude::*;

#[device]
#[repr(u8)]
enum Act {
    Keep,
    Double,
}

// It is a parameter all the same.
#[kernel(workgroup(64))]
fn activate(y: &mut [f32], act: Act) {
    let i = global_index();
    if act == Act::Double {
        y[i] = y[i] * 2.0;
    }
}

fn launch(mut y: trefoil_dsl::Buffer<f32>) -> trefoil_dsl::Result<trefoil_dsl::Dispatch> {
    Ok(activate(&mut y, Act::Keep)?.over(1))
}

fn main() {}
