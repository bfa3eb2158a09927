//! What can be wrong with a symbol or with the value of one.

use std::fmt;

use thiserror::Error;

/// What can be wrong with a symbol or with the value of one.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DimError {
    /// The bounds of a symbol make no sense.
    #[error(
        "symbol `{name}`: bounds {min}..={max} in multiples of {multiple_of}: they must be 0 <= min <= max and be such multiples"
    )]
    Bounds {
        /// The symbol.
        name: String,
        /// Its lower bound.
        min: i64,
        /// Its upper bound.
        max: i64,
        /// Its divisor.
        multiple_of: i64,
    },
    /// A symbol has no value.
    #[error("symbol `{name}` has no value; it needs one between {min} and {max}")]
    Unbound {
        /// The symbol.
        name: String,
        /// Its lower bound.
        min: i64,
        /// Its upper bound.
        max: i64,
    },
    /// A value is outside a symbol's bounds.
    #[error("symbol `{name}` is {value}; it must be between {min} and {max}{}", and_a_multiple(*.multiple_of))]
    OutOfBounds {
        /// The symbol.
        name: String,
        /// The value given.
        value: i64,
        /// Its lower bound.
        min: i64,
        /// Its upper bound.
        max: i64,
        /// Its divisor.
        multiple_of: i64,
    },
    /// A division by zero.
    #[error("`{0}` divides by zero")]
    DivisionByZero(String),
}

impl fmt::Debug for DimError {
    /// As it is displayed: that is what a program prints whose `main` gives it back, and what `unwrap` says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a divisor adds to what a symbol must be.
fn and_a_multiple(of: i64) -> String {
    if of == 1 { String::new() } else { format!(" and a multiple of {of}") }
}
