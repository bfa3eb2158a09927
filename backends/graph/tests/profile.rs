//! Profiles on every device: what each step does by hand-made counts, as a table and as a trace.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;

use common::{devices, devices_of_its_own, numbers};
use serde_json::Value;
use trefoil::device::{DeviceKind, DeviceOptions};
use trefoil_graph::profile::StepTime;
use trefoil_graph::{Ceiling, Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Profile, Symbol};

const FLOAT: ElementType = ElementType::F32;

#[test]
fn steps_say_their_bytes_and_operations_at_the_extents_of_the_run() {
    for device in devices() {
        let what = &device.properties().name;
        let rows = Symbol::new("rows", 1, 64).unwrap();
        let mut g = Graph::new();
        let x = g.input("x", FLOAT, [Dim::from(&rows), Dim::from(24)]).unwrap();
        let w = g.input("w", FLOAT, [24, 8]).unwrap();
        let product = g.matmul(x, w).unwrap();
        let y = g.neg(product).unwrap();
        g.output("product", product).unwrap();
        g.output("y", y).unwrap();
        let executable = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let mut extents = Extents::new();
        extents.set(&rows, 37).unwrap();
        let (x, w) = (numbers(37 * 24, 1, 1.0), numbers(24 * 8, 2, 1.0));
        executable.run(&[("x", (&x).into()), ("w", (&w).into())], &extents).unwrap();

        let profile = executable.profile(&extents).unwrap();
        assert_eq!(profile.device, *what);
        let explained = executable.explain();
        assert_eq!(profile.steps.len(), explained.steps.len(), "{what}");
        for (step, known) in profile.steps.iter().zip(&explained.steps) {
            assert_eq!((&*step.label, &*step.kernel), (&*known.label, &*known.kernel), "{what}");
        }
        // The last step is the map: it reads a product and writes as much.
        let map = profile.steps.last().unwrap();
        assert_eq!((map.bytes, map.flops), (2 * 37 * 8 * 4, 37 * 8), "{what}");
        let of_product = &profile.steps[..profile.steps.len() - 1];
        let flops: u64 = of_product.iter().map(|step| step.flops).sum();
        // Those of a product in several steps are shared out in whole numbers.
        let all = 2 * 37 * 24 * 8;
        assert!(flops <= all && flops + of_product.len() as u64 > all, "{what}: {flops} of {all}");
        let least = (37 * 24 + 24 * 8 + 37 * 8) * 4;
        assert!(of_product.iter().map(|step| step.bytes).sum::<u64>() >= least, "{what}");
        trace_says_the_same(&profile);
        table_says_the_same(&profile.against(Ceiling { bytes_per_second: 1e9, flops_per_second: None }));
    }
}

fn trace_says_the_same(profile: &Profile) {
    let text = profile.trace().to_string();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |thread: u64| events.iter().filter(move |event| event["ph"] == "X" && event["tid"] == thread);
    let names: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[1]["args"]["name"], *profile.device);
    assert_eq!(of(names[0]["tid"].as_u64().unwrap()).count(), profile.host.len());
    let mut end = 0.0;
    let mut count = 0;
    for (event, step) in of(names[1]["tid"].as_u64().unwrap()).zip(&profile.steps) {
        assert_eq!(event["name"], *step.label);
        assert_eq!((&event["args"]["bytes"], &event["args"]["flops"]), (&step.bytes.into(), &step.flops.into()));
        let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        assert!(start >= end - 1e-6, "steps follow each other");
        assert!((length - step.nanoseconds as f64 / 1e3).abs() < 1e-6);
        assert!(event["args"].get("share of the ceiling").is_none(), "nobody said a ceiling");
        end = start + length;
        count += 1;
    }
    assert_eq!(count, profile.steps.len());
}

fn table_says_the_same(profile: &Profile) {
    let table = profile.to_string();
    for step in &profile.steps {
        assert!(table.contains(&format!("{}: {}", step.label, step.kernel)), "{table}");
    }
    let trace = profile.trace();
    let shares = trace["traceEvents"].as_array().unwrap().iter();
    let shares = shares.filter(|event| event["args"].get("share of the ceiling").is_some()).count();
    assert_eq!(shares, profile.steps.iter().filter(|step| step.nanoseconds > 0).count());
}

#[test]
fn a_share_is_of_the_ceiling_that_is_nearer() {
    let step = StepTime { label: "a".into(), kernel: "b".to_owned(), nanoseconds: 1000, bytes: 500, flops: 4000 };
    let ceiling = |flops_per_second| Ceiling { bytes_per_second: 1e9, flops_per_second };
    assert!((step.share(ceiling(None)).unwrap() - 0.5).abs() < 1e-12);
    assert!((step.share(ceiling(Some(5e9))).unwrap() - 0.8).abs() < 1e-12);
    assert!((step.share(ceiling(Some(5e12))).unwrap() - 0.5).abs() < 1e-12);
    assert_eq!(StepTime { nanoseconds: 0, ..step }.share(ceiling(None)), None);
}

#[test]
fn the_ceiling_is_what_a_copy_reaches() {
    for device in devices_of_its_own() {
        let before = device.backend().counters().allocated_bytes;
        let ceiling = Ceiling::measure(&device).unwrap();
        assert!(ceiling.bytes_per_second > 1e6 && ceiling.bytes_per_second.is_finite());
        // Devices free memory when they look again at what they are done with.
        device.backend().wait().unwrap();
        assert_eq!(device.backend().counters().allocated_bytes, before, "{}", device.properties().name);
    }
}

/// A graph of a product and a map, and what it gives for `x`.
fn run(device: &trefoil::Device, x: &[f32]) -> Vec<f32> {
    let mut g = Graph::new();
    let a = g.input("x", FLOAT, [4, 6]).unwrap();
    let b = g.transpose(a, &[1, 0]).unwrap();
    let y = g.matmul(a, b).unwrap();
    let y = g.neg(y).unwrap();
    g.output("y", y).unwrap();
    let executable = Executable::compile(&g, &Model::new(), device, &Options::default()).unwrap();
    let outputs = executable.run(&[("x", x.into())], &Extents::new()).unwrap();
    executable.profile(&Extents::new()).unwrap();
    outputs.get::<f32>("y").unwrap().to_vec()
}

#[test]
fn names_for_profilers_change_nothing_else() {
    let x = numbers(24, 3, 1.0);
    let kinds: BTreeSet<DeviceKind> = devices().iter().map(|device| device.kind()).collect();
    for kind in kinds {
        let open =
            |labels| trefoil::devices::open(kind, &DeviceOptions { labels, ..DeviceOptions::default() }).unwrap();
        assert_eq!(run(&open(true), &x), run(&open(false), &x), "{kind}");
    }
}

/// Steps that are timed leave nothing in the outputs' places that a run has left.
#[test]
fn outputs_are_no_runs_after_a_profile() {
    for device in devices() {
        let mut g = Graph::new();
        let s = g.state("s", FLOAT, [4, 2]).unwrap();
        let x = g.input("x", FLOAT, [4, 2]).unwrap();
        let y = g.add(x, s).unwrap();
        g.output("y", y).unwrap();
        let executable = Executable::compile(&g, &Model::new(), &device, &Options::default()).unwrap();
        let x = numbers(8, 3, 1.0);
        executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
        executable.feed("y", 0..1, "s", 0).unwrap();
        executable.profile(&Extents::new()).unwrap();
        let refused = executable.feed("y", 1..2, "s", 1).unwrap_err();
        assert!(matches!(&refused, Error::Feed { reason, .. } if reason == "no run has left it"), "{refused}");
        assert_eq!(executable.state("s").unwrap().get::<f32>().unwrap()[2..], [0.0; 6]);
        executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
        executable.feed("y", 1..2, "s", 1).unwrap();
    }
}
