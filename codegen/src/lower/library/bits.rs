//! Integers as bits: fields, rotations, wide products, and several small numbers in a word.

/// Name and text of every function.
pub const SOURCES: &[(&str, &str)] = &[
    ("abs_i32", "fn abs_i32(x: i32) -> i32 { select(x < 0, 0 - x, x) }"),
    ("abs_i64", "fn abs_i64(x: i64) -> i64 { select(x < 0i64, 0i64 - x, x) }"),
    ("signum_i32", "fn signum_i32(x: i32) -> i32 { min(max(x, -1), 1) }"),
    (
        "rem_euclid_u32",
        "fn rem_euclid_u32(x: u32, y: u32) -> u32 {
            select(y == 0, 0, x % max(y, 1))
        }",
    ),
    (
        "rem_euclid_i32",
        "fn rem_euclid_i32(x: i32, y: i32) -> i32 {
            let apart = (y == 0) | ((x == -2147483648) & (y == -1));
            let divisor = select(apart, 1, y);
            let rest = x - x / divisor * divisor;
            select(rest < 0, rest + abs(divisor), rest)
        }",
    ),
    (
        "rotate_left_u32",
        "fn rotate_left_u32(x: u32, n: one_u32) -> u32 {
            (x << spread(n & 31u32)) | (x >> spread((0u32 - n) & 31u32))
        }",
    ),
    (
        "rotate_right_u32",
        "fn rotate_right_u32(x: u32, n: one_u32) -> u32 {
            (x >> spread(n & 31u32)) | (x << spread((0u32 - n) & 31u32))
        }",
    ),
    ("rotate_left_i32", "fn rotate_left_i32(x: i32, n: one_u32) -> i32 { rotate_left(x as u32, n) as i32 }"),
    ("rotate_right_i32", "fn rotate_right_i32(x: i32, n: one_u32) -> i32 { rotate_right(x as u32, n) as i32 }"),
    (
        "extract_bits_u32",
        "fn extract_bits_u32(x: u32, offset: one_u32, count: one_u32) -> u32 {
            let first = one(min(offset, 32u32));
            let bits = one(min(count, 32u32 - first));
            let field = (x << spread((32u32 - bits - first) & 31u32)) >> spread((32u32 - bits) & 31u32);
            select(spread(bits) == 0u32, 0u32, field)
        }",
    ),
    (
        "extract_bits_i32",
        "fn extract_bits_i32(x: i32, offset: one_u32, count: one_u32) -> i32 {
            let first = one(min(offset, 32u32));
            let bits = one(min(count, 32u32 - first));
            let field = (x << spread((32u32 - bits - first) & 31u32)) >> spread((32u32 - bits) & 31u32);
            select(spread(bits) == 0u32, 0i32, field)
        }",
    ),
    (
        "insert_bits_u32",
        "fn insert_bits_u32(x: u32, new: u32, offset: one_u32, count: one_u32) -> u32 {
            let first = one(min(offset, 32u32));
            let bits = one(min(count, 32u32 - first));
            let ones = one((0xffffffffu32 >> ((32u32 - bits) & 31u32)) << (first & 31u32));
            let mask = spread(select(bits == 0u32, 0u32, ones));
            (x & !mask) | ((new << spread(first & 31u32)) & mask)
        }",
    ),
    (
        "insert_bits_i32",
        "fn insert_bits_i32(x: i32, new: i32, offset: one_u32, count: one_u32) -> i32 {
            insert_bits(x as u32, new as u32, offset, count) as i32
        }",
    ),
    (
        "mul_high_u32",
        // By halves of 16 bits; no sum overflows.
        "fn mul_high_u32(x: u32, y: u32) -> u32 {
            let a = x & 0xffffu32;
            let b = x >> 16u32;
            let c = y & 0xffffu32;
            let d = y >> 16u32;
            let middle = b * c + ((a * c) >> 16u32);
            let other = a * d + (middle & 0xffffu32);
            b * d + (middle >> 16u32) + (other >> 16u32)
        }",
    ),
    (
        "mul_high_i32",
        // A negative factor is 2^32 less than its bits say.
        "fn mul_high_i32(x: i32, y: i32) -> i32 {
            let high = mul_high(x as u32, y as u32);
            (high - select(x < 0, y as u32, 0u32) - select(y < 0, x as u32, 0u32)) as i32
        }",
    ),
    (
        "dot4_u8",
        "fn dot4_u8(a: u32, b: u32, c: u32) -> u32 {
            let low = (a & 0xffu32) * (b & 0xffu32) + ((a >> 8u32) & 0xffu32) * ((b >> 8u32) & 0xffu32);
            let high = ((a >> 16u32) & 0xffu32) * ((b >> 16u32) & 0xffu32) + (a >> 24u32) * (b >> 24u32);
            c + low + high
        }",
    ),
    (
        "dot4_i8",
        "fn dot4_i8(a: u32, b: u32, c: i32) -> i32 {
            let low = (((a << 24u32) as i32) >> 24u32) * (((b << 24u32) as i32) >> 24u32)
                + (((a << 16u32) as i32) >> 24u32) * (((b << 16u32) as i32) >> 24u32);
            let high = (((a << 8u32) as i32) >> 24u32) * (((b << 8u32) as i32) >> 24u32)
                + ((a as i32) >> 24u32) * ((b as i32) >> 24u32);
            c + low + high
        }",
    ),
    (
        "pack4xu8",
        "fn pack4xu8(v: u32) -> one_u32 {
            let b = v & 0xffu32;
            one(lane0(b) | (lane1(b) << 8u32) | (lane2(b) << 16u32) | (lane3(b) << 24u32))
        }",
    ),
    ("pack4xi8", "fn pack4xi8(v: i32) -> one_u32 { pack4xu8(v as u32) }"),
    (
        "pack4x8snorm",
        "fn pack4x8snorm(v: f32) -> one_u32 {
            pack4xi8(round_ties_even(min(max(v, -1.0), 1.0) * 127.0) as i32)
        }",
    ),
    (
        "pack4x8unorm",
        "fn pack4x8unorm(v: f32) -> one_u32 {
            pack4xu8(round_ties_even(min(max(v, 0.0), 1.0) * 255.0) as u32)
        }",
    ),
    (
        "pack2x16float",
        "fn pack2x16float(v: f32) -> one_u32 {
            let b = pack_half(v);
            one(lane0(b) | (lane1(b) << 16u32))
        }",
    ),
    (
        "pack2x16snorm",
        "fn pack2x16snorm(v: f32) -> one_u32 {
            let b = (round_ties_even(min(max(v, -1.0), 1.0) * 32767.0) as i32) as u32;
            one((lane0(b) & 0xffffu32) | (lane1(b) << 16u32))
        }",
    ),
    (
        "pack2x16unorm",
        "fn pack2x16unorm(v: f32) -> one_u32 {
            let b = round_ties_even(min(max(v, 0.0), 1.0) * 65535.0) as u32;
            one(lane0(b) | (lane1(b) << 16u32))
        }",
    ),
    (
        "unpack4xu8",
        "fn unpack4xu8(p: one_u32) -> u32 {
            vector(p & 0xffu32, (p >> 8u32) & 0xffu32, (p >> 16u32) & 0xffu32, p >> 24u32)
        }",
    ),
    (
        "unpack4xi8",
        "fn unpack4xi8(p: one_u32) -> i32 {
            (vector(p << 24u32, p << 16u32, p << 8u32, p) as i32) >> 24u32
        }",
    ),
    ("unpack4x8snorm", "fn unpack4x8snorm(p: one_u32) -> f32 { max((unpack4xi8(p) as f32) / 127.0, -1.0) }"),
    ("unpack4x8unorm", "fn unpack4x8unorm(p: one_u32) -> f32 { (unpack4xu8(p) as f32) / 255.0 }"),
    (
        "unpack2x16float",
        "fn unpack2x16float(p: one_u32) -> f32 {
            unpack_half(vector(p & 0xffffu32, p >> 16u32))
        }",
    ),
    (
        "unpack2x16snorm",
        "fn unpack2x16snorm(p: one_u32) -> f32 {
            let b = (vector(p << 16u32, p) as i32) >> 16u32;
            max((b as f32) / 32767.0, -1.0)
        }",
    ),
    (
        "unpack2x16unorm",
        "fn unpack2x16unorm(p: one_u32) -> f32 {
            (vector(p & 0xffffu32, p >> 16u32) as f32) / 65535.0
        }",
    ),
];
