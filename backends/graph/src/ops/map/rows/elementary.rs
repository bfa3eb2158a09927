//! Elementary functions of real numbers.

use trefoil_codegen::ir::MathFunction as M;

use crate::ops::map::functions::functions;
use crate::ops::map::halves;
use crate::ops::map::term::Term;
use crate::ops::real;

/// a to the power of b as IEEE 754 has it, and `powf` of doubles. What drivers compute is right where a is a number other than 0, and b one too.
fn power<'s>(a: Term<'s>, b: Term<'s>) -> Term<'s> {
    if a.is_double() {
        return a.math_with(M::Powf, [b]);
    }
    if a.is_half() {
        return halves::power(a, b);
    }
    let size = a.math(M::Abs);
    let is_odd = b.is_odd();
    // Of a zero or an infinity it is that or its inverse, with its sign if b is odd.
    let edge = is_odd.select(a, size);
    let edge = b.below(0.0).select(1.0 / edge, edge);
    let is_edge = a.equal(0.0) | a.math(M::IsInfinite);
    let value = is_edge.select(edge, a.math_with(M::Powf, [b]));
    let value = either_nan(a, b).select(a + b, value);
    let is_one = b.equal(0.0) | a.equal(1.0);
    (is_one | (size.equal(1.0) & b.math(M::IsInfinite))).select(1.0, value)
}

fn either_nan<'s>(a: Term<'s>, b: Term<'s>) -> Term<'s> {
    a.math(M::IsNan) | b.math(M::IsNan)
}

/// The angle of a point; of zeros by their signs, which drivers do not look at, as of a NaN. That of doubles is no driver's.
fn angle<'s>(y: Term<'s>, x: Term<'s>) -> Term<'s> {
    if x.is_double() {
        return y.math_with(M::Atan2, [x]);
    }
    if x.is_half() {
        return halves::atan2(y, x);
    }
    let flat = x.has_minus().select(x.number(std::f64::consts::PI), 0.0).math_with(M::Copysign, [y]);
    let is_origin = y.equal(0.0) & x.equal(0.0);
    let value = is_origin.select(flat, y.math_with(M::Atan2, [x]));
    either_nan(y, x).select(y + x, value)
}

functions! {
    /// Elementary functions, element by element; several tensors are broadcast to each other.
    impl Graph;

    /// e^x
    exp(x: Floats) {
        body: x.math(M::Exp),
        reference: x.exp(),
    }

    /// 2^x
    exp2(x: Floats) {
        body: x.math(M::Exp2),
        reference: x.exp2(),
    }

    /// e^x - 1, exact near 0.
    expm1(x: Floats) {
        body: if x.is_half() { halves::exp_m1(x) } else { x.math(M::ExpM1) },
        reference: x.exp_m1(),
    }

    /// The natural logarithm.
    log(x: Floats) {
        body: if x.is_half() { halves::ln(x) } else { x.math(M::Ln) },
        reference: x.ln(),
    }

    /// The logarithm to base 2.
    log2(x: Floats) {
        body: if x.is_half() { halves::log2(x) } else { x.math(M::Log2) },
        reference: x.log2(),
    }

    /// The natural logarithm of 1 + x, exact near 0.
    log1p(x: Floats) {
        body: if x.is_half() { halves::ln_1p(x) } else { x.math(M::Ln1p) },
        reference: x.ln_1p(),
    }

    /// The square root.
    sqrt(x: Floats) {
        body: x.math(M::Sqrt),
        reference: x.sqrt(),
    }

    /// `1 / sqrt(x)`
    rsqrt(x: Floats) {
        // Doubles have no such function; theirs is made of two.
        body: if x.takes(M::InverseSqrt) { x.math(M::InverseSqrt) } else { 1.0 / x.math(M::Sqrt) },
        reference: 1.0 / x.sqrt(),
    }

    /// x to the power of `exponent`.
    powf(x: Floats; exponent: Finite = [2.5, 3.0]) {
        body: match exponent {
            // Products, which are exact where a power by way of logarithms is not.
            1.0 => x,
            2.0 => x * x,
            3.0 => x * x * x,
            -1.0 => 1.0 / x,
            _ if x.is_half() => halves::power_by(x, exponent),
            _ => power(x, x.number(exponent)),
        },
        reference: x.powf(exponent),
    }

    /// a to the power of b.
    pow(a, b: Floats) {
        body: power(a, b),
        reference: a.powf(b),
    }

    /// The sine of radians; 0 of a `bf16` beyond 400,000.
    sin(x: Floats) {
        body: if x.is_half() { halves::sin(x) } else { x.math(M::Sin) },
        reference: x.sin(),
    }

    /// The cosine of radians; 1 of a `bf16` beyond 400,000.
    cos(x: Floats) {
        body: if x.is_half() { halves::cos(x) } else { x.math(M::Cos) },
        reference: x.cos(),
    }

    /// The tangent of radians; 0 of a `bf16` beyond 400,000.
    tan(x: Floats) {
        body: if x.is_half() { halves::tan(x) } else { x.math(M::Tan) },
        reference: x.tan(),
    }

    /// The arc sine in radians; NaN beyond -1 and 1.
    asin(x: Floats) {
        body: if x.is_half() { halves::asin(x) } else { x.math(M::Asin) },
        reference: x.asin(),
    }

    /// The arc cosine in radians; NaN beyond -1 and 1.
    acos(x: Floats) {
        body: if x.is_half() { halves::acos(x) } else { x.math(M::Acos) },
        reference: x.acos(),
    }

    /// The arc tangent in radians.
    atan(x: Floats) {
        body: match x.is_half() {
            true => halves::atan(x),
            // A driver's may give a number for a NaN.
            false => x.math(M::IsNan).select(x, x.math(M::Atan)),
        },
        reference: x.atan(),
    }

    /// The angle in radians, from -pi to pi, at which the point (x, y) is seen.
    atan2(y, x: Floats) {
        body: angle(y, x),
        reference: y.atan2(x),
    }

    /// The hyperbolic sine.
    sinh(x: Floats) {
        body: if x.is_half() { halves::sinh(x) } else { x.math(M::Sinh) },
        reference: x.sinh(),
    }

    /// The hyperbolic cosine.
    cosh(x: Floats) {
        body: if x.is_half() { halves::cosh(x) } else { x.math(M::Cosh) },
        reference: x.cosh(),
    }

    /// The hyperbolic tangent.
    tanh(x: Floats) {
        body: x.math(M::Tanh),
        reference: x.tanh(),
    }

    /// The inverse of the hyperbolic sine.
    asinh(x: Floats) {
        body: if x.is_half() { halves::asinh(x) } else { x.math(M::Asinh) },
        reference: real::asinh(x),
    }

    /// The inverse of the hyperbolic cosine; NaN below 1.
    acosh(x: Floats) {
        body: if x.is_half() { halves::acosh(x) } else { x.math(M::Acosh) },
        reference: real::acosh(x),
    }

    /// The inverse of the hyperbolic tangent; NaN beyond -1 and 1.
    atanh(x: Floats) {
        body: if x.is_half() { halves::atanh(x) } else { x.math(M::Atanh) },
        reference: real::atanh(x),
    }

    /// The error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
    erf(x: Floats) {
        body: if x.is_half() { halves::erf(x) } else { x.math(M::Erf) },
        reference: real::erf(x),
    }
}
