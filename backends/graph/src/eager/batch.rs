//! Launches that are gathered and submitted together, with a barrier wherever one touches what another touched since the last.
//!
//! Time is counted in *stretches*: all that is gathered between two barriers, or from a submission on, is one stretch, and each piece of memory knows in which it was last read and last written. So a hazard is found
//! by two comparisons for each binding.

use std::sync::Arc;

use trefoil_dsl::device::{CallCommand, Command, Device, DispatchCommand, GroupSource, MemoryRange, ParamSource};

use super::pool::Piece;
use super::single::{Part, Uses, Work};
use super::tensor::Outcome;
use crate::error::{Error, Result};

/// What is gathered.
#[derive(Debug)]
pub(super) struct Batch {
    commands: Vec<Command>,
    /// Dispatches and calls among them.
    launches: usize,
    stretch: u64,
    /// The first stretch that is not submitted.
    pub first: u64,
    pub outcome: Arc<Outcome>,
    /// A failure of a batch that no caller has been told of by [`super::Eager::flush`].
    untold: Option<Error>,
    pub counts: Counts,
}

/// What a batch has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub launches: u64,
    pub barriers: u64,
    pub submissions: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            launches: 0,
            // Pieces that nothing has touched say 0.
            stretch: 1,
            first: 1,
            outcome: Arc::default(),
            untold: None,
            counts: Counts::default(),
        }
    }
}

impl Batch {
    /// Adds a launch on these buffers, each with the byte at which it begins.
    pub fn add(&mut self, work: &Work, buffers: &[(&Piece, u64)]) -> Result<()> {
        let at = |part: Part| {
            let found = buffers.get(part.buffer).copied();
            found.ok_or_else(|| Error::Stage { stage: "eager", defect: format!("there is no buffer {}", part.buffer) })
        };
        let range = |part: Part| -> Result<MemoryRange> {
            let (piece, first) = at(part)?;
            Ok(part.of(&piece.memory, first))
        };
        let command = match work {
            Work::Dispatch { pipeline, parts, reports, params, groups, label } => Command::Dispatch(DispatchCommand {
                pipeline: pipeline.clone(),
                bindings: {
                    let own = parts.iter().map(|(part, _)| range(*part));
                    own.chain(reports.clone().map(Ok)).collect::<Result<_>>()?
                },
                params: ParamSource::Value(params.clone()),
                groups: GroupSource::Value(*groups),
                label: label.clone(),
            }),
            Work::Call { call, reads, writes, label } => Command::Call(CallCommand {
                call: call.clone(),
                reads: reads.iter().copied().map(range).collect::<Result<_>>()?,
                writes: writes.iter().copied().map(range).collect::<Result<_>>()?,
                run_words: 0..0,
                label: label.clone(),
            }),
        };
        let mut hazard = false;
        for (part, Uses { reads, writes }) in work.parts() {
            let (piece, _) = at(part)?;
            let stretch = self.stretch;
            hazard |= writes && piece.is_used_since(stretch) || reads && piece.is_written_since(stretch);
        }
        if hazard {
            self.commands.push(Command::Barrier);
            self.counts.barriers += 1;
            self.stretch += 1;
        }
        for (part, Uses { reads, writes }) in work.parts() {
            let (piece, _) = at(part)?;
            if reads {
                piece.reads(self.stretch);
            }
            if writes {
                piece.writes(self.stretch);
            }
        }
        self.commands.push(command);
        self.launches += 1;
        self.counts.launches += 1;
        Ok(())
    }

    /// How many launches wait.
    pub fn waiting(&self) -> usize {
        self.launches
    }

    /// Submits what was gathered. If the device refuses it, nothing that the batch computes can be read.
    pub fn submit(&mut self, device: &Device) {
        if self.commands.is_empty() {
            return;
        }
        if let Err(error) = device.backend().execute(&self.commands) {
            let error = Error::from(error);
            self.untold.get_or_insert_with(|| error.clone());
            // Nobody else sets it.
            let _ = self.outcome.0.set(error);
        }
        self.counts.submissions += 1;
        self.commands.clear();
        self.launches = 0;
        // Lists run in order, and later ones see what earlier ones wrote.
        self.stretch += 1;
        self.first = self.stretch;
        self.outcome = Arc::default();
    }

    /// The failure that was not told yet.
    pub fn failure(&mut self) -> Option<Error> {
        self.untold.take()
    }
}
