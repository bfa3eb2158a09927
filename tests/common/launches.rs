//! Launches of tests, kept for the mutants of their kernels (`trefoil-mutants`).
//!
//! Each dispatch on a device that checks becomes a file in the folder that `TREFOIL_LAUNCHES` names: at most so many of a kernel, and none that is large. Without the variable nothing is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use trefoil::check::{Launch, Reports};

/// Launches of a kernel's instance that a test program keeps.
const MOST: usize = 60;
/// Bytes of all buffers of one that is kept.
const LARGEST: usize = 1 << 20;
/// Launches that this program has kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Keeps what is checked from now on, if launches are to be kept.
pub fn keep(reports: &Reports) {
    let Some(folder) = std::env::var_os("TREFOIL_LAUNCHES").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&folder).unwrap();
    let kept = Mutex::new(BTreeMap::new());
    reports.watch(move |launch: &Launch| {
        let mut kept = kept.lock().unwrap();
        let count = kept.entry(launch.kernel.clone()).or_insert(0);
        if *count < MOST && launch.buffers.iter().map(Vec::len).sum::<usize>() <= LARGEST {
            *count += 1;
            let number = KEPT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}.{}.{number}.launch", launch.kernel, std::process::id());
            std::fs::write(folder.join(name), launch.to_bytes().unwrap()).unwrap();
        }
    });
}
