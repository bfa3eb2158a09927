//! Sizes of what a workgroup has to itself as steps that a launch takes ([`crate::share`]): the forms that a proof knows them by, of parameters, lengths and what is computed from these.

use super::linear::{Form, Key, Kind, Knowledge};
use crate::artefact::{ParamRole, ParamScalar, Params};
use crate::ir::{BinaryOperator, Handle, MathFunction, Module, Scalar, Type};
use crate::share::ShareStep;
use crate::{flat, layout};

/// A form of more steps is taken for one that no launch knows.
const MOST_STEPS: usize = 64;

/// Where the values of forms come from.
pub(super) struct Source<'a> {
    pub(super) module: &'a Module,
    /// The parameter block.
    pub(super) params: &'a Params,
    pub(super) knowledge: &'a Knowledge,
}

impl Source<'_> {
    /// Adds the steps that lead to a form's value, which is the same for all invocations; nothing if there are none.
    pub(super) fn form(&self, form: &Form, out: &mut Vec<ShareStep>) -> Option<()> {
        let mut begun = form.constant != 0 || form.terms().is_empty();
        if begun {
            out.push(ShareStep::Number(form.constant));
        }
        for (atom, factor) in form.terms() {
            self.value(self.knowledge.key(*atom), out)?;
            if *factor != 1 {
                out.extend([ShareStep::Number(*factor), ShareStep::Multiply]);
            }
            if begun {
                out.push(ShareStep::Add);
            }
            begun = true;
        }
        Some(())
    }

    fn value(&self, key: &Key, out: &mut Vec<ShareStep>) -> Option<()> {
        if out.len() >= MOST_STEPS {
            return None;
        }
        match key {
            Key::Param(_) | Key::Part(..) | Key::Length(_) | Key::Extent(..) | Key::Stride(..) => {
                out.push(self.read(key)?);
            }
            Key::Wrapped(form, kind) => {
                self.form(form, out)?;
                out.push(wrap(*kind));
            }
            Key::Operation(operator, left, right, kind) => self.operation(*operator, [left, right], *kind, out)?,
            Key::Math(function, forms, _) => {
                let (first, others) = forms.split_first()?;
                self.form(first, out)?;
                for (number, other) in others.iter().enumerate() {
                    self.form(other, out)?;
                    // min(max(x, low), high)
                    out.push(match (function, number) {
                        (MathFunction::Max, _) | (MathFunction::Clamp, 0) => ShareStep::Max,
                        (MathFunction::Min, _) | (MathFunction::Clamp, _) => ShareStep::Min,
                        _ => return None,
                    });
                }
            }
            Key::Builtin(_)
            | Key::Argument(_)
            | Key::Local(_)
            | Key::Variable(..)
            | Key::MatrixLength(_)
            | Key::Fresh(_) => return None,
        }
        Some(())
    }

    fn operation(
        &self,
        operator: BinaryOperator,
        operands: [&Form; 2],
        kind: Kind,
        out: &mut Vec<ShareStep>,
    ) -> Option<()> {
        use BinaryOperator as B;
        let step = match operator {
            B::Multiply => ShareStep::Multiply,
            B::Divide => ShareStep::Divide,
            B::Remainder => ShareStep::Remainder,
            B::And => ShareStep::And,
            B::Or => ShareStep::Or,
            B::Xor => ShareStep::Xor,
            B::ShiftLeft => ShareStep::ShiftLeft,
            B::ShiftRight => ShareStep::ShiftRight,
            _ => return None,
        };
        for operand in operands {
            self.form(operand, out)?;
        }
        if matches!(operator, B::ShiftLeft | B::ShiftRight) {
            let last = if kind.wide { 63 } else { 31 };
            out.extend([ShareStep::Number(last), ShareStep::And]);
        }
        out.push(step);
        // No other operation on numbers without a sign leaves their range, and quotients by numbers do not tell how wide that is.
        if kind.signed || matches!(operator, B::Multiply | B::ShiftLeft) {
            out.push(wrap(kind));
        }
        Some(())
    }

    /// The step that reads a value from the parameter block.
    fn read(&self, key: &Key) -> Option<ShareStep> {
        let (role, number) = self.place(key)?;
        let field = self.params.fields.iter().find(|field| field.role == role && number < field.ty.count)?;
        let at = field.offset + field.ty.scalar.bytes() * number;
        match field.ty.scalar {
            ParamScalar::U32 | ParamScalar::Index => Some(ShareStep::Word(at)),
            ParamScalar::I32 => Some(ShareStep::Signed(at)),
            ParamScalar::U64 => Some(ShareStep::Long(at)),
            ParamScalar::F32 | ParamScalar::Bool | ParamScalar::I64 | ParamScalar::F64 => None,
        }
    }

    /// The field of the parameter block that holds a value, and which of its numbers the value is.
    fn place(&self, key: &Key) -> Option<(ParamRole, u32)> {
        match key {
            Key::Length(binding) => return Some((ParamRole::Length(*binding), 0)),
            Key::Extent(binding, axis) => return Some((ParamRole::Extents(*binding), *axis)),
            Key::Stride(binding, axis) => return Some((ParamRole::Strides(*binding), *axis)),
            Key::Param(param) => {
                if let role @ ParamRole::Constant(_) = layout::param_role(self.module, *param) {
                    return Some((role, 0));
                }
            }
            _ => {}
        }
        if let Some((leaf, ty)) = self.leaf(key) {
            return self.is_whole(ty).then_some((ParamRole::User(leaf), 0));
        }
        // A lane, or an element of an array.
        let Key::Part(base, number) = key else { return None };
        let (leaf, ty) = self.leaf(base)?;
        let scalars = match &self.module.types[ty] {
            Type::Vector { scalar, .. } => is_read(*scalar),
            Type::Array { element, .. } => self.is_whole(*element),
            _ => false,
        };
        scalars.then_some((ParamRole::User(leaf), *number))
    }

    /// The first leaf of a parameter, or of a part of it that a way through fields leads to, and the part's type.
    fn leaf(&self, key: &Key) -> Option<(u32, Handle<Type>)> {
        match key {
            Key::Param(param) => {
                let ty = self.module.params.get(*param as usize)?.ty;
                Some((flat::first_leaf(self.module, *param)?, ty))
            }
            Key::Part(base, field) => {
                let (leaf, ty) = self.leaf(base)?;
                let Type::Struct(structure) = self.module.types[ty] else { return None };
                let (_, own) = self.module.structs[structure].fields.get(*field as usize)?;
                Some((leaf + flat::leaves_before(self.module, structure, *field)?, *own))
            }
            _ => None,
        }
    }

    /// Whether values of the type are scalars that a step reads.
    fn is_whole(&self, ty: Handle<Type>) -> bool {
        matches!(self.module.types[ty], Type::Scalar(scalar) if is_read(scalar))
    }
}

/// Whether a scalar lies in the block as it is: of a narrow one, the block has the upper bits too.
const fn is_read(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::Index | Scalar::U64)
}

const fn wrap(kind: Kind) -> ShareStep {
    ShareStep::Wrap { signed: kind.signed, wide: kind.wide }
}
