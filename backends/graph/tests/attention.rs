//! Attention: every attribute and operand, awkward sizes, operands that are parts of others, and each candidate that can do it, against the reference.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

#[path = "common/attention.rs"]
mod attention;
mod common;

use attention::{Row, by_each_candidate, check, floats, row, shape};
use common::{Values, compare, computes, devices, numbers, tolerance};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::{Attention, AttentionLayout, AttentionOperands, Queries, Scores};
use trefoil_graph::{Data, Dim, ElementType, Extents, Graph, Symbol};

use AttentionLayout::{Bhsd, Bshd};
use ElementType::{BF16, Bool, F16, F32, F64, U32};

#[test]
fn sizes_types_and_layouts() {
    let mut rows = Vec::new();
    for (index, [batch, heads, key_heads, queries, keys, elements, value_elements]) in [
        [1, 1, 1, 1, 1, 1, 1],
        [2, 4, 2, 5, 7, 32, 32],
        [1, 6, 2, 33, 137, 36, 68],
        [2, 2, 2, 67, 3, 100, 12],
        [1, 8, 1, 1, 300, 128, 128],
        [1, 1, 1, 2, 5, 132, 260],
        [1, 2, 1, 3, 5, 7, 10],
        [1, 2, 2, 0, 3, 8, 8],
        [1, 2, 2, 3, 0, 8, 8],
        [0, 2, 2, 3, 4, 8, 8],
        [1, 2, 2, 3, 4, 0, 8],
        [1, 2, 2, 3, 4, 8, 0],
    ]
    .into_iter()
    .enumerate()
    {
        for element in [F32, F16, BF16, F64] {
            let layout = if (index + element as usize).is_multiple_of(2) { Bhsd } else { Bshd };
            let op = Attention { causal: index % 3 == 1, ..Attention::new(layout, 0.3) };
            rows.push(Row { element, batch, heads, key_heads, value_elements, op, ..row(queries, keys, elements) });
        }
    }
    let taken = check(&rows);
    for name in [
        "attention in tiles of 64 rows",
        "attention in tiles of 16 rows",
        "attention of few rows",
        "attention of any strides",
    ] {
        assert!(taken.contains(name), "no device took a row by `{name}`; taken: {taken:?}");
    }
    for (kind, name) in [(DeviceKind::Cpu, "attention on the host"), (DeviceKind::Cuda, "attention in stages")] {
        let there = devices().iter().any(|device| device.kind() == kind);
        assert!(!there || taken.contains(name), "{kind} took no row by `{name}`; taken: {taken:?}");
    }
}

/// A query or a few of heads that share keys, with every kind of operand.
#[test]
fn heads_in_groups() {
    let mut rows = Vec::new();
    for (index, [group, queries, keys, elements]) in
        [[2, 1, 300, 64], [4, 1, 531, 128], [7, 1, 201, 80], [2, 4, 150, 128]].into_iter().enumerate()
    {
        let layout = if index % 2 == 0 { Bhsd } else { Bshd };
        let op = Attention { causal: true, ..Attention::new(layout, 0.3) };
        let base = Row { batch: 2, heads: 2 * group, key_heads: 2, op, ..row(queries, keys, elements) };
        let all = Row {
            mask: Some(vec![queries, keys]),
            bias: Some(vec![2 * group, 1, keys]),
            lengths: Some(vec![keys as u32 - 1, 101]),
            sinks: true,
            op: Attention { left: Some(140), cap: Some(2.0), ..base.op },
            ..base.clone()
        };
        rows.push(base);
        rows.extend([F32, F16, BF16].map(|element| Row { element, ..all.clone() }));
    }
    assert!(check(&rows).contains("attention of few rows"));
}

/// What is attended to with every attribute and operand in turn; all of one base, whose result each must change.
fn variants() -> Vec<Row> {
    let base = Row { batch: 2, heads: 4, key_heads: 2, value_elements: 8, ..row(9, 150, 16) };
    let plain = base.op;
    let op = |op: Attention| Row { op, ..base.clone() };
    let mut rows = vec![
        op(Attention { scale: -0.2, ..plain }),
        op(Attention { causal: true, ..plain }),
        op(Attention { causal: true, queries: Queries::From(0), ..plain }),
        op(Attention { causal: true, queries: Queries::From(-4), ..plain }),
        op(Attention { causal: true, queries: Queries::From(147), ..plain }),
        op(Attention { left: Some(20), ..plain }),
        op(Attention { right: Some(1), queries: Queries::From(30), ..plain }),
        op(Attention { left: Some(0), right: Some(130), queries: Queries::From(5), ..plain }),
        // All queries see other keys than the first tile's.
        op(Attention { causal: true, left: Some(3), ..plain }),
        op(Attention { cap: Some(0.25), ..plain }),
        Row { mask: Some(vec![9, 150]), ..base.clone() },
        Row { mask: Some(vec![150]), ..base.clone() },
        Row { mask: Some(vec![2, 1, 9, 1]), ..base.clone() },
        Row { bias: Some(vec![4, 9, 150]), ..base.clone() },
        Row { bias: Some(vec![2, 1, 1, 150]), ..base.clone() },
        Row { lengths: Some(vec![77, 1]), ..base.clone() },
        Row { lengths: Some(vec![0, 3]), op: Attention { causal: true, ..plain }, ..base.clone() },
        Row { lengths: Some(vec![200, 130]), op: Attention { left: Some(7), ..plain }, ..base.clone() },
        Row { sinks: true, ..base.clone() },
    ];
    // Everything at once.
    rows.push(Row {
        mask: Some(vec![2, 1, 9, 150]),
        bias: Some(vec![4, 1, 150]),
        lengths: Some(vec![149, 64]),
        sinks: true,
        op: Attention { causal: true, left: Some(40), cap: Some(2.0), ..Attention::new(Bshd, 0.7) },
        ..base
    });
    rows
}

#[test]
fn attributes_and_operands() {
    let base = Row { batch: 2, heads: 4, key_heads: 2, value_elements: 8, ..row(9, 150, 16) }.reference();
    let mut rows = variants();
    for row in &rows {
        assert_ne!(row.reference()["y"].values, base["y"].values, "{row:?} is no other than the plain one");
    }
    let last: Vec<_> = rows.iter().rev().take(4).cloned().collect();
    for element in [F16, BF16] {
        rows.extend(last.iter().map(|row| Row { element, ..row.clone() }));
    }
    check(&rows);
}

#[test]
fn scores_at_every_stage() {
    let every = variants().pop().unwrap();
    let mut rows = Vec::new();
    let mut told = Vec::new();
    for scores in [Scores::Products, Scores::Capped, Scores::Biased, Scores::Weights] {
        for element in [F32, F16, F64] {
            rows.push(Row { scores, element, ..every.clone() });
        }
        rows.push(Row { scores, ..row(3, 5, 6) });
        let scores = Row { scores, ..every.clone() }.reference().remove("scores").unwrap();
        assert!(!told.contains(&scores.values), "two stages are one");
        told.push(scores.values);
    }
    check(&rows);
}

/// A query that sees nothing gives zeros, whatever lies where it does not look.
#[test]
fn what_is_hidden_may_be_anything() {
    for (device, scores) in devices()
        .into_iter()
        .flat_map(|device| [Scores::Nothing, Scores::Weights].map(|scores| (device.clone(), scores)))
    {
        let mut graph = Graph::new();
        let q = graph.input("q", F32, shape(&[1, 1, 2, 8])).unwrap();
        let k = graph.input("k", F32, shape(&[1, 1, 4, 8])).unwrap();
        let v = graph.input("v", F32, shape(&[1, 1, 4, 8])).unwrap();
        let mask = graph.input("mask", Bool, shape(&[2, 4])).unwrap();
        let lengths = graph.input("lengths", U32, shape(&[1])).unwrap();
        let operands = AttentionOperands { mask: Some(mask), lengths: Some(lengths), ..AttentionOperands::default() };
        let op = Attention::new(Bhsd, 1.0);
        let y = if scores == Scores::Nothing {
            graph.attention(q, k, v, operands, op).unwrap()
        } else {
            let (y, told) = graph.attention_with_scores(q, k, v, operands, op, scores).unwrap();
            graph.output("scores", told).unwrap();
            y
        };
        graph.output("y", y).unwrap();
        // The first key's product is a NaN, which the mask hides; what lies behind the length is one too.
        let mut keys = vec![1.0f32; 32];
        keys[..8].fill(f32::NAN);
        keys[16..].fill(f32::NAN);
        let values: Vec<f32> = (0..32).map(|at| if at < 16 { 0.25 } else { f32::NAN }).collect();
        let mask = vec![false, false, false, false, false, true, true, true];
        for (name, executable) in by_each_candidate(&graph, &device) {
            let inputs = [
                ("q", Values::F32(vec![1.0; 16])),
                ("k", Values::F32(keys.clone())),
                ("v", Values::F32(values.clone())),
                ("mask", Values::Bool(mask.clone())),
                ("lengths", Values::U32(vec![2])),
            ];
            let inputs: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let outputs = executable.run(&inputs, &Extents::new()).unwrap();
            let given = outputs.host("y").unwrap().values;
            let place = format!("{name} with {scores:?} on {}", device.properties().name);
            assert_eq!(given[..8], [0.0; 8], "{place}");
            assert_eq!(given[8..], [0.25; 8], "{place}");
            if scores == Scores::Weights {
                let told = outputs.host("scores").unwrap().values;
                assert_eq!(told, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], "{place}");
            }
        }
    }
}

/// Where no score is a number none is the largest, and nothing is seen: the result is zeros, and so are the weights.
#[test]
fn rows_without_a_number_have_no_weights() {
    for device in devices() {
        for element in [F32, F16, F64].into_iter().filter(|element| computes(&device, *element)) {
            let subject = Row { element, scores: Scores::Weights, ..row(2, 5, 8) };
            let (graph, mut inputs) = subject.graph().unwrap();
            inputs[0].1 = floats(element, vec![f32::NAN; 2 * 8]);
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            for (name, executable) in by_each_candidate(&graph, &device) {
                let place = format!("{name} of {element} on {}", device.properties().name);
                let outputs = executable.run(&data, &Extents::new()).unwrap();
                let [y, weights] = ["y", "scores"].map(|output| outputs.host(output).unwrap().values);
                let sees_nothing = y.iter().all(|y| *y == 0.0);
                // The largest of a subgroup that has nothing but NaN is for a GPU's driver to say.
                assert!(sees_nothing || device.kind() != DeviceKind::Cpu, "{place}: {y:?}");
                assert!(!sees_nothing || weights.iter().all(|weight| *weight == 0.0), "{place}: {weights:?}");
            }
        }
    }
}

/// What kernels read beside a short head may be that key again: an infinity there times zero would be a NaN.
#[test]
fn a_key_of_minus_infinity_weighs_nothing() {
    for device in devices() {
        let mut graph = Graph::new();
        let q = graph.input("q", F32, shape(&[1, 1, 1, 8])).unwrap();
        let k = graph.input("k", F32, shape(&[1, 1, 3, 8])).unwrap();
        let v = graph.input("v", F32, shape(&[1, 1, 3, 8])).unwrap();
        let y = graph.attention(q, k, v, AttentionOperands::default(), Attention::new(Bhsd, 1.0)).unwrap();
        graph.output("y", y).unwrap();
        let mut keys = [1.0f32; 24];
        keys[15] = f32::NEG_INFINITY;
        let values: Vec<f32> = (0..24).map(|at| if at / 8 == 1 { 1000.0 } else { 0.25 }).collect();
        for (name, executable) in by_each_candidate(&graph, &device) {
            let queries = [1.0f32; 8];
            let inputs = [("q", Data::from(&queries)), ("k", Data::from(&keys)), ("v", Data::from(&values))];
            let outputs = executable.run(&inputs, &Extents::new()).unwrap();
            let given = outputs.host("y").unwrap().values;
            assert_eq!(given, [0.25; 8], "{name} on {}", device.properties().name);
        }
    }
}

/// A part of a row that has seen no other key yet, as teams and parts of a cut row do, must not take it for none.
#[test]
fn a_score_that_is_not_a_number_makes_its_row_one() {
    for device in devices() {
        for (queries, keys, at) in [(1, 8, 3), (1, 700, 300), (5, 70, 69), (70, 200, 0)] {
            let mut graph = Graph::new();
            let q = graph.input("q", F32, shape(&[1, 1, queries, 64])).unwrap();
            let [k, v] = ["k", "v"].map(|name| graph.input(name, F32, shape(&[1, 1, keys, 64])).unwrap());
            let y = graph.attention(q, k, v, AttentionOperands::default(), Attention::new(Bhsd, 0.125)).unwrap();
            graph.output("y", y).unwrap();
            let queries = vec![0.5f32; queries * 64];
            let mut of_keys = numbers(keys * 64, 3, 1.0);
            of_keys[at * 64..(at + 1) * 64].fill(f32::NAN);
            let values = numbers(keys * 64, 4, 1.0);
            for (name, executable) in by_each_candidate(&graph, &device) {
                let inputs = [("q", Data::from(&queries)), ("k", Data::from(&of_keys)), ("v", Data::from(&values))];
                let outputs = executable.run(&inputs, &Extents::new()).unwrap();
                let given = outputs.host("y").unwrap().values;
                assert!(given.iter().all(|y| y.is_nan()), "{name} on {}: {given:?}", device.properties().name);
            }
        }
    }
}

/// Kernels that read the last key and its value again, beside which there are no others, must not weigh an infinity with nothing.
#[test]
fn a_last_value_that_is_infinite_makes_the_result_infinite() {
    for device in devices() {
        for (queries, keys) in [(1, 3), (1, 700), (1, 4097), (3, 7), (5, 700), (70, 200)] {
            let mut graph = Graph::new();
            let q = graph.input("q", F32, shape(&[1, 1, queries, 64])).unwrap();
            let [k, v] = ["k", "v"].map(|name| graph.input(name, F32, shape(&[1, 1, keys, 64])).unwrap());
            let y = graph.attention(q, k, v, AttentionOperands::default(), Attention::new(Bhsd, 0.125)).unwrap();
            graph.output("y", y).unwrap();
            let (of_queries, of_keys) = (vec![0.5f32; queries * 64], vec![0.5f32; keys * 64]);
            let mut values = numbers(keys * 64, 4, 1.0);
            values[keys * 64 - 64] = f32::INFINITY;
            for (name, executable) in by_each_candidate(&graph, &device) {
                let inputs = [("q", Data::from(&of_queries)), ("k", Data::from(&of_keys)), ("v", Data::from(&values))];
                let outputs = executable.run(&inputs, &Extents::new()).unwrap();
                let given = outputs.host("y").unwrap().values;
                for (at, y) in given.iter().enumerate() {
                    let right = if at % 64 == 0 { *y == f64::INFINITY } else { y.is_finite() };
                    assert!(right, "{name} on {}, {queries} of {keys}: {at} is {y}", device.properties().name);
                }
            }
        }
    }
}

#[test]
fn extents_that_each_run_decides() {
    let (batch, new, past) =
        (Symbol::new("batch", 0, 3).unwrap(), Symbol::new("new", 1, 40).unwrap(), Symbol::new("past", 0, 200).unwrap());
    let mut graph = Graph::new();
    let keys = Dim::from(&past) + Dim::from(&new);
    let of = |heads: usize, positions: Dim| vec![Dim::from(&batch), positions, Dim::from(heads), Dim::from(32usize)];
    let q = graph.input("q", F32, of(4, Dim::from(&new))).unwrap();
    let k = graph.input("k", F32, of(2, keys.clone())).unwrap();
    let v = graph.input("v", F32, of(2, keys)).unwrap();
    let op = Attention { causal: true, ..Attention::new(Bshd, 0.2) };
    let y = graph.attention(q, k, v, AttentionOperands::default(), op).unwrap();
    graph.output("y", y).unwrap();
    for device in devices() {
        for (_, executable) in by_each_candidate(&graph, &device) {
            for [b, n, p] in [[0usize, 1, 0], [2, 40, 0], [3, 1, 199], [1, 17, 130]] {
                let mut extents = Extents::new();
                extents.set(&batch, b as i64).unwrap();
                extents.set(&new, n as i64).unwrap();
                extents.set(&past, p as i64).unwrap();
                let values = |seed, count| Values::F32(numbers(count, seed, 1.0));
                let kv = b * (n + p) * 64;
                let inputs = [("q", values(1, b * n * 128)), ("k", values(2, kv)), ("v", values(3, kv))];
                compare(&graph, &executable, &inputs, &extents, tolerance(F32));
            }
        }
    }
}

#[test]
fn what_is_refused() {
    let refused = |row: Row| row.graph().unwrap_err().to_string();
    let base = Row { heads: 4, key_heads: 2, ..row(3, 5, 8) };
    let text = refused(Row { key_heads: 3, ..base.clone() });
    assert!(text.contains("input `k` is f32[1, 3, 5, 8]; expected a number of heads that divides q's 4"), "{text}");
    let text = refused(Row { bias: Some(vec![2, 5]), ..base.clone() });
    assert!(text.contains("input `bias` is f32[2, 5]; expected a shape that broadcasts to"), "{text}");
    let text = refused(Row { op: Attention { cap: Some(0.0), ..base.op }, ..base.clone() });
    assert!(text.contains("attribute `cap` is 0; expected a positive number"), "{text}");
    let text = refused(Row { op: Attention { scale: f32::NAN, ..base.op }, ..base.clone() });
    assert!(text.contains("attribute `scale` is NaN; expected a number"), "{text}");
    let text = refused(Row { op: Attention { queries: Queries::From(i32::MIN), ..base.op }, ..base.clone() });
    assert!(text.contains("attribute `queries`"), "{text}");
    // With the window added it would be no coordinate.
    let far = Row { op: Attention { queries: Queries::From((1 << 29) + 1), ..base.op }, ..base.clone() };
    assert!(refused(far).contains("expected a position no farther than 2^29"));
    for first in [1 << 29, -(1 << 29)] {
        assert!(Row { op: Attention { queries: Queries::From(first), ..base.op }, ..base.clone() }.graph().is_ok());
    }

    let mut graph = Graph::new();
    let q = graph.input("q", F32, shape(&[1, 2, 3, 8])).unwrap();
    let half = graph.input("half", F16, shape(&[1, 2, 3, 8])).unwrap();
    let i = graph.input("i", U32, shape(&[1, 2, 3, 8])).unwrap();
    let plain = Attention::new(Bhsd, 1.0);
    let none = AttentionOperands::default();
    let text = graph.attention(q, half, q, none, plain).unwrap_err().to_string();
    assert!(text.contains("input `k` is f16; expected f32 (cast it"), "{text}");
    let text = graph.attention(i, i, i, none, plain).unwrap_err().to_string();
    assert!(text.contains("input `q` is u32; expected f32, f16, bf16 or f64"), "{text}");
    let text = graph.attention(q, q, q, AttentionOperands { mask: Some(q), ..none }, plain).unwrap_err().to_string();
    assert!(text.contains("input `mask` is f32; expected bool"), "{text}");
    let text = graph.attention(q, q, q, AttentionOperands { lengths: Some(i), ..none }, plain).unwrap_err().to_string();
    assert!(text.contains("input `lengths`"), "{text}");
    let text = graph.attention_with_scores(q, q, q, none, plain, Scores::Nothing).unwrap_err().to_string();
    assert!(text.contains("attribute `scores` is Nothing"), "{text}");
}
