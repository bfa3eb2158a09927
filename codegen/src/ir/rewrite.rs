//! Copying functions with changes on the way.
//!
//! A [`Rewrite`] says what becomes of types, expressions and statements; what it does not mention is copied. The copy holds live
//! expressions alone, operands before what uses them, each used once, and every declaration that is copied makes a fresh local,
//! so that a block may be copied several times.

use super::arena::{Arena, Handle};
use super::asynchronous::Asynchronous;
use super::expression::{CallArgument, Expression, ExpressionKind, Place, Projection, Root};
use super::matrix::MatrixOperation;
use super::module::{Argument, Function, Local, Module};
use super::report::Report;
use super::span::Span;
use super::statement::{Block, Case, Statement, StatementKind};
use super::tile::TileOperation;
use super::types::Type;
use crate::diagnostic::Diagnostic;

/// What becomes of the parts of a function.
pub trait Rewrite {
    /// The type that stands for `ty`.
    ///
    /// # Errors
    /// The type has no counterpart.
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(ty)
    }

    /// Copies an expression; by default with its operands.
    ///
    /// # Errors
    /// The expression cannot be made.
    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        expression: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        copy.expression(self, expression)
    }

    /// Copies a place; by default with its indices.
    ///
    /// # Errors
    /// The place cannot be made.
    fn place(&mut self, copy: &mut Copy<'_>, place: &Place, span: Span) -> Result<Place, Diagnostic> {
        copy.place(self, place, span)
    }

    /// Copies a statement to the end of `out`; by default with its expressions and blocks.
    ///
    /// # Errors
    /// The statement cannot be made.
    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        copy.statement(self, statement, out)
    }
}

/// A rewrite of a whole module, to which it may add functions.
pub trait RewriteAll: Rewrite {
    /// The module.
    fn module(&mut self) -> &mut Module;
}

/// A copy in the making.
pub struct Copy<'a> {
    /// The function that is copied.
    pub old: &'a Function,
    /// The copy so far.
    pub new: Function,
    locals: Vec<Option<Handle<Local>>>,
    /// Whether the function is the kernel's own body.
    pub is_entry: bool,
    /// For each function of the module the one that stands for it, if that is another.
    functions: &'a [Handle<Function>],
}

/// Copies a function as `rewrite` says.
///
/// # Errors
/// The first thing that cannot be made.
pub fn rewrite<R: Rewrite + ?Sized>(rewrite: &mut R, old: &Function) -> Result<Function, Diagnostic> {
    with_calls(rewrite, old, false, &[])
}

/// Puts copies in the place of all functions of a module; what calls one calls its copy, which may lie behind functions that the rewrite added.
///
/// # Errors
/// The first thing that cannot be made.
pub fn rewrite_all<R: RewriteAll>(rewrite: &mut R) -> Result<(), Diagnostic> {
    let module = rewrite.module();
    let (old, entry) = (std::mem::take(&mut module.functions), std::mem::take(&mut module.entry));
    let mut functions = Vec::with_capacity(old.len());
    for (_, function) in old.iter() {
        let new = with_calls(rewrite, function, false, &functions)?;
        functions.push(rewrite.module().functions.add(new));
    }
    let entry = with_calls(rewrite, &entry, true, &functions)?;
    rewrite.module().entry = entry;
    Ok(())
}

/// Copies a function; calls go to those of `functions` that stand for what was called.
fn with_calls<R: Rewrite + ?Sized>(
    rewrite: &mut R,
    old: &Function,
    is_entry: bool,
    functions: &[Handle<Function>],
) -> Result<Function, Diagnostic> {
    let mut copy = Copy {
        is_entry,
        functions,
        old,
        new: Function {
            name: old.name.clone(),
            doc: old.doc.clone(),
            arguments: Vec::new(),
            result: None,
            // A copy is mostly as large as what it is of.
            locals: Arena::with_capacity(old.locals.len()),
            expressions: Arena::with_capacity(old.expressions.len()),
            precision: old.precision,
            body: Block::new(),
            span: old.span,
        },
        locals: vec![None; old.locals.len()],
    };
    for argument in &old.arguments {
        let ty = rewrite.ty(argument.ty)?;
        copy.new.arguments.push(Argument { ty, ..argument.clone() });
    }
    copy.new.result = old.result.map(|ty| rewrite.ty(ty)).transpose()?;
    copy.new.body = copy.block(rewrite, &old.body)?;
    Ok(copy.new)
}

impl Copy<'_> {
    /// Adds an expression to the copy.
    pub fn add(&mut self, kind: ExpressionKind, ty: Handle<Type>, span: Span) -> Handle<Expression> {
        self.new.expressions.add(Expression { kind, ty, span })
    }

    /// Copies a block.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn block<R: Rewrite + ?Sized>(&mut self, rewrite: &mut R, block: &[Statement]) -> Result<Block, Diagnostic> {
        let mut out = Block::with_capacity(block.len());
        for statement in block {
            rewrite.statement(self, statement, &mut out)?;
        }
        Ok(out)
    }

    /// The copy's local for one of the old function.
    ///
    /// # Errors
    /// It has not been declared yet.
    pub fn local(&self, local: Handle<Local>, span: Span) -> Result<Handle<Local>, Diagnostic> {
        self.locals.get(local.index()).copied().flatten().ok_or_else(|| {
            let name = self.old.locals.get(local).map_or("?", |l| l.name.as_str());
            Diagnostic::new(
                span,
                format!("the variable `{name}` is used where it has not been declared in `{}`", self.old.name),
            )
        })
    }

    /// A fresh local of the copy for one of the old function, which stands for it from here on.
    ///
    /// # Errors
    /// Its type cannot be made.
    pub fn declare<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        local: Handle<Local>,
    ) -> Result<Handle<Local>, Diagnostic> {
        let old = &self.old.locals[local];
        let ty = rewrite.ty(old.ty)?;
        let new = self.new.locals.add(Local { ty, ..old.clone() });
        self.locals[local.index()] = Some(new);
        Ok(new)
    }

    fn root(&self, root: Root, span: Span) -> Result<Root, Diagnostic> {
        Ok(match root {
            Root::Local(local) => Root::Local(self.local(local, span)?),
            Root::Binding(_) | Root::Workgroup(_) | Root::Argument(_) => root,
        })
    }

    /// Copies a place.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn place<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        place: &Place,
        span: Span,
    ) -> Result<Place, Diagnostic> {
        let mut path = Vec::with_capacity(place.path.len());
        for projection in &place.path {
            path.push(match *projection {
                Projection::Index(index) => Projection::Index(rewrite.expression(self, index)?),
                Projection::Vector { index, lanes } => {
                    Projection::Vector { index: rewrite.expression(self, index)?, lanes }
                }
                Projection::Member(member) => Projection::Member(member),
            });
        }
        Ok(Place { root: self.root(place.root, span)?, path, guarded: place.guarded })
    }

    /// Copies an expression, its operands as `rewrite` says.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn expression<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        expression: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let old = &self.old.expressions[expression];
        let span = old.span;
        let kind = match &old.kind {
            ExpressionKind::Local(local) => ExpressionKind::Local(self.local(*local, span)?),
            ExpressionKind::Load(place) => ExpressionKind::Load(rewrite.place(self, place, span)?),
            ExpressionKind::Call { function, arguments } => {
                let mut copied = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    copied.push(match *argument {
                        CallArgument::Value(value) => CallArgument::Value(rewrite.expression(self, value)?),
                        CallArgument::Reference(root) => CallArgument::Reference(self.root(root, span)?),
                    });
                }
                let function = self.functions.get(function.index()).copied().unwrap_or(*function);
                ExpressionKind::Call { function, arguments: copied }
            }
            ExpressionKind::MatrixLength(ty) => ExpressionKind::MatrixLength(rewrite.ty(*ty)?),
            // These are most of all expressions.
            ExpressionKind::Literal(literal) => ExpressionKind::Literal(*literal),
            ExpressionKind::Member { base, index } => {
                ExpressionKind::Member { base: rewrite.expression(self, *base)?, index: *index }
            }
            ExpressionKind::Unary { operator, value } => {
                ExpressionKind::Unary { operator: *operator, value: rewrite.expression(self, *value)? }
            }
            ExpressionKind::Binary { operator, left, right } => ExpressionKind::Binary {
                operator: *operator,
                left: rewrite.expression(self, *left)?,
                right: rewrite.expression(self, *right)?,
            },
            ExpressionKind::Convert(value) => ExpressionKind::Convert(rewrite.expression(self, *value)?),
            ExpressionKind::Splat(value) => ExpressionKind::Splat(rewrite.expression(self, *value)?),
            kind => {
                let mut kind = kind.clone();
                let mut failed = None;
                kind.operands_mut(&mut |operand| {
                    if failed.is_none() {
                        match rewrite.expression(self, *operand) {
                            Ok(copied) => *operand = copied,
                            Err(diagnostic) => failed = Some(diagnostic),
                        }
                    }
                });
                if let Some(diagnostic) = failed {
                    return Err(diagnostic);
                }
                kind
            }
        };
        let ty = rewrite.ty(old.ty)?;
        Ok(self.add(kind, ty, span))
    }

    /// Copies an operation on matrices.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn matrix<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        operation: &MatrixOperation,
        span: Span,
    ) -> Result<MatrixOperation, Diagnostic> {
        Ok(match operation {
            MatrixOperation::Load { place, stride, order } => MatrixOperation::Load {
                place: rewrite.place(self, place, span)?,
                stride: rewrite.expression(self, *stride)?,
                order: *order,
            },
            MatrixOperation::Store { place, stride, order, value } => MatrixOperation::Store {
                place: rewrite.place(self, place, span)?,
                stride: rewrite.expression(self, *stride)?,
                order: *order,
                value: rewrite.expression(self, *value)?,
            },
            MatrixOperation::MultiplyAdd { a, b, c } => MatrixOperation::MultiplyAdd {
                a: rewrite.expression(self, *a)?,
                b: rewrite.expression(self, *b)?,
                c: rewrite.expression(self, *c)?,
            },
        })
    }

    /// Copies an operation on tiles.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn tile<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        operation: &TileOperation,
        span: Span,
    ) -> Result<TileOperation, Diagnostic> {
        Ok(match operation {
            TileOperation::Copy { tile, stage, from, row, column, width } => TileOperation::Copy {
                tile: *tile,
                stage: rewrite.expression(self, *stage)?,
                from: *from,
                row: rewrite.expression(self, *row)?,
                column: rewrite.expression(self, *column)?,
                width: rewrite.expression(self, *width)?,
            },
            TileOperation::BulkCopy { tile, stage, map, row, column, otherwise } => TileOperation::BulkCopy {
                tile: *tile,
                stage: rewrite.expression(self, *stage)?,
                map: map.clone(),
                row: rewrite.expression(self, *row)?,
                column: rewrite.expression(self, *column)?,
                otherwise: rewrite.expression(self, *otherwise)?,
            },
            TileOperation::Multiply { sums, a, rows, b, columns, stage } => TileOperation::Multiply {
                sums: self.place(rewrite, sums, span)?,
                a: *a,
                rows: rewrite.expression(self, *rows)?,
                b: *b,
                columns: rewrite.expression(self, *columns)?,
                stage: rewrite.expression(self, *stage)?,
            },
            TileOperation::Finish { sums } => TileOperation::Finish {
                sums: sums.iter().map(|place| self.place(rewrite, place, span)).collect::<Result<_, _>>()?,
            },
        })
    }

    /// Copies a statement, its expressions and blocks as `rewrite` says.
    ///
    /// # Errors
    /// What `rewrite` reports.
    pub fn statement<R: Rewrite + ?Sized>(
        &mut self,
        rewrite: &mut R,
        statement: &Statement,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let span = statement.span;
        let mut optional = |copy: &mut Self, value: &Option<Handle<Expression>>| {
            value.map(|value| rewrite.expression(copy, value)).transpose()
        };
        let kind = match &statement.kind {
            StatementKind::Let { local, value } => {
                let value = optional(self, value)?;
                StatementKind::Let { local: self.declare(rewrite, *local)?, value }
            }
            StatementKind::Store { place, value } => StatementKind::Store {
                place: rewrite.place(self, place, span)?,
                value: rewrite.expression(self, *value)?,
            },
            StatementKind::Evaluate(value) => StatementKind::Evaluate(rewrite.expression(self, *value)?),
            StatementKind::If { condition, accept, reject, constant } => StatementKind::If {
                condition: rewrite.expression(self, *condition)?,
                accept: self.block(rewrite, accept)?,
                reject: self.block(rewrite, reject)?,
                constant: *constant,
            },
            StatementKind::Switch { selector, cases, default } => {
                let selector = rewrite.expression(self, *selector)?;
                let mut copied = Vec::with_capacity(cases.len());
                for case in cases {
                    copied.push(Case { values: case.values.clone(), body: self.block(rewrite, &case.body)? });
                }
                StatementKind::Switch { selector, cases: copied, default: self.block(rewrite, default)? }
            }
            StatementKind::For { local, start, end, step, body, unroll } => {
                let start = rewrite.expression(self, *start)?;
                let end = rewrite.expression(self, *end)?;
                let step = rewrite.expression(self, *step)?;
                StatementKind::For {
                    local: self.declare(rewrite, *local)?,
                    start,
                    end,
                    step,
                    body: self.block(rewrite, body)?,
                    unroll: *unroll,
                }
            }
            StatementKind::While { condition, body } => StatementKind::While {
                condition: rewrite.expression(self, *condition)?,
                body: self.block(rewrite, body)?,
            },
            StatementKind::Loop { body } => StatementKind::Loop { body: self.block(rewrite, body)? },
            StatementKind::Break => StatementKind::Break,
            StatementKind::Continue => StatementKind::Continue,
            StatementKind::Barrier => StatementKind::Barrier,
            StatementKind::Reporting(body) => StatementKind::Reporting(self.block(rewrite, body)?),
            StatementKind::Report(report) => StatementKind::Report(Report {
                values: report.values.iter().map(|value| rewrite.expression(self, *value)).collect::<Result<_, _>>()?,
                ..report.clone()
            }),
            StatementKind::Fence(scope) => StatementKind::Fence(*scope),
            StatementKind::Asynchronous(kind) => StatementKind::Asynchronous(match kind {
                Asynchronous::Copy { to, from, count } => Asynchronous::Copy {
                    to: rewrite.place(self, to, span)?,
                    from: rewrite.place(self, from, span)?,
                    count: rewrite.expression(self, *count)?,
                },
                Asynchronous::Commit => Asynchronous::Commit,
                Asynchronous::Wait(pending) => Asynchronous::Wait(rewrite.expression(self, *pending)?),
            }),
            StatementKind::Return(value) => StatementKind::Return(optional(self, value)?),
            StatementKind::UniformLoad { result, place } => {
                let place = rewrite.place(self, place, span)?;
                StatementKind::UniformLoad { result: self.declare(rewrite, *result)?, place }
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let compare = optional(self, compare)?;
                let value = optional(self, value)?;
                let place = rewrite.place(self, place, span)?;
                StatementKind::Atomic {
                    result: result.map(|result| self.declare(rewrite, result)).transpose()?,
                    place,
                    function: *function,
                    value,
                    compare,
                    ordering: *ordering,
                }
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let value = rewrite.expression(self, *value)?;
                let lane = lane.map(|lane| rewrite.expression(self, lane)).transpose()?;
                StatementKind::Subgroup { result: self.declare(rewrite, *result)?, function: *function, value, lane }
            }
            StatementKind::Matrix { result, operation } => {
                let operation = self.matrix(rewrite, operation, span)?;
                StatementKind::Matrix {
                    result: result.map(|result| self.declare(rewrite, result)).transpose()?,
                    operation,
                }
            }
            StatementKind::Tile(operation) => StatementKind::Tile(self.tile(rewrite, operation, span)?),
        };
        out.push(Statement { kind, span });
        Ok(())
    }
}
