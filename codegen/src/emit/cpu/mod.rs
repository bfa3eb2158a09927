//! The CPU function: the kernel as Rust over raw pointers, with the IR's guards.
//!
//! # Shape
//! One always-inlined body, generic only in whether a multiply-add is one instruction, inside copies for AVX-512, AVX2 with FMA, NEON and the
//! baseline, one of which is chosen at run time ([`crate::artefact::Vectors`]); of a kernel of cooperative matrices there is the last alone. The body runs workgroups one after the other on the calling thread. Within
//! a workgroup, the code between barriers and subgroup operations is a loop over invocations (`regions`); see `plan` for how the body is
//! cut and where locals live.
//!
//! # Aliasing
//! A binding that the kernel only reads is a slice of its elements, so loops over it become vectors without a check at run time; bindings that
//! are written are pointers, accessed plainly where no two workgroups touch the same element, by relaxed atomics otherwise. The
//! caller of a [`crate::artefact::CpuFunction`] vouches that lengths in the parameter block do not exceed the memory, and that no more workgroups run at
//! once than are apart where indices wrap.
//!
//! # Arithmetic
//! Rust's own operators have the IR's meaning, with helpers for division by zero and halves. The products and sums of the author are never contracted;
//! `mul_add` is one rounding on machines with FMA and two elsewhere.

mod expr;
mod inline;
mod module;
mod plan;
mod range;
mod regions;
mod stmt;
mod types;

use super::EmitError;
use crate::lower::Lowered;

/// The kernel as a block expression of type [`crate::artefact::CpuFunction`], which may initialise a constant; `path` is the path of
/// [`crate::artefact`] in the author's crate, absolute or from `crate`.
///
/// # Errors
/// The kernel holds something that cannot be printed, which names it.
pub fn emit(lowered: &Lowered, path: &str) -> Result<String, EmitError> {
    let items = module::text(lowered, path)?;
    // The names of steps and of what they hold are those of their `Debug` text.
    let share: Vec<String> = lowered.info.share.iter().map(|step| format!("{path}::ShareStep::{step:?}")).collect();
    let share = share.join(", ");
    // Clippy, which runs nothing, would spend more time on it than on all that people wrote.
    Ok(format!(
        "{{
#[cfg(not(clippy))]
#[allow(
    unused, unsafe_code, unsafe_op_in_unsafe_fn, missing_docs, non_snake_case, unreachable_code,
    clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction,
    reason = \"printed from the kernel's IR, whose rules make the accesses sound\"
)]
mod cpu {{
{items}
}}
#[cfg(clippy)]
#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction, reason = \"as above\")]
mod cpu {{ pub unsafe fn entry(_: &{path}::CpuArguments<'_>, _: u64, _: u64) {{}} }}
{path}::CpuFunction {{ entry: cpu::entry, share: &[{share}] }}
}}"
    ))
}

/// The contents of the module that [`emit`] puts around the kernel, as text for people.
///
/// # Errors
/// As [`emit`].
pub fn text(lowered: &Lowered) -> Result<String, EmitError> {
    module::text(lowered, "trefoil::artefact")
}
