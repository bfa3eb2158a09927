//! Products of halves on matrix units, summed in `f32`.
//!
//! **Idea.** A workgroup of eight subgroups computes a tile of C. It goes along K 32 at a time, or 64: a tile of each operand lies in workgroup memory, and while the subgroups multiply them, the reads of
//! the next are under way to registers. They are in no branch, lest a device wait for one before it begins the next: behind the last step they are past the end. Each subgroup keeps its part of the tile in accumulators of
//! 16 by 16. Workgroups that run together have tiles that lie together, so that the operands come from the cache.
//!
//! | kernel | tile | a subgroup's part | along K | for |
//! |---|---|---|---|---|
//! | `large` | 128 by 256 | 64 by 64 | 32 | products that fill a device |
//! | `middle` | 64 by 128 | 32 by 32 | 64 | fewer tiles, or K in parts |
//! | `low` | 16 by 256 | 16 by 32 | 32 | few rows, where reading B is all that counts |
//!
//! **Operands.** K is contiguous in A, N or K in B; both are read 16 bytes at a time, so that N, K and all strides are multiples of 8. What is outside a matrix is zero.
//!
//! **Workgroup memory.** A's tile, and behind it B's, in lines that are odd multiples of 16 bytes apart, so that their reads meet no bank twice; in the end what is written, since only there the place of each element is known, which bias,
//! activation and edges ask for. Sums that are wanted as they are or as `f16`, of whole tiles, go to memory straight from their accumulators.
//!
//! **Subgroups** beyond the eighth, on devices with small ones, do again what the one eight before does; with subgroups of more than 32 there would not be eight.
//!
//! **Parts.** Where tiles are too few for a device, K is cut in parts of `length`, whose sums [`mod@super::narrow`] adds up.

use trefoil_dsl::prelude::*;

use super::{activate_quad, tile_of};
use trefoil_kernels_common::activation::Activation;
use trefoil_kernels_common::pieces::{floats, unpack_bf16, unpack_f16};

/// The largest subgroup of which there are eight.
pub const LARGEST_SUBGROUP: u32 = 32;
/// How far a workgroup goes along K at once, in pieces of eight elements.
#[device]
pub const DEPTH: usize = 4;
/// The same of the tile in the middle, which has the registers and the workgroup memory for it: fewer waits, and each for twice as much.
#[device]
pub const MIDDLE_DEPTH: usize = 8;
/// Subgroups.
#[device]
const SUBGROUPS: usize = 8;
/// From one row to the next, of 32 sums as they are written, in pieces.
#[device]
const OUT_LINE: usize = 9;

/// A piece of a line of `length` pieces; zero outside, which nothing is if the matrix is `whole`, without a branch.
#[device]
#[expect(clippy::too_many_arguments, reason = "a matrix's shape, and a place in it")]
fn piece(
    x: &[Vec4<u32>],
    first: usize,
    line: usize,
    lines: usize,
    at: usize,
    length: usize,
    stride: usize,
    whole: bool,
) -> Vec4<u32> {
    x[select(whole || line < lines && at < length, first + line * stride + at, x.len())]
}

/// The bits of four floats.
#[device]
fn bits_of(x: Vec4<f32>) -> Vec4<u32> {
    Vec4::new(x.x.to_bits(), x.y.to_bits(), x.z.to_bits(), x.w.to_bits())
}

/// Two floats as `f16` in a word.
#[device]
fn pack_f16(x: f32, y: f32) -> u32 {
    f16::from_f32(x).to_bits() as u32 | (f16::from_f32(y).to_bits() as u32) << 16
}

/// Two floats as `bf16` in a word.
#[device]
fn pack_bf16(x: f32, y: f32) -> u32 {
    bf16::from_f32(x).to_bits() as u32 | (bf16::from_f32(y).to_bits() as u32) << 16
}

/// The kernels of a type, and the list of them: `(how two floats become a word and a piece becomes floats, whether accumulators become matrices of the type, which are f16's alone)`, how many matrices a subgroup has above and
/// beside each other, how many subgroups stand above each other, how deep a step is, and the pieces of workgroup memory.
macro_rules! matrices {
    ($($(#[$doc:meta])* $name:ident $T:ident ($pack:ident, $unpack:ident, $half:literal) $high:literal by $wide:literal, $down:literal subgroups down, $depth:ident deep, $pieces:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// * `sizes`: M, and in pieces of eight N and K. `strides`: of batches and lines of A and of B, in pieces; a line of B is a row, or with `B_ALONG` a column.
            /// * `parts` of `length` pieces of K; with several of them `single`, without bias and activation.
            /// * `WHOLE`: whether M and N are multiples of the tile's and every part of the depth, which spares it looking at edges; behind the last step it is read again then.
            /// * `single`: whether C and the bias are `f32`; otherwise they are of the operands' type.
            #[kernel(
                workgroup(256),
                targets(spirv, cuda, cpu),
                requires(CooperativeMatrices),
                no_robustness,
                instances(B_ALONG = [false, true]),
                specialise(WHOLE: bool = false)
            )]
            pub fn $name<const B_ALONG: bool>(
                a: &[Vec4<u32>],
                b: &[Vec4<u32>],
                bias: &[Vec4<u32>],
                c: &mut [Vec4<u32>],
                sizes: [usize; 3],
                strides: [usize; 4],
                parts: usize,
                length: usize,
                single: bool,
                activation: Activation,
            ) {
                let mut shared = workgroup_array::<Vec4<u32>>($pieces);
                let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
                // From one line along K to the next in workgroup memory, and how many lines the workgroup moves at once.
                let (deep_line, at_once) = ($depth + 1, 256 / $depth);
                let high = $down * $high * 16;
                // The columns of a tile in pieces, and what a row of B's tile takes.
                let across = SUBGROUPS / $down * $wide * 2;
                let row_line = across + 1;
                let right = high * deep_line;
                let (row_tiles, column_tiles) = (m.div_ceil(high), n.div_ceil(across));
                let unit = group_index() / (row_tiles * column_tiles);
                let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
                let (batch, part) = (unit / parts, unit % parts);
                let (row, column) = (tile.x * high, tile.y * across);
                let (a_first, b_first) = (batch * strides[0], batch * strides[2]);
                let from = min(part * length, k);
                let to = min(from + length, k);
                let i = local_index();
                // Neighbours move pieces that lie together.
                let (along_line, along_piece) = (i / $depth, i % $depth);
                let (across_line, across_piece) = (i / across, i % across);
                let across_apart = 256 / across;
                let subgroup = subgroup_index() % SUBGROUPS;
                let (top, start) = (subgroup % $down * ($high * 16), subgroup / $down * ($wide * 16));

                let mut sums = [[Accumulator::<f32, 16, 16>::fill(0.0); $wide]; $high];
                let mut a_next = [Vec4::<u32>::splat(0); ($down * $high * $depth + 15) / 16];
                let mut b_next = [Vec4::<u32>::splat(0); $depth];
                // The first round only reads.
                for p in unroll(0..($down * $high * $depth + 15) / 16) {
                    let line = row + along_line + p * at_once;
                    a_next[p] = piece(a, a_first, line, m, from + along_piece, to, strides[1], WHOLE);
                }
                for p in unroll(0..$depth) {
                    if p < across * $depth / 32 {
                        if B_ALONG {
                            let line = column * 8 + along_line + p * at_once;
                            b_next[p] = piece(b, b_first, line, n * 8, from + along_piece, to, strides[3], WHOLE);
                        } else {
                            let line = from * 8 + across_line + p * across_apart;
                            b_next[p] = piece(b, b_first, line, to * 8, column + across_piece, n, strides[3], WHOLE);
                        }
                    }
                }
                let steps = (to - from).div_ceil($depth);
                for step in 0..steps {
                    for p in unroll(0..($down * $high * $depth + 15) / 16) {
                        if along_line + p * at_once < high {
                            shared[(along_line + p * at_once) * deep_line + along_piece] = a_next[p];
                        }
                    }
                    for p in unroll(0..$depth) {
                        if p < across * $depth / 32 {
                            if B_ALONG {
                                shared[right + (along_line + p * at_once) * deep_line + along_piece] = b_next[p];
                            } else {
                                shared[right + (across_line + p * across_apart) * row_line + across_piece] = b_next[p];
                            }
                        }
                    }
                    barrier();
                    let depth = from + select(WHOLE, min(step + 1, steps - 1), step + 1) * $depth;
                    for p in unroll(0..($down * $high * $depth + 15) / 16) {
                        let line = row + along_line + p * at_once;
                        a_next[p] = piece(a, a_first, line, m, depth + along_piece, to, strides[1], WHOLE);
                    }
                    for p in unroll(0..$depth) {
                        if p < across * $depth / 32 {
                            if B_ALONG {
                                let line = column * 8 + along_line + p * at_once;
                                b_next[p] = piece(b, b_first, line, n * 8, depth + along_piece, to, strides[3], WHOLE);
                            } else {
                                let line = depth * 8 + across_line + p * across_apart;
                                b_next[p] = piece(b, b_first, line, to * 8, column + across_piece, n, strides[3], WHOLE);
                            }
                        }
                    }
                    for d in unroll(0..$depth / 2) {
                        let mut sides = [MatrixA::<$T, 16, 16>::fill($T::from_f32(0.0)); $high];
                        for y in unroll(0..$high) {
                            sides[y] = MatrixA::load(&shared, (top + y * 16) * deep_line + d * 2, deep_line);
                        }
                        for x in unroll(0..$wide) {
                            let side = if B_ALONG {
                                MatrixB::<$T, 16, 16>::load_columns(&shared, right + (start + x * 16) * deep_line + d * 2, deep_line)
                            } else {
                                let at = right + d * 16 * row_line + start / 8 + x * 2;
                                MatrixB::<$T, 16, 16>::load(&shared, at, row_line)
                            };
                            for y in unroll(0..$high) {
                                sums[y][x] = multiply_add(sides[y], side, sums[y][x]);
                            }
                        }
                    }
                    barrier();
                }

                let plain = bias.is_empty() && activation == Activation::Identity;
                let inside = WHOLE || row + high <= m && column + across <= n;
                if plain && inside && single {
                    let first = (unit * m + row + top) * (n * 2) + column * 2 + start / 4;
                    for y in unroll(0..$high) {
                        for x in unroll(0..$wide) {
                            sums[y][x].store(c, first + y * 16 * (n * 2) + x * 4, n * 2);
                        }
                    }
                } else if $half && plain && inside {
                    let first = (unit * m + row + top) * n + column + start / 8;
                    for y in unroll(0..$high) {
                        for x in unroll(0..$wide) {
                            let halves = Accumulator::<f16, 16, 16>::convert(sums[y][x]);
                            halves.store(c, first + y * 16 * n + x * 2, n);
                        }
                    }
                } else {
                    // 16 rows by 32 columns of every subgroup at a time.
                    for round in 0..$high * $wide / 2 {
                        for y in unroll(0..$high) {
                            for x in unroll(0..$wide) {
                                if round == y * ($wide / 2) + x / 2 {
                                    sums[y][x].store(&mut shared, subgroup * (16 * OUT_LINE) + x % 2 * 4, OUT_LINE);
                                }
                            }
                        }
                        barrier();
                        for p in 0..2 {
                            let number = i + p * 256;
                            let (of, line, eighth) = (number / 64, number % 64 / 4, number % 4);
                            let to_row = row + of % $down * ($high * 16) + round / ($wide / 2) * 16 + line;
                            let to_piece = column + of / $down * ($wide * 2) + round % ($wide / 2) * 4 + eighth;
                            if WHOLE || to_row < m && to_piece < n {
                                let at = (of * 16 + line) * OUT_LINE + eighth * 2;
                                let mut low = floats(shared[at]);
                                let mut rest = floats(shared[at + 1]);
                                if !bias.is_empty() {
                                    if single {
                                        low = low + floats(bias[to_piece * 2]);
                                        rest = rest + floats(bias[to_piece * 2 + 1]);
                                    } else {
                                        let words = bias[to_piece];
                                        let (x, y) = ($unpack(words.x), $unpack(words.y));
                                        let (z, w) = ($unpack(words.z), $unpack(words.w));
                                        low = low + Vec4::new(x.x, x.y, y.x, y.y);
                                        rest = rest + Vec4::new(z.x, z.y, w.x, w.y);
                                    }
                                }
                                low = activate_quad(low, activation);
                                rest = activate_quad(rest, activation);
                                let place = (unit * m + to_row) * n + to_piece;
                                if single {
                                    c[place * 2] = bits_of(low);
                                    c[place * 2 + 1] = bits_of(rest);
                                } else {
                                    c[place] = Vec4::new(
                                        $pack(low.x, low.y),
                                        $pack(low.z, low.w),
                                        $pack(rest.x, rest.y),
                                        $pack(rest.z, rest.w),
                                    );
                                }
                            }
                        }
                        barrier();
                    }
                }
            }
        )*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static trefoil_dsl::artefact::Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

matrices! {
    /// `f16`, 128 by 256.
    matmul_matrices_large_f16 f16 (pack_f16, unpack_f16, true) 4 by 4, 2 subgroups down, DEPTH deep, 1920;
    /// `f16`, 64 by 128.
    matmul_matrices_middle_f16 f16 (pack_f16, unpack_f16, true) 2 by 2, 2 subgroups down, MIDDLE_DEPTH deep, 1728;
    /// `f16`, 16 by 256.
    matmul_matrices_low_f16 f16 (pack_f16, unpack_f16, true) 1 by 2, 1 subgroups down, DEPTH deep, 1360;
    /// `bf16`, 128 by 256.
    matmul_matrices_large_bf16 bf16 (pack_bf16, unpack_bf16, false) 4 by 4, 2 subgroups down, DEPTH deep, 1920;
    /// `bf16`, 64 by 128.
    matmul_matrices_middle_bf16 bf16 (pack_bf16, unpack_bf16, false) 2 by 2, 2 subgroups down, MIDDLE_DEPTH deep, 1728;
    /// `bf16`, 16 by 256.
    matmul_matrices_low_bf16 bf16 (pack_bf16, unpack_bf16, false) 1 by 2, 1 subgroups down, DEPTH deep, 1360;
}
