//! One use of every op of the table, to be added to any graph: for tests that draw ops at random, to which a new op comes by itself.

use super::{Accuracy, Row, rows, samples};
use crate::graph::{Graph, GraphError, Tensor};
use crate::ops::map::Function;
use crate::ops::reduce::{Reduce, Reduction};
use crate::types::ElementType;

/// One use of an op.
#[derive(Debug)]
pub struct Use {
    /// The op for people.
    pub row: Row,
    /// Whether its results are exact, but for the rounding of the type; of functions of elements [`Function::accuracy`] tells more.
    pub exact: bool,
    how: How,
}

#[derive(Debug)]
enum How {
    Function(&'static Function),
    Reduction(Reduction),
    Sample(fn(&mut Graph, ElementType) -> Result<Tensor, GraphError>),
}

impl Use {
    /// Adds it to a graph, with inputs of its own in the shapes that it likes; `variant` chooses among the values of attributes.
    ///
    /// # Errors
    /// The op does not take the type, or the graph has an input of a name that it uses.
    pub fn add(&self, graph: &mut Graph, element: ElementType, variant: usize) -> Result<Tensor, GraphError> {
        let matrix = |graph: &mut Graph, name: &str| graph.input(name, element, [4, 4]);
        match &self.how {
            How::Function(function) => {
                let inputs =
                    function.inputs.iter().map(|name| matrix(graph, name)).collect::<Result<Vec<_>, GraphError>>()?;
                let attributes: Vec<f32> =
                    function.attributes.iter().map(|attribute| attribute.samples[variant % 2]).collect();
                graph.elementwise(function, &inputs, &attributes)
            }
            How::Reduction(reduction) => {
                let x = matrix(graph, "x")?;
                let (axes, keep) = (vec![variant % 2], variant % 4 > 1);
                graph.add_one(Reduce { reduction: *reduction, element, axes, keep, correction: 0 }, &[x])
            }
            How::Sample(add) => add(graph, element),
        }
    }
}

/// A use of every row of the table, in its order.
pub fn uses() -> Vec<Use> {
    let functions = Function::all().map(|function| (How::Function(function), function.is_test));
    let reductions = Reduction::ALL.iter().map(|known| (How::Reduction(*known), known.chooses()));
    let samples = samples::all().map(|sample| (How::Sample(sample.add), sample.accuracy == Accuracy::Exact));
    let how = functions.chain(reductions).chain(samples);
    rows().into_iter().zip(how).map(|(row, (how, exact))| Use { row, exact, how }).collect()
}
