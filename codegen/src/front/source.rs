//! Kernels and `#[device]` items as plain text: for tests, and for library functions that are written in the language.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::quote;

use super::bundle::{Bundle, Names, path_name};
use super::depth::check_depth;
use super::ends::Placed;
use super::errors::Errors;
use super::named::{items_named, kernel_items_named};
use super::precision::mark_precision;
use super::session::{FunctionKey, Session};
use super::{Input, ItemInput, Output};
use crate::ir::{self, Function, Handle, Module};

/// What a file holds.
struct File {
    bundles: Vec<Bundle>,
    kernels: Vec<(TokenStream, syn::ItemFn)>,
}

impl File {
    /// Names are resolved within the file; an item's hash is its name, of which there is one.
    fn read(source: &str) -> Result<Self, Errors> {
        let tokens: TokenStream = source.parse().map_err(syn::Error::from)?;
        check_depth(&tokens)?;
        let file: syn::File = syn::parse2(tokens)?;
        let mut errors = Errors::default();
        let (mut devices, mut kernels) = (HashMap::new(), Vec::new());
        let mut order = Vec::new();
        for mut item in file.items {
            if let syn::Item::Use(_) = item {
                continue;
            }
            let Some(attributes) = attributes(&mut item) else {
                errors
                    .add(item.ends(), "a file of kernels holds functions, constants, structs, enums and `impl` blocks");
                continue;
            };
            let Some(position) = attributes
                .iter()
                .position(|attribute| attribute.path().is_ident("kernel") || attribute.path().is_ident("device"))
            else {
                continue;
            };
            let attribute = attributes.remove(position);
            match (attribute.path().is_ident("kernel"), item) {
                (true, syn::Item::Fn(function)) => {
                    let inside = match attribute.meta {
                        syn::Meta::List(list) => list.tokens,
                        _ => TokenStream::new(),
                    };
                    kernels.push((inside, function));
                }
                (true, other) => errors.add(other.ends(), "#[kernel] stands on a function"),
                (false, mut item) => {
                    if let syn::Meta::List(list) = &attribute.meta {
                        mark_precision(&mut item, &list.tokens);
                    }
                    // Blocks have no name, and nobody names them.
                    let name = super::Named::own_name(&item)
                        .map_or_else(|| format!("impl {}", order.len()), ToString::to_string);
                    order.push(name.clone());
                    devices.insert(name, item);
                }
            }
        }
        if !errors.0.is_empty() {
            return Err(errors);
        }
        let bundles = order
            .iter()
            .filter_map(|name| {
                let item = devices.get(name)?;
                Some(Bundle {
                    hash: name.clone(),
                    item: item.clone(),
                    names: names(&items_named(item), &devices),
                    failed: false,
                })
            })
            .collect();
        Ok(Self { bundles, kernels })
    }
}

fn names(named: &[syn::Path], devices: &HashMap<String, syn::Item>) -> Names {
    named.iter().map(path_name).filter(|name| devices.contains_key(name)).map(|name| (name.clone(), name)).collect()
}

fn attributes(item: &mut syn::Item) -> Option<&mut Vec<syn::Attribute>> {
    match item {
        syn::Item::Fn(item) => Some(&mut item.attrs),
        syn::Item::Const(item) => Some(&mut item.attrs),
        syn::Item::Struct(item) => Some(&mut item.attrs),
        syn::Item::Enum(item) => Some(&mut item.attrs),
        syn::Item::Impl(item) => Some(&mut item.attrs),
        _ => None,
    }
}

/// Every kernel of a file of `#[kernel]` and `#[device]` items, in order. Names mean items of the same file; `use` lines are passed over.
///
/// # Errors
/// Every mistake in the items, `#[device]` items that no kernel uses among them.
pub fn parse_source(source: &str) -> Result<Vec<Output>, Errors> {
    let file = File::read(source)?;
    let mut errors = Errors::default();
    for bundle in &file.bundles {
        let checked = super::check_item(ItemInput {
            item: bundle.item.clone(),
            bundles: file.bundles.clone(),
            names: bundle.names.clone(),
            support: quote!(::trefoil),
            file: String::new(),
        });
        if let Err(more) = checked {
            errors.extend(more);
        }
    }
    let devices = file.bundles.iter().map(|bundle| (bundle.hash.clone(), bundle.item.clone())).collect();
    let mut outputs = Vec::new();
    for (attribute, item) in file.kernels {
        let names = names(&kernel_items_named(&attribute, &item), &devices);
        let output = super::parse(Input {
            attribute,
            item,
            bundles: file.bundles.clone(),
            names,
            support: quote!(::trefoil),
            file: "source".to_owned(),
        });
        match output {
            Ok(output) => outputs.push(output),
            Err(more) => errors.extend(more),
        }
    }
    if errors.0.is_empty() { Ok(outputs) } else { Err(errors) }
}

/// Adds a function of a file of `#[device]` items to a module, with the functions that it calls: how lowering gets bodies of functions
/// that a target lacks. The function has no generics and takes values. A function that is there already is found again.
/// The functions are added behind the others; whoever makes others call them sees to their order.
///
/// # Errors
/// A mistake in the file, or no such function.
pub fn library(source: &str, name: &str, into: &mut Module) -> Result<Handle<Function>, Errors> {
    let file = File::read(source)?;
    let mut session = Session::new(std::mem::take(into), file.bundles, TokenStream::new());
    session.spans = None;
    let key = FunctionKey { hash: name.to_owned(), ..FunctionKey::default() };
    let made = session.function(&key, ir::Span::NONE);
    *into = std::mem::take(&mut session.module);
    match made {
        Some(handle) if session.errors.0.is_empty() => Ok(handle),
        _ => {
            if session.errors.0.is_empty() {
                let here = Span::call_site();
                session.errors.add((here, here), format!("there is no function `{name}` without generics and slices"));
            }
            Err(session.errors)
        }
    }
}
