//! Measures the functions of a device, or writes the page from what was measured.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use trefoil::device::DeviceOptions;
use trefoil::devices;
use trefoil_accuracy::{measure, page};

/// The largest error of each mathematical function on a device.
#[derive(Debug, Parser)]
#[command(name = "trefoil-accuracy")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures a device and writes what was found as JSON.
    Measure {
        /// cpu, wgpu, vulkan or cuda.
        #[arg(long)]
        device: String,
        /// The file; its name is the heading of the device's column.
        #[arg(long, value_name = "FILE")]
        into: PathBuf,
    },
    /// Writes the page from the files of a folder.
    Page {
        /// The folder.
        #[arg(long, default_value = "docs/accuracy")]
        from: PathBuf,
        /// The page.
        #[arg(long, default_value = "docs/src/accuracy.md")]
        to: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trefoil-accuracy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Measure { device, into } => {
            let device = devices::open_by_name(&device, &DeviceOptions::default())?;
            let measured = measure::measure(&device)?;
            std::fs::write(into, serde_json::to_string_pretty(&measured)? + "\n")?;
        }
        Command::Page { from, to } => std::fs::write(to, page::page(&page::read(&from)?)?)?,
    }
    Ok(())
}
