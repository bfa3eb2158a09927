//! Square tiles, for products that fill a device with them.
//!
//! **Who does what.** A workgroup of 256 invocations computes `EDGE` by `EDGE` elements of C. It goes along K in steps of `DEPTH`; the pieces of A and B for a step lie in workgroup memory, k by k, and two steps
//! fit at once: while one is multiplied, the next is read from the buffers into registers and then written to the other half, so that there is one barrier a step. Reads are in no branch: behind the last
//! step they are past the end, which costs no memory. An invocation keeps `(EDGE / 16)^2` elements of C in registers, as vectors of four along N.
//!
//! **Who is where.** Eight rows of groups by four columns of them make a block of 32 invocations, so that what 32 invocations read of either operand is 16 bytes that are all of them, or 128: each
//! read of workgroup memory is one pass. In a tile of 128 an invocation has two such blocks along either axis.
//!
//! **Operands** lie with their elements together either along K or across it, which constants of a pipeline say (`gather`); so all four ways of transposing are one kernel. What is read along K is written to
//! workgroup memory one by one, with groups of four rows moved by what number the group of k's has, so that neighbours write to different banks.
//!
//! `EDGE * DEPTH * 16` bytes of workgroup memory are taken: 16 KiB, which every device has, by tiles of 64 with 16 along K and of 128 with 8.
//! A processor has its own way (`trefoil_host::product`).

use trefoil_dsl::prelude::*;

use super::tile_of;
use crate::activation::{Activation, activate};

/// Invocations.
#[device]
const SIZE: usize = 256;

/// Four elements of a line of `length`, as `f32`, from group `quad` on; zero outside. Outside it reads past the end, which gives zero without a branch. Without `WIDE` they are
/// read one by one, from any place, and may be fewer.
#[device]
pub fn gather<T: Float, const WIDE: bool>(
    x: &[T],
    first: usize,
    line: usize,
    lines: usize,
    quad: usize,
    length: usize,
    stride: usize,
) -> Vec4<f32> {
    if WIDE {
        let inside = line < lines && quad * 4 < length;
        x.vec4(select(inside, (first + line * stride) / 4 + quad, x.len())).to_f32()
    } else {
        let at = first + line * stride + quad * 4;
        let left = select(line < lines, length, 0);
        let mut four = Vec4::splat(T::lit(0.0));
        for lane in unroll(0..4) {
            four[lane] = x[select(quad * 4 + lane < left, at + lane, x.len())];
        }
        four.to_f32()
    }
}

/// Four elements as they go to workgroup memory: along K one by one, across it as they are.
#[device]
fn hand_over<const EDGE: usize>(
    steps: &mut [f32],
    half: usize,
    line: usize,
    quad: usize,
    four: Vec4<f32>,
    along: bool,
) {
    if along {
        let first = half + quad * 4 * EDGE + (line ^ (quad % 4 * 8));
        steps[first] = four.x;
        steps[first + EDGE] = four.y;
        steps[first + 2 * EDGE] = four.z;
        steps[first + 3 * EDGE] = four.w;
    } else {
        steps.set_vec4(half / 4 + line * (EDGE / 4) + (quad ^ (line / 4 % 4 * 2)), four);
    }
}

/// The product in tiles of `EDGE` by `EDGE`.
///
/// * `sizes`: M, N and K. `strides`: from one matrix and one line to the next, of A and of B.
/// * `a_along`, `b_along`: whether lines go along K, so that they are rows of A and columns of B; otherwise they go across it.
/// * Without `WIDE` extents and strides are any; with it those along lines are multiples of 4.
/// * `EACH`: how many groups of four an invocation moves of either operand in a step, `EDGE * DEPTH / 1024`.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn multiply<
    A: Float,
    B: Float,
    C: Float,
    const EDGE: usize,
    const DEPTH: usize,
    const EACH: usize,
    const WIDE: bool,
>(
    a: &[A],
    b: &[B],
    bias: &[C],
    c: &mut [C],
    a_steps: &mut [f32],
    b_steps: &mut [f32],
    sizes: [usize; 3],
    strides: [usize; 4],
    a_along: bool,
    b_along: bool,
    activation: Activation,
) {
    let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
    let tiles = m.div_ceil(EDGE) * n.div_ceil(EDGE);
    let batch = group_index() / tiles;
    let tile = tile_of(group_index() % tiles, m.div_ceil(EDGE), n.div_ceil(EDGE));
    let local = local_index();
    // Neighbours move groups that lie together.
    let a_line = if a_along { local / (DEPTH / 4) } else { local / (EDGE / 4) };
    let a_quad = if a_along { local % (DEPTH / 4) } else { local % (EDGE / 4) };
    let b_line = if b_along { local / (DEPTH / 4) } else { local / (EDGE / 4) };
    let b_quad = if b_along { local % (DEPTH / 4) } else { local % (EDGE / 4) };
    let a_apart = if a_along { SIZE / (DEPTH / 4) } else { SIZE / (EDGE / 4) };
    let b_apart = if b_along { SIZE / (DEPTH / 4) } else { SIZE / (EDGE / 4) };
    // Where the tile begins among lines and along them, and where both end; a step later one of them is further.
    let (a_top, b_top) = (tile.x * EDGE, tile.y * EDGE);
    let (a_first, b_first) = (batch * strides[0], batch * strides[2]);
    let (a_lines, a_length) = (select(a_along, m, k), select(a_along, k, m));
    let (b_lines, b_length) = (select(b_along, n, k), select(b_along, k, n));

    let mut a_next = [Vec4::splat(0.0); EACH];
    let mut b_next = [Vec4::splat(0.0); EACH];
    for p in unroll(0..EACH) {
        let line = a_line + p * a_apart + select(a_along, a_top, 0);
        let quad = a_quad + select(a_along, 0, a_top / 4);
        a_next[p] = gather::<A, WIDE>(a, a_first, line, a_lines, quad, a_length, strides[1]);
        let line = b_line + p * b_apart + select(b_along, b_top, 0);
        let quad = b_quad + select(b_along, 0, b_top / 4);
        b_next[p] = gather::<B, WIDE>(b, b_first, line, b_lines, quad, b_length, strides[3]);
    }
    for p in unroll(0..EACH) {
        hand_over::<EDGE>(a_steps, 0, a_line + p * a_apart, a_quad, a_next[p], a_along);
        hand_over::<EDGE>(b_steps, 0, b_line + p * b_apart, b_quad, b_next[p], b_along);
    }
    barrier();

    // The groups of four that an invocation has: in a tile of 128 two along either axis.
    let (block, lane) = (local / 32, local % 32);
    let own_row = block / 4 * (EDGE / 8) + (lane >> 1 & 7);
    let own_column = block % 4 * (EDGE / 16) + (lane & 1 | lane >> 3 & 2);
    // Of a tile of 64 the first four.
    let mut sums = [Vec4::splat(0.0); 16];
    for step in 0..k.div_ceil(DEPTH) {
        let further = (step + 1) * DEPTH;
        for p in unroll(0..EACH) {
            let line = a_line + p * a_apart + select(a_along, a_top, further);
            let quad = a_quad + select(a_along, further / 4, a_top / 4);
            a_next[p] = gather::<A, WIDE>(a, a_first, line, a_lines, quad, a_length, strides[1]);
            let line = b_line + p * b_apart + select(b_along, b_top, further);
            let quad = b_quad + select(b_along, further / 4, b_top / 4);
            b_next[p] = gather::<B, WIDE>(b, b_first, line, b_lines, quad, b_length, strides[3]);
        }
        let here = step % 2 * (DEPTH * EDGE / 4);
        for four in unroll(0..DEPTH / 4) {
            // By how much the groups of these four k's are moved.
            let moved = four % 4 * 2;
            for inner in unroll(0..4) {
                let first = here + (four * 4 + inner) * (EDGE / 4);
                for column_half in unroll(0..EDGE / 64) {
                    let right = b_steps.vec4(first + ((own_column + column_half * 4) ^ moved));
                    for row_half in unroll(0..EDGE / 64) {
                        let left = a_steps.vec4(first + ((own_row + row_half * 8) ^ moved));
                        let at = column_half * 8 + row_half * 4;
                        sums[at] = right * left.x + sums[at];
                        sums[at + 1] = right * left.y + sums[at + 1];
                        sums[at + 2] = right * left.z + sums[at + 2];
                        sums[at + 3] = right * left.w + sums[at + 3];
                    }
                }
            }
        }
        let there = (step + 1) % 2 * (DEPTH * EDGE);
        for p in unroll(0..EACH) {
            hand_over::<EDGE>(a_steps, there, a_line + p * a_apart, a_quad, a_next[p], a_along);
            hand_over::<EDGE>(b_steps, there, b_line + p * b_apart, b_quad, b_next[p], b_along);
        }
        barrier();
    }

    for column_half in unroll(0..EDGE / 64) {
        let column = (tile.y * (EDGE / 4) + own_column + column_half * 4) * 4;
        let mut offset = Vec4::splat(0.0);
        if !bias.is_empty() {
            offset = gather::<C, WIDE>(bias, 0, 0, 1, column / 4, n, 0);
        }
        for row_half in unroll(0..EDGE / 64) {
            for r in unroll(0..4) {
                let row = tile.x * EDGE + (own_row + row_half * 8) * 4 + r;
                if row < m && column < n {
                    let sum = sums[column_half * 8 + row_half * 4 + r] + offset;
                    let first = (batch * m + row) * n + column;
                    if WIDE {
                        let mut all = sum;
                        for lane in unroll(0..4) {
                            all[lane] = activate(sum[lane], activation);
                        }
                        c.set_vec4(first / 4, Vec4::<C>::from_f32(all));
                    } else {
                        for lane in unroll(0..4) {
                            if column + lane < n {
                                c[first + lane] = C::from_f32(activate(sum[lane], activation));
                            }
                        }
                    }
                }
            }
        }
    }
}
