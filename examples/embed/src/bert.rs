//! A BERT encoder with mean pooling, as a graph.
//!
//! Names of params are those of the checkpoint, so that the model's file is used as it is; but for the weights of queries, keys and values, which are one param of a layer each ([`weights`]).

use std::path::Path;

use trefoil::graph::ops::{Activation, Attention, AttentionLayout, AttentionOperands, NormOperands};
use trefoil::graph::{self, Dim, ElementType, Graph, GraphError, Model, Symbol, Tensor};

/// The sizes of an encoder.
#[derive(Clone, Copy, Debug)]
pub struct BertConfig {
    /// Rows of the word table.
    pub vocabulary: i64,
    /// Rows of the position table.
    pub positions: i64,
    /// Elements of a token's vector.
    pub hidden: i64,
    /// Heads of the attention.
    pub heads: i64,
    /// Elements between the two products of a layer's second half.
    pub intermediate: i64,
    /// Layers.
    pub layers: usize,
    /// Added to variances.
    pub epsilon: f32,
}

impl BertConfig {
    /// all-MiniLM-L6-v2.
    pub const MINILM_L6: Self = Self {
        vocabulary: 30522,
        positions: 512,
        hidden: 384,
        heads: 12,
        intermediate: 1536,
        layers: 6,
        epsilon: 1e-12,
    };
}

/// What the params of queries, keys and values are called in a checkpoint, and what they are called together.
const PARTS: [&str; 3] = ["query", "key", "value"];
const TOGETHER: &str = "query_key_value";

/// The model of a checkpoint, with what [`encoder`] wants beside the checkpoint's params: those of queries, keys and values together.
///
/// # Errors
/// The file cannot be read, or is no checkpoint of such an encoder.
pub fn weights(config: &BertConfig, file: &Path) -> Result<Model, graph::Error> {
    let model = Model::from_safetensors(&[file])?;
    for layer in 0..config.layers {
        for what in ["weight", "bias"] {
            let name = |part: &str| format!("encoder.layer.{layer}.attention.self.{part}.{what}");
            model.join(&name(TOGETHER), &PARTS.map(name).each_ref().map(String::as_str))?;
        }
    }
    Ok(model)
}

/// Builds the encoder: inputs `ids` (`u32[batch, tokens]`) and `mask` (`f32[batch, tokens]`, 1 for tokens and 0 for padding), output `embeddings`
/// (`f32[batch, hidden]`, of length 1).
///
/// # Errors
/// None for a sensible configuration.
pub fn encoder(config: &BertConfig, batch: &Symbol, tokens: &Symbol) -> Result<Graph, GraphError> {
    let mut g = Graph::new();
    let (b, s, hidden) = (Dim::from(batch), Dim::from(tokens), Dim::from(config.hidden));
    let ids = g.input("ids", ElementType::U32, vec![b.clone(), s.clone()])?;
    let mask = g.input("mask", ElementType::F32, vec![b.clone(), s.clone()])?;

    let words = param(&mut g, "embeddings.word_embeddings.weight", &[config.vocabulary, config.hidden])?;
    let positions = param(&mut g, "embeddings.position_embeddings.weight", &[config.positions, config.hidden])?;
    let types = param(&mut g, "embeddings.token_type_embeddings.weight", &[2, config.hidden])?;
    let words = g.embedding(words, ids)?;
    let positions = g.narrow(positions, 0, 0, s.clone())?;
    let types = g.narrow(types, 0, 0, 1)?;
    let places = g.add(positions, types)?;
    let sum = g.add(words, places)?;
    let mut x = layer_norm(&mut g, config, "embeddings.LayerNorm", sum, None)?;

    // A hidden key's score sinks so far that its weight is exactly zero.
    let (one, sink) = (g.scalar(1.0, ElementType::F32)?, g.scalar(1.0e9, ElementType::F32)?);
    let hidden_key = g.sub(mask, one)?;
    let penalty = g.mul(hidden_key, sink)?;
    let penalty = g.reshape(penalty, vec![b.clone(), 1.into(), 1.into(), s.clone()])?;

    for layer in 0..config.layers {
        x = encoder_layer(&mut g, config, &format!("encoder.layer.{layer}"), x, penalty, &b, &s)?;
    }

    let weights = g.reshape(mask, vec![b.clone(), s.clone(), 1.into()])?;
    let weighted = g.mul(x, weights)?;
    let total = g.sum(weighted, &[1], false)?;
    let count = g.sum(mask, &[1], true)?;
    let mean = g.div(total, count)?;
    let squares = g.mul(mean, mean)?;
    let square = g.sum(squares, &[1], true)?;
    let length = g.sqrt(square)?;
    let embeddings = g.div(mean, length)?;
    debug_assert_eq!(g.type_of(embeddings)?.shape, [b, hidden]);
    g.output("embeddings", embeddings)?;
    Ok(g)
}

fn param(g: &mut Graph, name: &str, shape: &[i64]) -> Result<Tensor, GraphError> {
    g.param(name, ElementType::F32, shape.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>())
}

fn layer_norm(
    g: &mut Graph,
    config: &BertConfig,
    name: &str,
    x: Tensor,
    residual: Option<Tensor>,
) -> Result<Tensor, GraphError> {
    let gamma = Some(param(g, &format!("{name}.weight"), &[config.hidden])?);
    let beta = Some(param(g, &format!("{name}.bias"), &[config.hidden])?);
    g.layer_norm(x, &[-1], config.epsilon, NormOperands { residual, gamma, beta, bias: None })
}

/// activation(x weight^T + bias)
fn dense(
    g: &mut Graph,
    name: &str,
    x: Tensor,
    (from, to): (i64, i64),
    activation: Activation,
) -> Result<Tensor, GraphError> {
    let (weight, bias) = dense_params(g, name, (from, to))?;
    g.linear(x, weight, Some(bias), activation)
}

/// The weight and the bias of a dense layer.
fn dense_params(g: &mut Graph, name: &str, (from, to): (i64, i64)) -> Result<(Tensor, Tensor), GraphError> {
    let weight = param(g, &format!("{name}.weight"), &[to, from])?;
    Ok((weight, param(g, &format!("{name}.bias"), &[to])?))
}

fn encoder_layer(
    g: &mut Graph,
    config: &BertConfig,
    name: &str,
    x: Tensor,
    penalty: Tensor,
    b: &Dim,
    s: &Dim,
) -> Result<Tensor, GraphError> {
    let (hidden, heads) = (config.hidden, config.heads);
    let per_head = hidden / heads;
    let square = (hidden, hidden);
    let (weight, bias) = dense_params(g, &format!("{name}.attention.self.{TOGETHER}"), (hidden, 3 * hidden))?;
    let columns = usize::try_from(hidden).unwrap_or(0);
    let mut parts = g.linear_split(x, weight, Some(bias), &[columns; 3])?;
    for part in &mut parts {
        *part = g.reshape(*part, vec![b.clone(), s.clone(), heads.into(), per_head.into()])?;
    }
    #[expect(clippy::cast_precision_loss, reason = "head sizes are small")]
    let scale = 1.0 / (per_head as f32).sqrt();
    let operands = AttentionOperands { bias: Some(penalty), ..AttentionOperands::default() };
    let op = Attention::new(AttentionLayout::Bshd, scale);
    let attended = g.attention(parts[0], parts[1], parts[2], operands, op)?;
    let attended = g.reshape(attended, vec![b.clone(), s.clone(), hidden.into()])?;
    let projected = dense(g, &format!("{name}.attention.output.dense"), attended, square, Activation::Identity)?;
    let x = layer_norm(g, config, &format!("{name}.attention.output.LayerNorm"), projected, Some(x))?;

    let wide = (hidden, config.intermediate);
    let inner = dense(g, &format!("{name}.intermediate.dense"), x, wide, Activation::Gelu)?;
    let narrow = (config.intermediate, hidden);
    let outer = dense(g, &format!("{name}.output.dense"), inner, narrow, Activation::Identity)?;
    layer_norm(g, config, &format!("{name}.output.LayerNorm"), outer, Some(x))
}
