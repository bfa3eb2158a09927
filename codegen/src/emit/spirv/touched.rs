//! Where buffers that a kernel writes may have been accessed before: barriers there order buffers, which costs caches, and others need not.
//!
//! Functions come before those that call them.

use crate::ir::{Block, ExpressionKind, Function, Handle, Module as Ir, Root, StatementKind, statements};
use crate::verify::places_of;

/// What is known of each function, in arena order.
pub(super) struct Touched {
    /// Whether it accesses such a buffer, itself or in a function that it calls.
    pub(super) accesses: Vec<bool>,
    /// Whether it may be called after such an access.
    pub(super) entered: Vec<bool>,
}

/// Looks at every function of a kernel that writes the bindings of which `is_written` says so.
pub(super) fn find(module: &Ir, is_written: &dyn Fn(u32) -> bool) -> Touched {
    let mut search = Search { is_written, accesses: Vec::new(), entered: vec![false; module.functions.len()] };
    for (_, function) in module.functions.iter() {
        let accesses = search.is_accessed(function, &function.body);
        search.accesses.push(accesses);
    }
    search.enter(&module.entry, &module.entry.body, false);
    for (handle, function) in module.functions.iter().rev() {
        search.enter(function, &function.body, search.entered[handle.index()]);
    }
    Touched { accesses: search.accesses, entered: search.entered }
}

struct Search<'w> {
    is_written: &'w dyn Fn(u32) -> bool,
    accesses: Vec<bool>,
    entered: Vec<bool>,
}

/// What a statement does by itself, without the blocks inside it.
#[derive(Default)]
struct Own {
    accesses: bool,
    calls: Vec<Handle<Function>>,
}

impl Search<'_> {
    fn is_root_written(&self, root: Root) -> bool {
        matches!(root, Root::Binding(binding) if (self.is_written)(binding))
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
            let own = self.own(function, &statement.kind);
            found |= own.accesses || self.calls_access(&own);
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
                touched |= self.is_accessed(function, body);
            }
            let calls_access = self.calls_access(&own);
            // Of several calls any may come before another.
            let before_calls = touched || own.accesses || own.calls.len() > 1 && calls_access;
            for called in &own.calls {
                self.entered[called.index()] |= before_calls;
            }
            touched |= own.accesses || calls_access;
            let before_blocks = touched;
            for inner in statement.kind.blocks() {
                touched |= self.enter(function, inner, before_blocks);
            }
        }
        touched
    }
}
