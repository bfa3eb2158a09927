//! The kernels that only plans launch, in the checker: every candidate of the ops that have them, on small operands of every type. Nothing may be found, and results are held to the references.
//! Kernels that are launched one by one are checked by `tests/kernels` of the whole system.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

#[path = "../../../tests/common/checker.rs"]
mod checker;
mod common;

use std::collections::BTreeSet;
use std::time::Instant;

use checker::Checker;
use common::cases::{Case, shape};
use common::{Values, compare, computes, numbers, tolerance};
use trefoil_graph::ops::attention::{Attention, AttentionLayout, AttentionOperands};
use trefoil_graph::ops::matmul::MatMul;
use trefoil_graph::ops::pull::convolution::Slide;
use trefoil_graph::ops::scan::Operator;
use trefoil_graph::ops::scatter::Update;
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Model, Options};
use trefoil_kernels::activation::Activation;

use ElementType::{BF16, F16, F32, F64, I8, I32, I64, U8, U16, U32, U64};

/// Runs a graph as it comes and by every candidate of each of its ops.
fn run(checker: &Checker, about: &str, case: &Case, tolerance: f64) {
    run_by(checker, about, case, tolerance, |_| true);
}

/// The same, by some of the candidates.
fn run_by(checker: &Checker, about: &str, case: &Case, tolerance: f64, wanted: impl Fn(&str) -> bool) {
    let nodes = case.graph.nodes().iter();
    let ways: BTreeSet<(String, &str)> =
        nodes.flat_map(|node| node.op.kind().ways().into_iter().map(|way| (node.op.name().to_owned(), way))).collect();
    for way in std::iter::once(None).chain(ways.into_iter().filter(|(_, way)| wanted(way)).map(Some)) {
        let place = way.as_ref().map_or_else(|| about.to_owned(), |(_, way)| format!("{about}, {way}"));
        let force = way.into_iter().map(|(op, way)| (op, way.to_owned())).collect();
        let options = Options { force, ..Options::default() };
        let executable = match Executable::compile(&case.graph, &Model::new(), &checker.device, &options) {
            Ok(executable) => executable,
            Err(Error::NoCandidate { .. }) => continue,
            Err(error) => panic!("{place}: {error}"),
        };
        let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        compare(&case.graph, &executable, &inputs, &Extents::new(), tolerance);
        let steps = executable.explain().steps;
        checker.ran(steps.iter().map(|step| step.kernel.as_str()), &place);
    }
}

#[test]
fn nothing_is_amiss() {
    let families: [(&str, fn(&Checker)); 7] = [
        ("products", products),
        ("scatters", scatters),
        ("sorts", sorts),
        ("scans", scans),
        ("convolutions", convolutions),
        ("attention", attention),
        ("random numbers", random_numbers),
    ];
    // Each device that checks runs one dispatch at a time.
    let ran: BTreeSet<String> = std::thread::scope(|scope| {
        let threads = families.map(|(family, cases)| {
            scope.spawn(move || {
                let (checker, start) = (Checker::open(), Instant::now());
                cases(&checker);
                checker.told(family, start)
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let families = [
        trefoil_kernels::convolution::kernels(),
        trefoil_kernels::matmul::kernels(),
        trefoil_kernels::random::kernels(),
        trefoil_kernels::scan::kernels(),
        trefoil_kernels::scatter::kernels(),
        trefoil_kernels::sort::kernels(),
    ];
    let wanted = families.concat().into_iter().map(|kernel| kernel.name.to_string());
    let missing: Vec<String> = wanted.filter(|name| !ran.contains(name)).collect();
    assert!(missing.is_empty(), "kernels that were not checked: {missing:?}");
}

fn products(checker: &Checker) {
    let types = [
        [F32, F32, F32],
        [F16, F16, F16],
        [F16, F16, F32],
        [BF16, BF16, BF16],
        [BF16, BF16, F32],
        [F32, F16, F32],
        [F32, BF16, F32],
        [F64, F64, F64],
        [I32, I32, I32],
        [U64, U64, U64],
        [I8, I8, I32],
        [I8, U8, I32],
        [U8, I8, I32],
        [U8, U8, I32],
    ];
    for [a, b, out] in types {
        for [batch, m, n, k] in [[1, 1, 1, 1], [2, 5, 8, 40], [1, 68, 132, 20], [1, 3, 8, 1032], [1, 24, 2, 72]] {
            let is_float = out.is_float();
            // Of the other types there is one kernel, which knows no tiles.
            if (!is_float || out == F64) && m > 60 {
                continue;
            }
            for turned in [false, true] {
                let mut case = Case::default();
                let x = case.input("a", a, &[batch, m, k]);
                let y = if turned {
                    let y = case.input("b", b, &[batch, n, k]);
                    case.graph.transpose(y, &[0, 2, 1]).unwrap()
                } else {
                    case.input("b", b, &[batch, k, n])
                };
                let bias = (m > 1).then(|| case.input("bias", out, &[n]));
                let activation = if is_float { Activation::Relu } else { Activation::Identity };
                let op = MatMul { bias: bias.is_some(), activation, out };
                let inputs: Vec<_> = [Some(x), Some(y), bias].into_iter().flatten().collect();
                let product = case.graph.add_one(op, &inputs).unwrap();
                case.output("c", product);
                let allowed = if out == F32 { 2e-4 } else { 2.0 * tolerance(out) };
                // Whole tiles of so much along K take seconds.
                let wanted = |way: &str| k < 1000 || !way.contains("matrix units") && !way.contains("tiles of");
                run_by(checker, &format!("{a} {b} {out}, {batch} times {m} {n} {k}"), &case, allowed, wanted);
            }
        }
    }
    for [a, b] in [[F32, F32], [F16, F16], [BF16, BF16], [F32, F16], [F32, BF16], [F64, F64]] {
        for [rows, k, n, groups] in [[0, 4, 8, 3], [5, 7, 3, 2], [67, 20, 68, 3]] {
            let mut case = Case::default();
            let x = case.input("x", a, &[rows, k]);
            let weights = case.input("weights", b, &[groups, k, n]);
            let ids = (0..rows).map(|row| (row * row * 5 + row / 3) as u32 % (groups as u32 + 1)).collect();
            let ids = case.given("ids", Values::U32(ids), &[rows]);
            let y = case.graph.grouped_matmul(x, weights, ids).unwrap();
            case.output("y", y);
            let allowed = if a == F32 { 2e-4 } else { 2.0 * tolerance(a) };
            run(checker, &format!("{groups} groups of {a} {b}, {rows} {k} {n}"), &case, allowed);
        }
    }
}

fn scatters(checker: &Checker) {
    // Chunks of updates of one slot; and more slots than half a word counts.
    for (element, [lines, slots, count, columns]) in ElementType::ALL
        .map(|element| (element, [2, 7, 300, 8]))
        .into_iter()
        .chain([(F32, [1, 66_000, 270, 1]), (U32, [3, 5, 40, 3])])
    {
        for update in Update::ALL.into_iter().filter(|update| update.takes(element)) {
            let mut case = Case::default();
            let x = case.input("x", element, &[lines, slots, columns]);
            let place = |i: usize, x: f32| match i % 10 {
                0 => slots as i32 + i as i32 % 3,
                1 => -1 - i as i32 % 3,
                2..6 => slots as i32 / 2,
                _ => ((x + 1.0) / 2.0 * slots as f32) as i32,
            };
            let places = numbers(count, 77, 1.0).into_iter().enumerate().map(|(i, x)| place(i, x)).collect();
            let indices = case.given("indices", Values::I32(places), &[count]);
            let updates = case.input("updates", element, &[lines, count, columns]);
            // A product of so many is none that a reference knows.
            if update == Update::Mul {
                continue;
            }
            let y = case.graph.scatter(x, indices, updates, 1, update).unwrap();
            case.output("y", y);
            let allowed = if element == F32 { 3e-4 } else { 4.0 * tolerance(element) };
            run(checker, &format!("{update:?} of {element}, {slots} slots"), &case, allowed);
        }
        // Elements along an axis, by indices of another type, and few of them to a place.
        for update in Update::ALL.into_iter().filter(|update| update.takes(element)) {
            let mut case = Case::default();
            let x = case.turned("x", element, &[5, 7, 4]);
            let of_index = if lines == 2 { I64 } else { U16 };
            let indices = case.input("indices", of_index, &[5, 3, 4]);
            let updates = case.input("updates", element, &[5, 3, 4]);
            let y = case.graph.scatter_elements(x, indices, updates, 1, update).unwrap();
            case.output("y", y);
            run(checker, &format!("{update:?} of {element} by {of_index}"), &case, 4.0 * tolerance(element));
        }
    }
}

fn sorts(checker: &Checker) {
    let small = ElementType::ALL.map(|element| (element, vec![3, 7, 5], 1));
    let long = [U8, F16, F32, U64, F64].map(|element| (element, vec![1, 4500], 1));
    let others = [(F32, vec![2100, 2], 0), (F32, vec![9001], 0), (F32, vec![20, 1500], 1)];
    for (index, (element, extents, axis)) in small.into_iter().chain(long).chain(others).enumerate() {
        let both = extents.iter().product::<usize>() < 1000;
        for descending in [false, true].into_iter().filter(|descending| both || *descending == (index % 2 == 0)) {
            let mut case = Case::default();
            let x = case.input("x", element, &extents);
            let n = extents[axis];
            let along = axis.cast_signed();
            let values = case.graph.sort(x, along, descending).unwrap();
            case.output("values", values);
            let places = case.graph.argsort(x, along, descending).unwrap();
            case.output("places", places);
            for k in [n.div_ceil(2), n.min(50), 1] {
                let (values, places) = case.graph.top_k(x, k, along, descending, k > 1).unwrap();
                case.output(&format!("best {k}"), values);
                case.output(&format!("places of the best {k}"), places);
            }
            run(checker, &format!("{element}{extents:?} along {axis}"), &case, 0.0);
        }
    }
}

fn scans(checker: &Checker) {
    let types = ElementType::ALL.into_iter().filter(|element| Operator::Sum.takes().any(|taken| taken == *element));
    for element in types {
        for extents in [&[2usize, 8, 4][..], &[3, 1, 5], &[257], &[1, 4100], &[300, 8]] {
            for axis in (0..extents.len().cast_signed()).filter(|axis| extents.len() < 3 || axis % 2 == 1) {
                let mut case = Case::default();
                let x = case.input("x", element, extents);
                let exact = !element.is_float();
                let y = case.graph.cumsum(x, axis, axis == 0, exact).unwrap();
                case.output("sums", y);
                let y = case.graph.cummax(x, axis, axis == 0, !exact).unwrap();
                case.output("largest", y);
                let y = case.graph.cummin(x, axis, axis != 0, exact).unwrap();
                case.output("smallest", y);
                if extents.iter().product::<usize>() < 100 && !matches!(element, I64 | U64) {
                    let y = case.graph.cumprod(x, axis, axis != 0, exact).unwrap();
                    case.output("products", y);
                }
                let allowed = match element {
                    F64 => 1e-11,
                    F32 => 2e-4,
                    F16 => 4e-3,
                    BF16 => 3e-2,
                    _ => 0.0,
                };
                run(checker, &format!("{element}{extents:?} along {axis}"), &case, allowed);
            }
        }
    }
}

fn convolutions(checker: &Checker) {
    let slide = |[stride, dilation, front, behind, more]: [i64; 5]| {
        let [stride, dilation, output_padding] = [stride, dilation, more].map(Dim::from);
        Slide { stride, dilation, padding: [front, behind].map(Dim::from), output_padding }
    };
    // Extents of x and of the weight, how the kernel moves, groups, and whether it is transposed.
    type Row = (&'static [usize], &'static [usize], &'static [[i64; 5]], i64, bool);
    let rows: [Row; 5] = [
        (&[2, 3, 13], &[5, 3, 4], &[[3, 2, 1, 2, 0]], 1, false),
        (&[2, 6, 5, 6], &[4, 3, 2, 3], &[[1, 2, 0, 0, 0], [1, 1, 2, 2, 0]], 2, false),
        (&[1, 10, 7, 9], &[70, 10, 3, 3], &[[1, 1, 1, 1, 0], [2, 1, 1, 1, 0]], 1, false),
        (&[2, 6, 3, 2], &[6, 2, 2, 3], &[[2, 2, 0, 0, 0], [1, 1, 1, 0, 0]], 3, true),
        // Channels in parts.
        (&[1, 160, 4, 4], &[8, 160, 3, 3], &[[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]], 1, false),
    ];
    for element in [F32, F16, BF16] {
        for (extents, weights, slides, groups, transposed) in rows {
            let mut case = Case::default();
            let x = case.input("x", element, extents);
            let weight = case.input("weight", element, weights);
            let outputs = if transposed { weights[1] * groups as usize } else { weights[0] };
            let bias = case.input("bias", element, &[outputs]);
            let slides: Vec<Slide> = slides.iter().copied().map(slide).collect();
            let y = if transposed {
                case.graph.conv_transpose(x, weight, Some(bias), &slides, groups, Activation::Silu)
            } else {
                case.graph.conv(x, weight, Some(bias), &slides, groups, Activation::Relu)
            };
            case.output("y", y.unwrap());
            let allowed = if element == F32 { 1e-3 } else { 4.0 * tolerance(element) };
            run(checker, &format!("{element}{extents:?} by {weights:?}"), &case, allowed);
        }
    }
}

/// Those that `tests/kernels` leaves to the op: doubles, and matrix units.
fn attention(checker: &Checker) {
    for element in [F64, F32, F16, BF16] {
        for [heads, key_heads, queries, keys, elements] in [[2, 1, 7, 37, 32], [1, 1, 18, 20, 64]] {
            let mut case = Case::default();
            let q = case.input("q", element, &[1, heads, queries, elements]);
            let k = case.input("k", element, &[1, key_heads, keys, elements]);
            let v = case.input("v", element, &[1, key_heads, keys, elements]);
            let causal = Attention { causal: true, ..Attention::new(AttentionLayout::Bhsd, 0.3) };
            let y = case.graph.attention(q, k, v, AttentionOperands::default(), causal).unwrap();
            case.output("y", y);
            run(checker, &format!("{element}, {heads} heads of {elements}"), &case, 4.0 * tolerance(element));
        }
    }
}

fn random_numbers(checker: &Checker) {
    let extents = || shape(&[261]);
    let mut case = Case::default();
    let mut made = Vec::new();
    for element in [U32, U64] {
        made.push((format!("bits {element}"), case.graph.random_bits(extents(), element)));
    }
    for element in [F32, F16, BF16, F64].into_iter().filter(|element| computes(&checker.device, *element)) {
        made.push((format!("uniform {element}"), case.graph.uniform(extents(), -0.3, 1.7, element)));
        made.push((format!("normal {element}"), case.graph.normal(extents(), 0.5, 2.0, element)));
    }
    made.push(("bernoulli".to_owned(), case.graph.bernoulli(extents(), 0.3)));
    for (name, made) in made {
        case.output(&name, made.unwrap());
    }
    case.inputs = vec![("seed".to_owned(), Values::U32(vec![8, 0]))];
    run(checker, "random numbers", &case, 8e-3);
}
