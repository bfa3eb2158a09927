//! Checking kernels, in the tests of whoever writes them.
//!
//! [`device`] opens a device on which the checker ([`codegen::check`](crate::codegen::check)) runs every kernel: launches, graphs and eager ops work as on any other, and each dispatch
//! leaves a [`Report`] of races, accesses past the end, reads of what was never written and the like, with the lines of the kernel's source.
//!
//! ```
//! use trefoil::check::{self, Finding, Options};
//! use trefoil::prelude::*;
//!
//! /// Turns each run of 64 elements around, and lacks a barrier.
//! #[kernel(workgroup(64))]
//! fn turn(x: &[f32], y: &mut [f32]) {
//!     let mut part = workgroup_array::<f32>(64);
//!     let l = local_index();
//!     part[l] = x[global_index()];
//!     y[global_index()] = part[63 - l];
//! }
//!
//! # fn main() -> trefoil::Result<()> {
//! let (device, reports) = check::device(&Options::default())?;
//! let x = device.buffer(&[1.0f32; 128])?;
//! let mut y = device.zeros::<f32>(128)?;
//! device.run(turn(&x, &mut y)?.over(128))?;
//! for report in reports.take() {
//!     // kernel `turn`: 1 finding
//!     //   src/lib.rs:10:25: race on element 63 of workgroup memory `part`: invocation 0 of workgroup 0 reads it, and
//!     //   invocation 63 of workgroup 0 writes it at src/lib.rs:9:5, with nothing between that orders the two (128 times)
//!     println!("{report}");
//!     let is_that = |found: &Finding| matches!(found, Finding::Race { memory, element: 63, .. } if memory.name == "part");
//!     assert!(report.findings.iter().any(|located| is_that(&located.finding)));
//! }
//! # Ok(())
//! # }
//! ```

use trefoil_dsl::device::DeviceOptions;
use trefoil_dsl::{Device, Result};

pub use trefoil_codegen::check::{
    Access, CheckError, Finding, Found, Invocation, Launch, Location, Memory, MemoryKind, Options, Order, Printed,
    Program, Report,
};
pub use trefoil_cpu::Reports;

/// Opens a device that checks what it runs, and gives what it finds. It runs every kernel, also those that have no code for the CPU, a hundred times as slowly as the CPU device.
///
/// # Errors
/// `options` state a size of subgroups that is none, or the threads of the CPU device could not be started.
pub fn device(options: &Options) -> Result<(Device, Reports)> {
    trefoil_cpu::open_checked(&DeviceOptions::default(), options)
}
