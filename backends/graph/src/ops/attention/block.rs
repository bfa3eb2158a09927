//! A whole attention block as a composition of ops: projections, norms of heads, rotations, keys and values of earlier positions, attention, and the projection of its result.

use super::{Attention, AttentionLayout, AttentionOperands};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::ops::norm::NormOperands;
use crate::ops::rope::{Pairs, Rope};
use crate::types::TensorType;
use trefoil_kernels::activation::Activation;

/// `x weight^T + bias`, with a weight of `[N, K]` as models store it.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct Linear<T = Tensor> {
    /// `[N, K]`
    pub weight: T,
    /// `[N]`
    pub bias: Option<T>,
}

/// How queries, keys and values are made of a sequence.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub enum Projections<T = Tensor> {
    /// By one product, whose columns are all queries' heads, then all keys', then all values'.
    Packed(Linear<T>),
    /// By a product each.
    Each {
        /// For queries.
        queries: Linear<T>,
        /// For keys.
        keys: Linear<T>,
        /// For values.
        values: Linear<T>,
        /// The sequence that keys and values are made of, `[batch, keys, width]`, if it is another one.
        from: Option<T>,
    },
}

/// RMS norms of each head of queries and of keys, before they are turned.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct HeadNorms<T = Tensor> {
    /// Scales queries, `[elements]`.
    pub queries: T,
    /// Scales keys, `[elements]`.
    pub keys: T,
    /// Added to the mean of squares.
    pub epsilon: f32,
}

/// How queries and keys are turned by their positions: as [`Graph::rope`] says.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Operands)]
pub struct Turns<T = Tensor> {
    /// The tables of the angles.
    pub tables: (T, T),
    /// The row of each position, if it is not its own number.
    pub positions: Option<T>,
    /// Which elements are turned together.
    pub pairs: Pairs,
    /// How many of a head's elements are turned.
    pub turned: usize,
}

/// Keys and values of earlier positions.
#[derive(Clone, Debug, trefoil_graph_macros::Operands)]
pub enum Past<T = Tensor> {
    /// As an earlier run gave them: keys and values, `[batch, earlier, key heads, elements]`.
    Given([T; 2]),
    /// In states, which take up those of this run too.
    States {
        /// `[batch, capacity, key heads, elements]`, of keys.
        keys: T,
        /// The same of values.
        values: T,
        /// How many positions came before this run: its own go behind them, and attention sees all up to the last of these.
        position: Dim,
    },
}

/// A block of attention.
#[derive(Clone, Debug, trefoil_graph_macros::Operands)]
pub struct AttentionBlock<T = Tensor> {
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Elements of a head.
    pub elements: usize,
    /// Of the layout [`AttentionLayout::Bshd`], as projections give heads.
    pub attention: Attention,
    /// Mask, bias, lengths and sinks.
    pub operands: AttentionOperands<T>,
    /// What makes queries, keys and values.
    pub projections: Projections<T>,
    /// Norms of heads.
    pub head_norms: Option<HeadNorms<T>>,
    /// Turns of queries and keys.
    pub turns: Option<Turns<T>>,
    /// Keys and values of earlier positions.
    pub past: Option<Past<T>>,
    /// Of all heads together.
    pub output: Linear<T>,
}

/// What a block of attention gives.
#[derive(Clone, Copy, Debug, trefoil_graph_macros::Results)]
pub struct Attended<T = Tensor> {
    /// `[batch, positions, width]`
    pub y: T,
    /// All keys, those of earlier positions first: the past of the next run. If they lie in a state, its newest version.
    pub keys: T,
    /// All values, likewise.
    pub values: T,
}

/// Refuses a tensor that is no `[batch, positions, width]`.
pub(super) fn expect_sequence(op: &str, input: &'static str, ty: &TensorType) -> Result<(), GraphError> {
    if ty.rank() == 3 {
        return Ok(());
    }
    let expected = "batch, positions and width".to_owned();
    Err(GraphError::Op { op: op.to_owned(), error: OpError::Shape { input, given: ty.to_string(), expected } })
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Attention of a sequence `x`, `[batch, positions, width]`, over itself, what came before it, or another sequence, with all that belongs to it: the products that make queries, keys and values, norms
    /// and turns of heads, earlier keys and values, and the product that makes the result.
    ///
    /// ```
    /// use trefoil_graph::ops::attention::*;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let shape = |extents: &[i64]| extents.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>();
    /// let x = g.input("x", ElementType::F32, shape(&[1, 5, 64]))?;
    /// // Four heads of queries and two of keys, of 16 elements.
    /// let qkv = g.param("qkv", ElementType::F32, shape(&[128, 64]))?;
    /// let output = g.param("output", ElementType::F32, shape(&[64, 64]))?;
    /// let block = AttentionBlock {
    ///     heads: 4,
    ///     key_heads: 2,
    ///     elements: 16,
    ///     attention: Attention { causal: true, ..Attention::new(AttentionLayout::Bshd, 0.25) },
    ///     operands: AttentionOperands::default(),
    ///     projections: Projections::Packed(Linear { weight: qkv, bias: None }),
    ///     head_norms: None,
    ///     turns: None,
    ///     past: None,
    ///     output: Linear { weight: output, bias: None },
    /// };
    /// let attended = g.attention_block(x, &block)?;
    /// assert_eq!(g.type_of(attended.y)?, g.type_of(x)?);
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An operand does not fit what the block says, or the attention's layout is another than [`AttentionLayout::Bshd`].
    pub fn attention_block(
        &mut self,
        x: Tensor,
        block: &AttentionBlock<Tensor>,
    ) -> Result<Attended<Tensor>, GraphError> {
        const OP: &str = "attention_block";
        let AttentionBlock { heads, key_heads, elements, attention, operands, head_norms, turns, .. } = *block;
        if attention.layout != AttentionLayout::Bshd {
            let given = format!("{:?}", attention.layout);
            let error = OpError::Attribute { attribute: "layout", given, expected: "Bshd".to_owned() };
            return Err(GraphError::Op { op: OP.to_owned(), error });
        }
        expect_sequence(OP, "x", self.operand(OP, x)?)?;
        let plain = |g: &mut Self, x, linear: Linear| g.linear(x, linear.weight, linear.bias, Activation::Identity);
        let [q, k, v] = match block.projections {
            Projections::Packed(all) => {
                let columns = [heads, key_heads, key_heads].map(|heads| heads.saturating_mul(elements));
                let parts = self.linear_split(x, all.weight, all.bias, &columns)?;
                [parts[0], parts[1], parts[2]]
            }
            Projections::Each { queries, keys, values, from } => {
                let from = from.unwrap_or(x);
                expect_sequence(OP, "from", self.operand(OP, from)?)?;
                [plain(self, x, queries)?, plain(self, from, keys)?, plain(self, from, values)?]
            }
        };
        let mut q = self.heads_of(q, heads, elements)?;
        let mut k = self.heads_of(k, key_heads, elements)?;
        let mut v = self.heads_of(v, key_heads, elements)?;
        if let Some(HeadNorms { queries, keys, epsilon }) = head_norms {
            let by = |gamma| NormOperands { gamma: Some(gamma), ..NormOperands::default() };
            q = self.rms_norm(q, &[-1], epsilon, by(queries))?;
            k = self.rms_norm(k, &[-1], epsilon, by(keys))?;
        }
        if let Some(Turns { tables: (cosines, sines), positions, pairs, turned }) = turns {
            let rope = Rope { layout: AttentionLayout::Bshd, pairs, turned };
            q = self.rope(q, cosines, sines, positions, rope)?;
            k = self.rope(k, cosines, sines, positions, rope)?;
        }
        let [mut keys, mut values] = [k, v];
        match &block.past {
            None => {}
            Some(Past::Given([earlier_keys, earlier_values])) => {
                (keys, values) = (self.concat(&[*earlier_keys, k], 1)?, self.concat(&[*earlier_values, v], 1)?);
                (k, v) = (keys, values);
            }
            Some(Past::States { keys: of_keys, values: of_values, position }) => {
                (keys, values) = (self.update(*of_keys, k, 1, position)?, self.update(*of_values, v, 1, position)?);
                // What lies behind the last position is not there yet; a run that goes beyond the state is refused.
                let seen = position.clone() + self.type_of(k)?.shape[1].clone();
                let seen = seen.minimum(&self.type_of(keys)?.shape[1]);
                (k, v) = (self.narrow(keys, 1, 0, seen.clone())?, self.narrow(values, 1, 0, seen)?);
            }
        }
        let y = self.attention(q, k, v, operands, attention)?;
        let mut shape = self.type_of(y)?.shape[..2].to_vec();
        shape.push(Dim::from(heads) * Dim::from(elements));
        let y = self.reshape(y, shape)?;
        Ok(Attended { y: plain(self, y, block.output)?, keys, values })
    }

    /// `[batch, positions, heads * elements]` as `[batch, positions, heads, elements]`.
    fn heads_of(&mut self, x: Tensor, heads: usize, elements: usize) -> Result<Tensor, GraphError> {
        let mut shape = self.type_of(x)?.shape[..2].to_vec();
        shape.extend([heads, elements].map(Dim::from));
        self.reshape(x, shape)
    }
}
