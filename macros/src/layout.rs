//! Assertions, in the author's scope, that the host lays out elements and structs that are parameters as the compiler does.

use proc_macro2::TokenStream;
use quote::quote;
use trefoil_codegen::fingerprint;
use trefoil_codegen::front::{Output, Parameter, ParameterKind};
use trefoil_codegen::ir::{Handle, Scalar, Type};

/// One assertion for each buffer whose elements are no scalars or type parameters.
pub fn assertions(output: &Output, support: &TokenStream) -> TokenStream {
    let mut assertions = TokenStream::new();
    for (parameter, declared) in values(output) {
        let (Type::Struct(handle), Some(expected)) =
            (&output.module.types[declared], fingerprint::of(&output.module, declared))
        else {
            continue;
        };
        let ty = &parameter.ty;
        let name = &output.module.structs[*handle].name;
        let message = format!("`{name}` is not laid out on the host as it is on devices");
        assertions.extend(quote! {
            ::core::assert!(<#ty as #support::expansion::Layout>::LAYOUT == #expected, #message);
        });
    }
    for parameter in &output.parameters {
        let ParameterKind::Buffer { element, binding, .. } = &parameter.kind else {
            continue;
        };
        let Some(declared) = output.module.bindings.get(*binding as usize) else {
            continue;
        };
        let generic = matches!(output.module.types[declared.element].scalar(), Some(Scalar::Generic(_)));
        let known = fingerprint::of(&output.module, declared.element);
        let (false, Some(expected)) = (generic, known) else {
            continue;
        };
        let message = match &output.module.types[declared.element] {
            Type::Struct(handle) => {
                format!("`{}` is not laid out on the host as it is on devices", output.module.structs[*handle].name)
            }
            _ => format!("the elements of `{}` are not laid out on the host as they are on devices", parameter.name),
        };
        assertions.extend(quote! {
            ::core::assert!(<#element as #support::expansion::Layout>::LAYOUT == #expected, #message);
        });
    }
    quote!(const _: () = { #assertions };)
}

/// The parameters by value, with their types.
fn values(output: &Output) -> impl Iterator<Item = (&Parameter, Handle<Type>)> {
    output
        .parameters
        .iter()
        .filter(|parameter| matches!(parameter.kind, ParameterKind::Value { .. }))
        .zip(&output.module.params)
        .map(|(parameter, declared)| (parameter, declared.ty))
}
