//! Kernels that people find hard, each a file that begins with its idea, its invariants, its cost and what limits it.
//!
//! Beside its kernels a file has a *driver*: a function that checks its arguments, makes the buffers that lie between the launches, and gives the
//! launches. [`Device::run_all`](trefoil::Device::run_all) runs them, in one submission and as often as wanted: launches that are run again give the
//! same result.
//!
//! ```
//! use trefoil::devices;
//! use trefoil_example_kernels::reduce;
//!
//! let device = devices::open_by_name("cpu", &Default::default())?;
//! let x = device.buffer(&[1.0f32, 2.0, 4.0])?;
//! let mut total = device.zeros(1)?;
//! device.run_all(reduce::sum(&device, &x, &mut total)?)?;
//! assert_eq!(total.read()?, [7.0]);
//! # Ok::<(), trefoil::Error>(())
//! ```

pub mod attention;
pub mod histogram;
pub mod matmul_f16;
pub mod matmul_tiles;
pub mod philox;
pub mod q4_k;
pub mod radix_sort;
pub mod reduce;
pub mod scan;
pub mod stencil;
pub mod top_k;
pub mod workgroup;
pub mod workload;

use trefoil::artefact::Kernel;
use trefoil::{Error, Result};

/// Every instance of every kernel.
pub fn all() -> Vec<&'static Kernel> {
    [
        attention::attention_f16::KERNELS,
        histogram::histogram_clear::KERNELS,
        histogram::histogram_count::KERNELS,
        matmul_f16::matmul_f16::KERNELS,
        matmul_tiles::matmul_tiles::KERNELS,
        philox::philox_normals::KERNELS,
        q4_k::q4_k_matvec::KERNELS,
        radix_sort::radix_count::KERNELS,
        radix_sort::radix_scatter::KERNELS,
        reduce::reduce_argmin::KERNELS,
        reduce::reduce_argmin_parts::KERNELS,
        reduce::reduce_max::KERNELS,
        reduce::reduce_sum::KERNELS,
        scan::levels::scan_sums::KERNELS,
        scan::levels::scan_tiles::KERNELS,
        scan::look_back::scan_one_pass::KERNELS,
        stencil::stencil_step::KERNELS,
        top_k::top_k_rows::KERNELS,
    ]
    .concat()
}

/// An argument that a driver refuses.
fn refused(driver: &str, argument: &str, reason: impl Into<String>) -> Error {
    Error::Argument { kernel: driver.to_owned(), argument: argument.to_owned(), reason: reason.into() }
}

/// Checks how many elements an argument has.
fn expect_length(driver: &str, argument: &str, given: usize, expected: usize) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(refused(driver, argument, format!("{given} elements given, {expected} expected")))
}
