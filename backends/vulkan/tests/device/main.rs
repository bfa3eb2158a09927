//! The device interface's rules on Vulkan, with SPIR-V that naga writes from a few lines of WGSL.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../../device_rules/mod.rs"]
mod rules;

mod opened;
mod own;
mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Command, CopyCommand, DeviceKind, DeviceOptions, RunIo};
use trefoil_dsl::error::Error;
use words::variants;

const SUBJECT: rules::Subject = rules::Subject {
    kind: DeviceKind::Vulkan,
    open: trefoil_vulkan::open,
    variants,
    reports_cache: false,
    cpu: |_| None,
};

device_rules!(SUBJECT);

#[test]
fn messages_of_the_validation_layer_are_errors() {
    if !rules::is_present(&SUBJECT) {
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
    let mut kernel = (*rules::kernel(&SUBJECT, "table")).clone();
    kernel.params.size = 0;
    let refused = device.backend().load(&[Arc::new(kernel)], ParamTransport::Buffer);
    assert!(matches!(refused, Err(Error::Driver { call: "validation", .. })), "{refused:?}");
}

/// Memory of the host too is in buffers, of which the driver has a largest.
#[test]
fn pinned_memory_larger_than_any_buffer_is_refused() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let options = DeviceOptions { validate: true, ..DeviceOptions::default() };
    let device = trefoil_vulkan::open(&options).or_else(|_| trefoil_vulkan::open(&DeviceOptions::default())).unwrap();
    let refused = device.pinned::<u8>(1 << 46).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. } | Error::OutOfMemory { .. }), "{refused:?}");
    assert!(refused.to_string().contains("pinned buffer of 70368744177664 u8"), "{refused}");
    assert_eq!(device.pinned::<u8>(5).unwrap().len(), 5);
}

/// The host reads and writes small memory by itself: what it reads is what some call wrote, and no mixture.
#[test]
fn what_the_host_reads_is_not_written_meanwhile() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let device = trefoil_vulkan::open(&DeviceOptions::default()).unwrap();
    let buffer = device.buffer(&[0u32; 60_000]).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let buffer = &buffer;
            scope.spawn(move || (0..500).for_each(|round| buffer.write(&[2 * round + writer; 60_000]).unwrap()));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let found = buffer.read().unwrap();
                    assert!(found.iter().all(|element| *element == found[0]), "a mixture");
                }
            });
        }
    });
}

/// Memory that callers let go and that the device is done with is there for what is made next, and goes when a run, or everything, was waited for.
#[test]
fn memory_that_the_device_is_done_with_goes() {
    const BYTES: u64 = 16 << 20;
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let device = trefoil_vulkan::open(&DeviceOptions::default()).unwrap();
    let backend = device.backend();
    let copy = |bytes: u64| {
        let [from, to] = ["from", "to"].map(|label| rules::whole(&backend.allocate(bytes, label).unwrap()));
        Command::Copy(CopyCommand { from, to, label: Arc::from("copy") })
    };
    let held = || backend.counters().allocated_bytes;
    backend.execute(&[copy(BYTES)]).unwrap();
    let start = Instant::now();
    while held() >= 2 * BYTES {
        assert!(start.elapsed() < Duration::from_secs(60), "it is held for good");
        backend.allocate(16, "next").unwrap();
    }
    assert_eq!(held(), 0);
    let recording = backend.record(&[copy(64)], 0).unwrap();
    backend.execute(&[copy(BYTES)]).unwrap();
    backend.run(&*recording, RunIo::default()).unwrap();
    assert_eq!(held(), 128, "what the recording holds");
    backend.submit(&*recording).unwrap();
    drop(recording);
    backend.wait().unwrap();
    assert_eq!(held(), 0, "what a submission held of a recording that is gone");
}

/// Devices that share a cache on disk, as processes do, keep each other's pipelines. A driver that does not tell what it found there is only asked to go on.
#[test]
fn a_cache_on_disk_keeps_what_others_stored() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("trefoil-vulkan-merged-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let options = DeviceOptions { cache: Some(folder.clone()), ..DeviceOptions::default() };
    let open = || trefoil_vulkan::open(&options).unwrap();
    let load = |device: &trefoil_dsl::device::Device, name| {
        device.backend().load(&[rules::kernel(&SUBJECT, name)], ParamTransport::Value).unwrap();
        device.backend().counters().pipelines_from_cache
    };
    let (first, second) = (open(), open());
    load(&first, "add");
    let tells = load(&open(), "add") == 1;
    load(&second, "rotate");
    let third = open();
    load(&third, "add");
    let found = load(&third, "rotate");
    assert!(!tells || found == 2, "{found}");
    std::fs::remove_dir_all(&folder).unwrap();
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
