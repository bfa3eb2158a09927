//! Types while they are being found out: unification variables for literals without suffix and for what is not known yet.

use crate::ir::{Enum, Handle, MatrixRole, Scalar, Size, SizeOperator, Struct};

/// A type, possibly not known yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ty {
    /// The type of something wrong, which was reported: it goes with everything, so that nothing more is said.
    Error,
    /// `()`
    Unit,
    /// The type of `return`, `break` and `continue`.
    Never,
    /// A variable of the table.
    Var(u32),
    /// A scalar or a type parameter of the kernel.
    Scalar(Scalar),
    /// A vector; the type inside is a scalar or a variable.
    Vector(u8, Box<Self>),
    /// An array.
    Array(Box<Self>, Length),
    /// A struct.
    Struct(Handle<Struct>),
    /// An enum.
    Enum(Handle<Enum>),
    /// A matrix: what it holds, its rows and its columns.
    Matrix(MatrixRole, Box<Self>, Box<[Length; 2]>),
}

impl Ty {
    pub(super) const BOOL: Self = Self::Scalar(Scalar::Bool);
    pub(super) const U32: Self = Self::Scalar(Scalar::U32);
    pub(super) const F32: Self = Self::Scalar(Scalar::F32);
    pub(super) const INDEX: Self = Self::Scalar(Scalar::Index);

    pub(super) fn vector(lanes: u8, scalar: Self) -> Self {
        Self::Vector(lanes, Box::new(scalar))
    }

    /// A vector with other scalars but as many lanes, or a scalar if this is none.
    pub(super) fn with_scalar(&self, scalar: Self) -> Self {
        match self {
            Self::Vector(lanes, _) => Self::vector(*lanes, scalar),
            _ => scalar,
        }
    }

    /// The type inside of a vector, itself otherwise.
    pub(super) fn scalar(&self) -> &Self {
        match self {
            Self::Vector(_, scalar) => scalar,
            other => other,
        }
    }

    /// What arrays and vectors hold in the end.
    pub(super) fn innermost(&self) -> &Self {
        match self {
            Self::Vector(_, inner) | Self::Array(inner, _) => inner.innermost(),
            other => other,
        }
    }
}

/// The length of an array, or the value of a const parameter of a function that is called.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Length {
    /// Known when an instance is made.
    Known(Size),
    /// A variable of the table.
    Var(u32),
}

/// What a variable may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarKind {
    /// Anything.
    Any,
    /// An integer.
    Integer,
    /// `f32` or `f64`.
    Float,
}

#[derive(Clone, Debug)]
enum State {
    Open(VarKind),
    Bound(Ty),
}

/// The variables of one body.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    types: Vec<State>,
    lengths: Vec<Option<Length>>,
}

impl Table {
    pub(super) fn fresh(&mut self, kind: VarKind) -> Ty {
        self.types.push(State::Open(kind));
        Ty::Var(self.types.len() as u32 - 1)
    }

    pub(super) fn fresh_length(&mut self) -> Length {
        self.lengths.push(None);
        Length::Var(self.lengths.len() as u32 - 1)
    }

    /// The type with bound variables replaced at its outside.
    pub(super) fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty.clone();
        while let Ty::Var(var) = ty {
            match self.types.get(var as usize) {
                Some(State::Bound(bound)) => ty = bound.clone(),
                _ => break,
            }
        }
        if let Ty::Vector(lanes, scalar) = &ty {
            return Ty::vector(*lanes, self.shallow(scalar));
        }
        ty
    }

    /// The kind of an open variable.
    pub(super) fn kind(&self, ty: &Ty) -> Option<VarKind> {
        match self.shallow(ty) {
            Ty::Var(var) => match self.types.get(var as usize) {
                Some(State::Open(kind)) => Some(*kind),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type with all variables replaced; open ones become `i32` and `f32`, which is written out for rustc. `None` if it would ask for
    /// a type.
    pub(super) fn full(&self, ty: &Ty) -> Option<Ty> {
        Some(match self.shallow(ty) {
            Ty::Var(_) => match self.kind(ty)? {
                VarKind::Any => return None,
                VarKind::Integer => Ty::Scalar(Scalar::I32),
                VarKind::Float => Ty::F32,
            },
            Ty::Vector(lanes, scalar) => Ty::vector(lanes, self.full(&scalar)?),
            Ty::Array(element, length) => {
                Ty::Array(Box::new(self.full(&element)?), Length::Known(self.length(&length)?))
            }
            Ty::Matrix(role, scalar, sides) => {
                let sides = [self.length(&sides[0])?, self.length(&sides[1])?].map(Length::Known);
                Ty::Matrix(role, Box::new(self.full(&scalar)?), Box::new(sides))
            }
            other => other,
        })
    }

    pub(super) fn length(&self, length: &Length) -> Option<Size> {
        match self.shallow_length(length) {
            Length::Known(size) => Some(size),
            Length::Var(_) => None,
        }
    }

    fn shallow_length(&self, length: &Length) -> Length {
        let mut length = length.clone();
        while let Length::Var(var) = length {
            match self.lengths.get(var as usize) {
                Some(Some(bound)) => length = bound.clone(),
                _ => break,
            }
        }
        length
    }

    /// Makes two types equal. `false` if they cannot be.
    pub(super) fn unify(&mut self, left: &Ty, right: &Ty) -> bool {
        let (left, right) = (self.shallow(left), self.shallow(right));
        match (&left, &right) {
            (Ty::Error | Ty::Never, _) | (_, Ty::Error | Ty::Never) => true,
            (Ty::Var(a), Ty::Var(b)) if a == b => true,
            (Ty::Var(a), Ty::Var(b)) => {
                match (self.kind(&left), self.kind(&right)) {
                    (Some(VarKind::Any), _) => self.bind(*a, right),
                    (_, Some(VarKind::Any)) => self.bind(*b, left),
                    (known, other) if known == other => self.bind(*a, right),
                    _ => return false,
                }
                true
            }
            (Ty::Var(a), other) | (other, Ty::Var(a)) => {
                let fits = match self.kind(&Ty::Var(*a)) {
                    Some(VarKind::Any) => !self.contains(other, *a),
                    Some(VarKind::Integer) => {
                        matches!(other, Ty::Scalar(scalar) if scalar.is_integer())
                    }
                    Some(VarKind::Float) => matches!(other, Ty::Scalar(Scalar::F32 | Scalar::F64)),
                    None => false,
                };
                if fits {
                    self.bind(*a, other.clone());
                }
                fits
            }
            (Ty::Vector(a, x), Ty::Vector(b, y)) => a == b && self.unify(x, y),
            (Ty::Array(x, a), Ty::Array(y, b)) => self.unify_length(a, b) && self.unify(x, y),
            (Ty::Matrix(a, x, i), Ty::Matrix(b, y, j)) => {
                a == b && self.unify(x, y) && self.unify_length(&i[0], &j[0]) && self.unify_length(&i[1], &j[1])
            }
            (a, b) => a == b,
        }
    }

    pub(super) fn unify_length(&mut self, left: &Length, right: &Length) -> bool {
        let (left, right) = (self.shallow_length(left), self.shallow_length(right));
        match (&left, &right) {
            (Length::Var(a), Length::Var(b)) if a == b => true,
            (Length::Var(var), other) | (other, Length::Var(var)) => {
                if let Some(slot) = self.lengths.get_mut(*var as usize) {
                    *slot = Some(other.clone());
                }
                true
            }
            (Length::Known(a), Length::Known(b)) => a == b,
        }
    }

    /// Makes what could be anything in a type something wrong, as what it was to hold is: that it is not known would be no news.
    pub(super) fn give_up(&mut self, ty: &Ty) {
        match self.shallow(ty) {
            Ty::Var(var) if self.kind(&Ty::Var(var)) == Some(VarKind::Any) => self.bind(var, Ty::Error),
            Ty::Vector(_, inner) | Ty::Array(inner, _) | Ty::Matrix(_, inner, _) => self.give_up(&inner),
            _ => {}
        }
    }

    /// Makes an open variable something wrong, which was reported.
    pub(super) fn refuse(&mut self, ty: &Ty) {
        if let Ty::Var(var) = self.shallow(ty) {
            self.bind(var, Ty::Error);
        }
    }

    fn bind(&mut self, var: u32, ty: Ty) {
        if let Some(slot) = self.types.get_mut(var as usize) {
            *slot = State::Bound(ty);
        }
    }

    fn contains(&self, ty: &Ty, var: u32) -> bool {
        match self.shallow(ty) {
            Ty::Var(other) => other == var,
            Ty::Vector(_, inner) | Ty::Array(inner, _) | Ty::Matrix(_, inner, ..) => self.contains(&inner, var),
            _ => false,
        }
    }
}

/// A computation on sizes, done if both are numbers. `None` if Rust's `usize` cannot hold the result.
pub(super) fn size_binary(operator: SizeOperator, left: Size, right: Size) -> Option<Size> {
    match (left.literal(), right.literal()) {
        (Some(a), Some(b)) => match operator {
            SizeOperator::Add => a.checked_add(b),
            SizeOperator::Subtract => a.checked_sub(b),
            SizeOperator::Multiply => a.checked_mul(b),
            SizeOperator::Divide => a.checked_div(b),
            SizeOperator::Remainder => a.checked_rem(b),
        }
        .map(Size::Literal),
        _ => Some(Size::Binary(operator, Box::new(left), Box::new(right))),
    }
}
