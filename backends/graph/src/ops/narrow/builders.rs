//! The methods of [`Graph`] for codes of narrow types.

use super::{Decode, Encode, Narrow, Overflow, Rounding};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::ops::pull::border::Border;
use crate::types::{ElementType, Shape, TensorType};

#[trefoil_graph_macros::eager]
impl Graph {
    /// Numbers as codes of a narrow type, one in each `u8`; what becomes of what is beyond its numbers, and of what lies between two neighbours, says [`Encode`].
    ///
    /// # Errors
    /// `x` is `f64` or of 64-bit integers, or a float becomes an integer's code; or the type does not know the rounding, or always saturates.
    ///
    /// ```
    /// use trefoil_graph::ops::{Narrow, Overflow, Rounding};
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", ElementType::F32, vec![Dim::from(64usize)])?;
    /// let codes = graph.encode(x, Narrow::Float8E4M3, Overflow::Saturated, Rounding::Nearest)?;
    /// assert_eq!(graph.type_of(codes)?.to_string(), "u8[64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn encode(
        &mut self,
        x: Tensor,
        narrow: Narrow,
        overflow: Overflow,
        rounding: Rounding,
    ) -> Result<Tensor, GraphError> {
        let from = self.operand("encode", x)?.element;
        self.add_one(Encode { from, narrow, overflow, rounding }, &[x])
    }

    /// The numbers of a narrow type's codes, of which one stands in each `u8`.
    ///
    /// # Errors
    /// `codes` are not `u8`, or `to` is `f64`, 64-bit or bool, or an integer for a float's codes.
    ///
    /// ```
    /// use trefoil_graph::ops::Narrow;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let codes = graph.input("codes", ElementType::U8, vec![Dim::from(64usize)])?;
    /// let x = graph.decode(codes, Narrow::I4, ElementType::F16)?;
    /// assert_eq!(graph.type_of(x)?.to_string(), "f16[64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn decode(&mut self, codes: Tensor, narrow: Narrow, to: ElementType) -> Result<Tensor, GraphError> {
        self.add_one(Decode { narrow, to }, &[codes])
    }

    /// Codes along the last axis, as many in a byte as fit, the first in the lowest bits; the rest of a last byte is 0. Bits above the type's are left out.
    ///
    /// # Errors
    /// `codes` are not `u8`, or have no axis.
    ///
    /// ```
    /// use trefoil_graph::ops::Narrow;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let codes = graph.input("codes", ElementType::U8, vec![Dim::from(3usize), Dim::from(5usize)])?;
    /// let packed = graph.pack_codes(codes, Narrow::U4)?;
    /// assert_eq!(graph.type_of(packed)?.to_string(), "u8[3, 3]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn pack_codes(&mut self, codes: Tensor, narrow: Narrow) -> Result<Tensor, GraphError> {
        let (shape, n) = self.codes("pack_codes", codes)?;
        let each = i64::from(8 / narrow.bits());
        if each == 1 {
            return Ok(codes);
        }
        let bytes = n.quotient_up(each);
        let mut x = codes;
        if !n.divides_evenly(each) {
            let none = [Dim::from(0i64), Dim::from(0i64)];
            let mut pads = vec![none; shape.len()];
            if let Some(last) = pads.last_mut() {
                last[1] = bytes.clone() * each - n;
            }
            x = self.pad(x, &pads, Border::Constant(0.into()))?;
        }
        let mut parts = shape;
        parts.pop();
        parts.extend([bytes, Dim::from(each)]);
        let x = self.reshape(x, parts)?;
        let mask = self.scalar((1u32 << narrow.bits()) - 1, ElementType::U8)?;
        let x = self.bit_and(x, mask)?;
        let mut packed = None;
        for part in 0..each {
            let one = self.narrow(x, -1, part, 1i64)?;
            let by = self.scalar(part * i64::from(narrow.bits()), ElementType::U8)?;
            let shifted = self.shl(one, by)?;
            packed = Some(match packed {
                None => shifted,
                Some(others) => self.bit_or(others, shifted)?,
            });
        }
        self.squeeze(packed.unwrap_or(x), -1)
    }

    /// The first `n` codes of each row of bytes that [`Graph::pack_codes`] makes.
    ///
    /// # Errors
    /// `packed` is not `u8`, or its last axis is not as long as `n` codes need.
    ///
    /// ```
    /// use trefoil_graph::ops::Narrow;
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let packed = graph.input("packed", ElementType::U8, vec![Dim::from(3usize), Dim::from(2usize)])?;
    /// let codes = graph.unpack_codes(packed, Narrow::I2, 7i64)?;
    /// assert_eq!(graph.type_of(codes)?.to_string(), "u8[3, 7]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn unpack_codes(&mut self, packed: Tensor, narrow: Narrow, n: impl Into<Dim>) -> Result<Tensor, GraphError> {
        let ((shape, bytes), n) = (self.codes("unpack_codes", packed)?, n.into());
        let each = i64::from(8 / narrow.bits());
        if bytes != n.quotient_up(each) {
            let given = self.type_of(packed)?.to_string();
            let expected = format!("a last axis of {}, for {n} codes", n.quotient_up(each));
            let error = OpError::Shape { input: "packed", given, expected };
            return Err(GraphError::Op { op: "unpack_codes".to_owned(), error });
        }
        if each == 1 {
            return Ok(packed);
        }
        let places: Vec<u8> = (0..each as u8).map(|part| part * narrow.bits() as u8).collect();
        let places = self.constant(ElementType::U8, vec![Dim::from(each)], &places)?;
        let x = self.unsqueeze(packed, -1)?;
        let x = self.shr(x, places)?;
        let mask = self.scalar((1u32 << narrow.bits()) - 1, ElementType::U8)?;
        let x = self.bit_and(x, mask)?;
        let mut flat = shape;
        flat.pop();
        flat.push(bytes * each);
        let x = self.reshape(x, flat)?;
        self.narrow(x, -1, 0i64, n)
    }

    /// The shape of a tensor of codes and its last extent.
    fn codes(&self, op: &str, x: Tensor) -> Result<(Shape, Dim), GraphError> {
        let TensorType { element, shape } = self.operand(op, x)?.clone();
        let refused = |error| Err(GraphError::Op { op: op.to_owned(), error });
        if element != ElementType::U8 {
            let expected = "u8, one code or several in each; `encode` gives them".to_owned();
            return refused(OpError::ElementType { input: "codes", given: element, expected });
        }
        match shape.last().cloned() {
            Some(last) => Ok((shape, last)),
            None => refused(OpError::Shape {
                input: "codes",
                given: "u8[]".to_owned(),
                expected: "an axis along which codes are packed".to_owned(),
            }),
        }
    }
}
