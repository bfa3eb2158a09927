//! Drawing one of several by its logit, as a language model's next token is drawn.

use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::ops::scan::Sweep;
use crate::ops::sort::{Best, Order};
use crate::ops::support::expect_one_of;
use crate::types::{ElementType, TensorType};

use ElementType::F32;

/// Among which candidates is drawn, and how sharply. The cuts are made one after the other: `top_k`, then `top_p`, then `min_p`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// What logits are divided by: 1 draws by softmax, less prefers likely candidates more. 0 asks for the likeliest, of equals the first; then nothing is random. Another number is positive, and its
    /// reciprocal is a normal `f32`.
    pub temperature: f64,
    /// Only so many of the likeliest.
    pub top_k: Option<usize>,
    /// Only the likeliest until their probabilities, after `top_k`, come to this; the one that reaches it is among them.
    pub top_p: f64,
    /// Only those of at least this share of the likeliest one's probability.
    pub min_p: f64,
}

impl Default for Sampling {
    /// Draws by softmax among all.
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: 1.0, min_p: 0.0 }
    }
}

impl Sampling {
    fn check(&self) -> Result<(), OpError> {
        let wrong = |attribute, given: f64, expected: &str| {
            Err(OpError::Attribute { attribute, given: given.to_string(), expected: expected.to_owned() })
        };
        // By the reciprocal logits are multiplied: by 0 an infinite one becomes no number.
        if self.temperature != 0.0 && !(f32::MIN_POSITIVE..=f32::MAX).contains(&((1.0 / self.temperature) as f32)) {
            let expected = "0 for the likeliest, or a number from 2.94e-39 to 8.5e37, whose reciprocal f32 has";
            return wrong("temperature", self.temperature, expected);
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong("top_p", self.top_p, "a number above 0 and up to 1, which takes all");
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return wrong("min_p", self.min_p, "a number from 0, which takes all, to 1");
        }
        Ok(())
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// For each row of logits along the last axis, the `u32` index of one that is drawn with the probability that softmax gives it among those that [`Sampling`] leaves. Minus infinity is never drawn; of a row
    /// of nothing else the first is. Of a row with a NaN it is the first NaN where the likeliest are looked for, with a temperature of 0, `top_k` or `top_p`, and else the first of all.
    ///
    /// # Errors
    /// The logits are not `f32`, `f16` or `bf16`, have no axis, or an empty one; an attribute is impossible; or `top_k` is not 1 to the axis's extent.
    ///
    /// ```
    /// use trefoil_graph::ops::random::Sampling;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let logits = graph.input("logits", ElementType::F16, [4, 32_000])?;
    /// let how = Sampling { temperature: 0.8, top_k: Some(50), top_p: 0.95, ..Sampling::default() };
    /// let tokens = graph.sample(logits, how)?;
    /// assert_eq!(graph.type_of(tokens)?.to_string(), "u32[4]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn sample(&mut self, logits: Tensor, how: Sampling) -> Result<Tensor, GraphError> {
        let ty = self.operand("sample", logits)?.clone();
        let refused = |error| GraphError::Op { op: "sample".to_owned(), error };
        expect_one_of("logits", &ty, |element| element.computed() == F32.scalar()).map_err(refused)?;
        let TensorType { element, shape } = ty;
        let Some(extent) = shape.last().filter(|extent| extent.bounds().0 > 0) else {
            let given = TensorType { element, shape }.to_string();
            let expected = "a last axis that is never empty".to_owned();
            return Err(refused(OpError::Shape { input: "logits", given, expected }));
        };
        how.check().map_err(refused)?;
        if how.temperature == 0.0 {
            return self.argmax(logits, &[-1], false);
        }
        let x = if element == F32 { logits } else { self.cast(logits, F32)? };
        let x = self.below_largest(x)?;
        let x = self.affine(x, (1.0 / how.temperature) as f32, 0.0)?;
        let mut count = extent.clone();
        let (x, places) = match how.top_k {
            Some(k) => {
                count = Dim::from(k);
                let (values, places) = self.top_k(x, k, -1, Best::default())?;
                (values, Some(places))
            }
            None if how.top_p < 1.0 => {
                let places = self.argsort(x, -1, Order::Descending)?;
                (self.gather_elements(x, places, -1)?, Some(places))
            }
            None => (x, None),
        };
        let chances = self.cut(x, how)?;

        // The first at which the running sum passes a random part of the total. Sums of many numbers may go down by a rounding, so that what has no chance is left out by itself.
        let running = self.cumsum(chances, -1, Sweep::default())?;
        let total = self.narrow(running, -1, count - 1, 1i64)?;
        let mut one_each = shape.clone();
        if let Some(last) = one_each.last_mut() {
            *last = Dim::from(1i64);
        }
        // So far below 1 that rounding does not make the part the total.
        let part = self.uniform(one_each, 0.0, 1.0 - 1.0 / 4_194_304.0, F32)?;
        let limit = self.mul(part, total)?;
        let passes = self.gt(running, limit)?;
        let [none, some, best] = [0.0, 1.0, 2.0].map(|score| self.scalar(score, F32));
        let (none, some, best) = (none?, some?, best?);
        let has_chance = self.gt(chances, none)?;
        let score = self.where_(passes, best, some)?;
        let score = self.where_(has_chance, score, none)?;
        let drawn = self.argmax(score, &[-1], true)?;
        let drawn = match places {
            Some(places) => self.gather_elements(places, drawn, -1)?,
            None => drawn,
        };
        self.squeeze(drawn, -1)
    }

    /// How far logits lie from the largest of their row, so that none becomes infinite by a factor, and the largest is none; of rows with a NaN, and of nothing but minus infinity, as they are.
    fn below_largest(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        let largest = self.max_over(x, &[-1], true)?;
        let [none, least] = [0.0, f64::NEG_INFINITY].map(|number| self.scalar(number, F32));
        let (none, least) = (none?, least?);
        let (distance, is_largest) = (self.sub(x, largest)?, self.eq(x, largest)?);
        let distance = self.where_(is_largest, none, distance)?;
        let has_largest = self.gt(largest, least)?;
        self.where_(has_largest, distance, x)
    }

    /// The probabilities of logits, of which those that are left out are 0. With `top_p` they are in descending order.
    fn cut(&mut self, x: Tensor, how: Sampling) -> Result<Tensor, GraphError> {
        let all = self.softmax(x, -1)?;
        let zero = self.scalar(0.0, F32)?;
        let mut chances = all;
        if how.top_p < 1.0 {
            let before = self.cumsum(all, -1, Sweep { exclusive: true, ..Sweep::default() })?;
            let most = self.scalar(how.top_p, F32)?;
            let is_within = self.lt(before, most)?;
            chances = self.where_(is_within, chances, zero)?;
        }
        if how.min_p > 0.0 {
            let likeliest = self.max_over(all, &[-1], true)?;
            let least = self.affine(likeliest, how.min_p as f32, 0.0)?;
            let is_likely = self.ge(all, least)?;
            chances = self.where_(is_likely, chances, zero)?;
        }
        Ok(chances)
    }
}
