//! A small transformer that writes one token a run, with keys and values in states, against the same transformer over the whole text each time.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::transformer::{Builder, ELEMENTS, FIRST, KEY_HEADS, LAYERS, STEPS, VOCABULARY, model};
use common::{Values, devices_of_its_own, tolerance};
use trefoil_dsl::device::Device;
use trefoil_graph::compile::prove::prove;
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Options, Outputs, Symbol, reference};

use ElementType::F32;

/// How far logits may be from those of the whole text, relative to the largest: both are sums of `f32` by other kernels.
const CLOSE: f32 = 1e-5;

/// Both ways to compute the same, with one copy of the weights.
struct Pair {
    one: Executable,
    at: Symbol,
    all: Executable,
    count: Symbol,
}

impl Pair {
    fn new(device: &Device) -> Self {
        let at = Symbol::new("at", 0, STEPS as i64 - 1).unwrap();
        let count = Symbol::new("count", 1, STEPS as i64).unwrap();
        let one = Builder::default().transformer(&Dim::from(1), Some(&Dim::from(&at)));
        let all = Builder::default().transformer(&Dim::from(&count), None);
        assert_eq!(one.params, all.params);
        let model = model(&one.params);
        let compile = |g: &Graph| Executable::compile(g, &model, device, &Options::default()).unwrap();
        let pair = Self { one: compile(&one.g), at, all: compile(&all.g), count };
        prove(&one.g, &pair.one.trace().unwrap()).unwrap();
        pair
    }

    fn step(&self, executable: &Executable, at: usize, token: u32) -> Vec<f32> {
        let mut extents = Extents::new();
        extents.set(&self.at, at as i64).unwrap();
        logits(&executable.run(&[("ids", (&[token]).into())], &extents).unwrap())
    }

    /// The logits of every token of a text, from the beginning.
    fn whole(&self, text: &[u32]) -> Vec<Vec<f32>> {
        let mut extents = Extents::new();
        extents.set(&self.count, text.len() as i64).unwrap();
        let all = logits(&self.all.run(&[("ids", text.into())], &extents).unwrap());
        all.chunks_exact(VOCABULARY).map(<[f32]>::to_vec).collect()
    }
}

fn logits(outputs: &Outputs) -> Vec<f32> {
    outputs.get::<f32>("logits").unwrap().to_vec()
}

fn greedy(logits: &[f32]) -> u32 {
    (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap() as u32
}

fn agree(got: &[f32], wanted: &[f32], what: &str) {
    let largest = wanted.iter().fold(0f32, |most, value| most.max(value.abs()));
    assert!(largest > 0.1, "{what}: logits of at most {largest} say nothing");
    for (index, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((got - wanted).abs() <= CLOSE * largest, "{what}, logit {index}: {got}, not {wanted} of {largest}");
    }
    assert_eq!(greedy(got), greedy(wanted), "{what}");
}

#[test]
fn a_text_written_token_by_token_is_that_of_the_whole_text_each_time() {
    for device in devices_of_its_own() {
        let pair = Pair::new(&device);
        let name = device.properties().name.clone();
        let (mut text, mut fork, mut counters) = (vec![FIRST], None, None);
        let mut seen = Vec::new();
        for at in 0..STEPS {
            let own = pair.step(&pair.one, at, text[at]);
            // On a processor that plays a GPU a text takes a quarter of a second. So every step is compared with the run over the final text below, whose tokens see those before them alone,
            // and every 16th and the last with a run over what was there at the time.
            if at % 16 == 0 || at + 1 == STEPS {
                agree(&own, &pair.whole(&text)[at], &format!("{name}, step {at}"));
            }
            // Both have run once: from here on nothing is made.
            let made = |device: &Device| {
                let counters = device.backend().counters();
                (counters.pipelines, counters.recordings, counters.allocations, counters.allocated_bytes)
            };
            let before = *counters.get_or_insert_with(|| made(&device));
            assert_eq!(made(&device), before, "{name}, step {at}");
            if at == 99 {
                fork = Some(pair.one.fork().unwrap());
                counters = None;
            }
            text.push(greedy(&own));
            seen.push(own);
        }
        for (at, (own, whole)) in seen.iter().zip(pair.whole(&text[..STEPS])).enumerate() {
            agree(own, &whole, &format!("{name}, step {at}, at the end"));
        }
        let different: std::collections::BTreeSet<_> = text.iter().collect();
        assert!(different.len() > 8, "{name}: a text of {} tokens says little", different.len());

        // The fork goes on from where it was made, with another token.
        let fork = fork.unwrap();
        let mut forked = Vec::new();
        let mut other = text[..100].to_vec();
        other.push((text[100] + 1) % VOCABULARY as u32);
        for at in 100..116 {
            let own = pair.step(&fork, at, other[at]);
            other.push(greedy(&own));
            forked.push(own);
        }
        let whole = pair.whole(&other[..116]);
        for (at, (own, whole)) in forked.iter().zip(&whole[100..]).enumerate() {
            agree(own, whole, &format!("{name}, step {at} of the fork"));
        }
        // And as if it were the one it was made from, over what it wrote since.
        assert_eq!(pair.step(&fork, 100, text[100]), seen[100], "{name}");

        // From the beginning, to the last bit.
        pair.one.reset().unwrap();
        for at in 0..16 {
            assert_eq!(pair.step(&pair.one, at, text[at]), seen[at], "{name}, step {at} after reset");
        }
    }
}

#[test]
fn a_step_writes_one_row_of_each_cache_and_reads_it() {
    for device in devices_of_its_own() {
        let pair = Pair::new(&device);
        let explanation = pair.one.explain();
        assert_eq!(explanation.states.len(), 2 * LAYERS);
        assert!(explanation.states.iter().all(|state| state.kept.is_empty()), "{explanation}");
        let row = (ELEMENTS * size_of::<f32>()) as u64;
        let written = |state: usize| -> Vec<Option<u64>> {
            let buffer = explanation.states[state].buffer;
            let uses = explanation.steps.iter().flat_map(|step| &step.uses);
            uses.filter(|used| used.written && used.buffer == buffer).map(|used| used.part).collect()
        };
        for state in 0..explanation.states.len() {
            assert_eq!(written(state), [Some(KEY_HEADS as u64 * row)], "{explanation}");
        }
        // Attention reads the version that the run makes, behind a barrier that says so, and reads it where it lies.
        let readers = explanation.steps.iter().filter(|step| step.story.starts_with("attention"));
        let readers: Vec<_> =
            readers.filter(|step| step.uses.iter().any(|used| used.tensor.contains("after"))).collect();
        assert_eq!(readers.len(), LAYERS, "{explanation}");
        for (layer, step) in readers.iter().enumerate() {
            for part in ["keys", "values"] {
                let version = format!("{layer}.{part} after update.");
                assert!(
                    step.uses.iter().any(|used| !used.written && used.tensor.starts_with(&version)),
                    "{explanation}"
                );
            }
        }
        let caches: Vec<_> = explanation.states.iter().map(|state| format!("copy of {}", state.name)).collect();
        let copied = |label: &str| caches.iter().any(|cache| label.starts_with(cache));
        assert!(!explanation.steps.iter().any(|step| copied(&step.label)), "{explanation}");
        // What one step wrote is in the state, in one row of each head, and nothing else is.
        pair.step(&pair.one, 5, 3);
        for (name, _) in pair.one.states() {
            let state = pair.one.state(name).unwrap();
            let rows: Vec<_> = state.get::<f32>().unwrap().chunks_exact(KEY_HEADS * ELEMENTS).collect();
            for (at, row) in rows.iter().enumerate() {
                assert_eq!(row.iter().any(|value| *value != 0.0), at == 5, "{name}, row {at}");
            }
        }
    }
}

#[test]
fn the_whole_text_is_what_the_reference_says() {
    let text = [FIRST, 3, 3, 60, 41, 0, 22, 9];
    let at = Symbol::new("at", 0, STEPS as i64 - 1).unwrap();
    let all = Builder::default().transformer(&Dim::from(text.len()), None);
    let one = Builder::default().transformer(&Dim::from(1), Some(&Dim::from(&at)));
    let model = model(&all.params);
    let mut leaves: BTreeMap<_, _> =
        all.params.keys().map(|name| (name.clone(), model.values(name).unwrap())).collect();
    leaves.insert("ids".to_owned(), Values::U32(text.to_vec()).host());
    let expected = reference::evaluate(&all.g, &leaves, &Extents::new()).unwrap()["logits"].values.clone();
    let expected: Vec<_> = expected.chunks_exact(VOCABULARY).collect();
    for device in devices_of_its_own() {
        let executable = Executable::compile(&one.g, &model, &device, &Options::default()).unwrap();
        for (position, (token, wanted)) in text.iter().zip(&expected).enumerate() {
            let mut extents = Extents::new();
            extents.set(&at, position as i64).unwrap();
            let own = logits(&executable.run(&[("ids", (&[*token]).into())], &extents).unwrap());
            let largest = wanted.iter().fold(0f64, |most, value| most.max(value.abs()));
            for (got, wanted) in own.iter().zip(*wanted) {
                let close = (f64::from(*got) - wanted).abs() <= tolerance(F32) * largest;
                assert!(close, "{}, step {position}: {got}, not {wanted}", device.properties().name);
            }
        }
    }
}
