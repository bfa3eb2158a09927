//! Specialisation constants: how large they may make workgroup memory, and giving them their values.

use super::expression::{Expression, ExpressionKind, Literal};
use super::module::{Function, Module, Param};
use super::types::{Scalar, Size, SizeOperator, Type};

/// The smallest and the largest value of a size without generics, over all values of the constants in it. `None` if a value of them makes it no number
/// of 32 bits.
pub fn largest(size: &Size, params: &[Param]) -> Option<(u32, u32)> {
    match size {
        Size::Literal(value) => Some((*value, *value)),
        Size::Generic(_) => None,
        Size::Param(index) => {
            let range = params.get(*index as usize)?.specialise?;
            Some((u32::try_from(range.low).ok()?, u32::try_from(range.high).ok()?))
        }
        Size::Binary(operator, left, right) => {
            let ((a, b), (c, d)) = (largest(left, params)?, largest(right, params)?);
            Some(match operator {
                SizeOperator::Add => (a.checked_add(c)?, b.checked_add(d)?),
                SizeOperator::Subtract => (a.checked_sub(d)?, b.checked_sub(c)?),
                SizeOperator::Multiply => (a.checked_mul(c)?, b.checked_mul(d)?),
                SizeOperator::Divide => (a.checked_div(d)?, b.checked_div(c)?),
                SizeOperator::Remainder => (0, b.min(d.checked_sub(1).filter(|_| c > 0)?)),
            })
        }
    }
}

/// Gives the specialisation constants of an instance their values, in order, so that nothing of them is left but the fields of the block: for the
/// evaluator, which is made for the values of a pipeline.
pub fn specialise(module: &mut Module, values: &[i64]) {
    let mut literals: Vec<(u32, Literal)> = Vec::new();
    for ((index, param, range), position) in module.constants().zip(0..) {
        let value = values.get(position).copied().unwrap_or(range.default);
        literals.push((index, literal(&module.types[param.ty], value)));
    }
    let value_of = |param: u32| literals.iter().find(|(index, _)| *index == param).map(|(_, literal)| *literal);
    let write = |function: &mut Function| {
        for (_, Expression { kind, .. }) in function.expressions.iter_mut() {
            if let ExpressionKind::Param(param) = kind
                && let Some(value) = value_of(*param)
            {
                *kind = ExpressionKind::Literal(value);
            }
        }
    };
    for (_, function) in module.functions.iter_mut() {
        write(function);
    }
    write(&mut module.entry);
    for (_, variable) in module.workgroup.iter_mut() {
        if let Some(length) = variable.exact.take().and_then(|size| number(&size, &literals)) {
            variable.length = Size::Literal(length);
        }
    }
}

fn literal(ty: &Type, value: i64) -> Literal {
    match ty {
        Type::Scalar(Scalar::Bool) => Literal::Bool(value != 0),
        Type::Scalar(Scalar::I32) => Literal::I32(value as i32),
        Type::Scalar(Scalar::Index) => Literal::Index(value as u32),
        _ => Literal::U32(value as u32),
    }
}

fn number(size: &Size, values: &[(u32, Literal)]) -> Option<u32> {
    match size {
        Size::Literal(value) => Some(*value),
        Size::Generic(_) => None,
        Size::Param(index) => {
            let (_, literal) = values.iter().find(|(known, _)| known == index)?;
            u32::try_from(literal.as_integer()?).ok()
        }
        Size::Binary(operator, left, right) => {
            let (left, right) = (number(left, values)?, number(right, values)?);
            match operator {
                SizeOperator::Add => left.checked_add(right),
                SizeOperator::Subtract => left.checked_sub(right),
                SizeOperator::Multiply => left.checked_mul(right),
                SizeOperator::Divide => left.checked_div(right),
                SizeOperator::Remainder => left.checked_rem(right),
            }
        }
    }
}
