//! The stages by themselves: places never overlap, barriers stand where they must, and the proof finds planted defects.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::Case;
use common::ops::RowSum;
use common::{compare, devices};
use proptest::prelude::*;
use trefoil_dsl::device::{Device, DeviceKind, DeviceOptions, Properties};
use trefoil_graph::compile::plan::{ALIGNMENT, Lifetime, Rules, place};
use trefoil_graph::compile::prove::{Event, Trace, prove};
use trefoil_graph::compile::schedule::{Hazard, Touch, barriers};
use trefoil_graph::compile::stages::forecast;
use trefoil_graph::ops::Sweep;
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, Tensor};

fn lifetimes() -> impl Strategy<Value = Vec<Lifetime>> {
    let one = (0u64..5000, 0usize..30, 0usize..12).prop_map(|(bytes, born, length)| Lifetime {
        bytes,
        born,
        dies: born + length,
    });
    proptest::collection::vec(one, 1..60)
}

proptest! {
    #[test]
    fn values_alive_together_share_no_bytes(
        lifetimes in lifetimes(),
        pairs in proptest::collection::vec((0usize..60, 0usize..60), 0..40),
        max_buffer in prop_oneof![Just(u64::MAX), 6000u64..20_000],
    ) {
        let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a != b && *a.max(b) < lifetimes.len()).collect();
        let (places, sizes) = place(&lifetimes, Rules { max_buffer, apart: &pairs });
        for (a, here) in places.iter().enumerate() {
            prop_assert!(here.bytes >= lifetimes[a].bytes && here.bytes > 0);
            prop_assert_eq!(here.offset % ALIGNMENT, 0);
            prop_assert!(here.offset + here.bytes <= sizes[here.buffer]);
            prop_assert!(sizes[here.buffer] <= max_buffer);
            for (b, there) in places.iter().enumerate().take(a) {
                let together = lifetimes[a].born <= lifetimes[b].dies && lifetimes[b].born <= lifetimes[a].dies;
                let apart = here.buffer != there.buffer
                    || here.offset + here.bytes <= there.offset
                    || there.offset + there.bytes <= here.offset;
                prop_assert!(!together || apart, "{} and {}", a, b);
            }
        }
        for (a, b) in pairs {
            prop_assert_ne!(places[a].buffer, places[b].buffer);
        }
    }

    #[test]
    fn conflicting_steps_have_a_barrier_between_them(
        steps in proptest::collection::vec(
            proptest::collection::vec((0usize..2, 0u64..8, 1u64..4, 0u8..3), 1..4), 1..20),
    ) {
        let steps: Vec<Vec<Touch>> = steps
            .into_iter()
            .map(|touches| {
                touches
                    .into_iter()
                    .map(|(buffer, start, bytes, access)| Touch {
                        buffer, start, end: start + bytes, reads: access != 1, writes: access != 0, name: String::new(),
                    })
                    .collect()
            })
            .collect();
        let barriers = barriers(&steps);
        for later in 0..steps.len() {
            for earlier in 0..later {
                let conflict = steps[earlier].iter().any(|a| steps[later].iter().any(|b| {
                    a.buffer == b.buffer && a.start < b.end && b.start < a.end && (a.writes || b.writes)
                }));
                let between = barriers[earlier + 1..=later].iter().any(|reasons| !reasons.is_empty());
                prop_assert!(!conflict || between);
            }
            // And none stands without a reason that holds.
            for reason in &barriers[later] {
                prop_assert!(reason.later == later && reason.earlier < later);
            }
        }
    }
}

#[test]
fn values_follow_each_other_in_the_same_bytes() {
    let chain: Vec<_> = (0..10).map(|step| Lifetime { bytes: 1000, born: step, dies: step + 1 }).collect();
    let (_, sizes) = place(&chain, Rules { max_buffer: u64::MAX, apart: &[] });
    assert_eq!(sizes, [2048]);
    // Two neighbours that died hold one that is as large as both.
    let grown = [
        Lifetime { bytes: 512, born: 0, dies: 1 },
        Lifetime { bytes: 512, born: 0, dies: 2 },
        Lifetime { bytes: 1024, born: 3, dies: 3 },
    ];
    assert_eq!(place(&grown, Rules { max_buffer: u64::MAX, apart: &[] }).1, [1024]);
}

#[test]
fn a_barrier_says_why() {
    let touch = |start, reads, writes, name: &str| Touch {
        buffer: 0,
        start,
        end: start + 4,
        reads,
        writes,
        name: name.to_owned(),
    };
    let steps = [
        vec![touch(0, false, true, "a")],
        vec![touch(8, false, true, "b")],
        vec![touch(0, true, false, "a"), touch(16, false, true, "c")],
        vec![touch(0, false, true, "d")],
        vec![touch(0, false, true, "e")],
    ];
    let hazards: Vec<Vec<Hazard>> =
        barriers(&steps).iter().map(|reasons| reasons.iter().map(|reason| reason.hazard).collect()).collect();
    let (raw, war, waw) = (Hazard::ReadAfterWrite, Hazard::WriteAfterRead, Hazard::WriteAfterWrite);
    assert_eq!(hazards, [vec![], vec![], vec![raw], vec![war], vec![waw]]);
    assert_eq!(barriers(&steps)[2][0].to_string(), "step 2 reads `a`, which step 0 writes");
}

/// Three chains of five maps, one after the other or side by side, and a tensor beside which theirs are small.
fn chains(side_by_side: bool) -> Case {
    let mut case = Case::default();
    let wide = case.input("wide", ElementType::F32, &[64, 64]);
    let wide = case.graph.exp(wide).unwrap();
    let sums = case.graph.sum(wide, &[0], false).unwrap();
    case.output("sums", sums);
    let mut ends: Vec<Tensor> = (0..3).map(|chain| case.input(&format!("x{chain}"), ElementType::F32, &[64])).collect();
    let order = (0..15).map(|step| if side_by_side { step % 3 } else { step / 5 });
    for chain in order {
        ends[chain] = case.graph.tanh(ends[chain]).unwrap();
    }
    for (chain, end) in ends.into_iter().enumerate() {
        case.output(&format!("y{chain}"), end);
    }
    case
}

#[test]
fn independent_steps_stand_together() {
    let options = Options { fuse: false, ..Options::default() };
    for side_by_side in [false, true] {
        let case = chains(side_by_side);
        let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        for device in devices() {
            let executable = Executable::compile(&case.graph, &Model::new(), &device, &options).unwrap();
            compare(&case.graph, &executable, &inputs, &Extents::new(), 1e-5);
            let told = executable.explain();
            // The processor does the steps in the order given.
            if device.kind() == DeviceKind::Cpu {
                assert!(told.barriers() >= 12, "{told}");
            } else {
                // The first map of the large tensor stands alone: beside it there is no room. The chains are five groups, and it is 15 steps.
                assert_eq!(told.barriers(), 5, "{told}");
            }
        }
    }
}

/// A chain with a branch, compiled without fusion so that it has many steps and shared memory.
fn compiled() -> (Graph, Trace) {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, vec![Dim::from(8i64), Dim::from(6i64)]).unwrap();
    let turned = graph.transpose(x, &[1, 0]).unwrap();
    let a = graph.exp(turned).unwrap();
    let b = graph.tanh(a).unwrap();
    let c = graph.neg(b).unwrap();
    let d = graph.sub(c, a).unwrap();
    let sums = graph.add_one(RowSum, &[d]).unwrap();
    let other = graph.add_one(RowSum, &[turned]).unwrap();
    let e = graph.mul(sums, other).unwrap();
    graph.output("e", e).unwrap();
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let options = Options { fuse: false, ..Options::default() };
    let trace = Executable::compile(&graph, &Model::new(), &device, &options).unwrap().trace().unwrap();
    (graph, trace)
}

#[test]
fn the_proof_finds_planted_defects() {
    let (graph, good) = compiled();
    prove(&graph, &good).unwrap();
    let steps: Vec<usize> =
        (0..good.events.len()).filter(|index| matches!(good.events[*index], Event::Step { .. })).collect();
    assert!(steps.len() >= 8);

    // A barrier that is dropped.
    for index in (0..good.events.len()).filter(|index| good.events[*index] == Event::Barrier) {
        let mut bad = good.clone();
        bad.events.remove(index);
        assert!(prove(&graph, &bad).unwrap_err().contains("no barrier"), "{index}");
    }
    // Every barrier is needed, so two neighbouring steps depend on each other: swapped, with barriers everywhere, one reads what is not there.
    let mut swapped = 0;
    for pair in steps.windows(2) {
        let mut bad = good.clone();
        bad.events.swap(pair[0], pair[1]);
        let everywhere = bad.events.into_iter().flat_map(|event| [Event::Barrier, event]).collect();
        swapped += usize::from(prove(&graph, &Trace { events: everywhere, ..good.clone() }).is_err());
    }
    assert!(swapped >= 6, "{swapped} of {} swaps were found", steps.len() - 1);
    // A step that is left out.
    for index in &steps {
        let mut bad = good.clone();
        bad.events.remove(*index);
        assert!(prove(&graph, &bad).is_err(), "{index}");
    }
    // Every binding shifted, shortened at the writer, or moved to another buffer.
    for index in &steps {
        let Event::Step { accesses, .. } = &good.events[*index] else { continue };
        for binding in 0..accesses.len() {
            for change in 0..3 {
                let mut bad = good.clone();
                let Event::Step { accesses, .. } = &mut bad.events[*index] else { continue };
                match change {
                    0 => accesses[binding].offset += 256,
                    1 if accesses[binding].writes => accesses[binding].bytes -= 4,
                    1 => continue,
                    _ => accesses[binding].buffer += 7,
                }
                assert!(prove(&graph, &bad).is_err(), "step {index}, binding {binding}, change {change}");
            }
        }
    }
    // A step that writes where something alive lies: the place of `exp`, which is read again later.
    let Event::Step { accesses, .. } = &good.events[steps[0]] else { return };
    let exp = accesses.iter().find(|access| access.writes).unwrap().clone();
    let mut bad = good.clone();
    for event in &mut bad.events[steps[1]..] {
        if let Event::Step { accesses, .. } = event {
            let tanh = accesses.iter_mut().filter(|access| access.meaning != exp.meaning);
            tanh.for_each(|access| (access.buffer, access.offset) = (exp.buffer, exp.offset));
            break;
        }
    }
    assert!(prove(&graph, &bad).is_err());
    // An output that is taken from elsewhere.
    let mut bad = good.clone();
    bad.taken[0].1.offset += 256;
    assert!(prove(&graph, &bad).is_err());
    bad.taken.clear();
    assert!(prove(&graph, &bad).unwrap_err().contains("never taken"));
}

#[test]
fn small_outputs_that_nothing_reads_lie_near_the_host() {
    let device = devices().into_iter().find(|device| device.kind() == DeviceKind::Cpu).unwrap();
    let mut graph = Graph::new();
    let mut input = |name: &str, count: i64| graph.input(name, ElementType::F32, vec![Dim::from(count)]).unwrap();
    let (few, many) = (input("few", 40), input("many", 4000));
    let (small, large) = (graph.neg(few).unwrap(), graph.neg(many).unwrap());
    // What another step reads stays on the device, however small it is.
    let read = graph.reverse(small, &[0]).unwrap();
    let again = graph.reverse(read, &[0]).unwrap();
    for (name, tensor) in [("small", small), ("large", large), ("again", again)] {
        graph.output(name, tensor).unwrap();
    }
    let sizes = |near_host_bytes: u64| {
        let mut properties = device.properties().clone();
        properties.limits.near_host_bytes = near_host_bytes;
        forecast(&graph, &properties, &Options::default()).unwrap().activations
    };
    let (all, near, none) = (sizes(0), sizes(4096), sizes(100));
    assert_eq!((all.len(), near.len()), (1, 2), "{all:?}, {near:?}");
    assert!(near[1] == ALIGNMENT || near[1] == 2 * ALIGNMENT, "{near:?}");
    assert_eq!(none, all);
}

#[test]
fn what_is_in_no_memory_may_be_of_any_size() {
    let mut graph = Graph::new();
    let mut input = |name: &str, extents: [i64; 2]| graph.input(name, ElementType::F32, extents).unwrap();
    let (column, row) = (input("column", [8192, 1]), input("row", [1, 8192]));
    let equal = graph.eq(column, row).unwrap();
    let count = graph.count_nonzero(equal, &[0, 1], false).unwrap();
    graph.output("count", count).unwrap();
    let mut held = graph.clone();
    held.output("equal", equal).unwrap();
    // On the CPU a function of the host reads what it counts from memory.
    for device in devices().into_iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        // WebGPU's limits.
        let mut properties = device.properties().clone();
        (properties.limits.max_binding_bytes, properties.limits.max_allocation_bytes) = (128 << 20, 256 << 20);
        let told = forecast(&graph, &properties, &Options::default()).unwrap();
        assert!(told.activations.iter().sum::<u64>() < 1 << 20, "{told:?}");
        let refused = forecast(&held, &properties, &Options::default()).unwrap_err();
        assert!(matches!(&refused, Error::TooLarge { tensor, .. } if tensor.starts_with("eq.")), "{refused}");
    }
}

/// A device that holds anything.
fn boundless(device: &Device) -> Properties {
    let mut properties = device.properties().clone();
    (properties.limits.max_binding_bytes, properties.limits.max_allocation_bytes) = (1 << 40, 1 << 40);
    properties
}

/// Generated kernels count in 32 bits: what lies farther is refused rather than read elsewhere.
#[test]
fn what_lies_farther_than_kernels_count_is_refused() {
    let wide = 1_500_000_001;
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F32, [4i64, wide]).unwrap();
    let few = graph.narrow(x, 1, 0, 10).unwrap();
    let y = graph.relu(few).unwrap();
    graph.output("y", y).unwrap();
    let position = Symbol::new("position", 0, wide - 10).unwrap();
    let mut written = Graph::new();
    let state = written.state("state", ElementType::F32, [4i64, wide]).unwrap();
    let rows = written.input("rows", ElementType::F32, [4i64, 10]).unwrap();
    written.update(state, rows, 1, &position).unwrap();
    for device in devices().iter().filter(|device| device.kind() != DeviceKind::Cpu) {
        let refused = forecast(&graph, &boundless(device), &Options::default()).unwrap_err();
        assert!(matches!(&refused, Error::TooLarge { tensor, .. } if tensor == "x"), "{refused}");
        let refused = forecast(&written, &boundless(device), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("of which kernels count 4294967295"), "{refused}");
    }
}

/// Sizes that no kernel is chosen for are an error, wherever a plan counts with them.
#[test]
fn sizes_beyond_counting_are_refused() {
    let [n, m] = ["n", "m"].map(|name| Symbol::new(name, 1, 1 << 40).unwrap());
    let flat = Dim::from(&n) * Dim::from(&m);
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, vec![Dim::from(100i64), Dim::from(&n), Dim::from(&m)]).unwrap();
        let y = graph.softmax(x, 0).unwrap();
        graph.output("y", y).unwrap();
        let refused = forecast(&graph, &boundless(&device), &Options::default()).unwrap_err();
        assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::F32, vec![flat.clone()]).unwrap();
        let y = graph.cumsum(x, -1, Sweep::default()).unwrap();
        graph.output("y", y).unwrap();
        let refused = forecast(&graph, &boundless(&device), &Options::default()).unwrap_err();
        assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    }
}
