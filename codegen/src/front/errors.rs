//! Mistakes of the author, on the author's tokens.

use std::path::Path;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir;

/// A mistake, from its first to its last token.
#[derive(Clone, Debug)]
pub struct Error {
    /// The first token's span.
    pub first: Span,
    /// The last token's span.
    pub last: Span,
    /// What is wrong, why, and what to write instead.
    pub message: String,
}

/// All mistakes that were found, each once.
#[derive(Clone, Debug, Default)]
pub struct Errors(pub Vec<Error>);

impl Errors {
    /// A `compile_error!` for each, on its tokens.
    pub fn to_compile_error(&self) -> TokenStream {
        self.0
            .iter()
            .map(|error| {
                let (first, last) = (Place(error.first), Place(error.last));
                let mut tokens = first.to_token_stream();
                tokens.extend(last.to_token_stream());
                syn::Error::new_spanned(tokens, &error.message).to_compile_error()
            })
            .collect()
    }

    /// Adds the mistakes of another list.
    pub(super) fn extend(&mut self, other: Self) {
        for error in other.0 {
            self.add((error.first, error.last), error.message);
        }
    }

    /// Adds a mistake, unless the same one is there.
    pub(super) fn add(&mut self, (first, last): (Span, Span), message: impl Into<String>) {
        let message = message.into();
        let known = |error: &Error| error.message == message && format!("{:?}", error.first) == format!("{first:?}");
        if !self.0.iter().any(known) {
            self.0.push(Error { first, last, message });
        }
    }
}

impl std::fmt::Display for Errors {
    /// `line:column: message`, line by line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            let start = error.first.start();
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}: {}", start.line, start.column + 1, error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

impl From<syn::Error> for Errors {
    fn from(error: syn::Error) -> Self {
        let mut errors = Self::default();
        for error in error {
            errors.add((error.span(), error.span()), error.to_string());
        }
        errors
    }
}

/// A token that is only a place.
struct Place(Span);

impl ToTokens for Place {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend([proc_macro2::TokenTree::from(proc_macro2::Ident::new("here", self.0))]);
    }
}

/// The first and last token of each [`ir::Span`].
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    spans: Vec<(Span, Span)>,
}

impl SpanTable {
    /// Adds a place; the module's locations get the same position at the same time, so that both have the same numbers.
    pub(super) fn add(&mut self, (first, last): (Span, Span), locations: &mut ir::Locations) -> ir::Span {
        self.spans.push((first, last));
        let start = first.start();
        let file = named(first.file(), &locations.file);
        locations.add(&file, start.line as u32, start.column as u32 + 1)
    }

    /// The tokens; `None` for code that nobody wrote.
    pub fn get(&self, span: ir::Span) -> Option<(Span, Span)> {
        self.spans.get((span.0 as usize).checked_sub(1)?).copied()
    }

    /// What later passes say, on the author's tokens; what is about nobody's code is put at the macro's call.
    pub fn errors(&self, diagnostics: &Diagnostics) -> Errors {
        let mut errors = Errors::default();
        for Diagnostic { span, message } in &diagnostics.0 {
            let place = self.get(*span).unwrap_or_else(|| (Span::call_site(), Span::call_site()));
            errors.add(place, message.clone());
        }
        errors
    }
}

/// How a file is told of: as the compiler names it, but for one in a folder of this machine's own, which a kernel's hash must not know; that begins at its crate's folder. Text that was not read from a
/// file counts as the kernel's.
fn named(file: String, own: &str) -> String {
    if file == own || file.starts_with('<') {
        return own.to_owned();
    }
    if !Path::new(&file).is_absolute() {
        return file;
    }
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let source = parts.iter().rposition(|part| *part == "src").unwrap_or(parts.len() - 1);
    parts[source.saturating_sub(1)..].join("/")
}
