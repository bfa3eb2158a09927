//! Defects of earlier hand-written backends that no other test holds off; the page `docs/src/defects.md` names each with what went wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, compare, devices};
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_graph::ops::{Order, Sweep};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options, Symbol};

use ElementType::{F32, U8, U32};

fn dims(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap()
}

/// Steps of no elements were passed over without counting on: the run never ended.
#[test]
fn runs_of_nothing_end() {
    let n = Symbol::new("n", 0, 5).unwrap();
    let mut graph = Graph::new();
    let x = graph.input("x", F32, vec![Dim::from(&n), Dim::from(3)]).unwrap();
    let w = graph.input("w", F32, dims(&[3, 4])).unwrap();
    let y = graph.exp(x).unwrap();
    let y = graph.matmul(y, w).unwrap();
    let y = graph.softmax(y, -1).unwrap();
    graph.output("rows", y).unwrap();
    let sorted = graph.sort(y, 0, Order::Ascending).unwrap();
    graph.output("sorted", sorted).unwrap();
    for device in devices() {
        let executable = compile(&graph, &device);
        for rows in [0usize, 5, 0, 1] {
            let mut extents = Extents::new();
            extents.set(&n, rows as i64).unwrap();
            let inputs = [("x", Values::of(F32, rows * 3, 4, 1.0)), ("w", Values::of(F32, 12, 5, 1.0))];
            compare(&graph, &executable, &inputs, &extents, common::tolerance(F32));
        }
    }
}

/// What was to be fed was forgotten where the last step ran on the host.
#[test]
fn a_feed_behind_a_step_of_the_host_is_done() {
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("x", F32, dims(&[4, 8])).unwrap();
        let rows = graph.state("rows", F32, dims(&[4, 8])).unwrap();
        let sorted = graph.sort(x, 1, Order::Ascending).unwrap();
        graph.feed(rows, sorted).unwrap();
        graph.output("sorted", sorted).unwrap();
        let executable = compile(&graph, &device);
        if device.kind() == DeviceKind::Cpu {
            let last = executable.explain().steps.into_iter().filter(|step| step.story.starts_with("sort")).count();
            assert!(last > 0, "{}", executable.explain());
        }
        let values = Values::of(F32, 32, 7, 1.0);
        let outputs = executable.run(&[("x", values.data())], &Extents::new()).unwrap();
        let sorted = outputs.get::<f32>("sorted").unwrap();
        assert!(sorted.chunks(8).all(|row| row.is_sorted()));
        assert_eq!(executable.state("rows").unwrap().get::<f32>().unwrap(), sorted);
    }
}

/// Regions of more than 16 inputs, or of more than 32 maps, panicked.
#[test]
fn long_chains_of_many_inputs_are_fused_or_split() {
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut sum = None;
    for index in 0..40 {
        let name = format!("x{index}");
        let x = graph.input(&name, F32, dims(&[33])).unwrap();
        inputs.push((name, Values::of(F32, 33, index + 1, 1.0)));
        let x = graph.tanh(x).unwrap();
        sum = Some(match sum {
            None => x,
            Some(sum) => graph.add(sum, x).unwrap(),
        });
    }
    graph.output("sum", sum.unwrap()).unwrap();
    let inputs: Vec<_> = inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    for device in devices() {
        let executable = check(&graph, &device, &inputs, &Extents::new(), common::tolerance(F32));
        let most = device.limits().max_storage_buffers as usize;
        assert!(executable.explain().steps.iter().all(|step| step.uses.len() <= most.max(8)));
    }
}

/// Indices were floats, exact up to 2^24; and grids of one axis ended before that.
#[test]
fn indices_and_elements_beyond_two_to_the_24_are_exact() {
    let count = (1usize << 24) + 5;
    let places = [count as u32 - 1, count as u32 - 2, (1 << 24) + 1, 1 << 24, 0, count as u32];
    let mut graph = Graph::new();
    let x = graph.input("x", U8, dims(&[count])).unwrap();
    let at = graph.input("at", U32, dims(&[places.len()])).unwrap();
    let y = graph.bit_not(x).unwrap();
    let found = graph.gather(y, at, 0).unwrap();
    graph.output("found", found).unwrap();
    let values: Vec<u8> = (0..count).map(|index| (index % 251) as u8).collect();
    for device in devices() {
        let executable = compile(&graph, &device);
        let outputs =
            executable.run(&[("x", (&values).into()), ("at", (&places[..]).into())], &Extents::new()).unwrap();
        let found = outputs.get::<u8>("found").unwrap();
        let wanted = places.map(|place| values.get(place as usize).map_or(0, |value| !value));
        assert_eq!(found, wanted, "{}", device.properties().name);
    }
}

/// More than six axes were written behind an array of strides.
#[test]
fn tensors_of_many_axes() {
    let extents = [2usize, 1, 3, 1, 2, 2, 1, 3, 2];
    let mut graph = Graph::new();
    let x = graph.input("x", F32, dims(&extents)).unwrap();
    let order: Vec<usize> = vec![8, 3, 0, 7, 1, 5, 6, 2, 4];
    let turned = graph.transpose(x, &order).unwrap();
    let turned = graph.reverse(turned, &[0, 3, 7]).unwrap();
    let row = graph.input("row", F32, dims(&[3, 2])).unwrap();
    let y = graph.add(turned, row).unwrap();
    graph.output("y", y).unwrap();
    let count = extents.iter().product();
    let inputs = [("x", Values::of(F32, count, 3, 1.0)), ("row", Values::of(F32, 6, 4, 1.0))];
    for device in devices() {
        check(&graph, &device, &inputs, &Extents::new(), common::tolerance(F32));
    }
}

/// An input without a place was written to the first byte of all memory.
#[test]
fn inputs_that_nothing_reads_are_taken_and_written_nowhere() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, dims(&[4])).unwrap();
    graph.input("unread", F32, dims(&[64])).unwrap();
    let kept = graph.state("kept", F32, dims(&[4])).unwrap();
    let sum = graph.add(kept, x).unwrap();
    graph.feed(kept, sum).unwrap();
    graph.output("y", sum).unwrap();
    for device in devices() {
        let executable = compile(&graph, &device);
        let run = |unread: f32| {
            let unread = [unread; 64];
            let inputs = [("x", (&[1f32, 2.0, 3.0, 4.0]).into()), ("unread", (&unread).into())];
            executable.run(&inputs, &Extents::new()).unwrap().get::<f32>("y").unwrap().to_vec()
        };
        assert_eq!(run(1e30), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(run(-1e30), [2.0, 4.0, 6.0, 8.0]);
    }
}

/// An input equal to the last one was not uploaded, though a step had written over its memory since.
#[test]
fn equal_inputs_are_uploaded_again() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, dims(&[64])).unwrap();
    // Values that may lie where the input lay, once it is read.
    let mut y = graph.exp(x).unwrap();
    for _ in 0..3 {
        let turned = graph.reverse(y, &[0]).unwrap();
        y = graph.cumsum(turned, 0, Sweep::default()).unwrap();
        y = graph.tanh(y).unwrap();
    }
    graph.output("y", y).unwrap();
    let values = Values::of(F32, 64, 9, 1.0);
    for device in devices() {
        let executable = compile(&graph, &device);
        let run =
            || executable.run(&[("x", values.data())], &Extents::new()).unwrap().get::<f32>("y").unwrap().to_vec();
        let first = run();
        assert!((0..3).all(|_| run() == first), "{}", device.properties().name);
        compare(&graph, &executable, &[("x", values.clone())], &Extents::new(), 1e-4);
    }
}
