//! Attention of few queries of many keys, which several workgroups share: which kernels compute the parts and join them, against the reference and alike in every run.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

#[path = "common/attention.rs"]
mod attention;
mod common;

use attention::{Row, check, row, shape};
use common::{compare, compare_one_by_one, computes, devices, tolerance};
use trefoil_codegen::artefact::Feature;
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::compile::stages::forecast;
use trefoil_graph::ops::{Attention, AttentionLayout, AttentionOperands};
use trefoil_graph::{ElementType, Error, Executable, Extents, Graph, Model, Options};

use AttentionLayout::{Bhsd, Bshd};
use ElementType::{BF16, F16, F32};

/// Keys of a head are read once for all queries of its group: one kernel has them all, whatever the group.
#[test]
fn heads_in_groups_are_rows_of_one_kernel() {
    for device in devices().iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        let every = [(F32, 64, 8), (F32, 128, 16), (F16, 80, 16), (F16, 128, 16), (BF16, 128, 16)];
        for (element, elements, team) in every.into_iter().filter(|(element, ..)| computes(device, *element)) {
            for (group, queries, kernel) in [
                (1, 1, format!("row_{element}")),
                (2, 1, format!("grouped_{element}_2")),
                (4, 1, format!("grouped_{element}_4")),
                (7, 1, format!("grouped_{element}_8")),
                (1, 3, format!("grouped_{element}_4")),
                (4, 2, format!("grouped_{element}_8")),
            ] {
                let mut graph = Graph::new();
                let mut input = |name: &str, heads: usize, positions: usize| {
                    graph.input(name, element, shape(&[1, heads, positions, elements])).unwrap()
                };
                let (q, k, v) = (input("q", 8 * group, queries), input("k", 8, 32_768), input("v", 8, 32_768));
                let op = Attention { causal: true, ..Attention::new(Bhsd, 0.1) };
                let y = graph.attention(q, k, v, AttentionOperands::default(), op).unwrap();
                graph.output("y", y).unwrap();
                let told = forecast(&graph, device.properties(), &Options::default()).unwrap();
                let mut wanted = vec![format!("attention_{kernel}_{team}"), format!("attention_join_{element}_8")];
                // The last workgroup of one row joins what all of them have found, where it can know that it is the last.
                if group * queries == 1 && device.properties().features.has(Feature::Ordering) {
                    wanted = vec![format!("attention_row_joining_{element}_{team}")];
                }
                assert_eq!(told.steps, wanted, "{queries} of {group} heads on {}", device.properties().name);
            }
        }
    }
}

/// One query of many keys, which several workgroups share, of some rows with parts that see no key.
fn queries_of_many_keys() -> Vec<Row> {
    let op = Attention { causal: true, ..Attention::new(Bshd, 0.3) };
    let base = Row { batch: 2, heads: 3, key_heads: 3, op, ..row(1, 1300, 64) };
    let all = Row {
        mask: Some(vec![1, 1300]),
        bias: Some(vec![3, 1, 1300]),
        lengths: Some(vec![1299, 101]),
        sinks: true,
        op: Attention { left: Some(700), cap: Some(2.0), ..op },
        ..base.clone()
    };
    let mut rows = vec![
        Row { elements: 128, value_elements: 72, ..base.clone() },
        Row { lengths: Some(vec![0, 900]), ..base.clone() },
        Row { sinks: true, op: Attention { left: Some(3), ..op }, ..base.clone() },
        base,
    ];
    rows.extend([F32, F16, BF16].map(|element| Row { element, ..all.clone() }));
    rows
}

#[test]
fn keys_of_one_query_in_parts() {
    assert!(check(&queries_of_many_keys()).contains("attention of few rows"));
}

/// Whichever workgroup of a row comes last, its parts are joined in one order, and the next run counts from zero.
#[test]
fn parts_are_joined_alike_in_every_run() {
    let force = [("attention".to_owned(), "attention of few rows".to_owned())].into();
    let options = Options { force, ..Options::default() };
    for device in devices() {
        for row in queries_of_many_keys() {
            let (graph, inputs) = row.graph().unwrap();
            let executable = match Executable::compile(&graph, &Model::new(), &device, &options) {
                Err(Error::NoCandidate { .. }) => continue,
                made => made.unwrap(),
            };
            let place = format!("{row:?} on {}", device.properties().name);
            let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
            let run =
                |executable: &Executable| executable.run(&data, &Extents::new()).unwrap().host("y").unwrap().values;
            compare(&graph, &executable, &inputs, &Extents::new(), tolerance(row.element));
            let first = run(&executable);
            for _ in 0..50 {
                assert_eq!(run(&executable), first, "{place}");
            }
            // A fork counts in memory of its own, and both run side by side.
            let fork = executable.fork().unwrap();
            std::thread::scope(|scope| {
                let other = scope.spawn(|| (0..20).map(|_| run(&fork)).collect::<Vec<_>>());
                let own: Vec<_> = (0..20).map(|_| run(&executable)).collect();
                let all = own.into_iter().chain(other.join().unwrap());
                all.for_each(|values| assert_eq!(values, first, "{place}"));
            });
            executable.profile(&Extents::new()).unwrap();
            assert_eq!(run(&executable), first, "after its steps were timed, {place}");
            // The second call finds what the first has left.
            for _ in 0..if row.element == F32 { 2 } else { 0 } {
                compare_one_by_one(&graph, &device, &inputs, tolerance(row.element));
            }
        }
    }
}
