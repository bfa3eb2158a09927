//! `#[device]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use trefoil_codegen::front::{self, Bundle, Bundles, ItemInput, Names};

use crate::chain::{self, Header, Resolved};
use crate::{blocks, mistaken, support};

/// What the attribute expands to: the chain that finds what the item names.
pub fn begin(attribute: TokenStream, tokens: TokenStream) -> TokenStream {
    if let Err(error) = front::check_depth(&attribute).and_then(|()| front::check_depth(&tokens)) {
        return error.to_compile_error();
    }
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
            "`#[device]` is for functions, constants, structs, enums without fields, and their `impl` blocks",
        )
        .to_compile_error();
        let export = mistaken::name(&item).map(|(visibility, name)| {
            let bundle = Bundle::new(item.clone(), Names::new(), true);
            chain::export(&bundle, &Bundles::default(), visibility, std::slice::from_ref(name))
        });
        return quote!(#error #item #export);
    }
    let support = support::path();
    let mut paths = blocks::macros(&item, &front::items_named(&item));
    if let syn::Item::Impl(_) = item {
        // What is wrong in the list is told at the end of the chain.
        paths.extend(blocks::listed(&attribute, &item).unwrap_or_default());
    }
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
    let mut marked = item.clone();
    front::mark_precision(&mut marked, attribute);
    let item = &marked;
    let Some(visibility) = visibility(item) else {
        return item.to_token_stream();
    };
    let support = support::path();
    let mut errors = TokenStream::new();
    let listed = blocks::listed(attribute, item).unwrap_or_else(|error| {
        errors.extend(error.to_compile_error());
        Vec::new()
    });
    let of_block = matches!(item, syn::Item::Impl(_));
    let mut named = front::items_named(item);
    if of_block {
        named.extend(listed.iter().cloned());
    }
    let names = resolved.names(&named);
    let used = &resolved.bundles;

    let checked = front::check_item(ItemInput {
        item: item.clone(),
        bundles: used.0.clone(),
        names: names.clone(),
        support: support.clone(),
        file: crate::kernel::file(),
    });
    let mut refused = None;
    let checked = match checked {
        Ok(checked) if errors.is_empty() => Some(checked),
        Ok(_) => None,
        Err(mut found) => {
            let explained = !found.0.is_empty() || !errors.is_empty() || used.0.iter().any(|bundle| bundle.failed);
            let name = names_of(item).into_iter().next();
            refused = mistaken::constant(&resolved.header.item, &mut found);
            errors.extend(found.to_compile_error());
            errors.extend(name.filter(|_| !explained).map(|name| crate::kernel::unexplained(&name)));
            None
        }
    };
    let failed = checked.is_none();
    let rust = checked.or(refused).unwrap_or_else(|| resolved.header.item.to_token_stream());
    let rust = match syn::parse2::<syn::Item>(rust) {
        Ok(rust) => device_item(rust, failed, plain_data(item, &names, used), &support),
        Err(error) => error.to_compile_error(),
    };
    let bundle = Bundle::new(item.clone(), names, failed);
    // Under the name of a macro of Rust's library, which was refused, rustc could not tell the two apart.
    let own: Vec<_> = names_of(item).into_iter().filter(|name| !front::is_macro(&name.to_string())).collect();
    let export = match (own.as_slice(), listed.is_empty() || of_block) {
        // The blocks are found by a chain of their own, and the type is exported with them at its end.
        ([name, fields], false) => {
            let export = chain::export(&bundle, used, visibility, std::slice::from_ref(fields));
            let header = TypeHeader { visibility: visibility.clone(), name: name.clone() };
            let mut closed = Bundles::default();
            closed.add(bundle);
            used.0.iter().for_each(|bundle| closed.add(bundle.clone()));
            let header = Header { attribute: closed.to_token_stream(), item: header };
            let find =
                chain::call(&listed, &quote!(#support::expansion::device_type_finish), &header.to_token_stream());
            quote!(#export #find)
        }
        _ => chain::export(&bundle, used, visibility, &own),
    };
    quote!(#errors #rust #export)
}

/// What the end of the chain of a type's blocks expands to: the type's bundle with theirs.
pub fn finish_type(input: TokenStream) -> TokenStream {
    let resolved: Resolved<Header<TypeHeader>> = match syn::parse2(input) {
        Ok(resolved) => resolved,
        Err(error) => return error.to_compile_error(),
    };
    let Header { attribute, item: TypeHeader { visibility, name } } = &resolved.header;
    let own: Bundles = match syn::parse2(attribute.clone()) {
        Ok(own) => own,
        Err(error) => return error.to_compile_error(),
    };
    let Some((bundle, others)) = own.0.split_first() else {
        return TokenStream::new();
    };
    let mut used = Bundles::default();
    others.iter().chain(&resolved.bundles.0).for_each(|bundle| used.add(bundle.clone()));
    chain::export(bundle, &used, visibility, std::slice::from_ref(name))
}

/// A type that waits for its blocks.
struct TypeHeader {
    visibility: syn::Visibility,
    name: syn::Ident,
}

impl ToTokens for TypeHeader {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { visibility, name } = self;
        tokens.extend(quote!(#visibility #name));
    }
}

impl Parse for TypeHeader {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self { visibility: input.parse()?, name: input.parse()? })
    }
}

/// The names under which an item's bundle is exported.
fn names_of(item: &syn::Item) -> Vec<syn::Ident> {
    match item {
        syn::Item::Fn(item) => vec![item.sig.ident.clone()],
        syn::Item::Const(item) => vec![item.ident.clone()],
        syn::Item::Struct(item) => vec![item.ident.clone(), blocks::fields(&item.ident)],
        syn::Item::Enum(item) => vec![item.ident.clone(), blocks::fields(&item.ident)],
        syn::Item::Impl(block) => blocks::of_block(block).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The item as Rust has it, with what makes it an element or a parameter.
fn device_item(item: syn::Item, failed: bool, plain: bool, support: &TokenStream) -> TokenStream {
    match item {
        syn::Item::Struct(item) if failed => mistaken::structure(&item, support),
        syn::Item::Struct(item) if plain => struct_item(item, support),
        // Not for buffers: the host could read an enum there that is none of its variants.
        syn::Item::Struct(item) => value_item(item),
        syn::Item::Enum(item) if failed => mistaken::enumeration(&item, support),
        syn::Item::Enum(item) => enum_item(item, support),
        syn::Item::Fn(item) => {
            // The mistake is reported once, by this macro; rustc would find it again in its own words.
            let item = if failed { mistaken::function(item) } else { item };
            quote! {
                #[allow(unstable_name_collisions, reason = "`x.erf()` is this crate's, whatever Rust will have one day")]
                #[allow(clippy::needless_range_loop, reason = "kernels have ranges and no iterators")]
                #[allow(
                    clippy::unusual_byte_groupings,
                    clippy::inconsistent_digit_grouping,
                    reason = "literals have their types written in, which clippy takes for digits"
                )]
                #item
            }
        }
        syn::Item::Impl(mut item) => {
            if failed {
                for part in &mut item.items {
                    if let syn::ImplItem::Fn(function) = part {
                        function.block = syn::parse_quote!({ loop {} });
                    }
                }
                item.attrs.push(
                    syn::parse_quote!(#[allow(unused_variables, reason = "a function with a mistake has no body")]),
                );
            }
            quote! {
                #[allow(unstable_name_collisions, reason = "`x.erf()` is this crate's, whatever Rust will have one day")]
                #[allow(clippy::needless_range_loop, reason = "kernels have ranges and no iterators")]
                #[allow(
                    clippy::unusual_byte_groupings,
                    clippy::inconsistent_digit_grouping,
                    reason = "literals have their types written in, which clippy takes for digits"
                )]
                #item
            }
        }
        syn::Item::Const(item) => quote! {
            #[allow(
                clippy::unusual_byte_groupings,
                clippy::inconsistent_digit_grouping,
                reason = "literals have their types written in, which clippy takes for digits"
            )]
            #item
        },
        item => item.to_token_stream(),
    }
}

/// Whether a struct holds no enum, also not in structs that it holds.
fn plain_data(item: &syn::Item, names: &Names, used: &Bundles) -> bool {
    let syn::Item::Struct(item) = item else {
        return true;
    };
    fn named(ty: &syn::Type) -> Option<&syn::Path> {
        match ty {
            syn::Type::Array(array) => named(&array.elem),
            syn::Type::Group(group) => named(&group.elem),
            syn::Type::Paren(paren) => named(&paren.elem),
            syn::Type::Path(path) => Some(&path.path),
            _ => None,
        }
    }
    let held = item.fields.iter().filter_map(|field| names.get(&front::path_name(named(&field.ty)?)));
    let mut held = held.filter_map(|hash| used.0.iter().find(|bundle| bundle.hash == *hash));
    held.all(|bundle| !matches!(bundle.item, syn::Item::Enum(_)) && plain_data(&bundle.item, &bundle.names, used))
}

/// A struct that only kernels' values are of.
fn value_item(mut item: syn::ItemStruct) -> TokenStream {
    let (repr, error) = representation(&mut item.attrs, "C");
    let derives = missing_derives(&item.attrs, &["Clone", "Copy"]);
    quote!(#error #repr #derives #item)
}

/// Derives that the attribute adds: those of `wanted` that the author does not write.
pub fn missing_derives(attributes: &[syn::Attribute], wanted: &[&str]) -> TokenStream {
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

/// The representation that the attribute adds, and why the author's does not fit, which is taken off then: without it the type is what the message asks for, and
/// whoever uses it has no second mistake.
fn representation(attributes: &mut Vec<syn::Attribute>, wanted: &str) -> (TokenStream, Option<TokenStream>) {
    let name = format_ident!("{wanted}");
    let added = quote!(#[repr(#name)]);
    let Some(written) = attributes.iter().find(|attribute| attribute.path().is_ident("repr")) else {
        return (added, None);
    };
    let fits = written.parse_args::<syn::Ident>().is_ok_and(|ident| ident == wanted);
    if fits {
        return (TokenStream::new(), None);
    }
    let message = format!("a `#[device]` type has the representation `{wanted}`; leave this attribute out");
    let error = syn::Error::new_spanned(written, message).to_compile_error();
    attributes.retain(|attribute| !attribute.path().is_ident("repr"));
    (added, Some(error))
}

fn struct_item(mut item: syn::ItemStruct, support: &TokenStream) -> TokenStream {
    let (repr, error) = representation(&mut item.attrs, "C");
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
    let types: Vec<_> = item.fields.iter().map(|field| &field.ty).collect();
    let fields: Vec<_> = item.fields.iter().filter_map(|field| field.ident.as_ref()).collect();
    let (assertions, plain) = (without_padding(&item), element_of_plain_data(name, &expansion));
    quote! {
        #error
        #repr
        #derives
        #item

        #assertions
        const _: () = {
            #plain
            impl #expansion::Param for #name {
                const LEAVES: usize = 0 #(+ <#types as #expansion::Param>::LEAVES)*;

                fn words(
                    self,
                    leaves: &mut [#expansion::Leaf],
                ) -> ::core::result::Result<(), ::std::string::String> {
                    #(
                        let (own, leaves) = #expansion::leaves_of::<#types>(leaves);
                        #expansion::Param::words(self.#fields, own)?;
                    )*
                    let _ = leaves;
                    ::core::result::Result::Ok(())
                }
            }
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

/// What makes a struct an element: of one whose fields are plain data and lie as C has them, without padding, or of a program that does not compile.
pub fn element_of_plain_data(name: &syn::Ident, expansion: &TokenStream) -> TokenStream {
    quote! {
        // SAFETY: every field is plain data (layouts are known for plain data only), for which zeros are a value.
        unsafe impl #expansion::bytemuck::Zeroable for #name {}
        // SAFETY: every field is plain data, the representation is C's, and assertions find padding.
        unsafe impl #expansion::bytemuck::Pod for #name {}
        impl #expansion::Lane for #name {
            type Pair = #expansion::Align1;
            type Quad = #expansion::Align1;
        }
        impl #expansion::Element for #name {}
    }
}

/// What rustc finds padding with, before each field and after the last one.
fn without_padding(item: &syn::ItemStruct) -> TokenStream {
    let name = &item.ident;
    let why = "which buffers must not have";
    let order = "or order the fields from the largest alignment to the smallest";
    let mut assertions = TokenStream::new();
    let mut before: Option<TokenStream> = None;
    for field in &item.fields {
        let (Some(ident), ty) = (&field.ident, &field.ty) else { continue };
        if let Some(end) = before {
            let message =
                format!("`{name}` has padding before `{ident}`, {why}: put a field such as `_pad: f32` there, {order}");
            assertions.extend(quote_spanned!(ident.span()=>
                const _: () = ::core::assert!(::core::mem::offset_of!(#name, #ident) == #end, #message);
            ));
        }
        before = Some(quote!(::core::mem::offset_of!(#name, #ident) + ::core::mem::size_of::<#ty>()));
    }
    if let Some(end) = before {
        let message =
            format!("`{name}` has padding after its last field, {why}: put a field such as `_pad: f32` there, {order}");
        assertions.extend(quote_spanned!(name.span()=>
            const _: () = ::core::assert!(::core::mem::size_of::<#name>() == #end, #message);
        ));
    }
    assertions
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

fn enum_item(mut item: syn::ItemEnum, support: &TokenStream) -> TokenStream {
    let (repr, error) = representation(&mut item.attrs, "u32");
    let derives = missing_derives(&item.attrs, &["Clone", "Copy", "PartialEq", "Eq"]);
    let name = &item.ident;
    quote! {
        #error
        #repr
        #derives
        #item

        impl #support::expansion::Param for #name {
            fn words(
                self,
                leaves: &mut [#support::expansion::Leaf],
            ) -> ::core::result::Result<(), ::std::string::String> {
                #support::expansion::Param::words(self as u32, leaves)
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
        // Only the type looks for its blocks, and its bundle takes them along.
        syn::Item::Impl(_) => Some(&syn::Visibility::Inherited),
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
