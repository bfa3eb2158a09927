//! Generic parameters: their bounds, at the parameter or in a `where`, and what is given for them in a call.

use std::collections::HashMap;
use std::rc::Rc;

use super::infer::{Length, Ty, VarKind};
use super::items;
use super::places::peel;
use super::scope::Infer;
use super::session::{GenericArgument, Generics, Scope, Session};
use super::signature::FunctionType;
use crate::ir::{Bound, GenericKind, Scalar};

/// The bounds of a type parameter, where it is written and in the `where`.
fn bounds<'g>(generics: &'g syn::Generics, parameter: &'g syn::TypeParam) -> Vec<&'g syn::TypeParamBound> {
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let of_where = predicates.filter_map(|predicate| match predicate {
        syn::WherePredicate::Type(predicate) if names(&predicate.bounded_ty, &parameter.ident) => {
            Some(&predicate.bounds)
        }
        _ => None,
    });
    parameter.bounds.iter().chain(of_where.flatten()).collect()
}

fn names(ty: &syn::Type, name: &syn::Ident) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.is_ident(name))
}

/// The `Fn(f32, f32) -> f32` among bounds, beside which `Copy` and `Clone` may stand.
pub(super) fn bound_function<'b>(bounds: impl Iterator<Item = &'b syn::TypeParamBound>) -> Option<FunctionType> {
    let mut found = None;
    for bound in bounds {
        let syn::TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let last = bound.path.segments.last()?;
        match &last.arguments {
            syn::PathArguments::Parenthesized(arguments) if last.ident == "Fn" && found.is_none() => {
                let output = match &arguments.output {
                    syn::ReturnType::Default => None,
                    syn::ReturnType::Type(_, ty) if matches!(&**ty, syn::Type::Tuple(unit) if unit.elems.is_empty()) => {
                        None
                    }
                    syn::ReturnType::Type(_, ty) => Some((**ty).clone()),
                };
                let inputs = arguments.inputs.iter().map(|input| input.ty.clone()).collect();
                found = Some(FunctionType { inputs, output });
            }
            syn::PathArguments::None if last.ident == "Copy" || last.ident == "Clone" => {}
            _ => return None,
        }
    }
    found
}

/// The type parameters that are functions.
pub(super) fn function_generics(generics: &syn::Generics) -> Generics {
    generics
        .type_params()
        .filter_map(|parameter| {
            let function = bound_function(bounds(generics, parameter).into_iter())?;
            Some((parameter.ident.to_string(), GenericArgument::Function(Rc::new(function))))
        })
        .collect()
}

/// The names of types and constants, in order.
fn generic_names(generics: &syn::Generics) -> Vec<String> {
    generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            syn::GenericParam::Type(ty) => Some(ty.ident.to_string()),
            syn::GenericParam::Const(constant) => Some(constant.ident.to_string()),
            syn::GenericParam::Lifetime(_) => None,
        })
        .collect()
}

impl Session {
    /// Reports what a `where` says beside bounds of type parameters.
    pub(super) fn check_where(&mut self, generics: &syn::Generics) {
        let Some(clause) = &generics.where_clause else {
            return;
        };
        for predicate in &clause.predicates {
            let known = match predicate {
                syn::WherePredicate::Type(predicate) => {
                    generics.type_params().any(|parameter| names(&predicate.bounded_ty, &parameter.ident))
                }
                syn::WherePredicate::Lifetime(_) => true,
                _ => false,
            };
            if !known {
                self.error(predicate, "a `where` bounds type parameters of this function, as in `where T: Number`");
            }
        }
    }

    /// The name and kind of each type that is no function and each constant, in order.
    pub(super) fn generic_kinds(&mut self, generics: &syn::Generics) -> Vec<(String, GenericKind)> {
        let mut kinds = Vec::new();
        for parameter in &generics.params {
            match parameter {
                syn::GenericParam::Lifetime(_) => {}
                syn::GenericParam::Type(ty) => {
                    if let Some((_, default)) = &ty.default {
                        self.error(default, "a type parameter of a kernel has no default");
                    }
                    let bounds = bounds(generics, ty);
                    if bound_function(bounds.iter().copied()).is_some() {
                        continue;
                    }
                    let bounds: Vec<String> = bounds.into_iter().map(bound_name).collect();
                    let bound = match bounds.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                        [name] if known_bound(name).is_some() => known_bound(name).unwrap_or(Bound::Element),
                        names if names.contains(&"Fn") => {
                            self.error(ty, format!("a function parameter is bounded by `Fn`, and by `Copy` if it is handed on: `{}: Fn(f32, f32) -> f32`", ty.ident));
                            Bound::Element
                        }
                        _ => {
                            self.error(ty, format!("a type parameter has one of the bounds `Element` (moved about), `Float` ({}, converted to f32), `Number` (with arithmetic) or `Int` (integers, with bits): `{}: Number`", Bound::Float.names(), ty.ident));
                            Bound::Element
                        }
                    };
                    kinds.push((ty.ident.to_string(), GenericKind::Type(bound)));
                }
                syn::GenericParam::Const(constant) => {
                    if let Some((_, default)) = &constant.default {
                        self.error(default, "a const parameter of a kernel has no default");
                    }
                    let scope = Scope::default();
                    let scalar = match self.resolve_type(&constant.ty, &scope) {
                        Ty::Scalar(scalar @ (Scalar::Index | Scalar::U32 | Scalar::I32 | Scalar::Bool)) => scalar,
                        Ty::Error => Scalar::Index,
                        _ => {
                            self.error(&constant.ty, "a const parameter is a usize, u32, i32 or bool");
                            Scalar::Index
                        }
                    };
                    kinds.push((constant.ident.to_string(), GenericKind::Const(scalar)));
                }
            }
        }
        kinds
    }

    /// Whether a type may stand for a type parameter of that bound.
    pub(super) fn satisfies(&self, ty: &Ty, bound: Bound) -> bool {
        match (ty, bound) {
            (Ty::Error, _) => true,
            (Ty::Scalar(Scalar::Generic(index)), _) => {
                let has = self.bound(*index);
                has.is_some_and(|has| has.implies(bound))
            }
            (ty, Bound::Element) => items::is_element(ty),
            (Ty::Scalar(scalar), bound) => bound.scalars().contains(scalar),
            _ => false,
        }
    }
}

fn known_bound(name: &str) -> Option<Bound> {
    Bound::ALL.into_iter().find(|bound| bound.name() == name)
}

/// The last name of a bound.
fn bound_name(bound: &syn::TypeParamBound) -> String {
    match bound {
        syn::TypeParamBound::Trait(bound) => match bound.path.segments.last() {
            Some(last) if last.ident == "FnMut" || last.ident == "FnOnce" => "Fn".to_owned(),
            Some(last) => last.ident.to_string(),
            None => String::new(),
        },
        _ => String::new(),
    }
}

/// The generics as a kernel's own: each stands for itself.
pub(super) fn own_generics(kinds: &[(String, GenericKind)]) -> Generics {
    kinds
        .iter()
        .enumerate()
        .map(|(index, (name, kind))| {
            let index = index as u32;
            let argument = match kind {
                GenericKind::Type(_) => GenericArgument::Type(Ty::Scalar(Scalar::Generic(index))),
                GenericKind::Const(scalar) => {
                    GenericArgument::Const(*scalar, Length::Known(crate::ir::Size::Generic(index)))
                }
            };
            (name.clone(), argument)
        })
        .collect()
}

impl Infer<'_> {
    /// Variables, or what is written, for the generics of a function that is called; no constant where what is written is wrong.
    pub(super) fn call_generics(
        &mut self,
        item: &syn::ItemFn,
        path: &syn::Path,
        own: &Scope,
    ) -> (Generics, Vec<Ty>, Vec<Option<Length>>) {
        let written: Vec<&syn::GenericArgument> = match path.segments.last().map(|segment| &segment.arguments) {
            Some(syn::PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect(),
            _ => Vec::new(),
        };
        let kinds = self.session.generic_kinds(&item.sig.generics);
        // A function parameter's type has no name, so nothing is written for it but `_`.
        let parameters = generic_names(&item.sig.generics);
        if !written.is_empty() && written.len() != parameters.len() {
            let (wanted, given) = (parameters.len(), written.len());
            self.error(path, format!("`{}` has {wanted} generic parameters, {given} given", item.sig.ident));
        }
        let (mut generics, mut types, mut constants) = (HashMap::new(), Vec::new(), Vec::new());
        for (name, kind) in kinds {
            let index = parameters.iter().position(|parameter| *parameter == name);
            let argument = index.and_then(|index| written.get(index).copied());
            match kind {
                GenericKind::Type(_) => {
                    let ty = match argument {
                        Some(syn::GenericArgument::Type(ty)) if !matches!(ty, syn::Type::Infer(_)) => {
                            self.session.resolve_type(ty, own)
                        }
                        _ => self.table.fresh(VarKind::Any),
                    };
                    types.push(ty.clone());
                    generics.insert(name, GenericArgument::Type(ty));
                }
                GenericKind::Const(scalar) => {
                    let length = match argument {
                        Some(syn::GenericArgument::Const(value)) => self.constant_argument(value, scalar, own),
                        // A constant's name looks like a type's.
                        Some(syn::GenericArgument::Type(syn::Type::Path(path))) => {
                            let value = syn::Expr::Path(syn::ExprPath {
                                attrs: Vec::new(),
                                qself: None,
                                path: path.path.clone(),
                            });
                            self.session.size(&value, own)
                        }
                        _ => Some(self.table.fresh_length()),
                    };
                    constants.push(length.clone());
                    let length = length.unwrap_or_else(|| self.table.fresh_length());
                    generics.insert(name, GenericArgument::Const(scalar, length));
                }
            }
        }
        generics.extend(function_generics(&item.sig.generics));
        (generics, types, constants)
    }

    fn constant_argument(&mut self, value: &syn::Expr, scalar: Scalar, own: &Scope) -> Option<Length> {
        match peel(value) {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(value), .. }) if scalar == Scalar::Bool => {
                Some(Length::Known(crate::ir::Size::Literal(u32::from(value.value))))
            }
            syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) if scalar == Scalar::I32 => {
                match self.session.size(expr, own)? {
                    Length::Known(crate::ir::Size::Literal(value)) => {
                        Some(Length::Known(crate::ir::Size::Literal(value.wrapping_neg())))
                    }
                    _ => None,
                }
            }
            value => self.session.size(value, own),
        }
    }
}
