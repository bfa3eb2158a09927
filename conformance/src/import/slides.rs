//! What the attributes of pooling and convolution share: how windows stand and what is put around.

use super::{Importer, Unsupported};
use crate::cases::Node;

/// One axis over which windows slide.
pub(super) struct Axis {
    pub(super) size: i64,
    pub(super) stride: i64,
    pub(super) dilation: i64,
    /// In front and behind.
    pub(super) padding: [i64; 2],
}

/// Windows of `sizes` over the last of a tensor's `extents`.
pub(super) fn axes(
    importer: &Importer<'_>,
    node: &Node,
    extents: &[usize],
    sizes: &[i64],
) -> Result<Vec<Axis>, Unsupported> {
    let count = sizes.len();
    let lead = extents.len().saturating_sub(count);
    let strides = numbers(importer, node, "strides", count, 1)?;
    let dilations = numbers(importer, node, "dilations", count, 1)?;
    let pads = numbers(importer, node, "pads", 2 * count, 0)?;
    let auto = importer.string(node, "auto_pad", "NOTSET");
    let axis = |axis: usize| {
        let (size, stride, dilation) = (sizes[axis], strides[axis], dilations[axis]);
        let mut padding = [pads[axis], pads[axis + count]];
        if auto.starts_with("SAME") {
            let extent = extents[lead + axis] as i64;
            let reach = (size - 1) * dilation + 1;
            padding = halves(((extent + stride - 1) / stride - 1) * stride + reach - extent, auto == "SAME_UPPER");
        }
        Axis { size, stride, dilation, padding }
    };
    Ok((0..count).map(axis).collect())
}

/// The numbers of an attribute, one for each of `count` axes.
pub(super) fn numbers(
    importer: &Importer<'_>,
    node: &Node,
    name: &str,
    count: usize,
    usual: i64,
) -> Result<Vec<i64>, Unsupported> {
    let given = importer.ints(node, name).unwrap_or_else(|| vec![usual; count]);
    if given.len() == count {
        Ok(given)
    } else {
        Err(importer.refuse(node, format!("{} numbers in {name}", given.len())))
    }
}

/// Padding in front and behind, of which the one behind gets an odd element, or the other.
pub(super) fn halves(all: i64, behind: bool) -> [i64; 2] {
    let less = all.max(0) / 2;
    let more = all.max(0) - less;
    if behind { [less, more] } else { [more, less] }
}
