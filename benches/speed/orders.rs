//! Scans, sorts and the best few of rows.

use trefoil::graph::ElementType;
use trefoil::graph::ops::{Best, Order, Sweep};

use crate::cases::Case;
use crate::measure::Scale;

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 16,
        Scale::Software => 128,
    };
    let mut cases = Vec::new();
    let flat = (64 << 20) / less;
    let scans =
        [(vec![8192 / less, 4096], 1), (vec![8192 / less, 4096], 0), (vec![4096 / less, 32_000], 1), (vec![flat], 0)];
    for (shape, axis) in scans {
        let bytes = 8 * shape.iter().product::<i64>().unsigned_abs();
        cases.push(Case {
            name: format!("cumsum {} axis {axis}", times(&shape)),
            inputs: vec![("x", shape)],
            build: Box::new(move |g, inputs| {
                let result = g.cumsum(inputs[0], axis, Sweep::default())?;
                g.output("result", result)
            }),
            bytes,
            flops: None,
        });
    }
    for (shape, k) in [(vec![4096 / less, 32_000], 50), (vec![65_536 / less, 1024], 8), (vec![flat], 50)] {
        let bytes = 4 * shape.iter().product::<i64>().unsigned_abs();
        cases.push(Case {
            name: format!("top_k {k} of {}", times(&shape)),
            inputs: vec![("x", shape)],
            build: Box::new(move |g, inputs| {
                let (values, places) = g.top_k(inputs[0], k, -1, Best::default())?;
                g.output("values", values)?;
                g.output("places", places)
            }),
            bytes,
            flops: None,
        });
    }
    for (shape, element) in
        [(vec![flat], ElementType::U32), (vec![flat], ElementType::F32), (vec![65_536 / less, 1024], ElementType::F32)]
    {
        let bytes = 8 * shape.iter().product::<i64>().unsigned_abs();
        cases.push(Case {
            name: format!("sort {element} {}", times(&shape)),
            inputs: vec![("x", shape)],
            build: Box::new(move |g, inputs| {
                let x = g.bitcast(inputs[0], element)?;
                let result = g.sort(x, -1, Order::Ascending)?;
                g.output("result", result)
            }),
            bytes,
            flops: None,
        });
    }
    cases
}

fn times(shape: &[i64]) -> String {
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}
