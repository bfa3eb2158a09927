//! Casts, from and to the types too that hold eight bits and fewer: a tensor of such a type is one of codes in `u8` ([`Narrow`]), of which the importer notes what they mean.

use trefoil_graph::ops::narrow::{Narrow, Overflow, Rounding};
use trefoil_graph::{ElementType, Graph, GraphError, Tensor};

use super::maps::numbered;
use super::{Import, Imported, Importer, Unsupported, axis, dims, narrow_type};
use crate::cases::{Attribute, Node};

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Cast", |i, n| {
        let to = target(i, n, "to")?.ok_or_else(|| i.refuse(n, "no `to`"))?;
        cast(i, n, to)
    }),
    ("CastLike", |i, n| {
        let to = match i.narrow_of(n, 1) {
            Some(narrow) => Target::Narrow(narrow),
            None => Target::Plain(i.ty(i.input(n, 1)?)?.element),
        };
        cast(i, n, to)
    }),
    ("DequantizeLinear", dequantize),
    ("DynamicQuantizeLinear", quantize_by_range),
    ("Identity", |i, n| {
        let x = i.input(n, 0)?;
        if let Some(narrow) = i.narrow_of(n, 0) {
            note(i, n, narrow);
        }
        Ok(vec![x])
    }),
    ("QuantizeLinear", quantize),
];

/// ONNX's numbers of the types of codes, with NumPy's names.
pub(super) const NARROW: [(i64, &str, Narrow); 10] = [
    (17, "float8e4m3fn", Narrow::Float8E4M3),
    (18, "float8e4m3fnuz", Narrow::Float8E4M3Fnuz),
    (19, "float8e5m2", Narrow::Float8E5M2),
    (20, "float8e5m2fnuz", Narrow::Float8E5M2Fnuz),
    (21, "uint4", Narrow::U4),
    (22, "int4", Narrow::I4),
    (23, "float4e2m1", Narrow::Float4E2M1),
    (24, "float8e8m0", Narrow::Float8E8M0),
    (25, "uint2", Narrow::U2),
    (26, "int2", Narrow::I2),
];

/// What is cast to.
#[derive(Clone, Copy)]
enum Target {
    Plain(ElementType),
    Narrow(Narrow),
}

/// The type that an attribute names.
fn target(importer: &Importer<'_>, node: &Node, name: &str) -> Result<Option<Target>, Unsupported> {
    if let Some(Attribute::Int(number)) = node.attributes.get(name)
        && let Some((_, known, _)) = NARROW.iter().find(|(known, ..)| known == number)
    {
        return Ok(narrow_type(known).map(Target::Narrow));
    }
    Ok(numbered(importer, node, name)?.map(Target::Plain))
}

/// Notes what the codes of a node's first output mean.
fn note(importer: &mut Importer<'_>, node: &Node, narrow: Narrow) {
    importer.narrow.extend(node.outputs.first().map(|output| (output.clone(), narrow)));
}

/// An input as numbers: of codes, in `f32`, which has all of theirs.
fn numbers(importer: &mut Importer<'_>, node: &Node, position: usize) -> Result<Tensor, Unsupported> {
    let x = importer.input(node, position)?;
    match importer.narrow_of(node, position) {
        Some(narrow) => Ok(importer.graph.decode(x, narrow, ElementType::F32)?),
        None => Ok(x),
    }
}

fn converted(importer: &mut Importer<'_>, x: Tensor, to: ElementType) -> Result<Tensor, Unsupported> {
    if importer.ty(x)?.element == to { Ok(x) } else { Ok(importer.graph.cast(x, to)?) }
}

/// The codes of numbers, which integers are cut off to and floats rounded to.
fn encoded(importer: &mut Importer<'_>, node: &Node, x: Tensor, narrow: Narrow) -> Result<Tensor, Unsupported> {
    let element = importer.ty(x)?.element;
    let is_small = element.bytes() <= 4 && element != ElementType::Bool;
    let x = match (narrow.is_float(), element.is_float()) {
        (_, true) if is_small => x,
        (false, false) if is_small => x,
        (false, false) => converted(importer, x, ElementType::I32)?,
        _ => converted(importer, x, ElementType::F32)?,
    };
    let rounding = match narrow {
        Narrow::Float8E8M0 => match importer.string(node, "round_mode", "up") {
            "up" => Rounding::Up,
            "down" => Rounding::Down,
            "nearest" => Rounding::Nearest,
            other => return Err(importer.refuse(node, format!("round_mode = {other}"))),
        },
        _ if narrow.is_float() => Rounding::Nearest,
        _ => Rounding::TowardZero,
    };
    let saturates = narrow.is_float() && (importer.int(node, "saturate", 1) != 0 || narrow == Narrow::Float4E2M1);
    let overflow = if saturates { Overflow::Saturated } else { Overflow::Lost };
    note(importer, node, narrow);
    Ok(importer.graph.encode(x, narrow, overflow, rounding)?)
}

fn cast(importer: &mut Importer<'_>, node: &Node, to: Target) -> Imported {
    let x = numbers(importer, node, 0)?;
    Ok(vec![match to {
        Target::Plain(element) => converted(importer, x, element)?,
        Target::Narrow(narrow) => encoded(importer, node, x, narrow)?,
    }])
}

/// A scale or a zero point as `f32` that broadcasts to x: one number, one for each place of an axis, or one for each block of places.
fn spread(importer: &mut Importer<'_>, node: &Node, position: usize) -> Result<Option<Tensor>, Unsupported> {
    if importer.optional(node, position)?.is_none() {
        return Ok(None);
    }
    let of = numbers(importer, node, position)?;
    let of = converted(importer, of, ElementType::F32)?;
    let (shape, x) = (importer.extents(of)?, importer.extents(importer.input(node, 0)?)?);
    let (at, block) = (importer.int(node, "axis", 1), importer.int(node, "block_size", 0));
    let at = usize::try_from(if at < 0 { at + x.len() as i64 } else { at }).unwrap_or(usize::MAX);
    let graph = &mut importer.graph;
    if shape.iter().product::<usize>() == 1 {
        return Ok(Some(graph.reshape(of, dims(&[]))?));
    }
    let Some(extent) = x.get(at).copied() else { return Err(importer.refuse(node, format!("axis = {at}"))) };
    if block == 0 {
        let mut along = vec![1; x.len()];
        along[at] = extent;
        return Ok(Some(graph.reshape(of, dims(&along))?));
    }
    let block = usize::try_from(block).unwrap_or(0);
    let after = axis(at as i64 + 1);
    let repeated = graph.unsqueeze(of, after)?;
    let mut wide = shape.clone();
    wide.insert(at + 1, block);
    let repeated = graph.expand(repeated, dims(&wide))?;
    let mut flat = shape;
    flat[at] *= block;
    let repeated = graph.reshape(repeated, dims(&flat))?;
    Ok(Some(graph.narrow(repeated, axis(at as i64), 0i64, extent as i64)?))
}

/// `x / y` of `f32` as IEEE 754 rounds it. A GPU's own quotient may be an ulp beside that, and then another integer is the nearest where it is about half of an odd number.
///
/// What is left of x is exact: of halves of the numbers every product is, whether it is rounded before it is taken off or not. That they are cut by their bits hides from a compiler that `(x / y) * y` stands there, which a driver takes for x.
pub(super) fn quotient(graph: &mut Graph, x: Tensor, y: Tensor) -> Result<Tensor, GraphError> {
    let near = graph.div(x, y)?;
    let (of_near, of_y) = (halves(graph, near)?, halves(graph, y)?);
    let mut rest = x;
    for [a, b] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        let product = graph.mul(of_near[a], of_y[b])?;
        rest = graph.sub(rest, product)?;
    }
    let missing = graph.div(rest, y)?;
    let nearest = graph.add(near, missing)?;
    // Of an infinity nothing is left to divide.
    let is_none = graph.is_nan(nearest)?;
    graph.where_(is_none, near, nearest)
}

/// Numbers of 12 significant bits each, of which the second is what the first lacks.
fn halves(graph: &mut Graph, x: Tensor) -> Result<[Tensor; 2], GraphError> {
    let bits = graph.bitcast(x, ElementType::U32)?;
    let upper = graph.scalar(0xffff_f000_u32, ElementType::U32)?;
    let upper = graph.bit_and(bits, upper)?;
    let upper = graph.bitcast(upper, ElementType::F32)?;
    Ok([upper, graph.sub(x, upper)?])
}

/// The nearest integer of `x / scale`, ties to even, and the zero point; within what the type holds.
fn quantize(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let x = converted(importer, x, ElementType::F32)?;
    let scale = spread(importer, node, 1)?.ok_or_else(|| importer.refuse(node, "no scale"))?;
    let zero = spread(importer, node, 2)?;
    let to = match (importer.narrow_of(node, 2), importer.optional(node, 2)?) {
        (Some(narrow), _) => Target::Narrow(narrow),
        (None, Some(zero)) => Target::Plain(importer.ty(zero)?.element),
        (None, None) => target(importer, node, "output_dtype")?.unwrap_or(Target::Plain(ElementType::U8)),
    };
    let y = quotient(&mut importer.graph, x, scale)?;
    // A float's zero point is 0, which takes the sign from minus zero.
    let moved = |importer: &mut Importer<'_>, y| match zero {
        Some(zero) => importer.graph.add(y, zero),
        None => Ok(y),
    };
    let [low, high] = match to {
        Target::Narrow(narrow) if narrow.is_float() => {
            let y = moved(importer, y)?;
            return Ok(vec![encoded(importer, node, y, narrow)?]);
        }
        Target::Narrow(narrow) => {
            let values = (0..=u8::MAX).map(|code| narrow.value(code));
            values.fold([0.0f64; 2], |[low, high], value| [low.min(value), high.max(value)])
        }
        Target::Plain(element) => element.scalar().limits().map(|limit| limit as f64),
    };
    let y = importer.graph.round(y)?;
    let y = moved(importer, y)?;
    let y = importer.graph.clamp(y, low as f32, high as f32)?;
    Ok(vec![match to {
        Target::Narrow(narrow) => encoded(importer, node, y, narrow)?,
        Target::Plain(element) => importer.graph.cast(y, element)?,
    }])
}

/// `(x - zero) * scale`, in the scale's type.
fn dequantize(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = numbers(importer, node, 0)?;
    let mut x = converted(importer, x, ElementType::F32)?;
    let scale = spread(importer, node, 1)?.ok_or_else(|| importer.refuse(node, "no scale"))?;
    if let Some(zero) = spread(importer, node, 2)? {
        x = importer.graph.sub(x, zero)?;
    }
    let y = importer.graph.mul(x, scale)?;
    let element = importer.ty(importer.input(node, 1)?)?.element;
    let element = match target(importer, node, "output_dtype")? {
        Some(Target::Plain(element)) => element,
        Some(Target::Narrow(_)) => return Err(importer.refuse(node, "codes to be made of what codes mean")),
        None => element,
    };
    Ok(vec![converted(importer, y, element)?])
}

/// `u8` by the range of x, which 0 is made to belong to; with the scale and the zero point.
fn quantize_by_range(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let rank = importer.extents(x)?.len();
    let axes: Vec<isize> = (0..rank).map(|at| axis(at as i64)).collect();
    let graph = &mut importer.graph;
    let (least, most) = (graph.min_over(x, &axes, false)?, graph.max_over(x, &axes, false)?);
    let zero = graph.scalar(0.0, ElementType::F32)?;
    let (least, most) = (graph.minimum(least, zero)?, graph.maximum(most, zero)?);
    let range = graph.sub(most, least)?;
    let steps = graph.scalar(255.0, ElementType::F32)?;
    let scale = quotient(graph, range, steps)?;
    let below = quotient(graph, least, scale)?;
    let above = graph.neg(below)?;
    let above = graph.clamp(above, 0.0, 255.0)?;
    let zero_point = graph.round(above)?;
    let y = quotient(graph, x, scale)?;
    let y = graph.round(y)?;
    let y = graph.add(y, zero_point)?;
    let y = graph.clamp(y, 0.0, 255.0)?;
    let y = graph.cast(y, ElementType::U8)?;
    Ok(vec![y, scale, graph.cast(zero_point, ElementType::U8)?])
}
