//! Tiles and their products: what the evaluator makes of them, what each target gets, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;
#[allow(dead_code, reason = "other tests use the rest")]
mod support {
    pub mod evaluated;
    pub mod machine;
    pub mod pointwise;
}

use half::f16;
use trefoil_codegen::artefact::{Code, ParamTransport};
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::target::Target;
use trefoil_codegen::{compile, front};

const KERNELS: &str = include_str!("support/tiles.txt");

fn kernels() -> Vec<Module> {
    let outputs = front::parse_source(KERNELS).unwrap_or_else(|errors| panic!("{errors}"));
    outputs.iter().map(|output| instantiate(&output.module, &Instance::default()).unwrap()).collect()
}

/// What is said of a kernel of 128 invocations.
fn said(signature: &str, body: &str) -> String {
    let source = format!(
        "#[kernel(workgroup(128), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]\nfn k({signature}) {{\n{body}\n}}"
    );
    let made = front::parse_source(&source).map_err(|errors| errors.to_string()).and_then(|outputs| {
        compile::compile(&outputs[0].module, &Instance::default()).map_err(|found| found.to_string())
    });
    made.err().unwrap_or_else(|| panic!("this must be refused:\n{source}"))
}

fn number(i: usize) -> f32 {
    (i * 37 % 17) as f32 * 0.25 - 2.0
}

/// The bits of rows of `columns` numbers, each followed by zeros to a multiple of eight.
fn padded(rows: usize, columns: usize, number: impl Fn(usize, usize) -> f32) -> Vec<u32> {
    let width = columns.next_multiple_of(8);
    let half = |i: usize, j: usize| if j < columns { f16::from_f32(number(i, j)).to_bits().into() } else { 0u32 };
    (0..rows * width / 2)
        .map(|word| {
            let (i, j) = (word * 2 / width, word * 2 % width);
            half(i, j) | half(i, j + 1) << 16
        })
        .collect()
}

fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|word| f32::from_bits(*word)).collect()
}

#[test]
fn what_is_beyond_a_matrix_is_zero() {
    let module = &kernels()[1];
    let (a, b) = (|i: usize, j: usize| number(i * 71 + j), |i: usize, j: usize| number(i * 131 + j + 5));
    // 100 rows of 72: the tile begins at row 1 and column 8.
    let (left, right) = (padded(100, 72, a), padded(40, 128, b));
    let given = vec![(left, 100 * 9), (right, 40 * 16), (vec![1f32.to_bits(); 64 * 64], 64 * 64)];
    // Its parameter is 1: the second 64 rows, and of two parts of the columns part 2, which is the first.
    let found = support::evaluated::evaluated(module, given);
    let expected: Vec<f32> = (0..64 * 64)
        .map(|at| {
            let (i, j) = (at / 64 + 65, at % 64);
            let depth = if i < 100 { 40 } else { 0 };
            2.0 * (1.0 + (0..depth).map(|k| a(i, k + 8) * b(k, j)).sum::<f32>())
        })
        .collect();
    assert_eq!(floats(&found[2]), expected);
}

#[test]
fn every_target_has_code() {
    let nvrtc = nvrtc::load();
    for output in front::parse_source(KERNELS).unwrap_or_else(|errors| panic!("{errors}")) {
        let kernel = compile::compile(&output.module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"));
        let name = kernel.name.to_string();
        for variant in kernel.variants.iter() {
            match (&variant.code, variant.target) {
                (Code::Text(text), Target::Cuda) => {
                    // Its twin differs in where parameters lie.
                    if variant.transport == ParamTransport::Value {
                        insta::with_settings!({
                            snapshot_path => "snapshots/tiles",
                            prepend_module_to_snapshot => false,
                            omit_expression => true,
                            description => "made from codegen/tests/support/tiles.txt",
                        }, {
                            insta::assert_snapshot!(format!("{name}.cuda"), text);
                        });
                    }
                    for architecture in ["sm_80", "sm_90", "sm_90a"] {
                        if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(text, architecture)) {
                            panic!("{log}\n{text}");
                        }
                    }
                }
                (Code::Spirv(bytes), _) => {
                    let words: Vec<u32> = bytes
                        .chunks_exact(4)
                        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                        .collect();
                    spirv_val::validate(&name, &words);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn what_no_device_can_do_is_refused() {
    let tiles = "let mut left = workgroup_tile::<f16, 64, 64>(1);\nlet mut right = workgroup_tile::<f16, 64, 64>(1);\n";
    let sums = "let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];\n";
    for (signature, body, message) in [
        ("a: &mut [f32]", "let mut x = workgroup_tile::<f32, 64, 64>(1);".to_owned(), "holds f16 or bf16"),
        (
            "a: &mut [f32]",
            "let mut x = workgroup_tile::<f16, 64, 32>(1);".to_owned(),
            "multiples of 64 rows and columns",
        ),
        ("a: &[f16]", format!("{tiles}copy_tile_async(&mut left, 0, a, 0, 0, 8);"), "expected a slice of `Vec4<u32>`"),
        (
            "a: &[Vec4<u32>]",
            format!("{tiles}copy_tile_async(&mut left, local_index(), a, 0, 0, 8);"),
            "one stage: it depends on local_index()",
        ),
        (
            "a: &[Vec4<u32>]",
            format!("{tiles}if local_index() < 3 {{ copy_tile_async(&mut left, 0, a, 0, 0, 8); }}"),
            "must be reached by every invocation of the workgroup",
        ),
        ("a: &mut [f32]", format!("{tiles}a[0] = left[0];"), "the device's affair"),
        (
            "a: &mut [f32]",
            format!("{tiles}{sums}multiply_tiles(&mut sums, &left, subgroup_lane(), &right, 0, 0);"),
            "one number of rows: it depends on subgroup_lane()",
        ),
        (
            "a: &mut [f32]",
            format!(
                "{tiles}let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 8];\nmultiply_tiles(&mut sums, &left, 0, &right, 0, 0);"
            ),
            "8 of them have 128, the tile has 64",
        ),
        (
            "a: &mut [f32]",
            format!("{tiles}let mut sums = [0.0; 4];\nmultiply_tiles(&mut sums, &left, 0, &right, 0, 0);"),
            "expected `&mut",
        ),
        (
            "a: &mut [f32]",
            format!(
                "{tiles}let mut other = workgroup_tile::<f16, 128, 64>(1);\n{sums}multiply_tiles(&mut sums, &left, 0, &other, 0, 0);"
            ),
            "as many rows as the left has columns",
        ),
    ] {
        let said = said(signature, &body);
        assert!(said.contains(message), "{said}\n{body}");
    }
}
