//! The methods of [`Graph`] that normalise.

use super::{Norm, NormKind, Softmax, expect_epsilon};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::types::{ElementType, TensorType};

/// The optional operands of norms.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct NormOperands<T = Tensor> {
    /// Added to x first; of x's type.
    pub residual: Option<T>,
    /// Added to x first; of x's element type, and of a shape that broadcasts to x's.
    pub bias: Option<T>,
    /// Scales the result; of x's element type or `f32`, and of a shape that broadcasts to x's.
    pub gamma: Option<T>,
    /// Shifts the result; of gamma's type.
    pub beta: Option<T>,
}

impl<T> Default for NormOperands<T> {
    fn default() -> Self {
        Self { residual: None, bias: None, gamma: None, beta: None }
    }
}

/// What a norm gives with its moments.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Results)]
pub struct Normed<T = Tensor> {
    /// The result, of x's type.
    pub y: T,
    /// The mean of each row, of x's shape with extents of 1 along the axes; `f32`, of `f64` that.
    pub mean: T,
    /// What each row was scaled by: one over its deviation; as `mean`.
    pub inverse_deviation: T,
}

/// The moments of channels that a batch norm goes by; both of one extent, that of the channels.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct BatchMoments<T = Tensor> {
    /// The mean of each channel.
    pub mean: T,
    /// The variance of each channel.
    pub variance: T,
}

/// What a norm is asked for besides its result.
#[derive(Clone, Copy, Default)]
struct Wants {
    sum: bool,
    moments: bool,
}

fn refused(op: &str, error: OpError) -> GraphError {
    GraphError::Op { op: op.to_owned(), error }
}

/// The norms of rows.
///
/// A row is what a tensor has along the named axes together. Everything is computed in `f32`, of `f64` in that, and rounded once. Mean and variance are computed without the cancellation
/// that a mean far from 0 would bring.
///
/// ```
/// use trefoil_graph::ops::norm::NormOperands;
/// use trefoil_graph::{Dim, ElementType, Graph};
///
/// let mut g = Graph::new();
/// let x = g.input("x", ElementType::F16, vec![Dim::from(8usize), Dim::from(768usize)])?;
/// let skipped = g.input("skipped", ElementType::F16, vec![Dim::from(8usize), Dim::from(768usize)])?;
/// let gamma = g.param("gamma", ElementType::F32, vec![Dim::from(768usize)])?;
/// let operands = NormOperands { residual: Some(skipped), gamma: Some(gamma), ..NormOperands::default() };
/// // The sum goes on to the next layer.
/// let (y, sum) = g.rms_norm_and_sum(x, &[-1], 1e-6, operands)?;
/// assert_eq!(g.type_of(y)?, g.type_of(sum)?);
/// # Ok::<(), trefoil_graph::graph::GraphError>(())
/// ```
#[trefoil_graph_macros::eager]
impl Graph {
    /// exp(x - max x) / Σ exp(x - max x) along `axis` (negative counts from the last). A NaN makes its row NaN, as does a row of nothing but -∞.
    ///
    /// # Errors
    /// The tensor is no float, or has no such axis.
    pub fn softmax(&mut self, x: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axes = self.axes("softmax", x, &[axis])?;
        self.add_one(Softmax { axes, logarithm: false }, &[x])
    }

    /// The logarithm of [`Graph::softmax`], x - max x - ln Σ exp(x - max x), which is exact where softmax would be 0.
    ///
    /// # Errors
    /// As [`Graph::softmax`].
    pub fn log_softmax(&mut self, x: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axes = self.axes("log_softmax", x, &[axis])?;
        self.add_one(Softmax { axes, logarithm: true }, &[x])
    }

    /// (v - mean v) / √(mean (v - mean v)² + ε) * gamma + beta over some axes together, for v = x + residual + bias. With an ε of 0 a row that does not deviate from its mean is 0 before gamma.
    ///
    /// # Errors
    /// x is no float, ε is negative, there are no such axes, or an operand's type or shape is not what [`NormOperands`] says; vectors that are of several shapes.
    pub fn layer_norm(
        &mut self,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands<Tensor>,
    ) -> Result<Tensor, GraphError> {
        Ok(self.norm(NormKind::Layer, x, axes, epsilon, operands, Wants::default())?[0])
    }

    /// v / √(mean v² + ε) * gamma + beta over some axes together, for v = x + residual + bias. The sum of the squares is not scaled, and must be a number of what is computed in. With an ε of 0 a row of zeros is 0 before gamma.
    ///
    /// # Errors
    /// As [`Graph::layer_norm`].
    pub fn rms_norm(
        &mut self,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands<Tensor>,
    ) -> Result<Tensor, GraphError> {
        Ok(self.norm(NormKind::Rms, x, axes, epsilon, operands, Wants::default())?[0])
    }

    /// [`Graph::layer_norm`], and x + residual + bias beside it.
    ///
    /// # Errors
    /// As [`Graph::layer_norm`].
    pub fn layer_norm_and_sum(
        &mut self,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands<Tensor>,
    ) -> Result<(Tensor, Tensor), GraphError> {
        let outputs =
            self.norm(NormKind::Layer, x, axes, epsilon, operands, Wants { sum: true, ..Wants::default() })?;
        Ok((outputs[0], outputs[1]))
    }

    /// [`Graph::rms_norm`], and x + residual + bias beside it.
    ///
    /// # Errors
    /// As [`Graph::layer_norm`].
    pub fn rms_norm_and_sum(
        &mut self,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands<Tensor>,
    ) -> Result<(Tensor, Tensor), GraphError> {
        let outputs = self.norm(NormKind::Rms, x, axes, epsilon, operands, Wants { sum: true, ..Wants::default() })?;
        Ok((outputs[0], outputs[1]))
    }

    /// [`Graph::layer_norm`], with each row's mean and what it was scaled by.
    ///
    /// # Errors
    /// As [`Graph::layer_norm`].
    pub fn layer_norm_and_moments(
        &mut self,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands<Tensor>,
    ) -> Result<Normed<Tensor>, GraphError> {
        let outputs =
            self.norm(NormKind::Layer, x, axes, epsilon, operands, Wants { moments: true, ..Wants::default() })?;
        let known = self.axes("layer_norm", x, axes)?;
        let extents = self.type_of(x)?.shape.iter().cloned().enumerate();
        let shape: Vec<Dim> =
            extents.map(|(axis, extent)| if known.contains(&axis) { Dim::from(1i64) } else { extent }).collect();
        let mut part = |which: i64| {
            let part = self.narrow(outputs[1], -1, which, 1i64)?;
            self.reshape(part, shape.clone())
        };
        Ok(Normed { y: outputs[0], mean: part(0)?, inverse_deviation: part(1)? })
    }

    /// x / max(√Σ x², ε) over some axes together: rows of length 1, but for those that are zeros and stay so. The sum of the squares is not scaled, and must be a number of
    /// what is computed in.
    ///
    /// # Errors
    /// x is no float, ε is negative, or there are no such axes.
    pub fn l2_normalise(&mut self, x: Tensor, axes: &[isize], epsilon: f32) -> Result<Tensor, GraphError> {
        Ok(self.norm(NormKind::Length, x, axes, epsilon, NormOperands::default(), Wants::default())?[0])
    }

    /// x / max(Σ |x|, ε) over some axes together.
    ///
    /// # Errors
    /// x is no float, ε is not above 0, or there are no such axes.
    pub fn l1_normalise(&mut self, x: Tensor, axes: &[isize], epsilon: f32) -> Result<Tensor, GraphError> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            let expected = "a number above 0".to_owned();
            let error = OpError::Attribute { attribute: "epsilon", given: epsilon.to_string(), expected };
            return Err(refused("l1_normalise", error));
        }
        let element = self.operand("l1_normalise", x)?.element;
        // What takes a sum takes no bf16, and halves overflow sooner.
        let is_half = matches!(element, ElementType::F16 | ElementType::BF16);
        let wide = if is_half { self.as_element(x, ElementType::F32)? } else { x };
        let sum = self.l1(wide, axes, true)?;
        let sum = self.clamp(sum, epsilon, f32::INFINITY)?;
        let y = self.div(wide, sum)?;
        self.as_element(y, element)
    }

    /// [`Graph::layer_norm`] over the channels of `[N, C, H, W]`, with a gamma and a beta for each channel.
    ///
    /// # Errors
    /// x has not four axes, or as [`Graph::layer_norm`].
    pub fn layer_norm_2d(
        &mut self,
        x: Tensor,
        epsilon: f32,
        gamma: Option<Tensor>,
        beta: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        let ty = self.operand("layer_norm_2d", x)?.clone();
        if ty.rank() != 4 {
            let error = OpError::Shape { input: "x", given: ty.to_string(), expected: "[N, C, H, W]".to_owned() };
            return Err(refused("layer_norm_2d", error));
        }
        let operands = self.of_channels("layer_norm_2d", &ty, gamma, beta)?;
        self.layer_norm(x, &[1], epsilon, operands)
    }

    /// [`Graph::layer_norm`] over everything but the batch and the channels of `[N, C, ..]`, with a gamma and a beta for each channel.
    ///
    /// # Errors
    /// x has no channels, or as [`Graph::layer_norm`].
    pub fn instance_norm(
        &mut self,
        x: Tensor,
        epsilon: f32,
        gamma: Option<Tensor>,
        beta: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        let ty = self.operand("instance_norm", x)?.clone();
        let operands = self.of_channels("instance_norm", &ty, gamma, beta)?;
        let axes: Vec<isize> = (2..ty.rank().cast_signed()).collect();
        self.layer_norm(x, &axes, epsilon, operands)
    }

    /// [`Graph::layer_norm`] over everything but the batch of each of `groups` groups of channels of `[N, C, ..]` that follow on each other, with a gamma and a beta for each channel.
    ///
    /// # Errors
    /// x has no channels, their number is no multiple of `groups`, or as [`Graph::layer_norm`].
    pub fn group_norm(
        &mut self,
        x: Tensor,
        groups: usize,
        epsilon: f32,
        gamma: Option<Tensor>,
        beta: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        const NAME: &str = "group_norm";
        let ty = self.operand(NAME, x)?.clone();
        let channels = channels(NAME, &ty)?;
        let of = i64::try_from(groups).unwrap_or(i64::MAX);
        if !channels.divides_evenly(of) {
            let expected = format!("a divisor of {channels}, the channels of {ty}");
            let error = OpError::Attribute { attribute: "groups", given: groups.to_string(), expected };
            return Err(refused(NAME, error));
        }
        let each = channels.quotient(&Dim::from(groups));
        let mut shape = vec![ty.shape[0].clone(), Dim::from(groups), each.clone()];
        shape.extend(ty.shape[2..].iter().cloned());
        // Checked as vectors of channels before they are cut in groups.
        let NormOperands { gamma, beta, .. } = self.of_channels(NAME, &ty, gamma, beta)?;
        let mut vector = vec![Dim::from(groups), each];
        vector.resize(shape.len() - 1, Dim::from(1i64));
        let cut = |graph: &mut Self, operand: Option<Tensor>| {
            operand.map(|operand| graph.reshape(operand, vector.clone())).transpose()
        };
        let (gamma, beta) = (cut(self, gamma)?, cut(self, beta)?);
        let axes: Vec<isize> = (2..shape.len().cast_signed()).collect();
        let grouped = self.reshape(x, shape)?;
        let operands = NormOperands { gamma, beta, ..NormOperands::default() };
        let y = self.layer_norm(grouped, &axes, epsilon, operands)?;
        self.reshape(y, ty.shape)
    }

    /// (x - mean) / √(variance + ε) * gamma + beta for each channel of `[N, C, ..]`, by moments that are given: what a batch norm does once it is trained. It is a map, and fuses with others.
    /// All operands are of x's type or `f32`; what is computed in `f32` is rounded once.
    ///
    /// # Errors
    /// x is no float or has no channels, an operand is not of the channels' extent, or epsilon is negative, infinite or no number.
    pub fn batch_norm(
        &mut self,
        x: Tensor,
        moments: BatchMoments<Tensor>,
        epsilon: f32,
        gamma: Option<Tensor>,
        beta: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        const NAME: &str = "batch_norm";
        let ty = self.operand(NAME, x)?.clone();
        let wide = if ty.element == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
        if !ty.element.is_float() {
            let expected = format!("a float ({}; `cast` converts)", ElementType::list(ElementType::is_float));
            return Err(refused(NAME, OpError::ElementType { input: "x", given: ty.element, expected }));
        }
        expect_epsilon(epsilon).map_err(|error| refused(NAME, error))?;
        let of = |graph: &mut Self, name, operand| {
            let vector = graph.of_channel(NAME, name, &ty, operand)?;
            graph.as_element(vector, wide)
        };
        let (mean, variance) = (of(self, "mean", moments.mean)?, of(self, "variance", moments.variance)?);
        let shifted = self.affine(variance, 1.0, epsilon)?;
        let mut factor = self.rsqrt(shifted)?;
        if let Some(gamma) = gamma {
            let gamma = of(self, "gamma", gamma)?;
            factor = self.mul(factor, gamma)?;
        }
        let wide_x = self.as_element(x, wide)?;
        let centred = self.sub(wide_x, mean)?;
        let mut y = self.mul(centred, factor)?;
        if let Some(beta) = beta {
            let beta = of(self, "beta", beta)?;
            y = self.add(y, beta)?;
        }
        self.as_element(y, ty.element)
    }

    fn norm(
        &mut self,
        kind: NormKind,
        x: Tensor,
        axes: &[isize],
        epsilon: f32,
        operands: NormOperands,
        wants: Wants,
    ) -> Result<Vec<Tensor>, GraphError> {
        let op = Norm {
            kind,
            axes: Vec::new(),
            epsilon,
            residual: operands.residual.is_some(),
            bias: operands.bias.is_some(),
            gamma: operands.gamma.is_some(),
            beta: operands.beta.is_some(),
            wants_sum: wants.sum,
            wants_moments: wants.moments,
        };
        let axes = self.axes(crate::op::Op::name(&op), x, axes)?;
        // Kernels for doubles take doubles; every single is one.
        let double = self.type_of(x)?.element == ElementType::F64;
        let widened = |graph: &mut Self, operand: Option<Tensor>| match operand {
            Some(operand) if double && graph.type_of(operand)?.element == ElementType::F32 => {
                graph.as_element(operand, ElementType::F64).map(Some)
            }
            other => Ok(other),
        };
        let (gamma, beta) = (widened(self, operands.gamma)?, widened(self, operands.beta)?);
        let inputs = [Some(x), operands.residual, operands.bias, gamma, beta];
        let inputs: Vec<Tensor> = inputs.into_iter().flatten().collect();
        self.add_op(Norm { axes, ..op }, &inputs)
    }

    /// A gamma and a beta for each channel, which is axis 1.
    fn of_channels(
        &mut self,
        op: &str,
        x: &TensorType,
        gamma: Option<Tensor>,
        beta: Option<Tensor>,
    ) -> Result<NormOperands, GraphError> {
        channels(op, x)?;
        let gamma = gamma.map(|gamma| self.of_channel(op, "gamma", x, gamma)).transpose()?;
        let beta = beta.map(|beta| self.of_channel(op, "beta", x, beta)).transpose()?;
        Ok(NormOperands { gamma, beta, ..NormOperands::default() })
    }

    /// A vector of an element for each channel, as `[C, 1, ..]`.
    fn of_channel(
        &mut self,
        op: &str,
        name: &'static str,
        x: &TensorType,
        operand: Tensor,
    ) -> Result<Tensor, GraphError> {
        let channels = channels(op, x)?;
        let ty = self.operand(op, operand)?.clone();
        if ty.shape != [channels.clone()] {
            let expected = format!("{}[{channels}], one for each channel of {x}", ty.element);
            return Err(refused(op, OpError::Shape { input: name, given: ty.to_string(), expected }));
        }
        if ty.element != x.element && ty.element != ElementType::F32 {
            let expected = format!("{0} or f32, as x is {0} (`cast` converts)", x.element);
            return Err(refused(op, OpError::ElementType { input: name, given: ty.element, expected }));
        }
        let mut shape = vec![channels];
        shape.resize(x.rank() - 1, Dim::from(1i64));
        self.reshape(operand, shape)
    }
}

/// How many channels there are.
fn channels(op: &str, x: &TensorType) -> Result<Dim, GraphError> {
    x.shape.get(1).cloned().ok_or_else(|| {
        let expected = "[N, C, ..], with channels".to_owned();
        refused(op, OpError::Shape { input: "x", given: x.to_string(), expected })
    })
}
