//! What follows from a mistake, of which nothing more is said.
//!
//! A mistake is told once, where it is made: an item that has one travels as `failed`, and what uses it comes to nothing without a word, so that the item or kernel
//! around it is refused too. What is handed to such an item is read all the same, since it may have mistakes of its own; but what is wanted there, nobody knows.

use super::infer::Ty;
use super::places::peel_reference;
use super::scope::{Entity, Infer};
use super::tree::Node;

impl Infer<'_> {
    /// Whether a name stands for something wrong, which was reported where it is declared.
    pub(super) fn is_mistaken(&self, entity: &Entity) -> bool {
        match entity {
            Entity::Failed => true,
            // What is never reached has that type too, and then nothing was reported.
            Entity::Local(local) => self.session.poisoned && self.table.shallow(&self.locals[*local].ty) == Ty::Error,
            _ => false,
        }
    }

    /// A call of something wrong.
    pub(super) fn call_in_vain(&mut self, e: &syn::ExprCall) -> Node {
        self.read_in_vain(&e.args);
        self.failed(e)
    }

    /// Reads what is handed to something wrong, for mistakes of its own.
    pub(super) fn read_in_vain<'e>(&mut self, values: impl IntoIterator<Item = &'e syn::Expr>) {
        for value in values {
            self.value_in_vain(value);
        }
    }

    fn value_in_vain(&mut self, value: &syn::Expr) {
        match peel_reference(value) {
            syn::Expr::Closure(closure) => {
                let inputs = vec![Entity::Failed; closure.inputs.len()];
                let _ = self.in_closure(closure, inputs, &Ty::Error);
            }
            syn::Expr::Path(path) if path.qself.is_none() && self.names_function(&path.path) => {}
            // As an operand, since a slice or an atomic may be wanted.
            part @ (syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_)) => {
                let _ = self.operand(part);
            }
            other => {
                let _ = self.expr(other, Some(&Ty::Error));
            }
        }
    }

    /// Whether a path names a function, which is no value and may be wanted all the same.
    fn names_function(&self, path: &syn::Path) -> bool {
        if let Some(name) = path.get_ident().map(ToString::to_string) {
            if let Some(entity) = self.lookup(&name) {
                return matches!(entity, Entity::Function(_));
            }
            if self.is_captured(&name) {
                return false;
            }
        }
        let bundle = self.session.bundle(&self.scope, path);
        bundle.is_some_and(|bundle| matches!(bundle.item, syn::Item::Fn(_))) || self.math_function(path).is_some()
    }
}
