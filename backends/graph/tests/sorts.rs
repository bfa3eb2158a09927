//! Sorts of every element type along every axis, and the best few, against their references, on every device: awkward extents, rows that a workgroup holds and longer ones, few rows and many,
//! ties, strided elements, extents that each run decides, what is not a number, and 64 bits.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Values, check, compare, computes, devices, numbers};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::{Best, Order};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Symbol, Tensor};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// Adds sorts along an axis, one way or the other, and the best `k`.
fn sorted(graph: &mut Graph, x: Tensor, axis: usize, descending: bool, k: usize) {
    let along = axis as isize;
    let (up, down) = (Order::Ascending, Order::Descending);
    let [order, other] = if descending { [down, up] } else { [up, down] };
    let values = graph.sort(x, along, order).unwrap();
    graph.output(&format!("values along {axis}, {descending}"), values).unwrap();
    let places = graph.argsort(x, along, other).unwrap();
    graph.output(&format!("places along {axis}, {descending}"), places).unwrap();
    if k > 0 {
        let best = Best { largest: descending, sorted: k % 2 == 1 };
        let (values, places) = graph.top_k(x, k, along, best).unwrap();
        graph.output(&format!("best {k} along {axis}, {descending}"), values).unwrap();
        graph.output(&format!("their places along {axis}, {descending}"), places).unwrap();
    }
}

/// Checks sorts along every axis; tells which kernels ran.
fn all(devices: &[Device], element: ElementType, extents: &[usize], turned: bool) -> BTreeSet<String> {
    let values = Values::of(element, extents.iter().product(), 5, 1.5);
    let mut graph = Graph::new();
    let there: Vec<usize> = if turned { extents.iter().rev().copied().collect() } else { extents.to_vec() };
    let mut x = graph.input("x", element, shape(&there)).unwrap();
    if turned {
        let order: Vec<usize> = (0..extents.len()).rev().collect();
        x = graph.transpose(x, &order).unwrap();
    }
    for (axis, extent) in extents.iter().enumerate() {
        sorted(&mut graph, x, axis, (axis + extent) % 2 == 0, extent.div_ceil(2));
    }
    let mut kernels = BTreeSet::new();
    for device in devices.iter().filter(|device| computes(device, element)) {
        println!("{element}{extents:?}, turned {turned}, on {}", device.properties().name);
        let executable = check(&graph, device, &[("x", values.clone())], &Extents::new(), 0.0);
        kernels.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
    }
    kernels
}

#[test]
fn every_type_along_every_axis() {
    let devices = devices();
    let mut ran = BTreeSet::new();
    for element in ElementType::ALL {
        ran.extend(all(&devices, element, &[3, 7, 5], false));
        ran.extend(all(&devices, element, &[9, 4], true));
    }
    for extents in [&[1usize][..], &[0, 3], &[257], &[2, 1500], &[1500, 2], &[2, 3, 5, 7, 2]] {
        ran.extend(all(&devices, ElementType::F32, extents, false));
    }
    // Longer rows than a workgroup holds, with a few and with many results, by each width.
    for element in [ElementType::U8, ElementType::F16, ElementType::F32] {
        let mut graph = Graph::new();
        let x = graph.input("x", element, shape(&[3, 7001])).unwrap();
        sorted(&mut graph, x, 1, true, 5);
        let (values, places) = graph.top_k(x, 300, 1, Best { largest: false, sorted: true }).unwrap();
        graph.output("best 300", values).unwrap();
        graph.output("places of the best 300", places).unwrap();
        let (values, places) = graph.top_k(x, 3000, 1, Best::default()).unwrap();
        graph.output("best 3000", values).unwrap();
        graph.output("places of the best 3000", places).unwrap();
        for device in &devices {
            println!("{element} in long rows on {}", device.properties().name);
            let values = Values::of(element, 3 * 7001, 2, 9.0);
            let executable = check(&graph, device, &[("x", values)], &Extents::new(), 0.0);
            ran.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
        }
    }
    for kernel in trefoil_kernels::sort::kernels() {
        assert!(ran.contains(&*kernel.name), "no test runs `{}`", kernel.name);
    }
}

#[test]
fn long_rows_columns_and_pieces() {
    let devices = devices();
    for (extents, axis, k) in
        [(&[70_001usize][..], 0, 17), (&[2, 40_004], 1, 64), (&[9001, 3], 0, 50), (&[600, 2100], 1, 3)]
    {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, shape(extents)).unwrap();
        let (values, places) = graph.top_k(x, k, axis, Best::default()).unwrap();
        graph.output("best", values).unwrap();
        graph.output("places", places).unwrap();
        if extents[0] != 600 {
            let places = graph.argsort(x, axis, Order::Ascending).unwrap();
            graph.output("all places", places).unwrap();
        }
        // Halves are often equal.
        let values: Vec<f32> =
            numbers(extents.iter().product(), 3, 60.0).into_iter().map(|x| x.round() / 2.0).collect();
        for device in &devices {
            println!("{extents:?} along {axis} on {}", device.properties().name);
            check(&graph, device, &[("x", Values::F32(values.clone()))], &Extents::new(), 0.0);
        }
    }
}

#[test]
fn each_run_decides_extents() {
    let rows = Symbol::new("rows", 0, 40).unwrap();
    let columns = Symbol::new("columns", 3, 9000).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(&rows), Dim::from(&columns)]).unwrap();
    sorted(&mut graph, x, 1, false, 3);
    let by_rows = graph.argsort(x, 0, Order::Descending).unwrap();
    graph.output("by rows", by_rows).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for (r, c) in [(0usize, 5usize), (1, 3), (3, 131), (40, 4), (2, 9000)] {
            let mut extents = Extents::new();
            extents.set(&rows, r as i64).unwrap();
            extents.set(&columns, c as i64).unwrap();
            println!("{r} by {c} on {}", device.properties().name);
            compare(&graph, &executable, &[("x", Values::F32(numbers(r * c, 9, 1.0)))], &extents, 0.0);
        }
    }
}

#[test]
fn no_numbers_infinities_and_ties() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [1.0, -0.0, -nan, inf, -2.0, nan, 0.0, -inf, -0.0, nan, 1e-40, -1e-40, 0.0, 3.4e38, -3.4e38, 1.0];
    for element in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        for count in [16usize, 4000] {
            let mut graph = Graph::new();
            let x = graph.input("x", ElementType::F32, shape(&[count])).unwrap();
            let x = graph.cast(x, element).unwrap();
            sorted(&mut graph, x, 0, false, 8);
            sorted(&mut graph, x, 0, true, 9);
            let values: Vec<f32> = rows.iter().copied().cycle().take(count).collect();
            for device in devices() {
                println!("{count} of {element} on {}", device.properties().name);
                check(&graph, &device, &[("x", Values::F32(values.clone()))], &Extents::new(), 0.0);
            }
        }
    }
}

#[test]
fn all_bits_of_long_elements_count() {
    let unsigned = [u64::MAX, 1 << 40, (1 << 40) + 1, 3, 1 << 63, (1 << 63) - 1, u64::MAX - 1, 3];
    let signed = unsigned.map(u64::cast_signed);
    let doubles = [0.0, -0.0, 1.0, 1.0 + f64::EPSILON, -1e300, f64::NAN, f64::INFINITY, 1.0 - f64::EPSILON];
    let expected: BTreeMap<&str, [u32; 8]> = BTreeMap::from([
        ("u", [3, 7, 1, 2, 5, 4, 6, 0]),
        ("i", [4, 6, 0, 3, 7, 1, 2, 5]),
        ("f", [4, 0, 1, 7, 2, 3, 6, 5]),
    ]);
    for device in devices().into_iter().filter(|device| computes(device, ElementType::U64)) {
        let mut graph = Graph::new();
        let u = graph.input("u", ElementType::U64, shape(&[8])).unwrap();
        let i = graph.input("i", ElementType::I64, shape(&[8])).unwrap();
        let mut known = vec![("u", u), ("i", i)];
        let mut inputs = vec![("u", (&unsigned[..]).into()), ("i", (&signed[..]).into())];
        if computes(&device, ElementType::F64) {
            known.push(("f", graph.input("f", ElementType::F64, shape(&[8])).unwrap()));
            inputs.push(("f", (&doubles[..]).into()));
        }
        for (name, x) in &known {
            let places = graph.argsort(*x, 0, Order::Ascending).unwrap();
            graph.output(name, places).unwrap();
        }
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        let outputs = executable.run(&inputs, &Extents::new()).unwrap();
        for (name, _) in known {
            let wanted: Vec<f64> = expected[name].iter().map(|place| f64::from(*place)).collect();
            assert_eq!(outputs.host(name).unwrap().values, wanted, "`{name}` on {}", device.properties().name);
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let maybe = Symbol::new("maybe", 2, 4).unwrap();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(3usize), Dim::from(&maybe)]).unwrap();
    assert!(graph.top_k(x, 2, 1, Best::default()).is_ok());
    for (k, axis) in [(3, 1), (0, 0), (4, 0)] {
        let error = graph.top_k(x, k, axis, Best::default()).unwrap_err().to_string();
        let axis = format!("expected 1 to the extent of axis {axis} of f32[3, maybe]");
        assert!(error.contains(&format!("attribute `k` is {k}")) && error.contains(&axis), "{error}");
    }
    assert!(graph.sort(x, 2, Order::Ascending).unwrap_err().to_string().contains("axes of f32[3, maybe], each once"));
    assert!(graph.argsort(x, -3, Order::Ascending).is_err());
}

/// The kernels for the best of long rows, also on processors.
fn of_long_rows() -> Options {
    let force = [("top_k".to_owned(), "candidates of long rows".to_owned())].into();
    Options { force, ..Options::default() }
}

/// Rows are read four elements at a time, and the last few of a row may be fewer.
#[test]
fn the_best_may_be_the_last_of_a_row() {
    for element in [ElementType::F32, ElementType::F16, ElementType::I8] {
        let mut graph = Graph::new();
        let mut inputs = Vec::new();
        // One piece, and several.
        for n in [5001usize, 16_385, 16_386, 16_387] {
            for (largest, all, last) in [(true, -1.0, -0.0), (true, 1.0, 2.0), (false, -1.0, -2.0), (false, 1.0, 0.0)] {
                let name = format!("{n} of {all}, largest {largest}");
                let x = graph.input(&name, ElementType::F32, shape(&[n])).unwrap();
                let x = graph.cast(x, element).unwrap();
                for k in [1, 3] {
                    let (values, places) = graph.top_k(x, k, 0, Best { largest, sorted: true }).unwrap();
                    graph.output(&format!("values of {name}, {k}"), values).unwrap();
                    graph.output(&format!("places of {name}, {k}"), places).unwrap();
                }
                let mut values = vec![all; n];
                values[n - 1] = last;
                inputs.push((name, Values::F32(values)));
            }
        }
        let inputs: Vec<_> = inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        for device in devices() {
            println!("{element} on {}", device.properties().name);
            let executable = Executable::compile(&graph, &Model::new(), &device, &of_long_rows()).unwrap();
            compare(&graph, &executable, &inputs, &Extents::new(), 0.0);
        }
    }
    // As many as each run wants, of rows of which there is one.
    let n = Symbol::new("n", 1, 100_000).unwrap();
    let mut graph = Graph::new();
    for name in ["equal", "rising"] {
        let x = graph.input(name, ElementType::F32, vec![Dim::from(1usize), Dim::from(&n)]).unwrap();
        let (values, places) = graph.top_k(x, 1, 1, Best::default()).unwrap();
        graph.output(&format!("values of {name}"), values).unwrap();
        graph.output(&format!("places of {name}"), places).unwrap();
    }
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &of_long_rows()).unwrap();
        for count in [1usize, 2, 3, 130, 131, 99_999] {
            println!("{count} on {}", device.properties().name);
            let extents = Extents::with([(&n, count as i64)]).unwrap();
            let equal = vec![-1.0; count];
            let mut rising = equal.clone();
            rising[count - 1] = -0.5;
            let inputs = [("equal", Values::F32(equal)), ("rising", Values::F32(rising))];
            compare(&graph, &executable, &inputs, &extents, 0.0);
        }
    }
}

/// Rows of a run may be much shorter than they can be: what fills a piece of one up is taken for no element, though it ranks as the last do.
#[test]
fn the_best_of_rows_shorter_than_they_can_be() {
    let length = Symbol::new("length", 100, 100_000).unwrap();
    let cases =
        [(ElementType::U8, 0.0, true), (ElementType::I32, -2_147_483_648.0, true), (ElementType::F32, f32::NAN, false)];
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    for (element, value, largest) in cases {
        for axis in [0, 1] {
            let mut extents = [Dim::from(2), Dim::from(2)];
            extents[axis] = Dim::from(&length);
            let name = format!("{element} along {axis}");
            let x = graph.input(&name, ElementType::F32, extents.to_vec()).unwrap();
            let x = graph.cast(x, element).unwrap();
            let (values, places) = graph.top_k(x, 100, axis as isize, Best { largest, sorted: true }).unwrap();
            graph.output(&format!("values of {name}"), values).unwrap();
            graph.output(&format!("places of {name}"), places).unwrap();
            inputs.push((name, value));
        }
    }
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for n in [100usize, 130, 200, 2000] {
            println!("{n} on {}", device.properties().name);
            let mut extents = Extents::new();
            extents.set(&length, n as i64).unwrap();
            let given: Vec<_> =
                inputs.iter().map(|(name, value)| (name.as_str(), Values::F32(vec![*value; 2 * n]))).collect();
            compare(&graph, &executable, &given, &extents, 0.0);
        }
    }
}
