//! What becomes of a mutant.

use std::collections::BTreeMap;

use trefoil_codegen::check::Program;
use trefoil_codegen::diagnostic::Diagnostic;
use trefoil_codegen::ir::Module;

use crate::mistake::Mistake;
use crate::mutate::{Change, changed};
use crate::probe;
use crate::run::{NoRun, Ran, Told, program, run};
use crate::site::Site;
use crate::subject::Subject;

/// Findings of a mutant beyond those of the kernel itself, after which a run ends.
const MORE_FINDINGS: usize = 8;

/// What becomes of a mutant, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The checker tells of the site's line.
    AtItsLine,
    /// The verifier refuses it.
    Refused,
    /// The checker tells of what the mistake is about ([`crate::site::About`]).
    Beside,
    /// The checker tells of something else.
    Elsewhere,
    /// The checker tells of nothing, and the result is another.
    OtherResult,
    /// Nothing is different.
    Equal,
}

impl Fate {
    /// Every one, as the page heads its column.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::AtItsLine, "told of at the line"),
        (Self::Refused, "refused"),
        (Self::Beside, "told of beside it"),
        (Self::Elsewhere, "told of elsewhere"),
        (Self::OtherResult, "seen in the result"),
        (Self::Equal, "equal"),
    ];
}

/// A site with what became of the mutant there.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The site.
    pub site: Site,
    /// What became of it.
    pub fate: Fate,
    /// For what survives, why; for the others, what was told of.
    pub reason: String,
    /// What the checker did for all runs that told so ([`trefoil_codegen::check::Report::work`]).
    pub work: u64,
}

/// What becomes of the mutant at a site of a subject, by its position.
///
/// # Errors
/// The instance cannot be copied, or the checker does not run the mutant.
pub fn fate(subject: &Subject, site: &Site, position: usize) -> Result<Outcome, Diagnostic> {
    let module = changed(&subject.module, position, Change::Mistake)?;
    let mut best = (Fate::Equal, String::new());
    let mut failed = None;
    let mut work = 0;
    each_run(subject, &module, &mut work, &mut |ran, itself| {
        let (fate, reason) = match ran {
            Ok(ran) => judged(site, &ran, itself),
            Err(NoRun::Refused(lines)) => (Fate::Refused, lines.into_iter().collect::<Vec<_>>().join(", ")),
            Err(NoRun::Failed(reason)) => {
                failed = Some(reason);
                return false;
            }
        };
        if fate < best.0 {
            best = (fate, reason);
        }
        best.0 > Fate::Beside
    });
    if let Some(reason) = failed {
        let words = format!("the checker does not run it with {} at {}: {reason}", site.mistake, site.line);
        return Err(Diagnostic::new(site.span, words));
    }
    let (fate, mut reason) = best;
    if fate >= Fate::OtherResult {
        reason = survives(subject, site, position, fate, &mut work)?;
    }
    Ok(Outcome { site: site.clone(), fate, reason, work })
}

/// Runs a changed subject with its launches, for as long as `visit` wants more, and adds to `work` what that takes.
fn each_run(
    subject: &Subject,
    module: &Module,
    work: &mut u64,
    visit: &mut dyn FnMut(Result<Ran, NoRun>, &Ran) -> bool,
) {
    let mut programs: BTreeMap<&[i64], Result<Program, NoRun>> = BTreeMap::new();
    for (launch, has_subgroups, itself) in &subject.runs {
        let made = programs.entry(&launch.constants).or_insert_with(|| program(module, &launch.constants));
        let ran = match made {
            Ok(program) => run(program, launch, *has_subgroups, itself.told.len() + MORE_FINDINGS),
            Err(reason) => Err(reason.clone()),
        };
        *work += ran.as_ref().map_or(0, |ran| ran.work);
        if !visit(ran, itself) {
            return;
        }
    }
}

/// What a run of a mutant says, beside that of the kernel itself.
fn judged(site: &Site, ran: &Ran, itself: &Ran) -> (Fate, String) {
    let new: Vec<&Told> = ran.told.difference(&itself.told).collect();
    let words = |told: &Told| format!("{} at {}", told.kind, told.at);
    if let Some(told) = new.iter().find(|told| told.lines.contains(&site.line)) {
        return (Fate::AtItsLine, words(told));
    }
    let about = &site.about;
    let is_beside = |told: &&&Told| {
        let ordered = about.orders && matches!(told.kind, "race" | "copy under way" | "uninitialised");
        let memory = told.memory.as_ref().is_some_and(|memory| about.memories.contains(memory));
        ordered || memory || told.lines.iter().any(|line| about.lines.contains(line))
    };
    if let Some(told) = new.iter().find(is_beside) {
        return (Fate::Beside, words(told));
    }
    match new.first() {
        Some(told) => (Fate::Elsewhere, words(told)),
        None if ran.after != itself.after => (Fate::OtherResult, String::new()),
        None => (Fate::Equal, String::new()),
    }
}

/// Why nothing is told of a mutant.
fn survives(subject: &Subject, site: &Site, position: usize, fate: Fate, work: &mut u64) -> Result<String, Diagnostic> {
    let reason = match (fate, site.mistake) {
        (Fate::OtherResult, Mistake::BarrierDropped) => "what comes in which order decides, and no race",
        (Fate::OtherResult, Mistake::IndexShifted) => "the element beside it is there too: another kernel",
        (Fate::OtherResult, Mistake::GuardDropped) => "what it guards can be done always: another kernel",
        (Fate::OtherResult, Mistake::InitialisationSkipped) => "what was written before is still there: another kernel",
        (Fate::OtherResult, Mistake::BranchDiverges) => "the first invocation may do something else: another kernel",
        _ if !gets_there(subject, position, Change::Reached, work)? => "no launch gets there",
        (_, Mistake::BarrierDropped) => {
            "of what one invocation writes before it, or after it, no other accesses anything on the other side"
        }
        (_, Mistake::IndexShifted) => "the element beside it leads to the same result",
        (_, Mistake::GuardDropped) if !gets_there(subject, position, Change::Differs, work)? => {
            match site.about.exits {
                true => "its condition holds in no launch",
                false => "its condition holds in every launch",
            }
        }
        (_, Mistake::GuardDropped) if site.about.exits => "where its condition holds, going on changes nothing",
        (_, Mistake::GuardDropped) => "where its condition does not hold, doing it changes nothing",
        (_, Mistake::InitialisationSkipped) => "it is always written again before it is read",
        (_, Mistake::BranchDiverges) if !gets_there(subject, position, Change::Differs, work)? => {
            "its condition holds for no first invocation of a workgroup"
        }
        (_, Mistake::BranchDiverges) => "what the first invocation of a workgroup does there changes nothing",
    };
    Ok(reason.to_owned())
}

/// Whether a run gets to the probe of a site.
fn gets_there(subject: &Subject, position: usize, change: Change, work: &mut u64) -> Result<bool, Diagnostic> {
    let module = changed(&subject.module, position, change)?;
    let mut found = false;
    each_run(subject, &module, work, &mut |ran, _| {
        found |= ran.is_ok_and(|ran| ran.told.iter().any(|told| probe::number(&told.at).is_some()));
        !found
    });
    Ok(found)
}
