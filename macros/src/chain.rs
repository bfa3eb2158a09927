//! How macros find the `#[device]` items that an item names.
//!
//! A macro sees its own tokens only, and which item a path means is known to rustc alone. So each `#[device]` item exports, beside
//! itself and under its own name, a `macro_rules!` that holds its closed bundle; a path that finds the item finds that macro too, by
//! rustc's own rules of scope, import, renaming and visibility. To learn what its paths mean, an attribute expands to a call of the
//! first path as a macro, with the list of those that follow; each adds its bundle and calls the next, and the last one in the list is
//! the macro that finishes the expansion.
//!
//! Items are resolved where they are defined, never in the crate that uses them: paths, private helpers and imports mean there what
//! they meant to their author.
//!
//! The call: `first! { [ (second) (third) (finish) ] { header } }`. What the finishing macro gets:
//! `[] { header { HASH bundle.. } { HASH bundle.. } .. }`, one group for each path in order, beginning with the hash of the item meant.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use trefoil_codegen::front::{Bundle, Bundles, Names, path_name};

/// A call that resolves `paths` and then calls `finish` with `header` and what they mean.
pub fn call(paths: &[syn::Path], finish: &TokenStream, header: &TokenStream) -> TokenStream {
    let Some((first, rest)) = paths.split_first() else {
        return quote!(#finish! { [] { { #header } } });
    };
    quote!(#first! { [ #((#rest))* (#finish) ] { { #header } } })
}

/// The macro that exports a closed bundle under each of `names`: that of its item, and those of `blocks`.
pub fn export(bundle: &Bundle, used: &Bundles, visibility: &syn::Visibility, names: &[Ident]) -> TokenStream {
    let Some(name) = names.first() else {
        return TokenStream::new();
    };
    // Equal items may stand in two modules of one crate, whose exported macros share one scope: the place tells them apart.
    let place = name.span();
    let start = place.start();
    let mut file = 0xcbf2_9ce4_8422_2325_u64;
    for byte in place.file().bytes() {
        file = (file ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let unique = format!("__trefoil_{}_{}_{file:016x}_{}_{}", name.unraw(), bundle.hash, start.line, start.column);
    let unique = Ident::new(&unique, Span::call_site());
    let mut closed = Bundles::default();
    closed.add(bundle.clone());
    for bundle in &used.0 {
        closed.add(bundle.clone());
    }
    let hash = &bundle.hash;
    let exported = matches!(visibility, syn::Visibility::Public(_)).then(|| quote!(#[macro_export]));
    quote! {
        #[doc(hidden)]
        #[allow(unused_macros, reason = "an item that no kernel uses is no mistake")]
        #[allow(non_local_definitions, reason = "an item of a function body is exported like any other")]
        #[allow(clippy::crate_in_macro_def, reason = "the item's text is only read; its paths were resolved where it stands")]
        #exported
        macro_rules! #unique {
            ([ ($($next:tt)*) $($rest:tt)* ] { $($state:tt)* }) => {
                $($next)* ! { [ $($rest)* ] { $($state)* { #hash #closed } } }
            };
        }
        #(
            #[doc(hidden)]
            #[allow(unused_imports, reason = "an item that no kernel uses is no mistake")]
            #visibility use #unique as #names;
        )*
    }
}

/// What a finishing macro gets.
pub struct Resolved<H> {
    /// What the attribute passed on.
    pub header: H,
    /// The hash of the item that each path means.
    found: Vec<String>,
    /// All items together, each once.
    pub bundles: Bundles,
}

impl<H> Resolved<H> {
    /// Which item each of `paths` means, which are those that the chain was called for.
    pub fn names(&self, paths: &[syn::Path]) -> Names {
        paths.iter().map(path_name).zip(self.found.iter().cloned()).collect()
    }
}

impl<H: Parse> Parse for Resolved<H> {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (nothing, state, header);
        syn::bracketed!(nothing in input);
        if !nothing.is_empty() {
            return Err(nothing.error("expected the end of the chain"));
        }
        syn::braced!(state in input);
        syn::braced!(header in state);
        let header = header.parse()?;
        let mut found = Vec::new();
        let mut bundles = Bundles::default();
        while !state.is_empty() {
            let group;
            syn::braced!(group in state);
            found.push(group.parse::<syn::LitStr>()?.value());
            bundles.read(&group)?;
        }
        Ok(Self { header, found, bundles })
    }
}

/// An attribute's inside and its item, passed along a chain.
pub struct Header<I> {
    /// The inside of the attribute.
    pub attribute: TokenStream,
    /// The item.
    pub item: I,
}

impl<I: ToTokens> ToTokens for Header<I> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attribute, item } = self;
        tokens.extend(quote!({ #attribute } #item));
    }
}

impl<I: Parse> Parse for Header<I> {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attribute;
        syn::braced!(attribute in input);
        Ok(Self { attribute: attribute.parse()?, item: input.parse()? })
    }
}
