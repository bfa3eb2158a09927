//! Every mutant of every kernel.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use trefoil_codegen::check::CheckError;
use trefoil_codegen::diagnostic::Diagnostic;

use crate::fate::{Fate, Outcome, fate};
use crate::mistake::Mistake;
use crate::mutate::sites;
use crate::site::Site;
use crate::subject::{Family, Subject};

/// Of a family that takes longer, no further instance is looked at.
const LONG: Duration = Duration::from_secs(30);

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
    /// What it took.
    pub took: Duration,
}

/// What a site is in all instances of a kernel.
type Key = (Mistake, String, String, u32);

fn key(subject: &Subject, site: &Site) -> Key {
    (site.mistake, subject.module.locations.describe(site.span), site.function.clone(), site.number)
}

/// Surveys kernels on so many threads; `note` is told of each family that is done. Of each instance one site in `every` is looked at.
///
/// # Errors
/// A kernel does not run in the checker.
pub fn survey(
    families: &[Family],
    threads: usize,
    every: usize,
    note: &(dyn Fn(&Surveyed) + Sync),
) -> Result<Vec<Surveyed>, CheckError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> Result<(), CheckError> {
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(family) = families.get(position) else { return Ok(()) };
            let surveyed = look_at(family, every)?;
            note(&surveyed);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((position, surveyed));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })?;
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(position, _)| *position);
    Ok(done.into_iter().map(|(_, surveyed)| surveyed).collect())
}

fn look_at(family: &Family, every: usize) -> Result<Surveyed, CheckError> {
    let start = Instant::now();
    let mut outcomes: BTreeMap<Key, Outcome> = BTreeMap::new();
    let mut surveyed = Surveyed {
        kernels: family.kernels.iter().cloned().collect(),
        instances: Vec::new(),
        launches: 0,
        outcomes: Vec::new(),
        amiss: Vec::new(),
        took: Duration::ZERO,
    };
    for launches in family.looked_at() {
        if start.elapsed() > LONG {
            break;
        }
        let subject = Subject::new(launches.clone())?;
        let failed = |found: Diagnostic| CheckError { kernel: subject.instance.clone(), reason: found.message };
        // What a mutant does in one instance is rarely another thing in the next: those are for sites that only they have, and for mutants that survive.
        for (position, site) in sites(&subject.module).map_err(failed)?.iter().enumerate().step_by(every.max(1)) {
            let key = key(&subject, site);
            let known = outcomes.get(&key).map(|outcome| outcome.fate);
            if known.is_some_and(|fate| fate <= Fate::Beside) {
                continue;
            }
            let outcome = fate(&subject, site, position).map_err(failed)?;
            if known.is_none_or(|known| outcome.fate < known) {
                outcomes.insert(key, outcome);
            }
        }
        surveyed.launches += subject.runs.len();
        surveyed.amiss.extend(subject.amiss);
        surveyed.instances.push(subject.instance);
    }
    surveyed.outcomes = outcomes.into_values().collect();
    surveyed.took = start.elapsed();
    Ok(surveyed)
}
