//! The devices that tests run on.

use std::sync::OnceLock;

use trefoil::artefact::{Feature, Features};
use trefoil::device::{DeviceOptions, Limits};
use trefoil::{Device, DeviceKind, devices};

/// A device to test on.
#[derive(Clone)]
pub struct Subject {
    /// Names it in failures.
    pub name: String,
    /// The device.
    pub device: Device,
}

/// The kinds that `TREFOIL_REQUIRE_DEVICES` (names with commas between) says must be there.
fn required() -> Vec<String> {
    let names = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Every device that opens, and wgpu once more as poor as WebGPU's default limits allow. A required device that does not open fails the test; others that
/// do not are passed over with a notice.
///
/// A program opens them once, for all of its tests: validation layers as old as 1.3.239 enter a new device into their tables without a lock, and crash threads that use another one meanwhile.
pub fn devices() -> Vec<Subject> {
    static OPENED: OnceLock<Vec<Subject>> = OnceLock::new();
    OPENED.get_or_init(|| open(true)).clone()
}

/// Those that have all of these features.
#[allow(dead_code, reason = "few programs ask for features")]
pub fn devices_with(features: &[Feature]) -> Vec<Subject> {
    let has = |subject: &Subject| subject.device.properties().features.contains(Features::of(features));
    devices().into_iter().filter(has).collect()
}

/// The same devices, opened for one test that counts what happens on them; without validation, for the reason above.
#[allow(dead_code, reason = "few programs count")]
pub fn devices_of_its_own() -> Vec<Subject> {
    open(false)
}

/// The driver's validation finds our mistakes; where there is none, tests run without.
fn open(validate: bool) -> Vec<Subject> {
    let required = required();
    let mut subjects = Vec::new();
    for kind in DeviceKind::ALL {
        let validated = DeviceOptions { validate, ..DeviceOptions::default() };
        match devices::open(kind, &validated).or_else(|_| devices::open(kind, &DeviceOptions::default())) {
            Ok(device) => {
                if kind == DeviceKind::Wgpu {
                    subjects.push(at_webgpu_defaults(&device));
                }
                subjects.push(Subject { name: kind.name().to_owned(), device });
            }
            Err(error) => {
                assert!(
                    !required.iter().any(|name| name.eq_ignore_ascii_case(kind.name())),
                    "{kind} is required: {error}"
                );
                eprintln!("not tested on {kind}: {error}");
            }
        }
    }
    for name in &required {
        name.parse::<DeviceKind>().unwrap_or_else(|error| panic!("TREFOIL_REQUIRE_DEVICES: {error}"));
    }
    assert!(!subjects.is_empty(), "no device opens");
    subjects
}

/// wgpu with what every browser has, and no more.
fn at_webgpu_defaults(rich: &Device) -> Subject {
    let limits = Limits {
        max_allocation_bytes: 256 << 20,
        max_binding_bytes: 128 << 20,
        binding_alignment: 256,
        max_storage_buffers: 8,
        max_workgroup_bytes: 16 << 10,
        max_invocations: 256,
        max_workgroup_size: [256, 256, 64],
        max_groups: [65535; 3],
        ..*rich.limits()
    };
    let options =
        DeviceOptions { at_most: Some(limits), without: rich.properties().features, ..DeviceOptions::default() };
    let device = devices::open(DeviceKind::Wgpu, &options)
        .unwrap_or_else(|error| panic!("wgpu opens, but not at WebGPU's default limits: {error}"));
    assert_eq!(device.limits().max_storage_buffers, 8);
    Subject { name: "wgpu at WebGPU's default limits".to_owned(), device }
}
