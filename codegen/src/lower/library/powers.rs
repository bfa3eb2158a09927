//! Powers of `f64`, for targets that have none: within 1 unit in the last place (`codegen/tests/doubles.rs`).
//!
//! x^y is 2^(y log2 x). The exponent is up to 1100 and wanted to 2^-55, so that the logarithm has to be right to 2^-66 of itself: it is computed in two doubles. Of s = f / (2 + f), where x is 2^e (1 + f),
//! log2(1 + f) is 2 / ln 2 times s (1 + s^2 / 3 + s^4 (1 / 5 + s^2 / 7 + ..)), whose last term needs one double alone. The upper doubles have 26 digits, which makes products of two exact.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "powf_f64",
        "fn powf(x: f64, y: f64) -> f64 {
            let a = abs(x);
            let edge = (a == 0.0) | is_infinite(a);
            let grows = select(a == 0.0, -y, y) > 0.0;
            let infinite = from_bits(0x7ff0000000000000u64);
            let size = select(edge, select(grows, infinite, 0.0), double_power(select(edge, 1.0, a), y));
            let whole = trunc(y) == y;
            let half = y * 0.5;
            let odd = whole & !(trunc(half) == half);
            let signed = from_bits(to_bits(size) | select(odd, to_bits(x) & 0x8000000000000000u64, 0u64));
            let none = (x < 0.0) & !whole & !is_infinite(x);
            let value = select(none | is_nan(x) | is_nan(y), from_bits(0x7ff8000000000000u64), signed);
            select((y == 0.0) | (x == 1.0), 1.0, value)
        }",
    ),
    (
        "double_power",
        // a positive and finite. No logarithm but 0 is so near to 0 that 1e20 times it is not far outside.
        "fn power(a: f64, y: f64) -> f64 {
            let e = double_exponent(a);
            let f = double_fraction(a);
            let m = 2.0 + f;
            let mh = double_high(m);
            let ml = f - (mh - 2.0);
            let s = f / m;
            let sh = double_high(s);
            let sl = ((f - double_even(sh * mh)) - sh * ml) / m;
            let square = double_even(sh * sh);
            let zh = double_high(square);
            let zl = (square - zh) + sl * (sh + s);
            let z = zh + zl;
            let p = z * 0.04 + 0.043478260869565216;
            let p = z * p + 0.047619047619047616;
            let p = z * p + 0.05263157894736842;
            let p = z * p + 0.058823529411764705;
            let p = z * p + 0.06666666666666667;
            let p = z * p + 0.07692307692307693;
            let p = z * p + 0.09090909090909091;
            let p = z * p + 0.1111111111111111;
            let p = z * p + 0.14285714285714285;
            let p = z * p + 0.2;
            let wh = double_even(zh * 0.3333333283662796);
            let wl = zh * 4.967053731282552e-9 + (zl * 0.3333333333333333 + z * (z * p));
            let v = 1.0 + (wh + wl);
            let vh = double_high(v);
            let vl = ((1.0 - vh) + wh) + wl;
            let ph = double_even(sh * vh);
            let pl = sh * vl + sl * v;
            let p1 = double_high(ph);
            let p2 = (ph - p1) + pl;
            let lh = double_even(p1 * 2.885390043258667);
            let ll = p1 * 3.851925982253235e-8 + p2 * 2.8853900817779268;
            let th = double_high(e + (lh + ll));
            let tl = ((e - th) + lh) + ll;
            let inside = min(max(y, -100000000000000000000.0), 100000000000000000000.0);
            let yh = double_high(inside);
            let eh = double_even(yh * th);
            let el = yh * tl + (inside - yh) * (th + tl);
            let sum = eh + el;
            let far = abs(sum) > 1100.0;
            let upper = select(far, select(sum > 0.0, 1100.0, -1100.0), eh);
            let lower = select(far, 0.0, el);
            let k = nearest_of_double(upper + lower);
            let r = (upper - k as f64) + lower;
            double_scaled(1.0 + double_exp_m1_near_zero(r * 0.6931471805599453), k)
        }",
    ),
];
