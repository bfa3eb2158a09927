//! Makes every mutant of the kernels whose launches a folder holds, and writes the page of what became of them.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use trefoil_mutants::fate::Fate;
use trefoil_mutants::launch;
use trefoil_mutants::page::page;
use trefoil_mutants::subject::{Patience, families};
use trefoil_mutants::survey::{Surveyed, survey};

/// Every mutant of the kernels whose launches a folder holds.
#[derive(Debug, Parser)]
#[command(name = "trefoil-mutants")]
struct Arguments {
    /// The folder, which tests filled that ran with `TREFOIL_LAUNCHES`.
    launches: PathBuf,
    /// The page to write; none if nothing is said.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Kernels in the names of which this is.
    #[arg(long, default_value = "")]
    only: String,
    /// Of each kernel one site in so many is looked at.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Threads; as many as the machine has if it is not said.
    #[arg(long)]
    threads: Option<usize>,
    /// Prints what became of each mutant.
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trefoil-mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut launches = launch::all(&arguments.launches)?;
    launches.retain(|launch| launch.kernel.contains(&arguments.only));
    println!("{} launches, {:.1?}", launches.len(), start.elapsed());
    let families = families(launches)?;
    println!("{} families of kernels, {:.1?}", families.len(), start.elapsed());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads.unwrap_or(0)).build()?;
    let surveyed =
        pool.install(|| survey(&families, arguments.every, Patience::BRIEF, &|kernel| tell(kernel, arguments.all)))?;
    println!("{:.1?}", start.elapsed());
    if let Some(file) = &arguments.to {
        std::fs::write(file, page(&surveyed))?;
    }
    for told in surveyed.iter().flat_map(|kernel| &kernel.amiss) {
        println!("of a kernel itself: {told}");
    }
    Ok(())
}

fn tell(kernel: &Surveyed, all: bool) {
    let count = |fate| kernel.outcomes.iter().filter(|outcome| outcome.fate == fate).count();
    let counts: Vec<String> = Fate::ALL.iter().map(|(fate, heading)| format!("{} {heading}", count(*fate))).collect();
    let (sites, launches, instances) = (kernel.outcomes.len(), kernel.launches, kernel.instances.join(", "));
    println!(
        "{}: {sites} sites in {instances}, {launches} launches: {}, {:.1?}",
        kernel.kernels.join(", "),
        counts.join(", "),
        kernel.took
    );
    if all {
        for outcome in &kernel.outcomes {
            let (site, fate) = (&outcome.site, outcome.fate);
            println!("  {}: {}, in `{}`: {fate:?}, {}", site.line, site.mistake, site.function, outcome.reason);
        }
    }
}
