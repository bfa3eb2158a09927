//! Operators: on scalars, on vectors lane by lane, and between a vector and a scalar.

use quote::ToTokens;

use super::ends::Placed;
use super::infer::{Ty, VarKind};
use super::places::Operand;
use super::scope::Infer;
use super::session::Session;
use super::tree::{Kind, Node, Place, Update};
use crate::ir::{BinaryOperator, Bound, LogicalOperator, Scalar, UnaryOperator};

impl Infer<'_> {
    pub(super) fn unary(&mut self, e: &syn::ExprUnary, hint: Option<&Ty>) -> Node {
        let value = self.expr(&e.expr, hint);
        let ty = self.known(&value.ty, &e.expr);
        let (operator, fits) = match e.op {
            syn::UnOp::Neg(_) => (
                UnaryOperator::Negate,
                match ty.scalar() {
                    // An unsigned type that stands for a type parameter would have no such operation.
                    Ty::Scalar(scalar) => scalar.is_signed() || (scalar.is_float() && scalar.is_number()),
                    Ty::Var(_) => true,
                    _ => false,
                },
            ),
            syn::UnOp::Not(_) => (
                UnaryOperator::Not,
                match ty.scalar() {
                    Ty::Scalar(Scalar::Generic(index)) => self.session.has_bound(*index, Bound::Int),
                    Ty::Scalar(scalar) => *scalar == Scalar::Bool || scalar.is_integer(),
                    Ty::Var(_) => self.table.kind(ty.scalar()) == Some(VarKind::Integer),
                    _ => false,
                },
            ),
            _ => return self.wrong(e, "this operator is not part of the kernel language"),
        };
        if *ty.scalar() == Ty::Error {
            return self.failed(e);
        }
        if let Ty::Struct(_) | Ty::Enum(_) = ty {
            match self.unary_call(operator, value, e) {
                Some(node) => return node,
                None => {
                    let message = self.no_operation(&ty, e.op.to_token_stream().to_string().as_str());
                    return self.wrong(e, message);
                }
            }
        }
        if !fits {
            let found = self.describe(&ty);
            let message = match (operator, ty.scalar()) {
                (UnaryOperator::Negate, Ty::Scalar(scalar)) if scalar.is_integer() => {
                    let signed = if scalar.bits() == 64 { "i64" } else { "i32" };
                    format!("`{found}` has no sign: convert with `as {signed}` first")
                }
                _ => self.no_operation(&ty, e.op.to_token_stream().to_string().as_str()),
            };
            return self.wrong(e, message);
        }
        self.node(Kind::Unary(operator, Box::new(value)), ty, e)
    }

    pub(super) fn binary(&mut self, e: &syn::ExprBinary, hint: Option<&Ty>) -> Node {
        let logical = match e.op {
            syn::BinOp::And(_) => Some(LogicalOperator::And),
            syn::BinOp::Or(_) => Some(LogicalOperator::Or),
            _ => None,
        };
        if let Some(operator) = logical {
            let left = self.expect(&e.left, &Ty::BOOL);
            let right = self.expect(&e.right, &Ty::BOOL);
            return self.node(Kind::Logical(operator, Box::new(left), Box::new(right)), Ty::BOOL, e);
        }
        let (operator, assigns) = operator(&e.op);
        let Some(operator) = operator else {
            return self.wrong(&e.op, "this operator is not part of the kernel language");
        };
        if assigns {
            return self.compound(e, operator);
        }
        let hint = if operator.is_comparison() { None } else { hint };
        let left = self.expr(&e.left, hint);
        if let Ty::Struct(_) | Ty::Enum(_) = self.table.shallow(&left.ty)
            && let Some(node) = self.operator_call(operator, Operand::Value(left.clone()), e, false)
        {
            return node;
        }
        let right_hint = if is_shift(operator) { None } else { Some(left.ty.clone()) };
        let right = self.expr(&e.right, right_hint.as_ref());
        match self.operate(operator, left, right, e, &e.op) {
            Some((left, right, ty)) => self.node(Kind::Binary(operator, Box::new(left), Box::new(right)), ty, e),
            None => self.failed(e),
        }
    }

    /// Checks an operation and makes both sides alike. Gives both sides and the type of the result.
    fn operate(
        &mut self,
        operator: BinaryOperator,
        left: Node,
        right: Node,
        e: &syn::ExprBinary,
        at: &impl Placed,
    ) -> Option<(Node, Node, Ty)> {
        let a = self.known(&left.ty, &e.left);
        let b = self.known(&right.ty, &e.right);
        if [&a, &b].iter().any(|ty| matches!(ty.scalar(), Ty::Error | Ty::Never)) {
            return None;
        }
        if is_shift(operator) {
            let (left, right, ty) = self.shift(left, right, &a, &b, at)?;
            return self.is_sensible(operator, &ty, &right, &e.right).then_some((left, right, ty));
        }
        // Said of the operator: that the other side is no bool would be the lesser mistake.
        if a == Ty::BOOL && !self.has_operation(operator, &a) {
            let message = self.no_operation(&a, &at.to_token_stream().to_string());
            self.error(at, message);
            return None;
        }
        if let Kind::Load(place) = &left.kind
            && self.is_begun_wrong(place, b.scalar())
        {
            return None;
        }
        let (left, right, ty) = match (&a, &b) {
            (Ty::Vector(..), Ty::Vector(..)) => {
                let right = self.coerce(right, &a, &e.right);
                (left, right, a)
            }
            (Ty::Vector(_, scalar), Ty::Scalar(_) | Ty::Var(_)) => {
                let right = self.coerce(right, scalar, &e.right);
                let right = Node { span: right.span, ty: a.clone(), kind: Kind::Splat(Box::new(right)) };
                (left, right, a)
            }
            (Ty::Scalar(_) | Ty::Var(_), Ty::Vector(_, scalar)) => {
                let left = self.coerce(left, scalar, &e.left);
                let left = Node { span: left.span, ty: b.clone(), kind: Kind::Splat(Box::new(left)) };
                (left, right, b)
            }
            // A literal takes the type of the other side, and a mistake is then shown on it.
            (Ty::Var(_), Ty::Scalar(_)) => {
                let left = self.coerce(left, &b, &e.left);
                (left, right, b)
            }
            _ => {
                let right = self.coerce(right, &a, &e.right);
                (left, right, a)
            }
        };
        if matches!(left.kind, Kind::Error) || matches!(right.kind, Kind::Error) {
            return None;
        }
        let ty = self.table.shallow(&ty);
        if !self.has_operation(operator, &ty) {
            let message = self.no_operation(&ty, &at.to_token_stream().to_string());
            self.error(at, message);
            return None;
        }
        if !self.is_sensible(operator, &ty, &right, &e.right) {
            return None;
        }
        let enumeration = matches!(ty, Ty::Enum(_));
        let as_number = |node: Node| Node { span: node.span, ty: Ty::U32, kind: Kind::Convert(Box::new(node)) };
        let (left, right) = if enumeration { (as_number(left), as_number(right)) } else { (left, right) };
        let result = if operator.is_comparison() { Ty::BOOL } else { ty };
        Some((left, right, result))
    }

    /// Refuses what rustc refuses where it knows the number: a division by zero, and a shift by as many bits as there are.
    fn is_sensible(&mut self, operator: BinaryOperator, ty: &Ty, right: &Node, at: &impl Placed) -> bool {
        let number = match &right.kind {
            Kind::Integer(number) => *number,
            Kind::Splat(value) => match value.kind {
                Kind::Integer(number) => number,
                _ => return true,
            },
            _ => return true,
        };
        let message = match (operator, ty.scalar()) {
            (BinaryOperator::Divide | BinaryOperator::Remainder, _) if number == 0 => {
                Some("a division by 0 has no result".to_owned())
            }
            (BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight, Ty::Scalar(scalar)) => {
                self.session.too_far(*scalar, number)
            }
            // What is shifted may get its type further down.
            (BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight, Ty::Var(_)) => {
                self.undecided.shifts.push((ty.scalar().clone(), number, at.ends()));
                None
            }
            _ => None,
        };
        match message {
            Some(message) => {
                self.error(at, message);
                false
            }
            None => true,
        }
    }

    fn shift(&mut self, left: Node, right: Node, a: &Ty, b: &Ty, at: &impl Placed) -> Option<(Node, Node, Ty)> {
        let integer = |this: &Self, ty: &Ty| match ty.scalar() {
            Ty::Scalar(Scalar::Generic(index)) => this.session.has_bound(*index, Bound::Int),
            Ty::Scalar(scalar) => scalar.is_integer(),
            other => this.table.kind(other) == Some(VarKind::Integer),
        };
        if !integer(self, a) || !integer(self, b) || (matches!(b, Ty::Vector(..)) && !matches!(a, Ty::Vector(..))) {
            let wrong = if integer(self, a) { b } else { a };
            let message = self.no_operation(wrong, &at.to_token_stream().to_string());
            self.error(at, message);
            return None;
        }
        if let (Ty::Vector(lanes, _), Ty::Vector(amounts, _)) = (a, b)
            && lanes != amounts
        {
            let found = self.describe(b);
            self.error(
                at,
                format!(
                    "a vector of {lanes} lanes is shifted by a `u32`, or by a `Vec{lanes}<u32>`; this is by a `{found}`"
                ),
            );
            return None;
        }
        // `T: Int` and vectors are shifted by u32 and by nothing else; a literal is one wherever it may be.
        let only = matches!(a, Ty::Vector(..)) || matches!(a.scalar(), Ty::Scalar(Scalar::Generic(_)));
        let is_open = matches!(right.kind, Kind::Integer(_)) && self.table.kind(b).is_some();
        if (only || is_open) && !self.table.unify(b.scalar(), &Ty::U32) {
            let (shifted, found) = (self.describe(a), self.describe(b));
            self.error(
                at,
                format!("a shift of a `{shifted}` is by a `u32`, this is by a `{found}`: convert with `as u32`"),
            );
            return None;
        }
        let span = right.span;
        let mut right = match right.kind {
            Kind::Integer(_) => Node { ty: Ty::U32, ..right },
            _ if self.table.shallow(b.scalar()) == Ty::U32 => right,
            _ => Node { span, ty: Ty::U32, kind: Kind::Convert(Box::new(right)) },
        };
        if let (Ty::Vector(lanes, _), Ty::Scalar(_) | Ty::Var(_)) = (a, b) {
            right = Node { span, ty: Ty::vector(*lanes, Ty::U32), kind: Kind::Splat(Box::new(right)) };
        }
        Some((left, right, a.clone()))
    }

    fn has_operation(&self, operator: BinaryOperator, ty: &Ty) -> bool {
        use BinaryOperator as Op;
        let vector = matches!(ty, Ty::Vector(..));
        let integer_var = self.table.kind(ty.scalar()) == Some(VarKind::Integer);
        match operator {
            Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Remainder => match ty.scalar() {
                Ty::Scalar(Scalar::Generic(index)) => self.session.has_bound(*index, Bound::Number),
                Ty::Scalar(scalar) => super::scope::numeric(*scalar),
                other => matches!(other, Ty::Var(_)),
            },
            Op::And | Op::Or | Op::Xor => match ty.scalar() {
                Ty::Scalar(Scalar::Generic(index)) => self.session.has_bound(*index, Bound::Int),
                Ty::Scalar(scalar) => *scalar == Scalar::Bool || scalar.is_integer(),
                _ => integer_var,
            },
            Op::ShiftLeft | Op::ShiftRight => integer_var,
            Op::Equal | Op::NotEqual if !vector => match ty {
                Ty::Scalar(Scalar::Generic(index)) => self.session.has_bound(*index, Bound::Number),
                Ty::Scalar(_) => true,
                Ty::Var(_) | Ty::Enum(_) => true,
                _ => false,
            },
            Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual if !vector => match ty {
                Ty::Scalar(Scalar::Generic(index)) => self.session.has_bound(*index, Bound::Number),
                Ty::Scalar(scalar) => super::scope::numeric(*scalar),
                Ty::Var(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Why a type lacks an operator, and what to write instead.
    pub(super) fn no_operation(&self, ty: &Ty, operator: &str) -> String {
        let found = self.describe(ty);
        let instead = match ty.scalar() {
            Ty::Scalar(Scalar::Generic(index)) => match self.session.bound(*index) {
                Some(Bound::Float) => ": convert with `.to_f32()`, compute, and convert back with `T::from_f32(..)`",
                Some(Bound::Number) => ": bound it by `Int` for bits",
                Some(Bound::Element) => {
                    ": `Element` is only moved about; bound it by `Number` for arithmetic, by `Int` for bits, or by `Float` for `.to_f32()`"
                }
                _ => "",
            },
            Ty::Scalar(Scalar::Bool) => ": bools know `&&`, `||`, `!`, `&`, `|`, `^`, `==` and `!=`",
            _ if matches!(ty, Ty::Vector(..)) => ": vectors are compared lane by lane, as in `a.x < b.x`",
            Ty::Struct(_) => {
                ": work on its fields, or write a `#[device] impl` of the operator's trait and name the trait in `#[device(operators(..))]` on the type"
            }
            Ty::Array(..) => ": work on its elements",
            _ => "",
        };
        format!("`{found}` has no `{operator}` in kernels{instead}")
    }

    fn compound(&mut self, e: &syn::ExprBinary, operator: BinaryOperator) -> Node {
        let place = self.writable(&e.left);
        if let Some(place) = &place
            && let Ty::Struct(_) = self.table.shallow(&place.ty)
            && let Some(node) = self.operator_call(operator, Operand::Place(place.clone()), e, true)
        {
            return node;
        }
        let hint = place.as_ref().filter(|_| !is_shift(operator)).map(|place| place.ty.clone());
        let value = self.expr(&e.right, hint.as_ref());
        let Some(place) = place else {
            return self.failed(e);
        };
        let left = Node { kind: Kind::Load(place.clone()), ty: place.ty.clone(), span: value.span };
        let at = (*e.left).clone();
        let Some((_, value, ty)) = self.operate(operator, left, value, e, &e.op) else {
            return self.failed(e);
        };
        if !self.table.unify(&ty, &place.ty) {
            let (wanted, found) = (self.describe(&place.ty), self.describe(&ty));
            return self.wrong(&at, format!("this gives `{found}`, which a `{wanted}` cannot hold"));
        }
        let is_of_parameter = self.assignments.note(e, &place.ty);
        self.assignment(place, Some(Update { operator, is_of_parameter }), value, e)
    }

    pub(super) fn assign(&mut self, e: &syn::ExprAssign) -> Node {
        if let syn::Expr::Infer(_) = &*e.left {
            let value = self.expr(&e.right, None);
            let ty = value.ty.clone();
            let block = super::tree::Block {
                statements: vec![super::tree::Statement::Evaluate(value)],
                tail: None,
                ty: if ty == Ty::Never { Ty::Never } else { Ty::Unit },
            };
            let ty = block.ty.clone();
            return self.node(Kind::Block(Box::new(block)), ty, e);
        }
        let place = self.writable(&e.left);
        let value = match &place {
            Some(place) => {
                let ty = place.ty.clone();
                let value = self.expr(&e.right, Some(&ty));
                if self.is_begun_wrong(place, &value.ty) {
                    return self.failed(e);
                }
                self.coerce(value, &ty, &e.right)
            }
            None => {
                let _ = self.operand(&e.right);
                return self.failed(e);
            }
        };
        match place {
            Some(place) => self.assignment(place, None, value, e),
            None => self.failed(e),
        }
    }

    fn assignment(&mut self, place: Place, update: Option<Update>, value: Node, e: &impl Placed) -> Node {
        self.node(Kind::Assign(place, update, Box::new(value)), Ty::Unit, e)
    }
}

impl Session {
    /// What is said of a shift by a number of bits that the type does not have. A `usize` has as many as the widest instance gives it.
    pub(super) fn too_far(&self, scalar: Scalar, number: u64) -> Option<String> {
        let is_wide = self.has_wide_indices() || self.alone;
        let (bits, whose) = match scalar {
            Scalar::Generic(_) => return None,
            Scalar::Index if is_wide => (64, ""),
            Scalar::Index => (32, " in instances of kernels that are not `index = 64`"),
            scalar => (scalar.bits(), ""),
        };
        let name = scalar.rust_name();
        (number >= u64::from(bits)).then(|| format!("`{name}` has {bits} bits{whose}: shift by fewer"))
    }
}

fn is_shift(operator: BinaryOperator) -> bool {
    matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight)
}

/// The operation, and whether it assigns.
pub(super) fn operator(op: &syn::BinOp) -> (Option<BinaryOperator>, bool) {
    use BinaryOperator as Op;
    let (operator, assigns) = match op {
        syn::BinOp::Add(_) => (Op::Add, false),
        syn::BinOp::Sub(_) => (Op::Subtract, false),
        syn::BinOp::Mul(_) => (Op::Multiply, false),
        syn::BinOp::Div(_) => (Op::Divide, false),
        syn::BinOp::Rem(_) => (Op::Remainder, false),
        syn::BinOp::BitAnd(_) => (Op::And, false),
        syn::BinOp::BitOr(_) => (Op::Or, false),
        syn::BinOp::BitXor(_) => (Op::Xor, false),
        syn::BinOp::Shl(_) => (Op::ShiftLeft, false),
        syn::BinOp::Shr(_) => (Op::ShiftRight, false),
        syn::BinOp::Eq(_) => (Op::Equal, false),
        syn::BinOp::Ne(_) => (Op::NotEqual, false),
        syn::BinOp::Lt(_) => (Op::Less, false),
        syn::BinOp::Le(_) => (Op::LessEqual, false),
        syn::BinOp::Gt(_) => (Op::Greater, false),
        syn::BinOp::Ge(_) => (Op::GreaterEqual, false),
        syn::BinOp::AddAssign(_) => (Op::Add, true),
        syn::BinOp::SubAssign(_) => (Op::Subtract, true),
        syn::BinOp::MulAssign(_) => (Op::Multiply, true),
        syn::BinOp::DivAssign(_) => (Op::Divide, true),
        syn::BinOp::RemAssign(_) => (Op::Remainder, true),
        syn::BinOp::BitAndAssign(_) => (Op::And, true),
        syn::BinOp::BitOrAssign(_) => (Op::Or, true),
        syn::BinOp::BitXorAssign(_) => (Op::Xor, true),
        syn::BinOp::ShlAssign(_) => (Op::ShiftLeft, true),
        syn::BinOp::ShrAssign(_) => (Op::ShiftRight, true),
        _ => return (None, false),
    };
    (Some(operator), assigns)
}
