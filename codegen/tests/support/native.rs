//! What a kernel becomes for the targets besides WGSL, judged by their own compilers and recorded.

use trefoil_codegen::emit::{cpu, cuda, spirv};
use trefoil_codegen::lower::Lowered;
use trefoil_codegen::target::{Feature, Target};

use crate::{nvrtc, spirv_val};

/// Compiles the CUDA C where NVRTC is there, validates the SPIR-V, and gives each text to `snapshot` with its name.
pub fn record(name: &str, lowered: impl Fn(Target) -> Lowered, snapshot: fn(&str, &str)) {
    let for_cuda = lowered(Target::Cuda);
    let text = cuda::emit(&for_cuda).unwrap();
    let oldest = if for_cuda.profile.features.has(Feature::CooperativeMatrices) { "sm_80" } else { "sm_75" };
    snapshot(&format!("{name}.cuda"), &text);
    let nvrtc = nvrtc::load();
    for architecture in [oldest, "sm_90a"] {
        if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, architecture)) {
            panic!("{log}\n{text}");
        }
    }
    let words = spirv::emit(&lowered(Target::Spirv)).unwrap();
    spirv_val::validate(name, &words);
    snapshot(&format!("{name}.spirv"), &spirv::disassemble(&words));
    snapshot(&format!("{name}.cpu"), &cpu::text(&lowered(Target::Cpu)).unwrap());
}
