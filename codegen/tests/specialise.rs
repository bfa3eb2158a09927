//! Specialisation constants: what they become for each target, and what the evaluator makes of their values.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/nvrtc.rs"]
mod nvrtc;

use trefoil_codegen::artefact::{Code, ConstantError, Kernel, Target};
use trefoil_codegen::emit::{spirv, wgsl};
use trefoil_codegen::ir::{self, Instance, Size};
use trefoil_codegen::verify::verify;
use trefoil_codegen::{compile, front, overrides};

const TILES: &str = "
#[kernel(workgroup(64), specialise(TILE: usize = 16, in 4..=64, multiple_of 4; SCALE: i32 = -2, in -8..=8; ROUND: bool = true))]
pub fn tiles(x: &[f32], y: &mut [f32], by: f32) {
    let mut plain = workgroup_array::<f32>(TILE * 2 + 1);
    let mut wide = workgroup_array::<f32>(TILE);
    let i = local_index();
    plain[i] = x[i];
    if i < TILE { wide[i] = x[i]; }
    barrier();
    let mut sum = 0.0;
    for j in 0..TILE { sum += wide[j]; }
    let four = wide.vec4(i);
    sum += four.x + plain[i + 1] * (SCALE as f32) * by;
    y[i] = if ROUND { floor(sum) } else { sum };
    y[64] = plain.len() as f32;
}";

fn kernel(source: &str) -> Kernel {
    let outputs = front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    compile::compile(&outputs[0].module, &Instance::default()).unwrap_or_else(|found| panic!("{found}"))
}

fn text(kernel: &Kernel, target: Target) -> String {
    let variant = kernel.variants.iter().find(|variant| variant.target == target).unwrap();
    match &variant.code {
        Code::Text(text) => text.to_string(),
        Code::Spirv(bytes) => {
            let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            spirv::disassemble(&words)
        }
    }
}

fn holds(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn each_target_has_its_own_kind_of_constant() {
    let kernel = kernel(TILES);
    let text = |target| text(&kernel, target);
    let wgsl = text(Target::Wgsl);
    holds(
        &wgsl,
        &[
            "@id(0) override TILE: u32 = 16u;",
            "@id(1) override SCALE: i32 = i32(-2);",
            "@id(2) override ROUND: bool = true;",
            "    let TILE = TILE;\n    let SCALE = SCALE;\n    let ROUND = ROUND;\n",
            "var<workgroup> plain: array<f32, TILE * 2u + 1u>;",
            "var<workgroup> wide: array<vec4<f32>, (TILE + 3u) / 4u>;",
            "i < TILE * 2u + 1u",
            "i < TILE / 4u",
        ],
    );
    wgsl::validate(&wgsl).unwrap();
    let cuda = text(Target::Cuda);
    holds(
        &cuda,
        &[
            "#ifndef SPECIALISE_TILE\n#define SPECIALISE_TILE 16\n#endif\nstatic constexpr uint TILE = uint(SPECIALISE_TILE);",
            "float plain[TILE * 2u + 1u];",
        ],
    );
    if let Some(nvrtc) = nvrtc::load() {
        for values in ["", "#define SPECIALISE_TILE 64\n#define SPECIALISE_SCALE -8\n#define SPECIALISE_ROUND 0\n"] {
            nvrtc.compile(&format!("{values}{cuda}"), "sm_80").unwrap_or_else(|log| panic!("{log}\n{cuda}"));
        }
    }
    holds(
        &text(Target::Spirv),
        &[
            "SpecId 0",
            "SpecId 1",
            "SpecId 2",
            "OpSpecConstant %u32 16",
            "OpSpecConstantTrue",
            "OpSpecConstantOp %u32 IMul %TILE",
        ],
    );
}

/// With the values as constants, and as overrides that nobody gives other values.
#[test]
fn naga_takes_every_value_of_a_constant() {
    let source = "
        #[kernel(workgroup(8), specialise(V: u32 = 9, in 0..=9; W: i32 = 0, in -9..=9; N: usize = 1, in 1..=9))]
        pub fn computed(x: &[u32], y: &mut [u32]) {
            let mut shared = workgroup_array::<u32>(N);
            let i = local_index();
            if i < N { shared[i] = x[i]; }
            barrier();
            let word = (V << 29) * 4000000000 + 77 / V + (x[i] << V) % V + shared[N - 1];
            let sum = (W + 2147483647) * W - i32::MIN / W + abs(W);
            y[i] = word ^ (sum as u32);
        }";
    let kernel = kernel(source);
    let text = text(&kernel, Target::Wgsl);
    wgsl::validate(&text).unwrap();
    for values in [[0, 0, 1], [9, -9, 9], [3, 9, 4]] {
        let named = [("V", values[0]), ("W", values[1]), ("N", values[2])];
        let other = kernel.specialise(&named).unwrap();
        let settled = overrides::settled(&text, &other.constants);
        assert!(!settled.contains("override"), "{settled}");
        let (module, info) = wgsl::parse(&settled).unwrap_or_else(|error| panic!("{error}\n{settled}"));
        let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
        naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
    }
}

#[test]
fn cuda_is_told_how_many_workgroups_are_resident() {
    let of = |stated: &str| {
        let source = format!(
            "#[kernel(workgroup(64), {stated} specialise(ROOM: usize = 2, in 1..=8))]
            pub fn doubled(y: &mut [f32], by: f32) {{ y[global_index()] = by * (ROOM as f32); }}"
        );
        text(&kernel(&source), Target::Cuda)
    };
    holds(&of(""), &["__launch_bounds__(64) doubled("]);
    holds(&of("resident(4),"), &["__launch_bounds__(64, 4u) doubled("]);
    let bound = of("resident(ROOM * 2),");
    holds(&bound, &["__launch_bounds__(64, ROOM * 2u) doubled("]);
    if let Some(nvrtc) = nvrtc::load() {
        nvrtc.compile(&bound, "sm_90").unwrap();
    }
    let refused = |stated: &str| {
        let source = format!("#[kernel(workgroup(64), {stated})] pub fn none(y: &mut [f32]) {{ y[0] = 1.0; }}");
        front::parse_source(&source).unwrap_err().to_string()
    };
    assert!(refused("resident(0)").contains("a multiprocessor has room for one workgroup at least"));
    assert!(refused("resident(1, 2)").contains("is one number: `resident(8)`"));
}

#[test]
fn limits_are_checked_at_the_largest_value() {
    assert_eq!(kernel(TILES).workgroup_bytes, (132 + 64) * 4, "arrays start at multiples of 16 bytes");
    let large = TILES.replace("4..=64", "4..=65536");
    let outputs = front::parse_source(&large).unwrap();
    let said = compile::compile(&outputs[0].module, &Instance::default()).unwrap_err().to_string();
    assert!(said.contains("workgroup memory"), "{said}");
    let zero = TILES.replace("4..=64", "0..=64");
    let outputs = front::parse_source(&zero).unwrap();
    let said = compile::compile(&outputs[0].module, &Instance::default()).unwrap_err().to_string();
    assert!(said.contains("`wide` is 0"), "{said}");
}

#[test]
fn values_out_of_range_are_told_with_the_range() {
    let kernel = kernel(TILES);
    let other = kernel.specialise(&[("TILE", 32)]).unwrap();
    assert_ne!(kernel.hash, other.hash);
    assert_eq!(other.constants[0].value, 32);
    assert_eq!(kernel.specialise(&[("TILE", 16)]).unwrap().hash, kernel.specialise(&[]).unwrap().hash);
    let said = |values: &[(&str, i64)]| -> ConstantError { kernel.specialise(values).unwrap_err() };
    assert_eq!(
        said(&[("TILE", 68)]).to_string(),
        "constant `TILE` of kernel `tiles`: 68 is not in 4..=64, a multiple of 4"
    );
    assert_eq!(said(&[("SCALE", -9)]).to_string(), "constant `SCALE` of kernel `tiles`: -9 is not in -8..=8");
    assert!(said(&[("TILES", 8)]).to_string().contains("no such constant"));
}

#[test]
fn the_evaluator_is_made_for_values() {
    let outputs = front::parse_source(TILES).unwrap();
    let mut module = ir::instantiate(&outputs[0].module, &Instance::default()).unwrap();
    assert!(module.workgroup.iter().all(|(_, variable)| variable.exact.is_some()));
    ir::specialise(&mut module, &[8, 1, 0]);
    let lengths: Vec<Size> = module.workgroup.iter().map(|(_, variable)| variable.length.clone()).collect();
    assert_eq!(lengths, [Size::Literal(17), Size::Literal(8)]);
    let text = module.to_string();
    assert!(!text.contains("TILE *") && text.contains("in 0..8"), "{text}");
    verify(module).unwrap();
}

#[test]
fn mistakes() {
    let said = |attribute: &str, body: &str| {
        let source = format!("#[kernel(workgroup(64), {attribute})]\npub fn f(y: &mut [f32], n: u32) {{ {body} }}");
        match front::parse_source(&source) {
            Ok(_) => panic!("this should have been refused:\n{source}"),
            Err(errors) => errors.to_string(),
        }
    };
    for (attribute, body, words) in [
        ("specialise()", "", "no constant is declared"),
        ("specialise(TILE: usize = 16)", "", "the possible values of `TILE` are missing"),
        ("specialise(TILE: f32 = 16, in 1..=2)", "", "is a usize, u32, i32 or bool"),
        ("specialise(TILE: u32 = 65, in 1..=64)", "", "65 is not in 1..=64"),
        ("specialise(TILE: u32 = 6, in 1..=64, multiple_of 4)", "", "or no multiple of 4"),
        ("specialise(TILE: u32 = -1, in 1..=64)", "", "no u32 of 32 bits"),
        ("specialise(tile: u32 = 1, in 1..=64)", "", "written in capitals: `TILE`"),
        ("specialise(TILE: u32 = 1, in 1..=64; TILE: u32 = 1, in 1..=2)", "", "declared twice"),
        ("specialise(TILE: u32 = 1, within 1..=64)", "", "expected `in` or `multiple_of`"),
        (
            "specialise(TILE: usize = 1, in 1..=64)",
            "let v = [0.0; TILE]; y[0] = v[0];",
            "known when a pipeline is made",
        ),
        (
            "specialise(TILE: usize = 1, in 1..=64)",
            "if const { TILE > 2 } { y[0] = 1.0; }",
            "the condition of an `if const`",
        ),
        ("specialise(TILE: usize = 1, in 1..=64)", "TILE = 2;", "only variables"),
        ("specialise(TILE: u32 = 1, in 1..=64)", "match n { TILE => {}, _ => {} }", "a pattern is"),
    ] {
        let said = said(attribute, body);
        assert!(said.contains(words), "expected `{words}`:\n{said}");
    }
}

/// Multiples of 0, which no kernel declares, may stand in a damaged file.
#[test]
fn nothing_is_a_multiple_of_nothing() {
    let mut kernel = kernel(TILES);
    kernel.constants.to_mut()[0].multiple = 0;
    assert!(Kernel::from_bytes(&kernel.to_bytes().unwrap()).unwrap().specialise(&[("TILE", 16)]).is_err());
}
