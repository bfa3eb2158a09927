//! Images as the columns of a matrix, one for each place of a window, and back: what convolutions by way of matrix products are made of.

use super::pool::Window;
use super::{at, attribute_error, each, pull_op};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_inputs, expect_one_of, expect_shape, shape_error, symbols_of};
use crate::pull::{Calculator, Computes, Frame, Given, Machine, Made, Moves};
use crate::types::{ElementType, TensorType};

/// What windows see of `[batch, channels, ..]`: `[batch, channels, positions in the window .., windows ..]`, 0 in the padding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Patches {
    /// One for each spatial axis.
    pub windows: Vec<Window>,
}

/// The sum of what windows see, `[batch, channels, positions in the window .., windows ..]`, at the places where they see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Overlaid {
    /// One for each spatial axis.
    pub windows: Vec<Window>,
    /// The spatial extents of the result.
    pub image: Vec<Dim>,
}

/// The numbers of an axis: its extent or the number of windows, and the window's stride, dilation, padding in front, and size.
const NUMBERS: usize = 5;

/// Extents of the windows and how many there are, if the windows fit.
fn windows_of(windows: &[Window], image: &[Dim]) -> Result<(Vec<Dim>, Vec<Dim>), OpError> {
    let wrong = |window: &Window, expected: String| Err(attribute_error("windows", format!("{window:?}"), expected));
    for (window, extent) in windows.iter().zip(image) {
        let Window { size, stride, dilation, padding: [front, behind], .. } = window;
        if [size, stride, dilation].iter().any(|number| number.bounds().0 < 1) {
            return wrong(window, "a size, a stride and a dilation of at least 1".to_owned());
        }
        let reach = (size - 1i64) * dilation + 1i64;
        let room = extent + front + behind - reach;
        if front.bounds().0 < 0 || behind.bounds().0 < 0 || room.bounds().0 < 0 {
            return wrong(window, format!("a window that {extent} positions hold with padding that is not negative"));
        }
    }
    let sizes = windows.iter().map(|window| window.size.clone()).collect();
    Ok((sizes, windows.iter().zip(image).map(|(window, extent)| window.count(extent)).collect()))
}

/// The shape of what windows see.
fn seen(first: &[Dim], windows: &[Window], image: &[Dim]) -> Result<Vec<Dim>, OpError> {
    let (sizes, counts) = windows_of(windows, image)?;
    Ok(first.iter().cloned().chain(sizes).chain(counts).collect())
}

/// The numbers of every axis.
fn numbers<'a>(windows: &'a [Window], extents: &'a [Dim]) -> Vec<Dim> {
    let of = |(window, extent): (&'a Window, &'a Dim)| {
        let Window { size, stride, dilation, padding: [front, _], .. } = window;
        [extent, stride, dilation, front, size].map(Clone::clone)
    };
    windows.iter().zip(extents).flat_map(of).collect()
}

impl Op for Patches {
    pull_op!(moves, "im2col", windows);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.windows.iter().flat_map(Window::numbers))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        if x.rank() != self.windows.len() + 2 {
            let expected = format!("{} axes, two and one for each window", self.windows.len() + 2);
            return Err(shape_error("x", x, expected));
        }
        Ok(vec![TensorType { element: x.element, shape: seen(&x.shape[..2], &self.windows, &x.shape[2..])? }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let axes = self.windows.len();
        let windows: Option<Vec<_>> = self.windows.iter().map(Window::known).collect();
        let Some(windows) = windows else { return Vec::new() };
        each(&outputs[0], |position| {
            let mut source = position[..2].to_vec();
            for (axis, [stride, dilation, front]) in windows.iter().enumerate() {
                let (step, place) = (position[2 + axis], position[2 + axes + axis]);
                source.push(place * stride + step * dilation - front);
            }
            at(&inputs[0], &source).unwrap_or(0.0)
        })
    }
}

impl Moves for Patches {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        Frame { lead: 2, numbers: numbers(&self.windows, &inputs[0].shape[2..]), ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let (zero, axes) = (machine.constant(0), self.windows.len());
        let mut inside = machine.equal(zero, zero);
        let mut source = Vec::with_capacity(axes);
        for (axis, numbers) in given.numbers.chunks_exact(NUMBERS).enumerate() {
            let [extent, stride, dilation, front] = std::array::from_fn(|at| numbers[at]);
            let from = given.at[axes + axis] * stride + given.at[axis] * dilation - front;
            inside = inside & machine.within(from, extent);
            source.push(from);
        }
        machine.read_if(inside, 0, &source)
    }
}

impl Op for Overlaid {
    pull_op!(computes, "col2im", windows, image);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.windows.iter().flat_map(Window::numbers))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        // Narrow integers would wrap at once.
        let known = |element: ElementType| element.is_float() || element.is_integer() && element.scalar().bits() >= 32;
        expect_one_of("x", x, known)?;
        if self.image.len() != self.windows.len() || x.rank() < 2 {
            let expected = format!("an extent for each of {} windows", self.windows.len());
            return Err(attribute_error("image", format!("{:?}", self.image), expected));
        }
        // Padding may hold a window where there is no image.
        if self.image.iter().any(|extent| extent.bounds().1 < 0) {
            return Err(attribute_error("image", format!("{:?}", self.image), "extents that are not negative"));
        }
        expect_shape("x", x, &seen(&x.shape[..2], &self.windows, &self.image)?)?;
        let shape = x.shape[..2].iter().chain(&self.image).cloned().collect();
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        // What windows see is put where they see it.
        let (x, axes) = (&inputs[0], self.windows.len());
        let windows: Option<Vec<_>> = self.windows.iter().map(Window::known).collect();
        let Some(windows) = windows else { return Vec::new() };
        let mut result = HostTensor { shape: outputs[0].clone(), values: vec![0.0; outputs[0].iter().product()] };
        each(&x.shape, |position| {
            let mut linear = position[..2].iter().zip(&outputs[0]).fold(0, |at, (p, extent)| at * *extent as i64 + p);
            for (axis, [stride, dilation, front]) in windows.iter().enumerate() {
                let (step, place) = (position[2 + axis], position[2 + axes + axis]);
                let place = place * stride + step * dilation - front;
                let extent = outputs[0][2 + axis] as i64;
                if !(0..extent).contains(&place) {
                    return 0.0;
                }
                linear = linear * extent + place;
            }
            result.values[linear as usize] += at(x, position).unwrap_or(0.0);
            0.0
        });
        vec![result]
    }
}

impl Overlaid {
    /// `sum` with what all windows see along the axes from that on for which `steps` has no position in the window yet; `places` are those among the windows.
    fn over<C: Calculator>(
        calculator: C,
        given: Given<'_, C::Index>,
        (steps, places, inside): (&[C::Index], &[C::Index], C::Truth),
        sum: C::Value,
    ) -> C::Value {
        let axis = steps.len();
        let Some(numbers) = given.numbers.chunks_exact(NUMBERS).nth(axis) else {
            let nothing = calculator.value(0.0);
            return sum + calculator.choose(inside, || calculator.read(0, &[steps, places].concat()), || nothing);
        };
        let [count, stride, dilation, front, size] = std::array::from_fn(|at| numbers[at]);
        let ([sum], []) = calculator.repeat(size, [sum], [], |step, [sum], []| {
            let apart = given.at[axis] + front - step * dilation;
            let starts_here = calculator.equal(apart % stride, calculator.constant(0));
            let inside = inside & starts_here & calculator.within(apart, count * stride);
            let steps = [steps, &[step]].concat();
            let places = [places, &[apart / stride]].concat();
            ([Self::over(calculator, given, (&steps, &places, inside), sum)], [])
        });
        sum
    }
}

impl Computes for Overlaid {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let counts = &inputs[0].shape[2 + self.windows.len()..];
        Frame { lead: 2, numbers: numbers(&self.windows, counts), ..Frame::default() }
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let zero = calculator.constant(0);
        let anywhere = calculator.equal(zero, zero);
        Made::Value(Self::over(calculator, given, (&[], &[], anywhere), calculator.value(0.0)))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// What windows see of `x`, `[batch, channels, ..]`, as `[batch, channels * positions, windows]` (PyTorch's `unfold`): a column for each place of the window, in which the positions of each channel stand
    /// in their order. What they see of the padding is 0.
    ///
    /// ```
    /// use trefoil_graph::ops::Window;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [2, 3, 32, 32])?;
    /// let columns = g.im2col(x, &[Window::new(5), Window::new(5)])?;
    /// assert_eq!(g.type_of(columns)?.to_string(), "f32[2, 75, 784]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// `x` has not two axes and one for each window, or a window makes no sense there.
    pub fn im2col(&mut self, x: Tensor, windows: &[Window]) -> Result<Tensor, GraphError> {
        let seen = self.add_one(Patches { windows: windows.to_vec() }, &[x])?;
        let shape = self.type_of(seen)?.shape.clone();
        let (first, counts) = shape.split_at(2 + windows.len());
        let rows = first[1..].iter().cloned().product();
        self.reshape(seen, vec![first[0].clone(), rows, counts.iter().cloned().product()])
    }

    /// The sum of what windows see at each place of an image, `[batch, channels, ..]` of extents `image`, from `x`, `[batch, channels * positions, windows]` (PyTorch's `fold`): the gradient of
    /// [`Graph::im2col`].
    ///
    /// # Errors
    /// The elements are neither floats nor 32-bit integers, a window makes no sense, or `x` has another shape than windows see of such an image.
    pub fn col2im(&mut self, x: Tensor, image: &[Dim], windows: &[Window]) -> Result<Tensor, GraphError> {
        let failed = |error: OpError| GraphError::Op { op: "col2im".to_owned(), error };
        let ty = self.operand("col2im", x)?.clone();
        let (sizes, counts) = windows_of(windows, image).map_err(failed)?;
        let positions: Dim = sizes.iter().cloned().product();
        let places: Dim = counts.iter().cloned().product();
        let channels = ty.shape.get(1).map_or(Dim::from(0i64), |rows| rows.quotient(&positions));
        let batch = ty.shape.first().cloned().unwrap_or(Dim::from(0i64));
        expect_shape("x", &ty, &[batch.clone(), channels.clone() * positions, places]).map_err(failed)?;
        let shape: Vec<Dim> = [batch, channels].into_iter().chain(sizes).chain(counts).collect();
        let seen = self.reshape(x, shape)?;
        self.add_one(Overlaid { windows: windows.to_vec(), image: image.to_vec() }, &[seen])
    }
}
