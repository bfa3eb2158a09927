//! trefoil's tensor graph.

pub mod dim;
