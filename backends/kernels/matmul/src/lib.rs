//! Matrix products: C = activation(A B + bias), batch by batch.
//!
//! | kernel | tile of a workgroup | for |
//! |---|---|---|
//! | [`matrices`] | 128 by 256, 64 by 128, 16 by 256 | halves, where a device has matrix units |
//! | [`tiled`] | 128 by 128, 64 by 64 | products that fill a device with such tiles |
//! | [`narrow`] | 16 by 32, K shared among groups of invocations | few rows or columns: many small workgroups, and K in parts if they are still too few |
//! | [`rows`] | 8 rows of several columns | up to 8 rows or columns, where reading the other operand is all that counts |
//! | [`direct`] | an element an invocation | little along K, or few columns, as they lie |
//! | [`strided`] | 16 by 16 | everything else: any strides, any extents, every element type |
//! | [`grouped`] | 64 by 64, or a row | rows with a matrix for each group of them |
//!
//! All but the last two kernels of products, and one of the tiled ones, read several elements at a time, and want extents and strides that are multiples of as many. The tiled ones read lines of either
//! operand, along K or across it; the others want K contiguous in A, K or N in B.
//!
//! **Types.** The kernels of a family differ in what A, B and C are made of, which their names end with: one float type for all of them; `wide`, halves with sums as results; `mixed`, single floats and halves; `words` and `longs`,
//! integers, signed or not, since both wrap alike; `bytes`, with sums of 32 bits. Sums of 16-bit floats are `f32`. The bias is of the result's type.

pub mod direct;
pub mod grouped;
pub mod matrices;
pub mod narrow;
pub mod rows;
pub mod strided;
pub mod tiled;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate, activate_f64};

/// A kernel of any strides: attributes, generics, `A, B => C, the type of sums`, and what [`strided::multiply`] wants to know.
macro_rules! strided {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty, $sum:ty, [$($closures:tt)*]
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            bias: &[$c],
            c: &mut [$c],
            sizes: [usize; 3],
            a_strides: [usize; 3],
            b_strides: [usize; 3],
            activation: Activation,
        ) {
            let mut a_tile = workgroup_array::<$sum>(strided::EDGE * strided::EDGE);
            let mut b_tile = workgroup_array::<$sum>(strided::EDGE * strided::EDGE);
            strided::multiply(
                a, b, bias, c, &mut a_tile, &mut b_tile, sizes, a_strides, b_strides, activation, $($closures)*,
            );
        }
    };
}

/// A kernel in tiles: attributes, generics, `A, B => C`, the tile's edge and how far it goes along K, groups of four that an invocation has, and whether it reads four elements at a time.
macro_rules! tiled {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty,
        $edge:literal by $depth:literal, $rows:literal by $columns:literal, $wide:literal
    ) => {
        $(#[$doc])*
        #[kernel(
            workgroup(128),
            specialise(A_ALONG: bool = true; B_ALONG: bool = false; PLAIN: bool = false),
            $($attribute)*
        )]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            bias: &[$c],
            c: &mut [$c],
            sizes: [usize; 3],
            strides: [usize; 4],
            parts: [usize; 2],
            activation: Activation,
        ) {
            let mut a_steps = workgroup_array::<f32>(2 * $edge * $depth);
            let mut b_steps = workgroup_array::<f32>(2 * $edge * $depth);
            tiled::multiply::<$a, $b, $c, $edge, $depth, $rows, $columns, { 4 * $rows * $columns }, $wide>(
                a, b, bias, c, &mut a_steps, &mut b_steps, sizes, strides, parts, A_ALONG, B_ALONG, PLAIN, activation,
            );
        }
    };
}

/// A kernel of rows in groups, row by row: as `strided!`.
macro_rules! grouped_rows {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty, $sum:ty, [$($closures:tt)*]
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            groups: &[u32],
            c: &mut [$c],
            sizes: [usize; 3],
            a_strides: [usize; 2],
            b_strides: [usize; 3],
            columns: usize,
            along: bool,
        ) {
            let mut sums = workgroup_array::<$sum>(256);
            grouped::multiply_row(
                a, b, groups, c, &mut sums, sizes, a_strides, b_strides, columns, along, $($closures)*,
            );
        }
    };
}

/// A kernel of rows in groups, in tiles: attributes, generics, `A, B => C`.
macro_rules! grouped_tiles {
    ($(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty) => {
        $(#[$doc])*
        #[kernel(
            workgroup(256),
            targets(wgsl, spirv, cuda),
            specialise(ALONG: bool = true),
            $($attribute)*
        )]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            groups: &[u32],
            order: &[u32],
            c: &mut [$c],
            sizes: [usize; 4],
            strides: [usize; 3],
        ) {
            let mut a_held = workgroup_array::<f32>(grouped::HELD);
            let mut b_held = workgroup_array::<f32>(grouped::HELD);
            grouped::multiply_tile::<$a, $b, $c>(
                a, b, groups, order, c, &mut a_held, &mut b_held, sizes, strides, ALONG,
            );
        }
    };
}

/// Makes kernels, and the list of them.
macro_rules! kernels {
    ($($(#[$doc:meta])* $kind:ident! $name:ident $rest:tt)*) => {
        $(kernels! { @one $kind $(#[$doc])* $name $rest })*

        /// Every kernel of this family.
        pub fn kernels() -> Vec<&'static Kernel> {
            let mut kernels = [$($name::KERNELS),*].concat();
            kernels.extend(direct::matmul_direct::KERNELS);
            kernels.extend(matrices::kernels());
            kernels.extend(narrow::matmul_narrow::KERNELS);
            kernels.extend(narrow::matmul_sum_parts::KERNELS);
            kernels.extend(rows::kernels());
            kernels
        }
    };
    (@one $kind:ident $(#[$doc:meta])* $name:ident { $($rest:tt)* }) => {
        $kind! { $(#[$doc])* $name $($rest)* }
    };
}

kernels! {
    /// In tiles of 128, 8 along K.
    tiled! matmul_tiled_128 {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 128 by 8, 4 by 2, true
    }
    /// In tiles of 128, 8 along K, of `f32` and halves.
    tiled! matmul_tiled_128_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 128 by 8, 4 by 2, true
    }
    /// In tiles of 64.
    tiled! matmul_tiled_64 {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of halves, with sums as results.
    tiled! matmul_tiled_64_wide {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] T, T => f32, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of `f32` and halves.
    tiled! matmul_tiled_64_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 64 by 16, 2 by 1, true
    }
    /// In tiles of 64, of any extents.
    tiled! matmul_tiled_any {
        [targets(wgsl, spirv, cuda), instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, 64 by 16, 2 by 1, false
    }
    /// In tiles of 64, of any extents, of halves, with sums as results.
    tiled! matmul_tiled_any_wide {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] T, T => f32, 64 by 16, 2 by 1, false
    }
    /// In tiles of 64, of any extents, of `f32` and halves.
    tiled! matmul_tiled_any_mixed {
        [targets(wgsl, spirv, cuda), instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, 64 by 16, 2 by 1, false
    }
    /// Rows in groups, row by row.
    grouped_rows! matmul_grouped_rows {
        [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| T::from_f32(x)]
    }
    /// Rows in groups, row by row, of `f32` and halves.
    grouped_rows! matmul_grouped_rows_mixed {
        [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, f32, [0.0, |x| x, |x| x.to_f32(), |x| x]
    }
    /// Rows in groups, row by row, of `f64`.
    grouped_rows! matmul_grouped_rows_f64 {
        [requires(Float64)] [] f64, f64 => f64, f64, [0.0, |x| x, |x| x, |x| x]
    }
    /// Rows in groups, in tiles.
    grouped_tiles! matmul_grouped_tiles { [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T }
    /// Rows in groups, in tiles, of `f32` and halves.
    grouped_tiles! matmul_grouped_tiles_mixed { [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32 }
    /// Of one type of floats, any strides.
    strided! matmul_strided {
        [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| x.to_f32(), |x, activation| T::from_f32(activate(x, activation))]
    }
    /// Of halves, with sums as results, any strides.
    strided! matmul_strided_wide {
        [instances(T = [f16, bf16])] [<T: Float>] T, T => f32, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| x, |x, activation| activate(x, activation)]
    }
    /// Of `f32` and halves, any strides.
    strided! matmul_strided_mixed {
        [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, f32,
        [0.0, |x| x, |x| x.to_f32(), |x| x, |x, activation| activate(x, activation)]
    }
    /// Of `f64`, any strides.
    strided! matmul_strided_f64 {
        [requires(Float64, Int64)] [] f64, f64 => f64, f64,
        [0.0, |x| x, |x| x, |x| x, |x, activation| activate_f64(x, activation)]
    }
    /// Of integers of 32 bits, any strides, without an activation.
    strided! matmul_strided_words { [] [] u32, u32 => u32, u32, [0, |x| x, |x| x, |x| x, |x, _| x] }
    /// Of integers of 64 bits, any strides, without an activation.
    strided! matmul_strided_longs { [requires(Int64)] [] u64, u64 => u64, u64, [0, |x| x, |x| x, |x| x, |x, _| x] }
    /// Of signed and signed bytes, any strides, without an activation.
    strided! matmul_strided_bytes_i8_i8 {
        [] [] i8, i8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of signed and unsigned bytes, any strides, without an activation.
    strided! matmul_strided_bytes_i8_u8 {
        [] [] i8, u8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of unsigned and signed bytes, any strides, without an activation.
    strided! matmul_strided_bytes_u8_i8 {
        [] [] u8, i8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of unsigned and unsigned bytes, any strides, without an activation.
    strided! matmul_strided_bytes_u8_u8 {
        [] [] u8, u8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
}

/// Four elements of a line of `length`, as `f32`, from group `quad` on; zero outside. Lines are `stride` apart. Outside it reads past the end, which
/// gives zero without a branch: compilers wait for a load in a branch before they go on.
#[device]
pub fn quad_of<T: Float>(
    x: &[T],
    first: usize,
    line: usize,
    lines: usize,
    quad: usize,
    length: usize,
    stride: usize,
) -> Vec4<f32> {
    let inside = line < lines && quad * 4 < length;
    x.vec4(select(inside, (first + line * stride) / 4 + quad, x.len())).to_f32()
}

/// Which tile of which batch a workgroup computes: tiles of a band of 8 tile rows follow each other column by column, so that what they read is still in cache.
#[device]
pub fn tile_of(index: usize, row_tiles: usize, column_tiles: usize) -> Vec2<usize> {
    let band = index / (8 * column_tiles);
    let height = min(8, row_tiles - band * 8);
    let within = index - band * 8 * column_tiles;
    Vec2::new(band * 8 + within % height, within / height)
}

/// `activate` for four elements.
#[device]
pub fn activate_quad(x: Vec4<f32>, activation: Activation) -> Vec4<f32> {
    Vec4::new(
        activate(x.x, activation),
        activate(x.y, activation),
        activate(x.z, activation),
        activate(x.w, activation),
    )
}
