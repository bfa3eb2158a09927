//! Convolution and its transpose over any number of spatial axes: as a product (`tiled`, `host`), and element by element, of every type and on every device.

#[cfg(feature = "cpu")]
mod host;
mod shape;
mod tiled;

use super::{at, attribute_error, constants, each};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{Candidate, HostTensor, Op, OpError, OpKind};
use crate::ops::activation::{FAR, activated, expect_known};
use crate::ops::support::{expect_element, expect_inputs, expect_one_of, expect_shape, shape_error, symbols_of};
use crate::pull::{Calculator, Computes, Frame, Function, Given, Made, Pull};
use crate::types::{ElementType, TensorType};
use trefoil_kernels::activation::Activation;

/// How a kernel moves along a spatial axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slide {
    /// From one place of the kernel to the next. Of the transpose: of its result.
    pub stride: Dim,
    /// From one element of the kernel to the next.
    pub dilation: Dim,
    /// Zeros in front of the input and behind it. Of the transpose: elements of the result that are left out.
    pub padding: [Dim; 2],
    /// Of the transpose alone: elements that the result has more at its end.
    pub output_padding: Dim,
}

impl Default for Slide {
    /// By one element, without padding.
    fn default() -> Self {
        let [zero, one] = [Dim::from(0i64), Dim::from(1i64)];
        Self { stride: one.clone(), dilation: one, padding: [zero.clone(), zero.clone()], output_padding: zero }
    }
}

/// A convolution of `[batch, channels, ..]` with a weight of `[outputs, channels / groups, ..]`; of the transpose the weight is `[channels, outputs / groups, ..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Whether it is the transpose, which is the gradient of a convolution by its input.
    pub transposed: bool,
    /// One for each spatial axis.
    pub slides: Vec<Slide>,
    /// Into how many parts channels and outputs are divided, which have nothing to do with each other.
    pub groups: Dim,
    /// Whether there is a third input, `[outputs]`, that is added.
    pub bias: bool,
    /// Applied to each element last.
    pub activation: Activation,
}

/// Numbers of a frame before those of the axes: channels and outputs of a group.
const GROUP_NUMBERS: usize = 2;
/// The numbers of an axis: its extent, the kernel's, stride, dilation, padding in front.
const NUMBERS: usize = 5;

impl Convolution {
    /// The kernel's extents.
    fn sizes<'t>(&self, weight: &'t TensorType) -> &'t [Dim] {
        &weight.shape[2..]
    }

    /// Channels of a group, and its outputs.
    fn of_group(&self, weight: &TensorType, x: &TensorType) -> [Dim; 2] {
        let per = |all: &Dim| all.quotient(&self.groups);
        if self.transposed {
            [per(&x.shape[1]), weight.shape[1].clone()]
        } else {
            [weight.shape[1].clone(), per(&weight.shape[0])]
        }
    }

    /// The extent of the result along an axis.
    fn extent(&self, slide: &Slide, extent: &Dim, size: &Dim) -> Dim {
        let Slide { stride, dilation, padding: [front, behind], output_padding } = slide;
        let reach = (size - 1i64) * dilation;
        let padding = front + behind;
        if self.transposed {
            return (extent - 1i64) * stride + reach + 1i64 + output_padding - padding;
        }
        (extent + padding - reach - 1i64).quotient(stride) + 1i64
    }

    fn check(&self, slide: &Slide) -> Result<(), OpError> {
        let Slide { stride, dilation, padding, output_padding } = slide;
        let wrong = |expected: &str| Err(attribute_error("slides", format!("{slide:?}"), expected));
        if [stride, dilation].iter().any(|number| number.bounds().0 < 1) {
            return wrong("a stride and a dilation of at least 1");
        }
        if padding.iter().chain([output_padding]).any(|number| number.bounds().0 < 0) {
            return wrong("padding that is not negative");
        }
        if !self.transposed && !output_padding.is(0) {
            return wrong("no output padding, which the transpose alone has");
        }
        Ok(())
    }
}

impl Op for Convolution {
    fn name(&self) -> &'static str {
        if self.transposed { "conv_transpose" } else { "conv" }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slides", format!("{:?}", self.slides)),
            ("groups", self.groups.to_string()),
            ("bias", self.bias.to_string()),
            ("activation", format!("{:?}", self.activation)),
        ]
    }

    fn symbols(&self) -> Vec<Symbol> {
        let of_slides = self.slides.iter().flat_map(|slide| {
            let Slide { stride, dilation, padding: [front, behind], output_padding } = slide;
            [stride, dilation, front, behind, output_padding]
        });
        symbols_of(of_slides.chain([&self.groups]))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = 2 + usize::from(self.bias);
        expect_inputs(inputs, count..=count)?;
        let (x, weight) = (&inputs[0], &inputs[1]);
        // Narrow integers would wrap at once.
        let known = |element: ElementType| element.is_float() || element.is_integer() && element.scalar().bits() >= 32;
        expect_one_of("x", x, known)?;
        expect_known(self.activation, x.element)?;
        expect_element("weight", weight, x.element)?;
        let rank = 2 + self.slides.len();
        for (name, ty) in [("x", x), ("weight", weight)] {
            if ty.rank() != rank {
                return Err(shape_error(name, ty, format!("{rank} axes, two and one for each slide")));
            }
        }
        if self.groups.bounds().0 < 1 {
            return Err(attribute_error("groups", &self.groups, "at least 1"));
        }
        let [channels, outputs] = self.of_group(weight, x);
        let outputs = outputs * self.groups.clone();
        let (all, per) =
            if self.transposed { (&weight.shape[0], &x.shape[1]) } else { (&x.shape[1], &weight.shape[0]) };
        let is_whole = per.clone() == per.quotient(&self.groups) * self.groups.clone();
        if channels * self.groups.clone() != *all || !is_whole {
            let expected = format!("channels and outputs of {} groups, for x of {x}", self.groups);
            return Err(shape_error("weight", weight, expected));
        }
        if self.bias {
            expect_element("bias", &inputs[2], x.element)?;
            expect_shape("bias", &inputs[2], std::slice::from_ref(&outputs))?;
        }
        let mut shape = vec![x.shape[0].clone(), outputs];
        for ((slide, extent), size) in self.slides.iter().zip(&x.shape[2..]).zip(self.sizes(weight)) {
            self.check(slide)?;
            let reach = (size - 1i64) * &slide.dilation + 1i64;
            let room = extent + &slide.padding[0] + &slide.padding[1] - reach;
            let extent = self.extent(slide, extent, size);
            let fits = self.transposed || room.bounds().0 >= 0;
            if !fits || extent.bounds().0 < 0 || size.bounds().0 < 1 {
                return Err(shape_error("weight", weight, format!("a kernel that x, {x}, holds with its padding")));
            }
            shape.push(extent);
        }
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, weight) = (&inputs[0], &inputs[1]);
        let slides = self.slides.iter().map(|Slide { stride, dilation, padding: [front, _], .. }| {
            constants([stride, dilation, front]).and_then(|known| <[i64; 3]>::try_from(known).ok())
        });
        let (Some(groups), Some(slides)) = (self.groups.constant(), slides.collect::<Option<Vec<_>>>()) else {
            return Vec::new();
        };
        let channels = x.shape[1] as i64 / groups;
        let per_group = outputs[0][1] as i64 / groups;
        each(&outputs[0], |position| {
            let (group, output) = (position[1] / per_group, position[1] % per_group);
            let mut sum = if self.bias { inputs[2].values[position[1] as usize] } else { 0.0 };
            for channel in 0..channels {
                each(&weight.shape[2..], |within| {
                    let mut source = vec![position[0], group * channels + channel];
                    for (axis, [stride, dilation, front]) in slides.iter().enumerate() {
                        let step = within[axis] * dilation;
                        let place = position[2 + axis];
                        source.push(match self.transposed {
                            false => place * stride + step - front,
                            // Nowhere, if it is between two elements.
                            true if (place + front - step) % stride != 0 => -1,
                            true => (place + front - step) / stride,
                        });
                    }
                    let in_weight = match self.transposed {
                        false => [position[1], channel],
                        true => [group * channels + channel, output],
                    };
                    let of_weight = at(weight, &[&in_weight[..], within].concat()).unwrap_or(f64::NAN);
                    sum += at(x, &source).map_or(0.0, |x| x * of_weight);
                    0.0
                });
            }
            activated(sum, self.activation)
        })
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim {
        let weight = &inputs[1];
        let of_kernel = self.sizes(weight).iter().fold(weight.shape[1].clone(), |count, size| count * size.clone());
        let elements = if self.transposed { inputs[0].elements() } else { outputs[0].elements() };
        elements * of_kernel * 2i64
    }

    fn kind(&self) -> OpKind<'_> {
        let tiled = [128, 64].map(|rows| Box::new(tiled::Tiled { op: self, rows }) as Box<dyn Candidate>);
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "nothing is added"))]
        let mut candidates = Vec::from(tiled);
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::LaidOut(self)));
        OpKind::Pull(Pull::computes(self).unless(candidates))
    }
}

/// Where a sum stands: the coordinates of x and of the weight so far, and whether the former are within x.
struct Place<'a, C: Calculator> {
    in_x: &'a [C::Index],
    in_weight: &'a [C::Index],
    inside: C::Truth,
}

impl Convolution {
    /// `sum` with the products of all of the kernel's elements along the axes from that on which `place` ends.
    fn over<C: Calculator>(
        &self,
        calculator: C,
        given: Given<'_, C::Index>,
        place: &Place<'_, C>,
        sum: C::Value,
    ) -> C::Value {
        let axis = place.in_x.len();
        if axis == given.at.len() {
            let nothing = calculator.value(0.0);
            let x = calculator.choose(place.inside, || calculator.read(0, place.in_x), || nothing);
            return sum + x * calculator.read(1, place.in_weight);
        }
        let [extent, size, stride, dilation, front] =
            std::array::from_fn(|number| given.numbers[GROUP_NUMBERS + (axis - 2) * NUMBERS + number]);
        let ([sum], []) = calculator.repeat(size, [sum], [], |step, [sum], []| {
            let (here, inside) = if self.transposed {
                let apart = given.at[axis] + front - step * dilation;
                let between = apart % stride;
                let is_element = calculator.equal(between, calculator.constant(0));
                (apart / stride, is_element & calculator.within(apart, extent * stride))
            } else {
                let here = given.at[axis] * stride + step * dilation - front;
                (here, calculator.within(here, extent))
            };
            let place = Place {
                in_x: &[place.in_x, &[here]].concat(),
                in_weight: &[place.in_weight, &[step]].concat(),
                inside: place.inside & inside,
            };
            ([self.over(calculator, given, &place, sum)], [])
        });
        sum
    }
}

impl Computes for Convolution {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let (x, weight) = (&inputs[0], &inputs[1]);
        let mut numbers = self.of_group(weight, x).to_vec();
        for ((slide, extent), size) in self.slides.iter().zip(&x.shape[2..]).zip(self.sizes(weight)) {
            let Slide { stride, dilation, padding: [front, _], .. } = slide.clone();
            numbers.extend([extent.clone(), size.clone(), stride, dilation, front]);
        }
        Frame { numbers, ..Frame::default() }
    }

    fn computes_in(&self, inputs: &[TensorType], _: &TensorType) -> ElementType {
        inputs[0].element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let [channels, outputs] = [given.numbers[0], given.numbers[1]];
        let (batch, output) = (given.at[0], given.at[1]);
        let group = output / outputs;
        let start = if self.bias { calculator.read(2, &[output]) } else { calculator.value(0.0) };
        let zero = calculator.constant(0);
        let ([sum], []) = calculator.repeat(channels, [start], [], |channel, [sum], []| {
            let in_all = group * channels + channel;
            let in_weight = if self.transposed { [in_all, output - group * outputs] } else { [output, channel] };
            let place = Place { in_x: &[batch, in_all], in_weight: &in_weight, inside: calculator.equal(zero, zero) };
            ([self.over(calculator, given, &place, sum)], [])
        });
        Made::Value(activate(calculator, sum, self.activation))
    }
}

/// `activation` of `x`.
fn activate<C: Calculator>(calculator: C, x: C::Value, activation: Activation) -> C::Value {
    let number = |value| calculator.value(value);
    let of = |function, x| calculator.math(function, x, x);
    // 1 + e^-x
    let decay = || number(1.0) + of(Function::Exp, number(0.0) - x);
    let bounded = || calculator.pick(calculator.below(x, number(FAR)), number(FAR), x);
    match activation {
        Activation::Identity => x,
        // A NaN is not below zero, and stays.
        Activation::Relu => calculator.pick(calculator.below(x, number(0.0)), number(0.0), x),
        Activation::Gelu => {
            let share = number(1.0) + of(Function::Erf, x * number(std::f64::consts::FRAC_1_SQRT_2));
            number(0.5) * bounded() * share
        }
        Activation::Silu => bounded() / decay(),
        Activation::Tanh => of(Function::Tanh, x),
        Activation::Sigmoid => number(1.0) / decay(),
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// The convolution of `x`, `[batch, channels, ..]`, with `weight`, `[outputs, channels / groups, ..]`, over as many spatial axes as there are slides, plus a
    /// bias of `[outputs]`, with an activation applied to each element last. As in neural networks the kernel is not turned around. What lies
    /// outside of `x` counts as zeros, by which weights are multiplied too: they must be finite, as infinity and NaN times 0 are NaN.
    ///
    /// ```
    /// use trefoil_graph::ops::{Activation, Slide};
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [1, 16, 32, 32])?;
    /// let weight = g.input("weight", ElementType::F32, [24, 16, 3, 3])?;
    /// let slide = Slide { padding: [Dim::from(1), Dim::from(1)], ..Slide::default() };
    /// let y = g.conv(x, weight, None, &[slide.clone(), slide], 1, Activation::Relu)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[1, 24, 32, 32]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The operands differ in type, are neither floats nor 32-bit integers, or do not fit each other; the activation is not known of them, as of integers; the kernel does not fit into x; or a slide makes no sense.
    pub fn conv(
        &mut self,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
        slides: &[Slide],
        groups: impl Into<Dim>,
        activation: Activation,
    ) -> Result<Tensor, GraphError> {
        let op = Convolution {
            transposed: false,
            slides: slides.to_vec(),
            groups: groups.into(),
            bias: bias.is_some(),
            activation,
        };
        self.convolution(op, x, weight, bias)
    }

    /// The transpose of a convolution: `x`, `[batch, channels, ..]`, is spread by `weight`, `[channels, outputs / groups, ..]`, which must be finite as there.
    ///
    /// # Errors
    /// As [`Graph::conv`].
    pub fn conv_transpose(
        &mut self,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
        slides: &[Slide],
        groups: impl Into<Dim>,
        activation: Activation,
    ) -> Result<Tensor, GraphError> {
        let op = Convolution {
            transposed: true,
            slides: slides.to_vec(),
            groups: groups.into(),
            bias: bias.is_some(),
            activation,
        };
        self.convolution(op, x, weight, bias)
    }

    fn convolution(
        &mut self,
        op: Convolution,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        let inputs: Vec<_> = [x, weight].into_iter().chain(bias).collect();
        self.add_one(op, &inputs)
    }
}
