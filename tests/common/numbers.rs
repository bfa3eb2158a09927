//! Numbers for tests: without a pattern, and the same on every machine.

/// Numbers between -range and range.
pub fn numbers(count: usize, seed: u32, range: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / (1u32 << 23) as f32 * range - range
        })
        .collect()
}
