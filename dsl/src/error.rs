//! Everything that can go wrong with kernels, buffers and devices.

use std::fmt;

use trefoil_codegen::artefact::VariantError;
use trefoil_codegen::check::Invocation;

use crate::report::and_more;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a kernel, buffer or device; each message names the thing, what was given, and what was expected.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library or driver that the device needs is not on this machine.
    #[error("no {kind} device: {reason}")]
    Unavailable {
        /// The kind of device asked for.
        kind: &'static str,
        /// What is missing.
        reason: String,
    },
    /// No device of that kind goes by that name.
    #[error("no {kind} device is called `{asked}`; there are: {present}")]
    NoSuchAdapter {
        /// The kind of device asked for.
        kind: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        present: String,
    },
    /// Something is larger than the device allows.
    #[error("{what} takes {bytes} bytes; {device} allows at most {limit}")]
    TooLarge {
        /// The buffer or binding.
        what: String,
        /// Its size.
        bytes: u64,
        /// What the device allows.
        limit: u64,
        /// The device.
        device: String,
    },
    /// The device has no memory left.
    #[error("out of memory on {device}: {what} takes {bytes} bytes")]
    OutOfMemory {
        /// The buffer.
        what: String,
        /// Its size.
        bytes: u64,
        /// The device.
        device: String,
    },
    /// A buffer or pipeline belongs to another device.
    #[error("{what} belongs to another device than {device}")]
    OtherDevice {
        /// The buffer or pipeline.
        what: String,
        /// The device that was asked.
        device: String,
    },
    /// A range leaves its buffer.
    #[error("{what}: {count} elements from {first} on are not within its {length} elements")]
    OutOfRange {
        /// The buffer.
        what: String,
        /// The first element asked for.
        first: u64,
        /// How many were asked for.
        count: u64,
        /// How many there are.
        length: u64,
    },
    /// A slice has the wrong number of elements.
    #[error("{what}: {given} elements given, {expected} expected")]
    WrongLength {
        /// The buffer or argument.
        what: String,
        /// How many were given.
        given: u64,
        /// How many are right.
        expected: u64,
    },
    /// An argument of a launch is not possible.
    #[error("kernel `{kernel}`, argument `{argument}`: {reason}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter's name.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A generic kernel was launched with types or constants that its author did not list.
    #[error("kernel `{kernel}` has no instance <{wanted}>; its instances are {listed}")]
    Instance {
        /// The kernel.
        kernel: String,
        /// The values asked for.
        wanted: String,
        /// Those that there are.
        listed: String,
    },
    /// The grid of a launch is not possible.
    #[error("kernel `{kernel}`: a grid of {groups:?} workgroups; {device} allows {limit:?}{}", for_axes(*by_axes))]
    Grid {
        /// The kernel.
        kernel: String,
        /// What was asked for.
        groups: [u64; 3],
        /// What is possible.
        limit: [u32; 3],
        /// The device.
        device: String,
        /// Whether the kernel looks at the axes of its grid, so that workgroups beyond what one axis holds cannot be laid along the next.
        by_axes: bool,
    },
    /// The kernel has no code for the device.
    #[error(transparent)]
    Variant(#[from] VariantError),
    /// The kernel wants more than the device has.
    #[error("kernel `{kernel}` wants {wanted} {what}; {device} has {limit}")]
    Limit {
        /// The kernel.
        kernel: String,
        /// What it is that it wants: `bytes of workgroup memory`, `storage buffers`, `invocations in a workgroup`.
        what: &'static str,
        /// How much.
        wanted: u64,
        /// How much there is.
        limit: u64,
        /// The device.
        device: String,
    },
    /// The kernel states a size of subgroups that the device does not have.
    #[error("kernel `{kernel}` wants subgroups of {wanted}; {device} {offered}")]
    Subgroup {
        /// The kernel.
        kernel: String,
        /// The size that it states.
        wanted: u32,
        /// What the device does instead: `offers 32 alone`, `lets nobody choose`.
        offered: String,
        /// The device.
        device: String,
    },
    /// The driver did not take the kernel.
    #[error("kernel `{kernel}` does not build on {device}: {message}")]
    Build {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// What the driver said.
        message: String,
    },
    /// A command is not possible as given.
    #[error("`{label}`: {reason}")]
    Command {
        /// The command's label.
        label: String,
        /// What is wrong.
        reason: String,
    },
    /// A driver call failed.
    #[error("{device}: {call}: {message}")]
    Driver {
        /// The device.
        device: String,
        /// What was being done.
        call: &'static str,
        /// What the driver said.
        message: String,
    },
    /// A kernel asserts what does not hold.
    #[error("{at}: {message}, in {invocation} of kernel `{kernel}`{}", and_more(*more))]
    Assertion {
        /// The kernel's instance.
        kernel: String,
        /// Where it was written: `file:line:column`.
        at: String,
        /// The invocation that reported it first.
        invocation: Invocation,
        /// The message, values and all.
        message: String,
        /// How many other assertions do not hold, those of other invocations included.
        more: u64,
    },
    /// The device failed earlier and answers nothing any more.
    #[error("{device} was lost in `{label}`: {message}")]
    Lost {
        /// The device.
        device: String,
        /// The first failing command.
        label: String,
        /// What the driver said.
        message: String,
    },
}

impl fmt::Debug for Error {
    /// As it is displayed: that is what a program prints whose `main` gives it back, and what `unwrap` says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The kernel at which something failed, if it was at one.
    pub fn kernel(&self) -> Option<&str> {
        match self {
            Self::Argument { kernel, .. }
            | Self::Instance { kernel, .. }
            | Self::Grid { kernel, .. }
            | Self::Limit { kernel, .. }
            | Self::Subgroup { kernel, .. }
            | Self::Build { kernel, .. }
            | Self::Assertion { kernel, .. } => Some(kernel),
            _ => None,
        }
    }

    /// Whether the device failed for good: it answers every further call with this error, and programs open it again ([`Device::reopen`](crate::Device::reopen)).
    ///
    /// ```
    /// # use trefoil_dsl::{Device, Recorded, Result};
    /// # fn of(mut device: Device, record: impl Fn(&Device) -> Result<Recorded>) -> Result<()> {
    /// let mut step = record(&device)?;
    /// loop {
    ///     match step.run() {
    ///         Err(error) if error.is_lost() => {
    ///             device = device.reopen()?;
    ///             step = record(&device)?;
    ///         }
    ///         done => return done,
    ///     }
    /// }
    /// # }
    /// ```
    pub const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether there was no memory left for something. It was not made, and the device goes on.
    pub const fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. })
    }
}

/// What to write where a grid is longer than an axis may be.
fn for_axes(by_axes: bool) -> &'static str {
    if by_axes {
        "; it looks at ids by axis: with `global_index()`, `group_index()` and `.over(..)` or `.groups(..)` it may have more than an axis holds"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn what_programs_react_to_is_told_apart() {
        let lost = Error::Lost { device: "gpu".to_owned(), label: "add".to_owned(), message: "hung".to_owned() };
        let full = Error::OutOfMemory { what: "`x`".to_owned(), bytes: 4, device: "gpu".to_owned() };
        // More than the device allows is no matter of what is free.
        let large = Error::TooLarge { what: "`x`".to_owned(), bytes: 4, limit: 2, device: "gpu".to_owned() };
        assert_eq!([&lost, &full, &large].map(Error::is_lost), [true, false, false]);
        assert_eq!([&lost, &full, &large].map(Error::is_out_of_memory), [false, true, false]);
    }
}
