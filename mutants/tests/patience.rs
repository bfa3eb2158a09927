//! What is looked at is decided by counted work: it is the same on any number of threads, and in whatever order launches come.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::{Arc, Mutex};

use trefoil::check::{self, Launch, Options};
use trefoil_example_kernels::workload::ALL;
use trefoil_mutants::page::page;
use trefoil_mutants::subject::{Patience, families};
use trefoil_mutants::survey::survey;

/// Of each instance one site in so many is looked at.
const EVERY: usize = 3;

/// Launches of small sums and histograms, each of them once more as one of another instance.
fn launches() -> Vec<Launch> {
    let (device, reports) = check::device(&Options::default()).unwrap();
    let launches: Arc<Mutex<Vec<Launch>>> = Arc::default();
    let sink = launches.clone();
    reports.watch(move |launch| sink.lock().unwrap().push(launch.clone()));
    for (_, make) in ALL.into_iter().filter(|(name, _)| ["histogram", "sum"].contains(name)) {
        for size in [1, 700, 701, 3000] {
            let workload = make(&device, size).unwrap();
            device.run_all(workload.launches).unwrap();
            (workload.result)().unwrap();
        }
    }
    let launches = std::mem::take(&mut *launches.lock().unwrap());
    let again = |launch: &Launch| Launch { kernel: format!("{}_again", launch.kernel), ..launch.clone() };
    launches.iter().flat_map(|launch| [launch.clone(), again(launch)]).collect()
}

/// The page, and of each family how many launches and instances were looked at, with the work for its mutants.
fn surveyed(launches: &[Launch], threads: usize, patience: Patience) -> (String, Vec<(usize, usize, u64)>) {
    let families = families(launches.to_vec()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let all = pool.install(|| survey(&families, EVERY, patience, &|_| {})).unwrap();
    (page(&all), all.iter().map(|family| (family.launches, family.instances.len(), family.work)).collect())
}

#[test]
fn what_is_looked_at_depends_on_no_clock() {
    let launches = launches();
    let all = surveyed(&launches, 1, Patience::ENDLESS);
    assert!(!all.1.is_empty(), "no family");
    for (runs, instances, work) in &all.1 {
        assert!(*runs >= 4 && *instances == 2 && *work > 0, "{:?}", all.1);
    }
    let backwards: Vec<Launch> = launches.iter().rev().cloned().collect();
    assert_eq!(surveyed(&backwards, 4, Patience::ENDLESS), all);
    let least = Patience { launch: 0, family: 0 };
    let one = surveyed(&launches, 1, least);
    assert!(one.1.iter().all(|(runs, instances, _)| (*runs, *instances) == (1, 1)), "{:?}", one.1);
    assert_eq!(surveyed(&backwards, 4, least), one);
    // A family that takes no more than it may is looked at to its end.
    let family = all.1.iter().map(|(_, _, work)| *work).max().unwrap_or(0);
    assert_eq!(surveyed(&launches, 3, Patience { launch: u64::MAX, family }), all);
}
