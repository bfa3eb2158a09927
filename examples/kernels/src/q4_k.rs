//! A matrix of Q4_K weights times a vector: the step that limits a language model that answers one user.
//!
//! **The format.** GGUF's Q4_K holds 256 weights of a row in 144 bytes: the halves `d` and `dmin`, eight 6-bit scales and eight 6-bit mins packed in 12 bytes, and 128 bytes with two
//! 4-bit numbers each. Weight `q` of sub-block `s` (32 weights) is `d * scale[s] * q - dmin * min[s]`. Of the 32 bytes from `32 c` on, the low halves are sub-block `2 c`
//! and the high halves sub-block `2 c + 1`.
//!
//! **Idea.** A block is nine groups of 16 bytes, and every read is one of them. An invocation takes one of the eight groups of numbers of a block: 16 weights of each of two
//! sub-blocks. It reads the 32 elements of x that they meet once and keeps them for [`ROWS`] rows, since reading x for every row would cost seven times the
//! bytes of the weights. The sum of a sub-block is `d * scale * sum(q x) - dmin * min * sum(x)`, so that a weight costs a conversion and a multiply-add.
//!
//! **Invariants.** A row is a whole number of blocks. Rows past the last read as zeros and are not written. Each sum has an order that depends on
//! the row's length alone.
//!
//! **Cost.** 0.5625 bytes a weight, and about three operations: at the speed of an H200's memory that is nearly all of its arithmetic too, so both limit it.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

use crate::workgroup::sum_all;
use crate::{expect_length, refused};

/// Weights of a block.
#[device]
pub const BLOCK: usize = 256;
/// Invocations of a workgroup: a row of 4096 weights has as many groups of numbers.
#[device]
const SIZE: usize = 128;
/// Rows of a workgroup.
#[device]
pub const ROWS: usize = 4;

/// Words of a block.
#[device]
pub const WORDS: usize = 36;

/// The factors of sub-blocks `2 c` and `2 c + 1`, from the first words of a block: `d * scale` of each, then `dmin * min` of each.
#[device]
fn factors(scales: Vec4<u32>, c: u32) -> Vec4<f32> {
    // Four bytes each: of sub-blocks 0 to 3 the low six bits of a word, of 4 to 7 four bits of the last word and above them the two bits left over.
    let mut scale = scales.y & 0x3f3f_3f3f;
    let mut least = scales.z & 0x3f3f_3f3f;
    if c >= 2 {
        scale = (scales.w & 0x0f0f_0f0f) | ((scales.y >> 2) & 0x3030_3030);
        least = ((scales.w >> 4) & 0x0f0f_0f0f) | ((scales.z >> 2) & 0x3030_3030);
    }
    let shift = 16 * (c % 2);
    let both = unpack2x16float(scales.x);
    Vec4::new(
        both.x * ((scale >> shift) & 0xff) as f32,
        both.x * ((scale >> (shift + 8)) & 0xff) as f32,
        both.y * ((least >> shift) & 0xff) as f32,
        both.y * ((least >> (shift + 8)) & 0xff) as f32,
    )
}

/// The sum of four 4-bit numbers, a byte each, times four elements.
#[device]
fn products(word: u32, x: Vec4<f32>, sum: f32) -> f32 {
    let q = unpack4xu8(word & 0x0f0f_0f0f);
    q.w as f32 * x.w + (q.z as f32 * x.z + (q.y as f32 * x.y + (q.x as f32 * x.x + sum)))
}

/// `y` = weights * x.
#[kernel(workgroup(128))]
pub fn q4_k_matvec(weights: &[u32], x: &[f32], y: &mut [f32], blocks: usize) {
    let mut scratch = workgroup_array::<f32>(ROWS * SIZE);
    let first_row = group_index() * ROWS;
    let mut sums = [0.0; ROWS];
    for at in (local_index()..blocks * 8).step_by(SIZE) {
        let (block, group) = (at / 8, at % 8);
        // The weights first: they come from far away.
        let mut scales = [Vec4::splat(0u32); ROWS];
        let mut numbers = [Vec4::splat(0u32); ROWS];
        for row in unroll(0..ROWS) {
            let place = ((first_row + row) * blocks + block) * (WORDS / 4);
            scales[row] = weights.vec4(place);
            numbers[row] = weights.vec4(place + 1 + group);
        }
        // Sixteen elements for the low halves, and sixteen for the high ones, 32 behind.
        let quad = block * 64 + group / 2 * 16 + group % 2 * 4;
        let mut low = [Vec4::splat(0.0); 4];
        let mut high = [Vec4::splat(0.0); 4];
        let mut low_sum = 0.0;
        let mut high_sum = 0.0;
        for k in unroll(0..4) {
            low[k] = x.vec4(quad + k);
            high[k] = x.vec4(quad + 8 + k);
            low_sum += low[k].dot(Vec4::splat(1.0));
            high_sum += high[k].dot(Vec4::splat(1.0));
        }
        for row in unroll(0..ROWS) {
            let mut low_products = 0.0;
            let mut high_products = 0.0;
            for k in unroll(0..4) {
                low_products = products(numbers[row][k], low[k], low_products);
                high_products = products(numbers[row][k] >> 4, high[k], high_products);
            }
            let of = factors(scales[row], (group / 2) as u32);
            sums[row] += (of.x * low_products - of.z * low_sum) + (of.y * high_products - of.w * high_sum);
        }
    }
    for row in unroll(0..ROWS) {
        let sum = sum_all::<SIZE, f32>(sums[row], row, &mut scratch);
        if local_index() == 0 && first_row + row < y.len() {
            y[first_row + row] = sum;
        }
    }
}

/// `y` = weights * x, for `y.len()` rows of `x.len()` weights; `weights` are the words of a GGUF file.
///
/// # Errors
/// `x` has no whole number of blocks, `weights` has not as many blocks as the rows, or a buffer does not fit the device.
pub fn matvec<'a>(
    weights: impl ReadBuffer<'a, u32>,
    x: impl ReadBuffer<'a, f32>,
    y: impl WriteBuffer<'a, f32>,
) -> Result<Vec<Dispatch>> {
    let (weights, x, y) = (weights.slice(), x.slice(), y.slice_mut());
    if !x.len().is_multiple_of(BLOCK) {
        return Err(refused("matvec", "x", format!("{} elements given, a multiple of {BLOCK} expected", x.len())));
    }
    let (rows, blocks) = (y.len(), x.len() / BLOCK);
    expect_length("matvec", "weights", weights.len(), rows * blocks * WORDS)?;
    Ok(vec![q4_k_matvec(weights, x, y, blocks)?.groups(rows.div_ceil(ROWS))])
}
