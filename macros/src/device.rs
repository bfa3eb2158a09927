//! `#[device]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use trefoil_codegen::front::{self, Bundle, ItemInput};

use crate::chain::{self, Header, Resolved};
use crate::support;

/// What the attribute expands to: the chain that finds what the item names.
pub fn begin(attribute: TokenStream, tokens: TokenStream) -> TokenStream {
    let item: syn::Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #tokens);
        }
    };
    if visibility(&item).is_none() {
        let error = syn::Error::new(
            kind_span(&item),
            "`#[device]` is for functions, constants, structs and enums without fields",
        )
        .to_compile_error();
        return quote!(#error #item);
    }
    let support = support::path();
    let paths = front::items_named(&item);
    let header = Header { attribute, item };
    chain::call(&paths, &quote!(#support::expansion::device_finish), &header.to_token_stream())
}

/// What the end of the chain expands to: the item and its bundle.
pub fn finish(input: TokenStream) -> TokenStream {
    let resolved: Resolved<Header<syn::Item>> = match syn::parse2(input) {
        Ok(resolved) => resolved,
        Err(error) => return error.to_compile_error(),
    };
    let Header { attribute, item } = &resolved.header;
    let Some(visibility) = visibility(item) else {
        return item.to_token_stream();
    };
    let support = support::path();
    let (names, used) = resolved.union(&front::items_named(item));

    let mut errors = TokenStream::new();
    if !attribute.is_empty() {
        errors.extend(syn::Error::new(attribute.span(), "`#[device]` takes no arguments").to_compile_error());
    }
    let checked = front::check_item(ItemInput {
        item: item.clone(),
        bundles: used.0.clone(),
        names: names.clone(),
        support: support.clone(),
        file: crate::kernel::file(),
    });
    let checked = match checked {
        Ok(checked) if errors.is_empty() => Some(checked),
        Ok(_) => None,
        Err(found) => {
            let explained = !found.0.is_empty() || !errors.is_empty() || used.0.iter().any(|bundle| bundle.failed);
            let name = Bundle::new(item.clone(), names.clone(), true).ident().cloned();
            errors.extend(found.to_compile_error());
            errors.extend(name.filter(|_| !explained).map(|name| crate::kernel::unexplained(&name)));
            None
        }
    };
    let failed = checked.is_none();
    let rust = checked.unwrap_or_else(|| item.to_token_stream());
    let rust = match syn::parse2::<syn::Item>(rust) {
        Ok(rust) => device_item(rust, failed, &support),
        Err(error) => error.to_compile_error(),
    };
    let bundle = Bundle::new(item.clone(), names, failed);
    let export = chain::export(&bundle, &used, visibility);
    quote!(#errors #rust #export)
}

/// The item as Rust has it, with what makes it an element or a parameter.
fn device_item(item: syn::Item, failed: bool, support: &TokenStream) -> TokenStream {
    match item {
        syn::Item::Struct(item) => struct_item(item, failed, support),
        syn::Item::Enum(item) => enum_item(item, failed, support),
        syn::Item::Fn(item) => {
            let mut mistaken = None;
            if failed {
                // The mistake is reported once, by this macro; rustc would find it again in its own words.
                mistaken = Some(without_body(&item));
            }
            let item = mistaken.unwrap_or(item);
            quote! {
                #[allow(unstable_name_collisions, reason = "`x.erf()` is this crate's, whatever Rust will have one day")]
                #[allow(clippy::needless_range_loop, reason = "kernels have ranges and no iterators")]
                #item
            }
        }
        item => item.to_token_stream(),
    }
}

/// The function with a body that fits any signature.
fn without_body(item: &syn::ItemFn) -> syn::ItemFn {
    let mut item = item.clone();
    item.attrs.push(syn::parse_quote!(#[allow(unused_variables, reason = "a function with a mistake has no body")]));
    item.block = syn::parse_quote!({ loop {} });
    item
}

/// Derives that the attribute adds: those of `wanted` that the author does not write.
fn missing_derives(attributes: &[syn::Attribute], wanted: &[&str]) -> TokenStream {
    let mut written = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        // A derive that does not parse is reported by rustc.
        let _ = attribute.parse_nested_meta(|meta| {
            written.extend(meta.path.segments.last().map(|segment| segment.ident.to_string()));
            Ok(())
        });
    }
    let missing =
        wanted.iter().filter(|name| !written.iter().any(|known| known == *name)).map(|name| format_ident!("{name}"));
    quote!(#[derive(#(::core::prelude::v1::#missing),*)])
}

/// The representation that the attribute adds, or why the author's does not fit.
fn representation(attributes: &[syn::Attribute], wanted: &str) -> Result<TokenStream, TokenStream> {
    let name = format_ident!("{wanted}");
    let Some(written) = attributes.iter().find(|attribute| attribute.path().is_ident("repr")) else {
        return Ok(quote!(#[repr(#name)]));
    };
    let fits = written.parse_args::<syn::Ident>().is_ok_and(|ident| ident == wanted);
    if fits {
        return Ok(TokenStream::new());
    }
    let message = format!("a `#[device]` type has the representation `{wanted}`; leave this attribute out");
    Err(syn::Error::new_spanned(written, message).to_compile_error())
}

fn struct_item(item: syn::ItemStruct, failed: bool, support: &TokenStream) -> TokenStream {
    if failed {
        return item.to_token_stream();
    }
    let repr = match representation(&item.attrs, "C") {
        Ok(repr) => repr,
        Err(error) => return quote!(#error #item),
    };
    let derives = missing_derives(&item.attrs, &["Clone", "Copy"]);
    let name = &item.ident;
    let expansion = quote!(#support::expansion);
    let layouts: Vec<_> = item
        .fields
        .iter()
        .filter_map(|field| {
            let (ident, layout) = (field.ident.as_ref()?, layout_of(&field.ty, &expansion));
            Some(quote!((::core::mem::offset_of!(#name, #ident), #layout)))
        })
        .collect();
    let sizes = item.fields.iter().map(|field| {
        let ty = &field.ty;
        quote!(+ ::core::mem::size_of::<#ty>())
    });
    let padded = format!(
        "`{name}` has padding between or after its fields, which buffers must not have: order the fields from the largest alignment \
         to the smallest, or add fields"
    );
    let assertion = quote_spanned!(name.span()=>
        const _: () = ::core::assert!(::core::mem::size_of::<#name>() == 0 #(#sizes)*, #padded);
    );
    quote! {
        #repr
        #derives
        #item

        #assertion
        const _: () = {
            // SAFETY: every field is plain data (its layout, below, is known for plain data only), for which zeros are a value.
            unsafe impl #expansion::bytemuck::Zeroable for #name {}
            // SAFETY: every field is plain data, the representation is C's, and the assertion above finds padding.
            unsafe impl #expansion::bytemuck::Pod for #name {}
            impl #expansion::Lane for #name {
                type Pair = #expansion::Align1;
                type Quad = #expansion::Align1;
            }
            impl #expansion::Element for #name {}
            impl #expansion::Layout for #name {
                const LAYOUT: u64 = #expansion::fingerprint::of_struct(
                    ::core::mem::size_of::<#name>(),
                    ::core::mem::align_of::<#name>(),
                    &[#(#layouts),*],
                );
            }
        };
    }
}

/// The layout of a field, as a constant expression.
fn layout_of(ty: &syn::Type, expansion: &TokenStream) -> TokenStream {
    match ty {
        syn::Type::Array(array) => {
            let (element, length) = (layout_of(&array.elem, expansion), &array.len);
            quote!(#expansion::fingerprint::of_array(#element, #length))
        }
        ty => quote!(<#ty as #expansion::Layout>::LAYOUT),
    }
}

fn enum_item(item: syn::ItemEnum, failed: bool, support: &TokenStream) -> TokenStream {
    if failed {
        return item.to_token_stream();
    }
    let repr = match representation(&item.attrs, "u32") {
        Ok(repr) => repr,
        Err(error) => return quote!(#error #item),
    };
    let derives = missing_derives(&item.attrs, &["Clone", "Copy", "PartialEq", "Eq"]);
    let name = &item.ident;
    quote! {
        #repr
        #derives
        #item

        impl #support::expansion::Param for #name {
            fn words(
                self,
                words: &mut ::std::vec::Vec<u32>,
            ) -> ::core::result::Result<(), ::std::string::String> {
                words.push(self as u32);
                ::core::result::Result::Ok(())
            }
        }
    }
}

/// The visibility of an item that can be a `#[device]` item.
fn visibility(item: &syn::Item) -> Option<&syn::Visibility> {
    match item {
        syn::Item::Fn(item) => Some(&item.vis),
        syn::Item::Const(item) => Some(&item.vis),
        syn::Item::Struct(item) => Some(&item.vis),
        syn::Item::Enum(item) => Some(&item.vis),
        _ => None,
    }
}

/// The first token of an item after its attributes.
fn kind_span(item: &syn::Item) -> proc_macro2::Span {
    let mut tokens = item.to_token_stream().into_iter();
    let mut span = item.span();
    while let Some(token) = tokens.next() {
        span = token.span();
        if !matches!(&token, proc_macro2::TokenTree::Punct(punct) if punct.as_char() == '#') {
            break;
        }
        tokens.next();
    }
    span
}
