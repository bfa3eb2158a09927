use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn too_many_buffers(
    a: &[f32],
    b: &[f32],
    c: &[f32],
    d: &[f32],
    e: &[f32],
    f: &[f32],
    g: &[f32],
    h: &[f32],
    y: &mut [f32],
) {
    let i = global_index();
    y[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i];
}

fn main() {}
