//! The kernels of the device rules, as SPIR-V that naga writes.

use naga::back::spv;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use trefoil_codegen::artefact::{Code, Features, ParamTransport, Target, Variant};

/// WGSL of a kernel, up to the parameter block.
fn wgsl(name: &str) -> (&'static str, u32) {
    match name {
        "add" => (
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> a: array<f32>;
            @group(0) @binding(1) var<storage, read> b: array<f32>;
            @group(0) @binding(2) var<storage, read_write> c: array<f32>;
            @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { c[i] = (a[i] + b[i]) * params.scale; }
            }",
            3,
        ),
        "rotate" => (
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            @compute @workgroup_size(64) fn rotate(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = x[(i + 1u) % params.len] * params.scale; }
            }",
            2,
        ),
        "table" => (
            "struct Params { len: u32, p0: u32, p1: u32, p2: u32, words: array<vec4<u32>, 31> }
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(64) fn table(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = params.words[i % 31u].x; }
            }",
            1,
        ),
        other => panic!("no kernel {other}"),
    }
}

fn spirv(name: &str, transport: ParamTransport) -> Vec<u8> {
    let (body, bindings) = wgsl(name);
    let block = match transport {
        ParamTransport::Value => "var<immediate> params: Params;".to_owned(),
        ParamTransport::Buffer => format!("@group(0) @binding({bindings}) var<storage, read> params: Params;"),
    };
    let module = naga::front::wgsl::parse_str(&format!("{block}\n{body}")).unwrap();
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module).unwrap();
    let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
    let words = spv::write_vec(&module, &info, &options, None).unwrap();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The variants of a kernel.
pub fn variants(name: &str) -> Vec<Variant> {
    // The block of `table` is larger than push constants on any device, so that emitters write it as a buffer alone.
    let transports: &[ParamTransport] = match name {
        "table" => &[ParamTransport::Buffer],
        _ => &[ParamTransport::Value, ParamTransport::Buffer],
    };
    transports
        .iter()
        .map(|&transport| Variant {
            dialect: None,
            target: Target::Spirv,
            profile: "portable".into(),
            features: Features::NONE,
            matrices: std::borrow::Cow::Borrowed(&[]),
            transport,
            tensor_maps: std::borrow::Cow::Borrowed(&[]),
            entry: name.to_owned().into(),
            code: Code::Spirv(spirv(name, transport).into()),
        })
        .collect()
}
