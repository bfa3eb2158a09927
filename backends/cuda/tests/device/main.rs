//! The device interface's rules on CUDA, where there is a GPU; and what a machine without one is told.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../../device_rules/mod.rs"]
mod rules;

mod opened;

use trefoil_codegen::artefact::{Code, Features, ParamTransport, Target, Variant};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};
use trefoil_dsl::error::Error;

/// The texts hold every kernel. Each begins with the name of the one that is meant, since equal texts are one entry of a cache.
fn variants(name: &str) -> Vec<Variant> {
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
            entry: name.to_owned().into(),
            code: Code::Text(format!("// {name}\n{text}").into()),
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

/// Another library of the program's may have a context of its own current, or rely on there being none.
#[test]
fn what_a_thread_has_current_stays_so() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let current = || cudarc::driver::result::ctx::get_current().unwrap();
    let on_thread = move || {
        let device = trefoil_cuda::open(&DeviceOptions::default()).unwrap();
        assert_eq!(current(), None, "after opening");
        let buffer = device.buffer(&[1f32, 2.0]).unwrap();
        assert_eq!(buffer.read().unwrap(), [1.0, 2.0]);
        assert_eq!(current(), None, "after a read");
        let read = buffer.read_later().unwrap();
        assert_eq!(current(), None, "after a read began");
        read.is_ready().unwrap();
        assert_eq!(current(), None, "after asking for a read");
        assert_eq!(read.wait().unwrap(), [1.0, 2.0]);
        assert_eq!(current(), None, "after a read was taken");
        let pipeline = rules::load(&device, &rules::kernel(&SUBJECT, "rotate"), ParamTransport::Value);
        assert_eq!(current(), None, "after loading");
        drop(pipeline);
        assert_eq!(current(), None, "after something is gone");
        let other = cudarc::driver::CudaContext::new_non_primary(0, 0).unwrap();
        other.bind_to_thread().unwrap();
        assert_eq!(buffer.read().unwrap(), [1.0, 2.0]);
        drop((buffer, device));
        assert_eq!(current(), Some(other.cu_ctx()), "after all is gone");
    };
    // A thread that has nothing current.
    std::thread::spawn(on_thread).join().unwrap();
}
