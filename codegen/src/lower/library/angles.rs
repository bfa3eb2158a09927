//! Functions of angles of `f64`, and their inverses, for targets that have none. In units of the last place, against exact values: sines and cosines within 1, the others within 2
//! (`codegen/tests/doubles.rs`), for every finite argument.
//!
//! An angle is a number of quarter turns, x 2 / pi, of which the whole ones count modulo 4. x is m 2^e with m an integer of 53 bits. Digits of 2 / pi that m 2^e makes multiples of four do not count, and those
//! that come 2^-137 behind do not either: the product is m times a window of 192 bits, in integers, modulo 2^192. No double is nearer to a multiple of a quarter turn than 2^-61 of one, so that even there 2^-65 of the rest is right.
//! Integers have no rounding that a compiler might arrange in another way.
//!
//! The rest goes on in two doubles. Where one double is cut from another and what remains is told by a difference, the cut is one of bits: a compiler that moves sums about, as NVIDIA's does, cannot
//! see through it.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    ("sin_f64", "fn sin(x: f64) -> f64 { double_flipped(double_turned(abs(x), 0u64), x) }"),
    ("cos_f64", "fn cos(x: f64) -> f64 { double_turned(abs(x), 1u64) }"),
    (
        "tan_f64",
        "fn tan(x: f64) -> f64 {
            let a = abs(x);
            double_flipped(double_turned(a, 0u64) / double_turned(a, 1u64), x)
        }",
    ),
    (
        "double_flipped",
        "fn flipped(value: f64, sign: f64) -> f64 {
            from_bits(to_bits(value) ^ (to_bits(sign) & 0x8000000000000000u64))
        }",
    ),
    (
        "double_high",
        // The upper 26 digits: products of two such are exact.
        "fn high(x: f64) -> f64 { from_bits(to_bits(x) & 0xfffffffff8000000u64) }",
    ),
    (
        "double_even",
        // Without the last digit, which an exact product of upper digits does not have: that changes nothing, but no compiler knows it.
        "fn even(x: f64) -> f64 { from_bits(to_bits(x) & 0xfffffffffffffffeu64) }",
    ),
    (
        "double_mul_high",
        // The upper word of a product.
        "fn mul_high(a: u64, b: u64) -> u64 {
            let low = 0xffffffffu64;
            let c = (a >> 32u32) * (b & low) + (((a & low) * (b & low)) >> 32u32);
            let d = (a & low) * (b >> 32u32) + (c & low);
            (a >> 32u32) * (b >> 32u32) + (c >> 32u32) + (d >> 32u32)
        }",
    ),
    (
        "double_turned",
        // sin(a + quarters pi / 2), a not negative. The words are 64 zeros and the digits of 2 / pi; four of them from the one in which the window begins are chosen by halving.
        "fn turned(a: f64, quarters: u64) -> f64 {
            let bits = to_bits(a);
            let exponent = (bits >> 52u32) as i32;
            let place = max(exponent, 1022) - 1013;
            let by_16 = place > 1023;
            let a0 = select(by_16, 0x7527bac7ebe5f17bu64, 0u64);
            let a1 = select(by_16, 0x3d0739f78a5292eau64, 0xa2f9836e4e441529u64);
            let a2 = select(by_16, 0x6bfb5fb11f8d5d08u64, 0xfc2757d1f534ddc0u64);
            let a3 = select(by_16, 0x56033046fc7b6babu64, 0xdb6295993c439041u64);
            let by_8 = (place & 512) > 0;
            let b0 = select(by_8, 0xe88235f52ebb4484u64, a0);
            let b1 = select(by_8, 0xe99c7026b45f7e41u64, a1);
            let b2 = select(by_8, 0x3991d639835339f4u64, a2);
            let b3 = select(by_8, 0x9c845f8bbdf9283bu64, a3);
            let b4 = select(by_8, 0x1ff897ffde05980fu64, 0xfe5163abdebbc561u64);
            let b5 = select(by_8, 0xef2f118b5a0a6d1fu64, 0xb7246e3a424dd2e0u64);
            let b6 = select(by_8, 0x6d367ecf27cb09b7u64, 0x06492eea09d1921cu64);
            let b7 = select(by_8, 0x4f463f669e5fea2du64, 0xfe1deb1cb129a73eu64);
            let b8 = select(by_8, 0x7527bac7ebe5f17bu64, 0xe88235f52ebb4484u64);
            let b9 = select(by_8, 0x3d0739f78a5292eau64, 0xe99c7026b45f7e41u64);
            let b10 = select(by_8, 0x6bfb5fb11f8d5d08u64, 0x3991d639835339f4u64);
            let by_4 = (place & 256) > 0;
            let c0 = select(by_4, b4, b0);
            let c1 = select(by_4, b5, b1);
            let c2 = select(by_4, b6, b2);
            let c3 = select(by_4, b7, b3);
            let c4 = select(by_4, b8, b4);
            let c5 = select(by_4, b9, b5);
            let c6 = select(by_4, b10, b6);
            let by_2 = (place & 128) > 0;
            let d0 = select(by_2, c2, c0);
            let d1 = select(by_2, c3, c1);
            let d2 = select(by_2, c4, c2);
            let d3 = select(by_2, c5, c3);
            let d4 = select(by_2, c6, c4);
            let by_1 = (place & 64) > 0;
            let e0 = select(by_1, d1, d0);
            let e1 = select(by_1, d2, d1);
            let e2 = select(by_1, d3, d2);
            let e3 = select(by_1, d4, d3);
            let up = (place & 63) as u32;
            let down = 63u32 - up;
            let w0 = (e0 << up) | ((e1 >> 1u32) >> down);
            let w1 = (e1 << up) | ((e2 >> 1u32) >> down);
            let w2 = (e2 << up) | ((e3 >> 1u32) >> down);
            let m = (bits & 0xfffffffffffffu64) | 0x10000000000000u64;
            let middle = m * w1;
            let low = middle + double_mul_high(m, w2);
            let high = m * w0 + double_mul_high(m, w1) + select(low < middle, 1u64, 0u64);
            let whole = (high + 0x2000000000000000u64) >> 62u32;
            let rest = high - (whole << 62u32);
            let flip = 0u64 - (rest >> 63u32);
            let h = rest ^ flip;
            let l = low ^ flip;
            let f = ((h >> 10u32) as f64) * 2.220446049250313e-16;
            let ends = ((l >> 32u32) as f64) * 5.048709793414476e-29 + ((l & 0xffffffffu64) as f64) * 1.1754943508222875e-38;
            let g = ((h & 1023u64) as f64) * 2.168404344971009e-19 + ends;
            let fh = double_high(f);
            let rh = double_even(fh * 1.5707963109016418);
            let rl = fh * 1.5893254773528196e-8 + ((f - fh) + g) * 1.5707963267948966;
            let r = double_even(rh + rl);
            let near = exponent < 1022;
            let sign = flip & 0x8000000000000000u64;
            let angle = select(near, a, from_bits(to_bits(r) ^ sign));
            let behind = select(near, 0.0, from_bits(to_bits((rh - r) + rl) ^ sign));
            let value = double_sine(angle, behind, quarters + select(near, 0u64, whole));
            select(exponent > 2046, from_bits(0x7ff8000000000000u64), value)
        }",
    ),
    (
        "double_sine",
        // sin(r + behind + quarters pi / 2), r within pi / 4 of 0 and the rest within its last digits, by the series of both functions.
        "fn sine(r: f64, behind: f64, quarters: u64) -> f64 {
            let z = r * r;
            let half = z * 0.5;
            let p = z * 2.8114572543455206e-15 - 7.647163731819816e-13;
            let p = z * p + 1.6059043836821613e-10;
            let p = z * p - 2.505210838544172e-8;
            let p = z * p + 2.7557319223985893e-6;
            let p = z * p - 1.984126984126984e-4;
            let p = z * p + 8.333333333333333e-3;
            let p = z * p - 0.16666666666666666;
            let sine = r + (r * (z * p) + behind * (1.0 - half));
            let q = 4.779477332387385e-14 - z * 1.5619206968586225e-16;
            let q = z * q - 1.1470745597729725e-11;
            let q = z * q + 2.08767569878681e-9;
            let q = z * q - 2.755731922398589e-7;
            let q = z * q + 2.48015873015873e-5;
            let q = z * q - 1.388888888888889e-3;
            let q = z * q + 4.1666666666666664e-2;
            let w = double_even(1.0 - half);
            let cosine = w + (((1.0 - w) - half) + (z * (z * q) - r * behind));
            let value = select((quarters & 1u64) == 0u64, sine, cosine);
            from_bits(to_bits(value) ^ ((quarters & 2u64) << 62u32))
        }",
    ),
    (
        "asin_f64",
        // Beyond 1/2 by the half angle, whose sine is a root of two doubles.
        "fn asin(x: f64) -> f64 {
            let a = abs(x);
            let far = a > 0.5;
            let z = select(far, (1.0 - a) * 0.5, a * a);
            let s = select(far, sqrt(max(z, 0.0)), a);
            let p = s * double_asin_rest(z);
            let root = double_high(s);
            let rest = p + double_rest_of_root(z, s);
            let value = select(far, (1.5707963267948966 - 2.0 * root) - (2.0 * rest - 6.123233995736766e-17), a + p);
            select(a > 1.0, from_bits(0x7ff8000000000000u64), double_with_sign(value, x))
        }",
    ),
    (
        "acos_f64",
        "fn acos(x: f64) -> f64 {
            let a = abs(x);
            let far = a > 0.5;
            let z = select(far, (1.0 - a) * 0.5, a * a);
            let s = select(far, sqrt(max(z, 0.0)), a);
            let p = s * double_asin_rest(z);
            let near = 1.5707963267948966 - (x + (double_flipped(p, x) - 6.123233995736766e-17));
            let root = double_high(s);
            let rest = p + double_rest_of_root(z, s);
            let behind = (3.141592653589793 - 2.0 * root) - (2.0 * rest - 1.2246467991473532e-16);
            let value = select(far, select(x < 0.0, behind, 2.0 * (root + rest)), near);
            select(a > 1.0, from_bits(0x7ff8000000000000u64), value)
        }",
    ),
    (
        "double_rest_of_root",
        // What the upper digits of s, the root of z, lack of it.
        "fn rest_of_root(z: f64, s: f64) -> f64 {
            let root = double_high(s);
            (z - double_even(root * root)) / max(s + root, 1e-300)
        }",
    ),
    (
        "double_asin_rest",
        // asin(s) / s - 1, z the square of s, not above 1/4: a polynomial through Chebyshev's points, off by less than 2^-57.
        "fn asin_rest(z: f64) -> f64 {
            let p = z * 0.028757851367421566 - 0.014851887071247204;
            let p = z * p + 0.01740087944269402;
            let p = z * p + 0.005457506718640358;
            let p = z * p + 0.01032281435018578;
            let p = z * p + 0.011479177415184906;
            let p = z * p + 0.013971212973552933;
            let p = z * p + 0.017352392720869973;
            let p = z * p + 0.02237217294214989;
            let p = z * p + 0.030381944138531247;
            let p = z * p + 0.04464285714635543;
            let p = z * p + 0.07499999999998433;
            let p = z * p + 0.16666666666666669;
            z * p
        }",
    ),
    ("atan_f64", "fn atan(x: f64) -> f64 { double_angle(x, 1.0) }"),
    ("atan2_f64", "fn atan2(y: f64, x: f64) -> f64 { double_angle(y, x) }"),
    (
        "double_angle",
        // The smaller side over the larger is less than 1/4 away from 0, 1/2 or 1 when it is turned back by the angle of that, which costs no rounding: differences of numbers so near are exact.
        // What is left has a short series.
        "fn angle(y: f64, x: f64) -> f64 {
            let steep = abs(y) > abs(x);
            let longer = select(steep, abs(y), abs(x));
            let shorter = select(steep, abs(x), abs(y));
            let endless = is_infinite(longer);
            let scale = select(longer > 1e300, 8.673617379884035e-19, select(longer < 1e-290, 1.6069380442589903e60, 1.0));
            let u = select(endless, select(shorter == longer, 1.0, 0.0), shorter * scale);
            let v = select(endless | (longer == 0.0), 1.0, longer * scale);
            let diagonal = u > v * 0.75;
            let between = u > v * 0.25;
            let n = u - select(diagonal, v, select(between, v * 0.5, 0.0));
            let d = v + select(diagonal, u, select(between, u * 0.5, 0.0));
            let t = n / d;
            let z = t * t;
            let p = 0.04 - z * 0.037037037037037035;
            let p = z * p - 0.043478260869565216;
            let p = z * p + 0.047619047619047616;
            let p = z * p - 0.05263157894736842;
            let p = z * p + 0.058823529411764705;
            let p = z * p - 0.06666666666666667;
            let p = z * p + 0.07692307692307693;
            let p = z * p - 0.09090909090909091;
            let p = z * p + 0.1111111111111111;
            let p = z * p - 0.14285714285714285;
            let p = z * p + 0.2;
            let p = z * p - 0.3333333333333333;
            let rest = t * (z * p);
            let left = to_bits(x) > 0x7fffffffffffffffu64;
            let way = select(steep, select(left, 1.0, -1.0), select(left, -1.0, 1.0));
            let from = select(steep, 1.5707963267948966, select(left, 3.141592653589793, 0.0));
            let from_low = select(steep, 6.123233995736766e-17, select(left, 1.2246467991473532e-16, 0.0));
            let by = way * select(diagonal, 0.7853981633974483, select(between, 0.4636476090008061, 0.0));
            let by_low = select(diagonal, 3.061616997868383e-17, select(between, 2.2698777452961687e-17, 0.0));
            let sum = double_even(from + by);
            let low = ((from - sum) + by) + (from_low + way * by_low);
            let value = sum + (way * t + (low + way * rest));
            select(is_nan(x) | is_nan(y), from_bits(0x7ff8000000000000u64), double_with_sign(value, y))
        }",
    ),
];
