//! The values of symbols in one run.

use std::collections::BTreeMap;

use super::{Dim, DimError, Symbol};

/// The values of a graph's symbols in one run (not the sizes of a tensor); empty for a graph without symbols.
///
/// ```
/// use trefoil_graph::{DimError, Extents, Symbol};
/// let (batch, tokens) = (Symbol::new("batch", 1, 32)?, Symbol::new("tokens", 8, 512)?);
/// let extents = Extents::with([(&batch, 4), (&tokens, 128)])?;
/// assert_eq!(extents.get(&tokens), Some(128));
/// assert!(Extents::with([(&tokens, 7)]).is_err(), "it is less than the symbol's lower bound");
/// # Ok::<(), DimError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(BTreeMap<Symbol, i64>);

impl Extents {
    /// No values: those of a graph without symbols.
    pub fn new() -> Self {
        Self::default()
    }

    /// These symbols with these values; of a symbol that comes twice, the last.
    ///
    /// # Errors
    /// A value is outside its symbol's bounds, or no multiple of what the symbol is a multiple of.
    pub fn with<'s>(values: impl IntoIterator<Item = (&'s Symbol, i64)>) -> Result<Self, DimError> {
        let mut extents = Self::new();
        for (symbol, value) in values {
            extents.set(symbol, value)?;
        }
        Ok(extents)
    }

    /// Every symbol of `dims` at its upper bound.
    pub fn upper<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Self {
        let mut extents = Self::new();
        for dim in dims {
            dim.for_each_symbol(&mut |symbol| {
                extents.0.insert(symbol.clone(), symbol.0.max);
            });
        }
        extents
    }

    /// Gives a symbol its value, in the place of the one that it had.
    ///
    /// # Errors
    /// The value is outside the symbol's bounds, or no multiple of what the symbol is a multiple of.
    pub fn set(&mut self, symbol: &Symbol, value: i64) -> Result<(), DimError> {
        let info = &symbol.0;
        if value < info.min || value > info.max || value % info.multiple_of != 0 {
            return Err(DimError::OutOfBounds {
                name: info.name.clone(),
                value,
                min: info.min,
                max: info.max,
                multiple_of: info.multiple_of,
            });
        }
        self.0.insert(symbol.clone(), value);
        Ok(())
    }

    /// The values of some symbols, where they have one.
    #[must_use]
    pub fn only(&self, symbols: &[Symbol]) -> Self {
        let known = symbols.iter().filter_map(|symbol| Some((symbol.clone(), self.get(symbol)?)));
        Self(known.collect())
    }

    /// Takes over the values that `other` has.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend(other.iter().map(|(symbol, value)| (symbol.clone(), value)));
    }

    /// The symbols that have a value, each with it.
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, i64)> {
        self.0.iter().map(|(symbol, value)| (symbol, *value))
    }

    /// Becomes equal to `other`; without allocation if it has values of the same symbols.
    pub(crate) fn become_equal(&mut self, other: &Self) {
        if self.0.len() == other.0.len() && self.0.keys().eq(other.0.keys()) {
            for (mine, value) in self.0.values_mut().zip(other.0.values()) {
                *mine = *value;
            }
        } else {
            self.clone_from(other);
        }
    }

    /// A symbol's value, if it has one.
    pub fn get(&self, symbol: &Symbol) -> Option<i64> {
        self.0.get(symbol).copied()
    }
}
