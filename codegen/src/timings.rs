//! Where the time of a compilation goes: what `TREFOIL_TIMINGS=1` prints.
//!
//! [`collect`] measures on its thread until its work is done; inside it each [`stage`] adds the time of its work less that of the stages
//! within. Outside of it a stage costs a look at a thread-local.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

macro_rules! stages {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// A stage of the compiler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Stage {
            $($(#[$doc])* $variant,)*
        }

        impl Stage {
            /// Every stage, in the order of a compilation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name for people.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

stages! {
    /// Rust syntax to IR.
    Front = "front";
    /// Rules and facts, for each instance.
    Verify = "verify";
    /// Legalisation, for each variant.
    Lower = "lower";
    /// Printing WGSL.
    Wgsl = "wgsl";
    /// naga's judgement of the WGSL.
    Naga = "naga";
    /// Writing SPIR-V.
    Spirv = "spirv";
    /// Printing CUDA C.
    Cuda = "cuda";
    /// Printing the Rust that runs on the CPU.
    Cpu = "cpu";
    /// What is in no other stage: in a macro, reading and writing tokens.
    Rest = "rest";
    /// Waiting for other threads, whose own work is in the stages above.
    Wait = "wait";
}

/// Times by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings([Duration; Stage::ALL.len()]);

impl Timings {
    /// No time.
    pub const NONE: Self = Self([Duration::ZERO; Stage::ALL.len()]);

    /// The time of a stage.
    pub const fn of(&self, stage: Stage) -> Duration {
        self.0[stage as usize]
    }

    /// The work of all stages, on however many threads.
    pub fn total(&self) -> Duration {
        self.0.iter().sum::<Duration>() - self.of(Stage::Wait)
    }

    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (sum, time) in self.0.iter_mut().zip(&other.0) {
            *sum += *time;
        }
        self
    }
}

/// `12.3 ms (front 1.0, verify 0.8, ..)`, in milliseconds.
impl fmt::Display for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        write!(f, "{:.1} ms (", milliseconds(self.total()))?;
        for (position, stage) in Stage::ALL.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{} {:.1}", stage.name(), milliseconds(self.of(*stage)))?;
        }
        f.write_str(")")
    }
}

/// What is being measured: the stages that are open, innermost last, and since when the innermost is charged.
struct Clock {
    timings: Timings,
    open: Vec<Stage>,
    since: Instant,
}

impl Clock {
    /// Charges the innermost stage until now.
    fn charge(&mut self) {
        let now = Instant::now();
        if let Some(stage) = self.open.last() {
            self.timings.0[*stage as usize] += now - self.since;
        }
        self.since = now;
    }
}

thread_local! {
    static CLOCK: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// Does the work and gives its times; what is in no stage is [`Stage::Rest`]. Within another `collect` on the same thread, that one's
/// measurement ends.
pub fn collect<R>(work: impl FnOnce() -> R) -> (R, Timings) {
    let clock = Clock { timings: Timings::default(), open: vec![Stage::Rest], since: Instant::now() };
    CLOCK.set(Some(clock));
    let result = work();
    let timings = CLOCK.take().map_or_else(Timings::default, |mut clock| {
        clock.charge();
        clock.timings
    });
    (result, timings)
}

/// Whether a [`collect`] on this thread is measuring.
pub fn is_measuring() -> bool {
    CLOCK.with_borrow(Option::is_some)
}

/// As [`collect`] if asked to, which costs nothing otherwise: for threads that work for a measured one.
pub fn collect_if<R>(wanted: bool, work: impl FnOnce() -> R) -> (R, Timings) {
    if wanted { collect(work) } else { (work(), Timings::NONE) }
}

/// Adds what another thread measured to what [`collect`] measures here, if it does.
pub fn add(other: &Timings) {
    CLOCK.with_borrow_mut(|clock| {
        if let Some(clock) = clock {
            clock.timings = clock.timings.plus(other);
        }
    });
}

/// Does the work as a stage of what [`collect`] measures, if it does.
pub fn stage<R>(stage: Stage, work: impl FnOnce() -> R) -> R {
    let change = |open: &dyn Fn(&mut Vec<Stage>)| {
        CLOCK.with_borrow_mut(|clock| {
            if let Some(clock) = clock {
                clock.charge();
                open(&mut clock.open);
            }
        });
    };
    change(&|open| open.push(stage));
    let result = work();
    change(&|open| {
        open.pop();
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_within_another_is_charged_once() {
        let pause = || std::thread::sleep(Duration::from_millis(2));
        let ((), timings) = collect(|| {
            stage(Stage::Wgsl, || {
                pause();
                stage(Stage::Naga, pause);
            });
            pause();
        });
        for charged in [Stage::Wgsl, Stage::Naga, Stage::Rest] {
            assert!(timings.of(charged) >= Duration::from_millis(2), "{timings}");
        }
        assert_eq!(timings.of(Stage::Spirv), Duration::ZERO);
        let sum: Duration = Stage::ALL.iter().map(|stage| timings.of(*stage)).sum();
        assert_eq!(sum, timings.total());
        assert_eq!(timings.plus(&timings).total(), 2 * sum);
        assert!(timings.to_string().contains("ms (front 0.0, verify 0.0"), "{timings}");
    }
}
