//! The rules of the device interface, checked before a backend touches its driver.
//!
//! What passes here can be handed to a driver without a further look at ranges, owners, lengths or limits.

use std::sync::Arc;

use trefoil_codegen::artefact::{GridKind, Kernel, MatrixNeed, ParamTransport, Variant};

use crate::device::{
    Call, CallCommand, Command, CopyCommand, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource,
    Properties, RunIo,
};
use crate::error::{Error, Result};
use crate::product::LibraryProduct;
use crate::support::adapter;

/// Every binding covers a multiple of this many bytes.
pub const BINDING_MULTIPLE: u64 = 16;
/// Copies within a device start at a multiple of this many bytes and are as long.
pub const COPY_MULTIPLE: u64 = 4;
/// A parameter block starts at a multiple of this many bytes of the run words.
pub const PARAMS_ALIGNMENT: u32 = 256;

/// Bytes of the three workgroup counts of a dispatch that reads them.
pub const GROUP_BYTES: usize = 12;

/// The workgroup counts in the bytes of a device.
pub fn group_counts(bytes: [u8; GROUP_BYTES]) -> [u32; 3] {
    let (words, _) = bytes.as_chunks::<4>();
    [0, 1, 2].map(|axis| u32::from_le_bytes(words[axis]))
}

/// What a piece of memory of `bytes` bytes takes: at least one, and a whole number of [`BINDING_MULTIPLE`]s.
pub const fn padded(bytes: u64) -> u64 {
    if bytes == 0 { BINDING_MULTIPLE } else { bytes.div_ceil(BINDING_MULTIPLE).saturating_mul(BINDING_MULTIPLE) }
}

/// Whether two ranges of one piece of memory, both within it, share a byte.
const fn overlap(a: &MemoryRange, b: &MemoryRange) -> bool {
    let apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
    !apart && a.bytes > 0 && b.bytes > 0
}

/// Whether both are the same piece of memory.
pub fn same_memory(a: &Arc<dyn Memory>, b: &Arc<dyn Memory>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}

/// What is known of the device that checks.
#[derive(Clone, Copy, Debug)]
pub struct Checks<'a> {
    /// Its id.
    pub id: u64,
    /// What it is and allows.
    pub properties: &'a Properties,
}

impl Checks<'_> {
    fn device(&self) -> String {
        self.properties.name.clone()
    }

    /// Checks that this device made the thing that `what` describes.
    ///
    /// # Errors
    /// [`Error::OtherDevice`].
    pub fn owner(&self, owner: u64, what: impl FnOnce() -> String) -> Result<()> {
        if owner == self.id {
            return Ok(());
        }
        Err(Error::OtherDevice { what: what(), device: self.device() })
    }

    /// Checks the size of a piece of memory before it is made.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn allocation(&self, bytes: u64, label: &str) -> Result<()> {
        let limit = self.properties.limits.max_allocation_bytes;
        if bytes <= limit && padded(bytes) <= limit {
            return Ok(());
        }
        Err(Error::TooLarge { what: format!("`{label}`"), bytes, limit, device: self.device() })
    }

    /// Checks a copy between a range and host memory of `length` bytes.
    ///
    /// # Errors
    /// The memory is another device's, the range leaves it, or the length differs.
    pub fn transfer(&self, range: &MemoryRange, length: usize, what: &str) -> Result<()> {
        self.owner(range.memory.device(), || format!("the memory of a {what}"))?;
        let end = range.offset.checked_add(range.bytes);
        if end.is_none_or(|end| end > range.memory.bytes()) {
            return Err(Error::OutOfRange {
                what: format!("{what}, counted in bytes"),
                first: range.offset,
                count: range.bytes,
                length: range.memory.bytes(),
            });
        }
        if length as u64 != range.bytes {
            return Err(Error::WrongLength {
                what: format!("{what}, counted in bytes"),
                given: length as u64,
                expected: range.bytes,
            });
        }
        Ok(())
    }

    /// Checks what a kernel wants against what the device has.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub fn kernel(&self, kernel: &Kernel) -> Result<()> {
        let limits = &self.properties.limits;
        let size = kernel.workgroup_size.map(u64::from);
        let axis = |i: usize| limits.max_workgroup_size[i].into();
        let wants: [(&'static str, u64, u64); 6] = [
            ("storage buffers", kernel.bindings.len() as u64, limits.max_storage_buffers.into()),
            ("bytes of workgroup memory", kernel.workgroup_bytes.into(), limits.max_workgroup_bytes.into()),
            (
                "invocations in a workgroup",
                size.iter().fold(1, |all: u64, extent| all.saturating_mul(*extent)),
                limits.max_invocations.into(),
            ),
            ("invocations in a workgroup along x", size[0], axis(0)),
            ("invocations in a workgroup along y", size[1], axis(1)),
            ("invocations in a workgroup along z", size[2], axis(2)),
        ];
        for (what, wanted, limit) in wants {
            if wanted > limit {
                return Err(Error::Limit {
                    kernel: kernel.name.to_string(),
                    what,
                    wanted,
                    limit,
                    device: self.device(),
                });
            }
        }
        self.subgroup(kernel)
    }

    /// Checks that the device has subgroups of the size that a kernel states.
    fn subgroup(&self, kernel: &Kernel) -> Result<()> {
        match kernel.subgroup_size.filter(|size| !self.properties.offers_subgroups_of(*size)) {
            None => Ok(()),
            Some(wanted) => Err(Error::Subgroup {
                kernel: kernel.name.to_string(),
                wanted,
                offered: adapter::offered(self.properties),
                device: self.device(),
            }),
        }
    }

    /// Checks that a workgroup is whole subgroups where its kernel has matrices, which every lane of a subgroup holds.
    ///
    /// # Errors
    /// [`Error::Build`].
    pub fn matrices(&self, kernel: &Kernel, variant: &Variant) -> Result<()> {
        let most = self.properties.limits.max_subgroup;
        let (along, subgroup) = (kernel.workgroup_size[0], kernel.subgroup_size.unwrap_or(most));
        let refused = |message| Error::Build { kernel: kernel.name.to_string(), device: self.device(), message };
        if variant.matrices.contains(&MatrixNeed::Teams) && subgroup > MatrixNeed::TEAM_SUBGROUP {
            return Err(refused(format!("it needs {}, and this device has larger ones", MatrixNeed::Teams)));
        }
        if variant.matrices.is_empty() || along.is_multiple_of(subgroup) {
            return Ok(());
        }
        Err(refused(format!(
            "it has matrices, and its workgroup of {along} invocations along x is not made of whole subgroups of {subgroup}"
        )))
    }

    /// Checks a list of commands; `run_words` is the size of the recording's run words, `None` where there are none.
    ///
    /// # Errors
    /// Names the command that breaks a rule.
    pub fn commands(&self, commands: &[Command], run_words: Option<usize>) -> Result<()> {
        for command in commands {
            match command {
                Command::Dispatch(dispatch) => self.dispatch(dispatch, run_words)?,
                Command::Call(call) => self.call(call, run_words)?,
                Command::Copy(copy) => self.copy(copy)?,
                Command::Barrier => {}
            }
        }
        Ok(())
    }

    fn copy(&self, copy: &CopyCommand) -> Result<()> {
        let broken = |reason: String| Error::Command { label: copy.label.to_string(), reason };
        let (from, to) = (&copy.from, &copy.to);
        if from.bytes != to.bytes {
            return Err(broken(format!("it copies {} bytes to {}", from.bytes, to.bytes)));
        }
        for (what, range) in [("source", from), ("destination", to)] {
            self.owner(range.memory.device(), || format!("the {what} of `{}`", copy.label))?;
            let size = padded(range.memory.bytes());
            if range.offset.checked_add(range.bytes).is_none_or(|end| end > size) {
                return Err(broken(format!(
                    "its {what}, {} bytes from byte {} on, is not within its memory of {} bytes",
                    range.bytes,
                    range.offset,
                    range.memory.bytes()
                )));
            }
            if !range.offset.is_multiple_of(COPY_MULTIPLE) || !range.bytes.is_multiple_of(COPY_MULTIPLE) {
                return Err(broken(format!(
                    "its {what}, {} bytes from byte {} on, is not in multiples of {COPY_MULTIPLE} bytes",
                    range.bytes, range.offset
                )));
            }
        }
        if same_memory(&from.memory, &to.memory) {
            if !self.properties.limits.shares_memory_within_dispatch {
                return Err(broken(format!(
                    "its source and destination are one piece of memory, which {} does not allow",
                    self.device()
                )));
            }
            if overlap(from, to) {
                return Err(broken("its source and destination overlap".to_owned()));
            }
        }
        Ok(())
    }

    fn call(&self, call: &CallCommand, run_words: Option<usize>) -> Result<()> {
        call.expect_able(self.properties)?;
        let broken = |reason: String| Error::Command { label: call.label.to_string(), reason };
        if let Call::Product(product) = &call.call {
            product_fits(product, call).map_err(broken)?;
        }
        let words = &call.run_words;
        if words.start > words.end || words.end as usize > run_words.unwrap_or(0) {
            return Err(broken(format!("bytes {words:?} are not within its run words")));
        }
        for range in call.reads.iter().chain(&call.writes) {
            self.owner(range.memory.device(), || format!("the memory of `{}`", call.label))?;
            let end = range.offset.checked_add(range.bytes);
            if end.is_none_or(|end| end > range.memory.bytes()) {
                return Err(broken(format!(
                    "{} bytes from byte {} on are not within the {} bytes of their memory",
                    range.bytes,
                    range.offset,
                    range.memory.bytes()
                )));
            }
        }
        for (position, write) in call.writes.iter().enumerate() {
            for other in call.reads.iter().chain(&call.writes[position + 1..]) {
                if same_memory(&write.memory, &other.memory) && overlap(write, other) {
                    return Err(broken("a range that it writes overlaps another of its ranges".to_owned()));
                }
            }
        }
        Ok(())
    }

    fn dispatch(&self, dispatch: &DispatchCommand, run_words: Option<usize>) -> Result<()> {
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
            self.binding(range, label, &binding.name)?;
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
            ParamSource::Value(_) => {}
            ParamSource::RunWords(first) => {
                word_bytes(*first, kernel.params.size.into(), PARAMS_ALIGNMENT, "parameters")?;
            }
        }
        match &dispatch.groups {
            GroupSource::Value(groups) => self.grid(kernel, *groups),
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

    fn binding(&self, range: &MemoryRange, label: &str, name: &str) -> Result<()> {
        let broken = |reason: String| Error::Command { label: label.to_owned(), reason };
        let limits = &self.properties.limits;
        self.owner(range.memory.device(), || format!("`{label}`: the memory of `{name}`"))?;
        // A kernel with pointers gets the exact byte; one with bindings gets the rest as its element offset.
        if self.properties.kind.has_pointers() {
            return self.reach(range, label, name);
        }
        if range.bytes == 0 || !range.bytes.is_multiple_of(BINDING_MULTIPLE) {
            return Err(broken(format!(
                "`{name}` binds {} bytes, which is not a multiple of {BINDING_MULTIPLE} above 0",
                range.bytes
            )));
        }
        if !range.offset.is_multiple_of(limits.binding_alignment) {
            return Err(broken(format!(
                "`{name}` is bound from byte {} on, not from a multiple of {}",
                range.offset, limits.binding_alignment
            )));
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
        if end.is_none_or(|end| end > padded(range.memory.bytes())) {
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

    /// Checks what a run brings and takes; `run_words` is the size of the recording's run words, and `ran` whether it has run
    /// before.
    ///
    /// # Errors
    /// A range or length is wrong, or the first run brings no run words.
    pub fn io(&self, io: &RunIo<'_, '_>, run_words: usize, ran: bool) -> Result<()> {
        match io.run_words {
            Some(words) if words.len() != run_words => {
                return Err(Error::WrongLength {
                    what: "the run words, counted in bytes".to_owned(),
                    given: words.len() as u64,
                    expected: run_words as u64,
                });
            }
            None if run_words > 0 && !ran => {
                return Err(Error::WrongLength {
                    what: "the run words of the first run, counted in bytes".to_owned(),
                    given: 0,
                    expected: run_words as u64,
                });
            }
            _ => {}
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

/// Whether a product's ranges hold its matrices.
fn product_fits(product: &LibraryProduct, call: &CallCommand) -> Result<(), String> {
    let (operands, result) = product.bytes().ok_or("a product of more bytes than can be counted")?;
    if (call.reads.len(), call.writes.len()) != (operands.len(), 1) {
        let (reads, writes) = (call.reads.len(), call.writes.len());
        return Err(format!("a product reads {} ranges and writes one; {reads} and {writes} given", operands.len()));
    }
    let elements = [product.operands, product.operands, product.result];
    let wanted = operands.iter().zip(elements).chain([(&result, product.result)]);
    for (range, (bytes, element)) in call.reads.iter().chain(&call.writes).zip(wanted) {
        let size = u64::from(element.bits()) / 8;
        if range.bytes < *bytes || !range.offset.is_multiple_of(size) {
            return Err(format!(
                "a matrix of {bytes} bytes in elements of {size} does not fit {} bytes from byte {} on",
                range.bytes, range.offset
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::padded;

    #[test]
    fn padding_is_at_least_one_unit() {
        assert_eq!([0, 1, 15, 16, 17, 32].map(padded), [16, 16, 16, 16, 32, 32]);
    }
}
