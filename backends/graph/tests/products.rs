//! Products of every element type by every kernel that can do them, against their reference, on every device: awkward extents, operands transposed and cut out of others, batches, epilogues, parts of K,
//! extents that each run decides; and what graphs make of products.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::{Case, shape};
use common::{Values, compare, computes, devices, numbers, tolerance, tries_every_way};
use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::compile::stages::forecast;
use trefoil_graph::ops::matmul::{Contraction, MatMul};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Op, Options, Symbol, Tensor,
};
use trefoil_kernels::activation::Activation;

use ElementType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U32, U64};

/// Every product that there is.
const TYPES: [[ElementType; 3]; 16] = [
    [F32, F32, F32],
    [F16, F16, F16],
    [F16, F16, F32],
    [BF16, BF16, BF16],
    [BF16, BF16, F32],
    [F32, F16, F32],
    [F32, BF16, F32],
    [F64, F64, F64],
    [I32, I32, I32],
    [U32, U32, U32],
    [I64, I64, I64],
    [U64, U64, U64],
    [I8, I8, I32],
    [I8, U8, I32],
    [U8, I8, I32],
    [U8, U8, I32],
];

/// How far results may be off: sums of some hundred products of numbers below 1.5, and what rounding the result makes of them.
fn allowed(out: ElementType) -> f64 {
    if out == F32 { 2e-4 } else { 2.0 * tolerance(out) }
}

/// Runs a graph of one product by each of its candidates on a device, and gives the kernels that ran.
fn by_all(case: &Case, device: &Device, element: ElementType, allowed: f64) -> BTreeSet<String> {
    let mut ran = BTreeSet::new();
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    let compile = |options: &Options| Executable::compile(&case.graph, &Model::new(), device, options);
    let usual = compile(&Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let decisions = usual.explain().decisions;
    let Some(decision) = decisions.first() else { panic!("no product in {}", usual.explain()) };
    let others = decision.others.iter().map(|(name, _)| name).filter(|_| tries_every_way(device, element));
    for name in others.chain([&decision.candidate]) {
        let force = [("matmul".to_owned(), name.clone())].into();
        match compile(&Options { force, ..Options::default() }) {
            Err(Error::NoCandidate { .. }) => {}
            Err(error) => panic!("{name}: {error}"),
            Ok(executable) => {
                println!("  {name}");
                compare(&case.graph, &executable, &inputs, &Extents::new(), allowed);
                ran.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
            }
        }
    }
    ran
}

/// A matrix, or several of them, that lies in memory as it is, the other way round, or with numbers between its rows that are none of its own.
fn operand(case: &mut Case, name: &str, element: ElementType, extents: &[usize], way: usize) -> Tensor {
    let rank = extents.len();
    let mut order: Vec<usize> = (0..rank).collect();
    if way == 1 {
        order.swap(rank - 2, rank - 1);
    }
    let mut there: Vec<usize> = order.iter().map(|axis| extents[*axis]).collect();
    let wanted = there[rank - 1];
    if way == 2 {
        there[rank - 1] += 16;
    }
    let mut x = case.input(name, element, &there);
    if way == 2 {
        x = case.graph.narrow(x, -1, 8usize, wanted).unwrap();
    }
    if way == 1 { case.graph.transpose(x, &order).unwrap() } else { x }
}

#[test]
fn every_type_by_every_kernel() {
    use Activation::{Gelu, Identity, Relu, Sigmoid, Silu, Tanh};
    let devices = devices();
    let mut ran = BTreeSet::new();
    // Batch, M, N, K; how A and B lie; bias and activation.
    let rows = [
        (1, 1, 1, 1, 0, 0, true, Relu),
        (1, 0, 4, 8, 0, 0, false, Identity),
        (2, 5, 0, 3, 0, 1, false, Identity),
        (1, 7, 8, 0, 0, 0, true, Tanh),
        (1, 13, 17, 19, 1, 0, true, Gelu),
        (3, 33, 40, 24, 0, 1, false, Silu),
        (2, 70, 136, 40, 2, 2, true, Sigmoid),
        (1, 130, 264, 40, 0, 0, false, Identity),
        (1, 3, 8, 1032, 0, 0, true, Tanh),
        (1, 5, 24, 1040, 1, 1, false, Identity),
        // One row, two and eight, by lines along K and across it; then as many columns.
        (2, 1, 13, 1048, 2, 1, true, Gelu),
        (1, 1, 2056, 40, 0, 2, true, Silu),
        (1, 2, 5, 264, 0, 1, false, Identity),
        (3, 8, 24, 136, 2, 0, true, Relu),
        (2, 73, 3, 88, 0, 1, true, Sigmoid),
        (1, 40, 1, 56, 1, 1, true, Tanh),
    ];
    for device in &devices {
        for [a, b, out] in TYPES.into_iter().filter(|types| types.iter().all(|element| computes(device, *element))) {
            // Of the other types there is one kernel, which knows no tiles.
            let rows = if out.is_float() && out != F64 { &rows[..] } else { &rows[..5] };
            for &(batch, m, n, k, a_way, b_way, bias, activation) in rows {
                let activation = match out {
                    F16 | BF16 | F32 | F64 => activation,
                    _ => Identity,
                };
                println!("{a} {b} {out}: {batch} times {m} {n} {k}, {activation:?}, on {}", device.properties().name);
                let mut case = Case::default();
                let x = operand(&mut case, "a", a, &[batch, m, k], a_way);
                let y = operand(&mut case, "b", b, &[batch, k, n], b_way);
                let bias = bias.then(|| case.input("bias", out, &[n]));
                let op = MatMul { bias: bias.is_some(), activation, out };
                let inputs: Vec<_> = [Some(x), Some(y), bias].into_iter().flatten().collect();
                let result = case.graph.add_one(op, &inputs).unwrap();
                case.output("c", result);
                let other = [a, b, out].into_iter().find(|element| *element != F32).unwrap_or(F32);
                ran.extend(by_all(&case, device, other, allowed(out)));
            }
        }
    }
    // Those of rows in groups have tests of their own, `grouped`.
    let kernels = trefoil_kernels::matmul::kernels().into_iter();
    for kernel in kernels.filter(|kernel| !kernel.name.starts_with("matmul_grouped")) {
        let runs = |device: &Device| {
            let properties = device.properties();
            let target = device.kind().target();
            let found = kernel.variant_with(target, properties.features, &properties.matrices, ParamTransport::Buffer);
            device.kind() != DeviceKind::Cpu && found.is_ok()
        };
        let is_known = !devices.iter().any(runs) || ran.contains(&*kernel.name);
        assert!(is_known, "no test runs `{}`", kernel.name);
    }
}

/// Numbers from a seed.
struct Draw(u64);

impl Draw {
    fn of(&mut self, choices: &[usize]) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        choices[(self.0 >> 33) as usize % choices.len()]
    }
}

#[test]
fn drawn_shapes_are_done_in_tiles_and_alike_in_two_runs() {
    const SEED: u64 = 20_261_122;
    let devices = devices();
    let mut draw = Draw(SEED);
    for number in 0..24 {
        let extents = [1, 7, 16, 64, 100, 131];
        let [m, n, k] = [0; 3].map(|_| draw.of(&extents));
        let batch = draw.of(&[1, 1, 3]);
        let ways = [draw.of(&[0, 1, 2]), draw.of(&[0, 1, 2])];
        let types = TYPES[draw.of(&[0, 0, 1, 3, 5])];
        let mut case = Case::default();
        let a = operand(&mut case, "a", types[0], &[batch, m, k], ways[0]);
        let b = operand(&mut case, "b", types[1], &[batch, k, n], ways[1]);
        let c = case.graph.matmul(a, b).unwrap();
        case.output("c", c);
        for device in &devices {
            println!("seed {SEED}, {number}: {types:?}, {batch} times {m} {n} {k}, {ways:?} on {}", device.kind());
            let executable = case.check(device, allowed(types[2]));
            let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
            let run = || executable.run(&data, &Extents::new()).unwrap().host("c").unwrap();
            assert_eq!(run(), run());
        }
    }
}

/// What compiles a product by kernels, where a device has a library that multiplies too.
fn by_kernels() -> Options {
    Options { forbid: ["matmul by the device's library".to_owned()].into(), ..Options::default() }
}

#[test]
fn a_library_is_taken_where_it_is_faster_and_not_forbidden() {
    let product = |element: ElementType, [m, n, k]: [usize; 3], activation: Activation| {
        let mut graph = Graph::new();
        let a = graph.input("a", element, shape(&[m, k])).unwrap();
        let b = graph.input("b", element, shape(&[n, k])).unwrap();
        let b = graph.transpose(b, &[1, 0]).unwrap();
        let c = graph.add_one(MatMul { bias: false, activation, out: element }, &[a, b]).unwrap();
        graph.output("c", c).unwrap();
        graph
    };
    const LIBRARY: &str = "matmul by the device's library";
    for device in devices() {
        let compile = |graph: &Graph, options: &Options| {
            let executable = Executable::compile(graph, &Model::new(), &device, options).unwrap();
            executable.explain().decisions[0].clone()
        };
        let reason = |graph: &Graph| {
            let decision = compile(graph, &Options::default());
            decision.others.into_iter().find(|(name, _)| name == LIBRARY).map(|(_, reason)| reason).unwrap()
        };
        let single = product(F32, [64, 64, 64], Activation::Identity);
        let Some(library) = device.properties().matrix_library else {
            assert!(reason(&single).contains("no library"), "{}", reason(&single));
            continue;
        };
        let of_integers = product(I32, [64, 64, 64], Activation::Identity);
        assert!(reason(&of_integers).contains(library.name), "{}", reason(&of_integers));
        let activated = product(F32, [64, 64, 64], Activation::Relu);
        assert!(reason(&activated).contains("activation"), "{}", reason(&activated));
        if device.kind() == DeviceKind::Cpu {
            let halves = product(F16, [64, 64, 64], Activation::Identity);
            assert!(reason(&halves).contains("f16"), "{}", reason(&halves));
            // Few rows by a large matrix that it would turn are left to ours.
            assert!(reason(&product(F32, [8, 1024, 1024], Activation::Identity)).contains("it would take"));
            for graph in [single, product(F64, [1, 100, 30], Activation::Identity)] {
                let chosen = compile(&graph, &Options::default());
                assert_eq!(chosen.candidate, LIBRARY, "{chosen:?}");
                assert_ne!(compile(&graph, &by_kernels()).candidate, LIBRARY);
                let told = forecast(&graph, device.properties(), &Options::default()).unwrap();
                assert_eq!(told.steps, [library.name]);
            }
        }
    }
}

#[test]
fn large_shapes_never_fall_to_the_slow_kernel() {
    for device in devices().iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        for [m, n, k] in [[100, 4096, 4096], [4097, 129, 1001], [1536, 7, 384], [1, 4096, 4095], [999, 999, 999]] {
            for ways in [[0, 0], [0, 1], [1, 0], [1, 1]] {
                let mut graph = Graph::new();
                let mut operand = |name: &str, [rows, columns]: [usize; 2], way: usize| {
                    let there = if way == 1 { [columns, rows] } else { [rows, columns] };
                    let x = graph.input(name, F32, shape(&there)).unwrap();
                    if way == 1 { graph.transpose(x, &[1, 0]).unwrap() } else { x }
                };
                let (a, b) = (operand("a", [m, k], ways[0]), operand("b", [k, n], ways[1]));
                let c = graph.matmul(a, b).unwrap();
                graph.output("c", c).unwrap();
                let executable = Executable::compile(&graph, &Model::new(), device, &by_kernels()).unwrap();
                let explanation = executable.explain();
                let chosen = &explanation.decisions[0];
                assert_ne!(chosen.candidate, "matmul of any strides", "{m} {n} {k} {ways:?}: {explanation}");
                // An operand that is copied is small beside the other.
                let elements = [m * k, k * n];
                let is_small = |input: &usize| 8 * elements[*input] <= elements[1 - *input];
                assert!(chosen.copied.iter().all(is_small), "{m} {n} {k} {ways:?}: {explanation}");
            }
        }
    }
}

#[test]
fn few_rows_and_columns_read_the_other_operand_once() {
    let rows = [
        ([1, 5504, 4096], "rows"),
        ([2, 4096, 4096], "rows"),
        ([5504, 1, 4096], "columns"),
        ([4096, 2, 4096], "columns"),
    ];
    for device in devices().iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        for ([m, n, k], few) in rows {
            for element in [F32, F16, BF16] {
                let mut graph = Graph::new();
                let a = graph.input("a", element, shape(&[m, k])).unwrap();
                let b = graph.input("b", element, shape(&[n, k])).unwrap();
                let b = graph.transpose(b, &[1, 0]).unwrap();
                let c = graph.matmul(a, b).unwrap();
                graph.output("c", c).unwrap();
                let executable = Executable::compile(&graph, &Model::new(), device, &by_kernels()).unwrap();
                let explanation = executable.explain();
                let decision = &explanation.decisions[0];
                assert_eq!(decision.candidate, format!("matmul of few {few}"), "{explanation}");
                assert!(decision.copied.is_empty(), "{explanation}");
            }
        }
        // The few columns lie across K, and are turned first.
        let mut graph = Graph::new();
        let a = graph.input("a", F32, shape(&[4096, 4096])).unwrap();
        let b = graph.input("b", F32, shape(&[4096, 7])).unwrap();
        let c = graph.matmul(a, b).unwrap();
        graph.output("c", c).unwrap();
        let explanation = Executable::compile(&graph, &Model::new(), device, &by_kernels()).unwrap().explain();
        let decision = &explanation.decisions[0];
        assert_eq!(decision.candidate, "matmul of few columns", "{explanation}");
        assert_eq!(decision.copied, [1], "{explanation}");
    }
}

#[test]
fn small_products_are_not_done_in_tiles() {
    for device in devices().iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        for ([batch, m, n, k], expected) in [
            ([32, 1536, 1, 7], "matmul element by element"),
            ([1, 16, 16, 1536], "matmul in tiles of 16 by 32, K shared"),
            ([1, 1, 64, 100], "matmul of few rows"),
        ] {
            let mut graph = Graph::new();
            let a = graph.input("a", F32, shape(&[batch, m, k])).unwrap();
            let b = graph.input("b", F32, shape(&[batch, k, n])).unwrap();
            let c = graph.matmul(a, b).unwrap();
            graph.output("c", c).unwrap();
            let executable = Executable::compile(&graph, &Model::new(), device, &by_kernels()).unwrap();
            let explanation = executable.explain();
            assert_eq!(explanation.decisions[0].candidate, expected, "{explanation}");
        }
    }
}

#[test]
fn integers_wrap() {
    let devices = devices();
    let words: Vec<i32> = numbers(6 * 9, 3, 2.0e9).into_iter().map(|x| x as i32).collect();
    let cases = [
        Values::I32(words.clone()),
        Values::U32(words.iter().map(|x| x.cast_unsigned()).collect()),
        Values::I8(words.iter().map(|x| *x as i8).collect()),
        Values::U8(words.iter().map(|x| *x as u8).collect()),
    ];
    for values in cases {
        let mut case = Case::default();
        let a = case.given("a", values.clone(), &[6, 9]);
        let b = case.given("b", values, &[9, 6]);
        let c = case.graph.matmul(a, b).unwrap();
        case.output("c", c);
        devices.iter().for_each(|device| drop(case.check(device, 0.0)));
    }
}

/// As of `relu`, and unlike a maximum.
#[test]
fn the_positive_part_of_a_nan_is_one() {
    for element in [F32, F16, F64] {
        for [m, k, n] in [[1usize, 64, 64], [5, 7, 3], [64, 64, 64]] {
            let mut case = Case::default();
            let mut values = numbers(m * k, 3, 1.0);
            values[0] = f32::NAN;
            let values = match element {
                F64 => Values::F64(values.into_iter().map(f64::from).collect()),
                F16 => Values::F16(values.into_iter().map(half::f16::from_f32).collect()),
                _ => Values::F32(values),
            };
            let a = case.given("a", values, &[m, k]);
            let b = case.input("b", element, &[k, n]);
            let product = MatMul { bias: false, activation: Activation::Relu, out: element };
            let c = case.graph.add_one(product, &[a, b]).unwrap();
            case.output("c", c);
            for device in devices().iter().filter(|device| computes(device, element)) {
                by_all(&case, device, element, allowed(element));
            }
        }
    }
}

/// As of `gelu` and `silu`.
#[test]
fn activations_of_minus_infinity() {
    for (element, activation) in [F32, F64].into_iter().flat_map(|of| [(of, Activation::Gelu), (of, Activation::Silu)])
    {
        for [m, k, n] in [[1usize, 64, 64], [5, 7, 3]] {
            let mut case = Case::default();
            let given = |first: f32, count: usize| {
                let values = (0..count).map(|at| if at == 0 { first } else { 1.0 });
                if element == F64 {
                    Values::F64(values.map(f64::from).collect())
                } else {
                    Values::F32(values.collect())
                }
            };
            let a = case.given("a", given(f32::NEG_INFINITY, m * k), &[m, k]);
            let b = case.given("b", given(1.0, k * n), &[k, n]);
            let c = case.graph.add_one(MatMul { bias: false, activation, out: element }, &[a, b]).unwrap();
            case.output("c", c);
            for device in devices().iter().filter(|device| computes(device, element)) {
                by_all(&case, device, element, allowed(element));
            }
        }
    }
}

#[test]
fn extents_of_each_run() {
    for (most, counts) in [(300, [0usize, 1, 31, 300]), (5, [0, 1, 3, 5])] {
        let rows = Symbol::new("rows", 0, most).unwrap();
        for [a, b, out] in [[F32, F32, F32], [F16, F16, F16], [F32, BF16, F32]] {
            let mut graph = Graph::new();
            let x = graph.input("x", a, vec![Dim::from(&rows), Dim::from(72usize)]).unwrap();
            let w = graph.input("w", b, shape(&[136, 72])).unwrap();
            let y = graph.linear(x, w, None, Activation::Silu).unwrap();
            graph.output("y", y).unwrap();
            for device in devices() {
                let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
                for count in counts {
                    let mut extents = Extents::new();
                    extents.set(&rows, count as i64).unwrap();
                    let inputs = [("x", Values::of(a, count * 72, 4, 1.0)), ("w", Values::of(b, 136 * 72, 5, 1.0))];
                    compare(&graph, &executable, &inputs, &extents, allowed(out));
                }
            }
        }
    }
}

/// On the processor itself, where chains of so many additions would be off by up to a hundred times as much.
#[test]
fn sums_of_many_terms_are_within_the_stated_accuracy() {
    const WAY: &str = "matmul on the host";
    const COLUMNS: usize = 19;
    let options = Options { force: [("matmul".to_owned(), WAY.to_owned())].into(), ..Options::default() };
    let constant = |count: usize, _: u32| Values::F32(vec![0.1; count]);
    let positive = |count: usize, seed: u32| Values::of(F32, count, seed, 1.0).positive();
    let rows = Symbol::new("rows", 0, 3).unwrap();
    for device in devices().iter().filter(|device| device.kind() == DeviceKind::Cpu) {
        for k in [4096, 10_000, 100_003] {
            for values in [constant as fn(usize, u32) -> Values, positive] {
                println!("{k}");
                let mut graph = Graph::new();
                let x = graph.input("x", F32, shape(&[2, k])).unwrap();
                let w = graph.input("w", F32, shape(&[COLUMNS, k])).unwrap();
                let y = graph.linear(x, w, None, Activation::Relu).unwrap();
                graph.output("y", y).unwrap();
                let executable = Executable::compile(&graph, &Model::new(), device, &options).unwrap();
                let inputs = [("x", values(2 * k, 1)), ("w", values(COLUMNS * k, 2))];
                compare(&graph, &executable, &inputs, &Extents::new(), tolerance(F32));

                let mut graph = Graph::new();
                let a = graph.input("a", F32, vec![Dim::from(&rows), Dim::from(k)]).unwrap();
                let b = graph.input("b", F32, shape(&[k, COLUMNS])).unwrap();
                let c = graph.matmul(a, b).unwrap();
                graph.output("c", c).unwrap();
                let executable = Executable::compile(&graph, &Model::new(), device, &options).unwrap();
                for count in [1usize, 3] {
                    let mut extents = Extents::new();
                    extents.set(&rows, count as i64).unwrap();
                    let inputs = [("a", values(count * k, 3)), ("b", values(k * COLUMNS, 4))];
                    compare(&graph, &executable, &inputs, &extents, tolerance(F32));
                }
            }
        }
    }
}

#[test]
fn vectors_are_rows_and_columns() {
    let devices = devices();
    for (a, b, wanted) in [
        (&[7usize][..], &[7usize][..], &[][..]),
        (&[7], &[7, 4], &[4]),
        (&[5, 7], &[7], &[5]),
        (&[7], &[3, 7, 4], &[3, 4]),
        (&[2, 3, 5, 7], &[7], &[2, 3, 5]),
        (&[1], &[1], &[]),
        (&[0], &[0, 2], &[2]),
    ] {
        let mut case = Case::default();
        let (x, y) = (case.input("a", F32, a), case.input("b", F32, b));
        let z = case.graph.matmul(x, y).unwrap();
        assert_eq!(case.graph.type_of(z).unwrap().shape, shape(wanted), "{a:?} {b:?}");
        case.output("z", z);
        devices.iter().for_each(|device| drop(case.check(device, 1e-5)));
    }
}

/// Their values, of a million elements and more, of which pipelines know how many invocations share a column; short K, and K for several steps of a team.
#[test]
fn few_rows_of_large_matrices() {
    for [m, n, k] in [[3, 523, 2048], [7, 2741, 384], [1, 515, 2048]] {
        let mut case = Case::default();
        let (x, y) = (case.input("a", F32, &[m, k]), case.input("b", F32, &[n, k]));
        let y = case.graph.transpose(y, &[1, 0]).unwrap();
        let z = case.graph.matmul(x, y).unwrap();
        case.output("z", z);
        for device in devices() {
            println!("{m}x{n}x{k} on {}", device.properties().name);
            case.check(&device, 1e-4);
        }
    }
}

/// The sum over pairs of axes by its definition, of tensors given by their elements.
fn contracted(a: &HostTensor, b: &HostTensor, sums: &[(usize, usize)], batch: &[(usize, usize)]) -> HostTensor {
    let place = |shape: &[usize], at: &[usize]| at.iter().zip(shape).fold(0, |place, (i, extent)| place * extent + i);
    let positions = |extents: &[usize]| -> Vec<Vec<usize>> {
        extents.iter().fold(vec![Vec::new()], |all, extent| {
            all.iter().flat_map(|known| (0..*extent).map(|i| [known.as_slice(), &[i]].concat())).collect()
        })
    };
    let free = |shape: &[usize], side: fn(&(usize, usize)) -> usize| -> Vec<usize> {
        (0..shape.len()).filter(|axis| !sums.iter().chain(batch).any(|pair| side(pair) == *axis)).collect()
    };
    let (a_free, b_free) = (free(&a.shape, |pair| pair.0), free(&b.shape, |pair| pair.1));
    let kept: Vec<usize> = batch
        .iter()
        .map(|pair| a.shape[pair.0])
        .chain(a_free.iter().map(|axis| a.shape[*axis]))
        .chain(b_free.iter().map(|axis| b.shape[*axis]))
        .collect();
    let summed: Vec<usize> = sums.iter().map(|pair| a.shape[pair.0]).collect();
    let values = positions(&kept).into_iter().map(|at| {
        let (mut left, mut right) = (vec![0; a.shape.len()], vec![0; b.shape.len()]);
        for (pair, i) in batch.iter().zip(&at) {
            (left[pair.0], right[pair.1]) = (*i, *i);
        }
        let rest = &at[batch.len()..];
        a_free.iter().zip(rest).for_each(|(axis, i)| left[*axis] = *i);
        b_free.iter().zip(&rest[a_free.len()..]).for_each(|(axis, i)| right[*axis] = *i);
        positions(&summed).into_iter().fold(0.0, |sum, inner| {
            for (pair, i) in sums.iter().zip(&inner) {
                (left[pair.0], right[pair.1]) = (*i, *i);
            }
            sum + a.values[place(&a.shape, &left)] * b.values[place(&b.shape, &right)]
        })
    });
    HostTensor { values: values.collect(), shape: kept }
}

#[test]
fn any_axes_are_contracted() {
    type Pairs<'a> = &'a [(isize, isize)];
    let rows: [(&[usize], &[usize], Pairs<'_>, Pairs<'_>); 6] = [
        (&[3, 5, 2], &[5, 7, 2], &[(1, 0)], &[(-1, -1)]),
        (&[4, 6], &[6, 5], &[(1, 0)], &[]),
        (&[4, 6], &[4, 6], &[(0, 0), (1, 1)], &[]),
        (&[2, 3, 4, 5], &[4, 2, 6, 3], &[(1, 3), (2, 0)], &[(0, 1)]),
        (&[3], &[4], &[], &[]),
        (&[2, 3], &[3, 2], &[], &[(0, 1), (1, 0)]),
    ];
    for (a_shape, b_shape, sums, batch) in rows {
        let mut case = Case::default();
        let (a, b) = (case.input("a", F32, a_shape), case.input("b", F32, b_shape));
        let op = Contraction { contracted: sums.to_vec(), batch: batch.to_vec() };
        let y = case.graph.dot_general(a, b, &op).unwrap();
        case.output("y", y);
        let at = |axis: isize, rank: usize| axis.rem_euclid(rank as isize) as usize;
        let resolved = |pairs: Pairs<'_>| -> Vec<_> {
            pairs.iter().map(|(x, y)| (at(*x, a_shape.len()), at(*y, b_shape.len()))).collect()
        };
        let host = |number: usize, shape: &[usize]| HostTensor {
            shape: shape.to_vec(),
            values: case.inputs[number].1.host().values,
        };
        let wanted = contracted(&host(0, a_shape), &host(1, b_shape), &resolved(sums), &resolved(batch));
        for device in devices() {
            let executable = case.check(&device, 1e-5);
            let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
            let found = executable.run(&data, &Extents::new()).unwrap().host("y").unwrap();
            assert_eq!(found.shape, wanted.shape);
            let close = found.values.iter().zip(&wanted.values).all(|(x, y)| (x - y).abs() < 1e-4);
            assert!(close, "{a_shape:?} {b_shape:?}: {:?}, not {:?}", found.values, wanted.values);
        }
    }
}

#[test]
fn one_product_is_several_results() {
    let mut case = Case::default();
    let (x, w) = (case.input("x", F32, &[5, 8]), case.input("w", F32, &[20, 8]));
    let bias = case.input("bias", F32, &[20]);
    let parts = case.graph.linear_split(x, w, Some(bias), &[8, 8, 4]).unwrap();
    for (index, part) in parts.iter().enumerate() {
        let part = case.graph.relu(*part).unwrap();
        case.output(&format!("part {index}"), part);
    }
    for device in devices() {
        let executable = case.check(&device, 1e-5);
        assert_eq!(executable.explain().decisions.len(), 1, "{}", executable.explain());
    }
    let refused = case.graph.linear_split(x, w, None, &[8, 8]).unwrap_err().to_string();
    assert!(refused.contains("columns") && refused.contains("f32[20, 8]"), "{refused}");
    // Their sum is beyond 64 bits.
    let refused = case.graph.linear_split(x, w, None, &[usize::MAX, 21]).unwrap_err().to_string();
    assert!(refused.contains("columns") && refused.contains("f32[20, 8]"), "{refused}");
    let deep = case.input("deep", F32, &[2, 20, 8]);
    let refused = case.graph.linear(x, deep, None, Activation::Identity).unwrap_err().to_string();
    assert!(refused.contains("linear") && refused.contains("weight") && refused.contains("f32[2, 20, 8]"), "{refused}");
}

#[test]
fn each_attribute_changes_the_result() {
    let values = |shape: &[usize], values: &[f64]| HostTensor { shape: shape.to_vec(), values: values.to_vec() };
    let inputs = [values(&[1, 2], &[1.0, 2.0]), values(&[2, 1], &[3.0e9, -2.0e9]), values(&[1], &[5.0])];
    let of = |bias, activation, out| MatMul { bias, activation, out }.reference(&inputs, &[vec![1, 1]]);
    let plain = of(false, Activation::Identity, F32);
    assert_ne!(plain, of(true, Activation::Identity, F32));
    assert_ne!(plain, of(false, Activation::Relu, F32));
    assert_ne!(of(false, Activation::Identity, I32), of(false, Activation::Identity, U32));
}

#[test]
fn what_is_refused() {
    let mut g = Graph::new();
    let mut input = |name: &str, element| g.input(name, element, shape(&[4, 4])).unwrap();
    let [f, h, d, i, n, b] = [F32, F16, F64, I32, I16, Bool].map(|element| input(element.name(), element));
    let refused = |result: Result<Tensor, GraphError>| result.unwrap_err().to_string();
    assert!(refused(g.matmul(n, n)).contains("input `a` is i16"));
    assert!(refused(g.matmul(b, f)).contains("input `a` is bool"));
    assert!(refused(g.matmul(h, f)).contains("input `b` is f32; expected f16 beside an `a` of f16"));
    assert!(refused(g.matmul_to(f, h, F16)).contains("attribute `out` is f16; expected f32 of f32 and f16"));
    let gelu = |g: &mut Graph, x, out| g.add_one(MatMul { bias: false, activation: Activation::Gelu, out }, &[x, x]);
    assert!(gelu(&mut g, d, F64).is_ok());
    assert!(refused(gelu(&mut g, i, I32)).contains("attribute `activation` is Gelu; expected Identity of i32"));
    let long = g.input("long", F32, shape(&[5])).unwrap();
    assert!(refused(g.matmul(f, long)).contains("4 rows"));
    // What no kernel steps through by one stride is copied by the method, and refused by the op.
    let batches = g.input("batches", F32, shape(&[2, 3, 4, 5])).unwrap();
    let repeated = g.input("repeated", F32, shape(&[1, 3, 5, 4])).unwrap();
    let plain = MatMul { bias: false, activation: Activation::Identity, out: F32 };
    let [of_b, of_a] = [[batches, repeated], [repeated, batches]].map(|inputs| g.add_one(plain, &inputs));
    assert!(refused(of_b).contains("input `b` is f32[1, 3, 5, 4]; expected leading axes that are all repeated"));
    assert!(refused(of_a).contains("input `a` is f32[1, 3, 5, 4]; expected leading axes that are all repeated"));
    assert!(refused(g.add_one(plain, &[batches, repeated])).contains("`expand` it to [2, 3, 5, 4], then `contiguous`"));
    assert!(g.matmul(batches, repeated).is_ok());
    let biased = MatMul { bias: true, activation: Activation::Identity, out: F16 };
    let bias = g.input("bias", F32, shape(&[4])).unwrap();
    assert!(refused(g.add_one(biased, &[h, h, bias])).contains("input `bias` is f32"));
    let twice = Contraction { contracted: vec![(0, 0), (0, 1)], batch: Vec::new() };
    assert!(refused(g.dot_general(f, f, &twice)).contains("axis 0"));
    let unequal = Contraction { contracted: vec![(0, 0)], batch: Vec::new() };
    assert!(refused(g.dot_general(f, long, &unequal)).contains("axes of equal extents"));
}

#[test]
fn the_tests_know_every_product() {
    for a in ElementType::ALL {
        for b in ElementType::ALL {
            for out in ElementType::ALL {
                let mut graph = Graph::new();
                let (x, y) =
                    (graph.input("x", a, shape(&[2, 2])).unwrap(), graph.input("y", b, shape(&[2, 2])).unwrap());
                assert_eq!(graph.matmul_to(x, y, out).is_ok(), TYPES.contains(&[a, b, out]), "{a} {b} {out}");
            }
        }
    }
}
