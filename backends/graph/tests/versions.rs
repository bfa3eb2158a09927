//! Versions of states within a graph: made in place or copied, one after the other, read at any age; and the proof of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::cases::shape;
use common::states::{at, compile, updates};
use common::{Values, devices, is_close, numbers};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};
use trefoil_graph::compile::prove::{Event, prove};
use trefoil_graph::{
    ElementType, Executable, Extents, Graph, GraphError, HostTensor, Model, Options, Symbol, Tensor, reference,
};

const FLOAT: ElementType = ElementType::F32;

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
        let count = if device.kind() == DeviceKind::Cpu { 150 } else { 25 };
        for seed in 0..count {
            let (g, position) = drawn(seed);
            // What the reference leaves in the states is seen through outputs, which the device's graph does not have.
            let mut seen = g.clone();
            for (name, state) in ["a", "b"].into_iter().zip(g.states()) {
                seen.output(name, state.left).unwrap();
            }
            let options = Options { fuse: seed % 3 > 0, ..Options::default() };
            let executable = Executable::compile(&g, &Model::new(), &device, &options).unwrap();
            let symbols: Vec<Symbol> = executable.symbols().cloned().collect();
            prove(&g, &executable.trace().unwrap()).unwrap();
            let explanation = executable.explain();
            copied += explanation.states.iter().map(|state| state.kept.len()).sum::<usize>();
            in_place += updates(&executable).len();
            let mut leaves: BTreeMap<String, HostTensor> = BTreeMap::new();
            for run in 0..3usize {
                let x = numbers(16, 7 + run as u32, 1.0);
                leaves.insert("x".into(), Values::F32(x.clone()).host());
                // Not every graph has an update there.
                let extents = at(&position, run).only(&symbols);
                let expected = reference::evaluate(&seen, &leaves, &extents).unwrap();
                let outputs = executable.run(&[("x", x.as_slice().into())], &extents).unwrap();
                for (name, wanted) in &expected {
                    let got = match name.as_str() {
                        "a" | "b" => executable.state(name).unwrap().host(),
                        name => outputs.host(name).unwrap(),
                    };
                    assert_eq!(got.shape, wanted.shape);
                    for (got, wanted) in got.values.iter().zip(&wanted.values) {
                        assert!(
                            is_close(*got, *wanted, 1e-4),
                            "seed {seed}, run {run}, `{name}`: {got}, not {wanted}\n{explanation}"
                        );
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

/// An update that is added as any other op is added: nodes of one graph put into another.
#[test]
fn updates_of_another_graph_are_versions_too() {
    let mut original = Graph::new();
    let state = original.state("s", FLOAT, shape(&[3])).unwrap();
    let x = original.input("x", FLOAT, shape(&[1])).unwrap();
    let part = original.update(state, x, 0, 1).unwrap();
    let doubled = original.add(part, part).unwrap();
    original.feed(part, doubled).unwrap();

    // What is no state is not written over, whatever memory it lies in.
    let update = &original.nodes()[part.node()].op;
    let mut other = Graph::new();
    let weights = other.param("weights", FLOAT, shape(&[3])).unwrap();
    let x = other.input("x", FLOAT, shape(&[1])).unwrap();
    let refused = other.add_shared(update, &[weights, x]).unwrap_err();
    assert!(matches!(&refused, GraphError::NoState { node } if node == "weights"), "{refused}");

    let state = other.state("s", FLOAT, shape(&[3])).unwrap();
    let version = other.add_shared(update, &[state, x]).unwrap()[0];
    let refused = other.add_shared(update, &[state, x]).unwrap_err();
    assert!(matches!(&refused, GraphError::OldVersion { given, .. } if given == "s"), "{refused}");
    let doubled = other.add(version, version).unwrap();
    let feed = original.nodes().last().unwrap();
    other.add_shared(&feed.op, &[version, doubled]).unwrap();
    for device in devices() {
        for graph in [&original, &other] {
            let executable = compile(graph, &device);
            executable.set_state("s", (&[1f32, 2.0, 3.0]).into()).unwrap();
            executable.run(&[("x", (&[10f32]).into())], &Extents::new()).unwrap();
            let left = executable.state("s").unwrap();
            assert_eq!(left.get::<f32>().unwrap(), [2.0, 20.0, 6.0], "{}", executable.explain());
        }
    }
}
