//! A small transformer writes text, one token a run, with its keys and values resident on the device.
//!
//! ```text
//! cargo run --release --example decode --features graph
//! cargo run --release --example decode --features graph,vulkan -- vulkan
//! ```
//!
//! One executable serves the prompt, which it takes in one run, and every token after it. A run writes the keys and values of its own tokens into states, one row a token, and attention reads all of them up to
//! there. A fork goes on from a copy of the states, with another token. The weights are drawn, so the text is nonsense; a real model differs in where they come from.

use std::error::Error;
use std::time::Instant;

use trefoil::graph::ops::{
    Activation, Attention, AttentionBlock, AttentionLayout, AttentionOperands, FeedForward, LayerNorm, Linear, Pairs,
    Past, Placement, Projections, TransformerLayer, Turns,
};
use trefoil::graph::{Dim, ElementType, Executable, Extents, Graph, GraphError, Model, Options, Symbol, Tensor};
use trefoil::{DeviceOptions, devices};

const LAYERS: usize = 2;
const HEADS: usize = 4;
const KEY_HEADS: usize = 2;
const ELEMENTS: usize = 16;
const WIDTH: usize = HEADS * ELEMENTS;
const VOCABULARY: usize = 64;
/// Tokens of a text at most, and of a prompt.
const CAPACITY: usize = 256;
const PROMPT: usize = 16;

/// A graph whose params are drawn as they are named.
struct Builder {
    g: Graph,
    model: Model,
}

impl Builder {
    fn param(&mut self, name: &str, shape: [usize; 2]) -> Result<Tensor, Box<dyn Error>> {
        let mut state = name.bytes().fold(7u32, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 3.0 / (shape[1] as f32).sqrt()
        };
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| next()).collect();
        self.model.set(name, &shape, &values[..])?;
        Ok(self.g.param(name, ElementType::F32, shape)?)
    }

    fn linear(&mut self, name: String, to: usize, from: usize) -> Result<Linear, Box<dyn Error>> {
        Ok(Linear { weight: self.param(&name, [to, from])?, bias: None })
    }

    fn state(&mut self, name: String) -> Result<Tensor, GraphError> {
        self.g.state(&name, ElementType::F32, [1, CAPACITY, KEY_HEADS, ELEMENTS])
    }

    /// `count` tokens, of which the first is at `position`; gives the token that follows the last.
    fn decoder(&mut self, position: &Dim, count: &Dim) -> Result<(), Box<dyn Error>> {
        let ids = self.g.input("ids", ElementType::U32, vec![1.into(), count.clone()])?;
        let words = self.param("words", [VOCABULARY, WIDTH])?;
        let mut x = self.g.embedding(words, ids)?;
        let (cosines, sines) = self.g.rope_tables(CAPACITY + PROMPT, ELEMENTS, 10_000.0, ElementType::F32)?;
        let cosines = self.g.narrow(cosines, 0, position.clone(), count.clone())?;
        let sines = self.g.narrow(sines, 0, position.clone(), count.clone())?;
        let norm = LayerNorm { rms: true, epsilon: 1e-5, gamma: None, beta: None };
        for layer in 0..LAYERS {
            let name = |part: &str| format!("{layer}.{part}");
            let all_heads = (HEADS + 2 * KEY_HEADS) * ELEMENTS;
            let attention = AttentionBlock {
                heads: HEADS,
                key_heads: KEY_HEADS,
                elements: ELEMENTS,
                attention: Attention { causal: true, ..Attention::new(AttentionLayout::Bshd, 0.25) },
                operands: AttentionOperands::default(),
                projections: Projections::Packed(self.linear(name("qkv"), all_heads, WIDTH)?),
                head_norms: None,
                turns: Some(Turns {
                    tables: (cosines, sines),
                    positions: None,
                    pairs: Pairs::Halves,
                    turned: ELEMENTS,
                }),
                past: Some(Past::States {
                    keys: self.state(name("keys"))?,
                    values: self.state(name("values"))?,
                    position: position.clone(),
                }),
                output: self.linear(name("output"), WIDTH, WIDTH)?,
            };
            let up = self.linear(name("up"), 2 * WIDTH, WIDTH)?;
            let down = self.linear(name("down"), WIDTH, 2 * WIDTH)?;
            let layer = TransformerLayer {
                placement: Placement::Before,
                attention,
                attention_norm: norm,
                feed_forward: FeedForward::Plain { up, activation: Activation::Gelu, down },
                feed_forward_norm: norm,
            };
            x = self.g.transformer_layer(x, &layer)?.y;
        }
        let last = self.g.narrow(x, 1, count.clone() - 1, 1)?;
        let head = self.param("head", [VOCABULARY, WIDTH])?;
        let logits = self.g.linear(last, head, None, Activation::Identity)?;
        let token = self.g.argmax(logits, &[-1], false)?;
        Ok(self.g.output("token", token)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "auto".to_owned());
    let device = devices::open_by_name(&name, &DeviceOptions::default())?;
    let position = Symbol::new("position", 0, CAPACITY as i64)?;
    let count = Symbol::new("count", 1, PROMPT as i64)?;
    let mut builder = Builder { g: Graph::new(), model: Model::new() };
    builder.decoder(&Dim::from(&position), &Dim::from(&count))?;
    let decoder = Executable::compile(&builder.g, &builder.model, &device, &Options::default())?;
    let written = |text: &mut Vec<u32>, decoder: &Executable, from: usize| -> Result<(), Box<dyn Error>> {
        let extents = Extents::with([(&position, from as i64), (&count, (text.len() - from) as i64)])?;
        text.push(decoder.run(&[("ids", text[from..].into())], &extents)?.get::<u32>("token")?[0]);
        Ok(())
    };

    let mut text = vec![3, 14, 15, 9, 26, 5];
    written(&mut text, &decoder, 0)?;
    let (start, first) = (Instant::now(), text.len());
    while text.len() < 48 {
        let from = text.len() - 1;
        written(&mut text, &decoder, from)?;
    }
    let each = start.elapsed() / (text.len() - first) as u32;
    println!("{}: {each:.0?} a token\n{text:?}", device.properties().name);

    // Another text with the same beginning: its keys and values are there already.
    let fork = decoder.fork()?;
    let mut other = text[..40].to_vec();
    other.push((text[40] + 1) % VOCABULARY as u32);
    while other.len() < 48 {
        let from = other.len() - 1;
        written(&mut other, &fork, from)?;
    }
    println!("a fork after 40 tokens: {:?}", &other[40..]);
    Ok(())
}
