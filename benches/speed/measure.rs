//! Times, medians and ceilings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trefoil::device::{Command, CopyCommand, MemoryRange};
use trefoil::graph::{Data, ElementType, Executable, Extents, Graph, Model, Options};
use trefoil::prelude::*;
use trefoil::{Buffer, Device, DeviceKind, Dispatch};

use crate::Outcome;
use crate::cases::Case;
use crate::figure::Figure;
use crate::row::{self, Order};

/// Working sets rotate until they are as many bytes together as no cache holds.
const BEYOND_CACHES: u64 = 512 << 20;
/// The most copies of a working set.
const MOST_SETS: u64 = 24;

/// Rounds that warm up: the first of each working set loads its kernels.
const WARM_UP: usize = 2;
/// How long a case warms up at least, so that a device that slept has its full clock.
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// The most timed rounds of a case, and the fewest.
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=50;
/// A case is over after this time, if it had its fewest rounds.
const BUDGET: Duration = Duration::from_secs(5);

/// Calls `round` with numbers from 0 on, first to warm up `sets` working sets, and gives the medians of its times.
pub fn medians<const N: usize>(sets: usize, mut round: impl FnMut(usize) -> Outcome<[u64; N]>) -> Outcome<[u64; N]> {
    let start = Instant::now();
    let mut warm_up = 0;
    while warm_up < sets.max(WARM_UP) || start.elapsed() < WARM_UP_TIME {
        round(warm_up)?;
        warm_up += 1;
    }
    let mut times = [const { Vec::new() }; N];
    let start = Instant::now();
    for number in 0..*ROUNDS.end() {
        if number >= *ROUNDS.start() && start.elapsed() > BUDGET {
            break;
        }
        for (times, time) in times.iter_mut().zip(round(warm_up + number)?) {
            times.push(time);
        }
    }
    Ok(times.map(median))
}

/// How much a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A real GPU.
    Gpu,
    /// The processor.
    Cpu,
    /// A processor that plays a GPU.
    Software,
}

impl Scale {
    /// That of a device.
    pub fn of(device: &Device) -> Self {
        match device.properties() {
            properties if properties.kind == DeviceKind::Cpu => Self::Cpu,
            properties if properties.software => Self::Software,
            _ => Self::Gpu,
        }
    }

    /// Bytes that the ceiling copies.
    const fn copied(self) -> u64 {
        match self {
            Self::Gpu => 1 << 30,
            Self::Cpu => 256 << 20,
            Self::Software => 16 << 20,
        }
    }

    /// Whether launches are also timed among many: on a processor one alone says as much.
    pub const fn has_rows(self) -> bool {
        matches!(self, Self::Gpu)
    }

    /// Copies of a working set of so many bytes.
    pub const fn sets(self, bytes: u64) -> u64 {
        match self {
            // Its time is not memory's.
            Self::Software => 1,
            Self::Gpu | Self::Cpu => {
                let sets = BEYOND_CACHES.div_ceil(bytes);
                if sets > MOST_SETS { MOST_SETS } else { sets }
            }
        }
    }
}

/// The middle one.
pub fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Numbers between -1 and 1 that look random.
pub fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Numbers as elements of a float type lie in memory.
fn stored(values: &[f32], element: ElementType) -> Vec<u8> {
    match element {
        ElementType::F16 => values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
        ElementType::BF16 => values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// Copies four numbers an invocation.
#[kernel(workgroup(256))]
fn copy_quads(x: &[f32], y: &mut [f32]) {
    let quad = global_index();
    if quad < y.len() / 4 {
        y.set_vec4(quad, x.vec4(quad));
    }
}

/// How fast a device copies.
pub struct Ceiling {
    /// The driver's copy and ours.
    pub figures: Vec<Figure>,
    /// The better of them: bytes read and written.
    pub bytes_per_second: f64,
}

fn whole(buffer: &Buffer<f32>, bytes: u64) -> MemoryRange {
    MemoryRange { memory: buffer.memory().clone(), offset: 0, bytes }
}

/// Measures it.
pub fn ceiling(device: &Device, scale: Scale) -> Outcome<Ceiling> {
    let limits = device.limits();
    // A whole number of workgroups.
    let most = scale.copied().min(limits.max_binding_bytes).min(limits.max_allocation_bytes);
    let bytes = most / 4096 * 4096;
    let count = usize::try_from(bytes / 4)?;
    let sets = scale.sets(2 * bytes).max(2);
    let mut buffers = Vec::new();
    for set in 0..sets {
        let from = device.buffer(&numbers(count, set as u32))?;
        buffers.push((from, device.uninit::<f32>(count)?));
    }
    let copies: Vec<Vec<Command>> = buffers
        .iter()
        .map(|(from, to)| {
            let copy =
                CopyCommand { from: whole(from, bytes), to: whole(to, bytes), label: Arc::from("the driver's copy") };
            vec![Command::Copy(copy)]
        })
        .collect();
    let dispatches = buffers
        .iter_mut()
        .map(|(from, to)| Ok(vec![copy_quads(&*from, to)?.over(count / 4)]))
        .collect::<Outcome<Vec<Vec<Dispatch>>>>()?;
    let [driver, ours] = medians(sets as usize, |round| {
        let set = round % copies.len();
        let time = device.backend().time(&copies[set])?;
        Ok([time.iter().sum(), device.time(dispatches[set][0].clone())?])
    })?;
    let mebibytes = bytes >> 20;
    let ours_as_commands = row::commands(device, &dispatches)?;
    let figure = |name: &str, commands: &[Vec<Command>], alone| -> Outcome<Figure> {
        let in_a_row = scale.has_rows().then(|| row::measure(device, commands, alone, Order::InARow)).transpose()?;
        let name = format!("{name} {mebibytes} MiB");
        Ok(Figure { in_a_row, bytes: Some(2 * bytes), ..Figure::alone(name, alone) })
    };
    let figures =
        vec![figure("copy by the driver", &copies, driver)?, figure("copy by a kernel", &ours_as_commands, ours)?];
    let bytes_per_second = figures.iter().filter_map(Figure::bytes_per_second).fold(0.0, f64::max);
    Ok(Ceiling { figures, bytes_per_second })
}

/// The candidate that is a library's, not ours.
const LIBRARY: &str = "matmul by the device's library";

/// Measures a graph with inputs of such elements: device time of all its steps, by kernels of ours; and of products, if the device has a library that multiplies, by that too.
pub fn graph(device: &Device, case: &Case, element: ElementType, scale: Scale) -> Outcome<Vec<Figure>> {
    let mut g = Graph::new();
    let mut tensors = Vec::new();
    for (name, shape) in &case.inputs {
        tensors.push(g.input(name, element, shape)?);
    }
    (case.build)(&mut g, &tensors)?;
    // The same numbers for each working set, in memory of its own.
    let values: Vec<_> = case
        .inputs
        .iter()
        .zip(1..)
        .map(|((name, shape), seed)| (*name, stored(&numbers(shape.iter().product::<i64>() as usize, seed), element)))
        .collect();
    let mut inputs: Vec<(&str, Data<'_>)> = Vec::new();
    for (name, bytes) in &values {
        inputs.push((name, Data::from_bytes(element, bytes).ok_or("bytes that are no whole elements")?));
    }
    let multiplies = g.nodes().iter().any(|node| node.op.kind().ways().contains(&LIBRARY));
    let forbid = multiplies.then(|| LIBRARY.to_owned()).into_iter().collect();
    let ours = measured(device, case, scale, &g, &inputs, &Options { forbid, ..Options::default() })?;
    let mut figures = vec![Figure { name: case.name.clone(), ..ours }];
    let taken = (element.stored(), element.stored());
    let library = device.properties().matrix_library.filter(|library| multiplies && library.elements.contains(&taken));
    if let Some(library) = library {
        let force = [("matmul".to_owned(), LIBRARY.to_owned())].into();
        let theirs = measured(device, case, scale, &g, &inputs, &Options { force, ..Options::default() })?;
        figures.push(Figure { name: format!("{} by {}", case.name, library.name), ..theirs });
    }
    Ok(figures)
}

/// Measures a graph as it is compiled with such options.
fn measured(
    device: &Device,
    case: &Case,
    scale: Scale,
    g: &Graph,
    inputs: &[(&str, Data<'_>)],
    options: &Options,
) -> Outcome<Figure> {
    let (model, extents) = (Model::new(), Extents::new());
    let mut sets = Vec::new();
    for _ in 0..scale.sets(case.bytes) {
        let executable = Executable::compile(g, &model, device, options)?;
        // Puts the inputs in their places.
        executable.run(inputs, &extents)?;
        sets.push(executable);
    }
    let [nanoseconds] = medians(sets.len(), |round| Ok([sets[round % sets.len()].profile(&extents)?.nanoseconds()]))?;
    // Such commands are kernels made once more, so that nobody asks for them who does not run them.
    let in_a_row = if scale.has_rows() {
        let commands = sets.iter().map(|set| set.commands_by_value(&extents)).collect::<Result<Vec<_>, _>>()?;
        Some(row::measure(device, &commands, nanoseconds, Order::InARow)?)
    } else {
        None
    };
    let bytes = case.flops.is_none().then_some(case.bytes);
    Ok(Figure { in_a_row, bytes, flops: case.flops, ..Figure::alone(case.name.clone(), nanoseconds) })
}
