//! What SPIR-V says of memory: which barriers order buffers, that the validator takes it, and that guards do not depend on what drivers are asked for.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::artefact::{Code, Features, Kernel};
use trefoil_codegen::emit::{Emitter, Source, spirv};
use trefoil_codegen::ir::{Instance, instantiate};
use trefoil_codegen::target::Target;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;
use trefoil_codegen::{compile, front};

/// The first kernel of a source for every device.
fn text(name: &str, source: &str) -> String {
    let outputs = front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    let module = instantiate(&outputs[0].module, &Instance::default()).unwrap();
    let verified = verify(module).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::new(&verified);
    let (profile, transport) = variants(&verified)
        .into_iter()
        .find(|(profile, _)| profile.target == Target::Spirv && profile.features == Features::NONE)
        .unwrap();
    let Code::Spirv(bytes) = Emitter::new(&source).code(&profile, transport).unwrap().code else {
        panic!("SPIR-V is bytes")
    };
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    spirv_val::validate(name, &words);
    spirv::disassemble(&words)
}

/// Whether each barrier orders buffers, in the order of the text.
fn barriers(text: &str) -> Vec<bool> {
    let lines = text.lines().filter(|line| line.contains("OpControlBarrier"));
    lines.map(|line| line.contains("UniformMemory")).collect()
}

/// A kernel that does `body`, with a function that has a barrier between a write and a read of workgroup memory.
fn with_barrier(body: &str) -> String {
    format!(
        "#[kernel(workgroup(64), targets(spirv))]
        fn k(x: &[f32], y: &mut [f32], n: usize) {{
            let mut shared = workgroup_array::<f32>(64);
            let i = global_index();
            let mut sum = 0.0;
            {body}
        }}
        #[device]
        fn turned(shared: &mut [f32], value: f32) -> f32 {{
            shared[local_index()] = value;
            barrier();
            shared[63 - local_index()]
        }}"
    )
}

#[test]
fn a_function_orders_buffers_if_one_was_touched_before() {
    let ordered = |name: &str, body: &str| barriers(&text(name, &with_barrier(body)));
    assert_eq!(ordered("barrier_first", "y[i] = turned(&mut shared, x[i]);"), [false]);
    assert_eq!(ordered("barrier_behind_write", "y[i] = x[i]; sum = turned(&mut shared, x[i]); y[i] = sum;"), [true]);
    assert_eq!(ordered("barrier_behind_read", "sum = y[i]; y[i] = turned(&mut shared, sum);"), [true]);
    // What is later in a loop is earlier in its next round.
    let in_loop = "for _ in 0..n { sum += turned(&mut shared, x[i]); barrier(); y[i] = sum; }";
    assert_eq!(ordered("barrier_in_loop", in_loop), [true, true]);
    let before_loop = "for _ in 0..n { sum += turned(&mut shared, x[i]); barrier(); } y[i] = sum;";
    assert_eq!(ordered("barrier_before_write", before_loop), [false, false]);
    let in_branch = "if n > 1 { y[i] = 1.0; } sum = turned(&mut shared, x[i]); y[i] = sum;";
    assert_eq!(ordered("barrier_behind_branch", in_branch), [true]);
}

#[test]
fn guards_are_the_same_where_drivers_check_nothing() {
    let of = |word: &str| {
        let source = format!(
            "#[kernel(workgroup(64){word})]
            pub fn copied(x: &[f32], y: &mut [f32], from: usize) {{ y[global_index()] = x[from]; }}"
        );
        let outputs = front::parse_source(&source).unwrap_or_else(|errors| panic!("{errors}"));
        compile::compile(&outputs[0].module, &Instance::default()).unwrap_or_else(|found| panic!("{found}"))
    };
    let (checked, unchecked) = (of(""), of(", no_robustness"));
    assert_eq!((checked.no_robustness, unchecked.no_robustness), (false, true));
    let codes = |kernel: &Kernel| -> Vec<Vec<u8>> {
        let codes = kernel.variants.iter().map(|variant| match &variant.code {
            Code::Text(text) => text.as_bytes().to_vec(),
            Code::Spirv(bytes) => bytes.to_vec(),
        });
        codes.collect()
    };
    assert_eq!(codes(&checked), codes(&unchecked));
    // Pipelines are found by it.
    assert_ne!(checked.hash, unchecked.hash);
}
