//! Elementary functions that targets lack, or compute worse than their accuracy here.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "round",
        "fn round(x: f32) -> f32 {
            let whole = trunc(x);
            whole + with_sign(select(abs(x - whole) >= 0.5, 1.0, 0.0), x)
        }",
    ),
    // The next four are of `f64` alone, on targets whose own may do no more than convert to a word and back.
    (
        "trunc",
        // By 24 bits at a time, each of which such a function does right; every sum and difference is exact. From 2^52 on all numbers are whole. The sign is put on last, since a driver makes of `x * 0.0` a zero without one.
        "fn trunc(x: f32) -> f32 {
            let a = abs(x);
            let high = native_trunc(a * 3.552713678800501e-15) * 281474976710656.0;
            let rest = a - high;
            let middle = native_trunc(rest * 5.960464477539063e-8) * 16777216.0;
            let whole = high + middle + native_trunc(rest - middle);
            select((a > 0.0) & (a < 4503599627370496.0), select(x < 0.0, -whole, whole), x)
        }",
    ),
    (
        "round_ties_even",
        "fn round_ties_even(x: f32) -> f32 {
            let whole = trunc(x);
            let rest = abs(x - whole);
            let odd = abs(whole - 2.0 * trunc(whole * 0.5));
            let step = select(rest == 0.5, odd, select(rest > 0.5, 1.0, 0.0));
            select(step == 0.0, whole, whole + select(x < 0.0, -step, step))
        }",
    ),
    (
        "floor",
        "fn floor(x: f32) -> f32 {
            let whole = trunc(x);
            select(whole > x, whole - 1.0, whole)
        }",
    ),
    (
        "ceil",
        "fn ceil(x: f32) -> f32 {
            let whole = trunc(x);
            select(whole < x, whole + 1.0, whole)
        }",
    ),
    ("fract", "fn fract(x: f32) -> f32 { x - trunc(x) }"),
    (
        "copysign",
        "fn copysign(x: f32, sign: f32) -> f32 {
            with_sign(abs(x), sign)
        }",
    ),
    (
        "rem",
        // The quotient may have been rounded to the other side of an integer. One that is too large to be an integer of its type, or a number, leaves anything:
        // that becomes 0, but for a NaN.
        "fn rem(x: f32, y: f32) -> f32 {
            let size = abs(x);
            let by = abs(y);
            let rest = mul_add(-trunc(size / by), by, size);
            let rest = select(rest < 0.0, rest + by, rest);
            let rest = select(rest >= by, rest - by, rest);
            let rest = select((rest < 0.0) | (rest >= by), 0.0, rest);
            select(size < by, x, with_sign(rest, x))
        }",
    ),
    (
        "rem_by_bits",
        // Compilers may take it that there are neither infinities nor NaNs, and that two equal values leave nothing.
        "fn rem_by_bits(x: f32, y: f32) -> f32 {
            let is_usual = ((to_bits(x) & 0x7fffffffu32) < 0x7f800000u32) & (abs(y) > 0.0);
            select(is_usual, rem(x, y), from_bits(0x7fc00000u32))
        }",
    ),
    (
        "rem_of_doubles",
        "fn rem_of_doubles(x: f32, y: f32) -> f32 {
            let rest = x % y;
            let by = abs(y);
            let step = select(x < 0.0, -by, by);
            let rest = select(abs(rest) < by, rest, rest - step);
            let beyond = ((rest < 0.0) & (x > 0.0)) | ((rest > 0.0) & (x < 0.0));
            let rest = select(beyond, rest + step, rest);
            let beyond = (abs(rest) >= by) | ((rest < 0.0) & (x > 0.0)) | ((rest > 0.0) & (x < 0.0));
            let rest = select(beyond, 0.0, rest);
            let signed = select(rest == 0.0, x * 0.0, rest);
            select(is_infinite(y) & !is_infinite(x), x, signed)
        }",
    ),
    (
        "rem_euclid",
        "fn rem_euclid(x: f32, y: f32) -> f32 {
            let rest = remainder(x, y);
            select(rest < 0.0, rest + abs(y), rest)
        }",
    ),
    (
        "asin",
        // Beyond 1/2 by the half angle, where the sine is small.
        "fn asin(x: f32) -> f32 {
            let a = abs(x);
            let far = a > 0.5;
            let z = select(far, (1.0 - a) * 0.5, a * a);
            let p = asin_near_zero(select(far, sqrt(max(z, 0.0)), a), z);
            let value = select(far, 1.57079637 - (2.0 * p + 4.37113883e-8), p);
            select(a > 1.0, from_bits(0x7fc00000u32), with_sign(value, x))
        }",
    ),
    (
        "acos",
        "fn acos(x: f32) -> f32 {
            let a = abs(x);
            let far = a > 0.5;
            let z = select(far, (1.0 - a) * 0.5, a * a);
            let p = asin_near_zero(select(far, sqrt(max(z, 0.0)), a), z);
            let near = 1.57079637 - (with_sign(p, x) + 4.37113883e-8);
            let value = select(x < 0.0, 3.14159274 - (2.0 * p + 8.74227766e-8), 2.0 * p);
            select(a > 1.0, from_bits(0x7fc00000u32), select(far, value, near))
        }",
    ),
    (
        "asin_near_zero",
        // The arc sine of s, not above 1/2; z is its square.
        "fn asin_near_zero(s: f32, z: f32) -> f32 {
            let p = mul_add(z, 3.36908472e-2, 1.714923836e-2);
            let p = mul_add(z, p, 3.110066274e-2);
            let p = mul_add(z, p, 4.459940153e-2);
            let p = mul_add(z, p, 7.500094543e-2);
            let p = mul_add(z, p, 1.666666634e-1);
            mul_add(s * z, p, s)
        }",
    ),
    (
        "beyond_ln_2",
        // x - k ln 2 with ln 2 in two parts, of which the first is 355 / 512: multiplied in integers, since drivers that take sums in another order
        // would put the parts together again.
        "fn beyond_ln_2(x: f32, k: f32) -> f32 {
            mul_add(k, 2.12194440055e-4, x - ((k as i32) * 355) as f32 * 0.001953125)
        }",
    ),
    (
        // As accurate for large x as for small.
        "exactly_exp",
        "fn exactly_exp(x: f32) -> f32 {
            let inside = min(max(x, -104.0), 89.0);
            let k = round_ties_even(inside * 1.442695041);
            select(is_nan(x), x, scaled(exp_near_zero(beyond_ln_2(inside, k)), k as i32))
        }",
    ),
    (
        "exp_m1",
        // 2^k (q + 1) - 1, where q is the same function of a small number; by halves, since 2^k may be out of range.
        "fn exp_m1(x: f32) -> f32 {
            let inside = min(max(x, -18.0), 89.0);
            let k = round_ties_even(inside * 1.442695041);
            let r = beyond_ln_2(inside, k);
            let p = mul_add(r, 1.989110418e-4, 1.39337514e-3);
            let p = mul_add(r, p, 8.333310823e-3);
            let p = mul_add(r, p, 4.166646401e-2);
            let p = mul_add(r, p, 1.666666668e-1);
            let p = mul_add(r, p, 0.5);
            let q = mul_add(r * r, p, r);
            let scale = from_bits((((k as i32) + 126) << 23u32) as u32);
            let value = mul_add(scale, q, scale - 0.5) * 2.0;
            select(is_nan(x) | (x == 0.0), x, value)
        }",
    ),
    (
        "ln_1p",
        // 1 + x = 2^e (1 + f) as of `ln`. Where e is 0, f is x, which knows more than the sum.
        "fn ln_1p(x: f32) -> f32 {
            let bits = to_bits(1.0 + x);
            let upper = upper_bits(bits);
            let e = upper as i32 as f32 * 1.1920928955078125e-7;
            let f = select(upper == 0u32, x, from_bits(bits - upper) - 1.0);
            let value = mul_add(e, 0.693147181, f + ln_rest(f));
            let outside = select(x == -1.0, from_bits(0xff800000u32), from_bits(0x7fc00000u32));
            select(x > -1.0, select((to_bits(x) == 0x7f800000u32) | (x == 0.0), x, value), outside)
        }",
    ),
    ("log10", "fn log10(x: f32) -> f32 { own_ln(x) * 0.434294482 }"),
    (
        "sinh",
        // Far out by the square of the half, since the exponential overflows before its half does. Halved by its exponent, since a driver
        // may multiply in another order.
        "fn sinh(x: f32) -> f32 {
            let a = abs(x);
            let e = exp_m1(min(a, 80.0));
            let h = exactly_exp(a * 0.5);
            let value = select(a > 80.0, from_bits(to_bits(h) - 0x800000u32) * h, (e + e / (e + 1.0)) * 0.5);
            select(is_nan(x), x, with_sign(value, x))
        }",
    ),
    (
        "cosh",
        "fn cosh(x: f32) -> f32 {
            let a = abs(x);
            let e = exactly_exp(min(a, 80.0));
            let h = exactly_exp(a * 0.5);
            select(is_nan(x), x, select(a > 80.0, from_bits(to_bits(h) - 0x800000u32) * h, (e + 1.0 / e) * 0.5))
        }",
    ),
    (
        "asinh",
        "fn asinh(x: f32) -> f32 {
            let a = abs(x);
            let b = min(a, 10000.0);
            let near = own_ln_1p(b + b * b / (1.0 + sqrt(mul_add(b, b, 1.0))));
            let value = select(a > 10000.0, own_ln(a) + 0.693147181, near);
            select(is_nan(x), x, with_sign(value, x))
        }",
    ),
    (
        "acosh",
        "fn acosh(x: f32) -> f32 {
            let t = min(max(x, 1.0), 10000.0) - 1.0;
            let near = own_ln_1p(t + sqrt(t * (t + 2.0)));
            select(x >= 1.0, select(x > 10000.0, own_ln(x) + 0.693147181, near), from_bits(0x7fc00000u32))
        }",
    ),
    (
        "atanh",
        "fn atanh(x: f32) -> f32 {
            let a = abs(x);
            let b = select(a < 1.0, a, 0.0);
            let value = own_ln_1p(2.0 * b / (1.0 - b)) * 0.5;
            let edge = select(a == 1.0, from_bits(0x7f800000u32), from_bits(0x7fc00000u32));
            with_sign(select(a < 1.0, value, edge), x)
        }",
    ),
    (
        "cbrt",
        // A guess by a third of the exponent, and three steps of Newton's method.
        "fn cbrt(x: f32) -> f32 {
            let a = abs(x);
            let tiny = a < 1.17549435e-38;
            let s = select(tiny, a * 16777216.0, a);
            let t = from_bits(to_bits(s) / 3u32 + 0x2a5137a0u32);
            let t = t - (t - s / (t * t)) * 0.333333333;
            let t = t - (t - s / (t * t)) * 0.333333333;
            let t = t - (t - s / (t * t)) * 0.333333333;
            let value = with_sign(select(tiny, t * 0.00390625, t), x);
            select(is_nan(x) | is_infinite(x) | (x == 0.0), x, value)
        }",
    ),
    (
        "hypot",
        // GPUs divide by what is beyond 2^126 as by an infinity.
        "fn hypot(x: f32, y: f32) -> f32 {
            let a = max(abs(x), abs(y));
            let b = min(abs(x), abs(y));
            let scale = select(a > 1.0e37, 5.9604645e-8, 1.0);
            let r = (b * scale) / select(a > 0.0, a * scale, 1.0);
            let value = a * sqrt(mul_add(r, r, 1.0));
            let number = select(is_nan(x) | is_nan(y), from_bits(0x7fc00000u32), value);
            select(is_infinite(x) | is_infinite(y), from_bits(0x7f800000u32), number)
        }",
    ),
    ("mix", "fn mix(a: f32, b: f32, t: f32) -> f32 { a * (1.0 - t) + b * t }"),
    ("step", "fn step(edge: f32, x: f32) -> f32 { select(edge <= x, 1.0, 0.0) }"),
    (
        "smoothstep",
        "fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
            let t = clamp((x - low) / (high - low), 0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }",
    ),
];
