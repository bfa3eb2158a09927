//! The log of a run, as a page of Markdown: what ran where, and for each kind of node, type and target in how many kernels a value of it reached an output.

use std::fmt::{self, Write};

use trefoil_codegen::target::Feature;
use trefoil_dsl::device::Device;

use crate::combination::{Combination, all};
use crate::fibers::PLACE;
use crate::harness::{Harness, Log};
use crate::syntax::Needs;
use crate::table::Row;

/// The least count that a combination should have in 10,000 kernels.
pub const LEAST: u32 = 100;

/// A column of the table.
struct Target<'h> {
    name: &'h str,
    /// `None` for what has everything.
    device: Option<&'h Device>,
    /// Whether it got every kernel.
    whole: bool,
}

impl Target<'_> {
    fn has(&self, needs: Needs) -> bool {
        let Some(device) = self.device else { return true };
        let features = device.properties().features;
        let sizes_known = crate::run::subgroup_size(device).is_some();
        (!needs.int64 || features.has(Feature::Int64))
            && (!needs.float64 || features.has(Feature::Float64))
            && (!needs.subgroups || features.has(Feature::Subgroups) && sizes_known)
    }
}

/// The evaluator, the checker, the devices, and CUDA C on the CPU.
fn targets(harness: &Harness) -> Vec<Target<'_>> {
    let own = ["evaluator", "checker"].map(|name| Target { name, device: None, whole: true });
    let devices =
        harness.devices.iter().map(|held| Target { name: held.name(), device: Some(&held.device), whole: true });
    let fibers = harness.fibers.iter().map(|(_, every)| Target { name: PLACE, device: None, whole: *every == 1 });
    own.into_iter().chain(devices).chain(fibers).collect()
}

/// A combination that came up too rarely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rare {
    /// Which.
    pub combination: Combination,
    /// Where.
    pub target: String,
    /// In how many kernels.
    pub count: u32,
}

impl fmt::Display for Rare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, ty) = self.combination.key();
        write!(f, "{kind} of {ty} on {}: {}", self.target, self.count)
    }
}

/// The combinations of the language that came up in fewer kernels than they should on a target that has them and got every kernel.
pub fn rare(harness: &Harness, log: &Log, least: u32) -> Vec<Rare> {
    let mut rare = Vec::new();
    for combination in all() {
        for target in targets(harness).iter().filter(|target| target.whole && target.has(combination.needs())) {
            let count = log.table.count(&combination.key(), target.name);
            if count < least {
                rare.push(Rare { combination, target: target.name.to_owned(), count });
            }
        }
    }
    rare
}

/// The page.
pub fn page(harness: &Harness, log: &Log, refused: &[String]) -> String {
    let targets = targets(harness);
    let combinations = all();
    let mut out = String::from("# Kernels drawn at random\n\n");
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(
        "Written by `cargo run --release -p trefoil-random`, which draws kernels from seeds and holds every target to what they mean (`random/`).",
    );
    line("");
    line(
        "In no kernel are returns without a value, enums, steps of loops that are known only when the kernel runs, workgroups along y and z, arrays in arrays and of structs, views, arrays sized by specialisation constants, ordered atomics and those of 64 bits, fences, asynchronous copies, tiles, matrices, stated sizes of subgroups, `index = 64`, `if const`, and `strict` or `fast` arithmetic.",
    );
    line("");
    for held in &harness.devices {
        let properties = held.device.properties();
        line(&format!("* {}: {}, {}", held.name(), properties.name, properties.driver));
    }
    if let Some((fibers, every)) = &harness.fibers {
        line(&format!(
            "* {PLACE}: CUDA C of one kernel in {every}, compiled by {} and run on the CPU",
            fibers.compiler()
        ));
    }
    refused.iter().for_each(|text| line(&format!("* {text}")));
    log.lines().iter().for_each(|text| line(&format!("* {text}")));
    let rare = rare(harness, log, LEAST);
    line(&format!(
        "* {} of {} combinations of a kind of node and a type came up in fewer than {LEAST} kernels on some target that has them",
        rare.len(),
        combinations.len()
    ));
    rare.iter().for_each(|text| line(&format!("  * {text}")));
    for (seed, failure) in &log.failures {
        line(&format!("* seed {seed} fails: {}", failure.to_string().lines().next().unwrap_or_default()));
    }
    line("");
    line(
        "A cell says in how many of the kernels that a target computed as they are meant a value of this kind and type reached an output; `-` is what the target lacks. Vectors and arrays count as their elements. Kinds without a type steer.",
    );
    line("");
    let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
    line(&format!("| kind of node | type | {} |", names.join(" | ")));
    line(&format!("|---|---|{}", "---|".repeat(names.len())));
    let known: Vec<(Row, Needs)> = combinations.iter().map(|one: &Combination| (one.key(), one.needs())).collect();
    let others = log.table.counts.keys().filter(|row| !known.iter().any(|(key, _)| key == *row));
    let others: Vec<(Row, Needs)> = others.map(|row| (row.clone(), Needs::default())).collect();
    for (row, needs) in known.iter().chain(&others) {
        let mut text = format!("| {} | {} |", row.0, row.1);
        for target in &targets {
            let count = log.table.count(row, target.name);
            let _ = if count > 0 || target.has(*needs) { write!(text, " {count} |") } else { write!(text, " - |") };
        }
        line(&text);
    }
    out
}
