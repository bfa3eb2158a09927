//! The trefoil command: what this machine can run kernels on, the kernel library, its emitted code, and what the language holds.

/// A line of output, as `println!`; what cannot be written is an error of the function around it.
macro_rules! say {
    ($($part:tt)*) => { std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($part)*)))? };
}

mod check;
mod describe;
mod devices;
mod emit;
mod guards;
mod kernels;
mod language;
mod ops;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// GPU kernels written once in Rust.
#[derive(Debug, Parser)]
#[command(name = "trefoil", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the devices that are usable here and, for each kind that is not, why.
    Devices {
        /// Prints an array of objects instead.
        #[arg(long)]
        json: bool,
    },
    /// Lists the accesses of a kernel: which are checked at run time, and why the others need not be.
    Guards {
        /// The kernel, by its name or by the name of one instance.
        kernel: String,
    },
    /// Runs a kernel in the checker with made-up arguments, and tells of races, accesses past the end and the like; it fails if there are any.
    Check(check::Arguments),
    /// Prints what the language holds and what each target makes of it: yes, emulated or a compile error.
    Language {
        /// Prints an array of objects instead of the table.
        #[arg(long)]
        json: bool,
        /// Writes the guide's chapters, one for each row, into this folder instead.
        #[arg(long, value_name = "DIR", conflicts_with = "json")]
        book: Option<PathBuf>,
    },
    /// Prints every op of the library: its formula, attributes, element types, devices and accuracy.
    Ops {
        /// Prints an array of objects instead of the table.
        #[arg(long)]
        json: bool,
        /// Writes both into this folder of documentation instead.
        #[arg(long, value_name = "DIR", conflicts_with = "json")]
        docs: Option<PathBuf>,
    },
    /// Measures ops on the devices of this machine against the speed of a copy, which is measured first.
    Bench(trefoil_benches::Arguments),
    /// Lists the kernels of the library and of the examples with their signatures.
    Kernels {
        /// Prints an array of objects instead, with everything that a launch needs to know.
        #[arg(long)]
        json: bool,
    },
    /// Prints the emitted code of a kernel, or writes that of all of them.
    Emit {
        /// The kernel, by its name or by the name of one instance.
        #[arg(required_unless_present = "all")]
        kernel: Option<String>,
        /// What to print.
        #[arg(long, value_enum, required_unless_present = "all")]
        target: Option<emit::Form>,
        /// Writes every instance and variant of every kernel of the library, the examples and the guide, and a description of each instance as JSON.
        #[arg(long, requires = "out", conflicts_with_all = ["kernel", "target"])]
        all: bool,
        /// The folder to write to; it is made if it is missing.
        #[arg(long, conflicts_with_all = ["kernel", "target"])]
        out: Option<PathBuf>,
    },
}

/// What a command can fail with: it is shown to the user as it is.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has seen enough: `trefoil guards .. | head`.
        Err(error)
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("trefoil: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Devices { json } => devices::list(json),
        Command::Bench(arguments) => {
            trefoil_benches::run(&arguments).map_err(|error| -> Box<dyn std::error::Error> { error })
        }
        Command::Check(arguments) => check::run(&arguments),
        Command::Kernels { json } => kernels::list(json),
        Command::Guards { kernel } => guards::print(&kernel),
        Command::Language { book: Some(folder), .. } => language::book(&folder),
        Command::Language { json, book: None } => language::table(json),
        Command::Ops { docs: Some(folder), .. } => ops::docs(&folder),
        Command::Ops { json, docs: None } => ops::table(json),
        Command::Emit { out: Some(out), all: true, .. } => emit::all(&out),
        Command::Emit { kernel: Some(kernel), target: Some(form), .. } => emit::one(&kernel, form),
        Command::Emit { .. } => Err("emit wants a kernel and --target, or --all and --out".into()),
    }
}
