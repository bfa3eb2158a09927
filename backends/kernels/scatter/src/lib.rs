//! Scatters: updates that go to slots which indices tell. [`places`] finds the slots; what the updates of a slot do is an operator.
//!
//! There are two ways. [`join`] takes the updates of each slot in their order; it serves every operator and every type. Where the operator is the device's own on whole words, and the order of
//! sums may vary, updates go to a copy of what is there by atomics. What is set is set by its last update.
//!
//! Either way works in place, where nobody wants to see any more what was there: what has no update is not even read.
//!
//! An operator lives in `f32` for floats of up to 32 bits, and in the element's own type otherwise; where signed integers come out as unsigned ones do, bit for bit, there is one kernel for both.

pub mod join;
pub mod places;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use join::join_runs;
use trefoil_kernels_common::longs::{largest_double, smallest_double};
use trefoil_kernels_common::quads::{quad, set_quad, set_two_pairs, two_pairs};
use trefoil_kernels_common::values::{largest, smallest};

/// Elements that an invocation copies at once are four, and it asks for so many times four.
#[device]
const AT_ONCE: usize = 4;

/// y = x, words that lie one after the other; a workgroup does 4096.
#[kernel(workgroup(256))]
pub fn scatter_copy(x: &[u32], y: &mut [u32]) {
    let quads = y.len() / 4;
    let first = group_index() * (256 * AT_ONCE) + local_index();
    let mut read = [Vec4::splat(0); AT_ONCE];
    for k in unroll(0..AT_ONCE) {
        read[k] = x.vec4(first + k * 256);
    }
    for k in unroll(0..AT_ONCE) {
        if first + k * 256 < quads {
            y.set_vec4(first + k * 256, read[k]);
        }
    }
    let rest = 4 * quads + local_index();
    if group_index() == 0 && local_index() < 4 && rest < y.len() {
        y[rest] = x[rest];
    }
}

/// The rows of y, `[lines, slots, columns]`, that have an update replaced by their last one, whose number from 1 up `last` tells; the others stay.
///
/// * `quads`: whether four columns are taken at a time: columns and strides are multiples of four then, but those of columns, which are 1.
/// * `shape`: lines, slots and columns. `strides`: of the updates, from a line, an update and a column to the next. `bits`: `1 << bits` invocations share a row.
#[kernel(workgroup(256), instances(T = [u8, u16, u32]))]
pub fn scatter_set<T: Element>(
    updates: &[T],
    last: &[u32],
    y: &mut [T],
    quads: bool,
    shape: [usize; 3],
    strides: [usize; 3],
    bits: usize,
) {
    let (slots, columns) = (shape[1], shape[2]);
    let along = 1 << bits;
    let row = group_index() * (256 >> bits) + (local_index() >> bits);
    if row < shape[0] * slots {
        let (line, slot) = (row / slots, row % slots);
        let number = last[slot] as usize;
        if number > 0 {
            let from = line * strides[0] + (number - 1) * strides[1];
            if quads {
                for column in (local_index() & (along - 1)..columns / 4).step_by(along) {
                    y.set_vec4(row * columns / 4 + column, updates.vec4(from / 4 + column));
                }
            } else {
                for column in (local_index() & (along - 1)..columns).step_by(along) {
                    y[row * columns + column] = updates[from + column * strides[2]];
                }
            }
        }
    }
}

/// Makes the kernels of lists of operators, and the list of all kernels.
macro_rules! operators {
    (
        $($(#[$doc:meta])* $name:ident $types:tt $operator:tt)*;
        $($(#[$atomic_doc:meta])* $atomic:ident ($element:ident, $zero:literal) $method:ident)*
    ) => {
        $(operator! { $(#[$doc])* $name $types $operator })*
        $(atomic! { $(#[$atomic_doc])* $atomic ($element, $zero) $method })*

        /// Every kernel of this family.
        pub fn kernels() -> Vec<&'static Kernel> {
            let kernels = [
                scatter_copy::KERNELS,
                scatter_set::KERNELS,
                places::scatter_clear::KERNELS,
                places::scatter_last::KERNELS,
                places::scatter_keys_u16::KERNELS,
                places::scatter_keys_u32::KERNELS,
                places::scatter_runs_u16::KERNELS,
                places::scatter_runs_u32::KERNELS,
                $($name::KERNELS,)*
                $($atomic::KERNELS),*
            ];
            kernels.concat()
        }
    };
}

/// A kernel for several float types or for one type: `(types) { value, neutral value, join }`.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident ($($float:ident),+ as $T:ident) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, instances($T = [$($float),*])] [<$T: Float>] $T,
            { [quad, quad, set_quad, set_quad], [$T::lit(0.0)], [|x| x.to_f32()], [|a| $T::from_f32(a)], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [] [] $element,
            { [quad, quad, set_quad, set_quad], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    ($(#[$doc:meta])* $name:ident ($element:ty, $zero:literal, requires($($feature:ident),*)) { $($operator:tt)* }) => {
        operator! {
            @kernel $(#[$doc])* $name [, requires($($feature),*)] [] $element,
            { [two_pairs, two_pairs, set_two_pairs, set_two_pairs], [$zero], [|x| x], [|a| a], $($operator)* }
        }
    };
    (
        @kernel $(#[$doc:meta])* $name:ident [$($arguments:tt)*] [$($generics:tt)*] $element:ty,
        { [$($access:tt)*], [$($zero:tt)*], [$($take:tt)*], [$($give:tt)*], $value:ty, [$($start:tt)*], [$($join:tt)*] }
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), no_robustness $($arguments)*)]
        pub fn $name $($generics)* (
            x: &[$element],
            updates: &[$element],
            places: &[u32],
            runs: &[u32],
            partials: &mut [$value],
            y: &mut [$element],
            of_chunks: bool,
            in_place: bool,
            quads: bool,
            shape: [usize; 4],
            x_strides: [usize; 3],
            update_strides: [usize; 3],
            bits: usize,
        ) {
            join_runs(
                x, updates, places, runs, partials, y, of_chunks, in_place, quads, shape, x_strides, update_strides,
                bits,
                $($zero)*, $($start)*, $($take)*, $($join)*, $($give)*, $($access)*,
            );
        }
    };
}

/// A kernel in which each update goes to its slot at once. `shape`: lines, updates, columns, slots; `strides` of updates, from a line, an update and a column to the next; `1 << bits` invocations share an update.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident ($element:ident, $zero:literal) $method:ident) => {
        $(#[$doc])*
        #[kernel(workgroup(256))]
        pub fn $name(
            updates: &[$element],
            keys: &[u32],
            y: &[Atomic<$element>],
            shape: [usize; 4],
            strides: [usize; 3],
            bits: usize,
        ) {
            let (count, columns, slots) = (shape[1], shape[2], shape[3]);
            let along = 1 << bits;
            let row = group_index() * (256 >> bits) + (local_index() >> bits);
            if row < shape[0] * count {
                let (line, update) = (row / count, row % count);
                let slot = keys[update];
                if slot != u32::MAX {
                    let from = line * strides[0] + update * strides[1];
                    let to = (line * slots + slot as usize) * columns;
                    for column in (local_index() & (along - 1)..columns).step_by(AT_ONCE * along) {
                        let mut read = [$zero; AT_ONCE];
                        for k in unroll(0..AT_ONCE) {
                            read[k] = updates[from + (column + k * along) * strides[2]];
                        }
                        for k in unroll(0..AT_ONCE) {
                            if column + k * along < columns {
                                y[to + column + k * along].$method(read[k]);
                            }
                        }
                    }
                }
            }
        }
    };
}

operators! {
    /// Adds to floats.
    scatter_add(f32, f16, bf16 as T) { f32, [0.0], [|a, b| a + b] }
    /// Multiplies floats.
    scatter_mul(f32, f16, bf16 as T) { f32, [1.0], [|a, b| a * b] }
    /// The largest floats, or a NaN.
    scatter_max(f32, f16, bf16 as T) { f32, [f32::NEG_INFINITY], [largest] }
    /// The smallest floats, or a NaN.
    scatter_min(f32, f16, bf16 as T) { f32, [f32::INFINITY], [smallest] }
    /// Adds to integers, which wrap.
    scatter_add_words(u32, 0) { u32, [0], [|a, b| a + b] }
    /// Multiplies integers, which wrap.
    scatter_mul_words(u32, 0) { u32, [1], [|a, b| a * b] }
    /// The largest integers.
    scatter_max_u32(u32, 0) { u32, [0], [|a, b| max(a, b)] }
    /// The largest integers.
    scatter_max_i32(i32, 0) { i32, [i32::MIN], [|a, b| max(a, b)] }
    /// The smallest integers.
    scatter_min_u32(u32, 0) { u32, [u32::MAX], [|a, b| min(a, b)] }
    /// The smallest integers.
    scatter_min_i32(i32, 0) { i32, [i32::MAX], [|a, b| min(a, b)] }
    /// Adds to long integers, which wrap.
    scatter_add_longs(u64, 0, requires(Int64)) { u64, [0], [|a, b| a + b] }
    /// Multiplies long integers, which wrap.
    scatter_mul_longs(u64, 0, requires(Int64)) { u64, [1], [|a, b| a * b] }
    /// The largest long integers.
    scatter_max_u64(u64, 0, requires(Int64)) { u64, [0], [|a, b| max(a, b)] }
    /// The largest long integers.
    scatter_max_i64(i64, 0, requires(Int64)) { i64, [i64::MIN], [|a, b| max(a, b)] }
    /// The smallest long integers.
    scatter_min_u64(u64, 0, requires(Int64)) { u64, [u64::MAX], [|a, b| min(a, b)] }
    /// The smallest long integers.
    scatter_min_i64(i64, 0, requires(Int64)) { i64, [i64::MAX], [|a, b| min(a, b)] }
    /// Adds to doubles.
    scatter_add_f64(f64, 0.0, requires(Float64)) { f64, [0.0], [|a, b| a + b] }
    /// Multiplies doubles.
    scatter_mul_f64(f64, 0.0, requires(Float64)) { f64, [1.0], [|a, b| a * b] }
    /// The largest doubles, or a NaN.
    scatter_max_f64(f64, 0.0, requires(Float64)) { f64, [f64::NEG_INFINITY], [largest_double] }
    /// The smallest doubles, or a NaN.
    scatter_min_f64(f64, 0.0, requires(Float64)) { f64, [f64::INFINITY], [smallest_double] };

    /// Adds to floats, in any order.
    scatter_atomic_add_f32(f32, 0.0) add
    /// Adds to integers, which wrap.
    scatter_atomic_add_words(u32, 0) add
    /// The largest integers.
    scatter_atomic_max_u32(u32, 0) max
    /// The largest integers.
    scatter_atomic_max_i32(i32, 0) max
    /// The smallest integers.
    scatter_atomic_min_u32(u32, 0) min
    /// The smallest integers.
    scatter_atomic_min_i32(i32, 0) min
}
