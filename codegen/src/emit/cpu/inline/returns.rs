//! The returns of an inlined function, as stores to a local and jumps.
//!
//! What follows a branch of which one side always returns moves into the other side. Where some ways through a branch or a loop return and others do not, a
//! flag says whether the function has returned: what follows is done if it has not, and loops that are around such a loop are left in turn. Wherever a barrier
//! or a subgroup operation follows, the flag is the same for all invocations, since the verifier lets none follow a return that only some of them take; so
//! regions are found as the author's own branches would have them.

use crate::ir::{
    Block, Expression, ExpressionKind, Function, Handle, Literal, Local, Place, Root, Span, Statement, StatementKind,
    Type, UnaryOperator, statements,
};

/// The body of `callee` within `caller`, its results stored to `value`; `boolean` is the type of a flag.
pub(super) fn replaced(
    caller: &mut Function,
    callee: &Function,
    body: Block,
    value: Option<Handle<Local>>,
    boolean: Handle<Type>,
    span: Span,
) -> Block {
    let mut returns = Returns { caller, callee, value, boolean, flag: None };
    let body = returns.tail(body, false);
    let Some(local) = returns.flag else { return body };
    let value = Some(returns.add(ExpressionKind::Literal(Literal::Bool(false)), span));
    let mut out = vec![Statement { kind: StatementKind::Let { local, value }, span }];
    out.extend(body);
    out
}

struct Returns<'a> {
    caller: &'a mut Function,
    callee: &'a Function,
    value: Option<Handle<Local>>,
    boolean: Handle<Type>,
    /// Whether the function has returned, if anything asks that.
    flag: Option<Handle<Local>>,
}

impl Returns<'_> {
    /// A block that is not within a loop of the function. It is the last thing that the function does, unless the flag is `asked` for behind it.
    fn tail(&mut self, block: Block, asked: bool) -> Block {
        let mut out = Block::new();
        let mut rest = block.into_iter();
        while let Some(Statement { kind, span }) = rest.next() {
            if let StatementKind::Return(result) = kind {
                self.leave(result, asked, span, &mut out);
                return out;
            }
            if !contains_return(&kind) {
                out.push(Statement { kind, span });
                continue;
            }
            let mut after: Block = rest.collect();
            let kind = match kind {
                StatementKind::If { condition, mut accept, mut reject, constant } => {
                    match (always_returns(&accept), always_returns(&reject)) {
                        (true, true) => after.clear(),
                        (true, false) => reject.append(&mut after),
                        (false, true) => accept.append(&mut after),
                        (false, false) => {}
                    }
                    let asked = asked || !after.is_empty();
                    let (accept, reject) = (self.tail(accept, asked), self.tail(reject, asked));
                    StatementKind::If { condition, accept, reject, constant }
                }
                StatementKind::Switch { selector, mut cases, default } => {
                    if cases.iter().all(|case| always_returns(&case.body)) && always_returns(&default) {
                        after.clear();
                    }
                    let asked = asked || !after.is_empty();
                    for case in &mut cases {
                        case.body = self.tail(std::mem::take(&mut case.body), asked);
                    }
                    StatementKind::Switch { selector, cases, default: self.tail(default, asked) }
                }
                mut kind => {
                    let asked = asked || !after.is_empty();
                    for inner in kind.blocks_mut() {
                        *inner = self.in_loop(std::mem::take(inner), asked);
                    }
                    kind
                }
            };
            out.push(Statement { kind, span });
            if !after.is_empty() {
                let returned = self.returned(span);
                let value = ExpressionKind::Unary { operator: UnaryOperator::Not, value: returned };
                let condition = self.add(value, span);
                let accept = self.tail(after, asked);
                let kind = StatementKind::If { condition, accept, reject: Block::new(), constant: false };
                out.push(Statement { kind, span });
            }
            return out;
        }
        out
    }

    /// A block within a loop of the function, or within a branch in one: a return leaves the loop, behind which the flag may be `asked` for.
    fn in_loop(&mut self, block: Block, asked: bool) -> Block {
        let mut out = Block::new();
        for Statement { mut kind, span } in block {
            if let StatementKind::Return(result) = kind {
                self.leave(result, asked, span, &mut out);
                out.push(Statement { kind: StatementKind::Break, span });
                return out;
            }
            if !contains_return(&kind) {
                out.push(Statement { kind, span });
                continue;
            }
            let is_loop =
                matches!(kind, StatementKind::For { .. } | StatementKind::While { .. } | StatementKind::Loop { .. });
            for inner in kind.blocks_mut() {
                *inner = self.in_loop(std::mem::take(inner), asked || is_loop);
            }
            out.push(Statement { kind, span });
            if is_loop {
                let condition = self.returned(span);
                let accept = vec![Statement { kind: StatementKind::Break, span }];
                let kind = StatementKind::If { condition, accept, reject: Block::new(), constant: false };
                out.push(Statement { kind, span });
            }
        }
        out
    }

    /// Stores the result, and that there was a return.
    fn leave(&mut self, result: Option<Handle<Expression>>, asked: bool, span: Span, out: &mut Block) {
        if let (Some(local), Some(value)) = (self.value, result) {
            out.push(store(local, value, span));
        }
        if asked {
            let value = self.add(ExpressionKind::Literal(Literal::Bool(true)), span);
            out.push(store(self.flag(), value, span));
        }
    }

    fn flag(&mut self) -> Handle<Local> {
        *self.flag.get_or_insert_with(|| {
            let (name, span) = (format!("{}_returned", self.callee.name), self.callee.span);
            self.caller.locals.add(Local { name, ty: self.boolean, mutable: true, span })
        })
    }

    /// Whether the function has returned.
    fn returned(&mut self, span: Span) -> Handle<Expression> {
        let place = Place { root: Root::Local(self.flag()), path: Vec::new(), guarded: false };
        self.add(ExpressionKind::Load(place), span)
    }

    /// An expression that is true or false.
    fn add(&mut self, kind: ExpressionKind, span: Span) -> Handle<Expression> {
        self.caller.expressions.add(Expression { kind, ty: self.boolean, span })
    }
}

fn store(local: Handle<Local>, value: Handle<Expression>, span: Span) -> Statement {
    let place = Place { root: Root::Local(local), path: Vec::new(), guarded: false };
    Statement { kind: StatementKind::Store { place, value }, span }
}

fn contains_return(kind: &StatementKind) -> bool {
    let mut found = false;
    for inner in kind.blocks() {
        statements(inner, &mut |statement| found |= matches!(statement.kind, StatementKind::Return(_)));
    }
    found
}

fn always_returns(block: &Block) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::Return(_) => true,
        StatementKind::If { accept, reject, .. } => always_returns(accept) && always_returns(reject),
        StatementKind::Switch { cases, default, .. } => {
            cases.iter().all(|case| always_returns(&case.body)) && always_returns(default)
        }
        _ => false,
    })
}
