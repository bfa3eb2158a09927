//! From a graph to commands, stage by stage. Each stage is one file and leaves something that its checker accepts; the checkers run in debug builds
//! and in tests.
//!
//! | stage | what it does |
//! |---|---|
//! | [`legalise`] | views become layouts of the memory that they read; elements that strides cannot arrange are copied |
//! | [`keep`] | versions of states that are read after they were replaced are copied before |
//! | [`choose`] | each op with kernels gets the cheapest candidate that can do it; operands that it wants contiguous are copied, and some are written over (`over`) |
//! | [`fuse`] | maps, copies among them, become regions, each one generated kernel, or a part of the kernel beside it |
//! | [`steps`] | regions, pulls and candidates become one list of steps, with what each reads and writes |
//! | `order` | steps that need nothing of each other stand together, where that takes no more memory |
//! | [`plan`] | every tensor that lives in activation memory gets a place |
//! | [`schedule`] | barriers stand where byte ranges need them |
//! | [`prove`] | an independent simulation: every step reads the values that the graph means |
//! | [`record`] | parameter blocks and grids get places in the run words, and the commands are recorded |
//! | `trace` | what was recorded, as the proof looks at it |
//!
//! Candidates are chosen before maps are fused, so that the copies which a candidate wants are maps like any other.

mod alive;
pub(crate) mod by_value;
pub mod cache;
pub mod choose;
pub mod fuse;
pub mod keep;
pub mod legalise;
mod order;
mod over;
pub mod plan;
pub mod program;
pub mod prove;
pub(crate) mod pull;
pub mod record;
pub mod schedule;
pub mod stages;
pub mod steps;
pub(crate) mod trace;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// How to compile a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether sums may not depend on the order of execution.
    pub deterministic: bool,
    /// Whether maps are fused; without it each map is a kernel of its own.
    pub fuse: bool,
    /// For an op or a node, by name, the candidate that must compute it.
    pub force: BTreeMap<String, String>,
    /// Candidates, by name, that must not be used; and `prologue` or `epilogue`, where regions must not go into the kernels of candidates on that side, or `beside`, where small regions must not share a kernel.
    pub forbid: BTreeSet<String>,
    /// Where regions go into the kernels of candidates, if maps are fused at all.
    pub into_kernels: IntoKernels,
    /// Inputs, by name, whose memory nothing else uses within a run, so that runs may leave them as they are ([`crate::executable::Run::unchanged`]). The memory of other inputs serves again once they are read.
    pub resident: BTreeSet<String>,
}

/// Where regions of maps go into the kernels beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntoKernels {
    /// Where fewer bytes are moved for it, and not on the CPU, which has the kernels compiled.
    #[default]
    WherePaid,
    /// Wherever it is possible, whatever it costs: for tests and measurements.
    Everywhere,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deterministic: false,
            fuse: true,
            force: BTreeMap::new(),
            forbid: BTreeSet::new(),
            into_kernels: IntoKernels::WherePaid,
            resident: BTreeSet::new(),
        }
    }
}

/// Runs a stage's checker, in debug builds.
pub(crate) fn checked(stage: &'static str, check: impl FnOnce() -> Result<(), String>) -> Result<()> {
    if cfg!(debug_assertions) {
        check().map_err(|defect| Error::Stage { stage, defect })?;
    }
    Ok(())
}
