//! Sentence embeddings: all-MiniLM-L6-v2 on any device.
//!
//! ```text
//! scripts/fetch-model.sh
//! cargo run --release -p trefoil-embed -- --model .model/all-MiniLM-L6-v2 'A cat sits.' 'A kitten rests.'
//! ```

mod report;

use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::ProgressBar;
use trefoil::graph::Ceiling;
use trefoil::{DeviceOptions, devices};
use trefoil_embed::encoder::{Bounds, Encoder, Outcome};
use trefoil_embed::tokens;

/// The most texts of one run.
const MOST_TEXTS: usize = 32;

/// Embeds texts with all-MiniLM-L6-v2 and shows how similar they are.
#[derive(Debug, Parser)]
#[command(name = "embed")]
struct Arguments {
    /// The folder with model.safetensors and tokenizer.json; scripts/fetch-model.sh makes it.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// cpu, wgpu, vulkan, cuda, or auto for the first of cuda, vulkan and wgpu that is a real GPU, else cpu.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Keeps compiled kernels in this folder, for the next call.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Writes what each step of the last run took to this file, for <https://ui.perfetto.dev>, and prints it as a table.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Prints one JSON object with the embeddings instead of the table.
    #[arg(long)]
    json: bool,
    /// The texts; `-` stands for the lines of the standard input.
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A line on the terminal, if there is one, that tells what takes its time.
fn waiting(message: &'static str) -> ProgressBar {
    let progress = ProgressBar::new_spinner().with_message(message);
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

fn run(arguments: Arguments) -> Outcome<()> {
    let mut texts = Vec::new();
    for text in arguments.texts {
        if text == "-" {
            for line in std::io::stdin().lock().lines() {
                texts.push(line?);
            }
        } else {
            texts.push(text);
        }
    }
    let progress = waiting("opening the device");
    let options = DeviceOptions { cache: arguments.cache, ..DeviceOptions::default() };
    let device = devices::open_by_name(&arguments.device, &options)?;
    let bounds = Bounds { texts: texts.len().min(MOST_TEXTS), tokens: tokens::LONGEST };
    progress.set_message(format!("compiling for {}", device.properties().name));
    let encoder = Encoder::open(&arguments.model, &device, bounds)?;
    progress.finish_and_clear();
    let mut embeddings = Vec::with_capacity(texts.len());
    for part in texts.chunks(MOST_TEXTS) {
        let batch = encoder.tokens.encode(part)?;
        embeddings.extend(encoder.run(&batch)?);
        if let Some(file) = arguments.trace.as_ref().filter(|_| embeddings.len() == texts.len()) {
            let profile = encoder.executable.profile(&encoder.extents(&batch)?)?.against(Ceiling::measure(&device)?);
            eprint!("{profile}");
            std::fs::write(file, profile.trace().to_string())
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }

    let properties = device.properties();
    let counters = device.backend().counters();
    eprintln!(
        "embed: {} texts on {} ({}): {} pipelines, {} recordings, {} submissions",
        texts.len(),
        properties.kind,
        properties.name,
        counters.pipelines,
        counters.recordings,
        counters.submissions
    );
    if arguments.json {
        println!("{}", report::json(properties.kind.name(), &embeddings)?);
    } else {
        println!("{}", report::table(&texts, &embeddings));
    }
    Ok(())
}
