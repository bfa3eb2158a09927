//! Device times of an executable's steps, and its commands for lists of the caller's own.

use std::sync::Arc;

use trefoil_dsl::artefact::ParamTransport;
use trefoil_dsl::device::{Command, DispatchCommand, GroupSource, HostCommand, ParamSource, Pipeline};
use trefoil_dsl::support::check::{GROUP_BYTES, group_counts};

use super::Executable;
use crate::dim::Extents;
use crate::error::{Error, Result};

/// What a step took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// Its label, as in [`Executable::explain`].
    pub label: Arc<str>,
    /// Nanoseconds by the device's own clock.
    pub nanoseconds: u64,
}

impl Executable {
    /// Runs the steps one at a time, each waiting for the one before, and gives the device time of each. Inputs are what the last run left in
    /// their places, no outputs are taken, and states are updated as by a run. The first call loads the kernels once more, since recordings take their parameters another way.
    ///
    /// # Errors
    /// A symbol has no value, a state is updated where it has no such positions, or the device has no clock or failed.
    pub fn profile(&self, extents: &Extents) -> Result<Vec<StepTime>> {
        let commands = self.commands_by_value(extents)?;
        // Steps use the memory that runs use.
        let _turn = self.turn()?;
        let times = self.device.backend().time(&commands)?;
        let labelled = commands
            .iter()
            .zip(times)
            .filter_map(|(command, nanoseconds)| Some(StepTime { label: command.label()?.clone(), nanoseconds }));
        Ok(labelled.collect())
    }

    /// The commands of a run with the parameters in them, for lists of the caller's own: many runs in a row, or those of several executables. They use the memory that runs
    /// use, inputs are what the last run left in their places, and nothing keeps runs of this executable apart from theirs. The first call loads the kernels once more.
    ///
    /// # Errors
    /// A symbol has no value, a state is updated where it has no such positions, or the device failed.
    pub fn commands_by_value(&self, extents: &Extents) -> Result<Vec<Command>> {
        let words = self.words.fill(extents)?;
        let mut pipelines = self.pipelines_by_value()?.iter();
        let mut commands = Vec::with_capacity(self.commands.len());
        for command in &self.commands {
            commands.push(match command {
                Command::Dispatch(dispatch) => {
                    let pipeline = pipelines.next().unwrap_or(&dispatch.pipeline).clone();
                    Command::Dispatch(by_value(&DispatchCommand { pipeline, ..dispatch.clone() }, &words)?)
                }
                Command::Host(host) => Command::Host(with_words(host, &words)?),
                other => other.clone(),
            });
        }
        Ok(commands)
    }

    /// The pipelines of the dispatches, made to take their parameters by value. They are kept: a device that waits for them in every call slows its clock down.
    fn pipelines_by_value(&self) -> Result<&[Arc<dyn Pipeline>]> {
        if let Some(pipelines) = self.by_value.get() {
            return Ok(pipelines);
        }
        let dispatches = self.commands.iter().filter_map(|command| match command {
            Command::Dispatch(dispatch) => Some(dispatch.pipeline.kernel().clone()),
            _ => None,
        });
        let pipelines = self.device.backend().load(&dispatches.collect::<Vec<_>>(), ParamTransport::Value)?;
        Ok(self.by_value.get_or_init(|| pipelines))
    }
}

/// Bytes of the run words.
fn part<'a>(words: &'a [u8], first: u32, count: usize, label: &str) -> Result<&'a [u8]> {
    let first = first as usize;
    words.get(first..first + count).ok_or_else(|| Error::Stage {
        stage: "record",
        defect: format!("`{label}` reads {count} bytes from byte {first} of {} bytes of run words", words.len()),
    })
}

/// A dispatch whose parameters and groups are written into it.
fn by_value(dispatch: &DispatchCommand, words: &[u8]) -> Result<DispatchCommand> {
    let mut command = dispatch.clone();
    if let ParamSource::RunWords(first) = dispatch.params {
        let size = dispatch.pipeline.kernel().params.size as usize;
        command.params = ParamSource::Value(part(words, first, size, &dispatch.label)?.to_vec());
    }
    if let &GroupSource::RunWords { offset, .. } = &dispatch.groups {
        let mut bytes = [0; GROUP_BYTES];
        bytes.copy_from_slice(part(words, offset, GROUP_BYTES, &dispatch.label)?);
        command.groups = GroupSource::Value(group_counts(bytes));
    }
    Ok(command)
}

/// A function of the host that brings its run words.
fn with_words(host: &HostCommand, words: &[u8]) -> Result<HostCommand> {
    let mine: Arc<[u8]> = part(words, host.run_words.start, host.run_words.len(), &host.label)?.into();
    let function = host.function.clone();
    Ok(HostCommand {
        function: Arc::new(move |reads, writes, _| function(reads, writes, &mine)),
        run_words: 0..0,
        ..host.clone()
    })
}
