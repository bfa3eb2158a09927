//! One body of safe Rust, compiled once for each instruction set.

/// Work whose loops become vectors.
pub(crate) trait Work {
    /// What it gives.
    type Output;

    /// Does it; the implementation is `#[inline(always)]`, so that it is compiled for its caller's instruction set.
    ///
    /// `FMA` tells whether a multiply-add is one instruction. A vector has `LANES` numbers, and the registers hold the sums of a product's tile
    /// of `ROWS` rows of `VECTORS` vectors.
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn avx512<W: Work>(work: W) -> W::Output {
    work.run::<true, 8, 3, 16>()
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn avx2<W: Work>(work: W) -> W::Output {
    work.run::<true, 6, 2, 8>()
}

/// Does the work with the best instructions that the processor has.
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2_and_fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512_too = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq");
        if avx2_and_fma && avx512_too {
            // SAFETY: the processor has every feature that the function enables.
            return unsafe { avx512(work) };
        }
        if avx2_and_fma {
            // SAFETY: as above.
            return unsafe { avx2(work) };
        }
    }
    if cfg!(target_arch = "aarch64") {
        // Every such processor multiplies and adds vectors of four in one instruction.
        return work.run::<true, 8, 3, 4>();
    }
    work.run::<false, 6, 2, 4>()
}
