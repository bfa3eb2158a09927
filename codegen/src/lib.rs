//! trefoil's compiler, a plain library with no GPU dependency: Rust syntax to kernel IR, the verifier, lowering, and one emitter
//! for each target.
//!
//! The way of a kernel: `front` → [`ir`] → [`verify`] → `lower` → [`emit`] → [`artefact`]. The front end, lowering and each emitter are features
//! of this crate: the macros have them all, a program has those of its devices, for instances made late.

pub mod artefact;
pub mod check;
pub mod compile;
pub(crate) mod copies;
pub mod diagnostic;
pub mod emit;
pub mod fingerprint;
pub(crate) mod flat;
#[cfg(feature = "front")]
pub mod front;
pub(crate) mod hashing;
pub mod interp;
pub mod ir;
pub mod layout;
#[cfg(feature = "lower")]
pub mod lower;
pub(crate) mod matrices;
#[doc(hidden)]
pub mod meaning;
pub(crate) mod names;
pub(crate) mod narrow;
pub mod overrides;
#[doc(hidden)]
pub mod passes;
pub mod reports;
pub(crate) mod share;
pub mod site;
pub(crate) mod small;
#[doc(hidden)]
pub mod sources;
pub mod target;
pub(crate) mod tensor_map;
pub(crate) mod tiles;
pub mod timings;
pub mod variants;
pub(crate) mod vectors;
pub mod verify;
