//! Running sums, products and extremes: what each operator is. How elements are gone over is said in [`shapes`], once for all of them.
//!
//! An operator has a neutral value and joins two values. It lives in `f32` for floats of up to 32 bits, and in the element's own type otherwise; where signed integers come out as unsigned ones
//! do, bit for bit, there is one kernel for both. What an operator leaves of pieces is scanned by the kernel whose elements are its values.

#[macro_use]
mod operators;

pub mod floats;
pub mod longs;
pub mod shapes;
pub mod words;

use trefoil_dsl::artefact::Kernel;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [floats::kernels(), words::kernels(), longs::kernels()].concat()
}
