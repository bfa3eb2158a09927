//! From a case to a graph: values by name, and an importer for each ONNX op.
//!
//! Importers stand in lists by family (`maps`, `casts`, `activations`, `shapes`, `pulls`, `scatters`, `windows`, `convolutions`, `reductions`, `products`, `orders`, `attention`, `norms`, `losses`, `random`), each a name and a function that adds what the node means to the graph. Some inputs must
//! be known while the graph is built (a shape, axes): ONNX computes them as it computes everything, so `Importer::numbers` runs the graph so far by its references.

mod activations;
mod attention;
mod casts;
mod convolutions;
mod losses;
mod maps;
mod norms;
mod orders;
mod products;
mod pulls;
mod random;
mod reductions;
mod scatters;
mod shapes;
mod slides;
mod windows;

use std::collections::BTreeMap;

use thiserror::Error;
use trefoil_graph::error::Error as GraphFailure;
use trefoil_graph::graph::GraphError;
use trefoil_graph::op::HostTensor;
use trefoil_graph::ops::narrow::Narrow;
use trefoil_graph::types::TensorType;
use trefoil_graph::{Data, Dim, ElementType, Extents, Graph, Tensor, reference};

use crate::cases::{Attribute, Case, Cases, Node, Stored};

/// Why a case has no graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Unsupported {
    /// No importer knows the op.
    #[error("no op of the library does `{0}`")]
    Op(String),
    /// Tensors of elements that graphs lack.
    #[error("no tensors of {0}")]
    Element(String),
    /// An attribute, or a value of it.
    #[error("`{op}` with {what}")]
    Attribute {
        /// The op.
        op: String,
        /// What of it.
        what: String,
    },
    /// An op of the graph refuses it.
    #[error("{0}")]
    Graph(String),
}

impl From<GraphError> for Unsupported {
    fn from(error: GraphError) -> Self {
        // The node's number differs from case to case.
        let text = error.to_string();
        Self::Graph(match text.split_once(": ") {
            Some((node, rest)) if node.contains(' ') => {
                format!("{}: {rest}", node.split(' ').next().unwrap_or(node))
            }
            _ => text,
        })
    }
}

type Imported = Result<Vec<Tensor>, Unsupported>;
/// Adds a node to the graph, and gives its outputs.
type Import = fn(&mut Importer<'_>, &Node) -> Imported;

/// Every importer.
fn import_of(op: &str) -> Option<Import> {
    const FAMILIES: [&[(&str, Import)]; 15] = [
        activations::IMPORTS,
        attention::IMPORTS,
        casts::IMPORTS,
        convolutions::IMPORTS,
        losses::IMPORTS,
        maps::IMPORTS,
        norms::IMPORTS,
        orders::IMPORTS,
        products::IMPORTS,
        pulls::IMPORTS,
        random::IMPORTS,
        reductions::IMPORTS,
        scatters::IMPORTS,
        shapes::IMPORTS,
        windows::IMPORTS,
    ];
    FAMILIES.into_iter().flatten().find(|(known, _)| *known == op).map(|(_, import)| *import)
}

/// A case as a graph.
#[derive(Debug)]
pub struct Model {
    /// The graph; its inputs have the names of the case's.
    pub graph: Graph,
    /// The inputs that it has.
    pub inputs: Vec<Stored>,
}

/// A graph in the making.
pub struct Importer<'c> {
    cases: &'c Cases,
    graph: Graph,
    values: BTreeMap<String, Tensor>,
    /// What is given, for references.
    leaves: BTreeMap<String, HostTensor>,
    /// What the codes of values mean that are no numbers.
    narrow: BTreeMap<String, Narrow>,
    opset: i64,
}

/// Element types by ONNX's numbers, with NumPy's names and the graph's.
const ELEMENTS: [(i64, &str, &str); 13] = [
    (1, "float32", "f32"),
    (2, "uint8", "u8"),
    (3, "int8", "i8"),
    (4, "uint16", "u16"),
    (5, "int16", "i16"),
    (6, "int32", "i32"),
    (7, "int64", "i64"),
    (9, "bool", "bool"),
    (10, "float16", "f16"),
    (11, "float64", "f64"),
    (12, "uint32", "u32"),
    (13, "uint64", "u64"),
    (16, "bfloat16", "bf16"),
];

/// The element type that NumPy's name means.
pub fn element_type(name: &str) -> Option<ElementType> {
    let (.., ours) = ELEMENTS.iter().find(|(_, known, _)| *known == name)?;
    ElementType::ALL.into_iter().find(|element| element.name() == *ours)
}

/// The type of eight bits or fewer that NumPy's name means.
pub fn narrow_type(name: &str) -> Option<Narrow> {
    casts::NARROW.iter().find(|(_, known, _)| *known == name).map(|(.., narrow)| *narrow)
}

/// The element type that holds what NumPy's name means: codes of narrow types are bytes.
pub fn stored_type(name: &str) -> Option<ElementType> {
    element_type(name).or_else(|| narrow_type(name).map(|_| ElementType::U8))
}

/// A stored tensor as `f64`.
pub fn values(cases: &Cases, element: ElementType, stored: &Stored) -> Vec<f64> {
    reference::values(element, &elements(element, cases.bytes(stored)))
}

/// Elements of a stored tensor in the form that graphs hold them: bools are words there.
pub fn elements(element: ElementType, bytes: &[u8]) -> Vec<u8> {
    match element {
        ElementType::Bool => bytes.iter().flat_map(|byte| u32::from(*byte != 0).to_le_bytes()).collect(),
        _ => bytes.to_vec(),
    }
}

/// Makes a case's graph.
///
/// # Errors
/// Why it cannot be one.
pub fn import(cases: &Cases, case: &Case) -> Result<Model, Unsupported> {
    let mut importer = Importer {
        cases,
        graph: Graph::new(),
        values: BTreeMap::new(),
        leaves: BTreeMap::new(),
        narrow: BTreeMap::new(),
        opset: case.opset,
    };
    // An op that nobody knows is a better reason than a type that nobody knows.
    for node in &case.nodes {
        if !node.domain.is_empty() || import_of(&node.op).is_none() {
            return Err(Unsupported::Op(node.op.clone()));
        }
    }
    let mut inputs = Vec::new();
    for stored in &case.inputs {
        let Some(element) = stored_type(&stored.element) else {
            return Err(Unsupported::Element(stored.element.clone()));
        };
        importer.narrow.extend(narrow_type(&stored.element).map(|narrow| (stored.name.clone(), narrow)));
        let shape: Vec<Dim> = stored.shape.iter().map(|extent| Dim::from(*extent)).collect();
        let tensor = importer.graph.input(&stored.name, element, shape)?;
        importer.values.insert(stored.name.clone(), tensor);
        let values = values(cases, element, stored);
        importer.leaves.insert(stored.name.clone(), HostTensor { shape: stored.shape.clone(), values });
        inputs.push(stored.clone());
    }
    for node in &case.nodes {
        let import = import_of(&node.op).ok_or_else(|| Unsupported::Op(node.op.clone()))?;
        let codes = node.inputs.iter().find_map(|input| importer.narrow.get(input));
        if let Some(narrow) = codes.filter(|_| !casts::IMPORTS.iter().any(|(known, _)| *known == node.op)) {
            return Err(Unsupported::Element(format!("{narrow:?} for `{}`", node.op)));
        }
        let outputs = import(&mut importer, node)?;
        if node.outputs.len() > outputs.len() {
            return Err(importer.refuse(node, format!("{} outputs", node.outputs.len())));
        }
        for (name, tensor) in node.outputs.iter().zip(outputs).filter(|(name, _)| !name.is_empty()) {
            importer.values.insert(name.clone(), tensor);
        }
    }
    for output in &case.outputs {
        let Some(tensor) = importer.values.get(&output.name).copied() else {
            return Err(Unsupported::Graph(format!("output `{}` is made by no node", output.name)));
        };
        importer.graph.output(&output.name, tensor)?;
    }
    Ok(Model { graph: importer.graph, inputs })
}

impl Importer<'_> {
    fn refuse(&self, node: &Node, what: impl Into<String>) -> Unsupported {
        Unsupported::Attribute { op: node.op.clone(), what: what.into() }
    }

    /// An input that may be absent.
    fn optional(&self, node: &Node, position: usize) -> Result<Option<Tensor>, Unsupported> {
        match node.inputs.get(position).filter(|name| !name.is_empty()) {
            None => Ok(None),
            Some(name) => match self.values.get(name) {
                Some(tensor) => Ok(Some(*tensor)),
                None => Err(Unsupported::Graph(format!("`{name}` is made by no node"))),
            },
        }
    }

    /// What an input's codes mean, if it is one of codes.
    fn narrow_of(&self, node: &Node, position: usize) -> Option<Narrow> {
        node.inputs.get(position).and_then(|name| self.narrow.get(name)).copied()
    }

    /// An input.
    fn input(&self, node: &Node, position: usize) -> Result<Tensor, Unsupported> {
        self.optional(node, position)?.ok_or_else(|| self.refuse(node, format!("no input {position}")))
    }

    /// All inputs.
    fn inputs(&self, node: &Node) -> Result<Vec<Tensor>, Unsupported> {
        (0..node.inputs.len()).map(|position| self.input(node, position)).collect()
    }

    fn ty(&self, tensor: Tensor) -> Result<TensorType, Unsupported> {
        Ok(self.graph.type_of(tensor)?.clone())
    }

    /// A tensor's extents, which no case leaves open.
    fn extents(&self, tensor: Tensor) -> Result<Vec<usize>, Unsupported> {
        let extent = |extent: &Dim| extent.constant().and_then(|extent| usize::try_from(extent).ok()).unwrap_or(0);
        Ok(self.ty(tensor)?.shape.iter().map(extent).collect())
    }

    /// What a tensor holds, computed by the references.
    fn values_of(&self, tensor: Tensor) -> Result<Vec<f64>, Unsupported> {
        const NAME: &str = "a value that the graph depends on";
        let mut graph = self.graph.clone();
        graph.output(NAME, tensor)?;
        let mut found = reference::evaluate(&graph, &self.leaves, &Extents::new())
            .map_err(|error: GraphFailure| Unsupported::Graph(error.to_string()))?;
        Ok(found.remove(NAME).map(|found| found.values).unwrap_or_default())
    }

    /// The integers in an input that must be known while the graph is built, if it is there.
    fn numbers(&self, node: &Node, position: usize) -> Result<Option<Vec<i64>>, Unsupported> {
        let Some(tensor) = self.optional(node, position)? else { return Ok(None) };
        Ok(Some(self.values_of(tensor)?.into_iter().map(|value| value as i64).collect()))
    }

    /// The integers of an attribute, or of the input that newer versions have in its place.
    fn ints_or_input(&self, node: &Node, name: &str, position: usize) -> Result<Option<Vec<i64>>, Unsupported> {
        match self.ints(node, name) {
            Some(found) => Ok(Some(found)),
            None => self.numbers(node, position),
        }
    }

    fn int(&self, node: &Node, name: &str, default: i64) -> i64 {
        match node.attributes.get(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        }
    }

    fn float(&self, node: &Node, name: &str, default: f32) -> f32 {
        match node.attributes.get(name) {
            Some(Attribute::Float(value)) => *value as f32,
            _ => default,
        }
    }

    fn string<'n>(&self, node: &'n Node, name: &str, default: &'n str) -> &'n str {
        match node.attributes.get(name) {
            Some(Attribute::String(value)) => value,
            _ => default,
        }
    }

    fn ints(&self, node: &Node, name: &str) -> Option<Vec<i64>> {
        match node.attributes.get(name) {
            Some(Attribute::Ints(values)) => Some(values.clone()),
            _ => None,
        }
    }

    /// A constant of the graph.
    fn constant(&mut self, element: ElementType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, Unsupported> {
        let dims: Vec<Dim> = shape.iter().map(|extent| Dim::from(*extent)).collect();
        let part = || Unsupported::Element(format!("{element} in {} bytes", bytes.len()));
        Ok(self.graph.constant(element, dims, Data::from_bytes(element, bytes).ok_or_else(part)?)?)
    }

    /// A constant of 64-bit integers, as ONNX has shapes.
    fn integers(&mut self, shape: &[usize], values: &[i64]) -> Result<Tensor, Unsupported> {
        let element = element_type("int64").ok_or_else(|| Unsupported::Element("int64".to_owned()))?;
        self.constant(element, shape, bytemuck::cast_slice(values))
    }
}

/// An axis as ONNX counts it.
fn axis(value: i64) -> isize {
    isize::try_from(value).unwrap_or(isize::MAX)
}

/// Extents as dimensions.
fn dims(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}
