//! What families of kernels share: device functions, and how rows and teams of invocations lie.
//!
//! A family is a crate, so that a change of one kernel compiles its family alone; a change here compiles all that uses it.

pub mod activation;
pub mod longs;
pub mod pieces;
pub mod quads;
pub mod statistics;
pub mod team;
pub mod values;
pub mod workgroup;
