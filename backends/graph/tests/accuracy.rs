//! How exact the functions of elements are where formulas break: around zero, far out, at the ends of domains, at infinities and NaN, in units of the
//! last place of the result.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::{Values, devices};
use trefoil_graph::ops::map::Function;
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, reference};

/// Where functions of one element are measured; for each number its negative too.
const PLACES: [f32; 53] = [
    0.0, 1.2e-38, 1e-30, 1e-20, 1e-10, 1e-7, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.25, 0.3, 0.4999999, 0.5, 0.5000001, 0.7,
    0.9, 0.99, 0.999999, 1.0, 1.0000001, 1.000001, 1.01, 1.2, 1.5, 1.57, 1.9999999, 2.0, 2.5, 2.9999, 3.0, 3.1, 3.5,
    4.0, 5.0, 6.0, 8.5, 10.0, 13.0, 17.0, 20.5, 30.0, 50.0, 80.0, 87.0, 88.5, 89.5, 100.0, 104.5, 1e4, 1e10, 1e30,
];

/// Operands of functions of several.
const OPERANDS: [f32; 15] =
    [0.0, -0.0, 1e-30, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 7.25, 100.0, -1e20, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

/// Results below the smallest normal number may be anything up to it, and factors of larger results may have been so: devices flush them.
const TINY: f64 = 256.0 * f32::MIN_POSITIVE as f64;

/// How far a result is from the exact one.
fn error(got: f64, exact: f64) -> f64 {
    let rounded = f64::from(exact as f32);
    if got == rounded || (got.is_nan() && exact.is_nan()) || (exact.abs() <= TINY && got.abs() <= TINY) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() || got.is_infinite() && rounded.is_infinite() {
        return f64::INFINITY;
    }
    // Around the largest number the one side of an overflow is as good as the other.
    let finite = |value: f64| if value.is_infinite() { 2f64.powi(128).copysign(value) } else { value };
    let exponent = finite(exact).abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (finite(got) - finite(exact)).abs() / (exponent - 23.0).exp2()
}

/// Runs every function that takes so many floats, on these tensors, and gives all of their results beside the exact ones.
fn measure(inputs: &[Vec<f32>]) {
    let mut graph = Graph::new();
    let names = &["a", "b", "c"][..inputs.len()];
    let count = inputs[0].len();
    let tensors: Vec<_> =
        names.iter().map(|name| graph.input(name, ElementType::F32, vec![Dim::from(count)]).unwrap()).collect();
    let functions: Vec<_> = Function::all()
        .filter(|function| function.takes(ElementType::F32) && function.inputs.len() == inputs.len())
        .collect();
    for function in &functions {
        let attributes: Vec<f32> = function.attributes.iter().map(|attribute| attribute.samples[0]).collect();
        let made = graph.elementwise(function, &tensors, &attributes).unwrap();
        graph.output(function.name, made).unwrap();
    }
    let values: Vec<_> = inputs.iter().map(|input| Values::F32(input.clone())).collect();
    let leaves: BTreeMap<_, _> =
        names.iter().zip(&values).map(|(name, values)| ((*name).to_owned(), values.host())).collect();
    let exact = reference::evaluate(&graph, &leaves, &Extents::new()).unwrap();
    let data: Vec<_> = names.iter().zip(&values).map(|(name, values)| (*name, values.data())).collect();
    let mut wrong = Vec::new();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        for function in &functions {
            let got = outputs.host(function.name).unwrap().values;
            for (index, (got, exact)) in got.iter().zip(&exact[function.name].values).enumerate() {
                let arguments: Vec<f64> = inputs.iter().map(|input| f64::from(input[index])).collect();
                let (error, allowed) = (error(*got, *exact), function.accuracy().at(arguments[0]));
                if error > allowed && !function.is_unsettled(&arguments) {
                    let name = device.properties().name.clone();
                    wrong.push(format!("{}{arguments:?} on {name}: {got:e}, not {exact:e}: {error:.1}", function.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn functions_of_one_element() {
    let mut places = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN];
    places.extend(PLACES.iter().flat_map(|place| [*place, -place]));
    measure(&[places]);
}

#[test]
fn functions_of_two_elements() {
    let pairs = OPERANDS.iter().flat_map(|a| OPERANDS.iter().map(move |b| (*a, *b)));
    let (a, b) = pairs.unzip();
    measure(&[a, b]);
}

#[test]
fn functions_of_three_elements() {
    let triples = OPERANDS.iter().flat_map(|a| OPERANDS.iter().map(move |b| (*a, *b)));
    let (a, b): (Vec<f32>, Vec<f32>) = triples.unzip();
    let c = a.iter().rev().copied().collect();
    measure(&[a, b, c]);
}
