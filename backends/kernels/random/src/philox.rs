//! Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): four words that look random, of a counter and a key.
//!
//! A generator with a counter has no state: the words at a counter are ten rounds of multiplying and mixing. So every invocation makes numbers by itself, and any part of a stream
//! can be made again, on any device, with the same bits.

use trefoil_dsl::prelude::*;

/// What the first word of a counter is multiplied by.
#[device]
const FIRST: u32 = 0xd251_1f53;
/// What the third word of a counter is multiplied by.
#[device]
const THIRD: u32 = 0xcd9e_8d57;

/// What is added to the key's first word after each round: the golden ratio.
#[device]
const GOLDEN: u32 = 0x9e37_79b9;
/// What is added to the key's second word after each round: the square root of 3 less 1.
#[device]
const ROOT: u32 = 0xbb67_ae85;

/// The four words of a counter and a key.
///
/// ```
/// use trefoil_dsl::prelude::{Vec2, Vec4};
/// use trefoil_kernels_random::philox::philox;
/// let words = philox(Vec4::splat(0), Vec2::splat(0));
/// assert_eq!(words.to_array(), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
#[device]
pub fn philox(counter: Vec4<u32>, key: Vec2<u32>) -> Vec4<u32> {
    let mut words = counter;
    let mut mix = key;
    for _ in 0..10 {
        let (a, b) = (words.x, words.z);
        words = Vec4::new(
            mul_high(b, THIRD) ^ words.y ^ mix.x,
            b.wrapping_mul(THIRD),
            mul_high(a, FIRST) ^ words.w ^ mix.y,
            a.wrapping_mul(FIRST),
        );
        mix = Vec2::new(mix.x.wrapping_add(GOLDEN), mix.y.wrapping_add(ROOT));
    }
    words
}

/// Block `block` of a stream: the words of the counter `(block, 0, stream, 0)`. The second word is the upper half of the block's number, which is 0 as long as indices have 32 bits.
#[device]
pub fn block_of(seed: Vec2<u32>, stream: u32, block: usize) -> Vec4<u32> {
    philox(Vec4::new(block as u32, 0, stream, 0), seed)
}
