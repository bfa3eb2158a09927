//! Every op with kernels against its reference: its attributes, awkward and strided operands, and each of its candidates that can do it.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Values, compare, compare_one_by_one, devices, numbers};
use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{Expression, Handle, Local};
use trefoil_graph::op::{HostTensor, Map, Op, OpError, OpKind, View};
use trefoil_graph::ops::NormOperands;
use trefoil_graph::ops::matmul::MatMul;
use trefoil_graph::pull::{Frame, Given, Machine, Moves, Pull};
use trefoil_graph::types::Layout;
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, Model, Options, Symbol, Tensor, TensorType,
    reference,
};
use trefoil_kernels::activation::Activation;

const FLOAT: ElementType = ElementType::F32;

/// A graph of an op, with its inputs.
struct Case {
    about: String,
    graph: Graph,
    inputs: Vec<(&'static str, Values)>,
    extents: Extents,
    /// What rounding may make of the result.
    tolerance: f64,
}

impl Case {
    fn new(about: impl Into<String>, tolerance: f64) -> Self {
        Self { about: about.into(), graph: Graph::new(), inputs: Vec::new(), extents: Extents::new(), tolerance }
    }

    /// An input with numbers between -1 and 1.
    fn input(&mut self, name: &'static str, extents: &[usize]) -> Tensor {
        self.given(name, extents, numbers(extents.iter().product(), self.inputs.len() as u32 + 1, 1.0))
    }

    fn given(&mut self, name: &'static str, extents: &[usize], values: Vec<f32>) -> Tensor {
        self.inputs.push((name, Values::F32(values)));
        self.graph.input(name, FLOAT, shape(extents)).unwrap()
    }

    /// A matrix of the last two axes that lies in memory the other way.
    fn turned(&mut self, name: &'static str, extents: &[usize]) -> Tensor {
        let rank = extents.len();
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        let there: Vec<usize> = order.iter().map(|axis| extents[*axis]).collect();
        let x = self.input(name, &there);
        self.graph.transpose(x, &order).unwrap()
    }

    fn output(mut self, tensor: Tensor) -> Self {
        self.graph.output("y", tensor).unwrap();
        self
    }
}

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// The bound on what a sum of so many terms, each at most `largest`, loses in `f32` by rounding each product and addition.
fn sum_tolerance(terms: usize, largest: f64) -> f64 {
    (terms * (terms + 2)) as f64 * f64::from(f32::EPSILON) * largest
}

/// Runs each case on every device, as chosen and with each candidate forced. Every device must take each case, and each of `candidates` must have been taken somewhere.
fn check(cases: &[Case], candidates: &[&str]) {
    let mut taken = BTreeSet::new();
    for device in devices() {
        for case in cases {
            let compile = |force: Option<(&str, &str)>| {
                let force = force.into_iter().map(|(op, name)| (op.to_owned(), name.to_owned())).collect();
                let options = Options { force, ..Options::default() };
                Executable::compile(&case.graph, &Model::new(), &device, &options)
            };
            let place = format!("{} on {}", case.about, device.properties().name);
            println!("{place}");
            let run = |executable: &Executable| {
                compare(&case.graph, executable, &case.inputs, &case.extents, case.tolerance);
            };
            run(&compile(None).unwrap_or_else(|error| panic!("{place}: {error}")));
            if case.extents == Extents::new() {
                compare_one_by_one(&case.graph, &device, &case.inputs, case.tolerance);
            }
            for (op, name) in known(&case.graph) {
                match compile(Some((op, name))) {
                    Ok(executable) => {
                        println!("{place}, {name}");
                        run(&executable);
                        taken.insert(name);
                    }
                    Err(Error::NoCandidate { reasons, .. }) => assert!(reasons.contains(name), "{place}: {reasons}"),
                    Err(error) => panic!("{place}, {name}: {error}"),
                }
            }
        }
    }
    for name in candidates {
        assert!(taken.contains(name), "no device took a case by `{name}`; taken: {taken:?}");
    }
}

/// The candidates of a graph's ops, each with its op.
fn known(graph: &Graph) -> BTreeSet<(&'static str, &'static str)> {
    graph.nodes().iter().flat_map(|node| node.op.kind().ways().into_iter().map(|way| (node.op.name(), way))).collect()
}

const ACTIVATIONS: [Activation; 6] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu, Activation::Tanh, Activation::Sigmoid];

#[test]
fn matmul() {
    let mut cases = Vec::new();
    // Activations are off by a few ulp of numbers of the size of the sum.
    let tolerance = |k: usize| 1.2 * sum_tolerance(k + 1, 1.0) + 2e-6;
    for (index, [m, n, k]) in
        [[1, 1, 1], [0, 4, 8], [5, 0, 3], [7, 12, 0], [13, 17, 19], [33, 36, 20], [1, 128, 64], [67, 4, 260]]
            .into_iter()
            .enumerate()
    {
        let activation = ACTIVATIONS[index % 6];
        let mut case = Case::new(format!("{m} x {n} x {k}, bias, {activation:?}"), tolerance(k));
        let (x, bias) = (case.input("x", &[m, k]), case.input("bias", &[n]));
        let w = case.input("w", &[n, k]);
        let y = case.graph.linear(x, w, Some(bias), activation).unwrap();
        cases.push(case.output(y));
        let mut case = Case::new(format!("{m} x {n} x {k}, A turned, {activation:?}"), tolerance(k));
        let (a, b) = (case.turned("a", &[m, k]), case.input("b", &[k, n]));
        let y = case.graph.add_one(MatMul { bias: false, activation, out: FLOAT }, &[a, b]).unwrap();
        cases.push(case.output(y));
    }
    // Batches that broadcast: over both, over either, into the rows of A.
    for (a_extents, b_extents) in [
        (&[3, 1, 5, 8][..], &[2, 8, 12][..]),
        (&[2, 3, 5, 8], &[8, 12]),
        (&[5, 8], &[2, 3, 8, 12]),
        (&[2, 3, 7, 5], &[2, 1, 5, 3]),
        (&[0, 4, 4], &[0, 4, 4]),
    ] {
        let mut case = Case::new(format!("{a_extents:?} x {b_extents:?}"), tolerance(8));
        let (a, b) = (case.input("a", a_extents), case.turned("b", b_extents));
        let y = case.graph.matmul(a, b).unwrap();
        cases.push(case.output(y));
    }
    // Operands that start within their memory and whose rows lie apart; a bias that is one number.
    let mut case = Case::new("parts of operands", tolerance(8));
    let (a, b, one) = (case.input("a", &[9, 16]), case.input("b", &[24, 12]), case.input("one", &[1]));
    let a = case.graph.narrow(a, 1, 4, 8).unwrap();
    let b = case.graph.narrow(b, 0, 3, 8).unwrap();
    let bias = case.graph.expand(one, shape(&[12])).unwrap();
    let y = case.graph.add_one(MatMul { bias: true, activation: Activation::Gelu, out: FLOAT }, &[a, b, bias]).unwrap();
    cases.push(case.output(y));
    // An extent that each run decides.
    for rows in [0usize, 1, 31, 70] {
        let symbol = Symbol::new("rows", 0, 70).unwrap();
        let mut case = Case::new(format!("{rows} of at most 70 rows"), tolerance(12));
        case.extents.set(&symbol, rows as i64).unwrap();
        let x = case.graph.input("x", FLOAT, vec![Dim::from(&symbol), Dim::from(12usize)]).unwrap();
        case.inputs.push(("x", Values::F32(numbers(rows * 12, 4, 1.0))));
        let w = case.input("w", &[8, 12]);
        let y = case.graph.linear(x, w, None, Activation::Silu).unwrap();
        cases.push(case.output(y));
    }
    check(
        &cases,
        &[
            "matmul in tiles of 128",
            "matmul in tiles of 64",
            "matmul in tiles of 64 of any extents",
            "matmul in tiles of 16 by 32, K shared",
            "matmul element by element",
            "matmul of any strides",
        ],
    );
}

#[test]
fn layer_norm() {
    let mut cases = Vec::new();
    for (index, extents) in
        [&[1usize, 1][..], &[0, 4], &[3, 5, 7], &[2, 4], &[3, 1, 1032], &[2, 257], &[1, 4100]].into_iter().enumerate()
    {
        let columns = extents[extents.len() - 1];
        for choice in [7, index] {
            let present = [choice & 1 != 0, choice & 2 != 0, choice & 4 != 0];
            // Sums of `columns` terms, made relative by the deviation, which is about a half.
            let tolerance = 4.0 * (columns.div_ceil(256) + 16) as f64 * f64::from(f32::EPSILON) + 4e-6;
            let mut case = Case::new(format!("{extents:?}, residual, gamma, beta {present:?}"), tolerance);
            let x = case.input("x", extents);
            let operands = NormOperands {
                residual: present[0].then(|| case.turned("residual", extents)),
                bias: None,
                gamma: present[1].then(|| case.input("gamma", &[columns])),
                beta: present[2].then(|| case.input("beta", &[columns])),
            };
            let y = case.graph.layer_norm(x, &[-1], 1e-3, operands).unwrap();
            cases.push(case.output(y));
        }
    }
    check(&cases, &["norm held in registers", "norm of any strides"]);
}

#[test]
fn softmax() {
    let mut cases = Vec::new();
    for extents in [&[1usize, 1][..], &[0, 4], &[4, 0], &[3, 5, 7], &[2, 6, 4], &[2, 1028], &[2, 257], &[1, 4100]] {
        for axis in [-1, 0] {
            let mut case = Case::new(format!("{extents:?} along {axis}"), 2e-6);
            let x = case.turned("x", extents);
            let y = case.graph.softmax(x, axis).unwrap();
            cases.push(case.output(y));
        }
    }
    check(&cases, &["softmax held in registers", "softmax of any strides"]);
}

#[test]
fn fills() {
    let mut cases = Vec::new();
    for (index, extents) in [&[][..], &[0usize, 3], &[1], &[263], &[5, 8]].into_iter().enumerate() {
        for element in ElementType::ALL {
            let mut case = Case::new(format!("fill of {extents:?} with {element}"), 0.0);
            let y = case.graph.fill(index % 2, element, shape(extents)).unwrap();
            cases.push(case.output(y));
        }
    }
    check(&cases, &[]);
}

#[test]
fn constants_are_of_the_type_that_is_said() {
    let mut g = Graph::new();
    let refused = g.constant(FLOAT, shape(&[3]), &[-1, 8, -1]).unwrap_err().to_string();
    assert_eq!(refused, "constant: elements of type i32 given, f32 expected");
    let refused = g.constant(FLOAT, shape(&[2]), &[1.0f32]).unwrap_err();
    assert!(matches!(&refused, GraphError::ConstantLength { given: 1, .. }), "{refused}");
    assert!(g.constant(ElementType::U32, shape(&[1]), &vec![7u32]).is_ok());
    assert!(g.constant(ElementType::Bool, shape(&[2]), [true, false].as_slice()).is_ok());
}

/// Constants get names that no leaf has, whatever the program calls its own.
#[test]
fn names_of_constants_are_free() {
    let mut g = Graph::new();
    let x = g.input("constant 1", FLOAT, shape(&[1])).unwrap();
    let first = g.constant(FLOAT, shape(&[1]), &[2f32]).unwrap();
    let second = g.constant(FLOAT, shape(&[1]), &[3f32]).unwrap();
    assert_eq!(g.leaves().len(), 3);
    let product = g.mul(x, first).unwrap();
    let y = g.add(product, second).unwrap();
    g.output("y", y).unwrap();
    common::check(&g, &devices()[0], &[("constant 1", Values::F32(vec![0.5]))], &Extents::new(), 0.0);
}

/// Tensors of a graph are those of its clones, as far as both have them in common.
#[test]
fn clones_of_a_graph_part() {
    let mut first = Graph::new();
    let x = first.input("x", FLOAT, shape(&[2])).unwrap();
    let common = first.exp(x).unwrap();
    let mut second = first.clone();
    let (mine, other) = (first.neg(common).unwrap(), second.abs(common).unwrap());
    assert_ne!(mine, other);
    let foreign = |result: Result<Tensor, GraphError>| matches!(result, Err(GraphError::OtherGraph { .. }));
    assert!(foreign(first.neg(other)) && foreign(second.neg(mine)));
    assert!(matches!(second.output("y", mine), Err(GraphError::OtherGraph { .. })));
    assert!(second.type_of(mine).is_err() && second.type_of(x).is_ok());
    // A clone of a clone knows what was before both forks, and a graph stays what it was when it is cloned.
    let mut third = second.clone();
    let last = second.add(x, other).unwrap();
    let own = third.mul(x, other).unwrap();
    assert!(
        foreign(third.neg(mine)) && foreign(third.neg(last)) && foreign(second.neg(own)) && foreign(first.neg(own))
    );
    first.output("y", mine).unwrap();
    second.output("y", last).unwrap();
    third.output("y", own).unwrap();
    assert_eq!(third.leaves()["x"], x);
    for graph in [&first, &second, &third] {
        common::check(graph, &devices()[0], &[("x", Values::F32(vec![0.5, -2.0]))], &Extents::new(), 1e-5);
    }
}

#[test]
fn no_extent_is_negative() {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[6])).unwrap();
    let one = g.input("one", FLOAT, shape(&[1])).unwrap();
    let negative = |extents: &[i64]| -> Vec<Dim> { extents.iter().map(|extent| Dim::from(*extent)).collect() };
    for refused in [
        g.reshape(x, negative(&[-2, -3])).map(drop),
        g.expand(one, negative(&[-4])).map(drop),
        g.fill(1.0, FLOAT, negative(&[2, -1])).map(drop),
        g.uniform(negative(&[-3, -4]), 0.0, 1.0, FLOAT).map(drop),
        g.bernoulli(negative(&[-1]), 1.0).map(drop),
        g.input("i", FLOAT, negative(&[-1])).map(drop),
        g.param("p", FLOAT, negative(&[-1])).map(drop),
        g.state("s", FLOAT, negative(&[-1])).map(drop),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains('-') && refused.contains("extents that are not negative"), "{refused}");
    }
    // One that only a run knows.
    let n = Symbol::new("n", 0, 8).unwrap();
    let few = || vec![Dim::from(&n) - 3i64];
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, vec![Dim::from(&n)]).unwrap();
    let ones = g.fill(1.0, FLOAT, few()).unwrap();
    let sum = g.sum(ones, &[0], true).unwrap();
    let y = g.add(x, sum).unwrap();
    g.output("y", y).unwrap();
    let mut of_input = Graph::new();
    let x = of_input.input("few", FLOAT, few()).unwrap();
    let y = of_input.neg(x).unwrap();
    of_input.output("y", y).unwrap();
    for device in devices() {
        for (graph, input, name) in [(&g, "x", "fill.1"), (&of_input, "few", "few")] {
            let executable = Executable::compile(graph, &Model::new(), &device, &Options::default()).unwrap();
            for count in [5i64, 2, 3] {
                let mut extents = Extents::new();
                extents.set(&n, count).unwrap();
                let elements = if input == "x" { count } else { (count - 3).max(0) };
                let inputs = [(input, Values::F32(vec![2.0; elements as usize]))];
                if count == 2 {
                    let host = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
                    let data = [(input, inputs[0].1.data())];
                    let refused = [
                        executable.run(&data, &extents).unwrap_err(),
                        executable.profile(&extents).unwrap_err(),
                        reference::evaluate(graph, &host, &extents).unwrap_err(),
                    ];
                    for refused in refused {
                        let text = refused.to_string();
                        assert_eq!(
                            text,
                            format!(
                                "tensor `{name}`, axis 0: the extent n - 3 is -1 in this run; it must not be negative"
                            ),
                            "{refused:?}"
                        );
                    }
                    continue;
                }
                compare(graph, &executable, &inputs, &extents, 1e-6);
            }
        }
    }
}

#[test]
fn axes_that_are_not_there_are_told_as_they_were_given() {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[2, 3])).unwrap();
    let i = g.input("i", ElementType::I32, shape(&[2])).unwrap();
    let s = g.state("s", FLOAT, shape(&[2, 3])).unwrap();
    let [off, on] = [0.0, 1.0].map(Into::into);
    let refused = [
        ("narrow", g.narrow(x, -3, 0, 1)),
        ("squeeze", g.squeeze(x, -3)),
        ("unsqueeze", g.unsqueeze(x, -4)),
        ("swap_axes", g.swap_axes(x, 0, -3)),
        ("flatten", g.flatten(x, -3, 1)),
        ("gather", g.gather(x, i, -3)),
        ("gather_elements", g.gather_elements(x, i, -3)),
        ("one_hot", g.one_hot(i, 3, [off, on], FLOAT, -3)),
        ("concat", g.concat(&[x, x], -3)),
        ("reverse_sequence", g.reverse_sequence(x, i, -3, 1)),
        ("update", g.update(s, x, -3, 0)),
    ];
    for (op, refused) in refused {
        let refused = refused.unwrap_err().to_string();
        let given = if op == "unsqueeze" { "-4" } else { "-3" };
        assert!(refused.starts_with(op) && refused.contains(&format!("attribute `axis` is {given}; ")), "{refused}");
    }
    assert!(g.flatten(x, -1, 0).unwrap_err().to_string().contains("attribute `last` is 0; "));
    assert!(g.narrow(x, 2, 0, 1).unwrap_err().to_string().contains("attribute `axis` is 2; "));
}

/// What the scheduler does with an op that has no kernels of its own.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Map,
    View,
    Pull,
    Fill,
}

/// Its operand, given so often.
#[derive(Debug)]
struct Repeated {
    kind: Kind,
    outputs: usize,
}

impl Map for Repeated {
    fn body(&self, body: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Handle<Expression> {
        body.local(elements[0])
    }
}

impl View for Repeated {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        Some(layout.clone())
    }
}

impl Moves for Repeated {
    fn frame(&self, _: &[TensorType], output: &TensorType) -> Frame {
        Frame { tail: output.rank(), ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, _: Given<'_, M::Index>) -> M::Value {
        machine.read(0, &[])
    }
}

impl Op for Repeated {
    fn name(&self) -> &'static str {
        "repeated"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("kind", format!("{:?}", self.kind)), ("outputs", self.outputs.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(vec![inputs[0].clone(); self.outputs])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![inputs[0].clone(); self.outputs]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0)
    }

    fn kind(&self) -> OpKind<'_> {
        match self.kind {
            Kind::Map => OpKind::Map(self),
            Kind::View => OpKind::View(self),
            Kind::Pull => OpKind::Pull(Pull::moves(self)),
            Kind::Fill => OpKind::Fill(0),
        }
    }
}

/// The scheduler makes the first output alone of an op without kernels: what reads another one found less operands than it has.
#[test]
fn ops_without_kernels_give_one_tensor() {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[4])).unwrap();
    for kind in [Kind::Map, Kind::View, Kind::Pull, Kind::Fill] {
        for outputs in [0, 2] {
            let refused = g.add_op(Repeated { kind, outputs }, &[x]).unwrap_err().to_string();
            let wanted = format!(
                "repeated(x: f32[4]): attribute `outputs` is {outputs}; expected 1, since it has no kernels of its own"
            );
            assert_eq!(refused, wanted);
        }
        g.add_one(Repeated { kind, outputs: 1 }, &[x]).unwrap();
    }
    let refused = g.add_op(Repeated { kind: Kind::View, outputs: 1 }, &[x, x]).unwrap_err().to_string();
    assert_eq!(refused, "repeated(x: f32[4], x: f32[4]): 2 inputs given, 1 expected");
    assert_eq!(g.nodes().len(), 5, "what is refused is not added");
}

#[test]
fn a_reference_without_its_operands_is_refused() {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[4])).unwrap();
    let y = g.neg(x).unwrap();
    let refused = reference::evaluate_node(&g, y.node(), &BTreeMap::new(), &BTreeMap::new(), &Extents::new());
    assert_eq!(refused.unwrap_err().to_string(), "operand `x` (f32[4]) is not given");
}

#[test]
fn a_reference_with_other_operands_than_the_graph_has_is_refused() {
    let mut g = Graph::new();
    let rows = Symbol::new("rows", 1, 4).unwrap();
    let x = g.input("x", FLOAT, [Dim::from(&rows), Dim::from(2)]).unwrap();
    let y = g.sum(x, &[1], false).unwrap();
    let extents = Extents::with([(&rows, 3)]).unwrap();
    let evaluate = |shape: &[usize], count: usize| {
        let values = BTreeMap::from([(x, HostTensor { shape: shape.to_vec(), values: vec![1.0; count] })]);
        reference::evaluate_node(&g, y.node(), &BTreeMap::new(), &values, &extents)
    };
    assert_eq!(evaluate(&[3, 2], 6).unwrap()[0].values, [2.0; 3]);
    for (shape, count, expected) in [
        (&[3, 2][..], 5, "operand `x`: 5 elements given, 6 expected for f32[rows, 2]"),
        (&[3, 2], 7, "operand `x`: 7 elements given, 6 expected for f32[rows, 2]"),
        (&[2, 3], 6, "operand `x` is f32[2, 3]; expected f32[3, 2]"),
        (&[6], 6, "operand `x` is f32[6]; expected f32[3, 2]"),
    ] {
        assert_eq!(evaluate(shape, count).unwrap_err().to_string(), expected);
    }
}

/// Extents were multiplied without a look at what comes of it, and as many zeros asked for.
#[test]
fn references_of_more_elements_than_there_can_be_are_refused() {
    let evaluate = |graph: &Graph, leaves: &[(&str, HostTensor)]| {
        let leaves = leaves.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect();
        reference::evaluate(graph, &leaves, &Extents::new())
    };
    let far = 1usize << 33;
    for extents in [&[1usize << 62][..], &[far, far]] {
        let mut g = Graph::new();
        let s = g.state("s", FLOAT, shape(extents)).unwrap();
        g.output("s", s).unwrap();
        let refused = evaluate(&g, &[]).unwrap_err().to_string();
        assert!(refused.starts_with("tensor `s`: out of memory on the host"), "{refused}");
        let mut g = Graph::new();
        let one = g.input("one", FLOAT, shape(&[1])).unwrap();
        let wide = g.expand(one, shape(extents)).unwrap();
        g.output("wide", wide).unwrap();
        let one = HostTensor { shape: vec![1], values: vec![1.0] };
        let refused = evaluate(&g, &[("one", one)]).unwrap_err().to_string();
        assert!(refused.starts_with("tensor `expand.1`: out of memory on the host"), "{refused}");
    }
    let of_input = |extents: &[usize]| {
        let mut g = Graph::new();
        let x = g.input("x", FLOAT, shape(extents)).unwrap();
        g.output("x", x).unwrap();
        evaluate(&g, &[("x", HostTensor { shape: extents.to_vec(), values: Vec::new() })])
    };
    let refused = of_input(&[far, far]).unwrap_err();
    assert!(matches!(&refused, Error::Length { given: 0, expected: u64::MAX, .. }), "{refused}");
    assert_eq!(of_input(&[far, far, 0]).unwrap()["x"].shape, [far, far, 0]);
}
