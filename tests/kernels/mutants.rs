//! A sample of mutants of the library's kernels: what the checker makes of each mistake at each site is told by `scripts/mutants.sh`, which takes longer.

use std::sync::{Arc, Mutex};

use trefoil::check::Launch;
use trefoil::graph::ElementType;
use trefoil_mutants::fate::Fate;
use trefoil_mutants::mistake::Mistake;
use trefoil_mutants::subject::{Patience, families};
use trefoil_mutants::survey::survey;

use crate::stand::Stand;
use crate::{plans, rope};

/// Of each instance one site in so many is looked at; a prime, so that every mistake has its turn.
const EVERY: usize = 3;

#[test]
fn mistakes_are_seen() {
    let launches: Arc<Mutex<Vec<Launch>>> = Arc::default();
    let sink = launches.clone();
    let stand = Stand::watched(move |launch| sink.lock().unwrap().push(launch.clone()));
    rope::check(&stand);
    // Workgroup memory, barriers and operations of subgroups.
    plans::scans_of(&stand, [ElementType::F32]);
    let launches = std::mem::take(&mut *launches.lock().unwrap());
    let surveyed = survey(&families(launches).unwrap(), EVERY, Patience::ENDLESS, &|kernel| {
        println!("{:?}: {} sites, {:.1?}", kernel.kernels, kernel.outcomes.len(), kernel.took);
    })
    .unwrap();
    let amiss: Vec<_> = surveyed.iter().flat_map(|kernel| &kernel.amiss).collect();
    assert!(amiss.is_empty(), "of the kernels themselves: {amiss:?}");
    let (mut all, mut different, mut seen) = (0, 0, 0);
    for outcome in surveyed.iter().flat_map(|kernel| &kernel.outcomes) {
        let (site, fate, reason) = (&outcome.site, outcome.fate, &outcome.reason);
        all += 1;
        different += usize::from(fate != Fate::Equal);
        seen += usize::from(fate < Fate::OtherResult);
        // What else survives is another kernel, which does nothing amiss; without a barrier a kernel is none.
        let is_silent = site.mistake == Mistake::BarrierDropped && fate == Fate::OtherResult;
        assert!(
            !is_silent,
            "{}: the result is another without this barrier, and nothing is told of: {reason}",
            site.line
        );
    }
    let words = format!("of {all} mutants {different} do something else, and {seen} are refused or told of");
    println!("{words}");
    assert!(all > 100 && 2 * seen > all, "{words}");
}
