//! Tests and comparisons, which give bools, and logic.

use trefoil_codegen::ir::{BinaryOperator as O, MathFunction as M};

use crate::ops::map::functions::functions;

/// What references have for true and false.
fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

functions! {
    /// Tests, comparisons and logic, element by element; several tensors are broadcast to each other.
    impl Graph;

    /// Whether x is a NaN, by its bits.
    is_nan(x: Floats) -> Bool {
        body: x.math(M::IsNan),
        reference: truth(x.is_nan()),
    }

    /// Whether x is infinite, by its bits.
    is_inf(x: Floats) -> Bool {
        body: x.math(M::IsInfinite),
        reference: truth(x.is_infinite()),
    }

    /// `a == b`
    eq(a, b: All) -> Bool {
        body: a.equal(b),
        reference: truth(a == b),
    }

    /// `a != b`
    ne(a, b: All) -> Bool {
        body: a.binary(O::NotEqual, b),
        reference: truth(a != b),
    }

    /// `a < b`
    lt(a, b: Numbers) -> Bool {
        body: a.binary(O::Less, b),
        reference: truth(a < b),
    }

    /// `a <= b`
    le(a, b: Numbers) -> Bool {
        body: a.binary(O::LessEqual, b),
        reference: truth(a <= b),
    }

    /// `a > b`
    gt(a, b: Numbers) -> Bool {
        body: a.binary(O::Greater, b),
        reference: truth(a > b),
    }

    /// `a >= b`
    ge(a, b: Numbers) -> Bool {
        body: a.binary(O::GreaterEqual, b),
        reference: truth(a >= b),
    }

    /// `!x`
    logical_not(x: Bools) -> Bool {
        body: !x,
        reference: truth(x == 0.0),
    }

    /// `a && b`
    logical_and(a, b: Bools) -> Bool {
        body: a & b,
        reference: truth(a != 0.0 && b != 0.0),
    }

    /// `a || b`
    logical_or(a, b: Bools) -> Bool {
        body: a | b,
        reference: truth(a != 0.0 || b != 0.0),
    }

    /// `a != b`, of bools.
    logical_xor(a, b: Bools) -> Bool {
        body: a.binary(O::NotEqual, b),
        reference: truth(a != b),
    }
}
