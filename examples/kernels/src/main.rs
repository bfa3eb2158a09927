//! Runs a kernel of this package on a device, and says what it did.
//!
//! ```text
//! cargo run --release -p trefoil-example-kernels -- sum --device auto --elements 16777216
//! ```

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use trefoil::device::DeviceOptions;
use trefoil::devices;
use trefoil_example_kernels::workload::{self, Workload};

/// Runs a kernel on numbers that look random.
#[derive(Debug, Parser)]
#[command(name = "hard-kernels")]
struct Arguments {
    /// The kernel; all of them if none is named.
    #[arg(value_parser = PossibleValuesParser::new(workload::ALL.iter().chain(&workload::ON_MATRICES).map(|(name, _)| *name)))]
    kernel: Option<String>,
    /// cpu, wgpu, vulkan, cuda, or auto for the first of cuda, vulkan and wgpu that is a real GPU, else cpu.
    #[arg(long, default_value = "auto")]
    device: String,
    /// How many elements, about.
    #[arg(long, default_value_t = 1 << 20)]
    elements: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hard-kernels: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let device = devices::open_by_name(&arguments.device, &DeviceOptions::default())?;
    println!("{} ({})", device.kind(), device.properties().name);
    for (name, make) in workload::of(&device) {
        if arguments.kernel.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let Workload { about, launches, flops, bytes, result } = make(&device, arguments.elements)?;
        // The first run compiles the kernels.
        device.run_all(launches.clone())?;
        let result = result()?;
        let mut nanoseconds = 0;
        for launch in &launches {
            nanoseconds += device.time(launch.clone())?;
        }
        let (count, per) = (launches.len(), |amount: u64| amount as f64 / nanoseconds.max(1) as f64);
        let rate = match flops {
            Some(flops) => format!("{:.1} TFLOP/s", per(flops) / 1e3),
            None => format!("{:.1} GB/s", per(bytes)),
        };
        println!("  {about}: {result}; {count} launches, {:.3} ms, {rate}", nanoseconds as f64 / 1e6);
    }
    Ok(())
}
