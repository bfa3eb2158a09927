//! What an executable does, for people.

use std::fmt;

#[doc(inline)]
pub use crate::compile::choose::Decision;
#[doc(inline)]
pub use crate::compile::fuse::attach::{Merge, Side};
#[doc(inline)]
pub use crate::compile::fuse::beside::Beside;
#[doc(inline)]
pub use crate::compile::schedule::{Hazard, Reason};
use crate::types::TensorType;

/// What an executable does: its steps, memory, barriers and why, candidates and why not the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The device.
    pub device: String,
    /// The steps, in order.
    pub steps: Vec<ExplainedStep>,
    /// Bytes of each buffer of activations.
    pub activations: Vec<u64>,
    /// Bytes of the params and constants that it reads.
    pub params: u64,
    /// The states.
    pub states: Vec<ExplainedState>,
    /// Bytes of what kernels count in, which is memory of its own.
    pub counters: u64,
    /// Bytes of the run words.
    pub run_words: usize,
    /// The candidates of ops with kernels.
    pub decisions: Vec<Decision>,
    /// Regions beside kernels: which went into them, and why not the others.
    pub merges: Vec<Merge>,
    /// Small regions that share a kernel.
    pub beside: Vec<Beside>,
    /// Values that exist in no memory, because one kernel makes and reads them.
    pub fused_away: Vec<String>,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedState {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// Its bytes.
    pub bytes: u64,
    /// The buffer, which holds nothing else.
    pub buffer: usize,
    /// Versions that are copied; all others are replaced in place.
    pub kept: Vec<KeptVersion>,
}

/// A version of a state that is copied before it is replaced, for those who read it afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// The copy.
    pub copy: String,
    /// The version that replaces it.
    pub replaced_by: String,
    /// The nodes and outputs that read the copy, since they come after the update.
    pub readers: Vec<String>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedStep {
    /// Its label.
    pub label: String,
    /// The kernel, or the function of the host.
    pub kernel: String,
    /// What it is.
    pub story: String,
    /// Why a barrier stands before it; none does if this is empty.
    pub barrier: Vec<Reason>,
    /// What it reads and writes.
    pub uses: Vec<ExplainedUse>,
}

/// A value that a step binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedUse {
    /// The value.
    pub tensor: String,
    /// Whether the step may change it.
    pub written: bool,
    /// The buffer.
    pub buffer: usize,
    /// The first byte.
    pub offset: u64,
    /// Its bytes at the upper bounds of the symbols.
    pub bytes: u64,
    /// How many of them an update of a state writes, or one of several steps that write the result part by part; the others stay as they are.
    pub part: Option<u64>,
}

impl Explanation {
    /// How many barriers there are.
    pub fn barriers(&self) -> usize {
        self.steps.iter().filter(|step| !step.barrier.is_empty()).count()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} steps, {} barriers, {} bytes of activations in {} buffers, {} bytes of params, {} of states, {} of counters, {} of run words",
            self.device,
            self.steps.len(),
            self.barriers(),
            self.activations.iter().sum::<u64>(),
            self.activations.len(),
            self.params,
            self.states.iter().map(|state| state.bytes).sum::<u64>(),
            self.counters,
            self.run_words
        )?;
        for ExplainedState { name, ty, bytes, buffer, kept } in &self.states {
            writeln!(f, "state {name}: {ty}, {bytes} bytes, buffer {buffer}")?;
            for KeptVersion { copy, replaced_by, readers } in kept {
                let readers = readers.join(", ");
                writeln!(f, "    `{copy}` is kept before `{replaced_by}`, for what comes after it: {readers}")?;
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            for (position, reason) in step.barrier.iter().enumerate() {
                writeln!(f, "    {} {reason}", if position == 0 { "-- barrier:" } else { "           and" })?;
            }
            writeln!(f, "{index:4} {}: {} ({})", step.label, step.kernel, step.story)?;
            for used in &step.uses {
                let arrow = if used.written { "->" } else { "<-" };
                let ExplainedUse { tensor, buffer, offset, bytes, .. } = used;
                let part = used.part.map(|part| format!("{part} of ")).unwrap_or_default();
                writeln!(f, "       {arrow} {tensor}: {part}{bytes} bytes at {offset} of buffer {buffer}")?;
            }
        }
        for decision in &self.decisions {
            let Decision { node, candidate, cost, copied, .. } = decision;
            write!(f, "{node}: {candidate}, about {cost:.1} us")?;
            if !copied.is_empty() {
                write!(f, ", inputs {copied:?} copied")?;
            }
            writeln!(f)?;
            for (name, reason) in &decision.others {
                writeln!(f, "    not {name}: {reason}")?;
            }
        }
        for merge in &self.merges {
            writeln!(f, "{merge}")?;
        }
        for beside in &self.beside {
            writeln!(f, "{beside}")?;
        }
        if !self.fused_away.is_empty() {
            writeln!(f, "in no memory: {}", self.fused_away.join(", "))?;
        }
        Ok(())
    }
}
