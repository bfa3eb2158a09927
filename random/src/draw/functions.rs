//! Calls of the functions of the mathematical library that somebody wished for, of arguments for which the language says what they give.

use rand::Rng;
use trefoil_codegen::ir::{BinaryOperator as B, Builtin, MathFunction as M, OperandType, Type};

use super::Draw;
use super::bits::sensible;
use super::float::{apart, clamped, constant, math};
use crate::combination::lanes_of;
use crate::syntax::{Block, Expr, Kind, Scalar, Step, Ty};

/// The type of an argument, or of the result, by that of the first argument.
fn operand(operand: OperandType, first: &Ty) -> Ty {
    let first = match first {
        Ty::Vector(lanes, scalar) => Type::vector(*lanes, *scalar),
        other => Type::Scalar(other.scalar().unwrap_or(Scalar::U32)),
    };
    let ty = operand.of(&first);
    Ty::lanes_of(ty.lanes().unwrap_or(1), ty.scalar().unwrap_or(Scalar::U32))
}

impl Draw {
    /// A call of a function whose first argument has a type, or lanes of it.
    pub(super) fn wished_function(&mut self, function: M, scalar: Scalar) -> Option<Expr> {
        let mut lanes = lanes_of(function, scalar);
        if function.is_lanewise() {
            let scalars_too = matches!(operand(function.gives(), &Ty::Scalar(scalar)), Ty::Scalar(Scalar::Bool));
            if scalars_too || self.percent(75) {
                lanes.retain(|lanes| *lanes == 1);
            }
        }
        if lanes.is_empty() {
            return None;
        }
        let first = Ty::lanes_of(self.pick(&lanes), scalar);
        let result = operand(function.gives(), &first);
        if scalar.is_float() {
            let arguments = match function {
                M::Pack4x8Snorm | M::Pack4x8Unorm | M::Pack2x16Snorm | M::Pack2x16Unorm | M::Pack2x16Float => {
                    return Some(self.packed_by(function, 1));
                }
                M::RemEuclid => self.rest(&first).to_vec(),
                _ => self.of_floats(function, &first),
            };
            let value = Expr::new(result, Kind::Math(function, arguments));
            return Some(if matches!(function, M::MulAdd | M::Dot | M::Cross | M::Reflect) {
                apart(value)
            } else {
                value
            });
        }
        let mut arguments = vec![self.expr(&first, 1, true)];
        for (position, one) in function.operands().iter().enumerate() {
            let value = self.expr(&operand(*one, &first), 1, true);
            let divides = function == M::RemEuclid && position == 0;
            arguments.push(if divides { sensible(B::Remainder, scalar, value) } else { value });
        }
        if function == M::Unpack2x16Float {
            // Two halves between 1 and 2.
            let digits = Expr::binary(B::And, arguments.remove(0), Expr::u32(0x03ff_03ff));
            arguments.push(Expr::binary(B::Or, digits, Expr::u32(0x3c00_3c00)));
        }
        Some(Expr::new(result, Kind::Math(function, arguments)))
    }

    /// Arguments for which a function of floats has a stated accuracy.
    fn of_floats(&mut self, function: M, first: &Ty) -> Vec<Expr> {
        let value = self.expr(first, 1, false);
        let above = |value: Expr, least: f64| {
            let ty = value.ty.clone();
            Expr::binary(B::Add, math(M::Abs, vec![clamped(value, 16.0)]), constant(&ty, least))
        };
        match function {
            M::Exp | M::Exp2 | M::ExpM1 | M::Sinh | M::Cosh => vec![clamped(value, 4.0)],
            M::Ln | M::Log2 | M::Log10 | M::Ln1p | M::Sqrt | M::InverseSqrt => vec![above(value, 0.25)],
            M::Acosh => vec![above(value, 1.25)],
            M::Asin | M::Acos | M::Atanh => vec![clamped(value, 0.75)],
            M::Sin | M::Cos => vec![clamped(value, 3.0)],
            M::Tan => vec![clamped(value, 1.25)],
            M::Asinh | M::Atan | M::Erf | M::Tanh | M::Cbrt => vec![clamped(value, 8.0)],
            M::Powf => {
                let power = self.expr(first, 1, false);
                vec![above(value, 0.25), clamped(power, 3.0)]
            }
            M::Atan2 => {
                let right = self.expr(first, 1, false);
                vec![clamped(value, 16.0), above(right, 0.25)]
            }
            M::Hypot => {
                let other = self.expr(first, 1, false);
                vec![clamped(value, 64.0), above(other, 0.25)]
            }
            M::Smoothstep => vec![constant(first, -2.0), constant(first, 3.0), clamped(value, 16.0)],
            M::Normalize | M::Length => vec![above(value, 0.5)],
            M::Distance => vec![above(value, 0.5), constant(first, -0.5)],
            M::Mix | M::MulAdd => {
                let (second, third) = (self.expr(first, 1, false), self.expr(first, 1, false));
                vec![clamped(value, 16.0), clamped(second, 4.0), clamped(third, 2.0)]
            }
            M::Clamp => {
                let bound = self.rng.random_range(1..=32);
                vec![value, constant(first, f64::from(-bound)), constant(first, bound.into())]
            }
            _ => {
                let mut all = vec![clamped(value, 16.0)];
                for _ in function.operands() {
                    let other = self.expr(first, 1, false);
                    all.push(clamped(other, 4.0));
                }
                all
            }
        }
    }

    /// A quotient whose divisor is not near 0.
    pub(super) fn quotient(&mut self, left: Expr, right: Expr) -> Expr {
        let ty = right.ty.clone();
        let divisor = Expr::binary(B::Add, math(M::Abs, vec![clamped(right, 16.0)]), constant(&ty, 0.75));
        Expr::binary(B::Divide, left, divisor)
    }

    /// A number that is known exactly, and another of which it is no multiple.
    pub(super) fn rest(&mut self, ty: &Ty) -> [Expr; 2] {
        let left = clamped(self.expr(ty, 1, true), 15.0);
        let whole = math(M::Floor, vec![left]);
        let divisor = self.pick(&[3.0, 5.0, 6.0, 7.0]);
        [Expr::binary(B::Add, whole, constant(ty, 0.25)), constant(ty, divisor)]
    }

    /// Where an invocation is.
    pub(super) fn builtin(&mut self, builtin: Builtin, body: &mut Block) {
        let kind = match builtin {
            Builtin::GlobalIndex => Kind::GlobalIndex,
            Builtin::LocalIndex => Kind::LocalIndex,
            Builtin::GroupIndex => Kind::GroupIndex,
            Builtin::GroupCount => Kind::GroupCount,
            Builtin::SubgroupLane => Kind::SubgroupLane,
            Builtin::SubgroupSize => Kind::SubgroupSize,
            Builtin::SubgroupIndex => Kind::SubgroupIndex,
            axes => {
                let all = Expr::new(Ty::Vector(3, Scalar::Index), Kind::Axes(axes));
                let axis = self.below(3);
                self.kept(all.part(Step::Member(axis), Ty::INDEX), body);
                return;
            }
        };
        self.kept(Expr::new(Ty::INDEX, kind), body);
    }
}
