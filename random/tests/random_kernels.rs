//! Kernels drawn at random, which the evaluator, the checker and every device that opens compute alike.
//!
//! `TREFOIL_RANDOM_KERNELS` says how many, and `TREFOIL_RANDOM_FIRST` the first seed.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil::device::DeviceOptions;
use trefoil::{DeviceKind, devices};
use trefoil_random::harness::Harness;
use trefoil_random::nvrtc;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

fn harness() -> Harness {
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    let mut opened = Vec::new();
    for kind in DeviceKind::ALL {
        match devices::open(kind, &DeviceOptions::default()) {
            Ok(device) => opened.push((kind.name().to_owned(), device)),
            Err(error) => {
                assert!(!required.split(',').any(|name| name.trim() == kind.name()), "{kind} is required: {error}");
                println!("not tested on {kind}: {error}");
            }
        }
    }
    Harness { devices: opened, nvrtc: nvrtc::load().map(|nvrtc| (nvrtc, 10)), spirv_val: 10 }
}

#[test]
fn kernels_drawn_at_random_agree_everywhere() {
    let count = number("TREFOIL_RANDOM_KERNELS", 1000);
    let harness = harness();
    let log = harness.run(number("TREFOIL_RANDOM_FIRST", 0), count, 3, &mut |words| println!("{words}"));
    log.lines().into_iter().chain(log.table.lines()).for_each(|line| println!("{line}"));
    assert!(log.failures.is_empty(), "{} kernels fail, the first: {}", log.failures.len(), log.failures[0].1);
    // A generator that draws kernels of which nothing can be said tests nothing.
    assert!(u64::from(log.accepted) * 10 >= count * 8, "{} of {count} kernels have a meaning", log.accepted);
}
