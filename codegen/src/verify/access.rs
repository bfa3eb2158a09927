//! What a kernel does with memory: how each binding is used, how wide, and whether workgroups keep out of each other's way.

use super::KernelInfo;
use crate::artefact::Access;
use crate::ir::{
    Asynchronous, BindingKind, CallArgument, ExpressionKind, Function, MatrixOperation, Module, Place, Projection,
    Root, StatementKind, TileOperation, statements,
};
use crate::layout;

/// How memory is used.
pub struct Uses {
    /// For each binding.
    pub access: Vec<Access>,
    /// For each binding, the lanes of the widest access.
    pub vector: Vec<u32>,
    /// For each workgroup variable, likewise.
    pub workgroup_vector: Vec<u32>,
    /// For each binding, the elements of the largest piece that is copied from it asynchronously, 0 if none is.
    pub copied: Vec<u32>,
    /// For each workgroup variable, likewise of what is copied to it.
    pub workgroup_copied: Vec<u32>,
}

/// What one function does, without what it calls.
#[derive(Default)]
struct Counts {
    read: bool,
    written: bool,
}

/// Calls `visit` with every place that a function reads or writes (`true`), in its body.
pub fn places(function: &Function, visit: &mut dyn FnMut(&Place, bool)) {
    function.live(&function.body, &mut |expression| {
        if let ExpressionKind::Load(place) = &function.expressions[expression].kind {
            visit(place, false);
        }
    });
    statements(&function.body, &mut |statement| places_of(&statement.kind, visit));
}

/// Calls `visit` with the places that a statement reads or writes (`true`) by itself, not in its operands and blocks.
pub fn places_of(kind: &StatementKind, visit: &mut dyn FnMut(&Place, bool)) {
    match kind {
        StatementKind::Store { place, .. } => visit(place, true),
        StatementKind::UniformLoad { place, .. } => visit(place, false),
        StatementKind::Matrix { operation, .. } => match operation {
            MatrixOperation::Load { place, .. } => visit(place, false),
            MatrixOperation::Store { place, .. } => visit(place, true),
            MatrixOperation::MultiplyAdd { .. } => {}
        },
        StatementKind::Atomic { place, .. } => {
            visit(place, false);
            visit(place, true);
        }
        StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) => {
            visit(to, true);
            visit(from, false);
        }
        StatementKind::Tile(operation) => match operation {
            TileOperation::Copy { from, .. } => visit(&Place { root: *from, path: Vec::new(), guarded: false }, false),
            TileOperation::Multiply { sums, .. } => {
                visit(sums, false);
                visit(sums, true);
            }
            // The call beside it reads what it reads.
            TileOperation::BulkCopy { .. } | TileOperation::Finish { .. } => {}
        },
        _ => {}
    }
}

pub fn find(module: &Module) -> Uses {
    let mut counts: Vec<Counts> = module.bindings.iter().map(|_| Counts::default()).collect();
    let mut vector = vec![1; module.bindings.len()];
    let mut workgroup_vector = vec![1; module.workgroup.len()];
    let mut copied = vec![0; module.bindings.len()];
    let mut workgroup_copied = vec![0; module.workgroup.len()];
    for function in super::functions(module) {
        statements(&function.body, &mut |statement| {
            if let StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }) = &statement.kind {
                let count = crate::copies::number(module, function, *count).unwrap_or(1);
                let (Root::Workgroup(variable), Root::Binding(binding)) = (to.root, from.root) else { return };
                let (variable, binding) = (variable.index(), binding as usize);
                copied[binding] = count.max(copied[binding]);
                workgroup_copied[variable] = count.max(workgroup_copied[variable]);
                // Where it is no copy by itself, it is loads and stores of vectors.
                if crate::copies::in_vectors(&module.types[module.bindings[binding].element]) {
                    vector[binding] = count.min(4).max(vector[binding]);
                    workgroup_vector[variable] = count.min(4).max(workgroup_vector[variable]);
                }
            }
        });
        places(function, &mut |place, written| {
            let lanes = match place.path.first() {
                Some(Projection::Vector { lanes, .. }) => u32::from(*lanes),
                _ => 1,
            };
            match place.root {
                Root::Binding(binding) => {
                    let binding = binding as usize;
                    counts[binding].written |= written;
                    counts[binding].read |= !written;
                    vector[binding] = lanes.max(vector[binding]);
                }
                Root::Workgroup(variable) => {
                    let variable = variable.index();
                    workgroup_vector[variable] = lanes.max(workgroup_vector[variable]);
                }
                Root::Local(_) | Root::Argument(_) => {}
            }
        });
    }
    let access = module
        .bindings
        .iter()
        .zip(&counts)
        .map(|(binding, counts)| match binding.kind {
            BindingKind::Shared => Access::Read,
            BindingKind::Atomic => Access::Atomic,
            BindingKind::Mutable if counts.read => Access::ReadWrite,
            BindingKind::Mutable => Access::Write,
        })
        .collect();
    Uses { access, vector, workgroup_vector, copied, workgroup_copied }
}

/// Bytes of workgroup memory, each variable aligned to 16 bytes as targets do.
pub fn workgroup_bytes(module: &Module) -> u32 {
    module.workgroup.iter().fold(0u32, |total, (_, variable)| {
        let size = layout::of(module, variable.element).map_or(0, |layout| layout.size);
        let bytes = size.saturating_mul(variable.length.literal().unwrap_or(0));
        total.saturating_add(bytes.checked_next_multiple_of(16).unwrap_or(u32::MAX))
    })
}

/// For each function, whether it is collective, and whether it has effects, by itself or through what it calls.
pub(crate) fn function_facts(module: &Module) -> (Vec<bool>, Vec<bool>) {
    let (mut collective, mut effects) = (Vec::<bool>::new(), Vec::<bool>::new());
    // Whether all that a function writes are its by-reference arguments.
    let mut references = Vec::<bool>::new();
    for (_, function) in module.functions.iter() {
        let (mut waits, mut writes, mut only_references) = (false, false, true);
        statements(&function.body, &mut |statement| {
            only_references &= writes_only_variables(&statement.kind);
            match &statement.kind {
                StatementKind::Barrier | StatementKind::UniformLoad { .. } | StatementKind::Subgroup { .. } => {
                    waits = true;
                }
                StatementKind::Matrix { operation, .. } => {
                    waits = true;
                    writes |= matches!(operation, MatrixOperation::Store { .. });
                }
                StatementKind::Store { place, .. } => writes |= !matches!(place.root, Root::Local(_)),
                StatementKind::Atomic { function, .. } if *function != crate::ir::AtomicFunction::Load => {
                    writes = true;
                }
                // Reports are effects too: a function that makes them is called for them.
                StatementKind::Asynchronous(_) | StatementKind::Report(_) => writes = true,
                StatementKind::Tile(operation) => {
                    waits = true;
                    writes |= matches!(operation, TileOperation::Copy { .. }) || in_arguments(operation);
                }
                // Where it stands is what it does.
                kind => writes |= kind.orders_memory(),
            }
        });
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Call { function: callee, arguments } = &function.expressions[expression].kind {
                waits |= collective.get(callee.index()).copied().unwrap_or(true);
                let callee_only = references.get(callee.index()).copied().unwrap_or(false);
                only_references &= callee_only;
                // A callee that writes its by-reference arguments writes the caller's locals, which is the caller's own affair, unless
                // the caller hands on an argument of its own.
                let hands_on =
                    arguments.iter().any(|argument| matches!(argument, CallArgument::Reference(Root::Argument(_))));
                let writes_more = effects.get(callee.index()).copied().unwrap_or(true) && !callee_only;
                writes |= writes_more || hands_on;
            }
        });
        collective.push(waits);
        effects.push(writes);
        references.push(only_references);
    }
    (collective, effects)
}

/// Whether all that a statement by itself writes are variables of the function and its by-reference arguments.
fn writes_only_variables(statement: &StatementKind) -> bool {
    match statement {
        StatementKind::Store { place, .. } => matches!(place.root, Root::Local(_) | Root::Argument(_)),
        StatementKind::Matrix { operation: MatrixOperation::Store { .. }, .. }
        | StatementKind::Asynchronous(_)
        | StatementKind::Report(_)
        | StatementKind::Tile(TileOperation::Copy { .. }) => false,
        StatementKind::Atomic { function, .. } if *function != crate::ir::AtomicFunction::Load => false,
        kind => !kind.orders_memory(),
    }
}

/// Whether a product is added to what the caller has.
fn in_arguments(operation: &TileOperation) -> bool {
    matches!(operation, TileOperation::Multiply { sums: Place { root: Root::Argument(_), .. }, .. })
}

impl KernelInfo {
    /// Invocations of a workgroup.
    pub const fn invocations(&self) -> u32 {
        self.workgroup_size[0] * self.workgroup_size[1] * self.workgroup_size[2]
    }

    /// How many workgroups, one behind the other in the grid, may run at once with what is known of [`KernelInfo::disjoint`] bindings relied on, in a launch with that parameter block.
    #[must_use]
    pub fn at_once(&self, params: &[u8]) -> u64 {
        crate::share::at_once(&self.share, params)
    }
}
