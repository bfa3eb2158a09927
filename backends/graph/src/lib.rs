//! trefoil's tensor graph.

pub mod dim;
pub mod graph;
pub mod op;
pub mod ops;
pub mod types;
