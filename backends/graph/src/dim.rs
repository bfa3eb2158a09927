//! Dimensions: integer expressions over named symbols, in canonical form.
//!
//! A dimension is a polynomial whose atoms are symbols and, where a polynomial cannot say it, a rounded-down quotient, a minimum or a
//! maximum of two dimensions. Equal expressions are equal values, so shapes are compared with `==`. Symbols have bounds, from which every
//! dimension has bounds: plans are made for the upper one.
//!
//! A symbol that is always a multiple of a number stands in the polynomial as how many times that number it is, so that a quotient that
//! is exact is a polynomial too: of `n` in multiples of 8, `n / 2` is four of these, and twice that is `n` again.

mod error;
mod extents;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
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

/// An integer expression over symbols. Dimensions and symbols, owned and borrowed, and numbers are added, subtracted and multiplied with each other; what comes out is a dimension.
///
/// ```
/// use trefoil_graph::{Dim, DimError, Symbol};
/// let batch = Symbol::new("batch", 1, 32)?;
/// let rows: Dim = &batch * 128;
/// assert_eq!(&rows + 0, 128 * &batch);
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
    /// A symbol over what it is always a multiple of.
    Units(Symbol),
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
            Some((atoms, factor)) if self.terms.len() == 1 => match atoms.as_slice() {
                [Atom::Units(symbol)] if *factor == symbol.0.multiple_of => Some(symbol),
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
            (_, Some(divisor)) if self.divides_evenly(divisor) => {
                let terms = self.terms.iter().map(|(atoms, factor)| (atoms.clone(), factor / divisor)).collect();
                return Self { terms };
            }
            _ if self == divisor && self.bounds().0 > 0 => return Self::from(1),
            _ => {
                if let Some(exact) = self.cancel(divisor) {
                    return exact;
                }
            }
        }
        Self::atom(Atom::Quotient(Box::new(self.clone()), Box::new(divisor.clone())))
    }

    /// `self / divisor`, rounded up, for a positive divisor.
    #[must_use]
    pub fn quotient_up(&self, divisor: i64) -> Self {
        if self.divides_evenly(divisor) {
            return self.quotient(&Self::from(divisor));
        }
        // With what is added below, the largest numbers would be more than there are.
        if let (Some(value), 2..) = (self.constant(), divisor) {
            return Self::from(floor_quotient(value, divisor) + 1);
        }
        (self.clone() + divisor.saturating_sub(1)).quotient(&Self::from(divisor))
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

    /// The smaller of both. It bounds an extent that a symbol's range would let grow past an axis: ops take what fits at every value of the symbols, whatever values the runs will give.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph, Symbol};
    /// let (at, n) = (Symbol::new("at", 0, 63)?, Symbol::new("n", 1, 16)?);
    /// let mut g = Graph::new();
    /// let cache = g.state("cache", ElementType::F32, [64, 4])?;
    /// let filled = Dim::from(&at) + Dim::from(&n);
    /// assert!(g.narrow(cache, 0, 0, filled.clone()).is_err(), "63 + 16 positions are more than 64");
    /// let rows = g.narrow(cache, 0, 0, filled.minimum(&Dim::from(64)))?;
    /// assert_eq!(g.type_of(rows)?.shape[0].bounds(), (1, 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        divisor > 0 && self.terms.values().all(|factor| factor % divisor == 0)
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
        let (low, high) = self.bounds_of_terms();
        let Some((least, most)) = self.bounds_by_dividends() else { return (low, high) };
        let both = (low.max(least), high.min(most));
        // Where numbers saturate, nothing may be left.
        if both.0 <= both.1 { both } else { (low, high) }
    }

    /// Bounds from those of each term by itself.
    fn bounds_of_terms(&self) -> (i64, i64) {
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

    /// Bounds with `d * (v / d)` taken for `v` less a remainder of 0 to `d - 1`, so that it is less than `v`, which other terms may hold, by no more than that; `None` where no term has such a quotient.
    fn bounds_by_dividends(&self) -> Option<(i64, i64)> {
        if !self.terms.iter().any(|(atoms, factor)| dividend(atoms, *factor).is_some()) {
            return None;
        }
        let mut whole = Self::from(0i64);
        let (mut low, mut high) = (0i64, 0i64);
        for (atoms, factor) in &self.terms {
            let Some((place, value, divisor)) = dividend(atoms, *factor) else {
                whole.add_term(atoms.clone(), *factor);
                continue;
            };
            let mut others = atoms.clone();
            others.remove(place);
            let others = Self { terms: BTreeMap::from([(others, factor / divisor)]) };
            let taken = multiply(others.bounds_of_terms(), (0, divisor - 1));
            low = low.saturating_sub(taken.1);
            high = high.saturating_sub(taken.0);
            whole = whole + others * value;
        }
        let (least, most) = whole.bounds();
        Some((least.saturating_add(low), most.saturating_add(high)))
    }

    /// Calls `visit` for every symbol, some more than once.
    pub fn for_each_symbol(&self, visit: &mut impl FnMut(&Symbol)) {
        for atom in self.terms.keys().flatten() {
            match atom {
                Atom::Units(symbol) => visit(symbol),
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

/// The first of some atoms that is a quotient by a number of which `factor` is a multiple: its place, its dividend and that number.
fn dividend(atoms: &[Atom], factor: i64) -> Option<(usize, &Dim, i64)> {
    atoms.iter().enumerate().find_map(|(place, atom)| match atom {
        Atom::Quotient(value, divisor) => {
            let divisor = divisor.constant().filter(|divisor| *divisor > 1 && factor % divisor == 0)?;
            Some((place, &**value, divisor))
        }
        Atom::Units(_) | Atom::Min(..) | Atom::Max(..) => None,
    })
}

/// The largest number that divides both; the first is above 0.
const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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
            Self::Units(symbol) => {
                let value = extents.get(symbol).map(|value| value / symbol.0.multiple_of);
                value.map_or_else(|| Dim::atom(self.clone()), Dim::from)
            }
            Self::Quotient(value, divisor) => value.bound(extents).quotient(&divisor.bound(extents)),
            Self::Min(a, b) => a.bound(extents).minimum(&b.bound(extents)),
            Self::Max(a, b) => a.bound(extents).maximum(&b.bound(extents)),
        }
    }

    fn eval(&self, extents: &Extents) -> Result<i64, DimError> {
        match self {
            Self::Units(symbol) => {
                let value = extents.get(symbol).map(|value| value / symbol.0.multiple_of);
                value.ok_or_else(|| DimError::Unbound {
                    name: symbol.0.name.clone(),
                    min: symbol.0.min,
                    max: symbol.0.max,
                })
            }
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
            Self::Units(symbol) => (symbol.0.min / symbol.0.multiple_of, symbol.0.max / symbol.0.multiple_of),
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

impl From<u32> for Dim {
    fn from(value: u32) -> Self {
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
        Self { terms: BTreeMap::from([(vec![Atom::Units(symbol.clone())], symbol.0.multiple_of)]) }
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

/// The same with what becomes a dimension on the left. Of numbers `i64` alone is taken there, so that a literal's type is known.
macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        operators!(@left $operator $method: &Dim, Symbol, &Symbol);
        operators!(@right $operator $method: Dim, &Dim, Symbol, &Symbol);
    )*};
    (@left $operator:ident $method:ident: $($left:ty),*) => {$(
        impl<T: Into<Dim>> $operator<T> for $left {
            type Output = Dim;
            fn $method(self, other: T) -> Dim {
                Dim::from(self).$method(other)
            }
        }
    )*};
    (@right $operator:ident $method:ident: $($right:ty),*) => {$(
        impl $operator<$right> for i64 {
            type Output = Dim;
            fn $method(self, other: $right) -> Dim {
                Dim::from(self).$method(other)
            }
        }
    )*};
}

operators!(Add add, Sub sub, Mul mul);

impl Neg for Dim {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from(0i64) - self
    }
}

impl Neg for &Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        Dim::from(0i64) - self
    }
}

impl<T: Into<Dim>> std::iter::Sum<T> for Dim {
    fn sum<I: Iterator<Item = T>>(dims: I) -> Self {
        dims.fold(Self::from(0i64), |sum, dim| sum + dim)
    }
}

impl<T: Into<Dim>> std::iter::Product<T> for Dim {
    fn product<I: Iterator<Item = T>>(dims: I) -> Self {
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
            // A factor counts units of symbols: as people write it, it is one of the symbols, or a fraction.
            let units = atoms.iter().fold(1u64, |units, atom| match atom {
                Atom::Units(symbol) => units.saturating_mul(symbol.0.multiple_of.unsigned_abs()),
                Atom::Quotient(..) | Atom::Min(..) | Atom::Max(..) => units,
            });
            let common = common_divisor(units, factor.unsigned_abs());
            let (size, parts) = (factor.unsigned_abs() / common, units / common);
            if atoms.is_empty() || size != 1 {
                write!(f, "{size}")?;
            }
            for (position, atom) in atoms.iter().enumerate() {
                if position > 0 || size != 1 {
                    f.write_str(" * ")?;
                }
                match atom {
                    Atom::Units(symbol) => f.write_str(symbol.name())?,
                    Atom::Quotient(a, b) => write!(f, "(({a}) / ({b}))")?,
                    Atom::Min(a, b) => write!(f, "min({a}, {b})")?,
                    Atom::Max(a, b) => write!(f, "max({a}, {b})")?,
                }
            }
            if parts != 1 {
                write!(f, " / {parts}")?;
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
            (a.quotient_up(3) * 3 - a.clone()) * b.clone() - a.remainder(&Dim::from(4)),
            a.quotient_up(2) * b.quotient_up(3) * 6 - a.clone() * b.clone(),
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
    fn quotients_are_rounded_up() {
        for value in -9..=9 {
            for divisor in 1..=4 {
                let wanted = (value as f64 / divisor as f64).ceil() as i64;
                assert_eq!(Dim::from(value).quotient_up(divisor), Dim::from(wanted), "{value} / {divisor}");
            }
        }
        assert_eq!(Dim::from(i64::MAX).quotient_up(2), Dim::from(1i64 << 62));
        assert_eq!(Dim::from(i64::MIN).quotient_up(i64::MAX), Dim::from(-1));
        // Of other divisors nothing is promised but that nothing breaks.
        let b = symbol("b", 0, 4);
        for other in [i64::MIN, -1] {
            let _ = (b.quotient_up(other), Dim::from(5).quotient_up(other));
        }
        let mut extents = Extents::new();
        b.for_each_symbol(&mut |s| extents.set(s, 3).expect("within bounds"));
        for dim in [b, Dim::from(5)] {
            assert!(matches!(dim.quotient_up(0).eval(&extents), Err(DimError::DivisionByZero(_))));
        }
    }

    #[test]
    fn exact_quotients_multiply_back() {
        let n = Dim::from(Symbol::with_multiple("n", 0, 64, 2).expect("bounds are in order"));
        let m = Dim::from(Symbol::with_multiple("m", 8, 64, 8).expect("bounds are in order"));
        let (two, four) = (Dim::from(2), Dim::from(4));
        let half = n.quotient(&two);
        assert_eq!(half.clone() * 2, n);
        assert_eq!(half.clone() * 6, n.clone() * 3);
        assert_eq!(half.clone() + half.clone(), n);
        assert_eq!(n.clone() - half.clone(), half);
        assert_eq!(n.remainder(&two), Dim::from(0));
        assert_eq!(half.bounds(), (0, 32));
        assert_eq!((n.clone() * m.clone() * 3 + n.clone()).quotient(&two) * 2, n.clone() * m.clone() * 3 + n.clone());
        assert_eq!(m.quotient(&four) * n.clone(), (m.clone() * n.clone()).quotient(&four));
        assert_eq!(m.quotient(&four).quotient(&two) * 8, m);
        assert_eq!(n.quotient_up(2), half);
        assert!(n.divides_evenly(2) && m.divides_evenly(4) && (n.clone() * m.clone()).divides_evenly(16));
        assert!(!n.divides_evenly(4) && !half.divides_evenly(2) && !(n.clone() + 1).divides_evenly(2));
        assert_eq!(n.symbol().map(Symbol::name), Some("n"));
        assert_eq!((half.symbol(), (n.clone() * 2).symbol(), (half.clone() * 2).symbol()), (None, None, n.symbol()));
        let mut extents = Extents::new();
        n.for_each_symbol(&mut |s| extents.set(s, 6).expect("within bounds"));
        assert_eq!((n.eval(&extents), half.eval(&extents)), (Ok(6), Ok(3)));
        assert_eq!((n.bound(&extents), half.bound(&extents)), (Dim::from(6), Dim::from(3)));
        assert_eq!((m.bound(&extents), (m.clone() * half).bound(&extents)), (m.clone(), m * 3));
    }

    #[test]
    fn quotients_times_their_divisors_are_near_their_dividends() {
        let n = symbol("n", 1, 64);
        for divisor in [2i64, 4, 7] {
            let up = n.quotient_up(divisor) * divisor;
            assert_eq!((up.clone() - n.clone()).bounds(), (0, divisor - 1));
            assert_eq!((n.clone() - up.clone()).bounds(), (1 - divisor, 0));
            let (low, high) = up.bounds();
            assert!(low >= 1 && high < 64 + divisor, "{low}..={high}");
            assert_eq!(n.remainder(&Dim::from(divisor)).bounds(), (0, divisor - 1));
        }
        // Of what is rounded twice both remainders count.
        let twice = (n.quotient_up(2) + 1).quotient(&Dim::from(2)) * 4 - n.clone();
        assert_eq!(twice.bounds(), (0, 3));
        for value in 1..=64 {
            let mut extents = Extents::new();
            n.for_each_symbol(&mut |s| extents.set(s, value).expect("within bounds"));
            let value = twice.eval(&extents).expect("all symbols have values");
            assert!((0..=3).contains(&value), "{twice} = {value}");
        }
    }

    #[test]
    fn operators_take_what_becomes_a_dimension_on_either_side() {
        let symbol = Symbol::new("a", 1, 8).expect("bounds are in order");
        let a = Dim::from(&symbol);
        for less in [&a - 3, a.clone() - 3, &symbol - 3, symbol.clone() - 3] {
            assert_eq!(less.to_string(), "a - 3");
        }
        for more in [3 - &a, 3 - a.clone(), 3 - &symbol, 3 - symbol.clone(), -(&a - 3), -&(&symbol - 3)] {
            assert_eq!((more.to_string().as_str(), more.bounds()), ("-a + 3", (-5, 2)));
        }
        assert_eq!(&symbol * &symbol + 2 * &a + (&symbol + 1u32), &a * &a + 3 * &symbol + 1usize);
        let all = [&a, &a, &a];
        assert_eq!((all.into_iter().sum::<Dim>(), all.into_iter().product::<Dim>()), (3 * &a, &a * &a * &a));
        assert_eq!([2usize, 3, 4].into_iter().sum::<Dim>(), Dim::from(9));
    }

    #[test]
    fn reads_as_people_write() {
        let n = Dim::from(Symbol::with_multiple("n", 0, 64, 8).expect("bounds are in order"));
        assert_eq!(n.to_string(), "n");
        assert_eq!((n.clone() * 2 - 8).to_string(), "2 * n - 8");
        assert_eq!((n.quotient(&Dim::from(4)) * 3 + 1).to_string(), "3 * n / 4 + 1");
        assert_eq!((n.quotient(&Dim::from(16)) * 2).to_string(), "2 * ((n) / (16))");
        let a = symbol("a", 1, 8);
        assert_eq!((a.clone() * a.clone() - a.clone() * 2 + 1).to_string(), "a * a - 2 * a + 1");
        assert_eq!(Dim::from(0).to_string(), "0");
    }
}
