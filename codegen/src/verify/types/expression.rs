//! The types of expressions, from those of their operands.

use super::{BOOL, Checker, INDEX, part};
use crate::ir::{
    BinaryOperator, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Module,
    OperandType, Root, Scalar, Type, UnaryOperator,
};
use crate::verify::functions;

impl Checker<'_> {
    /// What an expression's type must be; `None` for a call that gives nothing.
    pub(super) fn infer(&self, handle: Handle<Expression>) -> Result<Option<Type>, String> {
        let expression = &self.function.expressions[handle];
        let stated = &self.module.types[expression.ty];
        Ok(Some(match &expression.kind {
            ExpressionKind::Literal(Literal::U32(value)) if matches!(stated, Type::Enum(_)) => {
                let Type::Enum(item) = stated else { return Ok(None) };
                let item = &self.module.enums[*item];
                if !item.variants.iter().any(|(_, known)| known == value) {
                    return Err(format!("{value} is no discriminant of `{}`", item.name));
                }
                stated.clone()
            }
            ExpressionKind::Literal(Literal::Generic { .. }) | ExpressionKind::GenericConstant(_) => {
                return Err("a generic parameter was not replaced by its value".to_owned());
            }
            ExpressionKind::Literal(literal) => Type::Scalar(literal.scalar()),
            ExpressionKind::Param(param) => self.module.types[self.module.params[*param as usize].ty].clone(),
            ExpressionKind::Length(_) | ExpressionKind::ViewExtent { .. } | ExpressionKind::ViewStride { .. } => {
                self.index()
            }
            ExpressionKind::Builtin(builtin) if builtin.is_vector() => Type::vector(3, Scalar::Index),
            ExpressionKind::Builtin(_) => INDEX,
            ExpressionKind::Argument(argument) => {
                self.module.types[self.function.arguments[*argument as usize].ty].clone()
            }
            ExpressionKind::Local(local) => self.module.types[self.function.locals[*local].ty].clone(),
            ExpressionKind::Load(place) => {
                if self.is_atomic(place.root) {
                    return Err("an atomic is read with `.load()`".to_owned());
                }
                self.place(place)?
            }
            ExpressionKind::Member { base, index } => part(self.module, self.of(*base), *index)?,
            ExpressionKind::Element { base, index } => {
                if !self.is_index(*index) {
                    return Err(format!("an index is a usize, not {}", self.name(self.of(*index))));
                }
                match self.of(*base) {
                    ty @ Type::Struct(_) => return Err(format!("{} cannot be indexed", self.name(ty))),
                    ty => part(self.module, ty, 0)?,
                }
            }
            ExpressionKind::Compose(parts) => {
                self.compose(stated, parts)?;
                stated.clone()
            }
            ExpressionKind::MatrixLength(_) => INDEX,
            ExpressionKind::Splat(value) if let Type::Matrix(matrix) = stated => {
                if *self.of(*value) != Type::Scalar(matrix.scalar) {
                    return Err(format!("{} cannot fill {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Splat(value) => {
                if part(self.module, stated, 0)? != *self.of(*value) || matches!(stated, Type::Struct(_)) {
                    return Err(format!("{} cannot fill {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Swizzle { base, lanes } => match self.of(*base) {
                Type::Vector { lanes: count, scalar }
                    if (2..=4).contains(&lanes.len()) && lanes.iter().all(|lane| lane < count) =>
                {
                    Type::vector(lanes.len() as u8, *scalar)
                }
                ty => return Err(format!("{} does not have these lanes", self.name(ty))),
            },
            ExpressionKind::Unary { operator, value } => {
                let ty = self.of(*value);
                let allowed = match operator {
                    UnaryOperator::Negate => {
                        ty.scalar().is_some_and(|s| s.is_number() && (s.is_float() || s.is_signed()))
                    }
                    UnaryOperator::Not => ty.scalar().is_some_and(|s| s == Scalar::Bool || s.is_integer()),
                };
                if !allowed {
                    let sign = if *operator == UnaryOperator::Negate { "-" } else { "!" };
                    return Err(self.no_operation(sign, ty));
                }
                ty.clone()
            }
            ExpressionKind::Binary { operator, left, right } => self.binary(*operator, *left, *right)?,
            ExpressionKind::Logical { left, right, .. } => {
                for side in [left, right] {
                    if *self.of(*side) != BOOL {
                        return Err(format!("`&&` and `||` take bool, not {}", self.name(self.of(*side))));
                    }
                }
                BOOL
            }
            ExpressionKind::Math { function, arguments } => self.math(*function, arguments)?,
            ExpressionKind::Select { condition, accept, reject } => {
                let (accept, reject) = (self.of(*accept), self.of(*reject));
                let condition = self.of(*condition);
                let lanes = accept.lanes();
                if condition.scalar() != Some(Scalar::Bool) || (*condition != BOOL && condition.lanes() != lanes) {
                    return Err(format!("`select` takes a bool first, not {}", self.name(condition)));
                }
                if accept != reject {
                    return Err(format!("`select` chooses between {} and {}", self.name(accept), self.name(reject)));
                }
                accept.clone()
            }
            ExpressionKind::Convert(value)
                if let (Type::Matrix(from), Type::Matrix(to)) = (self.of(*value), stated) =>
            {
                if from.role != to.role || from.shape() != to.shape() {
                    return Err(format!("{} does not become {}", self.name(self.of(*value)), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Convert(value) => {
                self.convert(self.of(*value), stated)?;
                stated.clone()
            }
            ExpressionKind::Bitcast(value) => {
                let from = self.of(*value);
                let bytes = |ty: &Type| ty.scalar().filter(|s| s.is_number()).and_then(Scalar::bytes);
                let alike = bytes(from).is_some() && bytes(from) == bytes(stated) && from.lanes() == stated.lanes();
                if !alike && !is_split(from, stated) {
                    return Err(format!("the bits of {} cannot be those of {}", self.name(from), self.name(stated)));
                }
                stated.clone()
            }
            ExpressionKind::Call { function, arguments } => return self.call(*function, arguments),
            ExpressionKind::TargetHas(_) => BOOL,
        }))
    }

    fn no_operation(&self, sign: &str, ty: &Type) -> String {
        let instead = match ty.scalar() {
            Some(Scalar::F64) if MathFunction::from_name(sign).is_some() => {
                ": not every target that has f64 has it; convert with `as f32`"
            }
            Some(scalar) if scalar.is_narrow() && scalar.is_integer() => ": convert it with `as u32` or `as i32`",
            Some(scalar) if scalar.bits() == 64 => ": it is there for 32 bits; take a word with `as u32`",
            _ => "",
        };
        format!("there is no `{sign}` for {}{instead}", self.name(ty))
    }

    fn compose(&self, stated: &Type, parts: &[Handle<Expression>]) -> Result<(), String> {
        let count = match stated {
            Type::Vector { lanes, .. } => u32::from(*lanes),
            Type::Array { length, .. } => length.literal().unwrap_or(0),
            Type::Struct(item) => self.module.structs[*item].fields.len() as u32,
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => {
                return Err(format!("{} is not made of parts", self.name(stated)));
            }
        };
        if count as usize != parts.len() {
            return Err(format!("{} has {count} parts; {} are given", self.name(stated), parts.len()));
        }
        for (index, value) in parts.iter().enumerate() {
            let expected = part(self.module, stated, index as u32)?;
            if expected != *self.of(*value) {
                return Err(format!(
                    "part {index} of {} is {}, not {}",
                    self.name(stated),
                    self.name(&expected),
                    self.name(self.of(*value))
                ));
            }
        }
        Ok(())
    }

    fn binary(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Type, String> {
        use BinaryOperator as B;
        let (a, b) = (self.of(left), self.of(right));
        let sign = operator.sign();
        let with = |scalar| match a {
            Type::Vector { lanes, .. } => Type::vector(*lanes, scalar),
            _ => Type::Scalar(scalar),
        };
        if matches!(operator, B::ShiftLeft | B::ShiftRight) {
            if !a.scalar().is_some_and(Scalar::is_integer) {
                return Err(self.no_operation(sign, a));
            }
            if *b != with(Scalar::U32) {
                return Err(format!("a shift is by {}, not by {}", self.name(&with(Scalar::U32)), self.name(b)));
            }
            return Ok(a.clone());
        }
        if a != b {
            return Err(format!("`{sign}` takes two values of one type, not {} and {}", self.name(a), self.name(b)));
        }
        let equality = matches!(operator, B::Equal | B::NotEqual);
        let Some(scalar) = a.scalar() else {
            return match a {
                Type::Enum(_) if equality => Ok(BOOL),
                _ => Err(self.no_operation(sign, a)),
            };
        };
        let bits = matches!(operator, B::And | B::Or | B::Xor);
        let allowed = match scalar {
            Scalar::Bool => equality || bits,
            scalar => scalar.is_integer() || (scalar.is_number() && !bits),
        };
        if !allowed {
            return Err(self.no_operation(sign, a));
        }
        Ok(if operator.is_comparison() { with(Scalar::Bool) } else { a.clone() })
    }

    fn convert(&self, from: &Type, to: &Type) -> Result<(), String> {
        let fail = || Err(format!("{} cannot be converted to {}", self.name(from), self.name(to)));
        if let Type::Enum(_) = from {
            return match to {
                Type::Scalar(scalar) if scalar.is_integer() => Ok(()),
                _ => fail(),
            };
        }
        let (Some(a), Some(b)) = (from.scalar(), to.scalar()) else { return fail() };
        if from.lanes() != to.lanes() {
            return fail();
        }
        let is_half = |scalar| matches!(scalar, Scalar::F16 | Scalar::BF16);
        let number = |scalar: Scalar| scalar.is_number() && !is_half(scalar);
        let half = |a, b| is_half(a) && (a == b || b == Scalar::F32);
        if half(a, b)
            || half(b, a)
            || (number(b) && (number(a) || a == Scalar::Bool))
            || (a, b) == (Scalar::Bool, Scalar::Bool)
        {
            Ok(())
        } else {
            fail()
        }
    }

    fn math(&self, function: MathFunction, arguments: &[Handle<Expression>]) -> Result<Type, String> {
        let called = function.name();
        if arguments.len() != function.arguments() {
            return Err(format!("`{called}` takes {} values; {} are given", function.arguments(), arguments.len()));
        }
        let ty = self.of(arguments[0]);
        if !function.takes(ty) {
            return Err(self.no_operation(called, ty));
        }
        for (other, operand) in arguments[1..].iter().zip(function.operands()) {
            let (wanted, given) = (operand.of(ty), self.of(*other));
            if *given == wanted {
                continue;
            }
            return Err(if *operand == OperandType::Same {
                format!("`{called}` takes values of one type, not {} and {}", self.name(ty), self.name(given))
            } else {
                format!("`{called}` takes {} there, not {}", self.name(&wanted), self.name(given))
            });
        }
        Ok(function.gives().of(ty))
    }

    fn call(&self, function: Handle<Function>, arguments: &[CallArgument]) -> Result<Option<Type>, String> {
        let callee = &self.module.functions[function];
        if callee.arguments.len() != arguments.len() {
            return Err(format!(
                "`{}` takes {} arguments; {} are given",
                callee.name,
                callee.arguments.len(),
                arguments.len()
            ));
        }
        for (expected, given) in callee.arguments.iter().zip(arguments) {
            let ty = match given {
                CallArgument::Value(value) if !expected.by_reference => self.of(*value),
                CallArgument::Reference(Root::Local(local)) if expected.by_reference => {
                    &self.module.types[self.function.locals[*local].ty]
                }
                CallArgument::Reference(Root::Argument(argument)) if expected.by_reference => {
                    &self.module.types[self.function.arguments[*argument as usize].ty]
                }
                _ => {
                    let how = if expected.by_reference { "`&mut`" } else { "value" };
                    return Err(format!("`{}` takes `{}` by {how}", callee.name, expected.name));
                }
            };
            if *ty != self.module.types[expected.ty] {
                return Err(format!(
                    "`{}` of `{}` is {}, not {}",
                    expected.name,
                    callee.name,
                    self.name(&self.module.types[expected.ty]),
                    self.name(ty)
                ));
            }
        }
        Ok(callee.result.map(|ty| self.module.types[ty].clone()))
    }
}

/// Whether a bitcast takes a scalar of 64 bits apart, into its two words, the low one first.
pub fn is_split(from: &Type, to: &Type) -> bool {
    matches!(from, Type::Scalar(scalar) if scalar.is_wide()) && *to == Type::vector(2, Scalar::U32)
}

/// Whether scalars of 64 bits of which something holds are taken apart anywhere.
pub fn splits(module: &Module, holds: impl Fn(Scalar) -> bool) -> bool {
    functions(module).any(|function| {
        function.expressions.iter().any(|(_, expression)| match &expression.kind {
            ExpressionKind::Bitcast(value) => {
                let from = &module.types[function.expressions[*value].ty];
                is_split(from, &module.types[expression.ty]) && from.scalar().is_some_and(&holds)
            }
            _ => false,
        })
    })
}
