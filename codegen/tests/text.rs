//! The WGSL and CUDA C emitters: what a dozen small kernels become, judged by naga, by naga's SPIR-V writer and by NVRTC.

#[path = "support/kernels.rs"]
mod kernels;
#[path = "support/nvrtc.rs"]
mod nvrtc;

use trefoil_codegen::emit::{cuda, wgsl};
use trefoil_codegen::ir::Module;
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Feature, Features, ParamTransport, Profile, Target};
use trefoil_codegen::verify::verify;

fn lowered(module: Module, target: Target, transport: ParamTransport) -> Lowered {
    let name = module.name.clone();
    let features = Features::of(&Feature::ALL);
    let verified = verify(module).unwrap_or_else(|errors| panic!("{name} is not verified: {errors}"));
    let mut lowered = lower(&verified, &Profile::portable(target).with(features), transport)
        .unwrap_or_else(|errors| panic!("{name} is not lowered: {errors}"));
    if !lowered.info.relevant.has(Feature::F16Storage) {
        lowered.profile.features = Features::of(&[Feature::Subgroups]);
    }
    lowered
}

/// naga's SPIR-V writer takes some modules to pieces that its validator accepts.
fn to_spirv(text: &str) -> Result<usize, String> {
    let (module, info) = wgsl::parse(text).map_err(|error| error.to_string())?;
    let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
    naga::back::spv::write_vec(&module, &info, &options, None).map(|words| words.len()).map_err(|error| error.to_string())
}

fn snapshot(name: &str, made_by: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/text",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => format!("made by {made_by} from the kernel `{name}` of codegen/tests/support/kernels.rs"),
    }, {
        insta::assert_snapshot!(format!("{name}.{made_by}"), text);
    });
}

#[test]
fn wgsl_is_valid_and_as_recorded() {
    let mut failures = Vec::new();
    for module in kernels::all() {
        let name = module.name.clone();
        let lowered = lowered(module, Target::Wgsl, ParamTransport::Buffer);
        let text = wgsl::emit(&lowered).unwrap_or_else(|error| panic!("{error}"));
        if let Err(error) = wgsl::validate(&text) {
            failures.push(format!("{name}: {error}\n{text}"));
            continue;
        }
        if let Err(error) = to_spirv(&text) {
            failures.push(format!("{name}: naga's SPIR-V writer: {error}"));
        }
        snapshot(&name, "wgsl", &text);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn cuda_compiles_and_is_as_recorded() {
    let nvrtc = nvrtc::load();
    let mut failures = Vec::new();
    for module in kernels::all() {
        let name = module.name.clone();
        for transport in [ParamTransport::Value, ParamTransport::Buffer] {
            let lowered = lowered(module.clone(), Target::Cuda, transport);
            let text = cuda::emit(&lowered).unwrap_or_else(|error| panic!("{error}"));
            for architecture in ["sm_80", "sm_90a"] {
                if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, architecture)) {
                    failures.push(format!("{name}: {log}\n{text}"));
                }
            }
            if transport == ParamTransport::Value {
                snapshot(&name, "cuda", &text);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn emitters_refuse_what_was_lowered_for_another_target() {
    let module = kernels::all().remove(0);
    let lowered = lowered(module, Target::Cuda, ParamTransport::Value);
    let error = wgsl::emit(&lowered).unwrap_err();
    assert_eq!(error.target, Target::Wgsl);
    assert!(error.to_string().contains("scaled_gelu"), "{error}");
}

#[test]
fn renaming_a_local_changes_its_name_alone() {
    let emit = |name: &str| {
        let lowered = lowered(kernels::scaled_gelu(name), Target::Wgsl, ParamTransport::Buffer);
        wgsl::emit(&lowered).unwrap()
    };
    assert_eq!(emit("position").replace("position", "where_to"), emit("where_to"));
}
