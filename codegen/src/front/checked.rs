//! The author's text with the inferred types written out, for rustc to check: two type checkers that must agree.
//!
//! Types are found again by the address of the syntax that they belong to: the text is changed in place, after it was understood and
//! while it has not moved.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};

use super::functions::Texts;
use super::infer::{Length, Table, Ty};
use super::scope::Ascriptions;
use super::session::Session;
use super::tree::Local;
use crate::ir::{Scalar, Size};

/// The types as tokens, where they can be named at any place: structs and enums may have other names there.
pub(super) fn texts(session: &Session, table: &Table, locals: &[Local], ascriptions: Ascriptions) -> Texts {
    let mut texts = Texts::new();
    let mut add = |address: usize, ty: &Ty| {
        if let Some(tokens) = table.full(ty).and_then(|ty| tokens(session, &ty)) {
            texts.insert(address, tokens);
        }
    };
    for (address, ty) in &ascriptions.literals {
        add(*address, ty);
    }
    for (address, local) in &ascriptions.lets {
        if let Some(local) = locals.get(*local) {
            add(*address, &local.ty);
        }
    }
    for (address, parts) in &ascriptions.tuples {
        let part = |part: &Option<usize>| {
            let local = part.and_then(|local| locals.get(local))?;
            tokens(session, &table.full(&local.ty)?)
        };
        // What has no name here rustc finds by itself.
        let parts = parts.iter().map(|local| part(local).unwrap_or_else(|| quote!(_)));
        texts.insert(*address, quote!((#(#parts),*)));
    }
    texts
}

fn tokens(session: &Session, ty: &Ty) -> Option<TokenStream> {
    let support = &session.support;
    let generic = |index: u32| {
        let generic = session.module.generics.get(index as usize)?;
        Some(Ident::new(&generic.name, Span::call_site()).to_token_stream())
    };
    let size = |size: &Size| match size {
        Size::Literal(value) => Some(proc_macro2::Literal::usize_unsuffixed(*value as usize).to_token_stream()),
        Size::Generic(index) => generic(*index),
        Size::Param(_) | Size::Binary(..) => None,
    };
    Some(match ty {
        Ty::Scalar(Scalar::Generic(index)) => generic(*index)?,
        Ty::Scalar(scalar @ (Scalar::F16 | Scalar::BF16)) => {
            let name = Ident::new(scalar.rust_name(), Span::call_site());
            quote!(#support::prelude::#name)
        }
        Ty::Scalar(scalar) => Ident::new(scalar.rust_name(), Span::call_site()).to_token_stream(),
        Ty::Vector(lanes, scalar) => {
            let name = Ident::new(&format!("Vec{lanes}"), Span::call_site());
            let scalar = tokens(session, scalar)?;
            quote!(#support::prelude::#name<#scalar>)
        }
        Ty::Array(element, Length::Known(length)) => {
            let element = tokens(session, element)?;
            let length = size(length)?;
            quote!([#element; #length])
        }
        Ty::Matrix(role, scalar, sides) => {
            let [Length::Known(rows), Length::Known(columns)] = &**sides else { return None };
            let name = Ident::new(role.name(), Span::call_site());
            let (scalar, rows, columns) = (tokens(session, scalar)?, size(rows)?, size(columns)?);
            quote!(#support::prelude::#name<#scalar, #rows, #columns>)
        }
        _ => return None,
    })
}

/// Writes the types into the text.
pub(super) struct Ascribe<'t> {
    pub texts: &'t Texts,
}

impl VisitMut for Ascribe<'_> {
    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        visit_mut::visit_local_mut(self, local);
        let address = std::ptr::from_ref(&local.pat) as usize;
        let Some(ty) = self.texts.get(&address) else {
            return;
        };
        let span = match &local.pat {
            syn::Pat::Ident(name) => name.ident.span(),
            syn::Pat::Tuple(parts) => parts.paren_token.span.join(),
            _ => return,
        };
        let Ok(ty) = syn::parse2::<syn::Type>(respan(ty.clone(), span)) else {
            return;
        };
        local.pat = syn::Pat::Type(syn::PatType {
            attrs: Vec::new(),
            pat: Box::new(local.pat.clone()),
            colon_token: syn::Token![:](span),
            ty: Box::new(ty),
        });
    }

    fn visit_lit_mut(&mut self, literal: &mut syn::Lit) {
        let address = std::ptr::from_ref::<syn::Lit>(literal) as usize;
        let Some(ty) = self.texts.get(&address) else {
            return;
        };
        let ty = ty.to_string();
        let span = literal.span();
        match literal {
            syn::Lit::Int(value) if value.suffix().is_empty() && is_plain(&ty) => {
                let text = value.to_string();
                *literal = syn::Lit::Int(syn::LitInt::new(&format!("{text}{ty}"), span));
            }
            syn::Lit::Float(value) if value.suffix().is_empty() && matches!(ty.as_str(), "f32" | "f64") => {
                let digits = value.base10_digits().trim_end_matches('.').to_owned();
                *literal = syn::Lit::Float(syn::LitFloat::new(&format!("{digits}{ty}"), span));
            }
            _ => {}
        }
    }
}

fn is_plain(ty: &str) -> bool {
    Scalar::from_rust_name(ty).is_some_and(Scalar::is_integer)
}

/// The tokens at a place of the author's, so that rustc shows a disagreement there.
fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    let span = Span::call_site().located_at(span);
    tokens
        .into_iter()
        .map(|mut token| {
            if let proc_macro2::TokenTree::Group(group) = &token {
                let mut inner = proc_macro2::Group::new(group.delimiter(), respan(group.stream(), span));
                inner.set_span(span);
                return proc_macro2::TokenTree::Group(inner);
            }
            token.set_span(span);
            token
        })
        .collect()
}

/// The function without its attributes and visibility, the types written in.
pub(super) fn function(item: &mut syn::ItemFn, texts: &Texts) -> TokenStream {
    Ascribe { texts }.visit_block_mut(&mut item.block);
    let syn::ItemFn { sig, block, .. } = item;
    quote!(#sig #block)
}
