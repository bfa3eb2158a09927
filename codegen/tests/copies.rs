//! Asynchronous copies: what each target makes of them, what is proved of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::emit::{cpu, cuda, spirv, wgsl};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Asynchronous, Instance, Module, StatementKind, instantiate, statements};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::Target;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::{Verified, verify};

/// The kernels' first instances.
fn kernels(source: &str) -> Vec<Module> {
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    let first = |instances: &[Instance]| instances.first().cloned().unwrap_or_default();
    outputs.into_iter().map(|output| instantiate(&output.module, &first(&output.instances)).unwrap()).collect()
}

fn verified(module: Module) -> Verified {
    verify(module).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The kernel for a target, in its poorest profile.
fn lowered(module: &Module, target: Target) -> Lowered {
    let verified = verified(module.clone());
    let mut of_target = variants(&verified).into_iter().filter(|(profile, _)| profile.target == target);
    let (profile, transport) = of_target.next_back().unwrap();
    lower(&verified, &profile, transport).unwrap_or_else(|errors| panic!("{errors}"))
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/copies",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => "made from codegen/tests/support/copies.txt",
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_target_copies() {
    let nvrtc = nvrtc::load();
    for module in kernels(include_str!("support/copies.txt")) {
        let name = &module.name;
        let text = cuda::emit(&lowered(&module, Target::Cuda)).unwrap();
        snapshot(&format!("{name}.cuda"), &text);
        for architecture in ["sm_75", "sm_80", "sm_90a"] {
            if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, architecture)) {
                panic!("{log}\n{text}");
            }
        }
        let text = wgsl::emit(&lowered(&module, Target::Wgsl)).unwrap();
        wgsl::validate(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        snapshot(&format!("{name}.wgsl"), &text);
        let words = spirv::emit(&lowered(&module, Target::Spirv)).unwrap();
        spirv_val::validate(name, &words);
        cpu::text(&lowered(&module, Target::Cpu)).unwrap();
    }
}

/// How many copies there are, and of how many elements of guarded ends.
fn copies(module: &Module) -> (usize, usize) {
    let (mut all, mut guarded) = (0, 0);
    statements(&module.entry.body, &mut |statement| {
        if let StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) = &statement.kind {
            all += 1;
            guarded += usize::from(to.guarded) + usize::from(from.guarded);
        }
    });
    (all, guarded)
}

fn one(signature: &str, body: &str) -> Module {
    let source = format!("#[kernel(workgroup(64))] fn k({signature}) {{ {body} }}");
    kernels(&source).remove(0)
}

#[test]
fn pieces_that_are_in_range_have_no_guard() {
    let body = |at: &str, test: &str, first: &str| {
        let text = format!(
            "let mut tile = workgroup_array::<f32>(256);
             let i = local_index();
             if {test} {{ copy_async(&mut tile, {at}, x, {first}, 4); }}
             async_commit();
             async_wait(0);
             barrier();
             y[global_index()] = tile[i];"
        );
        verified(one("x: &[f32], y: &mut [f32]", &text))
    };
    let proved = body("4 * i", "4 * i + 3 < x.len()", "4 * i");
    assert_eq!(copies(&proved.module), (1, 0));
    // The last element of the piece may be past the end.
    let unproved = body("4 * i", "4 * i < x.len()", "4 * i");
    assert_eq!(copies(&unproved.module), (1, 1));
    let over = body("4 * i + 4", "4 * i + 3 < x.len()", "4 * i");
    assert_eq!(copies(&over.module), (1, 1));
}

#[test]
fn pieces_are_whole_where_both_ends_are_aligned() {
    let text = |at: &str, first: &str| {
        let body = format!(
            "let mut tile = workgroup_array::<f32>(512);
             copy_async(&mut tile, {at}, x, {first}, 4);
             async_commit();
             async_wait(0);
             barrier();
             y[global_index()] = tile[local_index()];"
        );
        cuda::emit(&lowered(&one("x: &[f32], y: &mut [f32], n: usize", &body), Target::Cuda)).unwrap()
    };
    // Proved by how the indices are made.
    let whole = text("4 * local_index()", "n * 4 + local_index() * 8");
    assert_eq!(whole.matches("copy_async<16>(&").count(), 1, "{whole}");
    assert_eq!(whole.matches("copy_async<4>(&").count(), 0, "{whole}");
    // Asked at run time; else word by word.
    let asked = text("4 * local_index()", "n + 4 * local_index()");
    assert_eq!(asked.matches("copy_async<16>(&").count(), 1, "{asked}");
    assert_eq!(asked.matches("copy_async<4>(&").count(), 4, "{asked}");
    assert!(asked.contains("& 3u) == 0u"), "{asked}");
}

/// A slice must start where a piece may.
#[test]
fn bindings_are_aligned_to_pieces() {
    let modules = kernels(include_str!("support/copies.txt"));
    let found: Vec<_> = modules.into_iter().map(|module| verified(module).info).collect();
    assert_eq!((found[0].copied[0], found[0].vector[0], found[0].workgroup_copied[0]), (4, 4, 4));
    assert_eq!((found[1].copied[0], found[1].vector[0]), (1, 1));
    assert_eq!((found[2].copied[0], found[2].vector[0], found[2].copied[1]), (8, 4, 0));
}

#[test]
fn copies_are_of_4_8_or_16_bytes_from_buffers_to_workgroup_memory() {
    let refused = |body: &str, words: &[&str]| {
        let source = format!(
            "#[kernel(workgroup(64))] fn k(x: &[f32], v: &[Vec3<f32>], a: &[Atomic<u32>], y: &mut [f32], n: usize) {{
                let mut tile = workgroup_array::<f32>(64);
                let mut triples = workgroup_array::<Vec3<f32>>(64);
                {body}
            }}"
        );
        let error = match parse_source(&source) {
            Err(errors) => errors.to_string(),
            Ok(outputs) => verify(outputs.into_iter().next().unwrap().module).unwrap_err().to_string(),
        };
        for word in words {
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    };
    refused("copy_async(&mut tile, 0, x, 0, 3);", &["moves 4, 8 or 16 bytes", "3 of f32 are 12 bytes"]);
    refused("copy_async(&mut tile, 0, x, 0, 8);", &["8 of f32 are 32 bytes"]);
    refused("copy_async(&mut triples, 0, v, 0, 1);", &["are 12 bytes"]);
    refused("copy_async(&mut tile, 0, x, 0, n);", &["must be known while compiling"]);
    refused("async_wait(n);", &["must be known while compiling"]);
    refused("copy_async(y, 0, x, 0, 4);", &["copies to a workgroup array"]);
    refused("copy_async(&mut tile, 0, &tile, 0, 4);", &["copies from a buffer"]);
    refused("copy_async(&mut tile, 0, a, 0, 4);", &["copies from a buffer"]);
    refused("copy_async(&mut tile, 0, v, 0, 1);", &["expected a slice of `f32`"]);
}
