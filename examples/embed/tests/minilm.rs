//! A real model against embeddings that another implementation computed (scripts/golden-minilm.py).

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../../tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};

use trefoil_embed::encoder::{Bounds, Encoder};
use trefoil_embed::tokens::LONGEST;

/// How far a component may lie from the reference's.
const TOLERANCE: f64 = 2e-5;

struct Golden {
    text: String,
    tokens: usize,
    embedding: Vec<f64>,
}

fn goldens() -> Vec<Golden> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/minilm.json");
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    entries
        .iter()
        .map(|entry| Golden {
            text: entry["text"].as_str().unwrap().to_owned(),
            tokens: entry["tokens"].as_u64().unwrap() as usize,
            embedding: entry["embedding"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect(),
        })
        .collect()
}

/// The folder of the model, if it was fetched. Where devices are required, it is too.
fn model() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.model/all-MiniLM-L6-v2");
    if folder.join("model.safetensors").is_file() {
        return Some(folder);
    }
    assert!(
        std::env::var("TREFOIL_REQUIRE_DEVICES").is_err(),
        "no model in {}: run scripts/fetch-model.sh",
        folder.display()
    );
    eprintln!("not tested: no model in {}; scripts/fetch-model.sh fetches it", folder.display());
    None
}

fn check(what: &str, golden: &Golden, embedding: &[f32]) {
    assert_eq!(embedding.len(), golden.embedding.len(), "{what}");
    for (i, (component, expected)) in embedding.iter().zip(&golden.embedding).enumerate() {
        let difference = (f64::from(*component) - expected).abs();
        // Not `<`, so that a NaN fails.
        assert!(
            difference <= TOLERANCE,
            "{what}: component {i} of {:?} is {component}, {expected} expected",
            golden.text.chars().take(40).collect::<String>()
        );
    }
}

#[test]
fn one_executable_gives_the_references_embeddings_for_every_text_and_batch() {
    let Some(folder) = model() else { return };
    let goldens = goldens();
    assert!(goldens.iter().any(|golden| golden.tokens == LONGEST), "no text is cut off");
    for subject in common::devices() {
        let what = &subject.name;
        let encoder = Encoder::open(&folder, &subject.device, Bounds { texts: 32, tokens: LONGEST }).unwrap();
        let counters = || subject.device.backend().counters();
        let before = counters();
        assert_eq!(before.recordings, 1, "{what}");
        for golden in &goldens {
            let batch = encoder.tokens.encode(&[&golden.text]).unwrap();
            assert_eq!(batch.longest, golden.tokens, "tokens of {:?}", golden.text);
            check(&format!("{what}, alone"), golden, &encoder.run(&batch).unwrap()[0]);
        }
        // A processor that plays a GPU takes a minute for all, padded to the longest; it gets those that are not cut off.
        let longest = if subject.device.properties().software { LONGEST - 1 } else { LONGEST };
        let together: Vec<&Golden> = goldens.iter().filter(|golden| golden.tokens <= longest).collect();
        let texts: Vec<&str> = together.iter().map(|golden| golden.text.as_str()).collect();
        let embeddings = encoder.run(&encoder.tokens.encode(&texts).unwrap()).unwrap();
        assert_eq!(embeddings.len(), together.len());
        for (golden, embedding) in together.into_iter().zip(&embeddings) {
            check(&format!("{what}, in a batch"), golden, embedding);
        }
        let after = counters();
        assert_eq!((after.pipelines, after.recordings), (before.pipelines, before.recordings), "{what}");
        assert_eq!(after.allocations, before.allocations, "{what}");
    }
}
