//! Types and items as they are written: paths resolved to `#[device]` items, structs and enums made once.

use std::rc::Rc;

use quote::ToTokens;

use super::bundle::Bundle;
use super::foreign;
use super::infer::{Length, Ty};
use super::intrinsics;
use super::matrices;
use super::named;
use super::session::{GenericArgument, Scope, Session, unique};
use crate::ir::{Enum, Handle, Scalar, Size, Struct};
use crate::verify;

/// An item that a path in a type or a literal means.
pub(super) enum Item {
    Struct(Handle<Struct>),
    Enum(Handle<Enum>),
    /// Something wrong, which was reported here or where it is defined.
    Failed,
}

impl Session {
    /// The type that is written; what is wrong is reported.
    pub(super) fn resolve_type(&mut self, ty: &syn::Type, scope: &Scope) -> Ty {
        match ty {
            syn::Type::Group(group) => self.resolve_type(&group.elem, scope),
            syn::Type::Paren(paren) => self.resolve_type(&paren.elem, scope),
            syn::Type::Array(array) => {
                let element = self.resolve_type(&array.elem, scope);
                match self.size(&array.len, scope) {
                    Some(length) => Ty::Array(Box::new(element), length),
                    None => Ty::Error,
                }
            }
            syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Ty::Unit,
            syn::Type::Path(path) if path.qself.is_none() => self.resolve_type_path(&path.path, scope),
            syn::Type::Reference(_) => {
                self.error(ty, "a reference cannot be a value here: slices and `&mut` are for parameters of kernels and #[device] functions");
                Ty::Error
            }
            syn::Type::Slice(_) => {
                self.error(ty, "a slice is used by reference: write `&[T]` or `&mut [T]` as the type of a parameter");
                Ty::Error
            }
            syn::Type::Tuple(_) => {
                self.error(
                    ty,
                    "tuples are not part of the kernel language: use a #[device] struct, a vector or an array",
                );
                Ty::Error
            }
            _ => {
                self.error(ty, format!("this type is not part of the kernel language, which has {SCALARS}, Vec2 to Vec4, arrays, and #[device] structs and enums"));
                Ty::Error
            }
        }
    }

    /// The type that a path means.
    pub(super) fn resolve_type_path(&mut self, path: &syn::Path, scope: &Scope) -> Ty {
        let Some(last) = path.segments.last() else {
            return Ty::Error;
        };
        let name = last.ident.to_string();
        let single = path.segments.len() == 1;
        if single {
            match scope.generics.get(&name) {
                Some(GenericArgument::Type(ty)) => return ty.clone(),
                Some(GenericArgument::Const(..)) => {
                    self.error(path, format!("`{name}` is a constant, not a type"));
                    return Ty::Error;
                }
                Some(GenericArgument::Function(_)) => {
                    self.error(path, format!("`{name}` is a function's type: it stands for a parameter alone"));
                    return Ty::Error;
                }
                None => {}
            }
        }
        if self.bundle(scope, path).is_some() {
            return match self.resolve_item(path, scope) {
                Item::Struct(handle) => Ty::Struct(handle),
                Item::Enum(handle) => Ty::Enum(handle),
                Item::Failed => Ty::Error,
            };
        }
        if single || intrinsics::is_ours(path) {
            if let Some(scalar) = scalar(&name) {
                self.no_arguments(last);
                return Ty::Scalar(scalar);
            }
            if let Some(role) = matrices::role(&name) {
                return self.matrix_type(role, path, scope);
            }
            if let Some(lanes) = lanes(&name) {
                return match self.vector_scalar(last, scope) {
                    Some(Some(scalar)) => Ty::vector(lanes, scalar),
                    Some(None) => {
                        self.error(path, format!("write the type of its lanes: `{name}<f32>`"));
                        Ty::Error
                    }
                    None => Ty::Error,
                };
            }
        }
        if self.is_inner(path) {
            return Ty::Error;
        }
        let message = match name.as_str() {
            "Atomic" => {
                "atomics stand in slices alone: `&[Atomic<u32>]`, or `workgroup_array::<Atomic<u32>>(n)`".to_owned()
            }
            "View" => "a view is used by reference, as a parameter: `&View<f32, 2>`".to_owned(),
            "WorkgroupArray" => {
                "a workgroup array is a variable, not a value: pass it on as `&[T]` or `&mut [T]`".to_owned()
            }
            _ if intrinsics::later(&name) => {
                let arrays =
                    if name == "Vec" { "; many values are an array `[0.0; N]`, or a `workgroup_array`" } else { "" };
                format!("`{name}` is not part of the kernel language (yet): it has {SCALARS}{arrays}")
            }
            _ if foreign::is_library(path) => foreign::message(path).unwrap_or_default(),
            _ => format!(
                "no type of the name `{name}` is known here: kernels know the types of the prelude, and structs and enums that carry #[device]"
            ),
        };
        self.error(path, message);
        Ty::Error
    }

    fn no_arguments(&mut self, segment: &syn::PathSegment) {
        if !segment.arguments.is_none() {
            self.error(&segment.arguments, format!("`{}` takes no type arguments", segment.ident));
        }
    }

    /// The `f32` of `Vec4<f32>` or `Vec4::<f32>`: `Some(None)` if it is not written, `None` if it is wrong.
    pub(super) fn vector_scalar(&mut self, segment: &syn::PathSegment, scope: &Scope) -> Option<Option<Ty>> {
        let arguments = match &segment.arguments {
            syn::PathArguments::None => return Some(None),
            syn::PathArguments::AngleBracketed(arguments) => arguments,
            syn::PathArguments::Parenthesized(_) => {
                self.error(segment, "expected the type of the lanes, as in `Vec4<f32>`");
                return None;
            }
        };
        match arguments.args.iter().collect::<Vec<_>>().as_slice() {
            [syn::GenericArgument::Type(syn::Type::Infer(_))] => Some(None),
            [syn::GenericArgument::Type(ty)] => match self.resolve_type(ty, scope) {
                Ty::Scalar(Scalar::Bool) => {
                    self.error(ty, "vectors hold numbers, as in `Vec4<f32>`");
                    None
                }
                Ty::Error => None,
                scalar @ (Ty::Scalar(_) | Ty::Var(_)) => Some(Some(scalar)),
                _ => {
                    self.error(ty, "vectors hold scalars, as in `Vec4<f32>`");
                    None
                }
            },
            _ => {
                self.error(segment, "expected the type of the lanes, as in `Vec4<f32>`");
                None
            }
        }
    }

    /// The struct or enum that a path means.
    pub(super) fn resolve_item(&mut self, path: &syn::Path, scope: &Scope) -> Item {
        let Some(bundle) = self.bundle(scope, path) else {
            if self.is_inner(path) {
                return Item::Failed;
            }
            let last = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            let message = if lanes(&last).is_some() {
                format!("a vector is made by a function, not of its fields: `{last}::new(..)`")
            } else {
                let name = path.to_token_stream();
                format!("no struct or enum `{name}` is known here: put #[device] on it where it is defined")
            };
            self.error(path, message);
            return Item::Failed;
        };
        if bundle.failed {
            self.poisoned = true;
            return Item::Failed;
        }
        match &bundle.item {
            syn::Item::Struct(item) => self.struct_of(&bundle, item).map_or(Item::Failed, Item::Struct),
            syn::Item::Enum(item) => self.enum_of(&bundle, item).map_or(Item::Failed, Item::Enum),
            _ => {
                self.error(path, "this is not a type");
                Item::Failed
            }
        }
    }

    /// The struct of an item, made when it is first wanted.
    pub(super) fn struct_of(&mut self, bundle: &Rc<Bundle>, item: &syn::ItemStruct) -> Option<Handle<Struct>> {
        if let Some(known) = self.structs.get(&bundle.hash) {
            return *known;
        }
        // A struct that contains itself finds this, and rustc says what is wrong.
        self.structs.insert(bundle.hash.clone(), None);
        if !item.generics.params.is_empty() {
            self.error(&item.generics, "structs with generics are not part of the kernel language");
            return None;
        }
        let syn::Fields::Named(fields) = &item.fields else {
            self.error(item, "a #[device] struct has named fields: `struct Particle { position: Vec4<f32> }`");
            return None;
        };
        if fields.named.is_empty() {
            self.error(item, "a #[device] struct has at least one field");
            return None;
        }
        let scope = Scope { names: Rc::new(bundle.names.clone()), own: item.ident.to_string(), ..Scope::default() };
        let mut all = Vec::new();
        let mut wrong = false;
        let mut scalars = 0u64;
        for field in &fields.named {
            wrong |= self.is_conditional(&field.attrs);
            let ty = self.resolve_type(&field.ty, &scope);
            scalars = scalars.saturating_add(self.scalars(&ty));
            if !self.in_struct(&ty) && ty != Ty::Error {
                let (found, instead) = (self.describe(&ty), instead_of_field(ty.innermost()));
                self.error(&field.ty, format!("a field of a #[device] struct is f32, i32, u32, f64, i64, u64, a vector, an array or a struct of those, or an enum; `{found}` is none{instead}"));
                wrong = true;
            }
            match (self.ir_type(&ty), &field.ident) {
                (Some(ty), Some(name)) => all.push((name.to_string(), ty)),
                _ => wrong = true,
            }
        }
        if wrong {
            return None;
        }
        // The verifier says so too, of what has become of all types; until then they are walked through.
        if scalars > verify::MOST_SCALARS {
            self.error(&item.ident, verify::too_large(&item.ident.to_string(), scalars));
            return None;
        }
        let taken: Vec<String> = self.module.structs.iter().map(|(_, s)| s.name.clone()).collect();
        let handle = self
            .module
            .structs
            .add(Struct { name: unique(&item.ident.to_string(), taken.iter().map(String::as_str)), fields: all });
        self.struct_scalars.insert(handle, scalars);
        self.structs.insert(bundle.hash.clone(), Some(handle));
        Some(handle)
    }

    /// Reports a part of an item that is there under a condition, of which the macro, that reads the item first, knows nothing.
    fn is_conditional(&mut self, attributes: &[syn::Attribute]) -> bool {
        let found = attributes
            .iter()
            .find(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr"));
        if let Some(attribute) = found {
            self.error(attribute, "what is decided by a `cfg` after #[device] has read the item would differ between host and kernel: put it on the whole item");
        }
        found.is_some()
    }

    /// How many scalars a type is made of, arrays of a length that is not known yet as if it were 1.
    fn scalars(&self, ty: &Ty) -> u64 {
        match ty {
            Ty::Vector(lanes, _) => u64::from(*lanes),
            Ty::Array(element, Length::Known(Size::Literal(length))) => {
                self.scalars(element).saturating_mul(u64::from(*length))
            }
            Ty::Array(element, _) => self.scalars(element),
            Ty::Struct(handle) => self.struct_scalars.get(handle).copied().unwrap_or(1),
            _ => 1,
        }
    }

    fn in_struct(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Scalar(scalar) => scalar.is_number() && !scalar.is_narrow() && *scalar != Scalar::Index,
            Ty::Vector(_, inner) | Ty::Array(inner, _) => self.in_struct(inner),
            Ty::Struct(_) | Ty::Enum(_) => true,
            _ => false,
        }
    }

    /// The enum of an item, made when it is first wanted.
    pub(super) fn enum_of(&mut self, bundle: &Rc<Bundle>, item: &syn::ItemEnum) -> Option<Handle<Enum>> {
        if let Some(known) = self.enums.get(&bundle.hash) {
            return *known;
        }
        self.enums.insert(bundle.hash.clone(), None);
        if !item.generics.params.is_empty() {
            self.error(&item.generics, "enums with generics are not part of the kernel language");
            return None;
        }
        let mut variants: Vec<(String, u32)> = Vec::new();
        let mut next = Some(0u32);
        for variant in &item.variants {
            if self.is_conditional(&variant.attrs) {
                return None;
            }
            if !matches!(variant.fields, syn::Fields::Unit) {
                self.error(variant, "a #[device] enum has variants without fields: on the device it is a u32");
                return None;
            }
            let value = match &variant.discriminant {
                None => next,
                Some((_, expression)) => match expression {
                    syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) => value.base10_parse::<u32>().ok(),
                    _ => None,
                },
            };
            let Some(value) = value else {
                self.error(variant, "the value of a variant is a u32 literal");
                return None;
            };
            next = value.checked_add(1);
            variants.push((variant.ident.to_string(), value));
        }
        if variants.is_empty() {
            self.error(item, "a #[device] enum has at least one variant");
            return None;
        }
        let taken: Vec<String> = self.module.enums.iter().map(|(_, e)| e.name.clone()).collect();
        let handle = self
            .module
            .enums
            .add(Enum { name: unique(&item.ident.to_string(), taken.iter().map(String::as_str)), variants });
        self.enums.insert(bundle.hash.clone(), Some(handle));
        Some(handle)
    }
}

/// What a field holds in place of a type that it cannot have.
fn instead_of_field(ty: &Ty) -> &'static str {
    match ty {
        Ty::Scalar(Scalar::Bool) => ": keep a bool as a u32",
        Ty::Scalar(Scalar::Index) => ": a usize has another size on the host, keep it as a u32",
        Ty::Scalar(Scalar::U8) => ": pack four u8 in a u32, with `pack4xu8` and `unpack4xu8`",
        Ty::Scalar(Scalar::I8) => ": pack four i8 in a u32, with `pack4xi8` and `unpack4xi8`",
        Ty::Scalar(Scalar::F16) => ": pack two f16 in a u32, with `pack2x16float` and `unpack2x16float`",
        Ty::Scalar(Scalar::BF16) => ": keep a bf16 as an f32, or two in a u32",
        Ty::Scalar(Scalar::U16 | Scalar::I16) => ": keep it as a u32 or an i32, or two in a u32",
        _ => "",
    }
}

/// The scalar type of that name.
pub(super) fn scalar(name: &str) -> Option<Scalar> {
    Scalar::from_rust_name(name)
}

/// The scalar types that values have, for people.
pub(super) const SCALARS: &str = "bool, i8 to i64, u8 to u64, usize, f16, bf16, f32 and f64";

/// The lanes of the vector type of that name.
pub(super) fn lanes(name: &str) -> Option<u8> {
    Some(match name {
        "Vec2" => 2,
        "Vec3" => 3,
        "Vec4" => 4,
        _ => return None,
    })
}

/// The lines of an item's documentation.
pub(super) fn doc(attributes: &[syn::Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let syn::Meta::NameValue(meta) = &attribute.meta
            && meta.path.is_ident("doc")
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &meta.value
        {
            lines.push(text.value().trim().to_owned());
        }
    }
    lines.join("\n")
}

/// Reports attributes that would be without effect.
pub(super) fn check_attributes(session: &mut Session, attributes: &[syn::Attribute]) {
    for attribute in attributes {
        let known = ["doc", "allow", "expect", "warn", "deny", "inline", "must_use", "rustfmt", "clippy", "cold"];
        let first = attribute.path().segments.first().map(|segment| segment.ident.to_string());
        let message = match first.as_deref() {
            Some(first) if known.contains(&first) => continue,
            Some("cfg" | "cfg_attr") => {
                "a `cfg` is not evaluated inside of a kernel: put it on a #[device] const, and let an `if` ask for that; one on a whole item stands before #[kernel] or #[device]"
            }
            _ => "this attribute means nothing in a kernel: remove it",
        };
        session.error(attribute, message);
    }
}

/// Reports attributes of an item that are without effect there; the item may carry a note of its precision.
pub(super) fn check_device_attributes(session: &mut Session, attributes: &[syn::Attribute]) {
    let written: Vec<syn::Attribute> =
        attributes.iter().filter(|attribute| !super::precision::is_mark(attribute)).cloned().collect();
    check_attributes(session, &written);
}

/// Reports attributes inside of a body that would be without effect; `#[cfg]` is one, since macros see a body before rustc looks at it.
pub(super) fn check_attributes_within(session: &mut Session, block: &syn::Block) {
    struct Attributes(Vec<syn::Attribute>);
    impl<'ast> syn::visit::Visit<'ast> for Attributes {
        fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
            self.0.push(attribute.clone());
        }
    }
    let mut attributes = Attributes(Vec::new());
    syn::visit::Visit::visit_block(&mut attributes, block);
    check_attributes(session, &attributes.0);
}

/// Reports items within a body, whose names mean nothing more from then on.
pub(super) fn check_items_within(session: &mut Session, block: &syn::Block) {
    struct Items(Vec<syn::Item>);
    impl<'ast> syn::visit::Visit<'ast> for Items {
        fn visit_item(&mut self, item: &'ast syn::Item) {
            self.0.push(item.clone());
        }
    }
    let mut items = Items(Vec::new());
    syn::visit::Visit::visit_block(&mut items, block);
    for item in &items.0 {
        session.inner.extend(named::declared(item).iter().map(ToString::to_string));
        session.error(item, inner_item(item));
    }
}

/// Why an item within a body is refused.
pub(super) fn inner_item(item: &syn::Item) -> String {
    let (what, instead) = match item {
        syn::Item::Use(_) => return "`use` stands outside of the kernel".to_owned(),
        syn::Item::Const(_) => ("a constant", "put it outside, with #[device] on it"),
        syn::Item::Static(_) => ("a `static`", "write a constant outside, with #[device] on it"),
        syn::Item::Fn(_) => ("a function", "put it outside, with #[device] on it"),
        syn::Item::Struct(_) | syn::Item::Enum(_) => ("a type", "put it outside, with #[device] on it"),
        _ => ("an item", "put it outside"),
    };
    format!("{what} inside of a body is not part of the kernel language: {instead}")
}

/// Whether memory can hold values of the type as elements of a buffer.
pub(super) fn is_element(ty: &Ty) -> bool {
    match ty {
        Ty::Error | Ty::Struct(_) => true,
        Ty::Scalar(scalar) => !matches!(scalar, Scalar::Bool | Scalar::Index),
        Ty::Vector(_, inner) => is_element(inner),
        _ => false,
    }
}
