//! Chains of elementwise ops, which one kernel computes: the longer one has no more bytes to move.

use crate::cases::{Case, ELEMENT};
use crate::measure::Scale;

/// How many ops a chain has, and which of them, counted from the first, are functions: the rest are sums, differences and products.
const CHAINS: [(usize, &[(usize, &str)]); 4] = [
    (1, &[]),
    (5, &[(4, "exp")]),
    (30, &[(4, "exp"), (14, "exp"), (24, "exp")]),
    (30, &[(4, "exp"), (14, "tanh"), (24, "erf")]),
];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let count: i64 = match scale {
        Scale::Gpu => 64 << 20,
        Scale::Cpu => 16 << 20,
        Scale::Software => 1 << 20,
    };
    let case = |(length, functions): (usize, &'static [(usize, &'static str)])| {
        let named: Vec<_> = functions.iter().map(|(_, function)| *function).collect();
        Case {
            name: format!("chain of {length} ops {} Mi {}", count >> 20, named.join(", ")),
            inputs: vec![("x", vec![count])],
            build: Box::new(move |g, inputs| {
                let mut y = inputs[0];
                for op in 0..length {
                    let constant = g.scalar(0.5 + op as f64 / 32.0, ELEMENT)?;
                    let function = functions.iter().find(|(at, _)| *at == op).map(|(_, function)| *function);
                    y = match (function, op % 3) {
                        (Some("exp"), _) => g.exp(y)?,
                        (Some("tanh"), _) => g.tanh(y)?,
                        (Some(_), _) => g.erf(y)?,
                        (None, 0) => g.mul(y, constant)?,
                        (None, 1) => g.sub(y, constant)?,
                        (None, _) => g.add(y, inputs[0])?,
                    };
                }
                g.output("result", y)
            }),
            bytes: 8 * count.unsigned_abs(),
            flops: None,
        }
    };
    CHAINS.into_iter().map(case).collect()
}
