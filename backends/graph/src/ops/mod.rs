//! The op library: each op is one struct that implements [`crate::op::Op`], and one method of [`crate::graph::Graph`] that adds it.

pub mod attention;
mod axes;
pub mod bitcast;
pub mod fill;
#[cfg(feature = "cpu")]
mod host;
pub mod layer_norm;
pub mod map;
pub mod matmul;
pub mod pull;
mod real;
pub mod reduce;
pub mod scan;
pub mod rope;
pub mod softmax;
pub mod sort;
mod support;
pub mod table;
pub mod view;
