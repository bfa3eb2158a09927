//! A device that checks the kernels of the library, and what it found amiss.
//!
//! The library reads past the end of buffers on purpose: that is a zero, and costs no branch. Such reads are counted; of everything else nothing may be found.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Instant;

use trefoil::Device;
use trefoil::check::{self, Finding, Launch, MemoryKind, Options, Reports};

use crate::launches;

/// A device that checks, with what ran there.
pub struct Checker {
    pub device: Device,
    reports: Reports,
    kernels: RefCell<BTreeSet<String>>,
    dispatches: Cell<usize>,
    past_end: Cell<usize>,
    /// What was found, each once.
    amiss: RefCell<BTreeSet<String>>,
}

impl Checker {
    /// Opens one for whoever asks: what it finds is theirs.
    pub fn open() -> Self {
        let checker = Self::unwatched();
        launches::keep(&checker.reports);
        checker
    }

    /// Opens one of which somebody is told what is launched there.
    pub fn watched(watcher: impl Fn(&Launch) + Send + Sync + 'static) -> Self {
        let checker = Self::unwatched();
        checker.reports.watch(watcher);
        checker
    }

    fn unwatched() -> Self {
        // A run ends with so many findings, and reads past the end are some.
        let options = Options { most_findings: 1000, ..Options::default() };
        let (device, reports) = check::device(&options).unwrap();
        let (kernels, dispatches, past_end, amiss) = Default::default();
        Self { device, reports, kernels, dispatches, past_end, amiss }
    }

    /// Says which kernels ran, and keeps what was amiss since the last call.
    pub fn ran<'a>(&self, kernels: impl IntoIterator<Item = &'a str>, place: &str) {
        let found = self.reports.take();
        // Of launches without workgroups there are no reports.
        if found.is_empty() {
            return;
        }
        self.dispatches.set(self.dispatches.get() + found.len());
        for mut report in found {
            assert!(!report.stopped, "{place}: it ended early; {report}");
            let all = report.findings.len();
            report.findings.retain(|found| !is_zero_from_past_the_end(&found.finding));
            self.past_end.set(self.past_end.get() + usize::from(report.findings.len() < all));
            if !report.is_clean() && self.amiss.borrow().iter().all(|known| !known.contains(&report.kernel)) {
                self.amiss.borrow_mut().insert(format!("{place}: {report}"));
            }
        }
        self.kernels.borrow_mut().extend(kernels.into_iter().map(str::to_owned));
    }

    /// Tells how many of the library's kernels ran since `start`, and gives their names. Nothing may have been amiss.
    pub fn told(self, family: &str, start: Instant) -> BTreeSet<String> {
        let library: BTreeSet<String> =
            trefoil::kernels::library().into_iter().map(|kernel| kernel.name.to_string()).collect();
        let kernels: BTreeSet<String> = self.kernels.into_inner().intersection(&library).cloned().collect();
        let (dispatches, past_end) = (self.dispatches.get(), self.past_end.get());
        println!(
            "{family} in the checker: {} kernels, {dispatches} dispatches, {past_end} of which read past the end of a buffer, {:.1} s",
            kernels.len(),
            start.elapsed().as_secs_f64()
        );
        let amiss = self.amiss.into_inner();
        assert!(amiss.is_empty(), "{}", amiss.into_iter().collect::<Vec<_>>().join("\n"));
        kernels
    }
}

fn is_zero_from_past_the_end(finding: &Finding) -> bool {
    matches!(finding, Finding::PastEnd { memory, access, .. } if memory.kind == MemoryKind::Buffer && !access.writes)
}
