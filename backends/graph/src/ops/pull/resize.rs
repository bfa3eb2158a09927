//! Tensors at other sizes, by interpolation along some of the last axes.
//!
//! Where an element of the result lies in `x` is a fraction of integers, so that what is nearest is exact at any size; weights are floats. On the processor itself a function of its own resizes linearly (`host`).

#[cfg(feature = "cpu")]
mod host;

use super::{Tap, at, attribute_error, each, weighted};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::ops::support::{expect_inputs, expect_one_of, shape_error};
use crate::pull::{Calculator, Computes, Frame, Given, Machine, Made, Moves, Pull};
use crate::types::{ElementType, TensorType};

/// Which of two neighbours is nearest when a place is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearest {
    /// The nearer; the lower of two that are equally near.
    PreferLower,
    /// The nearer; the upper of two that are equally near.
    PreferUpper,
    /// The lower.
    Lower,
    /// The upper.
    Upper,
}

/// How elements are made of their neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interpolation {
    /// The nearest element; of any type.
    Nearest(Nearest),
    /// Of two neighbours along each axis, by their distances.
    Linear,
    /// Of four neighbours along each axis, by Keys' cubic convolution with that coefficient, -0.5 or -0.75; `within` leaves those outside `x` out, else the outermost elements stand for them.
    Cubic {
        /// The coefficient.
        a: f32,
        /// Whether elements outside have no weight.
        within: bool,
    },
}

/// Where position `i` of `to` positions lies among `from` positions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// `(i + 1/2) * from / to - 1/2`: the outer edges meet.
    HalfPixel,
    /// `i * (from - 1) / (to - 1)`: the first meets the first and the last the last; 0 if there is but one.
    Corners,
    /// `i * from / to`.
    Asymmetric,
    /// `(i * step + start) / over`, whatever the sizes.
    At {
        /// From one position to the next.
        step: i32,
        /// Where the first lies.
        start: i32,
        /// Of how many parts.
        over: i32,
    },
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResizeAxis {
    /// Its new extent.
    pub extent: Dim,
    /// How its positions lie.
    pub alignment: Alignment,
}

/// The last axes at other sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// One for each of the last axes.
    pub axes: Vec<ResizeAxis>,
    /// How elements are made.
    pub interpolation: Interpolation,
}

/// Numbers of an axis: its extent, then `step`, `start` and `over`.
const NUMBERS: usize = 4;
/// What positions are counted below: the nearest takes the double of one and that of the parts, and their sum and difference must be coordinates.
const MOST: i64 = 1 << 29;

impl ResizeAxis {
    /// An axis of that extent whose edges meet those of `x`.
    pub fn new(extent: impl Into<Dim>) -> Self {
        Self { extent: extent.into(), alignment: Alignment::HalfPixel }
    }

    /// Position `i` lies at `(i * step + start) / over`.
    fn fraction(&self, from: &Dim) -> [Dim; 3] {
        let (to, one, zero) = (self.extent.clone(), Dim::from(1i64), Dim::from(0i64));
        match &self.alignment {
            Alignment::HalfPixel => [from.clone() * 2i64, from.clone() - to.clone(), (to * 2i64).maximum(&one)],
            Alignment::Corners if to.is(1) => [zero.clone(), zero, one],
            Alignment::Corners => [from.clone() - 1i64, zero, (to - 1i64).maximum(&one)],
            Alignment::Asymmetric => [from.clone(), zero, to.maximum(&one)],
            Alignment::At { step, start, over } => [*step, *start, *over].map(Dim::from),
        }
    }
}

impl Op for Resize {
    fn name(&self) -> &'static str {
        "resize"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("axes", format!("{:?}", self.axes)), ("interpolation", format!("{:?}", self.interpolation))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        if x.rank() < self.axes.len() {
            return Err(shape_error("x", x, format!("at least {} axes", self.axes.len())));
        }
        if !matches!(self.interpolation, Interpolation::Nearest(_)) {
            expect_one_of("x", x, ElementType::is_float)?;
        }
        let mut output = x.clone();
        for (axis, at) in self.axes.iter().zip(x.rank() - self.axes.len()..) {
            let [step, start, over] = axis.fraction(&x.shape[at]);
            if axis.extent.bounds().0 < 0 || over.bounds().0 < 1 {
                return Err(attribute_error(
                    "axes",
                    format!("{axis:?}"),
                    "an extent that is not negative, and parts above 0",
                ));
            }
            if !axis.extent.is(0) && x.shape[at].bounds().0 < 1 {
                return Err(shape_error("x", x, format!("an element along axis {at}")));
            }
            let ends = [start.clone(), axis.extent.clone() * step + start, over];
            let largest =
                ends.iter().flat_map(|end| [end.bounds().0.saturating_abs(), end.bounds().1.saturating_abs()]).max();
            if largest.is_some_and(|largest| largest >= MOST) {
                return Err(attribute_error(
                    "axes",
                    format!("{axis:?}"),
                    format!("positions that are counted below {MOST}"),
                ));
            }
            output.shape[at] = axis.extent.clone();
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let lead = x.shape.len() - self.axes.len();
        each(&outputs[0], |position| {
            // For each axis, positions with weights.
            let taps = self.axes.iter().enumerate().map(|(axis, of)| {
                let (from, to) = (x.shape[lead + axis] as f64, outputs[0][lead + axis] as f64);
                let i = position[lead + axis] as f64;
                let place = match of.alignment {
                    Alignment::HalfPixel => ((2.0 * i + 1.0) * from - to) / (2.0 * to),
                    Alignment::Corners if to == 1.0 => 0.0,
                    Alignment::Corners => i * (from - 1.0) / (to - 1.0),
                    Alignment::Asymmetric => i * from / to,
                    Alignment::At { step, start, over } => (i * f64::from(step) + f64::from(start)) / f64::from(over),
                };
                taps(self.interpolation, place, from)
            });
            let taps: Vec<Vec<(f64, f64)>> = taps.collect();
            let counts: Vec<usize> = taps.iter().map(Vec::len).collect();
            let mut sum = 0.0;
            each(&counts, |choice| {
                let (mut source, mut weight) = (position[..lead].to_vec(), 1.0);
                for (axis, tap) in choice.iter().enumerate() {
                    let (place, by) = taps[axis][*tap as usize];
                    source.push(place as i64);
                    weight *= by;
                }
                sum += weight * at(x, &source).unwrap_or(f64::NAN);
                0.0
            });
            sum
        })
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> Dim {
        let taps = match self.interpolation {
            Interpolation::Nearest(_) => 0i64,
            Interpolation::Linear => 2,
            Interpolation::Cubic { .. } => 4,
        };
        self.axes.iter().fold(outputs[0].elements(), |flops, _| flops * taps)
    }

    fn kind(&self) -> OpKind<'_> {
        match self.interpolation {
            Interpolation::Nearest(_) => OpKind::Pull(Pull::moves(self)),
            #[cfg(feature = "cpu")]
            Interpolation::Linear => OpKind::Pull(Pull::computes(self).unless(vec![Box::new(host::Rows(self))])),
            _ => OpKind::Pull(Pull::computes(self)),
        }
    }
}

/// For the reference: positions of an axis with their weights.
fn taps(interpolation: Interpolation, place: f64, extent: f64) -> Vec<(f64, f64)> {
    let last = extent - 1.0;
    match interpolation {
        Interpolation::Nearest(nearest) => {
            let nearest = match nearest {
                Nearest::PreferLower => (place - 0.5).ceil(),
                Nearest::PreferUpper => (place + 0.5).floor(),
                Nearest::Lower => place.floor(),
                Nearest::Upper => place.ceil(),
            };
            vec![(nearest.clamp(0.0, last), 1.0)]
        }
        Interpolation::Linear => {
            let below = place.floor();
            let part = place - below;
            vec![(below.clamp(0.0, last), 1.0 - part), ((below + 1.0).clamp(0.0, last), part)]
        }
        Interpolation::Cubic { a, within } => {
            let (a, below) = (f64::from(a), place.floor());
            let weight = |distance: f64| match distance.abs() {
                d if d <= 1.0 => (a + 2.0) * d * d * d - (a + 3.0) * d * d + 1.0,
                d if d < 2.0 => a * d * d * d - 5.0 * a * d * d + 8.0 * a * d - 4.0 * a,
                _ => 0.0,
            };
            let inside = |at: f64| at >= 0.0 && at <= last;
            let mut taps: Vec<(f64, f64)> = (-1..3)
                .map(|step| below + f64::from(step))
                .map(|at| (at.clamp(0.0, last), if within && !inside(at) { 0.0 } else { weight(place - at) }))
                .collect();
            let all: f64 = taps.iter().map(|tap| tap.1).sum();
            if within {
                taps.iter_mut().for_each(|tap| tap.1 /= all);
            }
            taps
        }
    }
}

impl Resize {
    fn numbers(&self, x: &TensorType) -> Frame {
        let lead = x.rank() - self.axes.len();
        let numbers = self.axes.iter().zip(&x.shape[lead..]).flat_map(|(axis, extent)| {
            let [step, start, over] = axis.fraction(extent);
            [extent.clone(), step, start, over]
        });
        Frame { lead, numbers: numbers.collect(), ..Frame::default() }
    }
}

/// The quotient rounded down, for a divisor above 0.
fn floor<M: Machine>(machine: M, value: M::Index, divisor: M::Index) -> M::Index {
    (value - machine.modulo(value, divisor)) / divisor
}

fn clamped<M: Machine>(machine: M, place: M::Index, extent: M::Index) -> M::Index {
    machine.maximum(machine.minimum(place, extent - machine.constant(1)), machine.constant(0))
}

impl Moves for Resize {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        self.numbers(&inputs[0])
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let zero = machine.constant(0);
        let source = given.at.iter().enumerate().map(|(axis, to)| {
            let [extent, step, start, over] = std::array::from_fn(|number| given.numbers[axis * NUMBERS + number]);
            let place = *to * step + start;
            let nearest = match self.interpolation {
                Interpolation::Nearest(Nearest::PreferLower) => {
                    zero - floor(machine, over - place - place, over + over)
                }
                Interpolation::Nearest(Nearest::PreferUpper) => floor(machine, place + place + over, over + over),
                Interpolation::Nearest(Nearest::Upper) => zero - floor(machine, zero - place, over),
                _ => floor(machine, place, over),
            };
            clamped(machine, nearest, extent)
        });
        machine.read(0, &source.collect::<Vec<_>>())
    }
}

impl Resize {
    fn taps<C: Calculator>(&self, calculator: C, numbers: [C::Index; NUMBERS], to: C::Index) -> Vec<Tap<C>> {
        let tap = |place, weight| Tap { place: clamped(calculator, place, numbers[0]), weight, there: None };
        let [extent, step, start, over] = numbers;
        let one = calculator.value(1.0);
        let place = to * step + start;
        let below = floor(calculator, place, over);
        let part = calculator.of_index(place - below * over) / calculator.of_index(over);
        let Interpolation::Cubic { a, within } = self.interpolation else {
            let next = below + calculator.constant(1);
            return vec![tap(below, one - part), tap(next, part)];
        };
        let a = f64::from(a);
        let number = |value: f64| calculator.value(value);
        let near = |d: C::Value| ((number(a + 2.0) * d - number(a + 3.0)) * d) * d + one;
        let far = |d: C::Value| ((number(a) * d - number(5.0 * a)) * d + number(8.0 * a)) * d - number(4.0 * a);
        let (other, two) = (one - part, number(2.0));
        let weights = [far(one + part), near(part), near(other), far(two - part)];
        let mut taps: Vec<_> = (-1..3)
            .zip(weights)
            .map(|(step, weight)| {
                let at = below + calculator.constant(step);
                let inside = calculator.within(at, extent);
                let weight = if within { calculator.pick(inside, weight, calculator.value(0.0)) } else { weight };
                tap(at, weight)
            })
            .collect();
        if within {
            let all = taps[1..].iter().fold(taps[0].weight, |sum, tap| sum + tap.weight);
            taps.iter_mut().for_each(|tap| tap.weight = tap.weight / all);
        }
        taps
    }
}

impl Computes for Resize {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        self.numbers(&inputs[0])
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let taps = given.at.iter().enumerate().map(|(axis, to)| {
            let numbers = std::array::from_fn(|number| given.numbers[axis * NUMBERS + number]);
            self.taps(calculator, numbers, *to)
        });
        let taps: Vec<_> = taps.collect();
        Made::Value(weighted(calculator, &taps, &[]))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// The last axes of `x`, as many as are given, at other sizes. Neighbours count with a weight of 0 too: of an infinity or a NaN that is a NaN.
    ///
    /// ```
    /// use trefoil_graph::ops::{Interpolation, ResizeAxis};
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F16, [1, 3, 32, 48])?;
    /// let y = g.resize(x, &[ResizeAxis::new(64), ResizeAxis::new(100)], Interpolation::Linear)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f16[1, 3, 64, 100]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// `x` has fewer axes, no elements along one of them, or is of no float type and not resized to the nearest; or an axis is too large to count.
    pub fn resize(
        &mut self,
        x: Tensor,
        axes: &[ResizeAxis],
        interpolation: Interpolation,
    ) -> Result<Tensor, GraphError> {
        self.add_one(Resize { axes: axes.to_vec(), interpolation }, &[x])
    }
}
