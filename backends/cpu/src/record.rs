//! Recordings: a checked list of commands and its run words.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use trefoil_dsl::device::{Command, Recording};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::WordRules;
use trefoil_dsl::support::state::CounterCells;

use crate::device::{CpuBackend, Shared};

/// Run words, aligned as parameter blocks must be.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(crate) struct Line([u8; 16]);

/// Bytes that start at a multiple of 16.
#[derive(Default)]
pub(crate) struct Aligned(Vec<Line>);

impl Aligned {
    /// `bytes` zeros, rounded up to whole lines.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![Line([0; 16]); bytes.div_ceil(16)])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a `Line` is 16 bytes without padding.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 16) }
    }

    /// Overwrites the first bytes.
    pub(crate) fn set(&mut self, data: &[u8]) {
        for (line, chunk) in self.0.iter_mut().zip(data.chunks(16)) {
            line.0[..chunk.len()].copy_from_slice(chunk);
        }
    }
}

/// What changes from run to run.
pub(crate) struct State {
    pub(crate) words: Aligned,
    pub(crate) ran: bool,
}

/// Commands made ready to run many times.
pub(crate) struct CpuRecording {
    shared: Arc<Shared>,
    /// The commands, checked.
    pub(crate) commands: Vec<Command>,
    /// What the run words must keep.
    pub(crate) rules: WordRules,
    /// Held during a run, so that run words are not changed under it.
    pub(crate) state: Mutex<State>,
}

impl CpuRecording {
    /// Checks that this device made it.
    pub(crate) fn of<'a>(recording: &'a dyn Recording, shared: &Shared) -> Result<&'a Self> {
        let own: &Self = shared.state.own(recording.as_any(), "a recording")?;
        shared.state.made(own.shared.state.id, "a recording")?;
        Ok(own)
    }
}

impl fmt::Debug for CpuRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuRecording({} commands)", self.commands.len())
    }
}

impl Recording for CpuRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CpuBackend {
    pub(crate) fn make_recording(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        let shared = &self.shared;
        let rules = shared.state.checks().recording(commands, run_words)?;
        self.transports(commands)?;
        if run_words > 0 {
            shared.state.checks().allocation(run_words as u64, "run words")?;
        }
        CounterCells::add(&shared.state.counters.recordings);
        Ok(Arc::new(CpuRecording {
            shared: shared.clone(),
            commands: commands.to_vec(),
            rules,
            state: Mutex::new(State { words: Aligned::new(run_words), ran: false }),
        }))
    }
}
