//! The kernels that mistakes are made in: instances with the launches that say most about them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use trefoil_codegen::ir::{Module, instantiate};

use crate::probe;
use crate::run::{NoRun, Ran, program, run};
use trefoil_codegen::check::{CheckError, Launch};

/// Launches of an instance that are looked at, the smallest first.
const CANDIDATES: usize = 12;
/// Findings in a run of a kernel itself: reads past the end that are meant.
const MOST_FINDINGS: usize = 1000;

/// How much kernels are looked at, in words that the checker computes ([`trefoil_codegen::check::Report::work`]): by a clock it would be other launches on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// What a launch may take.
    pub launch: u64,
    /// Of a family whose mutants took more together, no further instance is looked at.
    pub family: u64,
}

impl Patience {
    /// For every kernel that there is: about 100 ms a launch and 30 s a family, where a word takes 2.5 ns. In the product of 256 × 256 of the checker's tests, which has about 300 million of the fastest, it took 1 to 2 ns on three machines (`benches/NOTES.md`).
    pub const BRIEF: Self = Self { launch: 40_000_000, family: 12_000_000_000 };
    /// Everything is looked at.
    pub const ENDLESS: Self = Self { launch: u64::MAX, family: u64::MAX };
}

/// An instance, with launches of it as it runs itself.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The instance's name.
    pub instance: String,
    /// The instance, before its specialisation constants have values.
    pub module: Module,
    /// Launches that get to all places to which any of those that were looked at get, on a target with subgroups or without, with what the checker tells of them and what they leave.
    pub runs: Vec<(Launch, bool, Ran)>,
    /// What the checker tells of the kernel itself, but for accesses past the end that are meant.
    pub amiss: BTreeSet<String>,
}

/// Kernels of one text: a generic one, or several that a macro makes. Their sites are the same.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// The generic kernels.
    pub kernels: BTreeSet<String>,
    /// Launches, by instance.
    pub instances: BTreeMap<String, Vec<Launch>>,
}

impl Family {
    /// The launches of the instances that are looked at: the first, the last and one between, which are of unlike types and sizes.
    pub fn looked_at(&self) -> Vec<&Vec<Launch>> {
        let last = self.instances.len().saturating_sub(1);
        let chosen = BTreeSet::from([0, last / 2, last]);
        self.instances
            .values()
            .enumerate()
            .filter(|(at, _)| chosen.contains(at))
            .map(|(_, launches)| launches)
            .collect()
    }
}

/// Launches by the text of their kernels; those of kernels that nobody wrote, as graphs make them, are left out.
///
/// # Errors
/// A launch holds no kernel.
pub fn families(launches: Vec<Launch>) -> Result<Vec<Family>, CheckError> {
    let mut known: BTreeMap<Vec<u8>, Option<(String, String)>> = BTreeMap::new();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for launch in launches {
        if !known.contains_key(&launch.ir) {
            let module = launch.source()?.0;
            let first = module.entry.body.first().filter(|first| module.locations.position(first.span).is_some());
            let text = first.map(|first| (module.locations.describe(first.span), module.name));
            known.insert(launch.ir.clone(), text);
        }
        let Some(Some((text, kernel))) = known.get(&launch.ir) else { continue };
        let family = families.entry(text.clone()).or_default();
        family.kernels.insert(kernel.clone());
        family.instances.entry(launch.kernel.clone()).or_default().push(launch);
    }
    Ok(families.into_values().collect())
}

/// About how much work a launch is.
fn size(launch: &Launch) -> u64 {
    let bytes: u64 = launch.buffers.iter().map(|buffer| buffer.len() as u64).sum();
    bytes + launch.groups.iter().map(|count| u64::from(*count)).product::<u64>() * 256
}

/// The smallest first, and those of one size by what they hold: the names of their files depend on which test ran when.
fn order(a: &Launch, b: &Launch) -> Ordering {
    let by_size = size(a).cmp(&size(b)).then_with(|| a.groups.cmp(&b.groups));
    let by_arguments = || a.constants.cmp(&b.constants).then_with(|| a.params.cmp(&b.params));
    by_size.then_with(by_arguments).then_with(|| a.buffers.cmp(&b.buffers))
}

impl Subject {
    /// Of an instance's launches: those that get somewhere where no smaller one gets, and the largest that does not take too much.
    ///
    /// # Errors
    /// There is no launch, or its kernel does not run in the checker.
    pub fn new(mut launches: Vec<Launch>, patience: Patience) -> Result<Self, CheckError> {
        launches.sort_by(order);
        let Some(first) = launches.first() else {
            return Err(CheckError { kernel: String::new(), reason: "it is never launched".to_owned() });
        };
        let instance = first.kernel.clone();
        let failed = |reason: String| CheckError { kernel: instance.clone(), reason };
        let (generic, values) = first.source()?;
        let module = instantiate(&generic, &values).map_err(|found| failed(found.to_string()))?;
        let probed = probe::everywhere(&module);
        let mut subject = Self { instance: instance.clone(), module, runs: Vec::new(), amiss: BTreeSet::new() };
        let mut known = BTreeSet::new();
        let mut largest = None;
        let step = launches.len().div_ceil(CANDIDATES).max(1);
        let launches = launches.into_iter().step_by(step).flat_map(|launch| [(launch.clone(), true), (launch, false)]);
        for (launch, has_subgroups) in launches {
            let ran = run_of(&subject.module, &launch, has_subgroups, MOST_FINDINGS).map_err(failed)?;
            if ran.work > patience.launch && !subject.runs.is_empty() {
                break;
            }
            let amiss = ran.told.iter().filter(|told| told.kind != "past the end");
            subject.amiss.extend(amiss.map(|told| format!("{instance}: {} at {}", told.kind, told.at)));
            let places = run_of(&probed, &launch, has_subgroups, usize::MAX).map_err(failed)?;
            let before = known.len();
            known.extend(places.told.iter().filter_map(|told| probe::number(&told.at)));
            if known.len() > before {
                subject.runs.push((launch, has_subgroups, ran));
                largest = None;
            } else {
                largest = Some((launch, has_subgroups, ran));
            }
        }
        subject.runs.extend(largest);
        Ok(subject)
    }
}

/// A run of a module with a launch.
fn run_of(module: &Module, launch: &Launch, has_subgroups: bool, most_findings: usize) -> Result<Ran, String> {
    let ran = program(module, &launch.constants);
    let ran = ran.and_then(|program| run(&program, launch, has_subgroups, most_findings));
    ran.map_err(|reason| match reason {
        NoRun::Refused(lines) => format!("the verifier refuses it at {lines:?}"),
        NoRun::Failed(reason) => reason,
    })
}
