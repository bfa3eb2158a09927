//! `volatile(x)`: what each target makes of it, that NVRTC and spirv-val accept it for every element, and what is refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::artefact::Code;
use trefoil_codegen::emit::{Emitter, Source};
use trefoil_codegen::front;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::target::Target;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

fn modules(source: &str) -> Vec<Module> {
    let outputs = front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    outputs.iter().map(|output| instantiate(&output.module, &Instance::default()).unwrap()).collect()
}

/// The code of every variant of a target.
fn codes(module: Module, target: Target) -> Vec<Code> {
    let verified = verify(module).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::new(&verified);
    let mut emitter = Emitter::new(&source);
    variants(&verified)
        .into_iter()
        .filter(|(profile, _)| profile.target == target)
        .map(|(profile, transport)| emitter.code(&profile, transport).unwrap().code)
        .collect()
}

fn copy(element: &str, attribute: &str) -> String {
    let zero = match element {
        "f32" | "f64" => "x[i + 1]",
        _ => "x[2 * i]",
    };
    format!(
        "#[kernel(workgroup(64), targets(spirv, cuda){attribute})]
        fn k(x: &[{element}], z: &[{element}], y: &mut [{element}]) {{
            let i = global_index();
            if i < y.len() / 2 {{ y[2 * i] = {zero}; y[2 * i + 1] = z[i]; }}
        }}"
    )
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// How many loads of a module are volatile.
fn volatile_loads(words: &[u32]) -> usize {
    let (mut at, mut count) = (5, 0);
    while at < words.len() {
        let (op, length) = (words[at] & 0xffff, (words[at] >> 16) as usize);
        // OpLoad with a memory access whose first bit is set.
        if op == 61 && length > 4 && words[at + 4] & 1 == 1 {
            count += 1;
        }
        at += length;
    }
    count
}

#[test]
fn every_element_is_read_so() {
    let nvrtc = nvrtc::load();
    let elements = [
        ("f32", ""),
        ("u32", ""),
        ("i32", ""),
        ("u8", ""),
        ("i16", ""),
        ("f16", ""),
        ("bf16", ""),
        ("Vec2<f32>", ""),
        ("Vec4<f32>", ""),
        ("f64", ", requires(Float64)"),
        ("u64", ", requires(Int64)"),
        ("Vec4<f64>", ", requires(Float64)"),
    ];
    for (element, requires) in elements {
        let source = copy(element, &format!(", volatile(x){requires}"));
        for module in modules(&source) {
            for code in codes(module.clone(), Target::Cuda) {
                let Code::Text(text) = code else { panic!("CUDA C is text") };
                assert!(text.contains("read_here("), "{element}: {text}");
                if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
                    panic!("{element}: {log}\n{text}");
                }
            }
            for code in codes(module, Target::Spirv) {
                let Code::Spirv(bytes) = code else { panic!("SPIR-V is bytes") };
                assert!(volatile_loads(&words(&bytes)) > 0, "{element}");
                let name: String = element.chars().filter(|letter| letter.is_alphanumeric()).collect();
                spirv_val::validate(&format!("volatile_{name}"), &words(&bytes));
            }
        }
    }
}

#[test]
fn it_is_said_to_the_targets_that_are_named() {
    let of = |attribute: &str| {
        let module = modules(&copy("f32", attribute)).remove(0);
        let cuda = codes(module.clone(), Target::Cuda).into_iter().any(|code| match code {
            Code::Text(text) => text.contains("read_here("),
            Code::Spirv(_) => false,
        });
        let spirv = codes(module, Target::Spirv).into_iter().map(|code| match code {
            Code::Spirv(bytes) => volatile_loads(&words(&bytes)),
            Code::Text(_) => 0,
        });
        (cuda, spirv.max().unwrap_or(0))
    };
    assert_eq!(of(""), (false, 0));
    assert_eq!(of(", volatile(x)"), (true, 1));
    assert_eq!(of(", volatile(x, z)"), (true, 2));
    assert_eq!(of(", volatile(cuda(x))"), (true, 0));
    assert_eq!(of(", volatile(spirv(x, z), cuda(z))"), (true, 2));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |attribute: &str, x: &str| {
        let source = format!(
            "#[kernel(workgroup(64), {attribute})] pub fn none(x: &[{x}], y: &mut [u32]) {{ y[global_index()] = 1; }}"
        );
        front::parse_source(&source).unwrap_err().to_string()
    };
    for (attribute, x, message) in [
        ("volatile(y)", "f32", "`y` is written"),
        ("volatile(z)", "f32", "the kernel has no slice `z`"),
        ("volatile(x, x)", "f32", "this slice is named twice"),
        ("volatile(x, cuda(x))", "f32", "this slice is named twice"),
        ("volatile(wgsl(x))", "f32", "`wgsl` has no volatile reads"),
        ("volatile(cuda())", "f32", "slices are named"),
        ("volatile()", "f32", "slices are named"),
        ("volatile(x = 1)", "f32", "slices are named"),
        ("volatile(x)", "Vec3<f32>", "of vectors of two or four"),
    ] {
        let error = refused(attribute, x);
        assert!(error.contains(message), "{attribute}: {error}");
    }
}
