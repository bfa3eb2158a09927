//! `#[kernel]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use trefoil_codegen::compile::Reports;
use trefoil_codegen::front::{self, Errors, Input, Output};
use trefoil_codegen::timings::{Stage, stage};

use crate::chain::{self, Header, Resolved};
use crate::remembered::Place;
use crate::{artefact, launch, layout, support, timings};

/// What the attribute expands to: the chain that finds what the kernel names.
pub fn begin(attribute: TokenStream, tokens: TokenStream) -> TokenStream {
    if let Err(error) = front::check_depth(&attribute).and_then(|()| front::check_depth(&tokens)) {
        return error.to_compile_error();
    }
    let item: syn::ItemFn = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => {
            let error = match syn::parse2::<syn::Item>(tokens.clone()) {
                Ok(other) => syn::Error::new_spanned(other, "`#[kernel]` is for functions"),
                Err(_) => error,
            };
            let error = error.to_compile_error();
            return quote!(#error #tokens);
        }
    };
    let support = support::path();
    let paths = front::kernel_items_named(&attribute, &item);
    let header = Header { attribute, item };
    chain::call(&paths, &quote!(#support::expansion::kernel_finish), &header.to_token_stream())
}

/// What the end of the chain expands to: the function for rustc to check, the artefact, and the launch function.
pub fn finish(input: TokenStream) -> TokenStream {
    let resolved: Resolved<Header<syn::ItemFn>> = match syn::parse2(input) {
        Ok(resolved) => resolved,
        Err(error) => return error.to_compile_error(),
    };
    timings::printed(&resolved.header.item.sig.ident.clone(), || compiled(resolved))
}

fn compiled(resolved: Resolved<Header<syn::ItemFn>>) -> TokenStream {
    let names = resolved.names(&front::kernel_items_named(&resolved.header.attribute, &resolved.header.item));
    let Resolved { header: Header { attribute, item }, bundles, .. } = resolved;
    let support = support::path();
    let uses_mistaken = bundles.0.iter().any(|bundle| bundle.failed);
    let input =
        Input { attribute, item: item.clone(), bundles: bundles.0, names, support: support.clone(), file: file() };
    match stage(Stage::Front, || front::parse(input)) {
        // An item with a mistake has said so where it is defined; what follows from it is no second mistake.
        Ok(_) if uses_mistaken => mistaken(&item, &Errors::default(), &support),
        Ok(output) => understood(&item, &output, &support),
        Err(errors) if errors.0.is_empty() && !uses_mistaken => {
            let unexplained = unexplained(&item.sig.ident);
            let stand_in = mistaken(&item, &errors, &support);
            quote!(#unexplained #stand_in)
        }
        Err(errors) => mistaken(&item, &errors, &support),
    }
}

/// What the author allows in a kernel, for each function that is made of it; what is expected need not come in each.
pub fn allowed(item: &syn::ItemFn) -> Vec<TokenStream> {
    let written =
        item.attrs.iter().filter(|attribute| ["allow", "expect"].iter().any(|name| attribute.path().is_ident(name)));
    let lints = written.filter_map(|attribute| match &attribute.meta {
        syn::Meta::List(list) => Some(&list.tokens),
        _ => None,
    });
    lints.map(|lints| quote!(#[allow(#lints)])).collect()
}

/// An error for an item that was refused without one: a fault of this project, which must not pass in silence.
pub fn unexplained(name: &syn::Ident) -> TokenStream {
    let message = format!("`{name}` was not understood, and no reason was found; please report this");
    syn::Error::new(name.span(), message).to_compile_error()
}

fn understood(item: &syn::ItemFn, output: &Output, support: &TokenStream) -> TokenStream {
    let checked = &output.checked;
    let allowed = allowed(item);
    // What the author leaves unused, never changes or never reaches is told as in any function.
    let checked = quote! {
        const _: () = {
            #[allow(
                dead_code,
                unused_parens,
                unused_braces,
                unused_must_use,
                unused_unsafe,
                unused_labels,
                unused_attributes,
                unused_doc_comments,
                path_statements,
                redundant_semicolons,
                unreachable_patterns,
                unstable_name_collisions,
                arithmetic_overflow,
                unconditional_panic,
                clippy::all,
                reason = "the author's function with inferred types written in, for the compiler to check; it is never called"
            )]
            #(#allowed)*
            #checked
        };
    };
    let place = Place::of(output, support);
    if let Some(known) = place.as_ref().and_then(Place::read)
        && let Ok(module) = artefact::read(output, &known.source)
    {
        timings::count(known.counts, true);
        let items = items(item, output, &module, support);
        return quote!(#checked #items);
    }
    let (found, judged) = artefact::instances(&output.module, &output.instances, Reports::Dropped, support, |all| {
        let mut errors = Errors::default();
        let mut instances = Vec::new();
        for made in all {
            match made {
                Ok(made) => instances.push(made),
                Err(diagnostics) => errors.0.extend(output.spans.errors(&diagnostics).0),
            }
        }
        if !errors.0.is_empty() {
            return Err(errors);
        }
        let module = artefact::reporting(output, support)
            .and_then(|reporting| artefact::module(output, &instances, &reporting, support));
        let (module, expansion) = module.map_err(|diagnostics| output.spans.errors(&diagnostics))?;
        timings::count(expansion.counts, false);
        Ok((items(item, output, &module, support), expansion))
    });
    let errors = match (found, judged) {
        (Ok((items, expansion)), Ok(())) => {
            if let Some(place) = place {
                place.write(&expansion);
            }
            return quote!(#checked #items);
        }
        (found, judged) => {
            let mut errors = found.err().unwrap_or_default();
            if let Err(diagnostics) = judged {
                errors.0.extend(output.spans.errors(&diagnostics).0);
            }
            errors
        }
    };
    let mistaken = mistaken(item, &unique(errors), support);
    quote!(#checked #mistaken)
}

/// What stands in the place of a kernel beside its checked function: the module of its artefact, and its launch function.
fn items(item: &syn::ItemFn, output: &Output, module: &TokenStream, support: &TokenStream) -> TokenStream {
    let (visibility, name) = (&item.vis, &item.sig.ident);
    let expansion = quote!(#support::expansion);
    let generics: Vec<_> = item
        .sig
        .generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            syn::GenericParam::Type(ty) => {
                let name = &ty.ident;
                Some(quote! {
                    ::core::option::Option::map(#expansion::scalar_name::<#name>(), #expansion::GenericValue::Type)
                })
            }
            syn::GenericParam::Const(constant) => {
                let name = &constant.ident;
                Some(quote!(::core::option::Option::Some(#expansion::GenericValue::Const(#name as i64))))
            }
            syn::GenericParam::Lifetime(_) => None,
        })
        .collect();
    // The launch of an instance, by its name or by the list that it is in.
    let instance = |single: &str, list: &str| {
        let (single, list, text) = (format_ident!("{single}"), format_ident!("{list}"), name.to_string());
        if generics.is_empty() {
            quote!(&#name::#single)
        } else {
            quote!(#expansion::instance(#text, #name::#list, &[#(#generics),*])?)
        }
    };
    let kernel = instance(artefact::KERNEL, artefact::INSTANCES);
    let mut begin = quote!(#expansion::Launch::of(#kernel));
    if artefact::has_both(&output.instances) {
        let wide = instance(artefact::WIDE_KERNEL, artefact::WIDE_INSTANCES);
        begin.extend(quote!(.or_wide(#wide)));
    }
    let launch = launch::function(item, &output.parameters, &begin, support);
    let assertions = layout::assertions(output, support);
    let doc = format!("The compiled kernel [`{name}`](fn@{name}).");
    quote! {
        #assertions
        #[doc = #doc]
        #visibility mod #name { #module }
        #launch
    }
}

/// The errors, each once: instances of one kernel make the same mistakes.
fn unique(errors: Errors) -> Errors {
    let mut unique = Errors::default();
    for error in errors.0 {
        let place = format!("{:?}", error.first);
        let known = |other: &front::Error| other.message == error.message && format!("{:?}", other.first) == place;
        if !unique.0.iter().any(known) {
            unique.0.push(error);
        }
    }
    unique
}

/// The errors, and names for whoever uses the kernel, so that one mistake gives one message.
fn mistaken(item: &syn::ItemFn, errors: &Errors, support: &TokenStream) -> TokenStream {
    let errors = errors.to_compile_error();
    let (visibility, name) = (&item.vis, &item.sig.ident);
    let launch = launch::stand_in(item, support);
    quote! {
        #errors
        #[doc(hidden)]
        #visibility mod #name {
            pub static KERNELS: &[&#support::artefact::Kernel] = &[];
        }
        #launch
    }
}

/// The file in which the macro is called.
pub fn file() -> String {
    Span::call_site().file()
}
