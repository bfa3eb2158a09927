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

/// The median time of a working set's commands, with barriers between sets: as a model's steps, each begins when the one before is done.
pub fn of_commands(device: &Device, sets: &[Vec<Command>], nanoseconds: u64) -> Outcome<u64> {
    let rounds = rounds(sets.len(), nanoseconds);
    let mut list = Vec::new();
    for set in sets.iter().cycle().take(rounds * sets.len()) {
        if !list.is_empty() {
            list.push(Command::Barrier);
        }
        list.extend(set.iter().cloned());
    }
    let recording = device.backend().record(&list, 0)?;
    time(rounds * sets.len(), || Ok(device.backend().run(&*recording, RunIo::default())?))
}

/// The median time of a working set's dispatches, with barriers between all of them.
pub fn of_dispatches(device: &Device, sets: &[Vec<Dispatch>], nanoseconds: u64) -> Outcome<u64> {
    let rounds = rounds(sets.len(), nanoseconds);
    let row = device.record(sets.iter().cycle().take(rounds * sets.len()).flatten().cloned())?;
    time(rounds * sets.len(), || Ok(row.run()?))
}
