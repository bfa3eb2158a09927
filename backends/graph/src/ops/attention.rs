//! `attention(q, k, v, ..)`: softmax(q kᵀ · scale, capped, biased, of the keys that a query sees) v, head by head. How a device does it stands in `candidates`, what it
//! means in `reference`; what models make of it, whole blocks and layers, in `block` and `layer`.

mod block;
mod candidates;
#[cfg(feature = "cpu")]
mod host;
mod layer;
mod reference;

pub use self::block::{Attended, AttentionBlock, HeadNorms, Linear, Past, Projections, Turns};
pub use self::layer::{FeedForward, LayerNorm, Placement, TransformerLayer};
pub use trefoil_kernels::attention::plain::Scores;

use trefoil_kernels::attention::UNBOUNDED;

use super::support::{expect_element, expect_inputs, expect_shape, shape_error};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind, Slot};
use crate::types::{ElementType, TensorType};

use ElementType::{Bool, U32};

/// How queries, keys, values and the result are arranged. Operands are read by their strides: what is arranged otherwise, such as queries, keys and values in one tensor, or all heads of a position in one row, becomes one of these
/// by views (`narrow`, `reshape`, `transpose`) without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionLayout {
    /// `[batch, heads, positions, elements]`
    Bhsd,
    /// `[batch, positions, heads, elements]`
    Bshd,
}

/// Where the queries stand among the keys, which matters to causal attention and to windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queries {
    /// The last query stands at the last key; where there are lengths, at the last key that counts.
    Last,
    /// The first query stands at this key, up to 2^29 from the first: at 0 where both begin with the same position.
    From(i32),
}

/// The attributes of attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// How the operands and the result are arranged.
    pub layout: AttentionLayout,
    /// Multiplies the products of queries and keys.
    pub scale: f32,
    /// Whether a query sees no key behind its position.
    pub causal: bool,
    /// Where the queries stand.
    pub queries: Queries,
    /// How many keys before its position a query sees at most.
    pub left: Option<u32>,
    /// How many keys behind its position a query sees at most.
    pub right: Option<u32>,
    /// If it is given, scaled products become `cap * tanh(product / cap)`, before there is a bias.
    pub cap: Option<f32>,
}

impl Attention {
    /// Every query sees every key.
    pub const fn new(layout: AttentionLayout, scale: f32) -> Self {
        Self { layout, scale, causal: false, queries: Queries::Last, left: None, right: None, cap: None }
    }
}

/// The optional operands of attention.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct AttentionOperands<T = Tensor> {
    /// Whether a query may see a key; of bools, of a shape that broadcasts to `[batch, heads, queries, keys]`.
    pub mask: Option<T>,
    /// Added to the scores; of the queries' elements, of a shape that broadcasts likewise. Minus infinity hides a key.
    pub bias: Option<T>,
    /// How many keys of each batch count, the first ones; `[batch]`, of `u32`.
    pub lengths: Option<T>,
    /// For each head a score that takes its share of the weights but has no value; `[heads]`, of the queries' elements.
    pub sinks: Option<T>,
}

impl<T> Default for AttentionOperands<T> {
    fn default() -> Self {
        Self { mask: None, bias: None, lengths: None, sinks: None }
    }
}

/// Attention with some optional operands, which are its inputs behind q, k and v, in the order bias, lengths, sinks.
#[derive(Clone, Copy, Debug)]
pub struct Attend {
    /// The attributes.
    pub attention: Attention,
    /// Whether there is a bias.
    pub bias: bool,
    /// Whether there are lengths.
    pub lengths: bool,
    /// Whether there are sinks.
    pub sinks: bool,
    /// What is the second output, if there is one.
    pub scores: Scores,
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Attention of `q` over `k` and `v`, of floats, computed in `f32`, of `f64` in that.
    ///
    /// `q` is `[batch, heads, queries, elements]`, `k` `[batch, key heads, keys, elements]` and `v` `[batch, key heads, keys, value elements]`, or with positions before heads, as the layout says; the result is
    /// `[batch, heads, queries, value elements]` likewise. Heads of keys may be fewer, if they divide those of queries: as many in a row share one.
    ///
    /// A query sees the keys that neither causality nor the window nor lengths nor the mask nor a bias of minus infinity hide; one that sees no key gives zeros, and so does one whose scores are all NaN. Queries of a batch are computed together: the values of a key
    /// that is hidden from one of them by anything but lengths weigh 0 there, so that they must be finite, as infinity and NaN times 0 are NaN.
    ///
    /// ```
    /// use trefoil_graph::ops::{Attention, AttentionLayout, AttentionOperands};
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let shape = |heads: i64, positions: i64| [1, heads, positions, 64].map(Dim::from).to_vec();
    /// let q = g.input("q", ElementType::F16, shape(8, 5))?;
    /// let k = g.input("k", ElementType::F16, shape(2, 100))?;
    /// let v = g.input("v", ElementType::F16, shape(2, 100))?;
    /// // The last five positions of a hundred, each of which sees 32 before itself.
    /// let op = Attention { causal: true, left: Some(32), ..Attention::new(AttentionLayout::Bhsd, 0.125) };
    /// let y = g.attention(q, k, v, AttentionOperands::default(), op)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f16[1, 8, 5, 64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An operand has other elements than `q`, or the shapes do not fit each other; an attribute is out of range.
    pub fn attention(
        &mut self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        operands: AttentionOperands<Tensor>,
        attention: Attention,
    ) -> Result<Tensor, GraphError> {
        let (op, inputs) = self.attend([q, k, v], operands, attention, Scores::Nothing)?;
        self.add_one(op, &inputs)
    }

    /// As [`Graph::attention`], and what the scores are at a stage, `[batch, heads, queries, keys]`. It is slow: scores are for looking at.
    ///
    /// # Errors
    /// As [`Graph::attention`]; or the stage is [`Scores::Nothing`].
    pub fn attention_with_scores(
        &mut self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        operands: AttentionOperands<Tensor>,
        attention: Attention,
        scores: Scores,
    ) -> Result<(Tensor, Tensor), GraphError> {
        let (op, inputs) = self.attend([q, k, v], operands, attention, scores)?;
        match self.add_op(op, &inputs)?.as_slice() {
            [result, scores] => Ok((*result, *scores)),
            _ => {
                let expected = "a stage at which scores are given".to_owned();
                let error = OpError::Attribute { attribute: "scores", given: format!("{scores:?}"), expected };
                Err(GraphError::Op { op: "attention".to_owned(), error })
            }
        }
    }

    /// The op with its inputs; the mask goes into the bias.
    fn attend(
        &mut self,
        operands: [Tensor; 3],
        AttentionOperands { mask, bias, lengths, sinks }: AttentionOperands,
        attention: Attention,
        scores: Scores,
    ) -> Result<(Attend, Vec<Tensor>), GraphError> {
        let element = self.operand("attention", operands[0])?.element;
        let bias = match mask {
            Some(mask) if element.is_float() => {
                if self.operand("attention", mask)?.element != Bool {
                    let given = self.type_of(mask)?.element;
                    let expected = "bool (what is added to scores is the bias)".to_owned();
                    let error = OpError::ElementType { input: "mask", given, expected };
                    return Err(GraphError::Op { op: "attention".to_owned(), error });
                }
                let shown = match bias {
                    Some(bias) => bias,
                    None => self.scalar(0.0, element)?,
                };
                let hidden = self.scalar(f64::NEG_INFINITY, element)?;
                Some(self.where_(mask, shown, hidden)?)
            }
            _ => bias,
        };
        let op = Attend { attention, bias: bias.is_some(), lengths: lengths.is_some(), sinks: sinks.is_some(), scores };
        let inputs = operands.into_iter().chain([bias, lengths, sinks].into_iter().flatten()).collect();
        Ok((op, inputs))
    }
}

impl Attend {
    /// The axes of batch, head, position and element.
    const fn axes(&self) -> [usize; 4] {
        match self.attention.layout {
            AttentionLayout::Bhsd => [0, 1, 2, 3],
            AttentionLayout::Bshd => [0, 2, 1, 3],
        }
    }

    /// Extents as batch, heads, positions, elements.
    fn extents(&self, ty: &TensorType) -> [Dim; 4] {
        self.axes().map(|axis| ty.shape[axis].clone())
    }

    /// Where bias, lengths and sinks stand among the inputs.
    fn slots(&self) -> [Slot; 3] {
        let mut next = 3;
        [self.bias, self.lengths, self.sinks].map(|present| {
            if !present {
                return Slot::Empty;
            }
            next += 1;
            Slot::Input(next - 1)
        })
    }

    /// An optional input by its place among bias, lengths and sinks.
    fn optional<'a, T>(&self, inputs: &'a [T], which: usize) -> Option<&'a T> {
        match self.slots()[which] {
            Slot::Input(position) => inputs.get(position),
            _ => None,
        }
    }

    /// How many keys before and behind its position a query sees; [`UNBOUNDED`] stands for all.
    fn window(&self) -> [i64; 2] {
        let Attention { causal, left, right, .. } = self.attention;
        let right = if causal { Some(0) } else { right };
        [left, right].map(|bound| i64::from(bound.unwrap_or(UNBOUNDED).min(UNBOUNDED)))
    }

    fn attributes_in_range(&self) -> Result<(), OpError> {
        let refuse = |attribute, given: String, expected: &str| {
            Err(OpError::Attribute { attribute, given, expected: expected.to_owned() })
        };
        let Attention { scale, cap, queries, .. } = self.attention;
        if !scale.is_finite() {
            return refuse("scale", scale.to_string(), "a number");
        }
        if let Some(cap) = cap.filter(|cap| !cap.is_finite() || *cap <= 0.0) {
            return refuse("cap", cap.to_string(), "a positive number");
        }
        match queries {
            // The window, and which query it is, are added to it.
            Queries::From(first) if first.unsigned_abs() > 1 << 29 => {
                refuse("queries", first.to_string(), "a position no farther than 2^29")
            }
            _ => Ok(()),
        }
    }
}

impl Op for Attend {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let Attention { layout, scale, causal, queries, left, right, cap } = self.attention;
        vec![
            ("layout", format!("{layout:?}")),
            ("scale", format!("{scale:?}")),
            ("causal", causal.to_string()),
            ("queries", format!("{queries:?}")),
            ("left", format!("{left:?}")),
            ("right", format!("{right:?}")),
            ("cap", format!("{cap:?}")),
            ("bias", self.bias.to_string()),
            ("lengths", self.lengths.to_string()),
            ("sinks", self.sinks.to_string()),
            ("scores", format!("{:?}", self.scores)),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        self.attributes_in_range()?;
        let count = 3 + [self.bias, self.lengths, self.sinks].into_iter().filter(|there| *there).count();
        expect_inputs(inputs, count..=count)?;
        let element = inputs[0].element;
        if !element.is_float() {
            let expected = ElementType::list(ElementType::is_float);
            return Err(OpError::ElementType { input: "q", given: element, expected });
        }
        for (name, ty) in ["q", "k", "v"].into_iter().zip(inputs) {
            expect_element(name, ty, element)?;
            if ty.rank() != 4 {
                return Err(shape_error(name, ty, "batch, heads, positions and elements".to_owned()));
            }
        }
        let [batch, heads, queries, elements] = self.extents(&inputs[0]);
        let [k_batch, key_heads, keys, k_elements] = self.extents(&inputs[1]);
        if k_batch != batch || k_elements != elements {
            return Err(shape_error("k", &inputs[1], format!("batch {batch} and heads of {elements} elements, as q")));
        }
        let groups = heads.constant().zip(key_heads.constant()).is_some_and(|(q, k)| k > 0 && q % k == 0);
        if heads != key_heads && !groups {
            return Err(shape_error("k", &inputs[1], format!("a number of heads that divides q's {heads}")));
        }
        let [v_batch, v_heads, v_keys, v_elements] = self.extents(&inputs[2]);
        if [&v_batch, &v_heads, &v_keys] != [&batch, &key_heads, &keys] {
            return Err(shape_error("v", &inputs[2], format!("batch, heads and positions of k, {}", inputs[1])));
        }
        let scores = [batch.clone(), heads.clone(), queries, keys];
        if let Some(bias) = self.optional(inputs, 0) {
            expect_element("bias", bias, element)?;
            let offset = 4usize.checked_sub(bias.rank());
            let fits = offset.is_some_and(|offset| {
                bias.shape.iter().zip(&scores[offset..]).all(|(given, wanted)| given.is(1) || given == wanted)
            });
            if !fits {
                return Err(shape_error("bias", bias, format!("a shape that broadcasts to {scores:?}")));
            }
        }
        if let Some(lengths) = self.optional(inputs, 1) {
            expect_element("lengths", lengths, U32)?;
            expect_shape("lengths", lengths, &[batch])?;
        }
        if let Some(sinks) = self.optional(inputs, 2) {
            expect_element("sinks", sinks, element)?;
            expect_shape("sinks", sinks, &[heads])?;
        }
        let mut shape = inputs[0].shape.clone();
        shape[3] = v_elements;
        let mut outputs = vec![TensorType { element, shape }];
        if self.scores != Scores::Nothing {
            outputs.push(TensorType { element, shape: scores.to_vec() });
        }
        Ok(outputs)
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        reference::attention(self, inputs, outputs)
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim {
        let [.., keys, _] = self.extents(&inputs[1]);
        (inputs[0].elements() + outputs[0].elements()) * keys * 2
    }

    fn kind(&self) -> OpKind<'_> {
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "the host's is one more"))]
        let mut candidates = candidates::all(self);
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::Rows(*self)));
        OpKind::Kernels(candidates)
    }
}
