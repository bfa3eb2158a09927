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

/// Makes kernels, and the list of them.
macro_rules! kernels {
    ($($(#[$doc:meta])* $kind:ident! $name:ident $rest:tt)*) => {
        $(kernels! { @one $kind $(#[$doc])* $name $rest })*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
    (@one $kind:ident $(#[$doc:meta])* $name:ident { $($rest:tt)* }) => {
        $kind! { $(#[$doc])* $name $($rest)* }
    };
}

pub mod direct;
pub mod grouped;
pub mod matrices;
pub mod narrow;
pub mod rows;
pub mod strided;
pub mod tiled;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate};

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    let lists = [
        tiled::kernels(),
        grouped::kernels(),
        strided::kernels(),
        direct::matmul_direct::KERNELS.to_vec(),
        matrices::kernels(),
        narrow::matmul_narrow::KERNELS.to_vec(),
        narrow::matmul_sum_parts::KERNELS.to_vec(),
        rows::kernels(),
    ];
    lists.concat()
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
