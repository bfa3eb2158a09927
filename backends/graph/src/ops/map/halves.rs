//! Formulas for 16-bit floats, in fewer instructions than those of `f32`.
//!
//! Elements are computed in `f32` and rounded where they are written, so that what is wrong by 2^-16 of itself moves a result by a 32nd of a half's last place, and by a 256th of a `bf16`'s.
//! Exponentials and logarithms are the devices' own, powers of 2 and logarithms to base 2, of which the former may err by as much as their exponents are rounded and the latter by a fixed distance:
//! where a result is small beside what it is made of, a polynomial stands for it, fitted with its largest error relative to the result as small as it can be.
//!
//! A NaN fails every comparison, and gets to a polynomial, which keeps it.

use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, PI};

use trefoil_codegen::ir::{BinaryOperator, MathFunction as M};

use super::term::Term;

/// Of ln(1 + x) / x, up to 1/8.
const LN_1P: [f64; 5] = [1.000_000_01, -0.499_987_074, 0.333_314_819, -0.253_295_656, 0.203_301_555];

/// Of the logarithm to base 2 of the share of the normal distribution beyond x, from 0 on; off by 2^-17 near 0, by 2^-16 at 13 and by 1/5 at [`END_OF_TAIL`].
const LOG2_TAIL: [f64; 12] = [
    -0.999_992_45,
    -1.151_317_17,
    -0.458_224_003,
    -0.054_275_566_5,
    0.008_697_304,
    -0.000_984_420_987,
    6.671_232_47e-5,
    -9.669_533_69e-7,
    -2.683_868_28e-7,
    2.561_017_5e-8,
    -1.008_538_51e-9,
    1.554_778_98e-11,
];

/// Where the share of the normal distribution beyond x is 0 in `f32`, and so is what [`LOG2_TAIL`] makes of it.
pub(super) const END_OF_TAIL: f64 = 16.0;

/// Of the logarithm to base 2 of 1 - erf(x), from 3/4 to 4.
const LOG2_ERFC: [f64; 5] = [-0.006_902_084_13, -1.596_947_69, -0.972_503_78, -0.102_978_11, 0.010_909_447_9];

/// Of atan(x) / x in x * x, up to 1.
const ATAN: [f64; 6] =
    [0.999_995_629, -0.332_994_564, 0.195_635_678, -0.121_238_395, 0.057_476_549_8, -0.013_480_166_2];

/// Of asin(x) / x in x * x, up to 1/2.
const ASIN: [f64; 4] = [0.999_998_49, 0.166_852_197, 0.071_483_997_5, 0.065_067_575_8];

/// 1 / pi in parts of 13 bits, whose products with a half an `f32` holds, and what is left of it.
const HALF_TURNS: [f64; 3] = [0.318_298_339_843_75, 1.154_467_463_493_347_2e-5, 1.665_405_702_233_613_3e-9];

/// A number beside which an `f32` has sixteenths in its last four bits.
const BESIDE: f64 = 786_432.0;

/// From here on a number of half or quarter turns is no longer small beside [`BESIDE`]. Only a `bf16` is so large, with neighbours hundreds of turns away.
pub(super) const FAR_TURNED: f64 = 4e5;

/// Of sin(pi x) / x in x * x, a 32nd farther than up to 1/2.
const SIN: [f64; 4] = [3.141_587_74, -5.167_210_78, 2.541_771_25, -0.553_132_739];

/// Of tan(pi x / 2) / x in x * x, as far.
const TAN: [f64; 5] = [1.570_806_48, 1.290_156_64, 1.323_489_7, 0.826_350_781, 2.825_413_27];

/// Beyond this, `x * x` is `x * x + 1`, and as an `f32` may be infinite.
const FAR: f64 = 1e4;

/// The coefficients' polynomial, the constant first.
fn polynomial<'s>(x: Term<'s>, coefficients: &[f64]) -> Term<'s> {
    let (last, others) = coefficients.split_last().map_or((0.0, &[][..]), |(last, others)| (*last, others));
    others.iter().rev().fold(x.number(last), |sum, coefficient| x.math_with(M::MulAdd, [sum, x.number(*coefficient)]))
}

/// Half of e to the power of x.
fn half_exp(x: Term<'_>) -> Term<'_> {
    x.math_with(M::MulAdd, [x.number(LOG2_E), x.number(-1.0)]).math(M::Exp2)
}

/// The natural logarithm of 2 x; within a fixed distance of 2^-21 around 1/2.
fn ln_of_double(x: Term<'_>) -> Term<'_> {
    x.cheaply(M::Log2).math_with(M::MulAdd, [x.number(LN_2), x.number(LN_2)])
}

/// A logarithm of 1 + `beyond`, which is `far` but for a polynomial up to 1/8; of e it is `of_e`. Near 1 a device's is as wrong as far from it.
fn log_around_one<'s>(beyond: Term<'s>, of_e: f64, far: Term<'s>) -> Term<'s> {
    let near = beyond * polynomial(beyond, &LN_1P.map(|coefficient| coefficient * of_e));
    beyond.math(M::Abs).above(0.125).select(far, near)
}

/// `e^x - 1`
pub(super) fn exp_m1(x: Term<'_>) -> Term<'_> {
    let near = x * polynomial(x, &[0.999_999_943, 0.499_993_52, 0.166_669_457, 0.041_879_251_4, 0.008_333_320_61]);
    let far = (x * LOG2_E).math(M::Exp2) - 1.0;
    x.math(M::Abs).above(0.35).select(far, near)
}

/// `ln(1 + x)`
pub(super) fn ln_1p(x: Term<'_>) -> Term<'_> {
    let value = log_around_one(x, 1.0, (x + 1.0).cheaply(M::Log2) * LN_2);
    // A device's logarithm of what is not positive may be anything.
    let edge = x.equal(-1.0).select(f64::NEG_INFINITY, f64::NAN);
    x.above(-1.0).select(value, edge)
}

/// The natural logarithm.
pub(super) fn ln(x: Term<'_>) -> Term<'_> {
    logarithm(x, LN_2)
}

/// The logarithm to base 2.
pub(super) fn log2(x: Term<'_>) -> Term<'_> {
    logarithm(x, 1.0)
}

/// The logarithm to base 2 times a number.
fn logarithm(x: Term<'_>, of_two: f64) -> Term<'_> {
    // Devices may take what is below the least normal number for 0.
    let is_tiny = x.below(f64::from(f32::MIN_POSITIVE));
    let normal = is_tiny.select(x * 16_777_216.0, x);
    let far = (normal.cheaply(M::Log2) - is_tiny.select(24.0, 0.0)) * of_two;
    let value = log_around_one(x - 1.0, LOG2_E * of_two, far);
    let edge = x.equal(0.0).select(f64::NEG_INFINITY, f64::NAN);
    x.above(0.0).select(value, edge)
}

/// The hyperbolic sine.
pub(super) fn sinh(x: Term<'_>) -> Term<'_> {
    let near = x * polynomial(x * x, &[1.000_005_88, 0.166_556_531, 0.008_631_882_92]);
    let far = half_exp(x) - half_exp(-x);
    x.math(M::Abs).above(1.0).select(far, near)
}

/// The hyperbolic cosine.
pub(super) fn cosh(x: Term<'_>) -> Term<'_> {
    half_exp(x) + half_exp(-x)
}

/// The inverse of the hyperbolic sine.
pub(super) fn asinh(x: Term<'_>) -> Term<'_> {
    let near = x * polynomial(x * x, &[0.999_999_381, -0.166_584_617, 0.073_280_712_8, -0.032_653_883_3]);
    let size = x.math(M::Abs);
    let root = x.math_with(M::MulAdd, [x, x.number(1.0)]).cheaply(M::Sqrt);
    let far = ln_of_double(size.above(FAR).select(size, (size + root) * 0.5));
    size.above(0.5).select(far.math_with(M::Copysign, [x]), near)
}

/// The inverse of the hyperbolic cosine; NaN below 1. No half is nearer to 1 than 2^-10, which has 2^-4.5.
pub(super) fn acosh(x: Term<'_>) -> Term<'_> {
    let root = x.math_with(M::MulAdd, [x, x.number(-1.0)]).cheaply(M::Sqrt);
    let value = ln_of_double(x.above(FAR).select(x, (x + root) * 0.5));
    let value = x.equal(1.0).select(0.0, value);
    x.below(1.0).select(f64::NAN, value)
}

/// The inverse of the hyperbolic tangent; NaN beyond -1 and 1.
pub(super) fn atanh(x: Term<'_>) -> Term<'_> {
    let near = x * polynomial(x * x, &[0.999_999_216, 0.333_486_697, 0.195_366_328, 0.186_286_534]);
    let far = ((x + 1.0).cheaply(M::Log2) - (1.0 - x).cheaply(M::Log2)) * (0.5 * LN_2);
    let size = x.math(M::Abs);
    let inside = size.above(0.4).select(far, near);
    let edge = size.equal(1.0).select(x.number(f64::INFINITY).math_with(M::Copysign, [x]), f64::NAN);
    size.below(1.0).select(inside, edge)
}

/// The share of the normal distribution beyond a, which is from 0 to [`END_OF_TAIL`].
pub(super) fn normal_tail(a: Term<'_>) -> Term<'_> {
    polynomial(a, &LOG2_TAIL).math(M::Exp2)
}

/// The error function.
pub(super) fn erf(x: Term<'_>) -> Term<'_> {
    let near = x * polynomial(x * x, &[1.128_375_61, -0.375_927_384, 0.111_060_45, -0.021_643_922_7]);
    let size = x.math(M::Abs);
    // From 4 on it is 1.
    let far = 1.0 - polynomial(size.at_most(4.0), &LOG2_ERFC).math(M::Exp2);
    size.above(0.75).select(far.math_with(M::Copysign, [x]), near)
}

/// An angle in units of which `units` are half a turn: the nearest whole number of them, times 16, in the bits, and what is left. The angle is `ahead` units more than x.
fn turned<'s>(x: Term<'s>, units: f64, ahead: f64) -> (Term<'s>, Term<'s>) {
    let size = x.math(M::Abs);
    let x = match x.is_bf16() {
        true => (size.above(FAR_TURNED) & size.below(f64::INFINITY)).select(0.0, x),
        false => x,
    };
    let [first, second, third] = HALF_TURNS.map(|part| x.number(part * units));
    let all = HALF_TURNS.iter().sum::<f64>() * units;
    // Rounded in the bits: a driver that takes sums in another order sees that a number is added and taken off again.
    let sum = x.math_with(M::MulAdd, [x.number(all), x.number(BESIDE + ahead)]);
    let count = (sum.bits() + x.word(8)) & x.word(!15);
    let whole = count.float() - (BESIDE + ahead);
    // As sums: drivers put the parts of nested `MulAdd` together again.
    (count, ((x * first - whole) + x * second) + x * third)
}

/// The sine of an angle of half turns.
fn sine<'s>((count, rest): (Term<'s>, Term<'s>)) -> Term<'s> {
    let value = rest * polynomial(rest * rest, &SIN);
    // Odd half turns have the other sign.
    (value.bits() ^ count.shifted(BinaryOperator::ShiftLeft, count.word(27))).float()
}

/// The sine. Of a finite number beyond [`FAR_TURNED`] it is that of 0, and so are the next two.
pub(super) fn sin(x: Term<'_>) -> Term<'_> {
    sine(turned(x, 1.0, 0.0))
}

/// The cosine.
pub(super) fn cos(x: Term<'_>) -> Term<'_> {
    sine(turned(x, 1.0, 0.5))
}

/// The tangent.
pub(super) fn tan(x: Term<'_>) -> Term<'_> {
    let (count, rest) = turned(x, 2.0, 0.0);
    let value = rest * polynomial(rest * rest, &TAN);
    (count & count.word(16)).equal(count.word(0)).select(value, -1.0 / value)
}

/// The arc sine of |x|, and twice that of the root of (1 - |x|) / 2 where |x| is above 1/2: with it the arc of x is computed without a difference that cancels. NaN above 1.
fn arc<'s>(size: Term<'s>, far: Term<'s>) -> Term<'s> {
    let square = far.select((1.0 - size) * 0.5, size * size);
    let sine = far.select(square.cheaply(M::Sqrt) * 2.0, size);
    size.above(1.0).select(f64::NAN, sine * polynomial(square, &ASIN))
}

/// The arc sine; NaN beyond -1 and 1.
pub(super) fn asin(x: Term<'_>) -> Term<'_> {
    let size = x.math(M::Abs);
    let far = size.above(0.5);
    let arc = arc(size, far);
    far.select(FRAC_PI_2 - arc, arc).math_with(M::Copysign, [x])
}

/// The arc cosine; NaN beyond -1 and 1.
pub(super) fn acos(x: Term<'_>) -> Term<'_> {
    let size = x.math(M::Abs);
    let far = size.above(0.5);
    let arc = arc(size, far);
    let near = FRAC_PI_2 - arc.math_with(M::Copysign, [x]);
    far.select(x.below(0.0).select(PI - arc, arc), near)
}

/// The angle of a slope from 0 to 1, or where it is `steep` of its inverse.
fn angle_of<'s>(slope: Term<'s>, steep: Term<'s>) -> Term<'s> {
    let angle = slope * polynomial(slope * slope, &ATAN);
    steep.select(FRAC_PI_2 - angle, angle)
}

/// The arc tangent.
pub(super) fn atan(x: Term<'_>) -> Term<'_> {
    let size = x.math(M::Abs);
    let steep = size.above(1.0);
    angle_of(steep.select(1.0 / size, size), steep).math_with(M::Copysign, [x])
}

/// The angle of the point (x, y); of zeros by their signs.
pub(super) fn atan2<'s>(y: Term<'s>, x: Term<'s>) -> Term<'s> {
    let (height, width) = (y.math(M::Abs), x.math(M::Abs));
    let steep = height.above(width);
    let (longer, shorter) = (steep.select(height, width), steep.select(width, height));
    // A driver may divide by the largest numbers as if they were infinite.
    let scale = longer.above(1e30).select(1e-10, 1.0);
    let slope = (shorter * scale) / (longer * scale);
    // Of two zeros, and of two infinities, there is no quotient.
    let slope = shorter.equal(longer).select(longer.above(0.0).select(1.0, 0.0), slope);
    let angle = angle_of(slope, steep);
    x.has_minus().select(PI - angle, angle).math_with(M::Copysign, [y])
}

/// To so large a power the fixed distance by which a device's logarithm errs around 1 does no harm.
const SMALL_POWER: f64 = 8.0;

/// x to a power that is known, as IEEE 754 has it.
pub(super) fn power_by(x: Term<'_>, exponent: f64) -> Term<'_> {
    if exponent == 0.0 || exponent.abs() > SMALL_POWER {
        return power(x, x.number(exponent));
    }
    let size = x.math(M::Abs);
    let log2 = size.equal(0.0).select(f64::NEG_INFINITY, size.cheaply(M::Log2));
    let value = (log2 * exponent).math(M::Exp2);
    match exponent {
        // Of a NaN a device's logarithm may be anything.
        _ if exponent % 2.0 == 0.0 => x.unless_nan(value),
        _ if exponent.fract() == 0.0 => x.unless_nan(value.math_with(M::Copysign, [x])),
        // Neither a NaN nor what is below zero is its own size.
        _ => (size.equal(x) | x.equal(f64::NEG_INFINITY)).select(value, f64::NAN),
    }
}

/// a to the power of b as IEEE 754 has it.
pub(super) fn power<'s>(a: Term<'s>, b: Term<'s>) -> Term<'s> {
    let size = a.math(M::Abs);
    // Near 1 b may be large. Of a zero or an infinity the logarithm is infinite, and its power what it should be.
    let log2 = log_around_one(size - 1.0, LOG2_E, size.cheaply(M::Log2));
    let log2 = size.equal(0.0).select(f64::NEG_INFINITY, log2);
    let value = (b * log2).math(M::Exp2);
    let is_odd = b.is_odd();
    let value = is_odd.select(value.math_with(M::Copysign, [a]), value);
    let is_none = !b.math(M::Trunc).equal(b) & a.below(0.0) & a.above(f64::NEG_INFINITY);
    let value = is_none.select(f64::NAN, value);
    let is_endless = b.math(M::Abs).equal(f64::INFINITY);
    let is_one = b.equal(0.0) | a.equal(1.0) | (a.equal(-1.0) & is_endless);
    is_one.select(1.0, value)
}
