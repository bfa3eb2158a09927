//! Attention, against exponentials and sums in `f64`.

use trefoil_example_kernels::attention::{Heads, attention, packed};

use crate::common::{Subject, devices};
use crate::matmul_f16::{halves, has_matrices};

fn check(subject: &Subject, heads: Heads) {
    let about = format!("{heads:?} on {}", subject.name);
    let Heads { count, queries, keys, dimension } = heads;
    let device = &subject.device;
    if !has_matrices(device) {
        return;
    }
    let (q, k) = (halves(count * queries * dimension, 5), halves(count * keys * dimension, 6));
    let v = halves(count * keys * dimension, 7);
    let [q_there, k_there, v_there] = [&q, &k, &v].map(|all| device.buffer(&packed(all)).unwrap());
    let mut out = device.buffer(&vec![f32::NAN; count * queries * dimension]).unwrap();
    device.run_all(attention([&q_there, &k_there, &v_there], &mut out, heads).unwrap()).unwrap();
    let given = out.read().unwrap();
    for head in 0..count {
        for query in 0..queries {
            let q = &q[(head * queries + query) * dimension..][..dimension];
            let row = |all: &'static str, key: usize| {
                let all = if all == "k" { &k } else { &v };
                &all[(head * keys + key) * dimension..][..dimension]
            };
            let scores: Vec<f64> = (0..keys)
                .map(|key| {
                    let dot: f64 = q.iter().zip(row("k", key)).map(|(q, k)| q.to_f64() * k.to_f64()).sum();
                    dot / (dimension as f64).sqrt()
                })
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for d in 0..dimension {
                let expected: f64 =
                    weights.iter().enumerate().map(|(key, weight)| weight * row("v", key)[d].to_f64()).sum::<f64>()
                        / total;
                let given = f64::from(given[(head * queries + query) * dimension + d]);
                // Weights are halves: each is off by a part in 2048 at most, and so is a mean of values below 1.
                assert!((given - expected).abs() <= 2e-3, "{about}: {head}, {query}, {d} is {given}, not {expected}");
            }
        }
    }
}

#[test]
fn heads() {
    for subject in devices() {
        for (count, queries, keys, dimension) in
            [(1, 1, 1, 64), (2, 65, 63, 64), (1, 64, 129, 128), (3, 7, 200, 64), (1, 130, 65, 128)]
        {
            check(&subject, Heads { count, queries, keys, dimension });
        }
        if !subject.device.properties().software && subject.device.kind() != trefoil::DeviceKind::Cpu {
            check(&subject, Heads { count: 12, queries: 512, keys: 512, dimension: 64 });
        }
    }
}
