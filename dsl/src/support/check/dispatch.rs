//! The rules of dispatches: what they bind, their parameters and their workgroups.

use trefoil_codegen::artefact::{Binding, GridKind, Kernel, ParamTransport};

use super::alone::pairs;
use super::words::{counted, lengths};
use super::{BINDING_MULTIPLE, Checks, GROUP_BYTES, PARAMS_ALIGNMENT, same_memory};
use crate::device::{DeviceKind, DispatchCommand, GroupSource, MemoryRange, ParamSource};
use crate::error::{Error, Result};

impl Checks<'_> {
    pub(super) fn dispatch(&self, dispatch: &DispatchCommand, run_words: Option<usize>) -> Result<()> {
        let label = &*dispatch.label;
        let broken = |reason: String| Error::Command { label: label.to_owned(), reason };
        self.owner(dispatch.pipeline.device(), || format!("the pipeline of `{label}`"))?;
        let kernel = dispatch.pipeline.kernel();
        if dispatch.bindings.len() != kernel.bindings.len() {
            return Err(broken(format!(
                "{} ranges for the {} bindings of kernel `{}`",
                dispatch.bindings.len(),
                kernel.bindings.len(),
                kernel.name
            )));
        }
        for (range, binding) in dispatch.bindings.iter().zip(&*kernel.bindings) {
            self.binding(range, label, binding)?;
        }
        if !self.properties.limits.shares_memory_within_dispatch {
            self.sharing(dispatch)?;
        }
        let word_bytes = |first: u32, count: u64, align: u32, what: &str| match run_words {
            None => Err(broken(format!("its {what} are in run words, which only recordings have"))),
            Some(size) if u64::from(first) + count > size as u64 => Err(broken(format!(
                "its {what}, {count} bytes from byte {first} on, are not within the {size} bytes of run words"
            ))),
            Some(_) if !first.is_multiple_of(align) => {
                Err(broken(format!("its {what} are at byte {first} of the run words, not at a multiple of {align}")))
            }
            Some(_) => Ok(()),
        };
        match &dispatch.params {
            ParamSource::Value(bytes) if bytes.len() != kernel.params.size as usize => {
                return Err(broken(format!(
                    "{} bytes of parameters given, kernel `{}` takes {}",
                    bytes.len(),
                    kernel.name,
                    kernel.params.size
                )));
            }
            ParamSource::Value(block) => {
                for length in lengths(dispatch) {
                    length.and_then(|length| length.check(kernel, block)).map_err(broken)?;
                }
                if self.properties.kind == DeviceKind::Cpu {
                    pairs(dispatch).iter().try_for_each(|pair| pair.check(kernel, block)).map_err(broken)?;
                }
            }
            ParamSource::RunWords(first) => {
                word_bytes(*first, kernel.params.size.into(), PARAMS_ALIGNMENT, "parameters")?;
            }
        }
        match &dispatch.groups {
            GroupSource::Value(groups) => {
                self.grid(kernel, *groups)?;
                counted(kernel, *groups).map_err(broken)
            }
            GroupSource::RunWords { offset, bound } => {
                word_bytes(*offset, GROUP_BYTES as u64, 4, "workgroup counts")?;
                self.grid(kernel, *bound)
            }
            GroupSource::Memory(range) => self.group_memory(dispatch, range, run_words.is_some()),
        }
    }

    /// Checks the memory that a dispatch reads its workgroup counts from.
    fn group_memory(&self, dispatch: &DispatchCommand, range: &MemoryRange, recorded: bool) -> Result<()> {
        let (label, kernel) = (&*dispatch.label, dispatch.pipeline.kernel());
        let broken = |reason: String| Error::Command { label: label.to_owned(), reason };
        if recorded {
            return Err(broken("its workgroup counts are in memory; a recording has them in its run words".to_owned()));
        }
        if kernel.grid != GridKind::Volume {
            return Err(broken(format!(
                "the workgroups of kernel `{}` are folded and counted by the host: write `indirect` in its attribute",
                kernel.name
            )));
        }
        self.owner(range.memory.device(), || format!("`{label}`: the memory of its workgroup counts"))?;
        let end = range.offset.checked_add(range.bytes);
        if range.bytes != GROUP_BYTES as u64
            || !range.offset.is_multiple_of(4)
            || end.is_none_or(|end| end > range.memory.bytes())
        {
            return Err(broken(format!(
                "its workgroup counts, {} bytes from byte {} on, are not {GROUP_BYTES} bytes at a multiple of 4 within their {} bytes",
                range.bytes,
                range.offset,
                range.memory.bytes()
            )));
        }
        for (bound, binding) in dispatch.bindings.iter().zip(&*kernel.bindings) {
            if binding.access.writes() && same_memory(&bound.memory, &range.memory) {
                return Err(broken(format!(
                    "`{}`, which it writes, is in one piece of memory with its workgroup counts",
                    binding.name
                )));
            }
        }
        Ok(())
    }

    /// Checks a number of workgroups.
    ///
    /// # Errors
    /// [`Error::Grid`].
    pub fn grid(&self, kernel: &Kernel, most: [u32; 3]) -> Result<()> {
        let limit = self.properties.limits.max_groups;
        if (0..3).any(|axis| most[axis] > limit[axis]) {
            return Err(Error::Grid {
                kernel: kernel.name.to_string(),
                groups: most.map(u64::from),
                limit,
                device: self.device(),
                by_axes: kernel.grid == GridKind::Volume,
            });
        }
        Ok(())
    }

    /// Checks that the transport for which a pipeline was loaded is the one that a command uses.
    ///
    /// # Errors
    /// Names the command.
    pub fn transport(&self, dispatch: &DispatchCommand, loaded: ParamTransport) -> Result<()> {
        let used = match dispatch.params {
            ParamSource::Value(_) => ParamTransport::Value,
            ParamSource::RunWords(_) => ParamTransport::Buffer,
        };
        if used == loaded {
            return Ok(());
        }
        Err(Error::Command {
            label: dispatch.label.to_string(),
            reason: format!(
                "it passes parameters by {used:?}, but kernel `{}` was loaded for {loaded:?}",
                dispatch.pipeline.kernel().name
            ),
        })
    }

    fn binding(&self, range: &MemoryRange, label: &str, binding: &Binding) -> Result<()> {
        let name = &*binding.name;
        let broken = |reason: String| Error::Command { label: label.to_owned(), reason };
        let limits = &self.properties.limits;
        self.owner(range.memory.device(), || format!("`{label}`: the memory of `{name}`"))?;
        // A kernel with pointers gets the exact byte; one with bindings gets the rest as its element offset.
        if self.properties.kind.has_pointers() {
            let alignment = pointer_alignment(binding);
            if !range.offset.is_multiple_of(alignment) {
                return Err(broken(misaligned(name, range.offset, alignment)));
            }
            return self.reach(range, label, name);
        }
        if range.bytes == 0 || !range.bytes.is_multiple_of(BINDING_MULTIPLE) {
            return Err(broken(format!(
                "`{name}` binds {} bytes, which is not a multiple of {BINDING_MULTIPLE} above 0",
                range.bytes
            )));
        }
        if !range.offset.is_multiple_of(limits.binding_alignment) {
            return Err(broken(misaligned(name, range.offset, limits.binding_alignment)));
        }
        self.reach(range, label, name)
    }

    /// Checks that a bound range is not too large and within its memory.
    fn reach(&self, range: &MemoryRange, label: &str, name: &str) -> Result<()> {
        let broken = |reason: String| Error::Command { label: label.to_owned(), reason };
        let limits = &self.properties.limits;
        if range.bytes > limits.max_binding_bytes {
            return Err(Error::TooLarge {
                what: format!("`{label}`: binding `{name}`"),
                bytes: range.bytes,
                limit: limits.max_binding_bytes,
                device: self.device(),
            });
        }
        let end = range.offset.checked_add(range.bytes);
        if end.is_none_or(|end| end > range.memory.room()) {
            return Err(broken(format!(
                "`{name}` binds {} bytes from byte {} on, which are not within its {} bytes",
                range.bytes,
                range.offset,
                range.memory.bytes()
            )));
        }
        Ok(())
    }

    fn sharing(&self, dispatch: &DispatchCommand) -> Result<()> {
        let bindings = &dispatch.pipeline.kernel().bindings;
        for (i, (a, one)) in dispatch.bindings.iter().zip(&**bindings).enumerate() {
            for (b, other) in dispatch.bindings.iter().zip(&**bindings).skip(i + 1) {
                if one.access.writes() != other.access.writes() && same_memory(&a.memory, &b.memory) {
                    return Err(Error::Command {
                        label: dispatch.label.to_string(),
                        reason: format!(
                            "`{}` and `{}` are parts of one piece of memory, one read and one written, which {} does not allow",
                            one.name,
                            other.name,
                            self.device()
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Where a range may start whose address a kernel gets: at a multiple of its element's alignment and of what the kernel's widest access moves, since a GPU fails for good at an address that is none.
fn pointer_alignment(binding: &Binding) -> u64 {
    let (element, at_once) = (&binding.element, u64::from(binding.vector));
    let widest = if at_once > 1 { u64::from(element.size) * at_once } else { 1 };
    widest.max(element.align.into())
}

fn misaligned(name: &str, offset: u64, alignment: u64) -> String {
    format!("`{name}` is bound from byte {offset} on, not from a multiple of {alignment}")
}
