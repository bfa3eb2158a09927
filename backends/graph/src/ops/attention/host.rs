//! Attention on the processor itself.

use trefoil_host::attention::{Attention as HostAttention, Bias, Heads, attention};

use super::candidates::Sizes;
use super::{Attend, AttentionLayout, Queries, Scores};
use crate::dim::Dim;
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::one_function;
use crate::ops::support::{FLOPS_PER_MICROSECOND, upper};
use crate::types::ElementType;

/// Whole rows of scores, a few at a time.
#[derive(Debug)]
pub(super) struct Rows(pub(super) Attend);

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "attention on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, inputs) = (self.0, request.inputs);
        if op.scores != Scores::Nothing {
            return Err(Ineligible::Other("it gives no scores".to_owned()));
        }
        if inputs[0].ty.element != ElementType::F32 {
            return Err(Ineligible::Other(format!("elements of {}, not f32", inputs[0].ty.element)));
        }
        let sizes = Sizes::new(&op, request);
        let strided: Vec<_> = (0..3)
            .filter(|position| {
                let operand = &inputs[*position];
                !operand.ty.shape[3].is(1) && !operand.layout.strides[3].is(1)
            })
            .collect();
        if !strided.is_empty() {
            return Err(Ineligible::NeedsContiguous(strided));
        }
        op.contiguous_vectors(inputs)?;
        let cost = 1.0 + 4.0 * upper(&request.outputs[0].elements()) * upper(&sizes.keys) / FLOPS_PER_MICROSECOND;
        let Sizes { batch, heads, key_heads, queries, keys, elements, value_elements, .. } = sizes;
        let mut numbers = vec![batch, heads, key_heads, queries, keys, elements, value_elements];
        for operand in &inputs[..3] {
            let [outer @ .., _] = op.strides(&operand.layout);
            numbers.extend::<[Dim; 3]>(outer);
        }
        numbers.extend(op.bias_strides(inputs));
        let reads = (0..inputs.len()).map(Slot::Input).collect();
        Ok(one_function("attention", reads, numbers, cost, move |reads, out, numbers| {
            let (&[q, k, v, ..], &[batch, heads, key_heads, queries, keys, elements, value_elements, ref strides @ ..]) =
                (reads, numbers)
            else {
                return Err(format!("{} operands and {} sizes given", reads.len(), numbers.len()));
            };
            let &[q0, q1, q2, k0, k1, k2, v0, v1, v2, b0, b1, b2, b3] = strides else {
                return Err(format!("{} strides given", strides.len()));
            };
            let [bias, lengths, sinks] = [0, 1, 2].map(|which| op.optional(reads, which).copied());
            let operands = HostAttention {
                batch,
                heads,
                key_heads,
                queries,
                keys,
                elements,
                value_elements,
                q: Heads { values: q, strides: [q0, q1, q2] },
                k: Heads { values: k, strides: [k0, k1, k2] },
                v: Heads { values: v, strides: [v0, v1, v2] },
                bias: bias.map(|values| Bias { values, strides: [b0, b1, b2, b3] }),
                // Operands come as floats; these are words.
                lengths: lengths.map(bytemuck::cast_slice),
                sinks,
                scale: op.attention.scale,
                cap: op.attention.cap,
                first: match op.attention.queries {
                    Queries::Last => None,
                    Queries::From(first) => Some(i64::from(first)),
                },
                window: op.window(),
                heads_inside: op.attention.layout == AttentionLayout::Bshd,
            };
            attention(&operands, out)
        }))
    }
}
