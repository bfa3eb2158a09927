//! Every map against its reference, at awkward sizes, alone and fused.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::ops::{Thrice, Twice};
use common::{Values, check, compare, computes, devices, tolerance};
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::compile::fuse::MOST_MAPS;
use trefoil_graph::ops::map::{Elementwise, Function};
use trefoil_graph::ops::view::StopGradient;
use trefoil_graph::{Dim, Eager, ElementType, Error, Executable, Extents, Graph, HostTensor, Model, Op, Options};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A graph of as many maps of the same inputs as are added: they are put into as few kernels as the device's bindings allow, since all read copies of the
/// inputs that one map makes.
fn compare_or_lack(graph: &Graph, device: &Device, element: ElementType, inputs: &[(&str, Values)]) {
    if computes(device, element) {
        check(graph, device, inputs, &Extents::new(), tolerance(element));
        return;
    }
    let refused = Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap_err();
    let Error::Lacking { element: lacking, .. } = refused else { panic!("{refused}") };
    assert_eq!(lacking, element, "{refused}");
}

/// Random values of a type, and those at which functions break, as far as `f64` holds them.
fn awkward(element: ElementType, count: usize, seed: u32) -> Values {
    let mut values = Values::of(element, count, seed, 4.0);
    match &mut values {
        Values::I8(values) => values[..5].copy_from_slice(&[0, -1, i8::MIN, i8::MAX, 9]),
        Values::U8(values) => values[..5].copy_from_slice(&[0, 7, 8, u8::MAX, 9]),
        Values::I16(values) => values[..5].copy_from_slice(&[0, -1, i16::MIN, i16::MAX, 17]),
        Values::U16(values) => values[..5].copy_from_slice(&[0, 15, 16, u16::MAX, 17]),
        Values::I32(values) => values[..5].copy_from_slice(&[0, -1, i32::MIN, i32::MAX, 33]),
        Values::U32(values) => values[..5].copy_from_slice(&[0, 31, 32, u32::MAX, 65]),
        Values::I64(values) => values[..5].copy_from_slice(&[0, -1, i64::MIN, 1 << 40, 65]),
        Values::U64(values) => values[..5].copy_from_slice(&[0, 63, 64, 1 << 63, 65]),
        Values::F32(_) | Values::F16(_) | Values::BF16(_) | Values::F64(_) | Values::Bool(_) => {}
    }
    values
}

/// A graph of every function that takes a type, some on inputs that the map broadcasts itself, most on copies that one map makes, so that regions are large.
fn every_function(graph: &mut Graph, element: ElementType) {
    let inputs = [("a", &[5, 1, 13][..]), ("b", &[7, 1]), ("c", &[13])];
    let inputs = inputs.map(|(name, extents)| graph.input(name, element, shape(extents)).unwrap());
    let copies = inputs.map(|input| {
        let expanded = graph.expand(input, shape(&[5, 7, 13])).unwrap();
        graph.contiguous(expanded).unwrap()
    });
    for (index, function) in Function::all().enumerate() {
        let attributes: Vec<f32> = function.attributes.iter().map(|attribute| attribute.samples[0]).collect();
        let of = if index % 8 == 0 { &inputs } else { &copies };
        let made = graph.elementwise(function, &of[..function.inputs.len()], &attributes);
        assert_eq!(made.is_ok(), function.takes(element), "{} of {element}: {made:?}", function.name);
        if let Ok(made) = made {
            graph.output(function.name, made).unwrap();
        }
    }
}

#[test]
fn every_function_of_elements() {
    for device in devices() {
        for element in ElementType::ALL {
            let mut graph = Graph::new();
            every_function(&mut graph, element);
            let inputs =
                [("a", awkward(element, 65, 3)), ("b", awkward(element, 7, 5)), ("c", Values::of(element, 13, 9, 2.0))];
            compare_or_lack(&graph, &device, element, &inputs);
        }
    }
}

/// A name is one function's, its formula says what it computes, and no attribute is without effect.
#[test]
fn definitions_say_what_they_do() {
    let mut names = BTreeSet::new();
    for function in Function::all() {
        assert!(names.insert(function.name), "{} is there twice", function.name);
        assert!(!function.formula.is_empty() && !function.formula.starts_with(' '), "{}", function.name);
        assert!(std::ptr::eq(Function::named(function.name).unwrap(), function));
        let element = ElementType::F32;
        let first: Vec<f32> = function.attributes.iter().map(|attribute| attribute.samples[0]).collect();
        let input = HostTensor { shape: vec![4], values: vec![-1.5, 0.25, 2.5, 4.0] };
        let reference = |attributes: Vec<f32>| {
            Elementwise { function, element, attributes }.reference(std::slice::from_ref(&input), &[vec![4]])
        };
        for (index, attribute) in function.attributes.iter().enumerate() {
            let mut other = first.clone();
            other[index] = attribute.samples[1];
            assert_ne!(reference(first.clone()), reference(other), "{}: {}", function.name, attribute.name);
        }
    }
}

#[test]
fn impossible_attributes_and_types_are_errors() {
    let mut graph = Graph::new();
    let [x, i, b] = [ElementType::F32, ElementType::I32, ElementType::Bool]
        .map(|element| graph.input(element.name(), element, shape(&[4])).unwrap());
    let mut refused = Vec::new();
    for made in [
        graph.clamp(x, 2.0, 1.0),
        graph.clamp(x, f32::NAN, 1.0),
        graph.clamp(i, 0.5, 1.0),
        graph.affine(i, 1.0, 3e9),
        graph.leaky_relu(x, f32::INFINITY),
        graph.celu(x, 0.0),
        graph.bit_and(b, b),
        graph.shl(i, x),
        graph.exp(i),
    ] {
        refused.push(made.unwrap_err().to_string());
    }
    let expected = [
        "attribute `high` is 1; expected a number not below 2",
        "attribute `low` is NaN; expected a number",
        "attribute `low` is 0.5; expected a value of i32, the type of the elements",
        "attribute `offset` is 3000000000; expected a value of i32, the type of the elements",
        "attribute `slope` is inf; expected a finite number",
        "attribute `alpha` is 0; expected a finite number other than 0",
        "`logical_and`",
        "input `b` is f32",
        "`cast` converts",
    ];
    for (message, expected) in refused.iter().zip(expected) {
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(refused.len(), expected.len());
}

/// Whether a device converts between two types: words are enough for integers.
fn converts(device: &Device, from: ElementType, to: ElementType) -> bool {
    let floats = from.is_float() || to.is_float();
    from == to || !floats || computes(device, from) && computes(device, to)
}

#[test]
fn every_cast() {
    for device in devices() {
        for from in ElementType::ALL {
            let mut graph = Graph::new();
            let x = graph.input("x", from, shape(&[66])).unwrap();
            let x = graph.contiguous(x).unwrap();
            for to in ElementType::ALL {
                if converts(&device, from, to) {
                    let y = graph.cast(x, to).unwrap();
                    graph.output(to.name(), y).unwrap();
                } else {
                    let mut graph = Graph::new();
                    let x = graph.input("x", from, shape(&[66])).unwrap();
                    let y = graph.cast(x, to).unwrap();
                    graph.output("y", y).unwrap();
                    let refused = Executable::compile(&graph, &Model::new(), &device, &Options::default());
                    let message = refused.unwrap_err().to_string();
                    let wide = [from, to].into_iter().find(|element| !computes(&device, *element)).unwrap();
                    let says = format!("{} does not compute `cast` in {wide}", device.properties().name);
                    assert!(message.contains(&says) && message.starts_with("`cast.1`"), "{message}");
                }
            }
            check(&graph, &device, &[("x", Values::of(from, 66, 3, 300.0))], &Extents::new(), 0.0);
        }
    }
}

#[test]
fn sizes_around_four_and_the_workgroup() {
    for device in devices() {
        for count in [0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 1023, 1024, 1025, 4099] {
            for element in [ElementType::F32, ElementType::F16, ElementType::I32] {
                let mut graph = Graph::new();
                let x = graph.input("x", element, shape(&[count])).unwrap();
                let two = graph.scalar(2.0, element).unwrap();
                let y = graph.mul(x, two).unwrap();
                let y = graph.add(y, x).unwrap();
                graph.output("y", y).unwrap();
                let executable =
                    check(&graph, &device, &[("x", Values::of(element, count, 1, 8.0))], &Extents::new(), 1e-3);
                assert_eq!(executable.explain().steps.len(), 1);
            }
        }
    }
}

#[test]
fn broadcasts_and_views_are_read_by_strides() {
    for device in devices() {
        // Last extents that are multiples of four, and not.
        for (rows, columns) in [(3, 8), (5, 7), (1, 4), (17, 12)] {
            let mut graph = Graph::new();
            let float = ElementType::F32;
            let x = graph.input("x", float, shape(&[rows, columns])).unwrap();
            let bias = graph.input("bias", float, shape(&[columns])).unwrap();
            let scale = graph.input("scale", float, shape(&[rows, 1])).unwrap();
            let t = graph.input("t", float, shape(&[columns, rows])).unwrap();
            let one = graph.input("one", float, shape(&[])).unwrap();
            let turned = graph.transpose(t, &[1, 0]).unwrap();
            let y = graph.add(x, bias).unwrap();
            let y = graph.mul(y, scale).unwrap();
            let y = graph.add(y, turned).unwrap();
            let y = graph.mul(y, one).unwrap();
            let y = graph.gelu(y).unwrap();
            graph.output("y", y).unwrap();
            let inputs = [
                ("x", Values::of(float, rows * columns, 1, 2.0)),
                ("bias", Values::of(float, columns, 2, 2.0)),
                ("scale", Values::of(float, rows, 3, 2.0)),
                ("t", Values::of(float, rows * columns, 4, 2.0)),
                ("one", Values::of(float, 1, 5, 2.0)),
            ];
            let executable = check(&graph, &device, &inputs, &Extents::new(), 3e-5);
            assert_eq!(executable.explain().steps.len(), 1, "{}", executable.explain());
        }
    }
}

/// What lies across the way in which a large region writes is turned in blocks: of extents that are no multiples of a workgroup's, with axes outside and between, beside what lies otherwise.
#[test]
fn what_lies_across_is_turned_in_blocks() {
    // How the axes of the result lie in memory, its extents, and whether blocks can take it.
    let cases: [(&[usize], &[usize], bool); 7] = [
        (&[1, 0], &[516, 524], true),
        (&[0, 2, 1], &[3, 340, 260], true),
        (&[1, 2, 0], &[12, 100, 220], true),
        (&[2, 0, 1], &[220, 100, 12], true),
        (&[0, 3, 2, 1], &[2, 36, 68, 56], true),
        (&[3, 1, 0, 2], &[36, 5, 68, 24], true),
        (&[1, 0], &[515, 523], false),
    ];
    for device in devices() {
        for (order, extents, in_blocks) in cases {
            for element in [ElementType::F32, ElementType::F16, ElementType::I8, ElementType::Bool, ElementType::I64] {
                let mut graph = Graph::new();
                let mut there = vec![0; extents.len()];
                order.iter().zip(extents).for_each(|(axis, extent)| there[*axis] = *extent);
                let x = graph.input("x", element, shape(&there)).unwrap();
                let turned = graph.transpose(x, order).unwrap();
                if element == ElementType::F32 {
                    // Beside the same read once more, one that is not turned, one that is broadcast and one that is repeated along rows.
                    let y = graph.input("y", element, shape(extents)).unwrap();
                    let row = graph.input("row", element, shape(&extents[extents.len() - 1..])).unwrap();
                    let column = graph.input("column", element, shape(&[extents[0]])).unwrap();
                    let mut as_column = vec![1; extents.len()];
                    as_column[0] = extents[0];
                    let column = graph.reshape(column, shape(&as_column)).unwrap();
                    let sum = graph.add(turned, y).unwrap();
                    let sum = graph.mul(sum, row).unwrap();
                    let sum = graph.add(sum, column).unwrap();
                    let both = graph.mul(sum, turned).unwrap();
                    graph.output("sum", sum).unwrap();
                    graph.output("both", both).unwrap();
                } else {
                    let copy = graph.contiguous(turned).unwrap();
                    graph.output("copy", copy).unwrap();
                }
                let count: usize = extents.iter().product();
                let values = |count, seed| Values::of(element, count, seed, 2.0);
                let mut inputs = vec![("x", values(count, 3))];
                if element == ElementType::F32 {
                    let last = extents[extents.len() - 1];
                    inputs.extend([
                        ("y", values(count, 4)),
                        ("row", values(last, 5)),
                        ("column", values(extents[0], 6)),
                    ]);
                }
                println!("{element} of {extents:?} by {order:?} on {}", device.properties().name);
                let executable = check(&graph, &device, &inputs, &Extents::new(), tolerance(element));
                let story = executable.explain().to_string();
                let expected = in_blocks && computes(&device, element) && device.kind() != DeviceKind::Cpu;
                assert_eq!(story.contains("four by four"), expected, "{story}");
            }
        }
    }
}

#[test]
fn views_of_views_and_outputs_of_views() {
    for device in devices() {
        let mut graph = Graph::new();
        let float = ElementType::F32;
        let x = graph.input("x", float, shape(&[4, 6, 8])).unwrap();
        let part = graph.narrow(x, 1, 2, 3).unwrap();
        let turned = graph.transpose(part, &[2, 0, 1]).unwrap();
        let flat = graph.reshape(turned, shape(&[8, 12])).unwrap();
        let wide = graph.unsqueeze(flat, 0).unwrap();
        let wide = graph.expand(wide, shape(&[2, 8, 12])).unwrap();
        let y = graph.exp(wide).unwrap();
        graph.output("turned", turned).unwrap();
        graph.output("flat", flat).unwrap();
        graph.output("x again", x).unwrap();
        graph.output("y", y).unwrap();
        let last = graph.narrow(x, 0, 3, 1).unwrap();
        let last = graph.squeeze(last, 0).unwrap();
        graph.output("last", last).unwrap();
        check(&graph, &device, &[("x", Values::of(float, 192, 9, 2.0))], &Extents::new(), 3e-5);
    }
}

#[test]
fn stopped_gradients_are_the_tensor_itself() {
    for device in devices() {
        for element in ElementType::ALL.into_iter().filter(|element| computes(&device, *element)) {
            for extents in [&[][..], &[0], &[1], &[7, 5]] {
                let mut graph = Graph::new();
                let x = graph.input("x", element, shape(extents)).unwrap();
                let turned = graph.transpose(x, &(0..extents.len()).rev().collect::<Vec<_>>()).unwrap();
                let y = graph.stop_gradient(turned).unwrap();
                graph.output("y", y).unwrap();
                let values = Values::of(element, extents.iter().product(), 1, 2.0);
                check(&graph, &device, &[("x", values)], &Extents::new(), 0.0);
            }
        }
        // Between two maps it is no step, and does not keep them apart.
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, shape(&[5, 3])).unwrap();
        let y = graph.exp(x).unwrap();
        let y = graph.stop_gradient(y).unwrap();
        let y = graph.mul(y, x).unwrap();
        graph.output("y", y).unwrap();
        let inputs = [("x", Values::of(ElementType::F32, 15, 1, 2.0))];
        let executable = check(&graph, &device, &inputs, &Extents::new(), 3e-5);
        assert_eq!(executable.explain().steps.len(), 1, "{}", executable.explain());
    }
    let mut graph = Graph::new();
    let both: Vec<_> = ["a", "b"].map(|name| graph.input(name, ElementType::F32, shape(&[1])).unwrap()).to_vec();
    let error = graph.add_one(StopGradient, &both).unwrap_err();
    assert!(error.to_string().contains("2 inputs given, 1 expected"), "{error}");
}

#[test]
fn a_region_may_give_several_values_out_and_mix_types() {
    for device in devices() {
        for count in [12, 13] {
            let mut graph = Graph::new();
            let a = graph.input("a", ElementType::F32, shape(&[count])).unwrap();
            let h = graph.input("h", ElementType::F16, shape(&[count])).unwrap();
            let i = graph.input("i", ElementType::I32, shape(&[count])).unwrap();
            let h32 = graph.cast(h, ElementType::F32).unwrap();
            let sum = graph.add(a, h32).unwrap();
            let half = graph.cast(sum, ElementType::F16).unwrap();
            let zero = graph.scalar(0.0, ElementType::I32).unwrap();
            let positive = graph.gt(i, zero).unwrap();
            let smaller = graph.tanh(sum).unwrap();
            let chosen = graph.where_(positive, sum, smaller).unwrap();
            let back = graph.cast(half, ElementType::F32).unwrap();
            for (name, tensor) in
                [("sum", sum), ("half", half), ("positive", positive), ("chosen", chosen), ("back", back)]
            {
                graph.output(name, tensor).unwrap();
            }
            let inputs = [
                ("a", Values::of(ElementType::F32, count, 1, 2.0)),
                ("h", Values::of(ElementType::F16, count, 2, 2.0)),
                ("i", Values::of(ElementType::I32, count, 3, 2.0)),
            ];
            let executable = check(&graph, &device, &inputs, &Extents::new(), 1e-3);
            assert_eq!(executable.explain().steps.len(), 1, "{}", executable.explain());
            // A half is a half, fused or not.
            let options = Options { fuse: false, ..Default::default() };
            let plain = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
            assert!(plain.explain().steps.len() >= 5);
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let (one, other) =
                (executable.run(&data, &Extents::new()).unwrap(), plain.run(&data, &Extents::new()).unwrap());
            assert_eq!(one.get::<f32>("back").unwrap(), other.get::<f32>("back").unwrap());
        }
    }
}

/// Kernels are kept by the ops of which they are made, not by what these are called.
#[test]
fn maps_of_one_name_and_of_other_types_have_kernels_of_their_own() {
    let graph_of = |op: fn(&mut Graph, trefoil_graph::Tensor) -> trefoil_graph::Tensor| {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, shape(&[5, 33])).unwrap();
        let scaled = op(&mut graph, x);
        graph.output("scaled", scaled).unwrap();
        // Computed where the softmax reads it.
        let z = graph.input("z", ElementType::F32, shape(&[5, 33])).unwrap();
        let within = op(&mut graph, z);
        let within = graph.softmax(within, -1).unwrap();
        graph.output("within", within).unwrap();
        graph
    };
    let twice = graph_of(|graph, x| graph.add_one(Twice, &[x]).unwrap());
    let thrice = graph_of(|graph, x| graph.add_one(Thrice, &[x]).unwrap());
    let values = Values::of(ElementType::F32, 5 * 33, 3, 1.0);
    let inputs = [("x", values.clone()), ("z", values.clone())];
    for device in devices() {
        let model = Model::new();
        for graph in [&twice, &thrice] {
            let executable = Executable::compile(graph, &model, &device, &Options::default()).unwrap();
            compare(graph, &executable, &inputs, &Extents::new(), tolerance(ElementType::F32));
        }
        let eager = Eager::new(&device);
        let x = eager.tensor(&[3], &[1.0f32, -2.0, 0.5]).unwrap();
        let twice = eager.add_one(Twice, &[&x]).unwrap();
        let thrice = eager.add_one(Thrice, &[&x]).unwrap();
        assert_eq!(twice.read::<f32>().unwrap(), [2.0, -4.0, 1.0]);
        assert_eq!(thrice.read::<f32>().unwrap(), [3.0, -6.0, 1.5]);
    }
}

/// A chain of maps was one kernel however long it was, and the time to fuse it grew with the square of its length.
#[test]
fn chains_of_thousands_of_maps_are_cut() {
    const LENGTH: usize = 3000;
    let mut graph = Graph::new();
    let mut y = graph.input("x", ElementType::F32, shape(&[33])).unwrap();
    // Whole numbers, so that results are exact, and differences, so that the order counts.
    let constants: Vec<_> = (0..7).map(|number| graph.scalar(f64::from(number), ElementType::F32).unwrap()).collect();
    for index in 0..LENGTH {
        y = graph.sub(constants[index % 7], y).unwrap();
    }
    graph.output("y", y).unwrap();
    let cpu = devices().into_iter().find(|device| device.kind() == DeviceKind::Cpu).unwrap();
    let executable = Executable::compile(&graph, &Model::new(), &cpu, &Options::default()).unwrap();
    assert_eq!(executable.explain().steps.len(), LENGTH.div_ceil(MOST_MAPS));
    let x: Vec<f32> = (0..33u8).map(f32::from).collect();
    let outputs = executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
    let expected: Vec<f32> = x.iter().map(|x| (0..LENGTH).fold(*x, |y, index| (index % 7) as f32 - y)).collect();
    assert_eq!(outputs.get::<f32>("y").unwrap(), expected);
}
