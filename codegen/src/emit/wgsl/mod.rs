//! WGSL, in the dialects of [`crate::target::Dialect`]: their texts differ in the directives at the top and in nothing else.
//!
//! Buffers are runtime-sized arrays of group 0, in the order of the author's signature; the parameter block is a uniform buffer after
//! them. A binding that is read or written several elements at a time is declared as an array of vectors; one whose elements WGSL would lay out otherwise
//! than the host (it gives three lanes the room of four) as an array of words.

mod depth;
mod expr;
mod module;
mod stmt;
mod types;

use super::EmitError;
use super::text::Printer;
use crate::lower::Lowered;
use crate::target::Target;

pub(super) use depth::check as check_depth;
pub use module::{Printed, parse};

/// The dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wgsl;

/// The text of a kernel.
///
/// # Errors
/// Names what WGSL cannot say.
pub fn emit(lowered: &Lowered) -> Result<String, EmitError> {
    Ok(print(lowered)?.text(&lowered.profile))
}

/// What the texts of a kernel for one set of features have in common.
///
/// # Errors
/// As [`emit`].
pub fn print(lowered: &Lowered) -> Result<Printed, EmitError> {
    if lowered.profile.target != Target::Wgsl {
        return Err(EmitError {
            kernel: lowered.module.name.clone(),
            target: Target::Wgsl,
            message: format!("it was lowered for {}", lowered.profile.target.name()),
        });
    }
    module::module(&mut Printer::<Wgsl>::new(lowered))
}

/// Has naga read a text and prove it valid, for a device with the optional features that this crate knows.
///
/// # Errors
/// What naga says, with the place in the text. It is a defect of this crate, never of the author's kernel.
pub fn validate(text: &str) -> Result<(), EmitError> {
    parse(text).map(|_| ())
}
