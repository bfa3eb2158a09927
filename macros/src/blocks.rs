//! How a type and its `impl` blocks find each other.
//!
//! A block has no name, and what a kernel names is its type. So the type's attribute lists its blocks (`#[device(methods, operators(Add))]`), each block
//! exports its bundle under a name made from its type's (`Complex_methods`, `Complex_Add`), and the type's own bundle holds those of its blocks.
//! A block names its type in turn, which would be a circle: it means the type without blocks, which is exported as `Complex_fields`. For the same reason a
//! block knows no other block of its type, unless its attribute lists that: `#[device(uses(methods))]`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use trefoil_codegen::front::{owner_path, path_name};
use trefoil_codegen::ir::Precision;

/// One entry of an attribute: `methods`, `operators(Add, Mul<f32>)`, `uses(..)`.
struct Entry {
    name: Ident,
    list: Option<Punctuated<syn::Path, syn::Token![,]>>,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        if !input.peek(syn::token::Paren) {
            return Ok(Self { name, list: None });
        }
        let content;
        syn::parenthesized!(content in input);
        Ok(Self { name, list: Some(Punctuated::parse_terminated(&content)?) })
    }
}

const ADVICE: &str = "on a type write `#[device(methods)]`, `#[device(operators(Add, Mul))]` or both, for the `impl` blocks that kernels may use; on \
                      an `impl`, `#[device(uses(methods, Add))]` for other blocks of the type that it uses, and `strict` or `fast`";

/// The blocks that an attribute lists, as paths to their macros from where the type `owner` is known.
pub fn listed(attribute: &TokenStream, item: &syn::Item) -> syn::Result<Vec<syn::Path>> {
    let entries = Punctuated::<Entry, syn::Token![,]>::parse_terminated
        .parse2(attribute.clone())
        .map_err(|error| syn::Error::new(error.span(), format!("{error}: {ADVICE}")))?;
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let owner = match item {
        syn::Item::Struct(item) => syn::Path::from(item.ident.clone()),
        syn::Item::Enum(item) => syn::Path::from(item.ident.clone()),
        syn::Item::Impl(item) => match owner_path(&item.self_ty) {
            Some(owner) => owner.clone(),
            None => return Ok(Vec::new()),
        },
        syn::Item::Fn(_) => {
            return match entries.iter().collect::<Vec<_>>().as_slice() {
                [Entry { name, list: None }] if is_precision(name) => Ok(Vec::new()),
                _ => Err(syn::Error::new_spanned(
                    attribute,
                    "`#[device]` of a function takes `strict` or `fast`, or nothing",
                )),
            };
        }
        _ => return Err(syn::Error::new_spanned(attribute, "`#[device]` takes no arguments")),
    };
    let of_block = matches!(item, syn::Item::Impl(_));
    let mut paths = Vec::new();
    let mut precise = false;
    for Entry { name, list } in &entries {
        if of_block && list.is_none() && is_precision(name) && !precise {
            precise = true;
            continue;
        }
        match (name.to_string().as_str(), list, of_block) {
            ("methods", None, false) => paths.push(renamed(&owner, "methods")),
            ("operators", Some(list), false) | ("uses", Some(list), true) => {
                for path in list {
                    paths.push(renamed(&owner, &suffix(path)?));
                }
            }
            _ => return Err(syn::Error::new(name.span(), format!("`{name}` is unknown here: {ADVICE}"))),
        }
    }
    Ok(paths)
}

/// Whether an entry is `strict` or `fast`.
fn is_precision(name: &Ident) -> bool {
    Precision::from_name(&name.to_string()).is_some()
}

/// The name under which a type is exported without its blocks.
pub fn fields(name: &Ident) -> Ident {
    format_ident!("{name}_fields")
}

/// The name under which a block is exported.
pub fn of_block(block: &syn::ItemImpl) -> Option<Ident> {
    let suffix = match &block.trait_ {
        Some((path, _)) => suffix(path).ok()?,
        None => "methods".to_owned(),
    };
    renamed(owner_path(&block.self_ty)?, &suffix).segments.last().map(|last| last.ident.clone())
}

/// The paths of macros for the paths that an item names: for a block's own type, the type without blocks.
pub fn macros(item: &syn::Item, paths: &[syn::Path]) -> Vec<syn::Path> {
    let owner = match item {
        syn::Item::Impl(block) => owner_path(&block.self_ty).map(path_name),
        _ => None,
    };
    let of = |path: &syn::Path| {
        if owner.as_ref() == Some(&path_name(path)) { renamed(path, "fields") } else { path.clone() }
    };
    paths.iter().map(of).collect()
}

fn renamed(path: &syn::Path, suffix: &str) -> syn::Path {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = Ident::new(&format!("{}_{suffix}", last.ident.unraw()), last.ident.span());
        last.arguments = syn::PathArguments::None;
    }
    path
}

/// `Mul<f32>` as `Mul_f32`: a type may have an operator for several types. An error at what no name may hold, such as a character.
fn suffix(path: &syn::Path) -> syn::Result<String> {
    let mut words = Vec::new();
    if let Some(last) = path.segments.last() {
        spell(last.to_token_stream(), &mut words)?;
    }
    Ok(words.join("_"))
}

/// The words and numbers among tokens.
fn spell(tokens: TokenStream, words: &mut Vec<String>) -> syn::Result<()> {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => words.push(word.unraw().to_string()),
            TokenTree::Group(group) => spell(group.stream(), words)?,
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    return Err(syn::Error::new(literal.span(), format!("`{text}` is no type: {ADVICE}")));
                }
                words.push(text);
            }
            TokenTree::Punct(_) => {}
        }
    }
    Ok(())
}
