//! A whole graph by its ops' references, in `f64`: what every device is held against.

use std::any::Any;
use std::collections::BTreeMap;

use trefoil_dsl::error::Error as DeviceError;

use crate::compile::words::expect_extents_of;
use crate::data::to_f64;
use crate::dim::Extents;
use crate::error::{Error, Result, at};
use crate::graph::{Graph, Leaf, LeafKind, Tensor};
use crate::op::HostTensor;
use crate::ops::state::Update;
use crate::types::{ElementType, elements_of};

/// Elements as they lie in memory (of bools, words), as `f64`; bytes behind the last whole element are left out.
pub fn values(element: ElementType, bytes: &[u8]) -> Vec<f64> {
    to_f64(element, bytes)
}

/// How far a result may be from the reference, relative to it, or to 1 if that is more: a few units in the last place of the type, after some steps.
pub const fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::BF16 => 8e-3,
        ElementType::F16 => 2e-3,
        ElementType::F32 => 3e-5,
        ElementType::F64 => 1e-13,
        _ => 0.0,
    }
}

/// An empty list with room for the elements of a shape.
fn room_for(tensor: &str, shape: &[usize]) -> Result<Vec<f64>> {
    let (elements, mut room) = (elements_of(shape), Vec::new());
    room.try_reserve_exact(elements).map_err(|_| {
        let (what, device) = ("a list of its values".to_owned(), "the host".to_owned());
        let bytes = (elements as u64).saturating_mul(size_of::<f64>() as u64);
        at("tensor", tensor)(DeviceError::OutOfMemory { what, bytes, device })
    })?;
    Ok(room)
}

/// The elements of what a node reads, as many as its type says: references look no further.
fn operand(
    graph: &Graph,
    tensor: Tensor,
    values: &BTreeMap<Tensor, HostTensor>,
    extents: &Extents,
) -> Result<HostTensor> {
    let (what, ty) = ("operand", graph.type_of(tensor)?);
    let name = graph.nodes()[tensor.node()].name.clone();
    let Some(value) = values.get(&tensor) else {
        return Err(Error::Missing { what, name, ty: ty.to_string() });
    };
    let shape = ty.shape_in(extents)?;
    if value.shape != shape {
        let [given, expected] = [&value.shape, &shape].map(|shape| format!("{}{shape:?}", ty.element));
        return Err(Error::Shape { what, name, given, expected });
    }
    let (given, expected) = (value.values.len() as u64, elements_of(&shape) as u64);
    if given != expected {
        return Err(Error::Length { what, name, given, expected, ty: ty.to_string() });
    }
    Ok(value.clone())
}

/// Every output of a graph for given inputs, params and states, by name. States that are not given are zero, as before a first run; what a run leaves in one is seen through an output of its newest version.
///
/// # Errors
/// A leaf is missing or has another number of elements, a symbol has no value, an op has no reference for these, or a tensor has more elements than the host holds.
pub fn evaluate(
    graph: &Graph,
    leaves: &BTreeMap<String, HostTensor>,
    extents: &Extents,
) -> Result<BTreeMap<String, HostTensor>> {
    let mut values: BTreeMap<Tensor, HostTensor> = BTreeMap::new();
    for node in 0..graph.nodes().len() {
        for (port, tensor) in evaluate_node(graph, node, leaves, &values, extents)?.into_iter().enumerate() {
            values.insert(graph.tensor(node as u32, port as u32), tensor);
        }
    }
    Ok(graph
        .outputs()
        .iter()
        .filter_map(|(name, tensor)| values.get(tensor).map(|value| (name.clone(), value.clone())))
        .collect())
}

/// The outputs of one node, by its position in [`Graph::nodes`], from the values of what it reads.
///
/// # Errors
/// As [`evaluate`]; or what the node reads is missing among the values, or has another shape or another number of elements.
pub fn evaluate_node(
    graph: &Graph,
    node: usize,
    leaves: &BTreeMap<String, HostTensor>,
    values: &BTreeMap<Tensor, HostTensor>,
    extents: &Extents,
) -> Result<Vec<HostTensor>> {
    let Some(node) = graph.nodes().get(node) else {
        let known = graph.nodes().len().to_string();
        return Err(Error::Unknown { what: "node", name: node.to_string(), known });
    };
    let shapes: Vec<Vec<usize>> = node.outputs.iter().map(|ty| ty.shape_in(extents)).collect::<Result<_, _>>()?;
    node.outputs.iter().try_for_each(|ty| expect_extents_of(&node.name, ty, extents))?;
    let op: &dyn Any = &*node.op;
    let made = match node.leaf() {
        Some(Leaf { kind: LeafKind::Constant(bytes), ty }) => {
            vec![HostTensor { shape: shapes[0].clone(), values: to_f64(ty.element, bytes) }]
        }
        Some(Leaf { kind: LeafKind::State, .. }) if !leaves.contains_key(&node.name) => {
            let mut zeros = room_for(&node.name, &shapes[0])?;
            zeros.resize(elements_of(&shapes[0]), 0.0);
            vec![HostTensor { shape: shapes[0].clone(), values: zeros }]
        }
        Some(leaf) => {
            let missing = || Error::Missing { what: "leaf", name: node.name.clone(), ty: leaf.ty.to_string() };
            let given = leaves.get(&node.name).ok_or_else(missing)?;
            let expected = elements_of(&shapes[0]) as u64;
            if given.values.len() as u64 != expected {
                return Err(Error::Length {
                    what: "leaf",
                    name: node.name.clone(),
                    given: given.values.len() as u64,
                    expected,
                    ty: leaf.ty.to_string(),
                });
            }
            vec![HostTensor { shape: shapes[0].clone(), values: given.values.clone() }]
        }
        None => {
            // References take the room for what they give without asking.
            shapes.iter().try_for_each(|shape| room_for(&node.name, shape).map(drop))?;
            let operands = node.inputs.iter().map(|input| operand(graph, *input, values, extents));
            let inputs = operands.collect::<Result<Vec<_>>>()?;
            match (op.downcast_ref::<Update>(), inputs.as_slice()) {
                (Some(update), [state, value]) => {
                    let found = graph.state_of(node.inputs[0]).unwrap_or(node.inputs[0]);
                    let name = &graph.nodes()[found.node as usize].name;
                    vec![update.replaced(name, state, value, extents)?]
                }
                _ => node.op.reference(&inputs, &shapes),
            }
        }
    };
    if made.len() != shapes.len() {
        return Err(Error::Missing { what: "reference of", name: node.name.clone(), ty: node.op.name().to_owned() });
    }
    Ok(made)
}
