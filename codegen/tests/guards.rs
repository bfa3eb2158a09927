//! What is said of accesses: which keep their guard, and why the others need none.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Instance, instantiate};
use trefoil_codegen::lower::accesses;
use trefoil_codegen::verify::verify;

/// `place: reason` of each access of a kernel of 64 invocations, in the order of the text.
fn said(signature: &str, body: &str) -> Vec<String> {
    said_with("workgroup(64)", signature, body)
}

/// The same of a kernel with this attribute.
fn said_with(attribute: &str, signature: &str, body: &str) -> Vec<String> {
    said_of(&format!("#[kernel({attribute})]\nfn k({signature}) {{\n{body}\n}}"))
}

/// The same of a whole source.
fn said_of(source: &str) -> Vec<String> {
    let output = parse_source(source).unwrap_or_else(|errors| panic!("{errors}\n{source}")).remove(0);
    let verified = verify(instantiate(&output.module, &Instance::default()).unwrap()).unwrap();
    accesses(&verified, verified.info.required)
        .unwrap()
        .into_iter()
        .map(|access| {
            let why = if access.guarded { "guarded".to_owned() } else { access.because.join(", ") };
            format!("{}: {why}", access.place)
        })
        .collect()
}

#[test]
fn a_comparison_with_the_length_puts_an_index_in_range() {
    assert_eq!(
        said("x: &[f32], y: &mut [f32]", "let i = global_index();\nif i < y.len() {\ny[i] = x[i];\n}"),
        ["x[i]: guarded", "y[i]: global_index() < y.len()"]
    );
}

/// Where each way through a branch returns, what is behind it is reached by the others alone.
#[test]
fn a_match_that_returns_from_every_case_is_a_return() {
    assert_eq!(
        said(
            "y: &mut [f32], mode: u32",
            "let i = global_index();\nif i >= y.len() {\nmatch mode {\n0 => {\nreturn;\n}\n_ => {\nreturn;\n}\n}\n}\n\
             y[i] = 1.0;"
        ),
        ["y[i]: global_index() < y.len()"]
    );
    assert_eq!(
        said(
            "y: &mut [f32], mode: u32",
            "let i = global_index();\nif i >= y.len() {\nmatch mode {\n0 => {\nreturn;\n}\n_ => {}\n}\n}\ny[i] = 1.0;"
        ),
        ["y[i]: guarded"]
    );
}

/// A remainder, quotient or least of a number that is not negative in one place may be negative in another.
#[test]
fn what_holds_without_a_sign_is_not_said_of_numbers_with_one() {
    for (inside, behind) in [
        ("v as u32 % 16", "v % 16"),
        ("v as u32 / 134_217_728", "v / 134_217_728"),
        ("min(v as u32, 7)", "min(v, 7)"),
        ("v as u32 & 15", "v & 15"),
    ] {
        let said = said(
            "x: &[i32], y: &mut [f32]",
            &format!(
                "let mut t = workgroup_array::<f32>(16);\nlet v = x[0];\nif v >= 0 {{\nt[({inside}) as usize] = 1.0;\n}}\n\
                 let r = {behind};\nt[r as usize] = 2.0;"
            ),
        );
        assert!(said[1].starts_with("t[") && !said[1].contains("guarded"), "{said:?}");
        assert!(said[2].ends_with(": guarded"), "{said:?}");
    }
}

#[test]
fn ranges_of_loops_and_builtins_do() {
    assert_eq!(
        said(
            "y: &mut [f32]",
            "let mut t = workgroup_array::<f32>(128);\nt[local_index()] = 1.0;\nt[local_index() * 2 + 1] = 1.0;\n\
             t[local_index() * 2 + 2] = 1.0;\nbarrier();\nfor k in 0..y.len() {\ny[k] = t[5];\n}"
        ),
        [
            "t[local_index()]: local_index() is at most 63",
            "t[(local_index() * 2) + 1]: local_index() is at most 63",
            "t[(local_index() * 2) + 2]: guarded",
            "t[5]: ",
            "y[k]: k < y.len()",
        ]
    );
}

#[test]
fn loops_that_are_written_out_are_said_of_once_for_each_reason() {
    assert_eq!(
        said(
            "y: &mut [f32], n: u32",
            "let mut v = [0.0; 4];\nfor k in unroll(0..4) {\nv[k] = 1.0;\n}\nlet j = (n % 4) as usize;\ny[0] = v[j];"
        ),
        ["v[0]: ", "v[1]: ", "v[2]: ", "v[3]: ", "v[j]: (n % 4) is at most 3", "y[0]: guarded"]
    );
}

#[test]
fn a_stated_size_of_subgroups_bounds_lanes_and_counts_them() {
    assert_eq!(
        said_with(
            "workgroup(64), subgroup(16), targets(cpu)",
            "y: &mut [f32]",
            "let mut t = workgroup_array::<f32>(4);\nlet mut lanes = workgroup_array::<f32>(16);\nt[subgroup_index()] = 1.0;\n\
             lanes[subgroup_lane()] = 1.0;\nt[subgroup_size() / 16] = 1.0;\nlanes[subgroup_size()] = 1.0;"
        ),
        [
            "t[subgroup_index()]: subgroup_index() is at most 3",
            "lanes[subgroup_lane()]: subgroup_lane() is at most 15",
            "t[16 / 16]: ",
            "lanes[16]: guarded",
        ]
    );
}

#[test]
fn bits_and_choices_have_ranges() {
    assert_eq!(
        said(
            "y: &mut [f32], n: u32",
            "let mut t = workgroup_array::<f32>(48);\nlet row = local_index() >> 1 & 7;\nt[(row + 8 ^ 5) | 32] = 1.0;\n\
             t[select(n > 3, row, 47)] = 1.0;\nt[select(n > 3, row, 48)] = 1.0;\nbarrier();\ny[0] = t[row * (row / 4)];"
        ),
        [
            "t[((row + 8) ^ 5) | 32]: ((((local_index() / 2) % 8) + 8 ^ 5) | 32) is at most 47",
            "t[select((n > 3u32), row, 47)]: a number from 0 to 47 is at most 47",
            "t[select((n > 3u32), row, 48)]: guarded",
            "t[row * (row / 4)]: (((local_index() / 2) % 8) * (((local_index() / 2) % 8) / 4)) is at most 7",
            "y[0]: guarded",
        ]
    );
}

#[test]
fn functions_know_the_ranges_of_what_every_call_hands_over() {
    let source = |second: &str| {
        format!(
            "#[device]\nfn put(t: &mut [f32], at: usize) {{\nt[at] = 1.0;\n}}\n\
             #[device]\nfn both(t: &mut [f32], at: usize) {{\nput(t, at);\nput(t, at + 1);\n}}\n\
             #[kernel(workgroup(64))]\nfn k(y: &mut [f32]) {{\nlet mut t = workgroup_array::<f32>(66);\n\
             both(&mut t, local_index());\nfor k in 0..3 {{\nput(&mut t, {second});\n}}\nbarrier();\n\
             if !y.is_empty() {{\ny[0] = t[0];\n}}\n}}"
        )
    };
    assert!(said_of(&source("k * 32")).contains(&"t[at]: at is at most 64".to_owned()));
    assert!(said_of(&source("k * 33")).contains(&"t[at]: guarded".to_owned()));
}

/// What is said of code that never runs may contradict itself.
#[test]
fn ranges_of_what_never_runs_are_ranges() {
    let never = "for i in 8..4usize {\nfor j in (i << 29)..y.len() {\ny[j] = 0.0;\n}\n}";
    for access in said("y: &mut [f32]", never) {
        assert!(access.starts_with("y[j]"), "{access}");
    }
    let choice = "for i in 8..4usize {\ny[select(n > 3, i << 29, i << 30)] = 0.0;\n}";
    for access in said("y: &mut [f32], n: u32", choice) {
        assert!(access.starts_with("y["), "{access}");
    }
    let source = "#[device]\nfn put(t: &mut [f32], at: usize) {\nfor k in at..t.len() {\nt[k] = 1.0;\n}\n}\n\
         #[kernel(workgroup(64))]\nfn k(y: &mut [f32]) {\nfor i in 8..4usize {\nput(y, i << 29);\n}\n}";
    for access in said_of(source) {
        assert!(access.starts_with("y[k]"), "{access}");
    }
}
