//! trefoil-graph's own macros. An op's method is written once, for `Graph`; these derive the method of `Eager` from it, and the conversions of
//! the structs of tensors that methods take and give. They serve that crate alone.

mod methods;
mod tensors;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// On an `impl Graph` block: gives `Eager` each public method that adds to the graph, under the same name, with tensors on the device in the place of tensors of the graph.
///
/// Attributes become parts of the key of the call by their `Debug` texts, which must tell different values apart. A struct of tensors is written with its parameter
/// (`NormOperands<Tensor>`), derives [`macro@Operands`] where it is given, and [`macro@Results`] where it is what the method gives.
#[proc_macro_attribute]
pub fn eager(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as syn::ItemImpl);
    let derived = methods::expand(&arguments.into(), &block).unwrap_or_else(|error| error.into_compile_error());
    quote::quote!(#block #derived).into()
}

/// For a struct or enum with one parameter, the type of its tensors: how a call of `Eager` takes those of the device from it.
#[proc_macro_derive(Operands)]
pub fn operands(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::DeriveInput);
    tensors::operands(&item).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// For a struct with one parameter, the type of its fields, all of which are tensors: how a call of `Eager` gives them.
#[proc_macro_derive(Results)]
pub fn results(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::DeriveInput);
    tensors::results(&item).unwrap_or_else(|error| error.into_compile_error()).into()
}
