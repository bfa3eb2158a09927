//! Attention: many queries, where operations count, and one, where the bytes of keys and values do.

use trefoil::graph::ElementType;
use trefoil::graph::ops::attention::{Attention, AttentionLayout, AttentionOperands};

use crate::cases::Case;
use crate::measure::Scale;

/// What is attended to: heads, heads of keys, queries, keys, elements of a head, and whether it is causal.
type Row = (i64, i64, i64, i64, i64, bool);

/// Rows of models: all positions of a text, the next token behind one, and that or a few where heads in groups share keys.
const ROWS: [Row; 9] = [
    (32, 32, 4096, 4096, 128, false),
    (32, 32, 4096, 4096, 128, true),
    (32, 32, 4096, 4096, 64, false),
    (32, 32, 1, 8192, 128, true),
    (16, 8, 1, 32_768, 128, true),
    (32, 8, 1, 32_768, 128, true),
    (64, 8, 1, 32_768, 128, true),
    (32, 8, 4, 8192, 128, true),
    (12, 12, 128, 128, 32, false),
];

/// The cases of elements of a type, in sizes that a device can do in reasonable time.
pub fn all(scale: Scale, element: ElementType) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 8,
        Scale::Software => 32,
    };
    let case = |(heads, key_heads, queries, keys, elements, causal): Row| {
        let (queries, keys) = ((queries / less).max(1), keys / less);
        let shape = |heads: i64, positions: i64| vec![1, heads, positions, elements];
        let size = |shape: &[i64]| shape.iter().product::<i64>().unsigned_abs();
        let (of_q, of_k) = (shape(heads, queries), shape(key_heads, keys));
        let bytes = 2 * (size(&of_q) + size(&of_k)) * element.bytes();
        // Of a square that is causal half is seen.
        let seen = size(&[heads, queries, keys, elements]) / if causal && queries == keys { 2 } else { 1 };
        let about = if causal { " causal" } else { "" };
        Case {
            name: format!("attention {element} {heads}/{key_heads}x{queries}x{keys}x{elements}{about}"),
            inputs: vec![("q", of_q), ("k", of_k.clone()), ("v", of_k)],
            build: Box::new(move |g, inputs| {
                let scale = (elements as f32).sqrt().recip();
                let op = Attention { causal, ..Attention::new(AttentionLayout::Bhsd, scale) };
                let result = g.attention(inputs[0], inputs[1], inputs[2], AttentionOperands::default(), op)?;
                g.output("result", result)
            }),
            bytes,
            flops: (queries >= 64).then_some(4 * seen),
        }
    };
    ROWS.into_iter().map(case).collect()
}
