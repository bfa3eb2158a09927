//! Kernels whose indices are 64 bits wide: what each target makes of them, what is proved of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/native.rs"]
mod native;
#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Module, instantiate};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::Target;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

const KERNELS: &str = include_str!("support/wide_indices.txt");

/// Every instance of the kernels.
fn kernels(source: &str) -> Vec<Module> {
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    let of = |output: &trefoil_codegen::front::Output| {
        let instances = output.instances.iter().map(|instance| instantiate(&output.module, instance));
        instances.map(|made| made.unwrap_or_else(|errors| panic!("{errors}"))).collect::<Vec<_>>()
    };
    outputs.iter().flat_map(of).collect()
}

/// The kernel for a target, in its poorest profile.
fn lowered(module: &Module, target: Target) -> Lowered {
    let verified = verify(module.clone()).unwrap_or_else(|errors| panic!("{}: {errors}", module.name));
    let mut of_target = variants(&verified).into_iter().filter(|(profile, _)| profile.target == target);
    let (profile, transport) = of_target.next_back().unwrap();
    lower(&verified, &profile, transport).unwrap_or_else(|errors| panic!("{}: {errors}", module.name))
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/wide_indices",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => "made from codegen/tests/support/wide_indices.txt",
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_target_has_wide_indices() {
    for module in kernels(KERNELS).iter().filter(|module| module.index.is_wide()) {
        native::record(&module.name, |target| lowered(module, target), snapshot);
    }
}
