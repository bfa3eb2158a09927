//! Pieces of 16 bytes, which are read at once, as the numbers that lie in them.

use trefoil_dsl::prelude::*;

/// Four floats of their bits.
#[device]
pub fn floats(bits: Vec4<u32>) -> Vec4<f32> {
    Vec4::new(f32::from_bits(bits.x), f32::from_bits(bits.y), f32::from_bits(bits.z), f32::from_bits(bits.w))
}

/// The two `f16` of a word.
#[device]
pub fn unpack_f16(word: u32) -> Vec2<f32> {
    unpack2x16float(word)
}

/// The two `bf16` of a word.
#[device]
pub fn unpack_bf16(word: u32) -> Vec2<f32> {
    Vec2::new(f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000))
}

/// The four `f32` of a piece.
#[device]
pub fn four_f32(words: Vec4<u32>, _half: usize) -> Vec4<f32> {
    floats(words)
}

/// Half of the eight `f16` of a piece.
#[device]
pub fn four_f16(words: Vec4<u32>, half: usize) -> Vec4<f32> {
    let x = unpack_f16(select(half == 0, words.x, words.z));
    let y = unpack_f16(select(half == 0, words.y, words.w));
    Vec4::new(x.x, x.y, y.x, y.y)
}

/// Half of the eight `bf16` of a piece.
#[device]
pub fn four_bf16(words: Vec4<u32>, half: usize) -> Vec4<f32> {
    let x = unpack_bf16(select(half == 0, words.x, words.z));
    let y = unpack_bf16(select(half == 0, words.y, words.w));
    Vec4::new(x.x, x.y, y.x, y.y)
}
