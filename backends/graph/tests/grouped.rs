//! Products of rows with a matrix for each group: every type, awkward extents, groups that are empty, missing and more than rows, weights that lie either way, ids of every integer type, by every candidate on every device, against the reference.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::cases::Case;
use common::{Values, compare, computes, devices, tolerance};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::Adapters;
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, GraphError, Model, Options, Symbol, Tensor};

use ElementType::{BF16, Bool, F16, F32, F64, I32, U32};

/// Every product that there is: rows, and weights.
const TYPES: [[ElementType; 2]; 6] = [[F32, F32], [F16, F16], [BF16, BF16], [F32, F16], [F32, BF16], [F64, F64]];

/// How far results may be off: sums of some hundred products of numbers below 1.5, and what rounding the result makes of them.
fn allowed(out: ElementType) -> f64 {
    if out == F32 { 2e-4 } else { 2.0 * tolerance(out) }
}

/// Runs a graph on a device as chosen and by each candidate of its grouped products, and gives the kernels that ran.
fn by_all(case: &Case, extents: &Extents, device: &Device, allowed: f64) -> BTreeSet<String> {
    let mut ran = BTreeSet::new();
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    let compile = |options: &Options| Executable::compile(&case.graph, &Model::new(), device, options);
    let mut run = |executable: &Executable| {
        compare(&case.graph, executable, &inputs, extents, allowed);
        ran.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
    };
    run(&compile(&Options::default()).unwrap_or_else(|error| panic!("{error}")));
    let node = case.graph.nodes().iter().find(|node| node.op.name() == "grouped_matmul").unwrap();
    for way in node.op.kind().ways() {
        let force = [("grouped_matmul".to_owned(), way.to_owned())].into();
        match compile(&Options { force, ..Options::default() }) {
            Err(Error::NoCandidate { .. }) => {}
            Err(error) => panic!("{way}: {error}"),
            Ok(executable) => {
                println!("  {way}");
                run(&executable);
            }
        }
    }
    ran
}

/// Ids without an order: of `groups`, and now and then of none.
fn ids(count: usize, groups: usize) -> Vec<u32> {
    let id = |at: usize| match at * 7 % 11 {
        3 => groups as u32,
        8 => u32::MAX,
        _ => (at * at * 5 + at / 3) as u32 % groups.max(1) as u32,
    };
    (0..count).map(id).collect()
}

/// `[groups, k, n]`, that lie in memory as they are, the other way round, or as parts of larger ones.
fn weights(case: &mut Case, element: ElementType, [groups, k, n]: [usize; 3], way: usize) -> Tensor {
    match way {
        0 => case.input("weights", element, &[groups, k, n]),
        1 => {
            let stored = case.input("weights", element, &[groups, n, k]);
            case.graph.transpose(stored, &[0, 2, 1]).unwrap()
        }
        _ => {
            let wide = case.input("weights", element, &[groups + 1, k, n + 8]);
            let wide = case.graph.narrow(wide, 0, 1, groups).unwrap();
            case.graph.narrow(wide, 2, 4, n).unwrap()
        }
    }
}

#[test]
fn every_type_extent_and_way() {
    let sizes = [
        [0, 4, 8, 3],
        [1, 1, 1, 1],
        [3, 0, 4, 2],
        [5, 7, 3, 2],
        [2, 4, 0, 2],
        [17, 8, 12, 40],
        [67, 20, 68, 3],
        [193, 36, 64, 5],
    ];
    let mut ran = BTreeSet::new();
    for device in devices() {
        for [a, b] in TYPES {
            if !computes(&device, a) {
                continue;
            }
            for (index, [rows, k, n, groups]) in sizes.into_iter().enumerate() {
                let way = index % 3;
                println!("{a} {b}, {rows} x {n} x {k}, {groups} groups, {way} on {}", device.properties().name);
                let mut case = Case::default();
                let x = match way {
                    2 => case.turned("x", a, &[rows, k]),
                    _ => case.input("x", a, &[rows, k]),
                };
                let weights = weights(&mut case, b, [groups, k, n], way);
                let ids = case.given("ids", Values::U32(ids(rows, groups)), &[rows]);
                let y = case.graph.grouped_matmul(x, weights, ids).unwrap();
                case.output("y", y);
                ran.extend(by_all(&case, &Extents::new(), &device, allowed(a)));
            }
        }
    }
    let listed = trefoil_kernels::matmul::kernels().into_iter().map(|kernel| kernel.name.to_string());
    for kernel in listed.filter(|name| name.starts_with("matmul_grouped")) {
        assert!(ran.contains(&kernel), "no device ran `{kernel}`; ran: {ran:?}");
    }
}

#[test]
fn ids_are_integers_of_any_type() {
    let integers = ElementType::ALL.into_iter().filter(|element| element.is_integer());
    for device in devices() {
        for element in integers.clone().filter(|element| computes(&device, *element)) {
            let mut case = Case::default();
            let x = case.input("x", F32, &[2, 3, 4]);
            let weights = case.input("weights", F32, &[3, 4, 5]);
            let given = [0i64, 2, -1, 1, 3, 120];
            let values = match element {
                ElementType::I8 => Values::I8(given.map(|id| id as i8).to_vec()),
                ElementType::U8 => Values::U8(given.map(|id| id as u8).to_vec()),
                ElementType::I16 => Values::I16(given.map(|id| id as i16).to_vec()),
                ElementType::U16 => Values::U16(given.map(|id| id as u16).to_vec()),
                I32 => Values::I32(given.map(|id| id as i32).to_vec()),
                U32 => Values::U32(given.map(|id| id as u32).to_vec()),
                // What words would take for 1.
                ElementType::I64 => Values::I64([0, 2, -1, 1, (1 << 32) + 1, i64::MIN + 1].to_vec()),
                _ => Values::U64([0, 2, u64::MAX, 1, (1 << 32) + 1, 1 << 63].to_vec()),
            };
            let ids = case.given("ids", values, &[2, 3]);
            let y = case.graph.grouped_matmul(x, weights, ids).unwrap();
            assert_eq!(case.graph.type_of(y).unwrap().to_string(), "f32[2, 3, 5]");
            case.output("y", y);
            case.check(&device, 1e-5);
        }
    }
}

#[test]
fn what_is_infinite_in_one_matrix_stays_with_its_rows() {
    for device in devices() {
        let mut case = Case::default();
        let (rows, k, n) = (70, 16, 8);
        let x = case.input("x", F32, &[rows, k]);
        let mut values = vec![0.5f32; 3 * k * n];
        values[k * n..2 * k * n].fill(f32::INFINITY);
        let weights = case.given("weights", Values::F32(values), &[3, k, n]);
        let ids = case.given("ids", Values::U32((0..rows as u32).map(|row| row % 3).collect()), &[rows]);
        let y = case.graph.grouped_matmul(x, weights, ids).unwrap();
        case.output("y", y);
        by_all(&case, &Extents::new(), &device, 1e-5);
    }
}

#[test]
fn rows_that_each_run_decides() {
    for device in devices() {
        for rows in [0usize, 1, 64, 130] {
            let symbol = Symbol::new("rows", 0, 130).unwrap();
            let mut extents = Extents::new();
            extents.set(&symbol, rows as i64).unwrap();
            let mut case = Case::default();
            let x = case.graph.input("x", F32, vec![Dim::from(&symbol), Dim::from(12usize)]).unwrap();
            case.inputs.push(("x".to_owned(), Values::of(F32, rows * 12, 1, 1.0)));
            let weights = case.input("weights", F32, &[4, 12, 8]);
            let named = case.graph.input("ids", U32, vec![Dim::from(&symbol)]).unwrap();
            case.inputs.push(("ids".to_owned(), Values::U32(ids(rows, 4))));
            let y = case.graph.grouped_matmul(x, weights, named).unwrap();
            case.output("y", y);
            by_all(&case, &extents, &device, 1e-5);
        }
    }
}

#[test]
fn adapters_are_added_to_the_rows_that_name_them() {
    for device in devices() {
        for (a, b) in [(F32, F32), (F16, F16), (F32, BF16)] {
            for (scale, rows) in [(0.5, 5), (-2.0, 67)] {
                let mut case = Case::default();
                let x = case.input("x", a, &[1, rows, 24]);
                let weight = case.input("weight", b, &[12, 24]);
                let (down, up) = (case.input("down", b, &[3, 24, 4]), case.input("up", b, &[3, 4, 12]));
                let named = case.given("ids", Values::U32(ids(rows, 3)), &[1, rows]);
                let y = case.graph.lora_matmul(x, weight, Adapters { down, up, scale }, named).unwrap();
                case.output("y", y);
                // Four hundred products of sums of dozens, each rounded to the type.
                let allowed = if a == F16 { 0.1 } else { 1e-4 };
                by_all(&case, &Extents::new(), &device, allowed);
            }
        }
    }
}

#[test]
fn the_adapters_reference_is_the_formula() {
    // By hand: rows of one element, with an adapter of rank one, and without.
    let device = devices().remove(0);
    let mut case = Case::default();
    let x = case.given("x", Values::F32(vec![2.0, 3.0, 5.0]), &[3, 1]);
    let weight = case.given("weight", Values::F32(vec![10.0]), &[1, 1]);
    let down = case.given("down", Values::F32(vec![1.0, 7.0]), &[2, 1, 1]);
    let up = case.given("up", Values::F32(vec![4.0, 0.5]), &[2, 1, 1]);
    let ids = case.given("ids", Values::I32(vec![1, -1, 0]), &[3]);
    let y = case.graph.lora_matmul(x, weight, Adapters { down, up, scale: 2.0 }, ids).unwrap();
    case.output("y", y);
    let conversions = case.graph.nodes().iter().filter(|node| node.op.name() == "bitcast").count();
    assert_eq!(conversions, 1, "both products read the same groups");
    let executable = case.check(&device, 1e-6);
    let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
    let outputs = executable.run(&data, &Extents::new()).unwrap();
    assert_eq!(outputs.get::<f32>("y").unwrap(), [20.0 + 2.0 * 7.0, 30.0, 50.0 + 2.0 * 20.0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut g = Graph::new();
    let shape = |extents: &[usize]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
    let x = g.input("x", F32, shape(&[5, 8])).unwrap();
    let weights = g.input("weights", F32, shape(&[3, 8, 4])).unwrap();
    let ids = g.input("ids", I32, shape(&[5])).unwrap();
    let few = g.input("few", I32, shape(&[4])).unwrap();
    let flags = g.input("flags", Bool, shape(&[5])).unwrap();
    let turned = g.transpose(weights, &[0, 2, 1]).unwrap();
    let whole = g.input("whole", I32, shape(&[5, 8])).unwrap();
    let point = g.input("point", F32, shape(&[])).unwrap();
    let weight = g.input("weight", F32, shape(&[4, 8])).unwrap();
    let up = g.input("up", F32, shape(&[3, 4, 4])).unwrap();
    let adapters = Adapters { down: weights, up, scale: 1.0 };
    let message = |result: Result<Tensor, GraphError>| result.unwrap_err().to_string();
    for (error, words) in [
        (message(g.grouped_matmul(x, weights, few)), ["`ids`", "expected i32[5]"]),
        (message(g.grouped_matmul(x, weights, flags)), ["`ids`", "an integer"]),
        (message(g.grouped_matmul(x, turned, ids)), ["`weights`", "8 rows"]),
        (message(g.grouped_matmul(x, x, ids)), ["`weights`", "three axes"]),
        (message(g.grouped_matmul(whole, weights, ids)), ["`x`", "f32"]),
        (message(g.grouped_matmul(point, weights, ids)), ["`x`", "one axis"]),
        (message(g.lora_matmul(x, weight, adapters, few)), ["lora_matmul: input `ids`", "expected i32[5]"]),
        (message(g.lora_matmul(x, weight, adapters, flags)), ["lora_matmul: input `ids`", "an integer"]),
    ] {
        for word in words {
            assert!(error.contains(word), "{error} does not name {word}");
        }
    }
}
