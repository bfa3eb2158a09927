//! Ops element by element.

use trefoil_graph::graph::GraphError;
use trefoil_graph::{ElementType, Graph, Tensor};

use super::{Import, Imported, Importer, Unsupported, element_type};
use crate::cases::{Attribute, Node};

type Unary = fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>;
type Binary = fn(&mut Graph, Tensor, Tensor) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Abs", |i, n| unary(i, n, Graph::abs)),
    ("Ceil", |i, n| unary(i, n, Graph::ceil)),
    ("Cos", |i, n| unary(i, n, Graph::cos)),
    ("Erf", |i, n| unary(i, n, Graph::erf)),
    ("Exp", |i, n| unary(i, n, Graph::exp)),
    ("Floor", |i, n| unary(i, n, Graph::floor)),
    ("Log", |i, n| unary(i, n, Graph::log)),
    ("Neg", |i, n| unary(i, n, Graph::neg)),
    ("Not", |i, n| unary(i, n, Graph::logical_not)),
    ("Reciprocal", |i, n| unary(i, n, Graph::recip)),
    ("Relu", |i, n| unary(i, n, Graph::relu)),
    ("Round", |i, n| unary(i, n, Graph::round)),
    ("Sigmoid", |i, n| unary(i, n, Graph::sigmoid)),
    ("Sign", |i, n| unary(i, n, Graph::sign)),
    ("Sin", |i, n| unary(i, n, Graph::sin)),
    ("Sqrt", |i, n| unary(i, n, Graph::sqrt)),
    ("Tanh", |i, n| unary(i, n, Graph::tanh)),
    ("Gelu", |i, n| match i.string(n, "approximate", "none") {
        "none" => unary(i, n, Graph::gelu),
        "tanh" => unary(i, n, Graph::gelu_tanh),
        other => Err(i.refuse(n, format!("approximate = {other}"))),
    }),
    ("Add", |i, n| binary(i, n, Graph::add)),
    ("Sub", |i, n| binary(i, n, Graph::sub)),
    ("Mul", |i, n| binary(i, n, Graph::mul)),
    ("Div", |i, n| binary(i, n, Graph::div)),
    ("And", |i, n| binary(i, n, Graph::logical_and)),
    ("Or", |i, n| binary(i, n, Graph::logical_or)),
    ("Xor", |i, n| binary(i, n, Graph::logical_xor)),
    ("Equal", |i, n| binary(i, n, Graph::eq)),
    ("Less", |i, n| binary(i, n, Graph::lt)),
    ("LessOrEqual", |i, n| binary(i, n, Graph::le)),
    ("Greater", |i, n| binary(i, n, Graph::gt)),
    ("GreaterOrEqual", |i, n| binary(i, n, Graph::ge)),
    ("Pow", power),
    ("Mod", remainder),
    ("Min", |i, n| several(i, n, Graph::minimum)),
    ("Max", |i, n| several(i, n, Graph::maximum)),
    ("Sum", |i, n| several(i, n, Graph::add)),
    ("Mean", mean),
    ("Where", |i, n| {
        let (condition, accept, reject) = (i.input(n, 0)?, i.input(n, 1)?, i.input(n, 2)?);
        Ok(vec![i.graph.where_(condition, accept, reject)?])
    }),
    ("Identity", |i, n| Ok(vec![i.input(n, 0)?])),
    ("Cast", cast),
    ("CastLike", |i, n| {
        let (x, like) = (i.input(n, 0)?, i.input(n, 1)?);
        let to = i.ty(like)?.element;
        Ok(vec![i.graph.cast(x, to)?])
    }),
];

fn unary(importer: &mut Importer<'_>, node: &Node, function: Unary) -> Imported {
    let x = importer.input(node, 0)?;
    Ok(vec![function(&mut importer.graph, x)?])
}

fn binary(importer: &mut Importer<'_>, node: &Node, function: Binary) -> Imported {
    if importer.int(node, "broadcast", 0) != 0 {
        return Err(importer.refuse(node, "broadcasting as before version 7"));
    }
    let (a, b) = (importer.input(node, 0)?, importer.input(node, 1)?);
    Ok(vec![function(&mut importer.graph, a, b)?])
}

/// The exponent may be of another type; the result is of the base's.
fn power(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (base, exponent) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let (element, other) = (importer.ty(base)?.element, importer.ty(exponent)?.element);
    let wide = if element.is_float() { element } else { ElementType::F32 };
    let base = if element == wide { base } else { importer.graph.cast(base, wide)? };
    let exponent = if other == wide { exponent } else { importer.graph.cast(exponent, wide)? };
    let power = importer.graph.pow(base, exponent)?;
    Ok(vec![if element == wide { power } else { importer.graph.cast(power, element)? }])
}

/// `fmod` has the sign of the dividend, as `rem` has; otherwise it is the divisor's.
fn remainder(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (a, b) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let element = importer.ty(a)?.element;
    let graph = &mut importer.graph;
    let rest = graph.rem(a, b)?;
    let is_signed = matches!(element.name().chars().next(), Some('f' | 'i' | 'b'));
    if importer.int(node, "fmod", 0) != 0 || !is_signed {
        return Ok(vec![rest]);
    }
    let graph = &mut importer.graph;
    let zero = graph.scalar(0.0, element)?;
    let (below, divisor_below, some) = (graph.lt(rest, zero)?, graph.lt(b, zero)?, graph.ne(rest, zero)?);
    let differ = graph.logical_xor(below, divisor_below)?;
    let wrong = graph.logical_and(differ, some)?;
    let other = graph.add(rest, b)?;
    Ok(vec![graph.where_(wrong, other, rest)?])
}

/// Of any number of tensors.
fn several(importer: &mut Importer<'_>, node: &Node, function: Binary) -> Imported {
    let inputs = importer.inputs(node)?;
    let (first, others) = inputs.split_first().ok_or_else(|| importer.refuse(node, "no input"))?;
    let mut result = *first;
    for other in others {
        result = function(&mut importer.graph, result, *other)?;
    }
    Ok(vec![result])
}

fn mean(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let sum = several(importer, node, Graph::add)?;
    let element = importer.ty(sum[0])?.element;
    let count = importer.graph.scalar(node.inputs.len() as f64, element)?;
    Ok(vec![importer.graph.div(sum[0], count)?])
}

/// Element types by ONNX's numbers.
const NUMBERED: [(i64, &str); 13] = [
    (1, "float32"),
    (2, "uint8"),
    (3, "int8"),
    (4, "uint16"),
    (5, "int16"),
    (6, "int32"),
    (7, "int64"),
    (9, "bool"),
    (10, "float16"),
    (11, "float64"),
    (12, "uint32"),
    (13, "uint64"),
    (16, "bfloat16"),
];

/// The element type that an attribute names.
pub(super) fn numbered(importer: &Importer<'_>, node: &Node, name: &str) -> Result<Option<ElementType>, Unsupported> {
    let Some(Attribute::Int(number)) = node.attributes.get(name) else { return Ok(None) };
    let known = NUMBERED.iter().find(|(known, _)| known == number).map(|(_, name)| *name);
    let Some(known) = known else { return Err(importer.refuse(node, format!("{name} = {number}"))) };
    element_type(known).map(Some).ok_or_else(|| Unsupported::Element(known.to_owned()))
}

fn cast(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let to = numbered(importer, node, "to")?.ok_or_else(|| importer.refuse(node, "no `to`"))?;
    Ok(vec![importer.graph.cast(x, to)?])
}
