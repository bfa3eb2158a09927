//! Dropping functions that are no longer called.

use crate::ir::{Arena, ExpressionKind, Function, Handle, Module};

/// Keeps the functions that the kernel reaches, in their order.
pub fn prune(module: &mut Module) {
    let mut reached = vec![false; module.functions.len()];
    mark(module, &module.entry, &mut reached);
    if reached.iter().all(|reached| *reached) {
        return;
    }
    let mut old = std::mem::take(&mut module.functions);
    let mut kept = Arena::new();
    let mut places: Vec<Option<Handle<Function>>> = vec![None; old.len()];
    for (handle, function) in old.iter_mut() {
        if reached[handle.index()] {
            let mut function = std::mem::take(function);
            redirect(&mut function, &places);
            places[handle.index()] = Some(kept.add(function));
        }
    }
    redirect(&mut module.entry, &places);
    module.functions = kept;
}

fn mark(module: &Module, function: &Function, reached: &mut [bool]) {
    let mut callees = Vec::new();
    function.live(&function.body, &mut |expression| {
        if let ExpressionKind::Call { function, .. } = function.expressions[expression].kind {
            callees.push(function);
        }
    });
    for callee in callees {
        if !std::mem::replace(&mut reached[callee.index()], true) {
            mark(module, &module.functions[callee], reached);
        }
    }
}

/// Points calls at where functions are now; all that are called have a place.
fn redirect(function: &mut Function, places: &[Option<Handle<Function>>]) {
    for (_, expression) in function.expressions.iter_mut() {
        if let ExpressionKind::Call { function, .. } = &mut expression.kind
            && let Some(place) = places.get(function.index()).copied().flatten()
        {
            *function = place;
        }
    }
}
