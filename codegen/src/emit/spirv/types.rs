//! Types and constants: the form that values have, and the form that they have in storage buffers.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Decoration, Op, StorageClass, Word};

use super::module::Writer;
use crate::emit::EmitError;
use crate::ir::{Handle, Literal, Scalar, Struct, Type};
use crate::layout;
use crate::target::Feature;

impl Writer<'_> {
    /// `OpTypeBool`
    pub(super) fn bool_type(&mut self) -> Word {
        self.global(Op::TypeBool, None, Vec::new())
    }

    /// A 32-bit unsigned integer: `u32`, `usize`, enums, and what holds a `bool` in the parameter block.
    pub(super) fn u32_type(&mut self) -> Word {
        self.global(Op::TypeInt, None, vec![Operand::LiteralBit32(32), Operand::LiteralBit32(0)])
    }

    /// A 32-bit signed integer.
    pub(super) fn i32_type(&mut self) -> Word {
        self.global(Op::TypeInt, None, vec![Operand::LiteralBit32(32), Operand::LiteralBit32(1)])
    }

    /// A 32-bit float.
    pub(super) fn f32_type(&mut self) -> Word {
        self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(32)])
    }

    /// A 64-bit integer.
    fn wide_integer(&mut self, signed: bool) -> Result<Word, EmitError> {
        self.require(Feature::Int64, "a value is a 64-bit integer")?;
        self.capability(Capability::Int64);
        Ok(self.global(Op::TypeInt, None, vec![Operand::LiteralBit32(64), Operand::LiteralBit32(signed.into())]))
    }

    /// What an index is.
    pub(super) fn index_type(&mut self, wide: bool) -> Result<Word, EmitError> {
        if wide { self.wide_integer(false) } else { Ok(self.u32_type()) }
    }

    /// A number as an index.
    pub(super) fn index_number(&mut self, value: u32, wide: bool) -> Result<Word, EmitError> {
        if wide { self.literal(Literal::U64(value.into())) } else { Ok(self.u32(value)) }
    }

    /// A 64-bit float.
    fn f64_type(&mut self) -> Result<Word, EmitError> {
        self.require(Feature::Float64, "a value is a 64-bit float")?;
        self.capability(Capability::Float64);
        Ok(self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(64)]))
    }

    /// The scalar as a value: 16-bit floats are held as `f32`, which represents each of them.
    pub(super) fn scalar_type(&mut self, scalar: Scalar) -> Result<Word, EmitError> {
        match scalar {
            Scalar::Bool => Ok(self.bool_type()),
            Scalar::I32 => Ok(self.i32_type()),
            Scalar::U32 | Scalar::Index => Ok(self.u32_type()),
            Scalar::F16 | Scalar::BF16 | Scalar::F32 => Ok(self.f32_type()),
            Scalar::I64 => self.wide_integer(true),
            Scalar::U64 => self.wide_integer(false),
            Scalar::F64 => self.f64_type(),
            Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => {
                Err(self.fail(format!("a value of type {} is left", scalar.rust_name())))
            }
            Scalar::Generic(_) => Err(self.fail("a type parameter is left in an instance")),
        }
    }

    /// A vector of `lanes` lanes of that type, or the type itself for one lane.
    pub(super) fn vector_of(&mut self, scalar: Word, lanes: u8) -> Word {
        if lanes == 1 {
            return scalar;
        }
        self.global(Op::TypeVector, None, vec![Operand::IdRef(scalar), Operand::LiteralBit32(lanes.into())])
    }

    /// The type that values have, in registers, locals and workgroup memory.
    pub(super) fn value_type(&mut self, ty: &Type) -> Result<Word, EmitError> {
        if let Some(known) = self.value_types.get(ty) {
            return Ok(*known);
        }
        let id = match ty {
            Type::Scalar(scalar) => self.scalar_type(*scalar)?,
            Type::Enum(_) => self.u32_type(),
            Type::Vector { lanes, scalar } => {
                let scalar = self.scalar_type(*scalar)?;
                self.vector_of(scalar, *lanes)
            }
            Type::Array { element, length } => {
                let element = self.ir(*element);
                let element = self.value_type(element)?;
                self.array_of(element, length.literal().unwrap_or(0))?
            }
            Type::Struct(handle) => {
                let mut fields = Vec::new();
                for (_, field) in &self.lowered.module.structs[*handle].fields {
                    let field = self.ir(*field);
                    fields.push(Operand::IdRef(self.value_type(field)?));
                }
                self.named_struct(*handle, fields)
            }
            Type::Matrix(matrix) => self.matrix_type(matrix)?,
        };
        self.value_types.insert(ty.clone(), id);
        Ok(id)
    }

    /// An array without a stride.
    pub(super) fn array_of(&mut self, element: Word, length: u32) -> Result<Word, EmitError> {
        let operands = self.array_operands(element, length)?;
        Ok(self.global(Op::TypeArray, None, operands))
    }

    fn array_operands(&mut self, element: Word, length: u32) -> Result<Vec<Operand>, EmitError> {
        if length == 0 {
            return Err(self.fail("an array has no elements or no known length"));
        }
        let length = self.u32(length);
        Ok(vec![Operand::IdRef(element), Operand::IdRef(length)])
    }

    fn named_struct(&mut self, handle: Handle<Struct>, fields: Vec<Operand>) -> Word {
        let id = self.unique(Op::TypeStruct, None, fields);
        let structure = &self.lowered.module.structs[handle];
        self.name(id, &structure.name);
        for (index, (name, _)) in structure.fields.iter().enumerate() {
            self.name_member(id, index as u32, name);
        }
        id
    }

    /// The type as it lies in a storage buffer, with offsets and strides.
    pub(super) fn memory_type(&mut self, ty: &Type) -> Result<Word, EmitError> {
        if let Some(known) = self.memory_types.get(ty) {
            return Ok(*known);
        }
        let id = match ty {
            Type::Scalar(Scalar::Bool) => return Err(self.fail("a buffer holds `bool`")),
            Type::Matrix(_) => return Err(self.fail("a buffer holds a matrix as such")),
            Type::Scalar(scalar @ (Scalar::F16 | Scalar::BF16)) => self.stored_float(*scalar)?,
            Type::Scalar(_) | Type::Enum(_) => self.value_type(ty)?,
            Type::Vector { lanes: 3, scalar } => {
                let element = self.memory_type(&Type::Scalar(*scalar))?;
                self.strided_array(element, 3, scalar.bytes().unwrap_or(4))?
            }
            Type::Vector { lanes, scalar } => {
                let scalar = self.memory_type(&Type::Scalar(*scalar))?;
                self.vector_of(scalar, *lanes)
            }
            Type::Array { element, length } => {
                let stride = self.size_of(self.ir(*element))?;
                let element = self.ir(*element);
                let element = self.memory_type(element)?;
                self.strided_array(element, length.literal().unwrap_or(0), stride)?
            }
            Type::Struct(handle) => {
                let offsets = layout::field_offsets(&self.lowered.module, *handle)
                    .ok_or_else(|| self.fail("a buffer holds a struct without a memory layout"))?;
                let mut fields = Vec::new();
                for (_, field) in &self.lowered.module.structs[*handle].fields {
                    let field = self.ir(*field);
                    fields.push(Operand::IdRef(self.memory_type(field)?));
                }
                let id = self.named_struct(*handle, fields);
                for (index, offset) in offsets.into_iter().enumerate() {
                    self.decorate_offset(id, index as u32, offset);
                }
                id
            }
        };
        self.memory_types.insert(ty.clone(), id);
        Ok(id)
    }

    /// The type as it lies in workgroup memory: as values have it, but for 16-bit floats, which are there where matrices are.
    pub(super) fn workgroup_type(&mut self, ty: &Type) -> Result<Word, EmitError> {
        match ty {
            Type::Scalar(scalar @ (Scalar::F16 | Scalar::BF16)) => self.component(*scalar),
            Type::Vector { lanes, scalar: scalar @ (Scalar::F16 | Scalar::BF16) } => {
                let component = self.component(*scalar)?;
                Ok(self.vector_of(component, *lanes))
            }
            _ => self.value_type(ty),
        }
    }

    /// An array with a stride in bytes, for memory with an explicit layout.
    pub(super) fn strided_array(&mut self, element: Word, length: u32, stride: u32) -> Result<Word, EmitError> {
        if let Some(known) = self.strided.get(&(element, length, stride)) {
            return Ok(*known);
        }
        let operands = self.array_operands(element, length)?;
        let id = self.unique(Op::TypeArray, None, operands);
        self.decorate(id, Decoration::ArrayStride, &[Operand::LiteralBit32(stride)]);
        self.strided.insert((element, length, stride), id);
        Ok(id)
    }

    /// Bytes from one element of that type to the next.
    pub(super) fn size_of(&self, ty: &Type) -> Result<u32, EmitError> {
        let module = &self.lowered.module;
        let known = module.types.iter().find(|(_, known)| *known == ty);
        let layout = match (known, ty) {
            (Some((handle, _)), _) => layout::of(module, handle).map(|layout| layout.size),
            (None, Type::Scalar(scalar)) => scalar.bytes(),
            (None, Type::Vector { lanes, scalar }) => scalar.bytes().map(|bytes| bytes * u32::from(*lanes)),
            (None, _) => None,
        };
        layout.ok_or_else(|| self.fail("a buffer holds a type without a memory layout"))
    }

    /// A pointer type.
    pub(super) fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.global(Op::TypePointer, None, vec![Operand::StorageClass(class), Operand::IdRef(to)])
    }

    /// A `u32` constant.
    pub(super) fn u32(&mut self, value: u32) -> Word {
        if let Some(known) = self.numbers.get(&value) {
            return *known;
        }
        let ty = self.u32_type();
        let id = self.constant(ty, value);
        self.numbers.insert(value, id);
        id
    }

    /// A constant of a 32-bit type, by its bits.
    pub(super) fn constant(&mut self, ty: Word, bits: u32) -> Word {
        self.global(Op::Constant, Some(ty), vec![Operand::LiteralBit32(bits)])
    }

    /// Zero bits of any value type.
    pub(super) fn zero(&mut self, ty: Word) -> Word {
        self.global(Op::ConstantNull, Some(ty), Vec::new())
    }

    /// A constant of the IR.
    pub(super) fn literal(&mut self, literal: Literal) -> Result<Word, EmitError> {
        match literal {
            Literal::Bool(value) => {
                let ty = self.bool_type();
                let op = if value { Op::ConstantTrue } else { Op::ConstantFalse };
                Ok(self.global(op, Some(ty), Vec::new()))
            }
            Literal::I32(value) => {
                let ty = self.i32_type();
                Ok(self.constant(ty, value.cast_unsigned()))
            }
            Literal::U32(value) | Literal::Index(value) => Ok(self.u32(value)),
            Literal::I8(_) | Literal::U8(_) | Literal::I16(_) | Literal::U16(_) | Literal::BF16(_) => {
                Err(self.fail(format!("a constant of type {} is left", literal.scalar().rust_name())))
            }
            Literal::F16(bits) => {
                let ty = self.f32_type();
                Ok(self.constant(ty, half::f16::from_bits(bits).to_f32().to_bits()))
            }
            Literal::F32(value) => {
                let ty = self.f32_type();
                Ok(self.constant(ty, value.to_bits()))
            }
            Literal::I64(_) | Literal::U64(_) | Literal::F64(_) => {
                let ty = self.scalar_type(literal.scalar())?;
                Ok(self.global(Op::Constant, Some(ty), vec![Operand::LiteralBit64(literal.bits())]))
            }
            Literal::Generic { .. } => Err(self.fail("a generic literal is left in an instance")),
        }
    }

    /// A vector constant whose lanes are all `value`, or `value` for one lane.
    pub(super) fn splat_constant(&mut self, scalar_type: Word, value: Word, lanes: u8) -> Word {
        if lanes == 1 {
            return value;
        }
        let ty = self.vector_of(scalar_type, lanes);
        self.global(Op::ConstantComposite, Some(ty), vec![Operand::IdRef(value); lanes.into()])
    }
}
