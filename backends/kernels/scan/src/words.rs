//! Scans of integers of 32 bits.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{part_of, scan, walk_of};
use trefoil_kernels_common::quads::set_quad;

operators! {
    /// Sums of integers, which wrap.
    scan_sum_words(u32, 0) { u32, [0], [|a, b| a + b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// Products of integers, which wrap.
    scan_product_words(u32, 0) { u32, [1], [|a, b| a * b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The largest integers so far.
    scan_max_u32(u32, 0) { u32, [0], [|a, b| max(a, b)], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The largest integers so far.
    scan_max_i32(i32, 0) { i32, [i32::MIN], [|a, b| max(a, b)], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The smallest integers so far.
    scan_min_u32(u32, 0) { u32, [u32::MAX], [|a, b| min(a, b)], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The smallest integers so far.
    scan_min_i32(i32, 0) { i32, [i32::MAX], [|a, b| min(a, b)], [|a, d| subgroup_shuffle_up(a, d)] }
}
