//! How large types, workgroup memory and kernels may be: far more than devices run well, and little enough for whatever walks through them on the host.

use crate::diagnostic::Diagnostic;
use crate::ir::{Expression, ExpressionKind, Handle, Module, Span, Type, statements};

/// The most scalars of a type, with all that its structs and arrays hold: 256 KiB of words, where CUDA has 512 for an invocation and others have less.
pub(crate) const MOST_SCALARS: u64 = 1 << 16;
/// The most bytes of workgroup memory, many times what any device has: what runs a kernel on the host takes memory for it.
const MOST_WORKGROUP_BYTES: u32 = 16 << 20;
/// The most values that are computed in a kernel's text, scalar by scalar, with every call replaced by what the function does, as the evaluator and the CPU's code have it.
const MOST_VALUES: u64 = 1 << 22;

/// A type that is too large, told where the first value or element of one is.
pub(super) fn types(module: &Module) -> Option<Diagnostic> {
    let counts = all_scalars(module);
    let is_large = |ty: Handle<Type>| counts[ty.index()] > MOST_SCALARS;
    let (first, _) = module.types.iter().find(|(ty, _)| is_large(*ty))?;
    let bindings = module.bindings.iter().map(|binding| (binding.element, binding.span));
    let params = module.params.iter().map(|param| (param.ty, param.span));
    let workgroup = module.workgroup.iter().map(|(_, variable)| (variable.element, variable.span));
    let functions = super::functions(module).flat_map(|function| {
        let outside = function.arguments.iter().map(|argument| argument.ty).chain(function.result);
        let locals = function.locals.iter().map(|(_, local)| (local.ty, local.span));
        let values = function.expressions.iter().map(|(_, value)| (value.ty, value.span));
        outside.map(|ty| (ty, function.span)).chain(locals).chain(values)
    });
    let mut uses = bindings.chain(params).chain(workgroup).chain(functions);
    let (ty, at) = uses.find(|(ty, _)| is_large(*ty)).unwrap_or((first, Span::NONE));
    Some(Diagnostic::new(at, too_large(&super::type_name(module, &module.types[ty]), counts[ty.index()])))
}

/// What is said of a type of so many scalars.
pub(crate) fn too_large(name: &str, count: u64) -> String {
    format!("`{name}` is made of {count} scalars, where {MOST_SCALARS} are possible: keep them in a slice")
}

/// What workgroup memory is too much.
pub(super) fn workgroup(module: &Module) -> Option<Diagnostic> {
    let bytes = super::workgroup_bytes(module);
    let (_, variable) = module.workgroup.iter().next()?;
    (bytes > MOST_WORKGROUP_BYTES).then(|| {
        let shown = if bytes == u32::MAX { "4 GiB or more".to_owned() } else { format!("{bytes} bytes") };
        let message = format!(
            "`{}` uses {shown} of workgroup memory, where {MOST_WORKGROUP_BYTES} bytes are possible",
            module.name
        );
        Diagnostic::new(variable.span, message)
    })
}

/// Functions that call each other so often that the kernel is too long.
pub(super) fn calls(module: &Module) -> Vec<Diagnostic> {
    let counts = all_scalars(module);
    // Of each function, which calls those before it alone.
    let mut values: Vec<u64> = Vec::with_capacity(module.functions.len());
    for function in super::functions(module) {
        let mut total = 0u64;
        statements(&function.body, &mut |_| total += 1);
        function.live(&function.body, &mut |handle: Handle<Expression>| {
            let Expression { kind, ty, .. } = &function.expressions[handle];
            total = total.saturating_add(counts[ty.index()]);
            if let ExpressionKind::Call { function: callee, .. } = kind {
                total = total.saturating_add(values.get(callee.index()).copied().unwrap_or(0));
            }
        });
        if total > MOST_VALUES {
            let message = format!(
                "`{}` computes {total} values, those of the functions that it calls counted at each call, where {MOST_VALUES} are possible: put what is repeated into a loop",
                function.name
            );
            return vec![Diagnostic::new(function.span, message)];
        }
        values.push(total);
    }
    Vec::new()
}

/// How many scalars each type is made of.
fn all_scalars(module: &Module) -> Vec<u64> {
    let mut known = vec![None; module.types.len()];
    module.types.iter().map(|(ty, _)| scalars(module, ty, &mut known)).collect()
}

fn scalars(module: &Module, ty: Handle<Type>, known: &mut [Option<u64>]) -> u64 {
    if let Some(count) = known[ty.index()] {
        return count;
    }
    let count = match &module.types[ty] {
        Type::Scalar(_) | Type::Enum(_) => 1,
        Type::Vector { lanes, .. } => u64::from(*lanes),
        Type::Matrix(matrix) => matrix.shape().into_iter().map(u64::from).product(),
        Type::Array { element, length } => {
            scalars(module, *element, known).saturating_mul(u64::from(length.literal().unwrap_or(1)))
        }
        Type::Struct(handle) => {
            let fields = module.structs[*handle].fields.iter();
            fields.fold(0, |total: u64, (_, field)| total.saturating_add(scalars(module, *field, known)))
        }
    };
    known[ty.index()] = Some(count);
    count
}
