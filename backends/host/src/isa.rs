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

/// An instruction set, better than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
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

/// The best that the processor has.
fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq");
        return if wide { Level::Avx512 } else { Level::Avx2 };
    }
    Level::Baseline
}

/// Does the work with the best instructions that the processor has.
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(test)]
    let level = tests::level();
    #[cfg(not(test))]
    let level = best();
    match level {
        // SAFETY: `best` found every feature that the function enables, and a test asks for no better level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(work) },
        Level::Baseline => baseline(work),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{Level, best};

    /// How many levels below the best tests use; any number is right for every test.
    static BELOW: AtomicU8 = AtomicU8::new(0);

    pub(super) fn level() -> Level {
        let below = BELOW.load(Ordering::Relaxed);
        #[cfg(target_arch = "x86_64")]
        match (best(), below) {
            (best, 0) => return best,
            (Level::Avx512, 1) => return Level::Avx2,
            _ => {}
        }
        let _ = below;
        Level::Baseline
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
