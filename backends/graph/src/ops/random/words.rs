//! Random numbers by the plainest means, for references: rounds in 64 bits, logarithms and angles in `f64`.

use super::{Bernoulli, Bits, Distribution, Normal, Random, Uniform, before, bounds, threshold};
use crate::types::ElementType;

/// The four words of a counter and a key.
fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    (0..10u32).fold(counter, |[a, b, c, d], round| {
        let mix = [
            key[0].wrapping_add(0x9e37_79b9u32.wrapping_mul(round)),
            key[1].wrapping_add(0xbb67_ae85u32.wrapping_mul(round)),
        ];
        let (first, third) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        let high = |product: u64| (product >> 32) as u32;
        [high(third) ^ b ^ mix[0], third as u32, high(first) ^ d ^ mix[1], first as u32]
    })
}

/// Normals of mean 0 and variance 1 by the words that each pair comes from.
fn pair(words: &[u32], element: ElementType) -> [f64; 2] {
    let quarters = f64::from(words[words.len() / 2] >> 30);
    let (u, t) = if element == ElementType::F64 {
        let k = u64::from(words[0]) << 21 | u64::from(words[1] >> 11);
        let part = u64::from(words[2] & 0x3fff_ffff) << 23 | u64::from(words[3] >> 9);
        ((k + 1) as f64 / 2f64.powi(53), part as f64 / 2f64.powi(53) - 0.5)
    } else {
        let word = words[0].max(1);
        let digits =
            if word >> 24 == 0 { word } else { word >> (8 - word.leading_zeros()) << (8 - word.leading_zeros()) };
        (f64::from(digits) / 2f64.powi(32), f64::from(words[1] << 2 >> 7) / 2f64.powi(25) - 0.5)
    };
    let radius = (-2.0 * u.ln()).sqrt();
    // An angle of the first quarter, so that zeros of sine and cosine are exact.
    let (sine, cosine) = (t * std::f64::consts::FRAC_PI_2).sin_cos();
    let turned = match quarters as u32 {
        0 => [cosine, sine],
        1 => [-sine, cosine],
        2 => [-cosine, -sine],
        _ => [sine, -cosine],
    };
    turned.map(|of| radius * of)
}

/// Elements of a tensor of so many.
pub(super) fn values(op: &Random, seed: &[f64], count: usize) -> Vec<f64> {
    let Random { distribution, stream, ty } = op;
    let element = ty.element;
    let key = [seed[0] as u32, seed[1] as u32];
    let in_a_block = if element.bytes() == 8 { 2 } else { 4 };
    let blocks = (0..count.div_ceil(in_a_block)).map(|block| philox([block as u32, 0, *stream, 0], key));
    let mut values: Vec<f64> = blocks.flat_map(|words| of_block(*distribution, element, words)).collect();
    values.truncate(count);
    values
}

/// What a block becomes.
fn of_block(distribution: Distribution, element: ElementType, words: [u32; 4]) -> Vec<f64> {
    let halves = words.chunks_exact(2);
    match distribution {
        Bits if element == ElementType::U64 => {
            halves.map(|two| (u64::from(two[1]) << 32 | u64::from(two[0])) as f64).collect()
        }
        Bits => words.iter().map(|word| f64::from(*word)).collect(),
        Bernoulli { p } => words.iter().map(|word| f64::from(u8::from(*word < threshold(p)))).collect(),
        Uniform { low, high } => {
            let [low, high, span] = bounds(element, low, high);
            let last = before(element, high);
            if element == ElementType::F64 {
                let bits = |two: &[u32]| u64::from(two[0]) << 21 | u64::from(two[1] >> 11);
                return halves.map(|two| (low + bits(two) as f64 / 2f64.powi(53) * span).min(last)).collect();
            }
            let one = |word: u32| {
                let above = (word >> 8) as f32 / 16_777_216.0 * span as f32;
                element.rounded(f64::from((low as f32 + above).min(last as f32)))
            };
            words.into_iter().map(one).collect()
        }
        Normal { mean, deviation } => {
            let words_of_two = if element == ElementType::F64 { 4 } else { 2 };
            let normals = words.chunks_exact(words_of_two).flat_map(|words| pair(words, element));
            normals.map(|normal| element.rounded(mean + deviation * normal)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// The vectors that the generator's authors publish: of zeros, of ones, and of digits of pi.
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let digits = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox(digits, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
