//! Times all-MiniLM-L6-v2 on candle's CPU device, so that trefoil's figures have a peer measured in the same run on the same
//! machine.
//!
//! usage: bench-candle MODEL_DIR
//!
//! Prints one JSON object a line: `{"system", "batch", "tokens", "median_ms", "fastest_ms", "runs"}`. A run is what an embedding needs
//! after tokenization: ids and a mask that drops nothing in, the mean over tokens out as host memory. RAYON_NUM_THREADS sets
//! the number of threads.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde_json::json;

/// The shapes that trefoil's own benchmark reports too.
const SHAPES: [(usize, usize); 2] = [(1, 128), (32, 128)];
/// Untimed runs first, until pages and caches are warm.
const WARM_UP: usize = 2;
/// Enough runs for a steady median, within this time.
const BUDGET: Duration = Duration::from_secs(10);
const MOST_RUNS: usize = 50;
const FEWEST_RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args()
        .nth(1)
        .ok_or("usage: bench-candle MODEL_DIR")?;
    let directory = Path::new(&directory);
    let config: Config = serde_json::from_slice(&std::fs::read(directory.join("config.json"))?)?;
    let weights = std::fs::read(directory.join("model.safetensors"))?;
    let device = Device::Cpu;
    let model = BertModel::load(
        VarBuilder::from_buffered_safetensors(weights, DType::F32, &device)?,
        &config,
    )?;

    for (batch, tokens) in SHAPES {
        // Which tokens they are makes no difference to the time; they only must not all be one row of the table.
        let ids: Vec<u32> = (0..batch * tokens)
            .map(|i| (i * 31 + 7) as u32 % config.vocab_size as u32)
            .collect();
        let ids = Tensor::from_vec(ids, (batch, tokens), &device)?;
        let types = ids.zeros_like()?;
        let mask = ids.ones_like()?;
        let run = || -> candle_core::Result<f64> {
            let start = Instant::now();
            let embeddings = model
                .forward(&ids, &types, Some(&mask))?
                .mean(1)?
                .to_vec2::<f32>()?;
            std::hint::black_box(embeddings);
            Ok(start.elapsed().as_secs_f64() * 1e3)
        };
        for _ in 0..WARM_UP {
            run()?;
        }
        let begin = Instant::now();
        let mut times = Vec::new();
        while times.len() < FEWEST_RUNS || (times.len() < MOST_RUNS && begin.elapsed() < BUDGET) {
            times.push(run()?);
        }
        times.sort_by(f64::total_cmp);
        let line = json!({
            "system": "candle 0.11, cpu",
            "batch": batch,
            "tokens": tokens,
            "median_ms": times[times.len() / 2],
            "fastest_ms": times[0],
            "runs": times.len(),
        });
        println!("{line}");
    }
    Ok(())
}
