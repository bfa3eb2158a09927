//! Recorded commands as lists take them: with the run words that they read in them.

use std::sync::Arc;

use trefoil_dsl::device::{Call, CallCommand, Command, DispatchCommand, GroupSource, ParamSource};
use trefoil_dsl::support::check::{GROUP_BYTES, group_counts};

use crate::error::{Error, Result};

/// A command with its part of the run words in it. The pipeline of a dispatch stays as it is: it must be one that takes its parameters by value.
///
/// # Errors
/// It reads past the end of the run words.
pub fn by_value(command: &Command, words: &[u8]) -> Result<Command> {
    Ok(match command {
        Command::Dispatch(dispatch) => Command::Dispatch(dispatch_by_value(dispatch, words)?),
        Command::Call(call) => Command::Call(with_words(call, words)?),
        other => other.clone(),
    })
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
fn dispatch_by_value(dispatch: &DispatchCommand, words: &[u8]) -> Result<DispatchCommand> {
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

/// A call that brings its run words.
fn with_words(command: &CallCommand, words: &[u8]) -> Result<CallCommand> {
    let call = match &command.call {
        Call::Host(function) => {
            let mine: Arc<[u8]> = part(words, command.run_words.start, command.run_words.len(), &command.label)?.into();
            let function = function.clone();
            Call::Host(Arc::new(move |reads, writes, _| function(reads, writes, &mine)))
        }
        Call::Product(product) => Call::Product(*product),
    };
    Ok(CallCommand { call, run_words: 0..0, ..command.clone() })
}
