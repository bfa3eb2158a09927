//! Layer normalisation of rows, with every choice of optional operands.

use crate::case::{Case, EPSILON, Expected, Operand, depth_of_sum, kernel};
use crate::numbers::numbers;

const SIZES: [(&str, &[(usize, usize)]); 5] = [
    ("layer_norm_any", &[(0, 5), (2, 0), (1, 1), (3, 2), (7, 17), (2, 255), (2, 256), (2, 257), (1, 4099)]),
    ("layer_norm_held_1", &[(0, 4), (3, 4), (7, 28), (2, 1020), (1, 1024)]),
    ("layer_norm_held_2", &[(3, 12), (2, 1028), (1, 2048)]),
    ("layer_norm_held_4", &[(3, 12), (2, 2052), (1, 4096)]),
    ("layer_norm_held_8", &[(3, 12), (2, 4100), (1, 8192)]),
];

/// Which optional operands there are: residual, gamma, beta.
type Present = [bool; 3];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, sizes) in SIZES {
        for (index, &(rows, columns)) in sizes.iter().enumerate() {
            cases.push(case(
                name,
                rows,
                columns,
                [index % 3 != 2, true, true],
                if index % 2 == 0 { 1e-5 } else { 1e-12 },
            ));
        }
        for choice in 0..7 {
            cases.push(case(name, 2, 20, [choice & 1 != 0, choice & 2 != 0, choice & 4 != 0], 1e-5));
        }
    }
    cases
}

fn case(name: &str, rows: usize, columns: usize, present: Present, epsilon: f32) -> Case {
    // A mean that is large against the variance.
    let x: Vec<f32> = numbers(rows * columns, 2, 2.0).iter().map(|x| x + 10.0).collect();
    let optional =
        |which: usize, count: usize, seed| if present[which] { numbers(count, seed, 1.5) } else { Vec::new() };
    let residual = optional(0, rows * columns, 3);
    let (gamma, beta) = (optional(1, columns, 4), optional(2, columns, 5));
    let expected = (0..if columns == 0 { 0 } else { rows })
        .flat_map(|row| {
            let of_row = |values: &[f32]| values.get(row * columns..(row + 1) * columns).unwrap_or(&[]).to_vec();
            normalised(&of_row(&x), &of_row(&residual), &gamma, &beta, epsilon.into())
        })
        .collect();
    // Kernels that hold a row are made with and without a residual.
    let name = if name == "layer_norm_any" { name.to_owned() } else { format!("{name}_{}", present[0]) };
    Case {
        kernel: kernel(&name),
        about: format!("{rows} rows of {columns}, residual, gamma, beta {present:?}"),
        operands: [x, residual, gamma, beta].map(Operand::F32).to_vec(),
        values: Box::new(move |launch| launch.value(columns)?.value(epsilon)),
        groups: rows,
        expected,
    }
}

/// A row, with a bound on the error that is carried along: `off_*` is how far what it is named after may be from its value.
fn normalised(x: &[f32], residual: &[f32], gamma: &[f32], beta: &[f32], epsilon: f64) -> Vec<Option<Expected>> {
    let count = x.len() as f64;
    let at = |values: &[f32], index: usize, otherwise: f64| values.get(index).map_or(otherwise, |x| f64::from(*x));
    let v: Vec<f64> = (0..x.len()).map(|i| f64::from(x[i]) + at(residual, i, 0.0)).collect();
    let mean = v.iter().sum::<f64>() / count;
    let mean_size = v.iter().map(|v| v.abs()).sum::<f64>() / count;
    let off_mean = (depth_of_sum(x.len()) + 3.0) * EPSILON * mean_size;
    let off_centred = |v: f64| EPSILON * (v.abs() + (v - mean).abs()) + off_mean;
    let variance = v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    let off_squares = v.iter().map(|v| 2.0 * (v - mean).abs() * off_centred(*v) + off_centred(*v).powi(2)).sum::<f64>();
    let off_variance = off_squares / count + (depth_of_sum(x.len()) + 4.0) * EPSILON * (variance + epsilon);
    let factor = 1.0 / (variance + epsilon).sqrt();
    // The derivative of 1 / sqrt, and 3 ulp of its own.
    let off_factor = factor * (0.5 * off_variance / (variance + epsilon) + 3.0 * EPSILON);
    let element = |(index, v): (usize, &f64)| {
        let (gamma, beta) = (at(gamma, index, 1.0), at(beta, index, 0.0));
        let scaled = (v - mean) * factor * gamma;
        let off_scaled = gamma.abs() * (off_centred(*v) * (factor + off_factor) + (v - mean).abs() * off_factor);
        let value = scaled + beta;
        Some(Expected { value, tolerance: off_scaled + EPSILON * (2.0 * scaled.abs() + value.abs()) })
    };
    v.iter().enumerate().map(element).collect()
}
