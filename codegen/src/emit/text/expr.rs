//! Expressions.

use crate::artefact::{GridKind, ParamField, ParamRole, ParamScalar};
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Root,
    Scalar, Type, UnaryOperator,
};
use crate::layout;

use super::code::{Level, infix, logical};
use super::printer::{LANES, Scope};
use super::{Code, Dialect, Printer};

type Result<T> = std::result::Result<T, EmitError>;

impl<'a, D: Dialect> Printer<'a, D> {
    /// Prints an expression.
    ///
    /// # Errors
    /// The language cannot say it.
    pub fn expression(&mut self, scope: &Scope<'a>, handle: Handle<Expression>) -> Result<Code> {
        self.expression_as(scope, handle, false)
    }

    /// Prints an expression; with `opaque`, the first constant in it is hidden from the language's compiler, which would otherwise
    /// compute at compile time what it refuses there (an overflow, an infinity).
    fn expression_as(&mut self, scope: &Scope<'a>, handle: Handle<Expression>, opaque: bool) -> Result<Code> {
        let ty = self.type_of(scope, handle);
        match scope.kind(handle) {
            ExpressionKind::Literal(literal) => D::literal(self, *literal, opaque),
            ExpressionKind::Param(param) => self.param(*param),
            ExpressionKind::Length(binding) => self.param_value(ParamRole::Length(*binding)),
            ExpressionKind::ViewExtent { binding, axis } => {
                let field = self.param_field(ParamRole::Extents(*binding))?;
                D::param_part(self, field, *axis)
            }
            ExpressionKind::ViewStride { binding, axis } => {
                let field = self.param_field(ParamRole::Strides(*binding))?;
                D::param_part(self, field, *axis)
            }
            ExpressionKind::Builtin(builtin) => self.builtin(*builtin),
            ExpressionKind::Argument(argument) => Ok(Code::atom(scope.arguments[*argument as usize].clone())),
            ExpressionKind::Local(local) => Ok(Code::atom(scope.locals[local.index()].clone())),
            ExpressionKind::Load(place) => self.read(scope, place),
            ExpressionKind::Member { base, index } => self.member(scope, *base, *index, opaque),
            ExpressionKind::Element { base, index } => self.element_of(scope, *base, *index),
            ExpressionKind::Compose(parts) => {
                let mut codes = Vec::with_capacity(parts.len());
                for (position, part) in parts.iter().enumerate() {
                    codes.push(self.expression_as(scope, *part, opaque && position == 0)?);
                }
                D::compose(self, ty, codes)
            }
            ExpressionKind::Splat(value) => {
                if is_zero(scope.function, *value) {
                    return D::zero(self, ty);
                }
                let value = self.expression_as(scope, *value, opaque)?;
                D::splat(self, ty, value)
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let from = self.type_of(scope, *base);
                let base = self.expression_as(scope, *base, opaque)?;
                D::swizzle(self, from, ty, base, lanes)
            }
            ExpressionKind::Unary { operator, value } => {
                let value_type = self.type_of(scope, *value);
                let value = self.expression_as(scope, *value, opaque)?;
                D::unary(self, *operator, value_type, value)
            }
            ExpressionKind::Binary { operator, left, right } => {
                let risky = scope.is_constant(handle) && constant(scope.function, handle).is_none();
                let operand_type = self.type_of(scope, *left);
                let is_constant = scope.is_constant(*left);
                let left = self.expression_as(scope, *left, opaque || risky)?;
                let right = self.expression_as(scope, *right, risky)?;
                // Expressions are pure, and what is read again from memory has a local.
                let is_same = !is_constant && left.text == right.text;
                D::binary(self, *operator, operand_type, left, right, is_same)
            }
            ExpressionKind::Logical { operator, left, right } => {
                let left = self.expression(scope, *left)?;
                let right = self.expression(scope, *right)?;
                Ok(logical(*operator, left, right))
            }
            ExpressionKind::Math { function, arguments } => {
                let Some(first) = arguments.first() else {
                    return Err(self.error(format!("`{}` has no arguments", function.name())));
                };
                let argument_type = self.type_of(scope, *first);
                let risky = arguments.iter().all(|argument| scope.is_constant(*argument))
                    && argument_type.scalar().is_some_and(computed_late);
                let mut codes = Vec::with_capacity(arguments.len());
                for (position, argument) in arguments.iter().enumerate() {
                    codes.push(self.expression_as(scope, *argument, (opaque || risky) && position == 0)?);
                }
                if *function == MathFunction::Clamp && argument_type.scalar().is_none() {
                    return Err(self.error("`clamp` of something that is no number"));
                }
                D::math(self, *function, argument_type, codes)
            }
            ExpressionKind::Select { condition, accept, reject } => {
                let condition_type = self.type_of(scope, *condition);
                let condition = self.expression(scope, *condition)?;
                let accept = self.expression_as(scope, *accept, opaque)?;
                let reject = self.expression(scope, *reject)?;
                D::select(self, ty, condition_type, condition, accept, reject)
            }
            ExpressionKind::Convert(value) => {
                let from = self.type_of(scope, *value);
                let late = from.scalar().is_some_and(computed_late) || ty.scalar().is_some_and(Scalar::is_wide);
                let risky = late && scope.is_constant(*value);
                let value = self.expression_as(scope, *value, opaque || risky)?;
                // `usize` and `u32` are one type in every target, and an enum is its discriminant.
                if word(from) == word(ty) { Ok(value) } else { D::convert(self, &word(from), &word(ty), value) }
            }
            ExpressionKind::Bitcast(value) => {
                let from = self.type_of(scope, *value);
                let risky = ty.scalar().is_some_and(Scalar::is_float) && scope.is_constant(*value);
                let value = self.expression_as(scope, *value, opaque || risky)?;
                if word(from) == word(ty) { Ok(value) } else { D::bitcast(self, &word(from), &word(ty), value) }
            }
            ExpressionKind::Call { function, arguments } => self.call(scope, *function, arguments),
            ExpressionKind::MatrixLength(ty) => {
                let parts = self.parts(self.ty(*ty))?;
                Ok(Code::atom(format!("{parts}u")))
            }
            ExpressionKind::GenericConstant(_) => Err(self.error("a generic constant is left")),
            ExpressionKind::TargetHas(_) => Err(self.error("a question about the target is left")),
        }
    }

    fn call(&mut self, scope: &Scope<'a>, function: Handle<Function>, arguments: &[CallArgument]) -> Result<Code> {
        let resources = self.resources[function.index()].clone();
        let mut codes = D::pass(self, &resources);
        for argument in arguments {
            codes.push(match argument {
                CallArgument::Value(value) => self.expression(scope, *value)?,
                CallArgument::Reference(root) => {
                    let name = self.root_name(scope, *root);
                    D::reference(&name, matches!(root, Root::Argument(_)))
                }
            });
        }
        Ok(Code::call(&self.functions[function.index()], codes))
    }

    /// One of the author's parameters.
    fn param(&mut self, param: u32) -> Result<Code> {
        if let Some(position) = self.lowered.module.constants().position(|(index, ..)| index == param) {
            return Ok(Code::atom(self.constants[position].clone()));
        }
        let field = self.param_field(ParamRole::User(param))?;
        if field.ty.array {
            let array = D::param_array(self, field)?;
            return Ok(self.hidden(field, array));
        }
        let code = self.param_value(ParamRole::User(param))?;
        if field.ty.scalar != ParamScalar::Bool {
            return Ok(code);
        }
        let word = Type::Scalar(Scalar::U32);
        let ty = if field.ty.count == 1 { word } else { Type::vector(field.ty.count as u8, Scalar::U32) };
        let zero = D::zero(self, &ty)?;
        D::binary(self, BinaryOperator::NotEqual, &ty, code, zero, false)
    }

    fn builtin(&mut self, builtin: Builtin) -> Result<Code> {
        if builtin == Builtin::GroupCount && self.lowered.info.grid == GridKind::Linear {
            return self.param_value(ParamRole::GroupCount);
        }
        match Builtin::ALL.iter().find(|(known, _)| *known == builtin) {
            Some((_, name)) => Ok(Code::atom(*name)),
            None => Err(self.error("a builtin has no name")),
        }
    }

    /// The field of an array parameter, if the expression is one.
    fn array_param(
        &self,
        scope: &Scope<'a>,
        base: Handle<Expression>,
    ) -> Result<Option<&'a crate::artefact::ParamField>> {
        match scope.kind(base) {
            ExpressionKind::Param(param) => {
                let field = self.param_field(layout::param_role(&self.lowered.module, *param))?;
                Ok(field.ty.array.then_some(field))
            }
            _ => Ok(None),
        }
    }

    fn member(&mut self, scope: &Scope<'a>, base: Handle<Expression>, index: u32, opaque: bool) -> Result<Code> {
        if let Some(field) = self.array_param(scope, base)? {
            return D::param_part(self, field, index);
        }
        let ty = self.type_of(scope, base);
        let base = self.expression_as(scope, base, opaque)?;
        match ty {
            Type::Struct(handle) => Ok(base.member(&self.field_name(*handle, index)?)),
            Type::Vector { .. } => match LANES.get(index as usize) {
                Some(lane) => Ok(base.member(lane)),
                None => Err(self.error(format!("a vector has no lane {index}"))),
            },
            Type::Array { .. } => Ok(base.index(Code::atom(index.to_string()))),
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => Err(self.error("a part is taken of a scalar")),
        }
    }

    fn element_of(&mut self, scope: &Scope<'a>, base: Handle<Expression>, index: Handle<Expression>) -> Result<Code> {
        let ty = self.type_of(scope, base);
        if let ExpressionKind::Literal(literal) = scope.kind(index) {
            let index = u32::try_from(literal.bits()).unwrap_or(u32::MAX);
            if index < self.parts(ty)? {
                return self.member(scope, base, index, false);
            }
        }
        let code = self.expression(scope, index)?;
        if let Some(field) = self.array_param(scope, base)? {
            return D::param_element(self, field, code);
        }
        let base = self.expression(scope, base)?;
        D::part(self, ty, base, code)
    }

    /// Whether the expression is the same each time that it is evaluated, and cheap, so that it need not be kept in a variable.
    pub fn is_stable(&self, scope: &Scope<'a>, handle: Handle<Expression>) -> bool {
        match scope.kind(handle) {
            ExpressionKind::Literal(_)
            | ExpressionKind::Param(_)
            | ExpressionKind::Length(_)
            | ExpressionKind::ViewExtent { .. }
            | ExpressionKind::ViewStride { .. }
            | ExpressionKind::Builtin(_)
            | ExpressionKind::Argument(_)
            | ExpressionKind::Local(_) => true,
            ExpressionKind::Convert(value) => self.is_stable(scope, *value),
            ExpressionKind::Binary { left, right, .. } => self.is_stable(scope, *left) && self.is_stable(scope, *right),
            _ => false,
        }
    }

    /// The plain infix form of a binary operation.
    pub fn plain_binary(operator: BinaryOperator, left: Code, right: Code) -> Code {
        infix(operator, left, right)
    }

    /// `condition ? accept : reject`, as C has it.
    pub fn conditional(condition: Code, accept: Code, reject: Code) -> Code {
        let inner = |code: Code| code.at(Level::Or);
        Code { text: format!("{} ? {} : {}", inner(condition), inner(accept), inner(reject)), level: Level::Choice }
    }
}

/// The type with `u32` for what lies in memory as one.
pub fn word(ty: &Type) -> Type {
    match ty {
        Type::Scalar(Scalar::Index) | Type::Enum(_) => Type::Scalar(Scalar::U32),
        Type::Vector { lanes, scalar: Scalar::Index } => Type::vector(*lanes, Scalar::U32),
        other => other.clone(),
    }
}

/// What a word of the parameter block stands for: a `bool` is a word there.
pub fn word_value(field: &ParamField, word: Code) -> Code {
    if field.ty.scalar == ParamScalar::Bool { infix(BinaryOperator::NotEqual, word, Code::atom("0u")) } else { word }
}

/// Whether the value is zero bits.
fn is_zero(function: &Function, handle: Handle<Expression>) -> bool {
    match &function.expressions[handle].kind {
        ExpressionKind::Literal(literal) => literal.bits() == 0,
        ExpressionKind::Splat(value) => is_zero(function, *value),
        ExpressionKind::Compose(parts) => parts.iter().all(|part| is_zero(function, *part)),
        _ => false,
    }
}

/// Whether functions and conversions of constants of the type are left for when the kernel runs: of floats, of which a result may be none that can be written, and of 64 bits, of which
/// naga computes few.
const fn computed_late(scalar: Scalar) -> bool {
    scalar.is_float() || scalar.is_wide()
}

/// Which expressions are made of constants alone, which a compiler would compute.
pub fn constants(function: &Function) -> Vec<bool> {
    let mut constants: Vec<bool> = Vec::with_capacity(function.expressions.len());
    for (_, expression) in function.expressions.iter() {
        let mut is_constant = matches!(
            expression.kind,
            ExpressionKind::Literal(_)
                | ExpressionKind::Compose(_)
                | ExpressionKind::Math { .. }
                | ExpressionKind::Member { .. }
                | ExpressionKind::Swizzle { .. }
                | ExpressionKind::Splat(_)
                | ExpressionKind::Unary { .. }
                | ExpressionKind::Convert(_)
                | ExpressionKind::Bitcast(_)
                | ExpressionKind::Binary { .. }
                | ExpressionKind::Select { .. }
        );
        // Operands come before what uses them.
        expression.kind.operands(&mut |operand| {
            is_constant &= constants.get(operand.index()).copied().unwrap_or(false);
        });
        constants.push(is_constant);
    }
    constants
}

/// The value of an expression of scalar constants that any compiler computes without complaint.
fn constant(function: &Function, handle: Handle<Expression>) -> Option<Literal> {
    match &function.expressions[handle].kind {
        ExpressionKind::Literal(literal) => Some(*literal),
        ExpressionKind::Unary { operator: UnaryOperator::Negate, value } => match constant(function, *value)? {
            Literal::F32(value) => Some(Literal::F32(-value)),
            Literal::F64(value) => Some(Literal::F64(-value)),
            value => Literal::exact_integer(value.scalar(), -value.as_integer()?),
        },
        ExpressionKind::Binary { operator, left, right } => {
            match (constant(function, *left)?, constant(function, *right)?) {
                (Literal::F32(left), Literal::F32(right)) => {
                    let value = match operator {
                        BinaryOperator::Add => left + right,
                        BinaryOperator::Subtract => left - right,
                        BinaryOperator::Multiply => left * right,
                        BinaryOperator::Divide => left / right,
                        _ => return None,
                    };
                    value.is_finite().then_some(Literal::F32(value))
                }
                (Literal::F64(left), Literal::F64(right)) => {
                    let value = match operator {
                        BinaryOperator::Add => left + right,
                        BinaryOperator::Subtract => left - right,
                        BinaryOperator::Multiply => left * right,
                        BinaryOperator::Divide => left / right,
                        _ => return None,
                    };
                    value.is_finite().then_some(Literal::F64(value))
                }
                (Literal::I32(left), Literal::I32(right)) => match operator {
                    BinaryOperator::Add => left.checked_add(right),
                    BinaryOperator::Subtract => left.checked_sub(right),
                    BinaryOperator::Multiply => left.checked_mul(right),
                    BinaryOperator::Divide => left.checked_div(right),
                    BinaryOperator::Remainder => left.checked_rem(right),
                    _ => None,
                }
                .map(Literal::I32),
                (Literal::U32(left) | Literal::Index(left), Literal::U32(right) | Literal::Index(right)) => {
                    match operator {
                        BinaryOperator::Add => left.checked_add(right),
                        BinaryOperator::Subtract => left.checked_sub(right),
                        BinaryOperator::Multiply => left.checked_mul(right),
                        BinaryOperator::Divide => left.checked_div(right),
                        BinaryOperator::Remainder => left.checked_rem(right),
                        BinaryOperator::And => Some(left & right),
                        BinaryOperator::Or => Some(left | right),
                        BinaryOperator::Xor => Some(left ^ right),
                        BinaryOperator::ShiftLeft if right < 32 => Some(left << right),
                        BinaryOperator::ShiftRight if right < 32 => Some(left >> right),
                        _ => None,
                    }
                    .map(Literal::U32)
                }
                _ => None,
            }
        }
        _ => None,
    }
}
