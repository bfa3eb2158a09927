//! What a run costs the host: of a graph of one element, and of a thousand steps that wait for each other.

use std::time::Instant;

use trefoil::Device;
use trefoil::graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};

use crate::Outcome;
use crate::figure::Figure;
use crate::measure::medians;

/// How many steps each graph has.
const STEPS: [u16; 2] = [1, 1000];

/// Names in the table with the steps of each.
pub fn all() -> impl Iterator<Item = (String, u16)> {
    STEPS.into_iter().map(|steps| (format!("run of one element, steps: {steps}"), steps))
}

/// A run's wall clock, from the element in the host's memory to the result there. Each step adds one to what the step before left, in a kernel of its own.
pub fn measure(device: &Device, name: &str, steps: u16) -> Outcome<Figure> {
    let mut graph = Graph::new();
    let one = graph.scalar(1.0, ElementType::F32)?;
    let mut sum = graph.input("x", ElementType::F32, [Dim::from(1)])?;
    for _ in 0..steps {
        sum = graph.add(sum, one)?;
    }
    graph.output("sum", sum)?;
    let options = Options { fuse: false, ..Options::default() };
    let executable = Executable::compile(&graph, &Model::new(), device, &options)?;
    let (x, y) = (executable.input("x")?, executable.output("sum")?);
    let extents = Extents::new();
    let [wall] = medians(1, |round| {
        let given = [round as f32];
        let mut got = [0f32];
        let start = Instant::now();
        executable.prepare(&extents).input(x, &given).take_into(y, &mut got).run()?;
        let time = u64::try_from(start.elapsed().as_nanos())?;
        if got != [given[0] + f32::from(steps)] {
            return Err(format!("{steps} steps from {given:?} on gave {got:?}").into());
        }
        Ok([time])
    })?;
    Ok(Figure { name: name.to_owned(), alone: wall, in_a_row: None, bytes: None, flops: None })
}
