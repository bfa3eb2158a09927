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
    /// The kernel's source file, as the compiler names it.
    pub file: String,
    /// Line and column (both from 1) of span n + 1.
    pub positions: Vec<(u32, u32)>,
    /// Other files, each once: device functions may stand anywhere.
    pub others: Vec<String>,
    /// From which span on positions lie in which of [`Locations::others`], or in the kernel's file; ascending.
    pub turns: Vec<(Span, Option<u32>)>,
    /// Operations that the author wrote as `wrapping_add` and its like, ascending: they mean what others mean, and their overflow is meant.
    pub wrapping: Vec<Span>,
}

impl Locations {
    /// Adds a position in a file.
    pub fn add(&mut self, file: &str, line: u32, column: u32) -> Span {
        self.positions.push((line, column));
        let span = Span(self.positions.len() as u32);
        let other = (file != self.file).then(|| match self.others.iter().position(|other| other == file) {
            Some(known) => known as u32,
            None => {
                self.others.push(file.to_owned());
                self.others.len() as u32 - 1
            }
        });
        if self.turns.last().and_then(|(_, other)| *other) != other {
            self.turns.push((span, other));
        }
        span
    }

    /// The file, line and column of a span; `None` for code that nobody wrote.
    pub fn position(&self, span: Span) -> Option<(&str, u32, u32)> {
        let (line, column) = *self.positions.get((span.0 as usize).checked_sub(1)?)?;
        let turn = self.turns.partition_point(|(from, _)| *from <= span).checked_sub(1);
        let other = turn.and_then(|turn| self.turns[turn].1);
        let file = other.and_then(|other| self.others.get(other as usize)).unwrap_or(&self.file);
        Some((file, line, column))
    }

    /// Whether the author asked for an operation to wrap.
    pub fn wraps(&self, span: Span) -> bool {
        self.wrapping.binary_search(&span).is_ok()
    }

    /// `file:line:column`, or the file alone for code that nobody wrote.
    pub fn describe(&self, span: Span) -> String {
        match self.position(span) {
            Some((file, line, column)) => format!("{file}:{line}:{column}"),
            None => self.file.clone(),
        }
    }
}
