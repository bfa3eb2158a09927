//! `#[device] impl` blocks: methods, associated functions and constants of structs and enums, and operators by Rust's traits.
//!
//! A block travels as one bundle and is taken apart here: each function and constant becomes an item of its own, known by the block's hash and its
//! name, in whose text `Self` is one more name of an item. What calls them finds them by the type that they belong to.

use std::collections::HashMap;
use std::rc::Rc;

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};

use super::bundle::{Bundle, path_name};
use super::device_calls::Given;
use super::infer::Ty;
use super::places::Operand;
use super::precision::is_mark;
use super::scope::Infer;
use super::session::Session;
use super::tree::{Kind, Node};
use crate::ir::{BinaryOperator, UnaryOperator};

/// The key in an item's names for the type whose block it is in.
pub(super) const SELF: &str = "Self";

/// A function or constant of a block.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub name: String,
    /// The hash of the item that it became.
    pub hash: String,
    /// The trait of the block, if it is of one.
    pub operator: Option<String>,
}

/// The operators that a type may have: trait, method, sign.
const OPERATORS: &[(&str, &str, &str)] = &[
    ("Add", "add", "+"),
    ("Sub", "sub", "-"),
    ("Mul", "mul", "*"),
    ("Div", "div", "/"),
    ("Rem", "rem", "%"),
    ("BitAnd", "bitand", "&"),
    ("BitOr", "bitor", "|"),
    ("BitXor", "bitxor", "^"),
    ("AddAssign", "add_assign", "+="),
    ("SubAssign", "sub_assign", "-="),
    ("MulAssign", "mul_assign", "*="),
    ("DivAssign", "div_assign", "/="),
    ("RemAssign", "rem_assign", "%="),
    ("BitAndAssign", "bitand_assign", "&="),
    ("BitOrAssign", "bitor_assign", "|="),
    ("BitXorAssign", "bitxor_assign", "^="),
    ("Neg", "neg", "-"),
    ("Not", "not", "!"),
    ("PartialEq", "eq", "=="),
];

/// The trait and method of a binary operator.
fn binary_trait(operator: BinaryOperator, assigns: bool) -> Option<(&'static str, &'static str)> {
    use BinaryOperator as Op;
    let sign = match operator {
        Op::Add => "+",
        Op::Subtract => "-",
        Op::Multiply => "*",
        Op::Divide => "/",
        Op::Remainder => "%",
        Op::And => "&",
        Op::Or => "|",
        Op::Xor => "^",
        Op::Equal | Op::NotEqual => "==",
        _ => return None,
    };
    let sign = if assigns { format!("{sign}=") } else { sign.to_owned() };
    let unary = |name: &str| name == "Neg" || name == "Not";
    OPERATORS.iter().find(|(name, _, known)| *known == sign && !unary(name)).map(|(name, method, _)| (*name, *method))
}

/// The items that the functions and constants of a block are, by the block's bundle.
fn items_of(bundle: &Bundle, block: &syn::ItemImpl) -> Vec<(Member, Bundle)> {
    let mut names = bundle.names.clone();
    if let Some(owner) = owner_path(&block.self_ty).and_then(|path| bundle.names.get(&path_name(path))) {
        names.insert(SELF.to_owned(), owner.clone());
    }
    let operator = trait_path(block).and_then(|path| path.segments.last()).map(|last| last.ident.to_string());
    let output = output_of(block);
    let mut made = Vec::new();
    for item in &block.items {
        let (name, item) = match item {
            syn::ImplItem::Fn(function) => {
                let mut made = function_of(function.clone(), output.as_ref());
                made.attrs.extend(block.attrs.iter().filter(|attribute| is_mark(attribute)).cloned());
                (function.sig.ident.to_string(), syn::Item::Fn(made))
            }
            syn::ImplItem::Const(constant) => (constant.ident.to_string(), syn::Item::Const(constant_of(constant))),
            _ => continue,
        };
        let hash = format!("{}::{name}", bundle.hash);
        let item = Bundle { hash: hash.clone(), item, names: names.clone(), failed: bundle.failed };
        made.push((Member { name, hash, operator: operator.clone() }, item));
    }
    made
}

/// The result that an operator's block says it has.
pub(super) fn output_of(block: &syn::ItemImpl) -> Option<syn::Type> {
    block.items.iter().find_map(|item| match item {
        syn::ImplItem::Type(ty) if ty.ident == "Output" => Some(ty.ty.clone()),
        _ => None,
    })
}

/// The trait that a block is of.
fn trait_path(block: &syn::ItemImpl) -> Option<&syn::Path> {
    block.trait_.as_ref().map(|(path, _)| path)
}

/// The path of the type that an `impl` block is of.
pub fn owner_path(ty: &syn::Type) -> Option<&syn::Path> {
    match ty {
        syn::Type::Group(group) => owner_path(&group.elem),
        syn::Type::Paren(paren) => owner_path(&paren.elem),
        syn::Type::Path(path) if path.qself.is_none() => Some(&path.path),
        _ => None,
    }
}

/// A method as a function whose first parameter is called `self`.
pub(super) fn function_of(function: syn::ImplItemFn, output: Option<&syn::Type>) -> syn::ItemFn {
    let syn::ImplItemFn { attrs, sig, block, modifiers, .. } = function;
    let vis = syn::Visibility::Inherited;
    let mut item = syn::ItemFn { attrs, vis, modifiers, sig, block: Box::new(block) };
    for input in &mut item.sig.inputs {
        if let syn::FnArg::Receiver(receiver) = input {
            let name = syn::Ident::new("self", receiver.self_token.span);
            let (mutability, ty): (_, syn::Type) = match &receiver.kind {
                syn::ReceiverKind::Reference(_, _, Some(_)) => (None, syn::parse_quote!(&mut Self)),
                syn::ReceiverKind::Reference(..) => (None, syn::parse_quote!(&Self)),
                syn::ReceiverKind::Typed(_, ty) => (receiver.mutability, (**ty).clone()),
                _ => (receiver.mutability, syn::parse_quote!(Self)),
            };
            *input = syn::FnArg::Typed(syn::PatType {
                attrs: Vec::new(),
                pat: Box::new(syn::Pat::Ident(syn::PatIdent {
                    attrs: Vec::new(),
                    by_ref: None,
                    mutability,
                    ident: name,
                    subpat: None,
                })),
                colon_token: Default::default(),
                ty: Box::new(ty),
            });
        }
    }
    if let Some(output) = output {
        Output(output).visit_item_fn_mut(&mut item);
    }
    item
}

/// An associated constant as a constant.
pub(super) fn constant_of(constant: &syn::ImplItemConst) -> syn::ItemConst {
    let syn::ImplItemConst { attrs, ident, ty, expr, .. } = constant;
    syn::parse_quote!(#(#attrs)* const #ident: #ty = #expr;)
}

/// Writes the type in place of `Self::Output`.
struct Output<'t>(&'t syn::Type);

impl VisitMut for Output<'_> {
    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        visit_mut::visit_type_mut(self, ty);
        if matches!(ty, syn::Type::Path(path) if path.qself.is_none() && path_name(&path.path) == "Self::Output") {
            *ty = self.0.clone();
        }
    }
}

/// The members of each type, by its hash; the items that they became are added to `bundles`.
pub(super) fn members(bundles: &mut HashMap<String, Rc<Bundle>>, blocks: &[Bundle]) -> HashMap<String, Vec<Member>> {
    let mut members: HashMap<String, Vec<Member>> = HashMap::new();
    for bundle in blocks {
        let syn::Item::Impl(block) = &bundle.item else {
            continue;
        };
        for (member, item) in items_of(bundle, block) {
            if let Some(owner) = item.names.get(SELF) {
                members.entry(owner.clone()).or_default().push(member);
            }
            bundles.insert(item.hash.clone(), Rc::new(item));
        }
    }
    members
}

impl Session {
    /// Reports what a block has that is not part of the language.
    pub(super) fn check_impl(&mut self, block: &syn::ItemImpl) {
        if !block.generics.params.is_empty() {
            self.error(&block.generics, "`impl` blocks with generics are not part of the kernel language");
        }
        if block.generics.where_clause.is_some() {
            self.error(&block.generics.where_clause, "an `impl` block of the kernel language has no `where`");
        }
        if let Some(token) = &block.unsafety {
            self.error(token, "`unsafe` is not part of the kernel language: remove it");
        }
        if let Some(path) = trait_path(block) {
            let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            if !OPERATORS.iter().any(|(known, ..)| *known == name) {
                let known: Vec<&str> = OPERATORS.iter().map(|(name, ..)| *name).collect();
                let known = known.join(", ");
                self.error(path, format!("a #[device] `impl` is of a type alone, or of an operator's trait: {known}"));
            }
        }
        for item in &block.items {
            match item {
                syn::ImplItem::Fn(_) | syn::ImplItem::Const(_) => {}
                syn::ImplItem::Type(ty) if block.trait_.is_some() && ty.ident == "Output" => {}
                other => self.error(other, "a #[device] `impl` holds functions and constants"),
            }
        }
    }

    /// The type that a path means, if it is one that has members.
    fn owner(&self, ty: &Ty) -> Option<&String> {
        match ty {
            Ty::Struct(handle) => self.structs.iter().find(|(_, known)| **known == Some(*handle)).map(|(hash, _)| hash),
            Ty::Enum(handle) => self.enums.iter().find(|(_, known)| **known == Some(*handle)).map(|(hash, _)| hash),
            _ => None,
        }
    }

    /// The members of a type that fit.
    fn members_of(&self, ty: &Ty, fits: impl Fn(&Member) -> bool) -> Vec<Rc<Bundle>> {
        let members = self.owner(ty).and_then(|owner| self.members.get(owner));
        let fitting = members.into_iter().flatten().filter(|member| fits(member));
        fitting.filter_map(|member| self.bundles.get(&member.hash).cloned()).collect()
    }

    /// The function or constant of a type with that name.
    pub(super) fn member(&self, ty: &Ty, name: &str) -> Option<Rc<Bundle>> {
        self.members_of(ty, |member| member.name == name).into_iter().next()
    }

    /// Why a type has no member of that name.
    pub(super) fn no_member(&self, ty: &Ty, name: &str) -> String {
        let members = self.owner(ty).and_then(|owner| self.members.get(owner));
        let own = members.into_iter().flatten().filter(|member| member.operator.is_none());
        let names: Vec<&str> = own.map(|member| member.name.as_str()).collect();
        let found = self.describe(ty);
        if names.is_empty() {
            return format!(
                "`{found}` has no `{name}` in kernels: methods stand in a `#[device] impl {found}`, and `#[device(methods)]` on the type makes them known"
            );
        }
        format!("`{found}` has no `{name}` in kernels: it has {}", names.join(", "))
    }

    /// The name of an item in the emitted code: of a member with its type's before it.
    pub(super) fn emitted_name(&self, names: &super::Names, name: &syn::Ident) -> String {
        let owner = names.get(SELF).and_then(|owner| self.bundles.get(owner)).and_then(|owner| owner.ident().cloned());
        match owner {
            Some(owner) => format!("{owner}_{name}"),
            None => name.to_string(),
        }
    }
}

impl Infer<'_> {
    /// Whether a method call is one of a struct or an enum.
    pub(super) fn has_members(&self, operand: &Operand) -> bool {
        let ty = match operand {
            Operand::Value(node) => &node.ty,
            Operand::Place(place) if !place.atomic => &place.ty,
            _ => return false,
        };
        matches!(self.table.shallow(ty), Ty::Struct(_) | Ty::Enum(_))
    }

    /// `a.mul(b)` of a struct or an enum.
    pub(super) fn member_call(&mut self, operand: Operand, e: &syn::ExprMethodCall) -> Node {
        let ty = match &operand {
            Operand::Value(node) => self.table.shallow(&node.ty),
            Operand::Place(place) => self.table.shallow(&place.ty),
            Operand::Slice(_) => Ty::Error,
        };
        let name = e.method.to_string();
        let function = self.session.member(&ty, &name).filter(|bundle| matches!(bundle.item, syn::Item::Fn(_)));
        let Some(function) = function else {
            self.read_in_vain(&e.args);
            let message = self.session.no_member(&ty, &name);
            return self.wrong(&e.method, message);
        };
        if let syn::Item::Fn(item) = &function.item
            && !takes_self(item)
        {
            let shown = self.describe(&ty);
            return self.wrong(&e.method, format!("`{name}` takes no `self`: call it as `{shown}::{name}(..)`"));
        }
        let mut path = syn::Path::from(e.method.clone());
        if let (Some(arguments), Some(last)) = (&e.turbofish, path.segments.last_mut()) {
            last.arguments = syn::PathArguments::AngleBracketed(arguments.clone());
        }
        let mut given = vec![Given::Operand(operand, &e.receiver)];
        given.extend(e.args.iter().map(Given::Written));
        let own = self.scope.clone();
        self.device_call(&function, &path, &own, given, e)
    }

    /// `a + b` where `a` is a struct; `None` if the type has no such operator.
    pub(super) fn operator_call(
        &mut self,
        operator: BinaryOperator,
        left: Operand,
        e: &syn::ExprBinary,
        assigns: bool,
    ) -> Option<Node> {
        let ty = match &left {
            Operand::Value(node) => self.table.shallow(&node.ty),
            Operand::Place(place) => self.table.shallow(&place.ty),
            Operand::Slice(_) => return None,
        };
        let (wanted, method) = binary_trait(operator, assigns)?;
        let found =
            self.session.members_of(&ty, |member| member.operator.as_deref() == Some(wanted) && member.name == method);
        let mut right = Given::Written(&e.right);
        let function = match found.as_slice() {
            [] => return None,
            [only] => only.clone(),
            several => {
                let node = self.expr(&e.right, None);
                let fitting = several.iter().find(|bundle| !bundle.failed && self.takes(bundle, &node));
                // What one with a mistake takes, its types do not say.
                let mistaken = || several.iter().find(|bundle| bundle.failed);
                let chosen = fitting.or_else(mistaken).or(several.first())?.clone();
                right = Given::Operand(Operand::Value(node), &e.right);
                chosen
            }
        };
        let path = syn::Path::from(syn::Ident::new(method, proc_macro2::Span::call_site()));
        let own = self.scope.clone();
        let node = self.device_call(&function, &path, &own, vec![Given::Operand(left, &e.left), right], e);
        if operator == BinaryOperator::NotEqual {
            return Some(self.node(Kind::Unary(UnaryOperator::Not, Box::new(node)), Ty::BOOL, e));
        }
        Some(node)
    }

    /// Whether the second parameter of a function is of the node's type.
    fn takes(&mut self, bundle: &Rc<Bundle>, node: &Node) -> bool {
        let syn::Item::Fn(item) = &bundle.item else {
            return false;
        };
        let Some(syn::FnArg::Typed(parameter)) = item.sig.inputs.iter().nth(1) else {
            return false;
        };
        let scope = super::session::Scope { names: Rc::new(bundle.names.clone()), ..Default::default() };
        let wanted = self.session.resolve_type(&parameter.ty, &scope);
        let found = self.table.shallow(&node.ty);
        wanted == found || (wanted == Ty::F32 && self.table.kind(&found) == Some(super::infer::VarKind::Float))
    }

    /// `-a` where `a` is a struct.
    pub(super) fn unary_call(&mut self, operator: UnaryOperator, value: Node, e: &syn::ExprUnary) -> Option<Node> {
        let name = match operator {
            UnaryOperator::Negate => "Neg",
            UnaryOperator::Not => "Not",
        };
        let ty = self.table.shallow(&value.ty);
        let function =
            self.session.members_of(&ty, |member| member.operator.as_deref() == Some(name)).into_iter().next()?;
        let path = syn::Path::from(syn::Ident::new(&name.to_lowercase(), proc_macro2::Span::call_site()));
        let own = self.scope.clone();
        Some(self.device_call(&function, &path, &own, vec![Given::Operand(Operand::Value(value), &e.expr)], e))
    }
}

/// Whether a function is a method.
fn takes_self(item: &syn::ItemFn) -> bool {
    match item.sig.inputs.first() {
        Some(syn::FnArg::Typed(parameter)) => parameter.pat.to_token_stream().to_string().ends_with("self"),
        _ => false,
    }
}
