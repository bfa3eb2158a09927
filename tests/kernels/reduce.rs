//! Sums and largest elements along an axis of `[outer, n, inner]`.

use crate::case::{Case, EPSILON, Expected, Operand, depth_of_sum, exactly, kernel};
use crate::numbers::numbers;

/// Rows, and elements of a row.
const ROWS: [(usize, usize); 10] =
    [(0, 3), (2, 0), (1, 1), (5, 2), (13, 17), (2, 255), (2, 256), (2, 257), (1, 4099), (65_537, 1)];
/// The extents outer, n, inner; the last takes more workgroups than one axis of a grid holds.
const COLUMNS: [[usize; 3]; 8] =
    [[0, 3, 2], [2, 0, 3], [1, 1, 1], [3, 5, 7], [2, 257, 3], [1, 3, 131], [5, 2, 64], [1, 1, 65_535 * 64 + 1]];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, n) in ROWS {
        let x = numbers(rows * n, 6, 3.0);
        let along = |row: usize| x[row * n..(row + 1) * n].to_vec();
        for (name, scale) in [("sum_rows", Some(0.75)), ("max_rows", None)] {
            cases.push(Case {
                kernel: kernel(name),
                about: format!("{rows} rows of {n}"),
                operands: vec![Operand::F32(x.clone())],
                values: Box::new(move |launch| match scale {
                    Some(scale) => launch.value(n)?.value(scale),
                    None => launch.value(n),
                }),
                groups: rows,
                expected: (0..rows).map(|row| reduced(&along(row), scale, depth_of_sum(n))).collect(),
            });
        }
    }
    for [outer, n, inner] in COLUMNS {
        let x = numbers(outer * n * inner, 7, 3.0);
        let along = |i: usize| (0..n).map(|j| x[(i / inner * n + j) * inner + i % inner]).collect::<Vec<_>>();
        for (name, scale) in [("sum_columns", Some(1.25)), ("max_columns", None)] {
            cases.push(Case {
                kernel: kernel(name),
                about: format!("[{outer}, {n}, {inner}]"),
                operands: vec![Operand::F32(x.clone())],
                values: Box::new(move |launch| match scale {
                    Some(scale) => launch.value(n)?.value(inner)?.value(scale),
                    None => launch.value(n)?.value(inner),
                }),
                groups: (outer * inner).div_ceil(64),
                expected: (0..outer * inner).map(|i| reduced(&along(i), scale, n as f64)).collect(),
            });
        }
    }
    cases
}

/// The scaled sum, or without a scale the largest.
fn reduced(x: &[f32], scale: Option<f32>, depth: f64) -> Option<Expected> {
    let Some(scale) = scale else {
        return exactly(x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    };
    let scale = f64::from(scale);
    let sum: f64 = x.iter().map(|x| f64::from(*x)).sum();
    let size: f64 = x.iter().map(|x| f64::from(x.abs())).sum();
    Some(Expected { value: sum * scale, tolerance: (depth + 1.0) * EPSILON * size * scale })
}
