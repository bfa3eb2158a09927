//! What the language holds, row by row: each row is a file with a kernel that uses one feature and a function that runs it and
//! looks at the result.
//!
//! The table that `trefoil language` prints is not written anywhere: a cell says what the compiler makes of the row's kernels for that
//! target ([`cell`]). `tests/rows.rs` runs every row on every device that has it.

pub mod book;
mod cell;
pub mod rows;

use std::error::Error;
use std::fmt::Debug;

use trefoil::Device;
use trefoil::artefact::{Kernel, Target};

pub use cell::{Cell, Support, cell};
pub use rows::ROWS;

/// What a row's check gives.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A feature of the language.
pub struct Row {
    /// The name of its file, and of its test.
    pub name: &'static str,
    /// Its file.
    pub source: &'static str,
    /// The kernels that use it.
    pub kernels: &'static [&'static [&'static Kernel]],
    /// Runs them on a device and looks at the results.
    pub check: fn(&Device) -> Outcome,
}

impl Row {
    /// What it is, in a few words: the first line of its file.
    pub fn feature(&self) -> &'static str {
        self.source.lines().next().unwrap_or_default().trim_start_matches("//!").trim()
    }

    /// Its kernels, in all their instances.
    pub fn instances(&self) -> impl Iterator<Item = &'static Kernel> {
        self.kernels.iter().flat_map(|kernels| kernels.iter().copied())
    }

    /// What a target makes of it.
    ///
    /// # Errors
    /// The kernel's IR cannot be read: the program was built by another version.
    pub fn cell(&self, target: Target) -> Outcome<Cell> {
        cell(self.instances(), target)
    }

    /// The test that runs it on every device.
    pub fn test(&self) -> String {
        format!("guide/tests/rows.rs: {}", self.name)
    }
}

/// Compares what a device gave with what it should have given.
fn expect<T: PartialEq + Debug>(given: &[T], expected: &[T]) -> Outcome {
    if given.len() != expected.len() {
        return Err(format!("{} elements instead of {}", given.len(), expected.len()).into());
    }
    match given.iter().zip(expected).position(|(given, expected)| given != expected) {
        Some(i) => Err(format!("element {i} is {:?} instead of {:?}", given[i], expected[i]).into()),
        None => Ok(()),
    }
}

/// The same for numbers that may differ by a part in a million.
fn expect_near(given: &[f32], expected: &[f32]) -> Outcome {
    if given.len() != expected.len() {
        return Err(format!("{} elements instead of {}", given.len(), expected.len()).into());
    }
    let near = |given: f32, expected: f32| (given - expected).abs() <= 1e-6 * expected.abs().max(1.0);
    match given.iter().zip(expected).position(|(given, expected)| !near(*given, *expected)) {
        Some(i) => Err(format!("element {i} is {} instead of {}", given[i], expected[i]).into()),
        None => Ok(()),
    }
}

/// The first chapter's program, which runs as an example of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/start.md")]
pub struct Start;
