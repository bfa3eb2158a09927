//! Matrices, by `SPV_KHR_cooperative_matrix`, at the scope of a subgroup.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Capability, CooperativeMatrixLayout, CooperativeMatrixUse, Op, Scope, StorageClass, Word};

use super::function::FunctionWriter;
use super::module::Writer;
use crate::emit::EmitError;
use crate::ir::{
    Expression, ExpressionKind, Handle, Local, Matrix, MatrixOperation, MatrixOrder, MatrixRole, Place, Projection,
    Root, Scalar, Type,
};
use crate::target::Feature;

impl Writer<'_> {
    /// Declares an extension, once.
    fn extension(&mut self, name: &str) {
        let instruction = Instruction::new(Op::Extension, None, None, vec![Operand::LiteralString(name.to_owned())]);
        if !self.module.extensions.contains(&instruction) {
            self.module.extensions.push(instruction);
        }
    }

    /// The type of a matrix.
    pub(super) fn matrix_type(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        self.require(Feature::CooperativeMatrices, "a value is a matrix")?;
        self.capability(Capability::CooperativeMatrixKHR);
        self.extension("SPV_KHR_cooperative_matrix");
        let component = self.component(matrix.scalar)?;
        let [rows, columns] = matrix.shape();
        let usage = match matrix.role {
            MatrixRole::A => CooperativeMatrixUse::MatrixAKHR,
            MatrixRole::B => CooperativeMatrixUse::MatrixBKHR,
            MatrixRole::Accumulator => CooperativeMatrixUse::MatrixAccumulatorKHR,
        };
        let operands = [Scope::Subgroup as u32, rows, columns, usage as u32].map(|number| self.u32(number));
        let operands = std::iter::once(component).chain(operands).map(Operand::IdRef).collect();
        Ok(self.global(Op::TypeCooperativeMatrixKHR, None, operands))
    }

    /// The type of its elements, with which something is done besides holding them in memory.
    pub(super) fn component(&mut self, scalar: Scalar) -> Result<Word, EmitError> {
        match scalar {
            Scalar::F16 => {
                self.capability(Capability::Float16);
                Ok(self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(16)]))
            }
            Scalar::F32 => Ok(self.f32_type()),
            other => Err(self.fail(format!(
                "it has matrices of f16 and f32, not of {}: leave spirv out of `targets(..)`, or use f16",
                other.rust_name()
            ))),
        }
    }
}

impl FunctionWriter<'_, '_> {
    /// Writes an operation on matrices that are there, and gives its result.
    pub(super) fn matrix(
        &mut self,
        result: Option<Handle<Local>>,
        operation: &MatrixOperation,
    ) -> Result<Option<Word>, EmitError> {
        match operation {
            MatrixOperation::Load { place, stride, order } => {
                let Some(local) = result else { return Err(self.writer.fail("a matrix is loaded for nothing")) };
                let ty = self.value_type(self.function.locals[local].ty)?;
                let (pointer, stride, non_private) = self.matrix_pointer(place, *stride)?;
                let mut operands = vec![Operand::IdRef(pointer), self.layout(*order), Operand::IdRef(stride)];
                operands.extend(self.memory_access(non_private));
                Ok(Some(self.op_with(Op::CooperativeMatrixLoadKHR, ty, operands)))
            }
            MatrixOperation::Store { place, stride, order, value } => {
                let (pointer, stride, non_private) = self.matrix_pointer(place, *stride)?;
                let value = self.value(*value)?;
                let mut operands =
                    vec![Operand::IdRef(pointer), Operand::IdRef(value), self.layout(*order), Operand::IdRef(stride)];
                operands.extend(self.memory_access(non_private));
                self.effect(Op::CooperativeMatrixStoreKHR, operands);
                Ok(None)
            }
            MatrixOperation::MultiplyAdd { a, b, c } => {
                let ty = self.value_type(self.function.expressions[*c].ty)?;
                let (a, b, c) = (self.value(*a)?, self.value(*b)?, self.value(*c)?);
                Ok(Some(self.op(Op::CooperativeMatrixMulAddKHR, ty, &[a, b, c])))
            }
        }
    }

    /// A matrix whose elements are all `value`, an `f32` of halves.
    pub(super) fn matrix_fill(&mut self, matrix: &Matrix, value: Handle<Expression>) -> Result<Word, EmitError> {
        let ty = self.writer.matrix_type(matrix)?;
        let value = self.value(value)?;
        let component = self.writer.component(matrix.scalar)?;
        let value =
            if component == self.writer.f32_type() { value } else { self.op(Op::FConvert, component, &[value]) };
        Ok(self.op(Op::CompositeConstruct, ty, &[value]))
    }

    /// Fills an array of equal matrices, one by one: an array of matrices that is a value as a whole does not stay in registers. Says whether the
    /// value is such an array.
    pub(super) fn fill_matrices(&mut self, local: Handle<Local>, value: Handle<Expression>) -> Result<bool, EmitError> {
        let function = self.function;
        let (mut ty, mut value) = (function.locals[local].ty, value);
        let mut lengths = Vec::new();
        while let (Type::Array { element, length }, ExpressionKind::Splat(part)) =
            (self.writer.ir(ty), &function.expressions[value].kind)
        {
            lengths.push(length.literal().unwrap_or(0));
            (ty, value) = (*element, *part);
        }
        let (Some(matrix), ExpressionKind::Splat(part), false) =
            (self.as_matrix(ty), &function.expressions[value].kind, lengths.is_empty())
        else {
            return Ok(false);
        };
        let filled = self.matrix_fill(&matrix, *part)?;
        let held = self.writer.matrix_type(&matrix)?;
        let pointer = self.writer.pointer(StorageClass::Function, held);
        let variable = self.local_variable(local)?;
        for number in 0..lengths.iter().product::<u32>() {
            let mut rest = number;
            let mut chain = Vec::new();
            for length in lengths.iter().rev() {
                chain.push(self.writer.u32(rest % length));
                rest /= length;
            }
            chain.push(variable);
            chain.reverse();
            let place = self.op(Op::AccessChain, pointer, &chain);
            self.effect(Op::Store, vec![Operand::IdRef(place), Operand::IdRef(filled)]);
        }
        Ok(true)
    }

    /// How many parts of a matrix of that type the invocation holds.
    pub(super) fn matrix_length(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        let (ty, word) = (self.writer.matrix_type(matrix)?, self.writer.u32_type());
        Ok(self.op(Op::CooperativeMatrixLengthKHR, word, &[ty]))
    }

    fn layout(&mut self, order: MatrixOrder) -> Operand {
        let layout = match order {
            MatrixOrder::Rows => CooperativeMatrixLayout::RowMajorKHR,
            MatrixOrder::Columns => CooperativeMatrixLayout::ColumnMajorKHR,
        };
        Operand::IdRef(self.writer.u32(layout as u32))
    }

    /// A pointer to the first element, the stride in what it points to, and whether others may write there.
    fn matrix_pointer(&mut self, place: &Place, stride: Handle<Expression>) -> Result<(Word, Word, bool), EmitError> {
        let lowered = self.writer.lowered;
        let (false, [Projection::Index(offset)]) = (place.guarded, place.path.as_slice()) else {
            return Err(self.writer.fail("a matrix in memory has one offset, and is there"));
        };
        let (offset, stride) = (self.value(*offset)?, self.value(stride)?);
        let word = self.writer.u32_type();
        // Scalars that others read several at a time are declared in such groups, at which lines begin too.
        let grouped = |this: &mut Self, count: Word, width: u32| {
            if width == 1 {
                return count;
            }
            let shift = this.writer.u32(width.trailing_zeros());
            this.op(Op::ShiftRightLogical, word, &[count, shift])
        };
        match place.root {
            Root::Binding(binding) => {
                let declared = &lowered.module.bindings[binding as usize];
                let written = self.writer.is_written(binding);
                self.touched |= written;
                let width = self.writer.binding_width(binding);
                let element = self.writer.ir(declared.element).clone();
                let held = self.writer.memory_type(&element)?;
                let held = self.writer.vector_of(held, width as u8);
                let (index, stride) = (grouped(self, offset, width), grouped(self, stride, width));
                let first = self.binding_offset(binding, width)?;
                let index = self.op(Op::IAdd, word, &[index, first]);
                let pointer = self.writer.pointer(StorageClass::StorageBuffer, held);
                let (base, elements) = (self.writer.bindings[binding as usize], self.writer.u32(0));
                let pointer = self.op(Op::AccessChain, pointer, &[base, elements, index]);
                Ok((pointer, stride, written && self.writer.shares))
            }
            Root::Workgroup(variable) => {
                let declared = &lowered.module.workgroup[variable];
                let width = self.writer.workgroup_width(variable.index());
                let element = self.writer.ir(declared.element).clone();
                let held = self.writer.workgroup_type(&element)?;
                let held = self.writer.vector_of(held, width as u8);
                let (index, stride) = (grouped(self, offset, width), grouped(self, stride, width));
                let pointer = self.writer.pointer(StorageClass::Workgroup, held);
                let base = self.writer.workgroup[variable.index()];
                let pointer = self.op(Op::AccessChain, pointer, &[base, index]);
                Ok((pointer, stride, true))
            }
            Root::Local(_) | Root::Argument(_) => Err(self.writer.fail("a matrix lies in a local")),
        }
    }

    /// The matrix that a type is.
    pub(super) fn as_matrix(&self, ty: Handle<Type>) -> Option<Matrix> {
        match self.writer.ir(ty) {
            Type::Matrix(matrix) => Some(matrix.clone()),
            _ => None,
        }
    }
}
