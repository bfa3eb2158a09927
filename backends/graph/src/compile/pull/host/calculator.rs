//! Coordinates, conditions and elements as the processor has them: at several positions at once.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Not, Sub};

use super::coordinates::Whole;
use super::lanes::Lanes::{self, Each, Same};
use super::{Position, whole};
use crate::data::one_to_f64;
use crate::ops::real;
use crate::pull::{Calculator, Function, Machine, Number, Truth};
use crate::types::ElementType;

/// A condition.
#[derive(Clone, Copy, Debug)]
pub struct Holds(pub Lanes<bool>);

/// An element.
#[derive(Clone, Copy, Debug)]
pub struct Element<N>(pub Lanes<N>);

/// Positions at which elements are computed as `N`.
pub struct Calculation<'r, N> {
    position: &'r Position<'r>,
    number: std::marker::PhantomData<N>,
}

impl<'r, N> Calculation<'r, N> {
    pub(super) fn new(position: &'r Position<'r>) -> Self {
        Self { position, number: std::marker::PhantomData }
    }

    /// What elements are computed as.
    fn element(&self) -> ElementType {
        self.position.plan.computes_in.unwrap_or(self.position.plan.element)
    }
}

impl Truth for Holds {}
impl<N: Plain> Number for Element<N> {}

/// A number of the processor.
pub trait Plain: Copy + PartialOrd {
    /// From an element in memory; 0 of no bytes.
    fn load(element: ElementType, bytes: &[u8]) -> Self;
    /// The nearest.
    fn of(value: f64) -> Self;
    /// Of a coordinate.
    fn of_whole(value: i64) -> Self;
    /// The largest integer not above.
    fn floor(self) -> i64;
    /// Whether it is less than another, as elements of that type.
    fn below(self, other: Self, element: ElementType) -> bool;
    /// A function of floats, or the absolute value.
    fn math(self, function: Function, with: Self) -> Self;
    /// `a + b`
    fn add(self, other: Self) -> Self;
    /// `a - b`
    fn sub(self, other: Self) -> Self;
    /// `a * b`
    fn mul(self, other: Self) -> Self;
    /// `a / b`; of integers as the IR has it.
    fn div(self, other: Self) -> Self;
}

impl Plain for f64 {
    fn load(element: ElementType, bytes: &[u8]) -> Self {
        one_to_f64(element, bytes).unwrap_or(0.0)
    }

    fn of(value: f64) -> Self {
        value
    }

    fn of_whole(value: i64) -> Self {
        value as Self
    }

    fn floor(self) -> i64 {
        Self::floor(self) as i64
    }

    fn below(self, other: Self, _: ElementType) -> bool {
        self < other
    }

    fn math(self, function: Function, with: Self) -> Self {
        match function {
            Function::Abs => self.abs(),
            Function::Sqrt => self.sqrt(),
            Function::Round => self.round_ties_even(),
            Function::Pow => self.powf(with),
            Function::Exp => self.exp(),
            Function::Tanh => self.tanh(),
            Function::Erf => real::erf(self),
        }
    }

    fn add(self, other: Self) -> Self {
        self + other
    }

    fn sub(self, other: Self) -> Self {
        self - other
    }

    fn mul(self, other: Self) -> Self {
        self * other
    }

    fn div(self, other: Self) -> Self {
        self / other
    }
}

impl Plain for i64 {
    fn load(element: ElementType, bytes: &[u8]) -> Self {
        whole(element, bytes)
    }

    fn of(value: f64) -> Self {
        value as Self
    }

    fn of_whole(value: i64) -> Self {
        value
    }

    fn floor(self) -> i64 {
        self
    }

    fn below(self, other: Self, element: ElementType) -> bool {
        if element == ElementType::U64 { self.cast_unsigned() < other.cast_unsigned() } else { self < other }
    }

    fn math(self, function: Function, _: Self) -> Self {
        if function == Function::Abs { self.wrapping_abs() } else { self }
    }

    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn sub(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    fn div(self, other: Self) -> Self {
        // Coordinates are far shorter than their type; the processor divides short numbers in half the time.
        match (u32::try_from(self), u32::try_from(other)) {
            (Ok(of), Ok(by)) => i64::from(of.checked_div(by).unwrap_or(0)),
            _ => self.checked_div(other).unwrap_or(0),
        }
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident;)*) => {$(
        impl<N: Plain> $trait for Element<N> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.zip(other.0, Plain::$method))
            }
        }
    )*};
}

arithmetic! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl Not for Holds {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|holds| !holds))
    }
}

impl BitAnd for Holds {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0.zip(other.0, |a, b| a & b))
    }
}

impl BitOr for Holds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0.zip(other.0, |a, b| a | b))
    }
}

impl<N: Plain> Machine for &Calculation<'_, N> {
    type Index = Whole;
    type Truth = Holds;
    type Value = Element<N>;

    fn constant(self, value: i32) -> Whole {
        Whole::of(i64::from(value))
    }

    fn index(self, input: usize, at: &[Whole]) -> Whole {
        self.position.index_of(input, at)
    }

    fn read(self, input: usize, at: &[Whole]) -> Element<N> {
        Element(self.position.load(input, at, N::load))
    }

    fn bits(self, bits: u64) -> Element<N> {
        let element = self.element();
        let size = element.bytes() as usize;
        Element(Same(N::load(element, &bits.to_le_bytes()[..size])))
    }

    fn choose(
        self,
        condition: Holds,
        accept: impl FnOnce() -> Element<N>,
        reject: impl FnOnce() -> Element<N>,
    ) -> Element<N> {
        // At a position that does not want it a read may be out of range, and gives 0.
        condition.0.choose(accept, reject, |holds, accept, reject| Element(Lanes::mixed(holds, accept.0, reject.0)))
    }

    fn select(self, condition: Holds, accept: Whole, reject: Whole) -> Whole {
        Whole::select(condition, accept, reject)
    }

    fn less(self, left: Whole, right: Whole) -> Holds {
        Whole::less(left, right)
    }

    fn equal(self, left: Whole, right: Whole) -> Holds {
        Whole::equal(left, right)
    }
}

impl<N: Plain> Calculator for &Calculation<'_, N> {
    fn value(self, value: f64) -> Element<N> {
        Element(Same(N::of(value)))
    }

    fn lowest(self) -> Element<N> {
        let scalar = self.element().scalar();
        if scalar.is_integer() { self.bits(scalar.limits()[0] as u64) } else { self.value(f64::NEG_INFINITY) }
    }

    fn highest(self) -> Element<N> {
        let scalar = self.element().scalar();
        if scalar.is_integer() { self.bits(scalar.limits()[1] as u64) } else { self.value(f64::INFINITY) }
    }

    fn real(self, position: usize) -> Element<N> {
        self.value(self.position.plan.reals[position])
    }

    fn of_index(self, index: Whole) -> Element<N> {
        Element(index.lanes().map(N::of_whole))
    }

    fn floor(self, value: Element<N>) -> Whole {
        Whole::from_lanes(value.0.map(N::floor))
    }

    fn below(self, left: Element<N>, right: Element<N>) -> Holds {
        let element = self.element();
        Holds(left.0.zip(right.0, |left, right| left.below(right, element)))
    }

    fn is_nan(self, value: Element<N>) -> Holds {
        #[expect(clippy::eq_op, reason = "of a NaN it does not hold")]
        let is_nan = |value: N| value != value;
        Holds(value.0.map(is_nan))
    }

    fn pick(self, condition: Holds, accept: Element<N>, reject: Element<N>) -> Element<N> {
        Element(condition.0.pick(accept.0, reject.0))
    }

    fn math(self, function: Function, of: Element<N>, with: Element<N>) -> Element<N> {
        Element(of.0.zip(with.0, |of, with| of.math(function, with)))
    }

    fn repeat<const V: usize, const I: usize>(
        self,
        count: Whole,
        mut values: [Element<N>; V],
        mut indices: [Whole; I],
        mut step: impl FnMut(Whole, [Element<N>; V], [Whole; I]) -> ([Element<N>; V], [Whole; I]),
    ) -> ([Element<N>; V], [Whole; I]) {
        let counts = count.lanes();
        let most = match counts {
            Same(count) => count,
            Each(counts) => counts.into_iter().fold(0, i64::max),
        };
        for at in 0..most {
            // Positions that have done all of theirs keep what they have.
            let goes_on = Holds(counts.map(|count| at < count));
            let (new_values, new_indices) = step(Whole::of(at), values, indices);
            values = std::array::from_fn(|value| self.pick(goes_on, new_values[value], values[value]));
            indices = std::array::from_fn(|index| Whole::select(goes_on, new_indices[index], indices[index]));
        }
        (values, indices)
    }
}
