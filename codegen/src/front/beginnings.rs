//! Variables that begin with an integer literal and are used as floats.
//!
//! The literal is the mistake, and each use of the variable would show it: so it is told once, where the literal stands, and the variable is of no type from there on.

use std::collections::HashMap;

use proc_macro2::Span;

use super::ends::Placed;
use super::infer::{Ty, VarKind};
use super::places::peel;
use super::scope::Infer;
use super::tree::{Place, Root};
use crate::ir::Scalar;

/// The literals that variables begin with, by local.
#[derive(Default)]
pub(super) struct Beginnings(HashMap<usize, Beginning>);

#[derive(Clone)]
struct Beginning {
    /// The literal as a float.
    float: String,
    place: (Span, Span),
}

impl Infer<'_> {
    /// Remembers what a variable begins with, if that is a literal without suffix.
    pub(super) fn begin(&mut self, local: usize, value: &syn::Expr) {
        let value = peel(value);
        if let Some(float) = as_float(value) {
            self.beginnings.0.insert(local, Beginning { float, place: value.ends() });
        }
    }

    /// Reports a variable that begins with an integer literal and is used as a value of that type, if it is a float. Gives whether it did.
    pub(super) fn is_begun_wrong(&mut self, place: &Place, wanted: &Ty) -> bool {
        let Root::Local(local) = place.root else { return false };
        let wanted = self.table.shallow(wanted);
        let is_float =
            matches!(wanted, Ty::Scalar(Scalar::F32 | Scalar::F64)) || self.table.kind(&wanted) == Some(VarKind::Float);
        if !place.path.is_empty() || !is_float || self.table.kind(&place.ty) != Some(VarKind::Integer) {
            return false;
        }
        let Some(Beginning { float, place: at }) = self.beginnings.0.get(&local).cloned() else { return false };
        let (name, used) = (&self.locals[local].name, self.describe(&wanted));
        let message = format!("`{name}` is used as `{used}` and begins with an integer: write `{float}`");
        self.session.errors.add(at, message);
        self.session.poisoned = true;
        self.table.refuse(&place.ty);
        true
    }
}

/// A literal without suffix, written as a float.
pub(super) fn as_float(value: &syn::Expr) -> Option<String> {
    match peel(value) {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(number), .. }) if number.suffix().is_empty() => {
            Some(number.to_string())
        }
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) if number.suffix().is_empty() => {
            let text = number.to_string();
            // A float has no digits of another base.
            let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
            Some(format!("{}.0", if is_decimal { text.as_str() } else { number.base10_digits() }))
        }
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => {
            as_float(expr).map(|number| format!("-{number}"))
        }
        _ => None,
    }
}
