//! Scans of floats of up to 32 bits.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{part_of, scan, walk_of};
use trefoil_kernels_common::quads::set_quad;
use trefoil_kernels_common::values::{largest, smallest};

operators! {
    /// Sums of floats.
    scan_sum(f32, f16, bf16 as T) { f32, [0.0], [|a, b| a + b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// Products of floats.
    scan_product(f32, f16, bf16 as T) { f32, [1.0], [|a, b| a * b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The largest floats so far; a NaN stays.
    scan_max(f32, f16, bf16 as T) { f32, [f32::NEG_INFINITY], [largest], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The smallest floats so far; a NaN stays.
    scan_min(f32, f16, bf16 as T) { f32, [f32::INFINITY], [smallest], [|a, d| subgroup_shuffle_up(a, d)] }
}
