//! Every mutant of every kernel.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use trefoil_codegen::check::CheckError;
use trefoil_codegen::diagnostic::Diagnostic;

use crate::fate::{Fate, Outcome, fate};
use crate::mistake::Mistake;
use crate::mutate::sites;
use crate::site::Site;
use crate::subject::{Family, Patience, Subject};

/// What became of the mutants of a family.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The generic kernels.
    pub kernels: Vec<String>,
    /// The instances.
    pub instances: Vec<String>,
    /// Launches, of all instances.
    pub launches: usize,
    /// Each site once, however many instances have it.
    pub outcomes: Vec<Outcome>,
    /// What the checker tells of the kernel itself.
    pub amiss: Vec<String>,
    /// What the checker did for its mutants ([`trefoil_codegen::check::Report::work`]).
    pub work: u64,
    /// What its mutants took, one after the other: for who waits alone, since it decides nothing.
    pub took: Duration,
}

/// What a site is in all instances of a kernel.
type Key = (Mistake, String, String, u32);

fn key(subject: &Subject, site: &Site) -> Key {
    (site.mistake, subject.module.locations.describe(site.span), site.function.clone(), site.number)
}

/// Surveys kernels on the threads of the pool that it is called in; `note` is told of each family that is done. Of each instance one site in `every` is looked at.
///
/// # Errors
/// A kernel does not run in the checker.
pub fn survey(
    families: &[Family],
    every: usize,
    patience: Patience,
    note: &(dyn Fn(&Surveyed) + Sync),
) -> Result<Vec<Surveyed>, CheckError> {
    let look = |family: &Family| {
        let surveyed = look_at(family, every, patience)?;
        note(&surveyed);
        Ok(surveyed)
    };
    families.par_iter().map(look).collect()
}

fn look_at(family: &Family, every: usize, patience: Patience) -> Result<Surveyed, CheckError> {
    let mut outcomes: BTreeMap<Key, Outcome> = BTreeMap::new();
    let mut surveyed = Surveyed {
        kernels: family.kernels.iter().cloned().collect(),
        instances: Vec::new(),
        launches: 0,
        outcomes: Vec::new(),
        amiss: Vec::new(),
        work: 0,
        took: Duration::ZERO,
    };
    for launches in family.looked_at() {
        if surveyed.work > patience.family {
            break;
        }
        let subject = Subject::new(launches.clone(), patience)?;
        let failed = |found: Diagnostic| CheckError { kernel: subject.instance.clone(), reason: found.message };
        // What a mutant does in one instance is rarely another thing in the next: those are for sites that only they have, and for mutants that survive.
        let all = sites(&subject.module).map_err(failed)?;
        let open = |site: &Site| outcomes.get(&key(&subject, site)).is_none_or(|outcome| outcome.fate > Fate::Beside);
        let chosen: Vec<(usize, &Site)> =
            all.iter().enumerate().step_by(every.max(1)).filter(|(_, site)| open(site)).collect();
        let mutants = chosen.into_par_iter().map(|(position, site)| {
            let start = Instant::now();
            let outcome = fate(&subject, site, position).map_err(failed)?;
            Ok((key(&subject, site), outcome, start.elapsed()))
        });
        for (key, outcome, took) in mutants.collect::<Result<Vec<_>, CheckError>>()? {
            surveyed.work += outcome.work;
            surveyed.took += took;
            if outcomes.get(&key).is_none_or(|known| outcome.fate < known.fate) {
                outcomes.insert(key, outcome);
            }
        }
        surveyed.launches += subject.runs.len();
        surveyed.amiss.extend(subject.amiss);
        surveyed.instances.push(subject.instance);
    }
    surveyed.outcomes = outcomes.into_values().collect();
    Ok(surveyed)
}
