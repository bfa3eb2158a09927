//! Numbers: literals, and what buffers and parameters hold. Floats are of moderate size, and often have few digits.

use rand::Rng;
use trefoil_codegen::ir::Scalar;

use super::Draw;
use crate::interval::nearest;
use crate::syntax::{Expr, Kind, Ty};
use crate::value::{Value, bits_of, cut};

impl Draw {
    /// A float that is not zero.
    fn float_number(&mut self, scalar: Scalar) -> f64 {
        let value = match self.below(4) {
            0 => f64::from(self.rng.random_range(1..=16)),
            1 => f64::from(self.rng.random_range(1..=64)) / 8.0,
            _ => self.rng.random_range(0.01..8.0),
        };
        nearest(scalar, if self.percent(50) { -value } else { value })
    }

    /// A scalar's bits, for an integer often at an edge of its type.
    pub(super) fn bits(&mut self, scalar: Scalar) -> u64 {
        if scalar.is_float() {
            let value = self.float_number(scalar);
            return bits_of(scalar, value);
        }
        if scalar == Scalar::Bool {
            return self.rng.random_range(0..2);
        }
        let [least, most] = scalar.limits();
        let value = match self.below(8) {
            0 => self.pick(&[least, most, least + 1, most - 1, 0]),
            1 => i128::from(self.rng.random::<u64>()),
            2 => 1i128 << self.below(scalar.bits() as usize),
            3 if least < 0 => -i128::from(self.rng.random_range(1..=100u32)),
            _ => i128::from(self.rng.random_range(0..=100u32)),
        };
        cut(scalar, value as u64)
    }

    /// A value for memory.
    pub(super) fn datum(&mut self, ty: &Ty) -> Value {
        match ty {
            Ty::Scalar(scalar) => {
                let bits = self.bits(*scalar);
                Value::of_bits(*scalar, bits)
            }
            Ty::Vector(lanes, scalar) => Value::Parts((0..*lanes).map(|_| self.datum(&Ty::Scalar(*scalar))).collect()),
            Ty::Array(element, length) => Value::Parts((0..*length).map(|_| self.datum(element)).collect()),
            Ty::Struct(index) => {
                let fields = self.program.structs[*index].clone();
                Value::Parts(fields.iter().map(|field| self.datum(field)).collect())
            }
        }
    }

    /// A constant.
    pub(super) fn literal(&mut self, ty: &Ty) -> Expr {
        let kind = match ty {
            Ty::Scalar(Scalar::Index) => Kind::Literal(self.rng.random_range(0..20)),
            Ty::Scalar(scalar) => Kind::Literal(self.bits(*scalar)),
            Ty::Vector(lanes, scalar) => {
                let part = Ty::Scalar(*scalar);
                if self.percent(30) {
                    Kind::Splat(Box::new(self.literal(&part)))
                } else {
                    Kind::Compose((0..*lanes).map(|_| self.literal(&part)).collect())
                }
            }
            Ty::Array(element, length) => Kind::Compose((0..*length).map(|_| self.literal(element)).collect()),
            Ty::Struct(index) => {
                let fields = self.program.structs[*index].clone();
                Kind::Compose(fields.iter().map(|field| self.literal(field)).collect())
            }
        };
        Expr::new(ty.clone(), kind)
    }
}
