//! The instruction sets for which code of the CPU is compiled more than once.

/// An instruction set, better than those before it.
///
/// Code is compiled for each inside a function that enables it, and one is chosen at run time. Of kernels, builds with assertions for debugging have no copy for AVX-512, where AVX2 serves: it is a third
/// of what the compiler optimises of a crate of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vectors {
    /// What every processor of the target has; on AArch64 that is NEON.
    Baseline,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, VL, BW and DQ, too.
    Avx512,
}

impl Vectors {
    /// The best that this processor has.
    #[must_use]
    pub fn of_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("fma") {
                let wide = has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq");
                return if wide { Self::Avx512 } else { Self::Avx2 };
            }
        }
        Self::Baseline
    }
}
