//! GPU kernels written once in Rust, and a tensor graph that schedules them.

// The macros' expansions name this crate by its own name, also inside it.
extern crate self as trefoil;

pub use trefoil_dsl as dsl;

pub use trefoil_dsl::*;
