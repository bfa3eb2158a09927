//! The device interface's rules on wgpu.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../device_rules/mod.rs"]
mod rules;

use trefoil_codegen::artefact::{Code, Features, ParamTransport, Target, Variant};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};
use trefoil_dsl::error::Error;

fn wgsl(name: &str) -> &'static str {
    match name {
        "add" => {
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> a: array<f32>;
            @group(0) @binding(1) var<storage, read> b: array<f32>;
            @group(0) @binding(2) var<storage, read_write> c: array<f32>;
            @group(0) @binding(3) var<uniform> params: Params;
            @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { c[i] = (a[i] + b[i]) * params.scale; }
            }"
        }
        "rotate" => {
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            @group(0) @binding(2) var<uniform> params: Params;
            @compute @workgroup_size(64) fn rotate(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = x[(i + 1u) % params.len] * params.scale; }
            }"
        }
        "table" => {
            "struct Params { len: u32, p0: u32, p1: u32, p2: u32, words: array<vec4<u32>, 31> }
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @group(0) @binding(1) var<uniform> params: Params;
            @compute @workgroup_size(64) fn table(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = params.words[i % 31u].x; }
            }"
        }
        other => panic!("no kernel {other}"),
    }
}

fn variants(name: &str) -> Vec<Variant> {
    vec![Variant {
        dialect: None,
        target: Target::Wgsl,
        profile: "portable".into(),
        features: Features::NONE,
        matrices: std::borrow::Cow::Borrowed(&[]),
        transport: ParamTransport::Buffer,
        tensor_maps: std::borrow::Cow::Borrowed(&[]),
        code: Code::Text(wgsl(name).into()),
    }]
}

const SUBJECT: rules::Subject =
    rules::Subject { kind: DeviceKind::Wgpu, open: trefoil_wgpu::open, variants, reports_cache: false, cpu: |_| None };

device_rules!(SUBJECT);

#[test]
fn kernels_that_do_not_build_are_named() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let device = trefoil_wgpu::open(&DeviceOptions::default()).unwrap();
    let mut kernel = (*rules::kernel(&SUBJECT, "add")).clone();
    kernel.variants.to_mut()[0].code = Code::Text("fn nonsense(".into());
    let refused = device.backend().load(&[std::sync::Arc::new(kernel)], ParamTransport::Value);
    assert!(matches!(&refused, Err(Error::Build { kernel, .. }) if kernel == "add"), "{refused:?}");
    // The device still works.
    device.backend().load(&[rules::kernel(&SUBJECT, "add")], ParamTransport::Value).unwrap();
}
