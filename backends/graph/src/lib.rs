//! trefoil's tensor graph.

pub mod dim;
pub mod op;
pub mod types;
