//! Calls of `#[device]` functions: their generics, and what becomes of slices and references.

use std::rc::Rc;

use super::bundle::Bundle;
use super::ends::Placed;
use super::infer::{Length, Ty};
use super::places::{Operand, peel, peel_reference};
use super::scope::{Entity, Infer};
use super::session::Scope;
use super::signature::ParameterType;
use super::tree::{Argument, Callee, Kind, Node, Origin, Place, Slice};

/// An argument of a call.
pub(super) enum Given<'e> {
    /// As it is written.
    Written(&'e syn::Expr),
    /// What stands before the point of a method or beside an operator, which has been read.
    Operand(Operand, &'e syn::Expr),
}

impl Infer<'_> {
    /// A call of a `#[device]` function.
    ///
    /// `own` says what the generic arguments in `path` mean, which may have been written elsewhere.
    pub(super) fn device_call(
        &mut self,
        bundle: &Rc<Bundle>,
        path: &syn::Path,
        own: &Scope,
        given: Vec<Given<'_>>,
        e: &impl Placed,
    ) -> Node {
        if bundle.failed {
            self.read_in_vain(given.iter().filter_map(|given| match given {
                Given::Written(argument) => Some(*argument),
                Given::Operand(..) => None,
            }));
            return self.failed(e);
        }
        let syn::Item::Fn(item) = &bundle.item else {
            return self.wrong(path, "this is not a function");
        };
        let name = item.sig.ident.to_string();
        if self.session.stack.contains(&bundle.hash) {
            return self.wrong(path, format!("`{name}` calls itself by way of other functions: recursion is not part of the kernel language; use a loop"));
        }
        if given.len() != item.sig.inputs.len() {
            // What stands before the point of a method is not counted.
            let before = given.iter().filter(|given| matches!(given, Given::Operand(..))).count();
            self.wrong_count(&name, item.sig.inputs.len().saturating_sub(before), given.len() - before, e);
            return self.failed(e);
        }
        let (generics, types, constants) = self.call_generics(item, path, own);
        let scope = Scope { names: Rc::new(bundle.names.clone()), generics: Rc::new(generics), own: name.clone() };
        let mut arguments = Vec::new();
        let mut origins = Vec::new();
        let mut later = Vec::new();
        let mut wrong = constants.iter().any(Option::is_none);
        let constants: Vec<Length> = constants.into_iter().flatten().collect();
        for (parameter, argument) in item.sig.inputs.iter().zip(given) {
            let syn::FnArg::Typed(parameter) = parameter else {
                return self.failed(e);
            };
            let ty = self.session.parameter_type(&parameter.ty, &scope);
            let argument = match (argument, &ty) {
                (Given::Written(argument), _) => argument,
                (Given::Operand(operand, at), ParameterType::Value(ty) | ParameterType::Shared(ty)) => {
                    let node = self.value_of(operand, at);
                    arguments.push(Argument::Value(self.coerce(node, ty, at)));
                    continue;
                }
                (Given::Operand(operand, at), ParameterType::Reference(_)) => {
                    match self.writable_operand(operand, at) {
                        Some(place) => arguments.push(Argument::Reference(place)),
                        None => wrong = true,
                    }
                    continue;
                }
                (Given::Operand(..), _) => {
                    wrong = true;
                    continue;
                }
            };
            match ty {
                ParameterType::Value(ty) => {
                    let node = self.expect(argument, &ty);
                    arguments.push(Argument::Value(node));
                }
                ParameterType::Shared(ty) => {
                    let node = self.expect(peel_reference(argument), &ty);
                    arguments.push(Argument::Value(node));
                }
                ParameterType::Reference(ty) => match self.reference_argument(argument, &ty) {
                    Some(place) => arguments.push(Argument::Reference(place)),
                    None => wrong = true,
                },
                ParameterType::Slice { element, mutable, atomic, view, .. } => {
                    match self.slice_argument(argument, &element, mutable, atomic, view) {
                        Some(slice) => origins.push(slice.origin),
                        None => wrong = true,
                    }
                }
                // As in rustc, the other arguments say what the types of a closure are.
                ParameterType::Function(ty) => later.push((ty, argument)),
                ParameterType::Failed => {
                    self.read_in_vain([argument]);
                    wrong = true;
                }
            }
        }
        let mut functions = Vec::new();
        for (ty, argument) in later {
            match self.function_argument(argument, &ty, &scope) {
                Some(function) => functions.push(function),
                None => wrong = true,
            }
        }
        let result = match &item.sig.output {
            syn::ReturnType::Default => Ty::Unit,
            syn::ReturnType::Type(_, ty) => self.session.resolve_type(ty, &scope),
        };
        // A length that stays open where an argument is wrong would have come from there.
        let is_wrong = |argument: &Argument| match argument {
            Argument::Value(node) => self.table.shallow(&node.ty) == Ty::Error,
            Argument::Reference(_) => false,
        };
        wrong |= self.session.poisoned
            && constants.iter().any(|length| self.table.length(length).is_none())
            && arguments.iter().any(is_wrong);
        if wrong {
            let mut node = self.failed(e);
            if result == Ty::Unit {
                node.ty = Ty::Unit;
            }
            return node;
        }
        let span = self.session.span(path);
        let callee = Callee { hash: bundle.hash.clone(), types, constants, origins, functions, span };
        self.node(Kind::Call(Rc::new(callee), arguments), result, e)
    }

    pub(super) fn slice_argument(
        &mut self,
        e: &syn::Expr,
        element: &Ty,
        mutable: bool,
        atomic: bool,
        view: Option<u32>,
    ) -> Option<Slice> {
        let slice = match self.operand(peel_reference(e)) {
            Operand::Slice(slice) => slice,
            Operand::Value(Node { kind: Kind::Error, .. }) => return None,
            Operand::Place(_) | Operand::Value(_) => {
                self.error(e, "a slice argument is a buffer or a workgroup array of the kernel, as a whole; a private array is passed as `&mut [T; N]` or by value");
                return None;
            }
        };
        if slice.view.is_some() != view.is_some() || (view.is_some() && slice.view != view) {
            self.error(
                e,
                if view.is_some() { "expected a view of that rank" } else { "expected a slice, this is a view" },
            );
            return None;
        }
        if slice.atomic != atomic {
            self.error(
                e,
                if atomic {
                    "expected a slice of atomics"
                } else {
                    "this slice holds atomics: the parameter would have to be `&[Atomic<T>]`"
                },
            );
            return None;
        }
        if mutable && !slice.writable {
            self.error(e, "the function writes to this slice, which is read only here: declare it `&mut [T]`");
            return None;
        }
        if !self.table.unify(&slice.element, element) {
            let (wanted, found) = (self.describe(element), self.describe(&slice.element));
            self.error(e, format!("expected a slice of `{wanted}`, found a slice of `{found}`"));
            return None;
        }
        if let (true, Origin::Workgroup(variable)) = (mutable, slice.origin) {
            self.session.handed.insert(variable);
        }
        Some(slice)
    }

    pub(super) fn reference_argument(&mut self, e: &syn::Expr, ty: &Ty) -> Option<Place> {
        let inner = match peel(e) {
            syn::Expr::Reference(reference) if reference.mutability.is_some() => &*reference.expr,
            // A `&mut` parameter is handed on by its name.
            syn::Expr::Path(path)
                if path
                    .path
                    .get_ident()
                    .is_some_and(|name| matches!(self.lookup(&name.to_string()), Some(Entity::Reference(..)))) =>
            {
                e
            }
            other => {
                self.error(other, "this parameter is changed by the function: pass `&mut x`");
                return None;
            }
        };
        let place = self.writable(inner)?;
        if !self.table.unify(&place.ty, ty) {
            let (wanted, found) = (self.describe(ty), self.describe(&place.ty));
            self.error(e, format!("expected `&mut {wanted}`, found `&mut {found}`"));
            return None;
        }
        Some(place)
    }
}
