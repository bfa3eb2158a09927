//! Dimensions: integer expressions over named symbols, in canonical form.
//!
//! A dimension is a polynomial whose atoms are symbols and, where a polynomial cannot say it, a rounded-down quotient, a minimum or a
//! maximum of two dimensions. Equal expressions are equal values, so shapes are compared with `==`. Symbols have bounds, from which every
//! dimension has bounds: plans are made for the upper one.

mod error;
mod extents;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

pub use error::DimError;
pub use extents::Extents;

/// A number that is known only when a graph runs, such as a batch size.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(Arc<SymbolInfo>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SymbolInfo {
    name: String,
    min: i64,
    max: i64,
    multiple_of: i64,
}

/// An integer expression over symbols.
///
/// ```
/// use trefoil_graph::{Dim, DimError, Symbol};
/// let batch = Symbol::new("batch", 1, 32)?;
/// let rows = Dim::from(&batch) * 128;
/// assert_eq!(rows.clone() + 0, Dim::from(128) * Dim::from(&batch));
/// assert_eq!(rows.bounds(), (128, 4096));
/// assert_eq!(rows.to_string(), "128 * batch");
/// # Ok::<(), DimError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim {
    /// Coefficients of products of atoms; the empty product is the constant. No coefficient is zero.
    terms: BTreeMap<Vec<Atom>, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Atom {
    Symbol(Symbol),
    /// Rounded down.
    Quotient(Box<Dim>, Box<Dim>),
    Min(Box<Dim>, Box<Dim>),
    Max(Box<Dim>, Box<Dim>),
}

impl Symbol {
    /// A symbol between `min` and `max`, both included.
    ///
    /// # Errors
    /// The bounds make no sense.
    pub fn new(name: &str, min: i64, max: i64) -> Result<Self, DimError> {
        Self::with_multiple(name, min, max, 1)
    }

    /// A symbol that is always a multiple of `multiple_of`.
    ///
    /// # Errors
    /// The bounds make no sense.
    pub fn with_multiple(name: &str, min: i64, max: i64, multiple_of: i64) -> Result<Self, DimError> {
        if min < 0 || max < min || multiple_of < 1 || min % multiple_of != 0 || max % multiple_of != 0 {
            return Err(DimError::Bounds { name: name.to_owned(), min, max, multiple_of });
        }
        Ok(Self(Arc::new(SymbolInfo { name: name.to_owned(), min, max, multiple_of })))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its lower and upper bound.
    pub fn bounds(&self) -> (i64, i64) {
        (self.0.min, self.0.max)
    }

    /// What it is always a multiple of.
    pub fn multiple_of(&self) -> i64 {
        self.0.multiple_of
    }
}

impl Dim {
    /// The value, if it is the same for all values of the symbols.
    pub fn constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The symbol that it is, and nothing else.
    pub fn symbol(&self) -> Option<&Symbol> {
        match self.terms.iter().next() {
            Some((atoms, 1)) if self.terms.len() == 1 => match atoms.as_slice() {
                [Atom::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this is the number `value`.
    pub fn is(&self, value: i64) -> bool {
        self.constant() == Some(value)
    }

    /// `self / divisor`, rounded down.
    #[must_use]
    pub fn quotient(&self, divisor: &Self) -> Self {
        match (self.constant(), divisor.constant()) {
            (Some(value), Some(divisor)) if divisor != 0 => return Self::from(floor_quotient(value, divisor)),
            (_, Some(1)) => return self.clone(),
            (_, Some(divisor)) if divisor > 1 && self.terms.values().all(|factor| factor % divisor == 0) => {
                let terms = self.terms.iter().map(|(atoms, factor)| (atoms.clone(), factor / divisor)).collect();
                return Self { terms };
            }
            (_, Some(divisor)) if divisor > 1 && self.divides_evenly(divisor) => {}
            _ if self == divisor && self.bounds().0 > 0 => return Self::from(1),
            _ => {
                if let Some(exact) = self.cancel(divisor) {
                    return exact;
                }
            }
        }
        Self::atom(Atom::Quotient(Box::new(self.clone()), Box::new(divisor.clone())))
    }

    /// `self / divisor`, rounded up.
    #[must_use]
    pub fn quotient_up(&self, divisor: i64) -> Self {
        let up = self.clone() + (divisor - 1);
        if self.divides_evenly(divisor) {
            return self.quotient(&Self::from(divisor));
        }
        up.quotient(&Self::from(divisor))
    }

    /// `self % divisor`, for a positive divisor.
    #[must_use]
    pub fn remainder(&self, divisor: &Self) -> Self {
        // Multiplied, the quotient of the least number would be less than that.
        if let (Some(value), Some(divisor @ 1..)) = (self.constant(), divisor.constant()) {
            return Self::from(value.rem_euclid(divisor));
        }
        self.clone() - self.quotient(divisor) * divisor.clone()
    }

    /// The smaller.
    #[must_use]
    pub fn minimum(&self, other: &Self) -> Self {
        let ((low, high), (other_low, other_high)) = (self.bounds(), other.bounds());
        match () {
            () if self == other || high <= other_low => self.clone(),
            () if other_high <= low => other.clone(),
            () => Self::atom(Atom::Min(Box::new(self.clone().min_of(other)), Box::new(self.clone().max_of(other)))),
        }
    }

    /// The larger.
    #[must_use]
    pub fn maximum(&self, other: &Self) -> Self {
        let ((low, high), (other_low, other_high)) = (self.bounds(), other.bounds());
        match () {
            () if self == other || low >= other_high => self.clone(),
            () if other_low >= high => other.clone(),
            () => Self::atom(Atom::Max(Box::new(self.clone().min_of(other)), Box::new(self.clone().max_of(other)))),
        }
    }

    /// The lesser by the canonical order, so that min(a, b) and min(b, a) are one value.
    fn min_of(self, other: &Self) -> Self {
        if self <= *other { self } else { other.clone() }
    }

    fn max_of(self, other: &Self) -> Self {
        if self <= *other { other.clone() } else { self }
    }

    /// Whether every value is a multiple of `divisor`.
    pub fn divides_evenly(&self, divisor: i64) -> bool {
        divisor > 0
            && self.terms.iter().all(|(atoms, factor)| {
                let known = atoms.iter().fold(*factor, |product, atom| match atom {
                    Atom::Symbol(symbol) => product.saturating_mul(symbol.0.multiple_of),
                    Atom::Quotient(..) | Atom::Min(..) | Atom::Max(..) => product,
                });
                known % divisor == 0
            })
    }

    /// The quotient, where the divisor is one product of atoms that is a factor of every term.
    fn cancel(&self, divisor: &Self) -> Option<Self> {
        let (atoms, factor) =
            divisor.terms.iter().next().filter(|_| divisor.terms.len() == 1 && divisor.bounds().0 > 0)?;
        let mut terms = BTreeMap::new();
        for (mine, my_factor) in &self.terms {
            let mut left = mine.clone();
            for atom in atoms {
                let at = left.iter().position(|known| known == atom)?;
                left.remove(at);
            }
            if my_factor % factor != 0 {
                return None;
            }
            terms.insert(left, my_factor / factor);
        }
        Some(Self { terms })
    }

    /// The value for given symbols.
    ///
    /// # Errors
    /// A symbol has no value, or something divides by zero.
    pub fn eval(&self, extents: &Extents) -> Result<i64, DimError> {
        let mut sum = 0i64;
        for (atoms, factor) in &self.terms {
            let mut product = *factor;
            for atom in atoms {
                product = product.saturating_mul(atom.eval(extents)?);
            }
            sum = sum.saturating_add(product);
        }
        Ok(sum)
    }

    /// The same, with values in the places of those symbols that have one.
    #[must_use]
    pub fn bound(&self, extents: &Extents) -> Self {
        let mut sum = Self::from(0i64);
        for (atoms, factor) in &self.terms {
            sum = sum + atoms.iter().fold(Self::from(*factor), |product, atom| product * atom.bound(extents));
        }
        sum
    }

    /// What it is where no symbol stands in it, as a count of things in memory; 0 for what is no such count.
    pub fn number(&self) -> usize {
        self.constant().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    }

    /// The least and the greatest value that it may have; they may be wider than what it really reaches.
    pub fn bounds(&self) -> (i64, i64) {
        let (mut low, mut high) = (0i64, 0i64);
        for (atoms, factor) in &self.terms {
            let mut range = (*factor, *factor);
            for atom in atoms {
                range = multiply(range, atom.bounds());
            }
            low = low.saturating_add(range.0);
            high = high.saturating_add(range.1);
        }
        (low, high)
    }

    /// Calls `visit` for every symbol, some more than once.
    pub fn for_each_symbol(&self, visit: &mut impl FnMut(&Symbol)) {
        for atom in self.terms.keys().flatten() {
            match atom {
                Atom::Symbol(symbol) => visit(symbol),
                Atom::Quotient(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.for_each_symbol(visit);
                    b.for_each_symbol(visit);
                }
            }
        }
    }

    fn atom(atom: Atom) -> Self {
        Self { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    fn add_term(&mut self, atoms: Vec<Atom>, factor: i64) {
        let sum = self.terms.get(&atoms).copied().unwrap_or(0).saturating_add(factor);
        if sum == 0 {
            self.terms.remove(&atoms);
        } else {
            self.terms.insert(atoms, sum);
        }
    }
}

fn multiply(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    let products = [a.0.saturating_mul(b.0), a.0.saturating_mul(b.1), a.1.saturating_mul(b.0), a.1.saturating_mul(b.1)];
    products.into_iter().fold((i64::MAX, i64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// `value / divisor`, rounded down; the largest number for what is one more. The divisor is not 0.
const fn floor_quotient(value: i64, divisor: i64) -> i64 {
    let Some(quotient) = value.checked_div(divisor) else { return i64::MAX };
    if value % divisor != 0 && (value < 0) != (divisor < 0) { quotient - 1 } else { quotient }
}

impl Atom {
    fn bound(&self, extents: &Extents) -> Dim {
        match self {
            Self::Symbol(symbol) => extents.get(symbol).map_or_else(|| Dim::from(symbol), Dim::from),
            Self::Quotient(value, divisor) => value.bound(extents).quotient(&divisor.bound(extents)),
            Self::Min(a, b) => a.bound(extents).minimum(&b.bound(extents)),
            Self::Max(a, b) => a.bound(extents).maximum(&b.bound(extents)),
        }
    }

    fn eval(&self, extents: &Extents) -> Result<i64, DimError> {
        match self {
            Self::Symbol(symbol) => extents.get(symbol).ok_or_else(|| DimError::Unbound {
                name: symbol.0.name.clone(),
                min: symbol.0.min,
                max: symbol.0.max,
            }),
            Self::Quotient(value, divisor) => {
                let (value, by) = (value.eval(extents)?, divisor.eval(extents)?);
                match by {
                    0 => Err(DimError::DivisionByZero(Dim::atom(self.clone()).to_string())),
                    _ => Ok(floor_quotient(value, by)),
                }
            }
            Self::Min(a, b) => Ok(a.eval(extents)?.min(b.eval(extents)?)),
            Self::Max(a, b) => Ok(a.eval(extents)?.max(b.eval(extents)?)),
        }
    }

    fn bounds(&self) -> (i64, i64) {
        match self {
            Self::Symbol(symbol) => symbol.bounds(),
            Self::Quotient(value, divisor) => {
                let ((low, high), (least, most)) = (value.bounds(), divisor.bounds());
                if least < 1 {
                    return (low.min(0).min(high.saturating_neg()), high.max(0).max(low.saturating_neg()));
                }
                let corners = [(low, least), (low, most), (high, least), (high, most)];
                let corners = corners.map(|(value, divisor)| floor_quotient(value, divisor));
                corners.into_iter().fold((i64::MAX, i64::MIN), |(low, high), value| (low.min(value), high.max(value)))
            }
            Self::Min(a, b) => {
                let (a, b) = (a.bounds(), b.bounds());
                (a.0.min(b.0), a.1.min(b.1))
            }
            Self::Max(a, b) => {
                let (a, b) = (a.bounds(), b.bounds());
                (a.0.max(b.0), a.1.max(b.1))
            }
        }
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        let mut dim = Self { terms: BTreeMap::new() };
        dim.add_term(Vec::new(), value);
        dim
    }
}

impl From<usize> for Dim {
    fn from(value: usize) -> Self {
        Self::from(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<i32> for Dim {
    fn from(value: i32) -> Self {
        Self::from(i64::from(value))
    }
}

impl From<Symbol> for Dim {
    fn from(symbol: Symbol) -> Self {
        Self::from(&symbol)
    }
}

impl From<&Symbol> for Dim {
    fn from(symbol: &Symbol) -> Self {
        if symbol.0.min == symbol.0.max {
            return Self::from(symbol.0.min);
        }
        Self::atom(Atom::Symbol(symbol.clone()))
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

impl<T: Into<Dim>> Add<T> for Dim {
    type Output = Self;
    fn add(mut self, other: T) -> Self {
        for (atoms, factor) in other.into().terms {
            self.add_term(atoms, factor);
        }
        self
    }
}

impl<T: Into<Dim>> Sub<T> for Dim {
    type Output = Self;
    fn sub(mut self, other: T) -> Self {
        for (atoms, factor) in other.into().terms {
            self.add_term(atoms, factor.saturating_neg());
        }
        self
    }
}

impl<T: Into<Dim>> Mul<T> for Dim {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        let other = other.into();
        let mut product = Self::from(0i64);
        for (atoms, factor) in &self.terms {
            for (more, by) in &other.terms {
                let mut all = [atoms.as_slice(), more.as_slice()].concat();
                all.sort();
                product.add_term(all, factor.saturating_mul(*by));
            }
        }
        product
    }
}

impl std::iter::Product for Dim {
    fn product<I: Iterator<Item = Self>>(dims: I) -> Self {
        dims.fold(Self::from(1i64), |product, dim| product * dim)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // Products before the constant, as people write it.
        for (position, (atoms, factor)) in self.terms.iter().rev().enumerate() {
            match (position, *factor < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            let size = factor.unsigned_abs();
            if atoms.is_empty() || size != 1 {
                write!(f, "{size}")?;
            }
            for (position, atom) in atoms.iter().enumerate() {
                if position > 0 || size != 1 {
                    f.write_str(" * ")?;
                }
                match atom {
                    Atom::Symbol(symbol) => f.write_str(symbol.name())?,
                    Atom::Quotient(a, b) => write!(f, "(({a}) / ({b}))")?,
                    Atom::Min(a, b) => write!(f, "min({a}, {b})")?,
                    Atom::Max(a, b) => write!(f, "max({a}, {b})")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, min: i64, max: i64) -> Dim {
        Dim::from(Symbol::new(name, min, max).expect("bounds are in order"))
    }

    #[test]
    fn equal_expressions_are_equal() {
        let (a, b) = (symbol("a", 1, 8), symbol("b", 0, 4));
        assert_eq!((a.clone() + b.clone()) * 2, b.clone() * 2 + a.clone() * 2);
        assert_eq!(a.clone() * b.clone() - b.clone() * a.clone(), Dim::from(0));
        assert_eq!((a.clone() * b.clone()).quotient(&a), b);
        assert_eq!((a.clone() * 6).quotient(&Dim::from(3)), a.clone() * 2);
        assert_eq!(a.minimum(&b), b.minimum(&a));
        assert_eq!(a.maximum(&Dim::from(9)), Dim::from(9));
    }

    #[test]
    fn bounds_hold_for_all_values() {
        let (a, b) = (symbol("a", 1, 8), symbol("b", 0, 4));
        let dims = [
            a.clone() * b.clone() - b.clone(),
            (a.clone() + 3).quotient(&Dim::from(4)),
            a.quotient_up(3),
            a.minimum(&b) + a.maximum(&b),
            (b.clone() + 7).remainder(&a),
        ];
        for dim in &dims {
            let (low, high) = dim.bounds();
            for x in 1..=8 {
                for y in 0..=4 {
                    let mut extents = Extents::new();
                    a.for_each_symbol(&mut |s| extents.set(s, x).expect("within bounds"));
                    b.for_each_symbol(&mut |s| extents.set(s, y).expect("within bounds"));
                    let value = dim.eval(&extents).expect("all symbols have values");
                    assert!((low..=high).contains(&value), "{dim} = {value} not in {low}..={high}");
                }
            }
        }
    }

    #[test]
    fn values_outside_bounds_are_errors() {
        let s = Symbol::with_multiple("s", 0, 64, 8).expect("bounds are in order");
        assert!(Extents::new().set(&s, 12).is_err());
        assert!(Extents::new().set(&s, 72).is_err());
        assert!(Symbol::new("t", 5, 4).is_err());
        assert_eq!(Extents::with([(&s, 8), (&s, 16)]).map(|extents| extents.get(&s)), Ok(Some(16)));
        assert!(matches!(Extents::with([(&s, 8), (&s, 12)]), Err(DimError::OutOfBounds { value: 12, .. })));
        assert_eq!(Extents::with([]), Ok(Extents::new()));
        assert_eq!(Dim::from(&s).eval(&Extents::new()), Err(DimError::Unbound { name: "s".into(), min: 0, max: 64 }));
    }

    #[test]
    fn quotients_are_rounded_down() {
        for value in -9..=9 {
            for divisor in (-4..=4).filter(|divisor| *divisor != 0) {
                let wanted = (value as f64 / divisor as f64).floor() as i64;
                assert_eq!(Dim::from(value).quotient(&Dim::from(divisor)), Dim::from(wanted), "{value} / {divisor}");
            }
        }
        assert_eq!(Dim::from(i64::MIN).quotient(&Dim::from(-1)), Dim::from(i64::MAX));
        let b = symbol("b", 0, 4);
        assert_eq!(Dim::from(i64::MIN).quotient(&b).bounds(), (i64::MIN, i64::MAX));
    }

    #[test]
    fn reads_as_people_write() {
        let a = symbol("a", 1, 8);
        assert_eq!((a.clone() * a.clone() - a.clone() * 2 + 1).to_string(), "a * a - 2 * a + 1");
        assert_eq!(Dim::from(0).to_string(), "0");
    }
}
