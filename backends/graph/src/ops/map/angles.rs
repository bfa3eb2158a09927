//! Sine, cosine and tangent of radians, to a few units in the last place up to 10,000: drivers of Vulkan compute theirs to an absolute error, which is as large as the result near its zeros.
//!
//! The angle is brought to an eighth of a turn around zero by quarter turns, which are subtracted in four parts: the first three have so few bits that their multiples
//! are exact. There the functions are polynomials, fitted to the least relative error. Farther out the device's own function serves, whatever it is worth there.

use trefoil_codegen::ir::{BinaryOperator, MathFunction as M};

use super::term::Term;

/// A quarter turn, of which three parts have 11 bits.
const QUARTER: [f64; 4] = [1.570_312_5, 4.837_512_969_970_703e-4, 7.549_533_620_476_723e-8, 2.563_344_068_257_09e-12];
/// Multiples of the parts are exact up to here.
const FAR: f64 = 1e4;
/// `(sin(r) / r - 1) / r^2` by powers of `r^2`.
const SINE: [f64; 4] = [-0.166_666_67, 0.008_333_329, -1.983_933_5e-4, 2.718_304_1e-6];
/// `(cos(r) - 1 + r^2 / 2) / r^4` by powers of `r^2`.
const COSINE: [f64; 3] = [0.041_666_646, -0.001_388_736_7, 2.443_837_7e-5];

/// An angle within an eighth of a turn, and what turns it back.
struct Reduced<'s> {
    sine: Term<'s>,
    cosine: Term<'s>,
    /// Whether the quarter turns taken away are odd.
    is_odd: Term<'s>,
    /// Quarter turns beyond whole turns.
    quarters: Term<'s>,
    is_far: Term<'s>,
}

fn polynomial<'s>(z: Term<'s>, coefficients: &[f64]) -> Term<'s> {
    let (last, rest) = coefficients.split_last().unwrap_or((&0.0, &[]));
    rest.iter().rev().fold(z.number(*last), |sum, coefficient| sum * z + *coefficient)
}

fn reduced(x: Term<'_>) -> Reduced<'_> {
    let count = (x * std::f64::consts::FRAC_2_PI).math(M::RoundTiesEven);
    let rest = QUARTER.iter().fold(x, |rest, part| rest - count * *part);
    let square = rest * rest;
    let sine = rest + rest * (square * polynomial(square, &SINE));
    let cosine = (1.0 - square * 0.5) + (square * square) * polynomial(square, &COSINE);
    let quarters = count - 4.0 * (count * 0.25).math(M::Floor);
    let is_odd = quarters.binary(BinaryOperator::Equal, 1.0) | quarters.binary(BinaryOperator::Equal, 3.0);
    Reduced { sine, cosine, is_odd, quarters, is_far: x.math(M::Abs).above(FAR) }
}

/// The sine of radians.
pub(super) fn sine(x: Term<'_>) -> Term<'_> {
    let Reduced { sine, cosine, is_odd, quarters, is_far } = reduced(x);
    let value = is_odd.select(cosine, sine);
    let value = quarters.above(1.5).select(-value, value);
    is_far.select(x.math(M::Sin), value)
}

/// The cosine of radians.
pub(super) fn cosine(x: Term<'_>) -> Term<'_> {
    let Reduced { sine, cosine, is_odd, quarters, is_far } = reduced(x);
    let value = is_odd.select(sine, cosine);
    let is_negative = quarters.binary(BinaryOperator::Equal, 1.0) | quarters.binary(BinaryOperator::Equal, 2.0);
    let value = is_negative.select(-value, value);
    is_far.select(x.math(M::Cos), value)
}

/// The tangent of radians.
pub(super) fn tangent(x: Term<'_>) -> Term<'_> {
    let Reduced { sine, cosine, is_odd, is_far, .. } = reduced(x);
    let (above, below) = (is_odd.select(-cosine, sine), is_odd.select(sine, cosine));
    is_far.select(x.math(M::Tan), above / below)
}
