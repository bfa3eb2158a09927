//! Attention of `f16`, by the online softmax, on matrix units.
//!
//! **Idea.** A workgroup has 64 queries of one head and goes along the keys, 64 at a time, or 32 where workgroup memory is small. Four subgroups multiply the queries with the keys, 16 rows each; the scores lie in workgroup
//! memory, where each row's largest score and sum of exponentials are kept by invocations that own rows; the exponentials, as `f16`, are the left side of the product with the
//! values. What was summed before is scaled by how much the largest score has grown: a matrix that repeats a column of such factors, element by element.
//!
//! **Invariants.** Queries, keys and values of a head are rows of `D` elements, one after the other, so that 16 bytes begin at each multiple of 8. Keys beyond the end
//! have the score of minus infinity, and no row is without a key. Lines in workgroup memory are odd multiples of 16 bytes apart. Powers are of two: the scale of the scores holds the logarithm.
//!
//! **Cost.** `4 D` operations for each pair of a query and a key; keys and values are read once for each 64 queries.
//!
//! **Limit.** Workgroup memory, through which scores go twice; an accumulator whose elements know their row would need neither. 74 TFLOP/s of one H200 at 32 heads of 4096 by 128
//! on CUDA, 29 on Vulkan.

use trefoil::prelude::*;
use trefoil::{Buffer, Dispatch, Result};

use crate::{expect_length, refused};

/// Queries of a workgroup.
#[device]
pub const BLOCK: usize = 64;
/// Elements in 16 bytes.
#[device]
const LANES: usize = 8;
/// How many subgroups share the queries.
#[device]
const SUBGROUPS: usize = 4;
/// Invocations.
#[device]
const SIZE: usize = 128;

/// 16 bytes of a row; zero beyond the last.
#[device]
fn piece(x: &[Vec4<u32>], first: usize, row: usize, rows: usize, column: usize, width: usize) -> Vec4<u32> {
    if row < rows { x[(first + row) * width + column] } else { Vec4::splat(0) }
}

/// For each head, `out = softmax(q * transposed k * scale) * v`, of `queries` rows of `q` and `keys` rows of `k` and `v`; `scale` is that of powers of two; a row has `PARTS` times 16 elements, and `KEYS` keys are looked at together.
#[kernel(
    workgroup(128),
    targets(spirv, cuda, cpu),
    requires(CooperativeMatrices),
    instances(PARTS = [4, 8], KEYS = [64, 32])
)]
pub fn attention_f16<const PARTS: usize, const KEYS: usize>(
    q: &[Vec4<u32>],
    k: &[Vec4<u32>],
    v: &[Vec4<u32>],
    out: &mut [f32],
    queries: usize,
    keys: usize,
    scale: f32,
) {
    // Keys and, after them, values.
    let mut tile = workgroup_array::<Vec4<u32>>(BLOCK * (PARTS * 2 + 1));
    let mut scores = workgroup_array::<f32>(BLOCK * (KEYS + 4));
    let mut weights = workgroup_array::<f16>(BLOCK * (KEYS + 8));
    let mut factors = workgroup_array::<f32>(BLOCK);
    let width = PARTS * 2;
    // From one row of scores to the next, in floats, and of weights, in halves.
    let (scores_line, weights_line) = (KEYS + 4, KEYS + 8);
    let i = local_index();
    let blocks = queries.div_ceil(BLOCK);
    let (head, first) = (group_index() / blocks, group_index() % blocks * BLOCK);
    let top = subgroup_index() % SUBGROUPS * 16;

    // The queries stay in registers, by way of the tile.
    for at in (i..BLOCK * width).step_by(SIZE) {
        tile[at / width * (width + 1) + at % width] =
            piece(q, head * queries, first + at / width, queries, at % width, width);
    }
    barrier();
    let mut left = [MatrixA::<f16, 16, 16>::fill(f16::from_f32(0.0)); PARTS];
    for d in unroll(0..PARTS) {
        left[d] = MatrixA::load(&tile, top * (width + 1) + d * 2, width + 1);
    }
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); PARTS];
    // Each row of the scores has two invocations, next to each other, for half of its columns.
    let (row, half) = (i / 2, i % 2 * (KEYS / 2));
    let mut most = -1e30f32;
    let mut total = 0.0f32;
    barrier();
    for start in (0..keys).step_by(KEYS) {
        for at in (i..KEYS * width).step_by(SIZE) {
            tile[at / width * (width + 1) + at % width] =
                piece(k, head * keys, start + at / width, keys, at % width, width);
        }
        barrier();
        for x in unroll(0..KEYS / 16) {
            let mut score = Accumulator::<f32, 16, 16>::fill(0.0);
            for d in unroll(0..PARTS) {
                let key = MatrixB::<f16, 16, 16>::load_columns(&tile, x * 16 * (width + 1) + d * 2, width + 1);
                score = multiply_add(left[d], key, score);
            }
            score.store(&mut scores, top * scores_line + x * 16, scores_line);
        }
        barrier();
        // The values come while the scores are looked at.
        for at in (i..KEYS * width).step_by(SIZE) {
            tile[at / width * (width + 1) + at % width] =
                piece(v, head * keys, start + at / width, keys, at % width, width);
        }
        let end = min(KEYS / 2, keys.max(start + half) - (start + half));
        let mut largest = most;
        for j in 0..end {
            largest = max(largest, scores[row * scores_line + half + j] * scale);
        }
        factors[row] = 0.0;
        barrier();
        scores[row * scores_line + KEYS + i % 2] = largest;
        barrier();
        largest = max(largest, scores[row * scores_line + KEYS + 1 - i % 2]);
        let factor = exp2(most - largest);
        let mut sum = 0.0f32;
        for j in 0..KEYS / 2 {
            let power = if j < end { exp2(scores[row * scores_line + half + j] * scale - largest) } else { 0.0 };
            let weight = f16::from_f32(power);
            sum += weight.to_f32();
            weights[row * weights_line + half + j] = weight;
        }
        total = total * factor + sum;
        most = largest;
        factors[row] = factor;
        barrier();
        let scaling = Accumulator::<f32, 16, 16>::load_columns(&factors, top, 0);
        for d in unroll(0..PARTS) {
            sums[d] = sums[d].zip(scaling, |sum, factor| sum * factor);
        }
        for x in unroll(0..KEYS / 16) {
            let weight = MatrixA::<f16, 16, 16>::load(&weights, top * weights_line + x * 16, weights_line);
            for d in unroll(0..PARTS) {
                let value = MatrixB::<f16, 16, 16>::load(&tile, x * 16 * (width + 1) + d * 2, width + 1);
                sums[d] = multiply_add(weight, value, sums[d]);
            }
        }
        barrier();
    }
    // Both invocations of a row have a half of its sum.
    scores[row * scores_line + KEYS + i % 2] = total;
    barrier();
    factors[row] = 1.0 / (total + scores[row * scores_line + KEYS + 1 - i % 2]);
    barrier();
    let scaling = Accumulator::<f32, 16, 16>::load_columns(&factors, top, 0);
    for d in unroll(0..PARTS) {
        sums[d].zip(scaling, |sum, factor| sum * factor).store(&mut scores, top * scores_line, scores_line);
        barrier();
        for at in (i..BLOCK * 16).step_by(SIZE) {
            let (query, column) = (first + at / 16, d * 16 + at % 16);
            if query < queries {
                out[(head * queries + query) * (PARTS * 16) + column] = scores[at / 16 * scores_line + at % 16];
            }
        }
        barrier();
    }
}

/// The rows of a head's queries, keys or values, as [`attention`] wants them: 8 elements in 16 bytes.
pub fn packed(elements: &[f16]) -> Vec<Vec4<u32>> {
    let pair = |halves: &[f16]| u32::from(halves[0].to_bits()) | u32::from(halves[1].to_bits()) << 16;
    elements.chunks_exact(LANES).map(|eight| Vec4::from_array([0, 2, 4, 6].map(|at| pair(&eight[at..])))).collect()
}

/// What is to be attended to.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// How many there are.
    pub count: usize,
    /// Queries of each.
    pub queries: usize,
    /// Keys and values of each.
    pub keys: usize,
    /// Elements of a query, a key and a value: 64 or 128.
    pub dimension: usize,
}

/// `out = softmax(q * transposed k / sqrt(dimension)) * v` for each head: rows of `dimension` halves, [`packed`], all of a head's one after the other.
///
/// # Errors
/// An argument does not have the length that the sizes ask for, there are no keys, or the dimension is another.
pub fn attention(
    [q, k, v]: [&Buffer<Vec4<u32>>; 3],
    out: &mut Buffer<f32>,
    Heads { count, queries, keys, dimension }: Heads,
) -> Result<Vec<Dispatch>> {
    let width = dimension / LANES;
    expect_length("attention", "q", q.len(), count * queries * width)?;
    expect_length("attention", "k", k.len(), count * keys * width)?;
    expect_length("attention", "v", v.len(), count * keys * width)?;
    expect_length("attention", "out", out.len(), count * queries * dimension)?;
    if keys == 0 {
        return Err(refused("attention", "keys", "a mean of no values is none"));
    }
    if count * queries == 0 {
        return Ok(Vec::new());
    }
    let scale = std::f32::consts::LOG2_E / (dimension as f32).sqrt();
    let groups = count * queries.div_ceil(BLOCK);
    let launch = match dimension {
        64 => attention_f16::<4, 64>(q, k, v, &mut *out, queries, keys, scale)?,
        128 => attention_f16::<8, 64>(q, k, v, &mut *out, queries, keys, scale)?,
        _ => return Err(refused("attention", "dimension", format!("{dimension} given, 64 or 128 expected"))),
    };
    let launch = if launch.kernel().workgroup_bytes <= q.device().limits().max_workgroup_bytes {
        launch
    } else if dimension == 64 {
        attention_f16::<4, 32>(q, k, v, out, queries, keys, scale)?
    } else {
        attention_f16::<8, 32>(q, k, v, out, queries, keys, scale)?
    };
    Ok(vec![launch.groups(groups)])
}
