//! Attention, and positions.

use trefoil_graph::ops::attention::{Attention, AttentionLayout, AttentionOperands, Queries, Scores};
use trefoil_graph::ops::rope::{Pairs, Rope};
use trefoil_graph::{Dim, ElementType, Tensor};

use super::{Import, Imported, Importer, Unsupported, dims};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[("Attention", attention), ("RotaryEmbedding", rope)];

/// What a window's side is: -1 stands for none.
fn side(importer: &Importer<'_>, node: &Node, name: &str) -> Option<u32> {
    u32::try_from(importer.int(node, name, -1)).ok()
}

/// `[batch, positions, heads * elements]` with heads for themselves.
fn heads(importer: &mut Importer<'_>, x: Tensor, heads: i64) -> Result<Tensor, Unsupported> {
    let extents = importer.extents(x)?;
    let heads = usize::try_from(heads).unwrap_or(0).max(1);
    Ok(importer.graph.reshape(x, dims(&[extents[0], extents[1], heads, extents[2] / heads]))?)
}

fn attention(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut operands = [importer.input(node, 0)?, importer.input(node, 1)?, importer.input(node, 2)?];
    if importer.ty(operands[0])?.element == ElementType::BF16 {
        // Off by a unit in the last place of it, which is more than the cases allow.
        return Err(importer.refuse(node, "bfloat16, rounded after every step"));
    }
    let flat = importer.ty(operands[0])?.rank() == 3;
    if flat {
        for (operand, name) in operands.iter_mut().zip(["q_num_heads", "kv_num_heads", "kv_num_heads"]) {
            *operand = heads(importer, *operand, importer.int(node, name, 1))?;
        }
    }
    let layout = if flat { AttentionLayout::Bshd } else { AttentionLayout::Bhsd };
    let [q, mut k, mut v] = operands;
    let positions = if flat { 1 } else { 2 };
    // What a cache holds afterwards has heads before positions.
    let held = |importer: &mut Importer<'_>, x: Tensor| -> Result<Tensor, Unsupported> {
        if flat { Ok(importer.graph.transpose(x, &[0, 2, 1, 3])?) } else { Ok(x) }
    };
    let mut present = [held(importer, k)?, held(importer, v)?];
    let mut past = 0;
    for (position, present) in present.iter_mut().enumerate() {
        if let Some(before) = importer.optional(node, 4 + position)? {
            past = i32::try_from(importer.extents(before)?[2]).unwrap_or(i32::MAX);
            *present = importer.graph.concat(&[before, *present], 2)?;
        }
    }
    if past > 0 {
        k = held(importer, present[0])?;
        v = held(importer, present[1])?;
    }
    let keys = importer.extents(k)?[positions];
    let given = importer.optional(node, 3)?;
    let lengths = importer.optional(node, 6)?;
    let stage = match importer.int(node, "qk_matmul_output_mode", 0) {
        _ if node.outputs.get(3).is_none_or(String::is_empty) => Scores::Nothing,
        0 => Scores::Products,
        1 => Scores::Capped,
        2 => Scores::Biased,
        3 => Scores::Weights,
        mode => return Err(importer.refuse(node, format!("qk_matmul_output_mode {mode}"))),
    };
    if let Some(given) = given {
        // Keys behind the mask's last column are hidden.
        let columns = importer.extents(given)?.last().copied().unwrap_or(keys);
        if columns < keys && columns != 1 {
            let most = match lengths {
                Some(lengths) => importer.values_of(lengths)?.into_iter().fold(0.0, f64::max),
                None => 0.0,
            };
            if most > columns as f64 || stage != Scores::Nothing {
                return Err(importer.refuse(node, "a mask of fewer columns than keys that count"));
            }
            let axis = positions as isize;
            k = importer.graph.narrow(k, axis, Dim::from(0i64), Dim::from(columns))?;
            v = importer.graph.narrow(v, axis, Dim::from(0i64), Dim::from(columns))?;
        }
    }
    let is_mask = match given {
        Some(given) => importer.ty(given)?.element == ElementType::Bool,
        None => false,
    };
    let with = AttentionOperands {
        mask: given.filter(|_| is_mask),
        bias: given.filter(|_| !is_mask),
        lengths: match lengths {
            Some(lengths) => Some(importer.graph.cast(lengths, ElementType::U32)?),
            None => None,
        },
        sinks: None,
    };
    let elements = importer.extents(q)?[3] as f32;
    let scale = importer.float(node, "scale", 1.0 / elements.sqrt());
    let cap = importer.float(node, "softcap", 0.0);
    let op = Attention {
        causal: importer.int(node, "is_causal", 0) != 0,
        queries: if lengths.is_some() { Queries::Last } else { Queries::From(past) },
        left: side(importer, node, "left_window_size"),
        right: side(importer, node, "right_window_size"),
        cap: (cap > 0.0).then_some(cap),
        ..Attention::new(layout, scale)
    };
    let (mut y, scores) = if stage == Scores::Nothing {
        (importer.graph.attention(q, k, v, with, op)?, None)
    } else {
        let (y, scores) = importer.graph.attention_with_scores(q, k, v, with, op, stage)?;
        (y, Some(scores))
    };
    if flat {
        let [batch, queries, heads, elements] = importer.extents(y)?[..] else {
            return Err(importer.refuse(node, "no result of four axes"));
        };
        y = importer.graph.reshape(y, dims(&[batch, queries, heads * elements]))?;
    }
    Ok([y].into_iter().chain(present).chain(scores).collect())
}

fn rope(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let from = importer.extents(x)?;
    let flat = from.len() == 3;
    if flat {
        x = heads(importer, x, importer.int(node, "num_heads", 1))?;
    }
    let elements = importer.extents(x)?.last().copied().unwrap_or(0);
    let turned = usize::try_from(importer.int(node, "rotary_embedding_dim", 0)).unwrap_or(0);
    let mut tables = [importer.input(node, 1)?, importer.input(node, 2)?];
    for table in &mut tables {
        *table = importer.graph.cast(*table, ElementType::F32)?;
    }
    let positions = match importer.optional(node, 3)? {
        Some(positions) => Some(importer.graph.cast(positions, ElementType::U32)?),
        None => None,
    };
    let op = Rope {
        layout: if flat { AttentionLayout::Bshd } else { AttentionLayout::Bhsd },
        pairs: if importer.int(node, "interleaved", 0) != 0 { Pairs::Neighbours } else { Pairs::Halves },
        turned: if turned == 0 { elements } else { turned },
    };
    let y = importer.graph.rope(x, tables[0], tables[1], positions, op)?;
    Ok(vec![if flat { importer.graph.reshape(y, dims(&from))? } else { y }])
}
