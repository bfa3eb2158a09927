//! Specialisation constants, and sizes that they decide.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op, Word};

use super::module::Writer;
use crate::emit::EmitError;
use crate::ir::{Scalar, Size, SizeOperator, Type};

impl Writer<'_> {
    /// The value of a param that is a specialisation constant; `None` for others.
    pub(super) fn constant_value(&mut self, param: u32) -> Result<Option<Word>, EmitError> {
        if let Some((_, known)) = self.constants.iter().find(|(known, _)| *known == param) {
            return Ok(Some(*known));
        }
        let module = &self.lowered.module;
        let found = module.constants().enumerate().find(|(_, (index, ..))| *index == param);
        let Some((position, (_, declared, range))) = found else {
            return Ok(None);
        };
        let (name, ty) = (declared.name.clone(), self.ir(declared.ty));
        let word = self.value_type(ty)?;
        let id = match ty {
            Type::Scalar(Scalar::Bool) if range.default == 0 => {
                self.unique(Op::SpecConstantFalse, Some(word), Vec::new())
            }
            Type::Scalar(Scalar::Bool) => self.unique(Op::SpecConstantTrue, Some(word), Vec::new()),
            _ => self.unique(Op::SpecConstant, Some(word), vec![Operand::LiteralBit32(range.default as u32)]),
        };
        self.decorate(id, Decoration::SpecId, &[Operand::LiteralBit32(position as u32)]);
        self.name(id, &name);
        self.constants.push((param, id));
        Ok(Some(id))
    }

    /// The length of workgroup memory in groups of `lanes`.
    pub(super) fn exact_length(&mut self, size: &Size, lanes: u32) -> Result<Word, EmitError> {
        let length = self.exact_size(size)?;
        if lanes <= 1 {
            return Ok(length);
        }
        let lanes = self.u32(lanes);
        Ok(self.constant_operation(Op::UDiv, length, lanes))
    }

    /// The same, a last group that is not whole included.
    pub(super) fn declared_length(&mut self, size: &Size, lanes: u32) -> Result<Word, EmitError> {
        let length = self.exact_size(size)?;
        if lanes <= 1 {
            return Ok(length);
        }
        let (rest, lanes) = (self.u32(lanes - 1), self.u32(lanes));
        let rounded = self.constant_operation(Op::IAdd, length, rest);
        Ok(self.constant_operation(Op::UDiv, rounded, lanes))
    }

    fn exact_size(&mut self, size: &Size) -> Result<Word, EmitError> {
        match size {
            Size::Literal(value) => Ok(self.u32(*value)),
            Size::Generic(_) => Err(self.fail("a const parameter is left in an instance")),
            Size::Param(index) => {
                self.constant_value(*index)?.ok_or_else(|| self.fail("a size depends on a parameter"))
            }
            Size::Binary(operator, left, right) => {
                let (left, right) = (self.exact_size(left)?, self.exact_size(right)?);
                let operation = match operator {
                    SizeOperator::Add => Op::IAdd,
                    SizeOperator::Subtract => Op::ISub,
                    SizeOperator::Multiply => Op::IMul,
                    SizeOperator::Divide => Op::UDiv,
                    SizeOperator::Remainder => Op::UMod,
                };
                Ok(self.constant_operation(operation, left, right))
            }
        }
    }

    fn constant_operation(&mut self, operation: Op, left: Word, right: Word) -> Word {
        let word = self.u32_type();
        let operands =
            vec![Operand::LiteralSpecConstantOpInteger(operation), Operand::IdRef(left), Operand::IdRef(right)];
        self.global(Op::SpecConstantOp, Some(word), operands)
    }
}
