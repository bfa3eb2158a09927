//! A device that is lost under kernels side by side is opened again, and they run once more.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use trefoil_dsl::device::DeviceOptions;
use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
use trefoil_random::harness::{Harness, Limits};
use trefoil_random::held::Held;

#[test]
fn kernels_go_on_after_a_device_is_lost() {
    let opened = Arc::new(AtomicU32::new(0));
    let counted = opened.clone();
    let (faults, device) = Faults::over(&trefoil_cpu::open(&DeviceOptions::default()).unwrap());
    let device = device.opened_by(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        trefoil_cpu::open(&DeviceOptions::default())
    });
    faults.plant(Fault { call: Call::Submission, after: 5, then: Then::Lost });
    let harness = Harness { devices: vec![Held::new(device)], share: 1, ..Harness::default() };
    let log = harness.run(0..40, Limits { threads: 4, failures: 10, time: None }, &|words| println!("{words}"));
    assert!(log.failures.is_empty(), "{:?}", log.failures);
    assert_eq!(log.ran["cpu"], log.accepted);
    assert_eq!(opened.load(Ordering::Relaxed), 1);
}
