//! Matrices: what the evaluator makes of every operation, what each target gets, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/nvrtc.rs"]
mod nvrtc;
#[allow(dead_code, reason = "other tests use the rest")]
mod support {
    pub mod evaluated;
    pub mod machine;
    pub mod pointwise;
}

use half::{bf16, f16};
use trefoil_codegen::artefact::{Code, Feature, Features, Kernel, MatrixProduct, MatrixScalar, ParamTransport, Target};
use trefoil_codegen::emit::spirv;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::{compile, front};

fn module(source: &str) -> Module {
    let outputs = front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn kernel(source: &str) -> Result<Kernel, String> {
    let outputs = front::parse_source(source).map_err(|errors| errors.to_string())?;
    compile::compile(&outputs[0].module, &Instance::default()).map_err(|found| found.to_string())
}

/// What is said of a kernel of 64 invocations.
fn said(signature: &str, body: &str) -> String {
    let source = format!(
        "#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]\nfn k({signature}) {{\n{body}\n}}"
    );
    kernel(&source).err().unwrap_or_else(|| panic!("this must be refused:\n{source}"))
}

/// A kernel with one workgroup of 32 invocations: four subgroups in the evaluator, which do the same.
fn source(signature: &str, body: &str, targets: &str) -> String {
    format!(
        "#[kernel(workgroup(32), targets({targets}), requires(CooperativeMatrices))]\npub fn k({signature}) {{\n{body}\n}}"
    )
}

fn halves(values: &[f32]) -> Vec<u32> {
    values
        .chunks(2)
        .map(|pair| {
            let bits = |at: usize| u32::from(f16::from_f32(pair.get(at).copied().unwrap_or(0.0)).to_bits());
            bits(0) | bits(1) << 16
        })
        .collect()
}

fn words(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|word| f32::from_bits(*word)).collect()
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + seed * 11) % 17) as f32 * 0.25 - 2.0).collect()
}

/// `c + a * b`, row by row.
fn product(a: &[f32], b: &[f32], c: &[f32], [rows, columns, depth]: [usize; 3]) -> Vec<f32> {
    (0..rows * columns)
        .map(|at| {
            let (i, j) = (at / columns, at % columns);
            c[at] + (0..depth).map(|k| a[i * depth + k] * b[k * columns + j]).sum::<f32>()
        })
        .collect()
}

#[test]
fn a_product_of_rows_and_of_columns() {
    let (a, b, c) = (numbers(16 * 16, 1), numbers(16 * 8, 2), numbers(16 * 8, 3));
    let expected = product(&a, &b, &c, [16, 8, 16]);
    let body = |left: &str, right: &str| {
        format!(
            "let a = MatrixA::<f16, 16, 16>::{left}(a, 0, 16);\n\
             let b = MatrixB::<f16, 16, 8>::{right};\n\
             let c = Accumulator::<f32, 16, 8>::load(c, 0, 8);\n\
             let sum = multiply_add(a, b, c);\n\
             sum.store(out, 0, 8);"
        )
    };
    let signature = "a: &[f16], b: &[f16], c: &[f32], out: &mut [f32]";
    let transposed = |values: &[f32], columns: usize| -> Vec<f32> {
        let rows = values.len() / columns;
        (0..values.len()).map(|at| values[at % rows * columns + at / rows]).collect()
    };
    for (left, right, a, b) in [
        ("load", "load(b, 0, 8)", a.clone(), b.clone()),
        ("load_columns", "load_columns(b, 0, 16)", transposed(&a, 16), transposed(&b, 8)),
    ] {
        let source = source(signature, &body(left, right), "spirv, cuda, cpu");
        let given = vec![(halves(&a), 256), (halves(&b), 128), (words(&c), 128), (vec![7; 128], 128)];
        let found = support::evaluated::evaluated(&module(&source), given);
        assert_eq!(floats(&found[3]), expected, "{source}");
        every_target(&source);
    }
}

/// Compiles for every target, CUDA C to machine code where NVRTC is there.
fn every_target(source: &str) -> Vec<(Target, String)> {
    let kernel = kernel(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut texts = Vec::new();
    for variant in kernel.variants.iter() {
        let text = match &variant.code {
            Code::Text(text) => text.to_string(),
            Code::Spirv(bytes) => {
                let words: Vec<u32> =
                    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
                spirv::disassemble(&words)
            }
        };
        if let (Target::Cuda, Some(nvrtc)) = (variant.target, nvrtc::load()) {
            nvrtc.compile(&text, "sm_80").unwrap_or_else(|log| panic!("{log}\n{text}"));
        }
        texts.push((variant.target, text));
    }
    texts
}

#[test]
fn bits_in_vectors_are_elements() {
    // A line of 16 halves is two vectors, here with a third between lines.
    let body = "let mut tile = workgroup_array::<Vec4<u32>>(48);\n\
                for i in (local_index()..48).step_by(32) { if i < a.len() { tile[i] = a[i]; } }\n\
                barrier();\n\
                let a = MatrixA::<f16, 16, 16>::load(&tile, 0, 3);\n\
                let b = MatrixB::<f16, 16, 16>::load_columns(&tile, 0, 3);\n\
                let sum = multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.5));\n\
                barrier();\n\
                sum.store(&mut tile, 0, 4);\n\
                sum.store(out, 0, 16);\n\
                Accumulator::<f16, 16, 16>::convert(sum).store(bits, 0, 2);";
    let source = source("a: &[Vec4<u32>], out: &mut [f32], bits: &mut [Vec4<u32>]", body, "spirv, cuda, cpu");
    let a = numbers(16 * 24, 4);
    let rows: Vec<f32> = a.chunks(24).flat_map(|row| row[..16].to_vec()).collect();
    let columns: Vec<f32> = (0..256).map(|at| rows[at % 16 * 16 + at / 16]).collect();
    let expected = product(&rows, &columns, &[0.5; 256], [16, 16, 16]);
    let found = support::evaluated::evaluated(
        &module(&source),
        vec![(halves(&a), 48), (vec![7; 256], 256), (vec![0; 128], 32)],
    );
    assert_eq!(floats(&found[1]), expected);
    assert_eq!(found[2], halves(&expected));
    every_target(&source);
}

#[test]
fn what_is_not_there_is_zero_and_stays() {
    let body = "let whole = Accumulator::<f32, 4, 4>::load(x, at, stride);\n\
                whole.store(out, 0, 4);\n\
                Accumulator::<f32, 4, 4>::fill(1.0).store(out, 16 + at, stride);";
    let source = source("x: &[f32], out: &mut [f32], at: usize, stride: usize", body, "spirv, cpu");
    let x = numbers(32, 5);
    let run = |at: u32, stride: u32| {
        let source = source.replace("at: usize, stride: usize", "one: usize");
        let source = source
            .replace("at, stride", &format!("{at} * one, {stride} * one"))
            .replace("16 + at", &format!("16 + {at} * one"));
        let found = support::evaluated::evaluated(&module(&source), vec![(words(&x), 32), (vec![0; 48], 48)]);
        floats(&found[1])
    };
    let there = |at: usize, stride: usize| {
        let mut out = vec![0.0; 48];
        for i in 0..4 {
            for j in 0..4 {
                out[i * 4 + j] = x[at + i * stride + j];
            }
        }
        for i in 0..4 {
            for j in 0..4 {
                out[16 + at + i * stride + j] = 1.0;
            }
        }
        out
    };
    assert_eq!(run(0, 4), there(0, 4));
    assert_eq!(run(4, 8), there(4, 8));
    assert_eq!(run(16, 4), there(16, 4), "the last that is there");
    for (at, stride, why) in [
        (20, 4, "past the end"),
        (0, 12, "a line past the end"),
        (1, 4, "an offset between multiples of 16 bytes"),
        (0, 6, "a stride between multiples of 16 bytes"),
        (0xffff_ffc0, 4, "far past the end"),
        (0, 0x8000_0000, "a stride that wraps"),
    ] {
        let found = run(at, stride);
        assert!(found[..16].iter().all(|x| *x == 0.0), "{why}: {found:?}");
        if why.starts_with("far") || why.contains("wraps") || at % 4 != 0 || stride % 4 != 0 {
            assert!(found.iter().all(|x| *x == 0.0), "{why}: {found:?}");
        }
    }
}

#[test]
fn elements_are_mapped_and_zipped() {
    let body = "let x = Accumulator::<f32, 16, 16>::load(x, 0, 16);\n\
                let scale = Accumulator::load_columns(rows, 0, 0);\n\
                let y = x.map(|v| max(v, 0.0) + 1.0).zip(scale, |a, b| a * b);\n\
                let h: Accumulator<f16, 16, 16> = Accumulator::convert(y);\n\
                let h = h.map(|v| v + v);\n\
                let mut tiles = [Accumulator::<f32, 16, 16>::fill(0.0); 2];\n\
                for t in unroll(0..2) { tiles[t] = tiles[t].zip(y, |a, b| a - b); }\n\
                tiles[1].store(out, 0, 16);\n\
                h.store(halves, 0, 16);";
    let source = source("x: &[f32], rows: &[f32], out: &mut [f32], halves: &mut [f16]", body, "spirv, cuda, cpu");
    let (x, rows) = (numbers(256, 6), numbers(16, 7));
    let found = support::evaluated::evaluated(
        &module(&source),
        vec![(words(&x), 256), (words(&rows), 16), (vec![7; 256], 256), (vec![0; 128], 256)],
    );
    let y: Vec<f32> = x.iter().enumerate().map(|(at, x)| (x.max(0.0) + 1.0) * rows[at / 16]).collect();
    assert_eq!(floats(&found[2]), y.iter().map(|y| -y).collect::<Vec<_>>());
    assert_eq!(found[3], halves(&y.iter().map(|y| y + y).collect::<Vec<_>>()));
    every_target(&source);
}

#[test]
fn arithmetic_of_parts_is_arithmetic_of_matrices_in_spirv() {
    let forms = |closure: &str| -> Vec<[usize; 2]> {
        let body = format!(
            "let x = Accumulator::<f32, 16, 16>::load(x, 0, 16);\n\
             let y = Accumulator::<f32, 16, 16>::load(y, 0, 16);\n\
             x.zip(y, {closure}).store(out, 0, 16);"
        );
        let texts = every_target(&source("x: &[f32], y: &[f32], out: &mut [f32]", &body, "spirv"));
        texts
            .iter()
            .map(|(_, text)| ["OpFMul %global", "OpCooperativeMatrixLength"].map(|of| text.matches(of).count()))
            .collect()
    };
    // A matrix that is held in blocks of 8 by 8 has four of them.
    for [products, loops] in forms("|a, b| { let c = a * b; c * c - -a / 2.0 }") {
        assert!([2, 8].contains(&products) && loops == 0, "{products} products, {loops} loops");
    }
    for [products, loops] in forms("|a, b| max(a * b, 0.0)") {
        assert!(products == 0 && loops > 0, "{products} products, {loops} loops");
    }
}

#[test]
fn narrowed_matrices_are_rounded_to_the_nearest() {
    let narrowing = |to: &str| {
        let body = format!(
            "let x = Accumulator::<f32, 16, 16>::load(x, 0, 16);\n\
             Accumulator::<{to}, 16, 16>::convert(x).store(out, 0, 16);"
        );
        let texts = every_target(&source(&format!("x: &[f32], out: &mut [{to}]"), &body, "spirv"));
        texts.iter().map(|(_, text)| text.contains("RoundingModeRTE 16")).collect::<Vec<_>>()
    };
    assert!(narrowing("f16").iter().all(|rounds| *rounds));
    assert!(!narrowing("f32").iter().any(|rounds| *rounds));
}

#[test]
fn brain_floats_and_sums_of_halves() {
    let body = "let a = MatrixA::<bf16, 16, 16>::load(a, 0, 16);\n\
                let b = MatrixB::<bf16, 16, 16>::fill(bf16::from_f32(1.5));\n\
                let sum = multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0));\n\
                sum.store(out, 0, 16);\n\
                let a = MatrixA::<f16, 16, 16>::fill(f16::from_f32(0.5));\n\
                let b = MatrixB::<f16, 16, 16>::load(h, 0, 16);\n\
                multiply_add(a, b, Accumulator::<f16, 16, 16>::fill(f16::from_f32(1.0))).store(halves, 0, 16);";
    let source = source("a: &[bf16], h: &[f16], out: &mut [f32], halves: &mut [f16]", body, "cuda, cpu");
    let (a, h) = (numbers(256, 8), numbers(256, 9));
    let brain: Vec<u32> = a
        .chunks(2)
        .map(|pair| u32::from(bf16::from_f32(pair[0]).to_bits()) | u32::from(bf16::from_f32(pair[1]).to_bits()) << 16)
        .collect();
    let found = support::evaluated::evaluated(
        &module(&source),
        vec![(brain, 256), (halves(&h), 256), (vec![7; 256], 256), (vec![0; 128], 256)],
    );
    assert_eq!(floats(&found[2]), product(&a, &[1.5; 256], &[0.0; 256], [16, 16, 16]));
    assert_eq!(found[3], halves(&product(&[0.5; 256], &h, &[1.0; 256], [16, 16, 16])));
    every_target(&source);
}

#[test]
fn loads_that_are_proved_to_be_there_ask_nothing() {
    let body = "let mut tile = workgroup_array::<Vec4<u32>>(320);\n\
                tile[local_index()] = x[local_index()];\n\
                barrier();\n\
                let row = subgroup_index() % 4;\n\
                let a = MatrixA::<f16, 16, 16>::load(&tile, row * 80 + 2, 5);\n\
                let b = MatrixB::<f16, 16, 16>::load(&tile, row * 80 + 3, 5);\n\
                multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0)).store(out, 0, 16);";
    let source = source("x: &[Vec4<u32>], out: &mut [f32]", body, "spirv, cuda, cpu");
    for (target, text) in every_target(&source) {
        assert!(!text.contains("tile_holds"), "{}: {text}", target.name());
        assert!(text.contains("out_holds"), "{}: {text}", target.name());
        if target == Target::Cuda {
            assert!(text.contains("ldmatrix") && text.contains("mma.sync"), "{text}");
        }
    }
    let source = source.replace("row * 80 + 3", "row * 80 + 4");
    for (target, text) in every_target(&source) {
        assert!(text.contains("tile_holds"), "one vector past the end, {}: {text}", target.name());
    }
}

#[test]
fn mistakes() {
    let holds = |said: String, wanted: &str| assert!(said.contains(wanted), "expected `{wanted}`, said: {said}");
    let load = "let a = MatrixA::<f16, 16, 16>::load(x, 0, 16);\nlet b = MatrixB::<f16, 16, 16>::load(x, 0, 16);\n";
    holds(
        said(
            "x: &[f16], out: &mut [f32]",
            &format!(
                "{load}if local_index() < 3 {{ let c = multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0)); c.store(out, 0, 16); }}"
            ),
        ),
        "`multiply_add` of a matrix must be reached by every invocation of the workgroup",
    );
    holds(
        said(
            "x: &[f16], out: &mut [f32]",
            "let c = Accumulator::<f32, 16, 16>::fill(0.0);\nc.store(out, local_index() * 256, 16);",
        ),
        "a subgroup gives `store` of a matrix one offset: it depends on local_index(); `subgroup_index()` is the same for a subgroup",
    );
    holds(
        said(
            "out: &mut [f32]",
            "let c = Accumulator::<f32, 16, 16>::fill(local_index() as f32);\nc.store(out, 0, 16);",
        ),
        "a subgroup fills a matrix with one value: it depends on local_index()",
    );
    holds(
        said("x: &[f32], out: &mut [f32]", "let a = MatrixA::<f16, 16, 16>::load(x, 0, 16);"),
        "this matrix lies in memory of `f16`, or of `Vec4<u32>` as its bits; this holds `f32`",
    );
    holds(
        said("out: &mut [f32]", "let a = MatrixA::<f16, 16, 16>::fill(f16::from_f32(1.0));\na.store(out, 0, 16);"),
        "a `MatrixA` has no `.store()`",
    );
    holds(
        said("x: &[f16]", &format!("{load}let c = multiply_add(a, b, Accumulator::<f32, 16, 8>::fill(0.0));")),
        "expected `Accumulator<f32, 16, 16>`, found `Accumulator<f32, 16, 8>`",
    );
    holds(said("x: &[f16]", "let a: MatrixA<f16> = MatrixA::load(x, 0, 16);"), "`MatrixA<f16, 16, 16>`");
    holds(
        said(
            "out: &mut [f32], s: f32",
            "let c = Accumulator::<f32, 16, 16>::fill(0.0).map(|x| x * s);\nc.store(out, 0, 16);",
        ),
        "this closure would capture `s`",
    );
    holds(said("out: &mut [f32]", "let a = MatrixA::<f32, 16, 16>::fill(1.0);"), "a `MatrixA` holds f16 or bf16");
    let shape = source("out: &mut [f32]", "Accumulator::<f32, 8, 8>::fill(1.0).store(out, 0, 8);", "cuda");
    holds(kernel(&shape).unwrap_err(), "products of 16x16x16 and 16x8x16 alone");
    let shape = source("out: &mut [f32]", "Accumulator::<f32, 16, 16>::fill(1.0).store(out, 0, 16);", "wgsl, cpu");
    holds(
        kernel(&shape).unwrap_err(),
        "requires `Feature::CooperativeMatrices`, which wgsl never has: list `targets(spirv, cuda, cpu)`",
    );
    let wgsl =
        "#[kernel(workgroup(64))]\nfn k(out: &mut [f32]) { Accumulator::<f32, 8, 8>::fill(1.0).store(out, 0, 8); }";
    holds(
        kernel(wgsl).unwrap_err(),
        "needs `Feature::CooperativeMatrices`, which wgsl never has: list `targets(spirv, cuda, cpu)` alone",
    );
}

#[test]
fn a_device_must_list_what_a_kernel_wants() {
    let body = "let a = MatrixA::<f16, 16, 16>::load(x, 0, 16);\n\
                let b = MatrixB::<f16, 16, 16>::load(x, 0, 16);\n\
                let sum = multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0));\n\
                Accumulator::<f16, 16, 16>::convert(sum).store(out, 0, 16);";
    let kernel = kernel(&source("x: &[f16], out: &mut [f16]", body, "spirv, cpu")).unwrap();
    let product = |side, accumulator| MatrixProduct {
        rows: side,
        columns: side,
        depth: side,
        input: MatrixScalar::F16,
        accumulator,
    };
    let (wide, narrow) = (product(16, MatrixScalar::F32), product(16, MatrixScalar::F16));
    let choose = |products: &[MatrixProduct]| {
        let features = Features::of_target(Target::Spirv);
        let chosen = kernel.variant_with(Target::Spirv, features, products, ParamTransport::Value);
        chosen.map(|variant| variant.matrices.len()).map_err(|error| error.to_string())
    };
    assert_eq!(choose(&[wide, narrow]), Ok(2), "a product, and a type that is in none of the kernel's");
    assert_eq!(
        choose(&[product(8, MatrixScalar::F32)]).unwrap_err(),
        "kernel `k` wants products of matrices of 16x16x16 of f16 in f32 on spirv, which this device does not list: it has 8x8x8 of f16 in f32"
    );
    assert_eq!(
        choose(&[wide]).unwrap_err(),
        "kernel `k` wants matrices such as Accumulator<f16, 16, 16> on spirv, which this device does not list: it has 16x16x16 of f16 in f32"
    );
    assert!(kernel.variant(Target::Spirv, Features::NONE, ParamTransport::Value).is_err());
    // A device with smaller ones gets those that they are made of.
    let of = |products: &[MatrixProduct]| {
        let features = Features::of_target(Target::Spirv);
        kernel.variant_with(Target::Spirv, features, products, ParamTransport::Value).unwrap().profile.to_string()
    };
    assert_eq!(of(&[wide, narrow, product(8, MatrixScalar::F32)]), "subgroups-f16-matrices");
    assert_eq!(of(&[product(8, MatrixScalar::F32), product(8, MatrixScalar::F16)]), "subgroups-f16-matrices-blocks");
}

#[test]
fn a_device_may_have_matrices_and_none_of_brains() {
    let body = "let a = MatrixA::<bf16, 16, 16>::load(x, 0, 16);\n\
                let b = MatrixB::<bf16, 16, 16>::load(x, 0, 16);\n\
                multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0)).store(out, 0, 16);";
    let kernel = kernel(&source("x: &[bf16], out: &mut [f32]", body, "spirv, cpu")).unwrap();
    let product = |input| MatrixProduct { rows: 16, columns: 16, depth: 16, input, accumulator: MatrixScalar::F32 };
    let choose = |features: Features, input| {
        let chosen = kernel.variant_with(Target::Spirv, features, &[product(input)], ParamTransport::Value);
        chosen.map(|variant| variant.profile.to_string()).map_err(|error| error.to_string())
    };
    let with = Features::of(&[Feature::Subgroups, Feature::CooperativeMatrices, Feature::Bf16Matrices]);
    assert_eq!(choose(with, MatrixScalar::BF16), Ok("subgroups-matrices-bf16".to_owned()));
    let refused = choose(with, MatrixScalar::F16).unwrap_err();
    assert!(refused.contains("wants products of matrices of 16x16x16 of bf16 in f32 on spirv"), "{refused}");
    let without = Features::of(&[Feature::Subgroups, Feature::CooperativeMatrices]);
    let refused = choose(without, MatrixScalar::F16).unwrap_err();
    assert!(refused.contains("Bf16Matrices"), "{refused}");
}

#[test]
fn a_kernel_may_do_without() {
    let source = "#[kernel(workgroup(32))]\npub fn k(out: &mut [f32]) {\n\
                  if const { target::has(Feature::CooperativeMatrices) } {\n\
                  Accumulator::<f32, 16, 16>::fill(1.0).store(out, 0, 16);\n\
                  } else { for i in (local_index()..256).step_by(32) { out[i] = 1.0; } } }";
    let kernel = kernel(source).unwrap();
    let with: Vec<_> = kernel.variants.iter().map(|variant| (variant.target, variant.profile.to_string())).collect();
    assert!(with.contains(&(Target::Spirv, "subgroups-matrices".to_owned())), "{with:?}");
    assert!(with.contains(&(Target::Spirv, "portable".to_owned())), "{with:?}");
    assert!(with.contains(&(Target::Wgsl, "portable".to_owned())), "{with:?}");
}
