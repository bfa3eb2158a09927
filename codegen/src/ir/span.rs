//! Where things were written.

use serde::{Deserialize, Serialize};

/// An index into [`Locations`], from 1; two equal spans are the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span(pub u32);

impl Span {
    /// Code that nobody wrote.
    pub const NONE: Self = Self(0);
}

/// Positions in the author's source, which travel with the IR.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locations {
    /// The source file, as the compiler names it.
    pub file: String,
    /// Line and column (both from 1) of span n + 1.
    pub positions: Vec<(u32, u32)>,
    /// Operations that the author wrote as `wrapping_add` and its like, ascending: they mean what others mean, and their overflow is meant.
    pub wrapping: Vec<Span>,
}

impl Locations {
    /// Adds a position.
    pub fn add(&mut self, line: u32, column: u32) -> Span {
        self.positions.push((line, column));
        Span(self.positions.len() as u32)
    }

    /// Whether the author asked for an operation to wrap.
    pub fn wraps(&self, span: Span) -> bool {
        self.wrapping.binary_search(&span).is_ok()
    }

    /// `file:line:column`, or the file alone for code that nobody wrote.
    pub fn describe(&self, span: Span) -> String {
        match (span.0 as usize).checked_sub(1).and_then(|index| self.positions.get(index)) {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        }
    }
}
