//! Reductions over the last axis, the first, and all.

use trefoil::graph::ops::reduce::{Reduce, Reduction};

use crate::cases::{Case, ELEMENT};
use crate::measure::Scale;

/// What is reduced; shapes of many rows, of short ones and of long ones.
const SHAPES: [[i64; 2]; 3] = [[8192, 4096], [65_536, 1024], [4096, 32_000]];

/// What it is reduced to.
const REDUCTIONS: [Reduction; 2] = [Reduction::Sum, Reduction::ArgMax];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 8,
        Scale::Software => 64,
    };
    let mut cases = Vec::new();
    for [rows, columns] in SHAPES {
        let rows = rows / less;
        for reduction in REDUCTIONS {
            for (axes, about, results) in
                [(vec![1], "last axis", rows), (vec![0], "axis 0", columns), (vec![0, 1], "all", 1)]
            {
                cases.push(Case {
                    name: format!("reduce {reduction:?} {rows}x{columns} {about}"),
                    inputs: vec![("x", vec![rows, columns])],
                    build: Box::new(move |g, inputs| {
                        let op = Reduce { reduction, element: ELEMENT, axes: axes.clone(), keep: false, correction: 0 };
                        let result = g.add_one(op, inputs)?;
                        g.output("result", result)
                    }),
                    bytes: 4 * (rows * columns + results).unsigned_abs(),
                    flops: None,
                });
            }
        }
    }
    cases
}
