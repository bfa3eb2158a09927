//! Expressions of floats: those that are known exactly whatever a device rounds, and others, whose size is kept moderate.

use rand::Rng;
use trefoil_codegen::ir::{BinaryOperator as B, MathFunction as M, Scalar};

use super::Draw;
use crate::syntax::{Expr, Kind, Ty};

/// A constant of a float type, in every lane.
pub(super) fn constant(ty: &Ty, value: f64) -> Expr {
    let scalar = ty.scalar().unwrap_or(Scalar::F32);
    let one = Expr::literal(scalar, crate::value::bits_of(scalar, value));
    if ty.lanes() == 1 { one } else { Expr::new(ty.clone(), Kind::Splat(Box::new(one))) }
}

pub(super) fn math(function: M, arguments: Vec<Expr>) -> Expr {
    Expr::new(arguments[0].ty.clone(), Kind::Math(function, arguments))
}

/// Within a bound, if it is made of floats.
pub(super) fn clamped(value: Expr, bound: f64) -> Expr {
    let (low, high) = (constant(&value.ty, -bound), constant(&value.ty, bound));
    math(M::Clamp, vec![value, low, high])
}

/// A sum that is no part of another one: drivers put constants of nested sums together, whose rounding has no bound in those of the sums as they are written.
pub(super) fn apart(sum: Expr) -> Expr {
    clamped(sum, 4096.0)
}

impl Draw {
    /// A float scalar or vector.
    pub(super) fn float(&mut self, ty: &Ty, depth: u32, exact: bool) -> Expr {
        let (scalar, inner) = (ty.scalar().unwrap_or(Scalar::F32), depth - 1);
        let single = scalar == Scalar::F32;
        match self.below(if exact { 10 } else { 24 }) {
            0 => Expr::new(ty.clone(), Kind::Negate(Box::new(self.expr(ty, inner, exact)))),
            1 => {
                let function = self.pick(&[M::Abs, M::Floor, M::Ceil, M::Trunc, M::RoundTiesEven, M::Abs]);
                math(function, vec![self.expr(ty, inner, exact)])
            }
            2 | 3 => {
                let function = self.pick(&[M::Min, M::Max]);
                math(function, vec![self.expr(ty, inner, exact), self.expr(ty, inner, exact)])
            }
            4 => {
                let bound = self.rng.random_range(1..=32);
                clamped(self.expr(ty, inner, exact), bound.into())
            }
            5 if single => {
                let function = self.pick(&[M::Round, M::Fract, M::Signum]);
                let value = self.expr(ty, inner, exact);
                // The sign of a zero may be either.
                let function = if exact && function == M::Signum { M::Round } else { function };
                math(function, vec![value])
            }
            6 if single && ty.lanes() == 1 => {
                let from = self.pick(&[Scalar::I32, Scalar::U32, Scalar::Index]);
                let value = self.expr(&Ty::Scalar(from), inner, exact);
                if self.percent(40) {
                    // Any number of 32 bits, rounded once, and then 2^28 times as small.
                    return Expr::binary(B::Multiply, value.convert(scalar), Expr::f32(1.0 / 268_435_456.0));
                }
                self.few(value, 1000).convert(scalar)
            }
            6 if scalar == Scalar::F64 && ty.lanes() == 1 => {
                let from = self.pick(&[Scalar::I32, Scalar::U32, Scalar::F32]);
                self.expr(&Ty::Scalar(from), inner, exact).convert(scalar)
            }
            7 if ty.lanes() == 1 => self.float_of_other(scalar, inner, exact),
            8 if single && ty.lanes() == 1 => {
                // A pattern of bits that is a float between 1 and 2.
                let bits = self.expr(&Ty::U32, inner, exact);
                let digits = Expr::binary(B::And, bits, Expr::u32(0x007f_ffff));
                let one = Expr::binary(B::Or, digits, Expr::u32(0x3f80_0000));
                Expr::new(ty.clone(), Kind::Bitcast(Box::new(one)))
            }
            9 | 10 => self.choice(ty, inner, exact),
            11..=13 => {
                let operator = self.pick(&[B::Add, B::Subtract]);
                apart(Expr::binary(operator, self.expr(ty, inner, false), self.expr(ty, inner, false)))
            }
            14..=16 => {
                let left = self.expr(ty, inner, false);
                let right = self.expr(ty, inner.min(1), false);
                Expr::binary(B::Multiply, left, self.tame(right))
            }
            17 => {
                let left = self.expr(ty, inner, false);
                let right = self.expr(ty, inner.min(1), false);
                let size = math(M::Abs, vec![right]);
                let divisor = Expr::binary(B::Add, size, constant(ty, 0.75));
                Expr::binary(B::Divide, left, divisor)
            }
            18 => {
                let size = math(M::Abs, vec![self.expr(ty, inner, false)]);
                let positive = Expr::binary(B::Add, size, constant(ty, 0.25));
                let function = if single && self.percent(30) { M::InverseSqrt } else { M::Sqrt };
                math(function, vec![positive])
            }
            19 => {
                let (a, b) = (self.expr(ty, inner, false), self.expr(ty, inner.min(1), false));
                let b = self.tame(b);
                apart(math(M::MulAdd, vec![a, b, self.expr(ty, inner, false)]))
            }
            20 if single => {
                let function = self.pick(&[M::Mix, M::Copysign, M::Step]);
                let mut all = vec![self.expr(ty, inner, false), self.expr(ty, inner, false)];
                if function == M::Mix {
                    let weight = self.expr(ty, inner.min(1), false);
                    all.push(clamped(weight, 2.0));
                }
                math(function, all)
            }
            21 if single && ty.lanes() == 1 => {
                let vector = Ty::Vector(self.pick(&[2, 3, 4]), scalar);
                let a = self.expr(&vector, inner.min(2), false);
                if self.percent(40) {
                    let positive = Expr::binary(B::Add, math(M::Abs, vec![a]), constant(&vector, 0.5));
                    return Expr::new(ty.clone(), Kind::Math(M::Length, vec![positive]));
                }
                let b = self.expr(&vector, inner.min(2), false);
                apart(Expr::new(ty.clone(), Kind::Math(M::Dot, vec![a, b])))
            }
            21 if single && ty.lanes() == 3 => {
                let (a, b) = (self.expr(ty, inner, false), self.expr(ty, inner, false));
                apart(math(M::Cross, vec![a, b]))
            }
            22 if single && ty.lanes() != 3 && ty.lanes() != 1 => self.unpacked(ty.lanes(), inner),
            23 if single && ty.lanes() == 1 && self.percent(50) => {
                let left = self.expr(ty, inner.min(1), true);
                let divisor = self.rng.random_range(3..=9);
                Expr::binary(B::Remainder, left, Expr::f32(divisor as f32 + 0.3))
            }
            _ => self.leaf(ty, exact),
        }
    }

    /// A float of another type, converted.
    fn float_of_other(&mut self, scalar: Scalar, depth: u32, exact: bool) -> Expr {
        match scalar {
            Scalar::F32 => {
                let mut others = self.scalars.clone();
                others.retain(|other| other.is_float() && *other != Scalar::F32);
                if others.is_empty() {
                    return self.leaf(&Ty::F32, exact);
                }
                let other = self.pick(&others);
                self.expr(&Ty::Scalar(other), depth, exact).convert(Scalar::F32)
            }
            _ => {
                let value = self.expr(&Ty::F32, depth, exact);
                clamped(value, 100.0).convert(scalar)
            }
        }
    }

    /// Of moderate size, so that products stay so.
    fn tame(&mut self, value: Expr) -> Expr {
        if self.percent(50) { clamped(value, 4.0) } else { value }
    }

    /// Floats out of a word, which are multiples of something that is no power of two.
    fn unpacked(&mut self, lanes: u8, depth: u32) -> Expr {
        let word = self.expr(&Ty::U32, depth, false);
        let (function, word) = match (lanes, self.below(3)) {
            (4, 0) => (M::Unpack4x8Unorm, word),
            (4, _) => (M::Unpack4x8Snorm, word),
            (_, 0) => (M::Unpack2x16Snorm, word),
            (_, 1) => (M::Unpack2x16Unorm, word),
            // Two halves between 1 and 2.
            _ => {
                let digits = Expr::binary(B::And, word, Expr::u32(0x03ff_03ff));
                (M::Unpack2x16Float, Expr::binary(B::Or, digits, Expr::u32(0x3c00_3c00)))
            }
        };
        Expr::new(Ty::Vector(lanes, Scalar::F32), Kind::Math(function, vec![word]))
    }
}
