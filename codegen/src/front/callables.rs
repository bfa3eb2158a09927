//! Function parameters: what a helper that takes `F: Fn(f32, f32) -> f32` is given, and what calling it means.
//!
//! A function is no value on devices. So a helper has one copy for each function that it is given: a `#[device]` function, which is then called; a
//! function of the mathematical library; or a closure, whose body stands where the helper calls it. A closure's body is read twice: where it is
//! written, for mistakes and for the types in the author's text, and in each copy of the helper. It captures nothing, since the copy is a function of its own.

use std::collections::HashMap;
use std::rc::Rc;

use super::assignments;
use super::device_calls::Given;
use super::ends::Placed;
use super::infer::Ty;
use super::intrinsics::{self, Intrinsic};
use super::named;
use super::places::peel_reference;
use super::scope::{Entity, Infer};
use super::session::{GenericArgument, Scope};
use super::signature::{FunctionType, ParameterType};
use super::tree::{Block, Kind, Node, Statement};
use crate::ir::MathFunction;

/// What a function parameter stands for in one copy of a helper.
#[derive(Clone, Debug)]
pub(super) enum Callable {
    /// Any function of that type: in a helper that is checked by itself.
    Any,
    /// A `#[device]` function, by the hash of its item, the path that names it and what is written around it.
    Item { hash: String, path: syn::Path, scope: Scope },
    /// A function of the mathematical library.
    Math(MathFunction),
    /// A closure, with what the paths in it mean, and a mark for each `operator=` in it, whether it is a call for the sake of a type parameter of the function that it is written in.
    Closure { closure: Rc<syn::ExprClosure>, scope: Scope, calls: Vec<bool> },
}

impl PartialEq for Callable {
    /// Whether a helper has one copy for both: wherever they are written, they do the same.
    fn eq(&self, other: &Self) -> bool {
        let generics = |path: &syn::Path| path.segments.last().map(|segment| segment.arguments.clone());
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Item { hash: a, path: p, scope: s }, Self::Item { hash: b, path: q, scope: t }) => {
                a == b && generics(p) == generics(q) && s == t
            }
            (Self::Math(a), Self::Math(b)) => a == b,
            (Self::Closure { closure: a, scope: s, calls: m }, Self::Closure { closure: b, scope: t, calls: n }) => {
                a == b && s == t && m == n
            }
            _ => false,
        }
    }
}

/// A function parameter of the helper whose body is read.
#[derive(Clone, Debug)]
pub(super) struct FunctionParameter {
    pub ty: Rc<FunctionType>,
    /// What the types in it mean.
    pub scope: Scope,
    pub callable: Callable,
}

impl Infer<'_> {
    /// What an argument for a function parameter is; the types in `wanted` mean what `scope` says.
    pub(super) fn function_argument(
        &mut self,
        argument: &syn::Expr,
        wanted: &FunctionType,
        scope: &Scope,
    ) -> Option<Callable> {
        match peel_reference(argument) {
            syn::Expr::Closure(closure) => self.closure_argument(closure, wanted, scope),
            syn::Expr::Path(path) if path.qself.is_none() => self.path_argument(&path.path, wanted, scope),
            other => {
                self.error(
                    other,
                    "expected a function: the path of a #[device] function, or a closure such as `|a, b| a + b`",
                );
                None
            }
        }
    }

    fn path_argument(&mut self, path: &syn::Path, wanted: &FunctionType, scope: &Scope) -> Option<Callable> {
        if let Some(name) = path.get_ident() {
            match self.lookup(&name.to_string()).cloned() {
                Some(Entity::Function(given)) => {
                    return self.same_type(&given, wanted, scope, path).then(|| given.callable.clone());
                }
                Some(entity) if self.is_mistaken(&entity) => return None,
                Some(_) => {
                    self.error(path, format!("`{name}` is a variable, and a function is wanted here: the path of a #[device] function, or a closure"));
                    return None;
                }
                None if self.is_captured(&name.to_string()) => {
                    self.captured(&name.to_string(), path);
                    return None;
                }
                None => {}
            }
        }
        if let Some(bundle) = self.session.bundle(&self.scope, path) {
            if bundle.failed {
                self.session.poisoned = true;
                return None;
            }
            let syn::Item::Fn(item) = &bundle.item else {
                self.error(path, "this is not a function");
                return None;
            };
            self.fits(item, &bundle.names, path, wanted, scope)?;
            let hash = bundle.hash.clone();
            return Some(Callable::Item { hash, path: path.clone(), scope: self.scope.clone() });
        }
        if let Some(function) = self.math_function(path) {
            let inputs = self.value_types(wanted, scope, path)?;
            let nodes: Vec<Node> = inputs.into_iter().map(|ty| self.node(Kind::Unit, ty, path)).collect();
            let at = syn::Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: path.clone() });
            let places = vec![&at; nodes.len()];
            let node = self.math(function, nodes, &places, path);
            if matches!(node.kind, Kind::Error) {
                return None;
            }
            let output = self.function_result(wanted, scope);
            let _ = self.coerce(node, &output, path);
            return Some(Callable::Math(function));
        }
        if self.session.is_inner(path) {
            return None;
        }
        let shown = super::path_name(path);
        let advice = if intrinsics::function_of_path(path).is_some() {
            ": wrap it in a closure, as in `|x| f(x)`"
        } else {
            ": put #[device] on a function of your own, or write a closure"
        };
        self.error(path, format!("no function `{shown}` is known that could be passed on here{advice}"));
        None
    }

    /// `max` and `f32::max`.
    pub(super) fn math_function(&self, path: &syn::Path) -> Option<MathFunction> {
        if let Some(Intrinsic::Math(function)) = intrinsics::function_of_path(path) {
            return Some(function);
        }
        let owner = named::owner(path)?;
        super::items::scalar(&super::path_name(&owner))?;
        MathFunction::from_name(&path.segments.last()?.ident.to_string())
    }

    /// The result of a function of that type.
    fn function_result(&mut self, ty: &FunctionType, scope: &Scope) -> Ty {
        match &ty.output {
            None => Ty::Unit,
            Some(output) => self.session.resolve_type(output, scope),
        }
    }

    /// The types of parameters that are all values.
    fn value_types(&mut self, ty: &FunctionType, scope: &Scope, at: &syn::Path) -> Option<Vec<Ty>> {
        let mut types = Vec::new();
        for input in &ty.inputs {
            match self.session.parameter_type(input, scope) {
                ParameterType::Value(ty) => types.push(ty),
                ParameterType::Failed => return None,
                _ => {
                    let shown = super::path_name(at);
                    self.error(at, format!("`{shown}` takes values, the function that is wanted takes references"));
                    return None;
                }
            }
        }
        Some(types)
    }

    /// Whether a `#[device]` function has the type that is wanted.
    fn fits(
        &mut self,
        item: &syn::ItemFn,
        names: &super::Names,
        path: &syn::Path,
        wanted: &FunctionType,
        scope: &Scope,
    ) -> Option<()> {
        let name = item.sig.ident.to_string();
        if item.sig.inputs.len() != wanted.inputs.len() {
            let (has, wants) = (item.sig.inputs.len(), wanted.inputs.len());
            self.error(path, format!("a function of {wants} parameters is wanted here, `{name}` has {has}"));
            return None;
        }
        let own = self.scope.clone();
        let (generics, ..) = self.call_generics(item, path, &own);
        let inner = Scope { names: Rc::new(names.clone()), generics: Rc::new(generics), own: name.clone() };
        for (parameter, input) in item.sig.inputs.iter().zip(&wanted.inputs) {
            let syn::FnArg::Typed(parameter) = parameter else {
                return None;
            };
            let has = self.session.parameter_type(&parameter.ty, &inner);
            let wants = self.session.parameter_type(input, scope);
            self.same_parameter(&has, &wants, path)?;
        }
        let has = match &item.sig.output {
            syn::ReturnType::Default => Ty::Unit,
            syn::ReturnType::Type(_, ty) => self.session.resolve_type(ty, &inner),
        };
        let wants = self.function_result(wanted, scope);
        self.same(&has, &wants, "gives", path)
    }

    fn same_parameter(&mut self, has: &ParameterType, wants: &ParameterType, path: &syn::Path) -> Option<()> {
        use ParameterType as P;
        match (has, wants) {
            (P::Failed, _) | (_, P::Failed) => None,
            (P::Value(a), P::Value(b)) | (P::Shared(a), P::Shared(b)) | (P::Reference(a), P::Reference(b)) => {
                self.same(a, b, "takes", path)
            }
            (
                P::Slice { element: a, mutable, atomic, view, .. },
                P::Slice { element: b, mutable: m, atomic: t, view: v, .. },
            ) if mutable == m && atomic == t && view == v => self.same(a, b, "takes a slice of", path),
            _ => {
                let shown = super::path_name(path);
                self.error(path, format!("`{shown}` does not take what the function that is wanted here takes: values for values, slices for slices, references for references"));
                None
            }
        }
    }

    fn same(&mut self, has: &Ty, wants: &Ty, what: &str, path: &syn::Path) -> Option<()> {
        if self.table.unify(has, wants) {
            return Some(());
        }
        let (shown, has, wants) = (super::path_name(path), self.describe(has), self.describe(wants));
        self.error(path, format!("`{shown}` {what} `{has}`, the function that is wanted here {what} `{wants}`"));
        None
    }

    /// Whether a function parameter that is handed on has the type that is wanted.
    fn same_type(&mut self, given: &FunctionParameter, wanted: &FunctionType, scope: &Scope, path: &syn::Path) -> bool {
        if given.ty.inputs.len() != wanted.inputs.len() {
            let (has, wants) = (given.ty.inputs.len(), wanted.inputs.len());
            let shown = super::path_name(path);
            self.error(path, format!("a function of {wants} parameters is wanted here, `{shown}` has {has}"));
            return false;
        }
        for (input, wants) in given.ty.inputs.iter().zip(&wanted.inputs) {
            let has = self.session.parameter_type(input, &given.scope);
            let wants = self.session.parameter_type(wants, scope);
            if self.same_parameter(&has, &wants, path).is_none() {
                return false;
            }
        }
        let has = self.function_result(&given.ty, &given.scope);
        let wants = self.function_result(wanted, scope);
        self.same(&has, &wants, "gives", path).is_some()
    }

    /// Reads a closure where it is written.
    fn closure_argument(
        &mut self,
        closure: &syn::ExprClosure,
        wanted: &FunctionType,
        scope: &Scope,
    ) -> Option<Callable> {
        if let Some(token) = &closure.asyncness {
            self.error(token, "`async` is not part of the kernel language: remove it");
        }
        if closure.inputs.len() != wanted.inputs.len() {
            let (has, wants) = (closure.inputs.len(), wanted.inputs.len());
            self.error(closure, format!("a function of {wants} parameters is wanted here, this closure has {has}"));
            return None;
        }
        let mut inputs = Vec::new();
        for input in &wanted.inputs {
            inputs.push(match self.session.parameter_type(input, scope) {
                ParameterType::Value(ty) | ParameterType::Shared(ty) => Entity::Value(Kind::Unit, ty),
                ParameterType::Slice { element, mutable, atomic, view, .. } => {
                    // Its origin is looked at only when the helper is made.
                    let origin = super::tree::Origin::Binding(0);
                    Entity::Slice(super::tree::Slice { origin, element, atomic, writable: mutable, view })
                }
                ParameterType::Reference(_) | ParameterType::Function(_) => {
                    self.error(
                        closure,
                        "a closure takes values and slices: write a #[device] function for a parameter that is `&mut`",
                    );
                    return None;
                }
                ParameterType::Failed => return None,
            });
        }
        let output = self.function_result(wanted, scope);
        let own = self.scope.clone();
        let before = self.session.errors.0.len();
        let poisoned = std::mem::replace(&mut self.session.poisoned, false);
        let _ = self.in_closure(closure, inputs, &output);
        let fine = self.session.errors.0.len() == before && !self.session.poisoned;
        self.session.poisoned |= poisoned;
        let calls = self.assignments.marks(&assignments::in_closure(closure));
        fine.then(|| Callable::Closure { closure: Rc::new(closure.clone()), scope: own, calls })
    }

    /// The body of a closure, entered with these parameters; gives the `let`s of parameters and the value.
    pub(super) fn in_closure(
        &mut self,
        closure: &syn::ExprClosure,
        inputs: Vec<Entity>,
        output: &Ty,
    ) -> (Vec<Statement>, Node) {
        let outer = self.around.clone();
        let mut around: HashMap<String, Entity> = self.around.take().unwrap_or_default();
        let scopes = std::mem::replace(&mut self.scopes, vec![HashMap::new()]);
        for scope in &scopes {
            around.extend(scope.clone());
        }
        self.around = Some(around);
        let loops = std::mem::take(&mut self.loops);
        let result = std::mem::replace(&mut self.result, Ty::Error);
        let own = self.scope.clone();
        let mut lets = Vec::new();
        for (pattern, entity) in closure.inputs.iter().zip(inputs) {
            let (pattern, written) = match pattern {
                syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                pattern => (pattern, None),
            };
            if let (Some(written), Entity::Value(_, ty)) = (written, &entity) {
                let written = match self.session.parameter_type(written, &own) {
                    ParameterType::Value(written) | ParameterType::Shared(written) => written,
                    _ => Ty::Error,
                };
                if !self.table.unify(&written, ty) {
                    let (wanted, found) = (self.describe(ty), self.describe(&written));
                    self.error(
                        pattern,
                        format!("this parameter is a `{wanted}` where the closure is called, not a `{found}`"),
                    );
                }
            }
            let name = match pattern {
                syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => &name.ident,
                syn::Pat::Wild(_) => {
                    if let Entity::Value(kind, ty) = entity {
                        lets.push(Statement::Evaluate(self.node(kind, ty, pattern)));
                    }
                    continue;
                }
                other => {
                    self.error(other, "a parameter is one name");
                    self.declare_failed(other);
                    continue;
                }
            };
            match entity {
                Entity::Value(kind, ty) => {
                    let value = self.node(kind, ty.clone(), name);
                    let local = self.local(&name.to_string(), ty, name);
                    let span = value.span;
                    lets.push(Statement::Let { local, value: Some(value), span });
                }
                entity => self.declare(&name.to_string(), entity),
            }
        }
        if let syn::ReturnType::Type(_, ty) = &closure.output {
            let written = self.session.resolve_type(ty, &own);
            if !self.table.unify(&written, output) {
                let (wanted, found) = (self.describe(output), self.describe(&written));
                self.error(ty, format!("the function that is wanted gives `{wanted}`, not `{found}`"));
            }
        }
        let body = self.expect(&closure.body, output);
        self.scopes = scopes;
        self.loops = loops;
        self.result = result;
        self.around = outer;
        (lets, body)
    }

    /// A call of a function parameter.
    pub(super) fn parameter_call(&mut self, given: &FunctionParameter, e: &syn::ExprCall) -> Node {
        if e.args.len() != given.ty.inputs.len() {
            let name = super::reports::spelled(&e.func);
            self.wrong_count(&name, given.ty.inputs.len(), e.args.len(), e);
            return self.failed(e);
        }
        match &given.callable {
            Callable::Item { hash, path, scope } => match self.session.bundles.get(hash).cloned() {
                Some(bundle) => self.device_call(&bundle, path, scope, e.args.iter().map(Given::Written).collect(), e),
                None => self.failed(e),
            },
            Callable::Math(function) => {
                let mut nodes = Vec::new();
                for (input, argument) in given.ty.inputs.iter().zip(&e.args) {
                    let ty = self.session.resolve_type(input, &given.scope);
                    nodes.push(self.expect(argument, &ty));
                }
                let at: Vec<&syn::Expr> = e.args.iter().collect();
                self.math(*function, nodes, &at, e)
            }
            Callable::Closure { closure, scope, calls } => {
                self.assignments.mark(&assignments::in_closure(closure), calls);
                let Some(inputs) = self.parameter_arguments(given, e) else {
                    return self.failed(e);
                };
                let output = self.function_result(&given.ty, &given.scope);
                // What it would capture was refused where it is written; the names of the helper are others.
                let own = std::mem::replace(&mut self.scope, scope.clone());
                let scopes = std::mem::take(&mut self.scopes);
                let around = self.around.take();
                let (statements, tail) = self.in_closure(closure, inputs, &output);
                self.around = around;
                self.scopes = scopes;
                self.scope = own;
                let ty = output.clone();
                self.node(Kind::Block(Box::new(Block { statements, tail: Some(tail), ty })), output, e)
            }
            Callable::Any => {
                let Some(inputs) = self.parameter_arguments(given, e) else {
                    return self.failed(e);
                };
                let mut statements = Vec::new();
                for input in inputs {
                    if let Entity::Value(kind, ty) = input {
                        statements.push(Statement::Evaluate(self.node(kind, ty, e)));
                    }
                }
                let output = self.function_result(&given.ty, &given.scope);
                let tail = Some(self.node(Kind::Unit, output.clone(), e));
                self.node(Kind::Block(Box::new(Block { statements, tail, ty: output.clone() })), output, e)
            }
        }
    }

    /// The arguments of a call of a function parameter, as what a closure's parameters are.
    fn parameter_arguments(&mut self, given: &FunctionParameter, e: &syn::ExprCall) -> Option<Vec<Entity>> {
        let mut inputs = Vec::new();
        for (input, argument) in given.ty.inputs.iter().zip(&e.args) {
            match self.session.parameter_type(input, &given.scope) {
                ParameterType::Value(ty) => {
                    let node = self.expect(argument, &ty);
                    inputs.push(Entity::Value(node.kind, ty));
                }
                ParameterType::Shared(ty) => {
                    let node = self.expect(peel_reference(argument), &ty);
                    inputs.push(Entity::Value(node.kind, ty));
                }
                ParameterType::Slice { element, mutable, atomic, view, .. } => {
                    let slice = self.slice_argument(argument, &element, mutable, atomic, view)?;
                    inputs.push(Entity::Slice(slice));
                }
                ParameterType::Reference(ty) => {
                    let place = self.reference_argument(argument, &ty)?;
                    self.written(&place);
                }
                ParameterType::Function(_) | ParameterType::Failed => return None,
            }
        }
        Some(inputs)
    }

    /// Whether a name belongs to the function around the closure that is read.
    pub(super) fn is_captured(&self, name: &str) -> bool {
        self.around.as_ref().is_some_and(|around| around.contains_key(name))
    }

    /// Reports a name that a closure would capture.
    pub(super) fn captured(&mut self, name: &str, at: &impl Placed) {
        self.session.poisoned = true;
        self.error(at, format!("this closure would capture `{name}`, and a closure of the kernel language captures nothing: pass it to the function as an argument, which hands it to the closure"));
    }
}

/// Whether a generic parameter is a function.
pub(super) fn function_type(scope: &Scope, ty: &syn::Type) -> Option<Rc<FunctionType>> {
    let syn::Type::Path(path) = ty else {
        return None;
    };
    match scope.generics.get(&path.path.get_ident()?.to_string())? {
        GenericArgument::Function(ty) => Some(ty.clone()),
        _ => None,
    }
}
