//! Matrices in memory: which are proved to be there.

use super::Walk;
use crate::ir::{Matrix, MatrixOperation, Root, Span, Statement, StatementKind, Type};
use crate::verify::linear::{Form, Key};
use crate::verify::matrices::{element, offset, scalars_of_element};

impl Walk<'_> {
    /// How many parts of a matrix an invocation holds: as many for every matrix of the type, and no more than it has elements.
    pub(super) fn matrix_length(&mut self, matrix: &Matrix) -> Form {
        let [rows, columns] = matrix.shape();
        self.knowledge.atom(Key::MatrixLength(matrix.clone()), 0, i128::from(rows) * i128::from(columns))
    }

    /// Takes the guard away from a load or store whose matrix is there.
    pub(super) fn matrix(&mut self, statement: &mut Statement) {
        let span = statement.span;
        let StatementKind::Matrix { result, operation } = &statement.kind else { return };
        let ty = match operation {
            MatrixOperation::Load { .. } => result.map(|local| self.function.locals[local].ty),
            MatrixOperation::Store { value, .. } => Some(self.function.expressions[*value].ty),
            MatrixOperation::MultiplyAdd { .. } => None,
        };
        let Some(Type::Matrix(matrix)) = ty.map(|ty| &self.module.types[ty]) else { return };
        let proved = self.is_there(matrix, operation, span);
        if let StatementKind::Matrix {
            operation: MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. },
            ..
        } = &mut statement.kind
            && proved
        {
            place.guarded = false;
        }
    }

    fn is_there(&mut self, matrix: &Matrix, operation: &MatrixOperation, span: Span) -> bool {
        let (MatrixOperation::Load { place, stride, order } | MatrixOperation::Store { place, stride, order, .. }) =
            operation
        else {
            return false;
        };
        let (Ok(index), Some(element)) = (offset(place), element(self.module, place)) else { return false };
        let Some(count) = scalars_of_element(element, matrix.scalar) else { return false };
        if let (Root::Binding(binding), true) = (place.root, self.visit.is_some()) {
            // Of which elements it consists is not told: nobody divides such a binding among workgroups.
            self.touched_anywhere(binding);
        }
        let [lines, length] = matrix.lines(*order);
        let mark = self.knowledge.mark();
        let (first, step) = (self.exact(index), self.exact(*stride));
        let last = first.add(&step, i128::from(lines) - 1).plus(i128::from(length / count) - 1);
        let end = match place.root {
            Root::Binding(binding) => Some(self.knowledge.atom(Key::Length(binding), 0, self.most())),
            Root::Workgroup(variable) => {
                let variable = &self.module.workgroup[variable];
                self.length(variable.exact.as_ref().unwrap_or(&variable.length))
            }
            Root::Local(_) | Root::Argument(_) => None,
        };
        let unit = i128::from(if count == 1 { matrix.alignment(*order) } else { 1 });
        let begins =
            |form: &Form| form.constant % unit == 0 && form.terms().iter().all(|(_, factor)| factor % unit == 0);
        let fits = end.is_some_and(|end| {
            self.knowledge.proves(&first)
                && self.knowledge.proves(&step)
                && self.knowledge.proves(&end.add(&last, -1).plus(-1))
        });
        let proved = fits && begins(&first) && begins(&step);
        self.knowledge.forget(mark);
        if self.reports.is_some() {
            self.report_access(place, span, proved);
        }
        proved
    }

    /// Tells of an access to elements that are not told.
    pub(super) fn touched_anywhere(&mut self, binding: u32) {
        let index = self.knowledge.fresh(0, self.most());
        if let Some(visit) = self.visit.as_mut() {
            visit(super::Touch { binding, index, lanes: 1, module: self.module, knowledge: &mut self.knowledge });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scalars_of_element;
    use crate::ir::{Scalar, Type};

    #[test]
    fn memory_holds_scalars_or_sixteen_bytes() {
        assert_eq!(scalars_of_element(&Type::Scalar(Scalar::F16), Scalar::F16), Some(1));
        assert_eq!(scalars_of_element(&Type::vector(4, Scalar::U32), Scalar::F16), Some(8));
        assert_eq!(scalars_of_element(&Type::vector(4, Scalar::F32), Scalar::F32), None);
    }
}
