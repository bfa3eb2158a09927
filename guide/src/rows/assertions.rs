//! assertions and printing

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// An element of each row, of rows that lie one after the other: a column that leaves its row is told of, and the last row is printed.
///
/// `assert!`, `assert_eq!`, `assert_ne!` (and the same with `debug_` before), `print!` and `println!` are there in builds with debug assertions, as `debug_assert!` is in Rust. The kernel then writes what it reports
/// to a buffer; the next call that waits for the device prints the lines, and answers an error that names the kernel, the invocation, the line and the values if something that was asserted does not hold. A kernel
/// goes on behind such an assertion: nothing else could bring the others to their barriers. In other builds, and in the forms below, nothing is left of them, so that what they compute must have no effects.
#[kernel(workgroup(64))]
pub fn row_elements(begins: &[u32], columns: &[u32], x: &[f32], y: &mut [f32]) {
    let row = global_index();
    if row < y.len() {
        let (begin, end) = (begins[row], begins[row + 1]);
        assert!(begin <= end, "row {row} ends before it begins");
        let at = begin + columns[row];
        assert!(at < end);
        if row + 1 == y.len() {
            println!("the last row, {row}, has {} elements", end - begin);
        }
        y[row] = x[at as usize];
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    // Whoever waits for a device next hears of its reports: others that use this one are not to.
    let device = &device.reopen()?;
    let x = device.buffer(&[1.0f32, 2.0, 3.0, 4.0])?;
    let begins = device.buffer(&[0u32, 1, 4])?;
    let columns = device.buffer(&[0u32, 2])?;
    let mut y = device.zeros::<f32>(2)?;
    device.run(row_elements(&begins, &columns, &x, &mut y)?.over(2))?;
    expect(&y.read()?, &[1.0, 4.0])?;
    columns.write(&[0, 3])?;
    device.run(row_elements(&begins, &columns, &x, &mut y)?.over(2))?;
    let told = device.reports()?.reports;
    let fails: Vec<&str> = told.iter().filter(|report| report.fails).map(|report| report.message.as_str()).collect();
    let expected: &[&str] =
        if cfg!(debug_assertions) { &["assertion failed: at < end: at is 4, end is 4"] } else { &[] };
    if fails == expected { Ok(()) } else { Err(format!("{fails:?} reported, {expected:?} expected").into()) }
}
