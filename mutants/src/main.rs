//! Makes every mutant of the kernels whose launches a folder holds, and writes the page of what became of them.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use trefoil_codegen::check::Launch;
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
    /// The page to write, which is about all kernels; none if nothing is said.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    to: Option<PathBuf>,
    /// Kernels in the names of which this is.
    #[arg(long)]
    only: Option<String>,
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

/// The launches of kernels in the names of which it is, of which there is one at least.
fn read(arguments: &Arguments) -> Result<Vec<Launch>, Box<dyn Error>> {
    let (folder, mut launches) = (arguments.launches.display(), launch::all(&arguments.launches)?);
    let count = launches.len();
    if count == 0 {
        return Err(format!("{folder} holds no launch: tests that run with `TREFOIL_LAUNCHES={folder}` fill it").into());
    }
    if let Some(only) = &arguments.only {
        launches.retain(|launch| launch.kernel.contains(only));
        if launches.is_empty() {
            return Err(
                format!("none of the {count} launches in {folder} is of a kernel with `{only}` in its name").into()
            );
        }
    }
    Ok(launches)
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let launches = read(arguments)?;
    println!("{} launches, {:.1?}", launches.len(), start.elapsed());
    let families = families(launches)?;
    if families.is_empty() {
        let folder = arguments.launches.display();
        return Err(
            format!("the launches in {folder} are all of kernels that graphs made, which have no mutants").into()
        );
    }
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
        "{}: {sites} sites in {instances}, {launches} launches: {}, {} million words, {:.1?}",
        kernel.kernels.join(", "),
        counts.join(", "),
        kernel.work / 1_000_000,
        kernel.took
    );
    if all {
        for outcome in &kernel.outcomes {
            let (site, fate) = (&outcome.site, outcome.fate);
            println!("  {}: {}, in `{}`: {fate:?}, {}", site.line, site.mistake, site.function, outcome.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_such_launches_is_refused() {
        let folder = std::env::temp_dir().join(format!("trefoil-launches-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = |only: Option<&str>| {
            let given = [String::new(), folder.display().to_string()];
            let only = only.map(|only| format!("--only={only}"));
            let arguments = Arguments::try_parse_from(given.into_iter().chain(only)).unwrap();
            read(&arguments).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let of_empty = refused(None);
        let launch = Launch {
            kernel: "softmax_f32".to_owned(),
            ir: Vec::new(),
            instance: Vec::new(),
            constants: Vec::new(),
            buffers: Vec::new(),
            params: Vec::new(),
            groups: [1; 3],
        };
        std::fs::write(folder.join("one.launch"), launch.to_bytes().unwrap()).unwrap();
        let (of_typo, of_part, of_all) = (refused(Some("typo")), refused(Some("softmax")), refused(None));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(of_empty.contains("holds no launch"), "{of_empty}");
        assert!(of_typo.contains("none of the 1 launches") && of_typo.contains("`typo`"), "{of_typo}");
        assert_eq!((of_part, of_all), (String::new(), String::new()));
    }

    #[test]
    fn a_page_is_of_all_kernels() {
        assert!(Arguments::try_parse_from(["", "launches", "--to", "page.md", "--only", "softmax"]).is_err());
        assert!(Arguments::try_parse_from(["", "launches", "--to", "page.md", "--every", "7"]).is_ok());
    }
}
