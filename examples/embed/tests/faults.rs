//! The model on a device that fails at each of the calls that it gets, one after the other: embeddings are right, or there is an `Err` that names what failed, and nothing stays behind.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;

use trefoil::Device;
use trefoil::cpu;
use trefoil::dsl::support::faults::{Alive, Call, Fault, Faults, Then};
use trefoil::graph::{Error, Executable, Extents, Model, Options, Symbol};
use trefoil_embed::bert::{self, BertConfig};

const TEXTS: usize = 2;
const TOKENS: usize = 5;

/// The model for a few short texts.
struct Encoder {
    graph: trefoil::graph::Graph,
    model: Model,
    extents: Extents,
}

impl Encoder {
    /// The model, if it was fetched; where devices are required, `minilm.rs` fails without it.
    fn open() -> Option<Self> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.model/all-MiniLM-L6-v2/model.safetensors");
        if !file.is_file() {
            eprintln!("not tested: there is no {}; scripts/fetch-model.sh fetches it", file.display());
            return None;
        }
        let [batch, length] =
            [("batch", TEXTS), ("tokens", TOKENS)].map(|(name, most)| Symbol::new(name, 1, most as i64).unwrap());
        let graph = bert::encoder(&BertConfig::MINILM_L6, &batch, &length).unwrap();
        let extents = Extents::with([(&batch, TEXTS as i64), (&length, TOKENS as i64)]).unwrap();
        Some(Self { graph, model: bert::weights(&BertConfig::MINILM_L6, &file).unwrap(), extents })
    }

    /// Compiles and runs twice: three answers, or fewer if it does not compile.
    fn play(&self, device: &Device) -> Vec<Result<Vec<f32>, Error>> {
        let executable = match Executable::compile(&self.graph, &self.model, device, &Options::default()) {
            Ok(executable) => executable,
            Err(error) => return vec![Err(error)],
        };
        let run = |first: u32| {
            let ids: Vec<u32> = (0..(TEXTS * TOKENS) as u32).map(|at| first + 7 * at).collect();
            let mask = vec![1f32; TEXTS * TOKENS];
            let outputs = executable.run(&[("ids", (&ids).into()), ("mask", (&mask).into())], &self.extents)?;
            Ok(outputs.get::<f32>("embeddings")?.to_vec())
        };
        vec![run(1000), run(2000), run(1000)]
    }
}

#[test]
fn embeddings_are_right_or_refused_whichever_call_fails() {
    let Some(encoder) = Encoder::open() else { return };
    let inner = cpu::open(&Default::default()).unwrap();
    let (faults, device) = Faults::over(&inner);
    let right: Vec<Vec<f32>> = encoder.play(&device).into_iter().map(Result::unwrap).collect();
    assert!(right[0] != right[1] && right[0] == right[2]);
    encoder.model.release(&device).unwrap();
    assert_eq!(faults.alive(), Alive::default());
    let mut tried = 0;
    for call in Call::ALL {
        for after in 0..faults.calls(call) {
            // Each call fails once, and every other time the device is lost with it.
            let then = if after % 2 == 0 { Then::GoesOn } else { Then::Lost };
            let what = format!("{call:?} {after}, {then:?}");
            let (faults, device) = Faults::over(&inner);
            faults.plant(Fault { call, after, then });
            let answers = encoder.play(&device);
            encoder.model.release(&device).unwrap();
            let mut failed = false;
            for (answer, right) in answers.iter().zip(&right) {
                match answer {
                    Ok(embeddings) => {
                        assert!(embeddings == right, "{what}: wrong embeddings");
                        assert!(!faults.is_lost() || !failed, "{what}: a lost device answers");
                    }
                    Err(error) => {
                        assert!(error.to_string().contains('`'), "{what}: {error}");
                        failed = true;
                    }
                }
            }
            assert!(failed, "{what}: it was never met");
            assert_eq!(faults.alive(), Alive::default(), "{what}: something stays behind");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried} faults of a model with a hundred params");
}
