//! Functions that stand in where a target lacks an operation or means something else by it, as text.
//!
//! The text is a small part of Rust, read by [`super::text`] and translated by [`super::source`]: immutable `let`s, operators, `as`, calls of mathematical functions by
//! their names (which are looked up in the [`super::table`] again; `native_` before a name is the target's own, `own_` the one here), of other
//! functions here, and of `select`, `to_bits` and `from_bits` (as `u32`; of doubles as `u64`) and `remainder`, which is `%` of floats as the IR means it: the operator is the target's own. Each works on scalars and, lane by lane, on vectors. They are free of branches, so that
//! the CPU makes vectors of them. What is one number beside vectors has a type like `one_f32`, and is computed within `one(..)`; `spread`
//! makes a vector of it, `vector` one of several; `lane0` to `lane3`, `yzx` and `zxy` take lanes.
//! `f32` to the accuracy that the tests of lowering measure; polynomials were fitted at Chebyshev nodes.

mod angles;
mod bits;
mod doubles;
mod elementary;
mod longs;
mod powers;
mod vectors;

use super::table;
use crate::ir::{MathFunction, Precision, Scalar};
use crate::target::Target;

/// What stands in for `%` of floats, where the target's own is not what the IR means.
pub fn remainder(target: Target, scalar: Scalar, precision: Precision) -> Option<&'static str> {
    if table::remainder_of_floats(target) || precision == Precision::Fast {
        return None;
    }
    match scalar {
        Scalar::F32 if target == Target::Wgsl => Some("rem_by_bits"),
        Scalar::F32 => Some("rem"),
        Scalar::F64 => Some("rem_of_doubles"),
        _ => None,
    }
}

/// Name and text of the functions here.
const SOURCES: &[(&str, &str)] = &[
    (
        "exp",
        // x = k ln 2 + r with ln 2 in two parts, of which the first times k is exact.
        "fn exp(x: f32) -> f32 {
            let inside = min(max(x, -104.0), 89.0);
            let k = round_ties_even(inside * 1.442695041);
            let r = mul_add(k, 2.12194440055e-4, mul_add(k, -0.693359375, inside));
            select(is_nan(x), x, scaled(exp_near_zero(r), k as i32))
        }",
    ),
    (
        "exp2",
        "fn exp2(x: f32) -> f32 {
            let inside = min(max(x, -151.0), 129.0);
            let k = round_ties_even(inside);
            select(is_nan(x), x, scaled(exp_near_zero((inside - k) * 0.693147181), k as i32))
        }",
    ),
    (
        "exp_near_zero",
        "fn exp_near_zero(r: f32) -> f32 {
            let p = mul_add(r, 1.989198063e-4, 1.393454149e-3);
            let p = mul_add(r, p, 8.333310485e-3);
            let p = mul_add(r, p, 4.166645557e-2);
            let p = mul_add(r, p, 1.666666716e-1);
            let p = mul_add(r, p, 0.5);
            mul_add(r * r, p, r) + 1.0
        }",
    ),
    (
        "scaled",
        // x * 2^k in two steps, since 2^k alone may be out of range.
        "fn scaled(x: f32, k: i32) -> f32 {
            let half = k >> 1u32;
            let rest = k - half;
            x * from_bits(((half + 127) << 23u32) as u32) * from_bits(((rest + 127) << 23u32) as u32)
        }",
    ),
    (
        "ln",
        // x = 2^e (1 + f) with 1 + f between the roots of 1/2 and 2.
        "fn ln(x: f32) -> f32 {
            let tiny = x < 1.17549435e-38;
            let bits = to_bits(select(tiny, x * 8388608.0, x));
            let upper = upper_bits(bits);
            let e = mul_add(upper as i32 as f32, 1.1920928955078125e-7, select(tiny, -23.0, 0.0));
            let f = from_bits(bits - upper) - 1.0;
            let value = mul_add(e, 0.693147181, f + ln_rest(f));
            let outside = select(x == 0.0, from_bits(0xff800000u32), from_bits(0x7fc00000u32));
            select(x > 0.0, select(to_bits(x) == 0x7f800000u32, x, value), outside)
        }",
    ),
    (
        "log2",
        "fn log2(x: f32) -> f32 {
            let tiny = x < 1.17549435e-38;
            let bits = to_bits(select(tiny, x * 8388608.0, x));
            let upper = upper_bits(bits);
            let e = mul_add(upper as i32 as f32, 1.1920928955078125e-7, select(tiny, -23.0, 0.0));
            let f = from_bits(bits - upper) - 1.0;
            let value = mul_add(f + ln_rest(f), 1.442695041, e);
            let outside = select(x == 0.0, from_bits(0xff800000u32), from_bits(0x7fc00000u32));
            select(x > 0.0, select(to_bits(x) == 0x7f800000u32, x, value), outside)
        }",
    ),
    (
        "upper_bits",
        // Of the bits of x = 2^e (1 + f): e in the place of an exponent, so that without them x is 1 + f.
        "fn upper_bits(bits: u32) -> u32 { (bits - 0x3f3504f3u32) & 0xff800000u32 }",
    ),
    (
        "ln_rest",
        // ln(1 + f) - f
        "fn ln_rest(f: f32) -> f32 {
            let p = mul_add(f, 6.971611828e-2, -1.147973388e-1);
            let p = mul_add(f, p, 1.168541983e-1);
            let p = mul_add(f, p, -1.242568716e-1);
            let p = mul_add(f, p, 1.424905807e-1);
            let p = mul_add(f, p, -1.666780263e-1);
            let p = mul_add(f, p, 2.000071555e-1);
            let p = mul_add(f, p, -2.499999702e-1);
            let p = mul_add(f, p, 3.333333135e-1);
            f * f * mul_add(f, p, -0.5)
        }",
    ),
    (
        "sin",
        "fn sin(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            select(x == 0.0, x, turned(quarter_rest(x, k), k as i32))
        }",
    ),
    (
        "cos",
        "fn cos(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            turned(quarter_rest(x, k), k as i32 + 1)
        }",
    ),
    (
        "tan",
        "fn tan(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            let r = quarter_rest(x, k);
            select(x == 0.0, x, turned(r, k as i32) / turned(r, k as i32 + 1))
        }",
    ),
    (
        "sin_of_any",
        // Farther out than ours is exact the target's own serves, whatever it is worth there.
        "fn sin_of_any(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            let near = select(x == 0.0, x, turned(quarter_rest(x, k), k as i32));
            select(abs(x) > 10000.0, native_sin(x), near)
        }",
    ),
    (
        "cos_of_any",
        "fn cos_of_any(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            select(abs(x) > 10000.0, native_cos(x), turned(quarter_rest(x, k), k as i32 + 1))
        }",
    ),
    (
        "tan_of_any",
        "fn tan_of_any(x: f32) -> f32 {
            let k = round_ties_even(x * 0.636619772);
            let r = quarter_rest(x, k);
            let near = select(x == 0.0, x, turned(r, k as i32) / turned(r, k as i32 + 1));
            select(abs(x) > 10000.0, native_tan(x), near)
        }",
    ),
    (
        "quarter_rest",
        // x - k pi / 2 with pi / 2 in four parts, of which the first three times k are exact while k is less than 8192. As differences: drivers put the
        // parts of nested `mul_add` together again.
        "fn quarter_rest(x: f32, k: f32) -> f32 {
            let near = (x - k * 1.5703125) - k * 4.837512969970703125e-4;
            (near - k * 7.549533620476723e-8) - k * 2.56334406825709e-12
        }",
    ),
    (
        "turned",
        // sin(r + quarters pi / 2), r within pi / 4 of 0.
        "fn turned(r: f32, quarters: i32) -> f32 {
            let z = r * r;
            let p = mul_add(z, 2.724378191e-6, -1.984003902e-4);
            let p = mul_add(z, p, 8.333331905e-3);
            let p = mul_add(z, p, -1.666666716e-1);
            let sine = mul_add(r * z, p, r);
            let q = mul_add(z, 2.454287096e-5, -1.388827921e-3);
            let q = mul_add(z, q, 4.166666418e-2);
            let cosine = mul_add(z * z, q, mul_add(-0.5, z, 1.0));
            let value = select((quarters & 1) == 0, sine, cosine);
            select((quarters & 2) == 0, value, -value)
        }",
    ),
    // The logistic curve far from 0, where its exponential may be infinite, and a polynomial near it. A NaN is on neither side, and comes through.
    (
        "tanh",
        "fn tanh(x: f32) -> f32 {
            let t = abs(x);
            let z = t * t;
            let p = mul_add(z, -6.096714176e-3, 2.099717967e-2);
            let p = mul_add(z, p, -5.385090783e-2);
            let p = mul_add(z, p, 1.333276927e-1);
            let p = mul_add(z, p, -3.333332837e-1);
            let near = mul_add(t * z, p, t);
            let far = 1.0 - 2.0 / (exp2(2.885390082 * t) + 1.0);
            with_sign(select(t < 0.625, near, far), x)
        }",
    ),
    // Minimax polynomials: of erf(t) / t - 1 in t^2 near 0, and of the binary logarithm of 1 - erf(t), by -t, beyond 0.93, which falls for ever. A NaN comes through.
    (
        "erf",
        "fn erf(x: f32) -> f32 {
            let t = abs(x);
            let z = t * t;
            let p = mul_add(z, -5.953748478e-4, 4.985942040e-3);
            let p = mul_add(z, p, -2.676172182e-2);
            let p = mul_add(z, p, 1.128168255e-1);
            let p = mul_add(z, p, -3.761247993e-1);
            let p = mul_add(z, p, 1.283791512e-1);
            let near = mul_add(t, p, t);
            let q = mul_add(t, 1.675277599e-5, -4.712146474e-4);
            let q = mul_add(t, q, 5.277383607e-3);
            let q = mul_add(t, q, -3.432891890e-2);
            let q = mul_add(t, q, 1.533226669e-1);
            let q = mul_add(t, q, 9.162961841e-1);
            let q = mul_add(t, q, 6.283038259e-1);
            let far = 1.0 - exp2(-mul_add(t, q, t));
            with_sign(select(t < 0.93, near, far), x)
        }",
    ),
    (
        "with_sign",
        "fn with_sign(value: f32, sign: f32) -> f32 {
            from_bits(to_bits(value) | (to_bits(sign) & 0x80000000u32))
        }",
    ),
    (
        "powf",
        // Targets compute 2^(y log2 x), which has no value for negative x.
        "fn powf(x: f32, y: f32) -> f32 {
            let size = native_powf(abs(x), y);
            let odd = abs(y - 2.0 * trunc(y * 0.5)) == 1.0;
            let signed = from_bits(to_bits(size) | select(odd, to_bits(x) & 0x80000000u32, 0u32));
            let negative = select((trunc(y) == y) | is_infinite(x), signed, from_bits(to_bits(x) | 0x7fc00000u32));
            let value = select(x < 0.0, negative, select(x == 0.0, signed, size));
            let is_one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & is_infinite(y));
            select(is_one, 1.0, value)
        }",
    ),
    ("fast_tanh", "fn fast_tanh(x: f32) -> f32 { 1.0 - 2.0 / (exp(2.0 * x) + 1.0) }"),
    ("fast_powf", "fn fast_powf(x: f32, y: f32) -> f32 { exp2(y * log2(x)) }"),
    ("fast_log10", "fn fast_log10(x: f32) -> f32 { log2(x) * 0.301029996 }"),
    (
        "min",
        "fn min(a: f32, b: f32) -> f32 {
            select(a < b, a, select(is_nan(b), a, b))
        }",
    ),
    (
        "max",
        "fn max(a: f32, b: f32) -> f32 {
            select(a > b, a, select(is_nan(b), a, b))
        }",
    ),
    (
        // b is no NaN.
        "min_number",
        "fn min_number(a: f32, b: f32) -> f32 {
            select(a < b, a, b)
        }",
    ),
    (
        "max_number",
        "fn max_number(a: f32, b: f32) -> f32 {
            select(a > b, a, b)
        }",
    ),
    (
        // The NaN by its bits, since drivers may take it that none is ever compared.
        "clamp",
        "fn clamp(x: f32, low: f32, high: f32) -> f32 {
            select(is_nan(x), x, min(max(x, low), high))
        }",
    ),
    (
        // No comparison holds with a NaN: x stays, and a bound is none. Processors have an instruction for each line.
        "clamp_by_order",
        "fn clamp(x: f32, low: f32, high: f32) -> f32 {
            let above = select(x < low, low, x);
            select(above > high, high, above)
        }",
    ),
    (
        "to_i32",
        // The largest float below 2^31 is 2147483520.
        "fn to_i32(x: f32) -> i32 {
            let number = select(is_nan(x), 0.0, x);
            let inside = select(number < -2147483648.0, -2147483648.0, select(number < 2147483648.0, number, 0.0));
            select(number >= 2147483648.0, 2147483647, inside as i32)
        }",
    ),
    (
        "to_u32",
        "fn to_u32(x: f32) -> u32 {
            let number = select(is_nan(x), 0.0, x);
            let inside = select((number > 0.0) & (number < 4294967296.0), number, 0.0);
            select(number >= 4294967296.0, 4294967295, inside as u32)
        }",
    ),
    (
        "nearest half",
        // In integers. A half has 13 bits of mantissa fewer; below 2^-14 it is a multiple of 2^-24.
        "fn nearest_half(x: f32) -> f32 {
            let bits = to_bits(x);
            let magnitude = bits & 0x7fffffffu32;
            let normal = (magnitude + 0xfffu32 + ((magnitude >> 13u32) & 1u32)) & 0xffffe000u32;
            let small = to_bits(round_ties_even(from_bits(magnitude) * 16777216.0) * 5.9604644775390625e-8);
            let inside = select(magnitude < 0x38800000u32, small, normal);
            let finite = select(magnitude < 0x477ff000u32, inside, 0x7f800000u32);
            from_bits(select(magnitude > 0x7f800000u32, magnitude, finite) | (bits & 0x80000000u32))
        }",
    ),
    (
        "nearest brain",
        // The upper half of the bits, rounded by the lower; a NaN stays one.
        "fn nearest_brain(x: f32) -> f32 {
            let bits = to_bits(x);
            let rounded = bits + 0x7fffu32 + ((bits >> 16u32) & 1u32);
            let kept = select((bits & 0x7fffffffu32) > 0x7f800000u32, bits | 0x400000u32, rounded);
            from_bits(kept & 0xffff0000u32)
        }",
    ),
    (
        "pack half",
        // Narrowing is exact of what is a half already.
        "fn pack_half(x: f32) -> u32 {
            native_pack_half(nearest_half(x))
        }",
    ),
    (
        "to_i64",
        // The largest floats below 2^63 are far from it.
        "fn to_i64(x: f32) -> i64 {
            let number = select(is_nan(x), 0.0, x);
            let above = select(number < -9223372036854775808.0, -9223372036854775808.0, number);
            let inside = select(number < 9223372036854775808.0, above, 0.0);
            select(number >= 9223372036854775808.0, 9223372036854775807, inside as i64)
        }",
    ),
    (
        "to_u64",
        "fn to_u64(x: f32) -> u64 {
            let number = select(is_nan(x), 0.0, x);
            let inside = select((number > 0.0) & (number < 18446744073709551616.0), number, 0.0);
            select(number >= 18446744073709551616.0, 18446744073709551615, inside as u64)
        }",
    ),
    (
        "div_u32",
        "fn div_u32(a: u32, b: u32) -> u32 {
            select(b == 0, 0, a / max(b, 1))
        }",
    ),
    (
        "rem_u32",
        "fn rem_u32(a: u32, b: u32) -> u32 {
            select(b == 0, 0, a % max(b, 1))
        }",
    ),
    (
        "div_i32",
        // MIN / 1 is what MIN / -1 wraps to.
        "fn div_i32(a: i32, b: i32) -> i32 {
            let apart = (b == 0) | ((a == -2147483648) & (b == -1));
            select(b == 0, 0, a / select(apart, 1, b))
        }",
    ),
    (
        "rem_i32",
        // What is apart leaves 0, as a remainder by 1 does. Vulkan leaves a remainder open where a side is negative, so it is made of a
        // quotient.
        "fn rem_i32(a: i32, b: i32) -> i32 {
            let apart = (b == 0) | ((a == -2147483648) & (b == -1));
            let divisor = select(apart, 1, b);
            a - a / divisor * divisor
        }",
    ),
];

/// The function that does the same as [`name_for`]'s where the last argument is a number, not a NaN.
pub fn with_number(target: Target, function: MathFunction, scalar: Scalar) -> &'static str {
    match function {
        MathFunction::Min => "min_number",
        MathFunction::Max => "max_number",
        other => name_for(target, other, scalar),
    }
}

/// The function that does the work of a mathematical one for values of a scalar: integers have texts of their own, by their names, and so have functions of
/// angles where the target's own serve farther out, and `clamp` where NaNs are compared as the IR means it.
pub fn name_for(target: Target, function: MathFunction, scalar: Scalar) -> &'static str {
    if function == MathFunction::Clamp && matches!(target, Target::Cuda | Target::Cpu) {
        return "clamp_by_order";
    }
    let of_scalar = match scalar {
        Scalar::F32 if matches!(target, Target::Wgsl | Target::Spirv) => match function {
            MathFunction::Sin => return "sin_of_any",
            MathFunction::Cos => return "cos_of_any",
            MathFunction::Tan => return "tan_of_any",
            _ => return function.name(),
        },
        Scalar::I32 => format!("{}_i32", function.name()),
        Scalar::I64 if matches!(function, MathFunction::Abs) => "abs_i64".to_owned(),
        scalar if scalar.is_integer() => format!("{}_u32", function.name()),
        // What is exact of `f32` is so by the same text.
        Scalar::F64 => format!("{}_f64", function.name()),
        _ => return function.name(),
    };
    entry(&of_scalar).map_or(function.name(), |(known, _)| known)
}

/// Name and text of a function.
pub fn entry(name: &str) -> Option<(&'static str, &'static str)> {
    let all = [
        SOURCES,
        angles::SOURCES,
        bits::SOURCES,
        doubles::SOURCES,
        elementary::SOURCES,
        longs::SOURCES,
        powers::SOURCES,
        vectors::SOURCES,
    ];
    all.into_iter().flatten().find(|(known, _)| *known == name).copied()
}
