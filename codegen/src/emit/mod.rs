//! Emitters: from [`Lowered`](crate::lower::Lowered) kernels to the text of a target. Every target's folder has the same files: `types`, `expr`, `stmt` and
//! `module`. The languages that look like C share a printer, [`text`].

use crate::target::Target;

pub mod cpu;
pub mod cuda;
pub mod names;
pub mod spirv;
pub mod text;
pub mod wgsl;

/// Why a kernel cannot be written in a target's language. The verifier and lowering let such kernels pass only where the target lacks
/// something that this version of the emitter does not work around.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` cannot be emitted for {}: {message}", target.name())]
pub struct EmitError {
    /// The kernel's instance.
    pub kernel: String,
    /// The target.
    pub target: Target,
    /// What is wrong.
    pub message: String,
}
