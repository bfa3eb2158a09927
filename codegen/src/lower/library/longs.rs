//! Integers of 64 bits: order, and quotients.
//!
//! Where the target's own division serves, by any divisor in its plain form. Elsewhere by digits: a driver for Vulkan gave one quotient of a kernel for another.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "div_u64",
        "fn div_u64(a: u64, b: u64) -> u64 {
            select(b == 0, 0, a / max(b, 1))
        }",
    ),
    (
        "rem_u64",
        "fn rem_u64(a: u64, b: u64) -> u64 {
            select(b == 0, 0, a % max(b, 1))
        }",
    ),
    (
        "div_i64",
        "fn div_i64(a: i64, b: i64) -> i64 {
            let apart = (b == 0) | ((a == -9223372036854775808) & (b == -1));
            select(b == 0, 0, a / select(apart, 1, b))
        }",
    ),
    (
        "rem_i64",
        "fn rem_i64(a: i64, b: i64) -> i64 {
            let apart = (b == 0) | ((a == -9223372036854775808) & (b == -1));
            let divisor = select(apart, 1, b);
            a - a / divisor * divisor
        }",
    ),
    (
        "div_u64_by_digits",
        "fn div_u64_by_digits(a: u64, b: u64) -> u64 {
            select(b == 0, 0, quotient_u64(a, max(b, 1)))
        }",
    ),
    (
        "rem_u64_by_digits",
        "fn rem_u64_by_digits(a: u64, b: u64) -> u64 {
            select(b == 0, 0, a - quotient_u64(a, max(b, 1)) * b)
        }",
    ),
    (
        "div_i64_by_digits",
        // Negative where one side is. What MIN / -1 wraps to is MIN, as the bits of 2^63 are.
        "fn div_i64_by_digits(a: i64, b: i64) -> i64 {
            let sign = (a ^ b) >> 63u32;
            let quotient = quotient_u64(magnitude_i64(a), max(magnitude_i64(b), 1)) as i64;
            select(b == 0, 0, (quotient ^ sign) - sign)
        }",
    ),
    (
        "rem_i64_by_digits",
        "fn rem_i64_by_digits(a: i64, b: i64) -> i64 {
            select(b == 0, 0, a - div_i64_by_digits(a, b) * b)
        }",
    ),
    (
        "magnitude_i64",
        "fn magnitude_i64(x: i64) -> u64 {
            let sign = x >> 63u32;
            ((x ^ sign) - sign) as u64
        }",
    ),
    (
        "quotient_u64",
        // Digits of about 19 bits each, of a divisor that is not 0. An estimate takes two conversions, a division and two products, which err by less than 2^-20 together, and 1 - 2^-20 makes sure
        // that none is too large: a rest becomes less than 2^-19 of it and a divisor. Four make it less than two divisors.
        "fn quotient_u64(a: u64, b: u64) -> u64 {
            let inverse = 1.0 / (b as f32) * 0.99999904632568359375;
            let first = ((a as f32) * inverse) as u64;
            let below = a - first * b;
            let second = ((below as f32) * inverse) as u64;
            let lower = below - second * b;
            let third = ((lower as f32) * inverse) as u64;
            let least = lower - third * b;
            let fourth = ((least as f32) * inverse) as u64;
            let quotient = first + second + third + fourth;
            quotient + select(least - fourth * b >= b, 1u64, 0u64)
        }",
    ),
    (
        "less_i64",
        "fn less_i64(a: i64, b: i64) -> bool {
            let high = (a >> spread(32u32)) as i32;
            let other = (b >> spread(32u32)) as i32;
            (high < other) | ((high == other) & ((a as u32) < (b as u32)))
        }",
    ),
    (
        "less_equal_i64",
        "fn less_equal_i64(a: i64, b: i64) -> bool {
            let high = (a >> spread(32u32)) as i32;
            let other = (b >> spread(32u32)) as i32;
            (high < other) | ((high == other) & ((a as u32) <= (b as u32)))
        }",
    ),
];
