//! Graphs drawn at random, of 5 to 80 nodes over all ops of the table, on every device against the reference; and the proof, which finds every defect that is planted into what was recorded of them.
//!
//! Those of the seeds from `TREFOIL_RANDOM_FIRST` (0) on run on the CPU, as many as `TREFOIL_RANDOM_GRAPHS` says (2,000), and on every other device as many of them as it manages in `TREFOIL_RANDOM_SECONDS` (20), each from
//! another seed on: a driver compiles every new kernel, which on a processor takes the longest. What ran where is printed.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;
#[path = "common/graphs/mod.rs"]
mod graphs;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use common::{devices, is_no_kernel};
use graphs::{Drawn, Failure, Numbers, Outcome, check, draw, listing, reduced};
use trefoil_dsl::device::{Device, DeviceKind, DeviceOptions};
use trefoil_graph::compile::program::Meaning;
use trefoil_graph::compile::prove::{Access, Event, Trace, prove};
use trefoil_graph::compile::steps::Claim;
use trefoil_graph::ops::table::{Use, uses};
use trefoil_graph::{Executable, IntoKernels, Model, Options};

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, no number")),
        Err(_) => default,
    }
}

/// So many graphs, of the first seeds, are looked at for what is drawn.
const COUNTED: u64 = 2000;

/// The graph of a seed. Those of the first seeds are kept, since several tests take them.
fn drawn(seed: u64, uses: &[Use]) -> Arc<Drawn> {
    static KEPT: [OnceLock<Arc<Drawn>>; COUNTED as usize] = [const { OnceLock::new() }; COUNTED as usize];
    let made = || Arc::new(draw(seed, uses));
    KEPT.get(seed as usize).map_or_else(made, |kept| kept.get_or_init(made).clone())
}

/// Ops that only move and choose elements.
fn exact(uses: &[Use]) -> Vec<&str> {
    uses.iter().filter(|known| known.exact).map(|known| known.row.op.as_str()).collect()
}

/// One way to run a graph: every eighth is not fused, so that maps lie in memory too, and of every third regions go into kernels wherever they can, which on the CPU are no functions of the host then.
fn options(drawn: &Drawn) -> Options {
    let mut options = Options { fuse: !drawn.seed.is_multiple_of(8), ..Options::default() };
    if drawn.seed % 3 == 1 {
        options.into_kernels = IntoKernels::Everywhere;
        for node in drawn.graph.nodes() {
            let ways = node.op.kind().ways();
            let (host, kernels): (Vec<&str>, Vec<&str>) = ways.into_iter().partition(|way| is_no_kernel(way));
            if !kernels.is_empty() {
                options.forbid.extend(host.into_iter().map(str::to_owned));
            }
        }
    }
    options
}

/// Runs a graph; a panic is a failure too.
fn attempt(drawn: &Drawn, device: &Device, model: &Model, exact: &[&str]) -> Result<Outcome, Failure> {
    let run = || check(drawn, device, model, &options(drawn), exact);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
        Err(Failure { outputs: Vec::new(), words: format!("a panic: {}", words.unwrap_or_default()) })
    })
}

/// Runs the graphs of `count` seeds, as long as there is time and until something was compared, and gives how many ran.
fn all(device: &Device, uses: &[Use], first: u64, count: u64, most: Option<Duration>) -> (u64, Outcome, Vec<String>) {
    let (exact, model) = (exact(uses), Model::new());
    let (next, began) = (AtomicU64::new(first), Instant::now());
    let end = first + count;
    let total = Mutex::new((0, Outcome::default(), Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_late = most.is_some_and(|most| began.elapsed() > most);
            // A driver that is slow over the first graphs still runs one that has elements.
            if seed >= end || is_late && total.lock().unwrap().1.elements > 0 {
                return;
            }
            let drawn = drawn(seed, uses);
            let outcome = attempt(&drawn, device, &model, &exact);
            let mut told = None;
            if let Err(failure) = &outcome {
                let first = failure.words.lines().next().unwrap_or_default().to_owned();
                let kind = |words: &str| words.starts_with("a panic");
                let small = reduced(&drawn, |smaller| {
                    attempt(smaller, device, &model, &exact).is_err_and(|other| {
                        other.outputs.is_empty() == failure.outputs.is_empty()
                            && kind(&other.words) == kind(&failure.words)
                    })
                });
                let words = attempt(&small, device, &model, &exact).err().map_or(first, |failure| failure.words);
                told = Some(format!("{words}{}", listing(&small)));
            }
            let mut total = total.lock().unwrap();
            match outcome {
                Ok(outcome) => {
                    total.0 += u64::from(!outcome.lacking);
                    total.1.elements += outcome.elements;
                    total.1.unsettled += outcome.unsettled;
                }
                Err(_) => total.2.extend(told),
            }
            if total.2.len() >= 5 {
                return;
            }
        }
    };
    if device.kind() == DeviceKind::Cpu {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    } else {
        work();
    }
    total.into_inner().unwrap()
}

#[test]
fn every_op_is_drawn_often() {
    let uses = uses();
    let mut counts: BTreeMap<String, usize> = uses.iter().map(|known| (known.row.op.clone(), 0)).collect();
    let (mut sizes, mut nodes) = ([usize::MAX, 0], 0);
    let graphs = COUNTED;
    let (mut states, mut symbols, mut several) = (0, 0, 0);
    for seed in 0..graphs {
        let drawn = drawn(seed, &uses);
        for (op, count) in &drawn.counts {
            *counts.get_mut(op).unwrap() += count;
        }
        let all = drawn.graph.nodes();
        sizes = [sizes[0].min(all.len()), sizes[1].max(all.len())];
        nodes += all.len();
        states += usize::from(!drawn.graph.states().is_empty());
        several += all.iter().filter(|node| node.outputs.len() > 1).count();
        let is_symbolic = |node: &trefoil_graph::graph::Node| {
            node.outputs.iter().any(|ty| ty.shape.iter().any(|extent| extent.constant().is_none()))
        };
        symbols += usize::from(all.iter().any(is_symbolic));
    }
    println!(
        "{graphs} graphs of {} to {} nodes, {nodes} together; {states} with states, {symbols} with extents that runs choose, {several} nodes of several outputs",
        sizes[0], sizes[1]
    );
    let distribution: Vec<String> = counts.iter().map(|(op, count)| format!("{op} {count}")).collect();
    println!("{}", distribution.join(", "));
    let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 20).collect();
    assert!(rare.is_empty(), "drawn too rarely: {rare:?}");
    assert!(sizes[1] <= 80 && states > 100 && symbols > 100 && several > 100);
}

#[test]
fn every_device_agrees_with_the_reference() {
    let uses = uses();
    let mut wrong = Vec::new();
    let (first, count) = (number("TREFOIL_RANDOM_FIRST", 0), number("TREFOIL_RANDOM_GRAPHS", 2000));
    for (index, device) in devices().into_iter().enumerate() {
        let seconds = number("TREFOIL_RANDOM_SECONDS", 20);
        let most = (device.kind() != DeviceKind::Cpu).then(|| Duration::from_secs(seconds));
        // Those of a driver are few: each has others.
        let first = first + if most.is_some() { index as u64 * count / 4 } else { 0 };
        let began = Instant::now();
        let (ran, outcome, failures) = all(&device, &uses, first, count, most);
        println!(
            "{} ({}): {ran} graphs from seed {first} on in {:.1} s, {} elements, {:.2} % of them unsettled, {} failures",
            device.properties().name,
            device.kind(),
            began.elapsed().as_secs_f64(),
            outcome.elements,
            100.0 * outcome.unsettled as f64 / outcome.elements.max(1) as f64,
            failures.len()
        );
        // One that fails is told of below.
        let compared = ran > 0 && outcome.elements > 0;
        assert!(compared || !failures.is_empty(), "nothing was compared on {}", device.properties().name);
        assert!(outcome.unsettled * 5 < outcome.elements.max(1), "most that is not settled says nothing");
        wrong.extend(failures);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Ways to spoil what was recorded.
const DEFECTS: [&str; 6] =
    ["a step left out", "steps swapped", "a barrier dropped", "a slot shared", "a wrong alias", "an output moved"];

/// Positions of steps in a trace.
fn steps(trace: &Trace) -> Vec<usize> {
    (0..trace.events.len()).filter(|at| matches!(trace.events[*at], Event::Step { .. })).collect()
}

fn accesses(trace: &Trace, at: usize) -> &[Access] {
    match &trace.events[at] {
        Event::Step { accesses, .. } => accesses,
        Event::Barrier => &[],
    }
}

fn claims(trace: &Trace, at: usize) -> &[Claim] {
    match &trace.events[at] {
        Event::Step { claims, .. } => claims,
        Event::Barrier => &[],
    }
}

fn overlap(a: &Access, b: &Access) -> bool {
    a.buffer == b.buffer && a.offset.max(b.offset) < (a.offset + a.bytes).min(b.offset + b.bytes)
}

/// Whether one of them writes what the other touches.
fn conflict(a: &[Access], b: &[Access]) -> bool {
    a.iter().any(|a| b.iter().any(|b| (a.writes || b.writes) && overlap(a, b)))
}

/// The trace with a defect at a place that matters, if it has one.
fn spoiled(trace: &Trace, defect: &str, numbers: &mut Numbers) -> Option<Trace> {
    let mut bad = trace.clone();
    let steps = steps(trace);
    match defect {
        "a step left out" => {
            // One that writes something of the graph: every such is needed, but for copies of what was copied to the same place before.
            let at = *numbers.one_of(&steps)?;
            let again = |other: &&usize| **other != at && claims(trace, **other) == claims(trace, at);
            if claims(trace, at).iter().any(|claim| matches!(claim, Claim::Copy(_)))
                && steps.iter().any(|other| again(&other))
            {
                return None;
            }
            let is_untyped = |meaning| matches!(meaning, Meaning::Scratch { .. } | Meaning::Counters { .. });
            let of_the_graph = |access: &Access| access.bytes > 0 && !is_untyped(access.meaning);
            let writes = accesses(trace, at).iter().any(|access| access.writes && of_the_graph(access));
            writes.then(|| bad.events.remove(at))?;
        }
        "steps swapped" => {
            // Neighbours of which the later reads what the earlier writes, with barriers everywhere: only the order is wrong.
            let dependent: Vec<_> = steps
                .windows(2)
                .filter(|pair| {
                    let (earlier, later) = (accesses(trace, pair[0]), accesses(trace, pair[1]));
                    earlier
                        .iter()
                        .any(|a| a.writes && later.iter().any(|b| b.reads && a.meaning == b.meaning && overlap(a, b)))
                })
                .collect();
            let pair = *numbers.one_of(&dependent)?;
            bad.events.swap(pair[0], pair[1]);
            bad.events = bad.events.into_iter().flat_map(|event| [Event::Barrier, event]).collect();
        }
        "a barrier dropped" => {
            let needed: Vec<usize> = (0..trace.events.len())
                .filter(|at| trace.events[*at] == Event::Barrier)
                .filter(|at| {
                    let is_step = |event: &usize| trace.events[*event] != Event::Barrier;
                    let before: Vec<usize> = (0..*at).rev().take_while(is_step).collect();
                    let after: Vec<usize> = (at + 1..trace.events.len()).take_while(is_step).collect();
                    before.iter().any(|a| after.iter().any(|b| conflict(accesses(trace, *a), accesses(trace, *b))))
                })
                .collect();
            bad.events.remove(*numbers.one_of(&needed)?);
        }
        "a slot shared" => {
            // A step writes where a value lies that a later step or the end still reads.
            let mut places = Vec::new();
            for (index, at) in steps.iter().enumerate() {
                for written in accesses(trace, *at).iter().filter(|access| access.writes && access.bytes > 0) {
                    let read_later = |other: &Access| {
                        let later = steps[index + 1..].iter().flat_map(|later| accesses(trace, *later));
                        let taken = trace.taken.iter().map(|(_, access)| access);
                        later
                            .chain(taken)
                            .any(|read| read.reads && overlap(read, other) && read.meaning == other.meaning)
                    };
                    for earlier in steps[..index].iter().flat_map(|earlier| accesses(trace, *earlier)) {
                        let alive = earlier.writes && earlier.bytes > 0 && earlier.meaning != written.meaning;
                        if alive && read_later(earlier) && !overlap(earlier, written) {
                            places.push((*at, written.clone(), earlier.clone()));
                        }
                    }
                }
            }
            let (at, written, earlier) = numbers.one_of(&places)?.clone();
            // Everybody who means the one value finds it in its new place.
            for event in &mut bad.events[at..] {
                let Event::Step { accesses, .. } = event else { continue };
                for access in accesses.iter_mut().filter(|access| access.meaning == written.meaning) {
                    (access.buffer, access.offset) = (earlier.buffer, earlier.offset);
                }
            }
            for (_, access) in bad.taken.iter_mut().filter(|(_, access)| access.meaning == written.meaning) {
                (access.buffer, access.offset) = (earlier.buffer, earlier.offset);
            }
        }
        "a wrong alias" => {
            // A step reads the bytes of another value than it means.
            let mut places = Vec::new();
            for at in &steps {
                let all = accesses(trace, *at);
                for (index, access) in all.iter().enumerate().filter(|(_, access)| access.reads && access.bytes > 0) {
                    let own = all.iter().any(|other| other.writes && other.meaning == access.meaning);
                    // Another place within the same value is a layout, which the proof does not look at and the references do.
                    let every = || steps.iter().flat_map(|other| accesses(trace, *other)).chain(&trace.given);
                    let same =
                        |other: &Access| every().any(|known| known.meaning == access.meaning && overlap(known, other));
                    let other =
                        every().filter(|other| other.meaning != access.meaning && other.bytes > 0 && !same(other));
                    if !own && !access.writes {
                        places.extend(other.map(|other| (*at, index, other.clone())));
                    }
                }
            }
            let (at, index, other) = numbers.one_of(&places)?.clone();
            let Event::Step { accesses, .. } = &mut bad.events[at] else { return None };
            (accesses[index].buffer, accesses[index].offset) = (other.buffer, other.offset);
        }
        _ => {
            let taken: Vec<usize> = (0..bad.taken.len()).filter(|at| bad.taken[*at].1.bytes > 0).collect();
            let at = *numbers.one_of(&taken)?;
            bad.taken[at].1.offset += 1 << 20;
        }
    }
    Some(bad)
}

/// The first step that differs, before and after.
fn difference(good: &Trace, bad: &Trace) -> String {
    let only = |trace: &Trace| -> Vec<Event> {
        trace.events.iter().filter(|event| **event != Event::Barrier).cloned().collect()
    };
    let (good, bad) = (only(good), only(bad));
    let at = good.iter().zip(&bad).position(|(good, bad)| good != bad).unwrap_or(bad.len());
    format!("{:?} became {:?}", good.get(at), bad.get(at))
}

#[test]
fn the_proof_finds_every_planted_defect() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let uses = uses();
    let mut planted: BTreeMap<&str, u64> = BTreeMap::new();
    let mut missed = Vec::new();
    let model = Model::new();
    let graphs = number("TREFOIL_RANDOM_DEFECTS", 150);
    for seed in 0..graphs {
        let drawn = drawn(seed, &uses);
        let fuse = seed % 2 == 0;
        let options = Options { fuse, ..Options::default() };
        let executable = Executable::compile(&drawn.graph, &model, &device, &options).unwrap();
        let good = executable.trace().unwrap();
        prove(&drawn.graph, &good).unwrap();
        let mut numbers = Numbers::new(seed);
        for defect in DEFECTS {
            for _ in 0..4 {
                let Some(bad) = spoiled(&good, defect, &mut numbers) else { continue };
                *planted.entry(defect).or_default() += 1;
                if prove(&drawn.graph, &bad).is_ok() {
                    missed.push(format!("seed {seed}, {defect}: {}", difference(&good, &bad)));
                }
            }
        }
    }
    println!("{planted:?}");
    assert!(missed.is_empty(), "{} of {planted:?} were not found:\n{}", missed.len(), missed.join("\n"));
    // A graph that has a place for a defect gets four.
    assert!(DEFECTS.iter().all(|defect| planted.get(defect).is_some_and(|count| *count > graphs / 3)), "{planted:?}");
}
