//! Random numbers, which read nothing, dropout, and codes of narrow types.

use trefoil::graph::graph::GraphError;
use trefoil::graph::ops::{Narrow, Overflow, Rounding};
use trefoil::graph::{Dim, ElementType, Graph, Tensor};

use crate::cases::{Case, ELEMENT};
use crate::measure::Scale;

/// What makes a tensor of so many elements.
type Make = fn(&mut Graph, Vec<Dim>) -> Result<Tensor, GraphError>;

/// Names, bytes of an element, and how they are made.
const MADE: [(&str, u64, Make); 6] = [
    ("bits u32", 4, |g, shape| g.random_bits(shape, ElementType::U32)),
    ("uniform f32", 4, |g, shape| g.uniform(shape, -1.0, 1.0, ElementType::F32)),
    ("uniform f16", 2, |g, shape| g.uniform(shape, -1.0, 1.0, ElementType::F16)),
    ("normal f32", 4, |g, shape| g.normal(shape, 0.0, 1.0, ElementType::F32)),
    ("normal bf16", 2, |g, shape| g.normal(shape, 0.0, 1.0, ElementType::BF16)),
    ("bernoulli", 4, |g, shape| g.bernoulli(shape, 0.3)),
];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let count: i64 = match scale {
        Scale::Gpu => 64 << 20,
        Scale::Cpu => 4 << 20,
        Scale::Software => 1 << 18,
    };
    let mut cases = Vec::new();
    for (name, bytes, make) in MADE {
        cases.push(Case {
            name: format!("random {name} {count}"),
            inputs: Vec::new(),
            build: Box::new(move |g, _| {
                let result = make(g, vec![Dim::from(count)])?;
                g.output("result", result)
            }),
            bytes: bytes * count.unsigned_abs(),
            flops: None,
        });
    }
    cases.push(Case {
        name: format!("random dropout {ELEMENT} {count}"),
        inputs: vec![("x", vec![count])],
        build: Box::new(|g, inputs| {
            let (y, kept) = g.dropout(inputs[0], 0.1)?;
            g.output("y", y)?;
            g.output("kept", kept)
        }),
        bytes: 12 * count.unsigned_abs(),
        flops: None,
    });
    for narrow in [Narrow::Float8E4M3, Narrow::Float4E2M1, Narrow::I4] {
        cases.push(Case {
            name: format!("encode {ELEMENT} as {narrow:?} {count}"),
            inputs: vec![("x", vec![count])],
            build: Box::new(move |g, inputs| {
                let codes = g.encode(inputs[0], narrow, Overflow::Saturated, Rounding::Nearest)?;
                g.output("codes", codes)
            }),
            bytes: 5 * count.unsigned_abs(),
            flops: None,
        });
    }
    cases
}
