//! A graph with inputs, as it grows.

use trefoil_dsl::device::Device;
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Tensor};

use super::{Values, check};

pub fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A graph with inputs, as it grows.
#[derive(Default)]
pub struct Case {
    pub graph: Graph,
    pub inputs: Vec<(String, Values)>,
}

impl Case {
    pub fn input(&mut self, name: &str, element: ElementType, extents: &[usize]) -> Tensor {
        let seed = self.inputs.len() as u32 + 3;
        self.given(name, Values::of(element, extents.iter().product(), seed, 1.5), extents)
    }

    pub fn given(&mut self, name: &str, values: Values, extents: &[usize]) -> Tensor {
        let tensor = self.graph.input(name, values.element(), shape(extents)).unwrap();
        self.inputs.push((name.to_owned(), values));
        tensor
    }

    /// A tensor that lies in memory with its axes the other way round.
    pub fn turned(&mut self, name: &str, element: ElementType, extents: &[usize]) -> Tensor {
        let there: Vec<usize> = extents.iter().rev().copied().collect();
        let x = self.input(name, element, &there);
        let order: Vec<usize> = (0..extents.len()).rev().collect();
        self.graph.transpose(x, &order).unwrap()
    }

    pub fn output(&mut self, name: &str, tensor: Tensor) {
        self.graph.output(name, tensor).unwrap();
    }

    pub fn check(&self, device: &Device, tolerance: f64) -> Executable {
        let inputs: Vec<_> = self.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        check(&self.graph, device, &inputs, &Extents::new(), tolerance)
    }
}
