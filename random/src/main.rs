//! Draws kernels, runs them on devices, and writes the log: `cargo run --release -p trefoil-random -- --count 10000 --seed 1 --log FILE`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use trefoil_codegen::artefact::Code;
use trefoil_codegen::emit::spirv;
use trefoil_codegen::target::Target;
use trefoil_dsl::device::DeviceKind;
use trefoil_random::draw::draw;
use trefoil_random::harness::{Harness, Limits, Log};
use trefoil_random::log;
use trefoil_random::print::source;
use trefoil_random::run::{self, Failure};
use trefoil_random::syntax::Program;

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
    /// NVRTC and spirv-val look at one in so many kernels, and as many have their CUDA C compiled for the CPU and run there; 0 is none.
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
    /// Goes on with what an earlier run has counted there, and keeps the counts of both there: a driver may not outlive a kernel.
    #[arg(long)]
    counts: Option<PathBuf>,
    /// Writes the log with its table there, as Markdown.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Prints the kernel of the first seed, and runs nothing.
    #[arg(long)]
    show: bool,
    /// With `--show`: what it becomes for this target instead: `wgsl`, `spirv` or `cuda`.
    #[arg(long, requires = "show")]
    code: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.show {
        let program = draw(arguments.seed);
        let shown = arguments.code.as_deref().map_or_else(|| Ok(source(&program)), |target| code(&program, target));
        return match shown {
            Ok(text) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        };
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
    // A device that was asked for by name and does not open is no success.
    let missing = refused.iter().any(|(name, _)| arguments.devices.iter().any(|asked| asked == name));
    let refused: Vec<String> = refused.iter().map(|(name, words)| format!("not run on {name}: {words}")).collect();
    refused.iter().for_each(|line| println!("{line}"));
    for held in &harness.devices {
        let properties = held.device.properties();
        println!("{}: {}, {}", held.name(), properties.name, properties.driver);
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.count);
    let mut log = match arguments.counts.as_deref().map(Log::read) {
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
        Some(Ok(log)) => log.unwrap_or_default(),
        None => Log::default(),
    };
    log.seeds.push([seeds.start, seeds.end.saturating_sub(1)]);
    let threads = arguments.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let limits = Limits { threads, failures: arguments.failures, time: arguments.seconds.map(Duration::from_secs) };
    log.add(harness.run(seeds, limits, &|words| println!("{words}")));
    log.lines().into_iter().for_each(|line| println!("{line}"));
    let rare = log::rare(&harness, &log, log::LEAST);
    println!("{} combinations came up in fewer than {} kernels", rare.len(), log::LEAST);
    if let Some(path) = &arguments.log
        && let Err(error) = std::fs::write(path, log::page(&harness, &log, &refused))
    {
        eprintln!("{} cannot be written: {error}", path.display());
        return ExitCode::FAILURE;
    }
    if let Some(Err(error)) = arguments.counts.as_deref().map(|path| log.write(path)) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    if log.failures.is_empty() && !missing { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a program becomes for a target: the first variant that is a text, or words, which are disassembled.
fn code(program: &Program, target: &str) -> Result<String, Failure> {
    let wrong = |words: String| Failure { place: "command line".to_owned(), words };
    let target = Target::ALL.into_iter().find(|known| known.name() == target);
    let target = target.ok_or_else(|| wrong("there is no such target".to_owned()))?;
    let kernel = run::compile(&run::understand(program)?.module, &[target])?;
    match kernel.variants.first().map(|variant| &variant.code) {
        Some(Code::Text(text)) => Ok(text.to_string()),
        Some(Code::Spirv(bytes)) => {
            let (words, _) = bytes.as_chunks::<4>();
            let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
            Ok(spirv::disassemble(&words))
        }
        _ => Err(wrong(format!("{} has no code of its own", target.name()))),
    }
}
