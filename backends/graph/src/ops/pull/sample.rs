//! Tensors sampled at places that another tensor gives.

use super::{Tap, at, each, pull_op};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_element, expect_inputs, expect_one_of, shape_error};
use crate::pull::{Calculator, Computes, Frame, Function, Given, Made};
use crate::types::{ElementType, TensorType};

/// How elements are made of their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// The nearest; the even one of two that are equally near.
    Nearest,
    /// Of two neighbours along each axis, by their distances.
    Linear,
    /// Of four neighbours along each axis, by Keys' cubic convolution with coefficient -0.75.
    Cubic,
}

/// What stands outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The nearest element.
    Border,
    /// The elements as in a mirror, at the outermost places: the elements themselves if corners are aligned, else their outer edges.
    Reflection,
}

/// `x` of `[batch, channels, spatial axes..]` at places of `[batch, places.., coordinates]`: as many coordinates as spatial axes, the last axis's first, each from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GridSample {
    /// How elements are made.
    pub sampling: Sampling,
    /// What stands outside.
    pub outside: Outside,
    /// Whether -1 and 1 are the outermost elements themselves, rather than their outer edges.
    pub align_corners: bool,
}

/// The coefficient of cubic convolution.
const CUBIC: f64 = -0.75;
/// So far outside all of the four neighbours of cubic convolution are the outermost element.
const BEYOND: f64 = 2.0;

impl Op for GridSample {
    pull_op!(computes, "grid_sample", sampling, outside, align_corners);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, grid) = (&inputs[0], &inputs[1]);
        expect_one_of("x", x, ElementType::is_float)?;
        expect_element("grid", grid, x.element)?;
        let spatial = x.rank().saturating_sub(2);
        if spatial == 0 {
            return Err(shape_error("x", x, "batch, channels and at least one axis more".to_owned()));
        }
        if grid.rank() != x.rank() || grid.shape[0] != x.shape[0] || !grid.shape[spatial + 1].is(spatial as i64) {
            let expected = format!("the batch of {x}, {spatial} axes of places and {spatial} coordinates");
            return Err(shape_error("grid", grid, expected));
        }
        if let Some(axis) = (2..x.rank()).find(|axis| x.shape[*axis].bounds().0 < 1) {
            return Err(shape_error("x", x, format!("an element along axis {axis}")));
        }
        let mut shape = x.shape.clone();
        shape.splice(2.., grid.shape[1..=spatial].iter().cloned());
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, grid) = (&inputs[0], &inputs[1]);
        let spatial = x.shape.len() - 2;
        each(&outputs[0], |position| {
            let taps = (0..spatial).map(|axis| {
                let mut place = vec![position[0]];
                place.extend(&position[2..]);
                place.push((spatial - 1 - axis) as i64);
                self.reference_taps(at(grid, &place).unwrap_or(f64::NAN), x.shape[2 + axis])
            });
            let taps: Vec<Vec<(Option<i64>, f64)>> = taps.collect();
            let counts: Vec<usize> = taps.iter().map(Vec::len).collect();
            let mut sum = 0.0;
            each(&counts, |choice| {
                let (mut source, mut weight) = (position[..2].to_vec(), 1.0);
                for (axis, tap) in choice.iter().enumerate() {
                    let (from, by) = taps[axis][*tap as usize];
                    source.push(from.unwrap_or(-1));
                    weight *= by;
                }
                sum += weight * at(x, &source).unwrap_or(0.0);
                0.0
            });
            sum
        })
    }
}

impl GridSample {
    /// Positions with their weights; none for one outside that is zero.
    fn reference_taps(&self, coordinate: f64, extent: usize) -> Vec<(Option<i64>, f64)> {
        let last = extent as f64 - 1.0;
        let [low, high] = if self.align_corners { [0.0, last] } else { [-0.5, last + 0.5] };
        let mirrored = |place: f64| {
            let (far, range) = ((place - low).abs(), high - low);
            if place.is_nan() || range == 0.0 {
                return place.clamp(low, high);
            }
            // Kernels count turns up to 2^31 - 1, an odd number, of which the clamp leaves the first place.
            if far / range >= f64::from(i32::MAX) {
                return low;
            }
            let turned = far.rem_euclid(2.0 * range);
            low + turned.min(2.0 * range - turned)
        };
        let mut place = low + (coordinate + 1.0) / 2.0 * (high - low);
        if self.sampling == Sampling::Nearest {
            place = place.round_ties_even();
        }
        match self.outside {
            Outside::Zeros => {}
            Outside::Border if self.sampling == Sampling::Cubic => place = place.clamp(-BEYOND, last + BEYOND),
            Outside::Border => place = place.clamp(0.0, last),
            Outside::Reflection => place = mirrored(place),
        }
        let below = place.floor();
        let taps = match self.sampling {
            Sampling::Nearest => vec![(place.round_ties_even(), 1.0)],
            Sampling::Linear => vec![(below, 1.0 - (place - below)), (below + 1.0, place - below)],
            Sampling::Cubic => (-1..3)
                .map(|step| {
                    let tap = below + f64::from(step);
                    let d = (place - tap).abs();
                    let weight = if d <= 1.0 {
                        (CUBIC + 2.0) * d.powi(3) - (CUBIC + 3.0) * d.powi(2) + 1.0
                    } else {
                        CUBIC * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0)
                    };
                    (tap, weight)
                })
                .collect(),
        };
        let tap = |tap: f64| match self.outside {
            Outside::Zeros => (tap >= 0.0 && tap <= last).then_some(tap as i64),
            Outside::Border => Some(tap.clamp(0.0, last) as i64),
            Outside::Reflection => Some(mirrored(tap).clamp(0.0, last) as i64),
        };
        let weighed = taps.into_iter().map(|(at, weight)| match tap(at) {
            // Infinitely far outside the distances between neighbours are no numbers.
            None if !place.is_nan() => (None, 0.0),
            tap => (tap, weight),
        });
        weighed.collect()
    }

    /// A place brought within `x`, as the outside is made.
    fn brought_in<C: Calculator>(&self, calculator: C, place: C::Value, extent: C::Value) -> C::Value {
        let number = |value: f64| calculator.value(value);
        let (zero, last) = (number(0.0), extent - number(1.0));
        // A NaN, of which no comparison holds, stays; drivers that make a `min` and a `max` of these are kept from it.
        let clamp = |value: C::Value, low: C::Value, high: C::Value| {
            let within = calculator.pick(calculator.below(value, low), low, value);
            let within = calculator.pick(calculator.below(high, within), high, within);
            calculator.pick(calculator.is_nan(value), value, within)
        };
        match self.outside {
            Outside::Zeros => place,
            // The neighbours are brought in each, and keep their weights.
            Outside::Border if self.sampling == Sampling::Cubic => clamp(place, number(-BEYOND), last + number(BEYOND)),
            Outside::Border => clamp(place, zero, last),
            Outside::Reflection => {
                let (low, high) = match self.align_corners {
                    true => (zero, last),
                    false => (number(-0.5), last + number(0.5)),
                };
                let range = high - low;
                let far = calculator.math(Function::Abs, place - low, place);
                // Of no range, whatever is left is cut off at the end.
                let range_or_one = calculator.pick(calculator.below(zero, range), range, number(1.0));
                let turns = calculator.floor(far / range_or_one);
                let rest = far - calculator.of_index(turns) * range;
                let odd = calculator.equal(turns % calculator.constant(2), calculator.constant(1));
                clamp(calculator.pick(odd, high - rest, low + rest), low, high)
            }
        }
    }

    /// A position's place in `x`, and whether it has one, if it may have none.
    fn tap<C: Calculator>(&self, calculator: C, at: C::Index, extent: C::Index) -> (C::Index, Option<C::Truth>) {
        let one = calculator.constant(1);
        let last = extent - one;
        let place = match self.outside {
            Outside::Zeros => return (at, Some(calculator.within(at, extent))),
            Outside::Border => at,
            Outside::Reflection if self.align_corners => {
                let period = last + last;
                let place = calculator.modulo(at, period);
                calculator.minimum(place, period - place)
            }
            Outside::Reflection => {
                let period = extent + extent;
                let place = calculator.modulo(at, period);
                calculator.minimum(place, period - one - place)
            }
        };
        let place = calculator.maximum(calculator.minimum(place, last), calculator.constant(0));
        (place, None)
    }

    fn taps<C: Calculator>(&self, calculator: C, coordinate: C::Value, extent: C::Index) -> Vec<Tap<C>> {
        let number = |value: f64| calculator.value(value);
        let (one, half, length) = (number(1.0), number(0.5), calculator.of_index(extent));
        let place = match self.align_corners {
            true => (coordinate + one) * half * (length - one),
            false => ((coordinate + one) * length - one) * half,
        };
        let round = |value: C::Value| calculator.math(Function::Round, value, value);
        let place = if self.sampling == Sampling::Nearest { round(place) } else { place };
        let place = self.brought_in(calculator, place, length);
        let place = if self.sampling == Sampling::Nearest { round(place) } else { place };
        let below = calculator.floor(place);
        let part = place - calculator.of_index(below);
        let near = |d: C::Value| ((number(CUBIC + 2.0) * d - number(CUBIC + 3.0)) * d) * d + one;
        let far = |d: C::Value| number(CUBIC) * (((d - number(5.0)) * d + number(8.0)) * d - number(4.0));
        let taps = match self.sampling {
            Sampling::Nearest => vec![(0, one)],
            Sampling::Linear => vec![(0, one - part), (1, part)],
            Sampling::Cubic => {
                vec![(-1, far(one + part)), (0, near(part)), (1, near(one - part)), (2, far(number(2.0) - part))]
            }
        };
        // Of no number `below` is 0, and the nearest has a weight that is one.
        let nowhere = self.sampling == Sampling::Nearest && self.outside == Outside::Zeros;
        let taps = taps.into_iter().map(|(step, weight)| {
            let (at, there) = self.tap(calculator, below + calculator.constant(step), extent);
            let Some(mut inside) = there else { return Tap { place: at, weight, there } };
            if nowhere {
                inside = inside & !calculator.is_nan(place);
            }
            // Infinitely far outside the distances between neighbours are no numbers.
            let weight = calculator.pick(inside, weight, number(0.0));
            Tap { place: calculator.select(inside, at, calculator.constant(0)), weight, there: Some(inside) }
        });
        taps.collect()
    }
}

impl Computes for GridSample {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        Frame { numbers: inputs[0].shape[2..].to_vec(), ..Frame::default() }
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let spatial = given.numbers.len();
        let taps = given.numbers.iter().enumerate().map(|(axis, extent)| {
            let mut place = vec![given.at[0]];
            place.extend(&given.at[2..]);
            place.push(calculator.constant((spatial - 1 - axis) as i32));
            self.taps(calculator, calculator.read(1, &place), *extent)
        });
        let taps: Vec<_> = taps.collect();
        Made::Value(super::weighted(calculator, &taps, &given.at[..2]))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// `x` of `[batch, channels, spatial axes..]` at the places that `grid` of `[batch, places.., coordinates]` gives, as many axes of places and as many coordinates as `x` has
    /// spatial axes. The last axis's coordinate comes first; each goes from -1 to 1.
    ///
    /// # Errors
    /// The tensors are of no float type or of different ones, the shapes do not fit, or `x` has no elements along a spatial axis.
    pub fn grid_sample(&mut self, x: Tensor, grid: Tensor, how: GridSample) -> Result<Tensor, GraphError> {
        self.add_one(how, &[x, grid])
    }
}
