//! `TREFOIL_TIMINGS=1`: a line for each kernel on the compiler's standard error, with the time of each stage and the sum so far in the crate.
//! Instances are *known* if an earlier expansion compiled them (`remembered`).

use std::cell::RefCell;
use std::time::{Duration, Instant};

use proc_macro2::{Ident, TokenStream};
use trefoil_codegen::timings::{Timings, collect};

/// What was compiled.
#[derive(Clone, Copy)]
struct Work {
    kernels: usize,
    instances: usize,
    variants: usize,
    /// Those of the instances that an earlier expansion compiled.
    known: usize,
    /// The time that the crate waited for the macro.
    elapsed: Duration,
    /// The work in it, on all threads.
    timings: Timings,
}

impl Work {
    const NONE: Self =
        Self { kernels: 0, instances: 0, variants: 0, known: 0, elapsed: Duration::ZERO, timings: Timings::NONE };
}

thread_local! {
    /// Of the kernel at hand.
    static KERNEL: RefCell<Work> = const { RefCell::new(Work::NONE) };
    /// Of the crate: a compiler process expands all macros of one crate, on one thread.
    static CRATE: RefCell<Work> = const { RefCell::new(Work::NONE) };
}

/// Counts a kernel's instances and variants, and whether an earlier expansion compiled them.
pub fn count([instances, variants]: [usize; 2], known: bool) {
    KERNEL.with_borrow_mut(|work| {
        work.instances += instances;
        work.variants += variants;
        work.known += if known { instances } else { 0 };
    });
}

/// Expands a kernel, and says how long that took if asked to.
pub fn printed(kernel: &Ident, expand: impl FnOnce() -> TokenStream) -> TokenStream {
    if std::env::var_os("TREFOIL_TIMINGS").is_none_or(|value| value.is_empty() || value == "0") {
        return expand();
    }
    let begin = Instant::now();
    let (tokens, timings) = collect(expand);
    let elapsed = begin.elapsed();
    let Work { instances, variants, known, .. } = KERNEL.replace(Work::NONE);
    let sum = CRATE.with_borrow_mut(|sum| {
        sum.kernels += 1;
        sum.instances += instances;
        sum.variants += variants;
        sum.known += known;
        sum.elapsed += elapsed;
        sum.timings = sum.timings.plus(&timings);
        *sum
    });
    eprintln!(
        "trefoil: {kernel}: {instances} instances ({known} known), {variants} variants in {elapsed:.1?}; work of {timings}"
    );
    eprintln!(
        "trefoil: so far {} kernels, {} instances ({} known), {} variants in {:.1?}; work of {}",
        sum.kernels, sum.instances, sum.known, sum.variants, sum.elapsed, sum.timings
    );
    tokens
}
