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
    assert!(report.contains("made-up arguments"), "{report}");
    let (succeeded, report, complaint) = trefoil(&["check", "stencil_step", "--len", "to=3"]);
    assert!(!succeeded && complaint.contains("`stencil_step` does what it should not"), "{complaint}");
    assert!(report.contains("invocation 3 of workgroup 0 writes element 3 of buffer `to`, which has 3"), "{report}");
    assert!(report.contains("made up where nothing was said") && report.contains("to: 3 elements"), "{report}");
    let (succeeded, report, complaint) = trefoil(&["check", "stencil_step", "--len", "to=3", "--writes-past-end"]);
    assert!(succeeded, "{report}{complaint}");
    let (succeeded, _, complaint) = trefoil(&["check", "stencil_step", "--len", "none=3"]);
    assert!(!succeeded && complaint.contains("no buffer `none`"), "{complaint}");
}

#[test]
fn what_makes_no_sense_is_refused_by_check() {
    for (arguments, expected) in [
        ("--groups 70000,70000", "`70000,70000` workgroups"),
        ("--groups 0", "`0` workgroups"),
        ("--groups 1,1,1,1", "`1,1,1,1` workgroups"),
        ("--groups -1", "-1"),
        ("--len to=-5", "`-5` elements for `to`"),
        ("--len to=1.5", "`1.5` elements for `to`"),
        ("--len to=nan", "`nan` elements for `to`"),
        ("--len to=1000000000", "`1000000000` elements for `to`"),
        ("--len to", "`to` is not of the form NAME=VALUE"),
        ("--len to=5 --len to=6", "`--len` says twice what `to` is"),
        ("--set width=-5", "param `width` of `stencil_step`: `-5` given"),
        ("--set width=1e9", "param `width` of `stencil_step`: `1e9` given"),
        ("--set width=5 --set width=5", "`--set` says twice what `width` is"),
    ] {
        let (succeeded, report, complaint) =
            trefoil(&["check", "stencil_step"].into_iter().chain(arguments.split(' ')).collect::<Vec<_>>());
        assert!(!succeeded && complaint.contains(expected), "{arguments}: {report}{complaint}");
    }
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let (succeeded, _, complaint) = trefoil(&["emit", "reduce_sum_f32", "--target", "wgsl", "--out", "nowhere"]);
    assert!(!succeeded && complaint.contains("--out"), "{complaint}");
    let (succeeded, text, complaint) = trefoil(&["emit", "attention_matrices_bf16_4", "--target", "wgsl"]);
    let expected = "`attention_matrices_bf16_4` has no wgsl code: it has spirv, cuda, cpu";
    assert!(!succeeded && complaint.contains(expected), "{text}{complaint}");
    // It waits for earlier workgroups, which run first whatever is said.
    let (succeeded, text, complaint) = trefoil(&["check", "scan_one_pass", "--shuffle", "5"]);
    assert!(!succeeded && complaint.contains("`--shuffle` changes nothing for `scan_one_pass`"), "{text}{complaint}");
    let (succeeded, text, complaint) = trefoil(&["bench", "softmax", "--steps", "--device", "cpu"]);
    assert!(!succeeded && text.is_empty() && complaint.contains("`--steps`"), "{text}{complaint}");
    // A file is no folder.
    let (succeeded, _, complaint) = trefoil(&["language", "--book", "Cargo.toml"]);
    assert!(!succeeded && complaint.contains("Cargo.toml: "), "{complaint}");
}

#[test]
fn what_is_not_there_is_named() {
    for arguments in [
        &["emit", "no_such_kernel", "--target", "wgsl"][..],
        &["guards", "no_such_kernel"],
        &["check", "no_such_kernel"],
        &["bench", "no_such_kernel", "--device", "cpu"],
    ] {
        let (succeeded, text, complaint) = trefoil(arguments);
        assert!(!succeeded && text.is_empty(), "{text}");
        assert!(complaint.contains("no_such_kernel"), "{complaint}");
    }
}

#[test]
fn the_processor_is_a_device() {
    let (succeeded, devices, complaint) = trefoil(&["devices"]);
    assert!(succeeded, "{complaint}");
    assert!(devices.contains("cpu"), "{devices}");
}

#[test]
fn lists_are_objects_too() {
    for (command, name) in [("devices", "\"kind\": \"cpu\""), ("kernels", "\"signature\": \"reduce_sum_f32(")] {
        let (succeeded, json, complaint) = trefoil(&[command, "--json"]);
        assert!(succeeded, "{complaint}");
        assert!(json.starts_with('[') && json.trim_end().ends_with(']') && json.contains(name), "{json}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    for arguments in [&["kernels"][..], &["bench", "matmul f32", "--device", "cpu"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = Command::new(env!("CARGO_BIN_EXE_trefoil")).args(arguments).stdout(writer).output().unwrap();
        let complaint = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success() && complaint.is_empty(), "{arguments:?}: {complaint}");
    }
}
