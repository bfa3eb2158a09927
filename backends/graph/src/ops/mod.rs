//! The op library: each op is one struct that implements [`crate::op::Op`], and one method of [`crate::graph::Graph`] that adds it.
//!
//! What these methods take beside tensors and numbers is found here, without the paths of the ops' modules; but for `Sampling` and `Update`, of which there are two each.

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

pub use attention::{
    Attention, AttentionBlock, AttentionLayout, AttentionOperands, FeedForward, HeadNorms, LayerNorm, Linear, Past,
    Placement, Projections, Queries, Scores, TransformerLayer, Turns,
};
pub use fill::Number;
pub use map::Function;
pub use matmul::{Adapters, Contraction};
pub use narrow::{Narrow, Overflow, Rounding};
pub use norm::{BatchMoments, NormOperands};
pub use pull::blocks::BlockOrder;
pub use pull::border::Border;
pub use pull::convolution::Slide;
pub use pull::pool::{Pooling, Window};
pub use pull::resize::{Alignment, Interpolation, Nearest, ResizeAxis};
pub use pull::sample::{GridSample, Outside};
pub use pull::slices::Overhang;
pub use rope::{Pairs, Rope};
pub use scan::Sweep;
pub use sort::{Best, Order};
pub use trefoil_kernels::activation::Activation;
