//! The op library: each op is one struct that implements [`crate::op::Op`], and one method of [`crate::graph::Graph`] that adds it.

pub mod fill;
pub mod map;
mod real;
pub mod view;
