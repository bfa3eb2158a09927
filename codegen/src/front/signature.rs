//! Signatures: of kernels, whose slices are bindings, and of `#[device]` functions, whose slices are their callers'.

use std::rc::Rc;

use super::callables;
use super::generics::bound_function;
use super::infer::Ty;
use super::session::{Scope, Session};
use crate::ir::Scalar;

/// What a parameter is, by its type.
pub(super) enum ParameterType {
    Value(Ty),
    /// `&[T]`, `&mut [T]`, `&[Atomic<T>]`, `&View<T, R>`, `&mut View<T, R>`.
    Slice {
        element: Ty,
        /// The element's type as it is written.
        written: Box<syn::Type>,
        mutable: bool,
        atomic: bool,
        view: Option<u32>,
    },
    /// `&mut T` of a value, in functions alone.
    Reference(Ty),
    /// `&T` of a value, in functions alone: passed by value.
    Shared(Ty),
    /// A function, in functions alone.
    Function(Rc<FunctionType>),
    Failed,
}

/// The type of a function parameter, as it is written: `Fn(f32, f32) -> f32`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FunctionType {
    pub inputs: Vec<syn::Type>,
    pub output: Option<syn::Type>,
}

/// The `T` of `Atomic<T>`.
pub(super) fn atomic_inner(ty: &syn::Type) -> Option<&syn::Type> {
    match ty {
        syn::Type::Group(group) => atomic_inner(&group.elem),
        syn::Type::Paren(paren) => atomic_inner(&paren.elem),
        syn::Type::Path(path) => {
            let last = path.path.segments.last()?;
            if last.ident != "Atomic" {
                return None;
            }
            match &last.arguments {
                syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
                    syn::GenericArgument::Type(ty) if arguments.args.len() == 1 => Some(ty),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}

fn peel(ty: &syn::Type) -> &syn::Type {
    match ty {
        syn::Type::Group(group) => peel(&group.elem),
        syn::Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

impl Session {
    /// What a parameter of that type is.
    pub(super) fn parameter_type(&mut self, ty: &syn::Type, scope: &Scope) -> ParameterType {
        let syn::Type::Reference(reference) = peel(ty) else {
            if let syn::Type::ImplTrait(written) = peel(ty) {
                return match bound_function(written.bounds.iter()) {
                    Some(function) => ParameterType::Function(Rc::new(function)),
                    None => {
                        self.error(
                            ty,
                            "`impl Trait` is for functions alone, as in `impl Fn(f32) -> f32`: others are generic as `fn f<T: Number>(x: T)`",
                        );
                        ParameterType::Failed
                    }
                };
            }
            if let Some(function) = callables::function_type(scope, peel(ty)) {
                return ParameterType::Function(function);
            }
            return match self.resolve_type(ty, scope) {
                Ty::Error => ParameterType::Failed,
                Ty::Unit => {
                    self.error(ty, "a parameter has a value");
                    ParameterType::Failed
                }
                ty => ParameterType::Value(ty),
            };
        };
        let mutable = reference.mutability.is_some();
        if !mutable {
            let function = match peel(&reference.elem) {
                inner @ syn::Type::ImplTrait(_) => Some(self.parameter_type(inner, scope)),
                inner => callables::function_type(scope, inner).map(ParameterType::Function),
            };
            if let Some(function) = function {
                return function;
            }
        }
        match peel(&reference.elem) {
            syn::Type::Slice(slice) => self.slice_type(ty, &slice.elem, mutable, scope),
            syn::Type::Path(path)
                if path.path.segments.last().is_some_and(|last| last.ident == "View")
                    && self.bundle(scope, &path.path).is_none() =>
            {
                self.view_type(ty, path, mutable, scope)
            }
            inner => match (self.resolve_type(inner, scope), mutable) {
                (Ty::Error, _) => ParameterType::Failed,
                (ty, true) => ParameterType::Reference(ty),
                (ty, false) => ParameterType::Shared(ty),
            },
        }
    }

    fn slice_type(&mut self, at: &syn::Type, element: &syn::Type, mutable: bool, scope: &Scope) -> ParameterType {
        if let Some(inner) = atomic_inner(element) {
            let ty = self.resolve_type(inner, scope);
            let fits = |scalar: Scalar| crate::ir::AtomicFunction::Load.takes(scalar);
            if !matches!(ty, Ty::Scalar(scalar) if fits(scalar)) && ty != Ty::Error {
                self.error(inner, "atomics are `Atomic<T>` of u32, i32, u64, i64 and f32");
                return ParameterType::Failed;
            }
            if mutable {
                self.error(at, "atomics are shared: write `&[Atomic<u32>]`");
                return ParameterType::Failed;
            }
            return ParameterType::Slice {
                element: ty,
                written: Box::new(inner.clone()),
                mutable: false,
                atomic: true,
                view: None,
            };
        }
        if let syn::Type::Slice(_) | syn::Type::Reference(_) = peel(element) {
            self.error(
                element,
                "slices of slices are not part of the kernel language: use one slice, and compute the index",
            );
            return ParameterType::Failed;
        }
        let ty = self.resolve_type(element, scope);
        if ty == Ty::Error {
            return ParameterType::Failed;
        }
        ParameterType::Slice { element: ty, written: Box::new(element.clone()), mutable, atomic: false, view: None }
    }

    fn view_type(&mut self, at: &syn::Type, path: &syn::TypePath, mutable: bool, scope: &Scope) -> ParameterType {
        let arguments = path.path.segments.last().map(|segment| &segment.arguments);
        let parts = match arguments {
            Some(syn::PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let [syn::GenericArgument::Type(element), rank] = parts.as_slice() else {
            self.error(at, "a view has an element type and a rank: `&View<f32, 2>`");
            return ParameterType::Failed;
        };
        let rank = match rank {
            syn::GenericArgument::Const(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(rank), .. })) => {
                rank.base10_parse::<u32>().ok()
            }
            _ => None,
        };
        let Some(rank @ 1..=8) = rank else {
            self.error(at, "the rank of a view is a literal from 1 to 8");
            return ParameterType::Failed;
        };
        let ty = self.resolve_type(element, scope);
        if ty == Ty::Error {
            return ParameterType::Failed;
        }
        ParameterType::Slice {
            element: ty,
            written: Box::new(element.clone()),
            mutable,
            atomic: false,
            view: Some(rank),
        }
    }

    /// Reports what a function's signature has beside parameters and a result.
    pub(super) fn check_signature(&mut self, signature: &syn::Signature) {
        let word = "not part of the kernel language: remove it";
        if let Some(token) = &signature.asyncness {
            self.error(token, format!("`async` is {word}"));
        }
        if let Some(abi) = &signature.abi {
            self.error(abi, format!("an ABI is {word}"));
        }
        if !matches!(signature.safety, syn::Safety::Default) {
            self.error(&signature.safety, format!("`unsafe` is {word}; accesses out of bounds are harmless"));
        }
        if let Some(variadic) = &signature.variadic {
            self.error(variadic, format!("a variable number of parameters is {word}"));
        }
        self.check_where(&signature.generics);
    }
}

/// The name of a parameter and whether it is declared `mut`.
pub(super) fn parameter_name<'a>(session: &mut Session, parameter: &'a syn::PatType) -> Option<(&'a syn::Ident, bool)> {
    match &*parameter.pat {
        syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some((&name.ident, name.mutability.is_some()))
        }
        other => {
            session.error(other, "a parameter is one name");
            None
        }
    }
}
