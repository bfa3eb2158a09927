//! Products of up to [`MOST`] rows, where reading B is all that counts.
//!
//! Each element of B is read once, 16 bytes at a time, and an invocation asks for all that it uses in a step before it uses the first. What is outside is read past the end, which gives zero: there is no
//! branch around a read. A, which is small, comes from caches. K is shared by the invocations of a workgroup, whose sums meet at the end, so that one launch is enough.
//!
//! | B's lines | who does what |
//! |---|---|
//! | along K | a team of `1 << bits` neighbours computes two columns of one row, or four columns of several rows; neighbours read what lies together |
//! | across K | `1 << bits` neighbours have a piece of 16 bytes of a line each, and the workgroup's other invocations pieces of other lines: eight lines, one after the other, at a time |
//!
//! The number of rows is a constant of the pipeline, a power of two that M does not exceed. **Matrices of few columns** are the same with the operands exchanged, since the transposed product is that of the transposed
//! operands: `exchanged` says that C and the bias lie so.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate};
use trefoil_kernels_common::pieces::{floats, four_bf16, four_f16, four_f32};
use trefoil_kernels_common::team::{SIZE, known_or, standing};

/// The most rows.
#[device]
pub const MOST: usize = 8;
/// Columns of a team that computes one row: what it reads of that serves both.
#[device]
pub const COLUMNS_OF_ONE: usize = 2;
/// Columns of a team that computes several rows.
#[device]
pub const COLUMNS: usize = 4;
/// How often [`MOST`] times [`COLUMNS`], as many values as a team has at most, can be halved.
#[device]
const HALVINGS: usize = 5;
/// Pieces along K that an invocation has of each column in a step.
#[device]
pub const PIECES: usize = 2;
/// Lines across K that an invocation reads in a step.
#[device]
pub const LINES: usize = 8;
/// Workgroups that fill a multiprocessor of 2048 invocations.
pub const MOST_RESIDENT: usize = 2048 / SIZE;
/// Elements of workgroup memory: eight values of each invocation.
#[device]
pub const SCRATCH: usize = 8 * SIZE;
/// The smallest subgroups whose parts of all values that has room for.
pub const LEAST_SUBGROUP: usize = SIZE * MOST * COLUMNS / SCRATCH;

/// `sum` and the products of four pairs.
#[device]
fn add_products(x: Vec4<f32>, y: Vec4<f32>, sum: f32) -> f32 {
    x.w * y.w + (x.z * y.z + (x.y * y.y + (x.x * y.x + sum)))
}

/// Writes an element of C, if it is one, of the sum at `row` and `column`.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is the end of two kernels")]
fn finish<C: Float>(
    bias: &[C],
    c: &mut [C],
    batch: usize,
    row: usize,
    column: usize,
    sizes: [usize; 3],
    exchanged: bool,
    sum: f32,
    activation: Activation,
) {
    let (m, n) = (sizes[0], sizes[1]);
    if row < m && column < n {
        let mut whole = sum;
        if !bias.is_empty() {
            whole += bias[if exchanged { row } else { column }].to_f32();
        }
        let place = if exchanged { column * m + row } else { row * n + column };
        c[batch * m * n + place] = C::from_f32(activate(whole, activation));
    }
}

/// The product with lines of B along K.
///
/// * `QUADS`: how many groups of four elements of B are a piece, which `four` makes floats of. `SINGLE`: whether A is `f32`; otherwise it is of B's type.
/// * `sizes`: M, N and K, a multiple of a piece. `strides`: of batches and lines of A and of B, in pieces.
/// * `rows`: a power of two, at least M, up to [`MOST`].
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn along<C: Float, const QUADS: usize, const SINGLE: bool, F: Fn(Vec4<u32>, usize) -> Vec4<f32>>(
    a: &[Vec4<u32>],
    b: &[Vec4<u32>],
    bias: &[C],
    c: &mut [C],
    scratch: &mut [f32],
    sizes: [usize; 3],
    strides: [usize; 4],
    bits: usize,
    exchanged: bool,
    activation: Activation,
    rows: usize,
    four: F,
) {
    let (m, n, k) = (sizes[0], sizes[1], sizes[2] / (4 * QUADS));
    let team = 1 << bits;
    let at = standing() & (team - 1);
    let own = standing() >> bits;
    let columns = if rows == 1 { COLUMNS_OF_ONE } else { COLUMNS };
    let values = rows * columns;
    let blocks = n.div_ceil((SIZE >> bits) * columns);
    let batch = group_index() / blocks;
    let column = (group_index() % blocks * (SIZE >> bits) + own) * columns;
    let (a_first, b_first) = (batch * strides[0], batch * strides[2] + column * strides[3]);

    let mut sums = [0.0; MOST * COLUMNS];
    if rows == 1 {
        for step in 0..k.div_ceil(PIECES * team) {
            let piece = step * (PIECES * team) + at;
            let mut read = [Vec4::<u32>::splat(0); PIECES * COLUMNS_OF_ONE];
            for p in unroll(0..PIECES) {
                let here = piece + p * team;
                for j in unroll(0..COLUMNS_OF_ONE) {
                    let inside = here < k && column + j < n;
                    read[p * COLUMNS_OF_ONE + j] = b[select(inside, b_first + j * strides[3] + here, b.len())];
                }
            }
            for p in unroll(0..PIECES) {
                let here = piece + p * team;
                for h in unroll(0..QUADS) {
                    let left = if SINGLE {
                        floats(a[select(here < k, a_first + here * QUADS + h, a.len())])
                    } else {
                        four(a[select(here < k, a_first + here, a.len())], h)
                    };
                    for j in unroll(0..COLUMNS_OF_ONE) {
                        let own = p * COLUMNS_OF_ONE + j;
                        sums[own] = add_products(left, four(read[own], h), sums[own]);
                    }
                }
            }
        }
        for p in unroll(1..PIECES) {
            for j in unroll(0..COLUMNS_OF_ONE) {
                sums[j] += sums[p * COLUMNS_OF_ONE + j];
            }
        }
    } else {
        for step in 0..k.div_ceil(PIECES * team) {
            let piece = step * (PIECES * team) + at;
            let mut read = [Vec4::<u32>::splat(0); PIECES * COLUMNS];
            for p in unroll(0..PIECES) {
                let here = piece + p * team;
                for j in unroll(0..COLUMNS) {
                    let inside = here < k && column + j < n;
                    read[p * COLUMNS + j] = b[select(inside, b_first + j * strides[3] + here, b.len())];
                }
            }
            for p in unroll(0..PIECES) {
                let here = piece + p * team;
                for r in unroll(0..MOST) {
                    if r < rows {
                        let inside = r < m && here < k;
                        for h in unroll(0..QUADS) {
                            let left = if SINGLE {
                                floats(a[select(inside, a_first + r * strides[1] + here * QUADS + h, a.len())])
                            } else {
                                four(a[select(inside, a_first + r * strides[1] + here, a.len())], h)
                            };
                            for j in unroll(0..COLUMNS) {
                                let right = four(read[p * COLUMNS + j], h);
                                sums[r * COLUMNS + j] = add_products(left, right, sums[r * COLUMNS + j]);
                            }
                        }
                    }
                }
            }
        }
    }

    // Each invocation of a team that has a value to write, has one: this one `sum`, the team's value `own_value`.
    let mut sum = 0.0;
    let mut own_value = at;
    if const { target::has(Feature::Subgroups) } {
        let reach = min(team, subgroup_size());
        let parts = team / reach;
        // Two invocations halve between them the values of which both have a part: one adds up the first half, one the second. It goes on with another two until each has one value, or until all have met.
        let mut first = 0;
        let mut distance = 1;
        for halving in unroll(0..HALVINGS) {
            let half = (MOST * COLUMNS / 2) >> halving;
            if half < values && distance < reach {
                let is_second = at & distance != 0;
                for v in unroll(0..MOST * COLUMNS / 2) {
                    if v < half {
                        let given = select(is_second, sums[v], sums[v + half]);
                        let kept = select(is_second, sums[v + half], sums[v]);
                        sums[v] = kept + subgroup_shuffle_xor(given, distance as u32);
                    }
                }
                first += select(is_second, half, 0);
                distance *= 2;
            }
        }
        while distance < reach {
            sums[0] += subgroup_shuffle_xor(sums[0], distance as u32);
            distance *= 2;
        }
        if parts == 1 && reach >= values {
            sum = sums[0];
            own_value = first;
        } else {
            let of_team = own * parts;
            let mine = (of_team + at / reach) * values;
            if at % reach < values {
                for v in unroll(0..MOST * COLUMNS) {
                    if v < values && (v == 0 || v * reach < values) {
                        scratch[mine + first + v] = sums[v];
                    }
                }
            }
            barrier();
            if at < values {
                for part in 0..parts {
                    sum += scratch[(of_team + part) * values + at];
                }
            }
        }
    } else {
        for eight in unroll(0..MOST * COLUMNS / 8) {
            if eight * 8 < values {
                barrier();
                for v in unroll(0..8) {
                    scratch[v * SIZE + local_index()] = sums[eight * 8 + v];
                }
                barrier();
                let mut half = team / 2;
                while half > 0 {
                    if at < half {
                        for v in unroll(0..8) {
                            scratch[v * SIZE + local_index()] += scratch[v * SIZE + local_index() + half];
                        }
                    }
                    barrier();
                    half /= 2;
                }
                if at / 8 == eight {
                    sum = scratch[at % 8 * SIZE + (local_index() - at)];
                }
            }
        }
    }
    if at < values {
        let (row, column) = (own_value / columns, column + own_value % columns);
        finish(bias, c, batch, row, column, sizes, exchanged, sum, activation);
    }
}

/// The product with lines of B across K. Arguments are those of [`along`], but that N is the multiple of a piece, and K one of what 16 bytes of A hold.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn across<C: Float, const QUADS: usize, const SINGLE: bool, F: Fn(Vec4<u32>, usize) -> Vec4<f32>>(
    a: &[Vec4<u32>],
    b: &[Vec4<u32>],
    bias: &[C],
    c: &mut [C],
    scratch: &mut [f32],
    sizes: [usize; 3],
    strides: [usize; 4],
    bits: usize,
    exchanged: bool,
    activation: Activation,
    rows: usize,
    four: F,
) {
    let (m, n, k) = (sizes[0], sizes[1] / (4 * QUADS), sizes[2]);
    let wide = 1 << bits;
    let high = SIZE >> bits;
    let blocks = n.div_ceil(wide);
    let batch = group_index() / blocks;
    let first = group_index() % blocks * wide;
    let piece = first + (local_index() & (wide - 1));
    let (a_first, b_first) = (batch * strides[0], batch * strides[2] + piece);

    let mut sums = [[Vec4::splat(0.0); QUADS]; MOST];
    for step in 0..k.div_ceil(LINES * high) {
        let eight = step * high + (local_index() >> bits);
        let mut read = [Vec4::<u32>::splat(0); LINES];
        for line in unroll(0..LINES) {
            let here = eight * LINES + line;
            read[line] = b[select(here < k && piece < n, b_first + here * strides[3], b.len())];
        }
        for r in unroll(0..MOST) {
            if r < rows {
                for h in unroll(0..LINES / 4) {
                    let inside = r < m && eight * LINES + h * 4 < k;
                    let left = if SINGLE {
                        floats(a[select(inside, a_first + r * strides[1] + eight * (LINES / 4) + h, a.len())])
                    } else {
                        four(a[select(inside, a_first + r * strides[1] + eight, a.len())], h)
                    };
                    for lane in unroll(0..4) {
                        for q in unroll(0..QUADS) {
                            sums[r][q] = four(read[h * 4 + lane], q) * left[lane] + sums[r][q];
                        }
                    }
                }
            }
        }
    }

    // What the invocations of a column have is added up in two rounds: first all of them add up so many values that one is left to each.
    let outputs = wide * (4 * QUADS);
    let local = local_index();
    for r in unroll(0..MOST) {
        if r < rows {
            barrier();
            for q in unroll(0..QUADS) {
                scratch.set_vec4(local * QUADS + q, sums[r][q]);
            }
            barrier();
            let mut sum = 0.0;
            for p in unroll(0..4 * QUADS) {
                sum += scratch[p * SIZE + local];
            }
            barrier();
            scratch[local] = sum;
            barrier();
            if local < outputs {
                let mut whole = 0.0;
                for p in 0..SIZE / outputs {
                    whole += scratch[p * outputs + local];
                }
                finish(bias, c, batch, r, first * (4 * QUADS) + local, sizes, exchanged, whole, activation);
            }
        }
    }
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $along:ident, $across:ident of $c:ty, $quads:literal quads, $single:literal, $four:ident;)*) => {
        $(
            kernels! { @one $(#[$doc])* $along along $c, $quads, $single, $four }
            kernels! { @one $(#[$doc])* $across across $c, $quads, $single, $four }
        )*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($along::KERNELS, $across::KERNELS),*].concat()
        }
    };
    (@one $(#[$doc:meta])* $name:ident $body:ident $c:ty, $quads:literal, $single:literal, $four:ident) => {
        $(#[$doc])*
        #[kernel(
            workgroup(256),
            resident(RESIDENT),
            targets(wgsl, spirv, cuda),
            specialise(ROWS: usize = 1, in 1..=8; BITS: usize = 15, in 0..=15; RESIDENT: usize = 1, in 1..=8)
        )]
        pub fn $name(
            a: &[Vec4<u32>],
            b: &[Vec4<u32>],
            bias: &[$c],
            c: &mut [$c],
            sizes: [usize; 3],
            strides: [usize; 4],
            bits: usize,
            exchanged: bool,
            activation: Activation,
        ) {
            let mut scratch = workgroup_array::<f32>(SCRATCH);
            $body::<$c, $quads, $single, _>(
                a, b, bias, c, &mut scratch, sizes, strides, known_or(BITS, bits), exchanged, activation, ROWS, $four,
            );
        }
    };
}

kernels! {
    /// Of `f32`.
    matmul_rows_along_f32, matmul_rows_across_f32 of f32, 1 quads, true, four_f32;
    /// Of `f16`.
    matmul_rows_along_f16, matmul_rows_across_f16 of f16, 2 quads, false, four_f16;
    /// Of `bf16`.
    matmul_rows_along_bf16, matmul_rows_across_bf16 of bf16, 2 quads, false, four_bf16;
    /// Of `f32` and `f16`.
    matmul_rows_along_mixed_f16, matmul_rows_across_mixed_f16 of f32, 2 quads, true, four_f16;
    /// Of `f32` and `bf16`.
    matmul_rows_along_mixed_bf16, matmul_rows_across_mixed_bf16 of f32, 2 quads, true, four_bf16;
}
