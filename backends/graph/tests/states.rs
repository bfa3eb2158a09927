//! States on every device: versions in place and copied, whatever the axis, rank and type; what the next run finds; reading, replacing, resetting and forking; and every error.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::{Values, devices, devices_of_its_own, numbers};
use trefoil_dsl::device::{Device, DeviceOptions};
use trefoil_graph::compile::prove::{Event, prove};
use trefoil_graph::explain::ExplainedUse;
use trefoil_graph::graph::GraphError;
use trefoil_graph::op::HostTensor;
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Symbol, Tensor, reference};

const FLOAT: ElementType = ElementType::F32;

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    let executable = Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap();
    prove(graph, &executable.trace().unwrap()).unwrap();
    executable
}

fn at(symbol: &Symbol, value: usize) -> Extents {
    let mut extents = Extents::new();
    extents.set(symbol, value as i64).unwrap();
    extents
}

/// What steps write into states, and how much of it.
fn updates(executable: &Executable) -> Vec<ExplainedUse> {
    let uses = executable.explain().steps.into_iter().flat_map(|step| step.uses);
    uses.filter(|used| used.written && used.part.is_some()).collect()
}

/// `state` with `value` at a position of an axis, element by element.
fn with(state: &HostTensor, value: &HostTensor, axis: usize, position: usize) -> Vec<f64> {
    let mut values = state.values.clone();
    let inner: usize = state.shape[axis + 1..].iter().product();
    for outer in 0..state.shape[..axis].iter().product() {
        for row in 0..value.shape[axis] {
            for column in 0..inner {
                values[(outer * state.shape[axis] + position + row) * inner + column] =
                    value.values[(outer * value.shape[axis] + row) * inner + column];
            }
        }
    }
    values
}

/// An update of any shape at every position: what the same run reads, and what the next one finds.
fn every_position(device: &Device, element: ElementType, extents: &[usize], axis: usize, length: usize) {
    let mut g = Graph::new();
    let mut part = extents.to_vec();
    part[axis] = length;
    let symbol = Symbol::new("at", 0, extents[axis] as i64).unwrap();
    let state = g.state("s", element, shape(extents)).unwrap();
    let x = g.input("x", element, shape(&part)).unwrap();
    let new = g.update(state, x, axis as isize, &symbol).unwrap();
    // It is read within the run, moved on, and given out as it is.
    let order: Vec<usize> = (0..extents.len()).rev().collect();
    let turned = g.transpose(new, &order).unwrap();
    let turned = g.reverse(turned, &[0]).unwrap();
    g.output("new", new).unwrap();
    g.output("turned", turned).unwrap();
    let executable = compile(&g, device);
    let of = |extents: &[usize], seed| {
        let values = Values::of(element, extents.iter().product(), seed, 9.0);
        let host = HostTensor { shape: extents.to_vec(), values: values.host().values };
        (values, host)
    };
    let (first, mut expected) = of(extents, 5);
    executable.set_state("s", first.data()).unwrap();
    for position in 0..=extents[axis] - length {
        let (x, value) = of(&part, 100 + position as u32);
        expected.values = with(&expected, &value, axis, position);
        let outputs = executable.run(&[("x", x.data())], &at(&symbol, position)).unwrap();
        let what = format!("{element} {extents:?}, {length} at {position} of axis {axis}\n{}", executable.explain());
        assert_eq!(outputs.host("new").unwrap(), expected, "{what}");
        assert_eq!(executable.state("s").unwrap().host(), expected, "{what}");
        let leaves = [("s".to_owned(), expected.clone()), ("x".to_owned(), value)].into();
        let reference = reference::evaluate(&g, &leaves, &at(&symbol, position)).unwrap();
        assert_eq!(outputs.host("turned").unwrap(), reference["turned"], "{what}");
        assert_eq!(reference["new"], expected, "{what}");
    }
    let written = updates(&executable);
    assert_eq!(written.len(), 1);
    let bytes = |extents: &[usize]| extents.iter().product::<usize>() as u64 * element.bytes();
    assert_eq!((written[0].part, written[0].bytes), (Some(bytes(&part)), bytes(extents)));
    assert!(executable.explain().states[0].kept.is_empty());
}

#[test]
fn every_type_is_updated_along_every_axis() {
    for device in devices() {
        for element in ElementType::ALL {
            for axis in 0..3 {
                every_position(&device, element, &[3, 5, 7], axis, 1);
            }
        }
    }
}

#[test]
fn every_rank_is_updated_along_every_axis() {
    let extents = [3, 2, 4, 2, 16];
    for device in devices() {
        for rank in 1..=5 {
            for axis in 0..rank {
                for element in [FLOAT, ElementType::F16, ElementType::U8] {
                    every_position(&device, element, &extents[5 - rank..], axis, 2);
                }
            }
        }
    }
}

#[test]
fn long_rows_and_whole_states_are_updated() {
    for device in devices() {
        // Wide units, long runs and one that is not.
        every_position(&device, FLOAT, &[3, 1024], 0, 1);
        every_position(&device, ElementType::F16, &[2, 3, 130], 1, 2);
        every_position(&device, FLOAT, &[2, 3, 64], 1, 3);
        every_position(&device, ElementType::I64, &[1], 0, 1);
    }
}

#[test]
fn values_of_no_rows_change_nothing() {
    for device in devices() {
        for symbolic in [false, true] {
            let mut g = Graph::new();
            let rows = Symbol::new("rows", 0, 2).unwrap();
            let state = g.state("s", FLOAT, shape(&[4, 3])).unwrap();
            let length = if symbolic { Dim::from(&rows) } else { Dim::from(0) };
            let x = g.input("x", FLOAT, vec![length, 3.into()]).unwrap();
            let new = g.update(state, x, 0, 4 - g.type_of(x).unwrap().shape[0].bounds().1).unwrap();
            g.output("y", new).unwrap();
            let executable = compile(&g, &device);
            let first = numbers(12, 3, 1.0);
            executable.set_state("s", first.as_slice().into()).unwrap();
            let outputs = executable.run(&[("x", (&[0f32; 0]).into())], &at(&rows, 0)).unwrap();
            assert_eq!(outputs.get::<f32>("y").unwrap(), first);
            if symbolic {
                let outputs = executable.run(&[("x", (&[7f32; 6]).into())], &at(&rows, 2)).unwrap();
                let expected = [&first[..6], &[7.0; 6]].concat();
                assert_eq!(outputs.get::<f32>("y").unwrap(), expected);
            }
        }
        let mut g = Graph::new();
        let state = g.state("s", FLOAT, shape(&[0, 3])).unwrap();
        let y = g.neg(state).unwrap();
        g.output("y", y).unwrap();
        let executable = compile(&g, &device);
        assert_eq!(executable.run(&[], &Extents::new()).unwrap().shape("y").unwrap(), [0, 3]);
        assert_eq!(executable.fork().unwrap().state("s").unwrap().shape(), [0, 3]);
    }
}

#[test]
fn updates_follow_one_after_the_other() {
    for device in devices() {
        let mut g = Graph::new();
        let state = g.state("s", FLOAT, shape(&[4, 2])).unwrap();
        let x = g.input("x", FLOAT, shape(&[2, 2])).unwrap();
        let first = g.update(state, x, 0, 0).unwrap();
        let sums = g.sum(first, &[0], true).unwrap();
        // What the first update made decides on the second, which overwrites a part of it.
        let second = g.update(first, sums, 0, 1).unwrap();
        let y = g.neg(second).unwrap();
        g.output("y", y).unwrap();
        g.output("sums", sums).unwrap();
        let executable = compile(&g, &device);
        executable.set_state("s", (&[0f32, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]).into()).unwrap();
        let outputs = executable.run(&[("x", (&[10f32, 20.0, 30.0, 40.0]).into())], &Extents::new()).unwrap();
        assert_eq!(outputs.get::<f32>("sums").unwrap(), [44.0, 66.0]);
        let expected = [10.0, 20.0, 44.0, 66.0, 1.0, 2.0, 3.0, 4.0f32];
        assert_eq!(outputs.get::<f32>("y").unwrap(), expected.map(|x| -x));
        assert_eq!(executable.state("s").unwrap().get::<f32>().unwrap(), expected);
        let parts: Vec<_> = updates(&executable).iter().map(|used| used.part).collect();
        assert_eq!(parts, [Some(16), Some(8)]);
        assert!(executable.explain().states[0].kept.is_empty());
    }
}

#[test]
fn an_old_version_is_copied_only_for_those_who_come_after_the_update() {
    for device in devices() {
        for late in [false, true] {
            let mut g = Graph::new();
            let state = g.state("s", FLOAT, shape(&[4, 2])).unwrap();
            let x = g.input("x", FLOAT, shape(&[1, 2])).unwrap();
            let new = g.update(state, x, 0, 3).unwrap();
            // It is built after the update, and stands before it if it can.
            let y = if late { g.add(new, state).unwrap() } else { g.exp(state).unwrap() };
            g.output("y", y).unwrap();
            g.output("new", new).unwrap();
            if late {
                g.output("old", state).unwrap();
            }
            let executable = compile(&g, &device);
            let explanation = executable.explain();
            let kept = &explanation.states[0].kept;
            if late {
                assert_eq!(kept.len(), 1, "{explanation}");
                assert_eq!(kept[0].replaced_by, "s after update.2");
                assert_eq!(kept[0].readers, ["add.3", "output `old`"], "{explanation}");
                let line =
                    "`copy of s` is kept before `s after update.2`, for what comes after it: add.3, output `old`";
                assert!(explanation.to_string().contains(line), "{explanation}");
            } else {
                assert!(kept.is_empty(), "{explanation}");
            }
            executable.set_state("s", (&[1f32; 8]).into()).unwrap();
            let outputs = executable.run(&[("x", (&[5f32, 6.0]).into())], &Extents::new()).unwrap();
            let new = [1f32, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 6.0];
            assert_eq!(outputs.get::<f32>("new").unwrap(), new);
            if late {
                assert_eq!(outputs.get::<f32>("y").unwrap(), new.map(|x| x + 1.0));
                assert_eq!(outputs.get::<f32>("old").unwrap(), [1.0; 8]);
            } else {
                let close = |y: &f32| (y - std::f32::consts::E).abs() < 1e-5;
                assert!(outputs.get::<f32>("y").unwrap().iter().all(close));
            }
            assert_eq!(executable.state("s").unwrap().get::<f32>().unwrap(), new);
        }
    }
}

#[test]
fn states_change_places() {
    for device in devices() {
        let mut g = Graph::new();
        let a = g.state("a", ElementType::I32, shape(&[3])).unwrap();
        let b = g.state("b", ElementType::I32, shape(&[3])).unwrap();
        g.feed(a, b).unwrap();
        g.feed(b, a).unwrap();
        let executable = compile(&g, &device);
        let explanation = executable.explain();
        assert_eq!(explanation.states.iter().map(|state| state.kept.len()).sum::<usize>(), 1, "{explanation}");
        executable.set_state("a", (&[1i32, 2, 3]).into()).unwrap();
        executable.set_state("b", (&[4i32, 5, 6]).into()).unwrap();
        for swapped in [true, false, true] {
            executable.run(&[], &Extents::new()).unwrap();
            let (one, other) = if swapped { ([4, 5, 6], [1, 2, 3]) } else { ([1, 2, 3], [4, 5, 6]) };
            assert_eq!(executable.state("a").unwrap().get::<i32>().unwrap(), one);
            assert_eq!(executable.state("b").unwrap().get::<i32>().unwrap(), other);
        }
    }
}

#[test]
fn a_state_is_shifted_within_itself() {
    for device in devices() {
        // A window of the last four rows: all but the first go one up, and a new one comes behind.
        let mut g = Graph::new();
        let window = g.state("window", ElementType::U8, shape(&[4, 3])).unwrap();
        let x = g.input("x", ElementType::U8, shape(&[1, 3])).unwrap();
        let last = g.narrow(window, 0, 1, 3).unwrap();
        let moved = g.update(window, last, 0, 0).unwrap();
        let filled = g.update(moved, x, 0, 3).unwrap();
        g.output("y", filled).unwrap();
        let executable = compile(&g, &device);
        let mut rows = [[0u8; 3]; 4];
        for step in 1..7u8 {
            let x = [step, step * 10, step * 30];
            rows.rotate_left(1);
            rows[3] = x;
            let outputs = executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
            assert_eq!(outputs.get::<u8>("y").unwrap(), rows.concat(), "{}", executable.explain());
        }
    }
}

#[test]
fn what_is_fed_is_what_the_next_run_finds() {
    for device in devices() {
        let mut g = Graph::new();
        let count = g.state("count", ElementType::U32, vec![]).unwrap();
        let rows = g.state("rows", ElementType::F16, shape(&[4, 3])).unwrap();
        let one = g.scalar(1.0, ElementType::U32).unwrap();
        let next = g.add(count, one).unwrap();
        g.feed(count, next).unwrap();
        // What comes after a feed in the graph reads what the run found.
        let seen = g.mul(count, count).unwrap();
        g.output("seen", seen).unwrap();
        // A prefix of an output, and a row of it.
        let x = g.input("x", ElementType::F16, shape(&[5, 3])).unwrap();
        let y = g.neg(x).unwrap();
        g.output("y", y).unwrap();
        let prefix = g.narrow(y, 0, 0, 2).unwrap();
        let version = g.update(rows, prefix, 0, 0).unwrap();
        let row = g.narrow(y, 0, 4, 1).unwrap();
        g.update(version, row, 0, 3).unwrap();
        let executable = compile(&g, &device);
        let x: Vec<half::f16> = (1..=15).map(|x| half::f16::from_f32(x as f32)).collect();
        for run in 0..3u32 {
            let outputs = executable.run(&[("x", x.as_slice().into())], &Extents::new()).unwrap();
            assert_eq!(outputs.get::<u32>("seen").unwrap(), [run * run]);
        }
        assert_eq!(executable.state("count").unwrap().get::<u32>().unwrap(), [3]);
        let rows = executable.state("rows").unwrap().host();
        assert_eq!(rows.values, [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, 0.0, 0.0, 0.0, -13.0, -14.0, -15.0]);
    }
}

#[test]
fn states_are_read_replaced_reset_and_forked() {
    for device in devices_of_its_own() {
        let mut g = Graph::new();
        let position = Symbol::new("at", 0, 3).unwrap();
        let s = g.state("s", ElementType::I16, shape(&[4, 3])).unwrap();
        let flags = g.state("flags", ElementType::Bool, shape(&[3])).unwrap();
        g.state("idle", ElementType::F64, shape(&[2])).unwrap();
        let x = g.input("x", ElementType::I16, shape(&[1, 3])).unwrap();
        let w = g.param("w", ElementType::I16, shape(&[3])).unwrap();
        let y = g.add(x, w).unwrap();
        let new = g.update(s, y, 0, &position).unwrap();
        g.output("new", new).unwrap();
        g.output("flags", flags).unwrap();
        let model = Model::new();
        model.set("w", &[3], &[100i16, 200, 300]).unwrap();
        let executable = Executable::compile(&g, &model, &device, &Options::default()).unwrap();
        assert_eq!(executable.states().map(|(name, _)| name).collect::<Vec<_>>(), ["s", "flags", "idle"]);
        let run = |executable: &Executable, x: [i16; 3], row: usize| {
            executable.run(&[("x", (&x).into())], &at(&position, row)).unwrap()
        };
        let rows = |executable: &Executable| executable.state("s").unwrap().get::<i16>().unwrap().to_vec();
        assert_eq!(rows(&executable), [0; 12]);
        run(&executable, [1, 2, 3], 1);
        executable.set_state("flags", [true, false, true].as_slice().into()).unwrap();
        executable.set_state("idle", (&[0.5f64, -1.0]).into()).unwrap();

        // A fork starts from here, shares the params, and goes its own way.
        let before = device.backend().counters();
        let fork = executable.fork().unwrap();
        let after = device.backend().counters();
        assert_eq!(after.pipelines, before.pipelines, "a fork compiles nothing");
        assert_eq!(after.recordings, before.recordings + 1);
        let own = executable.explain().activations.len() + executable.states().count();
        assert_eq!(after.allocations - before.allocations, own as u64, "and copies no params");
        let before = device.backend().counters();
        assert_eq!(run(&fork, [0, 0, 0], 0).get_bools("flags").unwrap(), [true, false, true]);
        run(&executable, [5, 6, 7], 3);
        let [one, two] = [[101, 202, 303], [100, 200, 300]];
        assert_eq!(rows(&executable), [[0; 3], one, [0; 3], [105, 206, 307]].concat());
        assert_eq!(rows(&fork), [two, one, [0; 3], [0; 3]].concat());
        model.set("w", &[3], &[0i16; 3]).unwrap();
        for executable in [&executable, &fork] {
            run(executable, [9, 9, 9], 2);
            assert_eq!(rows(executable)[6..9], [9, 9, 9], "params are shared");
        }
        let again = fork.fork().unwrap();
        drop(executable);
        // One is reset by name, then all.
        fork.reset_state("s").unwrap();
        assert_eq!(rows(&fork), [0; 12]);
        assert_eq!(fork.state("flags").unwrap().get_bools().unwrap(), [true, false, true]);
        fork.reset().unwrap();
        assert_eq!(fork.state("flags").unwrap().get_bools().unwrap(), [false; 3]);
        assert_eq!(fork.state("idle").unwrap().get::<f64>().unwrap(), [0.0; 2]);
        assert_eq!(rows(&again), [two, one, [9; 3], [0; 3]].concat());
        assert_eq!(again.state("idle").unwrap().get::<f64>().unwrap(), [0.5, -1.0]);
        let after = device.backend().counters();
        assert_eq!((after.pipelines, after.recordings), (before.pipelines, before.recordings + 1));
    }
}

#[test]
fn forks_run_on_threads_of_their_own() {
    for device in devices() {
        let mut g = Graph::new();
        let total = g.state("total", FLOAT, shape(&[1000])).unwrap();
        let x = g.input("x", FLOAT, shape(&[1000])).unwrap();
        let sum = g.add(total, x).unwrap();
        g.feed(total, sum).unwrap();
        let first = compile(&g, &device);
        let forks: Vec<_> = (0..3).map(|_| first.fork().unwrap()).collect();
        std::thread::scope(|scope| {
            for (index, fork) in forks.iter().enumerate() {
                scope.spawn(move || {
                    let x = vec![index as f32 + 1.0; 1000];
                    for _ in 0..20 {
                        fork.run(&[("x", x.as_slice().into())], &Extents::new()).unwrap();
                    }
                });
            }
        });
        for (index, fork) in forks.iter().enumerate() {
            let total = fork.state("total").unwrap();
            assert_eq!(total.get::<f32>().unwrap(), vec![20.0 * (index as f32 + 1.0); 1000]);
        }
        assert_eq!(first.state("total").unwrap().get::<f32>().unwrap(), [0.0; 1000]);
    }
}

#[test]
fn a_position_outside_the_state_is_an_error_that_changes_nothing() {
    for device in devices() {
        let mut g = Graph::new();
        let position = Symbol::new("at", 0, 100).unwrap();
        let rows = Symbol::new("rows", 0, 4).unwrap();
        let cache = g.state("cache", FLOAT, shape(&[2, 8])).unwrap();
        let x = g.input("x", FLOAT, vec![2.into(), Dim::from(&rows)]).unwrap();
        g.update(cache, x, 1, Dim::from(&position) - 1).unwrap();
        let executable = compile(&g, &device);
        let first = numbers(16, 3, 1.0);
        executable.set_state("cache", first.as_slice().into()).unwrap();
        for (position_value, count, fits) in [(0, 1, false), (9, 1, false), (7, 3, false), (6, 3, true), (9, 0, true)] {
            let mut extents = at(&position, position_value);
            extents.set(&rows, count).unwrap();
            let x = vec![1f32; 2 * count as usize];
            match executable.run(&[("x", x.as_slice().into())], &extents) {
                Ok(_) => assert!(fits),
                Err(Error::Position { state, axis: 1, position, length, extent: 8 }) => {
                    assert!(!fits);
                    assert_eq!((state.as_str(), position, length), ("cache", position_value as i64 - 1, count));
                    assert!(matches!(executable.profile(&extents), Err(Error::Position { .. })));
                }
                Err(other) => panic!("{other}"),
            }
            if !fits {
                assert_eq!(executable.state("cache").unwrap().get::<f32>().unwrap(), first);
            }
        }
        let error = Error::Position { state: "cache".into(), axis: 1, position: 8, length: 1, extent: 8 };
        assert_eq!(error.to_string(), "state `cache`, axis 1: 1 positions from 8 on do not lie within its 8");
    }
}

#[test]
fn what_does_not_fit_is_refused_when_the_graph_is_built() {
    let mut g = Graph::new();
    let s = g.state("s", FLOAT, shape(&[4, 3])).unwrap();
    let x = g.input("x", FLOAT, shape(&[2, 3])).unwrap();
    let halves = g.input("halves", ElementType::F16, shape(&[2, 3])).unwrap();
    let wide = g.input("wide", FLOAT, shape(&[2, 4])).unwrap();
    let long = g.input("long", FLOAT, shape(&[5, 3])).unwrap();
    let flat = g.input("flat", FLOAT, shape(&[3])).unwrap();
    let far = Symbol::new("far", 3, 9).unwrap();
    let refused =
        |g: &mut Graph, value, axis, position: Dim| g.update(s, value, axis, position).unwrap_err().to_string();
    for (value, axis, position, words) in [
        (x, 2, Dim::from(0), ["axis", "below 2"]),
        (x, -3, Dim::from(0), ["axis", "below 2"]),
        (halves, 0, Dim::from(0), ["f16", "f32 (cast"]),
        (wide, 0, Dim::from(0), ["f32[2, 4]", "the extents of f32[4, 3], but along axis 0"]),
        (long, 0, Dim::from(0), ["f32[5, 3]", "it may have fewer"]),
        (flat, 0, Dim::from(0), ["f32[3]", "f32[4, 3]"]),
        (x, 0, Dim::from(3), ["`position` is 3", "axis 0 of f32[4, 3] holds f32[2, 3]"]),
        (x, 0, Dim::from(-1), ["`position` is -1", "update(s: f32[4, 3], x: f32[2, 3])"]),
        (x, 0, Dim::from(&far), ["`position` is far", "axis 0"]),
    ] {
        let message = refused(&mut g, value, axis, position);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    assert!(g.feed(s, x).unwrap_err().to_string().contains("all of f32[4, 3]"));
    let y = g.neg(x).unwrap();
    let error = g.update(y, x, 0, 0).unwrap_err();
    assert!(matches!(&error, GraphError::NoState { node } if node.starts_with("neg.")), "{error}");
    assert!(matches!(g.update(x, x, 0, 0), Err(GraphError::NoState { .. })));

    // There is one newest version.
    let first = g.update(s, x, 0, 0).unwrap();
    let second = g.update(first, x, 0, 1).unwrap();
    for old in [s, first] {
        let error = g.update(old, x, 0, 2).unwrap_err();
        assert!(matches!(&error, GraphError::OldVersion { state, .. } if state == "s"), "{error}");
    }
    let message = g.update(s, x, 0, 2).unwrap_err().to_string();
    assert!(message.contains("`s` was updated by `update.7` already") && message.contains("`update.8`"), "{message}");
    g.feed(second, s).unwrap();
    assert!(matches!(g.update(second, x, 0, 0), Err(GraphError::OldVersion { .. })));

    let mut other = Graph::new();
    assert!(matches!(other.update(s, x, 0, 0), Err(GraphError::OtherGraph { .. })));
    assert!(matches!(other.feed(s, x), Err(GraphError::OtherGraph { .. })));
    other.input("taken", FLOAT, shape(&[1])).unwrap();
    assert!(matches!(other.state("taken", FLOAT, shape(&[1])), Err(GraphError::NameTaken { .. })));
    let message = other.state("t", FLOAT, vec![Dim::from(&far)]).unwrap_err().to_string();
    assert!(message.contains("state `t`") && message.contains("f32[far]"), "{message}");
}

#[test]
fn what_does_not_fit_a_state_is_refused_by_the_executable() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let mut g = Graph::new();
    g.state("s", FLOAT, shape(&[4])).unwrap();
    let executable = compile(&g, &device);
    let unknown = |result: Result<(), Error>| {
        assert!(
            matches!(&result, Err(Error::Unknown { what: "state", name, known }) if name == "t" && known == "s"),
            "{result:?}"
        );
    };
    unknown(executable.state("t").map(drop));
    unknown(executable.set_state("t", (&[0f32; 4]).into()));
    unknown(executable.reset_state("t"));
    let wrong = executable.set_state("s", (&[0i32; 4]).into());
    assert!(matches!(wrong, Err(Error::ElementType { what: "state", .. })));
    let short = executable.set_state("s", (&[0f32; 3]).into());
    assert!(matches!(short, Err(Error::Length { what: "state", given: 3, expected: 4, .. })));
    let wrong = executable.state("s").unwrap().get::<i32>().map(drop);
    assert!(matches!(wrong, Err(Error::ElementType { what: "state", .. })));
    let given = executable.run(&[("s", (&[0f32; 4]).into())], &Extents::new());
    assert!(matches!(given, Err(Error::Unknown { what: "input", .. })), "a state is no input");
}

#[test]
fn states_share_their_memory_with_nothing() {
    for device in devices() {
        let mut g = Graph::new();
        let s = g.state("s", FLOAT, shape(&[64])).unwrap();
        let x = g.input("x", FLOAT, shape(&[64])).unwrap();
        let y = g.tanh(x).unwrap();
        let z = g.sum(y, &[0], true).unwrap();
        let new = g.update(s, z, 0, 5).unwrap();
        let y = g.mul(new, y).unwrap();
        g.output("y", y).unwrap();
        let executable = compile(&g, &device);
        let explanation = executable.explain();
        let state = &explanation.states[0];
        assert_eq!((state.name.as_str(), state.bytes, state.ty.to_string().as_str()), ("s", 256, "f32[64]"));
        assert!(explanation.to_string().contains("state s: f32[64], 256 bytes, buffer"), "{explanation}");
        assert!(explanation.to_string().contains("-> s after update.4: 4 of 256 bytes"), "{explanation}");
        for used in explanation.steps.iter().flat_map(|step| &step.uses).filter(|used| used.buffer == state.buffer) {
            assert!(used.tensor == "s" || used.tensor.starts_with("s after"), "{explanation}");
        }
    }
}

#[test]
fn the_proof_finds_planted_defects_of_states() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let mut g = Graph::new();
    let s = g.state("s", FLOAT, shape(&[4, 3])).unwrap();
    let x = g.input("x", FLOAT, shape(&[1, 3])).unwrap();
    let before = g.exp(s).unwrap();
    let first = g.update(s, x, 0, 0).unwrap();
    let second = g.update(first, x, 0, 2).unwrap();
    let y = g.neg(second).unwrap();
    g.output("before", before).unwrap();
    g.output("y", y).unwrap();
    let options = Options { fuse: false, ..Options::default() };
    let good = Executable::compile(&g, &Model::new(), &device, &options).unwrap().trace().unwrap();
    prove(&g, &good).unwrap();
    let steps: Vec<usize> =
        (0..good.events.len()).filter(|index| matches!(good.events[*index], Event::Step { .. })).collect();
    assert_eq!(steps.len(), 4);
    for index in 0..good.events.len() {
        let mut bad = good.clone();
        let removed = bad.events.remove(index);
        assert!(prove(&g, &bad).is_err(), "without {removed:?}");
    }
    for pair in steps.windows(2) {
        let mut bad = good.clone();
        bad.events.swap(pair[0], pair[1]);
        bad.events = bad.events.into_iter().flat_map(|event| [Event::Barrier, event]).collect();
        assert!(prove(&g, &bad).is_err(), "{pair:?} swapped");
    }
    // An update into other memory, or into a part of the state.
    for change in 0..2 {
        let mut bad = good.clone();
        let Event::Step { accesses, .. } = &mut bad.events[steps[2]] else { panic!("no step") };
        for access in accesses.iter_mut().filter(|access| access.writes) {
            if change == 0 { access.buffer += 9 } else { access.bytes -= 4 }
        }
        assert!(prove(&g, &bad).is_err(), "change {change}");
    }
    // The last update is claimed, but what was written is the version before.
    let mut bad = good.clone();
    bad.given.retain(|given| given.writes && given.meaning != good.given[0].meaning);
    assert!(prove(&g, &bad).is_err());
}

/// Numbers without a pattern.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A graph of two states, whose versions of all ages are read, turned, summed and written into each other.
fn drawn(seed: u64) -> (Graph, Symbol) {
    let mut draw = Draw(seed);
    let mut g = Graph::new();
    let position = Symbol::new("at", 0, 2).unwrap();
    let mut versions: Vec<Vec<Tensor>> =
        ["a", "b"].map(|name| vec![g.state(name, FLOAT, shape(&[4, 4])).unwrap()]).into();
    let mut pool = vec![g.input("x", FLOAT, shape(&[4, 4])).unwrap()];
    for step in 0..4 + draw.below(10) {
        let state = draw.below(2);
        let any = versions[state][draw.below(versions[state].len())];
        let other = pool[draw.below(pool.len())];
        match draw.below(6) {
            0 => pool.push(any),
            1 => {
                let turned = g.transpose(any, &[1, 0]).unwrap();
                pool.push(g.add(turned, other).unwrap());
            }
            2 => {
                let mean = g.mean(other, &[1], true).unwrap();
                pool.push(g.sub(any, mean).unwrap());
            }
            3 => g.output(&format!("y{step}"), other).unwrap(),
            _ => {
                let axis = draw.below(2);
                let count = 1 + draw.below(2);
                let value = g.narrow(other, axis as isize, draw.below(2), count).unwrap();
                let newest = versions[state][versions[state].len() - 1];
                let new = match draw.below(3) {
                    0 => g.update(newest, value, axis as isize, draw.below(2)),
                    _ => g.update(newest, value, axis as isize, &position),
                };
                versions[state].push(new.unwrap());
            }
        }
    }
    for (index, tensor) in pool.iter().enumerate() {
        g.output(&format!("p{index}"), *tensor).unwrap();
    }
    (g, position)
}

#[test]
fn drawn_graphs_of_states_agree_with_their_references() {
    let (mut copied, mut in_place) = (0, 0);
    for device in devices() {
        let count = if device.kind() == trefoil_dsl::device::DeviceKind::Cpu { 150 } else { 25 };
        for seed in 0..count {
            let (g, position) = drawn(seed);
            // What the reference leaves in the states is seen through outputs, which the device's graph does not have.
            let mut seen = g.clone();
            for (name, state) in ["a", "b"].into_iter().zip(g.states()) {
                seen.output(name, state.left).unwrap();
            }
            let options = Options { fuse: seed % 3 > 0, ..Options::default() };
            let executable = Executable::compile(&g, &Model::new(), &device, &options).unwrap();
            prove(&g, &executable.trace().unwrap()).unwrap();
            let explanation = executable.explain();
            copied += explanation.states.iter().map(|state| state.kept.len()).sum::<usize>();
            in_place += updates(&executable).len();
            let mut leaves: BTreeMap<String, HostTensor> = BTreeMap::new();
            for run in 0..3usize {
                let x = numbers(16, 7 + run as u32, 1.0);
                leaves.insert("x".into(), Values::F32(x.clone()).host());
                let extents = at(&position, run);
                let expected = reference::evaluate(&seen, &leaves, &extents).unwrap();
                let outputs = executable.run(&[("x", x.as_slice().into())], &extents).unwrap();
                for (name, wanted) in &expected {
                    let got = match name.as_str() {
                        "a" | "b" => executable.state(name).unwrap().host(),
                        name => outputs.host(name).unwrap(),
                    };
                    assert_eq!(got.shape, wanted.shape);
                    for (got, wanted) in got.values.iter().zip(&wanted.values) {
                        let close = (got - wanted).abs() <= 1e-4 * wanted.abs().max(1.0);
                        assert!(close, "seed {seed}, run {run}, `{name}`: {got}, not {wanted}\n{explanation}");
                    }
                }
                for name in ["a", "b"] {
                    leaves.insert(name.into(), executable.state(name).unwrap().host());
                }
            }
        }
    }
    assert!(copied >= 50 && in_place >= 200, "{copied} versions copied, {in_place} updates");
}
