//! What the author of a kernel imports, and the interface that devices implement.

pub mod buffer;
pub mod device;
pub mod element;
pub mod error;
pub mod support;

pub use trefoil_codegen::artefact;
