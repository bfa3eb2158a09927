use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
async fn declared(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(workgroup(64))]
fn awaits(y: &mut [f32]) {
    y[0] = later().await;
}

#[kernel(workgroup(64))]
fn tries(x: &[f32], y: &mut [f32]) {
    y[0] = x.first()?;
}

fn main() {}
