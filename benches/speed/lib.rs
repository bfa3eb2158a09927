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

/// A line of output, as `println!`; what cannot be written is an error of the function around it.
macro_rules! say {
    ($($part:tt)*) => { std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($part)*)))? };
}

mod attention;
mod cases;
mod chains;
mod convolutions;
mod eager;
mod elementwise;
mod entries;
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

use std::error::Error;

use trefoil::device::DeviceOptions;
use trefoil::{Device, devices};

use entries::Entry;
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
    /// Also prints the time of each step of the model, whose cases are called minilm.
    #[arg(long)]
    steps: bool,
    /// Prints one JSON object a line instead of the table.
    #[arg(long)]
    json: bool,
}

/// The devices of this machine, or the one that is named.
fn opened(arguments: &Arguments) -> Outcome<Vec<Device>> {
    let options = DeviceOptions::default();
    if let Some(name) = &arguments.device {
        return Ok(vec![devices::open_by_name(name, &options)?]);
    }
    let mut found = Vec::new();
    for listing in devices::list(&options) {
        match listing.device {
            Ok(device) => found.push(device),
            Err(error) => eprintln!("bench: {}: {error}", listing.kind),
        }
    }
    if found.is_empty() { Err("no device opens".into()) } else { Ok(found) }
}

/// The cases of a device that are asked for.
fn asked<'d>(device: &'d Device, arguments: &Arguments) -> Vec<Entry<'d>> {
    let mut entries = entries::all(device, Scale::of(device), arguments.steps);
    let ops = &arguments.ops;
    entries.retain(|entry| ops.is_empty() || ops.iter().any(|op| entry.name.contains(op.as_str())));
    entries
}

/// Prints the table of every device of this machine, or of the one that is named.
///
/// # Errors
/// No device or not the named one opens, no case has such a name, none of them has steps to print, a device or a case fails, or the table cannot be written.
pub fn run(arguments: &Arguments) -> Outcome {
    let found = opened(arguments)?;
    // Ceilings take seconds a device: what is asked for is looked at before.
    let asked: Vec<(&Device, Vec<Entry<'_>>)> = found.iter().map(|device| (device, asked(device, arguments))).collect();
    let ran: usize = asked.iter().map(|(_, entries)| entries.len()).sum();
    let no_case = format!("no case has a name that contains {}", arguments.ops.join(" or "));
    if ran == 0 {
        return Err(no_case.into());
    }
    if arguments.steps && !asked.iter().flat_map(|(_, entries)| entries).any(|entry| entry.has_steps) {
        let ops = arguments.ops.join(" or ");
        return Err(format!("`--steps` prints the steps of the model, minilm, which {ops} does not ask for").into());
    }
    let mut failed = 0;
    for (device, entries) in &asked {
        if entries.is_empty() {
            eprintln!("bench: {}: {no_case}", device.kind());
        } else {
            failed += on(device, entries, arguments.json)?;
        }
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

/// Runs cases on a device; one that cannot run says so and does not stop the others. How many of them failed.
fn on(device: &Device, entries: &[Entry<'_>], json: bool) -> Outcome<usize> {
    let properties = device.properties();
    if !json {
        say!("{} ({}), {}", properties.kind, properties.name, properties.driver);
        say!("{}", figure::header());
    }
    let ceiling = ceiling(device, Scale::of(device))?;
    for figure in &ceiling.figures {
        figure.print(device, ceiling.bytes_per_second, json)?;
    }
    let mut failed = 0;
    for entry in entries {
        match entry.measure() {
            Ok(figures) => {
                for figure in figures {
                    figure.print(device, ceiling.bytes_per_second, json)?;
                }
            }
            Err(error) => {
                eprintln!("bench: {} on {}: {error}", entry.name, properties.kind);
                failed += usize::from(!is_lacking(&*error));
            }
        }
    }
    Ok(failed)
}
