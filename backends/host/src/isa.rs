//! One body of safe Rust, compiled once for each instruction set.

use trefoil_dsl::artefact::Vectors;

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

#[inline(never)]
fn baseline<W: Work>(work: W) -> W::Output {
    if cfg!(target_arch = "aarch64") {
        // Every such processor multiplies and adds vectors of four in one instruction.
        work.run::<true, 8, 3, 4>()
    } else {
        work.run::<false, 6, 2, 4>()
    }
}

/// Does the work with the best instructions that the processor has.
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(test)]
    let vectors = tests::vectors();
    #[cfg(not(test))]
    let vectors = Vectors::of_processor();
    match vectors {
        // SAFETY: the processor has every feature that the function enables, and a test asks for no better ones.
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 => unsafe { avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx2 => unsafe { avx2(work) },
        _ => baseline(work),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Vectors;

    /// How many levels below the best tests use; any number is right for every test.
    static BELOW: AtomicU8 = AtomicU8::new(0);

    pub(super) fn vectors() -> Vectors {
        match (Vectors::of_processor(), BELOW.load(Ordering::Relaxed)) {
            (best, 0) => best,
            (Vectors::Avx512, 1) => Vectors::Avx2,
            _ => Vectors::Baseline,
        }
    }

    /// Runs a test with each instruction set that the processor has.
    pub(crate) fn at_every_level(test: impl Fn()) {
        for below in 0..3 {
            BELOW.store(below, Ordering::Relaxed);
            test();
        }
        BELOW.store(0, Ordering::Relaxed);
    }
}
