//! Elementary functions of `f64`, for targets that have none. In units of the last place, against exact values: `erf` within 1, `exp`, `exp2`, `ln`, `ln_1p` and `log2` within 2, the others within 4
//! (`codegen/tests/doubles.rs`).
//!
//! Exponentials are 2^k e^r with |r| not above ln 2 / 2, where the series of e^r, to its 13th power, leaves less than 2^-57. Logarithms are e ln 2 + ln(1 + f) with 1 + f between the roots of 1/2
//! and 2: of s = f / (2 + f), ln(1 + f) is 2 s (1 + s^2 / 3 + s^4 / 5 + ..), and 2 s is f - s f, so that the sum begins with f itself, which is exact. What is left out behind s^18 is below 2^-55 of it.
//! Every literal here is the nearest `f64` of a fraction, but for ln 2, which is in two parts: the first has 33 binary digits, so that its product with an exponent is exact.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "exp_f64",
        "fn exp(x: f64) -> f64 {
            let inside = min(max(x, -746.0), 710.0);
            let k = nearest_of_double(inside * 1.4426950408889634);
            let r = double_beyond_ln_2(inside, k);
            select(is_nan(x), x, double_scaled(1.0 + double_exp_m1_near_zero(r), k))
        }",
    ),
    (
        "exp2_f64",
        "fn exp2(x: f64) -> f64 {
            let inside = min(max(x, -1076.0), 1025.0);
            let k = nearest_of_double(inside);
            let r = (inside - k as f64) * 0.6931471805599453;
            select(is_nan(x), x, double_scaled(1.0 + double_exp_m1_near_zero(r), k))
        }",
    ),
    (
        "exp_m1_f64",
        // 2^k (q + 1) - 1, where q is the same function of a small number.
        "fn exp_m1(x: f64) -> f64 {
            let inside = min(max(x, -40.0), 700.0);
            let k = nearest_of_double(inside * 1.4426950408889634);
            let q = double_exp_m1_near_zero(double_beyond_ln_2(inside, k));
            let scale = double_scaled(1.0, k);
            select(is_nan(x) | (x == 0.0), x, select(x > 700.0, exp(x), scale * q + (scale - 1.0)))
        }",
    ),
    (
        "nearest_of_double",
        // Of at most some thousands; ties may go either way.
        "fn nearest_of(x: f64) -> i32 { (x + select(x < 0.0, -0.5, 0.5)) as i32 }",
    ),
    (
        "double_beyond_ln_2",
        // No k has more than 11 bits, so that its square has none above the 24th. A compiler that cannot know that cannot add the parts of ln 2 before it multiplies, as NVIDIA's does.
        "fn beyond_ln_2(x: f64, k: i32) -> f64 {
            let times = k as f64;
            let high = from_bits(to_bits(x - times * 0.6931471804855391) ^ ((k * k >> 24u32) as u64));
            high - times * 7.440617110012397e-11
        }",
    ),
    (
        "double_exp_m1_near_zero",
        "fn exp_m1_near_zero(r: f64) -> f64 {
            let p = r * 1.6059043836821613e-10 + 2.08767569878681e-9;
            let p = r * p + 2.505210838544172e-8;
            let p = r * p + 2.755731922398589e-7;
            let p = r * p + 2.7557319223985893e-6;
            let p = r * p + 2.48015873015873e-5;
            let p = r * p + 1.984126984126984e-4;
            let p = r * p + 1.388888888888889e-3;
            let p = r * p + 8.333333333333333e-3;
            let p = r * p + 4.1666666666666664e-2;
            let p = r * p + 0.16666666666666666;
            let p = r * p + 0.5;
            r + r * r * p
        }",
    ),
    (
        "double_scaled",
        // x * 2^k in two steps, since 2^k alone may be out of range.
        "fn scaled(x: f64, k: i32) -> f64 {
            let half = k >> 1u32;
            let rest = k - half;
            x * from_bits(((half + 1023) as u64) << 52u32) * from_bits(((rest + 1023) as u64) << 52u32)
        }",
    ),
    (
        "ln_f64",
        "fn ln(x: f64) -> f64 {
            let e = double_exponent(x);
            let f = double_fraction(x);
            let value = e * 0.6931471804855391 + (f - (double_ln_rest(f) - e * 7.440617110012397e-11));
            double_ln_ends(x, value)
        }",
    ),
    (
        "log2_f64",
        "fn log2(x: f64) -> f64 {
            let f = double_fraction(x);
            double_ln_ends(x, double_exponent(x) + (f - double_ln_rest(f)) * 1.4426950408889634)
        }",
    ),
    ("log10_f64", "fn log10(x: f64) -> f64 { ln(x) * 0.4342944819032518 }"),
    (
        "ln_1p_f64",
        "fn ln_1p(x: f64) -> f64 {
            let near = (x > -0.29289) & (x < 0.41421);
            select(near, x - double_ln_rest(x), ln(1.0 + x))
        }",
    ),
    (
        // The bits of x, of a subnormal one times 2^54, above those of the root of 1/2.
        "double_bits_above_root",
        "fn bits_above_root(x: f64) -> u64 {
            to_bits(select(x < 2.2250738585072014e-308, x * 18014398509481984.0, x)) - 0x3fe6a09e667f3bcdu64
        }",
    ),
    (
        "double_exponent",
        "fn exponent(x: f64) -> f64 {
            let e = ((double_bits_above_root(x) as i64) >> 52u32) as i32;
            e as f64 - select(x < 2.2250738585072014e-308, 54.0, 0.0)
        }",
    ),
    (
        "double_fraction",
        "fn fraction(x: f64) -> f64 {
            from_bits((double_bits_above_root(x) & 0xfffffffffffffu64) + 0x3fe6a09e667f3bcdu64) - 1.0
        }",
    ),
    (
        "double_ln_rest",
        // f - ln(1 + f)
        "fn ln_rest(f: f64) -> f64 {
            let s = f / (2.0 + f);
            let z = s * s;
            let p = z * 0.10526315789473684 + 0.11764705882352941;
            let p = z * p + 0.13333333333333333;
            let p = z * p + 0.15384615384615385;
            let p = z * p + 0.18181818181818182;
            let p = z * p + 0.2222222222222222;
            let p = z * p + 0.2857142857142857;
            let p = z * p + 0.4;
            let p = z * p + 0.6666666666666666;
            s * (f - z * p)
        }",
    ),
    (
        "double_ln_ends",
        "fn ln_ends(x: f64, value: f64) -> f64 {
            let outside = select(x == 0.0, from_bits(0xfff0000000000000u64), from_bits(0x7ff8000000000000u64));
            select(x > 0.0, select(is_infinite(x), x, value), outside)
        }",
    ),
    (
        "tanh_f64",
        "fn tanh(x: f64) -> f64 {
            let e = exp_m1(2.0 * min(abs(x), 20.0));
            select(is_nan(x), x, double_with_sign(e / (e + 2.0), x))
        }",
    ),
    (
        "sinh_f64",
        // Far out by the square of the half, since the exponential overflows before its half does; halved by its exponent.
        "fn sinh(x: f64) -> f64 {
            let a = abs(x);
            let e = exp_m1(min(a, 700.0));
            let h = exp(a * 0.5);
            let far = from_bits(to_bits(h) - 0x10000000000000u64) * h;
            select(is_nan(x), x, double_with_sign(select(a > 700.0, far, (e + e / (e + 1.0)) * 0.5), x))
        }",
    ),
    (
        "cosh_f64",
        "fn cosh(x: f64) -> f64 {
            let a = abs(x);
            let e = exp(min(a, 700.0));
            let h = exp(a * 0.5);
            let far = from_bits(to_bits(h) - 0x10000000000000u64) * h;
            select(is_nan(x), x, select(a > 700.0, far, (e + 1.0 / e) * 0.5))
        }",
    ),
    (
        "asinh_f64",
        "fn asinh(x: f64) -> f64 {
            let a = abs(x);
            let b = min(a, 100000000.0);
            let near = ln_1p(b + b * b / (1.0 + sqrt(b * b + 1.0)));
            select(is_nan(x), x, double_with_sign(select(a > 100000000.0, ln(a) + 0.6931471805599453, near), x))
        }",
    ),
    (
        "acosh_f64",
        "fn acosh(x: f64) -> f64 {
            let t = min(max(x, 1.0), 100000000.0) - 1.0;
            let near = ln_1p(t + sqrt(t * (t + 2.0)));
            let value = select(x > 100000000.0, ln(x) + 0.6931471805599453, near);
            select(x >= 1.0, value, from_bits(0x7ff8000000000000u64))
        }",
    ),
    (
        "atanh_f64",
        "fn atanh(x: f64) -> f64 {
            let a = abs(x);
            let b = select(a < 1.0, a, 0.0);
            let value = ln_1p(2.0 * b / (1.0 - b)) * 0.5;
            let edge = select(a == 1.0, from_bits(0x7ff0000000000000u64), from_bits(0x7ff8000000000000u64));
            double_with_sign(select(a < 1.0, value, edge), x)
        }",
    ),
    (
        "erf_f64",
        // Up to 1 by its series, to the 37th power, which leaves less than 2^-61. From there on 1 - e^(-x^2) q, where q falls slowly: a polynomial in (x - 2) / (x + 2), fitted so that what it is off by is
        // below 2^-76 of 1; at 6 the result is 1.
        "fn erf(x: f64) -> f64 {
            let a = abs(x);
            let n = min(a, 1.0);
            let z = n * n;
            let p = z * 4.763348040515068e-18 - 9.063970842808673e-17;
            let p = z * p + 1.6342614095367152e-15;
            let p = z * p - 2.7835162072109215e-14;
            let p = z * p + 4.4632242632864775e-13;
            let p = z * p - 6.7113668551641105e-12;
            let p = z * p + 9.422759064650411e-11;
            let p = z * p - 1.2290555301717928e-9;
            let p = z * p + 1.4807192815879218e-8;
            let p = z * p - 1.6365844691234924e-7;
            let p = z * p + 1.6462114365889248e-6;
            let p = z * p - 1.492565035840625e-5;
            let p = z * p + 0.00012055332981789664;
            let p = z * p - 0.0008548327023450853;
            let p = z * p + 0.005223977625442188;
            let p = z * p - 0.026866170645131252;
            let p = z * p + 0.11283791670955126;
            let p = z * p - 0.37612638903183754;
            let p = z * p + 0.1283791670955126;
            let b = min(max(a, 1.0), 6.0);
            let u = (b - 2.0) / (b + 2.0);
            let q = -3.771390837054486e-7 - u * 3.195020178583573e-7;
            let q = u * q + 1.159057459085341e-6;
            let q = u * q + 3.734639132821232e-6;
            let q = u * q + 1.394740551112386e-6;
            let q = u * q - 1.3959932656380685e-5;
            let q = u * q - 2.758028369555394e-5;
            let q = u * q + 2.752479858849162e-5;
            let q = u * q + 0.00017436121877821404;
            let q = u * q + 4.3555636916378476e-5;
            let q = u * q - 0.0009819770297274353;
            let q = u * q - 0.0008471432519681376;
            let q = u * q + 0.006997461739286162;
            let q = u * q + 0.00373289240434437;
            let q = u * q - 0.07897858101573307;
            let q = u * q + 0.24165819424246635;
            let q = u * q - 0.4271858474139584;
            let q = u * q + 0.25539567631050575;
            let value = select(a < 1.0, n + n * p, 1.0 - exp(-(b * b)) * q);
            select(is_nan(x), x, double_with_sign(value, x))
        }",
    ),
    (
        "double_with_sign",
        "fn with_sign(value: f64, sign: f64) -> f64 {
            from_bits(to_bits(value) | (to_bits(sign) & 0x8000000000000000u64))
        }",
    ),
];
