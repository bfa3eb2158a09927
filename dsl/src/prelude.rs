//! Everything that kernels are written with: `use trefoil::prelude::*;`.

pub use std::f32::consts::{
    E, FRAC_1_PI, FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, LN_2, LN_10, LOG2_E, LOG10_E, PI, SQRT_2, TAU,
};

pub use half::{bf16, f16};
pub use trefoil_macros::{device, kernel};

pub use crate::asynchronous::{async_commit, async_wait, copy_async};
pub use crate::atomic::Atomic;
pub use crate::element::{Element, Float, Int, Literal, Number};
pub use crate::intrinsics::target::{self, Feature};
pub use crate::intrinsics::{
    barrier, bitcast, device_fence, global_id, global_index, group_count, group_counts, group_id, group_index,
    local_id, local_index, select, subgroup_add, subgroup_all, subgroup_and, subgroup_any, subgroup_ballot,
    subgroup_broadcast, subgroup_broadcast_first, subgroup_elect, subgroup_exclusive_add, subgroup_exclusive_and,
    subgroup_exclusive_max, subgroup_exclusive_min, subgroup_exclusive_mul, subgroup_exclusive_or,
    subgroup_exclusive_xor, subgroup_inclusive_add, subgroup_inclusive_and, subgroup_inclusive_max,
    subgroup_inclusive_min, subgroup_inclusive_mul, subgroup_inclusive_or, subgroup_inclusive_xor, subgroup_index,
    subgroup_lane, subgroup_max, subgroup_min, subgroup_mul, subgroup_or, subgroup_shuffle, subgroup_shuffle_down,
    subgroup_shuffle_up, subgroup_shuffle_xor, subgroup_size, subgroup_xor, unroll, workgroup_fence,
    workgroup_uniform_load,
};
pub use crate::math::{
    BitsExt, Elementary, MathExt, abs, acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, ceil, clamp, copysign, cos,
    cosh, count_ones, cross, distance, dot, dot4_i8, dot4_u8, erf, exp, exp_m1, exp2, extract_bits, floor, fract,
    hypot, insert_bits, inverse_sqrt, is_infinite, is_nan, leading_zeros, length, ln, ln_1p, log2, log10, max, min,
    mix, mul_add, mul_high, normalize, pack2x16float, pack2x16snorm, pack2x16unorm, pack4x8snorm, pack4x8unorm,
    pack4xi8, pack4xu8, powf, reflect, rem_euclid, reverse_bits, rotate_left, rotate_right, round, round_ties_even,
    signum, sin, sinh, smoothstep, sqrt, step, tan, tanh, trailing_zeros, trunc, unpack2x16float, unpack2x16snorm,
    unpack2x16unorm, unpack4x8snorm, unpack4x8unorm, unpack4xi8, unpack4xu8,
};
pub use crate::matrix::{Accumulator, MatrixA, MatrixB, multiply_add};
pub use crate::memory::{SliceExt, View, WorkgroupArray, workgroup_array};
pub use crate::tile::{WorkgroupTile, copy_tile_async, multiply_tiles, workgroup_tile};
pub use crate::vector::{Vec2, Vec3, Vec4};
