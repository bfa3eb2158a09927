//! Convolutions and their transposes against their references: one, two and three spatial axes, every attribute, every type, strided operands, on every device.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::{Values, check, compare, computes, devices, tolerance, tries_every_way};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::pull::convolution::{Convolution, Slide};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Op, Options, Symbol,
};
use trefoil_kernels::activation::Activation;

/// All that there are.
const ACTIVATIONS: [Activation; 6] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu, Activation::Tanh, Activation::Sigmoid];

/// Stride, dilation, padding in front and behind, output padding.
type Numbers = [i64; 5];

fn slide([stride, dilation, front, behind, more]: Numbers) -> Slide {
    let [stride, dilation, output_padding] = [stride, dilation, more].map(Dim::from);
    Slide { stride, dilation, padding: [front, behind].map(Dim::from), output_padding }
}

/// Extents of x and of the weight, how the kernel moves along each axis, groups.
struct Shape<'a> {
    x: &'a [usize],
    weight: &'a [usize],
    slides: &'a [Numbers],
    groups: i64,
}

fn graph(
    shape: &Shape<'_>,
    transposed: bool,
    element: ElementType,
    swapped: bool,
) -> (Graph, Vec<(&'static str, Values)>) {
    let mut g = Graph::new();
    let mut inputs = Vec::new();
    let outputs = if transposed { shape.weight[1] * shape.groups as usize } else { shape.weight[0] };
    let mut tensors = Vec::new();
    for (name, extents, seed) in [("x", shape.x, 1), ("weight", shape.weight, 2), ("bias", &[outputs][..], 3)] {
        // Where it is asked for, an operand whose first two axes lie the other way round.
        let mut there = extents.to_vec();
        if swapped && there.len() > 1 {
            there.swap(0, 1);
        }
        let dims: Vec<Dim> = there.iter().map(|extent| Dim::from(*extent)).collect();
        let mut tensor = g.input(name, element, dims).unwrap();
        if swapped && there.len() > 1 {
            let mut order: Vec<usize> = (0..there.len()).collect();
            order.swap(0, 1);
            tensor = g.transpose(tensor, &order).unwrap();
        }
        tensors.push(tensor);
        inputs.push((name, Values::of(element, extents.iter().product(), seed, 2.0)));
    }
    let [x, weight, bias] = tensors[..] else { unreachable!("three operands") };
    let slides: Vec<Slide> = shape.slides.iter().copied().map(slide).collect();
    // Other activations for other shapes; `activations` has all of them.
    let known = if element.is_float() { ACTIVATIONS.len() } else { 1 };
    let first = shape.x.iter().chain(shape.weight).sum::<usize>();
    for (name, bias, activation) in
        [("plain", None, ACTIVATIONS[first % known]), ("biased", Some(bias), ACTIVATIONS[(first + 1) % known])]
    {
        let y = if transposed {
            g.conv_transpose(x, weight, bias, &slides, shape.groups, activation)
        } else {
            g.conv(x, weight, bias, &slides, shape.groups, activation)
        };
        g.output(name, y.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    }
    (g, inputs)
}

fn run(shape: &Shape<'_>, transposed: bool, element: ElementType, swapped: bool) {
    let (g, inputs) = graph(shape, transposed, element, swapped);
    for device in devices() {
        if computes(&device, element) {
            check(&g, &device, &inputs, &Extents::new(), 4.0 * tolerance(element));
        } else {
            let refused = Executable::compile(&g, &Model::new(), &device, &Options::default());
            assert!(matches!(refused, Err(Error::Lacking { .. })), "{element}");
        }
    }
}

const F32: ElementType = ElementType::F32;
const F64: ElementType = ElementType::F64;

const SHAPES: &[Shape<'_>] = &[
    Shape { x: &[1, 1, 1], weight: &[1, 1, 1], slides: &[[1, 1, 0, 0, 0]], groups: 1 },
    Shape { x: &[2, 3, 13], weight: &[5, 3, 4], slides: &[[3, 2, 1, 2, 0]], groups: 1 },
    Shape { x: &[1, 2, 7, 5], weight: &[3, 2, 3, 2], slides: &[[1, 1, 1, 1, 0], [2, 1, 0, 1, 0]], groups: 1 },
    Shape { x: &[2, 6, 5, 6], weight: &[4, 3, 2, 3], slides: &[[1, 2, 0, 0, 0], [1, 1, 2, 2, 0]], groups: 2 },
    // A filter of its own for each channel.
    Shape { x: &[1, 5, 6, 6], weight: &[5, 1, 3, 3], slides: &[[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]], groups: 5 },
    Shape {
        x: &[1, 2, 4, 3, 5],
        weight: &[3, 2, 2, 1, 3],
        slides: &[[1, 1, 1, 0, 0], [2, 1, 0, 0, 0], [1, 2, 2, 1, 0]],
        groups: 1,
    },
    // None at all: no batch.
    Shape { x: &[0, 2, 4], weight: &[3, 2, 2], slides: &[[1, 1, 0, 0, 0]], groups: 1 },
];

const TRANSPOSED: &[Shape<'_>] = &[
    Shape { x: &[1, 1, 1], weight: &[1, 1, 1], slides: &[[1, 1, 0, 0, 0]], groups: 1 },
    Shape { x: &[2, 3, 5], weight: &[3, 4, 3], slides: &[[3, 2, 1, 2, 2]], groups: 1 },
    Shape { x: &[1, 2, 3, 4], weight: &[2, 3, 3, 2], slides: &[[2, 1, 1, 1, 1], [1, 3, 0, 1, 0]], groups: 1 },
    Shape { x: &[2, 6, 3, 2], weight: &[6, 2, 2, 3], slides: &[[2, 2, 0, 0, 0], [1, 1, 1, 0, 0]], groups: 3 },
    Shape {
        x: &[1, 2, 2, 3, 2],
        weight: &[2, 2, 2, 1, 3],
        slides: &[[1, 1, 1, 0, 0], [2, 1, 0, 0, 1], [2, 1, 1, 1, 0]],
        groups: 1,
    },
];

#[test]
fn shapes() {
    for (shapes, transposed) in [(SHAPES, false), (TRANSPOSED, true)] {
        for shape in shapes {
            run(shape, transposed, F32, false);
        }
    }
}

/// Larger than a tile in one way or another.
const LARGE: &[(Shape<'_>, bool)] = &[
    (
        Shape { x: &[3, 19, 9, 11], weight: &[70, 19, 3, 3], slides: &[[1, 1, 1, 1, 0], [2, 1, 1, 1, 0]], groups: 1 },
        false,
    ),
    (Shape { x: &[2, 10, 16, 16], weight: &[134, 5, 1, 1], slides: &[[1, 1, 0, 0, 0]; 2], groups: 2 }, false),
    (Shape { x: &[1, 9, 130], weight: &[9, 65, 5], slides: &[[3, 2, 4, 1, 1]], groups: 1 }, true),
];

#[test]
fn every_way() {
    let mut taken = BTreeSet::new();
    let small = [(&SHAPES[3], false), (&SHAPES[5], false), (&TRANSPOSED[3], true), (&TRANSPOSED[4], true)];
    for (index, (shape, transposed)) in
        small.into_iter().chain(LARGE.iter().map(|(shape, transposed)| (shape, *transposed))).enumerate()
    {
        // A processor that plays a GPU takes long to compile: one type more for each shape.
        let others = [(F32, true), (ElementType::F16, false), (ElementType::BF16, true)];
        for (element, swapped) in [(F32, false), others[index % 3]] {
            let (g, inputs) = graph(shape, transposed, element, swapped);
            let ways: BTreeSet<_> = g
                .nodes()
                .iter()
                .flat_map(|node| node.op.kind().ways().into_iter().map(|way| (node.op.name(), way)))
                .collect();
            let devices = devices();
            let able = devices.iter().filter(|device| tries_every_way(device, element));
            for (device, (op, way)) in able.flat_map(|device| ways.iter().map(move |way| (device, *way))) {
                let options = Options { force: [(op.to_owned(), way.to_owned())].into(), ..Options::default() };
                match Executable::compile(&g, &Model::new(), device, &options) {
                    Ok(executable) => {
                        println!("{way}: {:?}, {:?} on {}", shape.x, shape.weight, device.properties().name);
                        compare(&g, &executable, &inputs, &Extents::new(), 4.0 * tolerance(element));
                        taken.insert(way);
                    }
                    Err(Error::NoCandidate { reasons, .. }) => assert!(reasons.contains(way), "{reasons}"),
                    Err(error) => panic!("{way}: {error}"),
                }
            }
        }
    }
    assert_eq!(taken.len(), 4, "{taken:?}");
}

#[test]
fn activations() {
    let mut ran = BTreeSet::new();
    for device in devices() {
        for (element, transposed) in [(F32, false), (F32, true), (F64, false), (F64, true)] {
            if !computes(&device, element) {
                continue;
            }
            let mut g = Graph::new();
            let dims = |extents: &[i64]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
            let x = g.input("x", element, dims(&[2, 4, 9])).unwrap();
            let weight = g.input("weight", element, dims(&[4, 4, 3])).unwrap();
            let bias = g.input("bias", element, dims(&[4])).unwrap();
            for activation in ACTIVATIONS {
                for bias in [None, Some(bias)] {
                    let slides = [slide([1, 1, 1, 1, 0])];
                    let y = match transposed {
                        false => g.conv(x, weight, bias, &slides, 1, activation),
                        true => g.conv_transpose(x, weight, bias, &slides, 1, activation),
                    };
                    g.output(&format!("{activation:?} {}", bias.is_some()), y.unwrap()).unwrap();
                }
            }
            let inputs = [("x", 72, 1), ("weight", 48, 2), ("bias", 4, 3)];
            let mut inputs = inputs.map(|(name, count, seed)| (name, Values::of(element, count, seed, 1.0)));
            // Infinities of both signs come of it, and no number where they meet.
            match &mut inputs[0].1 {
                Values::F32(x) => x[2] = f32::NEG_INFINITY,
                Values::F64(x) => x[2] = f64::NEG_INFINITY,
                _ => unreachable!("elements of two types"),
            }
            let op = if transposed { "conv_transpose" } else { "conv" };
            let node = g.nodes().iter().find(|node| node.op.name() == op).unwrap();
            for way in node.op.kind().ways() {
                let options = Options { force: [(op.to_owned(), way.to_owned())].into(), ..Options::default() };
                match Executable::compile(&g, &Model::new(), &device, &options) {
                    Ok(executable) => {
                        compare(&g, &executable, &inputs, &Extents::new(), 4.0 * tolerance(element));
                        ran.insert(way.to_owned());
                    }
                    Err(Error::NoCandidate { .. }) => {}
                    Err(error) => panic!("{way}: {error}"),
                }
            }
        }
    }
    assert_eq!(ran.len(), 4, "{ran:?}");
}

/// On the processor itself, where a chain of so many additions would be off by more.
#[test]
fn sums_of_many_terms_are_within_the_stated_accuracy() {
    let options =
        Options { force: [("conv".to_owned(), "convolution on the host".to_owned())].into(), ..Options::default() };
    let constant = |count: usize, _: u32| Values::F32(vec![0.1; count]);
    let positive = |count: usize, seed: u32| Values::of(F32, count, seed, 1.0).positive();
    for device in devices().iter().filter(|device| device.kind() == DeviceKind::Cpu) {
        // 9 elements of 2048 channels; one output is a product of one row.
        for outputs in [1, 3] {
            for values in [constant as fn(usize, u32) -> Values, positive] {
                let mut g = Graph::new();
                let dims = |extents: &[i64]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
                let x = g.input("x", F32, dims(&[1, 2048, 5, 4])).unwrap();
                let weight = g.input("weight", F32, dims(&[outputs, 2048, 3, 3])).unwrap();
                let slides = [slide([1, 1, 1, 1, 0]), slide([1, 1, 1, 1, 0])];
                let y = g.conv(x, weight, None, &slides, 1, Activation::Relu).unwrap();
                g.output("y", y).unwrap();
                let count = 9 * 2048 * outputs as usize;
                let inputs = [("x", values(2048 * 5 * 4, 1)), ("weight", values(count, 2))];
                let executable = Executable::compile(&g, &Model::new(), device, &options).unwrap();
                compare(&g, &executable, &inputs, &Extents::new(), tolerance(F32));
            }
        }
    }
}

#[test]
fn types_and_strided_operands() {
    for element in
        [ElementType::F16, ElementType::BF16, ElementType::F64, ElementType::I32, ElementType::I64, ElementType::U64]
    {
        run(&SHAPES[3], false, element, true);
        run(&TRANSPOSED[3], true, element, true);
    }
}

/// The reference's values for a change of the attributes.
fn reference(transposed: bool, numbers: Numbers, groups: i64, bias: bool, activation: Activation) -> Vec<f64> {
    let op = Convolution { transposed, slides: vec![slide(numbers)], groups: Dim::from(groups), bias, activation };
    let tensor = |shape: &[usize], seed: u32| {
        let count = shape.iter().product();
        HostTensor { shape: shape.to_vec(), values: Values::of(F32, count, seed, 1.0).host().values }
    };
    let channels = if transposed { [4, 2] } else { [4, 4 / groups as usize] };
    let inputs = [tensor(&[1, 4, 9], 1), tensor(&[channels[0], channels[1], 3], 2), tensor(&[4], 3)];
    let types: Vec<_> = inputs[..2 + usize::from(bias)]
        .iter()
        .map(|x| trefoil_graph::types::TensorType {
            element: F32,
            shape: x.shape.iter().map(|extent| Dim::from(*extent)).collect(),
        })
        .collect();
    let output = op.infer(&types).unwrap_or_else(|error| panic!("{error}"));
    let shape = output[0].shape.iter().map(|extent| extent.constant().unwrap() as usize).collect();
    op.reference(&inputs, &[shape]).remove(0).values
}

#[test]
fn every_attribute_makes_a_difference() {
    let plain = [2, 1, 0, 0, 0];
    for transposed in [false, true] {
        let reference = |numbers, groups, bias| reference(transposed, numbers, groups, bias, Activation::Identity);
        let before = reference(plain, 2, false);
        for changed in [[1, 1, 0, 0, 0], [2, 2, 0, 0, 0], [2, 1, 1, 0, 0], [2, 1, 1, 1, 0]] {
            assert_ne!(before, reference(changed, 2, false), "{changed:?}");
        }
        assert_ne!(before, reference(plain, 1, false));
        assert_ne!(before, reference(plain, 2, true));
        for activation in &ACTIVATIONS[1..] {
            assert_ne!(before, self::reference(transposed, plain, 2, false, *activation), "{activation:?}");
        }
    }
    let of_more = |numbers| reference(true, numbers, 2, false, Activation::Identity);
    assert_ne!(of_more(plain), of_more([2, 1, 0, 0, 1]));
}

/// As many channels as each run wants, in multiples of the groups.
#[test]
fn groups_of_channels_that_each_run_decides() {
    let channels = Symbol::with_multiple("channels", 2, 8, 2).unwrap();
    let half = Dim::from(&channels).quotient(&Dim::from(2));
    let mut graph = Graph::new();
    let x = graph.input("x", F32, (2, &channels, 6)).unwrap();
    let weight = graph.input("weight", F32, (4, half, 3)).unwrap();
    let y = graph.conv(x, weight, None, &[Slide::default()], 2, Activation::Identity).unwrap();
    graph.output("y", y).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for count in [8usize, 2, 6] {
            println!("{count} channels on {}", device.properties().name);
            let extents = Extents::with([(&channels, count as i64)]).unwrap();
            let inputs = [("x", 12 * count, 1), ("weight", 6 * count, 2)];
            let inputs = inputs.map(|(name, elements, seed)| (name, Values::of(F32, elements, seed, 2.0)));
            compare(&graph, &executable, &inputs, &extents, 4.0 * tolerance(F32));
        }
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let refused = |x: &[i64], weight: &[i64], numbers: Numbers, groups: i64| -> String {
        let mut g = Graph::new();
        let dims = |extents: &[i64]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
        let x = g.input("x", F32, dims(x)).unwrap();
        let weight = g.input("weight", F32, dims(weight)).unwrap();
        let made: Result<_, GraphError> = g.conv(x, weight, None, &[slide(numbers)], groups, Activation::Identity);
        made.unwrap_err().to_string()
    };
    let plain = [1, 1, 0, 0, 0];
    // Activations that kernels do not know of these elements.
    for (element, activation) in [(ElementType::U64, Activation::Tanh), (ElementType::I32, Activation::Relu)] {
        let mut g = Graph::new();
        let x = g.input("x", element, [1i64, 1, 3]).unwrap();
        let made = g.conv(x, x, None, &[slide(plain)], 1, activation).unwrap_err().to_string();
        assert!(made.contains("`activation`") && made.contains("Identity"), "{made}");
    }
    for (message, words) in [
        (refused(&[1, 4, 9], &[2, 3, 3], plain, 1), "`weight`"),
        (refused(&[1, 4, 9], &[3, 2, 3], plain, 2), "2 groups"),
        (refused(&[1, 4, 2], &[2, 4, 3], plain, 1), "a kernel that x"),
        (refused(&[1, 4], &[2, 4, 3], plain, 1), "3 axes"),
        (refused(&[1, 4, 9], &[2, 4, 3], [0, 1, 0, 0, 0], 1), "a stride and a dilation of at least 1"),
        (refused(&[1, 4, 9], &[2, 4, 3], [1, 1, -1, 0, 0], 1), "padding that is not negative"),
        (refused(&[1, 4, 9], &[2, 4, 3], [1, 1, 0, 0, 1], 1), "the transpose alone"),
        (refused(&[1, 4, 9], &[2, 4, 3], plain, 0), "at least 1"),
    ] {
        assert!(message.contains(words), "{message}");
    }
}
