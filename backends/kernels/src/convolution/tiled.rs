//! Tiles of outputs by positions.
//!
//! A workgroup of 16 by 16 invocations computes `ROWS` outputs at [`COLUMNS`] positions, `DEPTH` channels of one element of the kernel at a time. Two such steps fit in workgroup memory, 16 KiB at most: while one is
//! multiplied, the next is read from the buffers into registers and then written to the other half, so that there is one barrier a step. An invocation has `ROWS / 16` times 8 sums in registers. What it reads of
//! x are channels of one column, whose place is computed anew with each element of the kernel.
//!
//! **The transpose** differs in where an element of the kernel meets a position: between two elements of x it meets nothing.

use trefoil_dsl::prelude::*;

use crate::matmul::tile_of;

/// Positions of a tile.
#[device]
pub const COLUMNS: usize = 128;
/// Channels of a step.
#[device]
pub const DEPTH: usize = 8;

/// y = the convolution of x, plus a bias where there is one.
///
/// * `weights`: as [`super::weights`] leaves them.
/// * `y`: `[images, groups, outputs, positions]`.
/// * `shape`: outputs of a group, images, channels of a group, groups.
/// * `x_strides`: from one image, one channel, and along each axis.
/// * The extents of the result, of x, and of the kernel, the strides, dilations and the padding in front are those of three axes, of which the first may have one element.
#[kernel(workgroup(256), targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16], ROWS = [64, 128]))]
pub fn convolution_tiled<T: Float, const ROWS: usize>(
    x: &[T],
    weights: &[T],
    bias: &[T],
    y: &mut [T],
    shape: [usize; 4],
    out_extents: [usize; 3],
    extents: [usize; 3],
    sizes: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    fronts: [usize; 3],
    x_strides: [usize; 5],
    transposed: bool,
) {
    let mut left_steps = workgroup_array::<f32>(2 * DEPTH * ROWS);
    let mut right_steps = workgroup_array::<f32>(2 * DEPTH * COLUMNS);
    let (outputs, images, channels, groups) = (shape[0], shape[1], shape[2], shape[3]);
    let positions = out_extents[0] * out_extents[1] * out_extents[2];
    let row_tiles = outputs.div_ceil(ROWS);
    let column_tiles = (images * positions).div_ceil(COLUMNS);
    let group = group_index() / (row_tiles * column_tiles);
    let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
    let (local_row, local_column) = (local_index() / 16, local_index() % 16);

    // The column that an invocation reads, and where it stands.
    let column = tile.y * COLUMNS + local_index() % COLUMNS;
    let (image, position) = (column / positions, column % positions);
    let at_2 = position % out_extents[2];
    let at_1 = position / out_extents[2] % out_extents[1];
    let at_0 = position / (out_extents[2] * out_extents[1]);
    let first = image * x_strides[0] + group * channels * x_strides[1];
    // The four weights that it reads: their place in a row of outputs.
    let quad = tile.x * (ROWS / 4) + local_index() % (ROWS / 4);
    let row_quads = outputs.div_ceil(4);

    let mut sums = [Vec4::splat(0.0); 16];
    let mut left_next = Vec4::splat(T::lit(0.0));
    let mut right_next = [T::lit(0.0); 4];
    let mut element = [0usize; 3];
    let mut weight_row = group * (sizes[0] * sizes[1] * sizes[2]) * channels;
    let mut channel = 0;
    let mut place = 0;
    let mut inside = false;
    let steps = sizes[0] * sizes[1] * sizes[2] * channels.div_ceil(DEPTH);

    for step in 0..steps + 1 {
        if step < steps {
            if channel == 0 {
                let here_0 = met(at_0, element[0] * dilations[0], fronts[0], strides[0], extents[0], transposed);
                let here_1 = met(at_1, element[1] * dilations[1], fronts[1], strides[1], extents[1], transposed);
                let here_2 = met(at_2, element[2] * dilations[2], fronts[2], strides[2], extents[2], transposed);
                inside = image < images && here_0 < extents[0] && here_1 < extents[1] && here_2 < extents[2];
                place = first + here_0 * x_strides[2] + here_1 * x_strides[3] + here_2 * x_strides[4];
            }
            for i in unroll(0..4) {
                let own = channel + local_index() / COLUMNS + i * (256 / COLUMNS);
                right_next[i] = x[select(inside && own < channels, place + own * x_strides[1], x.len())];
            }
            let own = channel + local_index() / (ROWS / 4);
            let has = quad < row_quads && own < channels;
            left_next = weights.vec4(select(has, (weight_row + own) * row_quads + quad, weights.len()));
            channel += DEPTH;
            if channel >= channels {
                channel = 0;
                weight_row += channels;
                element[2] += 1;
                if element[2] == sizes[2] {
                    element[2] = 0;
                    element[1] += 1;
                }
                if element[1] == sizes[1] {
                    element[1] = 0;
                    element[0] += 1;
                }
            }
        }
        if step > 0 {
            let half = (step + 1) % 2;
            for inner in unroll(0..DEPTH) {
                let left_first = (half * DEPTH + inner) * (ROWS / 4);
                let right_first = (half * DEPTH + inner) * (COLUMNS / 4);
                for column_half in unroll(0..2) {
                    let right = right_steps.vec4(right_first + local_column + column_half * 16);
                    for row_half in unroll(0..ROWS / 64) {
                        let left = left_steps.vec4(left_first + local_row + row_half * 16);
                        let at = column_half * 8 + row_half * 4;
                        sums[at] = right * left.x + sums[at];
                        sums[at + 1] = right * left.y + sums[at + 1];
                        sums[at + 2] = right * left.z + sums[at + 2];
                        sums[at + 3] = right * left.w + sums[at + 3];
                    }
                }
            }
        }
        if step < steps {
            let half = step % 2;
            // Of 64 rows half of the invocations have all.
            if local_index() < DEPTH * (ROWS / 4) {
                left_steps.set_vec4(half * (DEPTH * ROWS / 4) + local_index(), left_next.to_f32());
            }
            for i in unroll(0..4) {
                right_steps[half * DEPTH * COLUMNS + i * 256 + local_index()] = right_next[i].to_f32();
            }
        }
        barrier();
    }

    for column_half in unroll(0..2) {
        let first_column = tile.y * COLUMNS + (local_column + column_half * 16) * 4;
        for row_half in unroll(0..ROWS / 64) {
            for r in unroll(0..4) {
                let row = tile.x * ROWS + (local_row + row_half * 16) * 4 + r;
                let sum = sums[column_half * 8 + row_half * 4 + r] + Vec4::splat(bias[group * outputs + row].to_f32());
                if row < outputs {
                    if positions % 4 == 0 {
                        let to = ((first_column / positions * groups + group) * outputs + row) * positions;
                        if first_column < images * positions {
                            y.set_vec4((to + first_column % positions) / 4, Vec4::<T>::from_f32(sum));
                        }
                    } else {
                        for i in 0..4 {
                            let own = first_column + i;
                            let to = ((own / positions * groups + group) * outputs + row) * positions;
                            if own < images * positions {
                                y[to + own % positions] = T::from_f32(sum[i]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The coordinate at which an element of the kernel, `reach` behind its first, meets a position along an axis; `extent` or more if it meets nothing.
#[device]
fn met(at: usize, reach: usize, front: usize, stride: usize, extent: usize, transposed: bool) -> usize {
    if transposed {
        // Wraps around in front of the first.
        let apart = at + front - reach;
        let place = apart / stride;
        if place * stride == apart { place } else { extent }
    } else {
        at * stride + reach - front
    }
}
