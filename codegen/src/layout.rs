//! Sizes and offsets, the same on the host and on every target, stated once.

use crate::artefact::{GridKind, ParamField, ParamRole, ParamScalar, ParamType, Params};
use crate::flat;
use crate::ir::{Handle, IndexWidth, Module, Scalar, Type};
use crate::names::FieldNames;

/// Size and alignment of a type in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// From one element of an array of it to the next.
    pub size: u32,
    /// Where it may start.
    pub align: u32,
}

/// The layout of a type of an instance; `None` for a type that memory does not hold (`bool`, or an array of unknown length).
pub fn of(module: &Module, ty: Handle<Type>) -> Option<Layout> {
    match &module.types[ty] {
        Type::Scalar(scalar) => scalar.bytes().map(|bytes| Layout { size: bytes, align: bytes }),
        Type::Vector { lanes, scalar } => {
            let bytes = scalar.bytes()?;
            let size = bytes * u32::from(*lanes);
            Some(Layout { size, align: if *lanes == 3 { bytes } else { size } })
        }
        Type::Array { element, length } => {
            let element = of(module, *element)?;
            Some(Layout { size: element.size.checked_mul(length.literal()?)?, align: element.align })
        }
        Type::Struct(handle) => {
            let (mut size, mut align) = (0u32, 1u32);
            for (_, field) in &module.structs[*handle].fields {
                let field = of(module, *field)?;
                size = size.next_multiple_of(field.align) + field.size;
                align = align.max(field.align);
            }
            Some(Layout { size: size.next_multiple_of(align), align })
        }
        Type::Enum(_) => Some(Layout { size: 4, align: 4 }),
        Type::Matrix(_) => None,
    }
}

/// Byte offsets of a struct's fields, in declaration order.
pub fn field_offsets(module: &Module, handle: Handle<crate::ir::Struct>) -> Option<Vec<u32>> {
    let mut end = 0u32;
    module.structs[handle]
        .fields
        .iter()
        .map(|(_, field)| {
            let field = of(module, *field)?;
            let offset = end.next_multiple_of(field.align);
            end = offset + field.size;
            Some(offset)
        })
        .collect()
}

/// The parameter block of an instance: the author's parameters, then what the launch adds; no two fields have one name. `None` if a parameter
/// has a type that cannot be one, which the verifier rejects.
pub fn params(module: &Module, grid: GridKind) -> Option<Params> {
    let mut names = FieldNames::new(module);
    let mut block = Block::default();
    let mut leaf = 0;
    for (index, param) in module.params.iter().enumerate() {
        if let role @ ParamRole::Constant(_) = param_role(module, index as u32) {
            // Constants have names of their own in the texts.
            let name = names.fresh(&format!("{}_constant", param.name.to_lowercase()));
            block.add(name, role, param_type(module, param.ty)?);
            continue;
        }
        for found in flat::leaves(module, param.ty)? {
            block.add(names.of_leaf(&param.name, &found.name), ParamRole::User(leaf), found.ty);
            leaf += 1;
        }
    }
    let scalar = match module.index {
        IndexWidth::Bits32 => ParamScalar::Index,
        IndexWidth::Bits64 => ParamScalar::U64,
    };
    let one = ParamType { scalar, count: 1, array: false };
    for (index, binding) in module.bindings.iter().enumerate() {
        let index = index as u32;
        let mut name = |what: &str| names.fresh(&format!("{}_{what}", binding.name));
        block.add(name("len"), ParamRole::Length(index), one);
        block.add(name("offset"), ParamRole::Offset(index), one);
        if let Some(rank) = binding.view {
            let per_axis = ParamType { scalar, count: rank, array: true };
            block.add(name("extents"), ParamRole::Extents(index), per_axis);
            block.add(name("strides"), ParamRole::Strides(index), per_axis);
        }
    }
    if grid == GridKind::Linear {
        // A grid has no more than 2^32 workgroups, whatever the width of indices.
        let count = ParamType { scalar: ParamScalar::Index, count: 1, array: false };
        block.add(names.fresh("group_count"), ParamRole::GroupCount, count);
    }
    Some(Params { size: block.end.next_multiple_of(block.align.max(16)), fields: block.fields.into() })
}

/// The role of one of the params of a module whose params are leaves.
pub fn param_role(module: &Module, param: u32) -> ParamRole {
    match module.constants().position(|(index, ..)| index == param) {
        Some(position) => ParamRole::Constant(position as u32),
        None => ParamRole::User(param),
    }
}

/// Whether values of the type can be a parameter.
pub fn is_param(module: &Module, ty: Handle<Type>) -> bool {
    flat::leaves(module, ty).is_some()
}

/// The type of a parameter in the block, if it is one leaf.
pub(crate) fn param_type(module: &Module, ty: Handle<Type>) -> Option<ParamType> {
    // Narrow ones travel in the word that holds them.
    let of_scalar = |scalar: Scalar| match scalar.widened() {
        Scalar::F32 => Some(ParamScalar::F32),
        Scalar::I32 => Some(ParamScalar::I32),
        Scalar::U32 => Some(ParamScalar::U32),
        Scalar::Index => Some(ParamScalar::Index),
        Scalar::Bool => Some(ParamScalar::Bool),
        Scalar::I64 => Some(ParamScalar::I64),
        Scalar::U64 => Some(ParamScalar::U64),
        Scalar::F64 => Some(ParamScalar::F64),
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 | Scalar::Generic(_) => None,
    };
    match &module.types[ty] {
        Type::Scalar(scalar) => Some(ParamType { scalar: of_scalar(*scalar)?, count: 1, array: false }),
        Type::Vector { lanes, scalar } => {
            Some(ParamType { scalar: of_scalar(*scalar)?, count: u32::from(*lanes), array: false })
        }
        Type::Enum(_) => Some(ParamType { scalar: ParamScalar::U32, count: 1, array: false }),
        Type::Array { .. } | Type::Struct(_) | Type::Matrix(_) => None,
    }
}

#[derive(Default)]
struct Block {
    fields: Vec<ParamField>,
    end: u32,
    align: u32,
}

impl Block {
    /// Scalars are aligned to their size, two lanes to twice, three and four to four times that; arrays start at a multiple of 16 and
    /// fill one.
    fn add(&mut self, name: String, role: ParamRole, ty: ParamType) {
        let scalar = ty.scalar.bytes();
        let align = match (ty.array, ty.count) {
            (false, 1) => scalar,
            (false, 2) => 2 * scalar,
            (false, _) => 4 * scalar,
            (true, _) => 16,
        };
        self.align = self.align.max(align);
        let offset = self.end.next_multiple_of(align);
        let bytes = scalar * ty.count;
        self.end = offset + if ty.array { bytes.next_multiple_of(16) } else { bytes };
        self.fields.push(ParamField { name: name.into(), role, ty, offset });
    }
}
