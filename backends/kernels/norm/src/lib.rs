//! Norms of rows: softmax and its logarithm, and norms by the root of a mean or sum of squares, with or without the mean taken off, with an optional residual and bias that are added first and optional vectors that
//! scale and shift the result.
//!
//! [`softmax`], [`norms`], [`widest`], [`kept`] and [`strided_norms`] list the kernels, each in a file, since a kernel is compiled anew where its lines move.
//!
//! [`rows`] takes rows whose elements follow on each other, four at a time and held in registers; [`strided`] takes all others. Which invocations share a row is said in [`trefoil_kernels_common::team`]. Elements are computed
//! with in `f32`, or in `f64` if they are that.

/// Makes kernels of a list of types, and the list of them.
macro_rules! kernels {
    ($($kind:ident! $name:ident $types:tt)*) => {
        $($kind! { $name $types })*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

pub mod doubles;
pub mod kept;
pub mod norms;
pub mod rows;
pub mod softmax;
pub mod strided;
pub mod strided_norms;
pub mod widest;

use trefoil_dsl::artefact::Kernel;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [softmax::kernels(), norms::kernels(), strided_norms::kernels(), widest::kernels(), kept::kernels()].concat()
}
