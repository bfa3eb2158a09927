//! What values and memory are made of: scalars in one row, whatever the type.

use crate::ir::{Handle, Module, Scalar, Type};
use crate::layout;

/// The scalars that a value of a type is made of, in memory order, and where each lies.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) scalars: Vec<Scalar>,
    /// Byte offsets in memory; empty for what memory does not hold.
    pub(super) offsets: Vec<u32>,
    /// Bytes from one to the next in memory.
    pub(super) bytes: u32,
}

impl Shape {
    pub(super) fn count(&self) -> usize {
        self.scalars.len()
    }
}

/// The shapes of all types of a module.
///
/// # Errors
/// A type that is held by nothing here, in words.
pub(super) fn shapes(module: &Module) -> Result<Vec<Shape>, String> {
    module.types.iter().map(|(ty, _)| shape(module, ty)).collect()
}

fn shape(module: &Module, ty: Handle<Type>) -> Result<Shape, String> {
    let mut shape = Shape::default();
    if matches!(module.types[ty], Type::Matrix(_)) {
        // The type may stay in the arena when its values are gone.
        return Ok(shape);
    }
    scalars(module, ty, &mut shape.scalars)?;
    if let Some(layout) = layout::of(module, ty) {
        shape.bytes = layout.size;
        offsets(module, ty, 0, &mut shape.offsets)?;
    }
    Ok(shape)
}

fn scalars(module: &Module, ty: Handle<Type>, out: &mut Vec<Scalar>) -> Result<(), String> {
    match &module.types[ty] {
        Type::Scalar(scalar) => out.push(*scalar),
        Type::Vector { lanes, scalar } => out.extend((0..*lanes).map(|_| *scalar)),
        Type::Enum(_) => out.push(Scalar::U32),
        Type::Array { element, length } => {
            let length = length.literal().ok_or("an array's length is not known")?;
            let mut one = Vec::new();
            scalars(module, *element, &mut one)?;
            (0..length).for_each(|_| out.extend(&one));
        }
        Type::Struct(handle) => {
            for (_, field) in &module.structs[*handle].fields {
                scalars(module, *field, out)?;
            }
        }
        Type::Matrix(_) => {}
    }
    Ok(())
}

fn offsets(module: &Module, ty: Handle<Type>, at: u32, out: &mut Vec<u32>) -> Result<(), String> {
    let bytes = |ty| layout::of(module, ty).map(|layout| layout.size).ok_or("memory does not hold a type");
    match &module.types[ty] {
        Type::Scalar(_) | Type::Enum(_) => out.push(at),
        Type::Vector { lanes, scalar } => {
            out.extend((0..u32::from(*lanes)).map(|lane| at + lane * scalar.bytes().unwrap_or(4)));
        }
        Type::Array { element, length } => {
            let each = bytes(*element)?;
            for index in 0..length.literal().unwrap_or(0) {
                offsets(module, *element, at + index * each, out)?;
            }
        }
        Type::Struct(handle) => {
            let fields = layout::field_offsets(module, *handle).ok_or("memory does not hold a struct")?;
            for ((_, field), offset) in module.structs[*handle].fields.iter().zip(fields) {
                offsets(module, *field, at + offset, out)?;
            }
        }
        Type::Matrix(_) => {}
    }
    Ok(())
}
