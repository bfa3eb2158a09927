//! How exact the functions of elements are where formulas break: around zero, far out, at the ends of domains, at infinities and NaN, in units of the
//! last place of the result.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::{Values, computes, devices};
use half::{bf16, f16};
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

/// What a float type can hold: the digits of a number after the first, the smallest normal number, and the power of two that is too large; and up to where results may be anything, since devices flush what is
/// smaller than a normal number of the type that they compute with, which may be a factor of larger results.
struct Format {
    digits: i32,
    smallest: f64,
    beyond: i32,
    tiny: f64,
}

impl Format {
    fn of(element: ElementType) -> Self {
        let single = f64::from(f32::MIN_POSITIVE);
        let (digits, smallest, beyond, tiny) = match element {
            ElementType::F16 => (10, f16::MIN_POSITIVE.to_f64(), 16, 0.0),
            ElementType::BF16 => (7, single, 128, 256.0 * single),
            ElementType::F64 => (52, f64::MIN_POSITIVE, 1024, 256.0 * f64::MIN_POSITIVE),
            _ => (23, single, 128, 256.0 * single),
        };
        Self { digits, smallest, beyond, tiny }
    }

    /// How far results may be from the exact ones where they may be so many units of what they are computed with: 16-bit floats are rounded once more.
    fn allowed(&self, units: f64) -> f64 {
        match self.digits {
            7 | 10 if units > 0.0 => 0.5 + units * f64::from(self.digits - 23).exp2(),
            _ => units,
        }
    }
}

/// How far a result is from the exact one, which is given rounded too.
fn error(format: &Format, got: f64, exact: f64, rounded: f64) -> f64 {
    let tiny = format.tiny;
    if got == rounded || (got.is_nan() && exact.is_nan()) || (exact.abs() <= tiny && got.abs() <= tiny) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() || got.is_infinite() && rounded.is_infinite() {
        return f64::INFINITY;
    }
    // Around the largest number the one side of an overflow is as good as the other; halved, so that a double holds what is too large.
    let half =
        |value: f64| if value.is_infinite() { 2f64.powi(format.beyond - 1).copysign(value) } else { value * 0.5 };
    let exponent = half(exact).abs().max(0.5 * format.smallest).log2().floor();
    (half(got) - half(exact)).abs() / (exponent - f64::from(format.digits)).exp2()
}

/// The attributes with which functions are measured.
type Attributes<'a> = &'a dyn Fn(&Function) -> Vec<f32>;

/// Every one of the functions, each an output of its name.
fn graph_of(
    functions: &[&'static Function],
    attributes: Attributes<'_>,
    element: ElementType,
    names: &[&str],
    count: usize,
) -> Graph {
    let mut graph = Graph::new();
    let tensors: Vec<_> =
        names.iter().map(|name| graph.input(name, element, vec![Dim::from(count)]).unwrap()).collect();
    for function in functions {
        let made = graph.elementwise(function, &tensors, &attributes(function)).unwrap();
        graph.output(function.name, made).unwrap();
    }
    graph
}

/// Runs every function that takes so many floats, on these tensors, and holds all of their results to the exact ones.
fn measure(element: ElementType, inputs: &[Vec<f64>]) {
    let functions: Vec<_> =
        Function::all().filter(|function| function.takes(element) && function.inputs.len() == inputs.len()).collect();
    let samples =
        |function: &Function| function.attributes.iter().map(|attribute| attribute.samples[0]).collect::<Vec<_>>();
    measure_of(&functions, &samples, element, inputs);
}

/// The same of these functions with these attributes.
fn measure_of(functions: &[&'static Function], attributes: Attributes<'_>, element: ElementType, inputs: &[Vec<f64>]) {
    let format = Format::of(element);
    let names = &["a", "b", "c"][..inputs.len()];
    let graph = graph_of(functions, attributes, element, names, inputs[0].len());
    let values = |input: &Vec<f64>| match element {
        ElementType::F64 => Values::F64(input.clone()),
        ElementType::F16 => Values::F16(input.iter().map(|x| f16::from_f64(*x)).collect()),
        ElementType::BF16 => Values::BF16(input.iter().map(|x| bf16::from_f64(*x)).collect()),
        _ => Values::F32(input.iter().map(|x| *x as f32).collect()),
    };
    let values: Vec<_> = inputs.iter().map(values).collect();
    let leaves: BTreeMap<_, _> =
        names.iter().zip(&values).map(|(name, values)| ((*name).to_owned(), values.host())).collect();
    let rounded = reference::evaluate(&graph, &leaves, &Extents::new()).unwrap();
    let of_doubles = graph_of(functions, attributes, ElementType::F64, names, inputs[0].len());
    let exact = reference::evaluate(&of_doubles, &leaves, &Extents::new()).unwrap();
    let data: Vec<_> = names.iter().zip(&values).map(|(name, values)| (*name, values.data())).collect();
    let mut wrong = Vec::new();
    for device in devices().iter().filter(|device| computes(device, element)) {
        let executable = Executable::compile(&graph, &Model::new(), device, &Options::default()).unwrap();
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        for function in functions {
            let got = outputs.host(function.name).unwrap().values;
            let expected = exact[function.name].values.iter().zip(&rounded[function.name].values);
            for (index, (got, (exact, rounded))) in got.iter().zip(expected).enumerate() {
                let arguments: Vec<f64> = leaves.values().map(|input| input.values[index]).collect();
                let error = error(&format, *got, *exact, *rounded);
                let allowed = format.allowed(function.accuracy(element).at(arguments[0]));
                if error > allowed && !function.is_unsettled(element, &arguments) {
                    let name = device.properties().name.clone();
                    wrong.push(format!(
                        "{}{arguments:?} {:?} of {element} on {name}: {got:e}, not {exact:e}: {error:.3} of {allowed:.3}",
                        function.name,
                        attributes(function)
                    ));
                }
            }
        }
    }
    let first = wrong.iter().take(100).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} wrong:\n{first}", wrong.len());
}

/// Where functions of one element are measured, for either type.
fn places() -> Vec<f64> {
    let mut places = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    places.extend(PLACES.iter().flat_map(|place| [f64::from(*place), -f64::from(*place)]));
    places
}

/// Operands of functions of two, each with each.
fn pairs() -> [Vec<f64>; 2] {
    let pairs = OPERANDS.iter().flat_map(|a| OPERANDS.iter().map(move |b| (f64::from(*a), f64::from(*b))));
    let (a, b) = pairs.unzip();
    [a, b]
}

/// And of functions of three.
fn triples() -> [Vec<f64>; 3] {
    let [a, b] = pairs();
    let c = a.iter().rev().copied().collect();
    [a, b, c]
}

#[test]
fn functions_of_one_element() {
    let mut places = places();
    places.extend([f32::MAX, f32::MIN].map(f64::from));
    measure(ElementType::F32, &[places]);
}

#[test]
fn functions_of_one_double() {
    let mut places = places();
    // Where exponentials leave the doubles, and digits that floats have not.
    for size in [f64::MAX, 1e-300, 1e300, 1.0 / 3.0, 1.0 + f64::EPSILON, 300.7, 708.4, 709.7, 709.9, 711.0, 745.2] {
        places.extend([size, -size]);
    }
    // Tails of the normal distribution, and angles of all sizes.
    for size in [0.3, 1.4, 1.5, 2.6, 3.6, 6.1, 12.5, 26.3, 37.6, 1e5, 1e17, 1e22] {
        places.extend([size, -size]);
    }
    measure(ElementType::F64, &[places]);
}

/// Every number of a type of 16 bits.
fn every_half(element: ElementType) -> Vec<f64> {
    match element {
        ElementType::F16 => (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64()).collect(),
        // Devices may take what is below the least normal number for 0.
        _ => (0..=u16::MAX)
            .map(bf16::from_bits)
            .filter(|x| !x.is_finite() || x.is_normal() || *x == bf16::ZERO)
            .map(bf16::to_f64)
            .collect(),
    }
}

#[test]
fn functions_of_one_half() {
    for element in [ElementType::F16, ElementType::BF16] {
        measure(element, &[every_half(element)]);
    }
}

#[test]
fn known_powers_of_halves() {
    let powf: Vec<_> = Function::all().filter(|function| function.name == "powf").collect();
    for element in [ElementType::F16, ElementType::BF16] {
        let all = every_half(element);
        for exponent in [0.0, 0.5, -0.5, 4.0, 5.0, -2.0, -3.0, 7.75, 8.0, 9.0, -100.0] {
            measure_of(&powf, &|_| vec![exponent], element, std::slice::from_ref(&all));
        }
    }
}

#[test]
fn functions_of_two_halves() {
    let [mut a, mut b] = pairs();
    // Powers of what is close to 1 by what is large, and results from one end of the type to the other.
    for base in [0.2, 0.7, 0.87, 0.89, 0.95, 0.99, 0.998, 0.9995, 1.001, 1.004, 1.05, 1.12, 1.13, 1.3, 3.3, 40.0] {
        for exponent in [0.1, 1.5, 3.0, 7.0, 8.3, 33.0, 90.0, 500.0, 3000.0, 11000.0] {
            for (base, exponent) in [(base, exponent), (base, -exponent), (-base, exponent)] {
                a.push(base);
                b.push(exponent);
            }
        }
    }
    measure(ElementType::F16, &[a.clone(), b.clone()]);
    measure(ElementType::BF16, &[a, b]);
}

#[test]
fn functions_of_two_elements() {
    measure(ElementType::F32, &pairs());
    measure(ElementType::F64, &pairs());
}

#[test]
fn functions_of_three_elements() {
    measure(ElementType::F32, &triples());
    measure(ElementType::F64, &triples());
}
