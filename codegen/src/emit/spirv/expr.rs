//! Expressions: each is written where the statement that holds it runs.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op, Word};

use super::function::FunctionWriter;
use crate::artefact::ParamRole;
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, LogicalOperator, Place,
    Precision, Projection, Root, Scalar, Type, UnaryOperator,
};

/// What an operation sees of a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
}

/// The kind of a scalar, vector or enum.
pub(super) fn kind_of(ty: &Type) -> Option<Kind> {
    match ty {
        Type::Enum(_) => Some(Kind::Unsigned),
        _ => match ty.scalar()? {
            Scalar::Bool => Some(Kind::Bool),
            Scalar::Generic(_) => None,
            scalar if scalar.is_float() => Some(Kind::Float),
            scalar if scalar.is_signed() => Some(Kind::Signed),
            _ => Some(Kind::Unsigned),
        },
    }
}

/// The lanes of a vector, 1 for anything else.
pub(super) fn lanes_of(ty: &Type) -> u8 {
    ty.lanes().unwrap_or(1)
}

impl<'a> FunctionWriter<'_, 'a> {
    /// The IR type of an expression.
    pub(super) fn type_of(&self, handle: Handle<Expression>) -> &'a Type {
        self.writer.ir(self.function.expressions[handle].ty)
    }

    /// The kind of an expression's scalars.
    pub(super) fn kind(&self, handle: Handle<Expression>) -> Result<Kind, EmitError> {
        kind_of(self.type_of(handle))
            .ok_or_else(|| self.writer.fail("arithmetic on a struct, an array or a type parameter"))
    }

    /// The number that an expression is, if it is an integer constant.
    pub(super) fn known_number(&self, handle: Handle<Expression>) -> Option<u32> {
        match self.function.expressions[handle].kind {
            ExpressionKind::Literal(Literal::Index(value) | Literal::U32(value)) => Some(value),
            ExpressionKind::Literal(Literal::I32(value)) => Some(value.cast_unsigned()),
            ExpressionKind::Literal(Literal::U64(value)) => u32::try_from(value).ok(),
            _ => None,
        }
    }

    /// Writes an expression and gives its value.
    pub(super) fn value(&mut self, handle: Handle<Expression>) -> Result<Word, EmitError> {
        let function: &'a Function = self.function;
        let expression = &function.expressions[handle];
        let ty = self.value_type(expression.ty)?;
        match &expression.kind {
            ExpressionKind::Literal(literal) => self.writer.literal(*literal),
            ExpressionKind::Param(index) => self.param(*index, expression.ty),
            ExpressionKind::Length(binding) => self.param_scalar(ParamRole::Length(*binding)),
            ExpressionKind::ViewExtent { binding, axis } => self.param_element(ParamRole::Extents(*binding), *axis),
            ExpressionKind::ViewStride { binding, axis } => self.param_element(ParamRole::Strides(*binding), *axis),
            ExpressionKind::Builtin(builtin) => self.builtin(*builtin),
            ExpressionKind::Argument(index) => self
                .arguments
                .get(*index as usize)
                .copied()
                .ok_or_else(|| self.writer.fail(format!("`{}` has no argument {index}", function.name))),
            ExpressionKind::Local(local) if self.is_variable(*local) => {
                let variable = self.local_variable(*local)?;
                Ok(self.op(Op::Load, ty, &[variable]))
            }
            ExpressionKind::Local(local) => self.values.get(local).copied().ok_or_else(|| {
                self.writer.fail(format!("`{}` is read before it is declared", function.locals[*local].name))
            }),
            ExpressionKind::Load(place) => self.load(place),
            ExpressionKind::Member { base, index } => self.member(*base, *index, ty),
            ExpressionKind::Element { base, index } => self.element(*base, *index, ty),
            ExpressionKind::Compose(parts) => {
                let mut operands = Vec::new();
                for part in parts {
                    operands.push(Operand::IdRef(self.value(*part)?));
                }
                self.composite(ty, operands, parts)
            }
            ExpressionKind::MatrixLength(ty) => match self.as_matrix(*ty) {
                Some(matrix) => self.matrix_length(&matrix),
                None => Err(self.writer.fail("the parts of what is no matrix")),
            },
            ExpressionKind::Splat(part) if let Some(matrix) = self.as_matrix(expression.ty) => {
                self.matrix_fill(&matrix, *part)
            }
            ExpressionKind::Convert(value) if let Some(matrix) = self.as_matrix(expression.ty) => {
                self.matrix_convert(&matrix, *value)
            }
            ExpressionKind::Splat(part) => {
                let count = match self.writer.ir(expression.ty) {
                    Type::Array { length, .. } => length.literal().unwrap_or(0),
                    other => u32::from(lanes_of(other)),
                };
                if matches!(function.expressions[*part].kind, ExpressionKind::Literal(literal) if literal.bits() == 0) {
                    return Ok(self.writer.zero(ty));
                }
                let value = self.value(*part)?;
                self.composite(ty, vec![Operand::IdRef(value); count as usize], &[*part])
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let base = self.value(*base)?;
                let mut operands = vec![Operand::IdRef(base), Operand::IdRef(base)];
                operands.extend(lanes.iter().map(|lane| Operand::LiteralBit32((*lane).into())));
                Ok(self.op_with(Op::VectorShuffle, ty, operands))
            }
            ExpressionKind::Unary { operator, value } => {
                let op = match (operator, self.kind(*value)?) {
                    (UnaryOperator::Negate, Kind::Float) => Op::FNegate,
                    (UnaryOperator::Negate, _) => Op::SNegate,
                    (UnaryOperator::Not, Kind::Bool) => Op::LogicalNot,
                    (UnaryOperator::Not, _) => Op::Not,
                };
                let value = self.value(*value)?;
                Ok(self.op(op, ty, &[value]))
            }
            ExpressionKind::Binary { operator, left, right } => {
                let operands = [self.value(*left)?, self.value(*right)?];
                self.binary(*operator, *left, ty, operands)
            }
            ExpressionKind::Logical { operator, left, right } => self.logical(*operator, *left, *right, ty),
            ExpressionKind::Math { function, arguments } => self.math(*function, arguments, ty),
            ExpressionKind::Select { condition, accept, reject } => {
                let condition = self.value(*condition)?;
                let accept = self.value(*accept)?;
                let reject = self.value(*reject)?;
                Ok(self.op(Op::Select, ty, &[condition, accept, reject]))
            }
            ExpressionKind::Convert(value) => self.convert(*value, expression.ty, ty),
            ExpressionKind::Bitcast(value) => self.bitcast(*value, expression.ty, ty),
            ExpressionKind::Call { function, arguments } => self.call(*function, arguments, ty),
            ExpressionKind::GenericConstant(_) => Err(self.writer.fail("a const parameter is left in an instance")),
            ExpressionKind::TargetHas(feature) => {
                Err(self.writer.fail(format!("a question for the feature {} is left after lowering", feature.name())))
            }
        }
    }

    /// An operation on two values, of the kind that `like` is.
    pub(super) fn binary(
        &mut self,
        operator: BinaryOperator,
        like: Handle<Expression>,
        ty: Word,
        operands: [Word; 2],
    ) -> Result<Word, EmitError> {
        let op = binary_op(operator, self.kind(like)?)
            .ok_or_else(|| self.writer.fail(format!("{operator:?} has no meaning for its operands")))?;
        let result = self.op(op, ty, &operands);
        self.keep_apart(op, result);
        Ok(result)
    }

    /// A composite value; a constant if its parts are literals.
    fn composite(&mut self, ty: Word, operands: Vec<Operand>, parts: &[Handle<Expression>]) -> Result<Word, EmitError> {
        // An instruction holds 65,535 words.
        if operands.len() > 65_000 {
            return Err(self.writer.fail(format!("a value of {} parts is too large", operands.len())));
        }
        let is_literal =
            |part: &Handle<Expression>| matches!(self.function.expressions[*part].kind, ExpressionKind::Literal(_));
        if parts.iter().all(is_literal) {
            return Ok(self.writer.global(Op::ConstantComposite, Some(ty), operands));
        }
        Ok(self.op_with(Op::CompositeConstruct, ty, operands))
    }

    fn param(&mut self, index: u32, ty: Handle<Type>) -> Result<Word, EmitError> {
        if let Some(value) = self.writer.constant_value(index)? {
            return Ok(value);
        }
        let role = ParamRole::User(index);
        let Type::Array { length, .. } = self.writer.ir(ty) else {
            return self.param_scalar(role);
        };
        let ty = self.value_type(ty)?;
        let mut parts = Vec::new();
        for element in 0..length.literal().unwrap_or(0) {
            parts.push(self.param_element(role, element)?);
        }
        Ok(self.op(Op::CompositeConstruct, ty, &parts))
    }

    fn member(&mut self, base: Handle<Expression>, index: u32, ty: Word) -> Result<Word, EmitError> {
        let function = self.function;
        let base_expression = &function.expressions[base];
        match &base_expression.kind {
            ExpressionKind::Param(param) if matches!(self.type_of(base), Type::Array { .. }) => {
                return self.param_element(ParamRole::User(*param), index);
            }
            ExpressionKind::Load(place) if !ends_in_vector(place) => {
                let mut place = place.clone();
                place.path.push(Projection::Member(index));
                return self.load(&place);
            }
            ExpressionKind::Local(local) if self.is_variable(*local) => {
                return self.load(&Place {
                    root: Root::Local(*local),
                    path: vec![Projection::Member(index)],
                    guarded: false,
                });
            }
            _ => {}
        }
        let base = self.value(base)?;
        Ok(self.op_with(Op::CompositeExtract, ty, vec![Operand::IdRef(base), Operand::LiteralBit32(index)]))
    }

    fn element(&mut self, base: Handle<Expression>, index: Handle<Expression>, ty: Word) -> Result<Word, EmitError> {
        let base_type = self.type_of(base);
        let length = match base_type {
            Type::Array { length, .. } => length.literal().unwrap_or(0),
            other => u32::from(lanes_of(other)),
        };
        if let Some(known) = self.known_number(index) {
            return if known < length { self.member(base, known, ty) } else { Ok(self.writer.zero(ty)) };
        }
        let function = self.function;
        match &function.expressions[base].kind {
            ExpressionKind::Param(param) if matches!(base_type, Type::Array { .. }) => {
                let index = self.value(index)?;
                return self.param_element_at(ParamRole::User(*param), index);
            }
            ExpressionKind::Load(place) if !ends_in_vector(place) => {
                let mut place = place.clone();
                place.path.push(Projection::Index(index));
                place.guarded = true;
                return self.load(&place);
            }
            ExpressionKind::Local(local) if self.is_variable(*local) => {
                return self.load(&Place {
                    root: Root::Local(*local),
                    path: vec![Projection::Index(index)],
                    guarded: true,
                });
            }
            _ => {}
        }
        let value = self.value(base)?;
        let index = self.value(index)?;
        let (flag, word) = (self.writer.bool_type(), self.writer.u32_type());
        let (limit, nought) = (self.writer.u32(length), self.writer.u32(0));
        let inside = self.op(Op::ULessThan, flag, &[index, limit]);
        let clamped = self.op(Op::Select, word, &[inside, index, nought]);
        let part = if matches!(base_type, Type::Vector { .. }) {
            self.op(Op::VectorExtractDynamic, ty, &[value, clamped])
        } else {
            let base_id = self.writer.value_type(base_type)?;
            let variable = self.variable(base_id, None);
            self.effect(Op::Store, vec![Operand::IdRef(variable), Operand::IdRef(value)]);
            let pointer = self.writer.pointer(rspirv::spirv::StorageClass::Function, ty);
            let pointer = self.op(Op::AccessChain, pointer, &[variable, clamped]);
            self.op(Op::Load, ty, &[pointer])
        };
        let zero = self.writer.zero(ty);
        Ok(self.op(Op::Select, ty, &[inside, part, zero]))
    }

    fn logical(
        &mut self,
        operator: LogicalOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        ty: Word,
    ) -> Result<Word, EmitError> {
        let first = self.value(left)?;
        if self.is_plain(right) {
            let second = self.value(right)?;
            let op = match operator {
                LogicalOperator::And => Op::LogicalAnd,
                LogicalOperator::Or => Op::LogicalOr,
            };
            return Ok(self.op(op, ty, &[first, second]));
        }
        let from = self.label();
        let (more, merge) = (self.writer.id(), self.writer.id());
        match operator {
            LogicalOperator::And => self.select_branch(first, more, merge, merge),
            LogicalOperator::Or => self.select_branch(first, merge, more, merge),
        }
        self.begin(more);
        let second = self.value(right)?;
        let then = self.label();
        self.branch(merge);
        self.begin(merge);
        Ok(self.phi(ty, [(first, from), (second, then)]))
    }

    /// Whether an expression may be evaluated though it is not wanted: it neither calls nor reads elements of memory.
    fn is_plain(&self, handle: Handle<Expression>) -> bool {
        let plain = |handles: &[Handle<Expression>]| handles.iter().all(|part| self.is_plain(*part));
        match &self.function.expressions[handle].kind {
            ExpressionKind::Load(place) => place.path.is_empty(),
            ExpressionKind::Call { .. } | ExpressionKind::Element { .. } | ExpressionKind::Logical { .. } => false,
            ExpressionKind::Member { base, .. } | ExpressionKind::Swizzle { base, .. } => self.is_plain(*base),
            ExpressionKind::Compose(parts) => plain(parts),
            ExpressionKind::Math { arguments, .. } => plain(arguments),
            ExpressionKind::Splat(value)
            | ExpressionKind::Unary { value, .. }
            | ExpressionKind::Convert(value)
            | ExpressionKind::Bitcast(value) => self.is_plain(*value),
            ExpressionKind::Binary { left, right, .. } => plain(&[*left, *right]),
            ExpressionKind::Select { condition, accept, reject } => plain(&[*condition, *accept, *reject]),
            ExpressionKind::Literal(_)
            | ExpressionKind::GenericConstant(_)
            | ExpressionKind::Param(_)
            | ExpressionKind::Length(_)
            | ExpressionKind::ViewExtent { .. }
            | ExpressionKind::ViewStride { .. }
            | ExpressionKind::Builtin(_)
            | ExpressionKind::Argument(_)
            | ExpressionKind::Local(_)
            | ExpressionKind::MatrixLength(_)
            | ExpressionKind::TargetHas(_) => true,
        }
    }

    fn convert(&mut self, value: Handle<Expression>, to: Handle<Type>, ty: Word) -> Result<Word, EmitError> {
        let (from_type, to_type) = (self.type_of(value), self.writer.ir(to));
        let to_kind = kind_of(to_type).ok_or_else(|| self.writer.fail("a conversion to no scalar or vector"))?;
        let from = self.kind(value)?;
        let value = self.value(value)?;
        let lanes = lanes_of(to_type);
        // A half is held as the f32 that equals it; lowering has rounded it.
        Ok(match (from, to_kind) {
            (Kind::Bool, Kind::Bool) => value,
            (Kind::Bool, _) => {
                let scalar = match to_type.scalar() {
                    Some(Scalar::F16) => Scalar::F32,
                    scalar => scalar.unwrap_or(Scalar::U32),
                };
                let scalar_type = self.writer.scalar_type(scalar)?;
                let literal = |number: u32| {
                    Literal::float(scalar, f64::from(number)).or_else(|| Literal::integer(scalar, number.into()))
                };
                let [Some(one), Some(zero)] = [1, 0].map(literal) else {
                    return Err(self.writer.fail("a bool becomes something that is no number"));
                };
                let (one, zero) = (self.writer.literal(one)?, self.writer.literal(zero)?);
                let one = self.writer.splat_constant(scalar_type, one, lanes);
                let zero = self.writer.splat_constant(scalar_type, zero, lanes);
                self.op(Op::Select, ty, &[value, one, zero])
            }
            (_, Kind::Bool) => return Err(self.writer.fail("a number is converted to `bool`")),
            (Kind::Float, Kind::Float) if is_wide(from_type) != is_wide(to_type) => self.op(Op::FConvert, ty, &[value]),
            (Kind::Float, Kind::Float) => value,
            (Kind::Float, Kind::Signed) => self.op(Op::ConvertFToS, ty, &[value]),
            (Kind::Float, Kind::Unsigned) => self.op(Op::ConvertFToU, ty, &[value]),
            (Kind::Signed, Kind::Float) => self.op(Op::ConvertSToF, ty, &[value]),
            (Kind::Unsigned, Kind::Float) => self.op(Op::ConvertUToF, ty, &[value]),
            // Extended by its own sign, then the same bits.
            (Kind::Signed | Kind::Unsigned, _) if is_wide(from_type) != is_wide(to_type) => {
                let signed = from == Kind::Signed;
                let same = match (is_wide(to_type), signed) {
                    (true, true) => Scalar::I64,
                    (true, false) => Scalar::U64,
                    (false, true) => Scalar::I32,
                    (false, false) => Scalar::U32,
                };
                let own = self.writer.value_type(&to_type.with_scalar(same))?;
                let converted = self.op(if signed { Op::SConvert } else { Op::UConvert }, own, &[value]);
                if own == ty { converted } else { self.op(Op::Bitcast, ty, &[converted]) }
            }
            (Kind::Signed, Kind::Signed) | (Kind::Unsigned, Kind::Unsigned) => value,
            (Kind::Signed, Kind::Unsigned) | (Kind::Unsigned, Kind::Signed) => self.op(Op::Bitcast, ty, &[value]),
        })
    }

    /// Keeps an instruction of a strict function from being contracted with another.
    pub(super) fn keep_apart(&mut self, op: Op, result: Word) {
        if self.function.precision == Precision::Strict && rounds(op) {
            self.writer.decorate(result, Decoration::NoContraction, &[]);
        }
    }

    fn bitcast(&mut self, value: Handle<Expression>, to: Handle<Type>, ty: Word) -> Result<Word, EmitError> {
        let from = self.type_of(value);
        let to = self.writer.ir(to);
        let pair = Type::vector(2, Scalar::F16);
        let value_id = self.value(value)?;
        match (from.scalar() == Some(Scalar::F16), to.scalar() == Some(Scalar::F16)) {
            (true, true) => return Ok(value_id),
            (true, false) if *from == pair && lanes_of(to) == 1 => {
                let word = self.writer.u32_type();
                let packed = self.glsl(rspirv::spirv::GlslStd450Op::PackHalf2x16, word, &[value_id]);
                return Ok(if word == ty { packed } else { self.op(Op::Bitcast, ty, &[packed]) });
            }
            (false, true) if *to == pair && lanes_of(from) == 1 => {
                let word = self.writer.u32_type();
                let from = self.writer.value_type(from)?;
                let bits = if from == word { value_id } else { self.op(Op::Bitcast, word, &[value_id]) };
                return Ok(self.glsl(rspirv::spirv::GlslStd450Op::UnpackHalf2x16, ty, &[bits]));
            }
            (false, false) => {}
            (true, false) | (false, true) => {
                return Err(self.writer.fail("halves are reinterpreted otherwise than as a word for two of them"));
            }
        }
        if self.writer.value_type(from)? == ty {
            return Ok(value_id);
        }
        Ok(self.op(Op::Bitcast, ty, &[value_id]))
    }

    /// A call; `&mut` arguments are pointers to whole variables, which no other argument names.
    pub(super) fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[CallArgument],
        ty: Word,
    ) -> Result<Word, EmitError> {
        let Some(&id) = self.writer.functions.get(callee.index()) else {
            return Err(self.writer.fail("a call of a function that the module lacks"));
        };
        let mut operands = vec![id];
        for argument in arguments {
            operands.push(match argument {
                CallArgument::Value(value) => self.value(*value)?,
                CallArgument::Reference(Root::Local(local)) => self.local_variable(*local)?,
                CallArgument::Reference(Root::Argument(index)) => {
                    self.arguments.get(*index as usize).copied().unwrap_or_default()
                }
                CallArgument::Reference(Root::Binding(_) | Root::Workgroup(_)) => {
                    return Err(self.writer.fail("a buffer or workgroup variable is passed by reference"));
                }
            });
        }
        self.touched |= self.writer.touched.accesses.get(callee.index()).copied().unwrap_or(true);
        let result = match self.writer.lowered.module.functions[callee].result {
            Some(_) => ty,
            None => self.void(),
        };
        Ok(self.op(Op::FunctionCall, result, &operands))
    }
}

/// Whether an instruction rounds, so that it could be contracted with another.
const fn rounds(op: Op) -> bool {
    matches!(op, Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem)
}

/// Whether a type's scalars fill two words.
fn is_wide(ty: &Type) -> bool {
    ty.scalar().is_some_and(Scalar::is_wide)
}

/// Whether a place is several elements as one vector, which has no parts as a place.
fn ends_in_vector(place: &Place) -> bool {
    matches!(place.path.last(), Some(Projection::Vector { .. }))
}

/// The instruction of an operator for operands of that kind.
fn binary_op(operator: BinaryOperator, kind: Kind) -> Option<Op> {
    use BinaryOperator as B;
    use Kind::{Bool, Float, Signed, Unsigned};
    Some(match (operator, kind) {
        (B::Add, Float) => Op::FAdd,
        (B::Subtract, Float) => Op::FSub,
        (B::Multiply, Float) => Op::FMul,
        (B::Divide, Float) => Op::FDiv,
        (B::Remainder, Float) => Op::FRem,
        (B::Add, Signed | Unsigned) => Op::IAdd,
        (B::Subtract, Signed | Unsigned) => Op::ISub,
        (B::Multiply, Signed | Unsigned) => Op::IMul,
        (B::Divide, Signed) => Op::SDiv,
        (B::Divide, Unsigned) => Op::UDiv,
        (B::Remainder, Signed) => Op::SRem,
        (B::Remainder, Unsigned) => Op::UMod,
        (B::And, Bool) => Op::LogicalAnd,
        (B::Or, Bool) => Op::LogicalOr,
        (B::Xor | B::NotEqual, Bool) => Op::LogicalNotEqual,
        (B::Equal, Bool) => Op::LogicalEqual,
        (B::And, Signed | Unsigned) => Op::BitwiseAnd,
        (B::Or, Signed | Unsigned) => Op::BitwiseOr,
        (B::Xor, Signed | Unsigned) => Op::BitwiseXor,
        (B::ShiftLeft, Signed | Unsigned) => Op::ShiftLeftLogical,
        (B::ShiftRight, Signed) => Op::ShiftRightArithmetic,
        (B::ShiftRight, Unsigned) => Op::ShiftRightLogical,
        (B::Equal, Signed | Unsigned) => Op::IEqual,
        (B::NotEqual, Signed | Unsigned) => Op::INotEqual,
        (B::Equal, Float) => Op::FOrdEqual,
        (B::NotEqual, Float) => Op::FUnordNotEqual,
        (B::Less, Float) => Op::FOrdLessThan,
        (B::LessEqual, Float) => Op::FOrdLessThanEqual,
        (B::Greater, Float) => Op::FOrdGreaterThan,
        (B::GreaterEqual, Float) => Op::FOrdGreaterThanEqual,
        (B::Less, Signed) => Op::SLessThan,
        (B::LessEqual, Signed) => Op::SLessThanEqual,
        (B::Greater, Signed) => Op::SGreaterThan,
        (B::GreaterEqual, Signed) => Op::SGreaterThanEqual,
        (B::Less, Unsigned) => Op::ULessThan,
        (B::LessEqual, Unsigned) => Op::ULessThanEqual,
        (B::Greater, Unsigned) => Op::UGreaterThan,
        (B::GreaterEqual, Unsigned) => Op::UGreaterThanEqual,
        (B::Add | B::Subtract | B::Multiply | B::Divide | B::Remainder, Bool)
        | (B::ShiftLeft | B::ShiftRight, Bool | Float)
        | (B::And | B::Or | B::Xor, Float)
        | (B::Less | B::LessEqual | B::Greater | B::GreaterEqual, Bool) => return None,
    })
}
