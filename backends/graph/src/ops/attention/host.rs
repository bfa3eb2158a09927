//! Attention on the processor itself.

use trefoil_host::attention::{Attention as HostAttention, Heads, Mask, attention};

use super::{Attention, AttentionLayout, mask_strides};
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::{FLOPS_PER_MICROSECOND, one_function};
use crate::ops::support::upper;

/// Whole rows of scores, a few at a time.
#[derive(Debug)]
pub(super) struct Rows(pub(super) Attention);

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "attention on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = self.0;
        let [batch, heads, queries, elements] = op.extents(&request.inputs[0].ty);
        let [_, key_heads, keys, _] = op.extents(&request.inputs[1].ty);
        let strided: Vec<_> =
            (0..3).filter(|position| !elements.is(1) && !request.inputs[*position].layout.strides[3].is(1)).collect();
        if !strided.is_empty() {
            return Err(Ineligible::NeedsContiguous(strided));
        }
        let cost = 1.0 + 4.0 * upper(&request.outputs[0].elements()) * upper(&keys) / FLOPS_PER_MICROSECOND;
        let mut sizes = vec![batch, heads, key_heads, queries, keys, elements];
        for operand in &request.inputs[..3] {
            let [batch, head, position, _] = op.axes();
            sizes.extend([batch, head, position].map(|axis| operand.layout.strides[axis].clone()));
        }
        sizes.extend(mask_strides(request));
        let reads = (0..request.inputs.len()).map(Slot::Input).collect();
        Ok(one_function("attention", reads, sizes, cost, move |reads, out, sizes| {
            let (&[q, k, v, ref mask @ ..], &[batch, heads, key_heads, queries, keys, elements, ref strides @ ..]) =
                (reads, sizes)
            else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            let &[q0, q1, q2, k0, k1, k2, v0, v1, v2, m0, m1, m2, m3] = strides else {
                return Err(format!("{} strides given", strides.len()));
            };
            let operands = HostAttention {
                batch,
                heads,
                key_heads,
                queries,
                keys,
                elements,
                q: Heads { values: q, strides: [q0, q1, q2] },
                k: Heads { values: k, strides: [k0, k1, k2] },
                v: Heads { values: v, strides: [v0, v1, v2] },
                mask: mask.first().map(|values| Mask { values, strides: [m0, m1, m2, m3] }),
                scale: op.scale,
                causal: op.causal,
                heads_inside: op.layout == AttentionLayout::Bshd,
            };
            attention(&operands, out)
        }))
    }
}
