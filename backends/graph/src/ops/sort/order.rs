//! The order of elements in numbers.

use super::Order;
use crate::graph::{Graph, GraphError, Tensor};
use crate::types::ElementType;

/// How bits of a type, in the upper part of a word, become ranks: what `trefoil_kernels::sort::order::rank_of` takes.
pub(super) fn order(element: ElementType, order: Order, equal_zeros: bool) -> [u32; 5] {
    const SIGN: u32 = 1 << 31;
    let infinity = match element {
        ElementType::F16 => 0x7c00 << 16,
        _ => 0x7f80 << 16,
    };
    let signed = element.is_integer() && element.scalar().limits()[0] < 0;
    let [zero, largest, negative, positive] = match (element.is_float(), signed) {
        (true, _) => [if equal_zeros { SIGN } else { 0 }, infinity, u32::MAX, SIGN],
        (false, true) => [0, u32::MAX, SIGN, SIGN],
        (false, false) => [0, u32::MAX, 0, 0],
    };
    [zero, largest, negative, positive, if order == Order::Descending { u32::MAX } else { 0 }]
}

impl Graph {
    /// The lower and the upper half of the ranks of elements of 64 bits, ascending.
    pub(super) fn halves_of_ranks(&mut self, x: Tensor) -> Result<[Tensor; 2], GraphError> {
        let element = self.type_of(x)?.element;
        let constant = |graph: &mut Self, bits: u64| graph.constant(ElementType::U64, (), &[bits]);
        let ranks = if element == ElementType::F64 {
            let (none, sign, last) = (constant(self, 0)?, constant(self, 1 << 63)?, constant(self, u64::MAX)?);
            let bits = self.bitcast(x, ElementType::U64)?;
            let is_zero = self.eq(bits, sign)?;
            let bits = self.where_(is_zero, none, bits)?;
            let (turned, set) = (self.bit_not(bits)?, self.bit_or(bits, sign)?);
            let negative = self.ge(bits, sign)?;
            let ranks = self.where_(negative, turned, set)?;
            let unknown = self.is_nan(x)?;
            self.where_(unknown, last, ranks)?
        } else {
            x
        };
        let half = match element {
            ElementType::I64 => self.constant(ElementType::I64, (), &[32i64])?,
            _ => constant(self, 32)?,
        };
        let high = self.shr(ranks, half)?;
        let [low, mut high] = [self.cast(ranks, ElementType::U32)?, self.cast(high, ElementType::U32)?];
        if element == ElementType::I64 {
            let sign = self.constant(ElementType::U32, (), &[1u32 << 31])?;
            high = self.bit_xor(high, sign)?;
        }
        Ok([low, high])
    }
}
