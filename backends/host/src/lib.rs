//! Ops on the processor itself, for the CPU device: what is faster as Rust that knows caches and vector registers than as a GPU's kernel.
//!
//! Everything here works on slices and knows neither graphs nor devices; `trefoil-graph` offers these functions as candidates beside the kernels. It is safe Rust whose inner
//! loops are written so that the compiler makes vectors of them; `isa` compiles each body once for each instruction set. Work is split over the
//! thread pool that the caller is in.
//!
//! A library would do for the product alone, and one is a candidate beside this (`trefoil_cpu` with its feature `gemm`); it fuses no activation, and cannot be shared with attention.

pub mod attention;
pub mod columns;
pub mod convolution;
pub mod grouped;
mod isa;
mod math;
pub mod number;
mod one_row;
pub mod product;
pub mod reductions;
pub mod resize;
pub mod rows;
pub mod sort;
mod tile;
