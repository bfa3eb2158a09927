//! Asynchronous copies: `copy_async(&mut tile, at, x, first, count)`, `async_commit()` and `async_wait(groups)`.

use super::build::{Build, indices};
use super::effects::is_fixed;
use super::infer::Ty;
use super::places::{Operand, peel_reference};
use super::scope::Infer;
use super::tree::{Asynchronous, Kind, Node, Origin, Place, Projection, Root, Slice};
use crate::ir::{self, StatementKind};

impl Infer<'_> {
    /// A call of one of the functions.
    pub(super) fn asynchronous(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let kind = match name {
            "async_commit" => {
                let Some([]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                Asynchronous::Commit
            }
            "async_wait" => {
                let Some([groups]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                match self.constant_number(groups) {
                    Some(groups) => Asynchronous::Wait(groups),
                    None => return self.failed(e),
                }
            }
            _ => {
                let Some([to, at, from, first, count]) = self.arguments(e, name) else {
                    return self.failed(e);
                };
                let target = self.copied(to, true, name);
                let source = self.copied(from, false, name);
                let (at, first) = (self.index_argument(at), self.index_argument(first));
                let count = self.constant_number(count);
                let (Some(target), Some(source), Some(count)) = (target, source, count) else {
                    return self.failed(e);
                };
                if !self.table.unify(&source.element, &target.element) {
                    let (wanted, found) = (self.describe(&target.element), self.describe(&source.element));
                    return self.wrong(from, format!("expected a slice of `{wanted}`, found a slice of `{found}`"));
                }
                let place = |slice: Slice, index: Node| Place {
                    root: Root::Memory(slice.origin),
                    path: vec![Projection::Index(index)],
                    ty: slice.element,
                    atomic: false,
                    writable: slice.writable,
                };
                Asynchronous::Copy { to: place(target, at), from: place(source, first), count }
            }
        };
        self.node(Kind::Asynchronous(Box::new(kind)), Ty::Unit, e)
    }

    /// A number that is known while compiling.
    fn constant_number(&mut self, e: &syn::Expr) -> Option<Node> {
        let node = self.expect(e, &Ty::INDEX);
        if matches!(node.kind, Kind::Error) {
            return None;
        }
        if !is_fixed(&node) {
            self.error(e, "this number must be known while compiling: a literal or a constant");
            return None;
        }
        Some(node)
    }

    /// The memory at one end of a copy.
    pub(super) fn copied(&mut self, e: &syn::Expr, target: bool, name: &str) -> Option<Slice> {
        let wanted = if target { "a workgroup array: `&mut tile`" } else { "a buffer of the kernel, as a whole: `&x`" };
        let slice = match self.operand(peel_reference(e)) {
            Operand::Slice(slice) if slice.view.is_none() && !slice.atomic => slice,
            Operand::Value(Node { kind: Kind::Error, .. }) => return None,
            _ => {
                self.error(e, format!("`{name}` copies {} {wanted}", if target { "to" } else { "from" }));
                return None;
            }
        };
        let fits = matches!(slice.origin, Origin::Workgroup(_)) == target || self.session.alone;
        if !fits || (target && !slice.writable) {
            self.error(e, format!("`{name}` copies {} {wanted}", if target { "to" } else { "from" }));
            return None;
        }
        Some(slice)
    }
}

impl Build<'_> {
    /// Does what such a call does.
    pub(super) fn asynchronous(&mut self, kind: &Asynchronous, span: ir::Span) {
        self.effects = true;
        let kind = match kind {
            Asynchronous::Commit => ir::Asynchronous::Commit,
            Asynchronous::Wait(groups) => ir::Asynchronous::Wait(self.value(groups)),
            Asynchronous::Copy { to, from, count } => {
                let mut nodes = indices(to);
                let first = nodes.len();
                nodes.extend(indices(from));
                let mut values = self.ordered(&nodes);
                let from_values = values.split_off(first);
                let count = self.value(count);
                ir::Asynchronous::Copy { to: self.place(to, values), from: self.place(from, from_values), count }
            }
        };
        self.push(StatementKind::Asynchronous(kind), span);
    }
}
