//! The kernels of this crate as ops of graphs, on every device: a user's op is an `Op` whose candidates name the user's kernels.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

// What the tests share knows the facade by its own name.
extern crate gpu as trefoil;

#[path = "../../../common/mod.rs"]
mod common;
#[path = "../../../common/numbers.rs"]
mod numbers;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::devices;
use gpu::DeviceKind;
use gpu::artefact::{Feature, Kernel};
use gpu::f16;
use gpu::graph::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, ParamValue, Request,
    Slot, Step,
};
use gpu::graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, TensorType, reference};
use numbers::numbers;
use trefoil_test_helpers::deep;
use trefoil_test_user::glob::Shape;
use trefoil_test_user::{bend_rows, weighed_sum};

/// `bend(x) * affine[0] + affine[1]`, to `f32`.
#[derive(Clone, Copy, Debug)]
struct Bend {
    shape: Shape,
    affine: [f32; 2],
}

/// The weighed sum of all elements, `copies` times.
#[derive(Clone, Copy, Debug)]
struct WeighedSum {
    copies: i64,
}

/// A step that reads the input and writes the output by one kernel.
fn one_step(kernel: &Kernel, params: Vec<ParamValue>, grid: Grid) -> Implementation {
    let bindings = vec![Slot::Input(0), Slot::Output(0)];
    let step = KernelStep { kernel: Arc::new(kernel.clone()), bindings, params, grid };
    Implementation { steps: vec![Step::Kernel(step)], scratch: Vec::new(), cost: 1.0 }
}

fn contiguous(request: &Request<'_>) -> Result<(), Ineligible> {
    let x = &request.inputs[0];
    if x.layout.is_contiguous(&x.ty.shape) { Ok(()) } else { Err(Ineligible::NeedsContiguous(vec![0])) }
}

impl Candidate for Bend {
    fn name(&self) -> &'static str {
        "bend rows"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request)?;
        let wanted = format!("bend_rows_{}_64", request.inputs[0].ty.element);
        let kernel = bend_rows::KERNELS.iter().find(|kernel| kernel.name == wanted);
        let kernel = kernel.ok_or_else(|| Ineligible::Other(format!("there is no `{wanted}`")))?;
        let params = vec![ParamValue::Enum(self.shape as u32), ParamValue::F32s(self.affine.to_vec())];
        Ok(one_step(kernel, params, Grid::Invocations(request.outputs[0].elements())))
    }
}

impl Op for Bend {
    fn name(&self) -> &'static str {
        "bend"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("shape", (self.shape as u32).to_string()), ("affine", format!("{:?}", self.affine))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        match inputs {
            [x] if x.element.is_float() => Ok(vec![TensorType { element: ElementType::F32, shape: x.shape.clone() }]),
            [x] => Err(OpError::ElementType { input: "x", given: x.element, expected: "f32 or f16".to_owned() }),
            _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
        }
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let bent = |x: &f64| if matches!(self.shape, Shape::Bent) { x.max(0.0) } else { *x };
        let [factor, offset] = self.affine.map(f64::from);
        let values = inputs[0].values.iter().map(|x| bent(x) * factor + offset).collect();
        vec![HostTensor { shape: inputs[0].shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 2i64
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

impl Candidate for WeighedSum {
    fn name(&self) -> &'static str {
        "weighed sum"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request)?;
        // The instance with wider indices wherever the device has them.
        let device = request.device;
        let runs = |kernel: &&&Kernel| {
            let has = device.features.has(Feature::Int64) && device.kind != DeviceKind::Wgpu;
            kernel.index.is_wide() == has
        };
        let kernel = weighed_sum::KERNELS.iter().find(runs);
        let kernel = kernel.ok_or_else(|| Ineligible::Other("there is no such instance".to_owned()))?;
        Ok(one_step(kernel, Vec::new(), Grid::Workgroups(Dim::from(self.copies))))
    }
}

impl Op for WeighedSum {
    fn name(&self) -> &'static str {
        "weighed_sum"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("copies", self.copies.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        match inputs {
            [x] if x.element == ElementType::F32 => {
                Ok(vec![TensorType { element: x.element, shape: vec![Dim::from(self.copies)] }])
            }
            [x] => Err(OpError::ElementType { input: "x", given: x.element, expected: "f32".to_owned() }),
            _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
        }
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let sum: f64 = inputs[0].values.iter().map(|x| x * f64::from(deep::FACTOR)).sum();
        vec![HostTensor { shape: outputs[0].clone(), values: vec![sum + 1.0; outputs[0][0]] }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * self.copies * 2i64
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(*self)])
    }
}

#[test]
fn kernels_of_users_serve_as_ops_of_graphs() {
    let count = Symbol::new("count", 0, 4099).unwrap();
    for element in [ElementType::F32, ElementType::F16] {
        let mut graph = Graph::new();
        let x = graph.input("x", element, vec![Dim::from(&count), Dim::from(2i64)]).unwrap();
        // Read the other way round, so that the op's input is copied; between the library's ops, which are fused.
        let turned = graph.transpose(x, &[1, 0]).unwrap();
        let bend = Bend { shape: Shape::Bent, affine: [2.0, 0.5] };
        let bent = graph.add_one(bend, &[turned]).unwrap();
        let folded = graph.tanh(bent).unwrap();
        let sums = graph.add_one(WeighedSum { copies: 3 }, &[folded]).unwrap();
        let y = graph.neg(sums).unwrap();
        graph.output("bent", bent).unwrap();
        graph.output("y", y).unwrap();
        for subject in devices() {
            let executable = Executable::compile(&graph, &Model::new(), &subject.device, &Options::default()).unwrap();
            let chosen: Vec<_> = executable.explain().decisions.into_iter().map(|made| made.candidate).collect();
            assert_eq!(chosen, ["bend rows", "weighed sum"], "on {}", subject.name);
            for length in [1usize, 4099, 0, 63, 32] {
                let mut extents = Extents::new();
                extents.set(&count, length as i64).unwrap();
                let halves: Vec<f16> = numbers(2 * length, 1, 4.0).into_iter().map(f16::from_f32).collect();
                let floats: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
                let data = if element == ElementType::F16 { (&halves).into() } else { (&floats).into() };
                let outputs = executable.run(&[("x", data)], &extents).unwrap();
                let values = floats.iter().map(|x| f64::from(*x)).collect();
                let leaves = BTreeMap::from([("x".to_owned(), HostTensor { shape: vec![length, 2], values })]);
                let expected = reference::evaluate(&graph, &leaves, &extents).unwrap();
                // `bent` rounds twice; each of the terms of `y` is below 3 and off by the error of tanh, and is added once.
                let terms = (2 * length) as f64;
                let rounding = f64::from(f32::EPSILON);
                let bounds = [("bent", 9.0 * 2.0 * rounding), ("y", (terms + 24.0) * (terms + 1.0) * 3.0 * rounding)];
                for (name, bound) in bounds {
                    let (given, wanted) = (outputs.host(name).unwrap(), &expected[name]);
                    assert_eq!(given.shape, wanted.shape, "`{name}` on {}", subject.name);
                    for (given, wanted) in given.values.iter().zip(&wanted.values) {
                        let close = (given - wanted).abs() <= bound;
                        assert!(close, "`{name}` of {length} on {}: {given}, {wanted} expected", subject.name);
                    }
                }
            }
        }
    }
}

#[test]
fn an_op_that_a_kernel_does_not_take_is_refused_by_name() {
    /// As [`Bend`], with a number too many.
    #[derive(Clone, Copy, Debug)]
    struct Wrong;
    impl Candidate for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }
        fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
            let params = vec![ParamValue::Enum(0), ParamValue::F32s(vec![1.0, 2.0, 3.0])];
            Ok(one_step(bend_rows::KERNELS[0], params, Grid::Invocations(request.outputs[0].elements())))
        }
    }
    impl Op for Wrong {
        fn name(&self) -> &'static str {
            "wrong_bend"
        }
        fn attributes(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }
        fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
            Ok(inputs.to_vec())
        }
        fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
            inputs.to_vec()
        }
        fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
            inputs[0].elements()
        }
        fn kind(&self) -> OpKind<'_> {
            OpKind::Kernels(vec![Box::new(*self)])
        }
    }

    let mut graph = Graph::new();
    let half = graph.input("half", ElementType::I32, vec![Dim::from(8i64)]).unwrap();
    let bend = Bend { shape: Shape::Straight, affine: [1.0, 0.0] };
    let error = graph.add_one(bend, &[half]).unwrap_err().to_string();
    assert_eq!(error, "bend(half: i32[8]): input `x` is i32; expected f32 or f16");

    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(8i64)]).unwrap();
    let y = graph.add_one(Wrong, &[x]).unwrap();
    graph.output("y", y).unwrap();
    for subject in devices() {
        let error = Executable::compile(&graph, &Model::new(), &subject.device, &Options::default()).unwrap_err();
        assert!(matches!(&error, Error::Candidate { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("wrong_bend") && text.contains("parameter `affine`"), "{text}");
    }
}
