//! The SPIR-V emitter.
//!
//! It writes SPIR-V 1.5 for Vulkan 1.2 and later, in rspirv's data representation of a module. Version 1.5 because the Vulkan memory
//! model is a part of it, and with it barriers whose meaning is written down.
//!
//! What every module keeps to:
//! * **Memory.** Storage buffers hold types with explicit offsets and strides (`types`); workgroup variables and locals hold types
//!   without any, because newer validators refuse strides there. A `Vec3` in a buffer is an array of three scalars, since it may start
//!   at any multiple of 4 bytes. 16-bit floats are `f32` in registers, workgroup memory and locals; only loads and stores of buffers convert,
//!   and those of workgroup memory of which matrices are loaded. What is stored there is rounded as it is: the module asks for rounding to the nearest then.
//! * **Barriers** are AcquireRelease with MakeAvailable and MakeVisible over workgroup memory, and over buffers if a buffer that the
//!   kernel writes may have been touched before (`touched`). Accesses to what such barriers, or ordered atomics and fences, order are non-private.
//! * **Reads** of vectors from buffers that the kernel does not write are volatile in loops with a barrier: drivers move others behind the barrier, to where their values are used, and wait for memory there.
//! * **Guards** (`place`) are a clamped index and a select where that is safe, and a branch elsewhere.
//! * **Control flow** (`stmt`) is structured; every merge block exists, an unreachable one says so.
//! * What does not change within an invocation (parameters, builtins) is read once at the top of each function.

mod constants;
mod disassemble;
mod expr;
mod function;
mod math;
mod matrix;
mod module;
mod place;
mod stmt;
mod types;

use rspirv::binary::Assemble;

use super::EmitError;
use crate::lower::Lowered;

pub use disassemble::disassemble;

/// The kernel as SPIR-V words.
///
/// # Errors
/// The IR holds something that lowering should have removed, or that SPIR-V has no form for; the message says what.
pub fn emit(lowered: &Lowered) -> Result<Vec<u32>, EmitError> {
    Ok(module::write(lowered)?.assemble())
}
