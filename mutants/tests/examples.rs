//! The kernels of `examples/kernels` in the checker: they do nothing amiss, and what they launch can be kept for mutants of theirs.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../tests/common/launches.rs"]
mod launches;

use std::collections::BTreeSet;

use trefoil::check::{self, Finding, MemoryKind, Options};
use trefoil_example_kernels::workload::ALL;

/// Elements of a workload, about: one, fewer than a tile has, and several tiles. Kernels on matrices would take minutes.
const SIZES: [usize; 3] = [1, 700, 9000];

/// What moves several elements at once goes past the end of buffers on purpose: reads give zero, and writes are dropped.
fn is_meant(finding: &Finding) -> bool {
    matches!(finding, Finding::PastEnd { memory, .. } if memory.kind == MemoryKind::Buffer)
}

#[test]
fn nothing_is_amiss() {
    let (device, reports) = check::device(&Options { most_findings: 1000, ..Options::default() }).unwrap();
    launches::keep(&reports);
    let mut ran = BTreeSet::new();
    for (name, make) in ALL {
        for size in SIZES {
            let start = std::time::Instant::now();
            let workload = make(&device, size).unwrap();
            device.run_all(workload.launches).unwrap();
            let result = (workload.result)().unwrap();
            for mut report in reports.take() {
                report.findings.retain(|found| !is_meant(&found.finding));
                assert!(report.is_clean(), "{}: {report}", workload.about);
                ran.insert(report.kernel);
            }
            println!("{name}, {}: {result}, {:.1?}", workload.about, start.elapsed());
        }
    }
    // Of several instances of a kernel a device takes one.
    let kernel = |name: &str| trefoil_example_kernels::all().into_iter().any(|kernel| kernel.name == name);
    assert!(ran.iter().all(|name| kernel(name)), "{ran:?}");
    println!("{} kernels: {ran:?}", ran.len());
}
