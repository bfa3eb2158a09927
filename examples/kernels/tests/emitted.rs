//! What every kernel of this package becomes for every target, as snapshots.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../../tests/common/emitted.rs"]
mod emitted;

/// Where snapshots lie.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/emitted");

/// Compares a text with its snapshot.
fn check(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => FOLDER,
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_kernel_for_every_target() {
    emitted::every_kernel_for_every_target(trefoil_example_kernels::all(), FOLDER, check);
}
