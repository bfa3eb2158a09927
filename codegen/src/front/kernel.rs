//! A kernel from its attribute and signature on, and a `#[device]` item by itself.

use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;

use super::assignments::Assignments;
use super::bundle::{Bundle, Names};
use super::callables::Callable;
use super::checked::{self, Ascribe};
use super::ends::Placed;
use super::errors::Errors;
use super::foreign;
use super::functions::{Entry, Head};
use super::generics::{function_generics, own_generics};
use super::impls;
use super::infer::Ty;
use super::intrinsics;
use super::items::{self, check_attributes, check_device_attributes};
use super::precision;
use super::scope::{Entity, Infer};
use super::session::{Scope, Session};
use super::signature::{ParameterType, parameter_name};
use super::specialise;
use super::tree::{Kind, Origin, Slice};
use super::{Input, ItemInput, Output, Parameter, ParameterKind};
use crate::ir::{Binding, BindingKind, Bound, Generic, Module, Param, Scalar, Type};
use crate::layout;

pub(super) fn parse(input: Input) -> Result<Output, Errors> {
    let Input { attribute, mut item, bundles, names, support, file } = input;
    let mut module = Module { name: item.sig.ident.to_string(), doc: items::doc(&item.attrs), ..Module::default() };
    module.locations.file = file;
    let mut session = Session::new(module, bundles, support);
    check_attributes(&mut session, &item.attrs);
    session.check_signature(&item.sig);
    if let Some(constness) = &item.sig.constness {
        session.error(constness, "a kernel is no `const fn`");
    }
    let mut result = Ty::Unit;
    if let syn::ReturnType::Type(_, ty) = &item.sig.output
        && !matches!(&**ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        session.error(ty, "a kernel gives no value: write results to a `&mut [T]`");
        result = Ty::Error;
    }
    let kinds = session.generic_kinds(&item.sig.generics);
    for parameter in item.sig.generics.type_params() {
        if function_generics(&item.sig.generics).contains_key(&parameter.ident.to_string()) {
            session
                .error(parameter, "a kernel takes no functions: call them in the kernel, or make one kernel for each");
        }
    }
    session.module.generics = kinds.iter().map(|(name, kind)| Generic { name: name.clone(), kind: *kind }).collect();
    let constants = session.specialised(&attribute);
    let mut generics = own_generics(&kinds);
    generics.extend(specialise::scope(&constants, &item.sig));
    let scope = Scope { names: Rc::new(names), generics: Rc::new(generics), own: item.sig.ident.to_string() };
    let mut mistaken = specialise::names(&attribute);
    mistaken.retain(|name| !scope.generics.contains_key(&name.to_string()));
    let instances = session.attribute(attribute, &scope, &item);
    let (mut entries, parameters) = session.kernel_parameters(&item, &scope);
    session.add_constants(&constants);
    session.mark_volatile();
    for name in mistaken {
        entries.push(Entry { name, entity: Entity::Failed, mutable: false });
    }
    let head = Head {
        name: item.sig.ident.to_string(),
        doc: String::new(),
        arguments: Vec::new(),
        result,
        scope,
        entries,
        record: true,
        assignments: Assignments::default(),
    };
    let made = session.body(head, &item);
    if let Some((entry, ..)) = &made
        && !session.poisoned
    {
        session.check_written(entry);
    }
    match made {
        Some((entry, _, texts)) if session.errors.0.is_empty() && !session.poisoned => {
            session.module.entry = entry;
            let (checked, constants) = (checked::function(&mut item, &texts), specialise::items(&constants));
            let checked = quote!(#checked #constants);
            Ok(Output {
                module: session.module,
                instances,
                spans: session.spans.unwrap_or_default(),
                checked,
                parameters,
            })
        }
        _ => Err(session.into_errors(&item.sig.ident)),
    }
}

/// Whether a type is a vector of bools, or holds some at any depth of arrays.
fn holds_bools(ty: &Ty) -> bool {
    match ty {
        Ty::Vector(_, part) | Ty::Array(part, _) => **part == Ty::BOOL || holds_bools(part),
        _ => false,
    }
}

impl Session {
    /// The mistakes. There is none to be told if an item that is used has one, which was told where it is defined.
    pub(super) fn into_errors(mut self, at: &impl Placed) -> Errors {
        if self.errors.0.is_empty() && !self.bundles.values().any(|bundle| bundle.failed) {
            self.error(at, "this was not understood, which is a mistake of the compiler: please report it");
        }
        self.errors
    }

    /// Marks the slices that the attribute names.
    fn mark_volatile(&mut self) {
        for (target, name) in std::mem::take(&mut self.volatile) {
            match self.module.bindings.iter_mut().find(|binding| name == binding.name) {
                Some(binding) if binding.kind == BindingKind::Shared && binding.volatile.contains(&target) => {
                    self.error(&name, "this slice is named twice");
                }
                Some(binding) if binding.kind == BindingKind::Shared => {
                    let element = &self.module.types[binding.element];
                    if matches!(element, Type::Scalar(_)) || matches!(element.lanes(), Some(2 | 4)) {
                        binding.volatile.push(target);
                    } else {
                        self.error(&name, "volatile reads are of scalars, or of vectors of two or four");
                    }
                }
                Some(_) => self.error(&name, format!("`{name}` is written, and reads of what a kernel writes have their order already: `volatile` is for `&[T]`")),
                None => self.error(&name, format!("the kernel has no slice `{name}`")),
            }
        }
    }

    fn kernel_parameters(&mut self, item: &syn::ItemFn, scope: &Scope) -> (Vec<Entry>, Vec<Parameter>) {
        let (mut entries, mut parameters) = (Vec::new(), Vec::new());
        for input in &item.sig.inputs {
            let syn::FnArg::Typed(input) = input else {
                self.error(input, "a kernel is a function, not a method");
                continue;
            };
            check_attributes(self, &input.attrs);
            let Some((name, mutable)) = parameter_name(self, input) else {
                continue;
            };
            let (entity, kind) = match self.parameter_type(&input.ty, scope) {
                ParameterType::Value(ty) => match self.kernel_value(name, ty, &input.ty) {
                    Some((entity, kind)) => (entity, Some(kind)),
                    None => (Entity::Failed, None),
                },
                ParameterType::Slice { element, written, mutable, atomic, view } => {
                    match self.kernel_slice(name, element, &written, mutable, atomic, view) {
                        Some((entity, kind)) => (entity, Some(kind)),
                        None => (Entity::Failed, None),
                    }
                }
                ParameterType::Reference(_) | ParameterType::Shared(_) => {
                    self.error(&input.ty, "a kernel takes values, slices (`&[T]`, `&mut [T]`) and views: pass one value as it is, without `&`, and results by `&mut [T]`");
                    (Entity::Failed, None)
                }
                ParameterType::Function(_) => {
                    self.error(
                        &input.ty,
                        "a kernel takes no functions: call them in the kernel, or make one kernel for each",
                    );
                    (Entity::Failed, None)
                }
                ParameterType::Failed => (Entity::Failed, None),
            };
            if let Some(kind) = kind {
                parameters.push(Parameter { name: name.clone(), ty: (*input.ty).clone(), kind });
            }
            entries.push(Entry { name: name.clone(), mutable: mutable && matches!(entity, Entity::Value(..)), entity });
        }
        (entries, parameters)
    }

    fn kernel_value(&mut self, name: &syn::Ident, ty: Ty, at: &syn::Type) -> Option<(Entity, ParameterKind)> {
        if !matches!(ty, Ty::Enum(_))
            && let Some(held) = self.enum_in(&ty)
        {
            let found = self.describe(&ty);
            self.error(at, format!("`{found}` has the enum `{held}` in it, which no parameter by value has: pass the enum by itself, or keep it as a u32"));
            return None;
        }
        let handle = self.ir_type(&ty)?;
        let generic = matches!(&ty, Ty::Scalar(Scalar::Generic(index)) if self.bound(*index) != Some(Bound::Element))
            || matches!(&ty, Ty::Array(element, _) if matches!(**element, Ty::Scalar(scalar) if scalar.is_number()));
        if (!layout::is_param(&self.module, handle) && !generic) || holds_bools(&ty) {
            let found = self.describe(&ty);
            self.error(at, format!("a parameter by value is a number, a bool, a vector, an array or a #[device] struct of numbers, or a #[device] enum; `{found}` is none: pass it in a slice"));
            return None;
        }
        let span = self.span(name);
        let param = self.module.params.len() as u32;
        self.module.params.push(Param { name: name.to_string(), ty: handle, specialise: None, span });
        Some((Entity::Value(Kind::Param(param), ty), ParameterKind::Value { param }))
    }

    /// The name of an enum that is somewhere in a type.
    fn enum_in(&self, ty: &Ty) -> Option<String> {
        match ty {
            Ty::Enum(handle) => Some(self.module.enums[*handle].name.clone()),
            Ty::Array(element, _) => self.enum_in(element),
            Ty::Struct(handle) => {
                self.module.structs[*handle].fields.iter().find_map(|(_, field)| self.enum_in(&self.ty(*field)))
            }
            _ => None,
        }
    }

    fn kernel_slice(
        &mut self,
        name: &syn::Ident,
        element: Ty,
        written: &syn::Type,
        mutable: bool,
        atomic: bool,
        view: Option<u32>,
    ) -> Option<(Entity, ParameterKind)> {
        if !items::is_element(&element) {
            let found = self.describe(&element);
            let advice = match element {
                Ty::BOOL => ": keep a bool as a u32",
                Ty::INDEX => ": a usize has another size on the host, keep it as a u32",
                _ => "",
            };
            self.error(
                written,
                format!("buffers hold numbers, vectors of these and #[device] structs, not `{found}`{advice}"),
            );
            return None;
        }
        if let Some(name) = self.enum_in(&element) {
            let found = self.describe(&element);
            self.error(
                written,
                format!("`{found}` holds the enum `{name}`, and the elements of a buffer are plain data, valid whatever their bits: keep it as a u32 there"),
            );
            return None;
        }
        let handle = self.ir_type(&element)?;
        let kind = match (atomic, mutable) {
            (true, _) => BindingKind::Atomic,
            (false, true) => BindingKind::Mutable,
            (false, false) => BindingKind::Shared,
        };
        let span = self.span(name);
        let binding = self.module.bindings.len() as u32;
        self.module.bindings.push(Binding {
            name: name.to_string(),
            element: handle,
            kind,
            view,
            packed: 1,
            volatile: Vec::new(),
            span,
        });
        Some((
            Entity::Slice(Slice::of_binding(binding, element, kind, view)),
            ParameterKind::Buffer { binding, element: Box::new(written.clone()), kind, view },
        ))
    }
}

pub(super) fn check_item(input: ItemInput) -> Result<TokenStream, Errors> {
    let ItemInput { mut item, mut bundles, names, support, file } = input;
    if let syn::Item::Impl(_) = &item {
        // Its functions call each other: found before those of the same block in a file.
        bundles.insert(0, Bundle { hash: String::new(), item: item.clone(), names: names.clone(), failed: false });
    }
    let mut module = Module::default();
    module.locations.file = file;
    let mut session = Session::new(module, bundles, support);
    // Its own mistakes, then: the empty hash is nobody else's.
    let bundle = Bundle {
        hash: String::new(),
        item: syn::Item::Verbatim(TokenStream::new()),
        names: names.clone(),
        failed: false,
    };
    let name = super::Named::own_name(&item).cloned();
    let reserved = |name: &str| match &item {
        syn::Item::Struct(_) | syn::Item::Enum(_) => intrinsics::is_type(name),
        _ => intrinsics::is_value(name),
    };
    if let Some(name) = &name
        && reserved(&name.to_string())
    {
        session.error(name, format!("`{name}` belongs to the kernel language: give this item another name"));
    }
    if let Some(name) = &name
        && foreign::is_macro(&name.to_string())
    {
        session.error(name, format!("`{name}` is a macro of the standard library: give this item another name"));
    }
    if let (Some(name), syn::Item::Fn(_) | syn::Item::Const(_)) = (&name, &item)
        && foreign::is_name(&name.to_string())
    {
        let meant = foreign::elsewhere(&name.to_string()).unwrap_or("no such value");
        session.error(name, format!("`{name}` is no name for a #[device] item: who writes it is told that kernels have {meant}; give this item another name"));
    }
    match &mut item {
        syn::Item::Fn(function) => {
            let texts = session.device_function(function, names);
            session.poisoned |= texts.is_none();
            if let Some(texts) = texts {
                Ascribe { texts: &texts }.visit_block_mut(&mut function.block);
            }
        }
        syn::Item::Const(constant) => {
            let texts = session.device_constant(constant, &bundle);
            Ascribe { texts: &texts }.visit_expr_mut(&mut constant.expr);
        }
        syn::Item::Struct(structure) => {
            let _ = session.struct_of(&Rc::new(bundle), structure);
        }
        syn::Item::Enum(enumeration) => {
            let _ = session.enum_of(&Rc::new(bundle), enumeration);
        }
        syn::Item::Impl(block) => session.device_impl(block, &names),
        other => session.error(
            other,
            "#[device] stands on functions, constants, structs with named fields, enums without fields, and their `impl` blocks",
        ),
    }
    if session.errors.0.is_empty() && !session.poisoned {
        precision::unmark(&mut item);
        Ok(quote!(#item))
    } else {
        Err(session.into_errors(&name.map_or_else(TokenStream::new, ToTokens::into_token_stream)))
    }
}

impl Session {
    /// Checks a function by itself.
    fn device_function(&mut self, item: &syn::ItemFn, names: Names) -> Option<super::functions::Texts> {
        check_device_attributes(self, &item.attrs);
        self.check_signature(&item.sig);
        let head = self.head_alone(item, names, true)?;
        let (function, _, texts) = self.body(head, item)?;
        if !self.poisoned {
            self.check_written(&function);
        }
        Some(texts)
    }

    /// What a function's signature says by itself: its generics stand for themselves, its slices for buffers.
    pub(super) fn head_alone(&mut self, item: &syn::ItemFn, names: Names, record: bool) -> Option<Head> {
        let kinds = self.generic_kinds(&item.sig.generics);
        self.module.generics = kinds.iter().map(|(name, kind)| Generic { name: name.clone(), kind: *kind }).collect();
        let mut generics = own_generics(&kinds);
        generics.extend(function_generics(&item.sig.generics));
        let scope = Scope { names: Rc::new(names), generics: Rc::new(generics), own: item.sig.ident.to_string() };
        self.alone = true;
        self.enter_precision(&item.attrs);
        let (mut origins, mut functions) = (Vec::new(), Vec::new());
        for input in &item.sig.inputs {
            let syn::FnArg::Typed(input) = input else {
                continue;
            };
            let ty = self.parameter_type(&input.ty, &scope);
            if let ParameterType::Function(_) = ty {
                functions.push(Callable::Any);
            }
            if let ParameterType::Slice { element, mutable, atomic, view, .. } = ty {
                let origin = Origin::Binding(origins.len() as u32);
                origins.push(origin);
                if let Some(element) = self.ir_type(&element) {
                    let kind = match (atomic, mutable) {
                        (true, _) => BindingKind::Atomic,
                        (false, true) => BindingKind::Mutable,
                        (false, false) => BindingKind::Shared,
                    };
                    self.module.bindings.push(Binding {
                        name: String::new(),
                        element,
                        kind,
                        view,
                        packed: 1,
                        volatile: Vec::new(),
                        span: crate::ir::Span::NONE,
                    });
                }
            }
        }
        self.head(item, scope, &origins, &functions, record)
    }

    /// Checks a block by itself and writes the types into its text.
    fn device_impl(&mut self, block: &mut syn::ItemImpl, names: &Names) {
        check_device_attributes(self, &block.attrs);
        self.check_impl(block);
        let owner = impls::owner_path(&block.self_ty).and_then(|path| names.get(&super::path_name(path)));
        let Some(bundle) = owner.and_then(|owner| self.bundles.get(owner)).cloned() else {
            return self.error(&block.self_ty, "a #[device] `impl` is of a struct or enum that carries #[device]");
        };
        self.poisoned |= bundle.failed;
        let mut names = names.clone();
        names.insert(impls::SELF.to_owned(), bundle.hash.clone());
        let output = impls::output_of(block);
        let marks: Vec<_> = block.attrs.iter().filter(|attribute| precision::is_mark(attribute)).cloned().collect();
        for item in &mut block.items {
            match item {
                syn::ImplItem::Fn(function) => {
                    let name = function.sig.ident.to_string();
                    // The body moves to and fro, so that its syntax keeps its addresses.
                    let body = std::mem::replace(&mut function.block, syn::parse_quote!({}));
                    let mut made =
                        impls::function_of(syn::ImplItemFn { block: body, ..function.clone() }, output.as_ref());
                    made.attrs.extend(marks.iter().cloned());
                    self.module.bindings.clear();
                    self.stack.push(format!("::{name}"));
                    let texts = self.device_function(&made, names.clone());
                    self.stack.pop();
                    self.poisoned |= texts.is_none();
                    if let Some(texts) = texts {
                        Ascribe { texts: &texts }.visit_block_mut(&mut made.block);
                    }
                    function.block = *made.block;
                }
                syn::ImplItem::Const(constant) => {
                    let mut made = impls::constant_of(constant);
                    let item = syn::Item::Verbatim(TokenStream::new());
                    let own = Bundle { hash: String::new(), item, names: names.clone(), failed: false };
                    let texts = self.device_constant(&made, &own);
                    Ascribe { texts: &texts }.visit_expr_mut(&mut made.expr);
                    constant.expr = *made.expr;
                }
                _ => {}
            }
        }
    }

    fn device_constant(&mut self, item: &syn::ItemConst, bundle: &Bundle) -> super::functions::Texts {
        check_attributes(self, &item.attrs);
        self.alone = true;
        let mut infer = Infer::new(self, Scope::default(), Ty::Unit, true);
        let node = infer.constant_value(item, bundle);
        infer.decide();
        let (table, ascriptions) = (std::mem::take(&mut infer.table), std::mem::take(&mut infer.ascriptions));
        let mut build = super::build::Build::new(self, table.clone(), Vec::new(), Default::default());
        build.folding = true;
        let _ = build.value(&node);
        if !build.block.is_empty() {
            self.error(
                &item.expr,
                "a constant is made of literals, constants, operators and calls of functions that only compute",
            );
        }
        checked::texts(self, &table, &[], ascriptions)
    }
}
