//! Blocks of spatial axes as channels, and back: arrangements of views.

use super::attribute_error;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;
use crate::ops::support::shape_error;
use crate::types::TensorType;

/// How a channel number is made of a position within a block and a channel of the other form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOrder {
    /// The channel counts slower: `channel * positions + position`, as pixel shuffles have it.
    ChannelFirst,
    /// The position counts slower: `position * channels + channel`.
    PositionFirst,
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Channels as blocks of `block` by `block` elements: `[.., c * block^2, h, w]` becomes `[.., c, h * block, w * block]`.
    ///
    /// # Errors
    /// The block is not positive, `x` has fewer than three axes, or its channels are not surely a multiple of a block's elements.
    pub fn depth_to_space(&mut self, x: Tensor, block: i64, order: BlockOrder) -> Result<Tensor, GraphError> {
        let ty = self.operand("depth_to_space", x)?.clone();
        let wrong = |error| GraphError::Op { op: format!("depth_to_space({ty})"), error };
        let (lead, positions) = three_axes(&ty, block).map_err(wrong)?;
        if !ty.shape[lead].divides_evenly(positions) {
            let expected = format!("a multiple of {positions} channels on axis {lead}");
            return Err(wrong(shape_error("x", &ty, expected)));
        }
        let by = Dim::from(block);
        let channels = ty.shape[lead].quotient(&Dim::from(positions));
        let [h, w] = [ty.shape[lead + 1].clone(), ty.shape[lead + 2].clone()];
        let front = &ty.shape[..lead];
        let (cut, places) = match order {
            BlockOrder::ChannelFirst => ([channels.clone(), by.clone(), by.clone()], [0, 3, 1, 4, 2]),
            BlockOrder::PositionFirst => ([by.clone(), by.clone(), channels.clone()], [2, 3, 0, 4, 1]),
        };
        let x = self.reshape(x, [front, &cut, &[h.clone(), w.clone()]].concat())?;
        let permutation: Vec<usize> = (0..lead).chain(places.map(|place| lead + place)).collect();
        let x = self.transpose(x, &permutation)?;
        self.reshape(x, [front, &[channels, h * block, w * block]].concat())
    }

    /// Blocks of `block` by `block` elements as channels: `[.., c, h * block, w * block]` becomes `[.., c * block^2, h, w]`.
    ///
    /// # Errors
    /// The block is not positive, `x` has fewer than three axes, or one of the last two is not surely a multiple of the block.
    pub fn space_to_depth(&mut self, x: Tensor, block: i64, order: BlockOrder) -> Result<Tensor, GraphError> {
        let ty = self.operand("space_to_depth", x)?.clone();
        let wrong = |error| GraphError::Op { op: format!("space_to_depth({ty})"), error };
        let (lead, positions) = three_axes(&ty, block).map_err(wrong)?;
        let by = Dim::from(block);
        let [c, h, w] = [0, 1, 2].map(|axis| ty.shape[lead + axis].clone());
        if !h.divides_evenly(block) || !w.divides_evenly(block) {
            return Err(wrong(shape_error("x", &ty, format!("multiples of {block} on the last two axes"))));
        }
        let (h, w) = (h.quotient(&by), w.quotient(&by));
        let front = &ty.shape[..lead];
        let x = self.reshape(x, [front, &[c.clone(), h.clone(), by.clone(), w.clone(), by]].concat())?;
        let places = match order {
            BlockOrder::ChannelFirst => [0, 2, 4, 1, 3],
            BlockOrder::PositionFirst => [2, 4, 0, 1, 3],
        };
        let permutation: Vec<usize> = (0..lead).chain(places.map(|place| lead + place)).collect();
        let x = self.transpose(x, &permutation)?;
        self.reshape(x, [front, &[c * positions, h, w]].concat())
    }

    /// [`Graph::depth_to_space`] as networks that sharpen images use it.
    ///
    /// # Errors
    /// As there.
    pub fn pixel_shuffle(&mut self, x: Tensor, block: i64) -> Result<Tensor, GraphError> {
        self.depth_to_space(x, block, BlockOrder::ChannelFirst)
    }
}

/// How many axes stand before the last three, and how many elements a block has.
fn three_axes(ty: &TensorType, block: i64) -> Result<(usize, i64), OpError> {
    let Some(positions) = block.checked_mul(block).filter(|_| block > 0) else {
        return Err(attribute_error("block", block, "a number above 0, whose square is a number of 64 bits"));
    };
    match ty.rank().checked_sub(3) {
        Some(lead) => Ok((lead, positions)),
        None => Err(shape_error("x", ty, "at least three axes: channels, rows, columns".to_owned())),
    }
}
