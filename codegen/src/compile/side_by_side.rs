//! The macro's way: all instances of a kernel on as many threads as there are processors.
//!
//! Threads take parts from one list, so that none waits for another while there is something left. What naga judges longest is judged while the macro's own thread, which
//! alone may make tokens, already puts together what the kernel becomes; a text that naga refuses takes that back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::{Emitted, Instantiated, Reports, assemble, emit, instantiated, judge, module_bytes, of_cpu, unjudged};
use crate::artefact::{Code, Kernel};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit::{Emitter, Source};
use crate::ir::{Instance, Module};
use crate::lower::Lowered;
use crate::target::{ParamTransport, Profile, Target};
use crate::timings::{self, Stage, stage};
use crate::variants::variants;

/// An instance that was compiled together with others, with what its caller made of it.
#[derive(Clone, Debug)]
pub struct Built<T, S> {
    /// The artefact; its `cpu` is empty.
    pub kernel: Kernel,
    /// The CPU's code, if the kernel lists the CPU.
    pub printed: Option<T>,
    /// What the caller makes of the code of each variant.
    pub spelled: Vec<S>,
}

/// Compiles instances for every target that their kernel lists, where the CPU's code is for the caller to print: `print` does it on this thread while
/// others emit the rest, and `spell` what they emit, each on its thread. Then `finish` makes on this thread what the caller wants of all of it, while others
/// judge the WGSL.
///
/// # Errors
/// What naga says about the WGSL; what else is wrong with an instance is for `finish` to see.
pub fn build_and_print<T, S: Send, R>(
    module: &Module,
    instances: &[Instance],
    reports: Reports,
    mut print: impl FnMut(&Lowered) -> Result<T, Diagnostics>,
    spell: impl Fn(&Code) -> S + Sync,
    finish: impl FnOnce(Vec<Result<Built<T, S>, Diagnostics>>) -> R,
) -> (R, Result<(), Diagnostics>) {
    let verified = all_verified(module, instances, reports);
    let jobs: Vec<_> = verified
        .iter()
        .map(|made| made.as_ref().ok().map(|made| (Source::new(&made.verified), variants(&made.verified))))
        .collect();
    let parts = parts(&jobs);
    let work = Work {
        module,
        parts: &parts,
        spell,
        next: AtomicUsize::new(0),
        texts: Mutex::default(),
        refused: Mutex::default(),
    };
    let measuring = timings::is_measuring();
    // Asking the system anew for each kernel would read files.
    let processors = rayon::current_num_threads();
    let (sender, receiver) = mpsc::channel();
    let (times_sender, times) = mpsc::channel();
    // The threads stay from kernel to kernel, and with them their memory.
    let finished = rayon::in_place_scope(|scope| {
        for _ in 0..processors.saturating_sub(1).clamp(1, parts.len().max(1)) {
            let (sender, times, work) = (sender.clone(), times_sender.clone(), &work);
            scope.spawn(move |_| {
                let ((), measured) = timings::collect_if(measuring, || {
                    while let Some((done, texts)) = work.next_part() {
                        // Whoever waits for it is there until all have sent.
                        let _ = sender.send(done);
                        work.judge(texts);
                    }
                    work.judge_rest();
                });
                let _ = times.send(measured);
            });
        }
        drop((sender, times_sender));
        // The others begin with the first instance: where two begin with the same one, one waits for what is common to all targets.
        let mut printed: Vec<_> = jobs
            .iter()
            .rev()
            .map(|job| {
                let Some((source, profiles)) = job else { return Ok(None) };
                let Some((profile, transport)) = of_cpu(profiles) else { return Ok(None) };
                print(Emitter::new(source).lowered(profile, *transport)?).map(Some)
            })
            .collect();
        printed.reverse();
        let mut emitted = Vec::new();
        while let Some((done, texts)) = work.next_part() {
            emitted.push(done);
            work.texts.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
        }
        let missing = parts.len() - emitted.len();
        emitted.extend(stage(Stage::Wait, || receiver.iter().take(missing).collect::<Vec<_>>()));
        let finished = finish(assembled(module, instances, &verified, &parts, emitted, printed));
        work.judge_rest();
        for measured in stage(Stage::Wait, || times.iter().collect::<Vec<_>>()) {
            timings::add(&measured);
        }
        finished
    });
    let mut refused = work.refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    refused.sort_by_key(|(text, _)| *text);
    let refused: Vec<_> = refused.into_iter().map(|(_, diagnostic)| diagnostic).collect();
    (finished, if refused.is_empty() { Ok(()) } else { Err(Diagnostics(refused)) })
}

/// The instances, verified.
fn all_verified(module: &Module, instances: &[Instance], reports: Reports) -> Vec<Result<Instantiated, Diagnostics>> {
    let made = |instance| instantiated(module, instance, reports);
    // Threads would be woken for nothing.
    if let [instance] = instances {
        return vec![made(instance)];
    }
    let measuring = timings::is_measuring();
    let measured = |instance| timings::collect_if(measuring, || made(instance));
    let all: Vec<_> = stage(Stage::Wait, || instances.par_iter().map(measured).collect());
    all.into_iter()
        .map(|(verified, times)| {
            timings::add(&times);
            verified
        })
        .collect()
}

/// An instance that obeys the rules, and what to emit of it.
type Job<'v> = (Source<'v>, Vec<(Profile, ParamTransport)>);

/// What is emitted in one go: variants of an instance that are lowered once.
struct Part<'j> {
    instance: usize,
    source: &'j Source<'j>,
    profiles: &'j [(Profile, ParamTransport)],
}

/// The parts of all instances, those of each in the order of its artefact; an instance that breaks a rule has none. The CPU's code is only checked.
fn parts<'j>(jobs: &'j [Option<Job<'j>>]) -> Vec<Part<'j>> {
    let mut parts = Vec::new();
    for (instance, job) in jobs.iter().enumerate() {
        let Some((source, profiles)) = job else { continue };
        for profiles in profiles.chunk_by(|(a, _), (b, _)| (a.target, a.features) == (b.target, b.features)) {
            parts.push(Part { instance, source, profiles });
        }
    }
    // WGSL goes first, because naga takes longest.
    parts.sort_by_key(|part| part.profiles[0].0.target != Target::Wgsl);
    parts
}

/// What was emitted of the part with that number, and what the caller makes of its codes.
type Done<S> = (usize, Emitted, Vec<S>);
/// A text for naga, with the number of its part and of the variant in it.
type Text = ((usize, usize), String);

/// What threads take from.
struct Work<'w, F> {
    module: &'w Module,
    parts: &'w [Part<'w>],
    spell: F,
    next: AtomicUsize,
    /// What is to be judged by who has nothing else to do.
    texts: Mutex<Vec<Text>>,
    refused: Mutex<Vec<((usize, usize), Diagnostic)>>,
}

impl<S, F: Fn(&Code) -> S> Work<'_, F> {
    /// Emits the next part, if there is one; its texts are to be judged.
    fn next_part(&self) -> Option<(Done<S>, Vec<Text>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Part { source, profiles, .. } = self.parts.get(number)?;
        let emitted = emit(source, profiles);
        let spelled = emitted.variants.iter().map(|variant| (self.spell)(&variant.code)).collect();
        let texts = emitted.variants.iter().enumerate();
        let texts = texts.filter_map(|(place, variant)| Some(((number, place), unjudged(variant)?.to_owned())));
        let texts = texts.collect();
        Some(((number, emitted, spelled), texts))
    }

    fn judge(&self, texts: impl IntoIterator<Item = Text>) {
        for (number, text) in texts {
            if let Err(refused) = judge(self.module, &text) {
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).push((number, refused));
            }
        }
    }

    /// Judges what no other thread judges.
    fn judge_rest(&self) {
        let next = || self.texts.lock().unwrap_or_else(PoisonError::into_inner).pop();
        self.judge(std::iter::from_fn(next));
    }
}

/// The instances' artefacts of what was emitted of their parts, and of what was printed.
fn assembled<T, S>(
    module: &Module,
    instances: &[Instance],
    verified: &[Result<Instantiated, Diagnostics>],
    parts: &[Part<'_>],
    mut emitted: Vec<Done<S>>,
    printed: Vec<Result<Option<T>, Diagnostics>>,
) -> Vec<Result<Built<T, S>, Diagnostics>> {
    emitted.sort_by_key(|(number, ..)| *number);
    let mut of_instances: Vec<(Emitted, Vec<S>)> = instances.iter().map(|_| Default::default()).collect();
    for (number, emitted, spelled) in emitted {
        let (all, all_spelled) = &mut of_instances[parts[number].instance];
        all.append(emitted);
        all_spelled.extend(spelled);
    }
    let ir = module_bytes(module);
    let results = verified.iter().zip(instances).zip(of_instances).zip(printed);
    results
        .map(|(((verified, instance), (emitted, spelled)), printed)| {
            let verified = verified.as_ref().map_err(Clone::clone)?;
            let kernel = assemble(module, &ir, instance, &module.targets, verified, emitted)?;
            Ok(Built { kernel, printed: printed?, spelled })
        })
        .collect()
}
