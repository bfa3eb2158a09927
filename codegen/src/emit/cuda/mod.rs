//! CUDA C for NVRTC, without any header.
//!
//! Buffers are pointers in the order of the author's signature, with offsets already added, then comes the parameter block: by value, or
//! as a pointer where it is read from a buffer. Behind one by value come the tensor maps of bulk copies, if there are any. Device functions get what they use of these as arguments. The vector types are CUDA's
//! own; operators and functions on them are printed, lane by lane, as far as a kernel uses them. Halves are `unsigned short`, converted
//! by inline PTX.

mod asynchronous;
mod bulk;
mod expr;
mod given;
mod matrix;
mod module;
mod ordered;
mod precision;
mod stmt;
mod tile;
mod types;
mod volatile;

use super::EmitError;
use super::text::Printer;
use crate::lower::Lowered;
use crate::target::Target;

pub use module::Printed;

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuda;

/// The text of a kernel.
///
/// # Errors
/// Names what CUDA C cannot say.
pub fn emit(lowered: &Lowered) -> Result<String, EmitError> {
    Ok(print(lowered)?.text(lowered.transport))
}

/// What the texts of a kernel for one set of features have in common.
///
/// # Errors
/// As [`emit`].
pub fn print(lowered: &Lowered) -> Result<Printed, EmitError> {
    if lowered.profile.target != Target::Cuda {
        return Err(EmitError {
            kernel: lowered.module.name.clone(),
            target: Target::Cuda,
            message: format!("it was lowered for {}", lowered.profile.target.name()),
        });
    }
    module::module(&mut Printer::<Cuda>::new(lowered))
}
