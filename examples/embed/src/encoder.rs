//! The sentence encoder: tokenizer, weights, and one executable that serves every batch up to its bounds.

use std::error::Error;
use std::path::Path;

use trefoil::Device;
use trefoil::graph::{Executable, Extents, Options, Symbol};

use crate::bert::{self, BertConfig};
use crate::tokens::{Batch, Tokens};

/// What the example can fail with: it is shown to the user as it is.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What an encoder is compiled for: memory is planned and kernels are chosen for the largest batch.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most texts of one run.
    pub texts: usize,
    /// The most tokens of a text.
    pub tokens: usize,
}

/// all-MiniLM-L6-v2 on a device.
pub struct Encoder {
    /// Texts to tokens.
    pub tokens: Tokens,
    /// The graph, compiled once for every number of texts and tokens within the bounds.
    pub executable: Executable,
    batch: Symbol,
    length: Symbol,
}

impl Encoder {
    /// Opens the model in `folder` and compiles it for `device` and every batch within `bounds`.
    ///
    /// # Errors
    /// The folder lacks a file or has a wrong one, or the device cannot hold the model.
    pub fn open(folder: &Path, device: &Device, bounds: Bounds) -> Outcome<Self> {
        for file in ["model.safetensors", "tokenizer.json"] {
            if !folder.join(file).is_file() {
                return Err(format!(
                    "{} has no {file}: fetch the model with scripts/fetch-model.sh, or name the folder that has it",
                    folder.display()
                )
                .into());
            }
        }
        let tokens = Tokens::open(&folder.join("tokenizer.json"))?;
        let model = bert::weights(&BertConfig::MINILM_L6, &folder.join("model.safetensors"))?;
        let batch = Symbol::new("batch", 1, bounds.texts as i64)?;
        let length = Symbol::new("tokens", 1, bounds.tokens as i64)?;
        let graph = bert::encoder(&BertConfig::MINILM_L6, &batch, &length)?;
        let executable = Executable::compile(&graph, &model, device, &Options::default())?;
        Ok(Self { tokens, executable, batch, length })
    }

    /// The values of the graph's symbols for a batch.
    ///
    /// # Errors
    /// The batch has no texts, or is beyond the bounds.
    pub fn extents(&self, batch: &Batch) -> Outcome<Extents> {
        Ok(Extents::with([(&self.batch, batch.texts as i64), (&self.length, batch.longest as i64)])?)
    }

    /// The embeddings of a batch, one after the other.
    ///
    /// # Errors
    /// As [`Encoder::extents`], or the device failed.
    pub fn run(&self, batch: &Batch) -> Outcome<Vec<Vec<f32>>> {
        let inputs = [("ids", (&batch.ids).into()), ("mask", (&batch.mask).into())];
        let outputs = self.executable.run(&inputs, &self.extents(batch)?)?;
        let embeddings = outputs.get::<f32>("embeddings")?;
        Ok(embeddings.chunks(embeddings.len() / batch.texts).map(<[f32]>::to_vec).collect())
    }
}
