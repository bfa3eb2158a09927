//! The sentence encoder: wall clock of whole runs, and device time.

use std::path::Path;
use std::time::Instant;

use trefoil::Device;
use trefoil_embed::encoder::{Bounds, Encoder};
use trefoil_embed::tokens::Batch;

use crate::Outcome;
use crate::figure::Figure;
use crate::measure::{median, medians};

/// Words that are one token each.
const WORDS: [&str; 8] = ["river", "house", "green", "light", "seven", "under", "music", "stone"];

/// A batch of full rows.
fn batch(encoder: &Encoder, Bounds { texts, tokens }: Bounds) -> Outcome<Batch> {
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

/// Measures a batch with an encoder compiled for it: from the call to the embeddings in the host's memory, and the device's part of it, step by step.
pub fn measure(device: &Device, name: &str, bounds: Bounds, steps: bool) -> Outcome<[Figure; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.model/all-MiniLM-L6-v2");
    let encoder = Encoder::open(&folder, device, bounds)?;
    let batch = batch(&encoder, bounds)?;
    let extents = encoder.extents(&batch)?;
    let [wall] = medians(1, |_| {
        let start = Instant::now();
        encoder.run(&batch)?;
        Ok([u64::try_from(start.elapsed().as_nanos())?])
    })?;
    let mut profiles = Vec::new();
    let [device] = medians(1, |_| {
        let profile = encoder.executable.profile(&extents)?;
        let sum = profile.nanoseconds();
        profiles.push(profile.steps);
        Ok([sum])
    })?;
    if steps {
        for (index, step) in profiles.first().into_iter().flatten().enumerate() {
            let times = profiles.iter().filter_map(|profile| profile.get(index)).map(|step| step.nanoseconds);
            eprintln!("    {:>9.3} us  {}", median(times.collect()) as f64 / 1e3, step.label);
        }
    }
    let figure = |what: &str, alone| Figure::alone(format!("{name}, {what}"), alone);
    Ok([figure("wall clock", wall), figure("sum of its steps", device)])
}
