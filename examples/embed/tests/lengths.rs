//! MiniLM compiled for eight lengths and run by two threads: one copy of the weights, and hardly more memory than is alive at once.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[allow(dead_code, reason = "devices of its own are those that it takes")]
#[path = "../../../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::Path;

use trefoil::DeviceKind;
use trefoil::graph::{Executable, Explanation, Extents, Options, Symbol};
use trefoil_embed::bert::{self, BertConfig};

const LENGTHS: [i64; 8] = [4, 7, 12, 20, 31, 48, 64, 97];

/// `[CLS] hello world [SEP]`, of which every length holds a padded one.
const TOKENS: [u32; 4] = [101, 7592, 2088, 102];

/// How far a component may lie from that of another length, whose sums are of more zeros.
const TOLERANCE: f32 = 2e-5;

/// The most bytes of activations that are alive at one step, found from what each step reads and writes: no plan can do with less.
fn least(explanation: &Explanation) -> u64 {
    let uses = || {
        explanation.steps.iter().enumerate().flat_map(|(step, known)| known.uses.iter().map(move |used| (step, used)))
    };
    // Buffers of activations come behind those of params and constants.
    let buffers = uses().map(|(_, used)| used.buffer).max().unwrap() + 1;
    let first = buffers - explanation.activations.len();
    let mut lives: BTreeMap<&str, (usize, usize, u64)> = BTreeMap::new();
    for (step, used) in uses().filter(|(_, used)| used.buffer >= first) {
        let given = ["ids", "mask"].contains(&&*used.tensor);
        let life = lives.entry(&used.tensor).or_insert((if given { 0 } else { step }, step, used.bytes));
        life.1 = step;
    }
    let alive = |step: usize| lives.values().filter(move |(born, dies, _)| (*born..=*dies).contains(&step));
    (0..explanation.steps.len()).map(|step| alive(step).map(|(_, _, bytes)| bytes).sum()).max().unwrap()
}

#[test]
fn eight_lengths_on_two_threads_share_the_weights_and_waste_little() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.model/all-MiniLM-L6-v2/model.safetensors");
    if !file.is_file() {
        assert!(std::env::var("TREFOIL_REQUIRE_DEVICES").is_err(), "no {}: run scripts/fetch-model.sh", file.display());
        eprintln!("not tested: no model in {}; scripts/fetch-model.sh fetches it", file.display());
        return;
    }
    for subject in common::devices_of_its_own() {
        let (what, device) = (&subject.name, &subject.device);
        let allocated = || device.backend().counters().allocated_bytes;
        let before = allocated();
        let model = bert::weights(&BertConfig::MINILM_L6, &file).unwrap();
        let compiled = LENGTHS.map(|length| {
            let [batch, tokens] = [("batch", 1), ("tokens", length)].map(|(name, n)| Symbol::new(name, n, n).unwrap());
            let graph = bert::encoder(&BertConfig::MINILM_L6, &batch, &tokens).unwrap();
            let extents = Extents::with([(&batch, 1), (&tokens, length)]).unwrap();
            (Executable::compile(&graph, &model, device, &Options::default()).unwrap(), extents, length)
        });
        let (mut activations, mut words, mut weights) = (0, 0, 0);
        for (executable, _, length) in &compiled {
            let explained = executable.explain();
            let (taken, least) = (explained.activations.iter().sum::<u64>(), least(&explained));
            println!(
                "{what}, {length} tokens: {taken} bytes of activations, at least {least} are alive at once ({:.3})",
                taken as f64 / least as f64
            );
            let most = if device.kind() == DeviceKind::Wgpu { 1.25 } else { 1.1 };
            assert!(taken as f64 <= most * least as f64, "{what}, {length} tokens: {taken} bytes for {least}");
            activations += taken;
            words += explained.run_words as u64;
            weights = explained.params;
        }
        let all = allocated() - before;
        println!(
            "{what}: {all} bytes for {} executables: {weights} of weights, {activations} of activations, {words} of run words",
            LENGTHS.len()
        );
        // What devices keep beside it is small; a second copy of the weights would be all of them.
        assert!(all >= weights + activations && all < weights + activations + words + (1 << 20), "{what}: {all} bytes");
        assert!(weights > 80 << 20, "{what}: the weights are {weights} bytes");

        let embed = |(executable, extents, length): &(Executable, Extents, i64)| {
            let mut ids = TOKENS.to_vec();
            ids.resize(*length as usize, 0);
            let mut mask = vec![1f32; TOKENS.len()];
            mask.resize(*length as usize, 0.0);
            let outputs = executable.run(&[("ids", (&ids).into()), ("mask", (&mask).into())], extents).unwrap();
            outputs.get::<f32>("embeddings").unwrap().to_vec()
        };
        // A processor that plays a GPU runs the shortest alone.
        let compiled = if device.properties().software { &compiled[..3] } else { &compiled[..] };
        // Each thread runs all of them, from another end.
        let (up, mut down) = std::thread::scope(|scope| {
            let up = scope.spawn(|| compiled.iter().map(&embed).collect::<Vec<_>>());
            let down = scope.spawn(|| compiled.iter().rev().map(&embed).collect::<Vec<_>>());
            (up.join().unwrap(), down.join().unwrap())
        });
        down.reverse();
        for (own, other) in up.iter().zip(&down) {
            assert_eq!(own, other, "{what}");
            let furthest = own.iter().zip(&up[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Not `<`, so that a NaN fails.
            assert!(furthest <= TOLERANCE, "{what}: {furthest}");
        }
        assert_eq!(allocated() - before, all, "{what}: runs allocate nothing");
    }
}
