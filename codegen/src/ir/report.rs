//! Reports: what a kernel tells its host of while it runs, by `assert!` and `println!`.
//!
//! A message is a list of pieces, texts and values. The front end reads it from the author's format string; whoever runs the kernel, be it the checker or a device's host, puts the values
//! in ([`crate::artefact::Site::message`]).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::Expression;

/// What is told of when control comes to a [`super::StatementKind::Report`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether something that was asserted does not hold; otherwise it is a line to be printed.
    pub fails: bool,
    /// The message.
    pub text: Vec<Piece>,
    /// Numbers, bools, values of enums, and vectors of numbers and bools, which the message names by position.
    pub values: Vec<Handle<Expression>>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// This text.
    Text(Cow<'static, str>),
    /// The value at that position, in that format.
    Value(u32, Format),
}

/// How a value is shown: what Rust's format strings say behind the colon, without fill, alignment and sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The trait.
    pub style: Style,
    /// `#`: with `0x`, `0o` or `0b` before.
    pub alternate: bool,
    /// `0`: with zeros to the width, not spaces.
    pub zeros: bool,
    /// At least so many characters, from the right.
    pub width: Option<u32>,
    /// Digits behind the point.
    pub precision: Option<u32>,
}

/// Which of Rust's traits shows a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Style {
    /// `{}`
    #[default]
    Display,
    /// `{:?}`
    Debug,
    /// `{:x}`
    LowerHex,
    /// `{:X}`
    UpperHex,
    /// `{:o}`
    Octal,
    /// `{:b}`
    Binary,
    /// `{:e}`
    LowerExp,
    /// `{:E}`
    UpperExp,
}

impl Style {
    /// Every style, with its sign in a format string.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Display, ""),
        (Self::Debug, "?"),
        (Self::LowerHex, "x"),
        (Self::UpperHex, "X"),
        (Self::Octal, "o"),
        (Self::Binary, "b"),
        (Self::LowerExp, "e"),
        (Self::UpperExp, "E"),
    ];
}
