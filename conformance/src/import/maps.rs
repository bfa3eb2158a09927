//! Ops element by element.

use trefoil_graph::graph::GraphError;
use trefoil_graph::{ElementType, Graph, Tensor};

use super::casts::quotient;
use super::{ELEMENTS, Import, Imported, Importer, Unsupported, element_type};
use crate::cases::{Attribute, Node};

type Unary = fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>;
type Binary = fn(&mut Graph, Tensor, Tensor) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Abs", |i, n| unary(i, n, Graph::abs)),
    ("Acos", |i, n| unary(i, n, Graph::acos)),
    ("Acosh", |i, n| unary(i, n, Graph::acosh)),
    ("Asin", |i, n| unary(i, n, Graph::asin)),
    ("Asinh", |i, n| unary(i, n, Graph::asinh)),
    ("Atan", |i, n| unary(i, n, Graph::atan)),
    ("Atanh", |i, n| unary(i, n, Graph::atanh)),
    ("BitwiseNot", |i, n| unary(i, n, Graph::bit_not)),
    ("Ceil", |i, n| unary(i, n, Graph::ceil)),
    ("Cos", |i, n| unary(i, n, Graph::cos)),
    ("Cosh", |i, n| unary(i, n, Graph::cosh)),
    ("Erf", |i, n| unary(i, n, Graph::erf)),
    ("Exp", |i, n| unary(i, n, Graph::exp)),
    ("Floor", |i, n| unary(i, n, Graph::floor)),
    ("HardSwish", |i, n| unary(i, n, Graph::hard_swish)),
    ("IsNaN", |i, n| unary(i, n, Graph::is_nan)),
    ("Log", |i, n| unary(i, n, Graph::log)),
    ("Mish", |i, n| unary(i, n, Graph::mish)),
    ("Neg", |i, n| unary(i, n, Graph::neg)),
    ("Not", |i, n| unary(i, n, Graph::logical_not)),
    ("Reciprocal", |i, n| unary(i, n, Graph::recip)),
    ("Relu", |i, n| unary(i, n, Graph::relu)),
    ("Round", |i, n| unary(i, n, Graph::round)),
    ("Sigmoid", |i, n| unary(i, n, Graph::sigmoid)),
    ("Sign", |i, n| unary(i, n, Graph::sign)),
    ("Sin", |i, n| unary(i, n, Graph::sin)),
    ("Sinh", |i, n| unary(i, n, Graph::sinh)),
    ("Softplus", |i, n| unary(i, n, Graph::softplus)),
    ("Sqrt", |i, n| unary(i, n, Graph::sqrt)),
    ("Tan", |i, n| unary(i, n, Graph::tan)),
    ("Tanh", |i, n| unary(i, n, Graph::tanh)),
    ("Gelu", |i, n| match i.string(n, "approximate", "none") {
        "none" => unary(i, n, Graph::gelu),
        "tanh" => unary(i, n, Graph::gelu_tanh),
        other => Err(i.refuse(n, format!("approximate = {other}"))),
    }),
    ("IsInf", is_inf),
    ("LeakyRelu", |i, n| bent(i, n, 0.01, Graph::leaky_relu)),
    ("Elu", |i, n| bent(i, n, 1.0, Graph::elu)),
    ("Celu", |i, n| bent(i, n, 1.0, Graph::celu)),
    ("Selu", selu),
    ("HardSigmoid", |i, n| {
        let (x, alpha, beta) = (i.input(n, 0)?, i.float(n, "alpha", 0.2), i.float(n, "beta", 0.5));
        let line = i.graph.affine(x, alpha, beta)?;
        Ok(vec![i.graph.clamp(line, 0.0, 1.0)?])
    }),
    ("Swish", |i, n| {
        let x = i.input(n, 0)?;
        let scaled = match i.float(n, "alpha", 1.0) {
            1.0 => return Ok(vec![i.graph.silu(x)?]),
            alpha => i.graph.affine(x, alpha, 0.0)?,
        };
        let gate = i.graph.sigmoid(scaled)?;
        Ok(vec![i.graph.mul(x, gate)?])
    }),
    ("Clip", clip),
    ("Add", |i, n| binary(i, n, Graph::add)),
    ("Sub", |i, n| binary(i, n, Graph::sub)),
    ("Mul", |i, n| binary(i, n, Graph::mul)),
    // What is made of a quotient may be rounded to an integer.
    ("Div", |i, n| {
        let is_float = i.ty(i.input(n, 0)?)?.element == ElementType::F32;
        binary(i, n, if is_float { quotient } else { Graph::div })
    }),
    ("And", |i, n| binary(i, n, Graph::logical_and)),
    ("Or", |i, n| binary(i, n, Graph::logical_or)),
    ("Xor", |i, n| binary(i, n, Graph::logical_xor)),
    ("Equal", |i, n| binary(i, n, Graph::eq)),
    ("Less", |i, n| binary(i, n, Graph::lt)),
    ("LessOrEqual", |i, n| binary(i, n, Graph::le)),
    ("Greater", |i, n| binary(i, n, Graph::gt)),
    ("GreaterOrEqual", |i, n| binary(i, n, Graph::ge)),
    ("BitwiseAnd", |i, n| binary(i, n, Graph::bit_and)),
    ("BitwiseOr", |i, n| binary(i, n, Graph::bit_or)),
    ("BitwiseXor", |i, n| binary(i, n, Graph::bit_xor)),
    ("BitShift", shift),
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
    ("BitCast", |i, n| {
        let x = i.input(n, 0)?;
        let to = numbered(i, n, "to")?.ok_or_else(|| i.refuse(n, "no `to`"))?;
        // A bool is a byte there, and a word here.
        if i.ty(x)?.element == ElementType::Bool && to.bytes() == 1 {
            return Ok(vec![i.graph.cast(x, to)?]);
        }
        Ok(vec![i.graph.bitcast(x, to)?])
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

/// What is shifted by its width or more, or by less than nothing, leaves its sign to the right and nothing to the left; the graph's shifts count modulo the width.
fn shift(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let is_left = match importer.string(node, "direction", "") {
        "LEFT" => true,
        "RIGHT" => false,
        other => return Err(importer.refuse(node, format!("direction = {other}"))),
    };
    let (x, by) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let element = importer.ty(x)?.element;
    let width = element.bytes() * 8;
    let graph = &mut importer.graph;
    let (zero, last) = (graph.scalar(0, element)?, graph.scalar(width - 1, element)?);
    let (below, beyond) = (graph.lt(by, zero)?, graph.gt(by, last)?);
    let outside = graph.logical_or(below, beyond)?;
    if is_left || !element.scalar().is_signed() {
        let shifted = if is_left { graph.shl(x, by)? } else { graph.shr(x, by)? };
        return Ok(vec![graph.where_(outside, zero, shifted)?]);
    }
    let by = graph.where_(outside, last, by)?;
    Ok(vec![graph.shr(x, by)?])
}

/// A function with one attribute, `alpha`.
fn bent(
    importer: &mut Importer<'_>,
    node: &Node,
    default: f32,
    function: fn(&mut Graph, Tensor, f32) -> Result<Tensor, GraphError>,
) -> Imported {
    let (x, alpha) = (importer.input(node, 0)?, importer.float(node, "alpha", default));
    Ok(vec![function(&mut importer.graph, x, alpha)?])
}

/// ONNX lets both numbers of it be others: `gamma * elu(x, alpha)`.
fn selu(importer: &mut Importer<'_>, node: &Node) -> Imported {
    if !node.attributes.contains_key("alpha") && !node.attributes.contains_key("gamma") {
        return unary(importer, node, Graph::selu);
    }
    // The fractions that ONNX states for it.
    let elu = bent(importer, node, 1.673_263_2, Graph::elu)?;
    let gamma = importer.float(node, "gamma", 1.050_701);
    Ok(vec![importer.graph.affine(elu[0], gamma, 0.0)?])
}

/// Of one sign alone, if an attribute says so.
fn is_inf(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let (negative, positive) =
        (importer.int(node, "detect_negative", 1) != 0, importer.int(node, "detect_positive", 1) != 0);
    let element = importer.ty(x)?.element;
    let graph = &mut importer.graph;
    let found = graph.is_inf(x)?;
    if negative && positive {
        return Ok(vec![found]);
    }
    let zero = graph.scalar(0.0, element)?;
    let sign = match (negative, positive) {
        (true, false) => graph.lt(x, zero)?,
        (false, true) => graph.gt(x, zero)?,
        _ => graph.ne(found, found)?,
    };
    Ok(vec![importer.graph.logical_and(found, sign)?])
}

/// Bounds are tensors, or attributes before version 11.
fn clip(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let element = importer.ty(x)?.element;
    for (position, name, function) in [(1, "min", Graph::maximum as Binary), (2, "max", Graph::minimum as Binary)] {
        let bound = match (importer.optional(node, position)?, node.attributes.get(name)) {
            (Some(bound), _) => Some(bound),
            (None, Some(Attribute::Float(bound))) => Some(importer.graph.scalar(*bound, element)?),
            (None, _) => None,
        };
        if let Some(bound) = bound {
            x = function(&mut importer.graph, x, bound)?;
        }
    }
    Ok(vec![x])
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
    let count = importer.graph.scalar(node.inputs.len(), element)?;
    Ok(vec![importer.graph.div(sum[0], count)?])
}

/// The element type that an attribute names.
pub(super) fn numbered(importer: &Importer<'_>, node: &Node, name: &str) -> Result<Option<ElementType>, Unsupported> {
    let Some(Attribute::Int(number)) = node.attributes.get(name) else { return Ok(None) };
    let known = ELEMENTS.iter().find(|(known, ..)| known == number).map(|(_, name, _)| *name);
    let Some(known) = known else { return Err(importer.refuse(node, format!("{name} = {number}"))) };
    element_type(known).map(Some).ok_or_else(|| Unsupported::Element(known.to_owned()))
}
