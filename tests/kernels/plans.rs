//! Kernels whose launches plans make, several for a result, in the checker: a graph of each of their ops, by every candidate, also by those that on a processor would give way to functions of the host.
//!
//! What they compute is held to references here too; `backends/graph/tests` does so on every device, with more extents.

use std::collections::{BTreeMap, BTreeSet};

use trefoil::graph::explain::Decision;
use trefoil::graph::ops::attention::{Attention, AttentionLayout, AttentionOperands};
use trefoil::graph::ops::matmul::MatMul;
use trefoil::graph::ops::pull::convolution::Slide;
use trefoil::graph::ops::scan::{Operator, Sweep};
use trefoil::graph::ops::scatter::Update;
use trefoil::graph::ops::sort::{Best, Order};
use trefoil::graph::{Dim, ElementType, Error, Executable, Extents, Graph, Model, Options, Tensor};
use trefoil::kernels::activation::Activation;

use crate::graphs::cases::{Case, shape};
use crate::graphs::{Values, compare, tolerance};
use crate::stand::Stand;

use ElementType::{BF16, F16, F32, F64, I8, I32, I64, U8, U32, U64};

/// All that there are.
const ACTIVATIONS: [Activation; 6] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu, Activation::Tanh, Activation::Sigmoid];

/// The ways of ops that have several, each with the name of its op: an op with one way goes it unforced too.
fn ways(graph: &Graph) -> Vec<(&'static str, &'static str)> {
    let mut of_ops: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for node in graph.nodes() {
        of_ops.entry(node.op.name()).or_default().extend(node.op.kind().ways());
    }
    let several = of_ops.into_iter().filter(|(_, ways)| ways.len() > 1);
    several.flat_map(|(op, ways)| ways.into_iter().map(move |way| (op, way))).collect()
}

/// Whether every node of an op was given this way without being forced to it, so that forcing it makes the same executable.
fn is_planned(graph: &Graph, decisions: &[Decision], op: &str, way: &str) -> bool {
    graph.nodes().iter().filter(|node| node.op.name() == op).all(|node| {
        let mut own = decisions.iter().filter(|decision| decision.node == node.name).peekable();
        own.peek().is_some() && own.all(|decision| decision.candidate == way)
    })
}

/// Runs a graph as it is planned, and once more by each other way in which one of its ops can be done.
fn in_every_way(stand: &Stand, case: &Case, about: &str, tolerance: f64) {
    let inputs: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
    // It gives what was decided; nothing where an op cannot be done so.
    let run = |force: Option<(&str, &str)>| -> Vec<Decision> {
        let place = format!("{about}, {force:?}");
        let force = force.into_iter().map(|(op, way)| (op.to_owned(), way.to_owned())).collect();
        let options = Options { force, ..Options::default() };
        let executable = match Executable::compile(&case.graph, &Model::new(), &stand.device, &options) {
            Err(Error::NoCandidate { .. }) => return Vec::new(),
            compiled => compiled.unwrap_or_else(|error| panic!("{place}: {error}")),
        };
        compare(&case.graph, &executable, &inputs, &Extents::new(), tolerance);
        let explained = executable.explain();
        stand.ran_by_name(explained.steps.iter().map(|step| step.kernel.as_str()), &place);
        explained.decisions
    };
    let planned = run(None);
    for (op, way) in ways(&case.graph) {
        if !is_planned(&case.graph, &planned, op, way) {
            run(Some((op, way)));
        }
    }
}

/// Attention by what its op alone launches: by matrices, and of `f64`.
pub fn attention(stand: &Stand) {
    for (element, [queries, keys, elements]) in [(F64, [5, 9, 8]), (F16, [33, 40, 16])] {
        let mut case = Case::default();
        let q = case.input("q", element, &[1, 2, queries, elements]);
        let k = case.input("k", element, &[1, 1, keys, elements]);
        let v = case.input("v", element, &[1, 1, keys, elements]);
        let op = Attention { causal: true, ..Attention::new(AttentionLayout::Bhsd, 0.3) };
        let y = case.graph.attention(q, k, v, AttentionOperands::default(), op).unwrap();
        case.output("y", y);
        in_every_way(stand, &case, &format!("attention of {element}"), off(element));
    }
}

/// Scans of every type.
pub fn scans(stand: &Stand) {
    let takes = |element: &ElementType| Operator::Sum.takes().any(|taken| taken == *element);
    scans_of(stand, ElementType::ALL.into_iter().filter(takes));
}

/// Every scan of some types, each in one of its four forms along each axis.
pub fn scans_of(stand: &Stand, elements: impl IntoIterator<Item = ElementType>) {
    for element in elements {
        // The last is cut in pieces, and the one before has no quad.
        for extents in [&[3, 5, 4][..], &[2, 300], &[300, 2], &[3], &[2050, 3]] {
            let mut case = Case::default();
            let x = case.input("x", element, extents);
            for (number, operator) in Operator::ALL.iter().copied().enumerate() {
                // References know 53 bits of a product.
                if operator == Operator::Prod && matches!(element, I64 | U64) {
                    continue;
                }
                for axis in 0..extents.len() {
                    let (along, way) = (axis.cast_signed(), number + axis);
                    let sweep = Sweep { exclusive: way & 1 != 0, reverse: way & 2 != 0 };
                    let y = match operator {
                        Operator::Sum => case.graph.cumsum(x, along, sweep),
                        Operator::Prod => case.graph.cumprod(x, along, sweep),
                        Operator::Max => case.graph.cummax(x, along, sweep),
                        Operator::Min => case.graph.cummin(x, along, sweep),
                    };
                    case.output(&format!("{operator:?} along {axis}"), y.unwrap());
                }
            }
            in_every_way(stand, &case, &format!("scans of {element}{extents:?}"), 100.0 * tolerance(element));
        }
    }
}

/// Values, places and the best along an axis.
fn sorted(case: &mut Case, x: Tensor, axis: usize, descending: bool, k: usize) {
    let along = axis.cast_signed();
    let (up, down) = (Order::Ascending, Order::Descending);
    let [order, other] = if descending { [down, up] } else { [up, down] };
    let values = case.graph.sort(x, along, order).unwrap();
    case.output(&format!("values along {axis}"), values);
    let places = case.graph.argsort(x, along, other).unwrap();
    case.output(&format!("places along {axis}"), places);
    let best = Best { largest: descending, sorted: k % 2 == 1 };
    let (values, places) = case.graph.top_k(x, k, along, best).unwrap();
    case.output(&format!("best {k} along {axis}"), values);
    case.output(&format!("their places along {axis}"), places);
}

/// Sorts, of rows that a workgroup holds and of longer ones.
pub fn sorts(stand: &Stand) {
    for element in ElementType::ALL {
        let mut case = Case::default();
        let x = case.input("x", element, &[3, 7, 5]);
        for axis in 0..3 {
            sorted(&mut case, x, axis, axis % 2 == 0, 2 + axis);
        }
        in_every_way(stand, &case, &format!("sorts of {element}"), 0.0);
    }
    for (element, extents, best) in
        [(U8, [2, 700], 40), (F16, [2, 700], 40), (F32, [2, 700], 40), (F32, [1, 2501], 300)]
    {
        let mut case = Case::default();
        let x = case.input("x", element, &extents);
        sorted(&mut case, x, 1, true, best);
        in_every_way(stand, &case, &format!("sorts of {element}{extents:?}"), 0.0);
    }
}

/// Scatters of every type in every form, and of many updates.
pub fn scatters(stand: &Stand) {
    for (turn, element) in ElementType::ALL.into_iter().enumerate() {
        for (other, update) in Update::ALL.into_iter().enumerate().filter(|(_, update)| update.takes(element)) {
            let of_index = [I32, U8, U32, I64, U64, I8][(turn + other) % 6];
            let mut case = Case::default();
            let x = case.input("x", element, &[5, 7, 4]);
            let (rows, updates) =
                (case.input("rows", of_index, &[3, 6]), case.input("updates", element, &[5, 3, 6, 4]));
            let y = case.graph.scatter(x, rows, updates, 1, update).unwrap();
            case.output("by rows", y);
            let (places, updates) = (case.input("i", of_index, &[4, 9, 3]), case.input("u", element, &[4, 9, 3]));
            let y = case.graph.scatter_elements(x, places, updates, 1, update).unwrap();
            case.output("by elements", y);
            in_every_way(stand, &case, &format!("{update:?} of {element}"), 8.0 * tolerance(element));
        }
    }
    for update in Update::ALL {
        let mut case = Case::default();
        let x = case.input("x", F32, &[40, 3]);
        let places = (0..700).map(|i| i * i % 41 - i % 2).collect();
        let places = case.given("places", Values::I32(places), &[700]);
        let updates = case.input("updates", F32, &[700, 3]);
        let y = case.graph.scatter(x, places, updates, 0, update).unwrap();
        case.output("of many", y);
        in_every_way(stand, &case, &format!("{update:?} of many"), 1e-3);
    }
}

/// How far products may be off, of some hundred numbers below 1.5.
fn off(out: ElementType) -> f64 {
    if out == F32 { 2e-4 } else { 2.0 * tolerance(out) }
}

/// Products of matrices.
pub fn products(stand: &Stand) {
    let types = [
        [F32, F32, F32],
        [F16, F16, F16],
        [F16, F16, F32],
        [BF16, BF16, BF16],
        [BF16, BF16, F32],
        [F32, F16, F32],
        [F32, BF16, F32],
        [F64, F64, F64],
        [I32, I32, I32],
        [U32, U32, U32],
        [I64, I64, I64],
        [U64, U64, U64],
        [I8, I8, I32],
        [I8, U8, I32],
        [U8, I8, I32],
        [U8, U8, I32],
    ];
    // Batch, M, N, K. Kernels with tiles do all of a tile, of what there is none too: one product that has several of them.
    let rows = [[1, 3, 8, 72], [2, 5, 0, 3], [1, 40, 1, 24], [1, 1, 136, 40], [1, 33, 40, 24]];
    for [a, b, out] in types {
        let rows = if out == F32 { &rows[..] } else { &rows[..3] };
        for (index, [batch, m, n, k]) in rows.iter().copied().enumerate() {
            let activation = if out.is_float() && out != F64 { ACTIVATIONS[index % 6] } else { Activation::Identity };
            let mut case = Case::default();
            let x = case.input("a", a, &[batch, m, k]);
            let y = if index % 2 == 0 {
                case.input("b", b, &[batch, k, n])
            } else {
                let y = case.input("b", b, &[batch, n, k]);
                case.graph.transpose(y, &[0, 2, 1]).unwrap()
            };
            let bias = (index % 2 == 0).then(|| case.input("bias", out, &[n]));
            let op = MatMul { bias: bias.is_some(), activation, out };
            let operands: Vec<_> = [Some(x), Some(y), bias].into_iter().flatten().collect();
            let c = case.graph.add_one(op, &operands).unwrap();
            case.output("c", c);
            in_every_way(stand, &case, &format!("{a} {b} {out}, {:?}", rows[index]), off(out));
        }
    }
}

/// Products of rows with a matrix for each group.
pub fn grouped(stand: &Stand) {
    for [a, b] in [[F32, F32], [F16, F16], [BF16, BF16], [F32, F16], [F32, BF16], [F64, F64]] {
        for [rows, k, n, groups] in [[17, 8, 12, 40], [67, 20, 68, 3], [3, 0, 4, 2]] {
            let mut case = Case::default();
            let x = case.input("x", a, &[rows, k]);
            let weights = case.input("weights", b, &[groups, k, n]);
            let ids = (0..rows).map(|at| if at % 11 == 3 { groups } else { at * at * 5 % groups } as u32).collect();
            let ids = case.given("ids", Values::U32(ids), &[rows]);
            let y = case.graph.grouped_matmul(x, weights, ids).unwrap();
            case.output("y", y);
            in_every_way(stand, &case, &format!("{a} {b}, {rows} rows, {groups} groups"), off(a));
        }
    }
}

/// Convolutions of two and three axes, in groups and not.
pub fn convolutions(stand: &Stand) {
    let slide = |stride: i64, dilation: i64, padding: i64| Slide {
        stride: Dim::from(stride),
        dilation: Dim::from(dilation),
        padding: [padding; 2].map(Dim::from),
        output_padding: Dim::from(0),
    };
    type Shape<'a> = (&'a [usize], &'a [usize], &'a [Slide], i64);
    let shapes: [Shape<'_>; 4] = [
        (&[2, 3, 13], &[5, 3, 4], &[slide(3, 2, 1)], 1),
        (&[1, 8, 9, 11], &[12, 8, 3, 3], &[slide(1, 1, 1), slide(2, 1, 0)], 1),
        (&[2, 6, 5, 6], &[4, 3, 2, 3], &[slide(1, 2, 0), slide(1, 1, 2)], 2),
        (&[1, 70, 6, 6], &[130, 70, 1, 1], &[slide(1, 1, 0), slide(1, 1, 0)], 1),
    ];
    for element in [F32, F16, BF16, F64] {
        for (x, weight, slides, groups) in shapes {
            let mut case = Case::default();
            let (input, kernel) = (case.input("x", element, x), case.input("weight", element, weight));
            let bias = case.input("bias", element, &weight[..1]);
            let y = case.graph.conv(input, kernel, Some(bias), slides, groups, Activation::Relu).unwrap();
            case.output("y", y);
            in_every_way(stand, &case, &format!("convolution of {element}{x:?} with {weight:?}"), 8.0 * off(element));
        }
    }
}

/// Random numbers of every type and distribution.
pub fn random(stand: &Stand) {
    for extent in [1usize, 5, 1030] {
        let mut case = Case { graph: Graph::new(), inputs: vec![("seed".to_owned(), Values::U32(vec![8, 0]))] };
        for element in [U32, U64] {
            let bits = case.graph.random_bits(shape(&[extent]), element).unwrap();
            case.output(&format!("bits {element}"), bits);
        }
        for element in [F32, F16, BF16, F64] {
            let uniform = case.graph.uniform(shape(&[extent]), -0.3, 1.7, element).unwrap();
            case.output(&format!("uniform {element}"), uniform);
            let normal = case.graph.normal(shape(&[extent]), 0.5, 2.0, element).unwrap();
            case.output(&format!("normal {element}"), normal);
        }
        let bools = case.graph.bernoulli(shape(&[extent]), 0.3).unwrap();
        case.output("bernoulli", bools);
        in_every_way(stand, &case, &format!("{extent} random numbers"), 8e-3);
    }
}
