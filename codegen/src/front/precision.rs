//! `strict` and `fast` on `#[device]` and `#[kernel]`.
//!
//! What `#[device]` says travels with the item, as an attribute of its own that is taken off what rustc sees.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse_quote;

use super::session::Session;
use crate::ir::Precision;

/// The attribute by which an item's precision travels.
const MARK: &str = "__precision";

fn attributes(item: &mut syn::Item) -> Option<&mut Vec<syn::Attribute>> {
    match item {
        syn::Item::Fn(item) => Some(&mut item.attrs),
        syn::Item::Impl(item) => Some(&mut item.attrs),
        _ => None,
    }
}

/// Notes on a function or an `impl` block what the content of its `#[device(..)]` says of precision.
pub fn mark_precision(item: &mut syn::Item, attribute: &TokenStream) {
    let is_precision = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if Precision::from_name(&word.to_string()).is_some());
    let word = attribute.clone().into_iter().find(is_precision);
    if let (Some(word), Some(attributes)) = (word, attributes(item)) {
        let mark = syn::Ident::new(MARK, word.span());
        attributes.push(parse_quote!(#[#mark(#word)]));
    }
}

/// Takes such a note off.
pub(super) fn unmark(item: &mut syn::Item) {
    if let Some(attributes) = attributes(item) {
        attributes.retain(|attribute| !is_mark(attribute));
    }
}

/// Whether an attribute is such a note.
pub(super) fn is_mark(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident(MARK)
}

/// What the attributes of an item say.
fn noted(attributes: &[syn::Attribute]) -> Option<Precision> {
    let mark = attributes.iter().find(|attribute| is_mark(attribute))?;
    Precision::from_name(&mark.parse_args::<syn::Ident>().ok()?.to_string())
}

impl Session {
    /// The precision of a function that is called from the one being made.
    pub(super) fn precision_of(&self, hash: &str) -> Precision {
        match self.bundles.get(hash).map(|bundle| &bundle.item) {
            Some(syn::Item::Fn(item)) => noted(&item.attrs).unwrap_or(self.precision),
            _ => self.precision,
        }
    }

    /// From here on functions are made as these attributes say, if they say anything.
    pub(super) fn enter_precision(&mut self, attributes: &[syn::Attribute]) {
        self.precision = noted(attributes).unwrap_or_default();
    }
}
