//! Statements and control flow.

use quote::ToTokens;

use super::ends::Placed;
use super::expressions::macro_message;
use super::infer::{Ty, VarKind};
use super::intrinsics::{self, Intrinsic};
use super::items::{check_attributes, inner_item};
use super::places::{Operand, peel, peel_reference};
use super::scope::{Entity, Infer};
use super::session::unique;
use super::tree::{Block, Kind, Node, Origin, Slice, Statement};
use crate::ir::{Scalar, WorkgroupVariable};

/// The parts of `let (a, b) = (x, y);`.
fn tuples(local: &syn::Local) -> Option<Vec<(&syn::Pat, &syn::Expr)>> {
    let syn::Pat::Tuple(pattern) = &local.pat else { return None };
    let syn::Expr::Tuple(value) = peel(&local.init.as_ref()?.expr) else { return None };
    let plain = local.attrs.is_empty() && pattern.elems.len() == value.elems.len();
    plain.then(|| pattern.elems.iter().zip(&value.elems).collect())
}

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
                syn::Stmt::Local(local) if let Some(pairs) = tuples(local) => {
                    statements.extend(self.let_tuple(&local.pat, &pairs));
                }
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
                syn::Stmt::Item(item) => self.error(statement, inner_item(item)),
                syn::Stmt::Macro(call) if let Some(node) = self.report(&call.mac) => {
                    statements.push(Statement::Evaluate(node));
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

    /// `let (a, b) = (x, y);`: all values are computed before the first name is there.
    fn let_tuple(&mut self, pattern: &syn::Pat, pairs: &[(&syn::Pat, &syn::Expr)]) -> Vec<Statement> {
        let values: Vec<Node> = pairs.iter().map(|(_, value)| self.expr(value, None)).collect();
        let (mut statements, mut locals) = (Vec::new(), Vec::new());
        for ((pattern, written), value) in pairs.iter().zip(values) {
            let name = match pattern {
                syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => &name.ident,
                syn::Pat::Wild(_) => {
                    locals.push(None);
                    statements.push(Statement::Evaluate(value));
                    continue;
                }
                other => {
                    self.error(*other, "in a `let` of several values, each part is a variable or `_`");
                    self.declare_failed(other);
                    continue;
                }
            };
            let ty = self.held(&value, name);
            let local = self.local(&name.to_string(), ty, name);
            self.begin(local, written);
            locals.push(Some(local));
            let span = self.session.span(*pattern);
            statements.push(Statement::Let { local, value: Some(value), span });
        }
        if self.record {
            self.ascriptions.tuples.insert(std::ptr::from_ref(pattern) as usize, locals);
        }
        statements
    }

    /// The type of a variable that is to hold a value.
    fn held(&mut self, value: &Node, name: &impl Placed) -> Ty {
        match self.table.shallow(&value.ty) {
            Ty::Unit => {
                self.error(name, "this variable would hold `()`: the expression gives no value");
                Ty::Error
            }
            // `let x = return;` is never reached.
            Ty::Never => Ty::Error,
            ty => ty,
        }
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
                    "a `let` names one variable, `_`, or as many variables as there are values, as in `let (a, b) = (x, y)`; other patterns are not part of the kernel language",
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
                && let Some(memory @ (Intrinsic::WorkgroupArray | Intrinsic::WorkgroupTile)) =
                    intrinsics::function_of_path(&path.path)
            {
                let entity = match memory {
                    Intrinsic::WorkgroupTile => self.workgroup_tile(call, &path.path, name).map(Entity::Tile),
                    _ => self.workgroup_array(call, &path.path, name).map(Entity::Slice),
                };
                let entity = entity.unwrap_or(Entity::Failed);
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
            (Some(node), None) => self.held(node, name),
            (None, None) => self.table.fresh(VarKind::Any),
        };
        let local = self.local(&name.to_string(), ty, name);
        if let Some(init) = &e.init {
            self.begin(local, &init.expr);
        }
        if self.record && written.is_none() {
            self.ascriptions.lets.insert(std::ptr::from_ref(&e.pat) as usize, local);
        }
        let span = self.session.span(&e.pat);
        Some(Statement::Let { local, value, span })
    }

    /// Names in a pattern that is refused get an entity, so that their uses say nothing more.
    pub(super) fn declare_failed(&mut self, pattern: &syn::Pat) {
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

    /// A block that runs under a condition: what an `if let`, which is refused, would name has an entity there.
    pub(super) fn block_under(&mut self, condition: &syn::Expr, block: &syn::Block, hint: Option<&Ty>) -> Block {
        struct Patterns<'ast>(Vec<&'ast syn::Pat>);
        impl<'ast> syn::visit::Visit<'ast> for Patterns<'ast> {
            fn visit_expr_let(&mut self, e: &'ast syn::ExprLet) {
                self.0.push(&e.pat);
            }

            // A `let` in there ends with its block.
            fn visit_block(&mut self, _: &'ast syn::Block) {}
        }
        let mut patterns = Patterns(Vec::new());
        syn::visit::Visit::visit_expr(&mut patterns, condition);
        self.scopes.push(Default::default());
        for pattern in patterns.0 {
            self.declare_failed(pattern);
        }
        let block = self.block(block, hint);
        self.scopes.pop();
        block
    }

    /// `let tile = &x;` is another name for a slice.
    fn alias(&mut self, name: &syn::Ident, e: &syn::ExprReference) -> Option<Statement> {
        let entity = match self.operand(peel_reference(&e.expr)) {
            Operand::Slice(slice) => Entity::Slice(slice),
            // The name of something wrong may have been that of a slice.
            Operand::Value(Node { kind: Kind::Error, .. }) if matches!(peel_reference(&e.expr), syn::Expr::Path(_)) => {
                Entity::Failed
            }
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
        let fits = |scalar: Scalar| crate::ir::AtomicFunction::Load.takes(scalar);
        if atomic && !matches!(element, Ty::Scalar(scalar) if fits(scalar)) && element != Ty::Error {
            self.error(written, "atomics are `Atomic<T>` of u32, i32, u64, i64 and f32");
            return None;
        }
        let held = matches!(element, Ty::Scalar(Scalar::Index) | Ty::Array(..)) || super::items::is_element(&element);
        if !held {
            let found = self.describe(&element);
            self.error(written, format!("workgroup memory cannot hold `{found}`: it holds numbers, vectors and structs of them; a bool is kept as a u32"));
            return None;
        }
        let length = match call.args.iter().collect::<Vec<_>>().as_slice() {
            [length] => self.session.workgroup_size(length, &scope)?,
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
            exact: None,
            atomic,
            tile: None,
            span,
        });
        self.arrays.insert(variable);
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
        let accept = self.block_under(&e.cond, &e.then_branch, hint);
        let (reject, at): (Block, &dyn Placed) = match &e.else_branch {
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

    pub(super) fn return_value(&mut self, e: &syn::ExprReturn) -> Node {
        if self.loops.iter().any(|around| around.unroll) {
            return self.wrong(e, "`return` cannot leave an unrolled loop: use a plain `for`");
        }
        if self.around.is_some() {
            let node = self.wrong(e, "a closure ends with its value: `return` is not part of closures in kernels");
            return Node { ty: Ty::Never, ..node };
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

/// Whether the value is known when a variant of an instance is made.
fn is_constant(node: &Node) -> bool {
    match &node.kind {
        Kind::Error | Kind::Literal(_) | Kind::Integer(_) | Kind::TargetHas(_) => true,
        Kind::Constant(size) => !size.is_specialised(),
        Kind::Fixed(value) | Kind::Unary(_, value) => is_constant(value),
        Kind::Binary(_, left, right) | Kind::Logical(_, left, right) => is_constant(left) && is_constant(right),
        _ => false,
    }
}
