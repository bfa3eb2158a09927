//! Indices that are sums of a value and a number.
//!
//! Places in workgroup memory which lie numbers apart share one address, if the compiler can be brought to see it ([`Dialect::TELLS_APART`]). A number is a literal here, or what becomes one when a loop
//! that is left for the target's compiler to unroll is unrolled: its counter, and sums and multiples of such.

use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, Expression, ExpressionKind, Function, Handle, Place, Projection, Root, StatementKind, statements,
};

use super::printer::Scope;
use super::{Code, Dialect, Printer};

/// The most that a number may be: signed ones are as good.
const MOST: u64 = i32::MAX as u64;

/// The counters of loops that are left to unroll: what each is at most, by the numbers of locals.
pub fn counters(function: &Function) -> Vec<Option<u64>> {
    let mut counters = vec![None; function.locals.len()];
    statements(&function.body, &mut |statement| {
        if let StatementKind::For { local, end, unroll: true, .. } = &statement.kind {
            counters[local.index()] = literal(&function.expressions[*end].kind).map(u64::from);
        }
    });
    counters
}

/// An integer literal that an index may be.
pub fn literal(kind: &ExpressionKind) -> Option<u32> {
    match kind {
        ExpressionKind::Literal(literal) if literal.scalar().is_integer() => u32::try_from(literal.bits()).ok(),
        _ => None,
    }
}

/// What an expression is at most, if it is a number.
fn most(scope: &Scope<'_>, of: Handle<Expression>) -> Option<u64> {
    let most = match scope.kind(of) {
        kind @ ExpressionKind::Literal(_) => u64::from(literal(kind)?),
        ExpressionKind::Local(local) => scope.counters[local.index()]?,
        ExpressionKind::Binary { operator: BinaryOperator::Add, left, right } => {
            most(scope, *left)? + most(scope, *right)?
        }
        ExpressionKind::Binary { operator: BinaryOperator::Multiply, left, right } => {
            most(scope, *left)? * most(scope, *right)?
        }
        _ => return None,
    };
    (most <= MOST).then_some(most)
}

impl<'a, D: Dialect> Printer<'a, D> {
    /// The value and the number of whose sum a place in a workgroup variable is the element.
    pub(super) fn apart(&mut self, scope: &Scope<'a>, place: &Place) -> Result<Option<(Code, Code)>, EmitError> {
        let (Root::Workgroup(_), false, Some(Projection::Index(index) | Projection::Vector { index, .. })) =
            (place.root, place.guarded || !D::TELLS_APART, place.path.first())
        else {
            return Ok(None);
        };
        let ExpressionKind::Binary { operator: BinaryOperator::Add, left, right } = *scope.kind(*index) else {
            return Ok(None);
        };
        let (value, number) = match (most(scope, left), most(scope, right)) {
            (None, Some(_)) => (left, right),
            (Some(_), None) => (right, left),
            _ => return Ok(None),
        };
        Ok(Some((self.expression(scope, value)?, self.expression(scope, number)?)))
    }
}
