//! Every node test of ONNX on every device: none gives something else than it should, and the page says what came out.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::Path;

use trefoil_conformance::cases::Cases;
use trefoil_conformance::report::Report;
use trefoil_conformance::run::run;

/// The devices that the page is about.
const ON_THE_PAGE: [&str; 3] = ["cpu", "wgpu", "vulkan"];

#[test]
fn nothing_fails_and_the_page_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let cases = Cases::read(&root.join(".onnx/1.23.2")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cases.cases.len(), 1884);
    // Each kind once, as it is.
    let subjects = common::devices().into_iter().filter(|subject| subject.name == subject.device.kind().name());
    let devices: Vec<_> = subjects.map(|subject| subject.device).collect();
    let outcomes = cases.cases.iter().map(|case| run(&cases, case, &devices)).collect();
    let names: Vec<String> = devices.iter().map(|device| device.kind().name().to_owned()).collect();
    let is_page = names == ON_THE_PAGE;
    let report = Report { cases: &cases, devices: names, outcomes };
    let failures = report.failures();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    if is_page {
        let page = std::fs::read_to_string(root.join("docs/src/onnx.md")).unwrap();
        assert!(
            page == report.page(),
            "docs/src/onnx.md says something else: cargo run -p trefoil-conformance --features wgpu,vulkan -- --page docs/src/onnx.md"
        );
    }
}
