//! Sizes and offsets, the same on the host and on every target, stated once.

use crate::artefact::{GridKind, ParamField, ParamRole, ParamScalar, ParamType, Params};
use crate::ir::{Handle, Module, Scalar, Type};

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

/// The parameter block of an instance: the author's parameters, then what the launch adds. `None` if a parameter has a type that
/// cannot be one, which the verifier rejects.
pub fn params(module: &Module, grid: GridKind) -> Option<Params> {
    let mut block = Block::default();
    for (index, param) in module.params.iter().enumerate() {
        let role = param_role(module, index as u32);
        let name = match role {
            // Constants have names of their own in the texts.
            ParamRole::Constant(_) => format!("{}_constant", param.name.to_lowercase()),
            _ => param.name.clone(),
        };
        block.add(name, role, param_type(module, param.ty)?);
    }
    let word = ParamType { scalar: ParamScalar::Index, count: 1, array: false };
    for (index, binding) in module.bindings.iter().enumerate() {
        let index = index as u32;
        block.add(format!("{}_len", binding.name), ParamRole::Length(index), word);
        block.add(format!("{}_offset", binding.name), ParamRole::Offset(index), word);
        if let Some(rank) = binding.view {
            let per_axis = ParamType { scalar: ParamScalar::Index, count: rank, array: true };
            block.add(format!("{}_extents", binding.name), ParamRole::Extents(index), per_axis);
            block.add(format!("{}_strides", binding.name), ParamRole::Strides(index), per_axis);
        }
    }
    if grid == GridKind::Linear {
        block.add("group_count".to_owned(), ParamRole::GroupCount, word);
    }
    Some(Params { size: block.end.next_multiple_of(16), fields: block.fields.into() })
}

/// The role of one of the module's params.
pub fn param_role(module: &Module, param: u32) -> ParamRole {
    match module.constants().position(|(index, ..)| index == param) {
        Some(position) => ParamRole::Constant(position as u32),
        None => ParamRole::User(param),
    }
}

/// The type of a parameter in the block.
pub fn param_type(module: &Module, ty: Handle<Type>) -> Option<ParamType> {
    let of_scalar = |scalar| match scalar {
        Scalar::F32 => Some(ParamScalar::F32),
        Scalar::I32 => Some(ParamScalar::I32),
        Scalar::U32 => Some(ParamScalar::U32),
        Scalar::Index => Some(ParamScalar::Index),
        Scalar::Bool => Some(ParamScalar::Bool),
        Scalar::F16 | Scalar::Generic(_) => None,
    };
    match &module.types[ty] {
        Type::Scalar(scalar) => Some(ParamType { scalar: of_scalar(*scalar)?, count: 1, array: false }),
        Type::Vector { lanes, scalar } => {
            Some(ParamType { scalar: of_scalar(*scalar)?, count: u32::from(*lanes), array: false })
        }
        Type::Array { element, length } => match &module.types[*element] {
            Type::Scalar(scalar) => {
                Some(ParamType { scalar: of_scalar(*scalar)?, count: length.literal()?, array: true })
            }
            Type::Vector { .. } | Type::Array { .. } | Type::Struct(_) | Type::Enum(_) => None,
        },
        Type::Enum(_) => Some(ParamType { scalar: ParamScalar::U32, count: 1, array: false }),
        Type::Struct(_) => None,
    }
}

#[derive(Default)]
struct Block {
    fields: Vec<ParamField>,
    end: u32,
}

impl Block {
    /// Scalars are aligned to 4 bytes, two lanes to 8, three and four to 16; arrays start at a multiple of 16 and fill one.
    fn add(&mut self, name: String, role: ParamRole, ty: ParamType) {
        let align = match (ty.array, ty.count) {
            (false, 1) => 4,
            (false, 2) => 8,
            (false, _) | (true, _) => 16,
        };
        let offset = self.end.next_multiple_of(align);
        let bytes = 4 * ty.count;
        self.end = offset + if ty.array { bytes.next_multiple_of(16) } else { bytes };
        self.fields.push(ParamField { name: name.into(), role, ty, offset });
    }
}
