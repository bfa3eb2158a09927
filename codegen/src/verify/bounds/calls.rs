//! What calls say of a function's arguments: the ranges that hold whoever calls it.
//!
//! Functions are looked at callers first, and each call widens the ranges of what it hands over; so a function's body is looked at when all that can be known of its arguments is.

use super::Walk;
use crate::hashing::HashMap;
use crate::ir::{Arena, CallArgument, Expression, ExpressionKind, Function, Handle};

/// For each function that a call was seen of, the least and the greatest value of each argument, where they are followed.
pub(super) type Ranges = HashMap<Handle<Function>, Vec<Option<(i128, i128)>>>;

/// The functions that a function calls.
fn called(function: &Function) -> impl Iterator<Item = Handle<Function>> {
    function.expressions.iter().filter_map(|(_, expression)| match &expression.kind {
        ExpressionKind::Call { function, .. } => Some(*function),
        _ => None,
    })
}

/// Every function, none after one that it calls.
pub(super) fn callers_first(functions: &Arena<Function>, entry: &Function) -> Vec<Handle<Function>> {
    fn visit(
        handle: Handle<Function>,
        functions: &Arena<Function>,
        seen: &mut Vec<bool>,
        done: &mut Vec<Handle<Function>>,
    ) {
        if std::mem::replace(&mut seen[handle.index()], true) {
            return;
        }
        for callee in called(&functions[handle]) {
            visit(callee, functions, seen, done);
        }
        done.push(handle);
    }
    let (mut seen, mut done) = (vec![false; functions.len()], Vec::new());
    for handle in called(entry).chain(functions.iter().map(|(handle, _)| handle)) {
        visit(handle, functions, &mut seen, &mut done);
    }
    done.reverse();
    done
}

/// For each function, whether it or one that it calls is of interest; `order` has callers first.
pub(super) fn reaching(
    functions: &Arena<Function>,
    order: &[Handle<Function>],
    of_interest: impl Fn(&Function) -> bool,
) -> Vec<bool> {
    let mut reaching = vec![false; functions.len()];
    for handle in order.iter().rev() {
        let function = &functions[*handle];
        reaching[handle.index()] = of_interest(function) || called(function).any(|callee| reaching[callee.index()]);
    }
    reaching
}

impl Walk<'_> {
    /// Notes what a call hands over.
    pub(super) fn call(&mut self, callee: Handle<Function>, arguments: &[CallArgument]) {
        let ranges: Vec<_> = arguments
            .iter()
            .map(|argument| match argument {
                CallArgument::Value(value) => self.range_of_value(*value),
                CallArgument::Reference(_) => None,
            })
            .collect();
        match self.calls.get_mut(&callee) {
            Some(known) => {
                for (known, range) in known.iter_mut().zip(ranges) {
                    *known = known.zip(range).map(|((a, b), (c, d))| (a.min(c), b.max(d)));
                }
            }
            None => {
                self.calls.insert(callee, ranges);
            }
        }
    }

    /// The least and the greatest value of an integer.
    fn range_of_value(&mut self, value: Handle<Expression>) -> Option<(i128, i128)> {
        let (low, high) = self.limits_of(value)?;
        let form = self.exact(value);
        let (least, most) = self.knowledge.range(&form);
        // In code that never runs all of it may be beyond the type's range.
        Some((least.clamp(low, high), most.clamp(low, high)))
    }
}
