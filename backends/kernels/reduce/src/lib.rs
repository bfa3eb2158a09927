//! Reductions: what each operator does with elements. How elements are gone over is said in [`shapes`], once for all of them.
//!
//! An operator has a neutral value, and says how an element is pushed onto a value, how two values are joined, and what a complete value is as an element of the result. It lives
//! in `f32` for floats of up to 32 bits, in words of 32 bits for integers of as many, and otherwise in the element's own type. Where signed integers come out as unsigned ones do, bit for bit,
//! there is one kernel for both, and bools are words. Narrower integers are widened before.
//!
//! A reduction is a kernel of either kind: `reduce_` takes elements, `join_` values that the first has left, because an axis was cut in pieces or
//! because axes that are no neighbours are reduced one after the other. Operators whose values are joined alike share the second.

#[macro_use]
mod operators;

pub mod doubles;
pub mod extremes;
pub mod floats;
pub mod longs;
pub mod shapes;
pub mod words;

use trefoil_dsl::artefact::Kernel;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [floats::kernels(), extremes::kernels(), words::kernels(), doubles::kernels(), longs::kernels()].concat()
}
