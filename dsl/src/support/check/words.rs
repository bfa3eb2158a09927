//! Numbers that kernels rely on: lengths in parameter blocks, which their guards compare with, and workgroup counts. Those that are given by value are checked with their command; those in run words
//! change from run to run, and are checked when a run brings them.

use std::ops::Range;
use std::sync::Arc;

use trefoil_codegen::artefact::{GridKind, Kernel, ParamField, ParamRole};

use super::alone::{Pair, pairs};
use super::{Checks, GROUP_BYTES, group_counts};
use crate::device::{Command, DeviceKind, DispatchCommand, GroupSource, ParamSource, Pipeline, RunIo};
use crate::error::{Error, Result};

/// Where a number lies in a parameter block.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: usize,
    bytes: usize,
}

impl Place {
    const fn of(field: &ParamField) -> Self {
        Self { first: field.offset as usize, bytes: field.ty.scalar.bytes() as usize }
    }

    fn read(self, block: &[u8]) -> Option<u64> {
        let mut bytes = [0; size_of::<u64>()];
        let given = block.get(self.first..self.first.checked_add(self.bytes)?)?;
        bytes.get_mut(..given.len())?.copy_from_slice(given);
        Some(u64::from_le_bytes(bytes))
    }
}

/// A length among the parameters of a dispatch, and what is bound for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    binding: usize,
    length: Place,
    /// The element of the range at which the kernel's slice starts.
    start: Option<Place>,
    /// Bytes of an element.
    size: u64,
    /// Bytes of the range.
    bytes: u64,
}

impl Length {
    /// Whether it is that of a binding.
    pub(super) const fn is_of(&self, binding: usize) -> bool {
        self.binding == binding
    }

    /// The bytes of the range that the kernel's slice has, by a block that was checked.
    pub(super) fn bytes(&self, block: &[u8]) -> Option<Range<u64>> {
        let start = self.start.map_or(Some(0), |start| start.read(block))?;
        let end = start.checked_add(self.length.read(block)?)?;
        Some(start.checked_mul(self.size)?..end.checked_mul(self.size)?)
    }

    /// Checks that so many elements are bound as a block says.
    pub(super) fn check(&self, kernel: &Kernel, block: &[u8]) -> Result<(), String> {
        let name = || kernel.bindings.get(self.binding).map_or("", |binding| &*binding.name);
        let read =
            |place: Place| place.read(block).ok_or_else(|| format!("`{}` is not in its parameter block", name()));
        let (length, start) = (read(self.length)?, self.start.map_or(Ok(0), read)?);
        let end = start.checked_add(length).and_then(|end| end.checked_mul(self.size));
        // Nothing may start anywhere.
        if length == 0 || end.is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        Err(format!(
            "its parameters say that `{}` has {length} elements from element {start} on, and {} bytes are bound",
            name(),
            self.bytes
        ))
    }
}

/// The lengths among the parameters of a dispatch, which has a range for each binding of its kernel.
pub(super) fn lengths(dispatch: &DispatchCommand) -> impl Iterator<Item = Result<Length, String>> {
    let kernel: &Kernel = dispatch.pipeline.kernel();
    let fields = &kernel.params.fields;
    fields.iter().filter_map(move |field| {
        let ParamRole::Length(index) = field.role else { return None };
        let binding = index as usize;
        let (Some(range), Some(bound)) = (dispatch.bindings.get(binding), kernel.bindings.get(binding)) else {
            return Some(Err(format!("parameter `{}` is of binding {index}, which it does not have", field.name)));
        };
        let start = fields.iter().find(|field| field.role == ParamRole::Offset(index)).map(Place::of);
        let size = bound.element.size.into();
        Some(Ok(Length { binding, length: Place::of(field), start, size, bytes: range.bytes }))
    })
}

/// Checks that the workgroups of a kernel that knows only linear indices have such, however they are folded.
pub(super) fn counted(kernel: &Kernel, groups: [u32; 3]) -> Result<(), String> {
    let all = groups.iter().try_fold(1u64, |all, count| all.checked_mul(u64::from(*count)));
    if kernel.grid != GridKind::Linear || all.is_some_and(|all| all <= u64::from(u32::MAX)) {
        return Ok(());
    }
    Err(format!("a grid of {groups:?} workgroups has more than 32 bits count"))
}

/// A dispatch that reads run words.
#[derive(Debug)]
struct Reader {
    label: Arc<str>,
    pipeline: Arc<dyn Pipeline>,
    /// Where its parameter block starts; it has no lengths if that lies elsewhere.
    block: usize,
    lengths: Vec<Length>,
    /// Bindings that must be apart.
    pairs: Vec<Pair>,
    /// Where its workgroup counts lie, and the most there can be.
    groups: Option<(usize, [u32; 3])>,
}

impl Reader {
    fn of(dispatch: &DispatchCommand, kind: DeviceKind) -> Result<Self, String> {
        let (block, lengths) = match &dispatch.params {
            ParamSource::RunWords(first) => (*first as usize, lengths(dispatch).collect::<Result<_, _>>()?),
            ParamSource::Value(_) => (0, Vec::new()),
        };
        let pairs = match &dispatch.params {
            ParamSource::RunWords(_) if kind == DeviceKind::Cpu => pairs(dispatch),
            // Those of a block that is there were checked with it.
            ParamSource::RunWords(_) | ParamSource::Value(_) => Vec::new(),
        };
        let groups = match &dispatch.groups {
            GroupSource::RunWords { offset, bound } => Some((*offset as usize, *bound)),
            GroupSource::Value(_) | GroupSource::Memory(_) => None,
        };
        Ok(Self { label: dispatch.label.clone(), pipeline: dispatch.pipeline.clone(), block, lengths, pairs, groups })
    }

    fn check(&self, words: &[u8]) -> Result<(), String> {
        let kernel = self.pipeline.kernel();
        let block = words.get(self.block..).unwrap_or_default();
        self.lengths.iter().try_for_each(|length| length.check(kernel, block))?;
        self.pairs.iter().try_for_each(|pair| pair.check(kernel, block))?;
        let Some((first, bound)) = self.groups else { return Ok(()) };
        let given = words.get(first..).and_then(<[u8]>::first_chunk::<GROUP_BYTES>);
        let groups = group_counts(*given.ok_or("its workgroup counts are not within its run words")?);
        if (0..3).any(|axis| groups[axis] > bound[axis]) {
            return Err(format!("its run words say {groups:?} workgroups, and it was recorded with at most {bound:?}"));
        }
        counted(kernel, groups)
    }
}

/// What the run words of a recording must keep, so that its kernels stay within what is bound.
#[derive(Debug, Default)]
pub struct WordRules {
    bytes: usize,
    readers: Vec<Reader>,
}

impl WordRules {
    /// Checks that there are none, as a recording wants it that nobody waits for: they would be written for the next run while this one reads them. `label` names the recording.
    ///
    /// # Errors
    /// [`Error::Command`].
    pub fn expect_none(&self, label: &str) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let reason =
            format!("its recording has {} bytes of run words, which only runs bring that are waited for", self.bytes);
        Err(Error::Command { label: label.to_owned(), reason })
    }
}

impl Checks<'_> {
    /// Checks commands that are recorded with `run_words` bytes of run words, and tells what every run must keep.
    ///
    /// # Errors
    /// Names the command that breaks a rule.
    pub fn recording(&self, commands: &[Command], run_words: usize) -> Result<WordRules> {
        self.commands(commands, Some(run_words))?;
        let mut readers = Vec::new();
        for command in commands {
            let Command::Dispatch(dispatch) = command else { continue };
            let reader = Reader::of(dispatch, self.properties.kind)
                .map_err(|reason| Error::Command { label: dispatch.label.to_string(), reason })?;
            if !reader.lengths.is_empty() || !reader.pairs.is_empty() || reader.groups.is_some() {
                readers.push(reader);
            }
        }
        Ok(WordRules { bytes: run_words, readers })
    }

    /// Checks what a run brings and takes; `ran` is whether the recording has run before.
    ///
    /// # Errors
    /// A range or length is wrong, the first run brings no run words, or those that it brings break a rule of the recording.
    pub fn io(&self, io: &RunIo<'_, '_>, rules: &WordRules, ran: bool) -> Result<()> {
        match io.run_words {
            Some(words) if words.len() != rules.bytes => {
                return Err(Error::WrongLength {
                    what: "the run words, counted in bytes".to_owned(),
                    given: words.len() as u64,
                    expected: rules.bytes as u64,
                });
            }
            None if rules.bytes > 0 && !ran => {
                return Err(Error::WrongLength {
                    what: "the run words of the first run, counted in bytes".to_owned(),
                    given: 0,
                    expected: rules.bytes as u64,
                });
            }
            Some(words) => {
                for reader in &rules.readers {
                    reader.check(words).map_err(|reason| Error::Command { label: reader.label.to_string(), reason })?;
                }
            }
            None => {}
        }
        for (range, data) in io.uploads {
            self.transfer(range, data.len(), "upload")?;
        }
        for (range, data) in &*io.downloads {
            self.transfer(range, data.len(), "download")?;
        }
        Ok(())
    }
}
