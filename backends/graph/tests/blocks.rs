//! Attention blocks and transformer layers against plain loops in `f64`, which share nothing with the ops that they are made of.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::Case;
use common::{Values, devices};
use trefoil_graph::ops::{
    Attention, AttentionBlock, AttentionLayout, AttentionOperands, FeedForward, HeadNorms, LayerNorm, Linear, Pairs,
    Past, Placement, Projections, TransformerLayer, Turns,
};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, GraphError, Model, Options, Tensor};
use trefoil_kernels::activation::Activation;

use ElementType::F32;

/// Rows of numbers.
type Matrix = Vec<Vec<f64>>;

/// Which parts a layer has.
#[derive(Clone, Copy, Debug)]
struct Plan {
    batch: usize,
    positions: usize,
    width: usize,
    heads: usize,
    key_heads: usize,
    elements: usize,
    inner: usize,
    /// Earlier positions.
    past: usize,
    /// Whether these are in states, with room for two positions more than there are.
    resident: bool,
    /// Positions of another sequence, of which keys and values are made; 0 for none.
    others: usize,
    packed: bool,
    biases: bool,
    head_norms: bool,
    /// Elements that are turned.
    turned: usize,
    causal: bool,
    rms: bool,
    affine: bool,
    placement: Placement,
    gated: bool,
    activation: Activation,
}

const PLAIN: Plan = Plan {
    batch: 1,
    positions: 5,
    width: 12,
    heads: 2,
    key_heads: 2,
    elements: 6,
    inner: 20,
    past: 0,
    resident: false,
    others: 0,
    packed: true,
    biases: false,
    head_norms: false,
    turned: 0,
    causal: false,
    rms: false,
    affine: false,
    placement: Placement::After,
    gated: false,
    activation: Activation::Gelu,
};

const EPSILON: f32 = 1e-3;
const SCALE: f32 = 0.4;

/// The graph of a layer with its inputs, and the numbers of each by name.
struct Made {
    case: Case,
    layer: TransformerLayer,
    x: Tensor,
}

fn linear(case: &mut Case, name: &str, n: usize, k: usize, bias: bool) -> Linear {
    let weight = case.input(name, F32, &[n, k]);
    Linear { weight, bias: bias.then(|| case.input(&format!("{name} bias"), F32, &[n])) }
}

fn norm(case: &mut Case, name: &str, plan: &Plan) -> LayerNorm {
    let mut vector = |part: &str| plan.affine.then(|| case.input(&format!("{name} {part}"), F32, &[plan.width]));
    LayerNorm { rms: plan.rms, epsilon: EPSILON, gamma: vector("gamma"), beta: vector("beta") }
}

fn made(plan: &Plan) -> Made {
    let mut case = Case::default();
    let Plan { batch, positions, width, heads, key_heads, elements, inner, biases, .. } = *plan;
    let x = case.input("x", F32, &[batch, positions, width]);
    let (of_heads, of_keys) = (heads * elements, key_heads * elements);
    let projections = if plan.packed {
        Projections::Packed(linear(&mut case, "qkv", of_heads + 2 * of_keys, width, biases))
    } else {
        Projections::Each {
            queries: linear(&mut case, "queries", of_heads, width, biases),
            keys: linear(&mut case, "keys", of_keys, width, biases),
            values: linear(&mut case, "values", of_keys, width, biases),
            from: (plan.others > 0).then(|| case.input("others", F32, &[batch, plan.others, width])),
        }
    };
    let head_norms = plan.head_norms.then(|| HeadNorms {
        queries: case.input("query gamma", F32, &[elements]),
        keys: case.input("key gamma", F32, &[elements]),
        epsilon: EPSILON,
    });
    let turns = (plan.turned > 0).then(|| {
        let table = plan.turned / 2;
        let rows = plan.past + positions;
        let values = |of: fn(f64) -> f64| {
            let angle = |at: usize| (at / table) as f64 * 0.7 / (1 + at % table) as f64;
            Values::F32((0..rows * table).map(|at| of(angle(at)) as f32).collect())
        };
        let tables = (
            case.given("cosines", values(f64::cos), &[rows, table]),
            case.given("sines", values(f64::sin), &[rows, table]),
        );
        let own = (plan.past as u32..rows as u32).collect();
        let given = case.given("positions", Values::U32(own), &[positions]);
        Turns { tables, positions: Some(given), pairs: Pairs::Halves, turned: plan.turned }
    });
    let past = (plan.past > 0).then(|| {
        let given =
            ["past keys", "past values"].map(|name| case.input(name, F32, &[batch, plan.past, key_heads, elements]));
        if !plan.resident {
            return Past::Given(given);
        }
        let room = [batch, plan.past + positions + 2, key_heads, elements].map(Dim::from);
        let mut state = |name| case.graph.state(name, F32, room.clone()).unwrap();
        Past::States { keys: state("keys"), values: state("values"), position: Dim::from(plan.past) }
    });
    let attention = AttentionBlock {
        heads,
        key_heads,
        elements,
        attention: Attention { causal: plan.causal, ..Attention::new(AttentionLayout::Bshd, SCALE) },
        operands: AttentionOperands::default(),
        projections,
        head_norms,
        turns,
        past,
        output: linear(&mut case, "output", width, of_heads, biases),
    };
    let attention_norm = norm(&mut case, "first", plan);
    let feed_forward_norm = norm(&mut case, "second", plan);
    let up = linear(&mut case, "up", inner, width, biases);
    let down = linear(&mut case, "down", width, inner, biases);
    let activation = plan.activation;
    let feed_forward = match plan.gated {
        false => FeedForward::Plain { up, activation, down },
        true => FeedForward::Gated { gate: linear(&mut case, "gate", inner, width, biases), up, activation, down },
    };
    let layer =
        TransformerLayer { placement: plan.placement, attention, attention_norm, feed_forward, feed_forward_norm };
    Made { case, layer, x }
}

/// What a layer gives, computed by loops.
struct Loops<'a> {
    plan: Plan,
    case: &'a Case,
}

impl Loops<'_> {
    fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        self.case.inputs.iter().find(|(own, _)| own == name).map(|(_, values)| values.host().values)
    }

    fn sequence(&self, name: &str, rows: usize) -> Vec<Matrix> {
        let all = self.numbers(name).unwrap();
        all.chunks(rows * self.plan.width)
            .map(|part| part.chunks(self.plan.width).map(<[f64]>::to_vec).collect())
            .collect()
    }

    /// Rows times a part of a weight's rows, plus that part of the bias.
    fn linear(&self, name: &str, rows: &Matrix, first: usize, count: usize) -> Matrix {
        let (weight, bias) = (self.numbers(name).unwrap(), self.numbers(&format!("{name} bias")));
        let of = |row: &Vec<f64>, column: usize| {
            let line = &weight[column * row.len()..(column + 1) * row.len()];
            let sum: f64 = line.iter().zip(row).map(|(w, x)| w * x).sum();
            sum + bias.as_ref().map_or(0.0, |bias| bias[column])
        };
        rows.iter().map(|row| (first..first + count).map(|column| of(row, column)).collect()).collect()
    }

    fn norm(&self, name: &str, rows: &Matrix) -> Matrix {
        let [gamma, beta] = ["gamma", "beta"].map(|part| self.numbers(&format!("{name} {part}")));
        let one = |row: &Vec<f64>| -> Vec<f64> {
            let count = row.len() as f64;
            let mean = if self.plan.rms { 0.0 } else { row.iter().sum::<f64>() / count };
            let squares = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let factor = 1.0 / (squares + f64::from(EPSILON)).sqrt();
            let scaled = row.iter().map(|x| (x - mean) * factor).enumerate();
            scaled
                .map(|(at, x)| x * gamma.as_ref().map_or(1.0, |g| g[at]) + beta.as_ref().map_or(0.0, |b| b[at]))
                .collect()
        };
        rows.iter().map(one).collect()
    }

    /// A head's row with its norm and its turn.
    fn turned(&self, row: &[f64], norm: &str, position: usize) -> Vec<f64> {
        let mut row = row.to_vec();
        if self.plan.head_norms {
            let gamma = self.numbers(norm).unwrap();
            let squares = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let factor = 1.0 / (squares + f64::from(EPSILON)).sqrt();
            row.iter_mut().zip(gamma).for_each(|(x, gamma)| *x *= factor * gamma);
        }
        let half = self.plan.turned / 2;
        let before = row.clone();
        for pair in 0..half {
            let angle = position as f64 * 0.7 / (1 + pair) as f64;
            row[pair] = before[pair] * angle.cos() - before[pair + half] * angle.sin();
            row[pair + half] = before[pair] * angle.sin() + before[pair + half] * angle.cos();
        }
        row
    }

    fn attention(&self, batch: usize, rows: &Matrix) -> Matrix {
        let Plan { heads, key_heads, elements, past, .. } = self.plan;
        let (of_heads, of_keys) = (heads * elements, key_heads * elements);
        let (q, k, v) = if self.plan.packed {
            let part = |first, count| self.linear("qkv", rows, first, count);
            (part(0, of_heads), part(of_heads, of_keys), part(of_heads + of_keys, of_keys))
        } else {
            let from = if self.plan.others > 0 {
                self.sequence("others", self.plan.others).swap_remove(batch)
            } else {
                rows.clone()
            };
            let of = |name, rows: &Matrix, count| self.linear(name, rows, 0, count);
            (of("queries", rows, of_heads), of("keys", &from, of_keys), of("values", &from, of_keys))
        };
        let earlier = |name: &str, at: usize, head: usize| -> Vec<f64> {
            let first = ((batch * past + at) * key_heads + head) * elements;
            self.numbers(name).unwrap()[first..first + elements].to_vec()
        };
        let keys = past + k.len();
        let mut joined: Matrix = Vec::new();
        for (at, row) in q.iter().enumerate() {
            let mut all = Vec::new();
            for head in 0..heads {
                let shared = head / (heads / key_heads);
                let own = |row: &Vec<f64>, head: usize| row[head * elements..(head + 1) * elements].to_vec();
                let query = self.turned(&own(row, head), "query gamma", past + at);
                let key = |other: usize| match other.checked_sub(past) {
                    None => earlier("past keys", other, shared),
                    Some(new) => self.turned(&own(&k[new], shared), "key gamma", other),
                };
                let value = |other: usize| match other.checked_sub(past) {
                    None => earlier("past values", other, shared),
                    Some(new) => own(&v[new], shared),
                };
                let seen = if self.plan.causal { keys - q.len() + at + 1 } else { keys };
                let scores: Vec<f64> = (0..seen)
                    .map(|other| {
                        let sum: f64 = query.iter().zip(key(other)).map(|(q, k)| q * k).sum();
                        (sum * f64::from(SCALE)).exp()
                    })
                    .collect();
                let total: f64 = scores.iter().sum();
                let mut mixed = vec![0.0; elements];
                for (other, score) in scores.iter().enumerate() {
                    mixed.iter_mut().zip(value(other)).for_each(|(sum, v)| *sum += score / total * v);
                }
                all.extend(mixed);
            }
            joined.push(all);
        }
        self.linear("output", &joined, 0, self.plan.width)
    }

    fn feed(&self, rows: &Matrix) -> Matrix {
        let activated = |x: f64| match self.plan.activation {
            Activation::Identity => x,
            Activation::Relu => x.max(0.0),
            // erf by Simpson's rule; beyond 6 it is 1.
            Activation::Gelu => {
                let end = (x / 2f64.sqrt()).clamp(-6.0, 6.0);
                let step = end / 600.0;
                let weight = |at: u32| if at.is_multiple_of(600) { 1.0 } else { 2.0 + 2.0 * f64::from(at % 2) };
                let sum: f64 = (0..=600).map(|at| weight(at) * (-(f64::from(at) * step).powi(2)).exp()).sum();
                0.5 * x * (1.0 + sum * step / 3.0 * 2.0 / std::f64::consts::PI.sqrt())
            }
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        };
        let inner = self.plan.inner;
        let mut up = self.linear("up", rows, 0, inner);
        if self.plan.gated {
            let gate = self.linear("gate", rows, 0, inner);
            for (up, gate) in up.iter_mut().zip(gate) {
                up.iter_mut().zip(gate).for_each(|(x, gate)| *x *= activated(gate));
            }
        } else {
            up.iter_mut().flatten().for_each(|x| *x = activated(*x));
        }
        self.linear("down", &up, 0, self.plan.width)
    }

    fn layer(&self) -> Vec<f64> {
        let sum = |a: &Matrix, b: &Matrix| -> Matrix {
            a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
        };
        let one = |(batch, x): (usize, &Matrix)| match self.plan.placement {
            Placement::Before => {
                let h = sum(x, &self.attention(batch, &self.norm("first", x)));
                sum(&h, &self.feed(&self.norm("second", &h)))
            }
            Placement::After => {
                let h = self.norm("first", &sum(x, &self.attention(batch, x)));
                self.norm("second", &sum(&h, &self.feed(&h)))
            }
            Placement::Parallel => {
                let attended = self.attention(batch, &self.norm("first", x));
                sum(&sum(x, &attended), &self.feed(&self.norm("second", x)))
            }
        };
        let x = self.sequence("x", self.plan.positions);
        x.iter().enumerate().flat_map(one).flatten().collect()
    }
}

/// Earlier keys or values as they lie in a state; behind them stands what must not be read.
fn resident(plan: &Plan, case: &Case, name: &str) -> Vec<f32> {
    let Plan { batch, positions, key_heads, elements, past, .. } = *plan;
    let row = key_heads * elements;
    let values = case.inputs.iter().find(|(own, _)| own == name).map(|(_, values)| values.host().values).unwrap();
    let mut all = Vec::new();
    for sequence in 0..batch {
        all.extend(values[sequence * past * row..(sequence + 1) * past * row].iter().map(|value| *value as f32));
        all.extend(vec![f32::NAN; (positions + 2) * row]);
    }
    all
}

fn check(plan: &Plan) {
    let Made { mut case, layer, x } = made(plan);
    let attended = case.graph.transformer_layer(x, &layer).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    for (name, tensor) in [("y", attended.y), ("keys", attended.keys), ("values", attended.values)] {
        case.output(name, tensor);
    }
    let expected = Loops { plan: *plan, case: &case }.layer();
    for device in devices() {
        let executable = Executable::compile(&case.graph, &Model::new(), &device, &Options::default()).unwrap();
        let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
        for name in ["keys", "values"].into_iter().filter(|_| plan.resident) {
            executable.set_state(name, resident(plan, &case, &format!("past {name}")).as_slice().into()).unwrap();
        }
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        let got = outputs.get::<f32>("y").unwrap();
        assert_eq!(got.len(), expected.len());
        let largest = expected.iter().fold(1.0f64, |most, value| most.max(value.abs()));
        for (index, (got, wanted)) in got.iter().zip(&expected).enumerate() {
            let apart = (f64::from(*got) - wanted).abs();
            let place = format!("{index} on {}", device.properties().name);
            assert!(apart <= 2e-5 * largest, "{plan:?}\n{place}: {got}, not {wanted}");
        }
        let room = if plan.resident { 2 } else { 0 };
        let keys = plan.past + room + if plan.others > 0 { plan.others } else { plan.positions };
        for name in ["keys", "values"] {
            let shape = outputs.host(name).unwrap().shape;
            assert_eq!(shape, [plan.batch, keys, plan.key_heads, plan.elements], "{name}");
        }
    }
}

#[test]
fn layers_of_every_kind() {
    let bert = Plan { batch: 2, biases: true, affine: true, ..PLAIN };
    let llama = Plan {
        heads: 6,
        key_heads: 2,
        elements: 4,
        turned: 4,
        causal: true,
        rms: true,
        placement: Placement::Before,
        gated: true,
        activation: Activation::Silu,
        ..PLAIN
    };
    for plan in [
        bert,
        llama,
        // One position after seven others, and several.
        Plan { past: 7, positions: 1, ..llama },
        Plan { past: 7, positions: 1, resident: true, ..llama },
        Plan { past: 3, positions: 4, batch: 2, resident: true, ..llama },
        Plan { past: 3, positions: 4, batch: 2, head_norms: true, packed: false, ..llama },
        Plan { placement: Placement::Parallel, turned: 2, affine: true, biases: true, ..llama },
        Plan { placement: Placement::Before, packed: false, others: 9, ..bert },
        Plan { positions: 1, width: 1, heads: 1, key_heads: 1, elements: 1, inner: 1, ..PLAIN },
        Plan { positions: 7, width: 13, elements: 5, inner: 11, activation: Activation::Relu, ..bert },
    ] {
        check(&plan);
    }
    for activation in [
        Activation::Identity,
        Activation::Relu,
        Activation::Gelu,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
    ] {
        check(&Plan { gated: true, activation, ..PLAIN });
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Made { mut case, layer, x } = made(&PLAIN);
    let attention = layer.attention;
    let mut message = |x: Tensor, block: AttentionBlock| -> String {
        let refused: Result<_, GraphError> = case.graph.attention_block(x, &block);
        refused.unwrap_err().to_string()
    };
    let turned = Attention::new(AttentionLayout::Bhsd, 1.0);
    let error = message(x, AttentionBlock { attention: turned, ..attention.clone() });
    assert!(error.contains("`layout`") && error.contains("expected Bshd"), "{error}");
    let error = message(x, AttentionBlock { heads: 3, ..attention.clone() });
    assert!(error.contains("`columns`"), "{error}");
    let flat = case.graph.reshape(x, common::cases::shape(&[5, 12])).unwrap();
    let refused = case.graph.attention_block(flat, &attention).unwrap_err().to_string();
    assert!(refused.contains("`x`") && refused.contains("batch, positions and width"), "{refused}");
    let mut other = Graph::new();
    assert!(other.attention_block(x, &attention).is_err());
}
