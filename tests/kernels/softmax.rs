//! Softmax of rows.

use crate::case::{Case, EPSILON, Expected, FLUSHED, Operand, depth_of_sum, kernel};
use crate::numbers::numbers;

/// Rows whose length each kernel takes: the shortest and longest ones, and others.
const SIZES: [(&str, &[(usize, usize)]); 5] = [
    ("softmax_any", &[(0, 5), (2, 0), (1, 1), (3, 2), (7, 17), (2, 255), (2, 256), (2, 257), (1, 4099)]),
    ("softmax_held_1", &[(0, 4), (3, 4), (7, 28), (2, 1020), (1, 1024)]),
    ("softmax_held_2", &[(3, 12), (2, 1028), (1, 2048)]),
    ("softmax_held_4", &[(3, 12), (2, 2052), (1, 4096)]),
    ("softmax_held_8", &[(3, 12), (2, 4100), (1, 8192)]),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, sizes) in SIZES {
        for &(rows, columns) in sizes {
            cases.push(case(name, rows, columns));
        }
    }
    // More workgroups than one axis of a grid holds.
    cases.push(case("softmax_any", 65_537, 1));
    cases
}

fn case(name: &str, rows: usize, columns: usize) -> Case {
    // Large enough that exp overflows unless the largest is taken off first; and something that a mask took out, except from a row of one.
    let mut x: Vec<f32> = numbers(rows * columns, 1, 20.0).iter().map(|x| x + 500.0).collect();
    x.iter_mut().skip(1).step_by(columns.max(2)).for_each(|x| *x = if columns > 1 { f32::NEG_INFINITY } else { *x });
    let expected = if columns == 0 { Vec::new() } else { x.chunks(columns).flat_map(row).collect() };
    Case {
        kernel: kernel(name),
        about: format!("{rows} rows of {columns}"),
        operands: vec![Operand::F32(x)],
        values: Box::new(move |launch| launch.value(columns)),
        groups: rows,
        expected,
    }
}

/// The softmax of a row. An exponential is off by 3 + 2 |x| ulp and by the rounding of its argument, the sum by its terms' errors and its own depth, the reciprocal by 3 ulp.
fn row(x: &[f32]) -> Vec<Option<Expected>> {
    let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponents: Vec<f64> = x.iter().map(|x| f64::from(*x) - f64::from(largest)).collect();
    let sum: f64 = exponents.iter().map(|d| d.exp()).sum();
    // Where the exponential is zero in f64 there is nothing to be off by.
    let ulps = |d: f64| if d.exp() == 0.0 { 0.0 } else { 3.0 + 2.5 * d.abs() };
    let of_sum = exponents.iter().map(|d| d.exp() * ulps(*d)).sum::<f64>() / sum + depth_of_sum(x.len());
    let element = |d: &f64| {
        let value = d.exp() / sum;
        Some(Expected { value, tolerance: value * (ulps(*d) + of_sum + 4.0) * EPSILON + FLUSHED })
    };
    exponents.iter().map(element).collect()
}
