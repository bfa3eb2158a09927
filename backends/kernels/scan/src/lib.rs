//! Running sums, products and extremes: what each operator is. How elements are gone over is said in [`shapes`], once for all of them.
//!
//! An operator has a neutral value and joins two values. It lives in `f32` for floats of up to 32 bits, and in the element's own type otherwise; where signed integers come out as unsigned ones
//! do, bit for bit, there is one kernel for both. What an operator leaves of pieces is scanned by the kernel whose elements are its values.

pub mod shapes;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use shapes::{part_of, scan, walk_of};
use trefoil_kernels_common::longs::{largest_double, smallest_double};
use trefoil_kernels_common::quads::{quad, set_quad, set_two_pairs, two_pairs};
use trefoil_kernels_common::values::{largest, smallest};

/// The value of the subgroup's lane so many before, of 64 bits.
#[device]
pub fn long_up(a: u64, distance: u32) -> u64 {
    let low = subgroup_shuffle_up(a as u32, distance);
    let high = subgroup_shuffle_up((a >> 32) as u32, distance);
    (high as u64) << 32 | low as u64
}

/// Makes the kernels of a list of operators, and the list of them.
macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $types:tt $operator:tt)*) => {
        $(operator! { $(#[$doc])* $name $types $operator })*

        /// Every kernel of this family.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

/// A kernel for several float types or for one type: `(types) { value, neutral value, join, up }`.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, instances($T = [$($float),*])] [<$T: Float>] $T,
            { [quad, set_quad], [$T::lit(0.0)], [|x| x.to_f32()], [|a| $T::from_f32(a)], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [] [] $element, { [quad, set_quad], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*)) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element,
            { [two_pairs, set_two_pairs], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty,
        { [$read:path, $write:path], [$($zero:tt)*], [$($take:tt)*], [$($give:tt)*], $value:ty, [$($start:tt)*], [$($join:tt)*], [$($up:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(
            workgroup(256),
            resident(RESIDENT),
            specialise(WALK: usize = 0, in 0..=3; PART: usize = 0, in 0..=2; RESIDENT: usize = 1, in 1..=8)
            $($arguments)*
        )]
        pub fn $name $($generics)* (
            x: &[$element],
            y: &mut [$element],
            before: &[$value],
            totals: &mut [$value],
            exclusive: bool,
            reverse: bool,
            shape: [usize; 3],
            strides: [usize; 4],
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 4],
            y_strides: [usize; 4],
            split: [usize; 3],
        ) {
            let mut scratch = workgroup_array::<$value>(2048);
            scan(
                x, y, before, totals, &mut scratch, walk_of(WALK), part_of(PART), exclusive, reverse, shape, strides, levels, extents,
                x_strides, y_strides, split, $($zero)*, $($start)*, $($take)*, $($join)*, $($give)*, $($up)*, $read, $write,
            );
        }
    };
}

operators! {
    /// Sums of floats.
    scan_sum(f32, f16, bf16 as T) { f32, [0.0], [|a, b| a + b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// Products of floats.
    scan_product(f32, f16, bf16 as T) { f32, [1.0], [|a, b| a * b], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The largest floats so far; a NaN stays.
    scan_max(f32, f16, bf16 as T) { f32, [f32::NEG_INFINITY], [largest], [|a, d| subgroup_shuffle_up(a, d)] }
    /// The smallest floats so far; a NaN stays.
    scan_min(f32, f16, bf16 as T) { f32, [f32::INFINITY], [smallest], [|a, d| subgroup_shuffle_up(a, d)] }
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
    /// Sums of long integers, which wrap.
    scan_sum_longs(u64, 0, requires(Int64)) { u64, [0], [|a, b| a + b], [long_up] }
    /// Products of long integers, which wrap.
    scan_product_longs(u64, 0, requires(Int64)) { u64, [1], [|a, b| a * b], [long_up] }
    /// The largest long integers so far.
    scan_max_u64(u64, 0, requires(Int64)) { u64, [0], [|a, b| max(a, b)], [long_up] }
    /// The largest long integers so far.
    scan_max_i64(i64, 0, requires(Int64)) {
        i64, [i64::MIN], [|a, b| max(a, b)], [|a, d| long_up(a as u64, d) as i64]
    }
    /// The smallest long integers so far.
    scan_min_u64(u64, 0, requires(Int64)) { u64, [u64::MAX], [|a, b| min(a, b)], [long_up] }
    /// The smallest long integers so far.
    scan_min_i64(i64, 0, requires(Int64)) {
        i64, [i64::MAX], [|a, b| min(a, b)], [|a, d| long_up(a as u64, d) as i64]
    }
    /// Sums of doubles.
    scan_sum_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [0.0], [|a, b| a + b], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// Products of doubles.
    scan_product_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [1.0], [|a, b| a * b], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// The largest doubles so far; a NaN stays.
    scan_max_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [f64::NEG_INFINITY], [largest_double], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// The smallest doubles so far; a NaN stays.
    scan_min_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [f64::INFINITY], [smallest_double], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
}
