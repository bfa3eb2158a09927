//! The kernels of the page. What they become for browsers is in the program after it is built; nothing is compiled when it runs.

use trefoil::prelude::*;

/// Bins of the histogram.
#[device]
pub const BINS: usize = 64;
/// The edge of a tile of the product.
#[device]
pub const TILE: usize = 16;

/// How often each of [`BINS`] values occurs: counted by each workgroup in its own memory, then added up.
#[kernel(workgroup(256))]
pub fn histogram(values: &[u32], bins: &[Atomic<u32>]) {
    let own = workgroup_array::<Atomic<u32>>(BINS);
    let (i, lane) = (global_index(), local_index());
    if lane < BINS {
        own[lane].store(0);
    }
    barrier();
    if i < values.len() {
        own[values[i] as usize % BINS].add(1);
    }
    barrier();
    if lane < BINS {
        bins[lane].add(own[lane].load());
    }
}

/// c = a b, for matrices of `n` rows and columns, tile by tile through workgroup memory.
#[kernel(workgroup(TILE, TILE))]
pub fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    let mut left = workgroup_array::<f32>(TILE * TILE);
    let mut right = workgroup_array::<f32>(TILE * TILE);
    let (row, column) = (global_id().y, global_id().x);
    let (y, x) = (local_id().y, local_id().x);
    let mut sum = 0.0f32;
    for tile in 0..n.div_ceil(TILE) {
        let (k, l) = (tile * TILE + x, tile * TILE + y);
        left[y * TILE + x] = if row < n && k < n { a[row * n + k] } else { 0.0 };
        right[y * TILE + x] = if l < n && column < n { b[l * n + column] } else { 0.0 };
        barrier();
        for k in 0..TILE {
            sum += left[y * TILE + k] * right[k * TILE + x];
        }
        barrier();
    }
    if row < n && column < n {
        c[row * n + column] = sum;
    }
}

/// Each workgroup's sum of 256 elements: over subgroups where the device has them.
#[kernel(workgroup(256))]
pub fn sums(x: &[f32], out: &mut [f32]) {
    let mut partial = workgroup_array::<f32>(256);
    let (i, lane) = (global_index(), local_index());
    let mine = if i < x.len() { x[i] } else { 0.0 };
    if const { target::has(Feature::Subgroups) } {
        partial[lane] = 0.0;
        barrier();
        let sum = subgroup_add(mine);
        if subgroup_lane() == 0 {
            partial[subgroup_index()] = sum;
        }
    } else {
        partial[lane] = mine;
    }
    barrier();
    if lane == 0 {
        let mut sum = 0.0f32;
        for k in 0..256usize {
            sum += partial[k];
        }
        out[group_index()] = sum;
    }
}
