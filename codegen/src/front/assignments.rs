//! Where `operator=` is a call for the sake of a type parameter.
//!
//! Rust evaluates the value of `place operator= value` before the place if both are its own numbers, and the place first if the operator is a method of a trait. Which of the two it is, is decided where
//! the text is checked: of a type parameter it is a call, whatever stands for it later. But a copy of a function is read with the types that it is made for, in which no type parameter is left. So a
//! function that has some is read once more, by itself, as where it is defined, and no more is kept of that than a mark for each `operator=`, in the order of the text. Closures are copied with their
//! marks. Syntax is found again by its address, as long as it does not move.

use std::collections::{HashMap, HashSet};

use syn::visit::{self, Visit};

use super::bundle::Bundle;
use super::functions::Head;
use super::infer::Ty;
use super::operators::operator;
use super::session::Session;
use crate::ir::{Module, Scalar};

/// What is known of each `operator=` of a body, by its address.
#[derive(Default)]
pub(super) struct Assignments {
    /// The type of its place.
    types: HashMap<usize, Ty>,
    /// Those that are marked.
    calls: HashSet<usize>,
}

impl Assignments {
    /// Notes the type of a place. Gives whether the `operator=` is marked.
    pub(super) fn note(&mut self, e: &syn::ExprBinary, ty: &Ty) -> bool {
        self.types.insert(address(e), ty.clone());
        self.calls.contains(&address(e))
    }

    /// Puts marks on syntax.
    pub(super) fn mark(&mut self, all: &[&syn::ExprBinary], marks: &[bool]) {
        let marked = all.iter().zip(marks).filter(|(_, is_marked)| **is_marked);
        self.calls.extend(marked.map(|(e, _)| address(e)));
    }

    /// The marks on syntax.
    pub(super) fn marks(&self, all: &[&syn::ExprBinary]) -> Vec<bool> {
        all.iter().map(|e| self.calls.contains(&address(e))).collect()
    }
}

/// Every `operator=` of a function, in the order of the text.
pub(super) fn in_function(item: &syn::ItemFn) -> Vec<&syn::ExprBinary> {
    let mut all = All::default();
    all.visit_block(&item.block);
    all.0
}

/// Every `operator=` of a closure, in the order of the text.
pub(super) fn in_closure(closure: &syn::ExprClosure) -> Vec<&syn::ExprBinary> {
    let mut all = All::default();
    all.visit_expr(&closure.body);
    all.0
}

#[derive(Default)]
struct All<'ast>(Vec<&'ast syn::ExprBinary>);

impl<'ast> Visit<'ast> for All<'ast> {
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        let (_, assigns) = operator(&e.op);
        if assigns {
            self.0.push(e);
        }
        visit::visit_expr_binary(self, e);
    }
}

fn address(e: &syn::ExprBinary) -> usize {
    std::ptr::from_ref(e) as usize
}

/// Whether the order may show: the place has an index, and the index or the value may act.
fn order_shows(e: &syn::ExprBinary) -> bool {
    let (mut place, mut value) = (Parts::default(), Parts::default());
    place.visit_expr(&e.left);
    value.visit_expr(&e.right);
    place.has_index && (place.may_act || value.may_act)
}

/// What stands in an expression.
#[derive(Default)]
struct Parts {
    has_index: bool,
    may_act: bool,
}

impl<'ast> Visit<'ast> for Parts {
    fn visit_expr_index(&mut self, e: &'ast syn::ExprIndex) {
        self.has_index = true;
        visit::visit_expr_index(self, e);
    }

    fn visit_expr_call(&mut self, _: &'ast syn::ExprCall) {
        self.may_act = true;
    }

    fn visit_expr_method_call(&mut self, _: &'ast syn::ExprMethodCall) {
        self.may_act = true;
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {
        self.may_act = true;
    }
}

impl Session {
    /// A mark for each `operator=` of a function that has type parameters, if there is any mark.
    pub(super) fn calls_of_traits(&mut self, bundle: &Bundle, item: &syn::ItemFn) -> Vec<bool> {
        if let Some(known) = self.calls.get(&bundle.hash) {
            return known.clone();
        }
        let calls = self.read_by_itself(bundle, item).unwrap_or_default();
        self.calls.insert(bundle.hash.clone(), calls.clone());
        calls
    }

    fn read_by_itself(&self, bundle: &Bundle, item: &syn::ItemFn) -> Option<Vec<bool>> {
        let all = in_function(item);
        if !all.iter().any(|e| order_shows(e)) {
            return None;
        }
        // What is wrong with the function was said where it is defined.
        let mut alone = Self::new(Module::default(), Vec::new(), self.support.clone());
        alone.spans = None;
        alone.bundles.clone_from(&self.bundles);
        alone.members.clone_from(&self.members);
        alone.stack.push(bundle.hash.clone());
        let Head { scope, entries, result, .. } = alone.head_alone(item, bundle.names.clone(), false)?;
        let mut infer = alone.entered(scope, entries, result.clone(), false);
        let _ = infer.block(&item.block, Some(&result));
        let is_of_parameter = |e: &syn::ExprBinary| {
            let ty = infer.assignments.types.get(&address(e)).map(|ty| infer.table.shallow(ty));
            matches!(ty, Some(Ty::Scalar(Scalar::Generic(_))))
        };
        Some(all.into_iter().map(|e| order_shows(e) && is_of_parameter(e)).collect())
    }
}
