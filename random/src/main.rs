//! Draws kernels, runs them on devices, and writes the log: `cargo run --release -p trefoil-random -- --count 10000 --seed 1 --log FILE`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use trefoil_dsl::device::DeviceKind;
use trefoil_random::draw::draw;
use trefoil_random::harness::{Harness, Limits, Log};
use trefoil_random::log;
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
    /// How many kernels run at once; as many as the machine has threads if it is not said.
    #[arg(long)]
    threads: Option<usize>,
    /// With so many failures it ends.
    #[arg(long, default_value_t = 10)]
    failures: usize,
    /// After so many seconds no further kernel begins.
    #[arg(long)]
    seconds: Option<u64>,
    /// After so many kernels devices are opened anew: drivers keep something of each kernel that they compiled, and one of them ends after 6,600.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    portion: u64,
    /// Writes the log with its table there, as Markdown.
    #[arg(long)]
    log: Option<PathBuf>,
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
    let open = || Harness::open(&kinds, arguments.every);
    let (mut harness, refused) = open();
    let refused: Vec<String> = refused.iter().map(|(kind, error)| format!("not run on {kind}: {error}")).collect();
    refused.iter().for_each(|line| println!("{line}"));
    for (name, device) in &harness.devices {
        let properties = device.properties();
        println!("{name}: {}, {}", properties.name, properties.driver);
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.count);
    let told = format!("seeds {} to {}", seeds.start, seeds.end.saturating_sub(1));
    println!("{told}");
    let threads = arguments.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let time = arguments.seconds.map(Duration::from_secs);
    let mut log = Log::default();
    let mut first = seeds.start;
    while first < seeds.end {
        let end = first.saturating_add(arguments.portion).min(seeds.end);
        let limits = Limits {
            threads,
            failures: arguments.failures.saturating_sub(log.failures.len()),
            time: time.map(|time| time.saturating_sub(log.time)),
        };
        log.add(harness.run(first..end, limits, &|words| println!("{words}")));
        if log.failures.len() >= arguments.failures || time.is_some_and(|time| log.time >= time) {
            break;
        }
        first = end;
        if first < seeds.end {
            // The old devices go first, so that there is room for the new ones.
            harness.devices.clear();
            let (opened, lost) = open();
            if let Some((kind, error)) =
                lost.iter().find(|(kind, _)| !refused.iter().any(|line| line.contains(kind.name())))
            {
                eprintln!("{kind} does not open again: {error}");
                return ExitCode::FAILURE;
            }
            harness = opened;
        }
    }
    log.lines().into_iter().for_each(|line| println!("{line}"));
    let rare = log::rare(&harness, &log, log::LEAST);
    println!("{} combinations came up in fewer than {} kernels", rare.len(), log::LEAST);
    if let Some(path) = &arguments.log
        && let Err(error) = std::fs::write(path, log::page(&harness, &log, &told, &refused))
    {
        eprintln!("{} cannot be written: {error}", path.display());
        return ExitCode::FAILURE;
    }
    // A device that was asked for by name and does not open is no success.
    let missing = !arguments.devices.is_empty() && !refused.is_empty();
    if log.failures.is_empty() && !missing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
