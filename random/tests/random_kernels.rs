//! Kernels drawn at random, which the evaluator, the checker and every device that opens compute alike.
//!
//! `TREFOIL_RANDOM_KERNELS` says how many, and `TREFOIL_RANDOM_FIRST` the first seed.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_dsl::device::DeviceKind;
use trefoil_random::harness::Harness;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

#[test]
fn kernels_drawn_at_random_agree_everywhere() {
    let count = number("TREFOIL_RANDOM_KERNELS", 350);
    let first = number("TREFOIL_RANDOM_FIRST", 0);
    let (harness, refused) = Harness::open(&DeviceKind::ALL, 20);
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    for (kind, error) in refused {
        assert!(!required.split(',').any(|name| name.trim() == kind.name()), "{kind} is required: {error}");
        println!("not tested on {kind}: {error}");
    }
    let start = std::time::Instant::now();
    let log = harness.run(first..first + count, 2, 10, &|words| println!("{words}"));
    println!("{:.0} s", start.elapsed().as_secs_f64());
    log.lines().into_iter().chain(log.table.lines()).for_each(|line| println!("{line}"));
    assert!(log.failures.is_empty(), "{} kernels fail, the first: {}", log.failures.len(), log.failures[0].1);
    // A generator that draws kernels of which nothing can be said tests nothing.
    assert!(u64::from(log.accepted) * 10 >= count * 8, "{} of {count} kernels have a meaning", log.accepted);
}
