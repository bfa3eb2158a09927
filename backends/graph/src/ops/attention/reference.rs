//! What attention means, in `f64`, score by score.

use super::{Attend, Queries, Scores};
use crate::op::HostTensor;

/// An element of a tensor by coordinates of its last axes, of which those with one element are repeated.
fn at(tensor: &HostTensor, index: &[usize]) -> f64 {
    let offset = index.len() - tensor.shape.len();
    let axes = tensor.shape.iter().zip(&index[offset..]);
    tensor.values[axes.fold(0, |sum, (extent, index)| sum * extent + if *extent == 1 { 0 } else { *index })]
}

/// The attention of `op`, and its scores if they are asked for.
pub(super) fn attention(op: &Attend, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
    let axes = op.axes();
    let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
    let [bias, lengths, sinks] = [0, 1, 2].map(|which| op.optional(inputs, which));
    let extent = |tensor: &HostTensor, which: usize| tensor.shape[axes[which]];
    let arranged = |index: [usize; 4]| {
        let mut place = [0; 4];
        axes.iter().zip(index).for_each(|(axis, index)| place[*axis] = index);
        place
    };
    let (heads, queries, keys) = (extent(q, 1), extent(q, 2), extent(k, 2));
    let mut results: Vec<HostTensor> = outputs
        .iter()
        .map(|shape| HostTensor { shape: shape.clone(), values: vec![0.0; shape.iter().product()] })
        .collect();
    for b in 0..extent(q, 0) {
        let count = lengths.map_or(keys, |lengths| keys.min(lengths.values[b] as usize));
        let first = match op.attention.queries {
            Queries::Last => count as i64 - queries as i64,
            Queries::From(first) => i64::from(first),
        };
        for h in 0..heads {
            let key_head = h / (heads / extent(k, 1));
            for i in 0..queries {
                let position = i as i64 + first;
                let mut stages = vec![[0.0; 4]; keys];
                for (j, stage) in stages.iter_mut().enumerate() {
                    let product = |e| at(q, &arranged([b, h, i, e])) * at(k, &arranged([b, key_head, j, e]));
                    let sum: f64 = (0..extent(q, 3)).map(product).sum();
                    stage[0] = sum * f64::from(op.attention.scale);
                    stage[1] =
                        op.attention.cap.map_or(stage[0], |cap| f64::from(cap) * (stage[0] / f64::from(cap)).tanh());
                    let hidden = j >= count
                        || op.attention.causal && j as i64 > position
                        || op.attention.left.is_some_and(|left| position - j as i64 > i64::from(left))
                        || op.attention.right.is_some_and(|right| j as i64 - position > i64::from(right));
                    let added = bias.map_or(0.0, |bias| at(bias, &[b, h, i, j]));
                    stage[2] = if hidden || added == f64::NEG_INFINITY { f64::NEG_INFINITY } else { stage[1] + added };
                }
                let sink = sinks.map_or(f64::NEG_INFINITY, |sinks| sinks.values[h]);
                let most = stages.iter().map(|stage| stage[2]).fold(f64::NEG_INFINITY, f64::max);
                if most > f64::NEG_INFINITY {
                    let largest = most.max(sink);
                    let total: f64 = stages.iter().map(|stage| (stage[2] - largest).exp()).sum();
                    let total = total + (sink - largest).exp();
                    for stage in &mut stages {
                        stage[3] = (stage[2] - largest).exp() / total;
                    }
                    for e in 0..extent(v, 3) {
                        let of = |j: usize| match stages[j][3] {
                            0.0 => 0.0,
                            weight => weight * at(v, &arranged([b, key_head, j, e])),
                        };
                        let place = arranged([b, h, i, e]);
                        let linear = outputs[0].iter().zip(place).fold(0, |sum, (extent, index)| sum * extent + index);
                        results[0].values[linear] = (0..keys).map(of).sum();
                    }
                }
                let told = match op.scores {
                    Scores::Nothing => continue,
                    Scores::Products => 0,
                    Scores::Capped => 1,
                    Scores::Biased => 2,
                    Scores::Weights => 3,
                };
                for (j, stage) in stages.iter().enumerate() {
                    results[1].values[((b * heads + h) * queries + i) * keys + j] = stage[told];
                }
            }
        }
    }
    results
}
