//! Structs of tensors: how those of the device are taken from them and given in them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::visit::Visit;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Ident, Result, Type};

/// The one parameter, the type of tensors.
fn parameter(item: &DeriveInput) -> Result<&Ident> {
    let mut parameters = item.generics.params.iter();
    match (parameters.next(), parameters.next()) {
        (Some(GenericParam::Type(parameter)), None) => Ok(&parameter.ident),
        _ => Err(Error::new_spanned(&item.ident, "one parameter is expected, the type of tensors")),
    }
}

fn mentions(ty: &Type, parameter: &Ident) -> bool {
    struct Mentions<'p>(&'p Ident, bool);

    impl Visit<'_> for Mentions<'_> {
        fn visit_ident(&mut self, ident: &Ident) {
            self.1 |= ident == self.0;
        }
    }

    let mut mentions = Mentions(parameter, false);
    mentions.visit_type(ty);
    mentions.1
}

/// The pattern of a variant's fields, and the same fields as a call takes them.
fn taken(fields: &Fields, parameter: &Ident) -> (TokenStream, TokenStream) {
    let names =
        fields.iter().enumerate().map(|(at, field)| field.ident.clone().unwrap_or_else(|| format_ident!("field_{at}")));
    let names: Vec<Ident> = names.collect();
    let values = names.iter().zip(fields).map(|(name, field)| {
        if mentions(&field.ty, parameter) {
            let title = name.to_string();
            quote!(crate::eager::Operands::take(#name, #title, call))
        } else {
            quote!(#name)
        }
    });
    match fields {
        Fields::Named(_) => (quote!({ #(#names),* }), quote!({ #(#names: #values),* })),
        Fields::Unnamed(_) => (quote!((#(#names),*)), quote!((#(#values),*))),
        Fields::Unit => (TokenStream::new(), TokenStream::new()),
    }
}

/// `impl Operands`, by value and by reference.
pub fn operands(item: &DeriveInput) -> Result<TokenStream> {
    let (name, parameter) = (&item.ident, parameter(item)?);
    let arms: Vec<TokenStream> = match &item.data {
        Data::Struct(data) => {
            let (pattern, value) = taken(&data.fields, parameter);
            vec![quote!(#name #pattern => #name #value)]
        }
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let (ident, (pattern, value)) = (&variant.ident, taken(&variant.fields, parameter));
                quote!(#name::#ident #pattern => #name::#ident #value)
            })
            .collect(),
        Data::Union(_) => return Err(Error::new_spanned(name, "a union has no tensors")),
    };
    Ok(quote! {
        impl<#parameter: crate::eager::Operands> crate::eager::Operands for #name<#parameter> {
            type OfGraph = #name<#parameter::OfGraph>;

            fn take(self, _: &'static str, call: &mut crate::eager::Call<'_>) -> Self::OfGraph {
                match self { #(#arms),* }
            }
        }

        impl<#parameter: crate::eager::Operands + Clone> crate::eager::Operands for &#name<#parameter> {
            type OfGraph = #name<#parameter::OfGraph>;

            fn take(self, name: &'static str, call: &mut crate::eager::Call<'_>) -> Self::OfGraph {
                crate::eager::Operands::take(self.clone(), name, call)
            }
        }
    })
}

/// `impl Results`.
pub fn results(item: &DeriveInput) -> Result<TokenStream> {
    let name = &item.ident;
    parameter(item)?;
    let Data::Struct(data) = &item.data else {
        return Err(Error::new_spanned(name, "a struct is expected"));
    };
    let fields: Vec<_> = data.fields.iter().filter_map(|field| field.ident.as_ref()).collect();
    if fields.is_empty() || fields.len() != data.fields.len() {
        return Err(Error::new_spanned(name, "fields with names are expected"));
    }
    Ok(quote! {
        impl crate::eager::Results for #name<crate::graph::Tensor> {
            type Eager = #name<crate::eager::EagerTensor>;

            fn tensors(&self) -> Vec<crate::graph::Tensor> {
                vec![#(self.#fields),*]
            }

            fn of(made: &mut dyn Iterator<Item = crate::eager::EagerTensor>) -> Option<Self::Eager> {
                Some(#name { #(#fields: made.next()?),* })
            }
        }
    })
}
