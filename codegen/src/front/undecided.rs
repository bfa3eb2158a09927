//! What waits for the end of a body, where types are known that stood open before.
//!
//! A literal without suffix, and a variable that holds one, take the type of whatever they meet, which may stand further down. So what is made of that type has to wait: whether a shift is too far, and
//! which float a number is that meets no other. Such a float is `f64` in rustc and `f32` in kernels; where it is converted to `f64` it is `f64` in both, since a float of 32 bits would be another number.

use proc_macro2::Span;

use super::infer::{Ty, VarKind};
use super::scope::Infer;
use crate::ir::Scalar;

/// What waits.
#[derive(Default)]
pub(super) struct Undecided {
    /// Types of floats that are converted to `f64`.
    pub doubles: Vec<Ty>,
    /// Shifts: the type of what is shifted, by how many bits, and where that number stands.
    pub shifts: Vec<(Ty, u64, (Span, Span))>,
}

impl Infer<'_> {
    /// Decides what was left open, when all of a body has been read.
    pub(super) fn decide(&mut self) {
        let Undecided { doubles, shifts } = std::mem::take(&mut self.undecided);
        for ty in doubles {
            if self.table.kind(&ty) == Some(VarKind::Float) {
                self.table.unify(&ty, &Ty::Scalar(Scalar::F64));
            }
        }
        for (ty, number, place) in shifts {
            if let Some(Ty::Scalar(scalar)) = self.table.full(&ty)
                && let Some(message) = self.session.too_far(scalar, number)
            {
                self.session.errors.add(place, message);
            }
        }
    }
}
