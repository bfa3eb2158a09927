//! Scatters of every element type in every form, in every way that they are done, against their references, on every device: awkward extents, places that do not exist, many updates of one place,
//! strided operands, extents that each run decides, and what is not a number.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::{Case, shape};
use common::{Values, compare, computes, devices, numbers, tolerance, tries_every_way};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::scatter::{ScatterSet, Update};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, reference};

/// The ways in which updates are joined.
const WAYS: [&str; 4] = [
    "updates in the order of their slots",
    "atomics",
    "updates in the order of their slots, in place",
    "atomics in place",
];

/// Compiles a case in every way that its device allows and compares; tells which kernels ran.
fn in_every_way(case: &Case, device: &Device, element: ElementType, tolerance: f64) -> BTreeSet<String> {
    let mut ran = BTreeSet::new();
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    // What is set is done in one way.
    let joins =
        case.graph.nodes().iter().any(|node| Update::ALL[1..].iter().any(|update| update.name() == node.op.name()));
    for way in if joins && tries_every_way(device, element) { &WAYS[..] } else { &WAYS[..1] } {
        let others = WAYS.iter().filter(|other| joins && *other != way).map(|other| (*other).to_owned());
        let options = Options { forbid: others.collect(), ..Options::default() };
        // Some types have no atomics, and what is read again is not written over; sets do not care.
        let executable = match Executable::compile(&case.graph, &Model::new(), device, &options) {
            Ok(executable) => executable,
            Err(Error::NoCandidate { .. }) if *way != WAYS[0] => continue,
            Err(error) => panic!("{way} on {}: {error}", device.properties().name),
        };
        compare(&case.graph, &executable, &inputs, &Extents::new(), tolerance);
        ran.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
    }
    ran
}

/// Every form for one update: rows, rows of the second axis, elements along every axis, parts of several axes.
fn forms(case: &mut Case, element: ElementType, of_index: ElementType, update: Update, turned: bool) {
    let tensor = if turned { Case::turned } else { Case::input };
    let x = tensor(case, "x", element, &[5, 7, 4]);
    let named = |case: &mut Case, name: &str, extents: &[usize]| tensor(case, name, of_index, extents);
    let of = |case: &mut Case, name: &str, extents: &[usize]| tensor(case, name, element, extents);
    for (axis, extents) in [(0isize, [3, 6, 7, 4]), (-2, [5, 3, 6, 4]), (2, [5, 7, 3, 6])] {
        let i = named(case, &format!("rows {axis}"), &[3, 6]);
        let updates = of(case, &format!("updates of rows {axis}"), &extents);
        let y = case.graph.scatter(x, i, updates, axis, update).unwrap();
        case.output(&format!("by rows of axis {axis}"), y);
    }
    for axis in [0isize, 1, -1] {
        let mut extents = [4usize, 5, 3];
        extents[axis.rem_euclid(3) as usize] = 9;
        let i = named(case, &format!("elements {axis}"), &extents);
        let updates = of(case, &format!("updates of elements {axis}"), &extents);
        let y = case.graph.scatter_elements(x, i, updates, axis, update).unwrap();
        case.output(&format!("by elements along axis {axis}"), y);
    }
    for (depth, rest) in [(1, &[7usize, 4][..]), (2, &[4]), (3, &[])] {
        let i = named(case, &format!("{depth} coordinates"), &[2, 11, depth]);
        let updates = of(case, &format!("updates of {depth} coordinates"), &[&[2, 11], rest].concat());
        let y = case.graph.scatter_nd(x, i, updates, update).unwrap();
        case.output(&format!("by {depth} coordinates"), y);
    }
}

#[test]
fn every_type_in_every_form() {
    let devices = devices();
    let integers: Vec<_> = ElementType::ALL.into_iter().filter(|element| element.is_integer()).collect();
    let mut ran = BTreeSet::new();
    for (turn, element) in ElementType::ALL.into_iter().enumerate() {
        for (other, update) in Update::ALL.into_iter().enumerate().filter(|(_, update)| update.takes(element)) {
            let of_index = integers[(turn + other) % integers.len()];
            let mut case = Case::default();
            forms(&mut case, element, of_index, update, (turn + other) % 2 == 0);
            // What is set is moved, and indices are words.
            for device in devices.iter().filter(|device| update == Update::Set || computes(device, element)) {
                println!("{update:?} of {element} by {of_index} on {}", device.properties().name);
                // A place of a slice may get a dozen updates.
                ran.extend(in_every_way(&case, device, element, 4.0 * tolerance(element)));
            }
        }
    }
    for kernel in trefoil_kernels::scatter::kernels() {
        // 65,534 slots are more than this test has.
        let large = ["scatter_keys_u32", "scatter_runs_u32"].contains(&&*kernel.name);
        assert!(large || ran.contains(&*kernel.name), "no test runs `{}`", kernel.name);
    }
}

/// Indices below `slots`, a tenth of which are out of range, and a third of the others one and the same.
fn places(count: usize, slots: i32) -> Vec<i32> {
    let place = |i: usize, x: f32| match i % 10 {
        0 => slots + i as i32 % 3,
        1 => -1 - i as i32 % 3,
        2..5 => slots / 2,
        _ => ((x + 1.0) / 2.0 * slots as f32) as i32,
    };
    numbers(count, 77, 1.0).into_iter().enumerate().map(|(i, x)| place(i, x)).collect()
}

#[test]
fn many_updates_and_many_slots() {
    // Rows of the sizes at which the work is cut otherwise; runs of many chunks; more slots than half a word counts.
    let rows = [
        (2usize, 9usize, 1000usize, 12usize, ElementType::F32),
        (1, 40, 3001, 1, ElementType::F32),
        (3, 11, 700, 33, ElementType::F16),
        (1, 5, 300, 1032, ElementType::BF16),
        (1, 70_001, 5000, 1, ElementType::F32),
        (1, 66_000, 2100, 4, ElementType::I32),
        (2, 7, 600, 8, ElementType::U64),
        (1, 3, 1, 2050, ElementType::F32),
    ];
    for (lines, slots, count, columns, element) in rows {
        let mut case = Case::default();
        let x = case.input("x", element, &[lines, slots, columns]);
        let i = case.given("i", Values::I32(places(count, slots as i32)), &[count]);
        let updates = case.input("updates", element, &[lines, count, columns]);
        for update in [Update::Set, Update::Add, Update::Max] {
            let y = case.graph.scatter(x, i, updates, 1, update).unwrap();
            case.output(update.name(), y);
        }
        // Hundreds of numbers are added.
        let tolerance = match element {
            ElementType::F32 => 3e-4,
            element => 4.0 * tolerance(element),
        };
        for device in devices().iter().filter(|device| computes(device, element)) {
            println!("{lines} lines, {slots} slots, {count} of {columns} {element} on {}", device.properties().name);
            in_every_way(&case, device, element, tolerance);
        }
    }
}

#[test]
fn long_lines_of_elements() {
    let mut case = Case::default();
    let x = case.input("x", ElementType::F32, &[300, 17]);
    let i = case.given("i", Values::I64(places(900 * 17, 300).into_iter().map(i64::from).collect()), &[900, 17]);
    let updates = case.input("updates", ElementType::F32, &[900, 17]);
    for update in Update::ALL {
        // Products of hundreds of numbers leave the range.
        if update != Update::Mul {
            let y = case.graph.scatter_elements(x, i, updates, 0, update).unwrap();
            case.output(update.name(), y);
        }
    }
    for device in devices() {
        println!("on {}", device.properties().name);
        in_every_way(&case, &device, ElementType::F32, 3e-4);
    }
}

#[test]
fn nothing_and_one() {
    for (x, indices, updates) in [
        (&[0usize, 3][..], &[2usize][..], &[2usize, 3][..]),
        (&[4, 0], &[2], &[2, 0]),
        (&[4, 3], &[5, 0], &[5, 0, 3]),
        (&[3, 2], &[], &[2]),
    ] {
        let mut case = Case::default();
        let tensor = case.input("x", ElementType::F32, x);
        let count = indices.iter().product();
        let i = case.given("i", Values::U32(vec![0; count]), indices);
        let updates = case.input("updates", ElementType::F32, updates);
        for update in [Update::Set, Update::Add] {
            let y = case.graph.scatter(tensor, i, updates, 0, update).unwrap();
            case.output(update.name(), y);
        }
        for device in devices() {
            println!("{x:?} by {indices:?} on {}", device.properties().name);
            in_every_way(&case, &device, ElementType::F32, 1e-6);
        }
    }
}

#[test]
fn what_is_no_number() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = vec![1.0, nan, -inf, inf, 0.0, -3.0];
    let updates = vec![2.0, 5.0, nan, -inf, 7.0, inf, -2.0, nan, 1e-40, 8.0];
    for element in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64] {
        let mut case = Case::default();
        let given = case.given("x", Values::F32(x.clone()), &[6]);
        let i = case.given("i", Values::U32(vec![0, 0, 2, 3, 1, 4, 5, 5, 4, 2]), &[10]);
        let updates = case.given("updates", Values::F32(updates.clone()), &[10]);
        let given = case.graph.cast(given, element).unwrap();
        let updates = case.graph.cast(updates, element).unwrap();
        for update in [Update::Set, Update::Max, Update::Min] {
            let y = case.graph.scatter(given, i, updates, 0, update).unwrap();
            case.output(update.name(), y);
        }
        for device in devices().iter().filter(|device| computes(device, element)) {
            println!("{element} on {}", device.properties().name);
            in_every_way(&case, device, element, tolerance(element));
        }
    }
}

/// The product of two numbers of 64 bits may take more than the 127 that references have for it.
#[test]
fn products_of_the_largest_integers_wrap() {
    // The largest that references know exactly.
    let most = u64::MAX << 11;
    let mut case = Case::default();
    let x = case.given("x", Values::U64(vec![most, 5]), &[2]);
    let i = case.given("i", Values::U32(vec![0, 1]), &[2]);
    let updates = case.given("updates", Values::U64(vec![most, most]), &[2]);
    let y = case.graph.scatter(x, i, updates, 0, Update::Mul).unwrap();
    case.output("y", y);
    for device in devices().iter().filter(|device| computes(device, ElementType::U64)) {
        println!("on {}", device.properties().name);
        in_every_way(&case, device, ElementType::U64, 0.0);
    }
}

#[test]
fn each_run_decides_extents() {
    let slots = Symbol::new("slots", 0, 300).unwrap();
    let count = Symbol::new("count", 0, 4000).unwrap();
    let columns = Symbol::new("columns", 1, 64).unwrap();
    let dims = |symbols: &[&Symbol]| -> Vec<Dim> { symbols.iter().map(|symbol| Dim::from(*symbol)).collect() };
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, dims(&[&slots, &columns])).unwrap();
    let i = graph.input("i", ElementType::I32, dims(&[&count])).unwrap();
    let updates = graph.input("updates", ElementType::F32, dims(&[&count, &columns])).unwrap();
    for update in [Update::Set, Update::Add, Update::Min] {
        let y = graph.scatter(x, i, updates, 0, update).unwrap();
        graph.output(update.name(), y).unwrap();
    }
    let each = graph.unsqueeze(i, -1).unwrap();
    let each = graph.expand(each, dims(&[&count, &columns])).unwrap();
    let y = graph.scatter_elements(x, each, updates, 0, Update::Add).unwrap();
    graph.output("elements", y).unwrap();
    for device in devices() {
        for deterministic in [false, true] {
            let options = Options { deterministic, ..Options::default() };
            let executable = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
            for (s, n, c) in [(7usize, 5usize, 3usize), (0, 4, 1), (300, 0, 64), (31, 3000, 8), (1, 1, 1)] {
                let mut extents = Extents::new();
                for (symbol, extent) in [(&slots, s), (&count, n), (&columns, c)] {
                    extents.set(symbol, extent as i64).unwrap();
                }
                println!("{s} slots, {n} of {c} on {}", device.properties().name);
                let inputs = [
                    ("x", Values::F32(numbers(s * c, 1, 1.0))),
                    ("i", Values::I32(places(n, s as i32))),
                    ("updates", Values::F32(numbers(n * c, 2, 1.0))),
                ];
                compare(&graph, &executable, &inputs, &extents, 3e-4);
            }
        }
    }
}

#[test]
fn the_same_bits_every_time() {
    let count = 5000;
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, shape(&[20, 3])).unwrap();
    let i = graph.input("i", ElementType::I32, shape(&[count])).unwrap();
    let updates = graph.input("updates", ElementType::F32, shape(&[count, 3])).unwrap();
    let y = graph.index_add(x, 0, i, updates).unwrap();
    graph.output("y", y).unwrap();
    let (start, of, by) = (numbers(60, 1, 1.0), places(count, 20), numbers(3 * count, 2, 1e3));
    for device in devices() {
        let options = Options { deterministic: true, ..Options::default() };
        let executable = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
        let run = || {
            let inputs = [("x", (&start).into()), ("i", (&of).into()), ("updates", (&by).into())];
            executable.run(&inputs, &Extents::new()).unwrap().host("y").unwrap().values
        };
        let first = run();
        assert!((0..3).all(|_| run() == first), "on {}", device.properties().name);
    }
}

#[test]
fn every_attribute_counts() {
    let mut results = BTreeSet::new();
    for update in Update::ALL {
        for axis in [0isize, 1] {
            let mut case = Case::default();
            let x = case.input("x", ElementType::F32, &[4, 4]);
            let i = case.given("i", Values::U32(vec![1, 1, 3, 0]), &[4]);
            let two = case.given("two", Values::U32((0..16).map(|i| i % 5).collect()), &[4, 4]);
            let updates = case.input("updates", ElementType::F32, &[4, 4]);
            let rows = case.graph.scatter(x, i, updates, axis, update).unwrap();
            let elements = case.graph.scatter_elements(x, two, updates, axis, update).unwrap();
            case.output("rows", rows);
            case.output("elements", elements);
            let leaves = case.inputs.iter().map(|(name, values)| (name.clone(), values.host())).collect();
            for (name, result) in reference::evaluate(&case.graph, &leaves, &Extents::new()).unwrap() {
                assert!(results.insert(format!("{:?}", result.values)), "{update:?} of {name} along {axis}");
            }
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, shape(&[4, 3])).unwrap();
    let i = graph.input("i", ElementType::I32, shape(&[2])).unwrap();
    let reals = graph.input("reals", ElementType::F32, shape(&[2])).unwrap();
    let rows = graph.input("rows", ElementType::F32, shape(&[2, 3])).unwrap();
    let halves = graph.input("halves", ElementType::F16, shape(&[2, 3])).unwrap();
    let flags = graph.input("flags", ElementType::Bool, shape(&[2, 3])).unwrap();
    let deep = graph.input("deep", ElementType::I32, shape(&[2, 3])).unwrap();
    let wide = graph.input("wide", ElementType::I32, shape(&[5, 3])).unwrap();
    let huge = graph.input("huge", ElementType::U8, shape(&[1 << 16, 1 << 16])).unwrap();
    let few = graph.input("few", ElementType::U8, shape(&[1, 1])).unwrap();
    let at = graph.input("at", ElementType::I32, shape(&[1, 1])).unwrap();
    let lines = graph.input("lines", ElementType::F32, shape(&[2, 4, 3])).unwrap();
    let of_lines = graph.input("of lines", ElementType::F32, shape(&[2, 2, 3])).unwrap();
    let last = graph.input("last", ElementType::I32, shape(&[4])).unwrap();
    let few_last = graph.input("few last", ElementType::U32, shape(&[3])).unwrap();
    let refused = [
        // Of a number with a sign its ways would make this or that.
        (graph.add_one(ScatterSet, &[lines, of_lines, last]), "input `last` is i32; expected u32"),
        (graph.add_one(ScatterSet, &[lines, of_lines, few_last]), "a number for each slot of f32[2, 4, 3]"),
        (graph.scatter_elements(huge, at, few, 0, Update::Add), "fewer than 2^31 - 1 of them"),
        (graph.scatter(x, i, rows, 2, Update::Add), "axes of f32[4, 3], each once"),
        (graph.scatter(x, i, rows, 1, Update::Add), "input `updates` is f32[2, 3]; expected f32[4, 2]"),
        (graph.scatter(x, reals, rows, 0, Update::Add), "input `indices` is f32"),
        (graph.scatter(x, reals, rows, 0, Update::Set), "input `indices` is f32"),
        (graph.scatter(x, i, halves, 0, Update::Set), "input `updates` is f16; expected f32"),
        (graph.scatter(flags, i, flags, 0, Update::Max), "input `x` is bool"),
        (graph.scatter_nd(x, deep, rows, Update::Add), "from 1 to the number of axes of f32[4, 3]"),
        (graph.scatter_elements(x, i, rows, 0, Update::Add), "no larger extents than f32[4, 3]"),
        (graph.scatter_elements(x, wide, rows, 1, Update::Add), "but along axis 1"),
    ];
    for (given, expected) in refused {
        let error = given.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
