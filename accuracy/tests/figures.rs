//! The figures that are checked in: whole, shown as they are, and within what the documentation promises.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::collections::BTreeSet;
use std::path::Path;

use trefoil::device::DeviceOptions;
use trefoil::{DeviceKind, devices};
use trefoil_accuracy::measure::{Measured, measure};
use trefoil_accuracy::page;

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The promises `within N ulp` in the documentation of functions, by name.
fn promises() -> Vec<(String, f64)> {
    let source = include_str!("../../dsl/src/math/mod.rs");
    let mut found = Vec::new();
    let mut said = None;
    for line in source.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            let plain = !doc.contains("on GPUs") && !doc.contains("on the CPU");
            let number = doc.split_once("within ").and_then(|(_, rest)| rest.split_once(" ulp"));
            said = said.or(number.filter(|_| plain).and_then(|(number, _)| number.parse().ok()));
        } else if let Some(bound) = said.take()
            && let Some((name, _)) = line.split_once('(')
        {
            found.push((name.to_owned(), bound));
        }
    }
    found
}

fn holds(name: &str, measured: &Measured) {
    let promises = promises();
    assert!(promises.len() >= 10, "{promises:?}");
    for row in measured.rows.iter().filter(|row| row.scalar == "f32") {
        for (_, bound) in promises.iter().filter(|(function, _)| *function == row.function) {
            let kept = row.steps.is_some_and(|steps| steps <= *bound);
            assert!(kept, "{name}: `{}` is promised within {bound} ulp: {row:?}", row.function);
        }
    }
}

fn keys(measured: &Measured) -> BTreeSet<[String; 3]> {
    measured.rows.iter().map(|row| [&row.scalar, &row.function, &row.inputs].map(Clone::clone)).collect()
}

#[test]
fn the_page_shows_the_figures() {
    let all = page::read(&docs().join("accuracy")).unwrap();
    let there = std::fs::read_to_string(docs().join("src/accuracy.md")).unwrap();
    assert!(
        there == page::page(&all).unwrap(),
        "docs/src/accuracy.md is stale; run: cargo run -p trefoil-accuracy -- page"
    );
}

#[test]
fn what_is_promised_holds_and_nothing_is_left_out() {
    let device = devices::open(DeviceKind::Cpu, &DeviceOptions::default()).unwrap();
    let now = measure(&device).unwrap();
    holds("the CPU here", &now);
    for (name, measured) in page::read(&docs().join("accuracy")).unwrap() {
        holds(&name, &measured);
        let here = keys(&measured);
        // Not every device has all types.
        let mut expected = keys(&now);
        expected.retain(|[scalar, ..]| here.iter().any(|[known, ..]| known == scalar));
        assert_eq!(here, expected, "docs/accuracy/{name}.json is of other functions: measure again");
    }
}
