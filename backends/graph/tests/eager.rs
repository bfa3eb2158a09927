//! Ops run one by one: few submissions, bounded memory, and errors where they belong. That every op's cases pass one by one is shown by the ops' own tests (`common::check`).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use common::cases::shape as dims;
use common::ops::RowSum;
use common::{Values, devices, numbers};
use trefoil_dsl::error::Error as DeviceError;
use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
use trefoil_graph::graph::{Leaf, LeafKind};
use trefoil_graph::ops::NormOperands;
use trefoil_graph::{
    Data, Dim, Eager, EagerOptions, ElementType, Error, Executable, Extents, Graph, Model, Options, Tensor, TensorType,
};
use trefoil_kernels::activation::Activation;

use ElementType::{F32, U32};

#[test]
fn chains_are_submitted_in_few_batches() {
    for device in devices() {
        let eager = Eager::with_options(&device, EagerOptions { batch: 100, ..EagerOptions::default() });
        let one = eager.tensor(&[1], &[1.0f32]).unwrap();
        let mut sum = eager.tensor(&[1], &[0.0f32]).unwrap();
        for _ in 0..1000 {
            sum = eager.add(&sum, &one).unwrap();
        }
        assert_eq!(sum.read::<f32>().unwrap(), [1000.0]);
        let counted = eager.statistics();
        assert_eq!((counted.launches, counted.barriers, counted.submissions), (1000, 990, 10));
        assert_eq!((counted.misses, counted.hits, counted.executables), (1, 999, 1));
        // Operands, and results in turn.
        assert!(counted.pool.allocations <= 4, "{counted:?}");
        // Launches that do not depend on each other have no barrier between them.
        let sums: Vec<_> = (0..10).map(|_| eager.add(&sum, &one).unwrap()).collect();
        assert_eq!(eager.statistics().barriers, counted.barriers, "{}", sums.len());
    }
}

#[test]
fn memory_stays_bounded_while_work_is_pending() {
    for device in devices() {
        let eager = Eager::with_options(&device, EagerOptions { batch: 1 << 20, ..EagerOptions::default() });
        let x = eager.tensor(&[1000], &numbers(1000, 3, 1.0)).unwrap();
        let wanted: Vec<f32> = x.read::<f32>().unwrap().iter().map(|x| -x).collect();
        let mut kept = Vec::new();
        for round in 0..500 {
            // The temporary is dropped while the kernels that make and read it wait, and its memory serves the next round.
            let temporary = eager.neg(&x).unwrap();
            let again = eager.neg(&eager.neg(&temporary).unwrap()).unwrap();
            drop(temporary);
            if round % 100 == 0 {
                kept.push(again);
            }
        }
        assert_eq!(eager.statistics().submissions, 0);
        let held = eager.statistics().pool;
        assert!(held.allocations <= 12 && held.held_bytes <= 12 * 4096, "{held:?}");
        for tensor in &kept {
            assert_eq!(tensor.read::<f32>().unwrap(), wanted);
        }
        // A write of the host must not overtake gathered work that still reads the memory.
        let first = eager.tensor(&[1000], &vec![1.0f32; 1000]).unwrap();
        let sum = eager.add(&first, &x).unwrap();
        drop(first);
        let others: Vec<_> = (0..8).map(|_| eager.tensor(&[1000], &vec![9.0f32; 1000]).unwrap()).collect();
        let wanted: Vec<f32> = x.read::<f32>().unwrap().iter().map(|x| 1.0 + x).collect();
        assert_eq!(sum.read::<f32>().unwrap(), wanted);
        drop((others, sum, kept, x));
        let held = eager.statistics().pool;
        assert_eq!(held.free_bytes, held.held_bytes, "all of it is free");
        eager.trim();
        assert_eq!(eager.statistics().pool.held_bytes, 0);
    }
}

#[test]
fn a_budget_holds() {
    for device in devices() {
        let eager = Eager::with_options(&device, EagerOptions { budget: Some(16 << 10), ..EagerOptions::default() });
        let x = eager.tensor(&[1024], &vec![2.0f32; 1024]).unwrap();
        let y = eager.neg(&x).unwrap();
        let z = eager.neg(&y).unwrap();
        let w = eager.neg(&z).unwrap();
        let error = eager.neg(&w).unwrap_err();
        assert!(matches!(error, Error::Budget { bytes: 4096, held: 16384, budget: 16384, .. }), "{error}");
        assert!(error.to_string().contains("`neg` takes 4096 bytes"), "{error}");
        // What is free goes first: another class of sizes fits once these are gone.
        drop((y, z));
        let wide = eager.tensor(&[2048], &vec![1.0f32; 2048]).unwrap();
        assert_eq!(w.read::<f32>().unwrap(), vec![-2.0; 1024]);
        assert_eq!(wide.read::<f32>().unwrap().len(), 2048);
        assert!(eager.statistics().pool.peak_bytes <= 16 << 10);
    }
}

#[test]
fn views_cost_nothing() {
    for device in devices() {
        let eager = Eager::new(&device);
        let values: Vec<f32> = (0..24).map(|n| n as f32).collect();
        let x = eager.tensor(&[4, 6], &values).unwrap();
        let mut turned = eager.transpose(&x, &[1, 0]).unwrap();
        // Views of views are as one: the key of a call does not grow.
        for _ in 0..100 {
            turned = eager.transpose(&eager.transpose(&turned, &[1, 0]).unwrap(), &[1, 0]).unwrap();
        }
        let flat = eager.reshape(&x, dims(&[24])).unwrap();
        // Starts at no multiple of what a device can bind.
        let part = eager.narrow(&flat, 0, 5i64, 7i64).unwrap();
        let spread = eager.expand(&eager.reshape(&part, dims(&[7, 1])).unwrap(), dims(&[7, 3])).unwrap();
        assert_eq!(eager.statistics().launches, 0);
        assert_eq!(eager.statistics().pool.allocations, 1);
        assert!(turned.is_strided() && part.is_strided() && !flat.is_strided());
        let doubled = eager.add(&part, &part).unwrap();
        assert_eq!(eager.statistics().launches, 1);
        assert_eq!(doubled.read::<f32>().unwrap(), [10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0]);
        let product = eager.matmul(&x, &turned).unwrap();
        assert_eq!(product.read::<f32>().unwrap()[1], (0..6).map(|k| (k * (k + 6)) as f32).sum::<f32>());
        drop((x, flat));
        let column: Vec<f32> = turned.read::<f32>().unwrap();
        assert_eq!(column[..4], [0.0, 6.0, 12.0, 18.0]);
        assert_eq!(spread.read::<f32>().unwrap()[..4], [5.0, 5.0, 5.0, 6.0]);
        // Strides cannot say this: it is copied, once.
        let reshaped = eager.reshape(&turned, dims(&[24])).unwrap();
        assert!(!reshaped.is_strided());
        assert_eq!(reshaped.read::<f32>().unwrap(), column);
    }
}

#[test]
fn results_of_one_product_share_its_memory() {
    for device in devices() {
        let eager = Eager::new(&device);
        let x = eager.tensor(&[2, 4], &numbers(8, 1, 1.0)).unwrap();
        let weight = eager.tensor(&[6, 4], &numbers(24, 2, 1.0)).unwrap();
        // The first call also takes memory that its executable holds.
        eager.linear_split(&x, &weight, None, &[2, 4]).unwrap();
        let before = eager.statistics();
        let parts = eager.linear_split(&x, &weight, None, &[2, 4]).unwrap();
        let after = eager.statistics();
        assert_eq!(after.pool.allocations + after.pool.reuses, before.pool.allocations + before.pool.reuses + 1);
        let whole = eager.linear(&x, &weight, None, Activation::Identity).unwrap().read::<f32>().unwrap();
        let (q, k) = (parts[0].read::<f32>().unwrap(), parts[1].read::<f32>().unwrap());
        assert_eq!([&q[..2], &k[..4], &q[2..], &k[4..]].concat(), whole);
    }
}

#[test]
fn executables_are_told_apart_and_bounded() {
    for device in devices() {
        let eager = Eager::with_options(&device, EagerOptions { executables: 4, ..EagerOptions::default() });
        let x = eager.tensor(&[6], &[1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0]).unwrap();
        let y = eager.reshape(&x, dims(&[2, 3])).unwrap();
        // Other attributes, shapes and types are other executables; equal calls are not.
        let first = eager.leaky_relu(&x, 0.5).unwrap();
        let second = eager.leaky_relu(&x, 0.25).unwrap();
        assert_eq!(first.read::<f32>().unwrap()[1], -1.0);
        assert_eq!(second.read::<f32>().unwrap()[1], -0.5);
        assert_eq!(eager.sum(&y, &[0], false).unwrap().read::<f32>().unwrap(), [-3.0, 3.0, -3.0]);
        assert_eq!(eager.sum(&y, &[1], false).unwrap().read::<f32>().unwrap(), [2.0, -5.0]);
        let counted = eager.statistics();
        assert_eq!((counted.hits, counted.misses, counted.executables), (0, 5, 4));
        // The reshape was the least recently used.
        eager.leaky_relu(&x, 0.5).unwrap();
        eager.sum(&y, &[1], false).unwrap();
        assert_eq!(eager.statistics().hits, 2);
        eager.reshape(&x, dims(&[2, 3])).unwrap();
        assert_eq!((eager.statistics().misses, eager.statistics().executables), (6, 4));
        // An operand that is there and one that is not are not the same call.
        let gamma = eager.tensor(&[3], &[2.0f32; 3]).unwrap();
        let scaled = NormOperands { gamma: Some(&gamma), ..Default::default() };
        let shifted = NormOperands { beta: Some(&gamma), ..Default::default() };
        let scaled = eager.rms_norm(&y, &[-1], 1e-6, scaled).unwrap().read::<f32>().unwrap();
        let plain = eager.rms_norm(&y, &[-1], 1e-6, NormOperands::default()).unwrap().read::<f32>().unwrap();
        assert!((scaled[0] - 2.0 * plain[0]).abs() < 1e-5);
        let shifted = eager.rms_norm(&y, &[-1], 1e-6, shifted).unwrap().read::<f32>().unwrap();
        assert!((shifted[0] - plain[0] - 2.0).abs() < 1e-5);
    }
}

#[test]
fn ops_of_users_run() {
    for device in devices() {
        for force in [None, Some("one pass"), Some("two passes")] {
            let mut compile = Options::default();
            compile.force.extend(force.map(|name| ("row_sum".to_owned(), name.to_owned())));
            let eager = Eager::with_options(&device, EagerOptions { compile, ..EagerOptions::default() });
            let x = eager.tensor(&[2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
            for _ in 0..3 {
                assert_eq!(eager.add_one(RowSum, &[&x]).unwrap().read::<f32>().unwrap(), [10.0, 26.0]);
            }
            let turned = eager.transpose(&x, &[1, 0]).unwrap();
            assert_eq!(eager.add_op(RowSum, &[&turned]).unwrap()[0].read::<f32>().unwrap(), [6.0, 8.0, 10.0, 12.0]);
        }
        // Functions of the host run on the CPU alone, and elsewhere the error says so.
        let mut compile = Options::default();
        compile.force.insert("row_sum".to_owned(), "host".to_owned());
        let eager = Eager::with_options(&device, EagerOptions { compile, ..EagerOptions::default() });
        let x = eager.tensor(&[2, 4], &numbers(8, 1, 1.0)).unwrap();
        match eager.add_one(RowSum, &[&x]) {
            Ok(sums) if device.kind().name() == "cpu" => assert_eq!(sums.read::<f32>().unwrap().len(), 2),
            Ok(sums) => {
                let error = sums.read::<f32>().unwrap_err().to_string();
                assert!(error.contains("row_sum") && error.contains("functions of the host"), "{error}");
            }
            Err(error) => {
                assert_ne!(device.kind().name(), "cpu", "{error}");
                assert!(error.to_string().contains("host"), "{error}");
            }
        }
    }
}

#[test]
fn random_numbers_run_on() {
    for device in devices() {
        let eager = Eager::new(&device);
        let mut graph = Graph::new();
        let normal = graph.normal(dims(&[33]), 0.0, 1.0, F32).unwrap();
        graph.output("y", normal).unwrap();
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        // More launches than seeds are written at once.
        for seed in 0..150u32 {
            let got = eager.normal(dims(&[33]), 0.0, 1.0, F32).unwrap();
            if seed % 37 == 0 || seed == 64 {
                let wanted = executable.run(&[("seed", (&[seed, 0]).into())], &Extents::new()).unwrap();
                assert_eq!(got.read::<f32>().unwrap(), wanted.get::<f32>("y").unwrap(), "seed {seed}");
            }
        }
        eager.set_seed((7 << 32) + 5);
        let bits = |eager: &Eager| eager.random_bits(dims(&[4]), U32).unwrap().read::<u32>().unwrap();
        let (first, second) = (bits(&eager), bits(&eager));
        assert_ne!(first, second);
        eager.set_seed((7 << 32) + 5);
        assert_eq!(bits(&eager), first);
        let x = eager.tensor(&[1000], &vec![1.0f32; 1000]).unwrap();
        let (dropped, kept) = eager.dropout(&x, 0.5).unwrap();
        let kept = kept.read_bools().unwrap();
        let values = dropped.read::<f32>().unwrap();
        assert!(values.iter().zip(&kept).all(|(value, kept)| (*value != 0.0) == *kept));
        assert!((300..700).contains(&kept.iter().filter(|kept| **kept).count()));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let devices = devices();
    let (device, other) = (&devices[0], devices.last().unwrap());
    let (eager, stranger) = (Eager::new(device), Eager::new(other));
    let x = eager.tensor(&[2, 3], &[0.0f32; 6]).unwrap();
    let y = stranger.tensor(&[2, 3], &[0.0f32; 6]).unwrap();
    let error = eager.matmul(&x, &y).unwrap_err();
    assert!(matches!(error, Error::OtherEager { op: "matmul", argument: "b", .. }), "{error}");
    assert!(error.to_string().contains(&other.properties().name), "{error}");
    assert!(matches!(eager.concat(&[&x, &y], 0).unwrap_err(), Error::OtherEager { argument: "tensors", .. }));
    let operands = NormOperands { gamma: Some(&y), ..Default::default() };
    assert!(matches!(eager.rms_norm(&x, &[-1], 1e-6, operands), Err(Error::OtherEager { argument: "gamma", .. })));
    // Errors are the graph's own, with the names of the arguments.
    let error = eager.matmul(&x, &x).unwrap_err();
    assert!(matches!(error, Error::Graph(_)), "{error}");
    let shown = error.to_string();
    assert!(shown.contains("matmul(a: f32[2, 3], b: f32[2, 3])"), "{shown}");
    let error = eager.add(&x, &eager.cast(&x, U32).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Graph(_)), "{error}");
    assert!(matches!(eager.tensor(&[2, 3], &[0.0f32; 5]), Err(Error::Length { given: 5, expected: 6, .. })));
    assert!(eager.tensor(&[usize::MAX, 2], &[0.0f32; 5]).is_err());
    assert!(matches!(x.read::<u32>(), Err(Error::ReadAs { .. })));
    assert!(matches!(x.read_bools(), Err(Error::ReadAs { .. })));
    let bools = x.eager().tensor(&[3], &[true, false, true]).unwrap();
    assert_eq!(bools.read_bools().unwrap(), [true, false, true]);
    let error = bools.read::<u32>().unwrap_err().to_string();
    assert!(error.ends_with("has elements of type bool, and was read as u32: `read_bools` reads bools"), "{error}");
    let symbol = trefoil_graph::Symbol::new("n", 1, 4).unwrap();
    assert!(matches!(eager.fill(1.0, F32, vec![Dim::from(&symbol)]), Err(Error::Symbolic { .. })));
    assert!(matches!(eager.add_one(RowSum, &[]), Err(Error::Graph(_))));
    // Nothing of this is left in the tables.
    assert_eq!(eager.statistics().executables, 1, "the cast");
}

#[test]
fn threads_share_one() {
    for device in devices() {
        let eager = Eager::with_options(&device, EagerOptions { batch: 7, ..EagerOptions::default() });
        let x = eager.tensor(&[257], &numbers(257, 5, 1.0)).unwrap();
        let start = x.read::<f32>().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (eager, x, start) = (&eager, &x, &start);
                scope.spawn(move || {
                    let step = eager.tensor(&[1], &[thread as f32]).unwrap();
                    let mut sum = x.clone();
                    for _ in 0..50 {
                        sum = eager.add(&sum, &step).unwrap();
                        drop(eager.mul(&sum, &sum).unwrap());
                    }
                    let wanted: Vec<f32> =
                        start.iter().map(|x| (0..50).fold(*x, |sum, _| sum + thread as f32)).collect();
                    assert_eq!(sum.read::<f32>().unwrap(), wanted);
                });
            }
        });
        assert_eq!(eager.statistics().launches, 600);
    }
}

/// While values are copied to the device, other threads go on.
#[test]
fn a_tensor_that_is_written_keeps_nobody_waiting() {
    for device in devices() {
        let (faults, device) = Faults::over(&device);
        let eager = Eager::new(&device);
        let one = eager.tensor(&[1], &[1.0f32]).unwrap();
        // Compiled by now.
        eager.neg(&one).unwrap();
        let (said, told) = channel();
        let (other, operand) = (eager.clone(), one.clone());
        faults.watch(move |call| {
            if call == Call::Write {
                let (eager, operand, (answer, answered)) = (other.clone(), operand.clone(), channel());
                thread::spawn(move || answer.send(eager.neg(&operand).is_ok()));
                said.send(answered.recv_timeout(Duration::from_secs(60))).unwrap();
            }
        });
        let two = eager.tensor(&[1], &[2.0f32]).unwrap();
        faults.watch(|_| ());
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [Ok(true)], "{}", device.properties().name);
        assert_eq!(eager.add(&one, &two).unwrap().read::<f32>().unwrap(), [3.0]);
    }
}

#[test]
fn a_batch_that_fails_is_never_read() {
    for device in devices() {
        for failing in 1..=4 {
            let (faults, device) = Faults::over(&device);
            faults.plant(Fault { call: Call::Submission, after: failing - 1, then: Then::GoesOn });
            let eager = Eager::with_options(&device, EagerOptions { batch: 2, ..EagerOptions::default() });
            let x = eager.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
            // Batches of two: the first of the batch that fails, and what is made of it, are lost.
            let mut made = vec![x.clone()];
            let mut refused = None;
            for step in 0..10 {
                match eager.exp(&made[made.len() - 1]) {
                    Ok(next) => made.push(next),
                    Err(error) => {
                        refused = Some((step, error));
                        break;
                    }
                }
            }
            let (step, error) = refused.unwrap();
            assert_eq!(step, 2 * failing, "the first call that needs what the batch did not compute");
            assert!(matches!(&error, Error::NotComputed { op: "exp", .. }), "{error}");
            assert!(error.to_string().contains("`exp`") && error.to_string().contains("planted"), "{error}");
            assert!(matches!(error.device(), Some(DeviceError::Driver { .. })), "{error}");
            for (index, tensor) in made.iter().enumerate() {
                let read = tensor.read::<f32>();
                if index as u64 > 2 * (failing - 1) {
                    assert!(matches!(read, Err(Error::NotComputed { .. })), "{index} of {failing}");
                } else {
                    assert!(read.is_ok(), "{index} of {failing}");
                }
            }
            assert!(eager.flush().is_err(), "it is told once");
            eager.flush().unwrap();
            // What does not need it goes on.
            assert_eq!(eager.neg(&x).unwrap().read::<f32>().unwrap(), [-1.0, -2.0, -3.0]);
        }
    }
}

/// A tensor whose download fails was computed, and is read again if the device goes on.
#[test]
fn a_read_that_fails_names_the_op() {
    for device in devices() {
        for then in [Then::GoesOn, Then::Lost] {
            let (faults, device) = Faults::over(&device);
            let eager = Eager::new(&device);
            let x = eager.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
            let y = eager.neg(&x).unwrap();
            faults.plant(Fault { call: Call::Readback, after: 0, then });
            let error = y.read::<f32>().unwrap_err();
            assert!(matches!(&error, Error::At { name, .. } if name == "neg"), "{error}");
            assert_eq!(error.is_lost(), then == Then::Lost, "{error}");
            if !error.is_lost() {
                assert_eq!(y.read::<f32>().unwrap(), [-1.0, -2.0, -3.0]);
            }
        }
    }
}

#[test]
fn memory_that_is_not_there_is_asked_for_again() {
    for device in devices() {
        for failing in 1..=6 {
            let (faults, faulty) = Faults::over(&device);
            faults.plant(Fault { call: Call::Allocation, after: failing - 1, then: Then::GoesOn });
            let eager = Eager::new(&faulty);
            let outcome = (|| {
                let x = eager.tensor(&[64], &vec![1.0f32; 64])?;
                let mut sum = x.clone();
                for _ in 0..3 {
                    sum = eager.add(&eager.neg(&sum)?, &x)?;
                }
                sum.read::<f32>()
            })();
            match outcome {
                Ok(values) => assert_eq!(values, vec![0.0; 64]),
                Err(error) => assert!(error.to_string().contains("out of memory"), "{error}"),
            }
            let held = eager.statistics().pool;
            assert_eq!(held.held_bytes, held.free_bytes, "nothing is leaked");
            drop(eager);
            // Other tests hold pipelines of the device.
            assert_eq!(faults.alive().memory, 0);
        }
    }
}

/// Right after a submission nothing is gathered, and the device may still hold what was let go.
#[test]
fn memory_is_asked_for_again_when_the_device_is_done() {
    for device in devices() {
        let (faults, faulty) = Faults::over(&device);
        let eager = Eager::with_options(&faulty, EagerOptions { batch: 1, ..EagerOptions::default() });
        let x = eager.tensor(&[1000], &vec![1.0f32; 1000]).unwrap();
        let first = eager.neg(&x).unwrap();
        faults.plant(Fault { call: Call::Allocation, after: 0, then: Then::GoesOn });
        let second = eager.neg(&first).unwrap();
        assert_eq!(faults.calls(Call::Wait), 1);
        assert_eq!(second.read::<f32>().unwrap(), vec![1.0; 1000]);
    }
}

#[test]
fn values_of_every_type_come_back() {
    for device in devices() {
        let eager = Eager::new(&device);
        for element in ElementType::ALL {
            let values = Values::of(element, 17, 4, 1.5);
            let tensor = eager.tensor(&[17], values.data()).unwrap();
            assert_eq!(tensor.host().unwrap().values, values.host().values, "{element}");
            assert_eq!((tensor.element(), tensor.shape()), (element, vec![17]));
        }
        let bytes = Data::from_bytes(F32, &[0; 12]).unwrap();
        assert_eq!(eager.tensor(&[3], bytes).unwrap().read::<f32>().unwrap(), [0.0; 3]);
    }
}

/// Constants of a graph become tensors of their own values; what a run or a model would have to give is refused by its name.
#[test]
fn leaves_of_graphs() {
    let mut graph = Graph::new();
    let first = graph.constant(F32, dims(&[2]), &[1.0f32, 2.0]).unwrap();
    let second = graph.constant(F32, dims(&[2]), &[3.0f32, 4.0]).unwrap();
    let empty = graph.constant(F32, dims(&[0, 2]), &[0.0f32; 0]).unwrap();
    let x = graph.input("x", F32, dims(&[2])).unwrap();
    let weights = graph.param("weights", F32, dims(&[2])).unwrap();
    let cache = graph.state("cache", F32, dims(&[2])).unwrap();
    let op = |tensor: Tensor| &graph.nodes()[tensor.node()].op;
    assert_ne!(op(first).attributes(), op(second).attributes());
    for device in devices() {
        let eager = Eager::new(&device);
        let add = |tensor| eager.add_shared(op(tensor), &[]);
        for (constant, values) in
            [(first, &[1.0f32, 2.0][..]), (second, &[3.0, 4.0]), (empty, &[]), (first, &[1.0, 2.0])]
        {
            let made = add(constant).unwrap().remove(0);
            assert_eq!(made.read::<f32>().unwrap(), values);
            assert_eq!(made.shape().len(), if values.is_empty() { 2 } else { 1 });
        }
        for (leaf, kind) in [(x, "input"), (weights, "param"), (cache, "state")] {
            let refused = add(leaf).unwrap_err().to_string();
            assert!(refused.contains(kind) && refused.contains("f32[2]"), "{refused}");
        }
        let one = eager.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        assert!(eager.add_shared(op(first), &[&one]).unwrap_err().to_string().contains("1 inputs given, 0 expected"));
        let ty = TensorType { element: F32, shape: dims(&[2]) };
        let short = Leaf { kind: LeafKind::Constant([0u8; 4].as_slice().into()), ty };
        let refused = eager.add_op(short, &[]).unwrap_err();
        assert!(matches!(refused, Error::Length { given: 1, expected: 2, .. }), "{refused}");
    }
}

/// Extents whose product is beyond 64 bits, but for one of which nothing is left.
#[test]
fn nothing_of_huge_extents_is_read_as_nothing() {
    for device in devices() {
        let eager = Eager::new(&device);
        let none = eager.tensor(&[1 << 32, 1 << 32, 0], &[0f32; 0]).unwrap();
        assert_eq!(none.read::<f32>().unwrap(), [0f32; 0]);
        assert_eq!(none.host().unwrap().shape, [1 << 32, 1 << 32, 0]);
    }
}

/// A view may have more elements than any memory holds: room for them was asked for on the host before a device had looked at their number.
#[test]
fn views_of_more_elements_than_there_can_be_are_not_read() {
    for device in devices() {
        let eager = Eager::new(&device);
        let one = eager.tensor(&[1], &[1.0f32]).unwrap();
        let truth = eager.tensor(&[1], &[true]).unwrap();
        let none = eager.tensor(&[1, 0], &[0.0f32; 0]).unwrap();
        let far = 1usize << 40;
        for extents in [&[1usize << 62][..], &[far, far]] {
            let wide = eager.expand(&one, dims(extents)).unwrap();
            let refused = [
                wide.read::<f32>().map(drop),
                wide.host().map(drop),
                eager.expand(&truth, dims(extents)).unwrap().read_bools().map(drop),
            ];
            for refused in refused {
                assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
            }
        }
        let none = eager.expand(&none, dims(&[far, 0])).unwrap();
        assert_eq!(none.read::<f32>().unwrap(), [0f32; 0]);
        // What is there is read as ever.
        let wide = eager.expand(&one, dims(&[3])).unwrap();
        assert_eq!((wide.read::<f32>().unwrap(), wide.host().unwrap().values), (vec![1.0; 3], vec![1.0; 3]));
        assert_eq!(eager.expand(&truth, dims(&[2])).unwrap().read_bools().unwrap(), [true; 2]);
    }
}
