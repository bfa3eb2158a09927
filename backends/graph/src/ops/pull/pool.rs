//! Pooling: each element from a window of others, over any number of spatial axes.

use super::{at, attribute_error, constants, each, pull_op};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::ops::support::{expect_inputs, expect_one_of, shape_error, symbols_of};
use crate::pull::{Calculator, Computes, Frame, Function, Given, Machine, Made, Pull};
use crate::types::{ElementType, TensorType};

/// What becomes of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pooling {
    /// The largest element; a NaN if there is one.
    Max,
    /// The smallest element; a NaN if there is one.
    Min,
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The mean of the elements, padding not counted.
    Mean,
    /// The mean over the window's positions, of which those in the padding count as zeros.
    MeanWithPadding,
    /// The sum of the absolute values to that power, to the power of its reciprocal.
    Norm(f32),
    /// The place of the largest element, as `u32`: its number in the order of the spatial axes; the first of several.
    PlaceOfMax,
}

/// How a window moves along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Positions in the window.
    pub size: Dim,
    /// From one window to the next.
    pub stride: Dim,
    /// From one position of the window to the next.
    pub dilation: Dim,
    /// Positions of padding in front and behind.
    pub padding: [Dim; 2],
    /// Whether the last window may reach beyond the padding behind, as long as it starts before it.
    pub ceil: bool,
}

/// Windows over the last axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// What becomes of a window.
    pub pooling: Pooling,
    /// One for each of the last axes.
    pub windows: Vec<Window>,
}

/// Means of parts of equal length, as nearly as may be, of the last axes: part `i` of `n` goes from `i * extent / n` rounded down to `(i + 1) * extent / n` rounded up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AdaptiveMean {
    /// How many parts, for each of the last axes.
    pub parts: Vec<Dim>,
}

impl Window {
    /// A window of that size that moves by a position, without dilation or padding.
    pub fn new(size: impl Into<Dim>) -> Self {
        let [zero, one] = [Dim::from(0i64), Dim::from(1i64)];
        Self { size: size.into(), stride: one.clone(), dilation: one, padding: [zero.clone(), zero], ceil: false }
    }

    /// The stride, the dilation and the padding in front, as references know them; none where one depends on symbols.
    pub(super) fn known(&self) -> Option<[i64; 3]> {
        Some([self.stride.constant()?, self.dilation.constant()?, self.padding[0].constant()?])
    }

    /// All of its numbers.
    pub(super) fn numbers(&self) -> [&Dim; 5] {
        let Self { size, stride, dilation, padding: [front, behind], .. } = self;
        [size, stride, dilation, front, behind]
    }

    /// How many windows there are along an axis.
    pub(super) fn count(&self, extent: &Dim) -> Dim {
        let reach = (&self.size - 1i64) * &self.dilation;
        let [front, behind] = &self.padding;
        let room = extent + front + behind - reach - 1i64;
        if !self.ceil {
            return room.quotient(&self.stride) + 1i64;
        }
        let count = (room + &self.stride - 1i64).quotient(&self.stride) + 1i64;
        // The last one starts at an element or in the padding in front.
        let starting = (extent + front - 1i64).quotient(&self.stride) + 1i64;
        count.minimum(&starting)
    }
}

impl Pool {
    fn lead(&self, x: &TensorType) -> usize {
        x.rank().saturating_sub(self.windows.len())
    }
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        match self.pooling {
            Pooling::Max => "max_pool",
            Pooling::Min => "min_pool",
            Pooling::Sum => "sum_pool",
            Pooling::Product => "product_pool",
            Pooling::Mean | Pooling::MeanWithPadding => "mean_pool",
            Pooling::Norm(_) => "norm_pool",
            Pooling::PlaceOfMax => "place_of_max_pool",
        }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("pooling", format!("{:?}", self.pooling)), ("windows", format!("{:?}", self.windows))]
    }

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.windows.iter().flat_map(Window::numbers))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        if x.rank() < self.windows.len() {
            return Err(shape_error("x", x, format!("at least {} axes, one for each window", self.windows.len())));
        }
        let floats = matches!(self.pooling, Pooling::Mean | Pooling::MeanWithPadding | Pooling::Norm(_));
        let known = |element: ElementType| element.is_float() || element.is_integer() && !floats;
        expect_one_of("x", x, known)?;
        if let Pooling::Norm(power) = self.pooling
            && !(power.is_finite() && power > 0.0)
        {
            return Err(attribute_error("power", power, "a finite number above 0"));
        }
        let mut output = x.clone();
        for (window, axis) in self.windows.iter().zip(self.lead(x)..) {
            let Window { size, stride, dilation, padding: [front, behind], .. } = window;
            if [size, stride, dilation].iter().any(|number| number.bounds().0 < 1) {
                let expected = "a size, a stride and a dilation of at least 1";
                return Err(attribute_error("windows", format!("{window:?}"), expected));
            }
            let reach = (size - 1i64) * dilation + 1i64;
            let padded = &x.shape[axis] + front + behind;
            let inside = |pad: &Dim| pad.bounds().0 >= 0 && (&reach - pad).bounds().0 > 0;
            if !inside(front) || !inside(behind) {
                let expected = format!("padding from 0 to less than the window's {reach} positions");
                return Err(attribute_error("windows", format!("{window:?}"), expected));
            }
            if (padded - reach.clone()).bounds().0 < 0 {
                return Err(shape_error("x", x, format!("axis {axis} to hold a window of {reach} positions")));
            }
            output.shape[axis] = window.count(&x.shape[axis]);
        }
        if self.pooling == Pooling::PlaceOfMax {
            output.element = ElementType::U32;
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let lead = x.shape.len() - self.windows.len();
        let sizes = constants(self.windows.iter().map(|window| &window.size));
        // The padding behind counts in one pooling alone.
        let behind = match self.pooling {
            Pooling::MeanWithPadding => constants(self.windows.iter().map(|window| &window.padding[1])),
            _ => Some(vec![0; self.windows.len()]),
        };
        let windows: Option<Vec<_>> = self.windows.iter().map(Window::known).collect();
        let (Some(windows), Some(sizes), Some(behind)) = (windows, sizes, behind) else { return Vec::new() };
        let sizes: Vec<usize> = sizes.into_iter().map(|size| size as usize).collect();
        each(&outputs[0], |position| {
            let (mut elements, mut places, mut counted) = (Vec::new(), Vec::new(), 0usize);
            each(&sizes, |within| {
                let mut source = position[..lead].to_vec();
                let mut is_counted = true;
                for (axis, [stride, dilation, front]) in windows.iter().enumerate() {
                    let from = position[lead + axis] * stride + within[axis] * dilation - front;
                    is_counted &= from < x.shape[lead + axis] as i64 + behind[axis];
                    source.push(from);
                }
                counted += usize::from(is_counted);
                if let Some(value) = at(x, &source) {
                    elements.push(value);
                    let place = source[lead..].iter().zip(&x.shape[lead..]);
                    places.push(place.fold(0, |place, (at, extent)| place * *extent as i64 + at));
                }
                0.0
            });
            let worst = |start: f64, better: fn(f64, f64) -> bool| {
                elements.iter().fold(start, |best, value| {
                    if best.is_nan() || !value.is_nan() && !better(*value, best) { best } else { *value }
                })
            };
            match self.pooling {
                Pooling::Max => worst(f64::NEG_INFINITY, |value, best| value > best),
                Pooling::Min => worst(f64::INFINITY, |value, best| value < best),
                Pooling::Sum => elements.iter().sum(),
                Pooling::Product => elements.iter().product(),
                Pooling::Mean => elements.iter().sum::<f64>() / elements.len() as f64,
                Pooling::MeanWithPadding => elements.iter().sum::<f64>() / counted as f64,
                Pooling::Norm(power) => {
                    let power = f64::from(power);
                    elements.iter().map(|value| value.abs().powf(power)).sum::<f64>().powf(1.0 / power)
                }
                Pooling::PlaceOfMax => {
                    let largest = worst(f64::NEG_INFINITY, |value, best| value > best);
                    let found = elements.iter().position(|value| *value == largest || value.is_nan());
                    found.map_or(0.0, |found| places[found] as f64)
                }
            }
        })
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> Dim {
        self.windows.iter().fold(outputs[0].elements(), |flops, window| flops * window.size.clone())
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Pull(Pull::computes(self))
    }
}

/// The numbers of an axis: its extent, then what its window says.
const NUMBERS: usize = 6;

/// What a window has gathered: a value, and two counts.
type Gathered<C> = ([<C as crate::pull::Machine>::Value; 1], [<C as crate::pull::Machine>::Index; 2]);

impl Pool {
    /// What `so_far` becomes with the elements at all positions of the windows from `axis` on, where `from` says where those before are.
    fn over<C: Calculator>(
        &self,
        calculator: C,
        given: Given<'_, C::Index>,
        from: &[C::Index],
        known: (C::Truth, C::Truth),
        so_far: Gathered<C>,
    ) -> Gathered<C> {
        let axis = from.len();
        if axis == given.at.len() {
            return self.with(calculator, given, from, known, so_far);
        }
        let [extent, size, stride, dilation, front, behind] =
            std::array::from_fn(|number| given.numbers[axis * NUMBERS + number]);
        let first = given.at[axis] * stride - front;
        calculator.repeat(size, so_far.0, so_far.1, |step, values, indices| {
            let mut from = from.to_vec();
            let here = first + step * dilation;
            from.push(here);
            let inside = known.0 & calculator.within(here, extent);
            let counted = known.1 & calculator.less(here, extent + behind);
            self.over(calculator, given, &from, (inside, counted), (values, indices))
        })
    }

    /// What `so_far` becomes with one element.
    fn with<C: Calculator>(
        &self,
        calculator: C,
        given: Given<'_, C::Index>,
        from: &[C::Index],
        (inside, counted): (C::Truth, C::Truth),
        ([best], [count, place]): Gathered<C>,
    ) -> Gathered<C> {
        let nothing = self.start(calculator);
        let x = calculator.choose(inside, || calculator.read(0, from), || nothing);
        let (zero, one) = (calculator.constant(0), calculator.constant(1));
        let replaces = |better: C::Truth| !calculator.is_nan(best) & (better | calculator.is_nan(x));
        let value = match self.pooling {
            Pooling::Max => calculator.pick(replaces(calculator.below(best, x)), x, best),
            Pooling::Min => calculator.pick(replaces(calculator.below(x, best)), x, best),
            Pooling::Sum | Pooling::Mean | Pooling::MeanWithPadding => best + x,
            Pooling::Product => best * x,
            Pooling::Norm(_) => {
                let size = calculator.math(Function::Abs, x, x);
                let power = calculator.math(Function::Pow, size, calculator.real(0));
                best + calculator.pick(inside, power, calculator.value(0.0))
            }
            Pooling::PlaceOfMax => {
                let number = from
                    .iter()
                    .enumerate()
                    .fold(zero, |number, (axis, at)| number * given.numbers[axis * NUMBERS] + *at);
                // The first element counts, however small it is.
                let first = calculator.equal(count, zero);
                let found = inside & (first | replaces(calculator.below(best, x)));
                let count = count + calculator.select(inside, one, zero);
                return ([calculator.pick(found, x, best)], [count, calculator.select(found, number, place)]);
            }
        };
        let counts = if self.pooling == Pooling::MeanWithPadding { counted } else { inside };
        ([value], [count + calculator.select(counts, one, zero), place])
    }

    /// What a window has gathered before its first element.
    fn start<C: Calculator>(&self, calculator: C) -> C::Value {
        match self.pooling {
            Pooling::Max | Pooling::PlaceOfMax => calculator.lowest(),
            Pooling::Min => calculator.highest(),
            Pooling::Product => calculator.value(1.0),
            _ => calculator.value(0.0),
        }
    }
}

impl Computes for Pool {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let lead = self.lead(&inputs[0]);
        let numbers = self.windows.iter().zip(&inputs[0].shape[lead..]).flat_map(|(window, extent)| {
            let Window { size, stride, dilation, padding: [front, behind], .. } = window.clone();
            [extent.clone(), size, stride, dilation, front, behind]
        });
        let reals = match self.pooling {
            Pooling::Norm(power) => vec![f64::from(power), 1.0 / f64::from(power)],
            _ => Vec::new(),
        };
        Frame { lead, numbers: numbers.collect(), reals, ..Frame::default() }
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let zero = calculator.constant(0);
        let holds = calculator.equal(zero, zero);
        let start = ([self.start(calculator)], [zero, zero]);
        let ([value], [count, place]) = self.over(calculator, given, &[], (holds, holds), start);
        Made::Value(match self.pooling {
            Pooling::Mean | Pooling::MeanWithPadding => value / calculator.of_index(count),
            Pooling::Norm(_) => calculator.math(Function::Pow, value, calculator.real(1)),
            Pooling::PlaceOfMax => return Made::Index(place),
            _ => value,
        })
    }
}

impl Op for AdaptiveMean {
    pull_op!(computes, "adaptive_mean", parts);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        expect_one_of("x", x, ElementType::is_float)?;
        if x.rank() < self.parts.len() {
            return Err(shape_error("x", x, format!("at least {} axes", self.parts.len())));
        }
        let mut output = x.clone();
        for (parts, axis) in self.parts.iter().zip(x.rank() - self.parts.len()..) {
            if parts.bounds().0 < 0 || x.shape[axis].bounds().0 < 1 {
                return Err(attribute_error(
                    "parts",
                    format!("{:?}", self.parts),
                    "numbers of parts of axes that have elements",
                ));
            }
            // What `ends` counts at most: the number of parts times what is left of the extent, and as much again as rounds it up.
            let (most, rest) = (parts.bounds().1, parts.bounds().1.min(x.shape[axis].bounds().1));
            if most.saturating_mul(rest.saturating_add(1)) > i64::from(i32::MAX) {
                return Err(attribute_error(
                    "parts",
                    format!("{:?}", self.parts),
                    format!("parts whose number, times what they leave of the extent, is below {}", i32::MAX),
                ));
            }
            output.shape[axis] = parts.clone();
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let lead = x.shape.len() - self.parts.len();
        each(&outputs[0], |position| {
            let (mut starts, mut sizes) = (Vec::new(), Vec::new());
            for axis in lead..x.shape.len() {
                let (extent, parts) = (x.shape[axis] as i64, outputs[0][axis] as i64);
                let start = position[axis] * extent / parts;
                starts.push(start);
                sizes.push((((position[axis] + 1) * extent + parts - 1) / parts - start) as usize);
            }
            let mut sum = 0.0;
            each(&sizes, |within| {
                let mut source = position[..lead].to_vec();
                source.extend(starts.iter().zip(within).map(|(start, step)| start + step));
                sum += at(x, &source).unwrap_or(f64::NAN);
                0.0
            });
            sum / sizes.iter().product::<usize>() as f64
        })
    }
}

/// Where a part of an axis begins, and where it ends. Whole multiples and the rest are counted by themselves: a place times the extent would be more than 32 bits hold.
fn ends<M: Machine>(machine: M, given: &Given<'_, M::Index>, axis: usize) -> [M::Index; 2] {
    let [extent, parts] = [given.numbers[2 * axis], given.numbers[2 * axis + 1]];
    let (whole, rest, one) = (extent / parts, extent % parts, machine.constant(1));
    let next = given.at[axis] + one;
    [given.at[axis] * whole + given.at[axis] * rest / parts, next * whole + (next * rest + parts - one) / parts]
}

impl AdaptiveMean {
    fn over<C: Calculator>(
        &self,
        calculator: C,
        given: Given<'_, C::Index>,
        from: &[C::Index],
        sum: C::Value,
    ) -> C::Value {
        let axis = from.len();
        if axis == given.at.len() {
            return sum + calculator.read(0, from);
        }
        let [start, end] = ends(calculator, &given, axis);
        let ([sum], []) = calculator.repeat(end - start, [sum], [], |step, [sum], []| {
            let mut from = from.to_vec();
            from.push(start + step);
            ([self.over(calculator, given, &from, sum)], [])
        });
        sum
    }
}

impl Computes for AdaptiveMean {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let lead = output.rank() - self.parts.len();
        let numbers =
            (lead..output.rank()).flat_map(|axis| [inputs[0].shape[axis].clone(), output.shape[axis].clone()]);
        Frame { lead, numbers: numbers.collect(), ..Frame::default() }
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let sum = self.over(calculator, given, &[], calculator.value(0.0));
        let count = (0..given.at.len()).fold(calculator.constant(1), |count, axis| {
            let [start, end] = ends(calculator, &given, axis);
            count * (end - start)
        });
        Made::Value(sum / calculator.of_index(count))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Windows over the last axes of `x`, as many as there are: 1, 2 or 3 after batch and channels, as usual, but any number of axes may stand in front.
    ///
    /// ```
    /// use trefoil_graph::ops::{Pooling, Window};
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [1, 3, 32, 32])?;
    /// let window = Window { stride: Dim::from(2), ..Window::new(2) };
    /// let y = g.pool(x, Pooling::Max, &[window.clone(), window])?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[1, 3, 16, 16]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// `x` has fewer axes, is of a type that the pooling does not take (bools; integers for means and norms), or holds no window; or a window makes no sense.
    pub fn pool(&mut self, x: Tensor, pooling: Pooling, windows: &[Window]) -> Result<Tensor, GraphError> {
        self.add_one(Pool { pooling, windows: windows.to_vec() }, &[x])
    }

    /// Means of so many parts of each of the last axes.
    ///
    /// # Errors
    /// `x` has fewer axes, is of no float type, or an axis has no elements; or the parts are too many to count.
    pub fn adaptive_mean(&mut self, x: Tensor, parts: &[Dim]) -> Result<Tensor, GraphError> {
        self.add_one(AdaptiveMean { parts: parts.to_vec() }, &[x])
    }
}
