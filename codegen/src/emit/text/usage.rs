//! What each function uses of the kernel's surroundings, itself or through what it calls: languages without such globals pass it on
//! as arguments.

use std::collections::BTreeSet;

use crate::artefact::GridKind;
use crate::ir::{
    Asynchronous, Builtin, CallArgument, ExpressionKind, Function, Handle, MatrixOperation, Place, Root, StatementKind,
    statements,
};
use crate::lower::Lowered;

/// Surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Positions of bindings.
    pub bindings: BTreeSet<u32>,
    /// Positions of workgroup variables.
    pub workgroup: BTreeSet<usize>,
    /// Whether it uses the parameter block, for the author's parameters, for lengths or for guards.
    pub params: bool,
    /// Positions of builtins in [`Builtin::ALL`].
    builtins: BTreeSet<usize>,
}

impl Resources {
    /// The builtins, in the order of [`Builtin::ALL`].
    pub fn builtins(&self) -> impl Iterator<Item = (Builtin, &'static str)> {
        self.builtins.iter().map(|index| Builtin::ALL[*index])
    }

    /// Whether it uses a builtin.
    pub fn uses(&self, builtin: Builtin) -> bool {
        self.builtins().any(|(known, _)| known == builtin)
    }

    /// What an access of a place uses, its indices aside.
    pub fn of_root(root: Root) -> Self {
        let mut resources = Self::default();
        match root {
            Root::Binding(binding) => {
                resources.bindings.insert(binding);
                resources.params = true;
            }
            Root::Workgroup(variable) => {
                resources.workgroup.insert(variable.index());
            }
            Root::Local(_) | Root::Argument(_) => {}
        }
        resources
    }

    fn add(&mut self, other: &Self) {
        self.bindings.extend(&other.bindings);
        self.workgroup.extend(&other.workgroup);
        self.builtins.extend(&other.builtins);
        self.params |= other.params;
    }

    fn add_place(&mut self, place: &Place) {
        self.add(&Self::of_root(place.root));
    }
}

/// The surroundings of each function, and those of the entry.
pub fn of_module(lowered: &Lowered) -> (Vec<Resources>, Resources) {
    let mut functions: Vec<Resources> = Vec::new();
    for (_, function) in lowered.module.functions.iter() {
        let resources = of_function(lowered, function, &functions);
        functions.push(resources);
    }
    let mut entry = of_function(lowered, &lowered.module.entry, &functions);
    entry.bindings = (0..lowered.module.bindings.len() as u32).collect();
    (functions, entry)
}

/// The functions that the entry calls, directly or not.
pub fn called(lowered: &Lowered) -> BTreeSet<usize> {
    fn visit(lowered: &Lowered, function: &Function, known: &mut BTreeSet<usize>) {
        let mut direct = BTreeSet::new();
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Call { function, .. } = &function.expressions[expression].kind {
                direct.insert(function.index());
            }
        });
        for callee in direct {
            if known.insert(callee) {
                visit(lowered, &lowered.module.functions[Handle::from_index(callee)], known);
            }
        }
    }
    let mut known = BTreeSet::new();
    visit(lowered, &lowered.module.entry, &mut known);
    known
}

fn of_function(lowered: &Lowered, function: &Function, before: &[Resources]) -> Resources {
    let mut resources = Resources::default();
    function.live(&function.body, &mut |expression| match &function.expressions[expression].kind {
        ExpressionKind::Param(_)
        | ExpressionKind::Length(_)
        | ExpressionKind::ViewExtent { .. }
        | ExpressionKind::ViewStride { .. } => resources.params = true,
        ExpressionKind::Builtin(Builtin::GroupCount) if lowered.info.grid == GridKind::Linear => {
            resources.params = true;
        }
        ExpressionKind::Builtin(builtin) => {
            let position = Builtin::ALL.iter().position(|(known, _)| known == builtin);
            resources.builtins.extend(position);
        }
        ExpressionKind::Load(place) => resources.add_place(place),
        ExpressionKind::Call { function, arguments } => {
            if let Some(callee) = before.get(function.index()) {
                resources.add(callee);
            }
            for argument in arguments {
                if let CallArgument::Reference(root) = argument {
                    resources.add(&Resources::of_root(*root));
                }
            }
        }
        _ => {}
    });
    statements(&function.body, &mut |statement| match &statement.kind {
        StatementKind::Store { place, .. }
        | StatementKind::UniformLoad { place, .. }
        | StatementKind::Atomic { place, .. }
        | StatementKind::Matrix {
            operation: MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. },
            ..
        } => resources.add_place(place),
        StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) => {
            resources.add_place(to);
            resources.add_place(from);
        }
        StatementKind::Tile(operation) => {
            for tile in operation.tiles() {
                resources.add(&Resources::of_root(Root::Workgroup(tile)));
            }
        }
        _ => {}
    });
    resources
}
