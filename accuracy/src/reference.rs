//! What each function must give, in `f64`, and over which inputs it is measured.
//!
//! `f64` has 29 digits more than `f32`, and Rust's functions of it err by less than one unit of its last place: no error that is reported here is the reference's. Functions that
//! `f64` itself has are exact or rounded once there.

use trefoil_codegen::ir::MathFunction;

/// The values of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Range {
    /// Evenly between both.
    Even(f64, f64),
    /// Of every size between both, as many of each power of two.
    Sizes(f64, f64),
    /// The same, with either sign.
    Signed(f64, f64),
}

/// Everything that a float can be.
const ALL: Range = Range::Signed(0.0, f64::MAX);
const POSITIVE: Range = Range::Sizes(0.0, f64::MAX);

/// A function's meaning.
pub struct Reference {
    /// Of the arguments; those that it does not take are 0.
    pub value: fn([f64; 3]) -> f64,
    /// In whose steps errors are counted: the result, or a number on the way to it that is larger.
    pub scale: Option<fn([f64; 3]) -> f64>,
    /// If a result beside the end of a period is as near as one beside its beginning: the period.
    pub period: Option<fn([f64; 3]) -> f64>,
    /// The inputs, each list measured by itself.
    pub inputs: Vec<Vec<Range>>,
}

impl Reference {
    fn new(value: fn([f64; 3]) -> f64, inputs: &[Range]) -> Self {
        Self { value, scale: None, period: None, inputs: vec![inputs.to_vec()] }
    }

    fn also(mut self, inputs: &[Range]) -> Self {
        self.inputs.push(inputs.to_vec());
        self
    }

    fn in_steps_of(mut self, scale: fn([f64; 3]) -> f64) -> Self {
        self.scale = Some(scale);
        self
    }
}

/// What a function must give; `None` for one that is not made of floats alone.
pub fn reference(function: MathFunction) -> Option<Reference> {
    use MathFunction as M;
    use Range::{Even, Signed, Sizes};
    let of = Reference::new;
    let turn = std::f64::consts::PI;
    Some(match function {
        M::Abs => of(|[x, ..]| x.abs(), &[ALL]),
        M::Min => of(|[x, y, _]| x.min(y), &[ALL, ALL]),
        M::Max => of(|[x, y, _]| x.max(y), &[ALL, ALL]),
        M::Clamp => of(|[x, low, high]| x.clamp(low, high), &[ALL, Even(-4.0, 0.0), Even(0.0, 4.0)]),
        M::Signum => of(|[x, ..]| x.signum(), &[ALL]),
        M::Floor => of(|[x, ..]| x.floor(), &[ALL]),
        M::Ceil => of(|[x, ..]| x.ceil(), &[ALL]),
        M::RoundTiesEven => of(|[x, ..]| x.round_ties_even(), &[ALL]).also(&[Even(-8.0, 8.0)]),
        M::Round => of(|[x, ..]| x.round(), &[ALL]).also(&[Even(-8.0, 8.0)]),
        M::Trunc => of(|[x, ..]| x.trunc(), &[ALL]),
        M::Fract => of(|[x, ..]| x.fract(), &[ALL]),
        M::Copysign => of(|[x, y, _]| x.copysign(y), &[ALL, ALL]),
        M::Sqrt => of(|[x, ..]| x.sqrt(), &[POSITIVE]),
        M::InverseSqrt => of(|[x, ..]| 1.0 / x.sqrt(), &[POSITIVE]),
        M::Cbrt => of(|[x, ..]| x.cbrt(), &[ALL]),
        M::Hypot => of(|[x, y, _]| x.hypot(y), &[ALL, ALL]),
        M::Exp => of(|[x, ..]| x.exp(), &[Even(-87.0, 88.5)]).also(&[Even(-1.0, 1.0)]),
        M::Exp2 => of(|[x, ..]| x.exp2(), &[Even(-126.0, 127.9)]).also(&[Even(-1.0, 1.0)]),
        M::ExpM1 => of(|[x, ..]| x.exp_m1(), &[Even(-20.0, 88.5)]).also(&[Signed(1e-20, 1.0)]),
        M::Ln => of(|[x, ..]| x.ln(), &[POSITIVE]).also(&[Even(0.5, 2.0)]),
        M::Log2 => of(|[x, ..]| x.log2(), &[POSITIVE]).also(&[Even(0.5, 2.0)]),
        M::Log10 => of(|[x, ..]| x.log10(), &[POSITIVE]).also(&[Even(0.5, 2.0)]),
        M::Ln1p => of(|[x, ..]| x.ln_1p(), &[POSITIVE]).also(&[Even(-0.999, 1.0)]).also(&[Signed(1e-20, 0.5)]),
        M::Powf => {
            of(|[x, y, _]| x.powf(y), &[Sizes(1e-6, 1e6), Even(-6.0, 6.0)]).also(&[Even(0.5, 2.0), Even(-80.0, 80.0)])
        }
        M::Sin => of(|[x, ..]| x.sin(), &[Even(-turn, turn)]).also(&[Even(-1e3, 1e3)]),
        M::Cos => of(|[x, ..]| x.cos(), &[Even(-turn, turn)]).also(&[Even(-1e3, 1e3)]),
        M::Tan => of(|[x, ..]| x.tan(), &[Even(-turn, turn)]).also(&[Even(-1e3, 1e3)]),
        M::Asin => of(|[x, ..]| x.asin(), &[Even(-1.0, 1.0)]).also(&[Signed(1e-20, 1.0)]),
        M::Acos => of(|[x, ..]| x.acos(), &[Even(-1.0, 1.0)]).also(&[Signed(1e-20, 1.0)]),
        M::Atan => of(|[x, ..]| x.atan(), &[ALL]).also(&[Even(-4.0, 4.0)]),
        // Of two zeros it is what the device says.
        M::Atan2 => of(
            |[y, x, _]| if x == 0.0 && y == 0.0 { f64::NAN } else { y.atan2(x) },
            &[Signed(1e-9, 1e9), Signed(1e-9, 1e9)],
        ),
        M::Sinh => of(|[x, ..]| x.sinh(), &[Even(-88.0, 88.0)]).also(&[Signed(1e-20, 1.0)]),
        M::Cosh => of(|[x, ..]| x.cosh(), &[Even(-88.0, 88.0)]),
        M::Tanh => of(|[x, ..]| x.tanh(), &[Even(-10.0, 10.0)]).also(&[Signed(1e-20, 1.0)]),
        M::Asinh => of(|[x, ..]| asinh(x), &[ALL]).also(&[Even(-4.0, 4.0)]),
        M::Acosh => of(|[x, ..]| acosh(x), &[Sizes(1.0, f64::MAX)]).also(&[Even(1.0, 4.0)]),
        M::Atanh => of(|[x, ..]| atanh(x), &[Even(-0.9999, 0.9999)]).also(&[Signed(1e-20, 0.5)]),
        M::Erf => of(|[x, ..]| erf(x), &[Even(-5.0, 5.0)]).also(&[Signed(1e-20, 1.0)]),
        M::MulAdd => {
            of(|[x, y, z]| x.mul_add(y, z), &[Even(-8.0, 8.0); 3]).in_steps_of(|[x, y, z]| (x * y).abs().max(z.abs()))
        }
        M::Mix => of(|[a, b, t]| a * (1.0 - t) + b * t, &[Even(-8.0, 8.0), Even(-8.0, 8.0), Even(0.0, 1.0)])
            .in_steps_of(|[a, b, _]| a.abs().max(b.abs())),
        M::Step => of(|[edge, x, _]| f64::from(u8::from(edge <= x)), &[ALL, ALL]),
        M::Smoothstep => of(
            |[low, high, x]| {
                let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
                t * t * (3.0 - 2.0 * t)
            },
            &[Even(-2.0, -1.0), Even(1.0, 2.0), Even(-3.0, 3.0)],
        )
        // Where x is near the lower end, what is left of it has lost its last digits.
        .in_steps_of(|_| 1.0),
        M::RemEuclid => Reference {
            // A quotient that is nearly whole may be taken for whole.
            period: Some(|[_, y, _]| y.abs()),
            ..of(|[x, y, _]| x.rem_euclid(y), &[Even(-1e3, 1e3), Even(0.5, 8.0)])
                .in_steps_of(|[x, y, _]| x.abs().max(y.abs()))
        },
        _ => return None,
    })
}

/// Near 0 the plain formula loses all digits.
fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let sum = if size > 1e100 {
        size.ln() + std::f64::consts::LN_2
    } else {
        (size + size * size / (1.0 + size.hypot(1.0))).ln_1p()
    };
    sum.copysign(x)
}

fn acosh(x: f64) -> f64 {
    let above = x - 1.0;
    if x > 1e100 { x.ln() + std::f64::consts::LN_2 } else { (above + (above * (x + 1.0)).sqrt()).ln_1p() }
}

fn atanh(x: f64) -> f64 {
    0.5 * (2.0 * x / (1.0 - x)).ln_1p()
}

/// Its series below 3, the continued fraction of its complement above.
fn erf(x: f64) -> f64 {
    let z = x.abs();
    let scale = std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp();
    let size = if z < 3.0 {
        let (mut term, mut sum, mut n) = (z, z, 0.0);
        while term > sum * 1e-18 {
            n += 1.0;
            term *= 2.0 * z * z / (2.0 * n + 1.0);
            sum += term;
        }
        scale * sum
    } else {
        1.0 - 0.5 * scale / (1..=80).rev().fold(z, |below, n| z + 0.5 * f64::from(n) / below)
    };
    size.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_agree_with_definitions() {
        for x in [1e-9, 0.01, 0.5, 0.9, 1.5, 20.0] {
            assert!((asinh(x).sinh() / x - 1.0).abs() < 1e-14, "asinh {x}");
            assert!((acosh(1.0 + x).cosh() / (1.0 + x) - 1.0).abs() < 1e-14, "acosh {x}");
            assert!(x >= 1.0 || (atanh(x).tanh() / x - 1.0).abs() < 1e-14, "atanh {x}");
        }
        assert!(
            (erf(0.5) - 0.520_499_877_813_046_5).abs() < 1e-15 && (erf(3.5) - 0.999_999_256_901_627_7).abs() < 1e-15
        );
    }
}
