//! Faults of emitters and of lowering, as changes of a kernel's IR: what a device would run then.

use trefoil_codegen::diagnostic::Diagnostic;
use trefoil_codegen::ir::rewrite::{Copy, Rewrite, rewrite};
use trefoil_codegen::ir::{
    AtomicFunction as A, BinaryOperator as B, Block, Builtin, Expression, ExpressionKind as E, Handle, Literal,
    LogicalOperator, MathFunction as M, Module, Place, Projection, Root, Scalar, Statement, StatementKind as S,
    SubgroupFunction as F, SubgroupOperator, Type, UnaryOperator,
};

/// What becomes of an expression that was copied.
type OfExpression = fn(&Types, &mut Copy<'_>, Handle<Expression>) -> Option<E>;
/// What becomes of a statement that was copied.
type OfStatement = fn(&Types, &mut Copy<'_>, S) -> Option<Option<S>>;

/// A fault.
#[derive(Clone, Copy)]
pub enum Change {
    /// Of expressions: the kind in place of the copied one, if this is one of those that are wrong.
    Expression(OfExpression),
    /// Of statements: likewise; nothing where the statement is left out.
    Statement(OfStatement),
}

/// Types that changes need.
pub struct Types {
    types: Vec<Type>,
    index: Handle<Type>,
    word: Handle<Type>,
    signed: Handle<Type>,
    bool: Handle<Type>,
    bytes: [Handle<Type>; 2],
}

impl Types {
    fn of(&self, copy: &Copy<'_>, value: Handle<Expression>) -> &Type {
        &self.types[copy.new.expressions[value].ty.index()]
    }

    fn is(&self, copy: &Copy<'_>, value: Handle<Expression>, scalar: Scalar) -> bool {
        *self.of(copy, value) == Type::Scalar(scalar)
    }
}

/// The module with a fault wherever it can be, and whether there is such a place.
pub fn planted(module: &Module, change: Change) -> Option<Module> {
    let mut new = module.clone();
    let mut scalar = |scalar| new.intern(Type::Scalar(scalar));
    let (index, word, signed, bool) =
        (scalar(Scalar::Index), scalar(Scalar::U32), scalar(Scalar::I32), scalar(Scalar::Bool));
    let bytes = [scalar(Scalar::U8), scalar(Scalar::U16)];
    let types = new.types.iter().map(|(_, ty)| ty.clone()).collect();
    let mut plant = Plant { change, types: Types { types, index, word, signed, bool, bytes }, done: false };
    for position in 0..module.functions.len() {
        let handle = Handle::from_index(position);
        new.functions[handle] = rewrite(&mut plant, &module.functions[handle]).ok()?;
    }
    new.entry = rewrite(&mut plant, &module.entry).ok()?;
    plant.done.then_some(new)
}

struct Plant {
    change: Change,
    types: Types,
    done: bool,
}

impl Rewrite for Plant {
    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        expression: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let new = copy.expression(self, expression)?;
        if let Change::Expression(change) = self.change
            && let Some(kind) = change(&self.types, copy, new)
        {
            self.done = true;
            let Expression { ty, span, .. } = copy.new.expressions[new];
            // An expression stands behind its operands.
            return Ok(copy.add(kind, ty, span));
        }
        Ok(new)
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        copy.statement(self, statement, out)?;
        if let Change::Statement(change) = self.change
            && let Some(last) = out.pop()
        {
            match change(&self.types, copy, last.kind.clone()) {
                Some(kind) => {
                    self.done = true;
                    out.extend(kind.map(|kind| Statement { kind, span: last.span }));
                }
                None => out.push(last),
            }
        }
        Ok(())
    }
}

fn kind(copy: &Copy<'_>, handle: Handle<Expression>) -> E {
    copy.new.expressions[handle].kind.clone()
}

fn add(copy: &mut Copy<'_>, kind: E, ty: Handle<Type>, like: Handle<Expression>) -> Handle<Expression> {
    let span = copy.new.expressions[like].span;
    copy.add(kind, ty, span)
}

/// Another operator on the same operands.
fn operator(copy: &Copy<'_>, at: Handle<Expression>, from: B, to: B) -> Option<E> {
    match kind(copy, at) {
        E::Binary { operator, left, right } if operator == from => Some(E::Binary { operator: to, left, right }),
        _ => None,
    }
}

/// The same operator with its operands swapped.
fn swapped(copy: &Copy<'_>, at: Handle<Expression>, of: B) -> Option<E> {
    match kind(copy, at) {
        E::Binary { operator, left, right } if operator == of => Some(E::Binary { operator, left: right, right: left }),
        _ => None,
    }
}

/// Another function of the same operands.
fn function(copy: &Copy<'_>, at: Handle<Expression>, from: M, to: M) -> Option<E> {
    match kind(copy, at) {
        E::Math { function, arguments } if function == from => Some(E::Math { function: to, arguments }),
        _ => None,
    }
}

/// A function with its operands in another order.
fn ordered(copy: &Copy<'_>, at: Handle<Expression>, of: M, order: &[usize]) -> Option<E> {
    match kind(copy, at) {
        E::Math { function, arguments } if function == of => {
            Some(E::Math { function, arguments: order.iter().map(|place| arguments[*place]).collect() })
        }
        _ => None,
    }
}

/// Both sides of an operator on `i32` as `u32`.
fn unsigned(types: &Types, copy: &mut Copy<'_>, at: Handle<Expression>, of: B) -> Option<E> {
    match kind(copy, at) {
        E::Binary { operator, left, right } if operator == of && types.is(copy, left, Scalar::I32) => {
            let left = add(copy, E::Bitcast(left), types.word, at);
            let right = if of == B::ShiftRight { right } else { add(copy, E::Bitcast(right), types.word, at) };
            if of != B::ShiftRight {
                return Some(E::Binary { operator, left, right });
            }
            let shifted = add(copy, E::Binary { operator, left, right }, types.word, at);
            Some(E::Bitcast(shifted))
        }
        _ => None,
    }
}

/// An index one further on.
fn next(types: &Types, copy: &mut Copy<'_>, index: Handle<Expression>) -> Handle<Expression> {
    let (ty, literal) = if types.is(copy, index, Scalar::U32) {
        (types.word, Literal::U32(1))
    } else {
        (types.index, Literal::Index(1))
    };
    let one = add(copy, E::Literal(literal), ty, index);
    add(copy, E::Binary { operator: B::Add, left: index, right: one }, ty, index)
}

/// A place whose first index is one too large, if it begins where that is asked for.
fn moved(types: &Types, copy: &mut Copy<'_>, place: &Place, is: fn(Root) -> bool) -> Option<Place> {
    let mut place = place.clone();
    let Some(Projection::Index(index)) = place.path.first().copied().filter(|_| is(place.root)) else { return None };
    place.path[0] = Projection::Index(next(types, copy, index));
    Some(place)
}

/// A place whose guard lets the first index past the end through; those behind it go there too, where there is memory for an element.
fn ajar(types: &Types, copy: &mut Copy<'_>, place: &Place) -> Option<Place> {
    let (Root::Binding(binding), [Projection::Index(index)]) = (place.root, place.path.as_slice()) else { return None };
    let index = *index;
    types.is(copy, index, Scalar::Index).then_some(())?;
    let length = add(copy, E::Length(binding), types.index, index);
    let inside = add(copy, E::Math { function: M::Min, arguments: vec![index, length] }, types.index, index);
    let mut place = place.clone();
    place.path[0] = Projection::Index(inside);
    place.guarded = false;
    Some(place)
}

macro_rules! faults {
    ($($name:literal: $variant:ident(|$types:pat_param, $copy:ident, $at:pat_param| $body:expr);)*) => {
        /// Every fault with what it is.
        pub const FAULTS: &[(&str, Change)] = &[$(($name, Change::$variant(|$types, $copy, $at| $body)),)*];
    };
}

faults! {
    "operands of - swapped": Expression(|_, copy, at| swapped(copy, at, B::Subtract));
    "operands of / swapped, of integers": Expression(|types, copy, at| {
        if types.of(copy, at).scalar().is_some_and(Scalar::is_integer) { swapped(copy, at, B::Divide) } else { None }
    });
    "operands of % swapped": Expression(|types, copy, at| {
        if types.of(copy, at).scalar().is_some_and(Scalar::is_integer) { swapped(copy, at, B::Remainder) } else { None }
    });
    "/ gives the remainder": Expression(|_, copy, at| operator(copy, at, B::Divide, B::Remainder));
    ">> of i32 without its sign": Expression(|types, copy, at| unsigned(types, copy, at, B::ShiftRight));
    "/ of i32 as of u32": Expression(|types, copy, at| match kind(copy, at) {
        E::Binary { operator: B::Divide, left, right } if types.is(copy, left, Scalar::I32) => {
            let left = add(copy, E::Bitcast(left), types.word, at);
            let right = add(copy, E::Bitcast(right), types.word, at);
            Some(E::Bitcast(add(copy, E::Binary { operator: B::Divide, left, right }, types.word, at)))
        }
        _ => None,
    });
    "< of i32 as of u32": Expression(|types, copy, at| unsigned(types, copy, at, B::Less));
    ">= of i32 as of u32": Expression(|types, copy, at| unsigned(types, copy, at, B::GreaterEqual));
    "<< by an amount that is not taken modulo the bits": Expression(|types, copy, at| match kind(copy, at) {
        E::Binary { operator: B::ShiftLeft, right, .. } if types.is(copy, at, Scalar::U32) => {
            let most = add(copy, E::Literal(Literal::U32(32)), types.word, at);
            let amount = match kind(copy, right) {
                literal @ E::Literal(_) => add(copy, literal, types.word, at),
                _ => return None,
            };
            let fits = add(copy, E::Binary { operator: B::Less, left: amount, right: most }, types.bool, at);
            let zero = add(copy, E::Literal(Literal::U32(0)), types.word, at);
            Some(E::Select { condition: fits, accept: at, reject: zero })
        }
        _ => None,
    });
    "<< and >> exchanged": Expression(|_, copy, at| operator(copy, at, B::ShiftLeft, B::ShiftRight));
    "< is <=": Expression(|_, copy, at| operator(copy, at, B::Less, B::LessEqual));
    "> is >=": Expression(|_, copy, at| operator(copy, at, B::Greater, B::GreaterEqual));
    "<= is <": Expression(|_, copy, at| operator(copy, at, B::LessEqual, B::Less));
    "!= is ==": Expression(|_, copy, at| operator(copy, at, B::NotEqual, B::Equal));
    "^ is |": Expression(|_, copy, at| operator(copy, at, B::Xor, B::Or));
    "&& is ||": Expression(|_, copy, at| match kind(copy, at) {
        E::Logical { operator: LogicalOperator::And, left, right } => {
            Some(E::Logical { operator: LogicalOperator::Or, left, right })
        }
        _ => None,
    });
    "! of integers as -": Expression(|types, copy, at| match kind(copy, at) {
        E::Unary { operator: UnaryOperator::Not, value } if types.is(copy, at, Scalar::I32) => {
            Some(E::Unary { operator: UnaryOperator::Negate, value })
        }
        _ => None,
    });
    "- left out": Expression(|_, copy, at| match kind(copy, at) {
        E::Unary { operator: UnaryOperator::Negate, value } => Some(kind(copy, value)),
        _ => None,
    });
    "min is max": Expression(|_, copy, at| function(copy, at, M::Min, M::Max));
    "max of i32 as of u32": Expression(|types, copy, at| match kind(copy, at) {
        E::Math { function: M::Max, arguments } if types.is(copy, at, Scalar::I32) => {
            let arguments = arguments.into_iter().map(|one| add(copy, E::Bitcast(one), types.word, at)).collect();
            Some(E::Bitcast(add(copy, E::Math { function: M::Max, arguments }, types.word, at)))
        }
        _ => None,
    });
    "clamp's ends exchanged": Expression(|_, copy, at| ordered(copy, at, M::Clamp, &[0, 2, 1]));
    "abs left out": Expression(|_, copy, at| match kind(copy, at) {
        E::Math { function: M::Abs, arguments } => Some(kind(copy, arguments[0])),
        _ => None,
    });
    "floor is trunc": Expression(|_, copy, at| function(copy, at, M::Floor, M::Trunc));
    "ceil is floor": Expression(|_, copy, at| function(copy, at, M::Ceil, M::Floor));
    "trunc is floor": Expression(|_, copy, at| function(copy, at, M::Trunc, M::Floor));
    "round_ties_even sends ties away from zero": Expression(|types, copy, at| {
        if types.of(copy, at).scalar() == Some(Scalar::F32) { function(copy, at, M::RoundTiesEven, M::Round) } else { None }
    });
    "round sends ties to even": Expression(|_, copy, at| function(copy, at, M::Round, M::RoundTiesEven));
    "signum is abs": Expression(|_, copy, at| function(copy, at, M::Signum, M::Abs));
    "count_ones counts zeros above": Expression(|_, copy, at| function(copy, at, M::CountOnes, M::LeadingZeros));
    "leading_zeros counts those below": Expression(|_, copy, at| function(copy, at, M::LeadingZeros, M::TrailingZeros));
    "rotation in the other direction": Expression(|_, copy, at| function(copy, at, M::RotateLeft, M::RotateRight));
    "extract_bits with offset and count exchanged": Expression(|_, copy, at| ordered(copy, at, M::ExtractBits, &[0, 2, 1]));
    "insert_bits inserts into what it inserts": Expression(|_, copy, at| ordered(copy, at, M::InsertBits, &[1, 0, 2, 3]));
    "mul_high gives the lower half": Expression(|_, copy, at| match kind(copy, at) {
        E::Math { function: M::MulHigh, arguments } => {
            Some(E::Binary { operator: B::Multiply, left: arguments[0], right: arguments[1] })
        }
        _ => None,
    });
    "dot4_u8 with signs": Expression(|types, copy, at| match kind(copy, at) {
        E::Math { function: M::Dot4U8, mut arguments } => {
            arguments[2] = add(copy, E::Bitcast(arguments[2]), types.signed, at);
            Some(E::Bitcast(add(copy, E::Math { function: M::Dot4I8, arguments }, types.signed, at)))
        }
        _ => None,
    });
    "pack4x8snorm without signs": Expression(|_, copy, at| function(copy, at, M::Pack4x8Snorm, M::Pack4x8Unorm));
    "unpack4x8snorm without signs": Expression(|_, copy, at| function(copy, at, M::Unpack4x8Snorm, M::Unpack4x8Unorm));
    "rem_euclid keeps the sign": Expression(|_, copy, at| match kind(copy, at) {
        E::Math { function: M::RemEuclid, arguments } => {
            Some(E::Binary { operator: B::Remainder, left: arguments[0], right: arguments[1] })
        }
        _ => None,
    });
    "mul_add adds nothing": Expression(|_, copy, at| match kind(copy, at) {
        E::Math { function: M::MulAdd, arguments } => {
            Some(E::Binary { operator: B::Multiply, left: arguments[0], right: arguments[1] })
        }
        _ => None,
    });
    "narrow signed integers extended by zeros": Expression(|types, copy, at| match kind(copy, at) {
        E::Convert(value) => {
            let byte = match types.of(copy, value) {
                Type::Scalar(Scalar::I8) => types.bytes[0],
                Type::Scalar(Scalar::I16) => types.bytes[1],
                _ => return None,
            };
            types.of(copy, at).scalar().filter(|to| to.is_integer())?;
            Some(E::Convert(add(copy, E::Bitcast(value), byte, at)))
        }
        _ => None,
    });
    "f32 to i32 to the nearest": Expression(|types, copy, at| match kind(copy, at) {
        E::Convert(value) if types.is(copy, value, Scalar::F32) && types.is(copy, at, Scalar::I32) => {
            let ty = copy.new.expressions[value].ty;
            Some(E::Convert(add(copy, E::Math { function: M::RoundTiesEven, arguments: vec![value] }, ty, at)))
        }
        _ => None,
    });
    "u32 to f32 as of i32": Expression(|types, copy, at| match kind(copy, at) {
        E::Convert(value) if types.is(copy, value, Scalar::U32) && types.is(copy, at, Scalar::F32) => {
            Some(E::Convert(add(copy, E::Bitcast(value), types.signed, at)))
        }
        _ => None,
    });
    "the wrong lane": Expression(|types, copy, at| match kind(copy, at) {
        E::Member { base, index } if matches!(types.of(copy, base), Type::Vector { .. }) => {
            Some(E::Member { base, index: u32::from(index == 0) })
        }
        _ => None,
    });
    "select's values exchanged": Expression(|_, copy, at| match kind(copy, at) {
        E::Select { condition, accept, reject } => Some(E::Select { condition, accept: reject, reject: accept }),
        _ => None,
    });
    "lanes put together in reverse": Expression(|types, copy, at| match kind(copy, at) {
        E::Compose(mut parts) if matches!(types.of(copy, at), Type::Vector { .. }) => {
            parts.reverse();
            Some(E::Compose(parts))
        }
        _ => None,
    });
    "local_index where global_index is meant": Expression(|_, copy, at| match kind(copy, at) {
        E::Builtin(Builtin::GlobalIndex) => Some(E::Builtin(Builtin::LocalIndex)),
        _ => None,
    });
    "a length one too large": Expression(|types, copy, at| match kind(copy, at) {
        E::Length(_) => {
            let one = add(copy, E::Literal(Literal::Index(1)), types.index, at);
            Some(E::Binary { operator: B::Add, left: at, right: one })
        }
        _ => None,
    });
    "the neighbour's element of a buffer": Expression(|types, copy, at| match kind(copy, at) {
        E::Load(place) => moved(types, copy, &place, |root| matches!(root, Root::Binding(_))).map(E::Load),
        _ => None,
    });
    "past the end of a buffer the last element is read": Expression(|types, copy, at| match kind(copy, at) {
        E::Load(mut place) => {
            let (Root::Binding(binding), Some(Projection::Index(index))) = (place.root, place.path.first().copied()) else {
                return None;
            };
            types.is(copy, index, Scalar::Index).then_some(())?;
            let length = add(copy, E::Length(binding), types.index, at);
            let one = add(copy, E::Literal(Literal::Index(1)), types.index, at);
            let last = add(copy, E::Binary { operator: B::Subtract, left: length, right: one }, types.index, at);
            let inside = E::Math { function: M::Min, arguments: vec![index, last] };
            place.path[0] = Projection::Index(add(copy, inside, types.index, at));
            Some(E::Load(place))
        }
        _ => None,
    });
    "a read of the first element past the end of a buffer is let through": Expression(|types, copy, at| match kind(copy, at) {
        E::Load(place) => ajar(types, copy, &place).map(E::Load),
        _ => None,
    });
    "a write of the first element past the end of a buffer is let through": Statement(|types, copy, statement| match statement {
        S::Store { place, value } => {
            let place = ajar(types, copy, &place)?;
            Some(Some(S::Store { place, value }))
        }
        _ => None,
    });
    "a write to workgroup memory one further on": Statement(|types, copy, statement| match statement {
        S::Store { place, value } => {
            let place = moved(types, copy, &place, |root| matches!(root, Root::Workgroup(_)))?;
            Some(Some(S::Store { place, value }))
        }
        _ => None,
    });
    "a uniform load one further on": Statement(|types, copy, statement| match statement {
        S::UniformLoad { result, place } => {
            let place = moved(types, copy, &place, |_| true)?;
            Some(Some(S::UniformLoad { result, place }))
        }
        _ => None,
    });
    "branches exchanged": Statement(|_, _copy, statement| match statement {
        S::If { condition, accept, reject, constant } if !reject.is_empty() => {
            Some(Some(S::If { condition, accept: reject, reject: accept, constant }))
        }
        _ => None,
    });
    "a condition left out": Statement(|types, copy, statement| match statement {
        S::If { condition, accept, reject, constant } if reject.is_empty() && accept.iter().all(|inner| matches!(inner.kind, S::Store { .. })) => {
            let condition = add(copy, E::Literal(Literal::Bool(true)), types.bool, condition);
            Some(Some(S::If { condition, accept, reject, constant }))
        }
        _ => None,
    });
    "a case of a match that never comes": Statement(|_, _copy, statement| match statement {
        S::Switch { selector, mut cases, default } if !cases.is_empty() => {
            cases[0].values[0] = 77;
            Some(Some(S::Switch { selector, cases, default }))
        }
        _ => None,
    });
    "a round of a loop too few": Statement(|types, copy, statement| match statement {
        S::For { local, start, end, step, body, unroll: false } if types.is(copy, start, Scalar::Index) => {
            let start = next(types, copy, start);
            Some(Some(S::For { local, start, end, step, body, unroll: false }))
        }
        _ => None,
    });
    "continue where break is meant": Statement(|_, _copy, statement| match statement {
        S::Continue => Some(Some(S::Break)),
        _ => None,
    });
    "atomic add is sub": Statement(|_, _copy, statement| match statement {
        S::Atomic { result, place, function: A::Add, value, compare, ordering } => {
            Some(Some(S::Atomic { result, place, function: A::Subtract, value, compare, ordering }))
        }
        _ => None,
    });
    "atomic min is max": Statement(|_, _copy, statement| match statement {
        S::Atomic { result, place, function: A::Min, value, compare, ordering } => {
            Some(Some(S::Atomic { result, place, function: A::Max, value, compare, ordering }))
        }
        _ => None,
    });
    "atomic xor is or": Statement(|_, _copy, statement| match statement {
        S::Atomic { result, place, function: A::Xor, value, compare, ordering } => {
            Some(Some(S::Atomic { result, place, function: A::Or, value, compare, ordering }))
        }
        _ => None,
    });
    "an exclusive scan includes its own": Statement(|_, _copy, statement| match statement {
        S::Subgroup { result, function: F::ExclusiveScan(operator), value, lane } => {
            Some(Some(S::Subgroup { result, function: F::InclusiveScan(operator), value, lane }))
        }
        _ => None,
    });
    "a shuffle in the other direction": Statement(|_, _copy, statement| match statement {
        S::Subgroup { result, function: F::ShuffleUp, value, lane } => {
            Some(Some(S::Subgroup { result, function: F::ShuffleDown, value, lane }))
        }
        _ => None,
    });
    "a reduction by xor takes or": Statement(|_, _copy, statement| match statement {
        S::Subgroup { result, function: F::Reduce(SubgroupOperator::Xor), value, lane } => {
            Some(Some(S::Subgroup { result, function: F::Reduce(SubgroupOperator::Or), value, lane }))
        }
        _ => None,
    });
    "a barrier left out": Statement(|_, _copy, statement| match statement {
        S::Barrier => Some(None),
        _ => None,
    });
}
