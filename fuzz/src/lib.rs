//! What the fuzz targets share: seeds, mutations of kernels as text, and the macros' own modules.

extern crate proc_macro;

pub mod compile;
pub mod mutate;
pub mod numbers;
pub mod seeds;
pub mod sources;
pub mod stack;
pub mod words;
