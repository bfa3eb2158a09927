//! Views: the same elements, otherwise arranged. No view is a kernel; where strides cannot say an arrangement, the elements are copied first.

use super::support::{expect_extents, rather_than, shape_error, symbols_of, with_bounds};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind, View};
use crate::types::{IntoShape, Layout, Shape, TensorType};

/// The same elements in the same order under another shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The new extents.
    pub shape: Shape,
}

/// Axes in another order: axis `i` of the result is axis `permutation[i]` of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// Each axis of the input once.
    pub permutation: Vec<usize>,
}

/// Axes of extent 1 repeated, and new axes in front, by NumPy's rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expand {
    /// The new extents.
    pub shape: Shape,
}

/// A range of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Narrow {
    /// The axis.
    pub axis: usize,
    /// The first position kept.
    pub start: Dim,
    /// How many are kept.
    pub length: Dim,
}

/// An axis of extent 1 taken away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Squeeze {
    /// The axis.
    pub axis: usize,
}

/// An axis of extent 1 put in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unsqueeze {
    /// Its position in the result.
    pub axis: usize,
}

/// The same tensor, through which no gradient passes: what computes gradients finds it by this type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StopGradient;

/// The only input, or what is wrong.
fn only(inputs: &[TensorType]) -> Result<&TensorType, OpError> {
    match inputs {
        [input] => Ok(input),
        _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
    }
}

fn list(dims: &[Dim]) -> String {
    let parts: Vec<_> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", parts.join(", "))
}

fn axis_error(axis: usize, rank: usize) -> OpError {
    OpError::Attribute { attribute: "axis", given: axis.to_string(), expected: format!("an axis below {rank}") }
}

/// The value of `x` at each position of `shape`, by a rule from position to position.
fn rearranged(x: &HostTensor, shape: &[usize], mut from: impl FnMut(&[usize]) -> Vec<usize>) -> Vec<HostTensor> {
    let count: usize = shape.iter().product();
    let mut position = vec![0usize; shape.len()];
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let source = from(&position);
        let at = source.iter().zip(&x.shape).fold(0, |at, (index, extent)| at * extent + index);
        values.push(x.values[at]);
        for axis in (0..shape.len()).rev() {
            position[axis] += 1;
            if position[axis] < shape[axis] {
                break;
            }
            position[axis] = 0;
        }
    }
    vec![HostTensor { shape: shape.to_vec(), values }]
}

macro_rules! view_op {
    ($name:ident, $text:literal, $($attribute:ident),*) => {
        fn name(&self) -> &'static str {
            $text
        }

        fn attributes(&self) -> Vec<(&'static str, String)> {
            vec![$((stringify!($attribute), format!("{:?}", self.$attribute))),*]
        }

        fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
            Dim::from(0i64)
        }

        fn kind(&self) -> OpKind<'_> {
            OpKind::View(self)
        }
    };
}

impl Op for Reshape {
    view_op!(Reshape, "reshape", shape);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        expect_extents(&self.shape)?;
        let output = TensorType { element: input.element, shape: self.shape.clone() };
        if output.elements() != input.elements() {
            let (count, not) = rather_than(&output.elements(), &input.elements());
            let expected = format!("{count} elements, as {} has{not}", list(&self.shape));
            return Err(shape_error("x", input, expected));
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![HostTensor { shape: outputs[0].clone(), values: inputs[0].values.clone() }]
    }
}

impl View for Reshape {
    fn layout(&self, input: &TensorType, layout: &Layout, output: &TensorType) -> Option<Layout> {
        if layout.has_contiguous_strides(&input.shape) {
            let plain = Layout::contiguous(&output.shape);
            return Some(Layout { offset: layout.offset.clone(), strides: plain.strides });
        }
        // Groups of axes with equal products keep their order; within a group the old axes must follow on each other.
        let old: Vec<(&Dim, &Dim)> =
            input.shape.iter().zip(&layout.strides).filter(|(extent, _)| !extent.is(1)).collect();
        let mut strides = vec![Dim::from(0i64); output.rank()];
        let new: Vec<usize> = (0..output.rank()).filter(|axis| !output.shape[*axis].is(1)).collect();
        let (mut from, mut to) = (0, 0);
        while from < old.len() && to < new.len() {
            let (first_old, first_new) = (from, to);
            let mut old_product = old[from].0.clone();
            let mut new_product = output.shape[new[to]].clone();
            (from, to) = (from + 1, to + 1);
            while old_product != new_product {
                if new_product.bounds().1 < old_product.bounds().1 {
                    new_product = new_product * &output.shape[*new.get(to)?];
                    to += 1;
                } else {
                    old_product = old_product * old.get(from)?.0;
                    from += 1;
                }
            }
            for axis in first_old..from - 1 {
                if *old[axis].1 != old[axis + 1].1 * old[axis + 1].0 {
                    return None;
                }
            }
            let mut stride = old[from - 1].1.clone();
            for axis in new[first_new..to].iter().rev() {
                strides[*axis] = stride.clone();
                stride = stride * output.shape[*axis].clone();
            }
        }
        (from == old.len() && to == new.len()).then(|| Layout { offset: layout.offset.clone(), strides })
    }
}

impl Op for Transpose {
    view_op!(Transpose, "transpose", permutation);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..input.rank()) {
            return Err(OpError::Attribute {
                attribute: "permutation",
                given: format!("{:?}", self.permutation),
                expected: format!("each of the {} axes of {input} once", input.rank()),
            });
        }
        let shape: Shape = self.permutation.iter().map(|axis| input.shape[*axis].clone()).collect();
        Ok(vec![TensorType { element: input.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        rearranged(&inputs[0], &outputs[0], |position| {
            let mut source = vec![0; position.len()];
            for (axis, from) in self.permutation.iter().enumerate() {
                source[*from] = position[axis];
            }
            source
        })
    }
}

impl View for Transpose {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        let strides = self.permutation.iter().map(|axis| layout.strides[*axis].clone()).collect();
        Some(Layout { offset: layout.offset.clone(), strides })
    }
}

impl Op for Expand {
    view_op!(Expand, "expand", shape);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        expect_extents(&self.shape)?;
        let fits = self.shape.len() >= input.rank()
            && input.shape.iter().rev().zip(self.shape.iter().rev()).all(|(old, new)| old.is(1) || old == new);
        if !fits {
            return Err(shape_error("x", input, format!("a shape that broadcasts to {}", list(&self.shape))));
        }
        Ok(vec![TensorType { element: input.element, shape: self.shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let added = outputs[0].len() - x.shape.len();
        rearranged(x, &outputs[0], |position| {
            position[added..].iter().zip(&x.shape).map(|(index, extent)| index % extent.max(&1)).collect()
        })
    }
}

impl View for Expand {
    fn layout(&self, input: &TensorType, layout: &Layout, output: &TensorType) -> Option<Layout> {
        Some(layout.broadcast(&input.shape, &output.shape))
    }
}

impl Narrow {
    /// What an axis of this extent should hold; where symbols are involved, how far they reach, and what bounds them.
    fn expected(&self, extent: &Dim) -> String {
        let Self { axis, start, length } = self;
        if [start, length, extent].iter().all(|dim| dim.constant().is_some()) {
            return format!("axis {axis} to hold {length} positions from {start} on");
        }
        let (far, late, has) = (reach(length), reach(start), with_bounds(extent));
        let remedy = extent.constant().and_then(|size| self.remedy(size)).unwrap_or_default();
        format!("axis {axis} to hold {length}{far} positions from {start}{late} on; it has {has}{remedy}")
    }

    /// The bound with which an axis of so many positions surely holds the range, if a bound of one of both is enough.
    fn remedy(&self, size: i64) -> Option<String> {
        let ((first, _), (least, most)) = (self.start.bounds(), self.length.bounds());
        if first < 0 || least < 0 {
            return None;
        }
        let (what, most) = match (self.start.constant(), self.length.constant()) {
            (Some(start), None) => ("them", size.checked_sub(start)?),
            _ => ("the first position", size.checked_sub(most)?),
        };
        (most >= 0).then(|| format!(": bound {what} by `.minimum(&Dim::from({most}))`"))
    }
}

/// How far a dimension reaches that depends on symbols.
fn reach(dim: &Dim) -> String {
    match (dim.constant(), dim.bounds()) {
        (Some(_), _) => String::new(),
        (None, (least @ ..0, most)) => format!(" ({least} to {most})"),
        (None, (_, most)) => format!(" (up to {most})"),
    }
}

impl Op for Narrow {
    view_op!(Narrow, "narrow", axis, start, length);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of([&self.start, &self.length])
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        let Some(extent) = input.shape.get(self.axis) else {
            return Err(axis_error(self.axis, input.rank()));
        };
        let rest = extent - &self.start - &self.length;
        if rest.bounds().0 < 0 || self.start.bounds().0 < 0 || self.length.bounds().0 < 0 {
            return Err(shape_error("x", input, self.expected(extent)));
        }
        let mut output = input.clone();
        output.shape[self.axis] = self.length.clone();
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        // References know numbers alone, so there is none for a start that depends on symbols.
        let Some(start) = self.start.constant().and_then(|start| usize::try_from(start).ok()) else {
            return Vec::new();
        };
        rearranged(&inputs[0], &outputs[0], |position| {
            let mut source = position.to_vec();
            source[self.axis] += start;
            source
        })
    }
}

impl View for Narrow {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        let offset = &layout.offset + &self.start * &layout.strides[self.axis];
        Some(Layout { offset, strides: layout.strides.clone() })
    }
}

impl Op for Squeeze {
    view_op!(Squeeze, "squeeze", axis);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        match input.shape.get(self.axis) {
            None => Err(axis_error(self.axis, input.rank())),
            Some(extent) if !extent.is(1) => {
                Err(shape_error("x", input, format!("axis {} to have extent 1", self.axis)))
            }
            Some(_) => {
                let mut output = input.clone();
                output.shape.remove(self.axis);
                Ok(vec![output])
            }
        }
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![HostTensor { shape: outputs[0].clone(), values: inputs[0].values.clone() }]
    }
}

impl View for Squeeze {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        let mut layout = layout.clone();
        layout.strides.remove(self.axis);
        Some(layout)
    }
}

impl Op for Unsqueeze {
    view_op!(Unsqueeze, "unsqueeze", axis);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let input = only(inputs)?;
        if self.axis > input.rank() {
            return Err(axis_error(self.axis, input.rank() + 1));
        }
        let mut output = input.clone();
        output.shape.insert(self.axis, Dim::from(1i64));
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![HostTensor { shape: outputs[0].clone(), values: inputs[0].values.clone() }]
    }
}

impl View for Unsqueeze {
    fn layout(&self, _: &TensorType, layout: &Layout, output: &TensorType) -> Option<Layout> {
        let mut layout = layout.clone();
        // The stride that a contiguous tensor would have there, so that contiguous stays contiguous in every reading.
        let stride = match (layout.strides.get(self.axis), output.shape.get(self.axis + 1)) {
            (Some(stride), Some(extent)) => stride.clone() * extent.clone(),
            _ => Dim::from(1i64),
        };
        layout.strides.insert(self.axis, stride);
        Some(layout)
    }
}

impl Op for StopGradient {
    view_op!(StopGradient, "stop_gradient",);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        Ok(vec![only(inputs)?.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        vec![inputs[0].clone()]
    }
}

impl View for StopGradient {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        Some(layout.clone())
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// `x` itself, as a constant to whatever computes gradients: nothing flows back through it. It is a view, so that it costs nothing.
    ///
    /// # Errors
    /// The tensor is another graph's.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, vec![Dim::from(4usize)])?;
    /// let target = g.stop_gradient(x)?;
    /// assert_eq!(g.type_of(target)?, g.type_of(x)?);
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn stop_gradient(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(StopGradient, &[x])
    }

    /// The same elements in the same order under another shape; a view unless strides cannot say it.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn reshape(&mut self, x: Tensor, shape: impl IntoShape) -> Result<Tensor, GraphError> {
        self.add_one(Reshape { shape: shape.into_shape() }, &[x])
    }

    /// Axes in another order: axis `i` of the result is axis `permutation[i]` of `x`.
    ///
    /// # Errors
    /// The permutation does not name each axis once.
    pub fn transpose(&mut self, x: Tensor, permutation: &[usize]) -> Result<Tensor, GraphError> {
        self.add_one(Transpose { permutation: permutation.to_vec() }, &[x])
    }

    /// Two axes in each other's place; negative ones count from the last.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn swap_axes(&mut self, x: Tensor, first: isize, second: isize) -> Result<Tensor, GraphError> {
        let mut permutation: Vec<usize> = (0..self.operand("swap_axes", x)?.rank()).collect();
        permutation.swap(self.axis("swap_axes", x, first, 0)?, self.axis("swap_axes", x, second, 0)?);
        self.transpose(x, &permutation)
    }

    /// The axes from `first` to `last`, both included, as one; negative ones count from the last.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [2, 3, 4, 5])?;
    /// let y = g.flatten(x, 1, -1)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[2, 60]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such axis, or `last` stands before `first`.
    pub fn flatten(&mut self, x: Tensor, first: isize, last: isize) -> Result<Tensor, GraphError> {
        let (from, to) = (self.axis("flatten", x, first, 0)?, self.axis("flatten", x, last, 0)?);
        let ty = self.type_of(x)?;
        if to < from {
            let expected = format!("an axis of {ty} that is `first`, {first}, or stands behind it");
            let error = OpError::Attribute { attribute: "last", given: last.to_string(), expected };
            return Err(GraphError::Op { op: format!("flatten({ty})"), error });
        }
        let mut shape = ty.shape.clone();
        let merged = shape[from..=to].iter().cloned().product();
        shape.splice(from..=to, [merged]);
        self.reshape(x, shape)
    }

    /// Axes of extent 1 repeated, and new axes in front.
    ///
    /// # Errors
    /// The shape of `x` does not broadcast to `shape`.
    pub fn expand(&mut self, x: Tensor, shape: impl IntoShape) -> Result<Tensor, GraphError> {
        self.add_one(Expand { shape: shape.into_shape() }, &[x])
    }

    /// `length` positions of an axis, from `start` on; a negative axis counts from the last.
    ///
    /// # Errors
    /// There is no such axis, or it does not surely hold the range: at every value of the symbols in it. [`Dim::minimum`] bounds what may grow past the axis.
    pub fn narrow(
        &mut self,
        x: Tensor,
        axis: isize,
        start: impl Into<Dim>,
        length: impl Into<Dim>,
    ) -> Result<Tensor, GraphError> {
        let axis = self.axis("narrow", x, axis, 0)?;
        self.add_one(Narrow { axis, start: start.into(), length: length.into() }, &[x])
    }

    /// Takes an axis of extent 1 away; a negative axis counts from the last.
    ///
    /// # Errors
    /// There is no such axis, or its extent is not 1.
    pub fn squeeze(&mut self, x: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axis = self.axis("squeeze", x, axis, 0)?;
        self.add_one(Squeeze { axis }, &[x])
    }

    /// Puts an axis of extent 1 in, so that it stands at `axis` in the result; a negative axis counts from the result's last.
    ///
    /// # Errors
    /// There is no such place.
    pub fn unsqueeze(&mut self, x: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axis = self.axis("unsqueeze", x, axis, 1)?;
        self.add_one(Unsqueeze { axis }, &[x])
    }
}
