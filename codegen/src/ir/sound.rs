//! Whether a module that was read from bytes holds together: everything that it refers to is there, nothing is made of itself, and nothing is nested deeper than walks of it can follow.
//!
//! What is made by the front end or by [`super::Builder`] is so from the beginning, and every later stage relies on it. Whether the module obeys the rules of the language is another
//! question, which [`crate::verify`] answers.

use super::arena::{Arena, Handle};
use super::expression::{CallArgument, Expression, ExpressionKind, Place, Root};
use super::matrix::MatrixOperation;
use super::module::{Function, Module};
use super::statement::{Statement, StatementKind};
use super::tile::TileOperation;
use super::types::{Size, Type};
use super::walk::statements;

/// Types within each other, and expressions.
const MOST_DEEP: usize = 1024;
/// Expressions of a tree, or scalars of a type: a file of some kilobytes could say that there are 2^1000.
const MOST: u64 = 1 << 26;

/// Whether it does.
pub(super) fn holds_together(module: &Module) -> bool {
    types_are_sound(module)
        && module.bindings.iter().all(|binding| has(&module.types, binding.element))
        && module.params.iter().all(|param| has(&module.types, param.ty))
        && module.workgroup.iter().all(|(_, variable)| has(&module.types, variable.element))
        && module.functions.iter().enumerate().all(|(position, (_, function))| is_sound(module, function, position))
        && is_sound(module, &module.entry, module.functions.len())
}

fn has<T>(arena: &Arena<T>, handle: Handle<T>) -> bool {
    handle.index() < arena.len()
}

/// Whether types are there, none is in itself, and none is too large.
fn types_are_sound(module: &Module) -> bool {
    let mut known: Vec<Option<(usize, u64)>> = vec![None; module.types.len()];
    for (first, _) in module.types.iter() {
        // What is being looked at, outermost first; a type that stands here already is in itself.
        let mut open = vec![first];
        while let Some(handle) = open.last().copied() {
            if known[handle.index()].is_some() {
                open.pop();
                continue;
            }
            let Some((parts, count)) = parts(module, &module.types[handle]) else { return false };
            let (mut depth, mut scalars, mut unknown) = (0, 0u64, None);
            for part in &parts {
                match known.get(part.index()) {
                    None => return false,
                    Some(Some((inner, own))) => {
                        depth = depth.max(inner + 1);
                        scalars = scalars.saturating_add(*own);
                    }
                    Some(None) => unknown = Some(*part),
                }
            }
            match unknown {
                Some(part) if open.contains(&part) || open.len() > MOST_DEEP => return false,
                Some(part) => open.push(part),
                None => {
                    let scalars = if parts.is_empty() { 1 } else { scalars.saturating_mul(count) };
                    if depth > MOST_DEEP || scalars > MOST {
                        return false;
                    }
                    known[handle.index()] = Some((depth, scalars));
                    open.pop();
                }
            }
        }
    }
    module.structs.iter().all(|(_, item)| item.fields.iter().all(|(_, field)| has(&module.types, *field)))
}

/// The types of which one is made, and how often.
fn parts(module: &Module, ty: &Type) -> Option<(Vec<Handle<Type>>, u64)> {
    Some(match ty {
        Type::Scalar(_) | Type::Vector { .. } | Type::Matrix(_) => (Vec::new(), 1),
        Type::Array { element, length } => {
            let count = if let Size::Literal(count) = length { u64::from(*count) } else { 1 };
            (vec![*element], count)
        }
        Type::Struct(handle) => (module.structs.get(*handle)?.fields.iter().map(|(_, field)| *field).collect(), 1),
        Type::Enum(handle) => {
            module.enums.get(*handle)?;
            (Vec::new(), 1)
        }
    })
}

/// Whether a function is, which may call those before that position.
fn is_sound(module: &Module, function: &Function, position: usize) -> bool {
    let is_type = |ty: Handle<Type>| has(&module.types, ty);
    let is_root = |root: Root| match root {
        Root::Binding(binding) => (binding as usize) < module.bindings.len(),
        Root::Workgroup(variable) => has(&module.workgroup, variable),
        Root::Local(local) => has(&function.locals, local),
        Root::Argument(argument) => (argument as usize) < function.arguments.len(),
    };
    let is_there = |kind: &ExpressionKind| match kind {
        ExpressionKind::GenericConstant(generic) => (*generic as usize) < module.generics.len(),
        ExpressionKind::Param(param) => (*param as usize) < module.params.len(),
        ExpressionKind::Length(binding)
        | ExpressionKind::ViewExtent { binding, .. }
        | ExpressionKind::ViewStride { binding, .. } => (*binding as usize) < module.bindings.len(),
        ExpressionKind::Argument(argument) => (*argument as usize) < function.arguments.len(),
        ExpressionKind::Local(local) => has(&function.locals, *local),
        ExpressionKind::Load(place) => is_root(place.root),
        ExpressionKind::Call { function: callee, arguments } => {
            let is_sound = |argument: &CallArgument| match argument {
                CallArgument::Value(_) => true,
                CallArgument::Reference(root) => is_root(*root),
            };
            callee.index() < position && arguments.iter().all(is_sound)
        }
        ExpressionKind::MatrixLength(ty) => is_type(*ty),
        _ => true,
    };
    let mut sizes: Vec<(usize, u64)> = Vec::with_capacity(function.expressions.len());
    for (_, Expression { kind, ty, .. }) in function.expressions.iter() {
        let (mut depth, mut size, mut operands_are_before) = (0, 1u64, true);
        kind.operands(&mut |operand| match sizes.get(operand.index()) {
            Some((inner, own)) => {
                depth = depth.max(inner + 1);
                size = size.saturating_add(*own);
            }
            None => operands_are_before = false,
        });
        if !operands_are_before || depth > MOST_DEEP || size > MOST || !is_type(*ty) || !is_there(kind) {
            return false;
        }
        sizes.push((depth, size));
    }
    let mut is_sound = function.arguments.iter().all(|argument| is_type(argument.ty))
        && function.locals.iter().all(|(_, local)| is_type(local.ty))
        && function.result.is_none_or(is_type);
    statements(&function.body, &mut |statement| {
        statement.kind.operands(&mut |operand| is_sound &= has(&function.expressions, *operand));
        is_sound &= statement.kind.declares().is_none_or(|local| has(&function.locals, local));
        is_sound &= roots(statement).into_iter().all(is_root);
        if let StatementKind::Tile(operation) = &statement.kind {
            is_sound &= operation.tiles().into_iter().all(|tile| has(&module.workgroup, tile));
        }
    });
    is_sound
}

/// The variables that a statement itself touches.
fn roots(statement: &Statement) -> Vec<Root> {
    let of = |places: &[&Place]| places.iter().map(|place| place.root).collect();
    match &statement.kind {
        StatementKind::Store { place, .. }
        | StatementKind::UniformLoad { place, .. }
        | StatementKind::Atomic { place, .. }
        | StatementKind::Matrix {
            operation: MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. },
            ..
        } => of(&[place]),
        StatementKind::Asynchronous(super::Asynchronous::Copy { to, from, .. }) => of(&[to, from]),
        StatementKind::Tile(operation) => match operation {
            TileOperation::Copy { from, .. } => vec![*from],
            TileOperation::Multiply { sums, .. } => of(&[sums]),
            TileOperation::Finish { sums } => sums.iter().map(|place| place.root).collect(),
            TileOperation::BulkCopy { .. } => Vec::new(),
        },
        _ => Vec::new(),
    }
}
