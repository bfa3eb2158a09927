//! The front end: what it makes of kernels, in which order, and what it says about mistakes and where.

mod abstractions;
mod accepted;
mod constants;
mod deep;
mod items;
mod order;
mod realistic;
mod refused;
mod reports;
mod robust;

use trefoil_codegen::front::{self, Output};

/// The kernels of a source; a mistake fails the test.
fn outputs(source: &str) -> Vec<Output> {
    front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}\nin\n{source}"))
}

/// The IR of the first kernel as text.
fn ir(source: &str) -> String {
    outputs(source)[0].module.to_string()
}

/// The IR of a kernel with this body over `x: &[f32], y: &mut [f32], u: &mut [u32], a: f32, n: u32, k: i32, c: bool`, between its braces.
fn body(statements: &str) -> String {
    let text = ir(&kernel(statements));
    let start = text.find(") {\n").expect("a kernel has a body") + 4;
    let end = text.rfind('}').expect("a kernel has an end");
    text[start..end].lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

fn kernel(statements: &str) -> String {
    format!(
        "#[kernel(workgroup(64))]\npub fn f(x: &[f32], y: &mut [f32], u: &mut [u32], a: f32, n: u32, k: i32, c: bool) {{\n{statements}\n}}"
    )
}

/// What is said about a source, `line:column: message` line by line.
fn mistakes(source: &str) -> String {
    match front::parse_source(source) {
        Ok(_) => panic!("this should have been refused:\n{source}"),
        Err(errors) => errors.to_string(),
    }
}

/// What is said about a kernel with this body; it begins in line 3.
fn refused(statements: &str, position: &str, words: &[&str]) {
    let said = mistakes(&kernel(statements));
    assert_eq!(said.lines().count(), 1, "one mistake, one message:\n{said}");
    assert!(said.starts_with(&format!("{position}: ")), "expected it at {position}:\n{said}\n{statements}");
    for word in words {
        assert!(said.contains(word), "expected `{word}` in:\n{said}");
    }
}
