//! Each program runs, and is right.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::process::Command;

/// Runs a program; without a driver it may say so, unless `TREFOIL_REQUIRE_DEVICES` names the device.
fn run(program: &str, device: &str) {
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    let output = Command::new(program).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let absent = !required.split(',').any(|name| name == device) && said.starts_with("not run: ");
    assert!(absent || said.trim_end().ends_with(": right"), "{said}{failed}");
}

#[test]
fn on_the_programs_own_wgpu_device() {
    run(env!("CARGO_BIN_EXE_wgpu_device"), "wgpu");
}

#[test]
fn a_graph_on_the_programs_own_wgpu_device() {
    run(env!("CARGO_BIN_EXE_wgpu_graph"), "wgpu");
}

#[test]
fn on_the_programs_own_ash_device() {
    run(env!("CARGO_BIN_EXE_ash_device"), "vulkan");
}

#[test]
fn a_graph_on_the_programs_own_ash_device() {
    run(env!("CARGO_BIN_EXE_ash_graph"), "vulkan");
}

#[test]
fn a_graph_on_the_programs_own_cuda_stream() {
    run(env!("CARGO_BIN_EXE_cuda_graph"), "cuda");
}

#[test]
fn in_the_programs_own_cuda_context() {
    run(env!("CARGO_BIN_EXE_cuda_context"), "cuda");
}
