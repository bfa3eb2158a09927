//! Which `#[device]` items an item names: what a macro has to resolve before the item can be understood.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::attributes;
use super::bundle::path_name;
use super::foreign;
use super::intrinsics;
use super::places::peel_reference;
use super::reports;

/// Something whose names can be listed.
pub trait Named {
    /// Visits its syntax.
    fn visit_with(&self, visitor: &mut Visitor);
    /// Its own name, which it may write without meaning another item.
    fn own_name(&self) -> Option<&syn::Ident>;
}

impl Named for syn::ItemFn {
    fn visit_with(&self, visitor: &mut Visitor) {
        visitor.visit_item_fn(self);
    }
    fn own_name(&self) -> Option<&syn::Ident> {
        Some(&self.sig.ident)
    }
}

impl Named for syn::Item {
    fn visit_with(&self, visitor: &mut Visitor) {
        visitor.visit_item(self);
    }
    fn own_name(&self) -> Option<&syn::Ident> {
        match self {
            Self::Fn(item) => Some(&item.sig.ident),
            Self::Const(item) => Some(&item.ident),
            Self::Struct(item) => Some(&item.ident),
            Self::Enum(item) => Some(&item.ident),
            // A block has no name; its type is an item that it uses.
            _ => None,
        }
    }
}

/// The paths of `#[device]` items that an item names itself, each once, in the order in which they are first written: functions that
/// it calls, types, constants, and enums (for `Act::Relu` the path is `Act`). What the language knows by name, the item's
/// generics, locals and its own name are left out.
///
/// A constant that has the name of a local of the same item is left out too: rustc's own rules for patterns make such code an error.
pub fn items_named(item: &impl Named) -> Vec<syn::Path> {
    walked(item).paths
}

/// What walked through an item.
fn walked(item: &impl Named) -> Visitor {
    let mut visitor = Visitor {
        stage: Stage::Bind,
        declares: false,
        refutable: false,
        bound: BTreeSet::new(),
        seen: BTreeSet::new(),
        paths: Vec::new(),
    };
    item.visit_with(&mut visitor);
    if let Some(own) = item.own_name() {
        visitor.bound.insert(own.to_string());
    }
    visitor.stage = Stage::Collect;
    item.visit_with(&mut visitor);
    visitor
}

/// The same of a kernel, whose attribute names constants in sizes, and may declare specialisation constants: these are no items.
pub fn kernel_items_named(attribute: &proc_macro2::TokenStream, item: &syn::ItemFn) -> Vec<syn::Path> {
    let constants = super::specialise::names(attribute);
    let mut visitor = walked(item);
    // Of the item's names the attribute knows the generics alone.
    visitor.bound.clear();
    visitor.stage = Stage::Bind;
    visitor.visit_generics(&item.sig.generics);
    visitor.stage = Stage::Collect;
    attributes::sizes(attribute).iter().for_each(|size| visitor.visit_expr(size));
    let mut paths = visitor.paths;
    paths.retain(|path| !path.get_ident().is_some_and(|name| constants.contains(name)));
    paths
}

enum Stage {
    Bind,
    Collect,
}

/// Walks an item twice: first for the names that it binds, then for the paths that it uses. A `let` binds its names from where it stands, in the second walk: `let norm = norm(x)` calls an item.
pub struct Visitor {
    stage: Stage,
    /// Whether the pattern of a `let` is visited.
    declares: bool,
    /// Whether a pattern is visited that may not fit: capitals are constants there.
    refutable: bool,
    bound: BTreeSet<String>,
    seen: BTreeSet<String>,
    paths: Vec<syn::Path>,
}

impl Visitor {
    fn collect(&mut self, path: &syn::Path, reserved: fn(&str) -> bool) {
        if matches!(self.stage, Stage::Bind) {
            return;
        }
        let Some(last) = path.segments.last() else {
            return;
        };
        let first_is =
            |test: &dyn Fn(&str) -> bool| path.segments.first().is_some_and(|first| test(&first.ident.to_string()));
        if path.segments.len() == 1 && reserved(&last.ident.to_string()) || foreign::is_library(path) {
            return;
        }
        if first_is(&|first| self.bound.contains(first) || intrinsics::is_type(first)) {
            return;
        }
        if intrinsics::is_ours(path) && reserved(&last.ident.to_string()) {
            return;
        }
        if self.seen.insert(path_name(path)) {
            let mut plain = path.clone();
            for segment in &mut plain.segments {
                segment.arguments = syn::PathArguments::None;
            }
            self.paths.push(plain);
        }
    }

    /// An argument that is no variable of the item is the name of a function.
    fn collect_argument(&mut self, argument: &syn::Expr) {
        if let syn::Expr::Path(path) = peel_reference(argument)
            && path.path.get_ident().is_some_and(|name| name != "self")
        {
            self.collect_value(&path.path);
        }
    }

    /// A path to a value: of `Act::Relu` the enum is meant, of `math::scale` the whole.
    fn collect_value(&mut self, path: &syn::Path) {
        if intrinsics::function_of_path(path).is_some() || foreign::is_value(path) {
            return;
        }
        match owner(path) {
            Some(owner) => self.collect(&owner, intrinsics::is_type),
            None => self.collect(path, intrinsics::is_value),
        }
    }
}

/// The type before the last segment, if what stands there begins with a capital letter as types do: `Act` in `crate::Act::Relu`.
pub(super) fn owner(path: &syn::Path) -> Option<syn::Path> {
    let before = path.segments.iter().rev().nth(1)?;
    let name = before.ident.to_string();
    if !name.starts_with(char::is_uppercase) && !intrinsics::is_type(&name) {
        return None;
    }
    let mut owner = path.clone();
    owner.segments.pop();
    // What is left ends in `::`, which a path must not.
    owner.segments.pop_punct();
    Some(owner)
}

/// The names that an item within a body declares.
pub(super) fn declared(item: &syn::Item) -> Vec<syn::Ident> {
    fn imported(tree: &syn::UseTree, into: &mut Vec<syn::Ident>) {
        match tree {
            syn::UseTree::Path(path) => imported(&path.tree, into),
            syn::UseTree::Name(name) => into.push(name.ident.clone()),
            syn::UseTree::Rename(rename) => into.push(rename.rename.clone()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, into)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    match item {
        syn::Item::Use(item) => imported(&item.tree, &mut names),
        syn::Item::Static(item) => names.push(item.ident.clone()),
        syn::Item::Type(item) => names.push(item.ident.clone()),
        syn::Item::Mod(item) => names.push(item.ident.clone()),
        other => names.extend(other.own_name().cloned()),
    }
    names
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
    fn visit_type_param_bound(&mut self, _: &'ast syn::TypeParamBound) {}

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // In a `match`, `LIMIT => ..` is a constant and `other => ..` a new name: as everywhere in Rust, capitals tell. What always fits is a name.
        let name = pattern.ident.to_string();
        if self.refutable && name.starts_with(char::is_uppercase) {
            self.collect_value(&syn::Path::from(pattern.ident.clone()));
        } else if self.declares || matches!(self.stage, Stage::Bind) {
            self.bound.insert(name);
        }
    }

    // Of macros those alone are read that report something.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(Ok(written)) = reports::read(call) {
            written.values().for_each(|value| self.visit_expr(value));
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.refutable = true;
        self.visit_pat(&arm.pat);
        self.refutable = false;
        self.visit_expr(&arm.body);
    }

    fn visit_expr_let(&mut self, expression: &'ast syn::ExprLet) {
        self.refutable = true;
        self.visit_pat(&expression.pat);
        self.refutable = false;
        self.visit_expr(&expression.expr);
    }

    // An item within a body is reported there, and its macro would be nowhere.
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        match statement {
            syn::Stmt::Item(item) => self.bound.extend(declared(item).iter().map(ToString::to_string)),
            other => visit::visit_stmt(self, other),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
            if let Some((_, otherwise)) = &init.diverge {
                self.visit_expr(otherwise);
            }
        }
        if matches!(self.stage, Stage::Collect) {
            self.declares = true;
            self.visit_pat(&local.pat);
            self.declares = false;
        }
    }

    fn visit_generics(&mut self, generics: &'ast syn::Generics) {
        if matches!(self.stage, Stage::Bind) {
            for parameter in &generics.params {
                match parameter {
                    syn::GenericParam::Type(ty) => self.bound.insert(ty.ident.to_string()),
                    syn::GenericParam::Const(constant) => self.bound.insert(constant.ident.to_string()),
                    syn::GenericParam::Lifetime(_) => false,
                };
            }
        }
        visit::visit_generics(self, generics);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            // An argument may be a function; what the language knows by name takes none.
            let takes_functions = intrinsics::function_of_path(&path.path).is_none() && !foreign::is_value(&path.path);
            if takes_functions && owner(&path.path).is_none() {
                call.args.iter().for_each(|argument| self.collect_argument(argument));
            }
            self.collect_value(&path.path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        // A small name that is not called is a variable; if there is none of that name, the front end says so better than rustc.
        let variable = path.path.get_ident().is_some_and(|name| name.to_string().starts_with(char::is_lowercase));
        if !variable {
            self.collect_value(&path.path);
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        self.collect(&expression.path, intrinsics::is_type);
        visit::visit_expr_struct(self, expression);
    }

    fn visit_type_path(&mut self, ty: &'ast syn::TypePath) {
        self.collect(&ty.path, intrinsics::is_type);
        visit::visit_type_path(self, ty);
    }
}
