//! The device interface's rules on Vulkan, with SPIR-V that naga writes from a few lines of WGSL.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../device_rules/mod.rs"]
mod rules;

use naga::back::spv;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use trefoil_codegen::artefact::{Code, Features, ParamTransport, Target, Variant};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};
use trefoil_dsl::error::Error;

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

fn variants(name: &str) -> Vec<Variant> {
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
            code: Code::Spirv(spirv(name, transport).into()),
        })
        .collect()
}

device_rules!(rules::Subject {
    kind: DeviceKind::Vulkan,
    open: trefoil_vulkan::open,
    variants,
    reports_cache: false,
    cpu: |_| None
});

#[test]
fn messages_of_the_validation_layer_are_errors() {
    let subject = rules::Subject {
        kind: DeviceKind::Vulkan,
        open: trefoil_vulkan::open,
        variants,
        reports_cache: false,
        cpu: |_| None,
    };
    if !rules::is_present(&subject) {
        return;
    }
    let device = match trefoil_vulkan::open(&DeviceOptions { validate: true, ..DeviceOptions::default() }) {
        Ok(device) => device,
        Err(error) => {
            assert!(error.to_string().contains("VK_LAYER_KHRONOS_validation"), "{error}");
            return;
        }
    };
    // The shader has a parameter block that the kernel does not declare.
    let mut kernel = (*rules::kernel(&subject, "table")).clone();
    kernel.params.size = 0;
    let refused = device.backend().load(&[std::sync::Arc::new(kernel)], ParamTransport::Buffer);
    assert!(matches!(refused, Err(Error::Driver { call: "validation", .. })), "{refused:?}");
}

/// The name of the variable that makes a test process its own child.
const CHILD: &str = "TREFOIL_TEST_WITHOUT_DRIVERS";

#[test]
fn a_machine_without_drivers_is_told_so() {
    if std::env::var_os(CHILD).is_some() {
        for error in
            [trefoil_vulkan::open(&DeviceOptions::default()).unwrap_err(), trefoil_vulkan::adapters().unwrap_err()]
        {
            assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("no driver")), "{error}");
        }
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_machine_without_drivers_is_told_so"])
        .env(CHILD, "1")
        .env("VK_ICD_FILENAMES", "/nowhere/absent.json")
        .env("VK_DRIVER_FILES", "/nowhere/absent.json")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

#[test]
fn adapters_are_listed_and_chosen_by_name() {
    let Ok(names) = trefoil_vulkan::adapters() else { return };
    assert!(!names.is_empty());
    for (position, name) in names.iter().enumerate() {
        for adapter in [position.to_string(), name.to_uppercase()] {
            let options = DeviceOptions { adapter: Some(adapter), ..DeviceOptions::default() };
            let device = trefoil_vulkan::open(&options).unwrap();
            assert!(names.contains(&device.properties().name));
            assert_eq!(device.properties().software, name.contains("llvmpipe"));
        }
    }
}
