//! Coordinates, conditions and elements as the processor has them.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Not, Rem, Sub};

use super::{Position, whole};
use crate::data::to_f64;
use crate::ops::real;
use crate::pull::{Calculator, Function, Index, Machine, Number, Truth};
use crate::types::ElementType;

/// A coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub i64);

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds(pub bool);

/// An element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element<N>(pub N);

/// A position at which elements are computed as `N`.
pub struct Calculation<'r, N> {
    position: &'r Position<'r>,
    number: std::marker::PhantomData<N>,
}

impl<'r, N> Calculation<'r, N> {
    pub(super) fn new(position: &'r Position<'r>) -> Self {
        Self { position, number: std::marker::PhantomData }
    }
}

impl Index for Whole {}
impl Truth for Holds {}
impl<N: Plain> Number for Element<N> {}

/// A number of the processor.
pub trait Plain: Copy + PartialOrd {
    /// From an element in memory.
    fn load(element: ElementType, bytes: &[u8]) -> Self;
    /// The nearest.
    fn of(value: f64) -> Self;
    /// Of a coordinate.
    fn of_whole(value: i64) -> Self;
    /// The largest integer not above.
    fn floor(self) -> i64;
    /// A function of floats, or the absolute value.
    fn math(self, function: Function, with: Self) -> Self;
    /// `+ - * /`, of integers as the IR has them.
    fn calculate(self, operator: char, other: Self) -> Self;
}

impl Plain for f64 {
    fn load(element: ElementType, bytes: &[u8]) -> Self {
        to_f64(element, bytes).first().copied().unwrap_or(0.0)
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

    fn calculate(self, operator: char, other: Self) -> Self {
        match operator {
            '+' => self + other,
            '-' => self - other,
            '*' => self * other,
            _ => self / other,
        }
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

    fn math(self, function: Function, _: Self) -> Self {
        if function == Function::Abs { self.wrapping_abs() } else { self }
    }

    fn calculate(self, operator: char, other: Self) -> Self {
        match operator {
            '+' => self.wrapping_add(other),
            '-' => self.wrapping_sub(other),
            '*' => self.wrapping_mul(other),
            _ => self.checked_div(other).unwrap_or(0),
        }
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $sign:literal;)*) => {$(
        impl $trait for Whole {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.calculate($sign, other.0))
            }
        }

        impl<N: Plain> $trait for Element<N> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.calculate($sign, other.0))
            }
        }
    )*};
}

arithmetic! {
    Add add '+';
    Sub sub '-';
    Mul mul '*';
    Div div '/';
}

impl Rem for Whole {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        Self(self.0.checked_rem(other.0).unwrap_or(0))
    }
}

impl Not for Holds {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl BitAnd for Holds {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Holds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl<N: Plain> Machine for &Calculation<'_, N> {
    type Index = Whole;
    type Truth = Holds;
    type Value = Element<N>;

    fn constant(self, value: i32) -> Whole {
        Whole(i64::from(value))
    }

    fn index(self, input: usize, at: &[Whole]) -> Whole {
        self.position.index_of(input, at)
    }

    fn read(self, input: usize, at: &[Whole]) -> Element<N> {
        let (bytes, element) = self.position.element(input, at);
        Element(N::load(element, bytes))
    }

    fn bits(self, bits: u64) -> Element<N> {
        let element = self.position.plan.computes_in.unwrap_or(self.position.plan.element);
        let size = element.bytes() as usize;
        Element(N::load(element, &bits.to_le_bytes()[..size]))
    }

    fn choose(
        self,
        condition: Holds,
        accept: impl FnOnce() -> Element<N>,
        reject: impl FnOnce() -> Element<N>,
    ) -> Element<N> {
        if condition.0 { accept() } else { reject() }
    }

    fn select(self, condition: Holds, accept: Whole, reject: Whole) -> Whole {
        if condition.0 { accept } else { reject }
    }

    fn less(self, left: Whole, right: Whole) -> Holds {
        Holds(left.0 < right.0)
    }

    fn equal(self, left: Whole, right: Whole) -> Holds {
        Holds(left.0 == right.0)
    }
}

impl<N: Plain> Calculator for &Calculation<'_, N> {
    fn value(self, value: f64) -> Element<N> {
        Element(N::of(value))
    }

    fn lowest(self) -> Element<N> {
        Element(N::of(f64::NEG_INFINITY))
    }

    fn highest(self) -> Element<N> {
        Element(N::of(f64::INFINITY))
    }

    fn real(self, position: usize) -> Element<N> {
        Element(N::of(self.position.plan.reals[position]))
    }

    fn of_index(self, index: Whole) -> Element<N> {
        Element(N::of_whole(index.0))
    }

    fn floor(self, value: Element<N>) -> Whole {
        Whole(value.0.floor())
    }

    fn below(self, left: Element<N>, right: Element<N>) -> Holds {
        Holds(left.0 < right.0)
    }

    #[expect(clippy::eq_op, reason = "of a NaN it does not hold")]
    fn is_nan(self, value: Element<N>) -> Holds {
        Holds(value.0 != value.0)
    }

    fn pick(self, condition: Holds, accept: Element<N>, reject: Element<N>) -> Element<N> {
        if condition.0 { accept } else { reject }
    }

    fn math(self, function: Function, of: Element<N>, with: Element<N>) -> Element<N> {
        Element(of.0.math(function, with.0))
    }

    fn repeat<const V: usize, const I: usize>(
        self,
        count: Whole,
        mut values: [Element<N>; V],
        mut indices: [Whole; I],
        mut step: impl FnMut(Whole, [Element<N>; V], [Whole; I]) -> ([Element<N>; V], [Whole; I]),
    ) -> ([Element<N>; V], [Whole; I]) {
        for at in 0..count.0 {
            (values, indices) = step(Whole(at), values, indices);
        }
        (values, indices)
    }
}
