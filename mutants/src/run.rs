//! Runs in the checker, and what it tells of them.

use std::collections::BTreeSet;

use trefoil_codegen::check::{Finding, Launch, Options, Program};
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::{Module, specialise};
use trefoil_codegen::verify::verify_as_written;

/// A loop of more rounds does not end: more than any of the launches has, and few enough to wait for.
const MOST_ROUNDS: u64 = 20_000;

/// A finding, as far as two of them are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// The kind of finding.
    pub kind: &'static str,
    /// `file:line` of each place that it names.
    pub lines: BTreeSet<String>,
    /// The memory that it is about, by its author's name.
    pub memory: Option<String>,
    /// The first of its places as the checker names it, with the column.
    pub at: String,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What the checker tells.
    pub told: BTreeSet<Told>,
    /// What the bindings hold afterwards.
    pub after: Vec<Vec<u8>>,
    /// What the checker did for it ([`trefoil_codegen::check::Report::work`]).
    pub work: u64,
}

/// Why there is no run.
#[derive(Clone, Debug)]
pub enum NoRun {
    /// The verifier refuses the kernel, and names these lines.
    Refused(BTreeSet<String>),
    /// The checker does not run it with these arguments.
    Failed(String),
}

/// The instance that a module is with the constants of a launch, for the checker.
pub fn program(module: &Module, constants: &[i64]) -> Result<Program, NoRun> {
    let mut module = module.clone();
    if !constants.is_empty() {
        specialise(&mut module, constants);
    }
    let locations = module.locations.clone();
    let verified = verify_as_written(module).map_err(|Diagnostics(found)| {
        let lines = found.iter().map(|one| without_column(&locations.describe(one.span)).to_owned());
        NoRun::Refused(lines.collect())
    })?;
    Program::of_verified(verified).map_err(|error| NoRun::Failed(error.to_string()))
}

/// Runs a program with what a launch gave it, on a target with or without subgroups, until there are so many different findings.
pub fn run(program: &Program, launch: &Launch, has_subgroups: bool, most_findings: usize) -> Result<Ran, NoRun> {
    let options = Options { has_subgroups, most_findings, most_rounds: MOST_ROUNDS, ..Options::default() };
    let mut after = launch.buffers.clone();
    let report = program
        .run(&options, &mut after, &launch.params, launch.groups)
        .map_err(|error| NoRun::Failed(error.to_string()))?;
    let told = report.findings.iter().map(|found| told(&found.finding)).collect();
    Ok(Ran { told, after, work: report.work })
}

fn told(finding: &Finding) -> Told {
    let (kind, places, memory) = match finding {
        Finding::Race { memory, first, second, .. } => ("race", vec![&second.at, &first.at], Some(memory)),
        Finding::PastEnd { memory, access, .. } => ("past the end", vec![&access.at], Some(memory)),
        Finding::Uninitialised { memory, access, .. } => ("uninitialised", vec![&access.at], Some(memory)),
        Finding::CopyUnderWay { memory, access, copy, .. } => {
            ("copy under way", vec![&access.at, &copy.at], Some(memory))
        }
        Finding::Divergent { at, .. } => ("divergent", vec![at], None),
        Finding::Overflow { at, .. } => ("overflow", vec![at], None),
        Finding::DivisionByZero { at, .. } => ("division by zero", vec![at], None),
        Finding::NotANumber { at, .. } => ("not a number", vec![at], None),
        Finding::Endless { at, .. } => ("endless", vec![at], None),
        _ => ("other", Vec::new(), None),
    };
    Told {
        kind,
        lines: places.iter().map(|at| without_column(at).to_owned()).collect(),
        memory: memory.map(|memory| memory.name.clone()),
        at: places.first().map(|at| (*at).clone()).unwrap_or_default(),
    }
}

/// `file:line` of a place with a column; the file alone of code that nobody wrote.
fn without_column(at: &str) -> &str {
    at.rsplit_once(':').map_or(at, |(line, _)| line)
}
