//! States on every device: updated along every axis, of every rank and type; what the next run finds; read, replaced, fed, reset and forked; and every error.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::shape;
use common::states::{at, compile, updates};
use common::{Values, devices, devices_of_its_own, numbers};
use trefoil_dsl::device::{Device, DeviceOptions};
use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Options, Symbol, reference,
};

const FLOAT: ElementType = ElementType::F32;

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
            let none = if symbolic { at(&rows, 0) } else { Extents::new() };
            let outputs = executable.run(&[("x", (&[0f32; 0]).into())], &none).unwrap();
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
fn values_that_lie_otherwise_are_written_as_they_are() {
    for device in devices() {
        let mut g = Graph::new();
        let s = g.state("s", ElementType::I32, shape(&[4, 3])).unwrap();
        // A number for a whole row, a column lying down, what the graph has, and what the model has.
        let nine = g.scalar(9i64, ElementType::I32).unwrap();
        let row = g.expand(nine, shape(&[1, 3])).unwrap();
        let x = g.input("x", ElementType::I32, shape(&[3, 2])).unwrap();
        let turned = g.transpose(x, &[1, 0]).unwrap();
        let column = g.narrow(turned, 0, 1, 1).unwrap();
        let constant = g.constant(ElementType::I32, shape(&[1, 3]), &[1i32, 2, 3]).unwrap();
        let param = g.param("w", ElementType::I32, shape(&[1, 3])).unwrap();
        let mut newest = s;
        for (position, value) in [row, column, constant, param].into_iter().enumerate() {
            newest = g.update(newest, value, 0, position).unwrap();
        }
        let model = Model::new();
        model.set("w", &[1, 3], &[4i32, 5, 6]).unwrap();
        let executable = Executable::compile(&g, &model, &device, &Options::default()).unwrap();
        executable.run(&[("x", (&[0i32, 10, 0, 20, 0, 30]).into())], &Extents::new()).unwrap();
        let expected = [9, 9, 9, 10, 20, 30, 1, 2, 3, 4, 5, 6];
        assert_eq!(executable.state("s").unwrap().get::<i32>().unwrap(), expected, "{}", executable.explain());
    }
}

#[test]
fn what_is_fed_is_what_the_next_run_finds() {
    for device in devices() {
        let mut g = Graph::new();
        let count = g.state("count", ElementType::U32, ()).unwrap();
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
fn rows_of_an_output_are_fed_after_a_run() {
    for device in devices() {
        for element in [FLOAT, ElementType::U8] {
            let mut g = Graph::new();
            let rows = Symbol::new("rows", 1, 5).unwrap();
            let s = g.state("s", element, shape(&[4, 3])).unwrap();
            let other = g.state("other", element, shape(&[4, 4])).unwrap();
            let x = g.input("x", element, vec![Dim::from(&rows), 3.into()]).unwrap();
            let turned = g.reverse(x, &[0]).unwrap();
            g.output("turned", turned).unwrap();
            g.output("s", s).unwrap();
            g.output("other", other).unwrap();
            let executable = compile(&g, &device);
            let too_early = executable.feed("turned", 0..1, "s", 0).unwrap_err().to_string();
            assert_eq!(too_early, "output `turned` cannot be fed to state `s`: no run has left it");
            let x = Values::of(element, 12, 9, 4.0);
            executable.run(&[("x", x.data())], &at(&rows, 4)).unwrap();
            let values = x.host().values;
            executable.feed("turned", 1..3, "s", 2).unwrap();
            executable.feed("turned", 2..2, "s", 4).unwrap();
            let expected = [&[0.0; 6][..], &values[6..9], &values[3..6]].concat();
            assert_eq!(executable.state("s").unwrap().host().values, expected);
            // An output that lies in the state itself, as a run finds it there; not as it was written since.
            let stale = executable.feed("s", 2..3, "s", 0).unwrap_err().to_string();
            assert!(stale.ends_with("it lies in state `s`, which was written since"), "{stale}");
            executable.run(&[("x", x.data())], &at(&rows, 4)).unwrap();
            executable.feed("s", 2..3, "s", 0).unwrap();
            let expected = [&values[6..9], &[0.0; 3], &values[6..9], &values[3..6]].concat();
            assert_eq!(executable.state("s").unwrap().host().values, expected);

            for (rows, state, row, words) in [
                (3..5, "s", 0, "rows 3..5 given of its 4"),
                (0..2, "s", 3, "2 rows from 3 on do not lie within the state's 4"),
                (0..1, "s", u64::MAX, "do not lie within"),
                (0..1, "other", 0, "[4, 3], the state"),
            ] {
                let message = executable.feed("turned", rows, state, row).unwrap_err().to_string();
                assert!(message.contains(words), "{message}");
            }
            assert!(matches!(executable.feed("x", 0..1, "s", 0), Err(Error::Unknown { what: "output", .. })));
            assert!(matches!(executable.feed("s", 0..1, "x", 0), Err(Error::Unknown { what: "state", .. })));
        }
    }
}

#[test]
fn rows_that_could_not_be_read_are_not_fed() {
    for device in devices() {
        let (faults, faulty) = Faults::over(&device);
        let mut g = Graph::new();
        let s = g.state("s", ElementType::U8, shape(&[4, 3])).unwrap();
        let x = g.input("x", ElementType::U8, shape(&[4, 3])).unwrap();
        let turned = g.reverse(x, &[0]).unwrap();
        g.output("turned", turned).unwrap();
        g.output("s", s).unwrap();
        let executable = compile(&g, &faulty);
        executable.run(&[("x", (&[1u8; 12]).into())], &Extents::new()).unwrap();
        faults.plant(Fault { call: Call::Readback, after: 0, then: Then::GoesOn });
        assert!(executable.feed("s", 2..3, "s", 0).is_err());
        // Nothing was written, so that the output is still what the run left.
        executable.feed("s", 2..3, "s", 0).unwrap();
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
            let leaf = HostTensor { shape: vec![x.len()], values: vec![1.0; x.len()] };
            let refused = reference::evaluate(&g, &[("x".to_owned(), leaf)].into(), &extents).err();
            assert_eq!(
                matches!(&refused, Some(Error::Position { state, .. }) if state == "cache"),
                !fits,
                "{refused:?}"
            );
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
    assert!(matches!(wrong, Err(Error::ReadAs { what: "state", .. })));
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
