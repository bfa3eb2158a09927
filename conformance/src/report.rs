//! The page that says what came out: counts by op and by device, and the reasons of what is unsupported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::cases::{Case, Cases};
use crate::rows::{ROWS, row_of};
use crate::run::Outcome;

/// What came of all cases on some devices.
#[derive(Debug)]
pub struct Report<'c> {
    /// The cases.
    pub cases: &'c Cases,
    /// The devices' names.
    pub devices: Vec<String>,
    /// For each case, what came of it on each device.
    pub outcomes: Vec<Vec<Outcome>>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    passed: usize,
    unsupported: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Unsupported(_) => self.unsupported += 1,
            Outcome::Failed(_) => self.failed += 1,
        }
    }

    fn all(self) -> usize {
        self.passed + self.unsupported + self.failed
    }

    fn cell(self) -> String {
        format!("{} / {} / {}", self.passed, self.unsupported, self.failed)
    }
}

/// The op that a case is about: its node's; of several nodes that stand for an op, that op.
fn op_of<'c>(case: &'c Case, by_name: &BTreeMap<&str, &'c str>) -> Option<&'c str> {
    match case.nodes.as_slice() {
        [node] => Some(&node.op),
        _ => {
            let stem = case.name.split("_expanded").next().unwrap_or_default();
            by_name.get(stem).copied()
        }
    }
}

impl Report<'_> {
    /// What failed, a line each.
    pub fn failures(&self) -> Vec<String> {
        let cases = self.cases.cases.iter().zip(&self.outcomes);
        cases
            .flat_map(|(case, outcomes)| {
                outcomes.iter().zip(&self.devices).filter_map(move |(outcome, device)| match outcome {
                    Outcome::Failed(what) => Some(format!("{} on {device}: {what}", case.name)),
                    _ => None,
                })
            })
            .collect()
    }

    /// The page.
    pub fn page(&self) -> String {
        let by_name: BTreeMap<&str, &str> = self
            .cases
            .cases
            .iter()
            .filter_map(|case| match case.nodes.as_slice() {
                [node] => Some((case.name.as_str(), node.op.as_str())),
                _ => None,
            })
            .collect();
        let none = vec![Counts::default(); self.devices.len()];
        let (mut all, mut rows) = (none.clone(), BTreeMap::<&str, Vec<Counts>>::new());
        let mut ops = BTreeMap::<&str, Vec<Counts>>::new();
        let mut reasons = BTreeMap::<&str, (usize, BTreeSet<&str>)>::new();
        for (case, outcomes) in self.cases.cases.iter().zip(&self.outcomes) {
            let op = op_of(case, &by_name).unwrap_or("several");
            let row = row_of(op).unwrap_or("others");
            for (device, outcome) in outcomes.iter().enumerate() {
                all[device].add(outcome);
                rows.entry(row).or_insert_with(|| none.clone())[device].add(outcome);
                ops.entry(op).or_insert_with(|| none.clone())[device].add(outcome);
            }
            let told: BTreeSet<&str> = outcomes
                .iter()
                .filter_map(|outcome| match outcome {
                    Outcome::Unsupported(reason) => Some(reason.as_str()),
                    _ => None,
                })
                .collect();
            for reason in told {
                let (count, of) = reasons.entry(reason).or_default();
                *count += 1;
                of.insert(op);
            }
        }
        let mut page = format!(
            "# ONNX's node tests\n\n\
             The {} cases of the PyPI package `onnx` {}, as graphs: passed / unsupported / failed. Made by `cargo run -p trefoil-conformance --features wgpu,vulkan -- --page docs/src/onnx.md`, \
             after `scripts/fetch-onnx-cases.sh`; a test holds it fresh.\n\n",
            self.cases.cases.len(),
            self.cases.version
        );
        let head = |page: &mut String, first: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(page, "| {first} | cases | {} |", self.devices.join(" | "));
            let _ = writeln!(page, "|---|---|{}", "---|".repeat(self.devices.len()));
        };
        let line = |page: &mut String, name: &str, counts: &[Counts]| {
            let cells: Vec<String> = counts.iter().map(|counts| counts.cell()).collect();
            let cases = counts.first().map_or(0, |counts| counts.all());
            let _ = writeln!(page, "| {name} | {cases} | {} |", cells.join(" | "));
        };
        head(&mut page, "row of the op list");
        line(&mut page, "all", &all);
        for row in ROWS.iter().map(|(row, _)| *row).chain(["others"]) {
            line(&mut page, row, rows.get(row).unwrap_or(&none));
        }
        page.push_str("\n## By op\n\n");
        head(&mut page, "op");
        for (op, counts) in &ops {
            line(&mut page, op, counts);
        }
        page.push_str("\n## Why cases are unsupported\n\n| cases | reason | of |\n|---|---|---|\n");
        let mut sorted: Vec<_> = reasons.into_iter().collect();
        sorted.sort_by(|(a, (more, _)), (b, (fewer, _))| fewer.cmp(more).then(a.cmp(b)));
        for (reason, (count, of)) in sorted {
            let of: Vec<&str> = of.into_iter().collect();
            let _ =
                writeln!(page, "| {count} | {} | {} |", reason.replace('|', "\\|").replace('\n', " "), of.join(", "));
        }
        page
    }
}
