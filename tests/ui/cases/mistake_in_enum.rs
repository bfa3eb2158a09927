use trefoil_dsl::prelude::*;

#[device]
enum Act {
    Relu,
    Leaky(f32),
}

#[device]
struct Layer {
    scale: f32,
    act: Act,
}

#[device]
fn activated(x: f32, act: Act) -> f32 {
    match act {
        Act::Relu => x.max(0.0),
        Act::Leaky => x * 0.1,
    }
}

#[kernel(workgroup(64))]
fn run(y: &mut [f32], layer: Layer, act: Act) {
    let i = global_index();
    y[i] = activated(y[i], act) * layer.scale + activated(y[i], Act::Relu);
}

// Nothing follows from it on the host either.
fn launch(mut y: trefoil_dsl::Buffer<f32>, layer: Layer) -> trefoil_dsl::Result<trefoil_dsl::Dispatch> {
    let again = layer;
    Ok(run(&mut y, again, layer.act)?.over(1))
}

fn main() {}
