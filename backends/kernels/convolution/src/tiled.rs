//! Tiles of outputs by positions.
//!
//! A workgroup of 128 invocations computes `ROWS` outputs at [`COLUMNS`] positions, [`DEPTH`] channels of one element of the kernel at a time. Two such steps fit in workgroup memory, 16 KiB at most: while one is
//! multiplied, the next is read from the buffers into registers and then written to the other half, so that there is one barrier a step. Who has which sums is as in [`trefoil_kernels_matmul::tiled`]. An invocation reads all
//! channels of one column, whose place is computed anew with each element of the kernel.
//!
//! **The transpose** differs in where an element of the kernel meets a position: between two elements of x it meets nothing.
//!
//! **Parts.** Where tiles are too few for a device, the steps are divided into parts, whose sums [`convolution_sum_parts()`] adds up.

use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate};
use trefoil_kernels_matmul::{activate_quad, tile_of};

/// Positions of a tile.
#[device]
pub const COLUMNS: usize = 128;
/// Channels of a step.
#[device]
pub const DEPTH: usize = 8;

/// y = activation(the convolution of x + a bias where there is one).
///
/// * `weights`: as [`super::weights`] leaves them.
/// * `y`: `[images, groups, outputs, positions]`; `sums`: the same for each of `parts`, without bias and activation. With one part `y` is written, with more `sums`.
/// * `shape`: outputs of a group, images, channels of a group, groups.
/// * `x_strides`: from one image, one channel, and along each axis.
/// * `parts`, of `length` steps each.
/// * The extents of the result, of x, and of the kernel, the strides, dilations and the padding in front are those of three axes, of which the first may have one element.
#[kernel(
    workgroup(128),
    targets(wgsl, spirv, cuda),
    no_robustness,
    specialise(PLAIN: bool = false),
    instances(T = [f32, f16, bf16], ROWS = [64, 128])
)]
pub fn convolution_tiled<T: Float, const ROWS: usize>(
    x: &[T],
    weights: &[T],
    bias: &[T],
    y: &mut [T],
    sums: &mut [f32],
    shape: [usize; 4],
    out_extents: [usize; 3],
    extents: [usize; 3],
    sizes: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    fronts: [usize; 3],
    x_strides: [usize; 5],
    transposed: bool,
    parts: usize,
    length: usize,
    activation: Activation,
) {
    let mut left_steps = workgroup_array::<Vec4<f32>>(DEPTH * ROWS / 2);
    let mut right_steps = workgroup_array::<Vec4<f32>>(DEPTH * COLUMNS / 2);
    let (outputs, images, channels, groups) = (shape[0], shape[1], shape[2], shape[3]);
    let positions = out_extents[0] * out_extents[1] * out_extents[2];
    let row_tiles = outputs.div_ceil(ROWS);
    let column_tiles = (images * positions).div_ceil(COLUMNS);
    let unit = group_index() / (row_tiles * column_tiles);
    let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
    let (group, part) = (unit / parts, unit % parts);
    let local = local_index();

    // The column that an invocation reads, and where it stands.
    let column = tile.y * COLUMNS + local;
    let (image, position) = (column / positions, column % positions);
    let at_2 = position % out_extents[2];
    let at_1 = position / out_extents[2] % out_extents[1];
    let at_0 = position / (out_extents[2] * out_extents[1]);
    let first = image * x_strides[0] + group * channels * x_strides[1];
    // The weights that it reads: their place in a row of outputs, and the first row.
    let quad = tile.x * (ROWS / 4) + local % (ROWS / 4);
    let row_quads = outputs.div_ceil(4);

    // Where the part begins.
    let channel_steps = channels.div_ceil(DEPTH);
    let steps = min(part * length + length, sizes[0] * sizes[1] * sizes[2] * channel_steps);
    let mut step = min(part * length, steps);
    let mut channel = step % channel_steps * DEPTH;
    let mut kernel_element = step / channel_steps;
    let mut weight_row = (group * (sizes[0] * sizes[1] * sizes[2]) + kernel_element) * channels + channel;
    let mut place = 0;
    let mut inside = false;
    let mut is_new = true;

    let block = local / 32;
    let lane = local % 32;
    let own_row = lane >> 1 & 7;
    let own_column = block * 8 + (lane & 1 | lane >> 3 & 2);
    let mut tile_sums = [Vec4::splat(0.0); 32];
    let mut left_next = [Vec4::splat(T::lit(0.0)); 2];
    let mut right_next = [T::lit(0.0); DEPTH];
    // The first round only reads, the last only multiplies; none is in a branch, before which drivers would wait for what was read, so that the first multiplies zeros.
    for p in unroll(0..ROWS / 64) {
        left_steps[DEPTH * ROWS / 4 + local + p * 128] = Vec4::splat(0.0);
    }
    for i in unroll(0..DEPTH / 4) {
        right_steps[DEPTH * COLUMNS / 4 + local + i * 128] = Vec4::splat(0.0);
    }
    barrier();
    // Turns of the loop are long enough to hide what is read in them: of a small tile they have two rounds.
    for turn in 0..(steps - step + 1).div_ceil(128 / ROWS) {
        for round in unroll(0..128 / ROWS) {
            let half = if ROWS == 64 { round } else { turn % 2 };
            let other = 1 - half;
            if is_new {
                let element_2 = kernel_element % sizes[2];
                let element_1 = kernel_element / sizes[2] % sizes[1];
                let element_0 = kernel_element / (sizes[2] * sizes[1]);
                let here_0 = met(at_0, element_0 * dilations[0], fronts[0], strides[0], extents[0], transposed);
                let here_1 = met(at_1, element_1 * dilations[1], fronts[1], strides[1], extents[1], transposed);
                let here_2 = met(at_2, element_2 * dilations[2], fronts[2], strides[2], extents[2], transposed);
                inside = image < images && here_0 < extents[0] && here_1 < extents[1] && here_2 < extents[2];
                let here = first + here_0 * x_strides[2] + here_1 * x_strides[3] + here_2 * x_strides[4];
                place = here + channel * x_strides[1];
            }
            // None behind the last step.
            let left = select(step < steps, channels - channel, 0);
            let left_here = select(inside, left, 0);
            for i in unroll(0..DEPTH) {
                right_next[i] = x[select(i < left_here, place + i * x_strides[1], x.len())];
            }
            for p in unroll(0..ROWS / 64) {
                let own = local / (ROWS / 4) + p * (512 / ROWS);
                let from = (weight_row + own) * row_quads + quad;
                left_next[p] = weights.vec4(select(quad < row_quads && own < left, from, weights.len()));
            }
            step += 1;
            channel += DEPTH;
            place += DEPTH * x_strides[1];
            is_new = channel >= channels;
            weight_row += min(left, DEPTH);
            channel = select(is_new, 0, channel);
            kernel_element += select(is_new, 1, 0);
            let row_here = other * (DEPTH * ROWS / 4) + own_row;
            let column_here = other * (DEPTH * COLUMNS / 4) + own_column;
            for inner in unroll(0..DEPTH) {
                for row_part in unroll(0..ROWS / 32) {
                    let left = left_steps[row_here + (inner * (ROWS / 4) + row_part * 8)];
                    for column_part in unroll(0..2) {
                        let right = right_steps[column_here + (inner * (COLUMNS / 4) + column_part * 4)];
                        let at = (column_part * (ROWS / 32) + row_part) * 4;
                        tile_sums[at] = right * left.x + tile_sums[at];
                        tile_sums[at + 1] = right * left.y + tile_sums[at + 1];
                        tile_sums[at + 2] = right * left.z + tile_sums[at + 2];
                        tile_sums[at + 3] = right * left.w + tile_sums[at + 3];
                    }
                }
            }
            let left_to = half * (DEPTH * ROWS / 4) + local;
            for p in unroll(0..ROWS / 64) {
                left_steps[left_to + p * 128] = left_next[p].to_f32();
            }
            let right_to = half * (DEPTH * COLUMNS / 4) + local / 4;
            for i in unroll(0..DEPTH) {
                right_steps[right_to + i * (COLUMNS / 4)][local % 4] = right_next[i].to_f32();
            }
            barrier();
        }
    }

    for column_part in unroll(0..2) {
        let first_column = tile.y * COLUMNS + (own_column + column_part * 4) * 4;
        for row_part in unroll(0..ROWS / 32) {
            for r in unroll(0..4) {
                let row = tile.x * ROWS + (own_row + row_part * 8) * 4 + r;
                let mut sum = tile_sums[(column_part * (ROWS / 32) + row_part) * 4 + r];
                if parts == 1 {
                    sum = sum + Vec4::splat(bias[group * outputs + row].to_f32());
                    if !PLAIN {
                        sum = activate_quad(sum, activation);
                    }
                }
                if row < outputs {
                    if positions % 4 == 0 {
                        let image = part * images + first_column / positions;
                        let to = ((image * groups + group) * outputs + row) * positions + first_column % positions;
                        if first_column < images * positions {
                            if parts == 1 {
                                y.set_vec4(to / 4, Vec4::<T>::from_f32(sum));
                            } else {
                                sums.set_vec4(to / 4, sum);
                            }
                        }
                    } else {
                        for i in 0..4 {
                            let own = first_column + i;
                            let image = part * images + own / positions;
                            let to = ((image * groups + group) * outputs + row) * positions + own % positions;
                            if own < images * positions {
                                if parts == 1 {
                                    y[to] = T::from_f32(sum[i]);
                                } else {
                                    sums[to] = sum[i];
                                }
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

/// y = activation(the sum of `parts` that [`convolution_tiled`] left behind + bias); of `outputs` channels in all, `positions` each.
#[kernel(workgroup(256), targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16]))]
pub fn convolution_sum_parts<T: Float>(
    sums: &[f32],
    bias: &[T],
    y: &mut [T],
    parts: usize,
    outputs: usize,
    positions: usize,
    activation: Activation,
) {
    let i = global_index();
    if i < y.len() {
        let mut sum = 0.0;
        for part in 0..parts {
            sum += sums[part * y.len() + i];
        }
        if !bias.is_empty() {
            sum += bias[i / positions % outputs].to_f32();
        }
        y[i] = T::from_f32(activate(sum, activation));
    }
}
