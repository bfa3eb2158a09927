//! Everything that kernels are written with: `use trefoil::prelude::*;`.

pub use std::f32::consts::{
    E, FRAC_1_PI, FRAC_1_SQRT_2, FRAC_2_SQRT_PI, FRAC_PI_2, LN_2, LN_10, LOG2_E, LOG10_E, PI, SQRT_2, TAU,
};

pub use half::f16;
pub use trefoil_macros::{device, kernel};

pub use crate::element::{Element, Float, Int, Literal, Number};
pub use crate::intrinsics::target::{self, Feature};
pub use crate::intrinsics::{
    barrier, bitcast, global_id, global_index, group_count, group_counts, group_id, group_index, local_id, local_index,
    select, subgroup_add, subgroup_broadcast, subgroup_index, subgroup_lane, subgroup_max, subgroup_min,
    subgroup_shuffle, subgroup_shuffle_xor, subgroup_size, unroll, workgroup_uniform_load,
};
pub use crate::math::{
    MathExt, abs, atan, atan2, ceil, clamp, cos, count_ones, dot, erf, exp, exp2, floor, inverse_sqrt, is_infinite,
    is_nan, leading_zeros, ln, log2, max, min, mul_add, powf, round_ties_even, signum, sin, sqrt, tan, tanh,
    trailing_zeros, trunc,
};
pub use crate::memory::{Atomic, SliceExt, View, WorkgroupArray, workgroup_array};
pub use crate::vector::{Vec2, Vec3, Vec4};
