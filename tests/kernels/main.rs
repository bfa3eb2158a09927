//! Every kernel of the library against an `f64` reference that shares no code with it, on every device and once more within WebGPU's default limits.
//!
//! What a kernel writes is poisoned before, and lies between guards that must stay as they were; what it reads lies between NaNs. Sizes are awkward: none, one, primes, one more and
//! one less than a workgroup or a tile, and more workgroups than a grid axis holds. Tolerances are bounds on the rounding of the kernel's own sum, operation by operation, from
//! [`f32::EPSILON`] and the accuracy that WGSL and Vulkan promise for `exp`, division and square roots; none was found by trying.
//!
//! A kernel of the library without a case fails [`every_kernel_has_cases`]. Families whose launches a plan makes, several for a result, have theirs in `backends/graph/tests`, by the plan.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(
    clippy::duplicate_mod,
    reason = "the graph's helpers, by which plans are made here, have some of these files too"
)]

mod attention;
mod case;
#[path = "../common/checker.rs"]
mod checker;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../backends/graph/tests/common/mod.rs"]
mod graphs;
#[path = "../common/launches.rs"]
mod launches;
mod matmul;
mod mutants;
mod norm;
#[path = "../common/numbers.rs"]
mod numbers;
mod plans;
mod reduce;
mod rope;
mod stand;

use std::collections::BTreeSet;

use case::{Case, check};
use stand::Stand;
use trefoil::kernels;

/// The cases of the families that one type goes through.
const FAMILIES: [fn() -> &'static [Case]; 1] = [matmul::cases];

/// The kernels with cases here.
fn direct() -> BTreeSet<String> {
    let with_groups = FAMILIES.iter().flat_map(|family| family()).filter(|case| case.groups > 0);
    let mut tested: BTreeSet<_> = with_groups.map(|case| case.kernel.name.to_string()).collect();
    tested.extend(norm::tested().into_iter().map(str::to_owned));
    tested.extend(reduce::tested().into_iter().map(str::to_owned));
    tested.extend(attention::tested());
    tested.extend(rope::tested());
    tested
}

#[test]
fn every_kernel_has_cases() {
    let mut tested = direct();
    // Those that run through graphs: a family's tests there fail for a kernel that they do not run.
    let by_plans = [
        kernels::convolution::kernels(),
        kernels::matmul::kernels(),
        kernels::random::kernels(),
        kernels::scan::kernels(),
        kernels::scatter::kernels(),
        kernels::sort::kernels(),
    ];
    tested.extend(by_plans.concat().into_iter().map(|kernel| kernel.name.to_string()));
    let listed: BTreeSet<_> = kernels::library().into_iter().map(|kernel| kernel.name.to_string()).collect();
    assert_eq!(tested, listed, "kernels with cases, and kernels of the library");
}

#[test]
fn attention() {
    Stand::all().iter().for_each(attention::check);
}

#[test]
fn matmul() {
    Stand::all().iter().for_each(products);
}

#[test]
fn norms() {
    Stand::all().iter().for_each(norm::check);
}

#[test]
fn reductions() {
    Stand::all().iter().for_each(reduce::check);
}

#[test]
fn rope() {
    Stand::all().iter().for_each(rope::check);
}

fn products(stand: &Stand) {
    check(stand, matmul::cases());
}

/// The same cases, but for the largest, on the device that checks: nothing may be found. Products and sorts that plans launch take minutes, and come along where launches are kept for the survey of mutants
/// (`scripts/mutants.sh`).
#[test]
fn nothing_is_amiss() {
    type Check = fn(&Stand);
    let long: [(&str, Check); 2] = [("planned products", plans::products), ("sorts", plans::sorts)];
    let surveyed = std::env::var_os("TREFOIL_LAUNCHES").is_some();
    let checks: [(&str, Check); 11] = [
        ("attention", attention::check),
        ("attention by its op", plans::attention),
        ("convolutions", plans::convolutions),
        ("grouped products", plans::grouped),
        ("matmul", products),
        ("norms", norm::check),
        ("random", plans::random),
        ("reductions", reduce::check),
        ("rope", rope::check),
        ("scans", plans::scans),
        ("scatters", plans::scatters),
    ];
    // Each device that checks runs one dispatch at a time.
    let ran: BTreeSet<String> = std::thread::scope(|scope| {
        let all = checks.into_iter().chain(long.into_iter().filter(|_| surveyed));
        let threads: Vec<_> =
            all.map(|(family, check)| scope.spawn(move || Stand::checker().checked(family, check))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut wanted = direct();
    for name in attention::BY_THE_OP {
        wanted.remove(name);
    }
    let missing: Vec<&String> = wanted.difference(&ran).collect();
    assert!(missing.is_empty(), "kernels with cases that did not run: {missing:?}");
}
