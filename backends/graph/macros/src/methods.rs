//! Methods of `Eager` from those of `Graph`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ImplItem, ImplItemFn, ItemImpl, Pat, PathArguments, ReceiverKind,
    Result, ReturnType, Type, TypeParamBound, Visibility, parse_quote,
};

/// A block of `Eager` with the methods that follow from a block of `Graph`.
pub fn expand(arguments: &TokenStream, block: &ItemImpl) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`eager` takes no arguments"));
    }
    let methods = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if matches!(method.vis, Visibility::Public(_)) => Some(derived(method)),
        _ => None,
    });
    let methods = methods.collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        impl crate::eager::Eager {
            #(#methods)*
        }
    })
}

fn derived(method: &ImplItemFn) -> Result<TokenStream> {
    let signature = &method.sig;
    let name = &signature.ident;
    let takes_itself =
        signature.receiver().is_some_and(|receiver| matches!(receiver.kind, ReceiverKind::Reference(_, None, Some(_))));
    if !takes_itself || !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            signature,
            "a method that adds an op takes `&mut self`, and has no parameters of its own but `impl Into<..>` and `impl IntoShape`",
        ));
    }
    let (mut parameters, mut taken, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for (position, argument) in signature.inputs.iter().skip(1).enumerate() {
        let FnArg::Typed(argument) = argument else { continue };
        let ident = match &*argument.pat {
            Pat::Ident(pattern) => pattern.ident.clone(),
            _ => format_ident!("argument_{position}"),
        };
        let (ty, take, pass) = argument_of(&ident, &argument.ty);
        parameters.push(quote!(#ident: #ty));
        taken.push(take);
        passed.push(pass);
    }
    let mut gives = result_of(&signature.output)
        .ok_or_else(|| Error::new_spanned(&signature.output, "a method that adds an op gives a `Result`"))?;
    replace(&mut gives, &parse_quote!(crate::eager::EagerTensor));
    let lints = method.attrs.iter().filter(|attribute| is_lint(attribute));
    let title = name.to_string();
    let doc = format!(
        "[`Graph::{title}`](crate::graph::Graph::{title}) of tensors on the device: shapes, types and errors are its own."
    );
    Ok(quote! {
        #[doc = #doc]
        ///
        /// # Errors
        /// As for graphs; a tensor of another `Eager` or one that was never computed; no memory, or no way to compute it on the device.
        #(#lints)*
        pub fn #name(&self, #(#parameters),*) -> crate::error::Result<#gives> {
            let mut call = self.call(#title);
            #(#taken)*
            call.run(|graph| graph.#name(#(#passed),*))
        }
    })
}

/// What stands for an argument: its type, how the call takes it, and how it is passed on to the graph.
fn argument_of(ident: &Ident, ty: &Type) -> (Type, TokenStream, TokenStream) {
    if let Type::ImplTrait(bounds) = ty
        && let Some(made) = bounds.bounds.iter().find_map(|bound| converted(ident, bound))
    {
        return (ty.clone(), quote!(let #ident = #made; call.attribute(&#ident);), quote!(#ident));
    }
    let mut theirs = ty.clone();
    if !replace(&mut theirs, &parse_quote!(&crate::eager::EagerTensor)) {
        return (theirs, quote!(call.attribute(&#ident);), quote!(#ident));
    }
    let title = ident.to_string();
    let take = quote!(let #ident = crate::eager::Operands::take(#ident, #title, &mut call););
    if is_tensor(ty) {
        return (theirs, take, quote!(#ident));
    }
    let pass = if matches!(ty, Type::Reference(_)) { quote!(&#ident) } else { quote!(#ident) };
    (theirs, quote!(#take call.attribute(&#ident);), pass)
}

/// What an argument that is taken as `impl Into<T>` or `impl IntoShape` becomes.
fn converted(argument: &Ident, bound: &TypeParamBound) -> Option<TokenStream> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last()?;
    if last.ident == "IntoShape" {
        return Some(quote!(crate::types::IntoShape::into_shape(#argument)));
    }
    let into = first_argument(&last.arguments).filter(|_| last.ident == "Into")?;
    Some(quote!(<_ as Into<#into>>::into(#argument)))
}

/// The type of `Result<T, ..>`.
fn result_of(output: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else { return None };
    let Type::Path(path) = &**ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Result")?;
    first_argument(&last.arguments)
}

fn first_argument(arguments: &PathArguments) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

fn is_tensor(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("Tensor"))
}

fn is_lint(attribute: &Attribute) -> bool {
    attribute.path().is_ident("expect") || attribute.path().is_ident("allow")
}

/// Puts another type in the place of each `Tensor`; says whether there was one.
fn replace(ty: &mut Type, other: &Type) -> bool {
    struct Replace<'o> {
        other: &'o Type,
        found: bool,
    }

    impl VisitMut for Replace<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if is_tensor(ty) {
                *ty = self.other.clone();
                self.found = true;
            } else {
                syn::visit_mut::visit_type_mut(self, ty);
            }
        }
    }

    let mut replace = Replace { other, found: false };
    replace.visit_type_mut(ty);
    replace.found
}
