//! Models as safetensors files: a file is written beside the one whose place it takes, so that nobody finds a part of one.
//!
//! `safetensors::serialize_to_file` does the same but for two things: its file is readable to its owner alone, since that is how temporary files are made, and it is renamed before it is on the disk. The crate has no way to get the header without all bytes in
//! memory, so that order and padding, which are its own, are here too.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tracing::info_span;

use super::{Model, Param};
use crate::error::{Error, Result};
use crate::types::ElementType;

/// What readers take of a header.
pub(super) const LARGEST_HEADER: usize = 100_000_000;
/// Where files have what belongs to no tensor.
const METADATA: &str = "__metadata__";

impl Param {
    fn is_bool(&self) -> bool {
        self.element == Ok(ElementType::Bool)
    }

    /// How many bytes [`Param::stored`] gives.
    fn stored_bytes(&self) -> usize {
        self.bytes.as_slice().len() / if self.is_bool() { size_of::<u32>() } else { 1 }
    }

    /// Its bytes in a file. Bools are bytes there and words here.
    fn stored(&self) -> Cow<'_, [u8]> {
        let bytes = self.bytes.as_slice();
        if !self.is_bool() {
            return Cow::Borrowed(bytes);
        }
        let words = bytes.chunks_exact(size_of::<u32>());
        Cow::Owned(words.map(|word| u8::from(word.iter().any(|byte| *byte != 0))).collect())
    }

    /// What files call its element type.
    fn dtype(&self) -> Result<Dtype, String> {
        let name = match &self.element {
            Ok(element) => element.name(),
            Err(name) => name,
        };
        let known = serde_json::from_value(serde_json::Value::String(name.to_uppercase()));
        known.map_err(|_| format!("safetensors have no elements of type {name}"))
    }
}

impl Model {
    /// Writes all params into one safetensors file, in the place of the file that is there. Types of larger elements come first, and params of one type in the order of their names: the same params make the same file.
    /// What the files that they were read from said beside their tensors (`__metadata__`) is not kept.
    ///
    /// The file is written beside `path` first and then renamed: after a failure the old file is there as it was, and a model whose params are mapped from it keeps them (where the system replaces no file that is mapped, as Windows does not, such a file is an error).
    ///
    /// ```
    /// use trefoil_graph::Model;
    ///
    /// let model = Model::new();
    /// model.set("w", &[2], &[1f32, 2.0])?;
    /// let path = std::env::temp_dir().join(format!("saved-{}.safetensors", std::process::id()));
    /// model.save(&path)?;
    /// let again = Model::from_safetensors(&[&path])?;
    /// assert_eq!(again.params()?, model.params()?);
    /// assert_eq!(again.values("w")?.values, [1.0, 2.0]);
    /// # drop(again);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written or put in its place, or a param has a name that files cannot have; or another thread panicked while it changed the model.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        let path = path.as_ref();
        let _save = info_span!("save", path = %path.display()).entered();
        let wrong = |reason: String| Error::File { path: path.display().to_string(), reason };
        // Bytes are shared: others may go on with the model while it is written.
        let params = self.lock()?.params.clone();
        let (header, tensors) = arranged(&params).map_err(&wrong)?;
        if path.file_name().is_none() {
            return Err(wrong("it names no file".to_owned()));
        }
        let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let draft = path.with_added_extension(format!("{}-{unique}.tmp", std::process::id()));
        let written = write(&draft, &header, &tensors).and_then(|()| fs::rename(&draft, path));
        written.map_err(|error| {
            // Nothing more can be done about a draft that cannot be removed either.
            let _ = fs::remove_file(&draft);
            wrong(error.to_string())
        })
    }
}

/// The header of a file of these params, and the params in the order in which it has them.
fn arranged(params: &BTreeMap<String, Param>) -> Result<(Vec<u8>, Vec<&Param>), String> {
    if params.contains_key(METADATA) {
        return Err(format!("no tensor of it may be called `{METADATA}`"));
    }
    let mut tensors = Vec::with_capacity(params.len());
    for (name, param) in params {
        let dtype = param.dtype().map_err(|reason| format!("tensor `{name}`: {reason}"))?;
        tensors.push((dtype, name, param));
    }
    // They are in the order of their names, which stays among those of one type. Types are ordered by their size, so that all elements are aligned.
    tensors.sort_by_key(|(dtype, ..)| std::cmp::Reverse(*dtype));
    let (mut infos, mut end) = (Vec::with_capacity(tensors.len()), 0);
    for (dtype, name, param) in &tensors {
        let start = end;
        end += param.stored_bytes();
        let info = TensorInfo { dtype: *dtype, shape: param.shape.clone(), data_offsets: (start, end) };
        infos.push(((*name).clone(), info));
    }
    let metadata = Metadata::new(None, infos).map_err(|error| error.to_string())?;
    let mut header = serde_json::to_vec(&metadata).map_err(|error| error.to_string())?;
    header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
    if header.len() > LARGEST_HEADER {
        return Err(format!("its header would take {} bytes; safetensors allow {LARGEST_HEADER}", header.len()));
    }
    Ok((header, tensors.into_iter().map(|(.., param)| param).collect()))
}

/// Writes a whole file, to the disk.
fn write(path: &Path, header: &[u8], tensors: &[&Param]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header)?;
    for tensor in tensors {
        file.write_all(&tensor.stored())?;
    }
    file.into_inner()?.sync_all()
}
