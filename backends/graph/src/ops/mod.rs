//! The op library: each op is one struct that implements [`crate::op::Op`], and one method of [`crate::graph::Graph`] that adds it.

mod activation;
pub mod attention;
mod axes;
pub mod bitcast;
pub mod fill;
#[cfg(feature = "cpu")]
mod host;
mod levels;
pub mod map;
pub mod matmul;
pub mod narrow;
pub mod norm;
pub mod pull;
pub mod random;
pub(crate) mod real;
pub mod reduce;
pub mod rope;
pub mod scan;
pub mod scatter;
pub mod sort;
pub mod state;
pub(crate) mod support;
pub mod table;
pub mod view;
