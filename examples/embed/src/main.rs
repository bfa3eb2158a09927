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

use clap::Parser;
use trefoil::device::DeviceOptions;
use trefoil::devices;
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
    /// auto, cpu, wgpu, vulkan or cuda; auto is the fastest that there is.
    #[arg(long, default_value = "auto")]
    device: String,
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
    let device = devices::open_by_name(&arguments.device, &DeviceOptions::default())?;
    let bounds = Bounds { texts: texts.len().min(MOST_TEXTS), tokens: tokens::LONGEST };
    let encoder = Encoder::open(&arguments.model, &device, bounds)?;
    let mut embeddings = Vec::with_capacity(texts.len());
    for part in texts.chunks(MOST_TEXTS) {
        embeddings.extend(encoder.run(&encoder.tokens.encode(part)?)?);
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
