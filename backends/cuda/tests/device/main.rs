//! The device interface's rules on CUDA, where there is a GPU; and what a machine without one is told.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../../device_rules/mod.rs"]
mod rules;

mod opened;

use trefoil_codegen::artefact::{Code, Features, ParamTransport, Target, Variant};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};
use trefoil_dsl::error::Error;

fn variants(_name: &str) -> Vec<Variant> {
    let texts = [
        (ParamTransport::Value, concat!(include_str!("by_value.cu"), include_str!("kernels.cu"))),
        (ParamTransport::Buffer, concat!(include_str!("by_pointer.cu"), include_str!("kernels.cu"))),
    ];
    texts
        .into_iter()
        .map(|(transport, text)| Variant {
            dialect: None,
            target: Target::Cuda,
            profile: "portable".into(),
            features: Features::NONE,
            matrices: std::borrow::Cow::Borrowed(&[]),
            transport,
            tensor_maps: std::borrow::Cow::Borrowed(&[]),
            code: Code::Text(text.into()),
        })
        .collect()
}

const SUBJECT: rules::Subject =
    rules::Subject { kind: DeviceKind::Cuda, open: trefoil_cuda::open, variants, reports_cache: true, cpu: |_| None };

device_rules!(SUBJECT);

#[test]
fn a_machine_without_a_gpu_is_told_what_is_missing() {
    match (trefoil_cuda::open(&DeviceOptions::default()), trefoil_cuda::adapters()) {
        (Ok(device), Ok(names)) => assert!(names.contains(&device.properties().name)),
        (Err(opened), Err(listed)) => {
            for error in [opened, listed] {
                assert!(
                    matches!(&error, Error::Unavailable { reason, .. }
                    if reason.contains("libcuda") || reason.contains("NVRTC") || reason.contains("GPU") || reason.contains("driver")),
                    "{error}"
                );
            }
        }
        (opened, listed) => panic!("{opened:?} but {listed:?}"),
    }
}
