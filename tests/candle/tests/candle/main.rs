//! The ops that candle has too, on every device and by candle: an implementation that others wrote, which shares nothing with the ops or with their references.
//!
//! Candle computes with the same inputs, those of floats of any width in `f64`, so that its own rounding is nothing beside what is judged: a result may be as far from
//! candle's as the page of ops says of a result and the exact one.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod arranged;
mod case;
#[path = "../../../common/mod.rs"]
mod common;
mod convolutions;
mod elements;
mod indexed;
#[path = "../../../common/numbers.rs"]
mod numbers;
mod products;
mod reduced;
mod windows;

use case::judge;

#[test]
fn functions_of_elements() {
    judge(&elements::cases());
}

#[test]
fn elements_as_another_type() {
    judge(&elements::casts());
}

#[test]
fn elements_in_other_places() {
    judge(&arranged::cases());
}

#[test]
fn elements_at_indices() {
    judge(&indexed::cases());
}

#[test]
fn sums_and_norms_of_axes() {
    judge(&reduced::cases());
}

#[test]
fn products_of_matrices() {
    judge(&products::cases());
}

#[test]
fn convolutions() {
    judge(&convolutions::cases());
}

#[test]
fn windows_and_sizes() {
    judge(&windows::cases());
}
