//! Inlines functions that contain barriers or subgroup operations, on the IR, so that regions are found in the kernel's own body.
//!
//! Such functions are called only as the root of a `Let` or `Evaluate`. A by-value argument becomes an immutable local, a
//! by-reference one the caller's variable itself (the copy in and the copy out of the same variable cancel), and a return becomes a store to a local; code after a branch
//! that returns moves into the other branch.

use crate::emit::EmitError;
use crate::ir::{
    Block, CallArgument, Expression, ExpressionKind, Function, Handle, Local, Module, Place, Root, Span, Statement,
    StatementKind, Type,
};

/// The kernel's body with every call of a collective function replaced by what the function does.
pub(super) fn entry(
    module: &Module,
    collective: &[bool],
    error: &dyn Fn(&str) -> EmitError,
) -> Result<Function, EmitError> {
    let is_collective = |function: Handle<Function>| collective.get(function.index()).copied().unwrap_or(false);
    // Callees come before callers, so what is inlined is already flat.
    let mut flat: Vec<Option<Function>> = Vec::new();
    for (handle, function) in module.functions.iter() {
        let done = if is_collective(handle) { Some(inline(function, &flat, error)?) } else { None };
        flat.push(done);
    }
    inline(&module.entry, &flat, error)
}

fn inline(
    function: &Function,
    flat: &[Option<Function>],
    error: &dyn Fn(&str) -> EmitError,
) -> Result<Function, EmitError> {
    let mut caller = function.clone();
    let body = std::mem::take(&mut caller.body);
    caller.body = block(&mut caller, body, flat, error)?;
    Ok(caller)
}

fn block(
    caller: &mut Function,
    statements: Block,
    flat: &[Option<Function>],
    error: &dyn Fn(&str) -> EmitError,
) -> Result<Block, EmitError> {
    let mut out = Block::new();
    for mut statement in statements {
        for inner in statement.kind.blocks_mut() {
            *inner = block(caller, std::mem::take(inner), flat, error)?;
        }
        let root = match &statement.kind {
            StatementKind::Let { local, value: Some(value) } => Some((Some(*local), *value)),
            StatementKind::Evaluate(value) => Some((None, *value)),
            _ => None,
        };
        let call = root.and_then(|(result, value)| match &caller.expressions[value].kind {
            ExpressionKind::Call { function, arguments } => {
                let callee = flat.get(function.index())?.as_ref()?;
                Some((result, callee, arguments.clone()))
            }
            _ => None,
        });
        match call {
            Some((result, callee, arguments)) => {
                splice(caller, callee, &arguments, result, statement.span, &mut out, error)?;
            }
            None => out.push(statement),
        }
    }
    Ok(out)
}

/// Appends what a call does.
fn splice(
    caller: &mut Function,
    callee: &Function,
    arguments: &[CallArgument],
    result: Option<Handle<Local>>,
    span: Span,
    out: &mut Block,
    error: &dyn Fn(&str) -> EmitError,
) -> Result<(), EmitError> {
    let expressions = caller.expressions.len();
    let locals = caller.locals.len();
    let shift_expression = |handle: Handle<Expression>| Handle::<Expression>::from_index(handle.index() + expressions);
    let shift_local = |handle: Handle<Local>| Handle::<Local>::from_index(handle.index() + locals);
    for (_, local) in callee.locals.iter() {
        caller.locals.add(local.clone());
    }
    // Where arguments live in the caller.
    let mut roots = Vec::new();
    for (argument, given) in callee.arguments.iter().zip(arguments) {
        roots.push(match given {
            CallArgument::Reference(root) => *root,
            CallArgument::Value(value) => {
                let local = caller.locals.add(Local {
                    name: argument.name.clone(),
                    ty: argument.ty,
                    mutable: false,
                    span: callee.span,
                });
                out.push(Statement { kind: StatementKind::Let { local, value: Some(*value) }, span });
                Root::Local(local)
            }
        });
    }
    let map_root = |root: Root| match root {
        Root::Local(local) => Root::Local(shift_local(local)),
        Root::Argument(index) => roots.get(index as usize).copied().unwrap_or(root),
        Root::Binding(_) | Root::Workgroup(_) => root,
    };
    for (_, expression) in callee.expressions.iter() {
        let mut copied = expression.clone();
        copied.kind.operands_mut(&mut |operand| *operand = shift_expression(*operand));
        match &mut copied.kind {
            ExpressionKind::Local(local) => *local = shift_local(*local),
            ExpressionKind::Argument(index) => {
                if let Some(Root::Local(local)) = roots.get(*index as usize) {
                    copied.kind = ExpressionKind::Local(*local);
                }
            }
            ExpressionKind::Load(place) => place.root = map_root(place.root),
            ExpressionKind::Call { arguments, .. } => {
                for argument in arguments {
                    if let CallArgument::Reference(root) = argument {
                        *root = map_root(*root);
                    }
                }
            }
            _ => {}
        }
        caller.expressions.add(copied);
    }
    let mut body = callee.body.clone();
    shift(&mut body, &shift_expression, &shift_local, &map_root);
    let returns = Returns { caller: &callee.name, error };
    let value = callee.result.map(|ty| {
        caller.locals.add(Local { name: format!("{}_result", callee.name), ty, mutable: true, span: callee.span })
    });
    if let Some(local) = value {
        out.push(Statement { kind: StatementKind::Let { local, value: None }, span });
    }
    out.extend(returns.tail(body, value)?);
    if let (Some(result), Some(value)) = (result, value) {
        let place = Place { root: Root::Local(value), path: Vec::new(), guarded: false };
        let ty: Handle<Type> = caller.locals[value].ty;
        let load = caller.expressions.add(Expression { kind: ExpressionKind::Load(place), ty, span });
        out.push(Statement { kind: StatementKind::Let { local: result, value: Some(load) }, span });
    }
    Ok(())
}

fn shift(
    block: &mut Block,
    expression: &dyn Fn(Handle<Expression>) -> Handle<Expression>,
    local: &dyn Fn(Handle<Local>) -> Handle<Local>,
    root: &dyn Fn(Root) -> Root,
) {
    for statement in block {
        statement.kind.operands_mut(&mut |operand| *operand = expression(*operand));
        match &mut statement.kind {
            StatementKind::Let { local: declared, .. } | StatementKind::For { local: declared, .. } => {
                *declared = local(*declared);
            }
            StatementKind::Subgroup { result, .. } => *result = local(*result),
            StatementKind::UniformLoad { result, place } => {
                *result = local(*result);
                place.root = root(place.root);
            }
            StatementKind::Atomic { result, place, .. } => {
                if let Some(result) = result {
                    *result = local(*result);
                }
                place.root = root(place.root);
            }
            StatementKind::Store { place, .. } => place.root = root(place.root),
            _ => {}
        }
        for inner in statement.kind.blocks_mut() {
            shift(inner, expression, local, root);
        }
    }
}

struct Returns<'a> {
    caller: &'a str,
    error: &'a dyn Fn(&str) -> EmitError,
}

impl Returns<'_> {
    /// The block with returns turned into stores to `value`; the block is the last thing that its function does.
    fn tail(&self, block: Block, value: Option<Handle<Local>>) -> Result<Block, EmitError> {
        let mut out = Block::new();
        let mut rest = block.into_iter();
        while let Some(statement) = rest.next() {
            let span = statement.span;
            match statement.kind {
                StatementKind::Return(result) => {
                    if let (Some(local), Some(result)) = (value, result) {
                        let place = Place { root: Root::Local(local), path: Vec::new(), guarded: false };
                        out.push(Statement { kind: StatementKind::Store { place, value: result }, span });
                    }
                    return Ok(out);
                }
                StatementKind::If { condition, mut accept, mut reject, constant }
                    if contains_return(&accept) || contains_return(&reject) =>
                {
                    let after: Block = rest.collect();
                    match (always_returns(&accept), always_returns(&reject)) {
                        (true, true) => {}
                        (true, false) => reject.extend(after),
                        (false, true) => accept.extend(after),
                        (false, false) if after.is_empty() => {}
                        (false, false) => {
                            return Err((self.error)(&format!(
                                "`{}` holds a barrier or subgroup operation and a return that only some ways through a \
                                 branch reach; put what follows the branch into its `else`",
                                self.caller
                            )));
                        }
                    }
                    let kind = StatementKind::If {
                        condition,
                        accept: self.tail(accept, value)?,
                        reject: self.tail(reject, value)?,
                        constant,
                    };
                    out.push(Statement { kind, span });
                    return Ok(out);
                }
                StatementKind::Switch { selector, mut cases, default }
                    if cases.iter().any(|case| contains_return(&case.body)) || contains_return(&default) =>
                {
                    let after: Block = rest.collect();
                    let all = cases.iter().all(|case| always_returns(&case.body)) && always_returns(&default);
                    if !all && !after.is_empty() {
                        return Err((self.error)(&format!(
                            "`{}` holds a barrier or subgroup operation and returns from some cases of a match",
                            self.caller
                        )));
                    }
                    for case in &mut cases {
                        case.body = self.tail(std::mem::take(&mut case.body), value)?;
                    }
                    let default = self.tail(default, value)?;
                    out.push(Statement { kind: StatementKind::Switch { selector, cases, default }, span });
                    return Ok(out);
                }
                kind => {
                    if kind.blocks().iter().any(|inner| contains_return(inner)) {
                        return Err((self.error)(&format!(
                            "`{}` holds a barrier or subgroup operation and returns from inside a loop",
                            self.caller
                        )));
                    }
                    out.push(Statement { kind, span });
                }
            }
        }
        Ok(out)
    }
}

fn contains_return(block: &Block) -> bool {
    let mut found = false;
    crate::ir::statements(block, &mut |statement| found |= matches!(statement.kind, StatementKind::Return(_)));
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
