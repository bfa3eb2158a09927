//! The cases, as `scripts/onnx-cases.py` writes them: `cases.json`, and the tensors' bytes in `data.bin`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

/// All cases of a version of the package.
#[derive(Debug, Deserialize)]
pub struct Cases {
    /// The package's version.
    pub version: String,
    /// The cases, by name.
    pub cases: Vec<Case>,
    /// The bytes of their tensors.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// A graph of some nodes, with inputs and what it must give.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Such as `test_softmax_axis_0`.
    pub name: String,
    /// The version of the operator set.
    pub opset: i64,
    /// How much of an expected value a result may be off.
    pub relative: f64,
    /// How much it may be off besides.
    pub absolute: f64,
    /// What is given, initializers included.
    pub inputs: Vec<Stored>,
    /// What must come out.
    pub outputs: Vec<Stored>,
    /// Each after what it reads.
    pub nodes: Vec<Node>,
}

/// A tensor in `data.bin`.
#[derive(Clone, Debug, Deserialize)]
pub struct Stored {
    /// Its name in the graph.
    pub name: String,
    /// The element type as NumPy calls it, or `other` for what is no tensor of numbers.
    pub element: String,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// The first byte, a multiple of 8.
    pub at: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// A node.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// The op's name.
    pub op: String,
    /// Where the name is from; empty for ONNX's own.
    pub domain: String,
    /// Names of values; empty for one that is not there.
    pub inputs: Vec<String>,
    /// Names of values; empty for one that nobody wants.
    pub outputs: Vec<String>,
    /// By name.
    pub attributes: BTreeMap<String, Attribute>,
}

/// An attribute's value.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "lowercase")]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    String(String),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// A tensor.
    Tensor(Stored),
    /// A graph within the graph.
    Graph(()),
    /// Something else.
    Other(()),
}

/// Why there are no cases.
#[derive(Debug, Error)]
pub enum CasesError {
    /// A file is not there, or cannot be read.
    #[error("{path}: {error}; scripts/fetch-onnx-cases.sh makes it")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file holds something else.
    #[error("{path} is not what scripts/onnx-cases.py writes: {reason}")]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Cases {
    /// Reads the cases in a folder.
    ///
    /// # Errors
    /// A file is missing, or is not what the script writes.
    pub fn read(folder: &Path) -> Result<Self, CasesError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| CasesError::File { path, error })
        };
        let (text, data) = (read("cases.json")?, read("data.bin")?);
        let wrong = |reason| CasesError::Content { path: folder.join("cases.json"), reason };
        let cases: Self = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let stored = |case: &Case| {
            let attributes = case.nodes.iter().flat_map(|node| node.attributes.values());
            let in_attributes = attributes.filter_map(|attribute| match attribute {
                Attribute::Tensor(stored) => Some(stored.clone()),
                _ => None,
            });
            case.inputs.iter().chain(&case.outputs).cloned().chain(in_attributes).collect::<Vec<_>>()
        };
        for case in &cases.cases {
            for tensor in stored(case) {
                if tensor.at.checked_add(tensor.bytes).is_none_or(|end| end > data.len()) {
                    return Err(wrong(format!("`{}` of `{}` lies beyond data.bin", tensor.name, case.name)));
                }
            }
        }
        Ok(Self { data, ..cases })
    }

    /// The bytes of a tensor.
    pub fn bytes(&self, tensor: &Stored) -> &[u8] {
        &self.data[tensor.at..tensor.at + tensor.bytes]
    }
}
