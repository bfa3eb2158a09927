//! Kernels whose indices are 64 bits wide: what each target makes of them, what is proved of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/native.rs"]
mod native;
#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::emit::cuda;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{IndexWidth, Instance, Module, instantiate};
use trefoil_codegen::lower::{Lowered, accesses, lower};
use trefoil_codegen::target::{Feature, Target};
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

/// A kernel of such an attribute and body.
fn kernel(attribute: &str, body: &str) -> String {
    format!(
        "#[device] const FAR: usize = 6_000_000_000;
         #[kernel(workgroup(64), {attribute})] fn kernel(y: &mut [u32], n: usize) {{ {body} }}"
    )
}

/// What the kernels of a text are refused with.
fn refused(source: &str) -> String {
    parse_source(source).err().map(|errors| errors.to_string()).unwrap_or_default()
}

const WIDE: &str = "index = 64, targets(spirv, cuda, cpu)";
const BOTH: &str = "index = [32, 64]";

/// Where every instance is wide, numbers may be; where one is not, they may not.
#[test]
fn numbers_beyond_32_bits_are_there_where_every_index_is_wide() {
    for (body, text) in [
        ("y[n + FAR] = 1;", "params.n + 6000000000ull"),
        ("y[n + 5_000_000_000] = 1;", "params.n + 5000000000ull"),
        ("match n { 7_000_000_000 => y[0] = 1, _ => y[1] = 2 }", "== 7000000000ull"),
        ("for i in 0..=4_294_967_295 { y[i] = 1; }", "i < 4294967296ull"),
        ("for i in unroll(5_000_000_000..5_000_000_002) { y[i] = 1; }", "5000000001ull"),
    ] {
        let module = kernels(&kernel(WIDE, body)).remove(0);
        let emitted = cuda::emit(&lowered(&module, Target::Cuda)).unwrap();
        assert!(emitted.contains(text), "{body}: {emitted}");
        let message = refused(&kernel(BOTH, body));
        assert!(message.contains("too large for usize") || message.contains("never ends"), "{body}: {message}");
    }
}

/// What does not depend on the width is computed while building, and what does is left to the instance.
#[test]
fn constants_are_folded_where_both_widths_agree() {
    let source = kernel(BOTH, "y[(-1i32) as usize / 5] = 1; y[7i32 as usize] = 2;");
    let texts: Vec<String> =
        kernels(&source).iter().map(|module| cuda::emit(&lowered(module, Target::Cuda)).unwrap()).collect();
    assert!(texts[0].contains("y_set(y, params, 858993459u, 1u)"), "{}", texts[0]);
    assert!(texts[1].contains("y_set(y, params, 3689348814741910323ull, 1u)"), "{}", texts[1]);
    assert!(texts[0].contains("7u, 2u") && texts[1].contains("7ull, 2u"));
}

#[test]
fn instances_are_named_after_their_width_and_wgsl_has_the_narrow_one() {
    let modules = kernels(&kernel(BOTH, "y[n] = 1;"));
    let names: Vec<_> = modules.iter().map(|module| (module.name.as_str(), module.index.bits())).collect();
    assert_eq!(names, [("kernel", 32), ("kernel_index64", 64)]);
    assert_eq!(modules[0].targets, Target::ALL);
    assert_eq!(modules[1].targets, [Target::Spirv, Target::Cuda, Target::Cpu]);
    assert!(verify(modules[1].clone()).unwrap().info.required.has(Feature::Int64));
    let mut alone = modules[1].clone();
    alone.targets = Target::ALL.to_vec();
    assert!(verify(alone).unwrap_err().to_string().contains("wgsl has no indices of 64 bits"));
}

/// The places that are guarded in a module.
fn guards(module: &Module) -> usize {
    let verified = verify(Module { targets: vec![Target::Cpu], ..module.clone() }).unwrap();
    let found = accesses(&verified, verified.info.required).unwrap();
    found.iter().filter(|access| access.guarded).count()
}

/// Nothing that is proved of 32 bits is not proved of 64.
#[test]
fn as_much_is_proved_of_wide_indices() {
    let outputs = parse_source(include_str!("kernels/cpu.rs")).unwrap_or_else(|errors| panic!("{errors}"));
    let mut seen = 0;
    for output in &outputs {
        for instance in &output.instances {
            let [narrow, wide] = IndexWidth::ALL.map(|index| {
                let instance = Instance { index, ..instance.clone() };
                guards(&instantiate(&output.module, &instance).unwrap())
            });
            assert!(wide <= narrow, "{}: {wide} guards instead of {narrow}", output.module.name);
            seen += 1;
        }
    }
    assert!(seen > 10);
}
