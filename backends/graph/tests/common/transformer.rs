//! A small transformer with keys and values in states, or over the whole text at once.

use std::collections::BTreeMap;

use trefoil_graph::ops::{
    Attention, AttentionBlock, AttentionLayout, AttentionOperands, FeedForward, LayerNorm, Linear, Pairs, Past,
    Placement, Projections, TransformerLayer, Turns,
};
use trefoil_graph::{Dim, ElementType, Graph, Model, Tensor};
use trefoil_kernels::activation::Activation;

use super::numbers;
use ElementType::{F32, U32};

pub const LAYERS: usize = 2;
pub const HEADS: usize = 4;
/// Two heads of queries share one of keys.
pub const KEY_HEADS: usize = 2;
pub const ELEMENTS: usize = 16;
pub const WIDTH: usize = HEADS * ELEMENTS;
pub const INNER: usize = 96;
pub const VOCABULARY: usize = 64;
/// Tokens that are written, one a run.
pub const STEPS: usize = 256;
/// What starts every text.
pub const FIRST: u32 = 17;

fn dims(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A graph, and the shapes of its params by name.
#[derive(Default)]
pub struct Builder {
    pub g: Graph,
    pub params: BTreeMap<String, Vec<usize>>,
}

impl Builder {
    fn param(&mut self, name: &str, extents: &[usize]) -> Tensor {
        self.params.insert(name.to_owned(), extents.to_vec());
        self.g.param(name, F32, dims(extents)).unwrap()
    }

    fn linear(&mut self, name: &str, n: usize, k: usize) -> Linear {
        Linear { weight: self.param(name, &[n, k]), bias: None }
    }

    fn norm(&mut self, name: &str) -> LayerNorm {
        LayerNorm { rms: true, epsilon: 1e-5, gamma: Some(self.param(name, &[WIDTH])), beta: None }
    }

    /// The logits of all `count` tokens of `ids`. If there is a position, it is that of the first of them, and keys and values of those before lie in states.
    pub fn transformer(mut self, count: &Dim, position: Option<&Dim>) -> Self {
        let ids = self.g.input("ids", U32, vec![Dim::from(1), count.clone()]).unwrap();
        let words = self.param("words", &[VOCABULARY, WIDTH]);
        let mut x = self.g.embedding(words, ids).unwrap();
        let (cosines, sines) = self.g.rope_tables(STEPS, ELEMENTS, 10_000.0, F32).unwrap();
        let start = position.cloned().unwrap_or(Dim::from(0));
        let tables = [cosines, sines].map(|table| self.g.narrow(table, 0, start.clone(), count.clone()).unwrap());
        for layer in 0..LAYERS {
            let name = |part: &str| format!("{layer}.{part}");
            let past = position.map(|position| {
                let room = dims(&[1, STEPS, KEY_HEADS, ELEMENTS]);
                let [keys, values] =
                    ["keys", "values"].map(|part| self.g.state(&name(part), F32, room.clone()).unwrap());
                Past::States { keys, values, position: position.clone() }
            });
            let attention = AttentionBlock {
                heads: HEADS,
                key_heads: KEY_HEADS,
                elements: ELEMENTS,
                attention: Attention { causal: true, ..Attention::new(AttentionLayout::Bshd, 0.25) },
                operands: AttentionOperands::default(),
                projections: Projections::Packed(self.linear(&name("qkv"), (HEADS + 2 * KEY_HEADS) * ELEMENTS, WIDTH)),
                head_norms: None,
                turns: Some(Turns {
                    tables: (tables[0], tables[1]),
                    positions: None,
                    pairs: Pairs::Halves,
                    turned: ELEMENTS,
                }),
                past,
                output: self.linear(&name("output"), WIDTH, WIDTH),
            };
            let feed_forward = FeedForward::Gated {
                gate: self.linear(&name("gate"), INNER, WIDTH),
                up: self.linear(&name("up"), INNER, WIDTH),
                activation: Activation::Silu,
                down: self.linear(&name("down"), WIDTH, INNER),
            };
            let layer = TransformerLayer {
                placement: Placement::Before,
                attention,
                attention_norm: self.norm(&name("attention norm")),
                feed_forward,
                feed_forward_norm: self.norm(&name("feed forward norm")),
            };
            x = self.g.transformer_layer(x, &layer).unwrap().y;
        }
        let head = self.param("head", &[VOCABULARY, WIDTH]);
        let logits = self.g.linear(x, head, None, Activation::Identity).unwrap();
        self.g.output("logits", logits).unwrap();
        self
    }
}

/// Weights without a pattern, so large that every token decides on what follows.
pub fn model(params: &BTreeMap<String, Vec<usize>>) -> Model {
    let model = Model::new();
    for (seed, (name, shape)) in params.iter().enumerate() {
        let range = if shape.len() == 1 { 1.5 } else { 3.0 / (shape[1] as f32).sqrt() };
        let values = numbers(shape.iter().product(), seed as u32 + 1, range);
        model.set(name, shape, &values[..]).unwrap();
    }
    model
}
