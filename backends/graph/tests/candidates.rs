//! Every candidate of products, attention and normalisation, on every device, against the ops' references; each run finds the results of a run on NaN where
//! it writes its own.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::collections::BTreeSet;

use common::{Values, compare, devices, numbers};
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::ops::matmul::MatMul;
use trefoil_graph::ops::{Attention, AttentionLayout, AttentionOperands, NormOperands};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, Tensor};
use trefoil_kernels::activation::Activation;

/// A graph with inputs of random numbers.
#[derive(Default)]
struct Case {
    graph: Graph,
    inputs: Vec<(String, Vec<f32>)>,
}

impl Case {
    fn input(&mut self, shape: &[usize]) -> Tensor {
        self.input_of(numbers(shape.iter().product(), 7 + self.inputs.len() as u32, 1.0), shape)
    }

    fn input_of(&mut self, values: Vec<f32>, shape: &[usize]) -> Tensor {
        let name = format!("x{}", self.inputs.len());
        let shape: Vec<Dim> = shape.iter().map(|extent| Dim::from(*extent as i64)).collect();
        let tensor = self.graph.input(&name, ElementType::F32, shape).unwrap();
        self.inputs.push((name, values));
        tensor
    }

    /// Runs the only op with candidates by each of them, and adds the names of those that could to `ran`.
    fn check(mut self, result: Tensor, op: &str, device: &Device, ran: &mut BTreeSet<String>) {
        self.graph.output("result", result).unwrap();
        let (extents, model) = (Extents::new(), Model::new());
        let compile = |options: &Options| Executable::compile(&self.graph, &model, device, options);
        let decision = compile(&Options::default()).unwrap().explain().decisions[0].clone();
        let others = decision.others.iter().map(|(name, _)| name);
        for candidate in others.chain([&decision.candidate]) {
            let force = [(op.to_owned(), candidate.clone())].into();
            let executable = match compile(&Options { force, ..Options::default() }) {
                Err(Error::NoCandidate { .. }) => continue,
                other => other.unwrap(),
            };
            let poison: Vec<_> = self.inputs.iter().map(|(_, values)| vec![f32::NAN; values.len()]).collect();
            let poison: Vec<_> =
                self.inputs.iter().zip(&poison).map(|((name, _), values)| (name.as_str(), values.into())).collect();
            executable.run(&poison, &extents).unwrap();
            let inputs: Vec<_> =
                self.inputs.iter().map(|(name, values)| (name.as_str(), Values::F32(values.clone()))).collect();
            compare(&self.graph, &executable, &inputs, &extents, 2e-5);
            ran.insert(candidate.clone());
        }
    }
}

/// Fails unless every candidate of an op ran on the device; functions of the host run on the CPU alone.
fn all_ran(device: &Device, ran: &BTreeSet<String>, kernels: &[&str], host: &str) {
    let host = (device.kind() == DeviceKind::Cpu).then_some(host);
    let expected: BTreeSet<String> = kernels.iter().copied().chain(host).map(str::to_owned).collect();
    assert_eq!(*ran, expected, "on {}", device.kind());
}

#[test]
fn products_of_any_shape_and_stride() {
    use Activation::{Gelu, Identity, Relu, Sigmoid, Silu, Tanh};
    // Shapes of a and b, whether each is given transposed, whether there is a bias, the activation.
    type Row<'a> = (&'a [usize], &'a [usize], bool, bool, bool, Activation);
    let rows: [Row<'_>; 19] = [
        (&[9, 64], &[64, 4], false, true, true, Relu),
        (&[0, 3], &[3, 5], false, false, true, Gelu),
        (&[3, 5], &[5, 0], false, false, false, Identity),
        (&[3, 0], &[0, 5], false, false, true, Tanh),
        (&[1, 1], &[1, 1], false, false, true, Identity),
        (&[1, 300], &[300, 67], false, true, true, Relu),
        (&[7, 13], &[13, 17], false, false, false, Silu),
        (&[7, 13], &[13, 17], true, false, true, Identity),
        (&[7, 13], &[13, 17], false, true, true, Sigmoid),
        (&[7, 13], &[13, 17], true, true, false, Gelu),
        (&[8, 64], &[64, 48], false, true, true, Gelu),
        (&[9, 64], &[64, 52], false, false, true, Tanh),
        (&[131, 67], &[67, 149], false, true, true, Identity),
        (&[200, 24], &[24, 300], false, false, true, Gelu),
        (&[32, 768], &[768, 32], false, true, true, Silu),
        (&[2, 3, 5, 8], &[2, 3, 8, 12], false, false, true, Identity),
        (&[1, 5, 8], &[3, 8, 7], true, true, false, Identity),
        (&[5, 8], &[4, 8, 7], false, true, true, Relu),
        (&[2, 3, 5, 12], &[12, 8], false, true, true, Gelu),
    ];
    for device in devices() {
        let mut ran = BTreeSet::new();
        for (a_shape, b_shape, a_transposed, b_transposed, bias, activation) in rows {
            for cut in [false, true] {
                let mut case = Case::default();
                let mut operand = |shape: &[usize], transposed: bool| {
                    let mut shape = shape.to_vec();
                    let rank = shape.len();
                    if transposed {
                        shape.swap(rank - 2, rank - 1);
                    }
                    // Four columns more than are wanted, so that rows do not follow each other.
                    let wanted = shape[rank - 1] as i64;
                    shape[rank - 1] += if cut { 4 } else { 0 };
                    let mut tensor = case.input(&shape);
                    if cut {
                        tensor = case.graph.narrow(tensor, rank as isize - 1, 4, wanted).unwrap();
                    }
                    let mut axes: Vec<usize> = (0..rank).collect();
                    axes.swap(rank - 2, rank - 1);
                    if transposed { case.graph.transpose(tensor, &axes).unwrap() } else { tensor }
                };
                let (a, b) = (operand(a_shape, a_transposed), operand(b_shape, b_transposed));
                let n = b_shape[b_shape.len() - 1];
                let bias = bias.then(|| case.input(&[n]));
                let op = MatMul { bias: bias.is_some(), activation, out: ElementType::F32 };
                let inputs: Vec<Tensor> = [a, b].into_iter().chain(bias).collect();
                let result = case.graph.add_one(op, &inputs).unwrap();
                case.check(result, "matmul", &device, &mut ran);
            }
        }
        let mut kernels = vec!["matmul in tiles of 16 by 32, K shared", "matmul of any strides"];
        if device.kind() != DeviceKind::Cpu {
            kernels.extend(["matmul in tiles of 128", "matmul in tiles of 64", "matmul in tiles of 64 of any extents"]);
            kernels.extend(["matmul of few rows", "matmul of few columns", "matmul element by element"]);
        }
        if device.properties().matrix_library.is_some() {
            kernels.push("matmul by the device's library");
        }
        all_ran(&device, &ran, &kernels, "matmul on the host");
    }
}

#[test]
fn attention_of_any_shape_mask_and_arrangement() {
    // Batch, heads of queries, heads of keys, queries, keys, elements, the mask's shape, causal.
    type Row<'a> = (usize, usize, usize, usize, usize, usize, &'a [usize], bool);
    let rows: [Row<'_>; 15] = [
        (1, 1, 1, 1, 1, 1, &[], false),
        (0, 2, 2, 3, 4, 8, &[], false),
        (2, 1, 1, 0, 5, 4, &[], false),
        (1, 2, 1, 3, 0, 4, &[], false),
        (2, 3, 3, 7, 11, 32, &[2, 1, 1, 11], false),
        (2, 3, 3, 7, 11, 32, &[11], true),
        (1, 4, 2, 13, 13, 64, &[1, 4, 13, 13], false),
        (1, 4, 1, 13, 13, 64, &[4, 13, 1], true),
        (2, 2, 2, 9, 4, 32, &[], true),
        (2, 2, 2, 4, 9, 32, &[2, 2, 4, 9], true),
        (1, 1, 1, 70, 67, 128, &[], false),
        (1, 2, 2, 131, 50, 32, &[1, 1, 1], false),
        (1, 2, 1, 5, 3, 5, &[5, 3], false),
        (1, 1, 1, 3, 130, 132, &[], true),
        (3, 5, 5, 16, 48, 48, &[3, 1, 16, 48], false),
    ];
    for device in devices() {
        let mut ran = BTreeSet::new();
        for (batch, heads, key_heads, queries, keys, elements, mask, causal) in rows {
            for layout in [AttentionLayout::Bhsd, AttentionLayout::Bshd] {
                let mut case = Case::default();
                let shape = |heads, positions| match layout {
                    AttentionLayout::Bhsd => [batch, heads, positions, elements],
                    AttentionLayout::Bshd => [batch, positions, heads, elements],
                };
                let q = case.input(&shape(heads, queries));
                let k = case.input(&shape(key_heads, keys));
                let v = case.input(&shape(key_heads, keys));
                let mask = (!mask.is_empty()).then(|| {
                    // Some keys are hidden; where queries have rows of their own, the first sees none.
                    let own_rows = mask.len() > 1 && mask[mask.len() - 2] > 1;
                    let columns = mask[mask.len() - 1];
                    let mut values = numbers(mask.iter().product(), 3, 2.0);
                    for (index, value) in values.iter_mut().enumerate() {
                        if index % 5 == 4 || own_rows && index < columns {
                            *value = f32::NEG_INFINITY;
                        }
                    }
                    case.input_of(values, mask)
                });
                let scale = 1.0 / (elements as f32).sqrt();
                let operands = AttentionOperands { bias: mask, ..AttentionOperands::default() };
                let op = Attention { causal, ..Attention::new(layout, scale) };
                let result = case.graph.attention(q, k, v, operands, op).unwrap();
                case.check(result, "attention", &device, &mut ran);
            }
        }
        let of_gpus = ["attention in tiles of 64 rows", "attention in tiles of 16 rows", "attention of few rows"];
        let of_gpus = if device.kind() == DeviceKind::Cpu { &[][..] } else { &of_gpus };
        let of_cuda = if device.kind() == DeviceKind::Cuda { &["attention in stages"][..] } else { &[] };
        let kernels = [of_gpus, of_cuda, &["attention of any strides"]].concat();
        all_ran(&device, &ran, &kernels, "attention on the host");
    }
}

#[test]
fn norms_of_any_rows_and_operands() {
    for device in devices() {
        let mut ran = BTreeSet::new();
        for (index, (rows, columns)) in
            [(0, 8), (1, 1), (3, 5), (7, 384), (2, 1021), (1, 4100), (67, 600)].into_iter().enumerate()
        {
            for operands in 0..8 {
                let mut case = Case::default();
                let x = case.input(&[rows, columns]);
                let residual = (operands & 1 > 0).then(|| case.input(&[rows, columns]));
                let gamma = (operands & 2 > 0).then(|| case.input(&[columns]));
                let beta = (operands & 4 > 0).then(|| case.input(&[columns]));
                let operands = NormOperands { residual, gamma, beta, bias: None };
                let (result, name) = if index % 2 == 0 {
                    (case.graph.layer_norm(x, &[-1], 1e-5, operands).unwrap(), "layer_norm")
                } else {
                    (case.graph.rms_norm(x, &[-1], 1e-5, operands).unwrap(), "rms_norm")
                };
                case.check(result, name, &device, &mut ran);
            }
        }
        all_ran(&device, &ran, &["norm held in registers", "norm of any strides"], "norm on the host");
    }
}

#[test]
fn softmax_of_any_rows() {
    for device in devices() {
        let mut ran = BTreeSet::new();
        for (rows, columns) in [(0, 8), (1, 1), (3, 5), (7, 384), (2, 1021), (1, 4100), (67, 600)] {
            for range in [1.0, 80.0] {
                let mut case = Case::default();
                let mut values = numbers(rows * columns, 5, range);
                values.iter_mut().skip(2).step_by(7).for_each(|value| *value = f32::NEG_INFINITY);
                let x = case.input_of(values, &[rows, columns]);
                let (result, name) = if range < 2.0 {
                    (case.graph.softmax(x, -1).unwrap(), "softmax")
                } else {
                    (case.graph.log_softmax(x, -1).unwrap(), "log_softmax")
                };
                case.check(result, name, &device, &mut ran);
            }
        }
        // Along axes that are not the last.
        let shapes: [(&[usize], isize); 4] = [(&[5, 3], 0), (&[700, 65], 0), (&[2, 3, 9, 7], 1), (&[0, 4, 2], 1)];
        for (shape, axis) in shapes {
            let mut case = Case::default();
            let x = case.input_of(numbers(shape.iter().product(), 6, 9.0), shape);
            let result = case.graph.softmax(x, axis).unwrap();
            case.check(result, "softmax", &device, &mut ran);
        }
        all_ran(&device, &ran, &["softmax held in registers", "softmax of any strides"], "softmax on the host");
    }
}

/// An operand that kernels read in place stays there, though the other has to be copied.
#[test]
fn an_operand_is_not_copied_beside_the_other() {
    for device in devices() {
        // Batches that no one stride leads through: of rows, and of columns.
        let mut of_rows = Graph::new();
        let x = of_rows.input("x", ElementType::F32, [3, 2, 64, 64]).unwrap();
        let x = of_rows.transpose(x, &[1, 0, 2, 3]).unwrap();
        let w = of_rows.param("w", ElementType::F32, [64, 4096]).unwrap();
        let y = of_rows.matmul(x, w).unwrap();
        of_rows.output("y", y).unwrap();
        let mut of_columns = Graph::new();
        let x = of_columns.input("x", ElementType::F32, [2, 3, 64, 64]).unwrap();
        let w = of_columns.input("w", ElementType::F32, [3, 2, 64, 64]).unwrap();
        let w = of_columns.transpose(w, &[1, 0, 2, 3]).unwrap();
        let y = of_columns.matmul(x, w).unwrap();
        of_columns.output("y", y).unwrap();
        for (graph, copied) in [(&of_rows, 0usize), (&of_columns, 1)] {
            let executable = Executable::compile(graph, &Model::new(), &device, &Options::default()).unwrap();
            let decision = executable.explain().decisions[0].clone();
            assert_eq!(decision.copied, [copied], "{decision:?} on {}", device.properties().name);
        }
    }
}

#[test]
fn what_is_copied_for_one_is_there_for_others() {
    let device = devices().into_iter().find(|device| device.kind() == DeviceKind::Cpu).unwrap();
    let mut graph = Graph::new();
    let at = Symbol::new("at", 0, 11).unwrap();
    let input = |graph: &mut Graph, name: &str, shape: [i64; 2]| graph.input(name, ElementType::F32, shape).unwrap();
    let (table, x, y) =
        (input(&mut graph, "table", [16, 8]), input(&mut graph, "x", [5, 4]), input(&mut graph, "y", [3, 4]));
    // Rows that start where a run says: no pointer to them can be bound.
    let part = graph.narrow(table, 0, Dim::from(&at), Dim::from(4i64)).unwrap();
    let (of_x, of_y) = (graph.matmul(x, part).unwrap(), graph.matmul(y, part).unwrap());
    // Another part of the same table is another copy.
    let other = graph.narrow(table, 0, Dim::from(&at) + 1, Dim::from(4i64)).unwrap();
    let of_other = graph.matmul(y, other).unwrap();
    for (name, tensor) in [("of x", of_x), ("of y", of_y), ("of other", of_other)] {
        graph.output(name, tensor).unwrap();
    }
    let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
    let explanation = executable.explain();
    let uses = explanation.steps.iter().flat_map(|step| &step.uses);
    let copies = uses.filter(|used| used.written && used.tensor.starts_with("copy of")).count();
    assert_eq!(copies, 2, "{explanation}");
    let mut extents = Extents::new();
    extents.set(&at, 7).unwrap();
    let (table, x, y) = (numbers(128, 1, 1.0), numbers(20, 2, 1.0), numbers(12, 3, 1.0));
    let inputs = [("table", (&table).into()), ("x", (&x).into()), ("y", (&y).into())];
    let outputs = executable.run(&inputs, &extents).unwrap();
    for (name, left, first) in [("of x", &x, 7), ("of y", &y, 7), ("of other", &y, 8)] {
        let product = |row: usize, column: usize| {
            let of = |k: usize| f64::from(left[row * 4 + k]) * f64::from(table[(first + k) * 8 + column]);
            (0..4).map(of).sum::<f64>()
        };
        let given = outputs.get::<f32>(name).unwrap();
        assert_eq!(given.len(), left.len() * 2);
        for (at, value) in given.iter().enumerate() {
            let wanted = product(at / 8, at % 8);
            assert!(
                (f64::from(*value) - wanted).abs() < 4.0 * f64::from(f32::EPSILON) * 4.0,
                "{name} {at}: {value}, {wanted}"
            );
        }
    }
}
