//! Runs beside the program, on every device: in order, several at a time, left alone, refused; and nothing leaks.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::states::at;
use common::{devices, devices_of_its_own, numbers};
use trefoil_dsl::device::{Device, MemoryRange};
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, OwnedData, Pending, Symbol};

const FLOAT: ElementType = ElementType::F32;

/// A state to which each run adds its input, the sum as an output.
fn totals(device: &Device) -> Arc<Executable> {
    let mut graph = Graph::new();
    let total = graph.state("total", FLOAT, [3]).unwrap();
    let x = graph.input("x", FLOAT, [3]).unwrap();
    let sum = graph.add(total, x).unwrap();
    graph.feed(total, sum).unwrap();
    graph.output("sum", sum).unwrap();
    Arc::new(Executable::compile(&graph, &Model::new(), device, &Options::default()).unwrap())
}

#[test]
fn runs_are_done_in_order_and_give_everything_back() {
    for device in devices() {
        let executable = totals(&device);
        let extents = Extents::new();
        let mut given = Vec::new();
        let pending: Vec<_> = (1..=20)
            .map(|round| {
                let (x, room) = (vec![round as f32; 3], vec![0f32; 2]);
                given.push((x.as_ptr(), room.as_ptr()));
                let run = executable.queue(&extents).input("x", x).take_rows_into("sum", 1..3, room);
                if round % 2 == 0 { run.take("sum").start() } else { run.start() }
            })
            .collect();
        let mut total = 0.0;
        for (round, (pending, given)) in pending.into_iter().zip(given).enumerate() {
            let round = round + 1;
            total += round as f32;
            if round % 3 == 0 {
                let start = Instant::now();
                while !pending.is_finished() {
                    assert!(start.elapsed() < Duration::from_secs(60), "round {round}");
                    std::thread::yield_now();
                }
            }
            let mut finished = pending.wait();
            let outputs = finished.result.unwrap();
            if round % 2 == 0 {
                assert_eq!(outputs.get::<f32>("sum").unwrap(), [total; 3]);
            } else {
                assert_eq!(outputs.iter().count(), 0);
            }
            // The same memory, with the result in it.
            let x: Vec<f32> = finished.inputs.remove(0).into_vec().unwrap();
            let room: Vec<f32> = finished.outputs.remove(0).into_vec().unwrap();
            assert_eq!((x.as_ptr(), room.as_ptr()), given);
            assert_eq!((x, room), (vec![round as f32; 3], vec![total; 2]));
            assert!(finished.inputs.is_empty() && finished.outputs.is_empty());
        }
    }
}

#[test]
fn runs_that_nobody_waits_for_are_done() {
    for device in devices_of_its_own() {
        let before = device.backend().counters().allocated_bytes;
        let executable = totals(&device);
        let extents = Extents::new();
        for _ in 0..10 {
            drop(executable.queue(&extents).input("x", vec![1f32; 3]).take_nothing().start());
        }
        let last = executable.queue(&extents).input("x", vec![0f32; 3]).start().wait().result.unwrap();
        assert_eq!(last.get::<f32>("sum").unwrap(), [10.0; 3]);
        // Nor does anybody hold the executable while the last ones run.
        for _ in 0..10 {
            drop(executable.queue(&extents).input("x", vec![1f32; 3]).start());
        }
        drop(executable);
        let start = Instant::now();
        while device.backend().counters().allocated_bytes > before {
            assert!(start.elapsed() < Duration::from_secs(60), "its memory is never freed");
            // Devices let go of what a submission used when they are next asked for something.
            device.backend().wait().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn forks_run_beside_each_other() {
    for device in devices() {
        let first = totals(&device);
        first.set_state("total", (&[100f32; 3]).into()).unwrap();
        let forks = [first.clone(), Arc::new(first.fork().unwrap()), Arc::new(first.fork().unwrap())];
        let start = |round: usize, fork: usize| {
            let x = vec![(round * (fork + 1)) as f32; 3];
            forks[fork].queue(&Extents::new()).input("x", x).start()
        };
        let pending: Vec<_> =
            (1..=8).flat_map(|round| [0, 1, 2].map(|fork| (fork, round, start(round, fork)))).collect();
        for (fork, round, pending) in pending {
            let outputs = pending.wait().result.unwrap();
            let wanted = 100.0 + ((fork + 1) * round * (round + 1) / 2) as f32;
            assert_eq!(outputs.get::<f32>("sum").unwrap(), [wanted; 3], "fork {fork}, round {round}");
        }
    }
}

#[test]
fn what_a_run_takes_from_the_device_or_leaves_as_it_was() {
    for device in devices() {
        let rows = Symbol::new("rows", 1, 4).unwrap();
        let mut graph = Graph::new();
        let x = graph.input("x", FLOAT, vec![Dim::from(&rows), 2.into()]).unwrap();
        let by = graph.input("by", FLOAT, [2]).unwrap();
        let on = graph.input("on", ElementType::Bool, [2]).unwrap();
        let y = graph.mul(x, by).unwrap();
        let off = graph.logical_not(on).unwrap();
        graph.output("y", y).unwrap();
        graph.output("off", off).unwrap();
        let options = Options { resident: ["by".to_owned(), "on".to_owned()].into(), ..Options::default() };
        let executable = Arc::new(Executable::compile(&graph, &Model::new(), &device, &options).unwrap());
        let values = numbers(8, 5, 1.0);
        let memory = device.buffer(&values).unwrap().memory().clone();
        let run = |count: usize| {
            let range = MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() };
            executable.queue(&at(&rows, count)).memory("x", FLOAT, range)
        };
        let on = || OwnedData::bools(vec![1, 0]);
        let first = run(4).input("by", vec![2f32, 3.0]).input("on", on()).take_into("off", on()).take("y").start();
        let second = run(3).unchanged("by").unchanged("on").take_rows("y", 2..3).start();
        let wanted: Vec<f32> = values.chunks(2).flat_map(|row| [row[0] * 2.0, row[1] * 3.0]).collect();
        let mut first = first.wait();
        assert_eq!(first.result.unwrap().get::<f32>("y").unwrap(), wanted);
        assert_eq!(first.outputs.remove(0).into_vec::<u32>().unwrap(), [0, 1]);
        assert_eq!(second.wait().result.unwrap().get::<f32>("y").unwrap(), &wanted[4..6]);
    }
}

#[test]
fn refused_runs_give_everything_back_too() {
    for device in devices() {
        let executable = totals(&device);
        let extents = Extents::new();
        let run = || executable.queue(&extents);
        let wrong = [
            (run().input("x", vec![1f32; 2]), "input `x`: 2 elements given, 3 expected for f32[3], here [3]"),
            (run().input("x", vec![1u32; 3]), "input `x`: elements of type u32 given, f32 expected"),
            (run().input("z", vec![1f32; 3]), "there is no input `z`; there are: x"),
        ];
        for (run, message) in wrong {
            let mut finished = run.take_into("sum", vec![5f32; 3]).start().wait();
            assert_eq!(finished.result.unwrap_err().to_string(), message);
            assert_eq!(finished.inputs.len(), 1);
            assert_eq!(finished.outputs.remove(0).into_vec::<f32>().unwrap(), [5.0; 3]);
        }
        let finished = run().input("x", vec![1f32; 3]).take_into("total", vec![0f32; 3]).start().wait();
        assert!(matches!(finished.result, Err(Error::Unknown { what: "output", .. })));
        assert_eq!((finished.inputs.len(), finished.outputs.len()), (1, 1));
        let error = OwnedData::from(vec![1f32]).into_vec::<u32>().unwrap_err().to_string();
        assert_eq!(error, "a list of f32 was handed over, and is taken back as a list of u32");
        // Nothing of that was added, and later runs are right.
        let outputs = run().input("x", vec![1f32; 3]).start().wait().result.unwrap();
        assert_eq!(outputs.get::<f32>("sum").unwrap(), [1.0; 3]);
    }
}

#[test]
fn threads_share_a_run_that_was_started() {
    const fn is_shared<T: Send + Sync>() {}
    const { is_shared::<Pending>() };
    for device in devices() {
        let executable = totals(&device);
        let pending = executable.queue(&Extents::new()).input("x", vec![1f32; 3]).start();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let start = Instant::now();
                    while !pending.is_finished() {
                        assert!(start.elapsed() < Duration::from_secs(60), "it is never done");
                        std::thread::yield_now();
                    }
                    assert!(!pending.cancel(), "it is over");
                });
            }
        });
        assert_eq!(pending.wait().result.unwrap().get::<f32>("sum").unwrap(), [1.0; 3]);
        // A run that is refused is over at once, and is not called off.
        let refused = executable.queue(&Extents::new()).input("z", vec![1f32; 3]).start();
        assert!(refused.is_finished() && !refused.cancel() && !refused.cancel());
        assert!(matches!(refused.wait().result, Err(Error::Unknown { what: "input", .. })));
    }
}

#[test]
fn pinned_buffers_are_handed_over_and_come_back() {
    for device in devices() {
        let executable = totals(&device);
        let extents = Extents::new();
        let (mut x, mut sum) = (device.pinned::<f32>(3).unwrap(), device.pinned::<f32>(3).unwrap());
        for round in 1..4 {
            x.fill(round as f32);
            let mut finished = executable.queue(&extents).input("x", x).take_into("sum", sum).start().wait();
            finished.result.unwrap();
            x = finished.inputs.remove(0).into_pinned().unwrap();
            sum = finished.outputs.remove(0).into_pinned().unwrap();
            assert_eq!((x[0], sum[0]), (round as f32, (1..=round).sum::<i32>() as f32));
        }
        // A run that is waited for takes them as the slices that they are.
        x.fill(-6.0);
        executable.prepare(&extents).input("x", &x).take_into("sum", &mut sum).run().unwrap();
        assert_eq!(*sum, [0.0; 3]);
        let error = OwnedData::from(x).into_vec::<f32>().unwrap_err().to_string();
        assert_eq!(error, "a pinned buffer of f32 was handed over, and is taken back as a list of f32");
    }
}

#[test]
fn a_run_that_is_called_off_leaves_states_as_they_were() {
    for device in devices() {
        let what = &device.properties().name;
        let executable = totals(&device);
        let extents = Extents::new();
        let start = |x: f32| executable.queue(&extents).input("x", vec![x; 3]).start();
        // Many before it, so that it most likely waits.
        let before: Vec<_> = (0..20).map(|_| start(1.0)).collect();
        let (called_off, after) = (start(100.0), start(10.0));
        let in_time = called_off.cancel();
        assert_eq!(called_off.cancel(), in_time, "{what}: it says the same again");
        for pending in before {
            pending.wait().result.unwrap();
        }
        let finished = called_off.wait();
        let inputs: Vec<_> = finished.inputs.into_iter().map(|given| given.into_vec::<f32>().unwrap()).collect();
        assert_eq!(inputs, [vec![100f32; 3]], "{what}: what it was given comes back");
        let first = &*executable.explain().steps[0].label;
        match finished.result {
            Err(Error::Cancelled { step }) => assert!(in_time && step == first, "{what}: {step}"),
            other => assert!(!in_time && other.is_ok(), "{what}: {other:?}"),
        }
        let sum = after.wait().result.unwrap().get::<f32>("sum").unwrap().to_vec();
        assert_eq!(sum, [if in_time { 30.0 } else { 130.0 }; 3], "{what}");
        // A run that is over is not called off.
        let over = start(0.0);
        executable.state("total").unwrap();
        while !over.is_finished() {
            std::thread::yield_now();
        }
        assert!(!over.cancel(), "{what}");
        over.wait().result.unwrap();
    }
}
