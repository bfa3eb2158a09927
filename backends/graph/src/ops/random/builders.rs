//! The methods of [`Graph`] that add random numbers and what is made of them.

use super::{Distribution, Random};
use crate::graph::{Graph, GraphError, SEED, SEED_WORDS, Tensor};
use crate::op::{Op, OpError};
use crate::ops::support::expect_one_of;
use crate::types::{ElementType, IntoShape, TensorType};

#[trefoil_graph_macros::eager]
impl Graph {
    /// Adds random numbers of the graph's seed and a stream of their own.
    fn random(
        &mut self,
        distribution: Distribution,
        element: ElementType,
        shape: impl IntoShape,
    ) -> Result<Tensor, GraphError> {
        let mut op = Random { distribution, stream: 0, ty: TensorType { element, shape: shape.into_shape() } };
        // Before the graph gets a seed and gives a stream away: what is refused leaves it as it was.
        let seed = TensorType::new(ElementType::U32, [SEED_WORDS]);
        op.infer(std::slice::from_ref(&seed))
            .map_err(|error| GraphError::Op { op: format!("{}({SEED}: {seed})", op.name()), error })?;
        let seed = self.seed()?;
        op.stream = self.next_stream();
        self.add_one(op, &[seed])
    }

    /// Random integers of all values alike, `u32` or `u64`.
    ///
    /// # Errors
    /// The element type is another, an extent is negative, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let bits = graph.random_bits(vec![Dim::from(4usize)], ElementType::U32)?;
    /// assert_eq!(graph.type_of(bits)?.to_string(), "u32[4]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn random_bits(&mut self, shape: impl IntoShape, element: ElementType) -> Result<Tensor, GraphError> {
        self.random(Distribution::Bits, element, shape)
    }

    /// Random floats from `low` up to and without `high`, all alike.
    ///
    /// # Errors
    /// The element type is no float, a bound is not finite in it, `low` is not below `high`, an extent is negative, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let weights = graph.uniform(vec![Dim::from(3usize), Dim::from(5usize)], -0.1, 0.1, ElementType::F16)?;
    /// graph.output("weights", weights)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn uniform(
        &mut self,
        shape: impl IntoShape,
        low: f64,
        high: f64,
        element: ElementType,
    ) -> Result<Tensor, GraphError> {
        self.random(Distribution::Uniform { low, high }, element, shape)
    }

    /// Normally distributed floats.
    ///
    /// # Errors
    /// The element type is no float, `mean` or `deviation` is not finite in it, the deviation is below 0, an extent is negative, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let noise = graph.normal(vec![Dim::from(64usize)], 0.0, 1.0, ElementType::F32)?;
    /// graph.output("noise", noise)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn normal(
        &mut self,
        shape: impl IntoShape,
        mean: f64,
        deviation: f64,
        element: ElementType,
    ) -> Result<Tensor, GraphError> {
        self.random(Distribution::Normal { mean, deviation }, element, shape)
    }

    /// Bools that are true with a probability of `p` each; to within 2^-32, and exactly for 0 and 1.
    ///
    /// # Errors
    /// `p` is not within 0 and 1, an extent is negative, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, Graph};
    /// let mut graph = Graph::new();
    /// let kept = graph.bernoulli(vec![Dim::from(64usize)], 0.9)?;
    /// graph.output("kept", kept)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn bernoulli(&mut self, shape: impl IntoShape, p: f64) -> Result<Tensor, GraphError> {
        let shape = shape.into_shape();
        if p == 0.0 || p == 1.0 {
            let all = self.fill(p == 1.0, ElementType::Bool, shape)?;
            // A stream is taken as for every other probability, so that later ops draw the same numbers.
            self.next_stream();
            return Ok(all);
        }
        self.random(Distribution::Bernoulli { p }, ElementType::Bool, shape)
    }

    /// Bools of the shape of `p`, each true with the probability that stands there, to within 2^-24: if a uniform number from 0 up to 1 is below it. So it is never true for 0, a negative number or NaN, and
    /// always for 1 and above. The comparison is in `f32`.
    ///
    /// # Errors
    /// `p` is not of floats, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let p = graph.input("p", ElementType::F32, vec![Dim::from(64usize)])?;
    /// let kept = graph.bernoulli_of(p)?;
    /// graph.output("kept", kept)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn bernoulli_of(&mut self, p: Tensor) -> Result<Tensor, GraphError> {
        let ty = self.operand("bernoulli_of", p)?.clone();
        expect_one_of("p", &ty, ElementType::is_float)
            .map_err(|error| GraphError::Op { op: "bernoulli_of".to_owned(), error })?;
        let TensorType { element, shape } = ty;
        let p = if element == ElementType::F32 { p } else { self.cast(p, ElementType::F32)? };
        let uniform = self.uniform(shape, 0.0, 1.0, ElementType::F32)?;
        self.lt(uniform, p)
    }

    /// Each element of `x` replaced by 0 with a probability of `p`, the others divided by `1 - p`; and which were kept, as bools. With `p` of 1 all are 0.
    ///
    /// # Errors
    /// `x` is not of floats, `p` is not within 0 and 1, or a tensor called `seed` is no seed.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", ElementType::F32, vec![Dim::from(3usize), Dim::from(5usize)])?;
    /// let (y, kept) = graph.dropout(x, 0.1)?;
    /// graph.output("y", y)?;
    /// graph.output("kept", kept)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn dropout(&mut self, x: Tensor, p: f64) -> Result<(Tensor, Tensor), GraphError> {
        let ty = self.operand("dropout", x)?.clone();
        let refused = |error| GraphError::Op { op: "dropout".to_owned(), error };
        expect_one_of("x", &ty, ElementType::is_float).map_err(refused)?;
        let TensorType { element, shape } = ty;
        if !(0.0..=1.0).contains(&p) {
            let expected = "a probability, from 0 to 1".to_owned();
            return Err(refused(OpError::Attribute { attribute: "p", given: p.to_string(), expected }));
        }
        let kept = self.bernoulli(shape, 1.0 - p)?;
        let zero = self.scalar(0.0, element)?;
        let scaled = match p {
            0.0 => return Ok((x, kept)),
            1.0 => zero,
            // What is computed in 32 bits is scaled by a number of 32 bits.
            _ if element == ElementType::F64 => {
                let factor = self.scalar(1.0 / (1.0 - p), element)?;
                self.mul(x, factor)?
            }
            _ => self.affine(x, (1.0 / (1.0 - p)) as f32, 0.0)?,
        };
        Ok((self.where_(kept, scaled, zero)?, kept))
    }
}
