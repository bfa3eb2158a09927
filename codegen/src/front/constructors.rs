//! Functions of types: `Vec4::new`, `T::lit`, `f32::from_bits`.

use super::device_calls::Given;
use super::ends::Placed;
use super::infer::{Ty, VarKind};
use super::items;
use super::places::peel;
use super::scope::Infer;
use super::session::GenericArgument;
use super::tree::{Kind, Node};
use crate::ir::{Bound, MathFunction, Scalar};

/// The unsigned integer as wide as a float.
pub(super) const fn bits_of(float: Scalar) -> Scalar {
    match float.bits() {
        16 => Scalar::U16,
        64 => Scalar::U64,
        _ => Scalar::U32,
    }
}

impl Infer<'_> {
    /// `T::lit(0.5)`, `Vec4::new(..)`, `f32::from_bits(u)`.
    pub(super) fn owned_call(&mut self, owner: &syn::Path, name: &str, e: &syn::ExprCall, hint: Option<&Ty>) -> Node {
        let Some(last) = owner.segments.last() else {
            return self.failed(e);
        };
        let owner_name = last.ident.to_string();
        let full = format!("{owner_name}::{name}");
        if let Some(lanes) = items::lanes(&owner_name) {
            return self.vector_call(lanes, last, name, &full, e, hint);
        }
        if let Some(role) = super::matrices::role(&owner_name) {
            return self.matrix_call(role, last, name, &full, e, hint);
        }
        let generic = match self.scope.generics.get(&owner_name) {
            Some(GenericArgument::Type(ty)) if owner.segments.len() == 1 => Some(ty.clone()),
            _ => None,
        };
        let ty = match generic.or_else(|| items::scalar(&owner_name).map(Ty::Scalar)) {
            Some(ty) => ty,
            None => {
                let scope = self.scope.clone();
                let ty = self.session.resolve_type_path(owner, &scope);
                if ty == Ty::Error {
                    return self.call_in_vain(e);
                }
                let (Some(function), syn::Expr::Path(path)) = (self.session.member(&ty, name), peel(&e.func)) else {
                    let message = self.session.no_member(&ty, name);
                    return self.wrong(&e.func, message);
                };
                return self.device_call(&function, &path.path, &scope, e.args.iter().map(Given::Written).collect(), e);
            }
        };
        match name {
            "lit" => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                self.generic_literal(value, ty, e)
            }
            "from_f32" => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, &Ty::F32);
                let fits = match &ty {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) == Some(Bound::Float),
                    Ty::Scalar(scalar) => scalar.is_float(),
                    ty => *ty == Ty::Error,
                };
                if !fits {
                    let shown = self.describe(&ty);
                    return self.wrong(e, format!("`from_f32` belongs to `Float` types, `{shown}` is none: use `as`"));
                }
                self.convert(value, ty, e)
            }
            "from_bits" if matches!(ty, Ty::Scalar(scalar) if scalar.is_float()) => {
                let Some([value]) = self.arguments(e, &full) else {
                    return self.failed(e);
                };
                let bits = match ty {
                    Ty::Scalar(scalar) => bits_of(scalar),
                    _ => Scalar::U32,
                };
                let value = self.expect(value, &Ty::Scalar(bits));
                self.bitcast(value, ty, e)
            }
            _ => match MathFunction::from_name(name) {
                Some(function) => {
                    let mut nodes = Vec::new();
                    for argument in &e.args {
                        nodes.push(self.expect(argument, &ty));
                    }
                    let at: Vec<&syn::Expr> = e.args.iter().collect();
                    self.math(function, nodes, &at, e)
                }
                None => {
                    let advice = match (name, &ty) {
                        ("from" | "try_from", Ty::Scalar(Scalar::F16 | Scalar::BF16)) => {
                            format!(": a half is made by `{owner_name}::from_f32(..)`")
                        }
                        (_, Ty::Scalar(Scalar::Generic(_))) => format!(
                            ": `{owner_name}` stands for numbers, and has `{owner_name}::lit(0.5)`; a function is given as a parameter, as in `f: impl Fn(f32) -> f32`"
                        ),
                        ("from" | "try_from", _) => format!(": conversions are written `x as {owner_name}`"),
                        _ => String::new(),
                    };
                    self.wrong(&e.func, format!("there is no function `{full}` in kernels{advice}"))
                }
            },
        }
    }

    /// A conversion, left out if it changes nothing.
    pub(super) fn convert(&mut self, value: Node, ty: Ty, e: &impl Placed) -> Node {
        if self.table.shallow(&value.ty) == ty {
            return value;
        }
        self.node(Kind::Convert(Box::new(value)), ty, e)
    }

    /// `T::lit(0.5)`; the literal is an `f64` in the author's text and is left as it is written.
    pub(super) fn generic_literal(&mut self, value: &syn::Expr, ty: Ty, e: &syn::ExprCall) -> Node {
        let fits = match &ty {
            Ty::Scalar(Scalar::Generic(index)) => self.session.bound(*index) != Some(Bound::Element),
            Ty::Scalar(scalar) => (scalar.is_number() || scalar.is_float()) && *scalar != Scalar::Index,
            _ => false,
        };
        if !fits {
            let shown = self.describe(&ty);
            return self.wrong(e, format!("`lit` belongs to `Float` and `Number` types, `{shown}` is none"));
        }
        let (sign, literal) = match peel(value) {
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => (-1.0, peel(expr)),
            other => (1.0, other),
        };
        let number = match literal {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(value), .. }) => {
                value.base10_digits().parse::<f64>().ok()
            }
            _ => None,
        };
        match number {
            Some(number) => self.node(Kind::Float((sign * number) as f32, sign * number), ty, e),
            None => self.wrong(value, "`lit` takes a float literal, as in `T::lit(2.0)`"),
        }
    }

    pub(super) fn vector_call(
        &mut self,
        lanes: u8,
        segment: &syn::PathSegment,
        name: &str,
        full: &str,
        e: &syn::ExprCall,
        hint: Option<&Ty>,
    ) -> Node {
        let scope = self.scope.clone();
        let Some(written) = self.session.vector_scalar(segment, &scope) else {
            return self.failed(e);
        };
        let wanted = match hint.map(|hint| self.table.shallow(hint)) {
            Some(Ty::Vector(count, scalar)) if count == lanes => Some(*scalar),
            _ => None,
        };
        match name {
            "new" | "splat" => {
                let count = if name == "new" { usize::from(lanes) } else { 1 };
                if e.args.len() != count {
                    self.wrong_count(full, count, e.args.len(), e);
                    return self.failed(e);
                }
                let scalar = match written.or(wanted) {
                    Some(scalar) => scalar,
                    None => self.table.fresh(VarKind::Any),
                };
                let mut nodes = Vec::new();
                for argument in &e.args {
                    nodes.push(self.expect(argument, &scalar));
                }
                let found = self.known(&scalar, e);
                if found == Ty::Error {
                    return self.failed(e);
                }
                if !matches!(&found, Ty::Var(_)) && !matches!(&found, Ty::Scalar(scalar) if *scalar != Scalar::Bool) {
                    let shown = self.describe(&found);
                    return self.wrong(e, format!("the lanes of a vector are numbers, this is `{shown}`"));
                }
                let ty = Ty::vector(lanes, scalar);
                match (name, nodes.pop()) {
                    ("splat", Some(value)) => self.node(Kind::Splat(Box::new(value)), ty, e),
                    (_, Some(value)) => {
                        nodes.push(value);
                        self.node(Kind::Compose(nodes), ty, e)
                    }
                    (_, None) => self.failed(e),
                }
            }
            "from_f32" => {
                let Some([value]) = self.arguments(e, full) else {
                    return self.failed(e);
                };
                let value = self.expect(value, &Ty::vector(lanes, Ty::F32));
                let Some(scalar) = written.or(wanted) else {
                    if hint.is_some_and(|hint| self.table.shallow(hint) == Ty::Error) {
                        return self.failed(e);
                    }
                    return self.wrong(e, format!("write the type to convert to: `Vec{lanes}::<f16>::from_f32(v)`"));
                };
                let fits = match self.table.shallow(&scalar) {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.bound(index) == Some(Bound::Float),
                    ty => matches!(ty, Ty::Scalar(scalar) if scalar.is_float()),
                };
                if !fits {
                    return self.wrong(e, "`from_f32` gives vectors of f16, of f32 and of `Float` types");
                }
                self.convert(value, Ty::vector(lanes, scalar), e)
            }
            _ => self.wrong(
                &e.func,
                format!("there is no function `{full}` in kernels: vectors are made by `new`, `splat` and `from_f32`"),
            ),
        }
    }
}
