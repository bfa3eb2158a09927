//! Every kernel on every device, and once more within WebGPU's default limits, against references in `f64` or exact integers that share no code with it.
//!
//! What a kernel writes is poisoned before, and lies between guards that must stay as they were; what it reads lies between poison too ([`held`]). Sizes are awkward: none,
//! one, one below, at and above a workgroup and a tile, primes, no multiples of four; and large, except on a processor that plays a GPU. Each runs 200 times in a row and
//! must give the same bits each time. Tolerances are bounds on the rounding of the kernel's own operations.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod attention;
#[path = "../../../../tests/common/mod.rs"]
mod common;
mod held;
mod histogram;
mod matmul_f16;
mod matmul_tiles;
#[path = "../../../../tests/common/numbers.rs"]
mod numbers;
mod philox;
mod q4_k;
mod radix_sort;
mod reduce;
mod scan;
mod stencil;
mod top_k;
