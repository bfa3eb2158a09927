//! Draws kernels, runs them on devices, and prints the log: `cargo run -p trefoil-random -- --count 10000 --seed 1`.

use std::process::ExitCode;

use clap::Parser;
use trefoil_dsl::device::DeviceKind;
use trefoil_random::draw::draw;
use trefoil_random::harness::Harness;
use trefoil_random::print::source;

/// Draws kernels at random, and runs them on the evaluator, the checker and devices, which must agree.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many kernels.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Devices, by name; every one that opens if there is none.
    #[arg(long, value_delimiter = ',')]
    devices: Vec<String>,
    /// NVRTC and spirv-val look at one in so many kernels; 0 is none.
    #[arg(long, default_value_t = 10)]
    every: u64,
    /// How many kernels run at once.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// With so many failures it ends.
    #[arg(long, default_value_t = 10)]
    failures: usize,
    /// Prints the kernel of the first seed, and runs nothing.
    #[arg(long)]
    show: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.show {
        println!("{}", source(&draw(arguments.seed)));
        return ExitCode::SUCCESS;
    }
    let wanted =
        |kind: &DeviceKind| arguments.devices.is_empty() || arguments.devices.iter().any(|name| name == kind.name());
    let kinds: Vec<DeviceKind> = DeviceKind::ALL.into_iter().filter(wanted).collect();
    for name in &arguments.devices {
        if !kinds.iter().any(|kind| kind.name() == name) {
            eprintln!("there is no device `{name}`");
            return ExitCode::FAILURE;
        }
    }
    let (harness, refused) = Harness::open(&kinds, arguments.every);
    for (kind, error) in &refused {
        println!("not run on {kind}: {error}");
    }
    for (name, device) in &harness.devices {
        let properties = device.properties();
        println!("{name}: {}, {}", properties.name, properties.driver);
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.count);
    println!("seeds {} to {}", seeds.start, seeds.end.saturating_sub(1));
    let log = harness.run(seeds, arguments.threads, arguments.failures, &|words| println!("{words}"));
    log.lines().into_iter().chain(log.table.lines()).for_each(|line| println!("{line}"));
    println!("the least count of the table is {}", log.table.least());
    // A device that was asked for by name and does not open is no success.
    let missing = !arguments.devices.is_empty() && !refused.is_empty();
    if log.failures.is_empty() && !missing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
