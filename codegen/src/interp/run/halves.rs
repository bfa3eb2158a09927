//! Halves that lie side by side, as the floats that they are: by the processor's own conversion, which the compiler makes of no loop.
//!
//! It rounds to the nearest, ties to even, as [`math::f32_to_half`] does, and keeps more of a NaN than that.

use crate::interp::math;

/// Reads halves from `from` on into as many floats.
///
/// # Safety
/// As many halves and words are there, and they are apart.
pub(super) unsafe fn widen(from: *const u16, to: *mut u32, count: usize) {
    // SAFETY: the processor has what is called, and the rest is the caller's contract.
    let done = unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            match () {
                () if has!("avx512f") => widen_sixteens(from, to, count),
                () if has!("f16c") => widen_eights(from, to, count),
                () => 0,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        0
    };
    for i in done..count {
        // SAFETY: the caller's contract.
        unsafe { to.add(i).write(math::half_to_f32(from.add(i).read().into()).to_bits()) };
    }
}

/// Writes floats as the halves nearest to them.
///
/// # Safety
/// As [`widen`].
pub(super) unsafe fn narrow(from: *const u32, to: *mut u16, count: usize) {
    // SAFETY: as in `widen`.
    let done = unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            match () {
                () if has!("avx512f") => narrow_sixteens(from, to, count),
                () if has!("f16c") => narrow_eights(from, to, count),
                () => 0,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        0
    };
    for i in done..count {
        // SAFETY: the caller's contract.
        unsafe { to.add(i).write(math::f32_to_half(f32::from_bits(from.add(i).read())) as u16) };
    }
}

/// Declares a loop over vectors that gives how many elements it did.
#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($($name:ident, $features:literal, $lanes:literal, $from:ty, $to:ty, |$source:ident, $target:ident| $body:expr;)*) => { $(
        /// # Safety
        /// As [`widen`], and the processor has the features.
        #[target_feature(enable = $features)]
        unsafe fn $name(from: *const $from, to: *mut $to, count: usize) -> usize {
            #[allow(clippy::wildcard_imports, reason = "the instructions")]
            use std::arch::x86_64::*;
            let whole = count / $lanes * $lanes;
            for at in (0..whole).step_by($lanes) {
                // SAFETY: a vector of elements lies there, of which no alignment is asked.
                unsafe {
                    let ($source, $target) = (from.add(at), to.add(at));
                    $body;
                }
            }
            whole
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
vectors! {
    widen_sixteens, "avx512f", 16, u16, u32, |from, to|
        _mm512_storeu_ps(to.cast(), _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())));
    widen_eights, "avx,f16c", 8, u16, u32, |from, to|
        _mm256_storeu_ps(to.cast(), _mm256_cvtph_ps(_mm_loadu_si128(from.cast())));
    narrow_sixteens, "avx512f", 16, u32, u16, |from, to|
        _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(from.cast())));
    narrow_eights, "avx,f16c", 8, u32, u16, |from, to|
        _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.cast())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_its_float_and_back() {
        // An odd number of them, at an odd place.
        let halves: Vec<u16> = (0..=u16::MAX).chain([0x3c00; 7]).collect();
        let mut floats = vec![0u32; halves.len()];
        let mut back = vec![0u16; halves.len()];
        let count = halves.len() - 1;
        // SAFETY: all are as long, from the second element on.
        unsafe {
            widen(halves.as_ptr().add(1), floats.as_mut_ptr().add(1), count);
            narrow(floats.as_ptr().add(1), back.as_mut_ptr().add(1), count);
        }
        for i in 1..halves.len() {
            let (half, float) = (half::f16::from_bits(halves[i]), f32::from_bits(floats[i]));
            assert!(float == half.to_f32() || float.is_nan() && half.is_nan(), "{half:?}: {float}");
            let back = half::f16::from_bits(back[i]);
            assert!(back.to_bits() == half.to_bits() || back.is_nan() && half.is_nan(), "{half:?}: {back:?}");
        }
        assert_eq!((floats[0], back[0]), (0, 0));
    }

    #[test]
    fn floats_go_to_the_nearest_half() {
        // Around each half: at it, between it and the next, and a little to both sides of that.
        let around = |half: u16| {
            let (this, next) = (half::f16::from_bits(half).to_f32(), half::f16::from_bits(half + 1).to_f32());
            let middle = (this + next) / 2.0;
            [this, middle, middle.next_down(), middle.next_up(), -middle, -middle.next_up()]
        };
        let mut floats: Vec<f32> = (0..0x7bff).flat_map(around).collect();
        floats.extend([65519.0, 65520.0, 1e9, f32::INFINITY, f32::NEG_INFINITY, 1e-9, -1e-9, 0.0, -0.0]);
        let words: Vec<u32> = floats.iter().map(|float| float.to_bits()).collect();
        let mut found = vec![0u16; floats.len()];
        // SAFETY: both are as long.
        unsafe { narrow(words.as_ptr(), found.as_mut_ptr(), words.len()) };
        for (float, found) in floats.iter().zip(found) {
            assert_eq!(found, half::f16::from_f32(*float).to_bits(), "{float}");
            assert_eq!(u32::from(found), math::f32_to_half(*float), "{float}");
        }
    }
}
