//! Numbers of values: two expressions with the same number have the same value, bit for bit.
//!
//! A key spells an expression out in words: what it is, its type, and the numbers of its operands. Operands of commutative operations on integers and bools are put in order;
//! floats are neither reordered nor looked into. What is read of a variable is spelled with the variable's version, which every store changes. An
//! operand's number is always less than that of what it is an operand of.

use crate::hashing::HashMap;
use crate::ir::{BinaryOperator, Expression, ExpressionKind, Handle, Literal, Place, Projection, Root, Type};

/// A value's number.
pub type Number = u32;

/// What has no number: a thing that is never shared.
pub const NONE: Number = Number::MAX;

/// Gives numbers to keys.
#[derive(Default)]
pub struct Numbers {
    known: HashMap<Box<[u32]>, Number>,
    next: Number,
    key: Vec<u32>,
}

impl Numbers {
    /// A number that nothing else has.
    pub const fn fresh(&mut self) -> Number {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The number of an expression that is no local, load or call, of the numbers of its operands; `is_exact` says of a binary operation that integers or bools are
    /// its operands.
    pub fn of(
        &mut self,
        kind: &ExpressionKind,
        ty: Handle<Type>,
        is_exact: bool,
        of: impl Fn(&Handle<Expression>) -> Number,
    ) -> Number {
        let key = &mut self.key;
        key.clear();
        match kind {
            ExpressionKind::Literal(literal) => spell_literal(key, *literal),
            ExpressionKind::Param(param) => key.extend([1, *param]),
            ExpressionKind::Length(binding) => key.extend([2, *binding]),
            ExpressionKind::ViewExtent { binding, axis } => key.extend([3, *binding, *axis]),
            ExpressionKind::ViewStride { binding, axis } => key.extend([4, *binding, *axis]),
            ExpressionKind::Builtin(builtin) => key.extend([5, *builtin as u32]),
            ExpressionKind::Argument(argument) => key.extend([6, *argument]),
            ExpressionKind::Member { base, index } => key.extend([9, of(base), *index]),
            ExpressionKind::Element { base, index } => key.extend([10, of(base), of(index)]),
            ExpressionKind::Compose(parts) => {
                key.push(11);
                key.extend(parts.iter().map(&of));
            }
            ExpressionKind::Splat(value) => key.extend([12, of(value)]),
            ExpressionKind::Swizzle { base, lanes } => {
                key.extend([13, of(base)]);
                key.extend(lanes.iter().map(|lane| u32::from(*lane)));
            }
            ExpressionKind::Unary { operator, value } => key.extend([14, *operator as u32, of(value)]),
            ExpressionKind::Binary { operator, left, right } => {
                let (left, right) = (of(left), of(right));
                let swaps = is_exact && commutes(*operator) && right < left;
                let (left, right) = if swaps { (right, left) } else { (left, right) };
                key.extend([15, *operator as u32, left, right]);
            }
            ExpressionKind::Logical { operator, left, right } => {
                key.extend([16, *operator as u32, of(left), of(right)]);
            }
            ExpressionKind::Math { function, arguments } => {
                key.extend([17, *function as u32]);
                key.extend(arguments.iter().map(&of));
            }
            ExpressionKind::Select { condition, accept, reject } => {
                key.extend([18, of(condition), of(accept), of(reject)]);
            }
            ExpressionKind::Convert(value) => key.extend([19, of(value)]),
            ExpressionKind::Bitcast(value) => key.extend([20, of(value)]),
            ExpressionKind::MatrixLength(ty) => key.extend([21, ty.index() as u32]),
            ExpressionKind::Local(_)
            | ExpressionKind::Load(_)
            | ExpressionKind::Call { .. }
            | ExpressionKind::GenericConstant(_)
            | ExpressionKind::TargetHas(_) => return self.fresh(),
        }
        self.intern(ty)
    }

    /// The number of what is read of a variable of that version.
    pub fn of_load(
        &mut self,
        place: &Place,
        ty: Handle<Type>,
        version: u32,
        of: impl Fn(&Handle<Expression>) -> Number,
    ) -> Number {
        let (tag, variable) = match place.root {
            Root::Binding(binding) => (22, binding),
            Root::Workgroup(variable) => (23, variable.index() as u32),
            Root::Local(local) => (24, local.index() as u32),
            Root::Argument(argument) => (25, argument),
        };
        self.key.clear();
        self.key.extend([tag, variable, version, u32::from(place.guarded)]);
        for projection in &place.path {
            self.key.extend(match projection {
                Projection::Index(index) => [0, of(index)],
                Projection::Member(member) => [1, *member],
                Projection::Vector { index, lanes } => [u32::from(*lanes), of(index)],
            });
        }
        self.intern(ty)
    }

    /// The number of a call that reads and writes no memory.
    pub fn of_call(&mut self, function: usize, ty: Handle<Type>, arguments: impl Iterator<Item = Number>) -> Number {
        self.key.clear();
        self.key.extend([26, function as u32]);
        self.key.extend(arguments);
        self.intern(ty)
    }

    fn intern(&mut self, ty: Handle<Type>) -> Number {
        self.key.push(ty.index() as u32);
        if let Some(known) = self.known.get(self.key.as_slice()) {
            return *known;
        }
        let number = self.fresh();
        self.known.insert(self.key.as_slice().into(), number);
        number
    }
}

fn spell_literal(key: &mut Vec<u32>, literal: Literal) {
    let bits = literal.bits();
    key.extend([0, bits as u32, (bits >> 32) as u32]);
}

/// Whether an operation on integers or bools is the same with its sides exchanged.
const fn commutes(operator: BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(operator, B::Add | B::Multiply | B::And | B::Or | B::Xor | B::Equal | B::NotEqual)
}
