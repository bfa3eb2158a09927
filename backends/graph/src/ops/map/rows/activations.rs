//! Activations of neural networks.
//!
//! Those that go to 0 for negative x are written so that nothing cancels there, and their limit at minus infinity is 0, where the plain formula
//! has no value: the factor that would be infinite stops at -1000, where the other has long been 0.

use trefoil_codegen::ir::MathFunction as M;

use super::arithmetic::between;
use crate::ops::activation::FAR;
use crate::ops::map::functions::functions;
use crate::ops::map::halves;
use crate::ops::map::term::Term;
use crate::ops::real;

/// max(x, 0), of integers too; a NaN is not below zero, and stays.
fn positive_part(x: Term<'_>) -> Term<'_> {
    x.unless_nan(x.below(0.0).select(0.0, x))
}

/// `(x + 3) / 6` between 0 and 1, bounded before it is divided: of what is not, drivers make `x / 6 + 1 / 2`, which cancels.
fn hard_gate(x: Term<'_>) -> Term<'_> {
    between(x + 3.0, 0.0, 6.0) / 6.0
}

/// e^-|x|, which does not overflow.
fn decay(x: Term<'_>) -> Term<'_> {
    (-x.math(M::Abs)).math(M::Exp)
}

/// 1 / (1 + e^-x)
fn logistic(x: Term<'_>) -> Term<'_> {
    let e = decay(x);
    x.below(0.0).select(e, 1.0) / (1.0 + e)
}

fn silu_of(x: Term<'_>) -> Term<'_> {
    x.at_least(FAR) * logistic(x)
}

/// What [`tail`] is over e^(-x^2 / 2) and t, a function that falls slowly: a polynomial in t = `1 / (1 + 0.45 |x| / sqrt(2))`, fitted at Chebyshev nodes to 2e-8, lowest power first.
const TAIL: [f64; 10] = [
    0.126_940_524_6,
    0.126_993_358_4,
    0.113_620_349_3,
    0.090_406_501_71,
    0.050_960_479_43,
    0.007_165_718_022,
    0.047_617_220_57,
    -0.131_714_251_4,
    0.087_165_813_72,
    -0.019_155_723_98,
];

/// The same for doubles: a polynomial in 2 t - 1 with t = `1 / (1 + 0.3 |x|)`, which is off by less than 2^-52 of it.
const TAIL_OF_DOUBLES: [f64; 22] = [
    0.221_970_613_834_432_8,
    0.164_579_484_086_162_02,
    0.086_549_637_418_456_96,
    0.027_760_365_473_793_21,
    0.001_817_135_795_763_884,
    -0.002_423_896_549_933_578_7,
    -0.000_575_642_521_728_542_5,
    0.000_283_636_940_629_187_37,
    9.013_997_712_860_057e-5,
    -4.974_652_226_505_956e-5,
    -1.112_591_285_759_330_4e-5,
    1.073_204_163_815_380_6e-5,
    2.457_969_676_690_309_3e-7,
    -2.251_960_676_623_000_2e-6,
    5.156_171_515_549_586e-7,
    3.580_669_183_366_785_7e-7,
    -2.272_133_341_559_974_5e-7,
    -1.473_935_162_210_386_9e-8,
    5.623_258_721_448_768e-8,
    -1.159_666_445_765_889_3e-8,
    -6.965_963_988_372_355e-9,
    2.701_146_078_882_003e-9,
];

/// A polynomial, lowest power first.
fn polynomial<'s>(coefficients: &[f64], u: Term<'s>) -> Term<'s> {
    let [lower @ .., highest] = coefficients else { return u.number(0.0) };
    lower.iter().rev().fold(u.number(*highest), |sum, coefficient| sum * u + *coefficient)
}

/// The share of the normal distribution beyond a, which is not negative.
fn tail(a: Term<'_>) -> Term<'_> {
    if a.is_half() {
        return halves::normal_tail(a);
    }
    let (share, t) = if a.is_double() {
        let t = 1.0 / (1.0 + a * 0.3);
        (polynomial(&TAIL_OF_DOUBLES, t * 2.0 - 1.0), t)
    } else {
        let t = 1.0 / (1.0 + a * (0.45 * std::f64::consts::FRAC_1_SQRT_2));
        (polynomial(&TAIL, t), t)
    };
    share * t * (a * a * -0.5).math(M::Exp)
}

/// x times the share of the normal distribution below x, which is max(x, 0) less |x| times the share beyond |x|.
fn gelu_of(x: Term<'_>) -> Term<'_> {
    // Beyond, the share is 0.
    let end = match x {
        _ if x.is_double() => 39.0,
        _ if x.is_half() => halves::END_OF_TAIL,
        _ => 20.0,
    };
    let a = x.math(M::Abs).at_most(end);
    positive_part(x) - a * tail(a)
}

/// `alpha * (e^(x / scale) - 1)` below zero, else x.
fn exponential_below<'s>(x: Term<'s>, power: Term<'s>, alpha: f64) -> Term<'s> {
    let power = if x.is_half() { halves::exp_m1(power) } else { power.math(M::ExpM1) };
    x.below(0.0).select(power * alpha, x)
}

const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

functions! {
    /// Activations of neural networks, element by element.
    impl Graph;

    /// `max(x, 0)`; NaN for NaN.
    relu(x: Signed) {
        body: positive_part(x),
        reference: if x < 0.0 { 0.0 } else { x },
    }

    /// `x` where it is not negative, else `slope * x`.
    leaky_relu(x: Floats; slope: Finite = [0.01, 0.3]) {
        body: x.below(0.0).select(x * slope, x),
        reference: if x < 0.0 { slope * x } else { x },
    }

    /// `x` where it is not negative, else `alpha * (e^x - 1)`.
    elu(x: Floats; alpha: Finite = [1.0, 0.5]) {
        body: exponential_below(x, x, alpha),
        reference: if x < 0.0 { alpha * x.exp_m1() } else { x },
    }

    /// 1.0507009873554805 times `x` where it is not negative, else times `1.6732632423543772 * (e^x - 1)`.
    selu(x: Floats) {
        body: exponential_below(x, x, SELU_ALPHA) * SELU_SCALE,
        reference: SELU_SCALE * if x < 0.0 { SELU_ALPHA * x.exp_m1() } else { x },
    }

    /// `x` where it is not negative, else `alpha * (e^(x / alpha) - 1)`.
    celu(x: Floats; alpha: FiniteNotZero = [1.0, 0.5]) {
        body: exponential_below(x, x / alpha, alpha),
        reference: if x < 0.0 { alpha * (x / alpha).exp_m1() } else { x },
    }

    /// `1 / (1 + e^-x)`
    sigmoid(x: Floats) {
        body: logistic(x),
        reference: 1.0 / (1.0 + (-x).exp()),
    }

    /// `x / (1 + e^-x)`; 0 at minus infinity.
    silu(x: Floats) {
        body: silu_of(x),
        reference: real::vanishing(x, |x| x / (1.0 + (-x).exp())),
    }

    /// `x * (1 + erf(x / sqrt(2))) / 2`; 0 at minus infinity.
    gelu(x: Floats) {
        body: gelu_of(x),
        reference: real::vanishing(x, |x| x * real::normal_share(x)),
    }

    /// gelu by way of tanh: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`; 0 at minus infinity.
    gelu_tanh(x: Floats) {
        body: {
            // (1 + tanh(u)) / 2 is 1 / (1 + e^-2u).
            let twice = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
            let u = x * (x * x * (twice * 0.044_715) + twice);
            x.at_least(FAR) * logistic(u)
        },
        reference: real::vanishing(x, |x| {
            x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).exp())
        }),
    }

    /// `ln(1 + e^x)`
    softplus(x: Floats) {
        body: positive_part(x) + decay(x).math(M::Ln1p),
        reference: if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() },
    }

    /// `x * tanh(ln(1 + e^x))`; 0 at minus infinity.
    mish(x: Floats) {
        body: {
            // tanh(ln y) is (y^2 - 1) / (y^2 + 1); of y = 1 + e^x that is n / (n + 2) with n = e^x (e^x + 2), which e^-2x keeps small for positive x.
            let e = decay(x);
            let negative = x.below(0.0);
            let n = negative.select(e * (e + 2.0), 1.0 + 2.0 * e);
            let rest = negative.select(2.0, 2.0 * e * e);
            x.at_least(FAR) * (n / (n + rest))
        },
        reference: real::vanishing(x, |x| {
            if x > 0.0 { x * (x + (-x).exp().ln_1p()).tanh() } else { x * x.exp().ln_1p().tanh() }
        }),
    }

    /// `(x + 3) / 6` between 0 and 1.
    hard_sigmoid(x: Floats) {
        body: hard_gate(x),
        reference: if x.is_nan() { x } else { ((x + 3.0) / 6.0).clamp(0.0, 1.0) },
    }

    /// `x` times (x + 3) / 6 between 0 and 1; 0 at minus infinity.
    hard_swish(x: Floats) {
        body: x.at_least(FAR) * hard_gate(x),
        reference: real::vanishing(x, |x| x * ((x + 3.0) / 6.0).clamp(0.0, 1.0)),
    }

    /// SwiGLU: silu of the gate times the value, `gate / (1 + e^-gate) * value`.
    silu_mul(gate, value: Floats) {
        body: silu_of(gate) * value,
        reference: real::vanishing(gate, |x| x / (1.0 + (-x).exp())) * value,
    }

    /// GeGLU: gelu of the gate times the value, `gate * (1 + erf(gate / sqrt(2))) / 2 * value`.
    gelu_mul(gate, value: Floats) {
        body: gelu_of(gate) * value,
        reference: real::vanishing(gate, |x| x * real::normal_share(x)) * value,
    }
}
