//! Constants, and ops that arrange elements otherwise.

use trefoil_graph::{Dim, ElementType};

use super::{Import, Imported, Importer, Unsupported, axis, dims, element_type, elements, values};
use crate::cases::{Attribute, Node};

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Constant", constant),
    ("ConstantOfShape", filled),
    ("Shape", shape),
    ("Size", |i, n| {
        let x = i.input(n, 0)?;
        let count = i.extents(x)?.iter().product::<usize>() as i64;
        Ok(vec![i.integers(&[], &[count])?])
    }),
    ("Reshape", reshape),
    ("Flatten", flatten),
    ("Transpose", transpose),
    ("Expand", expand),
    ("Squeeze", squeeze),
    ("Unsqueeze", unsqueeze),
    ("Slice", slice),
    ("Split", split),
];

fn constant(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let value = node.attributes.iter().find(|(name, _)| name.starts_with("value"));
    Ok(vec![match value {
        Some((_, Attribute::Tensor(stored))) => {
            let Some(element) = element_type(&stored.element) else {
                return Err(Unsupported::Element(stored.element.clone()));
            };
            let bytes = elements(element, importer.cases.bytes(stored));
            importer.constant(element, &stored.shape, &bytes)?
        }
        Some((_, Attribute::Int(value))) => importer.integers(&[], &[*value])?,
        Some((_, Attribute::Ints(values))) => importer.integers(&[values.len()], values)?,
        Some((_, Attribute::Float(value))) => {
            importer.constant(ElementType::F32, &[], &(*value as f32).to_le_bytes())?
        }
        Some((_, Attribute::Floats(values))) => {
            let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
            importer.constant(ElementType::F32, &[values.len()], &bytes)?
        }
        _ => return Err(importer.refuse(node, "a value that is no tensor of numbers")),
    }])
}

fn extents(importer: &Importer<'_>, node: &Node, position: usize) -> Result<Vec<usize>, Unsupported> {
    let numbers = importer.numbers(node, position)?.unwrap_or_default();
    Ok(numbers.into_iter().map(|extent| usize::try_from(extent).unwrap_or(0)).collect())
}

fn filled(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let shape = extents(importer, node, 0)?;
    let (element, value) = match node.attributes.get("value") {
        None => (ElementType::F32, 0.0),
        Some(Attribute::Tensor(stored)) => {
            let element = element_type(&stored.element).ok_or_else(|| Unsupported::Element(stored.element.clone()))?;
            let values = values(importer.cases, element, stored);
            (element, values.first().copied().unwrap_or(0.0))
        }
        Some(_) => return Err(importer.refuse(node, "a value that is no tensor")),
    };
    Ok(vec![importer.graph.fill(value, element, dims(&shape))?])
}

fn shape(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let extents = importer.extents(x)?;
    let rank = extents.len() as i64;
    let place = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let (start, end) = (place(importer.int(node, "start", 0)), place(importer.int(node, "end", rank)));
    let part: Vec<i64> = extents[start..end.max(start)].iter().map(|extent| *extent as i64).collect();
    Ok(vec![importer.integers(&[part.len()], &part)?])
}

fn reshape(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let from = importer.extents(x)?;
    let wanted = importer.ints_or_input(node, "shape", 1)?.unwrap_or_default();
    let keeps_zeros = importer.int(node, "allowzero", 0) != 0;
    let mut shape = Vec::new();
    let mut open = None;
    for (position, extent) in wanted.iter().enumerate() {
        shape.push(match *extent {
            0 if !keeps_zeros => from.get(position).copied().unwrap_or(0),
            -1 => {
                open = Some(position);
                1
            }
            extent => usize::try_from(extent).unwrap_or(0),
        });
    }
    if let Some(open) = open {
        let (all, known): (usize, usize) = (from.iter().product(), shape.iter().product());
        shape[open] = all.checked_div(known).unwrap_or(0);
    }
    Ok(vec![importer.graph.reshape(x, dims(&shape))?])
}

fn flatten(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let from = importer.extents(x)?;
    let at = importer.int(node, "axis", 1);
    let at = (if at < 0 { at + from.len() as i64 } else { at }).clamp(0, from.len() as i64) as usize;
    let shape = [from[..at].iter().product(), from[at..].iter().product()];
    Ok(vec![importer.graph.reshape(x, dims(&shape))?])
}

fn transpose(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let rank = importer.ty(x)?.rank();
    let permutation = match importer.ints(node, "perm") {
        Some(permutation) => permutation.into_iter().map(|axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect(),
        None => (0..rank).rev().collect::<Vec<_>>(),
    };
    Ok(vec![importer.graph.transpose(x, &permutation)?])
}

/// Broadcasting goes both ways: an extent of 1 asked for leaves the tensor's.
fn expand(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let (from, mut shape) = (importer.extents(x)?, extents(importer, node, 1)?);
    while shape.len() < from.len() {
        shape.insert(0, 1);
    }
    let added = shape.len() - from.len();
    for (extent, own) in shape[added..].iter_mut().zip(&from) {
        if *extent == 1 {
            *extent = *own;
        }
    }
    Ok(vec![importer.graph.expand(x, dims(&shape))?])
}

/// Axes from 0 up, in order.
fn places(axes: &[i64], rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = axes
        .iter()
        .map(|axis| usize::try_from(if *axis < 0 { axis + rank as i64 } else { *axis }).unwrap_or(0))
        .collect();
    axes.sort_unstable();
    axes
}

fn squeeze(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let from = importer.extents(x)?;
    let axes = match importer.ints_or_input(node, "axes", 1)? {
        Some(axes) => places(&axes, from.len()),
        None => (0..from.len()).filter(|axis| from[*axis] == 1).collect(),
    };
    for place in axes.into_iter().rev() {
        x = importer.graph.squeeze(x, axis(place as i64))?;
    }
    Ok(vec![x])
}

fn unsqueeze(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let axes = importer.ints_or_input(node, "axes", 1)?.unwrap_or_default();
    let rank = importer.ty(x)?.rank() + axes.len();
    for place in places(&axes, rank) {
        x = importer.graph.unsqueeze(x, axis(place as i64))?;
    }
    Ok(vec![x])
}

fn slice(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let starts = importer.ints_or_input(node, "starts", 1)?.unwrap_or_default();
    let ends = importer.ints_or_input(node, "ends", 2)?.unwrap_or_default();
    let axes = match importer.ints_or_input(node, "axes", 3)? {
        Some(axes) => axes,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = importer.numbers(node, 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    for (((place, start), end), step) in axes.iter().zip(&starts).zip(&ends).zip(&steps) {
        let extents = importer.extents(x)?;
        let place = places(&[*place], extents.len())[0];
        let extent = extents.get(place).copied().unwrap_or(0) as i64;
        // A negative step goes from the last position at most to before the first.
        let [low, high] = if *step < 0 { [-1, extent - 1] } else { [0, extent] };
        let clamp = |value: i64| (if value < 0 { value.saturating_add(extent) } else { value }).clamp(low, high);
        let step = (*step).clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX)) as i32;
        x = importer.graph.slice(x, axis(place as i64), clamp(*start), clamp(*end), step)?;
    }
    Ok(vec![x])
}

fn split(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let extents = importer.extents(x)?;
    let place = places(&[importer.int(node, "axis", 0)], extents.len())[0];
    let extent = extents.get(place).copied().unwrap_or(0) as i64;
    let lengths = match importer.ints_or_input(node, "split", 1)? {
        Some(lengths) => lengths,
        None => {
            let count = node.outputs.len() as i64;
            let each = (extent + count - 1) / count;
            (0..count).map(|part| (extent - part * each).clamp(0, each)).collect()
        }
    };
    let mut start = 0;
    let mut parts = Vec::new();
    for length in lengths {
        parts.push(importer.graph.narrow(x, axis(place as i64), Dim::from(start), Dim::from(length))?);
        start += length;
    }
    Ok(parts)
}
