//! Random numbers. The cases hold what NumPy's generator draws, so that what is drawn cannot be compared; what a node draws nothing for can be.

use super::{Import, Imported, Importer, Unsupported};
use crate::cases::{Attribute, Node};

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Bernoulli", drawn),
    ("Dropout", dropout),
    ("Multinomial", drawn),
    ("RandomNormal", drawn),
    ("RandomNormalLike", drawn),
    ("RandomUniform", drawn),
    ("RandomUniformLike", drawn),
];

fn of_another_generator(importer: &Importer<'_>, node: &Node) -> Unsupported {
    importer.refuse(node, "values that another generator drew")
}

fn drawn(importer: &mut Importer<'_>, node: &Node) -> Imported {
    Err(of_another_generator(importer, node))
}

/// Everything is kept but in training, with a ratio that is not 0.
fn dropout(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let first = |input: Option<_>| {
        Ok::<_, Unsupported>(match input {
            Some(tensor) => importer.values_of(tensor)?.first().copied(),
            None => None,
        })
    };
    let ratio = match node.attributes.get("ratio") {
        Some(Attribute::Float(ratio)) => *ratio,
        _ => first(importer.optional(node, 1)?)?.unwrap_or(0.5),
    };
    let trains = first(importer.optional(node, 2)?)?.is_some_and(|mode| mode != 0.0);
    if trains && ratio != 0.0 {
        return Err(of_another_generator(importer, node));
    }
    let (y, kept) = importer.graph.dropout(x, 0.0)?;
    Ok(vec![y, kept])
}
