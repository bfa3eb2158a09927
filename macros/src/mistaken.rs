//! What stands for a `#[device]` item with a mistake: Rust in which the mistake is not found again, and of which whoever uses the item shows no second one.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use trefoil_codegen::front::Errors;

use crate::device::{element_of_plain_data, missing_derives};

/// The function with a body that fits any signature.
pub fn function(mut item: syn::ItemFn) -> syn::ItemFn {
    item.attrs.push(syn::parse_quote!(#[allow(unused_variables, reason = "a function with a mistake has no body")]));
    item.block = syn::parse_quote!({ loop {} });
    item
}

/// A struct with a mistake, which was told: it is an element and a parameter for whoever uses it, so that no second one is shown.
pub fn structure(item: &syn::ItemStruct, support: &TokenStream) -> TokenStream {
    if !item.generics.params.is_empty() || !item.fields.iter().all(is_copied) {
        return item.to_token_stream();
    }
    let derives = missing_derives(&item.attrs, &["Clone", "Copy"]);
    let (name, expansion) = (&item.ident, quote!(#support::expansion));
    let (plain, param) = (element_of_plain_data(name, &expansion), param(name, &expansion));
    quote! {
        #derives
        #item

        const _: () = {
            #plain
            #param
            impl #expansion::Layout for #name {
                const LAYOUT: u64 = 0;
            }
        };
    }
}

/// An enum with a mistake, which was told: it is copied and a parameter for whoever uses it, so that no second one is shown.
pub fn enumeration(item: &syn::ItemEnum, support: &TokenStream) -> TokenStream {
    let mut fields = item.variants.iter().flat_map(|variant| &variant.fields).peekable();
    let plain = fields.peek().is_none();
    if !item.generics.params.is_empty() || !fields.all(is_copied) {
        return item.to_token_stream();
    }
    // Fields may be nothing that is compared.
    let wanted: &[&str] = if plain { &["Clone", "Copy", "PartialEq", "Eq"] } else { &["Clone", "Copy"] };
    let derives = missing_derives(&item.attrs, wanted);
    let param = param(&item.ident, &quote!(#support::expansion));
    quote!(#derives #item #param)
}

/// Whether a field of a type with a mistake is taken to be copied: what may own memory is not, and what is generic is of no one size.
fn is_copied(field: &syn::Field) -> bool {
    match &field.ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| !["String", "Vec", "Box"].iter().any(|name| last.ident == name)),
        syn::Type::Array(_) => true,
        _ => false,
    }
}

/// What makes a type with a mistake a parameter, which is never passed.
fn param(name: &syn::Ident, expansion: &TokenStream) -> TokenStream {
    quote! {
        impl #expansion::Param for #name {
            fn words(
                self,
                _: &mut [#expansion::Leaf],
            ) -> ::core::result::Result<(), ::std::string::String> {
                loop {}
            }
        }
    }
}

/// A constant with a mistake, whose message stands in the place of its value: rustc asks nothing more of that, nor of whoever uses it. It is taken out of `found`.
pub fn constant(item: &syn::Item, found: &mut Errors) -> Option<TokenStream> {
    let syn::Item::Const(item) = item else {
        return None;
    };
    let message = Errors(vec![found.0.pop()?]).to_compile_error();
    let value = Box::new(syn::Expr::Verbatim(message));
    Some(syn::ItemConst { expr: value, ..item.clone() }.to_token_stream())
}

/// The name by which kernels may look for an item that can be no `#[device]` item, and its visibility.
pub fn name(item: &syn::Item) -> Option<(&syn::Visibility, &syn::Ident)> {
    match item {
        syn::Item::Static(item) => Some((&item.vis, &item.ident)),
        syn::Item::Trait(item) => Some((&item.vis, &item.ident)),
        syn::Item::Type(item) => Some((&item.vis, &item.ident)),
        syn::Item::Union(item) => Some((&item.vis, &item.ident)),
        _ => None,
    }
}
