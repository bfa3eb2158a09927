//! Operations on matrices.

use crate::emit::EmitError;
use crate::ir::{Handle, Local, Matrix, MatrixOperation, Place, Projection, Type};

use super::printer::Scope;
use super::{Code, Dialect, Printer, Writer};

type Result<T> = std::result::Result<T, EmitError>;

impl<'a, D: Dialect> Printer<'a, D> {
    /// Prints an operation; a load or store is of a matrix that is there.
    pub(super) fn matrix(
        &mut self,
        scope: &Scope<'a>,
        out: &mut Writer,
        result: Option<Handle<Local>>,
        operation: &MatrixOperation,
    ) -> Result<()> {
        let code = match operation {
            MatrixOperation::Load { place, stride, order } => {
                let Some(local) = result else { return Err(self.error("a matrix is loaded for nothing")) };
                let matrix = self.matrix_type(self.ty(scope.function.locals[local].ty))?;
                let offset = self.matrix_offset(scope, place)?;
                let stride = self.expression(scope, *stride)?;
                D::matrix_load(self, matrix, place.root, offset, stride, *order)?
            }
            MatrixOperation::Store { place, stride, order, value } => {
                let matrix = self.matrix_type(self.type_of(scope, *value))?;
                let offset = self.matrix_offset(scope, place)?;
                let stride = self.expression(scope, *stride)?;
                let value = self.expression(scope, *value)?;
                let line = D::matrix_store(self, matrix, place.root, offset, stride, *order, value)?;
                out.line(line);
                return Ok(());
            }
            MatrixOperation::MultiplyAdd { a, b, c } => {
                let mut types = Vec::new();
                let mut values = Vec::new();
                for side in [a, b, c] {
                    types.push(self.matrix_type(self.type_of(scope, *side))?);
                    values.push(self.expression(scope, *side)?);
                }
                match (<[&Matrix; 3]>::try_from(types), <[Code; 3]>::try_from(values)) {
                    (Ok(types), Ok(values)) => D::matrix_multiply_add(self, types, values)?,
                    _ => return Err(self.error("a product has three operands")),
                }
            }
        };
        match result {
            Some(local) => self.declare(scope, out, local, code),
            None => Err(self.error("the result of an operation on matrices has no name")),
        }
    }

    fn matrix_type(&self, ty: &'a Type) -> Result<&'a Matrix> {
        match ty {
            Type::Matrix(matrix) => Ok(matrix),
            _ => Err(self.error("an operation on matrices has another operand")),
        }
    }

    fn matrix_offset(&mut self, scope: &Scope<'a>, place: &Place) -> Result<Code> {
        match (place.guarded, place.path.as_slice()) {
            (false, [Projection::Index(offset)]) => self.expression(scope, *offset),
            _ => Err(self.error("a matrix in memory has one offset, and is there")),
        }
    }
}
