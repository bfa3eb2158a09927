//! The op table: what people ask of every op, as `trefoil ops` prints it.
//!
//! Functions of elements and reductions have tables of their own, which are taken over. Of every other op one use is written in `samples`; its attributes
//! and the types that it takes are asked of the op itself, so that neither is stated twice.

mod samples;
mod uses;

pub use uses::{Use, uses};

use super::map::Function;
use super::reduce::{Reduce, Reduction};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::Op;
use crate::reference::tolerance;
use crate::types::ElementType;

/// An op for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name in the list of ops.
    pub op: String,
    /// The names of its attributes.
    pub attributes: Vec<String>,
    /// The element types that its first operand of several possible types may have.
    pub types: Vec<ElementType>,
    /// What it computes.
    pub formula: String,
    /// How far results may be from the exact ones on any device.
    pub accuracy: String,
}

/// How results of an op that is no function of elements compare with exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accuracy {
    /// Elements are moved, made or chosen.
    Exact,
    /// Sums in the type's arithmetic.
    Sums,
    /// Random normals.
    Normals,
}

impl Accuracy {
    fn words(self) -> String {
        match self {
            Self::Exact => "exact".to_owned(),
            Self::Normals => "4 ulp of n, 8 in f64; and the type's rounding".to_owned(),
            Self::Sums => {
                let of = |element: ElementType| format!("{:e} in {element}", tolerance(element));
                let floats: Vec<_> =
                    ElementType::ALL.into_iter().filter(|element| element.is_float()).map(of).collect();
                format!("of the result, or of 1 if that is more: {}; integers exact", floats.join(", "))
            }
        }
    }
}

/// The names of an op's attributes.
fn names(op: &dyn Op) -> Vec<String> {
    op.attributes().into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// One use of an op.
struct Sample {
    op: &'static str,
    formula: &'static str,
    accuracy: Accuracy,
    /// Attributes, for what is made of several nodes; otherwise the last node is asked.
    attributes: Option<&'static [&'static str]>,
    /// Adds it to a graph, for elements of that type.
    add: fn(&mut Graph, ElementType) -> Result<Tensor, GraphError>,
}

impl Sample {
    fn row(&self) -> Row {
        let mut types = Vec::new();
        let mut asked = Vec::new();
        for element in ElementType::ALL {
            let mut graph = Graph::new();
            if (self.add)(&mut graph, element).is_err() {
                continue;
            }
            types.push(element);
            if let Some(node) = graph.nodes().last() {
                asked = names(&*node.op);
            }
        }
        Row {
            op: self.op.to_owned(),
            attributes: match self.attributes {
                Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
                None => asked,
            },
            types,
            formula: self.formula.to_owned(),
            accuracy: self.accuracy.words(),
        }
    }
}

/// Every op of the library, family by family.
///
/// ```
/// let rows = trefoil_graph::ops::table::rows();
/// let gelu = rows.iter().find(|row| row.op == "gelu").ok_or("no gelu")?;
/// assert!(gelu.types.contains(&trefoil_graph::ElementType::BF16));
/// # Ok::<(), &str>(())
/// ```
pub fn rows() -> Vec<Row> {
    let functions = Function::all().map(|function| Row {
        op: function.name.to_owned(),
        attributes: function.attributes.iter().map(|attribute| attribute.name.to_owned()).collect(),
        types: ElementType::ALL.into_iter().filter(|element| function.takes(*element)).collect(),
        formula: function.formula.to_owned(),
        accuracy: function.accuracy(ElementType::F32).to_string(),
    });
    let reductions = Reduction::ALL.iter().map(|reduction| {
        let op = Reduce { reduction: *reduction, element: ElementType::F32, axes: vec![0], keep: false, correction: 0 };
        Row {
            op: op.name().to_owned(),
            attributes: names(&op),
            types: reduction.takes().collect(),
            formula: reduction.formula().to_owned(),
            accuracy: if reduction.chooses() { Accuracy::Exact } else { Accuracy::Sums }.words(),
        }
    });
    functions.chain(reductions).chain(samples::all().map(Sample::row)).collect()
}
