//! The sentence encoder: wall clock of whole runs, and device time.

use std::path::Path;
use std::time::Instant;

use trefoil::Device;

use crate::Outcome;
use crate::encoder::Encoder;
use crate::measure::{Figure, medians};
use crate::tokens::Batch;

/// Opens the model.
pub fn encoder(device: &Device) -> Outcome<Encoder> {
    Encoder::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".model/all-MiniLM-L6-v2"), device)
}

/// Words that are one token each.
const WORDS: [&str; 8] = ["river", "house", "green", "light", "seven", "under", "music", "stone"];

/// A batch of full rows.
fn batch(encoder: &Encoder, texts: usize, tokens: usize) -> Outcome<Batch> {
    let row = |text: usize| {
        // Two tokens mark a text's ends.
        let words: Vec<_> = (0..tokens - 2).map(|i| WORDS[(i * i + text * 3 + i / 5) % WORDS.len()]).collect();
        words.join(" ")
    };
    let rows: Vec<_> = (0..texts).map(row).collect();
    let batch = encoder.tokens.encode(&rows)?;
    if batch.longest != tokens || batch.mask.contains(&0.0) {
        return Err(format!("the texts have {} tokens instead of {tokens}", batch.longest).into());
    }
    Ok(batch)
}

/// Measures a batch: from the call to the embeddings in the host's memory, and the device's part of it, as a sum and, if asked, step by step.
pub fn measure(encoder: &Encoder, name: &str, texts: usize, tokens: usize, by_step: bool) -> Outcome<Vec<Figure>> {
    let batch = batch(encoder, texts, tokens)?;
    let extents = encoder.extents(&batch)?;
    let [wall] = medians(1, |_| {
        let start = Instant::now();
        encoder.run(&batch)?;
        Ok([u64::try_from(start.elapsed().as_nanos())?])
    })?;
    let [device] =
        medians(1, |_| Ok([encoder.executable.profile(&extents)?.iter().map(|step| step.nanoseconds).sum()]))?;
    let figure = |name: String, nanoseconds| Figure { name, nanoseconds, bytes: None, flops: None };
    let mut figures =
        vec![figure(format!("{name}, wall clock"), wall), figure(format!("{name}, sum of its steps"), device)];
    if by_step {
        let steps = encoder.executable.profile(&extents)?;
        figures.extend(steps.iter().map(|step| figure(format!("  {}", step.label), step.nanoseconds)));
    }
    Ok(figures)
}
