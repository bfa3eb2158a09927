//! Softmax and norms over every set of axes, of every element type and with every optional operand, against their references, on every device: awkward extents, strided elements, rows that are held and
//! rows that are too long for that, and extents that each run decides.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::{Case, shape};
use common::{Values, compare, computes, devices, numbers, tolerance};
use trefoil_graph::ops::norm::{BatchMoments, Norm, NormKind, NormOperands, Softmax};
use trefoil_graph::{
    Dim, ElementType, Executable, Extents, Graph, GraphError, HostTensor, Model, Op, Options, Symbol, Tensor,
};

const FLOATS: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

/// Axes whose bits are set.
fn axes_of(set: usize, rank: usize) -> Vec<usize> {
    (0..rank).filter(|axis| set >> axis & 1 == 1).collect()
}

#[test]
fn softmax_over_every_set_of_axes() {
    let devices = devices();
    for element in &FLOATS {
        for extents in [&[1usize][..], &[0, 3], &[7], &[257], &[3, 1, 5], &[8, 12], &[2, 3, 4, 5], &[4, 2, 8]] {
            for turned in [false, true] {
                let mut case = Case::default();
                let x = if turned { case.turned("x", *element, extents) } else { case.input("x", *element, extents) };
                for set in 0..1usize << extents.len() {
                    for logarithm in [false, true] {
                        let axes = axes_of(set, extents.len());
                        let name = format!("{axes:?}, logarithm {logarithm}");
                        let y = case.graph.add_one(Softmax { axes, logarithm }, &[x]).unwrap();
                        case.output(&name, y);
                    }
                }
                for device in devices.iter().filter(|device| computes(device, *element)) {
                    println!("{element}{extents:?}, turned {turned}, on {}", device.properties().name);
                    case.check(device, tolerance(*element));
                }
            }
        }
    }
}

#[test]
fn more_axes_than_kernels_go_along() {
    let mut case = Case::default();
    let x = case.turned("x", ElementType::F32, &[2, 3, 2, 3, 2, 3, 2]);
    let y = case.graph.softmax(x, -1).unwrap();
    case.output("softmax", y);
    let y = case.graph.layer_norm(x, &[-1], 1e-5, NormOperands::default()).unwrap();
    case.output("layer_norm", y);
    for device in devices() {
        case.check(&device, tolerance(ElementType::F32));
    }
}

/// Adds a norm whose operands and outputs are those whose bits are set: residual, bias, gamma, beta, the sum, moments. Vectors are of the normalised axes' shape, or of that of all axes from the first of these on.
fn add_norm(
    case: &mut Case,
    x: Tensor,
    axes: &[usize],
    kind: NormKind,
    choice: usize,
    vectors: ElementType,
    turned: bool,
) {
    let ty = case.graph.type_of(x).unwrap().clone();
    let extents: Vec<usize> = ty.shape.iter().map(|extent| extent.constant().unwrap() as usize).collect();
    let bit = |at: usize| choice >> at & 1 == 1;
    let about = format!("{kind:?} over {axes:?}, {choice:b}, {vectors}");
    let first = axes.first().copied().unwrap_or(extents.len());
    let vector: Vec<usize> =
        (first..extents.len()).map(|axis| if axes.contains(&axis) { extents[axis] } else { 1 }).collect();
    let mut inputs = vec![x];
    if bit(0) {
        let name = format!("residual of {about}");
        inputs.push(if turned {
            case.turned(&name, ty.element, &extents)
        } else {
            case.input(&name, ty.element, &extents)
        });
    }
    for (at, name, element) in [(1, "bias", ty.element), (2, "gamma", vectors), (3, "beta", vectors)] {
        if bit(at) {
            inputs.push(case.input(&format!("{name} of {about}"), element, &vector));
        }
    }
    let norm = Norm {
        kind,
        axes: axes.to_vec(),
        epsilon: if choice.is_multiple_of(3) { 1e-3 } else { 0.25 },
        residual: bit(0),
        bias: bit(1),
        gamma: bit(2),
        beta: bit(3),
        wants_sum: bit(4),
        wants_moments: bit(5),
    };
    for (port, output) in case.graph.add_op(norm, &inputs).unwrap().into_iter().enumerate() {
        case.output(&format!("{about}: {port}"), output);
    }
}

const KINDS: [NormKind; 3] = [NormKind::Layer, NormKind::Rms, NormKind::Length];

/// What rounding may make of a norm: its deviation is at least a tenth or so of what it is made from.
fn of_norms(element: ElementType) -> f64 {
    match element {
        ElementType::F64 => 1e-12,
        other => 2.0 * tolerance(other),
    }
}

#[test]
fn norms_over_every_set_of_axes() {
    let devices = devices();
    let mut choice = 0;
    for element in FLOATS {
        for extents in [&[1usize][..], &[0, 3], &[7], &[257], &[3, 1, 5], &[8, 12], &[2, 3, 4, 5], &[4, 2, 8]] {
            for turned in [false, true] {
                let mut case = Case::default();
                let x = if turned { case.turned("x", element, extents) } else { case.input("x", element, extents) };
                for set in 0..1usize << extents.len() {
                    choice = (choice + 11) % 64;
                    let single = choice % 5 == 0 && element != ElementType::F64;
                    let vectors = if single { ElementType::F32 } else { element };
                    let axes = axes_of(set, extents.len());
                    let kind = KINDS[(choice / 3 + set) % 3];
                    add_norm(&mut case, x, &axes, kind, choice, vectors, turned != (choice % 7 == 0));
                }
                for device in devices.iter().filter(|device| computes(device, element)) {
                    println!("{element}{extents:?}, turned {turned}, on {}", device.properties().name);
                    case.check(device, of_norms(element));
                }
            }
        }
    }
}

#[test]
fn every_choice_of_operands_and_outputs() {
    let devices = devices();
    for element in &FLOATS[..3] {
        for (turn, vectors) in [*element, ElementType::F32].into_iter().enumerate() {
            for columns in [40, 41] {
                let mut case = Case::default();
                let x = case.input("x", *element, &[5, columns]);
                // Of halves with either vectors half of them.
                for choice in (turn..64).step_by(if *element == ElementType::F32 { 1 } else { 2 }) {
                    let kind = KINDS[(choice / 3 + choice) % 3];
                    add_norm(&mut case, x, &[1], kind, choice, vectors, false);
                }
                for device in &devices {
                    println!("{element}, vectors of {vectors}, {columns}, on {}", device.properties().name);
                    case.check(device, of_norms(*element));
                }
            }
        }
    }
}

#[test]
fn rows_that_are_held_and_rows_that_are_longer() {
    let devices = devices();
    // Around what 1 to 256 invocations hold, and beyond; some that no four elements make.
    let lengths =
        [4usize, 16, 20, 60, 500, 512, 516, 1024, 1028, 1501, 4096, 4100, 8192, 8196, 16384, 16388, 33_000, 40_001];
    for element in &FLOATS[..3] {
        for (index, length) in lengths.into_iter().enumerate() {
            if *element == ElementType::BF16 && index % 3 != 0 {
                continue;
            }
            let rows = if length < 600 { 37 } else { 3 };
            let mut case = Case::default();
            let x = case.input("x", *element, &[rows, length]);
            let y = case.graph.softmax(x, -1).unwrap();
            case.output("softmax", y);
            let y = case.graph.log_softmax(x, -1).unwrap();
            case.output("log_softmax", y);
            add_norm(&mut case, x, &[1], NormKind::Layer, 0b11_1111, *element, false);
            add_norm(&mut case, x, &[1], NormKind::Layer, 0b00_1100, *element, false);
            add_norm(&mut case, x, &[1], NormKind::Rms, 0b01_0101, ElementType::F32, false);
            for device in &devices {
                println!("{element}[{rows}, {length}] on {}", device.properties().name);
                // Roots of sums of so many.
                case.check(device, of_norms(*element) + length as f64 * 1e-9);
            }
        }
    }
}

/// Of a million elements and more, pipelines know how many invocations share a row.
#[test]
fn rows_of_large_tensors() {
    for [rows, length] in [[260, 4100], [33, 32_000]] {
        let mut case = Case::default();
        let x = case.input("x", ElementType::F32, &[rows, length]);
        if length < 10_000 {
            let y = case.graph.softmax(x, -1).unwrap();
            case.output("softmax", y);
        }
        add_norm(&mut case, x, &[1], NormKind::Layer, 0b00_1100, ElementType::F32, false);
        for device in devices() {
            println!("[{rows}, {length}] on {}", device.properties().name);
            case.check(&device, of_norms(ElementType::F32) + length as f64 * 1e-9);
        }
    }
}

#[test]
fn elements_that_lie_apart_or_start_within_memory() {
    let devices = devices();
    for element in &FLOATS[..2] {
        let mut case = Case::default();
        // Columns, of which a part is taken; rows that start anywhere; and rows that are repeated.
        let x = case.input("x", *element, &[3, 50, 24]);
        let part = case.graph.narrow(x, 2, 4, 16).unwrap();
        let odd = case.graph.narrow(x, 2, 3, 16).unwrap();
        let long = case.graph.narrow(x, 1, 1, 48).unwrap();
        let one = case.input("one", *element, &[1, 24]);
        let repeated = case.graph.expand(one, shape(&[3, 24])).unwrap();
        let gamma = case.input("gamma", *element, &[1]);
        let gamma = case.graph.expand(gamma, shape(&[16])).unwrap();
        for (name, tensor) in [("part", part), ("odd", odd), ("long", long), ("repeated", repeated)] {
            for axis in [-1, -2] {
                let y = case.graph.softmax(tensor, axis).unwrap();
                case.output(&format!("softmax of {name} along {axis}"), y);
                let y = case.graph.layer_norm(tensor, &[axis], 1e-2, NormOperands::default()).unwrap();
                case.output(&format!("norm of {name} along {axis}"), y);
            }
        }
        let operands = NormOperands { gamma: Some(gamma), residual: Some(odd), ..NormOperands::default() };
        let y = case.graph.rms_norm(part, &[-1], 1e-2, operands).unwrap();
        case.output("parts of one tensor", y);
        for device in &devices {
            case.check(device, of_norms(*element));
        }
    }
}

#[test]
fn each_run_decides_extents() {
    let rows = Symbol::new("rows", 0, 300).unwrap();
    let columns = Symbol::new("columns", 1, 5000).unwrap();
    let mut graph = Graph::new();
    let ty = vec![Dim::from(&rows), Dim::from(&columns), Dim::from(4usize)];
    let x = graph.input("x", ElementType::F32, ty).unwrap();
    let gamma = graph.input("gamma", ElementType::F32, vec![Dim::from(4usize)]).unwrap();
    for axes in [&[0usize][..], &[1], &[2], &[1, 2], &[0, 2], &[0, 1, 2]] {
        let y = graph.add_one(Softmax { axes: axes.to_vec(), logarithm: false }, &[x]).unwrap();
        graph.output(&format!("softmax over {axes:?}"), y).unwrap();
        let signed: Vec<isize> = axes.iter().map(|axis| axis.cast_signed()).collect();
        let operands = NormOperands { gamma: Some(gamma), ..NormOperands::default() };
        let y = graph.layer_norm(x, &signed, 0.5, operands).unwrap();
        graph.output(&format!("norm over {axes:?}"), y).unwrap();
    }
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for (r, c) in [(0usize, 5usize), (1, 1), (3, 131), (300, 3), (2, 5000), (5, 1)] {
            let mut extents = Extents::new();
            extents.set(&rows, r as i64).unwrap();
            extents.set(&columns, c as i64).unwrap();
            let inputs = [("x", Values::F32(numbers(r * c * 4, 9, 1.0))), ("gamma", Values::F32(numbers(4, 2, 1.0)))];
            println!("{r} by {c} on {}", device.properties().name);
            compare(&graph, &executable, &inputs, &extents, 1e-4);
        }
    }
}

#[test]
fn moments_are_outputs() {
    let mut case = Case::default();
    let x = case.input("x", ElementType::F16, &[3, 4, 10]);
    let normed = case.graph.layer_norm_and_moments(x, &[1, -1], 1e-2, NormOperands::default()).unwrap();
    for (name, tensor) in [("y", normed.y), ("mean", normed.mean), ("inverse deviation", normed.inverse_deviation)] {
        case.output(name, tensor);
    }
    let wide = case.graph.cast(x, ElementType::F32).unwrap();
    let mean = case.graph.mean(wide, &[1, 2], true).unwrap();
    case.output("the same mean", mean);
    for device in devices() {
        let executable = case.check(&device, 2e-3);
        let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        let (mean, same) = (outputs.host("mean").unwrap(), outputs.host("the same mean").unwrap());
        assert_eq!(mean.shape, [3, 1, 1]);
        for (mean, same) in mean.values.iter().zip(&same.values) {
            assert!((mean - same).abs() < 1e-5, "{mean}, {same}");
        }
    }
}

#[test]
fn every_attribute_makes_a_difference() {
    let tensor = |seed, extents: &[usize]| HostTensor {
        shape: extents.to_vec(),
        values: numbers(extents.iter().product(), seed, 1.0).into_iter().map(f64::from).collect(),
    };
    let x = tensor(1, &[3, 4]);
    let reference = |norm: &Norm| {
        let there = [norm.residual, norm.bias, norm.gamma, norm.beta];
        let operands = [tensor(2, &[3, 4]), tensor(3, &[4]), tensor(4, &[4]), tensor(5, &[4])];
        let mut inputs = vec![x.clone()];
        inputs.extend(operands.into_iter().zip(there).filter(|(_, there)| *there).map(|(operand, _)| operand));
        norm.reference(&inputs, &[vec![3, 4], vec![3, 4], vec![3, 2]])
    };
    let plain = Norm {
        kind: NormKind::Layer,
        axes: vec![1],
        epsilon: 1e-3,
        residual: false,
        bias: false,
        gamma: false,
        beta: false,
        wants_sum: false,
        wants_moments: false,
    };
    let others = [
        Norm { kind: NormKind::Rms, ..plain.clone() },
        Norm { kind: NormKind::Length, ..plain.clone() },
        Norm { axes: vec![0], ..plain.clone() },
        Norm { axes: vec![0, 1], ..plain.clone() },
        Norm { epsilon: 0.5, ..plain.clone() },
        Norm { residual: true, ..plain.clone() },
        Norm { bias: true, ..plain.clone() },
        Norm { gamma: true, ..plain.clone() },
        Norm { beta: true, ..plain.clone() },
        Norm { wants_sum: true, ..plain.clone() },
        Norm { wants_moments: true, ..plain.clone() },
    ];
    // Every attribute but for the kind, which is the op's name, has a case.
    for (name, value) in plain.attributes() {
        let differs =
            |other: &Norm| other.attributes().into_iter().any(|(known, other)| known == name && other != value);
        assert!(others.iter().any(differs), "no case changes `{name}`");
    }
    for other in &others {
        assert_ne!(reference(other), reference(&plain), "{other:?}");
    }
    let softmax = |axes: &[usize], logarithm| {
        Softmax { axes: axes.to_vec(), logarithm }.reference(std::slice::from_ref(&x), &[vec![3, 4]])
    };
    assert_ne!(softmax(&[0], false), softmax(&[1], false));
    assert_ne!(softmax(&[0, 1], false), softmax(&[1], false));
    assert_ne!(softmax(&[1], true), softmax(&[1], false));
}

#[test]
fn what_is_refused() {
    let mut g = Graph::new();
    let x = g.input("x", ElementType::F16, shape(&[2, 6, 4])).unwrap();
    let i = g.input("i", ElementType::I32, shape(&[2, 6])).unwrap();
    let six = g.input("six", ElementType::F32, shape(&[6])).unwrap();
    let four = g.input("four", ElementType::F32, shape(&[4])).unwrap();
    let half = g.input("half", ElementType::F16, shape(&[4])).unwrap();
    let refused = |result: Result<Tensor, GraphError>| result.unwrap_err().to_string();
    let with = |gamma, beta| NormOperands { gamma, beta, ..NormOperands::default() };
    assert_eq!(
        refused(g.softmax(i, -1)),
        "softmax(i: i32[2, 6]): input `x` is i32; expected f32, f16, bf16 or f64 (`cast` converts)"
    );
    assert!(refused(g.log_softmax(x, 3)).contains("axes of f16[2, 6, 4], each once"));
    assert!(refused(g.layer_norm(x, &[-1], -1.0, NormOperands::default())).contains("attribute `epsilon` is -1"));
    assert!(refused(g.rms_norm(x, &[-1], f32::NAN, NormOperands::default())).contains("a number not below 0"));
    assert!(
        refused(g.layer_norm(x, &[-1], 0.0, with(Some(six), None))).contains("a shape that broadcasts to f16[2, 6, 4]")
    );
    assert!(
        refused(g.layer_norm(x, &[-1], 0.0, with(Some(four), Some(half))))
            .contains("input `beta` is f16; expected f32")
    );
    assert!(
        refused(g.layer_norm(x, &[-1], 0.0, with(Some(half), Some(four))))
            .contains("input `beta` is f32; expected f16")
    );
    let residual = NormOperands { residual: Some(half), ..NormOperands::default() };
    assert!(
        refused(g.layer_norm(x, &[-1], 0.0, residual)).contains("input `residual` is f16[4]; expected f16[2, 6, 4]")
    );
    let bias = NormOperands { bias: Some(four), ..NormOperands::default() };
    assert!(refused(g.layer_norm(x, &[-1], 0.0, bias)).contains("input `bias` is f32; expected f16"));
    assert!(refused(g.group_norm(x, 4, 0.0, None, None)).contains("attribute `groups` is 4; expected a divisor of 6"));
    assert!(refused(g.group_norm(x, 3, 0.0, Some(four), None)).contains("one for each channel of f16[2, 6, 4]"));
    assert!(refused(g.layer_norm_2d(x, 0.0, None, None)).contains("expected [N, C, H, W]"));
    assert!(refused(g.instance_norm(four, 0.0, None, None)).contains("[N, C, ..], with channels"));
    let moments = BatchMoments { mean: six, variance: four };
    assert!(refused(g.batch_norm(x, moments, 0.0, None, None)).contains("input `variance` is f32[4]; expected f32[6]"));
    let moments = BatchMoments { mean: six, variance: six };
    for epsilon in [-1.0, f32::NAN, f32::INFINITY] {
        let expected = format!("batch_norm: attribute `epsilon` is {epsilon}; expected a number not below 0");
        assert_eq!(refused(g.batch_norm(x, moments, epsilon, None, None)), expected);
    }
    assert!(refused(g.l1_normalise(x, &[1], 0.0)).contains("a number above 0"));
}
