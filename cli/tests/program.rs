//! The program as people call it: what it prints, and how it fails.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::process::Command;

/// Whether it succeeded, what it printed, and what it complained about.
fn trefoil(arguments: &[&str]) -> (bool, String, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_trefoil")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ended.status.success(), text(ended.stdout), text(ended.stderr))
}

#[test]
fn a_kernel_is_printed_for_a_target() {
    let (succeeded, wgsl, complaint) = trefoil(&["emit", "reduce_sum_f32", "--target", "wgsl"]);
    assert!(succeeded, "{complaint}");
    assert!(wgsl.contains("@compute @workgroup_size(256"), "{wgsl}");
    assert!(wgsl.contains("fn reduce_sum_f32"), "{wgsl}");
}

#[test]
fn a_kernel_is_checked_with_made_up_arguments() {
    let (succeeded, report, complaint) = trefoil(&["check", "stencil_step"]);
    assert!(succeeded, "{report}{complaint}");
    assert!(report.contains("kernel `stencil_step`: nothing found"), "{report}");
    let (succeeded, report, complaint) = trefoil(&["check", "stencil_step", "--len", "to=3"]);
    assert!(!succeeded && complaint.contains("`stencil_step` does what it should not"), "{complaint}");
    assert!(report.contains("invocation 3 of workgroup 0 writes element 3 of buffer `to`, which has 3"), "{report}");
    let (succeeded, report, complaint) = trefoil(&["check", "stencil_step", "--len", "to=3", "--writes-past-end"]);
    assert!(succeeded, "{report}{complaint}");
    let (succeeded, _, complaint) = trefoil(&["check", "stencil_step", "--len", "none=3"]);
    assert!(!succeeded && complaint.contains("no buffer `none`"), "{complaint}");
}

#[test]
fn what_is_not_there_is_named() {
    for arguments in [
        &["emit", "no_such_kernel", "--target", "wgsl"][..],
        &["guards", "no_such_kernel"],
        &["check", "no_such_kernel"],
    ] {
        let (succeeded, _, complaint) = trefoil(arguments);
        assert!(!succeeded);
        assert!(complaint.contains("no_such_kernel"), "{complaint}");
    }
}

#[test]
fn the_processor_is_a_device() {
    let (succeeded, devices, complaint) = trefoil(&["devices"]);
    assert!(succeeded, "{complaint}");
    assert!(devices.contains("cpu"), "{devices}");
}
