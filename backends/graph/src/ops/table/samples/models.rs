//! Uses of the ops that models spend their time in: norms, products, convolutions, attention.

use super::{Accuracy, Sample, dims, matrix, samples};
use crate::graph::{Graph, GraphError, Tensor};
use crate::ops::attention::{
    Attention, AttentionBlock, AttentionLayout, AttentionOperands, FeedForward, LayerNorm, Linear, Placement,
    Projections, TransformerLayer,
};
use crate::ops::matmul::Adapters;
use crate::ops::norm::{BatchMoments, NormOperands};
use crate::ops::pull::convolution::Slide;
use crate::ops::rope::Rope;
use crate::types::ElementType;
use trefoil_kernels::activation::Activation;
use trefoil_kernels::rope::Pairs;

/// Family by family.
pub(super) const ALL: &[&[Sample]] = &[NORMS, PRODUCTS, ATTENTION];

const NORMS: &[Sample] = samples! {
    "softmax" Sums ["axis"] "e^(x - max x) / Σ e^(x - max x)" |g, element| {
        let x = matrix(g, element)?;
        g.softmax(x, -1)
    };
    "log_softmax" Sums ["axis"] "x - max x - log Σ e^(x - max x)" |g, element| {
        let x = matrix(g, element)?;
        g.log_softmax(x, -1)
    };
    "layer_norm" Sums "(v - mean v) / sqrt(variance of v + epsilon) gamma + beta for v = x + residual + bias; v itself, or mean and factor, as further outputs" |g, element| {
        let x = matrix(g, element)?;
        g.layer_norm(x, &[-1], 1e-5, NormOperands::default())
    };
    "rms_norm" Sums "v / sqrt(mean v² + epsilon) gamma + beta for v = x + residual + bias; v itself as a further output" |g, element| {
        let x = matrix(g, element)?;
        g.rms_norm(x, &[-1], 1e-5, NormOperands::default())
    };
    "layer_norm_2d" Sums ["epsilon"] "layer_norm of [N, C, H, W] over C" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 2, 2]))?;
        g.layer_norm_2d(x, 1e-5, None, None)
    };
    "group_norm" Sums ["groups", "epsilon"] "layer_norm over groups of channels and all places" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 2, 2]))?;
        g.group_norm(x, 2, 1e-5, None, None)
    };
    "instance_norm" Sums ["epsilon"] "layer_norm over all places of a channel" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 2, 2]))?;
        g.instance_norm(x, 1e-5, None, None)
    };
    "batch_norm" Sums ["epsilon"] "(x - mean) / sqrt(variance + epsilon) gamma + beta with moments that are given" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 2, 2]))?;
        let moments = BatchMoments {
            mean: g.input("mean", element, dims(&[4]))?,
            variance: g.input("variance", element, dims(&[4]))?,
        };
        g.batch_norm(x, moments, 1e-5, None, None)
    };
    "l2_normalise" Sums ["axes", "epsilon"] "x / max(sqrt Σ x², epsilon)" |g, element| {
        let x = matrix(g, element)?;
        g.l2_normalise(x, &[-1], 1e-12)
    };
    "l1_normalise" Sums ["axes", "epsilon"] "x / max(Σ |x|, epsilon)" |g, element| {
        let x = matrix(g, element)?;
        g.l1_normalise(x, &[-1], 1e-12)
    };
};

const PRODUCTS: &[Sample] = samples! {
    "matmul" Sums "activation(a b + bias), batch by batch" |g, element| {
        let x = matrix(g, element)?;
        g.matmul(x, x)
    };
    "grouped_matmul" Sums "row t of x times the matrix that id t names; zeros where there is none" |g, element| {
        let (x, weights) = (matrix(g, element)?, g.input("weights", element, dims(&[2, 4, 8]))?);
        let ids = g.input("ids", ElementType::U32, dims(&[4]))?;
        g.grouped_matmul(x, weights, ids)
    };
    "lora_matmul" Sums ["scale"] "x wᵀ + scale (x down_i) up_i for the adapter i of a row, where there is one" |g, element| {
        let (x, weight) = (matrix(g, element)?, g.input("weight", element, dims(&[8, 4]))?);
        let ids = g.input("ids", ElementType::U32, dims(&[4]))?;
        let (down, up) = (g.input("down", element, dims(&[3, 4, 2]))?, g.input("up", element, dims(&[3, 2, 8]))?);
        g.lora_matmul(x, weight, Adapters { down, up, scale: 1.0 }, ids)
    };
    "conv" Sums "y = activation(Σ x at p stride + k dilation - padding times w_k, plus bias) over one axis or several" |g, element| {
        let (x, weight) = (g.input("x", element, dims(&[1, 2, 5]))?, g.input("weight", element, dims(&[3, 2, 3]))?);
        g.conv(x, weight, None, &[Slide::default()], 1i64, Activation::Identity)
    };
    "conv_transpose" Sums "the transpose of conv: each x spread by w" |g, element| {
        let (x, weight) = (g.input("x", element, dims(&[1, 2, 5]))?, g.input("weight", element, dims(&[2, 3, 3]))?);
        g.conv_transpose(x, weight, None, &[Slide::default()], 1i64, Activation::Identity)
    };
};

const ATTENTION: &[Sample] = samples! {
    "attention" Sums "softmax(q kᵀ scale, capped, + bias, of the keys that a query sees) v" |g, element| {
        let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name, element, dims(&[1, 2, 4, 8])));
        g.attention(q?, k?, v?, AttentionOperands::default(), Attention::new(AttentionLayout::Bhsd, 0.35))
    };
    "attention_block" Sums ["attention", "operands", "projections", "head_norms", "turns", "past"] "attention of a sequence with all of its products, norms and turns" |g, element| {
        let (x, block) = block(g, element)?;
        Ok(g.attention_block(x, &block)?.y)
    };
    "transformer_layer" Sums ["placement", "attention", "feed_forward", "norms"] "a block of attention and a feed-forward network, plain or gated, with norms and residuals" |g, element| {
        let (x, attention) = block(g, element)?;
        let inner = Linear { weight: g.input("inner", element, dims(&[8, 8]))?, bias: None };
        let norm = LayerNorm { rms: false, epsilon: 1e-5, gamma: None, beta: None };
        let feed_forward = FeedForward::Plain { up: inner, activation: Activation::Gelu, down: inner };
        let layer = TransformerLayer {
            placement: Placement::After,
            attention,
            attention_norm: norm,
            feed_forward,
            feed_forward_norm: norm,
        };
        Ok(g.transformer_layer(x, &layer)?.y)
    };
    "rope" Sums "pairs of elements turned by the angle of their position" |g, element| {
        let x = g.input("x", element, dims(&[1, 2, 4, 8]))?;
        let of_tables = if element == ElementType::F64 { element } else { ElementType::F32 };
        let (cosines, sines) = g.rope_tables(4, 8, 1e4, of_tables)?;
        g.rope(x, cosines, sines, None, Rope { layout: AttentionLayout::Bhsd, pairs: Pairs::Halves, turned: 8 })
    };
    "alibi" Exact ["heads", "keys"] "a bias that falls with the distance of a key, by head" |g, element| g.alibi(2, 4i64, element);
};

/// A sequence, and attention of two heads over it.
fn block(g: &mut Graph, element: ElementType) -> Result<(Tensor, AttentionBlock), GraphError> {
    let x = g.input("x", element, dims(&[1, 4, 8]))?;
    let mut linear =
        |name: &str, n: i64| Ok::<_, GraphError>(Linear { weight: g.input(name, element, dims(&[n, 8]))?, bias: None });
    let (all, output) = (linear("qkv", 24)?, linear("output", 8)?);
    let block = AttentionBlock {
        heads: 2,
        key_heads: 2,
        elements: 4,
        attention: Attention::new(AttentionLayout::Bshd, 0.5),
        operands: AttentionOperands::default(),
        projections: Projections::Packed(all),
        head_norms: None,
        turns: None,
        past: None,
        output,
    };
    Ok((x, block))
}
