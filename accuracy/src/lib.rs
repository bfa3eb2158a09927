//! The largest error of each mathematical function of the language, for each float type, measured on a device.
//!
//! [`kernels`] are written by the build script from the compiler's table of functions. [`mod@reference`] computes the same in `f64`, over the inputs that it says. What a
//! device gives is a [`measure::Measured`], kept as JSON in `docs/accuracy`, from which [`page`] makes a chapter of the documentation:
//!
//! ```text
//! cargo run --release -p trefoil-accuracy -- measure --device vulkan --into docs/accuracy/vulkan-h200.json
//! cargo run --release -p trefoil-accuracy -- page
//! ```

pub mod kernels;
pub mod measure;
pub mod number;
pub mod page;
pub mod reference;
