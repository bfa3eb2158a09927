//! Many runs in a row, by the host's clock: what a clock around a launch costs does not count there, and no device lowers its clock between launches.

use std::time::Instant;

use trefoil::device::{Command, RunIo};
use trefoil::{Device, Dispatch};

use crate::Outcome;
use crate::measure::median;

/// How long a row takes at least, so that a device that lowers its clock between launches has raised it.
const ROW: u64 = 50_000_000;
/// How often a row is timed, the first ones not counted.
const ROUNDS: usize = 10;
const WARM_UP: usize = 3;

/// How many rounds of so many working sets a row has, each of which takes about so many nanoseconds.
fn rounds(sets: usize, nanoseconds: u64) -> usize {
    ROW.div_ceil(nanoseconds.max(1) * sets as u64) as usize
}

/// The median time of one run, in nanoseconds, where `row` does so many of them and waits.
fn time(runs: usize, row: impl Fn() -> Outcome) -> Outcome<u64> {
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..WARM_UP + ROUNDS {
        let start = Instant::now();
        row()?;
        if round >= WARM_UP {
            times.push(start.elapsed().as_nanos() as u64 / runs as u64);
        }
    }
    Ok(median(times))
}

/// Where the runs of a row wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each for the one before, as a model's steps do.
    InARow,
    /// For the one before of their own working set: one begins while others end.
    Overlapping,
}

/// The median time of a run of a working set's commands, of which each takes about so many nanoseconds alone. The sets share nothing that is written.
pub fn measure(device: &Device, sets: &[Vec<Command>], nanoseconds: u64, order: Order) -> Outcome<u64> {
    let rounds = rounds(sets.len(), nanoseconds);
    let mut list = Vec::new();
    for (set, number) in sets.iter().cycle().take(rounds * sets.len()).zip(0..) {
        let waits = order == Order::InARow || number % sets.len() == 0;
        if number > 0 && waits {
            list.push(Command::Barrier);
        }
        list.extend(set.iter().cloned());
    }
    let recording = device.backend().record(&list, 0)?;
    time(rounds * sets.len(), || Ok(device.backend().run(&*recording, RunIo::default())?))
}

/// The commands of each working set's dispatches.
pub fn commands(device: &Device, sets: &[Vec<Dispatch>]) -> Outcome<Vec<Vec<Command>>> {
    sets.iter().map(|set| Ok(device.commands(set.iter().cloned())?)).collect()
}
