//! Reductions: what each operator does with elements. How elements are gone over is said in [`shapes`], once for all of them.
//!
//! An operator has a neutral value, and says how an element is pushed onto a value, how two values are joined, and what a complete value is as an element of the result. It lives
//! in `f32` for floats of up to 32 bits, in words of 32 bits for integers of as many, and otherwise in the element's own type. Where signed integers come out as unsigned ones do, bit for bit,
//! there is one kernel for both, and bools are words. Narrower integers are widened before.
//!
//! A reduction is a kernel of either kind: `reduce_` takes elements, `join_` values that the first has left, because an axis was cut in pieces or
//! because axes that are no neighbours are reduced one after the other. Operators whose values are joined alike share the second.

pub mod shapes;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::longs::{
    DoubleExponentials, DoubleMoments, LongPlace, double_not_zero, double_over, largest_double, order_of_double,
    order_of_signed_long, smallest_double,
};
use trefoil_kernels_common::quads::{quad, two_pairs};
use trefoil_kernels_common::values::{
    Exponentials, Moments, Place, largest, not_zero, order_of, order_of_signed, over, smallest,
};

/// Makes the kernels of a list of operators, and the list of them.
macro_rules! operators {
    ($($(#[$doc:meta])* $kind:ident! $name:ident $types:tt $operator:tt)*) => {
        $($kind! { $(#[$doc])* $name $types $operator })*

        /// Every kernel of this family.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

/// A kernel that takes elements, of several float types, with what its compilers are told, or of one type: `(types) { value => result, neutral value, push, join, end }`. With `no quads` it goes down one column at a time.
macro_rules! elements {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident $(, $volatile:meta)?) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, instances($T = [$($float),*]) $(, $volatile)?] [<$T: Float>] $T, [2, 1024, quad, $T::lit(0.0)] $operator
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty) $operator:tt) => {
        elements! { @kernel $(#[$doc])* $name [] [] $element, [2, 1024, quad, 0] $operator }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*)) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element, [2, 1024, two_pairs, $zero] $operator
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*), no quads) $operator:tt) => {
        elements! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element, [1, 256, two_pairs, $zero] $operator
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty,
        [$walks:tt, $held:tt, $read:path, $($zero:tt)*]
        { $value:ty => $result:ty, [$($start:tt)*], [$($push:tt)*], [$($join:tt)*], [$($end:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), specialise(WALK: usize = 0, in 0..=$walks) $($arguments)*)]
        pub fn $name $($generics)* (
            x: &[$element],
            y: &mut [$result],
            parts: &mut [$value],
            shape: [usize; 4],
            strides: [usize; 3],
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 4],
            y_strides: [usize; 4],
            split: [usize; 3],
            place: usize,
            finish: bool,
        ) {
            let mut scratch = workgroup_array::<$value>($held);
            reduce(
                x, y, parts, &mut scratch, walk_of(WALK), shape, strides, levels, extents, x_strides, y_strides, split, place,
                finish, $($zero)*, $($start)*, $($push)*, $($join)*, $($end)*, $read,
            );
        }
    };
}

/// A kernel that takes values, with results of several float types or of one type: `(types) { value => result, neutral value, shift, join, end }`.
macro_rules! parts {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident) $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [, instances($T = [$($float),*])] [<$T: Float>] $operator }
    };
    ($(#[$doc:meta])* $name:ident () $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [] [] $operator }
    };
    ($(#[$doc:meta])* $name:ident (requires($($feature:ident),*)) $operator:tt) => {
        parts! { @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $operator }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*]
        { $value:ty => $result:ty, [$($start:tt)*], [$($shift:tt)*], [$($join:tt)*], [$($end:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256) $($arguments)*)]
        pub fn $name $($generics)* (
            parts: &[$value],
            y: &mut [$result],
            next: &mut [$value],
            shape: [usize; 4],
            along: usize,
            place: usize,
            finish: bool,
        ) {
            let mut scratch = workgroup_array::<$value>(256);
            join_parts(
                parts, y, next, &mut scratch, shape, along, place, finish, $($start)*, $($shift)*, $($join)*, $($end)*,
            );
        }
    };
}

operators! {
    /// The sum of floats over the divisor.
    elements! reduce_sum(f32, f16, bf16 as T, volatile(cuda(x))) {
        f32 => T, [0.0], [|a, x, _| a + x.to_f32()], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    parts! join_sum(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, _| a], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    /// The sum of absolute values of floats over the divisor.
    elements! reduce_l1(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, x, _| a + abs(x.to_f32())], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    /// The root of the sum of the squares of floats.
    elements! reduce_l2(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, x, _| a + x.to_f32() * x.to_f32()], [|a, b| a + b], [|a, _| T::from_f32(sqrt(a))]
    }
    parts! join_l2(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, _| a], [|a, b| a + b], [|a, _| T::from_f32(sqrt(a))]
    }
    /// The product of floats.
    elements! reduce_product(f32, f16, bf16 as T) {
        f32 => T, [1.0], [|a, x, _| a * x.to_f32()], [|a, b| a * b], [|a, _| T::from_f32(a)]
    }
    parts! join_product(f32, f16, bf16 as T) {
        f32 => T, [1.0], [|a, _| a], [|a, b| a * b], [|a, _| T::from_f32(a)]
    }
    /// The largest float, or NaN if there is one.
    elements! reduce_max(f32, f16, bf16 as T) {
        f32 => T, [f32::NEG_INFINITY], [|a, x, _| largest(a, x.to_f32())], [largest], [|a, _| T::from_f32(a)]
    }
    parts! join_max(f32, f16, bf16 as T) {
        f32 => T, [f32::NEG_INFINITY], [|a, _| a], [largest], [|a, _| T::from_f32(a)]
    }
    /// The smallest float, or NaN if there is one.
    elements! reduce_min(f32, f16, bf16 as T) {
        f32 => T, [f32::INFINITY], [|a, x, _| smallest(a, x.to_f32())], [smallest], [|a, _| T::from_f32(a)]
    }
    parts! join_min(f32, f16, bf16 as T) {
        f32 => T, [f32::INFINITY], [|a, _| a], [smallest], [|a, _| T::from_f32(a)]
    }
    /// The logarithm of the sum of the exponentials of floats.
    elements! reduce_logsumexp(f32, f16, bf16 as T) {
        Exponentials => T, [Exponentials::NONE], [|a, x, _| a.push(x.to_f32())], [|a, b| a.join(b)],
        [|a, _| T::from_f32(a.largest + ln(a.sum))]
    }
    parts! join_logsumexp(f32, f16, bf16 as T) {
        Exponentials => T, [Exponentials::NONE], [|a, _| a], [|a, b| a.join(b)],
        [|a, _| T::from_f32(a.largest + ln(a.sum))]
    }
    /// The sum of squared distances of floats from their mean, over the divisor.
    elements! reduce_variance(f32, f16, bf16 as T) {
        Moments => T, [Moments::NONE], [|a, x, _| a.push(x.to_f32())], [|a, b| a.join(b)],
        [|a, n| T::from_f32(over(a.squares, n))]
    }
    parts! join_variance(f32, f16, bf16 as T) {
        Moments => T, [Moments::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, n| T::from_f32(over(a.squares, n))]
    }
    /// How many floats are not 0.
    elements! reduce_count(f32, f16, bf16 as T) {
        u32 => u32, [0], [|a, x, _| a + not_zero(x.to_f32())], [|a, b| a + b], [|a, _| a]
    }
    /// Where the largest float is, the first of several; a NaN is larger than all others.
    elements! reduce_argmax(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE], [|a, x, i| a.push(order_of(x.to_f32()), i)],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the smallest float is, the first of several; a NaN is smaller than all others.
    elements! reduce_argmin(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE], [|a, x, i| a.push(order_of(-x.to_f32()), i)],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    parts! join_places() {
        Place => u32, [Place::NONE], [|a, by| a.moved(by)], [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// The sum of integers, which wraps.
    elements! reduce_sum_words(u32) { u32 => u32, [0], [|a, x, _| a + x], [|a, b| a + b], [|a, _| a] }
    parts! join_sum_words() { u32 => u32, [0], [|a, _| a], [|a, b| a + b], [|a, _| a] }
    /// The product of integers, which wraps.
    elements! reduce_product_words(u32) { u32 => u32, [1], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a] }
    parts! join_product_words() { u32 => u32, [1], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// How many integers are not 0.
    elements! reduce_count_words(u32) { u32 => u32, [0], [|a, x, _| a + (x != 0) as u32], [|a, b| a + b], [|a, _| a] }
    /// The largest integer.
    elements! reduce_max_u32(u32) { u32 => u32, [0], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a] }
    parts! join_max_u32() { u32 => u32, [0], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The largest integer.
    elements! reduce_max_i32(i32) { i32 => i32, [i32::MIN], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a] }
    parts! join_max_i32() { i32 => i32, [i32::MIN], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The smallest integer.
    elements! reduce_min_u32(u32) { u32 => u32, [u32::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a] }
    parts! join_min_u32() { u32 => u32, [u32::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// The smallest integer.
    elements! reduce_min_i32(i32) { i32 => i32, [i32::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a] }
    parts! join_min_i32() { i32 => i32, [i32::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// Where the largest integer is, the first of several.
    elements! reduce_argmax_u32(u32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: x, index: i })], [|a, b| a.best(b)],
        [|a, _| a.index]
    }
    /// Where the largest integer is, the first of several.
    elements! reduce_argmax_i32(i32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: order_of_signed(x), index: i })],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the first of several.
    elements! reduce_argmin_u32(u32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: !x, index: i })], [|a, b| a.best(b)],
        [|a, _| a.index]
    }
    /// Where the smallest integer is, the first of several.
    elements! reduce_argmin_i32(i32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: !order_of_signed(x), index: i })],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the largest float is, the last of several; a NaN is larger than all others.
    elements! reduce_last_argmax(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of(x.to_f32()), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest float is, the last of several; a NaN is smaller than all others.
    elements! reduce_last_argmin(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of(-x.to_f32()), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    parts! join_last_places() {
        Place => u32, [Place::NONE_YET], [|a, by| a.moved(by)], [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the largest integer is, the last of several.
    elements! reduce_last_argmax_u32(u32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: x, index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the largest integer is, the last of several.
    elements! reduce_last_argmax_i32(i32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of_signed(x), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the last of several.
    elements! reduce_last_argmin_u32(u32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: !x, index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the last of several.
    elements! reduce_last_argmin_i32(i32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: !order_of_signed(x), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// The sum of doubles over the divisor.
    elements! reduce_sum_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + x], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    parts! join_sum_f64(requires(Float64)) {
        f64 => f64, [0.0], [|a, _| a], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    /// The sum of absolute values of doubles.
    elements! reduce_l1_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + abs(x)], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    /// The root of the sum of the squares of doubles.
    elements! reduce_l2_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + x * x], [|a, b| a + b], [|a, _| sqrt(a)]
    }
    parts! join_l2_f64(requires(Float64)) { f64 => f64, [0.0], [|a, _| a], [|a, b| a + b], [|a, _| sqrt(a)] }
    /// The product of doubles.
    elements! reduce_product_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [1.0], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a]
    }
    parts! join_product_f64(requires(Float64)) { f64 => f64, [1.0], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// The largest double, or NaN if there is one.
    elements! reduce_max_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [f64::NEG_INFINITY], [|a, x, _| largest_double(a, x)], [largest_double], [|a, _| a]
    }
    parts! join_max_f64(requires(Float64)) {
        f64 => f64, [f64::NEG_INFINITY], [|a, _| a], [largest_double], [|a, _| a]
    }
    /// The smallest double, or NaN if there is one.
    elements! reduce_min_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [f64::INFINITY], [|a, x, _| smallest_double(a, x)], [smallest_double], [|a, _| a]
    }
    parts! join_min_f64(requires(Float64)) {
        f64 => f64, [f64::INFINITY], [|a, _| a], [smallest_double], [|a, _| a]
    }
    /// The logarithm of the sum of the exponentials of doubles.
    elements! reduce_logsumexp_f64(f64, 0.0, requires(Float64, Int64)) {
        DoubleExponentials => f64, [DoubleExponentials::NONE], [|a, x, _| a.push(x)], [|a, b| a.join(b)],
        [|a, _| a.largest + ln(a.sum)]
    }
    parts! join_logsumexp_f64(requires(Float64, Int64)) {
        DoubleExponentials => f64, [DoubleExponentials::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, _| a.largest + ln(a.sum)]
    }
    /// The sum of squared distances of doubles from their mean, over the divisor.
    elements! reduce_variance_f64(f64, 0.0, requires(Float64), no quads) {
        DoubleMoments => f64, [DoubleMoments::NONE], [|a, x, _| a.push(x)], [|a, b| a.join(b)],
        [|a, n| double_over(a.squares, n)]
    }
    parts! join_variance_f64(requires(Float64)) {
        DoubleMoments => f64, [DoubleMoments::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, n| double_over(a.squares, n)]
    }
    /// How many doubles are not 0.
    elements! reduce_count_f64(f64, 0.0, requires(Float64, Int64)) {
        u32 => u32, [0], [|a, x, _| a + double_not_zero(x)], [|a, b| a + b], [|a, _| a]
    }
    /// The sum of long integers, which wraps.
    elements! reduce_sum_longs(u64, 0, requires(Int64)) { u64 => u64, [0], [|a, x, _| a + x], [|a, b| a + b], [|a, _| a] }
    parts! join_sum_longs(requires(Int64)) { u64 => u64, [0], [|a, _| a], [|a, b| a + b], [|a, _| a] }
    /// The product of long integers, which wraps.
    elements! reduce_product_longs(u64, 0, requires(Int64)) {
        u64 => u64, [1], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a]
    }
    parts! join_product_longs(requires(Int64)) { u64 => u64, [1], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// How many long integers are not 0.
    elements! reduce_count_longs(u64, 0, requires(Int64)) {
        u32 => u32, [0], [|a, x, _| a + (x != 0) as u32], [|a, b| a + b], [|a, _| a]
    }
    /// The largest long integer.
    elements! reduce_max_u64(u64, 0, requires(Int64)) {
        u64 => u64, [0], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a]
    }
    parts! join_max_u64(requires(Int64)) { u64 => u64, [0], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The largest long integer.
    elements! reduce_max_i64(i64, 0, requires(Int64)) {
        i64 => i64, [i64::MIN], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a]
    }
    parts! join_max_i64(requires(Int64)) { i64 => i64, [i64::MIN], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The smallest long integer.
    elements! reduce_min_u64(u64, 0, requires(Int64)) {
        u64 => u64, [u64::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a]
    }
    parts! join_min_u64(requires(Int64)) { u64 => u64, [u64::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// The smallest long integer.
    elements! reduce_min_i64(i64, 0, requires(Int64)) {
        i64 => i64, [i64::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a]
    }
    parts! join_min_i64(requires(Int64)) { i64 => i64, [i64::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// Where the largest double is, the first of several; a NaN is larger than all others.
    elements! reduce_argmax_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_double(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the first of several.
    elements! reduce_argmax_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: x, index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the first of several.
    elements! reduce_argmax_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest double is, the first of several; a NaN is smaller than all others.
    elements! reduce_argmin_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_double(-x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the first of several.
    elements! reduce_argmin_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: !x, index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the first of several.
    elements! reduce_argmin_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: !order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    parts! join_long_places(requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, by| a.moved(by)], [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest double is, the last of several; a NaN is larger than all others.
    elements! reduce_last_argmax_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_double(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the last of several.
    elements! reduce_last_argmax_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: x, index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the last of several.
    elements! reduce_last_argmax_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest double is, the last of several; a NaN is smaller than all others.
    elements! reduce_last_argmin_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_double(-x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the last of several.
    elements! reduce_last_argmin_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: !x, index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the last of several.
    elements! reduce_last_argmin_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: !order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    parts! join_last_long_places(requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, by| a.moved(by)], [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
}
