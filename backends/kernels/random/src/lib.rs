//! Random numbers: words, floats between two bounds, normals, and what is so or not.
//!
//! **Which numbers.** The words of a tensor are those of the blocks 0, 1, 2 and so on of its stream ([`philox::block_of`]), four each, in order: element `i` of 32 or 16 bits comes from word `i`, one of 64 bits from words `2 i` and
//! `2 i + 1`; normals come in pairs from as many words. So a number depends on the seed, the stream and its own place, and on nothing else.
//!
//! **Who does what.** An invocation makes a block and writes what comes of it, 16 bytes at once of elements of four bytes or more.
//!
//! **Cost.** Nothing is read but the seed. A block takes some 70 instructions, a pair of normals some 60 besides; words and uniforms are bound by memory on most devices, normals by arithmetic.

pub mod normal;
pub mod philox;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use normal::{four_normals, two_double_normals};
use philox::block_of;

/// The invocation's block of a stream.
#[device]
fn own_block(seed: &[u32], stream: u32) -> Vec4<u32> {
    block_of(Vec2::new(seed[0], seed[1]), stream, global_index())
}

/// Writes the four elements of the invocation's block; what lies past the end is not written.
#[device]
fn set_four<T: Element>(y: &mut [T], made: Vec4<T>) {
    let block = global_index();
    if 4 * block + 3 < y.len() {
        y.set_vec4(block, made);
    } else {
        for lane in unroll(0..3) {
            if 4 * block + lane < y.len() {
                y[4 * block + lane] = made[lane];
            }
        }
    }
}

/// Writes the two elements of the invocation's block.
#[device]
fn set_two(y: &mut [f64], made: Vec2<f64>) {
    let block = global_index();
    if 2 * block + 1 < y.len() {
        y.set_vec2(block, made);
    } else if 2 * block < y.len() {
        y[2 * block] = made.x;
    }
}

/// `y` = the words of a stream.
#[kernel(workgroup(256))]
pub fn random_bits(seed: &[u32], y: &mut [u32], stream: u32) {
    set_four(y, own_block(seed, stream));
}

/// `y` = 1 with a probability of `threshold` 2^32nds, else 0.
#[kernel(workgroup(256))]
pub fn random_bernoulli(seed: &[u32], y: &mut [u32], stream: u32, threshold: u32) {
    let mut words = own_block(seed, stream);
    for lane in unroll(0..4) {
        words[lane] = (words[lane] < threshold) as u32;
    }
    set_four(y, words);
}

/// `low + span k / 2^24` with the first 24 bits k of a word, but at most `last`; for `nothing` see [`random_uniform`].
#[device]
fn uniform_of(word: u32, low: f32, span: f32, last: f32, nothing: u32) -> f32 {
    let above = (word >> 8) as f32 * (1.0 / 16_777_216.0) * span;
    let above = bitcast::<f32>(bitcast::<u32>(above) ^ nothing);
    min(low + above, last)
}

/// `y` = uniforms from `low` on, up to `last`.
///
/// `nothing` is 0, which no compiler knows: what it is mixed into is rounded before it is added to, so that the bits are the same on every device.
#[kernel(workgroup(256), instances(T = [f32, f16, bf16]))]
pub fn random_uniform<T: Float>(seed: &[u32], y: &mut [T], stream: u32, low: f32, span: f32, last: f32, nothing: u32) {
    let words = own_block(seed, stream);
    let mut made = Vec4::splat(T::lit(0.0));
    for lane in unroll(0..4) {
        made[lane] = T::from_f32(uniform_of(words[lane], low, span, last, nothing));
    }
    set_four(y, made);
}

/// `y` = `mean + deviation n` with normals n.
#[kernel(workgroup(256), instances(T = [f32, f16, bf16]))]
pub fn random_normal<T: Float>(seed: &[u32], y: &mut [T], stream: u32, mean: f32, deviation: f32) {
    let normals = four_normals(own_block(seed, stream));
    let mut made = Vec4::splat(T::lit(0.0));
    for lane in unroll(0..4) {
        made[lane] = T::from_f32(mean + deviation * normals[lane]);
    }
    set_four(y, made);
}

/// A double of the words of its bits, the lower first.
#[device]
fn double(words: Vec2<u32>) -> f64 {
    bitcast::<f64>((words.y as u64) << 32 | words.x as u64)
}

/// As [`uniform_of`], with the first 53 bits of two words.
#[device]
fn uniform_double_of(high: u32, rest: u32, low: f64, span: f64, last: f64, nothing: u32) -> f64 {
    let bits = (high as u64) << 21 | (rest >> 11) as u64;
    let above = bits as f64 * (1.0 / 9_007_199_254_740_992.0) * span;
    let sum = low + bitcast::<f64>(bitcast::<u64>(above) ^ nothing as u64);
    if sum > last { last } else { sum }
}

/// As [`random_uniform`], of doubles; bounds are given by their bits.
#[kernel(workgroup(256), requires(Float64, Int64))]
pub fn random_uniform_f64(
    seed: &[u32],
    y: &mut [f64],
    stream: u32,
    low: Vec2<u32>,
    span: Vec2<u32>,
    last: Vec2<u32>,
    nothing: u32,
) {
    let words = own_block(seed, stream);
    let first = uniform_double_of(words.x, words.y, double(low), double(span), double(last), nothing);
    let second = uniform_double_of(words.z, words.w, double(low), double(span), double(last), nothing);
    set_two(y, Vec2::new(first, second));
}

/// As [`random_normal`], of doubles; mean and deviation are given by their bits.
#[kernel(workgroup(256), requires(Float64, Int64))]
pub fn random_normal_f64(seed: &[u32], y: &mut [f64], stream: u32, mean: Vec2<u32>, deviation: Vec2<u32>) {
    let normals = two_double_normals(own_block(seed, stream));
    let (mean, deviation) = (double(mean), double(deviation));
    set_two(y, Vec2::new(mean + deviation * normals.x, mean + deviation * normals.y));
}

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [
        random_bernoulli::KERNELS,
        random_bits::KERNELS,
        random_normal::KERNELS,
        random_normal_f64::KERNELS,
        random_uniform::KERNELS,
        random_uniform_f64::KERNELS,
    ]
    .concat()
}
