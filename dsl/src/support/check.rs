//! The rules of the device interface, checked before a backend touches its driver.
//!
//! What passes here can be handed to a driver without a further look at ranges, owners, lengths or limits.

mod alone;
mod dispatch;
mod words;

use std::sync::Arc;

use trefoil_codegen::artefact::{Kernel, MatrixNeed, Variant};

use crate::device::{Call, CallCommand, Command, CopyCommand, Memory, MemoryRange, Properties};
use crate::error::{Error, Result};
use crate::product::LibraryProduct;
use crate::support::adapter;

pub use words::WordRules;

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

/// What is bound holds at least four elements of 64 bits where a kernel moves them at once, since WGSL binds no less: so every piece of memory has room for these.
const LEAST_ROOM: u64 = 32;

/// What a device that binds ranges makes for a piece of memory of `bytes` bytes ([`Memory::room`]).
pub const fn room(bytes: u64) -> u64 {
    let padded = padded(bytes);
    if padded < LEAST_ROOM { LEAST_ROOM } else { padded }
}

/// Whether two ranges of one piece of memory, both within it, share a byte.
pub const fn overlap(a: &MemoryRange, b: &MemoryRange) -> bool {
    let apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
    !apart && a.bytes > 0 && b.bytes > 0
}

/// Whether both are the same piece of memory.
pub fn same_memory(a: &Arc<dyn Memory>, b: &Arc<dyn Memory>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)) || a.shares(&**b)
}

/// Checks that a transfer was given memory of the host of as many bytes as it moves; `what` names it.
///
/// # Errors
/// [`Error::WrongLength`].
pub fn same_length(given: usize, expected: u64, what: &str) -> Result<()> {
    let given = given as u64;
    if given == expected {
        return Ok(());
    }
    Err(Error::WrongLength { what: format!("{what}, counted in bytes"), given, expected })
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
        Err(self.properties.other_device(what()))
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
        self.range(range, what)?;
        same_length(length, range.bytes, what)
    }

    /// Checks a range that is copied.
    ///
    /// # Errors
    /// The memory is another device's, or the range leaves it.
    pub fn range(&self, range: &MemoryRange, what: &str) -> Result<()> {
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
    use super::{padded, room};

    #[test]
    fn padding_is_at_least_one_unit() {
        assert_eq!([0, 1, 15, 16, 17, 32].map(padded), [16, 16, 16, 16, 32, 32]);
        assert_eq!([0, 16, 32, 33, u64::MAX].map(room), [32, 32, 32, 48, u64::MAX]);
    }
}
