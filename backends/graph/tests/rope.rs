//! Rotary positions and ALiBi: every attribute and operand, awkward sizes, operands that are parts of others, and each candidate, against the reference; tables and slopes against what they are defined to be.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Values, compare, computes, devices, tolerance};
use half::{bf16, f16};
use trefoil_graph::ops::AttentionLayout;
use trefoil_graph::ops::rope::{Pairs, Rope};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, reference};

use AttentionLayout::{Bhsd, Bshd};
use ElementType::{BF16, F16, F32, F64, I32, U32};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// How rows of the tables are found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    InOrder,
    OfBatch,
    Given,
    GivenOfBatch,
}

const ROWS: [Rows; 4] = [Rows::InOrder, Rows::OfBatch, Rows::Given, Rows::GivenOfBatch];

type Case = (Graph, Vec<(&'static str, Values)>);

fn case(element: ElementType, extents: [usize; 4], op: Rope, rows: Rows, parts: bool) -> Case {
    let (mut graph, mut inputs) = (Graph::new(), Vec::new());
    let [batch, first, second, elements] = extents;
    let positions = if op.layout == Bshd { first } else { second };
    // Queries as a part of a tensor that holds keys too.
    let wide = if parts { 2 * elements } else { elements };
    let x = graph.input("x", element, shape(&[batch, first, second, wide])).unwrap();
    inputs.push(("x", Values::of(element, batch * first * second * wide, 1, 2.0)));
    let x = graph.narrow(x, 3, Dim::from(wide - elements), Dim::from(elements)).unwrap();
    let half = op.turned / 2;
    let count = positions + 3;
    let of_table = if rows == Rows::OfBatch { vec![batch, count, half] } else { vec![count, half] };
    let mut table = |graph: &mut Graph, name, seed| {
        let element = if element == F64 { F64 } else { F32 };
        inputs.push((name, Values::of(element, of_table.iter().product(), seed, 1.0)));
        graph.input(name, element, shape(&of_table)).unwrap()
    };
    let (cosines, sines) = (table(&mut graph, "cosines", 2), table(&mut graph, "sines", 3));
    let of_positions = match rows {
        Rows::InOrder | Rows::OfBatch => None,
        Rows::Given => Some(vec![positions]),
        Rows::GivenOfBatch => Some(vec![batch, positions]),
    };
    let given = of_positions.map(|extents| {
        // Some that the table has, in no order, and some that it lacks.
        let values = (0..extents.iter().product::<usize>()).map(|at| match at % 9 {
            7 => count as u32,
            8 => u32::MAX,
            _ => ((at * 5 + 1) % count) as u32,
        });
        inputs.push(("positions", Values::U32(values.collect())));
        graph.input("positions", U32, shape(&extents)).unwrap()
    });
    let y = graph.rope(x, cosines, sines, given, op).unwrap();
    graph.output("y", y).unwrap();
    (graph, inputs)
}

#[test]
fn rope() {
    let mut taken = BTreeSet::new();
    for device in devices() {
        for (index, (extents, turned)) in [
            ([1, 1, 1, 2], 2),
            ([2, 3, 5, 16], 16),
            ([2, 5, 3, 24], 8),
            ([1, 2, 7, 12], 6),
            ([3, 1, 131, 64], 64),
            ([2, 3, 4, 10], 0),
            ([2, 0, 4, 8], 8),
            ([1, 67, 2, 20], 16),
        ]
        .into_iter()
        .enumerate()
        {
            for (at, rows) in ROWS.into_iter().enumerate() {
                for pairs in [Pairs::Halves, Pairs::Neighbours] {
                    let element = [F32, F16, BF16, F64][(index + at + usize::from(pairs == Pairs::Halves)) % 4];
                    if !computes(&device, element) {
                        continue;
                    }
                    let layout = if (index + at).is_multiple_of(2) { Bhsd } else { Bshd };
                    let op = Rope { layout, pairs, turned };
                    let (graph, inputs) = case(element, extents, op, rows, (index + at) % 4 == 1);
                    println!("{element} {extents:?} {op:?} {rows:?} on {}", device.properties().name);
                    for name in ["rope of four elements at a time", "rope of any strides"] {
                        let force = [("rope".to_owned(), name.to_owned())].into();
                        match Executable::compile(
                            &graph,
                            &Model::new(),
                            &device,
                            &Options { force, ..Options::default() },
                        ) {
                            Ok(executable) => {
                                compare(&graph, &executable, &inputs, &Extents::new(), tolerance(element));
                                taken.insert(name);
                            }
                            Err(Error::NoCandidate { .. }) => assert_ne!(name, "rope of any strides"),
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            }
        }
    }
    assert_eq!(taken.len(), 2, "{taken:?}");
}

/// Zero times what is no number is none: it is 0 that stands where the table lacks a row.
#[test]
fn rows_that_the_table_lacks_make_zeros_of_anything() {
    for device in devices() {
        for element in [F32, F16, BF16, F64].into_iter().filter(|element| computes(&device, *element)) {
            for pairs in [Pairs::Halves, Pairs::Neighbours] {
                let op = Rope { layout: Bhsd, pairs, turned: 16 };
                let (graph, mut inputs) = case(element, [1, 1, 9, 24], op, Rows::Given, false);
                // The last two positions have no row.
                let x = (0..9 * 24).map(|at| match at / 24 {
                    7.. if at % 24 < 16 => [f32::INFINITY, f32::NAN, f32::NEG_INFINITY][at % 3],
                    _ => at as f32 / 128.0,
                });
                inputs[0].1 = match element {
                    F16 => Values::F16(x.map(f16::from_f32).collect()),
                    BF16 => Values::BF16(x.map(bf16::from_f32).collect()),
                    F64 => Values::F64(x.map(f64::from).collect()),
                    _ => Values::F32(x.collect()),
                };
                for name in ["rope of four elements at a time", "rope of any strides"] {
                    println!("{element} {pairs:?}, {name} on {}", device.properties().name);
                    let options =
                        Options { force: [("rope".to_owned(), name.to_owned())].into(), ..Options::default() };
                    match Executable::compile(&graph, &Model::new(), &device, &options) {
                        Ok(executable) => compare(&graph, &executable, &inputs, &Extents::new(), tolerance(element)),
                        Err(Error::NoCandidate { .. }) => assert_eq!(element, F64, "{name}"),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn every_attribute_matters() {
    let of = |op, rows| {
        let (graph, inputs) = case(F32, [2, 3, 3, 16], op, rows, false);
        let leaves: BTreeMap<_, _> = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
        reference::evaluate(&graph, &leaves, &Extents::new()).unwrap().remove("y").unwrap().values
    };
    let base = Rope { layout: Bhsd, pairs: Pairs::Halves, turned: 16 };
    let plain = of(base, Rows::InOrder);
    for op in [Rope { layout: Bshd, ..base }, Rope { pairs: Pairs::Neighbours, ..base }, Rope { turned: 8, ..base }] {
        assert_ne!(of(op, Rows::InOrder), plain, "{op:?}");
    }
    for rows in &ROWS[1..] {
        assert_ne!(of(base, *rows), plain, "{rows:?}");
    }
}

#[test]
fn tables_are_cosines_and_sines_of_angles() {
    let mut graph = Graph::new();
    let (cosines, sines) = graph.rope_tables(5000, 8, 10_000.0, F32).unwrap();
    graph.output("cosines", cosines).unwrap();
    graph.output("sines", sines).unwrap();
    let tables = reference::evaluate(&graph, &BTreeMap::new(), &Extents::new()).unwrap();
    for (position, pair) in [(0, 0), (1, 0), (4999, 1), (4999, 3)] {
        let angle = f64::from(position) / 10f64.powi(pair);
        let at = position as usize * 4 + pair as usize;
        assert!((tables["cosines"].values[at] - angle.cos()).abs() < 1e-7);
        assert!((tables["sines"].values[at] - angle.sin()).abs() < 1e-7);
    }
    assert!(graph.rope_tables(3, 7, 10.0, F32).unwrap_err().to_string().contains("an even number of elements"));
    assert!(graph.rope_tables(3, 8, f64::NAN, F32).unwrap_err().to_string().contains("a positive number"));
    assert!(graph.rope_tables(3, 8, 10.0, F16).unwrap_err().to_string().contains("f32 or f64"));
}

#[test]
fn alibi_falls_from_the_last_key_on() {
    let keys = Symbol::new("keys", 1, 9).unwrap();
    let mut graph = Graph::new();
    let bias = graph.alibi(6, &keys, F32).unwrap();
    graph.output("y", bias).unwrap();
    let refused = graph.alibi(2, 4i64, I32).unwrap_err().to_string();
    assert!(refused.contains("expected f32, f16, bf16 or f64"), "{refused}");
    let mut extents = Extents::new();
    extents.set(&keys, 3).unwrap();
    // Four heads' slopes, then every other one of eight.
    let slopes = [0.25, 0.0625, 0.015_625, 0.003_906_25, 0.5, 0.125];
    let expected: Vec<f64> = slopes.iter().flat_map(|slope| [-2.0 * slope, -slope, 0.0]).collect();
    let mut doubles = Graph::new();
    let bias = doubles.alibi(6, &keys, F64).unwrap();
    doubles.output("y", bias).unwrap();
    for device in devices() {
        for graph in [&graph, &doubles] {
            let executable = Executable::compile(graph, &Model::new(), &device, &Options::default()).unwrap();
            let made = executable.run(&[], &extents).unwrap().host("y").unwrap();
            assert_eq!((made.shape.as_slice(), made.values), (&[6, 1, 3][..], expected.clone()));
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, shape(&[2, 3, 5, 8])).unwrap();
    let table = graph.input("table", F32, shape(&[4, 4])).unwrap();
    let long = graph.input("long", F32, shape(&[5, 4])).unwrap();
    let op = Rope { layout: Bhsd, pairs: Pairs::Halves, turned: 8 };
    let text = graph.rope(x, table, table, None, op).unwrap_err().to_string();
    assert!(text.contains("input `cosines` is f32[4, 4]; expected at least 5 rows of 4"), "{text}");
    let text = graph.rope(x, long, table, None, op).unwrap_err().to_string();
    assert!(text.contains("input `sines`"), "{text}");
    let text = graph.rope(x, long, long, None, Rope { turned: 7, ..op }).unwrap_err().to_string();
    assert!(text.contains("attribute `turned` is 7; expected an even number of at most 8 elements"), "{text}");
    for positions in [usize::MAX, 1 << 48, 1 << 30] {
        let text = graph.rope_tables(positions, 4, 10.0, F32).unwrap_err().to_string();
        let expected = "expected at most 2147483647 angles, 2 for each position";
        assert!(text.contains(&format!("attribute `positions` is {positions}; {expected}")), "{text}");
    }
    let text = graph.alibi(1 << 48, 0i64, F32).unwrap_err().to_string();
    assert!(text.contains("attribute `heads` is 281474976710656; expected at most 2147483647 heads"), "{text}");
    let many = Symbol::new("many", 1, 1 << 40).unwrap();
    let text = graph.alibi(8, &many, F32).unwrap_err().to_string();
    assert!(text.contains("attribute `keys` is many"), "{text}");
    let text = graph.rope(x, long, long, Some(table), op).unwrap_err().to_string();
    assert!(text.contains("input `positions` is f32; expected u32"), "{text}");
}
