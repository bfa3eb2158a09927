//! Mutants of kernels: copies of an instance, each with one mistake that authors make.

use std::fmt;

use trefoil_codegen::diagnostic::Diagnostic;
use trefoil_codegen::ir::rewrite::{Copy, Rewrite, rewrite};
use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator, Block, Builtin, ExpressionKind, Handle, LogicalOperator, Module, Place, Projection,
    Root, Scalar, Span, Statement, StatementKind, Type,
};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// A barrier is not there.
    BarrierDropped,
    /// An index into a buffer or workgroup memory is one too large.
    IndexShifted,
    /// What a condition guards is done always, and what it leaves by it does not.
    GuardDropped,
    /// Workgroup memory is not written, or a variable has no first value.
    InitialisationSkipped,
    /// A condition does not hold for the first invocation.
    BranchDiverges,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BarrierDropped => "barrier dropped",
            Self::IndexShifted => "index shifted",
            Self::GuardDropped => "guard dropped",
            Self::InitialisationSkipped => "initialisation skipped",
            Self::BranchDiverges => "branch diverges",
        })
    }
}

/// An instance with a mistake.
pub struct Mutant {
    pub mistake: Mistake,
    /// Where.
    pub at: String,
    pub module: Module,
}

/// Every mutant of an instance.
pub fn mutants(module: &Module) -> Vec<Mutant> {
    let mut all = Vec::new();
    while let Some(mutant) = mutant(module, all.len()) {
        all.push(mutant);
    }
    all
}

/// The one with the mistake at that site, if there are so many.
fn mutant(module: &Module, site: usize) -> Option<Mutant> {
    let mut copy = module.clone();
    let index = copy.intern(Type::Scalar(module.index.scalar()));
    let bool = copy.intern(Type::Scalar(Scalar::Bool));
    let one = ExpressionKind::Literal(module.index.literal(1));
    let zero = ExpressionKind::Literal(module.index.literal(0));
    let mut pass = Mutate { site, seen: 0, made: None, index, bool, one, zero };
    for position in 0..module.functions.len() {
        let handle = Handle::from_index(position);
        copy.functions[handle] = rewrite(&mut pass, &module.functions[handle]).ok()?;
    }
    copy.entry = rewrite(&mut pass, &module.entry).ok()?;
    let (mistake, span) = pass.made?;
    Some(Mutant { mistake, at: module.locations.describe(span), module: copy })
}

struct Mutate {
    site: usize,
    seen: usize,
    made: Option<(Mistake, Span)>,
    index: Handle<Type>,
    bool: Handle<Type>,
    one: ExpressionKind,
    zero: ExpressionKind,
}

impl Mutate {
    /// Whether the mistake is to be made here.
    fn is_here(&mut self, mistake: Mistake, span: Span) -> bool {
        let here = self.seen == self.site;
        self.seen += 1;
        if here {
            self.made = Some((mistake, span));
        }
        here
    }
}

impl Rewrite for Mutate {
    fn place(&mut self, copy: &mut Copy<'_>, place: &Place, span: Span) -> Result<Place, Diagnostic> {
        let mut new = copy.place(self, place, span)?;
        if let (Root::Binding(_) | Root::Workgroup(_), Some(Projection::Index(at))) = (new.root, new.path.first())
            && copy.new.expressions[*at].ty == self.index
            && self.is_here(Mistake::IndexShifted, span)
        {
            let (left, right) = (*at, copy.add(self.one.clone(), self.index, span));
            let sum = ExpressionKind::Binary { operator: BinaryOperator::Add, left, right };
            new.path[0] = Projection::Index(copy.add(sum, self.index, span));
        }
        Ok(new)
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Barrier if self.is_here(Mistake::BarrierDropped, span) => Ok(()),
            StatementKind::Store { place: Place { root: Root::Workgroup(_), .. }, .. }
            | StatementKind::Atomic {
                place: Place { root: Root::Workgroup(_), .. },
                function: AtomicFunction::Store,
                ..
            } if self.is_here(Mistake::InitialisationSkipped, span) => Ok(()),
            StatementKind::Let { local, value: Some(_) }
                if copy.old.locals[*local].mutable && self.is_here(Mistake::InitialisationSkipped, span) =>
            {
                let local = copy.declare(self, *local)?;
                out.push(Statement { kind: StatementKind::Let { local, value: None }, span });
                Ok(())
            }
            StatementKind::If { accept, reject, constant: false, .. }
                if reject.is_empty() && self.is_here(Mistake::GuardDropped, span) =>
            {
                let leaves = |statement: &Statement| {
                    matches!(statement.kind, StatementKind::Return(_) | StatementKind::Break | StatementKind::Continue)
                };
                if !accept.iter().any(leaves) {
                    let inside = copy.block(self, accept)?;
                    out.extend(inside);
                }
                Ok(())
            }
            StatementKind::If { condition, accept, reject, constant: false }
                if self.is_here(Mistake::BranchDiverges, span) =>
            {
                let left = self.expression(copy, *condition)?;
                let own = copy.add(ExpressionKind::Builtin(Builtin::LocalIndex), self.index, span);
                let zero = copy.add(self.zero.clone(), self.index, span);
                let kind = ExpressionKind::Binary { operator: BinaryOperator::NotEqual, left: own, right: zero };
                let right = copy.add(kind, self.bool, span);
                let kind = ExpressionKind::Logical { operator: LogicalOperator::And, left, right };
                let condition = copy.add(kind, self.bool, span);
                let (accept, reject) = (copy.block(self, accept)?, copy.block(self, reject)?);
                out.push(Statement { kind: StatementKind::If { condition, accept, reject, constant: false }, span });
                Ok(())
            }
            _ => copy.statement(self, statement, out),
        }
    }
}
