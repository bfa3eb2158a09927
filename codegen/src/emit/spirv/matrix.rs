//! Matrices, by `SPV_KHR_cooperative_matrix`, at the scope of a subgroup.
//!
//! Where the profile says so, a larger matrix is an array of [`blocks`](crate::target::Profile::blocks), row by row, and each operation one on every block; a matrix of one block is that block.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, CooperativeMatrixLayout, CooperativeMatrixUse, Op, Scope, StorageClass, Word};

use super::function::FunctionWriter;
use super::module::Writer;
use crate::emit::EmitError;
use crate::hashing::HashMap;
use crate::ir::{
    BinaryOperator, Block, Expression, ExpressionKind, Handle, Local, Matrix, MatrixOperation, MatrixOrder, MatrixRole,
    Place, Projection, Root, Scalar, Size, StatementKind, Type, UnaryOperator,
};
use crate::target::{Feature, MATRIX_BLOCK};
use crate::verify::{matrix_element, scalars_of_element};

/// A loop over the parts of matrices of a type: at which it is, and what the locals of its body are.
struct Parts {
    ty: Handle<Type>,
    part: Handle<Local>,
    lets: Vec<(Handle<Local>, Handle<Expression>)>,
}

/// The block of a matrix, if it has several, for which a loop's arithmetic is written, and what the locals are there.
struct PartBlock {
    ty: Word,
    number: Option<u32>,
    known: HashMap<Handle<Local>, Word>,
}

impl Writer<'_> {
    /// How many blocks a matrix is held in, down and across.
    pub(super) fn grid(&self, matrix: &Matrix) -> [u32; 2] {
        if self.lowered.profile.blocks { matrix.shape().map(|side| side / MATRIX_BLOCK) } else { [1, 1] }
    }

    /// One of them.
    fn block(&self, matrix: &Matrix) -> Matrix {
        if !self.lowered.profile.blocks {
            return matrix.clone();
        }
        Matrix { rows: Size::Literal(MATRIX_BLOCK), columns: Size::Literal(MATRIX_BLOCK), ..matrix.clone() }
    }

    /// The type of a matrix.
    pub(super) fn matrix_type(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        let [down, across] = self.grid(matrix);
        let block = self.block(matrix);
        let block = self.block_type(&block)?;
        if down * across == 1 { Ok(block) } else { self.array_of(block, down * across) }
    }

    fn block_type(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        self.require(Feature::CooperativeMatrices, "a value is a matrix")?;
        self.capability(Capability::CooperativeMatrixKHR);
        self.extension("SPV_KHR_cooperative_matrix");
        let component = self.component(matrix.scalar)?;
        if matrix.scalar == Scalar::BF16 {
            self.capability(Capability::BFloat16CooperativeMatrixKHR);
        }
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
                Ok(self.half_type())
            }
            Scalar::BF16 => self.brain_type(),
            Scalar::F32 => Ok(self.f32_type()),
            other => Err(self.fail(format!("it has matrices of f16, bf16 and f32, not of {}", other.rust_name()))),
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
                let matrix = result.and_then(|local| self.as_matrix(self.function.locals[local].ty));
                let Some(matrix) = matrix else { return Err(self.writer.fail("a matrix is loaded for nothing")) };
                let block = self.writer.block(&matrix);
                let ty = self.writer.block_type(&block)?;
                let (start, mut blocks) = (self.matrix_start(place, *stride, &matrix)?, Vec::new());
                for at in self.block_places(&matrix, *order) {
                    let (pointer, stride, non_private) = self.matrix_pointer(place.root, start, at)?;
                    let mut operands = vec![Operand::IdRef(pointer), self.layout(*order), Operand::IdRef(stride)];
                    operands.extend(self.memory_access(non_private));
                    blocks.push(self.op_with(Op::CooperativeMatrixLoadKHR, ty, operands));
                }
                Ok(Some(self.of_blocks(&matrix, &blocks)?))
            }
            MatrixOperation::Store { place, stride, order, value } => {
                let matrix = self.matrix_of(*value)?;
                let value = self.value(*value)?;
                let blocks = self.blocks_of(&matrix, value)?;
                let start = self.matrix_start(place, *stride, &matrix)?;
                for (at, block) in self.block_places(&matrix, *order).into_iter().zip(blocks) {
                    let (pointer, stride, non_private) = self.matrix_pointer(place.root, start, at)?;
                    let mut operands = vec![
                        Operand::IdRef(pointer),
                        Operand::IdRef(block),
                        self.layout(*order),
                        Operand::IdRef(stride),
                    ];
                    operands.extend(self.memory_access(non_private));
                    self.effect(Op::CooperativeMatrixStoreKHR, operands);
                }
                Ok(None)
            }
            MatrixOperation::MultiplyAdd { a, b, c } => {
                let matrices = [self.matrix_of(*a)?, self.matrix_of(*b)?, self.matrix_of(*c)?];
                let values = [self.value(*a)?, self.value(*b)?, self.value(*c)?];
                let a = self.blocks_of(&matrices[0], values[0])?;
                let b = self.blocks_of(&matrices[1], values[1])?;
                let mut sums = self.blocks_of(&matrices[2], values[2])?;
                let ([_, depth], [_, across]) = (self.writer.grid(&matrices[0]), self.writer.grid(&matrices[2]));
                let block = self.writer.block(&matrices[2]);
                let ty = self.writer.block_type(&block)?;
                for (at, sum) in sums.iter_mut().enumerate() {
                    let (depth, across) = (depth as usize, across as usize);
                    for k in 0..depth {
                        let (left, right) = (a[at / across * depth + k], b[k * across + at % across]);
                        *sum = self.op(Op::CooperativeMatrixMulAddKHR, ty, &[left, right, *sum]);
                    }
                }
                Ok(Some(self.of_blocks(&matrices[2], &sums)?))
            }
        }
    }

    /// The blocks of a matrix, row by row.
    fn blocks_of(&mut self, matrix: &Matrix, value: Word) -> Result<Vec<Word>, EmitError> {
        let [down, across] = self.writer.grid(matrix);
        if down * across == 1 {
            return Ok(vec![value]);
        }
        let block = self.writer.block(matrix);
        let ty = self.writer.block_type(&block)?;
        let part = |number| vec![Operand::IdRef(value), Operand::LiteralBit32(number)];
        Ok((0..down * across).map(|number| self.op_with(Op::CompositeExtract, ty, part(number))).collect())
    }

    /// The matrix of these blocks.
    fn of_blocks(&mut self, matrix: &Matrix, blocks: &[Word]) -> Result<Word, EmitError> {
        if let [block] = blocks {
            return Ok(*block);
        }
        let ty = self.writer.matrix_type(matrix)?;
        Ok(self.op(Op::CompositeConstruct, ty, blocks))
    }

    /// For each block the line that it begins in, and where in the line.
    fn block_places(&self, matrix: &Matrix, order: MatrixOrder) -> Vec<[u32; 2]> {
        let [down, across] = self.writer.grid(matrix);
        let places = (0..down).flat_map(|i| (0..across).map(move |j| [i * MATRIX_BLOCK, j * MATRIX_BLOCK]));
        places
            .map(|[row, column]| match order {
                MatrixOrder::Rows => [row, column],
                MatrixOrder::Columns => [column, row],
            })
            .collect()
    }

    /// The matrix with elements of another type, rounded to the nearest.
    pub(super) fn matrix_convert(&mut self, to: &Matrix, value: Handle<Expression>) -> Result<Word, EmitError> {
        let from = self.matrix_of(value)?;
        let value = self.value(value)?;
        let block = self.writer.block(to);
        let ty = self.writer.block_type(&block)?;
        let blocks = self.blocks_of(&from, value)?;
        // Else drivers may narrow as they like.
        self.writer.rounds_halves |= from.scalar == Scalar::F32 && to.scalar == Scalar::F16;
        let blocks: Vec<Word> = blocks.into_iter().map(|block| self.op(Op::FConvert, ty, &[block])).collect();
        self.of_blocks(to, &blocks)
    }

    /// A matrix whose elements are all `value`, an `f32` of halves.
    pub(super) fn matrix_fill(&mut self, matrix: &Matrix, value: Handle<Expression>) -> Result<Word, EmitError> {
        let block = self.writer.block(matrix);
        let ty = self.writer.block_type(&block)?;
        let value = self.value(value)?;
        let component = self.writer.component(matrix.scalar)?;
        let value =
            if component == self.writer.f32_type() { value } else { self.op(Op::FConvert, component, &[value]) };
        let filled = self.op(Op::CompositeConstruct, ty, &[value]);
        let [down, across] = self.writer.grid(matrix);
        self.of_blocks(matrix, &vec![filled; (down * across) as usize])
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

    /// Writes what a loop over the parts of matrices does as operations on the matrices themselves, if it is arithmetic of `f32` alone; says whether it was. A driver that does not unroll the loop keeps matrices
    /// in memory for it: their parts are looked up by a number that it only knows once it has unrolled.
    pub(super) fn matrix_arithmetic(
        &mut self,
        part: Handle<Local>,
        end: Handle<Expression>,
        body: &Block,
    ) -> Result<bool, EmitError> {
        let ExpressionKind::MatrixLength(ty) = self.function.expressions[end].kind else { return Ok(false) };
        let (Some(matrix), Some((last, lets))) = (self.as_matrix(ty), body.split_last()) else { return Ok(false) };
        let StatementKind::Store { place, value } = &last.kind else { return Ok(false) };
        let mut parts = Parts { ty, part, lets: Vec::new() };
        for statement in lets {
            match statement.kind {
                StatementKind::Let { local, value: Some(value) } if self.is_arithmetic(value, &parts) => {
                    parts.lets.push((local, value));
                }
                _ => return Ok(false),
            }
        }
        let (Some(target), Scalar::F32, true) =
            (self.part_of(place, &parts), matrix.scalar, self.is_arithmetic(*value, &parts))
        else {
            return Ok(false);
        };
        let ty = self.writer.block(&matrix);
        let ty = self.writer.block_type(&ty)?;
        let [down, across] = self.writer.grid(&matrix);
        for number in 0..down * across {
            let mut block = PartBlock { ty, number: (down * across > 1).then_some(number), known: HashMap::default() };
            for (local, value) in &parts.lets {
                let value = self.arithmetic(*value, &parts, &block)?;
                block.known.insert(*local, value);
            }
            let result = self.arithmetic(*value, &parts, &block)?;
            let to = self.block_pointer(target, &block)?;
            self.effect(Op::Store, vec![Operand::IdRef(to), Operand::IdRef(result)]);
        }
        Ok(true)
    }

    /// The matrix of which a place is the part that the loop is at.
    fn part_of(&self, place: &Place, parts: &Parts) -> Option<Handle<Local>> {
        let (Root::Local(local), [Projection::Index(index)]) = (place.root, place.path.as_slice()) else { return None };
        let function = self.function;
        let is_part = matches!(function.expressions[*index].kind, ExpressionKind::Local(at) if at == parts.part);
        (is_part && function.locals[local].ty == parts.ty).then_some(local)
    }

    /// Whether a part's value is what SPIR-V computes of whole matrices, of parts and of numbers that all invocations have alike.
    fn is_arithmetic(&self, value: Handle<Expression>, parts: &Parts) -> bool {
        match &self.function.expressions[value].kind {
            ExpressionKind::Literal(_) => true,
            ExpressionKind::Local(local) => parts.lets.iter().any(|(known, _)| known == local),
            ExpressionKind::Load(place) => self.part_of(place, parts).is_some(),
            ExpressionKind::Unary { operator: UnaryOperator::Negate, value } => self.is_arithmetic(*value, parts),
            ExpressionKind::Binary { operator, left, right } => {
                use BinaryOperator as B;
                matches!(operator, B::Add | B::Subtract | B::Multiply | B::Divide)
                    && self.is_arithmetic(*left, parts)
                    && self.is_arithmetic(*right, parts)
            }
            _ => false,
        }
    }

    fn arithmetic(&mut self, value: Handle<Expression>, parts: &Parts, block: &PartBlock) -> Result<Word, EmitError> {
        match &self.function.expressions[value].kind {
            ExpressionKind::Literal(_) => {
                let value = self.value(value)?;
                Ok(self.op(Op::CompositeConstruct, block.ty, &[value]))
            }
            ExpressionKind::Local(local) => match block.known.get(local) {
                Some(value) => Ok(*value),
                None => Err(self.writer.fail("a part is computed of another local")),
            },
            ExpressionKind::Load(place) => match self.part_of(place, parts) {
                Some(matrix) => {
                    let from = self.block_pointer(matrix, block)?;
                    Ok(self.op(Op::Load, block.ty, &[from]))
                }
                None => Err(self.writer.fail("a part is computed of other memory")),
            },
            ExpressionKind::Unary { value, .. } => {
                let value = self.arithmetic(*value, parts, block)?;
                Ok(self.op(Op::FNegate, block.ty, &[value]))
            }
            ExpressionKind::Binary { operator, left, right } => {
                let operands = [self.arithmetic(*left, parts, block)?, self.arithmetic(*right, parts, block)?];
                self.binary(*operator, *left, block.ty, operands)
            }
            _ => Err(self.writer.fail("a part is computed by no arithmetic")),
        }
    }

    /// Where a block of a matrix lies, or all of one that is a single block.
    fn block_pointer(&mut self, matrix: Handle<Local>, block: &PartBlock) -> Result<Word, EmitError> {
        let variable = self.local_variable(matrix)?;
        let Some(number) = block.number else { return Ok(variable) };
        let (pointer, number) = (self.writer.pointer(StorageClass::Function, block.ty), self.writer.u32(number));
        Ok(self.op(Op::AccessChain, pointer, &[variable, number]))
    }

    /// How many parts of a matrix of that type the invocation holds.
    pub(super) fn matrix_length(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        let [down, across] = self.writer.grid(matrix);
        let length = self.block_length(matrix)?;
        if down * across == 1 {
            return Ok(length);
        }
        let (word, count) = (self.writer.u32_type(), self.writer.u32(down * across));
        Ok(self.op(Op::IMul, word, &[length, count]))
    }

    /// How many of a block of it.
    fn block_length(&mut self, matrix: &Matrix) -> Result<Word, EmitError> {
        let block = self.writer.block(matrix);
        let (ty, word) = (self.writer.block_type(&block)?, self.writer.u32_type());
        Ok(self.op(Op::CooperativeMatrixLengthKHR, word, &[ty]))
    }

    /// The way to a part: that of its block, if there are several, and that of the part in the block.
    pub(super) fn matrix_part(&mut self, matrix: &Matrix, part: Word) -> Result<Vec<Word>, EmitError> {
        if self.writer.grid(matrix) == [1, 1] {
            return Ok(vec![part]);
        }
        let (length, word) = (self.block_length(matrix)?, self.writer.u32_type());
        Ok([Op::UDiv, Op::UMod].map(|op| self.op(op, word, &[part, length])).to_vec())
    }

    fn layout(&mut self, order: MatrixOrder) -> Operand {
        let layout = match order {
            MatrixOrder::Rows => CooperativeMatrixLayout::RowMajorKHR,
            MatrixOrder::Columns => CooperativeMatrixLayout::ColumnMajorKHR,
        };
        Operand::IdRef(self.writer.u32(layout as u32))
    }

    /// Offset and stride of a matrix, and how many of its scalars one of what they count holds.
    fn matrix_start(
        &mut self,
        place: &Place,
        stride: Handle<Expression>,
        matrix: &Matrix,
    ) -> Result<(Word, Word, u32), EmitError> {
        let (false, [Projection::Index(offset)]) = (place.guarded, place.path.as_slice()) else {
            return Err(self.writer.fail("a matrix in memory has one offset, and is there"));
        };
        let lowered = self.writer.lowered;
        let count = matrix_element(&lowered.module, place)
            .and_then(|element| scalars_of_element(element, matrix.scalar))
            .ok_or_else(|| self.writer.fail("a matrix lies in memory of something else"))?;
        Ok((self.value(*offset)?, self.value(stride)?, count))
    }

    /// A pointer to the first element of a block, the stride in what it points to, and whether others may write there.
    fn matrix_pointer(
        &mut self,
        root: Root,
        (offset, stride, count): (Word, Word, u32),
        [line, along]: [u32; 2],
    ) -> Result<(Word, Word, bool), EmitError> {
        let lowered = self.writer.lowered;
        let mut offset = offset;
        let wide = lowered.module.index.is_wide() && matches!(root, Root::Binding(_));
        let index_type = self.writer.index_type(wide)?;
        if line > 0 {
            let line = self.writer.index_number(line, wide)?;
            let before = self.op(Op::IMul, index_type, &[stride, line]);
            offset = self.op(Op::IAdd, index_type, &[offset, before]);
        }
        if along > 0 {
            let along = self.writer.index_number(along / count, wide)?;
            offset = self.op(Op::IAdd, index_type, &[offset, along]);
        }
        // Scalars that others read several at a time are declared in such groups, at which lines begin too.
        let grouped = |this: &mut Self, count: Word, width: u32| {
            if width == 1 {
                return count;
            }
            let shift = this.writer.u32(width.trailing_zeros());
            this.op(Op::ShiftRightLogical, index_type, &[count, shift])
        };
        match root {
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
                let index = self.op(Op::IAdd, index_type, &[index, first]);
                // No binding holds lines that are farther apart than a word tells.
                let word = self.writer.u32_type();
                let stride = if wide { self.op(Op::UConvert, word, &[stride]) } else { stride };
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

    /// The matrix that a value is.
    fn matrix_of(&self, value: Handle<Expression>) -> Result<Matrix, EmitError> {
        let matrix = self.as_matrix(self.function.expressions[value].ty);
        matrix.ok_or_else(|| self.writer.fail("an operation on matrices has another operand"))
    }

    /// The matrix that a type is.
    pub(super) fn as_matrix(&self, ty: Handle<Type>) -> Option<Matrix> {
        match self.writer.ir(ty) {
            Type::Matrix(matrix) => Some(matrix.clone()),
            _ => None,
        }
    }
}
