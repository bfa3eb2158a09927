//! Sizes: numbers in the author's text that are known when the kernel is compiled, or made of what an instance or a pipeline decides.

use std::rc::Rc;

use super::infer::{Length, Ty, size_binary};
use super::named;
use super::session::{GenericArgument, Scope, Session};
use crate::ir::{Size, SizeOperator};

impl Session {
    /// A size: literals, const generics, #[device] constants and `+ - * / %` on them. What is wrong is reported.
    pub(super) fn size(&mut self, expression: &syn::Expr, scope: &Scope) -> Option<Length> {
        let length = self.workgroup_size(expression, scope)?;
        if matches!(&length, Length::Known(size) if size.is_specialised()) {
            self.error(expression, "a specialisation constant is known when a pipeline is made, and this size while building: it is a value, and the length of workgroup arrays");
            return None;
        }
        Some(length)
    }

    /// A size that may depend on specialisation constants: the length of a workgroup array.
    pub(super) fn workgroup_size(&mut self, expression: &syn::Expr, scope: &Scope) -> Option<Length> {
        let outside = self.enter(expression)?;
        let size = self.size_within(expression, scope);
        self.depth = outside;
        size
    }

    fn size_within(&mut self, expression: &syn::Expr, scope: &Scope) -> Option<Length> {
        match expression {
            syn::Expr::Paren(paren) => self.workgroup_size(&paren.expr, scope),
            syn::Expr::Group(group) => self.workgroup_size(&group.expr, scope),
            syn::Expr::Cast(cast) => self.converted_size(cast, scope),
            syn::Expr::Block(block) if block.label.is_none() => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(inner, None)] => self.workgroup_size(inner, scope),
                _ => self.no_size(expression),
            },
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) => match value.base10_parse::<u32>() {
                Ok(value) => Some(Length::Known(Size::Literal(value))),
                Err(_) => {
                    self.error(value, "too large: sizes are 32 bits wide on every device");
                    None
                }
            },
            syn::Expr::Path(path) if path.qself.is_none() => self.size_path(&path.path, scope),
            syn::Expr::Binary(binary) => {
                let operator = match &binary.op {
                    syn::BinOp::Add(_) => SizeOperator::Add,
                    syn::BinOp::Sub(_) => SizeOperator::Subtract,
                    syn::BinOp::Mul(_) => SizeOperator::Multiply,
                    syn::BinOp::Div(_) => SizeOperator::Divide,
                    syn::BinOp::Rem(_) => SizeOperator::Remainder,
                    _ => return self.no_size(expression),
                };
                let left = self.workgroup_size(&binary.left, scope)?;
                let right = self.workgroup_size(&binary.right, scope)?;
                let (Length::Known(left), Length::Known(right)) = (left, right) else {
                    return self.no_size(expression);
                };
                let size = size_binary(operator, left, right);
                if size.is_none() {
                    self.error(expression, "this size does not fit 32 bits, is below zero or divides by zero");
                }
                size.map(Length::Known)
            }
            _ => self.no_size(expression),
        }
    }

    /// `N as usize`: a conversion that leaves every size as it is.
    fn converted_size(&mut self, cast: &syn::ExprCast, scope: &Scope) -> Option<Length> {
        let size = self.workgroup_size(&cast.expr, scope)?;
        if matches!(&*cast.ty, syn::Type::Infer(_)) {
            return Some(size);
        }
        let scalar = match self.resolve_type(&cast.ty, scope) {
            Ty::Scalar(scalar) if scalar.is_integer() => scalar,
            Ty::Error => return None,
            _ => {
                self.error(&cast.ty, "a size is converted to integers alone: write `as usize`");
                return None;
            }
        };
        let value = match &size {
            Length::Known(size) => size.literal(),
            Length::Var(_) => None,
        };
        let name = scalar.rust_name();
        match value {
            Some(value) if i128::from(value) > scalar.limits()[1] => {
                self.error(
                    &cast.ty,
                    format!("`{name}` cannot hold this size, which is {value}: leave the conversion out"),
                );
                None
            }
            None if scalar.is_narrow() => {
                self.error(
                    &cast.ty,
                    format!("`{name}` may not hold this size, which an instance decides: leave the conversion out"),
                );
                None
            }
            _ => Some(size),
        }
    }

    fn no_size(&mut self, expression: &syn::Expr) -> Option<Length> {
        self.error(expression, "a size must be known when the kernel is compiled: literals, const generics, #[device] constants, and + - * / % on them");
        None
    }

    fn size_path(&mut self, path: &syn::Path, scope: &Scope) -> Option<Length> {
        if let Some(name) = path.get_ident()
            && let Some(GenericArgument::Const(_, length)) = scope.generics.get(&name.to_string())
        {
            return Some(length.clone());
        }
        let found = match (self.bundle(scope, path), named::owner(path), path.segments.last()) {
            (None, Some(owner), Some(last)) if self.bundle(scope, &owner).is_some() => {
                let ty = self.resolve_type_path(&owner, scope);
                if ty == Ty::Error {
                    return None;
                }
                self.member(&ty, &last.ident.to_string())
            }
            (found, ..) => found,
        };
        let Some(bundle) = found else {
            if self.is_inner(path) {
                return None;
            }
            self.error(path, format!("no constant `{}` is known here: a size is made of literals, const generics and constants that carry #[device]", super::reports::spelled(path)));
            return None;
        };
        if bundle.failed {
            self.poisoned = true;
            return None;
        }
        let syn::Item::Const(item) = &bundle.item else {
            self.error(path, "this is not a constant");
            return None;
        };
        if self.stack.contains(&bundle.hash) {
            self.error(path, "this constant is defined by itself");
            return None;
        }
        let inner = Scope { names: Rc::new(bundle.names.clone()), own: item.ident.to_string(), ..Scope::default() };
        if !self.enter_constant(&bundle.hash, path) {
            return None;
        }
        let size = self.size(&item.expr, &inner);
        self.stack.pop();
        size
    }
}
