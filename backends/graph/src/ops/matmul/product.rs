//! A product as kernels see it: one batch axis, and strides.

use crate::dim::Dim;
use crate::op::{Ineligible, Operand, Request};

/// Extents and strides.
pub(super) struct Product {
    pub(super) batch: Dim,
    pub(super) m: Dim,
    pub(super) n: Dim,
    pub(super) k: Dim,
    /// Row and column stride.
    pub(super) a: [Dim; 2],
    pub(super) b: [Dim; 2],
    pub(super) a_batch: Dim,
    pub(super) b_batch: Dim,
}

impl Product {
    /// Merges the leading axes: into the rows of A where B has none, else into one batch axis.
    pub(super) fn new(request: &Request<'_>) -> Result<Self, Ineligible> {
        let (a, b, c) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
        let one = || Dim::from(1i64);
        let rank = c.rank();
        let leading = &c.shape[..rank - 2];
        let a_leading = leading_strides(a, leading);
        let b_leading = leading_strides(b, leading);
        let a_last = a.layout.strides.len() - 2;
        let b_last = b.layout.strides.len() - 2;
        let mut product = Self {
            batch: one(),
            m: c.shape[rank - 2].clone(),
            n: c.shape[rank - 1].clone(),
            k: a.ty.shape[a_last + 1].clone(),
            a: [a.layout.strides[a_last].clone(), a.layout.strides[a_last + 1].clone()],
            b: [b.layout.strides[b_last].clone(), b.layout.strides[b_last + 1].clone()],
            a_batch: Dim::from(0i64),
            b_batch: Dim::from(0i64),
        };
        if b_leading.iter().zip(leading).all(|(stride, extent)| stride.is(0) || extent.is(1)) {
            let extents: Vec<_> = leading.iter().chain([&product.m]).cloned().collect();
            let strides: Vec<_> = a_leading.iter().chain([&product.a[0]]).cloned().collect();
            if let Some((extent, stride)) = merge(&extents, &strides) {
                product.m = extent;
                product.a[0] = stride;
                return Ok(product);
            }
        }
        let (of_a, of_b) = (merge(leading, &a_leading), merge(leading, &b_leading));
        // An operand that is read in place is not copied beside the other.
        let apart = [&of_a, &of_b].into_iter().enumerate().filter(|(_, merged)| merged.is_none());
        let apart: Vec<usize> = apart.map(|(input, _)| input).collect();
        let (Some((batch, a_batch)), Some((_, b_batch))) = (of_a, of_b) else {
            return Err(Ineligible::NeedsContiguous(apart));
        };
        Ok(Self { batch, a_batch, b_batch, ..product })
    }
}

/// Whether an operand with these leading axes is repeated along some of the result's and not along others: then no one stride steps through its matrices, however they lie.
pub(super) fn is_partly_repeated(own: &[Dim], result: &[Dim]) -> bool {
    let added = result.len() - own.len();
    let (mut repeats, mut steps) = (false, false);
    for axis in (0..result.len()).filter(|axis| !result[*axis].is(1)) {
        if axis >= added && own[axis - added] == result[axis] { steps = true } else { repeats = true }
    }
    repeats && steps
}

/// An operand's strides along the result's leading axes, 0 where it is broadcast.
fn leading_strides(operand: &Operand, leading: &[Dim]) -> Vec<Dim> {
    let own = operand.layout.strides.len() - 2;
    (0..leading.len())
        .map(|axis| {
            let from_last = leading.len() - axis;
            match own.checked_sub(from_last) {
                Some(axis) if !operand.ty.shape[axis].is(1) => operand.layout.strides[axis].clone(),
                _ => Dim::from(0i64),
            }
        })
        .collect()
}

/// One axis in place of several, if strides allow it.
fn merge(extents: &[Dim], strides: &[Dim]) -> Option<(Dim, Dim)> {
    let mut merged: Option<(Dim, Dim)> = None;
    for (extent, stride) in extents.iter().zip(strides) {
        if extent.is(1) {
            continue;
        }
        merged = match merged {
            None => Some((extent.clone(), stride.clone())),
            Some((outer, outer_stride)) if outer_stride == stride.clone() * extent.clone() => {
                Some((outer * extent.clone(), stride.clone()))
            }
            Some(_) => return None,
        };
    }
    Some(merged.unwrap_or_else(|| (Dim::from(1i64), Dim::from(0i64))))
}
