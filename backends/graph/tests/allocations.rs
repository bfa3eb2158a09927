//! A run by ids whose outputs go into the caller's memory allocates nothing beside what the device does: counted by this program's allocator, on every device.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::devices;
use common::states::at;
use counting::{Counting, is_within_device};
use trefoil_graph::{Dim, ElementType, Executable, Graph, Model, Options, Symbol};

/// The system's allocator, which counts what this thread asks of it outside of devices.
struct Allocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    if !is_within_device() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[test]
fn runs_by_ids_allocate_nothing() {
    for device in devices() {
        let (_, device) = Counting::of(&device);
        let rows = Symbol::new("rows", 1, 8).unwrap();
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, vec![Dim::from(&rows), 4.into()]).unwrap();
        let by = graph.input("by", ElementType::F32, [4]).unwrap();
        let bias = graph.input("bias", ElementType::F32, [4]).unwrap();
        let sum = graph.add(x, by).unwrap();
        let sum = graph.add(sum, bias).unwrap();
        let negative = graph.neg(sum).unwrap();
        graph.output("sum", sum).unwrap();
        graph.output("negative", negative).unwrap();
        let options = Options { resident: ["by".to_owned()].into(), ..Options::default() };
        let executable = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
        let [x, by, bias] = ["x", "by", "bias"].map(|name| executable.input(name).unwrap());
        let [sum, negative] = ["sum", "negative"].map(|name| executable.output(name).unwrap());

        let values: Vec<f32> = (0..32).map(|i| i as f32).collect();
        let buffer = device.buffer(&[100f32; 4]).unwrap();
        let extents = [5usize, 8].map(|count| (count, at(&rows, count)));
        let (mut whole, mut last) = (vec![0f32; 32], [0f32; 4]);
        // The first run of each shape makes room for those that follow.
        executable
            .prepare(&extents[0].1)
            .input(x, &values[..20])
            .input(by, &[1000f32; 4])
            .buffer(bias, &buffer)
            .run()
            .unwrap();
        for round in 0..6 {
            let (count, extents) = &extents[round % 2];
            let (given, room) = (&values[..count * 4], &mut whole[..count * 4]);
            let before = ALLOCATIONS.get();
            let run = executable.prepare(extents).input(x, given).unchanged(by).buffer(bias, &buffer);
            let run = run.take_rows_into(negative, *count as u64 - 1..*count as u64, &mut last).take_into(sum, room);
            let outputs = run.run().unwrap();
            let after = ALLOCATIONS.get();
            drop(outputs);
            if round >= 2 {
                assert_eq!(after - before, 0, "round {round} on {}", device.properties().name);
            }
            let wanted: Vec<f32> = values[..count * 4].iter().map(|x| x + 1100.0).collect();
            assert_eq!(whole[..count * 4], wanted);
            assert!(last.iter().zip(&wanted[count * 4 - 4..]).all(|(last, sum)| *last == -sum));
        }
        assert!(ALLOCATIONS.get() > 0, "it counts");
    }
}
