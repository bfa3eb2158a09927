//! Sines, cosines, tangents and the error function of doubles, exactly: by their series, in numbers of many digits.

use super::fixed::Fixed;

/// Words behind the point for the largest angles: 2^1024 times what is cut off is still below 2^-190.
const WORDS: usize = 38;
/// And of series.
const FEW: usize = 8;

/// pi / 2 by Machin's formula: 8 atan(1 / 5) - 2 atan(1 / 239).
pub fn quarter() -> Fixed {
    let inverse_tangent = |of: u32, times: u64| {
        let mut power = Fixed::integer(times, WORDS).over(of);
        let terms = (0..).map_while(move |n| {
            let term = power.over(2 * n + 1);
            power = power.over(of * of);
            (!term.is_zero()).then_some(term)
        });
        Fixed::alternating(terms).expect("the first term is not 0")
    };
    inverse_tangent(5, 8).minus(&inverse_tangent(239, 2))
}

/// The power series of sine or cosine, of an angle of less than a quarter turn.
fn series(angle: &Fixed, first: Fixed, mut n: u32) -> Fixed {
    let square = angle.times(angle);
    let mut power = first;
    let terms = std::iter::from_fn(move || {
        let term = power.clone();
        power = power.times(&square).over((n + 1) * (n + 2));
        n += 2;
        (!term.is_zero()).then_some(term)
    });
    Fixed::alternating(terms).unwrap_or_else(|| Fixed::integer(0, FEW))
}

/// Sine and cosine of a number.
pub fn sine_and_cosine(x: f64, quarter: &Fixed) -> [f64; 2] {
    if !x.is_finite() {
        return [f64::NAN; 2];
    }
    if x.abs() < 1e-20 {
        return [x, 1.0];
    }
    // x is an integer of 53 bits times a power of two: digit by digit, from above, what is left of quarter turns. The lowest digits of what is not whole are below the point.
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let digits = (bits & ((1 << 52) - 1)) | 1 << 52;
    let mut rest = Fixed::double(digits as f64 * 2f64.powi(exponent.min(0)), WORDS);
    let mut turns = 0u32;
    let take = |rest: &mut Fixed, turns: &mut u32, of: &Fixed, count: u32| {
        while *rest >= *of {
            *rest = rest.minus(of);
            *turns = turns.wrapping_add(count);
        }
    };
    // First of multiples of it, since it may be much larger.
    let mut multiples = vec![quarter.clone()];
    for _ in 0..53 {
        let last = &multiples[multiples.len() - 1];
        multiples.push(last.plus(last));
    }
    for (power, multiple) in multiples.iter().enumerate().rev() {
        take(&mut rest, &mut turns, multiple, if power < 2 { 1 << power } else { 0 });
    }
    for _ in 0..exponent.max(0) {
        rest = rest.plus(&rest);
        turns = turns.wrapping_mul(2);
        take(&mut rest, &mut turns, quarter, 1);
    }
    // The nearer of both ends, so that small results have all of their digits.
    let angle = rest.cut(FEW);
    let other = quarter.minus(&rest).cut(FEW);
    let of = |angle: &Fixed, other: &Fixed| {
        let half = Fixed::double(0.8, FEW);
        if *angle < half {
            series(angle, angle.clone(), 1).to_double()
        } else {
            series(other, Fixed::integer(1, FEW), 0).to_double()
        }
    };
    let (sine, cosine) = (of(&angle, &other), of(&other, &angle));
    let (sine, cosine) = match turns % 4 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    };
    [sine * x.signum(), cosine]
}

/// The error function.
pub fn erf(x: f64) -> f64 {
    // What is not within the first digit of 2 / sqrt(pi).
    const LOWER: f64 = 1.533545961316588e-17;
    let size = x.abs();
    if x.is_nan() || size >= 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    if size < 1e-12 {
        return x * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let words = 12;
    let root = Fixed::double(std::f64::consts::FRAC_2_SQRT_PI, words).plus(&Fixed::double(LOWER, words));
    let own = Fixed::double(size, words);
    let square = own.times(&own);
    let mut power = own;
    let mut n = 0;
    let terms = std::iter::from_fn(|| {
        let term = power.over(2 * n + 1);
        n += 1;
        power = power.times(&square).over(n);
        (!term.is_zero()).then_some(term)
    });
    let sum = Fixed::alternating(terms).unwrap_or_else(|| Fixed::integer(0, words));
    sum.times(&root).to_double().copysign(x)
}
