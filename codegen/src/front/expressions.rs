//! Expressions: literals, names, parts, arrays, structs, conversions, and where each other kind is handled.

use quote::ToTokens;
use std::rc::Rc;

use super::bundle::Bundle;
use super::foreign;
use super::infer::{Length, Ty, VarKind};
use super::intrinsics;
use super::items::{self, Item};
use super::named;
use super::places::{Operand, peel};
use super::scope::{Infer, numeric};
use super::session::{GenericArgument, Scope};
use super::tree::{Kind, Node};
use crate::ir::{Literal, Scalar, Size};

impl Infer<'_> {
    /// The value of an expression. The hint is the type that its place wants, if that is known; literals and arrays look at it.
    pub(super) fn expr(&mut self, e: &syn::Expr, hint: Option<&Ty>) -> Node {
        let Some(outside) = self.session.enter(e) else { return self.failed(e) };
        let node = self.expression(e, hint);
        self.session.depth = outside;
        node
    }

    fn expression(&mut self, e: &syn::Expr, hint: Option<&Ty>) -> Node {
        match e {
            syn::Expr::Paren(inner) => self.expr(&inner.expr, hint),
            syn::Expr::Group(inner) => self.expr(&inner.expr, hint),
            syn::Expr::Lit(literal) => self.literal(literal, hint),
            syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_) => {
                let operand = self.operand(e);
                self.value_of(operand, e)
            }
            syn::Expr::Unary(unary) => match unary.op {
                syn::UnOp::Deref(_) => {
                    let operand = self.operand(e);
                    self.value_of(operand, e)
                }
                _ => self.unary(unary, hint),
            },
            syn::Expr::Binary(binary) => self.binary(binary, hint),
            syn::Expr::Assign(assign) => self.assign(assign),
            syn::Expr::Cast(cast) => self.cast(cast),
            syn::Expr::Call(call) => self.call(call, hint),
            syn::Expr::MethodCall(call) => self.method(call, hint),
            syn::Expr::Array(array) => self.array(array, hint),
            syn::Expr::Repeat(repeat) => self.repeat(repeat, hint),
            syn::Expr::Struct(literal) => self.struct_literal(literal),
            syn::Expr::Block(block) => {
                self.no_label(block.label.as_ref());
                let inner = self.block(&block.block, hint);
                let ty = inner.ty.clone();
                self.node(Kind::Block(Box::new(inner)), ty, e)
            }
            syn::Expr::If(expression) => self.if_expression(expression, hint),
            syn::Expr::Match(expression) => self.match_expression(expression, hint),
            syn::Expr::ForLoop(expression) => self.for_loop(expression),
            syn::Expr::While(expression) => self.while_loop(expression),
            syn::Expr::Loop(expression) => self.loop_forever(expression),
            syn::Expr::Break(expression) => self.break_loop(expression),
            syn::Expr::Continue(expression) => self.continue_loop(expression),
            syn::Expr::Return(expression) => self.return_value(expression),
            syn::Expr::Tuple(tuple) if tuple.elems.is_empty() => self.node(Kind::Unit, Ty::Unit, e),
            syn::Expr::Const(block) => {
                if self.constant {
                    let inner = self.block(&block.block, hint);
                    let ty = inner.ty.clone();
                    return self.node(Kind::Block(Box::new(inner)), ty, e);
                }
                self.wrong(e, "`const { .. }` stands in the condition of an `if` alone: `if const { target::has(Feature::Subgroups) } { .. }`")
            }
            syn::Expr::Macro(call) if let Some(node) = self.report(&call.mac) => node,
            other => {
                if let syn::Expr::Let(condition) = other {
                    self.declare_failed(&condition.pat);
                }
                let message = not_in_the_language(other);
                self.wrong(other, message)
            }
        }
    }

    /// The value of an expression, which must have that type.
    pub(super) fn expect(&mut self, e: &syn::Expr, ty: &Ty) -> Node {
        let node = self.expr(e, Some(ty));
        self.coerce(node, ty, e)
    }

    pub(super) fn no_label(&mut self, label: Option<&syn::Label>) {
        if let Some(label) = label {
            self.error(label, "labels are not part of the kernel language (yet): `break` and `continue` mean the innermost loop; a bool variable can leave outer ones");
        }
    }

    fn literal(&mut self, e: &syn::ExprLit, hint: Option<&Ty>) -> Node {
        let (kind, ty) = match &e.lit {
            syn::Lit::Bool(value) => (Kind::Literal(Literal::Bool(value.value)), Ty::BOOL),
            syn::Lit::Int(value) => {
                let ty = match value.suffix() {
                    "" => match hint.map(|hint| self.table.shallow(hint)) {
                        Some(Ty::Scalar(scalar)) if scalar.is_integer() => Ty::Scalar(scalar),
                        _ => self.table.fresh(VarKind::Integer),
                    },
                    suffix => match Scalar::from_rust_name(suffix).filter(|scalar| is_primitive(*scalar)) {
                        Some(scalar) => Ty::Scalar(scalar),
                        None => {
                            let message = format!(
                                "`{suffix}` is not part of the kernel language: its integers are i8 to i64, u8 to u64 and usize"
                            );
                            return self.wrong(e, message);
                        }
                    },
                };
                if matches!(ty, Ty::Scalar(scalar) if scalar.is_float()) {
                    match value.base10_digits().parse::<f64>() {
                        Ok(number) => (Kind::Float(number as f32, number), ty),
                        Err(_) => return self.wrong(e, "this is not a number"),
                    }
                } else {
                    match value.base10_parse::<u64>() {
                        Ok(number) => (Kind::Integer(number), ty),
                        Err(_) => return self.wrong(e, "too large: the integers of kernels are 64 bits wide"),
                    }
                }
            }
            syn::Lit::Float(value) => {
                let ty = match value.suffix() {
                    "" => self.table.fresh(VarKind::Float),
                    "f32" => Ty::F32,
                    "f64" => Ty::Scalar(Scalar::F64),
                    suffix => {
                        let message = format!(
                            "`{suffix}` literals are not part of the kernel language: write an f32, and `f16::from_f32(..)` for halves"
                        );
                        return self.wrong(e, message);
                    }
                };
                match (value.base10_digits().parse::<f32>(), value.base10_digits().parse::<f64>()) {
                    (Ok(_), Ok(double)) if double.is_infinite() => return self.wrong(e, "too large for f64"),
                    (Ok(single), Ok(double)) => (Kind::Float(single, double), ty),
                    _ => return self.wrong(e, "this is not a number"),
                }
            }
            _ => return self.wrong(e, "text and bytes are not part of the kernel language"),
        };
        if self.record {
            self.ascriptions.literals.insert(std::ptr::from_ref(&e.lit) as usize, ty.clone());
        }
        self.node(kind, ty, e)
    }

    /// A path to a value that is no local, slice or parameter.
    pub(super) fn path_value(&mut self, e: &syn::ExprPath) -> Node {
        let path = &e.path;
        if e.qself.is_some() {
            return self.wrong(e, "trait paths are not part of the kernel language");
        }
        let Some(last) = path.segments.last().map(|segment| segment.ident.to_string()) else {
            return self.failed(e);
        };
        if path.segments.len() == 1
            && let Some(GenericArgument::Const(scalar, length)) = self.scope.generics.get(&last)
        {
            let (scalar, length) = (*scalar, length.clone());
            return match self.table.length(&length) {
                Some(size) => self.node(Kind::Constant(size), Ty::Scalar(scalar), e),
                None => self.failed(e),
            };
        }
        if let Some(bundle) = self.session.bundle(&self.scope, path) {
            return self.constant_item(&bundle, e);
        }
        let owner = named::owner(path);
        if owner.is_none()
            && let Some((scalar, value)) = intrinsics::constant_of_path(path)
        {
            return self.node(Kind::Literal(value), Ty::Scalar(scalar), e);
        }
        if self.session.is_inner(path) {
            return self.failed(e);
        }
        if let Some(message) = foreign::message(path) {
            return self.wrong(e, message);
        }
        if let Some(owner) = owner {
            return self.owned_value(&owner, &last, e);
        }
        let shown = super::path_name(path);
        let message = if self.scope.generics.contains_key(&last) && path.segments.len() == 1 {
            format!("`{shown}` is a type, not a value")
        } else if intrinsics::function_of_path(path).is_some() {
            format!("`{shown}` is a function: call it, as in `{shown}(..)`")
        } else {
            format!("no variable or constant `{shown}` is known here: a constant that kernels use carries #[device]")
        };
        self.wrong(e, message)
    }

    /// `f32::MAX`, `Act::Relu`.
    fn owned_value(&mut self, owner: &syn::Path, name: &str, e: &syn::ExprPath) -> Node {
        let owner_name = super::path_name(owner);
        if let Some(scalar) = items::scalar(&owner_name) {
            return match limit(scalar, name) {
                Some(value) => self.node(Kind::Literal(value), Ty::Scalar(value.scalar()), e),
                None => {
                    let instead = match (scalar, name) {
                        (Scalar::Index, "MAX") => ": the width of `usize` is the target's; write `u32::MAX as usize`",
                        _ => "",
                    };
                    let message = format!("the kernel language has no `{owner_name}::{name}`{instead}");
                    self.wrong(e, message)
                }
            };
        }
        if self.session.bundle(&self.scope, owner).is_none() {
            if items::lanes(&owner_name).is_some() {
                let instead = match name {
                    "ZERO" => format!("`{owner_name}::splat(0.0)`"),
                    "ONE" => format!("`{owner_name}::splat(1.0)`"),
                    _ => format!("`{owner_name}::new(..)` or `{owner_name}::splat(..)`"),
                };
                return self
                    .wrong(e, format!("vectors have no constant `{owner_name}::{name}` in kernels: write {instead}"));
            }
            let message = format!("no enum `{owner_name}` is known here: an enum that kernels use carries #[device]");
            return self.wrong(e, message);
        }
        let scope = self.scope.clone();
        match self.session.resolve_item(owner, &scope) {
            Item::Enum(handle) => {
                let found = self.session.module.enums[handle]
                    .variants
                    .iter()
                    .find(|(variant, _)| variant == name)
                    .map(|(_, value)| *value);
                match found {
                    Some(value) => self.node(Kind::Literal(Literal::U32(value)), Ty::Enum(handle), e),
                    None => match self.session.member(&Ty::Enum(handle), name) {
                        Some(bundle) => self.constant_item(&bundle, e),
                        None => {
                            let message = format!("`{owner_name}` has no variant `{name}`");
                            self.wrong(e, message)
                        }
                    },
                }
            }
            Item::Struct(handle) => match self.session.member(&Ty::Struct(handle), name) {
                Some(bundle) => self.constant_item(&bundle, e),
                None => {
                    let message = self.session.no_member(&Ty::Struct(handle), name);
                    self.wrong(e, message)
                }
            },
            Item::Failed => self.failed(e),
        }
    }

    /// The value of a `#[device]` constant.
    fn constant_item(&mut self, bundle: &Rc<Bundle>, e: &syn::ExprPath) -> Node {
        if bundle.failed {
            return self.failed(e);
        }
        let syn::Item::Const(item) = &bundle.item else {
            return self.wrong(e, "this is not a value: a function is called, a struct is written with its fields");
        };
        if self.session.stack.contains(&bundle.hash) {
            return self.wrong(e, "this constant is defined by itself");
        }
        if !self.session.enter_constant(&bundle.hash, e) {
            return self.failed(e);
        }
        let node = self.constant_value(item, bundle);
        self.session.stack.pop();
        let ty = node.ty.clone();
        self.node(Kind::Fixed(Box::new(node)), ty, e)
    }

    /// The value of a constant, in its own scope.
    pub(super) fn constant_value(&mut self, item: &syn::ItemConst, bundle: &Bundle) -> Node {
        let scope = Scope { names: Rc::new(bundle.names.clone()), own: item.ident.to_string(), ..Scope::default() };
        let ty = self.session.resolve_type(&item.ty, &scope);
        let scope = std::mem::replace(&mut self.scope, scope);
        let scopes = std::mem::replace(&mut self.scopes, vec![Default::default()]);
        let was = std::mem::replace(&mut self.in_constant, true);
        let wanted = self.record && bundle.hash.is_empty();
        let record = std::mem::replace(&mut self.record, wanted);
        let node = self.expect(&item.expr, &ty);
        self.record = record;
        self.in_constant = was;
        self.scopes = scopes;
        self.scope = scope;
        node
    }

    fn array(&mut self, e: &syn::ExprArray, hint: Option<&Ty>) -> Node {
        let element = match hint.map(|hint| self.table.shallow(hint)) {
            Some(Ty::Array(element, _)) => *element,
            _ => self.table.fresh(VarKind::Any),
        };
        if e.elems.is_empty() {
            return self.wrong(e, "an array of a kernel has at least one element");
        }
        let mut nodes = Vec::new();
        for part in &e.elems {
            nodes.push(self.expect(part, &element));
        }
        let length = Length::Known(Size::Literal(nodes.len() as u32));
        self.node(Kind::Compose(nodes), Ty::Array(Box::new(element), length), e)
    }

    fn repeat(&mut self, e: &syn::ExprRepeat, hint: Option<&Ty>) -> Node {
        let inner = match hint.map(|hint| self.table.shallow(hint)) {
            Some(Ty::Array(element, _)) => Some(*element),
            _ => None,
        };
        let value = match &inner {
            Some(inner) => self.expect(&e.expr, inner),
            None => self.expr(&e.expr, None),
        };
        let scope = self.scope.clone();
        let Some(length) = self.session.size(&e.len, &scope) else {
            return self.failed(e);
        };
        if self.table.length(&length) == Some(Size::Literal(0)) {
            return self.wrong(&e.len, "an array of a kernel has at least one element");
        }
        let ty = Ty::Array(Box::new(value.ty.clone()), length);
        self.node(Kind::Splat(Box::new(value)), ty, e)
    }

    fn struct_literal(&mut self, e: &syn::ExprStruct) -> Node {
        let scope = self.scope.clone();
        let handle = match self.session.resolve_item(&e.path, &scope) {
            Item::Struct(handle) => Some(handle),
            Item::Enum(_) => {
                self.error(&e.path, "an enum's value is written as `Enum::Variant`");
                None
            }
            Item::Failed => None,
        };
        if let Some(rest) = &e.rest {
            self.error(rest, "`..base` is not part of the kernel language (yet): write every field");
        }
        let fields = handle.map(|handle| self.session.module.structs[handle].fields.clone());
        let mut nodes: Vec<(usize, Node)> = Vec::new();
        for field in &e.fields {
            let name = field.member.to_token_stream().to_string();
            let found = fields.as_ref().and_then(|fields| fields.iter().position(|(known, _)| *known == name));
            match (found, &fields) {
                (Some(index), Some(fields)) => {
                    let ty = self.session.ty(fields[index].1);
                    let node = self.expect(&field.expr, &ty);
                    if nodes.iter().any(|(known, _)| *known == index) {
                        self.error(&field.member, format!("the field `{name}` is given twice"));
                    } else {
                        nodes.push((index, node));
                    }
                }
                (None, Some(_)) => {
                    let _ = self.expr(&field.expr, None);
                    let shown = super::path_name(&e.path);
                    self.error(&field.member, format!("`{shown}` has no field `{name}`"));
                }
                _ => self.read_in_vain([&field.expr]),
            }
        }
        let (Some(handle), Some(fields)) = (handle, fields) else {
            return self.failed(e);
        };
        if e.rest.is_none() {
            let missing: Vec<String> = fields
                .iter()
                .enumerate()
                .filter(|(index, (name, _))| {
                    !nodes.iter().any(|(known, _)| known == index)
                        && !e.fields.iter().any(|field| field.member.to_token_stream().to_string() == *name)
                })
                .map(|(_, (name, _))| format!("`{name}`"))
                .collect();
            if !missing.is_empty() {
                self.error(&e.path, format!("missing fields: {}", missing.join(", ")));
            }
        }
        if nodes.len() != fields.len() {
            return self.failed(e);
        }
        self.node(Kind::Struct(nodes), Ty::Struct(handle), e)
    }

    fn cast(&mut self, e: &syn::ExprCast) -> Node {
        let scope = self.scope.clone();
        let target = match &*e.ty {
            syn::Type::Infer(_) => return self.wrong(&e.ty, "write the type to convert to"),
            ty => self.session.resolve_type(ty, &scope),
        };
        // As in rustc, a literal that is converted to a type of its kind is of that type. Nothing else learns of the conversion: operands and branches have the type of what they meet.
        let is_literal = is_literal(&e.expr);
        let hint = match &target {
            Ty::Scalar(scalar) if is_literal && scalar.is_integer() => Some(&target),
            _ => None,
        };
        let node = self.expr(&e.expr, hint);
        match (&target, self.table.kind(&node.ty)) {
            (Ty::Scalar(Scalar::F32 | Scalar::F64), Some(VarKind::Float)) if is_literal => {
                self.table.unify(&node.ty, &target);
            }
            (Ty::Scalar(Scalar::F64), Some(VarKind::Float)) => self.undecided.doubles.push(node.ty.clone()),
            _ => {}
        }
        let source = self.known(&node.ty, &e.expr);
        let wrong = match (&source, &target) {
            (Ty::Error, _) | (_, Ty::Error) => return self.failed(e),
            (Ty::Scalar(Scalar::F16 | Scalar::BF16), _) => Some("a half is converted with `.to_f32()`".to_owned()),
            (_, Ty::Scalar(half @ (Scalar::F16 | Scalar::BF16))) => {
                Some(format!("a half is made with `{}::from_f32(..)`", half.rust_name()))
            }
            (Ty::Scalar(from), Ty::Scalar(to)) if numeric(*from) && numeric(*to) => None,
            (Ty::Var(_), Ty::Scalar(to)) if numeric(*to) => None,
            (Ty::Scalar(Scalar::Bool) | Ty::Enum(_), Ty::Scalar(to)) if to.is_integer() => None,
            (Ty::Scalar(Scalar::Bool), Ty::Scalar(Scalar::F32 | Scalar::F64)) => Some(
                "a bool becomes a float by way of an integer: `x as u32 as f32`, or `select(x, 1.0, 0.0)`".to_owned(),
            ),
            (Ty::Scalar(Scalar::Generic(_)), _) | (_, Ty::Scalar(Scalar::Generic(_))) => {
                Some("`as` does not know generic types: use `.to_f32()` and `T::from_f32(..)`".to_owned())
            }
            (_, Ty::Scalar(Scalar::Bool)) => Some("compare instead: `x != 0`".to_owned()),
            (Ty::Vector(..), _) => Some("`as` converts scalars: convert lane by lane".to_owned()),
            _ => Some(format!("`{}` cannot be converted to `{}`", self.describe(&source), self.describe(&target))),
        };
        match wrong {
            Some(message) => self.wrong(e, message),
            None if source == target => node,
            None => self.node(Kind::Convert(Box::new(node)), target, e),
        }
    }

    /// The value of a name or part; reports what has none.
    pub(super) fn value_of(&mut self, operand: Operand, e: &syn::Expr) -> Node {
        match operand {
            Operand::Value(node) => node,
            Operand::Place(place) => {
                if place.atomic {
                    return self.wrong(
                        e,
                        "an atomic has no value by itself: read it with `.load()`, change it with `.add(..)` and so on",
                    );
                }
                let ty = place.ty.clone();
                self.node(Kind::Load(place), ty, e)
            }
            Operand::Slice(slice) => {
                let message = if slice.view.is_some() {
                    "a view is no value: read it with `.at([i, j])`, or pass it on to a function"
                } else {
                    "a slice is no value: index it, ask for its `.len()`, or pass it on to a function"
                };
                self.wrong(e, message)
            }
        }
    }
}

/// Whether a value is a literal, to which rustc hands on what type is wanted through signs and to the ends of blocks, and not through operators, branches or calls.
fn is_literal(e: &syn::Expr) -> bool {
    match peel(e) {
        syn::Expr::Lit(_) => true,
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_) | syn::UnOp::Not(_), expr, .. }) => is_literal(expr),
        syn::Expr::Block(block) => {
            matches!(block.block.stmts.last(), Some(syn::Stmt::Expr(tail, None)) if is_literal(tail))
        }
        _ => false,
    }
}

/// Whether Rust has literals of the type.
const fn is_primitive(scalar: Scalar) -> bool {
    scalar.is_number() && !matches!(scalar, Scalar::F16 | Scalar::BF16)
}

/// `f32::MAX` and the like.
fn limit(scalar: Scalar, name: &str) -> Option<Literal> {
    Some(match (scalar, name) {
        (Scalar::F32, "MAX") => Literal::F32(f32::MAX),
        (Scalar::F32, "MIN") => Literal::F32(f32::MIN),
        (Scalar::F32, "INFINITY") => Literal::F32(f32::INFINITY),
        (Scalar::F32, "NEG_INFINITY") => Literal::F32(f32::NEG_INFINITY),
        (Scalar::F32, "EPSILON") => Literal::F32(f32::EPSILON),
        (Scalar::F32, "MIN_POSITIVE") => Literal::F32(f32::MIN_POSITIVE),
        (Scalar::F32, "NAN") => Literal::F32(f32::NAN),
        (Scalar::F64, "MAX") => Literal::F64(f64::MAX),
        (Scalar::F64, "MIN") => Literal::F64(f64::MIN),
        (Scalar::F64, "INFINITY") => Literal::F64(f64::INFINITY),
        (Scalar::F64, "NEG_INFINITY") => Literal::F64(f64::NEG_INFINITY),
        (Scalar::F64, "EPSILON") => Literal::F64(f64::EPSILON),
        (Scalar::F64, "MIN_POSITIVE") => Literal::F64(f64::MIN_POSITIVE),
        (Scalar::F64, "NAN") => Literal::F64(f64::NAN),
        // The host's `usize` is wider than the device's.
        (Scalar::Index, _) => return None,
        (scalar, "MAX" | "MIN") if scalar.is_integer() => {
            let [least, most] = scalar.limits();
            return Literal::exact_integer(scalar, if name == "MAX" { most } else { least });
        }
        (scalar, "BITS") if scalar.is_integer() => Literal::U32(scalar.bits()),
        _ => return None,
    })
}

/// Why a kind of expression is refused, and what to write instead.
fn not_in_the_language(e: &syn::Expr) -> String {
    let (what, instead) = match e {
        syn::Expr::Closure(_) => {
            return "a closure stands as an argument of a #[device] function alone, as in `reduce(x, |a, b| a + b)`"
                .to_owned();
        }
        syn::Expr::Macro(call) => {
            let name = call.mac.path.to_token_stream().to_string();
            return macro_message(&name);
        }
        syn::Expr::Reference(_) => {
            return "a reference is no value here: `&x` and `&mut x` stand for arguments of #[device] functions alone"
                .to_owned();
        }
        syn::Expr::Range(_) => return "a range stands after `in` alone: `for i in 0..n`".to_owned(),
        syn::Expr::Let(_) => ("`if let` and `while let` are", "compare, or `match` an enum"),
        syn::Expr::Tuple(_) => ("tuples are", "use a #[device] struct, a vector or an array"),
        syn::Expr::Try(_) => ("`?` is", "check with `if`"),
        syn::Expr::Unsafe(_) => ("`unsafe` is", "remove it: accesses out of bounds are harmless"),
        syn::Expr::Async(_) | syn::Expr::Await(_) => ("`async` is", "remove it"),
        _ => ("this expression is", "write it with operators, calls, `if`, `match` and loops"),
    };
    format!("{what} not part of the kernel language (yet): {instead}")
}

/// Why a macro is refused.
pub(super) fn macro_message(name: &str) -> String {
    match name {
        "panic" | "unreachable" | "todo" | "unimplemented" => format!(
            "`{name}!` is not part of the kernel language: a kernel cannot stop the program; `assert!(false, \"..\")` reports that it got here, and goes on"
        ),
        "dbg" => "`dbg!` is not part of the kernel language: `println!(\"{x}\")` prints a value".to_owned(),
        "vec" => "`vec!` is not part of the kernel language (yet): many values are an array `[0.0; N]`, or a `workgroup_array`".to_owned(),
        "format" | "write" | "writeln" => format!(
            "macros are not part of the kernel language, nor is the text that `{name}!` would make: `println!(\"{{x}}\")` prints a value on the host"
        ),
        _ => format!(
            "macros are not part of the kernel language: `{name}!` would have to be expanded before the kernel is compiled; use a #[device] function"
        ),
    }
}
