//! Reductions of any set of axes: sums, extremes and their places, norms, variances. What each is stands in `definitions`, how the work is cut in `plan`; on the CPU rows are reduced by `host`.

mod definitions;
#[cfg(feature = "cpu")]
mod host;
mod plan;

use trefoil_kernels::reduce::kernels;

pub use self::definitions::Reduction;
use super::support::{expect_element, expect_inputs, instance};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{Candidate, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, Request};
use crate::types::{ElementType, TensorType};

/// A reduction over some axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// To what.
    pub reduction: Reduction,
    /// What the elements are, which decides whether sums and products wrap.
    pub element: ElementType,
    /// Over which axes, in ascending order.
    pub axes: Vec<usize>,
    /// Whether they stay, with extent 1.
    pub keep: bool,
    /// For variances, what the divisor is less than the number of elements; otherwise 0.
    pub correction: u32,
}

impl Graph {
    fn reduce(
        &mut self,
        reduction: Reduction,
        x: Tensor,
        axes: &[isize],
        keep: bool,
        correction: u32,
    ) -> Result<Tensor, GraphError> {
        let axes = self.axes(reduction.definition().name, x, axes)?;
        let given = self.type_of(x)?.element;
        if !reduction.takes().any(|taken| taken == given) {
            // The op says what it takes.
            return self.add_one(Reduce { reduction, element: given, axes, keep, correction }, &[x]);
        }
        // The lowest bits of a sum or product are those of the sum or product of the lowest bits, and an extreme fits where its elements do.
        let element = given.widened();
        let wide = self.as_element(x, element)?;
        let y = self.add_one(Reduce { reduction, element, axes, keep, correction }, &[wide])?;
        self.as_element(y, reduction.gives(given))
    }
}

impl Reduce {
    /// How many elements become one.
    fn elements(&self, x: &TensorType) -> Dim {
        self.axes.iter().map(|axis| x.shape[*axis].clone()).product()
    }
}

impl Op for Reduce {
    fn name(&self) -> &'static str {
        self.reduction.definition().name
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = vec![("axes", format!("{:?}", self.axes)), ("keep", self.keep.to_string())];
        if self.reduction == Reduction::Var {
            attributes.push(("correction", self.correction.to_string()));
        }
        attributes
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        self.reduction.kernels(x)?;
        expect_element("x", x, self.element)?;
        if !self.axes.is_sorted_by(|a, b| a < b) || self.axes.last().is_some_and(|axis| *axis >= x.rank()) {
            let expected = format!("axes of {x} in ascending order");
            return Err(OpError::Attribute { attribute: "axes", given: format!("{:?}", self.axes), expected });
        }
        if !self.reduction.definition().of_none && self.elements(x).bounds().0 < 1 {
            let expected = format!("at least one element over axes {:?}", self.axes);
            return Err(OpError::Shape { input: "x", given: x.to_string(), expected });
        }
        let one = Dim::from(1i64);
        let extents = x.shape.iter().enumerate().filter_map(|(axis, extent)| match self.axes.contains(&axis) {
            true => self.keep.then(|| one.clone()),
            false => Some(extent.clone()),
        });
        Ok(vec![TensorType { element: self.reduction.gives(x.element), shape: extents.collect() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let mut sets = vec![Vec::new(); outputs[0].iter().product()];
        for (linear, value) in x.values.iter().enumerate() {
            let (mut rest, mut to, mut stride) = (linear, 0, 1);
            for axis in (0..x.shape.len()).rev() {
                if !self.axes.contains(&axis) {
                    to += rest % x.shape[axis] * stride;
                    stride *= x.shape[axis];
                }
                rest /= x.shape[axis];
            }
            sets[to].push(*value);
        }
        let definition = self.reduction.definition();
        let values = sets.iter().map(|set| match definition.wraps.filter(|_| !self.element.is_float()) {
            Some((start, combine)) => {
                let all = set.iter().map(|x| *x as i128 as u64).fold(start, combine);
                self.element.wrapped(i128::from(all))
            }
            None => (definition.reference)(set, f64::from(self.correction)),
        });
        let values = values.collect();
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "nothing is added"))]
        let mut candidates: Vec<Box<dyn Candidate + '_>> = vec![Box::new(Kernels(self))];
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::Rows(self)));
        OpKind::Kernels(candidates)
    }
}

/// The family's kernels.
#[derive(Debug)]
struct Kernels<'a>(&'a Reduce);

impl Candidate for Kernels<'_> {
    fn name(&self) -> &'static str {
        "reduction by rows, columns and pieces"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let x = &request.inputs[0];
        let (reduce, join) = self.0.reduction.kernels(&x.ty).map_err(|error| Ineligible::Other(error.to_string()))?;
        let known = kernels();
        let kernels = plan::Kernels { reduce: instance(&known, reduce)?, join: instance(&known, join)? };
        let divisor = (self.0.reduction.definition().divisor)(&self.0.elements(&x.ty), self.0.correction);
        plan::implement(x, &self.0.axes, &kernels, &divisor, request.device)
    }

    fn passes(&self, _: &Request<'_>, _: usize) -> Option<u32> {
        Some(1)
    }
}
