//! Normally distributed numbers from a counter-based generator: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) and the transform of Box and Muller.
//!
//! **Idea.** A counter-based generator has no state: the words at a counter are a function of the counter and a key, ten rounds of multiplying and mixing. So
//! every invocation makes numbers by itself, and any part of a stream can be made again, on any device.
//!
//! **Invariants.** Elements `4 i` to `4 i + 3` of a stream come from the counter `(i, 0, stream)` and the key `seed`. The words are the same on all devices; the
//! normals are the same as far as `ln`, `sin` and `cos` are.
//!
//! **Cost.** 4 bytes written an element, and about 70 instructions: five wide products and twenty others for the words, half a logarithm and square root, and a sine or cosine. Arithmetic
//! limits it.

use trefoil::dsl::launch::WriteBuffer;
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

/// What the first and the third word of a counter are multiplied by.
#[device]
const FIRST: u32 = 0xd251_1f53;
#[device]
const THIRD: u32 = 0xcd9e_8d57;

/// What is added to the key after each round: the golden ratio, and the square root of 3 less 1.
#[device]
const GOLDEN: u32 = 0x9e37_79b9;
#[device]
const ROOT: u32 = 0xbb67_ae85;

/// Philox4x32-10: four words that look random, of a counter and a key.
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

/// Two independent normals, of mean 0 and variance 1, from two words.
#[device]
pub fn box_muller(first: u32, second: u32) -> Vec2<f32> {
    // From 2^-33, so that the logarithm is finite, up to 1.
    let uniform = first as f32 * (1.0 / 4294967296.0) + (0.5 / 4294967296.0);
    let radius = sqrt(-2.0 * ln(uniform));
    // Within half a turn, where every device is at its most accurate.
    let angle = second as i32 as f32 * (PI / 2147483648.0);
    Vec2::new(radius * cos(angle), radius * sin(angle))
}

/// Four normals: those from element `4 i` of a stream on.
#[device]
pub fn four_normals(i: u32, seed: Vec2<u32>, stream: Vec2<u32>) -> Vec4<f32> {
    let words = philox(Vec4::new(i, 0, stream.x, stream.y), seed);
    let (low, high) = (box_muller(words.x, words.y), box_muller(words.z, words.w));
    Vec4::new(low.x, low.y, high.x, high.y)
}

/// `out` = the beginning of a stream.
#[kernel(workgroup(256))]
pub fn philox_normals(out: &mut [f32], seed: Vec2<u32>, stream: Vec2<u32>) {
    let i = global_index();
    let numbers = four_normals(i as u32, seed, stream);
    if 4 * i + 3 < out.len() {
        out.set_vec4(i, numbers);
    } else {
        // What lies past the end is not written.
        for lane in unroll(0..3) {
            out[4 * i + lane] = numbers[lane];
        }
    }
}

fn halves(number: u64) -> Vec2<u32> {
    Vec2::new(number as u32, (number >> 32) as u32)
}

/// `out` = the beginning of the stream of that number, of the generator of that seed.
///
/// # Errors
/// The buffer does not fit the device.
pub fn normals<'a>(out: impl WriteBuffer<'a, f32>, seed: u64, stream: u64) -> Result<Vec<Dispatch>> {
    let out = out.slice_mut();
    let quads = out.len().div_ceil(4);
    Ok(vec![philox_normals(out, halves(seed), halves(stream))?.over(quads)])
}
