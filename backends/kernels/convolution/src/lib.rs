//! Convolutions and their transposes over up to three axes, as products whose right operand is read where it lies: nothing is spread out in memory first.
//!
//! | kernel | |
//! |---|---|
//! | [`weights`] | puts weights in the order in which the product reads them |
//! | [`tiled`] | the product |
//!
//! **The product.** Rows are the outputs of a group, columns are the positions of all images, and what is summed over are the kernel's elements and, within each, the channels of the group. So all channels of a column
//! are read by one distance, and where an element of the kernel meets a column, and whether it meets x at all, is computed once for all channels.
//!
//! **Numbers.** Elements are `f32`, `f16` or `bf16`, sums `f32`.

pub mod tiled;
pub mod weights;

use trefoil_dsl::artefact::Kernel;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [tiled::convolution_tiled::KERNELS, tiled::convolution_sum_parts::KERNELS, weights::convolution_weights::KERNELS]
        .concat()
}
