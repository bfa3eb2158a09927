//! Matrix products of `f32`: tiles, parts of K, and any strides, with bias and every activation. The kernels of other elements run in `backends/graph/tests/products.rs`.

use std::sync::OnceLock;

use trefoil::kernels::activation::Activation;
use trefoil::kernels::matmul::narrow;

use crate::case::{Case, EPSILON, Expected, Operand, kernel};
use crate::numbers::numbers;

const ACTIVATIONS: [Activation; 6] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu, Activation::Tanh, Activation::Sigmoid];

/// A matrix among others in memory.
#[derive(Clone, Copy)]
struct Layout {
    strides: [usize; 2],
    /// From one matrix to the next; 0 where all batches read the same.
    batch: usize,
}

/// A product: batches, and the extents of each.
#[derive(Clone, Copy)]
struct Product {
    batches: usize,
    m: usize,
    n: usize,
    k: usize,
    a: Layout,
    b: Layout,
}

/// What a workgroup of a tiled kernel does.
#[derive(Clone, Copy)]
struct Tile {
    name: &'static str,
    rows: usize,
    columns: usize,
    /// How far it goes along K at a time.
    step: usize,
}

const LARGE: Tile = Tile { name: "matmul_tiled_128_f32", rows: 128, columns: 128, step: 8 };
const MIDDLE: Tile = Tile { name: "matmul_tiled_64_f32", rows: 64, columns: 64, step: 16 };
const ANY: Tile = Tile { name: "matmul_tiled_any_f32", rows: 64, columns: 64, step: 16 };
const NARROW: Tile = Tile { name: "matmul_narrow", rows: narrow::ROWS, columns: narrow::COLUMNS, step: 64 };

/// All of them, made once for all tests: each leaves a kernel of its own behind.
pub fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(made)
}

fn made() -> Vec<Case> {
    let mut cases = Vec::new();
    for tile in [LARGE, MIDDLE, ANY, NARROW] {
        for rows_are_n in [false, true] {
            tiled(&mut cases, tile, rows_are_n);
        }
    }
    for [size, n, count, batches] in [[4, 4, 1, 1], [20, 20, 3, 2], [36, 12, 16, 1], [1028, 4, 2, 3], [8, 8, 2, 0]] {
        cases.push(sum_of_parts(size, n, count, batches, ACTIVATIONS[count % 6]));
    }
    strided(&mut cases);
    cases
}

/// Batches, and extents around the edge of a tile; N and K are multiples of 4, as the tiled kernels want.
fn tiled(cases: &mut Vec<Case>, tile: Tile, rows_are_n: bool) {
    let Tile { name, rows, columns, step } = tile;
    let is_narrow = name == NARROW.name;
    let extents = [
        [1, 0, 4, 4],
        [1, 1, 4, 4],
        [1, 3, 8, 0],
        [2, 5, 12, step + 4],
        [1, rows + 1, columns - 4, 4],
        [3, rows - 1, columns + 4, 2 * step],
        [1, rows, columns, 3 * step - 4],
        // More rows of tiles than a band has.
        [1, 8 * rows + 1, columns + 4, 4],
    ];
    for (index, [batches, m, n, k]) in extents.into_iter().enumerate() {
        // Every other case with rows that lie apart, and with one matrix B for all batches.
        let gap = if index % 2 == 1 { 8 } else { 0 };
        let a_stride = k + gap;
        let (b_rows, b_columns) = if rows_are_n { (n, k) } else { (k, n) };
        let b_stride = b_columns + gap;
        let b = Layout {
            strides: if rows_are_n { [1, b_stride] } else { [b_stride, 1] },
            batch: if gap == 0 { b_rows * b_stride } else { 0 },
        };
        let product = Product { batches, m, n, k, a: Layout { strides: [a_stride, 1], batch: m * a_stride }, b };
        let tiles = batches * m.div_ceil(rows) * n.div_ceil(columns);
        for parts in [1, 2, 3] {
            let activation = if parts == 1 { ACTIVATIONS[index % 6] } else { Activation::Identity };
            let bias = if parts == 1 && index % 3 != 1 { numbers(n, 11, 1.0) } else { Vec::new() };
            let (a, b) = product.operands();
            let expected = product.expected(&a, &b, &bias, activation, parts, step);
            let (instance, constant) = match is_narrow {
                true => (kernel(&format!("{name}_{rows_are_n}")), ("UNBRANCHED", (index + parts) as i64 % 2)),
                false => (kernel(name), ("B_ALONG", i64::from(rows_are_n))),
            };
            let known = Box::leak(Box::new(instance.specialise(&[constant]).unwrap()));
            cases.push(Case {
                kernel: known,
                about: format!("{batches} times {m} x {n} x {k}, {parts} parts, {activation:?}"),
                operands: [a, b, bias].map(Operand::F32).to_vec(),
                values: Box::new(move |launch| {
                    let batches = [product.a.batch, product.b.batch];
                    if !is_narrow {
                        let strides = [batches[0], a_stride, batches[1], b_stride];
                        let parts = [parts, k.div_ceil(step * parts) * step];
                        return launch.value([m, n, k])?.value(strides)?.value(parts)?.value(activation);
                    }
                    let launch = launch.value(m)?.value(n)?.value(k)?.value(a_stride)?.value(b_stride)?;
                    launch.value(batches[0])?.value(batches[1])?.value(parts)?.value(activation)
                }),
                groups: tiles * parts,
                operations: tiles * rows * columns * k.next_multiple_of(step),
                expected,
            });
        }
    }
}

/// Kernels of any strides: operands in every order of axes, with extents that nothing divides.
fn strided(cases: &mut Vec<Case>) {
    let extents =
        [[1, 0, 3, 5], [1, 1, 1, 1], [1, 2, 3, 0], [2, 17, 15, 16], [3, 7, 33, 19], [1, 31, 1, 37], [1, 1, 67, 13]];
    for (index, [batches, m, n, k]) in extents.into_iter().enumerate() {
        let a = match index % 3 {
            0 => Layout { strides: [k + 3, 1], batch: m * (k + 3) },
            1 => Layout { strides: [1, m], batch: m * k },
            _ => Layout { strides: [3, 3 * m + 1], batch: 0 },
        };
        let b = match index % 2 {
            0 => Layout { strides: [1, k + 1], batch: n * (k + 1) },
            _ => Layout { strides: [2 * n, 2], batch: 2 * n * k },
        };
        let product = Product { batches, m, n, k, a, b };
        let activation = ACTIVATIONS[(index + 3) % 6];
        let bias = if index % 2 == 0 { numbers(n, 12, 1.0) } else { Vec::new() };
        let (left, right) = product.operands();
        let expected = product.expected(&left, &right, &bias, activation, 1, 1);
        let tiles = batches * m.div_ceil(16) * n.div_ceil(16);
        for (name, groups) in [("matmul_strided_f32", tiles), ("matmul_direct_f32", (batches * m * n).div_ceil(256))] {
            cases.push(Case {
                kernel: kernel(name),
                about: format!("{batches} times {m} x {n} x {k}, A {:?}, B {:?}, {activation:?}", a.strides, b.strides),
                operands: [&left, &right, &bias].map(|operand| Operand::F32(operand.clone())).to_vec(),
                values: Box::new(move |launch| {
                    let of = |layout: Layout| [layout.batch, layout.strides[0], layout.strides[1]];
                    launch.value([m, n, k])?.value(of(a))?.value(of(b))?.value(activation)
                }),
                groups,
                operations: tiles * 16 * 16 * k,
                expected: expected.clone(),
            });
        }
    }
}

/// What the narrow tile leaves behind when K is in `count` parts.
fn sum_of_parts(size: usize, n: usize, count: usize, batches: usize, activation: Activation) -> Case {
    let parts = numbers(batches * count * size, 13, 2.0);
    let bias = if count == 2 { Vec::new() } else { numbers(n, 14, 1.0) };
    let element = |i: usize| {
        let (batch, within) = (i / size, i % size);
        let terms = (0..count).map(|part| f64::from(parts[(batch * count + part) * size + within]));
        activated(terms, bias.get(within % n).copied(), activation)
    };
    let expected: Vec<_> = (0..batches * size).map(element).collect();
    Case {
        kernel: kernel("matmul_sum_parts_f32"),
        about: format!("{count} parts of {size}, {batches} batches, {activation:?}"),
        operands: vec![Operand::F32(parts.clone()), Operand::F32(bias)],
        values: Box::new(move |launch| launch.value(size)?.value(n)?.value(count)?.value(activation)),
        groups: expected.len().div_ceil(4 * 256),
        operations: expected.len() * count,
        expected,
    }
}

impl Layout {
    /// How many elements `batches` matrices of these extents reach over.
    fn reach(self, batches: usize, extents: [usize; 2]) -> usize {
        if batches == 0 || extents.contains(&0) {
            return 0;
        }
        (batches - 1) * self.batch + (extents[0] - 1) * self.strides[0] + (extents[1] - 1) * self.strides[1] + 1
    }

    fn at(self, batch: usize, row: usize, column: usize) -> usize {
        batch * self.batch + row * self.strides[0] + column * self.strides[1]
    }

    /// Numbers where the matrices are, and NaN between their rows.
    fn values(self, batches: usize, extents: [usize; 2], seed: u32) -> Vec<f32> {
        // The last row of a tiled operand is read four elements at a time.
        let mut values = vec![f32::NAN; self.reach(batches, extents).next_multiple_of(4)];
        let mut given = numbers(batches * extents[0] * extents[1], seed, 1.0).into_iter();
        for batch in 0..batches {
            for row in 0..extents[0] {
                for column in 0..extents[1] {
                    values[self.at(batch, row, column)] = given.next().unwrap_or(f32::NAN);
                }
            }
        }
        values
    }
}

impl Product {
    fn operands(&self) -> (Vec<f32>, Vec<f32>) {
        (self.a.values(self.batches, [self.m, self.k], 9), self.b.values(self.batches, [self.k, self.n], 10))
    }

    /// The result, or one for each part of K, of which each ends at a step of the narrow tile.
    fn expected(
        &self,
        a: &[f32],
        b: &[f32],
        bias: &[f32],
        activation: Activation,
        parts: usize,
        step: usize,
    ) -> Vec<Option<Expected>> {
        let length = self.k.div_ceil(step * parts) * step;
        let mut expected = Vec::new();
        for batch in 0..self.batches {
            for part in 0..parts {
                let range = (part * length).min(self.k)..((part + 1) * length).min(self.k);
                let whole = if parts == 1 { 0..self.k } else { range };
                for row in 0..self.m {
                    for column in 0..self.n {
                        let term =
                            |k| f64::from(a[self.a.at(batch, row, k)]) * f64::from(b[self.b.at(batch, k, column)]);
                        expected.push(activated(whole.clone().map(term), bias.get(column).copied(), activation));
                    }
                }
            }
        }
        expected
    }
}

/// The activation of a sum. Each product and each addition rounds once; no activation is steeper than 1.13, and each is within 16 ulp of itself or of its argument.
fn activated(terms: impl Iterator<Item = f64> + Clone, bias: Option<f32>, activation: Activation) -> Option<Expected> {
    let bias = bias.map_or(0.0, f64::from);
    let count = terms.clone().count() as f64;
    let size: f64 = terms.clone().map(f64::abs).sum::<f64>() + bias.abs();
    let x = terms.sum::<f64>() + bias;
    let off = (count + 1.0) * EPSILON * size;
    let value = match activation {
        Activation::Identity => return Some(Expected { value: x, tolerance: off }),
        Activation::Relu => return Some(Expected { value: x.max(0.0), tolerance: off }),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    };
    Some(Expected { value, tolerance: 1.13 * off + 16.0 * EPSILON * (1.0 + x.abs()) })
}

/// The error function as the integral that defines it, by Simpson's rule: within 1e-10 here.
fn erf(x: f64) -> f64 {
    const STEPS: u32 = 400;
    let width = x.clamp(-6.0, 6.0) / f64::from(STEPS);
    let height = |step: u32| (-(f64::from(step) * width).powi(2)).exp();
    let inner: f64 = (1..STEPS).map(|step| height(step) * if step % 2 == 1 { 4.0 } else { 2.0 }).sum();
    2.0 / std::f64::consts::PI.sqrt() * width / 3.0 * (height(0) + inner + height(STEPS))
}

#[test]
fn erf_has_its_known_values() {
    for (x, y) in [(0.0, 0.0), (0.5, 0.520_499_877_813_046_5), (-1.0, -0.842_700_792_949_714_9), (9.0, 1.0)] {
        assert!((erf(x) - y).abs() < 1e-10, "erf({x}) is {}", erf(x));
    }
}
