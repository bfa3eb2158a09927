//! The sites of an instance, and copies of it that are changed at one of them.

use std::collections::BTreeMap;

use trefoil_codegen::diagnostic::Diagnostic;
use trefoil_codegen::ir::rewrite::{Copy, Rewrite, rewrite};
use trefoil_codegen::ir::{
    Asynchronous, AtomicFunction, BinaryOperator, Block, Builtin, Expression, ExpressionKind, Handle, LogicalOperator,
    MatrixOperation, Module, Place, Projection, Root, Scalar, Span, Statement, StatementKind, TileOperation, Type,
};

use crate::mistake::Mistake;
use crate::probe::Probes;
use crate::site::{About, Site, line};

/// What becomes of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The mistake is made.
    Mistake,
    /// A probe stands before it.
    Reached,
    /// A probe stands where the mistake makes a difference: where a condition is false whose guard is dropped, or true if that leaves by it, or true for an invocation for which it would diverge.
    Differs,
}

/// Every site of an instance, in the order of its text.
///
/// # Errors
/// The instance cannot be copied.
pub fn sites(module: &Module) -> Result<Vec<Site>, Diagnostic> {
    let mut pass = Mutate::new(module, usize::MAX, Change::Mistake);
    pass.all()?;
    let mut numbers = BTreeMap::new();
    for site in &mut pass.sites {
        let number = numbers.entry((site.mistake, site.span, site.function.clone())).or_insert(0);
        site.number = *number;
        *number += 1;
    }
    Ok(pass.sites)
}

/// The instance with a change at the site of that position in [`sites`].
///
/// # Errors
/// The instance cannot be copied.
pub fn changed(module: &Module, site: usize, change: Change) -> Result<Module, Diagnostic> {
    let mut pass = Mutate::new(module, site, change);
    pass.all()?;
    Ok(pass.new)
}

struct Mutate<'m> {
    old: &'m Module,
    new: Module,
    chosen: usize,
    change: Change,
    sites: Vec<Site>,
    probes: Probes,
    /// Whether a probe is to stand before the statement that is copied.
    before: bool,
    index: Handle<Type>,
    bool: Handle<Type>,
}

impl<'m> Mutate<'m> {
    fn new(old: &'m Module, chosen: usize, change: Change) -> Self {
        let mut new = old.clone();
        let index = new.intern(Type::Scalar(old.index.scalar()));
        let bool = new.intern(Type::Scalar(Scalar::Bool));
        let probes = Probes::of(&mut new);
        Self { old, new, chosen, change, sites: Vec::new(), probes, before: false, index, bool }
    }

    fn all(&mut self) -> Result<(), Diagnostic> {
        for (handle, function) in self.old.functions.iter() {
            self.new.functions[handle] = rewrite(self, function)?;
        }
        self.new.entry = rewrite(self, &self.old.entry)?;
        Ok(())
    }

    /// Notes a site; gives what is to be done there.
    fn site(&mut self, copy: &Copy<'_>, mistake: Mistake, span: Span, about: impl FnOnce() -> About) -> Option<Change> {
        let here = self.sites.len() == self.chosen;
        let (line, function) = (line(self.old, span), copy.old.name.clone());
        self.sites.push(Site { mistake, span, line, function, number: 0, about: about() });
        if !here {
            return None;
        }
        self.before |= self.change == Change::Reached;
        Some(self.change)
    }

    /// Whether the mistake is to be made here.
    fn is_made(&mut self, copy: &Copy<'_>, mistake: Mistake, span: Span, about: impl FnOnce() -> About) -> bool {
        self.site(copy, mistake, span, about) == Some(Change::Mistake)
    }

    fn literal(&self, copy: &mut Copy<'_>, value: u32, span: Span) -> Handle<Expression> {
        copy.add(ExpressionKind::Literal(self.old.index.literal(value)), self.index, span)
    }

    /// A condition that holds for the first invocation of a workgroup alone, or for all but that.
    fn with_own_index(
        &self,
        copy: &mut Copy<'_>,
        left: Handle<Expression>,
        operator: BinaryOperator,
        span: Span,
    ) -> Handle<Expression> {
        let own = copy.add(ExpressionKind::Builtin(Builtin::LocalIndex), self.index, span);
        let zero = self.literal(copy, 0, span);
        let right = copy.add(ExpressionKind::Binary { operator, left: own, right: zero }, self.bool, span);
        let kind = ExpressionKind::Logical { operator: LogicalOperator::And, left, right };
        copy.add(kind, self.bool, span)
    }

    fn probe(&mut self, copy: &mut Copy<'_>) -> Statement {
        let span = self.probes.next(&mut self.new);
        self.probes.make(&mut copy.new, span)
    }

    /// Copies a statement with what is changed at the sites that are its own.
    fn changed(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let (old, span) = (self.old, statement.span);
        let about = |copy: &Copy<'_>, root: Root| About::memory(old, copy.old, root);
        match &statement.kind {
            StatementKind::Barrier | StatementKind::Fence(_) | StatementKind::Asynchronous(Asynchronous::Wait(_))
                if self.is_made(copy, Mistake::BarrierDropped, span, About::order) =>
            {
                Ok(())
            }
            StatementKind::UniformLoad { result, place }
                if self.is_made(copy, Mistake::BarrierDropped, span, About::order) =>
            {
                let place = self.place(copy, place, span)?;
                let ty = copy.old.locals[*result].ty;
                let value = Some(copy.add(ExpressionKind::Load(place), ty, span));
                let local = copy.declare(self, *result)?;
                out.push(Statement { kind: StatementKind::Let { local, value }, span });
                Ok(())
            }
            StatementKind::Store { place, .. }
            | StatementKind::Atomic { place, function: AtomicFunction::Store, .. }
            | StatementKind::Asynchronous(Asynchronous::Copy { to: place, .. })
            | StatementKind::Matrix { operation: MatrixOperation::Store { place, .. }, .. }
                if matches!(place.root, Root::Workgroup(_))
                    && self.is_made(copy, Mistake::InitialisationSkipped, span, || about(copy, place.root)) =>
            {
                Ok(())
            }
            StatementKind::Tile(TileOperation::Copy { tile, .. })
                if self.is_made(copy, Mistake::InitialisationSkipped, span, || about(copy, Root::Workgroup(*tile))) =>
            {
                Ok(())
            }
            StatementKind::Let { local, value: Some(_) }
                if copy.old.locals[*local].mutable
                    && self
                        .is_made(copy, Mistake::InitialisationSkipped, span, || about(copy, Root::Local(*local))) =>
            {
                let local = copy.declare(self, *local)?;
                out.push(Statement { kind: StatementKind::Let { local, value: None }, span });
                Ok(())
            }
            StatementKind::If { condition, accept, reject, constant: false } => {
                let exits = leaves(accept);
                let mut guard = About::block(old, copy.old, if exits { &copy.old.body } else { accept });
                guard.exits = exits;
                let guard = self.site(copy, Mistake::GuardDropped, span, || guard);
                let branch = || {
                    let mut about = About::block(old, copy.old, accept);
                    about.add(old, copy.old, reject);
                    about
                };
                let branch = self.site(copy, Mistake::BranchDiverges, span, branch);
                match (guard, branch) {
                    (Some(Change::Mistake), _) => {
                        out.extend(copy.block(self, if exits { reject } else { accept })?);
                        return Ok(());
                    }
                    (_, Some(Change::Differs)) => {
                        let left = self.expression(copy, *condition)?;
                        let condition = self.with_own_index(copy, left, BinaryOperator::Equal, span);
                        let accept = vec![self.probe(copy)];
                        let kind = StatementKind::If { condition, accept, reject: Block::new(), constant: false };
                        out.push(Statement { kind, span });
                    }
                    _ => {}
                }
                let mut condition = self.expression(copy, *condition)?;
                if branch == Some(Change::Mistake) {
                    condition = self.with_own_index(copy, condition, BinaryOperator::NotEqual, span);
                }
                let (mut accept, mut reject) = (copy.block(self, accept)?, copy.block(self, reject)?);
                if guard == Some(Change::Differs) {
                    let probe = self.probe(copy);
                    if exits { accept.insert(0, probe) } else { reject.insert(0, probe) }
                }
                out.push(Statement { kind: StatementKind::If { condition, accept, reject, constant: false }, span });
                Ok(())
            }
            _ => copy.statement(self, statement, out),
        }
    }
}

/// Whether a block leaves a loop or the function by a statement of its own.
fn leaves(block: &Block) -> bool {
    block.iter().any(|statement| {
        matches!(statement.kind, StatementKind::Return(_) | StatementKind::Break | StatementKind::Continue)
    })
}

impl Rewrite for Mutate<'_> {
    fn place(&mut self, copy: &mut Copy<'_>, place: &Place, span: Span) -> Result<Place, Diagnostic> {
        let mut new = copy.place(self, place, span)?;
        let (Root::Binding(_) | Root::Workgroup(_), Some(first)) = (new.root, new.path.first_mut()) else {
            return Ok(new);
        };
        let (Projection::Index(at) | Projection::Vector { index: at, .. }) = first else { return Ok(new) };
        let old = self.old;
        let ty = copy.new.expressions[*at].ty;
        if ty == self.index
            && self.is_made(copy, Mistake::IndexShifted, span, || About::memory(old, copy.old, place.root))
        {
            let right = self.literal(copy, 1, span);
            let sum = ExpressionKind::Binary { operator: BinaryOperator::Add, left: *at, right };
            *at = copy.add(sum, self.index, span);
        }
        Ok(new)
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let (at, outer) = (out.len(), std::mem::take(&mut self.before));
        self.changed(copy, statement, out)?;
        if std::mem::replace(&mut self.before, outer) {
            let probe = self.probe(copy);
            out.insert(at, probe);
        }
        Ok(())
    }
}
