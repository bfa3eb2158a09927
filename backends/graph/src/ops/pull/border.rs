//! Borders put around tensors, or taken away.

use super::{along, at, attribute_error, constants, each, of_axis, pull_op, span};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::fill::Number;
use crate::ops::support::{expect_element, expect_inputs, shape_error, symbols_of};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::{ElementType, TensorType};

/// What stands in a border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border {
    /// A value.
    Constant(Number),
    /// The nearest element.
    Edge,
    /// The elements as in a mirror at the outermost one, which is not repeated: `c b | a b c | b a`.
    Reflect,
    /// The elements again from the other side: `b c | a b c | a b`.
    Wrap,
}

/// Positions added to each axis in front and behind, or taken away where negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// For each axis, how many in front and behind.
    pub pads: Vec<[Dim; 2]>,
    /// What stands there.
    pub border: Border,
    /// What the elements are.
    pub element: ElementType,
}

impl Pad {
    fn touches(&self, axis: usize) -> bool {
        self.pads[axis].iter().any(|pad| !pad.is(0))
    }
}

impl Op for Pad {
    pull_op!(moves, "pad", pads, border);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.pads.iter().flatten())
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        expect_element("x", x, self.element)?;
        if self.pads.len() != x.rank() {
            let expected = format!("a pair for each of the {} axes of {x}", x.rank());
            return Err(attribute_error("pads", format!("{:?}", self.pads), expected));
        }
        if let Border::Constant(value) = self.border
            && value.bits(self.element).is_none()
        {
            return Err(attribute_error("value", value, format!("a number that {} has", x.element)));
        }
        let mut output = x.clone();
        for (axis, [front, behind]) in self.pads.iter().enumerate() {
            let extent = &x.shape[axis];
            let padded = extent + front + behind;
            if padded.bounds().0 < 0 {
                let expected = format!("axis {axis} to hold what {front} and {behind} take away");
                return Err(shape_error("x", x, expected));
            }
            // Which other sides are positions taken from nothing.
            let adds = front.bounds().1 > 0 || behind.bounds().1 > 0;
            if adds && extent.bounds().0 < 1 && !matches!(self.border, Border::Constant(_)) {
                return Err(shape_error("x", x, format!("an element along axis {axis}, of which the border is made")));
            }
            output.shape[axis] = padded;
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let Some(fronts) = constants(self.pads.iter().map(|[front, _]| front)) else { return Vec::new() };
        each(&outputs[0], |position| {
            let source = position.iter().zip(&x.shape).zip(&fronts).map(|((to, extent), front)| {
                let (from, extent) = (to - front, *extent as i64);
                match self.border {
                    Border::Constant(_) => from,
                    Border::Edge => from.clamp(0, extent - 1),
                    Border::Wrap => from.rem_euclid(extent),
                    Border::Reflect => {
                        let mut from = from;
                        while from < 0 || from >= extent {
                            from = if extent == 1 {
                                0
                            } else if from < 0 {
                                -from
                            } else {
                                2 * (extent - 1) - from
                            };
                        }
                        from
                    }
                }
            });
            let source: Vec<i64> = source.collect();
            let outside = match self.border {
                Border::Constant(Number::Float(value)) => self.element.rounded(value),
                Border::Constant(Number::Integer(value)) => value as f64,
                _ => f64::NAN,
            };
            at(x, &source).unwrap_or(outside)
        })
    }
}

impl Moves for Pad {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let (lead, tail) = span(output.rank(), |axis| self.touches(axis));
        let middle = lead..output.rank() - tail;
        let (numbers, distances) =
            along(middle.map(|axis| [inputs[0].shape[axis].clone(), self.pads[axis][0].clone()]));
        let in_blocks = matches!(self.border, Border::Constant(_) | Border::Wrap);
        Frame { lead, tail, numbers, distances, in_blocks, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let mut inside = None;
        let mut source = Vec::with_capacity(given.at.len());
        for (axis, to) in given.at.iter().enumerate() {
            let [extent, front] = of_axis(&given, axis);
            let from = *to - front;
            source.push(match self.border {
                Border::Constant(_) => {
                    let here = machine.within(from, extent);
                    inside = Some(inside.map_or(here, |inside| inside & here));
                    from
                }
                Border::Edge => {
                    let last = extent - machine.constant(1);
                    machine.maximum(machine.minimum(from, last), machine.constant(0))
                }
                Border::Wrap => machine.modulo(from, extent),
                Border::Reflect => {
                    let last = extent - machine.constant(1);
                    let period = last + last;
                    let place = machine.modulo(from, period);
                    machine.minimum(place, period - place)
                }
            });
        }
        match (self.border, inside) {
            (Border::Constant(value), Some(inside)) => {
                let bits = move || machine.bits(value.bits(self.element).unwrap_or(0));
                machine.choose(inside, || machine.read(0, &source), bits)
            }
            _ => machine.read(0, &source),
        }
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Positions added to each axis of `x` in front and behind, a pair for each axis; negative ones take positions away.
    ///
    /// # Errors
    /// There is not a pair for each axis, more is taken away than there is, the element type does not have the border's value, or a border is made of the elements
    /// of an axis that may have none.
    pub fn pad(&mut self, x: Tensor, pads: &[[Dim; 2]], border: Border) -> Result<Tensor, GraphError> {
        let element = self.operand("pad", x)?.element;
        self.add_one(Pad { pads: pads.to_vec(), border, element }, &[x])
    }
}
