//! trefoil's compiler, a plain library with no GPU dependency: Rust syntax to kernel IR, the verifier, lowering, and one emitter
//! for each target.
//!
//! The way of a kernel: [`front`] → [`ir`] → [`verify`] → [`lower`] → [`emit`] → [`artefact`].

pub mod artefact;
pub mod compile;
pub mod diagnostic;
pub mod emit;
pub mod fingerprint;
pub mod front;
pub mod interp;
pub mod ir;
pub mod layout;
pub mod lower;
pub mod target;
pub mod verify;
