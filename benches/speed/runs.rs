//! What a run costs the host: of a graph of one element, of a thousand steps that wait for each other, and of small maps that need nothing of each other.

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
    Ok(Figure::alone(name.to_owned(), wall))
}

/// How many small maps stand beside each other.
const SMALL_MAPS: usize = 64;

/// Names in the table, and whether the maps may share kernels.
pub fn beside() -> impl Iterator<Item = (String, bool)> {
    let name = |shared| if shared { "sharing kernels" } else { "a kernel each" };
    [true, false].into_iter().map(move |shared| (format!("run of {SMALL_MAPS} small maps, {}", name(shared)), shared))
}

/// A run's wall clock, of products of 1,024 elements with as many factors each, that need nothing of each other; one of them comes back.
pub fn measure_beside(device: &Device, name: &str, shared: bool) -> Outcome<Figure> {
    const ELEMENTS: usize = 1024;
    let mut graph = Graph::new();
    let model = Model::new();
    let x = graph.input("x", ElementType::F32, [Dim::from(ELEMENTS)])?;
    let mut products = Vec::new();
    for number in 0..SMALL_MAPS {
        let name = format!("factors {number}");
        model.set(&name, &[ELEMENTS], &[number as f32; ELEMENTS][..])?;
        let factors = graph.param(&name, ElementType::F32, [Dim::from(ELEMENTS)])?;
        products.push(graph.mul(x, factors)?);
    }
    // One of them is looked at; the others are made all the same.
    for (number, product) in products.into_iter().enumerate() {
        graph.output(&format!("y{number}"), product)?;
    }
    let forbid = if shared { None } else { Some(trefoil::graph::compile::fuse::beside::NAME.to_owned()) };
    let options = Options { forbid: forbid.into_iter().collect(), ..Options::default() };
    let executable = Executable::compile(&graph, &model, device, &options)?;
    let (x, y) = (executable.input("x")?, executable.output("y3")?);
    let extents = Extents::new();
    let [wall] = medians(1, |round| {
        let given = [round as f32; ELEMENTS];
        let mut got = [0f32; ELEMENTS];
        let start = Instant::now();
        executable.prepare(&extents).input(x, &given).take_into(y, &mut got).run()?;
        let time = u64::try_from(start.elapsed().as_nanos())?;
        if got != given.map(|x| 3.0 * x) {
            return Err(format!("three times {} gave {}", given[0], got[0]).into());
        }
        Ok([time])
    })?;
    Ok(Figure::alone(name.to_owned(), wall))
}
