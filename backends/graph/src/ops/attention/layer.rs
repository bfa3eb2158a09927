//! A whole layer of a transformer: a block of attention and a feed-forward network, each with its norm and its residual.

use super::block::{Attended, AttentionBlock, Linear, expect_sequence};
use crate::graph::{Graph, GraphError, Tensor};
use crate::ops::norm::NormOperands;
use trefoil_kernels::activation::Activation;

/// What a position is put through by itself.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub enum FeedForward<T = Tensor> {
    /// `down(activation(up(x)))`
    Plain {
        /// To the inner width.
        up: Linear<T>,
        /// Between them.
        activation: Activation,
        /// Back.
        down: Linear<T>,
    },
    /// `down(activation(gate(x)) * up(x))`: SwiGLU with silu, GeGLU with gelu.
    Gated {
        /// To the inner width, for the gate.
        gate: Linear<T>,
        /// To the inner width, for what is let through.
        up: Linear<T>,
        /// Of the gate.
        activation: Activation,
        /// Back.
        down: Linear<T>,
    },
}

/// A norm over a sequence's width.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct LayerNorm<T = Tensor> {
    /// Whether rows are divided by their root mean square; otherwise their mean is taken off, and they are divided by their deviation.
    pub rms: bool,
    /// Added to the variance or the mean of squares.
    pub epsilon: f32,
    /// Scales, `[width]`.
    pub gamma: Option<T>,
    /// Shifts, `[width]`.
    pub beta: Option<T>,
}

/// Where norms and residuals stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// `h = x + attention(norm(x))`, `y = h + feed_forward(norm(h))`, as in GPT-2 and Llama.
    Before,
    /// `h = norm(x + attention(x))`, `y = norm(h + feed_forward(h))`, as in BERT.
    After,
    /// `y = x + attention(norm(x)) + feed_forward(norm(x))`, as in GPT-NeoX.
    Parallel,
}

/// A layer of a transformer.
#[derive(Clone, Debug, trefoil_graph_macros::Operands)]
pub struct TransformerLayer<T = Tensor> {
    /// Where its norms stand.
    pub placement: Placement,
    /// Its attention.
    pub attention: AttentionBlock<T>,
    /// The norm that belongs to the attention.
    pub attention_norm: LayerNorm<T>,
    /// Its feed-forward network.
    pub feed_forward: FeedForward<T>,
    /// The norm that belongs to the feed-forward network.
    pub feed_forward_norm: LayerNorm<T>,
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// A layer of a transformer over `x`, `[batch, positions, width]`: its result, with keys and values for the next run.
    ///
    /// # Errors
    /// As [`Graph::attention_block`]; or an operand of norms or of the feed-forward network does not fit.
    ///
    /// ```
    /// use trefoil_graph::ops::*;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let float = ElementType::F32;
    /// let x = g.input("x", float, [2i64, 5, 64])?;
    /// let mut linear = |name: &str, n: i64, k: i64| {
    ///     let weight = g.param(name, float, [n, k])?;
    ///     Ok::<_, trefoil_graph::GraphError>(Linear { weight, bias: None })
    /// };
    /// let attention = AttentionBlock {
    ///     heads: 4,
    ///     key_heads: 2,
    ///     elements: 16,
    ///     attention: Attention { causal: true, ..Attention::new(AttentionLayout::Bshd, 0.25) },
    ///     operands: AttentionOperands::default(),
    ///     projections: Projections::Packed(linear("qkv", 128, 64)?),
    ///     head_norms: None,
    ///     turns: None,
    ///     past: None,
    ///     output: linear("output", 64, 64)?,
    /// };
    /// let (gate, up, down) = (linear("gate", 160, 64)?, linear("up", 160, 64)?, linear("down", 64, 160)?);
    /// let norm = LayerNorm { rms: true, epsilon: 1e-6, gamma: None, beta: None };
    /// let layer = TransformerLayer {
    ///     placement: Placement::Before,
    ///     attention,
    ///     attention_norm: norm,
    ///     feed_forward: FeedForward::Gated { gate, up, activation: Activation::Silu, down },
    ///     feed_forward_norm: norm,
    /// };
    /// let y = g.transformer_layer(x, &layer)?.y;
    /// assert_eq!(g.type_of(y)?, g.type_of(x)?);
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn transformer_layer(
        &mut self,
        x: Tensor,
        layer: &TransformerLayer<Tensor>,
    ) -> Result<Attended<Tensor>, GraphError> {
        expect_sequence("transformer_layer", "x", self.operand("transformer_layer", x)?)?;
        let TransformerLayer { placement, attention, attention_norm, feed_forward, feed_forward_norm } = layer;
        match placement {
            Placement::Before => {
                let normed = self.normed(x, None, attention_norm)?;
                let attended = self.attention_block(normed, attention)?;
                let (normed, sum) = self.normed_and_sum(attended.y, x, feed_forward_norm)?;
                let fed = self.feed_forward(normed, feed_forward)?;
                Ok(Attended { y: self.add(sum, fed)?, ..attended })
            }
            Placement::After => {
                let attended = self.attention_block(x, attention)?;
                let middle = self.normed(attended.y, Some(x), attention_norm)?;
                let fed = self.feed_forward(middle, feed_forward)?;
                Ok(Attended { y: self.normed(fed, Some(middle), feed_forward_norm)?, ..attended })
            }
            Placement::Parallel => {
                let normed = self.normed(x, None, attention_norm)?;
                let attended = self.attention_block(normed, attention)?;
                let normed = self.normed(x, None, feed_forward_norm)?;
                let fed = self.feed_forward(normed, feed_forward)?;
                let sum = self.add(x, attended.y)?;
                Ok(Attended { y: self.add(sum, fed)?, ..attended })
            }
        }
    }

    /// A feed-forward network on the last axis of `x`.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn feed_forward(&mut self, x: Tensor, network: &FeedForward<Tensor>) -> Result<Tensor, GraphError> {
        let (inner, down) = match *network {
            FeedForward::Plain { up, activation, down } => (self.linear(x, up.weight, up.bias, activation)?, down),
            FeedForward::Gated { gate, up, activation, down } => {
                // Where a map knows gate and value together, the gate is written once.
                let own = match activation {
                    Activation::Silu | Activation::Gelu => Activation::Identity,
                    other => other,
                };
                let gate = self.linear(x, gate.weight, gate.bias, own)?;
                let up = self.linear(x, up.weight, up.bias, Activation::Identity)?;
                let inner = match activation {
                    Activation::Silu => self.silu_mul(gate, up)?,
                    Activation::Gelu => self.gelu_mul(gate, up)?,
                    _ => self.mul(gate, up)?,
                };
                (inner, down)
            }
        };
        self.linear(inner, down.weight, down.bias, Activation::Identity)
    }

    fn normed(&mut self, x: Tensor, residual: Option<Tensor>, norm: &LayerNorm) -> Result<Tensor, GraphError> {
        let operands = NormOperands { residual, bias: None, gamma: norm.gamma, beta: norm.beta };
        match norm.rms {
            false => self.layer_norm(x, &[-1], norm.epsilon, operands),
            true => self.rms_norm(x, &[-1], norm.epsilon, operands),
        }
    }

    fn normed_and_sum(
        &mut self,
        x: Tensor,
        residual: Tensor,
        norm: &LayerNorm,
    ) -> Result<(Tensor, Tensor), GraphError> {
        let operands = NormOperands { residual: Some(residual), bias: None, gamma: norm.gamma, beta: norm.beta };
        match norm.rms {
            false => self.layer_norm_and_sum(x, &[-1], norm.epsilon, operands),
            true => self.rms_norm_and_sum(x, &[-1], norm.epsilon, operands),
        }
    }
}
