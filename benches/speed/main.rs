//! `cargo bench -p trefoil-benches -- [FILTER..] [--device NAME] [--steps] [--json]`: what `trefoil bench` does.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use trefoil_benches::Arguments;

#[derive(Debug, Parser)]
struct Bench {
    #[command(flatten)]
    arguments: Arguments,
    /// What cargo says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match trefoil_benches::run(&Bench::parse().arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has seen enough, as for the command line.
        Err(error)
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("speed: {error}");
            ExitCode::FAILURE
        }
    }
}
