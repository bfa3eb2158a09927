//! A kernel of the program's own as an op of a graph, beside ops of the library, on every device of this machine.
//!
//! ```text
//! cargo run --release --example own_op --features graph
//! cargo run --release --example own_op --features graph,vulkan -- vulkan
//! ```
//!
//! It takes a kernel, a struct whose fields are the op's attributes, and two traits for the struct: [`Op`] says which types come out and what the values are, and [`Candidate`] how a kernel computes them. The graph finds
//! the op memory, puts barriers around it, copies what does not lie as the kernel reads it, and runs it for all values of the symbols. What works element by element, as this does, may have a body in IR instead, which the
//! graph fuses with its neighbours ([`trefoil::graph::op::Map`]).

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use trefoil::graph::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, ParamValue, Request,
    Slot, Step,
};
use trefoil::graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Symbol, TensorType, reference};
use trefoil::prelude::*;
use trefoil::{Device, DeviceOptions, devices};

/// y = (x + sqrt(x^2 + b)) / 2: like max(x, 0), but smooth.
#[kernel(workgroup(256))]
fn squareplus(x: &[f32], y: &mut [f32], b: f32) {
    let i = global_index();
    if i < y.len() {
        y[i] = 0.5 * (x[i] + sqrt(x[i] * x[i] + b));
    }
}

/// The op; its fields are all that distinguishes two of them.
#[derive(Clone, Copy, Debug)]
struct Squareplus {
    b: f32,
}

impl Op for Squareplus {
    fn name(&self) -> &'static str {
        "squareplus"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("b", self.b.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        match inputs {
            [x] if x.element == ElementType::F32 => Ok(vec![x.clone()]),
            [x] => Err(OpError::ElementType { input: "x", given: x.element, expected: "f32".to_owned() }),
            _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
        }
    }

    /// In `f64`, by other means than the kernel, which is compared with it.
    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let value = |x: &f64| 0.5 * (x + (x * x + f64::from(self.b)).sqrt());
        vec![HostTensor { shape: inputs[0].shape.clone(), values: inputs[0].values.iter().map(value).collect() }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 5
    }

    /// Candidates, of which the graph takes the cheapest that the device can run: here there is one, and the struct is it.
    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

impl Candidate for Squareplus {
    fn name(&self) -> &'static str {
        "squareplus"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let x = &request.inputs[0];
        // The graph copies what lies otherwise, such as the transposed tensor below, and asks again.
        if !x.layout.is_contiguous(&x.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let step = KernelStep {
            // Each instance of a generic kernel has such a constant, as `scale::SCALE_F16` of `scale<T>`.
            kernel: Arc::new(squareplus::KERNEL.clone()),
            // Buffers and parameters, each in the order of the signature; the lengths are the graph's to fill in.
            bindings: vec![Slot::Input(0), Slot::Output(0)],
            params: vec![ParamValue::F32(self.b)],
            grid: Grid::Invocations(request.outputs[0].elements()),
        };
        Ok(Implementation { steps: vec![Step::Kernel(step)], scratch: Vec::new(), cost: 1.0 })
    }
}

const WIDTH: usize = 16;
const ROWS: usize = 37;

fn main() -> Result<(), Box<dyn Error>> {
    let rows = Symbol::new("rows", 1, 512)?;
    let mut g = Graph::new();
    let x = g.input("x", ElementType::F32, (&rows, WIDTH))?;
    let turned = g.transpose(x, &[1, 0])?;
    let bent = g.add_one(Squareplus { b: 0.25 }, &[turned])?;
    let y = g.sum(bent, &[0], false)?;
    g.output("y", y)?;

    let extents = Extents::with([(&rows, ROWS as i64)])?;
    let x: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i % 23) as f32 * 0.25 - 2.75).collect();
    let on_host = HostTensor { shape: vec![ROWS, WIDTH], values: x.iter().copied().map(f64::from).collect() };
    let wanted = &reference::evaluate(&g, &BTreeMap::from([("x".to_owned(), on_host)]), &extents)?["y"];
    let options = DeviceOptions::default();
    let found: Vec<Device> = match std::env::args().nth(1) {
        Some(name) => vec![devices::open_by_name(&name, &options)?],
        None => devices::list(&options).into_iter().filter_map(|listing| listing.device.ok()).collect(),
    };
    for device in found {
        let name = &device.properties().name;
        let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
        let y = executable.run(&[("x", (&x).into())], &extents)?.host("y")?;
        let close = |(y, wanted): (&f64, &f64)| (y - wanted).abs() <= 1e-5 * wanted.abs();
        if !y.values.iter().zip(&wanted.values).all(close) {
            return Err(format!("on {name}: {y:?}, not {wanted:?}").into());
        }
        println!("{name}: {ROWS} rows, as the reference has them");
    }
    Ok(())
}
