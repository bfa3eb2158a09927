//! Loops over ranges and conditions.

use syn::visit::Visit;

use super::ends::Placed;
use super::infer::{Ty, VarKind};
use super::intrinsics::{self, Intrinsic};
use super::places::peel;
use super::scope::{Infer, Loop};
use super::tree::{Block, For, Kind, Node, Statement};

impl Infer<'_> {
    pub(super) fn for_loop(&mut self, e: &syn::ExprForLoop) -> Node {
        self.no_label(e.label.as_ref());
        let name = match &*e.pat {
            syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                Some((name.ident.clone(), name.mutability))
            }
            syn::Pat::Wild(_) => None,
            other => {
                self.error(other, "a `for` counts with one variable: `for i in 0..n`");
                return self.failed(e);
            }
        };
        let Some(range) = self.range(&e.expr) else {
            // The body is not looked at: what its variable is, nobody knows.
            return self.node(Kind::Error, Ty::Unit, e);
        };
        self.scopes.push(Default::default());
        let shown = name.as_ref().map_or_else(|| "index".to_owned(), |(name, _)| name.to_string());
        let ty = range.ty.clone();
        let counter = match &name {
            Some((name, _)) => self.local(&shown, ty.clone(), name),
            None => self.unnamed(&shown, ty.clone(), &e.pat),
        };
        self.loops.push(Loop { unroll: range.unroll, breaks: false });
        let mut body = self.block(&e.body, Some(&Ty::Unit));
        self.loops.pop();
        self.scopes.pop();
        self.must_be_unit(&mut body, &e.body);
        // A counter that the body changes is a copy, made in each round.
        let local = if self.locals[counter].assigned {
            let span = self.locals[counter].span;
            let round = self.unnamed(&shown, ty.clone(), &e.pat);
            let value = Node {
                kind: Kind::Load(super::tree::Place {
                    root: super::tree::Root::Local(round),
                    path: Vec::new(),
                    ty: ty.clone(),
                    atomic: false,
                    writable: false,
                }),
                ty,
                span,
            };
            body.statements.insert(0, Statement::Let { local: counter, value: Some(value), span });
            round
        } else {
            counter
        };
        let kind = Kind::For(Box::new(For {
            local,
            start: range.start,
            end: range.end,
            step: range.step,
            inclusive: range.inclusive,
            reversed: range.reversed,
            unroll: range.unroll,
            body,
        }));
        self.node(kind, Ty::Unit, e)
    }

    pub(super) fn must_be_unit(&mut self, body: &mut Block, at: &impl Placed) {
        if !self.table.unify(&body.ty, &Ty::Unit) {
            let found = self.describe(&body.ty);
            self.error(
                at,
                format!(
                    "the body of a loop gives no value, this one gives `{found}`: end its last expression with `;`"
                ),
            );
            body.ty = Ty::Unit;
        }
    }

    /// The range after `in`.
    pub(super) fn range(&mut self, e: &syn::Expr) -> Option<Range> {
        match peel(e) {
            syn::Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    self.error(range, "a range has a start and an end: `0..n`");
                    return None;
                };
                let first = self.expr(start, None);
                let hint = first.ty.clone();
                let last = self.expr(end, Some(&hint));
                // The literal is the one to be shown when the two differ.
                let (first, last) = if self.table.kind(&first.ty).is_some() {
                    let ty = last.ty.clone();
                    (self.coerce(first, &ty, start), last)
                } else {
                    let ty = first.ty.clone();
                    (first, self.coerce(last, &ty, end))
                };
                let ty = self.known(&first.ty, start);
                let fits = match &ty {
                    Ty::Scalar(scalar) => scalar.is_integer() && scalar.bits() == 32,
                    Ty::Var(_) => self.table.kind(&ty) == Some(VarKind::Integer),
                    _ => false,
                };
                if !fits {
                    if ty != Ty::Error {
                        let found = self.describe(&ty);
                        self.error(range, format!("a range counts integers of 32 bits, this is `{found}`"));
                    }
                    return None;
                }
                Some(Range {
                    start: first,
                    end: last,
                    step: None,
                    inclusive: matches!(range.limits, syn::RangeLimits::Closed(_)),
                    reversed: false,
                    unroll: false,
                    ty,
                })
            }
            syn::Expr::MethodCall(call) => {
                let method = call.method.to_string();
                match (method.as_str(), call.args.len()) {
                    ("rev", 0) => {
                        let mut range = self.range(&call.receiver)?;
                        if range.step.is_some() {
                            self.error(
                                call,
                                "`.rev()` comes before `.step_by(n)` in kernels: `(a..b).rev().step_by(n)`",
                            );
                            return None;
                        }
                        range.reversed = !range.reversed;
                        Some(range)
                    }
                    ("step_by", 1) => {
                        let mut range = self.range(&call.receiver)?;
                        let step = self.expect(&call.args[0], &Ty::INDEX);
                        if range.step.is_some() {
                            self.error(call, "a range has one step");
                            return None;
                        }
                        if matches!(step.kind, Kind::Integer(0)) {
                            self.error(&call.args[0], "a step of 0 never ends");
                            return None;
                        }
                        range.step = Some(step);
                        Some(range)
                    }
                    _ => {
                        self.error(call, format!("`.{method}()` is no range: a `for` runs over `a..b`, `a..=b`, `(a..b).rev()`, `(a..b).step_by(n)` and `unroll(a..b)`; elements of slices are indexed"));
                        None
                    }
                }
            }
            syn::Expr::Call(call) => {
                let intrinsic = match &*call.func {
                    syn::Expr::Path(path) => intrinsics::function_of_path(&path.path),
                    _ => None,
                };
                if intrinsic == Some(Intrinsic::Unroll) && call.args.len() == 1 {
                    let mut range = self.range(&call.args[0])?;
                    range.unroll = true;
                    return Some(range);
                }
                self.error(
                    call,
                    "a `for` runs over a range: `a..b`, `a..=b`, `(a..b).rev()`, `(a..b).step_by(n)` or `unroll(a..b)`",
                );
                None
            }
            other => {
                self.error(
                    other,
                    "a `for` runs over a range; to visit a slice's elements, write `for i in 0..x.len()` and `x[i]`",
                );
                None
            }
        }
    }

    pub(super) fn while_loop(&mut self, e: &syn::ExprWhile) -> Node {
        self.no_label(e.label.as_ref());
        let condition = self.expect(&e.cond, &Ty::BOOL);
        self.loops.push(Loop { unroll: false, breaks: false });
        let mut body = self.block_under(&e.cond, &e.body, Some(&Ty::Unit));
        let breaks = self.loops.pop().is_some_and(|inner| inner.breaks);
        let always =
            matches!(&*e.cond, syn::Expr::Lit(literal) if matches!(&literal.lit, syn::Lit::Bool(value) if value.value));
        if always && !breaks {
            self.must_end(&e.body, &e.while_token);
        }
        self.must_be_unit(&mut body, &e.body);
        self.node(Kind::While(Box::new(condition), Box::new(body)), Ty::Unit, e)
    }

    pub(super) fn loop_forever(&mut self, e: &syn::ExprLoop) -> Node {
        self.no_label(e.label.as_ref());
        self.loops.push(Loop { unroll: false, breaks: false });
        let mut body = self.block(&e.body, Some(&Ty::Unit));
        let breaks = self.loops.pop().is_some_and(|inner| inner.breaks);
        if !breaks {
            self.must_end(&e.body, &e.loop_token);
        }
        self.must_be_unit(&mut body, &e.body);
        let ty = if breaks { Ty::Unit } else { Ty::Never };
        self.node(Kind::Loop(Box::new(body)), ty, e)
    }

    /// Refuses a loop that nothing leaves: a device would be lost to it.
    fn must_end(&mut self, body: &syn::Block, at: &impl Placed) {
        struct Returns(bool);
        impl<'ast> Visit<'ast> for Returns {
            fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
                self.0 = true;
            }

            /// One with a value is a mistake of its own.
            fn visit_expr_break(&mut self, leave: &'ast syn::ExprBreak) {
                self.0 |= leave.expr.is_some();
            }
        }
        let mut returns = Returns(false);
        returns.visit_block(body);
        if !returns.0 {
            self.error(at, "this loop never ends: it has neither a `break` nor a `return`");
        }
    }

    pub(super) fn leave(&mut self, label: Option<&syn::Lifetime>, word: &str, e: &impl Placed) -> bool {
        if let Some(label) = label {
            self.error(label, "labels are not part of the kernel language (yet)");
            return false;
        }
        match self.loops.last_mut() {
            None => {
                self.error(e, format!("`{word}` outside of a loop"));
                false
            }
            Some(inner) if inner.unroll => {
                self.error(e, format!("`{word}` cannot leave a round of an unrolled loop: use `if`, or a plain `for`"));
                false
            }
            Some(inner) => {
                inner.breaks |= word == "break";
                true
            }
        }
    }

    pub(super) fn break_loop(&mut self, e: &syn::ExprBreak) -> Node {
        if let Some(value) = &e.expr {
            self.error(value, "`break` with a value is not part of the kernel language: assign a variable before it");
            return self.failed(e);
        }
        if self.leave(e.label.as_ref(), "break", e) { self.node(Kind::Break, Ty::Never, e) } else { self.failed(e) }
    }

    pub(super) fn continue_loop(&mut self, e: &syn::ExprContinue) -> Node {
        if self.leave(e.label.as_ref(), "continue", e) {
            self.node(Kind::Continue, Ty::Never, e)
        } else {
            self.failed(e)
        }
    }
}

pub(super) struct Range {
    start: Node,
    end: Node,
    step: Option<Node>,
    inclusive: bool,
    reversed: bool,
    unroll: bool,
    ty: Ty,
}
