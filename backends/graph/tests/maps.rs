//! Every map against its reference, at awkward sizes, alone and fused.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, computes, devices, tolerance};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::map::{Binary, BinaryFunction, Unary, UnaryFunction};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options};

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

#[test]
fn every_unary_function() {
    for device in devices() {
        for element in ElementType::ALL {
            let mut graph = Graph::new();
            let count = 263;
            let x = graph.input("x", element, shape(&[count])).unwrap();
            let positive = graph.input("positive", element, shape(&[count])).unwrap();
            let (x, positive) = (graph.contiguous(x).unwrap(), graph.contiguous(positive).unwrap());
            let mut any = false;
            for function in UnaryFunction::ALL {
                use UnaryFunction::{Log, Log2, Rsqrt, Sqrt};
                let of = if matches!(function, Log | Log2 | Sqrt | Rsqrt) { positive } else { x };
                // Types that the function does not take are errors of the graph.
                let Ok(y) = graph.add_one(Unary { function: *function, element }, &[of]) else { continue };
                graph.output(function.name(), y).unwrap();
                any = true;
            }
            let values = Values::of(element, count, 7, 4.0);
            let inputs = [("x", values.clone()), ("positive", values.positive())];
            assert!(any || !element.is_float());
            if any {
                compare_or_lack(&graph, &device, element, &inputs);
            }
        }
    }
}

#[test]
fn every_binary_function() {
    for device in devices() {
        for element in ElementType::ALL {
            let mut graph = Graph::new();
            let a = graph.input("a", element, shape(&[5, 1, 13])).unwrap();
            let b = graph.input("b", element, shape(&[3, 1])).unwrap();
            let positive = graph.input("positive", element, shape(&[5, 1, 13])).unwrap();
            let mut whole = Vec::new();
            for tensor in [a, b, positive] {
                let expanded = graph.expand(tensor, shape(&[5, 3, 13])).unwrap();
                whole.push(graph.contiguous(expanded).unwrap());
            }
            for function in BinaryFunction::ALL {
                let left = if *function == BinaryFunction::Pow { [positive, whole[2]] } else { [a, whole[0]] };
                // Broadcast by the map itself, and before.
                let Ok(y) = graph.add_one(Binary { function: *function, element }, &[left[1], whole[1]]) else {
                    continue;
                };
                graph.output(function.name(), y).unwrap();
                if matches!(function, BinaryFunction::Sub | BinaryFunction::Le | BinaryFunction::LogicalAnd) {
                    let y = graph.add_one(Binary { function: *function, element }, &[left[0], b]).unwrap();
                    graph.output(&format!("broadcast {}", function.name()), y).unwrap();
                }
            }
            let left = Values::of(element, 65, 3, 4.0);
            let inputs = [("a", left.clone()), ("b", Values::of(element, 3, 5, 2.0)), ("positive", left.positive())];
            compare_or_lack(&graph, &device, element, &inputs);
        }
    }
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
