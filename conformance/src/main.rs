//! Runs ONNX's node tests on every device that opens, or on those that are named.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use trefoil::device::DeviceOptions;
use trefoil::{DeviceKind, devices};
use trefoil_conformance::cases::Cases;
use trefoil_conformance::report::Report;
use trefoil_conformance::run::run;

/// ONNX's node tests, run through trefoil's graph.
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder that scripts/fetch-onnx-cases.sh makes.
    #[arg(long, default_value = ".onnx/1.23.2")]
    cases: PathBuf,
    /// Devices with commas between; all that open if none is named.
    #[arg(long, value_delimiter = ',')]
    device: Vec<String>,
    /// Only cases whose name has this in it.
    #[arg(long)]
    only: Option<String>,
    /// Where to write the page; it is printed otherwise.
    #[arg(long)]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    match tell(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing failed.
fn tell(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    let mut cases = Cases::read(&arguments.cases)?;
    if let Some(only) = &arguments.only {
        cases.cases.retain(|case| case.name.contains(only));
    }
    let mut opened = Vec::new();
    for kind in DeviceKind::ALL {
        let wanted = arguments.device.iter().any(|name| name == kind.name());
        if wanted || arguments.device.is_empty() {
            match devices::open(kind, &DeviceOptions::default()) {
                Ok(device) => opened.push(device),
                Err(error) if wanted => return Err(error.into()),
                Err(error) => eprintln!("not on {kind}: {error}"),
            }
        }
    }
    let outcomes = cases.cases.iter().map(|case| run(&cases, case, &opened)).collect();
    let names = opened.iter().map(|device| device.kind().name().to_owned()).collect();
    let report = Report { cases: &cases, devices: names, outcomes };
    for failure in report.failures() {
        eprintln!("{failure}");
    }
    match &arguments.page {
        Some(path) => std::fs::write(path, report.page())?,
        None => println!("{}", report.page()),
    }
    Ok(report.failures().is_empty())
}
