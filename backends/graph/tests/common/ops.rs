//! Ops as a user would define them: sums of rows by a kernel in one step and in two, and on the host; an op that works in its operand's memory; and maps that only their types tell apart.

use std::sync::Arc;

use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::compile::compile_for;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable};
use trefoil_codegen::ir::{BinaryOperator, Builtin, Expression, Handle, Instance, Local, Root, Scalar};
use trefoil_graph::op::{
    CallStep, Callee, Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Map, Op, OpError, OpKind,
    ParamValue, Request, Slot, Step,
};
use trefoil_graph::{Dim, TensorType};

/// `[rows, columns]` to `[rows]`.
#[derive(Debug)]
pub struct RowSum;

/// One kernel; or two, by way of scratch memory; or a function of the host.
#[derive(Debug)]
struct Way {
    name: &'static str,
    cost: f64,
}

/// `y[i] = sum of x[i * columns ..][.. columns]`, for `i < y.len()`
fn kernel(request: &Request<'_>) -> Result<Arc<Kernel>, Ineligible> {
    let mut module = ModuleBuilder::new("row_sum", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let number = module.scalar(Scalar::Index);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let columns = module.param("columns", number);
    let mut body = module.entry();
    let i = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", i);
    let (index, length) = (body.local(i), body.length(y));
    let inside = body.binary(BinaryOperator::Less, index, length);
    body.if_then(inside, |body| {
        let zero = body.f32(0.0);
        let sum = body.variable("sum", float, Some(zero));
        let (start, end) = (body.index(0), body.param(columns));
        body.for_range("c", start, end, |body, c| {
            let (row, columns) = (body.local(i), body.param(columns));
            let first = body.binary(BinaryOperator::Multiply, row, columns);
            let c = body.local(c);
            let at = body.binary(BinaryOperator::Add, first, c);
            let value = body.load(element(Root::Binding(x), at));
            let so_far = body.load(variable(sum));
            let next = body.binary(BinaryOperator::Add, so_far, value);
            body.store(variable(sum), next);
        });
        let value = body.load(variable(sum));
        let index = body.local(i);
        body.store(element(Root::Binding(y), index), value);
    });
    body.finish_entry();
    let target = request.device.kind.target();
    compile_for(&module.build(), &Instance::default(), &[target])
        .map(Arc::new)
        .map_err(|error| Ineligible::Other(error.to_string()))
}

impl Candidate for Way {
    fn name(&self) -> &'static str {
        self.name
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [x] = request.inputs else { return Err(Ineligible::Other("one input".to_owned())) };
        if !x.layout.has_contiguous_strides(&x.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let (rows, columns) = (x.ty.shape[0].clone(), x.ty.shape[1].clone());
        let step = |from, to, rows: Dim, columns: Dim| -> Result<Step, Ineligible> {
            Ok(Step::Kernel(KernelStep {
                kernel: kernel(request)?,
                bindings: vec![from, to],
                params: vec![ParamValue::Dim(columns)],
                grid: Grid::Invocations(rows),
            }))
        };
        let (steps, scratch) = match self.name {
            "one pass" => (vec![step(Slot::Input(0), Slot::Output(0), rows, columns)?], Vec::new()),
            "two passes" => {
                // Sums of halves of rows, then sums of pairs.
                if !columns.divides_evenly(2) {
                    return Err(Ineligible::Other(format!("{columns} columns are not surely even")));
                }
                let half = columns.quotient(&Dim::from(2i64));
                let first = step(Slot::Input(0), Slot::Scratch(0), rows.clone() * 2i64, half)?;
                let second = step(Slot::Scratch(0), Slot::Output(0), rows.clone(), Dim::from(2i64))?;
                (vec![first, second], vec![rows * 8i64])
            }
            _ => {
                let function = |reads: &[&[u8]], writes: &mut [&mut [u8]], numbers: &[i64]| {
                    let (rows, columns) = (numbers[0] as usize, numbers[1] as usize);
                    let value = |at: usize| f32::from_le_bytes([0, 1, 2, 3].map(|byte: usize| reads[0][4 * at + byte]));
                    for row in 0..rows {
                        let sum: f32 = (0..columns).map(|column| value(row * columns + column)).sum();
                        writes[0][4 * row..4 * row + 4].copy_from_slice(&sum.to_le_bytes());
                    }
                    Ok(())
                };
                let host = CallStep {
                    name: "row sums on the host",
                    callee: Callee::Host(Arc::new(function)),
                    reads: vec![Slot::Input(0)],
                    writes: vec![Slot::Output(0)],
                    params: vec![rows, columns],
                };
                (vec![Step::Call(host)], Vec::new())
            }
        };
        Ok(Implementation { steps, scratch, cost: self.cost })
    }
}

impl Op for RowSum {
    fn name(&self) -> &'static str {
        "row_sum"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        match inputs {
            [x] if x.rank() == 2 => Ok(vec![TensorType { element: x.element, shape: vec![x.shape[0].clone()] }]),
            [x] => Err(OpError::Shape { input: "x", given: x.to_string(), expected: "two axes".to_owned() }),
            _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
        }
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let columns = inputs[0].shape[1];
        let row = |row: usize| inputs[0].values[row * columns..(row + 1) * columns].iter().sum();
        vec![HostTensor { shape: outputs[0].clone(), values: (0..outputs[0][0]).map(row).collect() }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            Box::new(Way { name: "one pass", cost: 2.0 }),
            Box::new(Way { name: "two passes", cost: 1.0 }),
            Box::new(Way { name: "host", cost: 50.0 }),
        ])
    }
}

/// `x + 1`, made where `x` lies.
#[derive(Debug)]
pub struct Increment;

/// By a kernel that adds to what it finds, which must be contiguous.
#[derive(Debug)]
struct InPlace;

impl Candidate for InPlace {
    fn name(&self) -> &'static str {
        "in place"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [x] = request.inputs else { return Err(Ineligible::Other("one input".to_owned())) };
        if !x.layout.is_contiguous(&x.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let mut module = ModuleBuilder::new("increment", [64, 1, 1]);
        let float = module.scalar(Scalar::F32);
        let y = module.mutable("y", float);
        let mut body = module.entry();
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (index, length) = (body.local(i), body.length(y));
        let inside = body.binary(BinaryOperator::Less, index, length);
        body.if_then(inside, |body| {
            let index = body.local(i);
            let value = body.load(element(Root::Binding(y), index));
            let one = body.f32(1.0);
            let sum = body.binary(BinaryOperator::Add, value, one);
            let index = body.local(i);
            body.store(element(Root::Binding(y), index), sum);
        });
        body.finish_entry();
        let kernel = compile_for(&module.build(), &Instance::default(), &[request.device.kind.target()])
            .map_err(|error| Ineligible::Other(error.to_string()))?;
        let step = KernelStep {
            kernel: kernel.into(),
            bindings: vec![Slot::Over { output: 0, input: 0 }],
            params: Vec::new(),
            grid: Grid::Invocations(x.ty.elements()),
        };
        Ok(Implementation { steps: vec![Step::Kernel(step)], scratch: Vec::new(), cost: 1.0 })
    }
}

impl Op for Increment {
    fn name(&self) -> &'static str {
        "increment"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![HostTensor { shape: outputs[0].clone(), values: inputs[0].values.iter().map(|x| x + 1.0).collect() }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(InPlace)])
    }
}

macro_rules! scales {
    ($($(#[$doc:meta])* $name:ident = $factor:literal;)*) => {
        $($(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Map for $name {
            fn body(&self, body: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Handle<Expression> {
                let (x, factor) = (body.local(elements[0]), body.f32($factor));
                body.binary(BinaryOperator::Multiply, x, factor)
            }
        }

        impl Op for $name {
            fn name(&self) -> &'static str {
                "scale"
            }

            fn attributes(&self) -> Vec<(&'static str, String)> {
                Vec::new()
            }

            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
                Ok(inputs.to_vec())
            }

            fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
                let values = inputs[0].values.iter().map(|x| x * f64::from($factor)).collect();
                vec![HostTensor { shape: inputs[0].shape.clone(), values }]
            }

            fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
                inputs[0].elements()
            }

            fn kind(&self) -> OpKind<'_> {
                OpKind::Map(self)
            }
        })*
    };
}

scales! {
    /// `2 x`, by the name of [`Thrice`] and without attributes.
    Twice = 2.0f32;
    /// `3 x`, by the name of [`Twice`] and without attributes.
    Thrice = 3.0f32;
}
