//! Where buffers that a kernel writes may have been accessed before: barriers there order buffers, which costs caches, and others need not.
//!
//! Functions come before those that call them.

use crate::ir::{Block, ExpressionKind, Function, Handle, Root, StatementKind, statements};
use crate::lower::Lowered;
use crate::verify::places_of;

/// What is known of each function, in arena order.
pub(super) struct Touched {
    /// Whether it accesses such a buffer, itself or in a function that it calls.
    #[cfg_attr(not(feature = "spirv"), expect(dead_code, reason = "texts ask for the whole kernel alone"))]
    pub(super) accesses: Vec<bool>,
    /// Whether it may be called after such an access.
    #[cfg_attr(not(feature = "spirv"), expect(dead_code, reason = "texts ask for the whole kernel alone"))]
    pub(super) entered: Vec<bool>,
    /// Whether a barrier comes behind such an access anywhere.
    #[cfg_attr(
        not(any(feature = "wgsl", feature = "cuda")),
        expect(dead_code, reason = "SPIR-V asks for each function alone")
    )]
    pub(super) before_a_barrier: bool,
}

/// Whether a kernel writes a binding.
pub(super) fn is_written(lowered: &Lowered, binding: u32) -> bool {
    lowered.info.access.get(binding as usize).is_none_or(|access| access.writes())
}

/// Looks at every function of a kernel.
pub(super) fn find(lowered: &Lowered) -> Touched {
    let module = &lowered.module;
    let entered = vec![false; module.functions.len()];
    let mut search = Search { lowered, accesses: Vec::new(), entered, before_a_barrier: false };
    for (_, function) in module.functions.iter() {
        let accesses = search.is_accessed(function, &function.body);
        search.accesses.push(accesses);
    }
    search.enter(&module.entry, &module.entry.body, false);
    for (handle, function) in module.functions.iter().rev() {
        search.enter(function, &function.body, search.entered[handle.index()]);
    }
    Touched { accesses: search.accesses, entered: search.entered, before_a_barrier: search.before_a_barrier }
}

struct Search<'l> {
    lowered: &'l Lowered,
    accesses: Vec<bool>,
    entered: Vec<bool>,
    before_a_barrier: bool,
}

/// What a statement does by itself, without the blocks inside it.
#[derive(Default)]
struct Own {
    accesses: bool,
    calls: Vec<Handle<Function>>,
}

impl Search<'_> {
    fn is_root_written(&self, root: Root) -> bool {
        matches!(root, Root::Binding(binding) if is_written(self.lowered, binding))
    }

    fn own(&self, function: &Function, statement: &StatementKind) -> Own {
        let mut own = Own::default();
        statement.operands(&mut |operand| {
            function.tree(*operand, &mut |expression| match &function.expressions[expression].kind {
                ExpressionKind::Load(place) => own.accesses |= self.is_root_written(place.root),
                ExpressionKind::Call { function, .. } => own.calls.push(*function),
                _ => {}
            });
        });
        places_of(statement, &mut |place, _| own.accesses |= self.is_root_written(place.root));
        own
    }

    fn calls_access(&self, own: &Own) -> bool {
        own.calls.iter().any(|called| self.accesses[called.index()])
    }

    fn is_accessed(&self, function: &Function, block: &Block) -> bool {
        let mut found = false;
        statements(block, &mut |statement| {
            if !found {
                let own = self.own(function, &statement.kind);
                found = own.accesses || self.calls_access(&own);
            }
        });
        found
    }

    /// Notes how a block enters what it calls; says whether something is touched behind it.
    fn enter(&mut self, function: &Function, block: &Block, before: bool) -> bool {
        let mut touched = before;
        for statement in block {
            let own = self.own(function, &statement.kind);
            // What comes later in a loop comes before its next round.
            if let StatementKind::For { body, .. } | StatementKind::While { body, .. } | StatementKind::Loop { body } =
                &statement.kind
            {
                touched = touched || self.is_accessed(function, body);
            }
            // Of several calls any may come before another.
            let accessing = own.calls.iter().filter(|called| self.accesses[called.index()]).count();
            for called in &own.calls {
                let others = accessing - usize::from(self.accesses[called.index()]);
                self.entered[called.index()] |= touched || own.accesses || others > 0;
            }
            self.before_a_barrier |= touched
                && matches!(
                    statement.kind,
                    StatementKind::Barrier
                        | StatementKind::UniformLoad { .. }
                        | StatementKind::Asynchronous(_)
                        | StatementKind::Tile(_)
                );
            touched |= own.accesses || accessing > 0;
            let before_blocks = touched;
            for inner in statement.kind.blocks() {
                touched |= self.enter(function, inner, before_blocks);
            }
        }
        touched
    }
}
