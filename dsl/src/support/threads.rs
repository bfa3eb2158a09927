//! Threads that wait and do nothing else.
//!
//! A thread of a pool of rayon's that waits for its pool, or for another one, does its own pool's other jobs meanwhile. Such a job is often another call of the same device, and wants a lock that whoever waits holds: neither goes on. So
//! nothing here waits on a thread of a pool.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// Does something that waits for a pool, on a thread that is none of another pool's: on the caller's where that is so, and else on one of its own.
pub fn asleep<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_none() {
        return act();
    }
    scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// What `act` makes of each item, in their order: on threads of its own, which take one after the other, and on the caller's; there may be no threads but that. A single item costs no thread.
pub fn side_by_side<I: Sync, T: Send>(items: &[I], act: impl Fn(&I) -> T + Sync) -> Vec<T> {
    // Where there are no threads, as in a browser, nobody can tell how many.
    let threads = available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match items.get(at) {
                Some(item) => made.push((at, act(item))),
                None => return made,
            }
        }
    };
    let mut made = scope(|scope| {
        // The system may have no more of them.
        let others: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut made = work();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};
    use std::thread;
    use std::time::Duration;

    use rayon::prelude::*;

    use super::*;

    #[test]
    fn a_job_that_holds_a_lock_while_it_waits_for_another_pool_does_no_other_job() {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let other = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let turn = Mutex::new(0);
            (0..64).into_par_iter().for_each(|_| {
                let mut turn = turn.lock().unwrap();
                asleep(|| other.install(|| thread::sleep(Duration::from_millis(1))));
                *turn += 1;
            });
            done.send(*turn.lock().unwrap()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(64), "it hangs");
    }

    #[test]
    fn what_is_made_side_by_side_comes_in_order_and_panics_come_through() {
        let items: Vec<u64> = (0..100).collect();
        assert_eq!(side_by_side(&items, |item| 2 * item), items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        assert!(side_by_side(&[0u64; 0], |item| *item).is_empty());
        let failed = std::panic::catch_unwind(|| side_by_side(&items, |item| assert_ne!(*item, 50, "on purpose")));
        assert!(failed.is_err());
    }
}
