//! Kernels drawn at random, which the evaluator, the checker and every device that opens compute alike.
//!
//! `TREFOIL_RANDOM_KERNELS` says how many, and `TREFOIL_RANDOM_FIRST` the first seed. Devices get one in [`SHARE`], since what takes time is how drivers compile; `TREFOIL_RANDOM_SHARE` says otherwise. The CUDA C of one in [`TEXTS`] is run
//! on the CPU.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_dsl::device::DeviceKind;
use trefoil_random::fibers::PLACE;
use trefoil_random::harness::{Harness, Limits, is_required};
use trefoil_random::log;

/// Devices get one kernel in so many.
const SHARE: u64 = 16;

/// The CUDA C of one kernel in so many is run on the CPU.
const TEXTS: u64 = 5;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

#[test]
fn kernels_drawn_at_random_agree_everywhere() {
    let count = number("TREFOIL_RANDOM_KERNELS", 1000);
    let first = number("TREFOIL_RANDOM_FIRST", 0);
    let (mut harness, refused) = Harness::open(&DeviceKind::ALL, 5 * SHARE);
    harness.share = number("TREFOIL_RANDOM_SHARE", SHARE);
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    for (name, words) in refused {
        assert!(!is_required(name, &required), "{name} is required: {words}");
        println!("not tested on {name}: {words}");
    }
    if let Some((_, every)) = &mut harness.fibers {
        *every = TEXTS;
    }
    println!(
        "devices get one kernel in {}, NVRTC and spirv-val one in {}, and {PLACE} one in {TEXTS}",
        harness.share,
        5 * SHARE
    );
    let limits = Limits { threads: 2, failures: 10, time: None };
    let log = harness.run(first..first + count, limits, &|words| println!("{words}"));
    log.lines().into_iter().for_each(|line| println!("{line}"));
    assert!(log.failures.is_empty(), "{} kernels fail, the first: {}", log.failures.len(), log.failures[0].1);
    // Of what the language has, everything comes up: in 100 of 10,000 kernels at least.
    let least = (count / 100) as u32;
    let mut rare = log::rare(&harness, &log, least);
    rare.retain(|one| one.target == "evaluator");
    assert!(
        rare.is_empty(),
        "in fewer than {least} kernels: {}",
        rare.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    // A generator that draws kernels of which nothing can be said tests nothing.
    assert!(u64::from(log.accepted) * 10 >= count * 8, "{} of {count} kernels have a meaning", log.accepted);
}
