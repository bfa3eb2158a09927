//! How expansions name the crate that kernel authors import.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The path to `trefoil-dsl`: its own, or the facade's, under the name that the author's `Cargo.toml` gives it.
///
/// Both crates call themselves by their own names (`extern crate self`), so that it is right inside them and in their tests too.
pub fn path() -> TokenStream {
    if let Some(name) = found("trefoil-dsl", "trefoil_dsl") {
        return quote!(::#name);
    }
    // Without either in `Cargo.toml` there is nothing better than the usual name, on which rustc then reports.
    let facade = found("trefoil", "trefoil").unwrap_or_else(|| Ident::new("trefoil", Span::call_site()));
    quote!(::#facade::dsl)
}

fn found(package: &str, own_name: &str) -> Option<Ident> {
    match crate_name(package).ok()? {
        FoundCrate::Itself => Some(Ident::new(own_name, Span::call_site())),
        FoundCrate::Name(name) => Some(Ident::new(&name, Span::call_site())),
    }
}
