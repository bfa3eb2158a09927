//! Bodies: of `#[device]` functions, one copy for each set of types, constants and origins, and of kernels.

use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::TokenStream;

use super::assignments::{self, Assignments};
use super::build::Build;
use super::callables::{Callable, FunctionParameter};
use super::checked;
use super::depth;
use super::generics::function_generics;
use super::infer::{Length, Ty};
use super::items;
use super::scope::{Entity, Infer};
use super::session::{FunctionKey, GenericArgument, Scope, Session, unique};
use super::signature::{ParameterType, parameter_name};
use super::tree::{Kind, Node, Origin, Slice, Statement};
use crate::ir::{self, Function, GenericKind, Handle, Span, StatementKind};

/// The types to be written into an author's text, by the address of the literal or pattern.
pub(super) type Texts = HashMap<usize, TokenStream>;

/// A name that a body is entered with.
pub(super) struct Entry {
    pub name: syn::Ident,
    pub entity: Entity,
    /// Whether it is declared `mut`, so that the body may assign it: then it is a local with that first value.
    pub mutable: bool,
}

/// A function being made, apart from its body.
pub(super) struct Head {
    pub name: String,
    pub doc: String,
    pub arguments: Vec<ir::Argument>,
    pub result: Ty,
    pub scope: Scope,
    pub entries: Vec<Entry>,
    /// Whether the types are wanted for the author's text.
    pub record: bool,
    pub assignments: Assignments,
}

impl Session {
    /// The copy of a function for a key, made if it is new. `None` if it is wrong, which was reported.
    pub(super) fn function(&mut self, key: &FunctionKey, span: Span) -> Option<Handle<Function>> {
        if let Some((_, known)) = self.functions.iter().find(|(known, _)| known == key) {
            return *known;
        }
        let bundle = self.bundles.get(&key.hash).cloned()?;
        let syn::Item::Fn(item) = &bundle.item else {
            return None;
        };
        let kinds = self.generic_kinds(&item.sig.generics);
        let (mut types, mut constants) = (key.types.iter(), key.constants.iter());
        let mut generics = HashMap::new();
        for (name, kind) in kinds {
            let argument = match kind {
                GenericKind::Type(bound) => {
                    let ty = types.next()?.clone();
                    if !self.satisfies(&ty, bound) {
                        let found = self.describe(&ty);
                        let why = format!("`{found}` cannot stand for `{name}: {bound:?}` of `{}`", item.sig.ident);
                        self.error_at(span, why);
                        self.functions.push((key.clone(), None));
                        return None;
                    }
                    GenericArgument::Type(ty)
                }
                GenericKind::Const(scalar) => GenericArgument::Const(scalar, Length::Known(constants.next()?.clone())),
            };
            generics.insert(name, argument);
        }
        generics.extend(function_generics(&item.sig.generics));
        let scope = Scope {
            names: Rc::new(bundle.names.clone()),
            generics: Rc::new(generics),
            own: item.sig.ident.to_string(),
        };
        if self.stack.len() >= depth::MOST_ITEMS {
            self.error_at(span, depth::too_many_items());
            self.poisoned = true;
            self.functions.push((key.clone(), None));
            return None;
        }
        if self.functions.len() >= depth::MOST_COPIES {
            // Once is enough: callers further out ask for more.
            if !self.poisoned {
                self.error_at(span, depth::too_many_copies());
            }
            self.poisoned = true;
            return None;
        }
        let mut assignments = Assignments::default();
        if !key.types.is_empty() {
            assignments.mark(&assignments::in_function(item), &self.calls_of_traits(&bundle, item));
        }
        self.stack.push(key.hash.clone());
        let outside = std::mem::replace(&mut self.precision, key.precision);
        let made = self
            .head(item, scope, &key.origins, &key.functions, false)
            .and_then(|head| self.body(Head { assignments, ..head }, item));
        self.precision = outside;
        self.stack.pop();
        self.poisoned |= made.is_none();
        let handle = made.map(|(function, effects, _)| self.add_function(function, effects));
        self.functions.push((key.clone(), handle));
        handle
    }

    /// Adds a function under a name of its own; library functions that are there already are found again.
    pub(super) fn add_function(&mut self, mut function: Function, effects: bool) -> Handle<Function> {
        if let Some((handle, _)) = self.module.functions.iter().find(|(_, known)| **known == function) {
            return handle;
        }
        let taken: Vec<String> = self.module.functions.iter().map(|(_, f)| f.name.clone()).collect();
        let own = self.module.name.clone();
        function.name = unique(&function.name, taken.iter().map(String::as_str).chain([own.as_str()]));
        let handle = self.module.functions.add(function);
        self.effects.insert(handle, effects);
        handle
    }

    /// What a `#[device]` function's signature says, its slices being these variables.
    pub(super) fn head(
        &mut self,
        item: &syn::ItemFn,
        scope: Scope,
        origins: &[Origin],
        functions: &[Callable],
        record: bool,
    ) -> Option<Head> {
        let (mut origins, mut functions) = (origins.iter(), functions.iter());
        let (mut arguments, mut entries) = (Vec::new(), Vec::new());
        for parameter in &item.sig.inputs {
            let syn::FnArg::Typed(parameter) = parameter else {
                self.error(parameter, "`self` stands in a #[device] `impl` alone");
                return None;
            };
            let (name, mutable) = parameter_name(self, parameter)?;
            let mut by_value = |session: &mut Self, ty: &Ty, by_reference: bool| {
                let handle = session.ir_type(ty)?;
                arguments.push(ir::Argument { name: emitted(name), ty: handle, by_reference });
                Some(arguments.len() as u32 - 1)
            };
            let entity = match self.parameter_type(&parameter.ty, &scope) {
                ParameterType::Value(ty) | ParameterType::Shared(ty) => {
                    let index = by_value(self, &ty, false)?;
                    Entity::Value(Kind::Argument(index), ty)
                }
                ParameterType::Reference(ty) => {
                    let index = by_value(self, &ty, true)?;
                    Entity::Reference(index, ty)
                }
                ParameterType::Slice { element, mutable, atomic, view, .. } => {
                    Entity::Slice(Slice { origin: *origins.next()?, element, atomic, writable: mutable, view })
                }
                ParameterType::Function(ty) => {
                    let callable = functions.next()?.clone();
                    Entity::Function(Rc::new(FunctionParameter { ty, scope: scope.clone(), callable }))
                }
                ParameterType::Failed => return None,
            };
            entries.push(Entry { name: name.clone(), mutable: mutable && matches!(entity, Entity::Value(..)), entity });
        }
        let result = match &item.sig.output {
            syn::ReturnType::Default => Ty::Unit,
            syn::ReturnType::Type(_, ty) => self.resolve_type(ty, &scope),
        };
        if result == Ty::Error {
            return None;
        }
        Some(Head {
            name: self.emitted_name(&scope.names, &item.sig.ident),
            doc: items::doc(&item.attrs),
            arguments,
            result,
            scope,
            entries,
            record,
            assignments: Assignments::default(),
        })
    }

    /// The inference of a body, with its parameters known.
    pub(super) fn entered(&mut self, scope: Scope, entries: Vec<Entry>, result: Ty, record: bool) -> Infer<'_> {
        let mut infer = Infer::new(self, scope, result, record);
        for (position, entry) in entries.iter().enumerate() {
            if entries[..position].iter().any(|other| other.name == entry.name) {
                infer.error(&entry.name, format!("another parameter is called `{}` too", entry.name));
                infer.session.poisoned = true;
            }
        }
        for Entry { name, entity, mutable } in entries {
            match entity {
                Entity::Value(kind, ty) if mutable => {
                    let local = infer.local(&emitted(&name), ty.clone(), &name);
                    infer.declare(&name.to_string(), Entity::Local(local));
                    let value = infer.node(kind, ty, &name);
                    let span = value.span;
                    infer.prologue.push(Statement::Let { local, value: Some(value), span });
                }
                entity => infer.declare(&name.to_string(), entity),
            }
        }
        infer
    }

    /// The function with its body; whether it has effects; the types for the author's text.
    pub(super) fn body(&mut self, head: Head, item: &syn::ItemFn) -> Option<(Function, bool, Texts)> {
        let before = self.errors.0.len();
        if head.record {
            items::check_attributes_within(self, &item.block);
            items::check_items_within(self, &item.block);
        }
        let span = self.span(&item.sig.ident);
        let mut infer = self.entered(head.scope, head.entries, head.result.clone(), head.record);
        infer.assignments = head.assignments;
        let mut block = infer.block(&item.block, Some(&head.result));
        if let Some(tail) = block.tail.take() {
            let at = match item.block.stmts.last() {
                Some(syn::Stmt::Expr(expression, _)) => expression,
                _ => return None,
            };
            block.tail = Some(infer.coerce(tail, &head.result, at));
        } else if infer.table.shallow(&block.ty) != Ty::Never && !matches!(head.result, Ty::Unit | Ty::Error) {
            let wanted = infer.describe(&head.result);
            infer.error(&item.sig.output, format!("this function gives `{wanted}`, its body ends without a value: end it with an expression without `;`, or with `return`"));
        }
        infer.decide();
        let mut statements = std::mem::take(&mut infer.prologue);
        statements.append(&mut block.statements);
        block.statements = statements;
        let diverges = infer.table.shallow(&block.ty) == Ty::Never;
        let (table, locals) = (std::mem::take(&mut infer.table), std::mem::take(&mut infer.locals));
        let ascriptions = std::mem::take(&mut infer.ascriptions);
        let function = Function {
            name: head.name,
            doc: head.doc,
            arguments: head.arguments,
            result: if head.result == Ty::Unit { None } else { self.ir_type(&head.result) },
            span,
            precision: self.precision,
            ..Function::default()
        };
        let texts = if head.record { checked::texts(self, &table, &locals, ascriptions) } else { Texts::new() };
        let mut build = Build::new(self, table, locals, function);
        build.statements(&block);
        match &block.tail {
            Some(tail) if head.result != Ty::Unit && !is_diverging(tail) => {
                let value = build.value(tail);
                if !diverges || build.function.result.is_some() {
                    let span = tail.span;
                    build.push(StatementKind::Return(Some(value)), span);
                }
            }
            Some(tail) => build.effect(tail),
            None => {}
        }
        let mut function = build.function;
        function.body = build.block;
        let effects = build.effects;
        (self.errors.0.len() == before).then_some((function, effects, texts))
    }
}

/// The name of a parameter in the emitted code: `self` is a reserved word in every target.
fn emitted(name: &syn::Ident) -> String {
    if name == "self" { "this".to_owned() } else { name.to_string() }
}

fn is_diverging(node: &Node) -> bool {
    matches!(node.kind, Kind::Return(_) | Kind::Loop(_) | Kind::Break | Kind::Continue)
}
