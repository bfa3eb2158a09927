//! A matrix of Q4_K weights times a vector: the step that limits a language model that answers one user.
//!
//! **The format.** GGUF's Q4_K holds 256 weights of a row in 144 bytes: the halves `d` and `dmin`, eight 6-bit scales and eight 6-bit mins packed in 12 bytes, and 128 bytes with two
//! 4-bit numbers each. Weight `q` of sub-block `s` (32 weights) is `d * scale[s] * q - dmin * min[s]`. Of the 32 bytes from `32 c` on, the low halves are sub-block `2 c`
//! and the high halves sub-block `2 c + 1`.
//!
//! **Idea.** A block is nine groups of 16 bytes, and every read is one of them. An invocation takes one of the eight groups of numbers of a block: 16 weights of each of two
//! sub-blocks. The 32 elements of x that they meet stay with it for all rows of the workgroup, as integers of 23 bits with one exponent, taken apart in
//! three bytes each: so four weights cost three sums of four products of bytes, which devices have an instruction for, and no conversion. Weights are read a few rows ahead
//! of their use, by volatile reads in SPIR-V, where drivers put off others to where they are used.
//!
//! **Invariants.** A row is a whole number of blocks. Each sum has an order that depends on the row's length alone. Of 32 elements the greatest keeps its 24 bits and the others as many less as they are smaller, an error
//! below that of their sum in `f32`; infinities and NaNs reach the result by the sums of x.
//!
//! **Cost.** 0.5625 bytes a weight, and about three operations.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

use crate::{expect_length, refused};

/// Weights of a block.
#[device]
pub const BLOCK: usize = 256;
/// Invocations of a workgroup: a row of 4096 weights has as many groups of numbers.
#[device]
const SIZE: usize = 128;
/// Rows that are read at once.
#[device]
const ROWS: usize = 4;
/// The most rows of a workgroup.
#[device]
const MOST_ROWS: usize = 28;
/// Invocations that add up the sums of a row in the end.
#[device]
const PARTS: usize = 4;
/// From the sums of one row to those of the next: one more than there are, so that neighbours meet different banks of memory.
#[device]
const NEXT_ROW: usize = SIZE + 1;
/// The most workgroups: as many as large devices run at once.
const MOST_GROUPS: usize = 394;

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

/// Four elements times `scale` as integers of 23 bits, taken apart: the low bytes of all four, the middle ones, and the high ones with their signs.
#[device]
fn bytes_of(x: Vec4<f32>, scale: f32) -> Vec3<u32> {
    // Added to 1.5 * 2^23, a small number stands in the low bits.
    let shifted = x * scale + Vec4::splat(12_582_912.0);
    let a = bitcast::<u32>(shifted.x) - 0x4b40_0000;
    let b = bitcast::<u32>(shifted.y) - 0x4b40_0000;
    let c = bitcast::<u32>(shifted.z) - 0x4b40_0000;
    let d = bitcast::<u32>(shifted.w) - 0x4b40_0000;
    let even = (a & 0xffff) | (c << 16);
    let odd = (b & 0xffff) | (d << 16);
    Vec3::new(
        (even & 0x00ff_00ff) | ((odd & 0x00ff_00ff) << 8),
        ((even >> 8) & 0x00ff_00ff) | (odd & 0xff00_ff00),
        ((a >> 16) & 0xff) | ((b >> 8) & 0xff00) | (c & 0xff_0000) | ((d << 8) & 0xff00_0000),
    )
}

/// The sum of sixteen 4-bit numbers, the low halves of bytes, times elements that were taken apart.
#[device]
fn products(words: Vec4<u32>, x: [Vec3<u32>; 4]) -> f32 {
    let mut low = 0u32;
    let mut middle = 0u32;
    let mut high = 0i32;
    for k in unroll(0..4) {
        let q = words[k] & 0x0f0f_0f0f;
        low = dot4_u8(q, x[k].x, low);
        middle = dot4_u8(q, x[k].y, middle);
        high = dot4_i8(q, x[k].z, high);
    }
    (high * 65536 + (middle * 256 + low) as i32) as f32
}

/// Adds products to an invocation's sums of some rows, which lie in workgroup memory; the first `segment` begins them.
#[device]
#[expect(
    clippy::too_many_arguments,
    reason = "what is read as structs of arrays stays in memory on Vulkan, which costs a third"
)]
fn add_rows(
    partial: &mut [f32],
    slot: usize,
    segment: usize,
    blocks: usize,
    scales: [Vec4<u32>; ROWS],
    numbers: [Vec4<u32>; ROWS],
    low: [Vec3<u32>; 4],
    high: [Vec3<u32>; 4],
    unit: f32,
    sums: Vec2<f32>,
) {
    let lane = local_index();
    let group = segment * SIZE + lane;
    for k in unroll(0..ROWS) {
        let of = factors(scales[k], (group % 8 / 2) as u32);
        let low_products = products(numbers[k], low);
        let high_products = products(numbers[k] >> 4u32, high);
        let mut sum = unit * (of.x * low_products + of.y * high_products) - (of.z * sums.x + of.w * sums.y);
        if segment > 0 {
            sum = partial[(slot + k) * NEXT_ROW + lane] + select(group < blocks * 8, sum, 0.0);
        } else if group >= blocks * 8 {
            sum = 0.0;
        }
        partial[(slot + k) * NEXT_ROW + lane] = sum;
    }
}

/// Where a block begins that holds one of a row's groups of numbers.
#[device]
fn block_of(row: usize, blocks: usize, group: usize) -> usize {
    (row * blocks + group / 8) * (WORDS / 4)
}

/// `y` = weights * x; a workgroup takes `rows` of them.
#[kernel(workgroup(SIZE), volatile(spirv(weights)))]
pub fn q4_k_matvec(weights: &[u32], x: &[f32], y: &mut [f32], blocks: usize, rows: usize) {
    let mut partial = workgroup_array::<f32>(MOST_ROWS * NEXT_ROW);
    let (quads, x_quads) = (weights.len() / 4, x.len() / 4);
    let lane = local_index();
    let first = group_index() * rows;
    if quads == 0 || x_quads == 0 {
        if lane < rows && first + lane < y.len() {
            y[first + lane] = 0.0;
        }
        return;
    }
    for segment in 0..(blocks * 8).div_ceil(SIZE) {
        let group = segment * SIZE + lane;
        let mut scales = [Vec4::<u32>::splat(0); ROWS];
        let mut numbers = [Vec4::<u32>::splat(0); ROWS];
        // The weights first: they come from far away. No read asks whether it is in range: beyond the last row, or the last block of a row, it is some other, and what
        // comes of that is left out in the end.
        for k in unroll(0..ROWS) {
            let block = block_of(first + k, blocks, group);
            scales[k] = weights.vec4(min(block, quads - 1));
            numbers[k] = weights.vec4(min(block + 1 + group % 8, quads - 1));
        }
        // Sixteen elements for the low halves, and sixteen for the high ones, 32 behind.
        let quad = group / 8 * 64 + group % 8 / 2 * 16 + group % 2 * 4;
        let mut low = [Vec4::splat(0.0); 4];
        let mut high = [Vec4::splat(0.0); 4];
        let mut sums = Vec2::splat(0.0);
        let mut most = Vec4::splat(0.0);
        for k in unroll(0..4) {
            low[k] = x.vec4(min(quad + k, x_quads - 1));
            high[k] = x.vec4(min(quad + 8 + k, x_quads - 1));
            sums += Vec2::new(low[k].dot(Vec4::splat(1.0)), high[k].dot(Vec4::splat(1.0)));
            most = max(most, max(abs(low[k]), abs(high[k])));
        }
        // A power of two that brings the greatest to 22 bits.
        let exponent = max(bitcast::<u32>(max(max(most.x, most.y), max(most.z, most.w))) >> 23, 22);
        let scale = bitcast::<f32>((275 - exponent) << 23);
        let unit = bitcast::<f32>((exponent - 21) << 23);
        let mut low_bytes = [Vec3::<u32>::splat(0); 4];
        let mut high_bytes = [Vec3::<u32>::splat(0); 4];
        for k in unroll(0..4) {
            low_bytes[k] = bytes_of(low[k], scale);
            high_bytes[k] = bytes_of(high[k], scale);
        }
        // The last rows stand apart, since nothing is read ahead of them that would have to be waited for.
        let chunks = rows.div_ceil(ROWS);
        for chunk in 1..chunks {
            let slot = chunk * ROWS;
            let mut next_scales = [Vec4::<u32>::splat(0); ROWS];
            let mut next_numbers = [Vec4::<u32>::splat(0); ROWS];
            for k in unroll(0..ROWS) {
                let block = block_of(first + slot + k, blocks, group);
                next_scales[k] = weights.vec4(min(block, quads - 1));
                next_numbers[k] = weights.vec4(min(block + 1 + group % 8, quads - 1));
            }
            add_rows(&mut partial, slot - ROWS, segment, blocks, scales, numbers, low_bytes, high_bytes, unit, sums);
            for k in unroll(0..ROWS) {
                scales[k] = next_scales[k];
                numbers[k] = next_numbers[k];
            }
        }
        let last = (chunks - 1) * ROWS;
        add_rows(&mut partial, last, segment, blocks, scales, numbers, low_bytes, high_bytes, unit, sums);
    }
    barrier();
    // Of each row an invocation adds up a few sums, each part from others on, for the banks' sake; then one adds up theirs.
    // Rows that nobody has written to are not looked at.
    let row = min(min(lane / PARTS, MOST_ROWS - 1), rows - 1);
    let part = lane % PARTS;
    let mut sum = 0.0;
    for k in unroll(0..SIZE / PARTS) {
        sum += partial[row * NEXT_ROW + part * (SIZE / PARTS) + (k + part * 8) % (SIZE / PARTS)];
    }
    barrier();
    partial[lane] = sum;
    barrier();
    if lane < rows && first + lane < y.len() {
        let mut total = 0.0;
        for part in unroll(0..PARTS) {
            total += partial[lane * PARTS + part];
        }
        y[first + lane] = total;
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
    let each = rows.div_ceil(MOST_GROUPS).clamp(1, MOST_ROWS);
    Ok(vec![q4_k_matvec(weights, x, y, blocks, each)?.groups(rows.div_ceil(each))])
}
