//! Two independent normals of mean 0 and variance 1 from words, by the transform of Box and Muller: `r cos a` and `r sin a` with `r = sqrt(-2 ln u)`.
//!
//! **Exact formula.** Of the words `w` and `v`, `u` is what the first 24 significant bits of `w / 2^32` say (of w = 0 as of w = 1), and the angle `a` is `q + t` quarter turns: `q` is what the first
//! two bits of `v` say, and `t`, from -1/2 up to 1/2, what the next 25 say. So both are exact in `f32`, and nothing depends on how a device rounds integers. Doubles take two words for each
//! of both: 53 bits, and `u` is a 2^53rd more than they say, so that it is not 0.
//!
//! **Accuracy.** Logarithm, root, sine and cosine are made here, of sums and products, since those of devices differ and are off by more than is promised: `f32` normals are within 4 ulp of the
//! exact formula wherever sums and products are rounded to the nearest, contracted or not; doubles within 8. The root alone begins with the device's own, which one step by the exact remainder corrects.

use trefoil_dsl::prelude::*;

/// A polynomial of x, of which the numbers stand by their powers.
#[device]
fn polynomial<const N: usize>(x: f32, by_power: [f32; N]) -> f32 {
    let mut sum = by_power[N - 1];
    for step in unroll(1..N) {
        sum = sum * x + by_power[N - 1 - step];
    }
    sum
}

/// The root of a positive number, correctly rounded but for a few numbers close to halfway between two.
#[device]
fn root(x: f32) -> f32 {
    let inverse = inverse_sqrt(x);
    let near = x * inverse;
    // The remainder x - near^2, exactly: near is cut in halves, whose products are exact.
    let high = bitcast::<f32>(bitcast::<u32>(near) & 0xffff_f000);
    let low = near - high;
    let rest = ((x - high * high) - 2.0 * high * low) - low * low;
    near + rest * (0.5 * inverse)
}

/// `-2 ln u` of the word for u.
#[device]
fn square_of(word: u32) -> f32 {
    let word = max(word, 1);
    let zeros = leading_zeros(word);
    let digits = word << zeros >> 8;
    // From 1 / sqrt(2) up to sqrt(2) it is 1 + s with an exact s.
    let is_small = digits < 11_863_283;
    let scaled = if is_small { 2 * digits } else { digits };
    let halvings = if is_small { zeros + 1 } else { zeros };
    let s = (scaled as i32 - 16_777_216) as f32 * (1.0 / 16_777_216.0);
    // (ln(1 + s) - s + s^2 / 2) / s^3, fitted to the least error: a tenth of an ulp of the logarithm.
    let tail = polynomial(
        s,
        [
            0.333_333_16,
            -0.250_008_1,
            0.200_022_8,
            -0.166_245_2,
            0.141_813_1,
            -0.131_292_37,
            0.128_809_62,
            -0.078_573_11,
        ],
    );
    let bend = s * s * (0.5 - s * tail);
    // ln 2 in two parts: of the first, multiples up to 64 are exact.
    let count = halvings as f32;
    2.0 * (count * 0.693_145_75 + (count * 1.428_606_8e-6 + (bend - s)))
}

/// What is left of a turn of `quarters` quarter turns, for the cosine and sine of the rest.
#[device]
fn turned<T: Element>(quarters: u32, cosine: T, sine: T, minus_cosine: T, minus_sine: T) -> Vec2<T> {
    let is_odd = quarters & 1 == 1;
    let x = if is_odd { sine } else { cosine };
    let minus_x = if is_odd { minus_sine } else { minus_cosine };
    let y = if is_odd { cosine } else { sine };
    let minus_y = if is_odd { minus_cosine } else { minus_sine };
    // Cosines are negative in the second and the third quarter, sines in the third and the fourth.
    Vec2::new(if quarters == 1 || quarters == 2 { minus_x } else { x }, if quarters >= 2 { minus_y } else { y })
}

/// Two normals from two words.
#[device]
pub fn two_normals(first: u32, second: u32) -> Vec2<f32> {
    let radius = root(square_of(first));
    let t = (((second & 0x3fff_ffff) as i32 - 0x2000_0000) >> 5) as f32 * (1.0 / 33_554_432.0);
    let square = t * t;
    // sin(t quarter turns) / t, of which a quarter turn stands in two parts, and cos(t quarter turns), fitted to the least error for t up to 1/2.
    let of_sine = polynomial(square, [-0.645_963_67, 0.079_681_575, -0.004_605_309_6]);
    let of_cosine = polynomial(square, [-1.233_700_5, 0.253_669_23, -0.020_860_288, 0.000_904_021_6]);
    let sine = t * 1.570_796_4 + t * (-4.371_139e-8 + square * of_sine);
    let cosine = 1.0 + square * of_cosine;
    let (x, y) = (radius * cosine, radius * sine);
    turned(second >> 30, x, y, -x, -y)
}

/// The four normals of a block.
#[device]
pub fn four_normals(words: Vec4<u32>) -> Vec4<f32> {
    let (low, high) = (two_normals(words.x, words.y), two_normals(words.z, words.w));
    Vec4::new(low.x, low.y, high.x, high.y)
}

/// `-2 ln u` of the 53 bits for u, where u is a 2^53rd more than they say.
#[device]
#[allow(clippy::approx_constant, reason = "the kernel language has such constants of 32 bits alone")]
fn double_square_of(bits: u64) -> f64 {
    let value = bitcast::<u64>((bits + 1) as f64);
    // The first digits as a number from 1 up to 2, and how often u was doubled for that.
    let digits = bitcast::<f64>(value & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let doublings = 1076 - (value >> 52) as i32;
    let is_large = digits > 1.414_213_562_373_095;
    let scaled = if is_large { 0.5 * digits } else { digits };
    let count = (if is_large { doublings - 1 } else { doublings }) as f64;
    // ln(1 + s) = 2 (z + z^3 / 3 + z^5 / 5 + ..) with z = s / (2 + s).
    let s = scaled - 1.0;
    let z = s / (2.0 + s);
    let square = z * z;
    let mut tail = 1.0 / 21.0;
    for power in unroll(0..10) {
        tail = tail * square + 1.0 / (19 - 2 * power) as f64;
    }
    // The first part of ln 2 has 38 bits: its multiples are exact.
    let logarithm = 2.0 * z * tail;
    2.0 * (count * 0.693_147_180_558_298_7 + (count * 1.646_594_958_289_708_2e-12 - logarithm))
}

/// The two normals of a block, as doubles.
#[device]
#[allow(clippy::approx_constant, reason = "the kernel language has such constants of 32 bits alone")]
pub fn two_double_normals(words: Vec4<u32>) -> Vec2<f64> {
    let radius = sqrt(double_square_of((words.x as u64) << 21 | (words.y >> 11) as u64));
    let t =
        ((words.z & 0x3fff_ffff) as f64 * 8_388_608.0 + (words.w >> 9) as f64) * (1.0 / 9_007_199_254_740_992.0) - 0.5;
    let angle = t * 1.570_796_326_794_896_6;
    let square = angle * angle;
    let mut sine = 1.0;
    let mut cosine = 1.0;
    for step in unroll(0..9) {
        let n = 2 * (9 - step);
        sine = 1.0 - sine * square * (1.0 / (n * (n + 1)) as f64);
        cosine = 1.0 - cosine * square * (1.0 / (n * (n - 1)) as f64);
    }
    let (x, y) = (radius * cosine, radius * angle * sine);
    turned(words.z >> 30, x, y, -x, -y)
}
