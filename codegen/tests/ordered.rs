//! Atomics and fences that order memory: what each target makes of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/native.rs"]
mod native;
#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::emit::{cuda, spirv};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{AtomicFunction, Module, Order};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Feature, Features, ParamTransport, Target};
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

fn kernels(source: &str) -> Vec<Module> {
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    outputs.into_iter().map(|output| output.module).collect()
}

/// The kernel for a target, in its only profile.
fn lowered(module: &Module, target: Target, features: &[Feature]) -> Lowered {
    let verified = verify(module.clone()).unwrap_or_else(|errors| panic!("{errors}"));
    let of_target: Vec<_> = variants(&verified).into_iter().filter(|(profile, _)| profile.target == target).collect();
    let (profile, transport) = of_target.first().unwrap();
    assert_eq!(profile.features, Features::of(features));
    assert!(of_target.iter().all(|(other, _)| other == profile), "{target:?} has more than one profile");
    assert_eq!(*transport, ParamTransport::Value);
    lower(&verified, profile, *transport).unwrap_or_else(|errors| panic!("{errors}"))
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/ordered",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => "made from the kernels of codegen/tests/support",
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_target_says_its_orders() {
    recorded(include_str!("support/ordered.txt"), &[Feature::Ordering]);
}

#[test]
fn every_target_but_wgsl_has_atomics_of_64_bits() {
    let features = [Feature::Ordering, Feature::Int64, Feature::Int64Atomics];
    recorded(include_str!("support/long_atomics.txt"), &features);
}

fn recorded(source: &str, features: &[Feature]) {
    for module in kernels(source) {
        native::record(&module.name, |target| lowered(&module, target, features), snapshot);
    }
}

/// In CUDA C, what the compiler would take for its own may be another workgroup's.
#[test]
fn buffers_that_others_write_are_not_restricted() {
    let kernels = kernels(include_str!("support/ordered.txt"));
    let text = cuda::emit(&lowered(&kernels[0], Target::Cuda, &[Feature::Ordering])).unwrap();
    assert!(text.contains("const uint* __restrict__ x"), "{text}");
    assert!(text.contains("uint* sums,") && text.contains("uint* flags,"), "{text}");
}

/// Accesses to what the flag guards are made available and visible.
#[test]
fn accesses_are_not_private_where_memory_is_ordered() {
    let source = "#[kernel(workgroup(1), targets(spirv))] fn passed(x: &mut [u32], flags: &[Atomic<u32>]) {
        x[0] = 1;
        flags[0].store_release(1);
    }";
    let module = kernels(source).remove(0);
    let text = spirv::disassemble(&spirv::emit(&lowered(&module, Target::Spirv, &[Feature::Ordering])).unwrap());
    assert!(text.lines().any(|line| line.contains("OpStore") && line.contains("NonPrivatePointer")), "{text}");
}

#[test]
fn what_only_reads_acquires_and_what_only_writes_releases() {
    for (function, _) in AtomicFunction::ALL {
        for (order, _) in Order::ALL {
            let allowed = match (function, order) {
                (_, Order::Relaxed) => true,
                (AtomicFunction::Load, order) => order == Order::Acquire,
                (AtomicFunction::Store, order) => order == Order::Release,
                _ => true,
            };
            assert_eq!(function.allows(order), allowed, "{function:?} {order:?}");
        }
    }
}

#[test]
fn wgsl_has_no_orders() {
    let refused = |head: &str, body: &str, words: &[&str]| {
        let source = format!("#[kernel(workgroup(1){head})] fn k(flags: &[Atomic<u32>]) {{ {body} }}");
        let error = match parse_source(&source) {
            Err(errors) => errors.to_string(),
            Ok(outputs) => verify(outputs.into_iter().next().unwrap().module).unwrap_err().to_string(),
        };
        for word in words {
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    };
    let instead = ["which wgsl never has", "list `targets(spirv, cuda, cpu)`"];
    refused("", "flags[0].store_release(1);", &["`store_release` needs `Feature::Ordering`", instead[0], instead[1]]);
    refused("", "let x = flags[0].add_acq_rel(1);", &["`add_acq_rel` needs `Feature::Ordering`", instead[0]]);
    refused("", "device_fence();", &["`device_fence` needs `Feature::Ordering`", instead[0]]);
    let long = "#[kernel(workgroup(1))] fn k(sums: &[Atomic<u64>]) { sums[0].add(1); }";
    let error = verify(kernels(long).remove(0)).unwrap_err().to_string();
    assert!(
        error.contains("the element type of `sums` needs `Feature::Int64Atomics`, which wgsl never has"),
        "{error}"
    );
    refused(", targets(wgsl)", "workgroup_fence();", &["`workgroup_fence` needs", instead[1]]);
    refused(
        ", requires(Ordering)",
        "flags[0].store(1);",
        &["`k` requires `Feature::Ordering`", instead[0], instead[1]],
    );
    refused("", "let x = flags[0].load_release();", &["no `.load_release()`", "`.load_acquire()`"]);
    refused("", "flags[0].store_acq_rel(1);", &["no `.store_acq_rel()`", "`.store_release(v)`"]);
    refused("", "let x = flags[0].workgroup();", &["an operation follows `.workgroup()`"]);
}

/// A kernel may take another way where the target has no orders; each target has the one that it can.
#[test]
fn code_chooses_by_the_feature() {
    let source = "#[kernel(workgroup(1))] fn k(flags: &[Atomic<u32>]) {
        if const { target::has(Feature::Ordering) } { flags[0].store_release(1); } else { flags[0].store(2); }
    }";
    let verified = verify(kernels(source).remove(0)).unwrap();
    for (profile, transport) in variants(&verified) {
        let lowered = lower(&verified, &profile, transport).unwrap();
        let ordered = lowered.module.orders_memory();
        assert_eq!(ordered, profile.target != Target::Wgsl, "{:?}", profile.target);
        assert_eq!(profile.features.has(Feature::Ordering), ordered);
    }
    assert!(
        Target::ALL.into_iter().all(|target| variants(&verified).iter().any(|(profile, _)| profile.target == target))
    );
}
