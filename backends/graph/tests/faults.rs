//! Devices that fail at each of the calls that they get, one after the other: what answers is right, what is not right is an `Err` that names what it was at, states are never half of one run and half of another, and nothing stays behind.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use common::transformer::{Builder, FIRST, STEPS, VOCABULARY, model};
use common::{devices, devices_of_its_own, numbers};
use trefoil_dsl::device::{Device, DeviceKind, MemoryRange};
use trefoil_dsl::support::faults::{Alive, Call, Fault, Faults, Then};
use trefoil_graph::ops::Sweep;
use trefoil_graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Result, Symbol};

/// No test of one fault takes as long, so that one that does hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// What a call of a script gave.
type Answer = (&'static str, Result<Vec<f32>>);

/// The loop that writes a text, with what engines do between: a fork, a state that is read, replaced and fed.
struct Decoding {
    graph: Graph,
    at: Symbol,
    model: Model,
    /// Every name that an error may tell.
    names: BTreeSet<String>,
}

impl Decoding {
    fn new() -> Self {
        let at = Symbol::new("at", 0, STEPS as i64 - 1).unwrap();
        let mut one = Builder::default().transformer(&Dim::from(1), Some(&Dim::from(&at)));
        let last = one.g.state("last", ElementType::F32, [1, 1, VOCABULARY]).unwrap();
        let doubled = one.g.add(last, last).unwrap();
        one.g.output("doubled", doubled).unwrap();
        let names = one.params.keys().cloned().chain(one.g.nodes().iter().map(|node| node.name.clone()));
        // What binds where an optional operand is not given.
        let names = names.chain(["an operand that is not there".to_owned()]).collect();
        Self { model: model(&one.params), graph: one.g, at, names }
    }

    fn extents(&self, at: i64) -> Extents {
        Extents::with([(&self.at, at)]).unwrap()
    }

    fn step(&self, executable: &Executable, at: i64) -> Result<Vec<f32>> {
        let outputs = executable.run(&[("ids", (&[FIRST + at as u32]).into())], &self.extents(at))?;
        Ok([outputs.get::<f32>("logits")?, outputs.get::<f32>("doubled")?].concat())
    }

    /// The script. A call that fails is answered by its error, and those that need what it should have made are left out.
    fn play(&self, device: &Device) -> Vec<Answer> {
        let mut answers = Vec::new();
        let compiled = Executable::compile(&self.graph, &self.model, device, &Options::default());
        let executable = match compiled {
            Ok(executable) => executable,
            Err(error) => return vec![("compile", Err(error))],
        };
        let state = |executable: &Executable, name: &str| -> Result<Vec<f32>> {
            Ok(executable.state(name)?.get::<f32>()?.to_vec())
        };
        let done = |outcome: Result<()>| outcome.map(|()| Vec::new());
        answers.push(("step 0", self.step(&executable, 0)));
        answers.push(("step 1", self.step(&executable, 1)));
        answers.push(("keys", state(&executable, "0.keys")));
        match executable.fork() {
            Ok(fork) => {
                answers.push(("step 2 of the fork", self.step(&fork, 2)));
                answers.push(("keys of the fork", state(&fork, "1.keys")));
            }
            Err(error) => answers.push(("fork", Err(error))),
        }
        answers.push(("feed", done(executable.feed("logits", 0..1, "last", 0))));
        answers.push(("last", state(&executable, "last")));
        answers.push(("step 2", self.step(&executable, 2)));
        let keys = numbers(2 * STEPS * 16, 9, 1.0);
        answers.push(("set", done(executable.set_state("1.keys", (&keys).into()))));
        answers.push(("keys that were set", state(&executable, "1.keys")));
        answers.push(("reset of one", done(executable.reset_state("last"))));
        answers.push(("step 3", self.step(&executable, 3)));
        // From the beginning, whatever was.
        let mut begin_again = || {
            let began = answers.len();
            answers.push(("reset", done(executable.reset())));
            answers.push(("step 0", self.step(&executable, 0)));
            answers.push(("keys after reset", state(&executable, "0.keys")));
            answers[began..].iter().all(|(_, answer)| answer.is_ok())
        };
        if !begin_again() {
            begin_again();
        }
        answers
    }
}

/// Runs something that must come to an end.
fn ends<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (give, take) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let made = act();
        let _ = give.send(());
        made
    });
    let ended = take.recv_timeout(LONGEST);
    assert!(!matches!(ended, Err(mpsc::RecvTimeoutError::Timeout)), "{what} hangs");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether an error names something that its reader knows.
fn names_something(error: &Error, names: &BTreeSet<String>) -> bool {
    let text = error.to_string();
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    quoted.iter().any(|quoted| names.iter().any(|name| quoted.contains(name.as_str())))
}

/// Holds what a script answered with a fault against what it answers without.
fn hold(what: &str, answers: &[Answer], right: &[Answer], names: &BTreeSet<String>, then: Then) {
    let mut first: Option<&Error> = None;
    for (label, answer) in answers {
        match answer {
            Ok(values) => {
                let wanted = right.iter().find(|(known, _)| known == label).map(|(_, wanted)| wanted.as_ref().unwrap());
                // What a failure left out may be asked for again by another name.
                assert!(wanted.is_none_or(|wanted| wanted == values), "{what}: `{label}` is wrong");
                assert!(first.is_none() || then == Then::GoesOn, "{what}: `{label}` is answered by a lost device");
            }
            Err(error) => {
                assert!(names_something(error, names) || first.is_some(), "{what}: `{label}`: {error}");
                first.get_or_insert(error);
            }
        }
    }
    if then == Then::GoesOn && answers.len() > 1 {
        let last = &answers[answers.len() - 1];
        assert!(last.1.is_ok(), "{what}: a device that goes on serves again after a reset: {:?}", last.1);
    }
}

#[test]
fn a_text_is_written_right_or_not_at_all_whichever_call_fails() {
    let decoding = std::sync::Arc::new(Decoding::new());
    for inner in devices_of_its_own() {
        let name = inner.properties().name.clone();
        let (faults, device) = Faults::over(&inner);
        let right = decoding.play(&device);
        right.iter().for_each(|(label, answer)| assert!(answer.is_ok(), "{label}: {:?}", answer.as_ref().err()));
        decoding.model.release(&device).unwrap();
        assert_eq!(faults.alive(), Alive::default());
        let calls = Call::ALL.map(|call| (call, faults.calls(call)));
        assert!(calls.iter().all(|(_, count)| *count > 0), "{calls:?}");
        let kept = decoding.model.kernels().count().unwrap();
        let mut tried = 0;
        for (call, count) in calls {
            let both = |after| [(after, Then::GoesOn), (after, Then::Lost)];
            // Each call fails everywhere. What comes then takes turns where a driver is in between, which takes its time.
            let in_turn = |(after, then)| inner.kind() == DeviceKind::Cpu || (after % 2 == 0) == (then == Then::GoesOn);
            for (after, then) in (0..count).flat_map(both).filter(|fault| in_turn(*fault)) {
                let what = format!("{name}, {call:?} {after}, {then:?}");
                let (faults, device) = Faults::over(&inner);
                faults.plant(Fault { call, after, then });
                let (script, playing) = (decoding.clone(), device.clone());
                let answers = ends(&what, move || script.play(&playing));
                decoding.model.release(&device).unwrap();
                hold(&what, &answers, &right, &decoding.names, then);
                assert!(answers.iter().any(|(_, answer)| answer.is_err()), "{what}: it was never met");
                assert_eq!(faults.alive(), Alive::default(), "{what}: something stays behind");
                tried += 1;
            }
        }
        assert_eq!(decoding.model.kernels().count().unwrap(), kept, "failures make no kernels");
        println!("{name}: {tried} faults, {calls:?}");
    }
}

/// `y = a x + b` and what the steps before added up, on params that may be given anew.
fn accumulator() -> (Graph, Model) {
    let mut graph = Graph::new();
    let [a, b] = ["a", "b"].map(|name| graph.param(name, ElementType::F32, vec![Dim::from(64)]).unwrap());
    let x = graph.input("x", ElementType::F32, vec![Dim::from(64)]).unwrap();
    let total = graph.state("total", ElementType::F32, vec![Dim::from(64)]).unwrap();
    let product = graph.mul(a, x).unwrap();
    let y = graph.add(product, b).unwrap();
    let sum = graph.add(total, y).unwrap();
    graph.feed(total, sum).unwrap();
    graph.output("y", y).unwrap();
    let model = Model::new();
    model.set("a", &[64], &[2f32; 64][..]).unwrap();
    model.set("b", &[64], &[1f32; 64][..]).unwrap();
    (graph, model)
}

fn y(executable: &Executable) -> Result<f32> {
    let outputs = executable.run(&[("x", (&[3f32; 64]).into())], &Extents::new())?;
    let y = outputs.get::<f32>("y")?;
    assert!(y.iter().all(|value| *value == y[0]));
    Ok(y[0])
}

#[test]
fn a_param_that_did_not_reach_the_device_is_missing_until_it_does() {
    for inner in devices() {
        let (graph, model) = accumulator();
        let (faults, device) = Faults::over(&inner);
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        assert_eq!(y(&executable).unwrap(), 7.0);
        faults.plant(Fault { call: Call::Write, after: 0, then: Then::GoesOn });
        let error = model.set("a", &[64], &[5f32; 64][..]).unwrap_err();
        assert!(error.to_string().contains("param `a`"), "{error}");
        // Half of it is there.
        assert!(matches!(y(&executable), Err(Error::MissingParams { missing, .. }) if missing[0].0 == "a"));
        model.set("a", &[64], &[5f32; 64][..]).unwrap();
        assert_eq!(y(&executable).unwrap(), 16.0);
        assert_eq!(executable.state("total").unwrap().get::<f32>().unwrap(), [23.0; 64], "the refused run left it");
        // What the model has let go of gets no new values: it is not computed with, also after others brought the param again.
        model.release(&device).unwrap();
        let is_missing = || matches!(y(&executable), Err(Error::MissingParams { .. }));
        assert!(is_missing());
        let again = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        model.set("a", &[64], &[1f32; 64][..]).unwrap();
        assert_eq!(y(&again).unwrap(), 4.0);
        assert!(is_missing());
    }
}

/// What a compilation that failed has left on a device binds neither the next graph nor who gives the param; what an executable holds binds both.
#[test]
fn params_of_a_compilation_that_failed_may_have_another_shape() {
    let doubled = |extent: usize| {
        let mut graph = Graph::new();
        let w = graph.param("w", ElementType::F32, [extent]).unwrap();
        let y = graph.add(w, w).unwrap();
        graph.output("y", y).unwrap();
        graph
    };
    for inner in devices() {
        for is_given_before in [false, true] {
            let (faults, device) = Faults::over(&inner);
            let model = Model::new();
            let compile = |extent| Executable::compile(&doubled(extent), &model, &device, &Options::default());
            let give = || model.set("w", &[3], &[1f32, 2.0, 3.0]);
            faults.plant(Fault { call: Call::Record, after: 0, then: Then::GoesOn });
            let error = compile(2).unwrap_err().to_string();
            assert!(error.contains("planted"), "{error}");
            if is_given_before {
                give().unwrap();
            }
            let executable = compile(3).unwrap();
            if !is_given_before {
                let refused = compile(2).unwrap_err();
                assert!(matches!(&refused, Error::Shape { what: "param", .. }), "{refused}");
                let refused = model.set("w", &[2], &[0f32; 2]).unwrap_err();
                assert!(matches!(&refused, Error::Shape { what: "param", .. }), "{refused}");
                give().unwrap();
            }
            let outputs = executable.run(&[], &Extents::new()).unwrap();
            assert_eq!(outputs.get::<f32>("y").unwrap(), [2.0, 4.0, 6.0]);
        }
    }
}

#[test]
fn a_failed_run_leaves_no_state_of_which_nobody_knows() {
    for inner in devices() {
        for call in [Call::Submission, Call::Readback] {
            let (graph, model) = accumulator();
            let (faults, device) = Faults::over(&inner);
            let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
            assert_eq!(y(&executable).unwrap(), 7.0);
            faults.plant(Fault { call, after: 0, then: Then::GoesOn });
            let error = y(&executable).unwrap_err().to_string();
            assert!(error.contains("planted"), "{error}");
            // Whether the sum was added to once or twice is not told by guessing.
            let answers = [
                y(&executable).map(|_| ()),
                executable.state("total").map(|_| ()),
                executable.set_state("total", (&[0f32; 64]).into()),
                executable.feed("y", 0..64, "total", 0),
                executable.fork().map(|_| ()),
                executable.reset_state("total"),
                executable.profile(&Extents::new()).map(|_| ()),
            ];
            for answer in answers {
                assert_eq!(answer.unwrap_err().to_string(), error);
            }
            executable.reset().unwrap();
            assert_eq!(y(&executable).unwrap(), 7.0);
            assert_eq!(executable.state("total").unwrap().get::<f32>().unwrap(), [7.0; 64]);
        }
    }
}

/// Copies of outputs follow a run that is done: what they say is no word on the states.
#[test]
fn a_run_is_done_where_the_copy_of_an_output_alone_fails() {
    for inner in devices() {
        let (graph, model) = accumulator();
        let (faults, device) = Faults::over(&inner);
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let mut room = device.buffer(&[0f32; 64]).unwrap();
        let (x, extents) = ([3f32; 64], Extents::new());
        let total = || executable.state("total").unwrap().get::<f32>().unwrap().to_vec();
        // The first submission is the run's.
        faults.plant(Fault { call: Call::Submission, after: 1, then: Then::GoesOn });
        let refused = executable.prepare(&extents).input("x", &x).take_buffer("y", &mut room).run();
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("an output of a run") && error.contains("planted"), "{error}");
        assert_eq!(total(), [7.0; 64]);
        executable.prepare(&extents).input("x", &x).take_buffer("y", &mut room).run().unwrap();
        assert_eq!((room.read().unwrap(), total()), (vec![7.0; 64], vec![14.0; 64]));
    }
}

#[test]
fn ops_one_by_one_are_right_or_refused_whichever_call_fails() {
    let play = |device: &Device| -> Result<Vec<f32>> {
        let eager = trefoil_graph::Eager::with_options(
            device,
            trefoil_graph::eager::EagerOptions { batch: 3, ..Default::default() },
        );
        let x = eager.tensor(&[5], &[1f32, 2.0, 3.0, 4.0, 5.0])?;
        let mut sum = x.clone();
        for _ in 0..5 {
            sum = eager.add(&eager.neg(&sum)?, &x)?;
            sum = eager.cumsum(&sum, 0, Sweep::default())?;
        }
        sum.read()
    };
    for inner in devices_of_its_own() {
        let (faults, device) = Faults::over(&inner);
        let right = play(&device).unwrap();
        for call in Call::ALL {
            for (after, then) in (0..faults.calls(call)).flat_map(|after| [(after, Then::GoesOn), (after, Then::Lost)])
            {
                let (faulty, device) = Faults::over(&inner);
                faulty.plant(Fault { call, after, then });
                match play(&device) {
                    Ok(values) => assert_eq!(values, right, "{call:?} {after}"),
                    Err(error) => assert!(error.to_string().contains('`'), "{call:?} {after}: {error}"),
                }
                assert_eq!(faulty.alive(), Alive::default(), "{call:?} {after}: something stays behind");
            }
        }
    }
}

#[test]
fn memory_that_the_driver_does_not_have_is_an_error_and_the_device_goes_on() {
    for device in devices() {
        let most = device.limits().max_allocation_bytes;
        let over = most.checked_add(1).map(|bytes| device.backend().allocate(bytes, "over the limit"));
        let error = over.map(|made| made.unwrap_err().to_string()).unwrap_or_else(|| "over the limit".to_owned());
        assert!(error.contains("over the limit"), "{error}");
        let (graph, model) = accumulator();
        assert_eq!(y(&Executable::compile(&graph, &model, &device, &Options::default()).unwrap()).unwrap(), 7.0);
    }
}

#[test]
fn a_device_is_opened_again_and_takes_the_model_with_it() {
    for lost in devices_of_its_own() {
        let (graph, model) = accumulator();
        let (faults, device) = Faults::over(&lost);
        let old = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        faults.plant(Fault { call: Call::Submission, after: 0, then: Then::Lost });
        let error = y(&old).unwrap_err().to_string();
        assert_eq!(y(&old).unwrap_err().to_string(), error, "every call is answered by the first failure");
        assert!(old.reset().is_err() && old.fork().is_err());
        let again = device.reopen().unwrap();
        assert_ne!(again.id(), lost.id());
        assert_eq!(again.properties().name, lost.properties().name);
        assert_eq!(again.limits(), lost.limits());
        let new = Executable::compile(&graph, &model, &again, &Options::default()).unwrap();
        assert_eq!(y(&new).unwrap(), 7.0);
        // What is of the lost device does not mix with what is of the new one.
        let memory = lost.backend().allocate(4, "old").unwrap();
        let refused = again.backend().write(&MemoryRange { memory, offset: 0, bytes: 4 }, &[0; 4]);
        assert!(matches!(refused, Err(trefoil_dsl::error::Error::OtherDevice { .. })), "{refused:?}");
        drop(old);
        model.release(&device).unwrap();
        assert_eq!(faults.alive(), Alive::default());
        assert_eq!(y(&new).unwrap(), 7.0);
    }
}
