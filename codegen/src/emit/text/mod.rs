//! What the emitters of C-like languages share: expressions with only the parentheses that they need, statements, accessors of memory,
//! and the bookkeeping of names and helper functions. A language is a [`Dialect`]: types, literals, and the few forms that differ.
//!
//! # Accessors
//! A place that needs no guard and that the language can name is printed in place: `x[i]`. Any other goes through a small function
//! that is made for it and named after its variable: `x_at(i)` reads, `x_set(i, value)` writes, `x_add(i, value)` is an atomic.

mod apart;
mod code;
mod dialect;
mod expr;
mod function;
mod largest;
mod matrix;
mod place;
mod printer;
mod stmt;
mod tile;
mod usage;
mod words;
mod writer;

pub use code::{Code, Level, infix, prefix};
pub use dialect::{Dialect, Position, no_matrices};
pub use expr::word_value;
pub use place::{AtomicCall, AtomicForm, Index, Lvalue};
pub use printer::{Printer, Scope};
pub use tile::Side;
pub use usage::Resources;
pub use writer::Writer;
