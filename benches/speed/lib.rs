//! Device speed against a ceiling measured in the same run.
//!
//! ```text
//! trefoil bench [OP..] [--device NAME] [--steps] [--json]
//! ```
//!
//! `kernel` in the place of an op runs the kernels of `examples/kernels` alone.
//!
//! The ceiling is the better of the driver's copy and our own vectorised copy. Working sets rotate among several copies, so that nothing is read from a
//! cache; data is random; times are medians. A GPU's cases are timed alone, by its own clock and one step at a time, and among many in a row, by the host's clock: a clock
//! around a launch costs a few microseconds, and a device with pauses between launches lowers its clock. Rates and shares are of the second, the ceiling's too.

mod attention;
mod cases;
mod chains;
mod convolutions;
mod eager;
mod elementwise;
mod figure;
mod floors;
mod kernels;
mod measure;
mod minilm;
mod norms;
mod orders;
mod products;
mod pulls;
mod random;
mod reductions;
mod row;
mod runs;
mod scatters;

use std::cell::Cell;
use std::error::Error;

use trefoil::device::DeviceOptions;
use trefoil::graph::ElementType;
use trefoil::{Device, devices};
use trefoil_example_kernels::workload;

use figure::Figure;
use measure::{Scale, ceiling};

/// What the bench can fail with.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is measured, and where.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs only the cases whose name contains one of these, such as softmax, conv or "matmul f32".
    #[arg(value_name = "OP")]
    ops: Vec<String>,
    /// Runs on this device alone: cpu, wgpu, vulkan, cuda, or auto for the first of cuda, vulkan and wgpu that is a real GPU, else cpu.
    #[arg(long)]
    device: Option<String>,
    /// Also prints the time of each step of the model.
    #[arg(long)]
    steps: bool,
    /// Prints one JSON object a line instead of the table.
    #[arg(long)]
    json: bool,
}

/// Prints the table of every device of this machine, or of the one that is named.
///
/// # Errors
/// The named device does not open, a device or a case fails, or no case has such a name.
pub fn run(arguments: &Arguments) -> Outcome {
    let options = DeviceOptions::default();
    let mut found: Vec<Device> = Vec::new();
    match &arguments.device {
        Some(name) => found.push(devices::open_by_name(name, &options)?),
        None => {
            for listing in devices::list(&options) {
                match listing.device {
                    Ok(device) => found.push(device),
                    Err(error) => eprintln!("bench: {}: {error}", listing.kind),
                }
            }
        }
    }
    let (mut ran, mut failed) = (0, 0);
    for device in &found {
        let counts = on(device, arguments)?;
        ran += counts.0;
        failed += counts.1;
    }
    if ran == 0 && !found.is_empty() {
        return Err(format!("no case has a name that contains {}", arguments.ops.join(" or ")).into());
    }
    if failed > 0 {
        return Err(format!("{failed} of {ran} cases failed").into());
    }
    Ok(())
}

/// Whether a case did not run because the device lacks what it needs, which is no failure.
fn is_lacking(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    use trefoil::Error as OfDevice;
    use trefoil::graph::Error as OfGraph;
    fn of_device(error: &OfDevice) -> bool {
        matches!(error, OfDevice::Variant(_) | OfDevice::Limit { .. } | OfDevice::Subgroup { .. })
    }
    match error.downcast_ref::<OfGraph>() {
        Some(OfGraph::Lacking { .. } | OfGraph::NoCandidate { .. }) => true,
        Some(OfGraph::Device(error)) => of_device(error),
        Some(OfGraph::At { error, .. }) => of_device(error),
        Some(_) => false,
        None => error.downcast_ref::<OfDevice>().is_some_and(of_device),
    }
}

/// Runs every case on a device; a case that cannot run says so and does not stop the others. How many there were, and how many of them failed.
fn on(device: &Device, arguments: &Arguments) -> Outcome<(usize, usize)> {
    let scale = Scale::of(device);
    let properties = device.properties();
    if !arguments.json {
        println!("{} ({}), {}", properties.kind, properties.name, properties.driver);
        println!("{}", figure::header());
    }
    let ceiling = ceiling(device, scale)?;
    let (ran, failed) = (Cell::new(0usize), Cell::new(0usize));
    let wanted = |name: &str| {
        let is_wanted = arguments.ops.is_empty() || arguments.ops.iter().any(|op| name.contains(op.as_str()));
        ran.set(ran.get() + usize::from(is_wanted));
        is_wanted
    };
    let complain = |name: &str, error: Box<dyn Error + Send + Sync>| {
        eprintln!("bench: {name} on {}: {error}", properties.kind);
        failed.set(failed.get() + usize::from(!is_lacking(&*error)));
    };
    for figure in &ceiling.figures {
        figure.print(device, ceiling.bytes_per_second, arguments.json);
    }
    let report = |name: &str, figure: Outcome<Figure>| match figure {
        Ok(figure) => figure.print(device, ceiling.bytes_per_second, arguments.json),
        Err(error) => complain(name, error),
    };
    let of_graph = |case: &cases::Case, element| match measure::graph(device, case, element, scale) {
        Ok(figures) => figures.into_iter().for_each(|figure| report(&case.name, Ok(figure))),
        Err(error) => report(&case.name, Err(error)),
    };
    for case in cases::all(scale) {
        if wanted(&case.name) {
            of_graph(&case, cases::ELEMENT);
        }
    }
    for element in [ElementType::F32, ElementType::F16, ElementType::BF16] {
        let of_numbers = elementwise::all(scale, element).into_iter().chain(products::all(scale, element));
        for case in of_numbers.chain(attention::all(scale, element)) {
            if wanted(&case.name) {
                of_graph(&case, element);
            }
        }
    }
    if wanted(&eager::name()) {
        report(&eager::name(), eager::measure(device));
    }
    for (name, steps) in runs::all() {
        if wanted(&name) {
            report(&name, runs::measure(device, &name, steps));
        }
    }
    for (name, shared) in runs::beside() {
        if wanted(&name) {
            report(&name, runs::measure_beside(device, &name, shared));
        }
    }
    if wanted(&floors::name()) {
        match floors::measure(device) {
            Ok(floor) => floor.into_iter().for_each(|figure| report(&floors::name(), Ok(figure))),
            Err(error) => report(&floors::name(), Err(error)),
        }
    }
    for (name, make) in workload::of(device) {
        let name = format!("kernel {name}");
        if wanted(&name) {
            report(&name, kernels::measure(device, &name, make, scale));
        }
    }
    for &(name, bounds) in cases::minilm(scale) {
        if wanted(name) {
            match minilm::measure(device, name, bounds, arguments.steps) {
                Ok(figures) => {
                    for figure in figures {
                        figure.print(device, ceiling.bytes_per_second, arguments.json);
                    }
                }
                Err(error) => complain(name, error),
            }
        }
    }
    Ok((ran.get(), failed.get()))
}
