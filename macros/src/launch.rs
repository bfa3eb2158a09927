//! The launch function: the author's signature with buffers for slices.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use trefoil_codegen::front::{Parameter, ParameterKind};
use trefoil_codegen::ir::BindingKind;

/// The launch function of a kernel that was understood; `begin` is an expression of type `Launch` in its body, to which arguments are added.
pub fn function(
    item: &syn::ItemFn,
    parameters: &[Parameter],
    begin: &TokenStream,
    support: &TokenStream,
) -> TokenStream {
    let (visibility, name) = (&item.vis, &item.sig.ident);
    let allowed = crate::kernel::allowed(item);
    let docs = item.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let mut arguments = Vec::new();
    let mut binds = Vec::new();
    let mut values = Vec::new();
    let mut borrows = false;
    for Parameter { name, ty, kind } in parameters {
        let ParameterKind::Buffer { element, kind, view, .. } = kind else {
            arguments.push(quote!(#name: #ty));
            values.push(quote!(.value(#name)));
            continue;
        };
        borrows = true;
        let (method, accepted) = match (view.is_some(), *kind) {
            (false, BindingKind::Shared) => ("read", "ReadBuffer"),
            (false, BindingKind::Mutable | BindingKind::Atomic) => ("write", "WriteBuffer"),
            (true, BindingKind::Shared) => ("read_view", "ReadView"),
            (true, BindingKind::Mutable | BindingKind::Atomic) => ("write_view", "WriteView"),
        };
        let (method, accepted) = (format_ident!("{method}"), format_ident!("{accepted}"));
        let rank = view.map(|rank| {
            let rank = rank as usize;
            quote!(, #rank)
        });
        // What does not fit is shown beside the author's type.
        let support = at(support, ty.span());
        arguments.push(quote_spanned!(ty.span()=>
            #name: impl #support::launch::#accepted<'buffers, #element #rank>
        ));
        binds.push(quote!(.#method(#name)));
    }
    binds.extend(values);
    let launch = match binds.split_last() {
        Some((last, before)) => quote!(#begin #(#before?)* #last),
        None => quote!(::core::result::Result::Ok(#begin)),
    };
    let lifetime = borrows.then(|| quote!('buffers,));
    let generics = item.sig.generics.params.iter();
    let bounds = &item.sig.generics.where_clause;
    quote! {
        #(#docs)*
        ///
        /// # Errors
        /// An argument does not fit into the kernel's indices, or its elements are not the kernel's.
        #[allow(clippy::too_many_arguments, reason = "it takes what the kernel takes")]
        #(#allowed)*
        #visibility fn #name<#lifetime #(#generics),*>(
            #(#arguments),*
        ) -> #support::expansion::Result<#support::expansion::Launch> #bounds {
            #launch
        }
    }
}

/// The tokens as if they were written at that place.
fn at(tokens: &TokenStream, place: Span) -> TokenStream {
    let put = |mut token: TokenTree| {
        token.set_span(place);
        token
    };
    tokens.clone().into_iter().map(put).collect()
}

/// The launch function of a kernel with a mistake, which takes anything, so that programs that launch it show no second mistake. It
/// never runs, since the program does not compile.
pub fn stand_in(item: &syn::ItemFn, support: &TokenStream) -> TokenStream {
    let (visibility, name) = (&item.vis, &item.sig.ident);
    let arguments = (0..item.sig.inputs.len()).map(|position| {
        let argument = format_ident!("_{position}");
        quote!(#argument: impl ::core::marker::Sized)
    });
    let generics = item.sig.generics.params.iter().filter_map(|parameter| match parameter {
        syn::GenericParam::Type(ty) => {
            let name = &ty.ident;
            Some(quote!(#name))
        }
        syn::GenericParam::Const(constant) => {
            let (name, ty) = (&constant.ident, &constant.ty);
            Some(quote!(const #name: #ty))
        }
        syn::GenericParam::Lifetime(_) => None,
    });
    quote! {
        #[doc(hidden)]
        #[allow(dead_code, clippy::all, reason = "a kernel with a mistake has no launch")]
        #visibility fn #name<#(#generics),*>(
            #(#arguments),*
        ) -> #support::expansion::Result<#support::expansion::Launch> {
            loop {}
        }
    }
}
