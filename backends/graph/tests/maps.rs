//! Every map against its reference, at awkward sizes, alone and fused.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, devices};
use trefoil_graph::ops::map::{Binary, BinaryFunction, Unary, UnaryFunction};
use trefoil_graph::{Dim, ElementType, Extents, Graph};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// What a kernel may be off by: a few units in the last place of the type, after some steps.
fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => 2e-3,
        _ => 3e-5,
    }
}

#[test]
fn every_unary_function() {
    for device in devices() {
        for function in UnaryFunction::ALL {
            for element in ElementType::ALL {
                let mut graph = Graph::new();
                let count = 263;
                let x = graph.input("x", element, shape(&[count])).unwrap();
                // Types that the function does not take are errors of the graph.
                let Ok(y) = graph.add_one(Unary { function: *function }, &[x]) else { continue };
                graph.output("y", y).unwrap();
                let mut values = Values::of(element, count, 7, 4.0);
                if let (
                    Values::F32(values),
                    UnaryFunction::Log | UnaryFunction::Log2 | UnaryFunction::Sqrt | UnaryFunction::Rsqrt,
                ) = (&mut values, function)
                {
                    values.iter_mut().for_each(|x| *x = x.abs() + 0.01);
                }
                if let (
                    Values::F16(values),
                    UnaryFunction::Log | UnaryFunction::Log2 | UnaryFunction::Sqrt | UnaryFunction::Rsqrt,
                ) = (&mut values, function)
                {
                    values.iter_mut().for_each(|x| *x = half::f16::from_f32(x.to_f32().abs() + 0.01));
                }
                check(&graph, &device, &[("x", values)], &Extents::new(), tolerance(element));
            }
        }
    }
}

#[test]
fn every_binary_function() {
    for device in devices() {
        for function in BinaryFunction::ALL {
            for element in ElementType::ALL {
                let mut graph = Graph::new();
                let a = graph.input("a", element, shape(&[5, 1, 13])).unwrap();
                let b = graph.input("b", element, shape(&[3, 1])).unwrap();
                let Ok(y) = graph.add_one(Binary { function: *function, element }, &[a, b]) else { continue };
                graph.output("y", y).unwrap();
                let mut left = Values::of(element, 65, 3, 4.0);
                match &mut left {
                    Values::F32(values) if *function == BinaryFunction::Pow => {
                        values.iter_mut().for_each(|x| *x = x.abs() + 0.1);
                    }
                    Values::F16(values) if *function == BinaryFunction::Pow => {
                        values.iter_mut().for_each(|x| *x = half::f16::from_f32(x.to_f32().abs() + 0.1));
                    }
                    _ => {}
                }
                let right = Values::of(element, 3, 5, 2.0);
                check(&graph, &device, &[("a", left), ("b", right)], &Extents::new(), tolerance(element));
            }
        }
    }
}

#[test]
fn every_cast() {
    for device in devices() {
        for from in ElementType::ALL {
            for to in ElementType::ALL {
                let mut graph = Graph::new();
                let x = graph.input("x", from, shape(&[66])).unwrap();
                let y = graph.cast(x, to).unwrap();
                graph.output("y", y).unwrap();
                let values = Values::of(from, 66, 3, 300.0);
                check(&graph, &device, &[("x", values)], &Extents::new(), 0.0);
            }
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
            let options = trefoil_graph::Options { fuse: false, ..Default::default() };
            let plain =
                trefoil_graph::Executable::compile(&graph, &trefoil_graph::Model::new(), &device, &options).unwrap();
            assert!(plain.explain().steps.len() >= 5);
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let (one, other) =
                (executable.run(&data, &Extents::new()).unwrap(), plain.run(&data, &Extents::new()).unwrap());
            assert_eq!(one.get::<f32>("back").unwrap(), other.get::<f32>("back").unwrap());
        }
    }
}
