//! Square tiles, for products that fill a device with them.
//!
//! **Who does what.** A workgroup of [`SIZE`] invocations computes `EDGE` by `EDGE` elements of C. It goes along K in steps of `DEPTH`; the pieces of A and B for a step lie in workgroup memory, k by k, and two steps
//! fit at once: while one is multiplied, the next is in registers, from which it is written to the other half, and the one after that is asked for, so that there is one barrier a step. Reads are in no branch: behind the last
//! step they are past the end, which costs no memory. An invocation keeps `EDGE / 8` by `EDGE / 16` elements of C in registers, as vectors of four along N: in tiles of 128 a quarter of what reads
//! of workgroup memory would take otherwise is left, for which two workgroups on a multiprocessor are few but enough.
//!
//! **Who is where.** Eight rows of groups by four columns of them make a block of 32 invocations, so that what 32 invocations read of either operand is 16 bytes that are all of them, or 128: each
//! read of workgroup memory is one pass. A block has all rows of the tile, in `ROWS` parts, and a quarter of its columns, in `COLUMNS` parts.
//!
//! **Operands** lie with their elements together either along K or across it, which constants of a pipeline say; so all four ways of transposing are one kernel. What is read along K is written to
//! workgroup memory one by one, with groups of four rows moved by what number the group of k's has, so that neighbours write to different banks.
//!
//! **Parts.** Where tiles are too few for a device, K is cut in parts, whose sums [`mod@super::narrow`] adds up.
//!
//! `EDGE * DEPTH * 16` bytes of workgroup memory are taken: 16 KiB, which every device has, by tiles of 64 with 16 along K and of 128 with 8.
//! A processor has its own way (`trefoil_host::product`).

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use super::{activate_quad, tile_of};
use trefoil_kernels_common::activation::Activation;

/// Invocations.
#[device]
pub const SIZE: usize = 128;
/// Groups of four that an invocation moves of either operand in a step: `EDGE * DEPTH / 4` of a workgroup.
#[device]
pub const EACH: usize = 2;

/// The line and the place in it of a group of a piece, of which neighbours lie together in memory.
#[device]
fn line_and_quad<const EDGE: usize, const DEPTH: usize>(number: usize, along: bool) -> Vec2<usize> {
    if along {
        Vec2::new(number / (DEPTH / 4), number % (DEPTH / 4))
    } else {
        Vec2::new(number / (EDGE / 4), number % (EDGE / 4))
    }
}

/// A group of four elements that an invocation moves in each step: number `group.y` of line `group.x` of a piece that begins `top` elements across K, of which
/// there are `across`, and at `part.x` along K.
///
/// Where it begins in the first step, in elements from the operand's first and along K; where K ends for it, which is at `part.y`, and at 0 outside the matrix;
/// and how many elements there are across K from its first on.
#[device]
fn group_of(
    first: usize,
    group: Vec2<usize>,
    top: usize,
    across: usize,
    part: Vec2<usize>,
    stride: usize,
    along: bool,
) -> Vec4<usize> {
    let outer = top + select(along, group.x, group.y * 4);
    let inner = part.x + select(along, group.y * 4, group.x);
    let at = first + select(along, outer, inner) * stride + select(along, inner, outer);
    Vec4::new(at, inner, select(outer < across, part.y, 0), across - outer)
}

/// What a group holds `further` along K, as `f32`; zero outside. What is not there is read past the end, which gives zero without a branch. With `WIDE` all four elements are there or none, and they begin at a
/// multiple of four; without it they are read one by one.
#[device]
fn read<T: Float, const WIDE: bool>(
    x: &[T],
    group: Vec4<usize>,
    further: usize,
    stride: usize,
    along: bool,
) -> Vec4<f32> {
    let at = group.x + further * select(along, 1, stride);
    let k = group.y + further;
    let inside = k < group.z;
    if WIDE {
        x.vec4(select(inside, at / 4, x.len())).to_f32()
    } else {
        let left = select(inside, select(along, group.z - k, group.w), 0);
        let mut four = Vec4::splat(T::lit(0.0));
        for lane in unroll(0..4) {
            four[lane] = x[select(lane < left, at + lane, x.len())];
        }
        four.to_f32()
    }
}

/// The group of that number as it goes to workgroup memory: along K one by one, across it as it is. `half` and the places are vectors, so that drivers need not find which one an element is in.
#[device]
fn hand_over<const EDGE: usize, const DEPTH: usize>(
    steps: &mut [Vec4<f32>],
    half: usize,
    number: usize,
    four: Vec4<f32>,
    along: bool,
) {
    if along {
        let (line, quad) = (number / (DEPTH / 4), number % (DEPTH / 4));
        let first = half + (quad * EDGE + ((line / 4) ^ (quad * (32 / DEPTH))));
        let lane = line % 4;
        steps[first][lane] = four.x;
        steps[first + EDGE / 4][lane] = four.y;
        steps[first + EDGE / 2][lane] = four.z;
        steps[first + 3 * EDGE / 4][lane] = four.w;
    } else {
        let (line, quad) = (number / (EDGE / 4), number % (EDGE / 4));
        steps[half + (line * (EDGE / 4) + (quad ^ (line / 4 * (32 / DEPTH))))] = four;
    }
}

/// The product in tiles of `EDGE` by `EDGE`.
///
/// * `sizes`: M, N and K. `strides`: from one matrix and one line to the next, of A and of B.
/// * `parts`: how many workgroups share a tile's K, and how many elements of it each has, a multiple of `DEPTH`. Of several each has a C of its own, and no bias and no activation.
/// * `a_along`, `b_along`: whether lines go along K, so that they are rows of A and columns of B; otherwise they go across it.
/// * `early`: whether a step's pieces are handed over in the midst of its products, which drivers of Vulkan and wgpu overlap better; CUDA's compiler does so with those handed over behind them.
/// * `plain`: whether there is no activation, which spares a device the code of all of them.
/// * Without `WIDE` extents and strides are any; with it those along lines are multiples of 4.
/// * `ROWS` and `COLUMNS`: groups of four that an invocation has along either axis, `EDGE / 32` and `EDGE / 64`; `SUMS`: vectors of sums, four times their product.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn multiply<
    A: Float,
    B: Float,
    C: Float,
    const EDGE: usize,
    const DEPTH: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const SUMS: usize,
    const WIDE: bool,
>(
    a: &[A],
    b: &[B],
    bias: &[C],
    c: &mut [C],
    a_steps: &mut [Vec4<f32>],
    b_steps: &mut [Vec4<f32>],
    sizes: [usize; 3],
    strides: [usize; 4],
    parts: [usize; 2],
    a_along: bool,
    b_along: bool,
    plain: bool,
    early: bool,
    activation: Activation,
) {
    let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
    let tiles = m.div_ceil(EDGE) * n.div_ceil(EDGE);
    let unit = group_index() / tiles;
    let (batch, number) = (unit / parts[0], unit % parts[0]);
    let from = min(number * parts[1], k);
    let part = Vec2::new(from, min(from + parts[1], k));
    let tile = tile_of(group_index() % tiles, m.div_ceil(EDGE), n.div_ceil(EDGE));
    let local = local_index();

    let mut a_groups = [Vec4::splat(0usize); EACH];
    let mut b_groups = [Vec4::splat(0usize); EACH];
    for p in unroll(0..EACH) {
        let a_group = line_and_quad::<EDGE, DEPTH>(local + p * SIZE, a_along);
        let b_group = line_and_quad::<EDGE, DEPTH>(local + p * SIZE, b_along);
        a_groups[p] = group_of(batch * strides[0], a_group, tile.x * EDGE, m, part, strides[1], a_along);
        b_groups[p] = group_of(batch * strides[2], b_group, tile.y * EDGE, n, part, strides[3], b_along);
    }
    let mut a_next = [Vec4::splat(0.0); EACH];
    let mut b_next = [Vec4::splat(0.0); EACH];

    let (block, lane) = (local / 32, local % 32);
    let own_row = lane >> 1 & 7;
    let own_column = block * (EDGE / 16) + (lane & 1 | lane >> 3 & 2);
    let mut sums = [Vec4::splat(0.0); SUMS];
    for p in unroll(0..EACH) {
        a_next[p] = read::<A, WIDE>(a, a_groups[p], 0, strides[1], a_along);
        b_next[p] = read::<B, WIDE>(b, b_groups[p], 0, strides[3], b_along);
    }
    for p in unroll(0..EACH) {
        hand_over::<EDGE, DEPTH>(a_steps, 0, local + p * SIZE, a_next[p], a_along);
        hand_over::<EDGE, DEPTH>(b_steps, 0, local + p * SIZE, b_next[p], b_along);
    }
    for p in unroll(0..EACH) {
        a_next[p] = read::<A, WIDE>(a, a_groups[p], DEPTH, strides[1], a_along);
        b_next[p] = read::<B, WIDE>(b, b_groups[p], DEPTH, strides[3], b_along);
    }
    barrier();

    for step in 0..(part.y - part.x).div_ceil(DEPTH) {
        let here = step % 2 * (DEPTH * EDGE / 4);
        let other = (step + 1) % 2 * (DEPTH * EDGE / 4);
        let further = (step + 2) * DEPTH;
        for stage in unroll(0..2) {
            for inner in unroll(stage * (DEPTH / 2)..(stage + 1) * (DEPTH / 2)) {
                // By how much the groups of these four k's are moved. Parts of rows lie 8 apart, which that does not touch, so that one address serves them all; of the columns of a large tile it
                // makes the parts trade places.
                let moved = inner / 4 * (32 / DEPTH);
                let row_here = here + (own_row ^ moved);
                let column_here = here + (own_column ^ ((2 - COLUMNS) * moved));
                for row_part in unroll(0..ROWS) {
                    let left = a_steps[row_here + (inner * (EDGE / 4) + row_part * 8)];
                    for column_part in unroll(0..COLUMNS) {
                        let column_apart = (COLUMNS - 1) * ((column_part * 4) ^ moved);
                        let right = b_steps[column_here + (inner * (EDGE / 4) + column_apart)];
                        let at = (column_part * ROWS + row_part) * 4;
                        sums[at] = right * left.x + sums[at];
                        sums[at + 1] = right * left.y + sums[at + 1];
                        sums[at + 2] = right * left.z + sums[at + 2];
                        sums[at + 3] = right * left.w + sums[at + 3];
                    }
                }
            }
            if (stage == 0) == early {
                for p in unroll(0..EACH) {
                    hand_over::<EDGE, DEPTH>(a_steps, other, local + p * SIZE, a_next[p], a_along);
                    hand_over::<EDGE, DEPTH>(b_steps, other, local + p * SIZE, b_next[p], b_along);
                }
                // They are wanted in a step from now: compilers put a read off to the end of the step in which it is made, and the next one is behind a barrier.
                for p in unroll(0..EACH) {
                    a_next[p] = read::<A, WIDE>(a, a_groups[p], further, strides[1], a_along);
                    b_next[p] = read::<B, WIDE>(b, b_groups[p], further, strides[3], b_along);
                }
            }
        }
        barrier();
    }

    for column_part in unroll(0..COLUMNS) {
        let column = (tile.y * (EDGE / 4) + own_column + column_part * 4) * 4;
        let mut offset = Vec4::splat(0.0);
        if !bias.is_empty() {
            let own = Vec4::new(column, 0, select(column < n, 1, 0), n - column);
            offset = read::<C, WIDE>(bias, own, 0, 0, false);
        }
        for row_part in unroll(0..ROWS) {
            for r in unroll(0..4) {
                let row = tile.x * EDGE + (own_row + row_part * 8) * 4 + r;
                if row < m && column < n {
                    let mut sum = sums[(column_part * ROWS + row_part) * 4 + r] + offset;
                    if !plain {
                        sum = activate_quad(sum, activation);
                    }
                    let first = (unit * m + row) * n + column;
                    if WIDE {
                        c.set_vec4(first / 4, Vec4::<C>::from_f32(sum));
                    } else {
                        for lane in unroll(0..4) {
                            if column + lane < n {
                                c[first + lane] = C::from_f32(sum[lane]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A kernel in tiles: attributes, generics, `A, B => C`, the tile's edge and how far it goes along K, groups of four that an invocation has, and whether it reads four elements at a time.
macro_rules! tiled {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty,
        $edge:literal by $depth:literal, $rows:literal by $columns:literal, $wide:literal
    ) => {
        $(#[$doc])*
        #[kernel(
            workgroup(128),
            no_robustness,
            specialise(A_ALONG: bool = true; B_ALONG: bool = false; PLAIN: bool = false; EARLY: bool = true),
            $($attribute)*
        )]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            bias: &[$c],
            c: &mut [$c],
            sizes: [usize; 3],
            strides: [usize; 4],
            parts: [usize; 2],
            activation: Activation,
        ) {
            let mut a_steps = workgroup_array::<Vec4<f32>>($edge * $depth / 2);
            let mut b_steps = workgroup_array::<Vec4<f32>>($edge * $depth / 2);
            multiply::<$a, $b, $c, $edge, $depth, $rows, $columns, { 4 * $rows * $columns }, $wide>(
                a, b, bias, c, &mut a_steps, &mut b_steps, sizes, strides, parts, A_ALONG, B_ALONG, PLAIN, EARLY, activation,
            );
        }
    };
}

kernels! {
    /// In tiles of 128, 8 along K.
    tiled! matmul_tiled_128 {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 128 by 8, 4 by 2, true
    }
    /// In tiles of 128, 8 along K, of `f32` and halves.
    tiled! matmul_tiled_128_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 128 by 8, 4 by 2, true
    }
    /// In tiles of 64.
    tiled! matmul_tiled_64 {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of halves, with sums as results.
    tiled! matmul_tiled_64_wide {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] T, T => f32, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of `f32` and halves.
    tiled! matmul_tiled_64_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of any extents.
    tiled! matmul_tiled_any {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 64 by 16, 2 by 1, false
    }
    /// In tiles of 64, of any extents, of halves, with sums as results.
    tiled! matmul_tiled_any_wide {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] T, T => f32, 64 by 16, 2 by 1, false
    }
    /// In tiles of 64, of any extents, of `f32` and halves.
    tiled! matmul_tiled_any_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 64 by 16, 2 by 1, false
    }
}
