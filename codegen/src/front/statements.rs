//! Statements and control flow.

use quote::ToTokens;

use super::expressions::macro_message;
use super::infer::{Ty, VarKind};
use super::intrinsics::{self, Intrinsic};
use super::items::check_attributes;
use super::places::{Operand, peel, peel_reference};
use super::scope::{Entity, Infer, Loop};
use super::session::unique;
use super::tree::{Arm, Block, For, Kind, Node, Origin, Pattern, Slice, Statement};
use crate::ir::{Scalar, WorkgroupVariable};

impl Infer<'_> {
    /// A block in a scope of its own.
    pub(super) fn block(&mut self, block: &syn::Block, hint: Option<&Ty>) -> Block {
        self.scopes.push(Default::default());
        let mut statements = Vec::new();
        let mut tail = None;
        let mut diverges = false;
        for (position, statement) in block.stmts.iter().enumerate() {
            let last = position + 1 == block.stmts.len();
            match statement {
                syn::Stmt::Local(local) => {
                    if let Some(statement) = self.let_statement(local) {
                        if let Statement::Let { value: Some(node), .. } | Statement::Evaluate(node) = &statement {
                            diverges |= self.table.shallow(&node.ty) == Ty::Never;
                        }
                        statements.push(statement);
                    }
                }
                syn::Stmt::Expr(expression, None) if last => {
                    tail = Some(self.expr(expression, hint));
                }
                syn::Stmt::Expr(expression, semicolon) => {
                    let node = if semicolon.is_none() {
                        // Rust wants `()` of a block-like expression in the middle of a block.
                        self.expect(expression, &Ty::Unit)
                    } else {
                        self.expr(expression, None)
                    };
                    diverges |= self.table.shallow(&node.ty) == Ty::Never;
                    statements.push(Statement::Evaluate(node));
                }
                syn::Stmt::Item(syn::Item::Use(_)) => {
                    self.error(statement, "`use` stands outside of the kernel");
                }
                syn::Stmt::Item(_) => {
                    self.error(statement, "items inside of a kernel are not part of the language: put the item beside the kernel, with #[device] on it");
                }
                syn::Stmt::Macro(call) => {
                    let name = call.mac.path.to_token_stream().to_string();
                    self.error(&call.mac, macro_message(&name));
                    diverges |= matches!(name.as_str(), "panic" | "todo" | "unreachable");
                }
            }
        }
        self.scopes.pop();
        let ty = match &tail {
            _ if diverges => Ty::Never,
            Some(node) => node.ty.clone(),
            None => Ty::Unit,
        };
        Block { statements, tail, ty }
    }

    fn let_statement(&mut self, e: &syn::Local) -> Option<Statement> {
        check_attributes(self.session, &e.attrs);
        if let Some((else_token, _)) = e.init.as_ref().and_then(|init| init.diverge.as_ref()) {
            self.error(else_token, "`let .. else` is not part of the kernel language: no pattern of it can fail");
        }
        let (pattern, written) = match &e.pat {
            syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let name = match pattern {
            syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(&name.ident),
            syn::Pat::Wild(_) => None,
            other => {
                self.error(
                    other,
                    "a `let` names one variable, or `_`: tuples and other patterns are not part of the kernel language",
                );
                if let Some(init) = &e.init {
                    let _ = self.expr(&init.expr, None);
                }
                self.declare_failed(other);
                return None;
            }
        };
        if let (Some(name), Some(init)) = (name, &e.init) {
            if let syn::Expr::Call(call) = peel(&init.expr)
                && let syn::Expr::Path(path) = &*call.func
                && self.session.bundle(&self.scope, &path.path).is_none()
                && intrinsics::function_of_path(&path.path) == Some(Intrinsic::WorkgroupArray)
            {
                let entity = self.workgroup_array(call, &path.path, name).map_or(Entity::Failed, Entity::Slice);
                self.declare(&name.to_string(), entity);
                return None;
            }
            if let syn::Expr::Reference(reference) = peel(&init.expr) {
                return self.alias(name, reference);
            }
        }
        let ascribed = match written {
            Some(syn::Type::Infer(_)) | None => None,
            Some(ty) => {
                let scope = self.scope.clone();
                Some(self.session.resolve_type(ty, &scope))
            }
        };
        let value = match (&e.init, &ascribed) {
            (Some(init), Some(ty)) => Some(self.expect(&init.expr, ty)),
            (Some(init), None) => Some(self.expr(&init.expr, None)),
            (None, _) => None,
        };
        let Some(name) = name else {
            return value.map(Statement::Evaluate);
        };
        let ty = match (&value, ascribed) {
            (_, Some(ty)) => ty,
            (Some(node), None) => match self.table.shallow(&node.ty) {
                Ty::Unit => {
                    self.error(&name, "this variable would hold `()`: the expression gives no value");
                    Ty::Error
                }
                // `let x = return;` is never reached.
                Ty::Never => Ty::Error,
                ty => ty,
            },
            (None, None) => self.table.fresh(VarKind::Any),
        };
        let local = self.local(&name.to_string(), ty, name);
        if self.record && written.is_none() {
            self.ascriptions.lets.insert(std::ptr::from_ref(&e.pat) as usize, local);
        }
        let span = self.session.span(&e.pat);
        Some(Statement::Let { local, value, span })
    }

    /// Names in a pattern that is refused get an entity, so that their uses say nothing more.
    fn declare_failed(&mut self, pattern: &syn::Pat) {
        struct Names(Vec<String>);
        impl<'ast> syn::visit::Visit<'ast> for Names {
            fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
                self.0.push(pattern.ident.to_string());
            }
        }
        let mut names = Names(Vec::new());
        syn::visit::Visit::visit_pat(&mut names, pattern);
        for name in names.0 {
            self.declare(&name, Entity::Failed);
        }
    }

    /// `let tile = &x;` is another name for a slice.
    fn alias(&mut self, name: &syn::Ident, e: &syn::ExprReference) -> Option<Statement> {
        let entity = match self.operand(peel_reference(&e.expr)) {
            Operand::Slice(slice) => Entity::Slice(slice),
            Operand::Place(_) | Operand::Value(_) => {
                self.error(
                    e,
                    "a variable cannot hold a reference, other than to a slice or a workgroup array: copy the value",
                );
                Entity::Failed
            }
        };
        self.declare(&name.to_string(), entity);
        None
    }

    /// `workgroup_array::<T>(length)`: one variable of the kernel.
    fn workgroup_array(&mut self, call: &syn::ExprCall, path: &syn::Path, name: &syn::Ident) -> Option<Slice> {
        if self.in_constant {
            self.error(call, "a constant cannot have workgroup memory");
            return None;
        }
        let arguments = path.segments.last().map(|segment| &segment.arguments);
        let written = match arguments {
            Some(syn::PathArguments::AngleBracketed(arguments)) => match arguments.args.first() {
                Some(syn::GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
                _ => None,
            },
            _ => None,
        };
        let Some(written) = written else {
            self.error(call, "write the type of its elements: `workgroup_array::<f32>(64)`");
            return None;
        };
        let scope = self.scope.clone();
        let (element, atomic) = match super::signature::atomic_inner(written) {
            Some(inner) => (self.session.resolve_type(inner, &scope), true),
            None => (self.session.resolve_type(written, &scope), false),
        };
        let element = self.table.full(&element).unwrap_or(Ty::Error);
        if atomic && !matches!(element, Ty::Scalar(Scalar::U32 | Scalar::I32) | Ty::Error) {
            self.error(written, "atomics are `Atomic<u32>` or `Atomic<i32>`");
            return None;
        }
        let held = matches!(element, Ty::Scalar(Scalar::Index) | Ty::Array(..))
            || super::items::is_element(self.session, &element);
        if !held {
            let found = self.describe(&element);
            self.error(written, format!("workgroup memory cannot hold `{found}`: it holds f32, i32, u32, f16, vectors and structs of them; a bool is kept as a u32"));
            return None;
        }
        let length = match call.args.iter().collect::<Vec<_>>().as_slice() {
            [length] => self.session.size(length, &scope)?,
            _ => {
                self.error(call, "`workgroup_array` takes the number of elements");
                return None;
            }
        };
        let length = self.table.length(&length)?;
        if length.literal() == Some(0) {
            self.error(&call.args, "a workgroup array has at least one element");
            return None;
        }
        let handle = self.session.ir_type(&element)?;
        let span = self.session.span(name);
        let taken: Vec<String> = self.session.module.workgroup.iter().map(|(_, v)| v.name.clone()).collect();
        let variable = self.session.module.workgroup.add(WorkgroupVariable {
            name: unique(&name.to_string(), taken.iter().map(String::as_str)),
            element: handle,
            length,
            atomic,
            span,
        });
        Some(Slice { origin: Origin::Workgroup(variable), element, atomic, writable: true, view: None })
    }

    pub(super) fn if_expression(&mut self, e: &syn::ExprIf, hint: Option<&Ty>) -> Node {
        let (condition, constant) = match peel(&e.cond) {
            syn::Expr::Const(condition) => {
                self.constant = true;
                let block = self.block(&condition.block, Some(&Ty::BOOL));
                self.constant = false;
                (self.constant_condition(block, condition), true)
            }
            condition => (self.expect(condition, &Ty::BOOL), false),
        };
        let accept = self.block(&e.then_branch, hint);
        let (reject, at): (Block, &dyn ToTokens) = match &e.else_branch {
            None => (Block { statements: Vec::new(), tail: None, ty: Ty::Unit }, &e.then_branch),
            Some((_, other)) => {
                let block = match &**other {
                    syn::Expr::Block(block) => self.block(&block.block, hint),
                    other => {
                        let node = self.expr(other, hint);
                        Block { ty: node.ty.clone(), statements: Vec::new(), tail: Some(node) }
                    }
                };
                (block, other)
            }
        };
        let ty = match (self.table.shallow(&accept.ty), self.table.shallow(&reject.ty)) {
            (Ty::Never, other) | (other, Ty::Never) => other,
            (a, b) if self.table.unify(&a, &b) => a,
            (a, b) => {
                let (a, b) = (self.describe(&a), self.describe(&b));
                let message = if e.else_branch.is_none() {
                    format!(
                        "this `if` gives `{a}`, so it needs an `else` that gives one too (or a `;` after its last expression)"
                    )
                } else {
                    format!("both branches must give one type: the first gives `{a}`, this one `{b}`")
                };
                return self.wrong(&at.to_token_stream(), message);
            }
        };
        self.node(Kind::If(Box::new(condition), Box::new(accept), Box::new(reject), constant), ty, e)
    }

    fn constant_condition(&mut self, block: Block, e: &syn::ExprConst) -> Node {
        let node = match block {
            Block { statements, tail: Some(node), .. } if statements.is_empty() => node,
            _ => return self.wrong(e, "the condition of an `if const` is one expression"),
        };
        let node = self.coerce(node, &Ty::BOOL, e);
        if !is_constant(&node) {
            return self.wrong(e, "the condition of an `if const` is made of `target::has(..)`, const generics, literals, constants, comparisons, `!`, `&&` and `||`");
        }
        node
    }

    pub(super) fn match_expression(&mut self, e: &syn::ExprMatch, hint: Option<&Ty>) -> Node {
        let selector = self.expr(&e.expr, None);
        let ty = self.known(&selector.ty, &e.expr);
        let fits = match &ty {
            Ty::Scalar(scalar) => *scalar == Scalar::Bool || scalar.is_integer(),
            Ty::Var(_) => self.table.kind(&ty) == Some(VarKind::Integer),
            Ty::Enum(_) | Ty::Error | Ty::Never => true,
            _ => false,
        };
        if !fits {
            let found = self.describe(&ty);
            self.error(&e.expr, format!("a `match` looks at integers, bools and enums, this is `{found}`: use `if`"));
        }
        if e.arms.is_empty() {
            return self.wrong(e, "a `match` has at least one arm");
        }
        let mut result = Ty::Never;
        let mut arms = Vec::new();
        let mut wrong = !fits;
        for arm in &e.arms {
            check_attributes(self.session, &arm.attrs);
            self.scopes.push(Default::default());
            let pattern = self.pattern(&arm.pat, &ty);
            wrong |= matches!(pattern, Pattern::Error);
            let expression = &*arm.body;
            let mut body = self.expr(expression, hint);
            self.scopes.pop();
            match self.table.shallow(&body.ty) {
                Ty::Never => {}
                found if self.table.shallow(&result) == Ty::Never => result = found,
                _ => {
                    let expected = result.clone();
                    body = self.coerce(body, &expected, expression);
                }
            }
            let span = self.session.span(&arm.pat);
            arms.push(Arm { pattern, body, span });
        }
        if wrong || ty == Ty::Error {
            let mut node = self.failed(e);
            if result == Ty::Unit {
                node.ty = Ty::Unit;
            }
            return node;
        }
        self.node(Kind::Match(Box::new(selector), arms), result, e)
    }

    fn pattern(&mut self, pattern: &syn::Pat, ty: &Ty) -> Pattern {
        match pattern {
            syn::Pat::Wild(_) => Pattern::Any(None),
            syn::Pat::Paren(inner) => self.pattern(&inner.pat, ty),
            syn::Pat::Or(or) => {
                let mut values = Vec::new();
                let mut any = false;
                for case in &or.cases {
                    match self.pattern(case, ty) {
                        Pattern::Values(more) => values.extend(more),
                        Pattern::Any(None) => any = true,
                        Pattern::Any(Some(_)) => {
                            self.error(case, "a name stands alone in its arm, not among others");
                            return Pattern::Error;
                        }
                        Pattern::Error => return Pattern::Error,
                    }
                }
                if any { Pattern::Any(None) } else { Pattern::Values(values) }
            }
            syn::Pat::Guard(guard) => {
                self.error(
                    &guard.guard,
                    "guards are not part of the kernel language (yet): write the `if` inside of the arm",
                );
                let _ = self.pattern(&guard.pat, ty);
                Pattern::Error
            }
            syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                let path = syn::Path::from(name.ident.clone());
                if self.session.bundle(&self.scope, &path).is_some() {
                    let path = syn::ExprPath { attrs: Vec::new(), qself: None, path };
                    return self.pattern_value(&syn::Expr::Path(path), ty);
                }
                let local = self.local(&name.ident.to_string(), ty.clone(), &name.ident);
                Pattern::Any(Some(local))
            }
            syn::Pat::Lit(literal) => self.pattern_value(&syn::Expr::Lit(literal.clone()), ty),
            syn::Pat::Path(path) => self.pattern_value(&syn::Expr::Path(path.clone()), ty),
            syn::Pat::Range(range) => {
                if !matches!(self.table.shallow(ty), Ty::Scalar(scalar) if scalar.is_integer())
                    && self.table.kind(ty) != Some(VarKind::Integer)
                {
                    self.error(pattern, "a range fits integers alone");
                    return Pattern::Error;
                }
                let start = match &range.start {
                    Some(start) => match self.pattern_number(start, ty) {
                        Some(value) => Some(value),
                        None => return Pattern::Error,
                    },
                    None => None,
                };
                let end = match &range.end {
                    Some(end) => match self.pattern_number(end, ty) {
                        Some(value) => match range.limits {
                            syn::RangeLimits::HalfOpen(_) => Some(value - 1),
                            syn::RangeLimits::Closed(_) => Some(value),
                        },
                        None => return Pattern::Error,
                    },
                    None => None,
                };
                if let (Some(start), Some(end)) = (start, end)
                    && start > end
                {
                    self.error(pattern, "this range is empty");
                    return Pattern::Error;
                }
                Pattern::Values(vec![(start, end)])
            }
            other => {
                self.error(other, "a pattern is a literal, a constant, an `Enum::Variant`, a range, `_`, or some of these with `|` between");
                self.declare_failed(other);
                Pattern::Error
            }
        }
    }

    fn pattern_value(&mut self, e: &syn::Expr, ty: &Ty) -> Pattern {
        match self.pattern_number(e, ty) {
            Some(value) => Pattern::Values(vec![(Some(value), Some(value))]),
            None => Pattern::Error,
        }
    }

    /// The number that a pattern means: of bools 0 and 1, of enums the discriminant.
    fn pattern_number(&mut self, e: &syn::Expr, ty: &Ty) -> Option<i64> {
        // A negative literal is one token here, which no expression has.
        if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) = e
            && value.base10_digits().starts_with('-')
        {
            let number = value.base10_digits().parse::<i64>().ok();
            if !self.table.unify(ty, &Ty::Scalar(Scalar::I32)) {
                let found = self.describe(ty);
                self.error(e, format!("`{found}` has no negative values"));
                return None;
            }
            return number;
        }
        let record = std::mem::replace(&mut self.record, false);
        let node = self.expect(e, ty);
        self.record = record;
        let value = constant_number(&node);
        if value.is_none() && !matches!(node.kind, Kind::Error) {
            self.error(e, "a pattern is a literal, a constant or an enum's variant");
        }
        value
    }

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
            None => self.local(&shown, ty.clone(), &e.pat),
        };
        if name.is_none() {
            // `_` is no name.
            if let Some(scope) = self.scopes.last_mut() {
                scope.clear();
            }
        }
        self.loops.push(Loop { unroll: range.unroll, breaks: false });
        let mut body = self.block(&e.body, Some(&Ty::Unit));
        self.loops.pop();
        self.scopes.pop();
        self.must_be_unit(&mut body, &e.body);
        // A counter that the body changes is a copy, made in each round.
        let local = if self.locals[counter].assigned {
            let span = self.locals[counter].span;
            let round = self.local(&shown, ty.clone(), &e.pat);
            if let Some(scope) = self.scopes.last_mut() {
                scope.remove(&shown);
            }
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

    fn must_be_unit(&mut self, body: &mut Block, at: &impl ToTokens) {
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
    fn range(&mut self, e: &syn::Expr) -> Option<Range> {
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
                    Ty::Scalar(scalar) => scalar.is_integer(),
                    Ty::Var(_) => self.table.kind(&ty) == Some(VarKind::Integer),
                    _ => false,
                };
                if !fits {
                    if ty != Ty::Error {
                        let found = self.describe(&ty);
                        self.error(range, format!("a range counts integers, this is `{found}`"));
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
        let mut body = self.block(&e.body, Some(&Ty::Unit));
        self.loops.pop();
        self.must_be_unit(&mut body, &e.body);
        self.node(Kind::While(Box::new(condition), Box::new(body)), Ty::Unit, e)
    }

    pub(super) fn loop_forever(&mut self, e: &syn::ExprLoop) -> Node {
        self.no_label(e.label.as_ref());
        self.loops.push(Loop { unroll: false, breaks: false });
        let mut body = self.block(&e.body, Some(&Ty::Unit));
        let breaks = self.loops.pop().is_some_and(|inner| inner.breaks);
        self.must_be_unit(&mut body, &e.body);
        let ty = if breaks { Ty::Unit } else { Ty::Never };
        self.node(Kind::Loop(Box::new(body)), ty, e)
    }

    fn leave(&mut self, label: Option<&syn::Lifetime>, word: &str, e: &impl ToTokens) -> bool {
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

    pub(super) fn return_value(&mut self, e: &syn::ExprReturn) -> Node {
        if self.loops.iter().any(|around| around.unroll) {
            return self.wrong(e, "`return` cannot leave an unrolled loop: use a plain `for`");
        }
        let result = self.result.clone();
        let value = match &e.expr {
            Some(value) => {
                let node = self.expect(value, &result);
                (result != Ty::Unit).then(|| Box::new(node))
            }
            None => {
                if !matches!(result, Ty::Unit | Ty::Error) {
                    let wanted = self.describe(&result);
                    return self.wrong(e, format!("this function gives `{wanted}`: `return` needs a value"));
                }
                None
            }
        };
        self.node(Kind::Return(value), Ty::Never, e)
    }
}

struct Range {
    start: Node,
    end: Node,
    step: Option<Node>,
    inclusive: bool,
    reversed: bool,
    unroll: bool,
    ty: Ty,
}

/// Whether the value is known when a variant of an instance is made.
fn is_constant(node: &Node) -> bool {
    match &node.kind {
        Kind::Error | Kind::Literal(_) | Kind::Integer(_) | Kind::Constant(_) | Kind::TargetHas(_) => true,
        Kind::Fixed(value) | Kind::Unary(_, value) => is_constant(value),
        Kind::Binary(_, left, right) | Kind::Logical(_, left, right) => is_constant(left) && is_constant(right),
        _ => false,
    }
}

/// The number that a constant is, as far as patterns need it.
fn constant_number(node: &Node) -> Option<i64> {
    match &node.kind {
        Kind::Integer(value) => i64::try_from(*value).ok(),
        Kind::Literal(crate::ir::Literal::I32(value)) => Some(i64::from(*value)),
        Kind::Literal(literal) => match literal.scalar() {
            Scalar::F32 | Scalar::F16 | Scalar::Generic(_) => None,
            _ => i64::try_from(literal.bits()).ok(),
        },
        Kind::Constant(size) => size.literal().map(i64::from),
        Kind::Fixed(value) | Kind::Convert(value) => constant_number(value),
        Kind::Binary(operator, left, right) => {
            use crate::ir::BinaryOperator as Op;
            let (left, right) = (constant_number(left)?, constant_number(right)?);
            match operator {
                Op::Add => left.checked_add(right),
                Op::Subtract => left.checked_sub(right),
                Op::Multiply => left.checked_mul(right),
                Op::Divide => left.checked_div(right),
                Op::Remainder => left.checked_rem(right),
                _ => None,
            }
        }
        Kind::Unary(crate::ir::UnaryOperator::Negate, value) => constant_number(value).map(|value| -value),
        _ => None,
    }
}
