//! Walking: what an expression, a place or a statement is made of, so that passes need not spell out every kind.

use super::arena::Handle;
use super::asynchronous::Asynchronous;
use super::expression::{CallArgument, Expression, ExpressionKind, Place, Projection};
use super::matrix::MatrixOperation;
use super::module::{Function, Local};
use super::statement::{Block, Statement, StatementKind};
use super::tile::TileOperation;

macro_rules! walkers {
    ($expression:ident, $place:ident, $statement:ident, $blocks:ident, $iter:ident, $($mutable:tt)?) => {
        impl ExpressionKind {
            /// Calls `visit` with each direct operand, in evaluation order.
            pub fn $expression(& $($mutable)? self, visit: &mut dyn FnMut(& $($mutable)? Handle<Expression>)) {
                match self {
                    Self::Literal(_)
                    | Self::GenericConstant(_)
                    | Self::Param(_)
                    | Self::Length(_)
                    | Self::ViewExtent { .. }
                    | Self::ViewStride { .. }
                    | Self::Builtin(_)
                    | Self::Argument(_)
                    | Self::Local(_)
                    | Self::MatrixLength(_)
                    | Self::TargetHas(_) => {}
                    Self::Load(place) => place.$place(visit),
                    Self::Member { base, .. } | Self::Swizzle { base, .. } => visit(base),
                    Self::Element { base, index } => {
                        visit(base);
                        visit(index);
                    }
                    Self::Compose(parts) | Self::Math { arguments: parts, .. } => {
                        for part in parts {
                            visit(part);
                        }
                    }
                    Self::Splat(value)
                    | Self::Unary { value, .. }
                    | Self::Convert(value)
                    | Self::Bitcast(value) => visit(value),
                    Self::Binary { left, right, .. } | Self::Logical { left, right, .. } => {
                        visit(left);
                        visit(right);
                    }
                    Self::Select { condition, accept, reject } => {
                        visit(condition);
                        visit(accept);
                        visit(reject);
                    }
                    Self::Call { arguments, .. } => {
                        for argument in arguments {
                            if let CallArgument::Value(value) = argument {
                                visit(value);
                            }
                        }
                    }
                }
            }
        }

        impl Place {
            /// Calls `visit` with each index on the way.
            pub fn $place(& $($mutable)? self, visit: &mut dyn FnMut(& $($mutable)? Handle<Expression>)) {
                for projection in & $($mutable)? self.path {
                    match projection {
                        Projection::Index(index) | Projection::Vector { index, .. } => visit(index),
                        Projection::Member(_) => {}
                    }
                }
            }
        }

        impl StatementKind {
            /// Calls `visit` with each expression that the statement itself evaluates; not those of its blocks.
            pub fn $statement(& $($mutable)? self, visit: &mut dyn FnMut(& $($mutable)? Handle<Expression>)) {
                match self {
                    Self::Let { value, .. } | Self::Return(value) => {
                        if let Some(value) = value {
                            visit(value);
                        }
                    }
                    Self::Store { place, value } => {
                        place.$place(visit);
                        visit(value);
                    }
                    Self::Evaluate(value)
                    | Self::If { condition: value, .. }
                    | Self::Switch { selector: value, .. }
                    | Self::While { condition: value, .. } => visit(value),
                    Self::For { start, end, step, .. } => {
                        visit(start);
                        visit(end);
                        visit(step);
                    }
                    Self::Loop { .. }
                    | Self::Break
                    | Self::Continue
                    | Self::Barrier
                    | Self::Fence(_)
                    | Self::Reporting(_) => {}
                    Self::Report(report) => {
                        for value in & $($mutable)? report.values {
                            visit(value);
                        }
                    }
                    Self::UniformLoad { place, .. } => place.$place(visit),
                    Self::Asynchronous(Asynchronous::Copy { to, from, count }) => {
                        to.$place(visit);
                        from.$place(visit);
                        visit(count);
                    }
                    Self::Asynchronous(Asynchronous::Wait(pending)) => visit(pending),
                    Self::Asynchronous(Asynchronous::Commit) => {}
                    Self::Atomic { place, value, compare, .. } => {
                        place.$place(visit);
                        for operand in [compare, value] {
                            if let Some(operand) = operand {
                                visit(operand);
                            }
                        }
                    }
                    Self::Subgroup { value, lane, .. } => {
                        visit(value);
                        if let Some(lane) = lane {
                            visit(lane);
                        }
                    }
                    Self::Matrix { operation, .. } => match operation {
                        MatrixOperation::Load { place, stride, .. } => {
                            place.$place(visit);
                            visit(stride);
                        }
                        MatrixOperation::Store { place, stride, value, .. } => {
                            place.$place(visit);
                            visit(stride);
                            visit(value);
                        }
                        MatrixOperation::MultiplyAdd { a, b, c } => {
                            visit(a);
                            visit(b);
                            visit(c);
                        }
                    },
                    Self::Tile(operation) => match operation {
                        TileOperation::Copy { stage, row, column, width, .. } => {
                            for operand in [stage, row, column, width] {
                                visit(operand);
                            }
                        }
                        TileOperation::BulkCopy { stage, row, column, otherwise, .. } => {
                            for operand in [stage, row, column, otherwise] {
                                visit(operand);
                            }
                        }
                        TileOperation::Multiply { sums, rows, columns, stage, .. } => {
                            sums.$place(visit);
                            for operand in [rows, columns, stage] {
                                visit(operand);
                            }
                        }
                        TileOperation::Finish { sums } => {
                            for place in sums {
                                place.$place(visit);
                            }
                        }
                    },
                }
            }

            /// The blocks directly inside the statement.
            #[inline]
            pub fn $blocks(& $($mutable)? self) -> Vec<& $($mutable)? Block> {
                match self {
                    Self::If { accept, reject, .. } => vec![accept, reject],
                    Self::Switch { cases, default, .. } => {
                        let mut blocks: Vec<& $($mutable)? Block> = cases.$iter().map(|case| & $($mutable)? case.body).collect();
                        blocks.push(default);
                        blocks
                    }
                    Self::For { body, .. } | Self::While { body, .. } | Self::Loop { body } | Self::Reporting(body) => vec![body],
                    Self::Let { .. }
                    | Self::Store { .. }
                    | Self::Evaluate(_)
                    | Self::Break
                    | Self::Continue
                    | Self::Return(_)
                    | Self::Barrier
                    | Self::Fence(_)
                    | Self::Asynchronous(_)
                    | Self::UniformLoad { .. }
                    | Self::Atomic { .. }
                    | Self::Subgroup { .. }
                    | Self::Matrix { .. }
                    | Self::Tile(_)
                    | Self::Report(_) => Vec::new(),
                }
            }
        }
    };
}

walkers!(operands, indices, operands, blocks, iter,);
walkers!(operands_mut, indices_mut, operands_mut, blocks_mut, iter_mut, mut);

impl StatementKind {
    /// The local that the statement declares.
    pub const fn declares(&self) -> Option<Handle<Local>> {
        match self {
            Self::Let { local, .. } | Self::For { local, .. } => Some(*local),
            Self::UniformLoad { result, .. } | Self::Subgroup { result, .. } => Some(*result),
            Self::Atomic { result, .. } | Self::Matrix { result, .. } => *result,
            _ => None,
        }
    }

    /// Whether the statement itself hands control on, so that nothing after it in its block runs.
    pub const fn is_jump(&self) -> bool {
        matches!(self, Self::Return(_) | Self::Break | Self::Continue)
    }
}

/// Whether a block holds a `break` of the loop that is around it.
pub fn breaks(block: &[Statement]) -> bool {
    reaches_out(block, &|kind| matches!(kind, StatementKind::Break))
}

/// Whether a block holds a `break` or a `continue` of the loop that is around it.
pub fn escapes(block: &[Statement]) -> bool {
    reaches_out(block, &|kind| matches!(kind, StatementKind::Break | StatementKind::Continue))
}

/// Whether there is such a statement in a block, those of its own loops not counted.
fn reaches_out(block: &[Statement], found: &dyn Fn(&StatementKind) -> bool) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::For { .. } | StatementKind::While { .. } | StatementKind::Loop { .. } => false,
        kind => found(kind) || kind.blocks().into_iter().any(|inner| reaches_out(inner, found)),
    })
}

/// Whether control never gets past a block: it jumps on every way through. Of endless loops nothing is said: the languages that are printed see nothing of
/// them either.
pub fn leaves(block: &[Statement]) -> bool {
    ends(block, &StatementKind::is_jump)
}

/// Whether control never reaches the end of a function whose body the block is, or ends with: it returns on every way through, or stays in a loop.
pub fn returns(block: &[Statement]) -> bool {
    ends(block, &|kind| match kind {
        StatementKind::Return(_) => true,
        StatementKind::Loop { body } => !breaks(body),
        _ => false,
    })
}

/// Whether there is such a statement on every way through a block, those in branches included.
fn ends(block: &[Statement], found: &dyn Fn(&StatementKind) -> bool) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::If { accept, reject, .. } => ends(accept, found) && ends(reject, found),
        StatementKind::Switch { cases, default, .. } => {
            cases.iter().all(|case| ends(&case.body, found)) && ends(default, found)
        }
        kind => found(kind),
    })
}

/// Calls `visit` with every statement of a block and of the blocks inside it, outer before inner.
pub fn statements(block: &[Statement], visit: &mut dyn FnMut(&Statement)) {
    for statement in block {
        visit(statement);
        // As `blocks` has it, without a list: this is the walk of all walks.
        match &statement.kind {
            StatementKind::If { accept, reject, .. } => {
                statements(accept, visit);
                statements(reject, visit);
            }
            StatementKind::For { body, .. } | StatementKind::While { body, .. } | StatementKind::Loop { body } => {
                statements(body, visit);
            }
            kind => kind.blocks().into_iter().for_each(|inner| statements(inner, visit)),
        }
    }
}

impl Function {
    /// Calls `visit` with an expression and everything that it is made of, operands first.
    pub fn tree(&self, root: Handle<Expression>, visit: &mut dyn FnMut(Handle<Expression>)) {
        self.expressions[root].kind.operands(&mut |operand| self.tree(*operand, visit));
        visit(root);
    }

    /// Calls `visit` with every expression that a statement of a block evaluates.
    pub fn live(&self, block: &Block, visit: &mut dyn FnMut(Handle<Expression>)) {
        statements(block, &mut |statement| {
            statement.kind.operands(&mut |operand| self.tree(*operand, visit));
        });
    }
}
