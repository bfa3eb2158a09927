//! Arithmetic, rounding and bits.

use trefoil_codegen::ir::{BinaryOperator, MathFunction as M};

use crate::ops::map::functions::functions;
use crate::ops::map::term::Term;
use crate::ops::real;

/// The IR's `min` and `max` prefer the number to the NaN; NumPy's, which ops follow, prefer the NaN.
fn extreme<'s>(function: M, a: Term<'s>, b: Term<'s>) -> Term<'s> {
    let number = a.math_with(function, [b]);
    if !a.is_float() {
        return number;
    }
    a.math(M::IsNan).select(a, b.math(M::IsNan).select(b, number))
}

/// Between two bounds; a NaN stays.
pub(super) fn between(x: Term<'_>, low: f64, high: f64) -> Term<'_> {
    x.math_with(M::Clamp, [x.number(low), x.number(high)])
}

functions! {
    /// Arithmetic, element by element; several tensors are broadcast to each other.
    impl Graph;

    /// `-x`; integers wrap.
    neg(x: Signed) {
        body: -x,
        reference: -x,
        integers(_bits): -x,
    }

    /// The absolute value; integers wrap.
    abs(x: Signed) {
        body: x.math(M::Abs),
        reference: x.abs(),
        integers(_bits): x.abs(),
    }

    /// 1, 0 or -1 with the sign of x; a zero or a NaN is itself.
    sign(x: Signed) {
        body: x.above(0.0).select(1.0, x.below(0.0).select(-1.0, x)),
        reference: if x == 0.0 || x.is_nan() { x } else { x.signum() },
    }

    /// `x * x`; integers wrap.
    sqr(x: Numbers) {
        body: x * x,
        reference: x * x,
        integers(_bits): x.wrapping_mul(x),
    }

    /// `1 / x`
    recip(x: Floats) {
        body: 1.0 / x,
        reference: 1.0 / x,
    }

    /// `x * factor + offset`; integers wrap.
    affine(x: Numbers; factor: Finite = [2.0, 3.0], offset: Finite = [1.0, 5.0]) {
        body: x * factor + offset,
        reference: x * factor + offset,
        integers(_bits): x.wrapping_mul(factor).wrapping_add(offset),
    }

    /// `low` below `low`, `high` above `high`, else x; NaN for NaN.
    clamp(x: Numbers; low: Number = [1.0, 2.0], high: NotBelowLast = [3.0, 5.0]) {
        body: between(x, low, high),
        reference: if x < low { low } else if x > high { high } else { x },
    }

    /// The nearest integer, ties to even.
    round(x: Floats) {
        body: x.math(M::RoundTiesEven),
        reference: real::round_ties_even(x),
    }

    /// The largest integer not above.
    floor(x: Floats) {
        body: x.math(M::Floor),
        reference: x.floor(),
    }

    /// The smallest integer not below.
    ceil(x: Floats) {
        body: x.math(M::Ceil),
        reference: x.ceil(),
    }

    /// The integer part.
    trunc(x: Floats) {
        body: x.math(M::Trunc),
        reference: x.trunc(),
    }

    /// `a + b`; integers wrap.
    add(a, b: Numbers) {
        body: a + b,
        reference: a + b,
        integers(_bits): a + b,
    }

    /// `a - b`; integers wrap.
    sub(a, b: Numbers) {
        body: a - b,
        reference: a - b,
        integers(_bits): a - b,
    }

    /// `a * b`; integers wrap.
    mul(a, b: Numbers) {
        body: a * b,
        reference: a * b,
        integers(_bits): a.wrapping_mul(b),
    }

    /// `a / b`; of integers toward zero, and 0 where b is 0.
    div(a, b: Numbers) {
        body: a / b,
        reference: a / b,
        integers(_bits): if b == 0 { 0 } else { a / b },
    }

    /// The remainder of `a / b` with the sign of a; of integers 0 where b is 0, and of floats on GPUs any such number below b in size where the quotient is above 2^22.
    rem(a, b: Numbers) {
        body: a % b,
        reference: a % b,
        integers(_bits): if b == 0 { 0 } else { a % b },
    }

    /// The smaller; NaN if one is NaN.
    minimum(a, b: Numbers) {
        body: extreme(M::Min, a, b),
        reference: if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) },
    }

    /// The larger; NaN if one is NaN.
    maximum(a, b: Numbers) {
        body: extreme(M::Max, a, b),
        reference: if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) },
    }

    /// `a * b + c`, rounded once where the device does that.
    fma(a, b, c: Floats) {
        body: a.math_with(M::MulAdd, [b, c]),
        reference: a * b + c,
    }

    /// The bits of x, each the other way.
    bit_not(x: Integers) {
        body: !x,
        integers(_bits): !x,
    }

    /// The bits that a and b both have.
    bit_and(a, b: Integers) {
        body: a & b,
        integers(_bits): a & b,
    }

    /// The bits that a or b has.
    bit_or(a, b: Integers) {
        body: a | b,
        integers(_bits): a | b,
    }

    /// The bits in which a and b differ.
    bit_xor(a, b: Integers) {
        body: a ^ b,
        integers(_bits): a ^ b,
    }

    /// The bits of a moved up by b, which counts modulo the width of the type.
    shl(a, b: Integers) {
        body: a.shifted(BinaryOperator::ShiftLeft, b),
        integers(bits): a << b.rem_euclid(i128::from(bits)),
    }

    /// The bits of a moved down by b, which counts modulo the width of the type; from above comes the sign, or 0.
    shr(a, b: Integers) {
        body: a.shifted(BinaryOperator::ShiftRight, b),
        integers(bits): a >> b.rem_euclid(i128::from(bits)),
    }
}
