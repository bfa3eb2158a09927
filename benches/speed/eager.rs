//! Ops run one by one: what a launch costs the host.

use std::time::Instant;

use trefoil::Device;
use trefoil::graph::Eager;

use crate::Outcome;
use crate::figure::Figure;
use crate::measure::medians;

/// Launches of a round.
const LAUNCHES: u32 = 1000;

/// Its name in the table.
pub fn name() -> String {
    format!("{LAUNCHES} eager adds of one element")
}

/// A chain of sums of one element: alone is the host's time, from the first call until the last batch is submitted; in a row is the time until the sum is read.
pub fn measure(device: &Device) -> Outcome<Figure> {
    let eager = Eager::new(device);
    let one = eager.tensor(&[1], &[1.0f32])?;
    let [submitted, read] = medians(1, |_| {
        let mut sum = one.clone();
        // What an earlier round left is not this one's.
        eager.wait()?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            sum = eager.add(&sum, &one)?;
        }
        eager.flush()?;
        let submitted = start.elapsed();
        let values = sum.read::<f32>()?;
        let read = start.elapsed();
        if values != [LAUNCHES as f32 + 1.0] {
            return Err(format!("{LAUNCHES} sums from 1 on gave {values:?}").into());
        }
        Ok([submitted, read].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    })?;
    Ok(Figure { in_a_row: Some(read), ..Figure::alone(name(), submitted) })
}
