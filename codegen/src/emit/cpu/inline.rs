//! Inlines functions that contain barriers or subgroup operations, on the IR, so that regions are found in the kernel's own body.
//!
//! Such functions are called only as the root of a `Let` or `Evaluate`. A by-value argument becomes an immutable local, a
//! by-reference one the caller's variable itself (the copy in and the copy out of the same variable cancel), and [`returns`] become stores to a local and jumps.

mod returns;

use std::borrow::Cow;

use crate::ir::{
    Block, CallArgument, Expression, ExpressionKind, Function, Handle, Local, Module, Place, Root, Scalar, Span,
    Statement, StatementKind, Type,
};

/// The kernel's body with every call of a collective function replaced by what the function does, and the module with the types of what that declares.
pub(super) fn entry<'m>(module: &'m Module, collective: &[bool]) -> (Cow<'m, Module>, Function) {
    let mut module = Cow::Borrowed(module);
    let boolean = Type::Scalar(Scalar::Bool);
    let known = module.types.iter().find(|(_, ty)| **ty == boolean).map(|(handle, _)| handle);
    let boolean = known.unwrap_or_else(|| module.to_mut().intern(boolean));
    let is_collective = |function: Handle<Function>| collective.get(function.index()).copied().unwrap_or(false);
    // Callees come before callers, so what is inlined is already flat.
    let mut flat: Vec<Option<Function>> = Vec::new();
    for (handle, function) in module.functions.iter() {
        let done = is_collective(handle).then(|| inline(function, &flat, boolean));
        flat.push(done);
    }
    let entry = inline(&module.entry, &flat, boolean);
    (module, entry)
}

fn inline(function: &Function, flat: &[Option<Function>], boolean: Handle<Type>) -> Function {
    let mut caller = function.clone();
    let body = std::mem::take(&mut caller.body);
    caller.body = block(&mut caller, body, flat, boolean);
    caller
}

fn block(caller: &mut Function, statements: Block, flat: &[Option<Function>], boolean: Handle<Type>) -> Block {
    let mut out = Block::new();
    for mut statement in statements {
        for inner in statement.kind.blocks_mut() {
            *inner = block(caller, std::mem::take(inner), flat, boolean);
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
                splice(caller, callee, &arguments, result, statement.span, &mut out, boolean);
            }
            None => out.push(statement),
        }
    }
    out
}

/// Appends what a call does.
fn splice(
    caller: &mut Function,
    callee: &Function,
    arguments: &[CallArgument],
    result: Option<Handle<Local>>,
    span: Span,
    out: &mut Block,
    boolean: Handle<Type>,
) {
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
    let value = callee.result.map(|ty| {
        caller.locals.add(Local { name: format!("{}_result", callee.name), ty, mutable: true, span: callee.span })
    });
    if let Some(local) = value {
        out.push(Statement { kind: StatementKind::Let { local, value: None }, span });
    }
    out.extend(returns::replaced(caller, callee, body, value, boolean, span));
    if let (Some(result), Some(value)) = (result, value) {
        let place = Place { root: Root::Local(value), path: Vec::new(), guarded: false };
        let ty: Handle<Type> = caller.locals[value].ty;
        let load = caller.expressions.add(Expression { kind: ExpressionKind::Load(place), ty, span });
        out.push(Statement { kind: StatementKind::Let { local: result, value: Some(load) }, span });
    }
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
