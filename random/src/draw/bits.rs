//! Expressions of integers and bools.

use rand::Rng;
use trefoil_codegen::ir::{BinaryOperator as B, LogicalOperator, MathFunction as M, Scalar};

use super::Draw;
use super::float::{clamped, constant, math};
use crate::syntax::{Expr, Kind, Memory, Ty};

/// The right side of an operation, where it is a number: the language refuses those that divide by zero, or shift by as many bits as there are.
pub(super) fn sensible(operator: B, scalar: Scalar, right: Expr) -> Expr {
    let bits = u64::from(scalar.bits());
    let kind = match (operator, right.kind) {
        (B::ShiftLeft | B::ShiftRight, Kind::Literal(number)) => Kind::Literal(number % bits),
        (B::Divide | B::Remainder, Kind::Literal(0)) => Kind::Literal(1),
        (_, Kind::Splat(value)) => Kind::Splat(Box::new(sensible(operator, scalar, *value))),
        (_, other) => other,
    };
    Expr { kind, ..right }
}

/// An operation of integers with a right side that is [`sensible`]; and a number of `usize` is shifted to the left within 32 bits, since the language refuses constants that leave them.
pub(super) fn operation(operator: B, scalar: Scalar, left: Expr, right: Expr) -> Expr {
    let mut right = sensible(operator, scalar, right);
    if scalar == Scalar::Index
        && operator == B::ShiftLeft
        && let (Kind::Literal(number), Kind::Literal(amount)) = (&left.kind, &mut right.kind)
    {
        *amount = (*amount).min((*number as u32).leading_zeros().into());
    }
    Expr::binary(operator, left, right)
}

impl Draw {
    /// At most so large: `value % count`, not negative.
    pub(super) fn few(&mut self, value: Expr, count: u32) -> Expr {
        let scalar = value.ty.scalar().unwrap_or(Scalar::U32);
        Expr::binary(B::Remainder, value, Expr::literal(scalar, count.into()))
    }

    /// An index into so many elements, now and then one past the end.
    pub(super) fn index_below(&mut self, length: u32) -> Expr {
        if self.percent(40) {
            return Expr::index(self.rng.random_range(0..length));
        }
        let word = if self.percent(30) {
            let index = self.expr(&Ty::INDEX, 1, true);
            let length = if self.percent(15) { length + 2 } else { length };
            return self.few(index, length);
        } else {
            self.expr(&Ty::U32, 1, true)
        };
        let length = if self.percent(15) { length + 2 } else { length };
        self.few(word, length).convert(Scalar::Index)
    }

    /// The same index, but that a number is within a workgroup array: the language refuses one past the end.
    pub(super) fn within(&self, memory: Memory, index: Expr) -> Expr {
        match (memory, &index.kind) {
            (Memory::Shared(position), Kind::Literal(number)) => {
                let length = u64::from(self.program.shared[position].length);
                Expr::index((number % length) as u32)
            }
            _ => index,
        }
    }

    /// An integer scalar or vector.
    pub(super) fn integer(&mut self, ty: &Ty, depth: u32) -> Expr {
        let (scalar, lanes, inner) = (ty.scalar().unwrap_or(Scalar::U32), ty.lanes(), depth - 1);
        let word = matches!(scalar, Scalar::I32 | Scalar::U32);
        match self.below(22) {
            0..=6 => {
                let operator = self.pick(&[
                    B::Add,
                    B::Subtract,
                    B::Multiply,
                    B::Add,
                    B::Multiply,
                    B::Divide,
                    B::Remainder,
                    B::And,
                    B::Or,
                    B::Xor,
                ]);
                let (left, right) = (self.integer_operand(ty, inner), self.integer_operand(ty, inner));
                operation(operator, scalar, left, right)
            }
            7 | 8 => {
                let operator = self.pick(&[B::ShiftLeft, B::ShiftRight]);
                let amount = Ty::lanes_of(lanes, Scalar::U32);
                let right = if self.percent(40) { self.literal(&amount) } else { self.expr(&amount, inner, true) };
                let left = self.expr(ty, inner, true);
                operation(operator, scalar, left, right)
            }
            9 => {
                let value = Box::new(self.expr(ty, inner, true));
                Expr::new(
                    ty.clone(),
                    if scalar.is_signed() && self.percent(60) { Kind::Negate(value) } else { Kind::Not(value) },
                )
            }
            10 => {
                let function = self.pick(&[M::Min, M::Max]);
                math(function, vec![self.expr(ty, inner, true), self.expr(ty, inner, true)])
            }
            11 => {
                let (value, low, high) =
                    (self.expr(ty, inner, true), self.expr(ty, inner.min(1), true), self.expr(ty, inner.min(1), true));
                math(M::Clamp, vec![value, low, high])
            }
            12 if scalar.is_signed() => {
                let function = self.pick(&[M::Abs, M::Signum]);
                math(function, vec![self.expr(ty, inner, true)])
            }
            12 | 13 if word => self.of_bits(ty, inner),
            13 if scalar == Scalar::Index => {
                let kind = self.pick(&[
                    Kind::GlobalIndex,
                    Kind::LocalIndex,
                    Kind::GroupIndex,
                    Kind::GroupCount,
                    Kind::LocalIndex,
                ]);
                // Functions know where they run, too.
                Expr::new(Ty::INDEX, kind)
            }
            14 | 15 if lanes == 1 => self.integer_of_other(scalar, inner),
            16 if scalar != Scalar::Index => self.bits_of_other(ty, inner),
            17 | 18 => self.choice(ty, inner, true),
            19 if scalar == Scalar::U32 && lanes == 1 => self.packed(inner),
            20 if word && lanes == 1 => {
                let function = if scalar == Scalar::I32 { M::Dot4I8 } else { M::Dot4U8 };
                let (a, b) = (self.expr(&Ty::U32, inner, true), self.expr(&Ty::U32, inner.min(1), true));
                let c = self.expr(ty, inner.min(1), true);
                Expr::new(ty.clone(), Kind::Math(function, vec![a, b, c]))
            }
            20 if word && lanes == 4 => {
                let function = if scalar == Scalar::I32 { M::Unpack4xI8 } else { M::Unpack4xU8 };
                let bits = self.expr(&Ty::U32, inner, true);
                Expr::new(ty.clone(), Kind::Math(function, vec![bits]))
            }
            21 if scalar == Scalar::Index && !self.slices.is_empty() => {
                let slices = self.slices.clone();
                Expr::new(Ty::INDEX, Kind::Length(self.pick(&slices)))
            }
            _ => self.leaf(ty, true),
        }
    }

    /// One that is a small constant often enough for divisions and masks to do something.
    fn integer_operand(&mut self, ty: &Ty, depth: u32) -> Expr {
        if self.percent(20) { self.literal(ty) } else { self.expr(ty, depth, true) }
    }

    /// Functions of the bits of words.
    fn of_bits(&mut self, ty: &Ty, depth: u32) -> Expr {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let value = self.expr(ty, depth, true);
        match self.below(8) {
            0 | 1 if scalar == Scalar::U32 => {
                let function = self.pick(&[M::CountOnes, M::LeadingZeros, M::TrailingZeros]);
                let of = Ty::lanes_of(ty.lanes(), self.pick(&[Scalar::U32, Scalar::I32]));
                let value = self.expr(&of, depth, true);
                Expr::new(ty.clone(), Kind::Math(function, vec![value]))
            }
            2 => math(M::ReverseBits, vec![value]),
            3 => {
                let function = self.pick(&[M::RotateLeft, M::RotateRight]);
                let amount = self.expr(&Ty::U32, depth.min(1), true);
                math(function, vec![value, amount])
            }
            4 => {
                let (offset, count) = (self.count(), self.count());
                math(M::ExtractBits, vec![value, offset, count])
            }
            5 => {
                let (offset, count) = (self.count(), self.count());
                let new = self.expr(ty, depth, true);
                math(M::InsertBits, vec![value, new, offset, count])
            }
            6 => math(M::MulHigh, vec![value, self.expr(ty, depth, true)]),
            _ => math(M::RemEuclid, vec![value, self.integer_operand(ty, depth)]),
        }
    }

    /// A number of bits, sometimes more than there are.
    fn count(&mut self) -> Expr {
        match self.below(4) {
            0 => self.expr(&Ty::U32, 1, true),
            1 => Expr::u32(self.rng.random_range(0..=36)),
            _ => {
                let value = self.expr(&Ty::U32, 1, true);
                self.few(value, 33)
            }
        }
    }

    /// A number of another type, converted.
    fn integer_of_other(&mut self, scalar: Scalar, depth: u32) -> Expr {
        if self.percent(15) {
            return self.expr(&Ty::BOOL, depth, true).convert(scalar);
        }
        if self.percent(15) {
            return self.expr(&Ty::INDEX, depth, true).convert(scalar);
        }
        let other = self.scalar();
        match other {
            Scalar::F16 | Scalar::BF16 => {
                self.expr(&Ty::Scalar(other), depth, true).convert(Scalar::F32).convert(scalar)
            }
            _ => self.expr(&Ty::Scalar(other), depth, true).convert(scalar),
        }
    }

    /// The bits of another type of that size.
    fn bits_of_other(&mut self, ty: &Ty, depth: u32) -> Expr {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let mut others = self.scalars.clone();
        others.retain(|other| other.bits() == scalar.bits() && *other != scalar);
        if others.is_empty() {
            return self.leaf(ty, true);
        }
        let other = Ty::lanes_of(ty.lanes(), self.pick(&others));
        // Bits of floats that were computed are often those of a zero, which has two patterns.
        let value = if other.scalar().is_some_and(Scalar::is_float) {
            self.given(&other)
        } else {
            self.expr(&other, depth, true)
        };
        Expr::new(ty.clone(), Kind::Bitcast(Box::new(value)))
    }

    /// Floats as they were given, none of which is zero.
    pub(super) fn given(&mut self, ty: &Ty) -> Expr {
        let part = Ty::Scalar(ty.scalar().unwrap_or(Scalar::F32));
        if ty.lanes() > 1 {
            let parts = (0..ty.lanes()).map(|_| self.given(&part)).collect();
            return Expr::new(ty.clone(), Kind::Compose(parts));
        }
        let mut fitting = self.slices.clone();
        fitting.retain(|memory| matches!(memory, Memory::Buffer(_)) && *self.program.element(*memory) == part);
        match fitting.first() {
            Some(Memory::Buffer(index)) if self.percent(70) => {
                let length = self.program.buffers[*index].data.len() as u32;
                let own = self.expr(&Ty::INDEX, 1, true);
                Expr::element(Memory::Buffer(*index), self.few(own, length), part)
            }
            _ => self.literal(&part),
        }
    }

    /// Lanes in a word.
    fn packed(&mut self, depth: u32) -> Expr {
        let function = self.pick(&[
            M::Pack4x8Snorm,
            M::Pack4x8Unorm,
            M::Pack2x16Snorm,
            M::Pack2x16Unorm,
            M::Pack2x16Float,
            M::Pack4xI8,
            M::Pack4xU8,
        ]);
        self.packed_by(function, depth)
    }

    /// Lanes that a function puts into a word.
    pub(super) fn packed_by(&mut self, function: M, depth: u32) -> Expr {
        let vector = match function {
            M::Pack4xI8 => Ty::Vector(4, Scalar::I32),
            M::Pack4xU8 => Ty::Vector(4, Scalar::U32),
            M::Pack4x8Snorm | M::Pack4x8Unorm => Ty::Vector(4, Scalar::F32),
            _ => Ty::Vector(2, Scalar::F32),
        };
        let value = match function {
            M::Pack4xI8 | M::Pack4xU8 => self.expr(&vector, depth, true),
            M::Pack2x16Float => self.given(&vector),
            _ => {
                // Numbers of few digits, within -1 and 1 for the greater part.
                let value = self.leaf(&vector, true);
                let whole = math(M::Floor, vec![clamped(value, 40.0)]);
                Expr::binary(B::Multiply, whole, constant(&vector, 1.0 / 64.0))
            }
        };
        Expr::new(Ty::U32, Kind::Math(function, vec![value]))
    }

    /// A bool.
    pub(super) fn bool(&mut self, depth: u32) -> Expr {
        let inner = depth - 1;
        match self.below(12) {
            0..=5 => {
                let operator = self.pick(&[B::Equal, B::NotEqual, B::Less, B::LessEqual, B::Greater, B::GreaterEqual]);
                let scalar = if self.percent(10) { Scalar::Index } else { self.scalar() };
                let ty = Ty::Scalar(scalar);
                Expr::binary(operator, self.expr(&ty, inner, true), self.expr(&ty, inner, true))
            }
            6 | 7 => {
                let operator = self.pick(&[LogicalOperator::And, LogicalOperator::Or]);
                let (left, right) = (self.expr(&Ty::BOOL, inner, true), self.expr(&Ty::BOOL, inner, true));
                Expr::new(Ty::BOOL, Kind::Logical(operator, Box::new(left), Box::new(right)))
            }
            8 => {
                let operator = self.pick(&[B::And, B::Or, B::Xor, B::Equal, B::NotEqual]);
                Expr::binary(operator, self.expr(&Ty::BOOL, inner, true), self.expr(&Ty::BOOL, inner, true))
            }
            9 => Expr::new(Ty::BOOL, Kind::Not(Box::new(self.expr(&Ty::BOOL, inner, true)))),
            10 => self.choice(&Ty::BOOL, inner, true),
            _ => self.leaf(&Ty::BOOL, true),
        }
    }
}
