//! `Eager` has every method of `Graph` that adds an op, and gives what the graph gives.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::shape as dims;
use common::{Values, devices, is_close};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::attention::*;
use trefoil_graph::ops::norm::{BatchMoments, NormOperands, Normed};
use trefoil_graph::ops::scatter::Update;
use trefoil_graph::ops::{Adapters, Best, Contraction, Order, Pooling, Sweep, Window};
use trefoil_graph::{Eager, EagerTensor, ElementType, Executable, Extents, Graph, GraphError, Model, Options, Tensor};
use trefoil_kernels::activation::Activation;

use ElementType::F32;

/// What a method gives, as a list.
trait Listed<T> {
    fn listed(self) -> Vec<T>;
}

macro_rules! listed {
    ($($tensor:ty),*) => {$(
        impl Listed<$tensor> for $tensor {
            fn listed(self) -> Vec<$tensor> {
                vec![self]
            }
        }

        impl Listed<$tensor> for ($tensor, $tensor) {
            fn listed(self) -> Vec<$tensor> {
                vec![self.0, self.1]
            }
        }

        impl Listed<$tensor> for Vec<$tensor> {
            fn listed(self) -> Vec<$tensor> {
                self
            }
        }

        impl Listed<$tensor> for Normed<$tensor> {
            fn listed(self) -> Vec<$tensor> {
                vec![self.y, self.mean, self.inverse_deviation]
            }
        }

        impl Listed<$tensor> for Attended<$tensor> {
            fn listed(self) -> Vec<$tensor> {
                vec![self.y, self.keys, self.values]
            }
        }
    )*};
}

listed!(Tensor, EagerTensor);

/// Graph and eager results of one method, bit for bit where the same kernels ran.
fn alike(
    about: &str,
    device: &Device,
    inputs: &[(&'static str, Values, Vec<usize>)],
    of_graph: impl Fn(&mut Graph, &[Tensor]) -> Result<Vec<Tensor>, GraphError>,
    of_eager: impl Fn(&Eager, &[EagerTensor]) -> trefoil_graph::Result<Vec<EagerTensor>>,
) {
    let place = format!("{about} on {}", device.properties().name);
    let mut graph = Graph::new();
    let leaves: Vec<_> = inputs
        .iter()
        .map(|(name, values, extents)| graph.input(name, values.element(), dims(extents)).unwrap())
        .collect();
    let outputs = of_graph(&mut graph, &leaves).unwrap_or_else(|error| panic!("{place}: {error}"));
    for (index, output) in outputs.iter().enumerate() {
        graph.output(&index.to_string(), *output).unwrap();
    }
    let executable = Executable::compile(&graph, &Model::new(), device, &Options::default())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let data: Vec<_> = inputs.iter().map(|(name, values, _)| (*name, values.data())).collect();
    let wanted = executable.run(&data, &Extents::new()).unwrap();

    let eager = Eager::new(device);
    let operands: Vec<_> =
        inputs.iter().map(|(_, values, extents)| eager.tensor(extents, values.data()).unwrap()).collect();
    let made = of_eager(&eager, &operands).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(made.len(), outputs.len(), "{place}");
    for (index, (tensor, output)) in made.iter().zip(&outputs).enumerate() {
        assert_eq!(tensor.ty(), graph.type_of(*output).unwrap(), "{place}, output {index}");
        let (got, wanted) = (tensor.host().unwrap(), wanted.host(&index.to_string()).unwrap());
        assert_eq!(got.shape, wanted.shape, "{place}, output {index}");
        for (got, wanted) in got.values.iter().zip(&wanted.values) {
            assert!(is_close(*got, *wanted, 1e-5), "{place}, output {index}: {got}, not {wanted}");
        }
    }
}

/// Runs a method, written once, of a graph and of an `Eager`.
macro_rules! cases {
    ($device:expr; $($about:literal [$($input:ident: $element:ident $extents:expr),*] |$g:ident| $body:expr;)*) => {
        $({
            let inputs = vec![$({
                let extents: Vec<usize> = Vec::from($extents);
                let count = extents.iter().product();
                let seed = stringify!($input).len() as u32 + 2;
                (stringify!($input), Values::of(ElementType::$element, count, seed, 1.5), extents)
            }),*];
            alike(
                $about,
                $device,
                &inputs,
                |$g, inputs| {
                    let [$($input),*] = *inputs else { panic!("other inputs") };
                    Ok(Listed::listed($body?))
                },
                |$g, inputs| {
                    let [$($input),*] = inputs else { panic!("other inputs") };
                    Ok(Listed::listed($body?))
                },
            );
        })*
    };
}

#[test]
fn methods_give_what_graphs_give() {
    for device in &devices() {
        cases! { device;
            "add" [x: F32 [3, 5], y: F32 [5]] |g| g.add(x, y);
            "a function with an attribute" [x: F32 [7]] |g| g.leaky_relu(x, 0.3);
            "a comparison" [x: F32 [2, 3], other: F32 [2, 3]] |g| g.lt(x, other);
            "where" [condition: Bool [4], x: I32 [4], other: I32 [4]] |g| g.where_(condition, x, other);
            "cast" [x: F32 [5]] |g| g.cast(x, ElementType::I32);
            "fill" [] |g| g.fill(2.5, F32, dims(&[2, 3]));
            "scalar" [] |g| g.scalar(7, ElementType::U8);
            "arange" [] |g| g.arange(0.5, 0.25, 9i64, F32);
            "swap_axes" [x: F32 [2, 3, 4]] |g| g.swap_axes(x, 0, -1);
            "flatten" [x: F32 [2, 3, 4]] |g| g.flatten(x, 0, -2);
            "sum" [x: F32 [3, 257]] |g| g.sum(x, &[-1], true);
            "cumsum" [x: F32 [2, 70]] |g| g.cumsum(x, 1, Sweep { exclusive: false, reverse: true });
            "concat" [x: F32 [2, 3], other: F32 [2, 4]] |g| g.concat(&[x, other, x], -1);
            "tile" [x: F32 [2, 3]] |g| g.tile(x, &dims(&[2, 2]));
            "one_hot" [x: U32 [4]] |g| g.one_hot(x, 5i64, [0.into(), 1.into()], F32, -1);
            "gather" [x: F32 [5, 3], indices: U32 [4]] |g| g.gather(x, indices, 0);
            "scatter" [x: F32 [5, 3], indices: U32 [4], updates: F32 [4, 3]] |g| g.scatter(x, indices, updates, 0, Update::Add);
            "sort" [x: F32 [3, 65]] |g| g.sort(x, -1, Order::Descending);
            "top_k" [x: F32 [3, 65]] |g| g.top_k(x, 4, -1, Best::default());
            "pool" [x: F32 [1, 2, 6, 6]] |g| g.pool(x, Pooling::Max, &[Window::new(2i64), Window::new(2i64)]);
            "matmul" [a: F32 [3, 7], b: F32 [7, 5]] |g| g.matmul(a, b);
            "matmul of a row" [a: F32 [7], b: F32 [7, 5]] |g| g.matmul(a, b);
            "linear" [x: F32 [4, 8], weight: F32 [6, 8], bias: F32 [6]] |g| g.linear(x, weight, Some(bias), Activation::Gelu);
            "linear_split" [x: F32 [4, 8], weight: F32 [12, 8]] |g| g.linear_split(x, weight, None, &[4, 6, 2]);
            "dot_general" [a: F32 [3, 5, 2], b: F32 [5, 7, 2]] |g| {
                g.dot_general(a, b, &Contraction { contracted: vec![(1, 0)], batch: vec![(-1, -1)] })
            };
            "lora_matmul" [x: F32 [3, 8], weight: F32 [4, 8], down: F32 [2, 8, 2], up_up: F32 [2, 2, 4], ids: U32 [3]] |g| {
                g.lora_matmul(x, weight, Adapters { down, up: up_up, scale: 0.5 }, ids)
            };
            "softmax" [x: F32 [3, 9]] |g| g.softmax(x, -1);
            "layer_norm" [x: F32 [3, 8], gamma: F32 [8], residual: F32 [3, 8]] |g| {
                let operands = NormOperands { residual: Some(residual), gamma: Some(gamma), ..Default::default() };
                g.layer_norm(x, &[-1], 1e-5, operands)
            };
            "layer_norm_and_moments" [x: F32 [3, 8]] |g| g.layer_norm_and_moments(x, &[-1], 1e-5, Default::default());
            "rms_norm_and_sum" [x: F32 [3, 8], residual: F32 [3, 8]] |g| {
                g.rms_norm_and_sum(x, &[-1], 1e-6, NormOperands { residual: Some(residual), ..Default::default() })
            };
            "batch_norm" [x: F32 [2, 3, 4], mean: F32 [3], gamma: F32 [3]] |g| {
                g.batch_norm(x, BatchMoments { mean, variance: mean }, 2.0, Some(gamma), None)
            };
            "rope_tables" [] |g| g.rope_tables(5, 8, 1e4, F32);
            "attention" [q: F32 [1, 2, 3, 8], kk: F32 [1, 2, 5, 8], vvv: F32 [1, 2, 5, 8], mask: Bool [1, 1, 3, 5]] |g| {
                let operands = AttentionOperands { mask: Some(mask), ..Default::default() };
                g.attention(q, kk, vvv, operands, Attention::new(AttentionLayout::Bhsd, 0.35))
            };
            "transformer_layer" [
                x: F32 [1, 3, 8], qkv: F32 [16, 8], out: F32 [8, 8], up: F32 [12, 8], down: F32 [8, 12], gamma: F32 [8]
            ] |g| {
                let norm = LayerNorm { rms: true, epsilon: 1e-3, gamma: Some(gamma), beta: None };
                let linear = |weight| Linear { weight, bias: None };
                let attention = AttentionBlock {
                    heads: 2,
                    key_heads: 1,
                    elements: 4,
                    attention: Attention { causal: true, ..Attention::new(AttentionLayout::Bshd, 0.5) },
                    operands: AttentionOperands::default(),
                    projections: Projections::Packed(linear(qkv)),
                    head_norms: None,
                    turns: None,
                    past: None,
                    output: linear(out),
                };
                let network = FeedForward::Plain { up: linear(up), activation: Activation::Relu, down: linear(down) };
                g.transformer_layer(x, &TransformerLayer {
                    placement: Placement::Before,
                    attention,
                    attention_norm: norm,
                    feed_forward: network,
                    feed_forward_norm: norm,
                })
            };
            "reshape" [x: F32 [4, 6]] |g| g.reshape(x, dims(&[8, 3]));
            "transpose" [x: F32 [4, 6]] |g| g.transpose(x, &[1, 0]);
            "expand" [x: F32 [4, 1]] |g| g.expand(x, dims(&[2, 4, 3]));
            "narrow" [x: F32 [4, 6]] |g| g.narrow(x, 1, 3i64, 2i64);
            "bitcast" [x: F32 [3]] |g| g.bitcast(x, ElementType::U32);
            "nothing" [x: F32 [0, 3]] |g| g.exp(x);
            "the sum of nothing" [x: F32 [0, 3]] |g| g.sum(x, &[0], false);
        }
    }
}

/// The source files under a folder.
fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

#[test]
fn every_method_that_adds_an_op_is_derived() {
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops"), &mut files);
    let mut blocks = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim_start() == "impl Graph {") {
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let body = lines[at..].iter().take_while(|line| **line != end);
            if body.into_iter().any(|line| line.trim_start().starts_with("pub fn ")) {
                let marked = at > 0 && lines[at - 1].trim() == "#[trefoil_graph_macros::eager]";
                // States live in executables from run to run, and a call of `Eager` is over once it is done.
                let of_states = file.ends_with("state.rs");
                // The macro says itself what it derives; functions with tables of their own say it too.
                assert!(
                    marked || of_states || text.contains("impl Eager {"),
                    "{}: `Eager` lacks these methods",
                    file.display()
                );
                blocks += 1;
            }
        }
    }
    assert!(blocks > 30, "{blocks} blocks of methods were found");
}
