//! What the processor is, and what the device allows.

use trefoil_codegen::artefact::{Features, Target};
use trefoil_codegen::target::{CPU_SUBGROUP_SIZE, MOST_SUBGROUP};
use trefoil_dsl::device::{DeviceKind, Limits, Properties};

/// Workgroup memory lies on the stack of a thread, as do locals that live across barriers.
pub(crate) const MAX_WORKGROUP_BYTES: u32 = 256 * 1024;
/// Bytes of the stack of each thread.
pub(crate) const STACK_BYTES: usize = 16 * 1024 * 1024;
/// Any allocation starts at a multiple of this many bytes: a cache line and the widest vector.
pub(crate) const MEMORY_ALIGNMENT: usize = 64;

/// The processor's name, as the operating system tells it.
pub(crate) fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    told.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

/// Bytes of memory in the machine, where the operating system tells.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

pub(crate) fn properties(threads: usize) -> Properties {
    // A single allocation is at most what an address can reach, and never more than the machine has.
    let most = memory_bytes().unwrap_or(u64::MAX).min(isize::MAX as u64) & !(MEMORY_ALIGNMENT as u64 - 1);
    Properties {
        kind: DeviceKind::Cpu,
        name: processor(),
        driver: format!("{threads} threads, {}", std::env::consts::ARCH),
        software: false,
        features: Features::of_target(Target::Cpu),
        matrices: Vec::new(),
        subgroup_sizes: Some(1..=MOST_SUBGROUP),
        #[cfg(feature = "gemm")]
        matrix_library: Some(crate::library::LIBRARY),
        #[cfg(not(feature = "gemm"))]
        matrix_library: None,
        limits: Limits {
            max_allocation_bytes: most,
            max_binding_bytes: most,
            // Kernels get pointers to the exact element.
            binding_alignment: 1,
            max_storage_buffers: 64,
            max_workgroup_bytes: MAX_WORKGROUP_BYTES,
            max_invocations: 1024,
            max_workgroup_size: [1024, 1024, 1024],
            max_groups: [u32::MAX, 65535, 65535],
            min_subgroup: CPU_SUBGROUP_SIZE,
            max_subgroup: CPU_SUBGROUP_SIZE,
            shares_memory_within_dispatch: true,
            near_host_bytes: 0,
        },
    }
}
