//! What the compiler has to say to the author of a kernel.

use crate::ir::Span;

/// A mistake in a kernel, in the author's terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    /// Where: the macro turns it into the author's token, the late compiler into a file and line.
    pub span: Span,
    /// What is wrong and what to write instead. Words of Rust and of this crate's documentation only.
    pub message: String,
}

impl Diagnostic {
    /// A mistake at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// All mistakes that were found; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", list(.0))]
pub struct Diagnostics(pub Vec<Diagnostic>);

fn list(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("\n")
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}
