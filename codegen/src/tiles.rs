//! Tiles: how they lie in workgroup memory, and what is done with them by operations that the target has.
//!
//! On CUDA a stage is blocks of 64 columns, one after the other, of which each row is 128 bytes, and the piece of 16 bytes in column `c` of row `r` lies where
//! `c ^ (r % 8)` would: the layout that `wgmma` reads, whose rows meet no bank twice in `ldmatrix` either. Elsewhere rows lie one after the other, in SPIR-V with 16
//! bytes after each, so that eight of them meet no bank twice.
//!
//! A copy becomes a function in which each invocation copies pieces of 16 bytes; CUDA may have it in bulk instead, where the host can tell of the matrix ([`tensor_map`]). A product is left to CUDA, which waits for it ([`TileOperation::Finish`]) at the end of the
//! block that it stands in at the latest: behind it, before a barrier, and before anything that looks at the sums. Elsewhere it becomes products of matrices that a subgroup holds.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::{FunctionBuilder, element};
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    Asynchronous, BinaryOperator as B, Block, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle,
    Literal, Local, LogicalOperator, Matrix, MatrixOperation, MatrixOrder, MatrixRole, Module, Place, Projection, Root,
    Scalar, Size, Span, Statement, StatementKind, Tile, TileOperation, Type, WorkgroupVariable, statements,
};
use crate::names::FunctionNames;
use crate::target::Target;
use crate::tensor_map::{self, TensorMap};
use crate::verify::{function_facts, sums_of_tiles};

type Value = Handle<Expression>;

/// Rows, columns and depth of the products that a product of tiles is made of.
const STEP: u32 = 16;
/// An index that no buffer has.
const NOWHERE: u32 = u32::MAX;

/// Gives tiles their layout, and does what is done with them.
///
/// # Errors
/// An operation is none of those that the verifier accepts.
pub(crate) fn legalise(
    module: &mut Module,
    workgroup_size: [u32; 3],
    target: Target,
) -> Result<Option<&'static str>, Diagnostics> {
    if module.workgroup.iter().all(|(_, variable)| variable.tile.is_none()) {
        return Ok(None);
    }
    for (_, variable) in module.workgroup.iter_mut() {
        if let Some(tile) = &variable.tile {
            let stages = variable.length.literal().unwrap_or(0) / tile.pieces().max(1);
            variable.length = Size::Literal(stages * Layout::of(tile, target).stage());
        }
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let invocations = workgroup_size.iter().product();
    let mut pass = Tiles { module, target, invocations, names, copies: HashMap::new() };
    rewrite_all(&mut pass)?;
    if target == Target::Cuda {
        wait_for_products(module);
        return Ok(None);
    }
    Ok(Some("products of tiles by matrices of a subgroup"))
}

/// The most bytes that tiles take beside their elements, on the targets of the kernel.
pub(crate) fn padding(module: &Module) -> u32 {
    if module.workgroup.iter().all(|(_, variable)| variable.tile.is_none()) {
        return 0;
    }
    let of_target = |target: &Target| {
        let groups = if *target == Target::Cuda { tensor_map::GROUP_BYTES } else { 0 };
        module.workgroup.iter().fold(groups, |total, (_, variable)| {
            let Some(tile) = &variable.tile else { return total };
            let stages = variable.length.literal().unwrap_or(0) / tile.pieces().max(1);
            let beside = Layout::of(tile, *target).stage().saturating_sub(tile.pieces());
            total.saturating_add(stages.saturating_mul(beside).saturating_mul(16))
        })
    };
    module.targets.iter().map(of_target).max().unwrap_or(0)
}

/// How a stage of a tile lies in memory, in pieces of 16 bytes.
#[derive(Clone, Copy)]
struct Layout {
    rows: u32,
    width: u32,
    /// From row to row; `None` if blocks of rows are permuted.
    pitch: Option<u32>,
}

impl Layout {
    fn of(tile: &Tile, target: Target) -> Self {
        let [rows, columns] = tile.shape();
        let width = columns / Tile::LANES;
        let pitch = match target {
            Target::Cuda => None,
            Target::Spirv | Target::Wgsl => Some(width + 1),
            Target::Cpu => Some(width),
        };
        Self { rows, width, pitch }
    }

    fn stage(self) -> u32 {
        self.rows * self.pitch.unwrap_or(self.width)
    }

    /// Where a piece lies in its stage.
    fn place(self, body: &mut FunctionBuilder<'_>, row: Handle<Local>, column: Handle<Local>) -> Value {
        let of = |body: &mut FunctionBuilder<'_>, operator, local, number| {
            let (value, number) = (body.local(local), body.index(number));
            body.binary(operator, value, number)
        };
        if let Some(pitch) = self.pitch {
            let (row, column) = (of(body, B::Multiply, row, pitch), body.local(column));
            return body.binary(B::Add, row, column);
        }
        let block = Tile::UNIT / Tile::LANES;
        let (number, size) = (of(body, B::Divide, column, block), body.index(self.rows * block));
        let number = body.binary(B::Multiply, number, size);
        let line = of(body, B::Multiply, row, block);
        let (within, swap) = (of(body, B::Remainder, column, block), of(body, B::Remainder, row, block));
        let within = body.binary(B::Xor, within, swap);
        let place = body.binary(B::Add, number, line);
        body.binary(B::Add, place, within)
    }
}

struct Tiles<'a> {
    module: &'a mut Module,
    target: Target,
    invocations: u32,
    names: FunctionNames,
    copies: HashMap<(Handle<WorkgroupVariable>, Root), Handle<Function>>,
}

impl Tiles<'_> {
    /// The layout of a tile variable, and how many stages it has.
    fn layout(&self, handle: Handle<WorkgroupVariable>, span: Span) -> Result<(Layout, u32), Diagnostic> {
        let variable = &self.module.workgroup[handle];
        let tile = variable.tile.as_ref().ok_or_else(|| Diagnostic::new(span, "an operation on no tile"))?;
        let layout = Layout::of(tile, self.target);
        Ok((layout, variable.length.literal().unwrap_or(0) / layout.stage().max(1)))
    }

    /// The function that copies to that tile from there, made when first wanted.
    fn copy(
        &mut self,
        tile: Handle<WorkgroupVariable>,
        from: Root,
        span: Span,
    ) -> Result<Handle<Function>, Diagnostic> {
        if let Some(known) = self.copies.get(&(tile, from)) {
            return Ok(*known);
        }
        let Root::Binding(binding) = from else {
            return Err(Diagnostic::new(span, "a tile is filled from something that is no buffer"));
        };
        let (layout, stages) = self.layout(tile, span)?;
        let invocations = self.invocations;
        let name = self.names.fresh(&format!("copy_to_{}", self.module.workgroup[tile].name));
        let index = self.module.intern(Type::Scalar(Scalar::Index));
        let mut body = FunctionBuilder::new(self.module, &name);
        body.at(span);
        for argument in ["stage", "row", "column", "width"] {
            body.argument(argument, index);
        }
        let [stage, row, column, width] = [0, 1, 2, 3];
        let (number, count) = (body.get_argument(stage), body.index(stages));
        let number = body.binary(B::Remainder, number, count);
        let size = body.index(layout.stage());
        let start = body.binary(B::Multiply, number, size);
        let start = body.bind("start", start);
        let (length, across) = (body.length(binding), body.get_argument(width));
        let rows = body.binary(B::Divide, length, across);
        let rows = body.bind("rows", rows);
        // How much of the tile is in the matrix.
        let rest = |body: &mut FunctionBuilder<'_>, first: u32, end: &dyn Fn(&mut FunctionBuilder<'_>) -> Value| {
            let (value, limit) = (body.get_argument(first), end(body));
            let inside = body.binary(B::Less, value, limit);
            let (limit, value) = (end(body), body.get_argument(first));
            let left = body.binary(B::Subtract, limit, value);
            let none = body.index(0);
            body.select(inside, left, none)
        };
        let high = rest(&mut body, row, &|body| body.local(rows));
        let high = body.bind("high", high);
        let wide = rest(&mut body, column, &|body| body.get_argument(width));
        let wide = body.bind("wide", wide);
        let pieces = layout.rows * layout.width;
        let (first, end) = (body.index(0), body.index(pieces.div_ceil(invocations)));
        body.for_range("part", first, end, |body, part| {
            let (part, step) = (body.local(part), body.index(invocations));
            let part = body.binary(B::Multiply, part, step);
            let own = body.builtin(Builtin::LocalIndex);
            let piece = body.binary(B::Add, part, own);
            let piece = body.bind("piece", piece);
            let one = |body: &mut FunctionBuilder<'_>| {
                copy_piece(body, layout, piece, [start, high, wide], (tile, binding));
            };
            if pieces % invocations == 0 {
                one(body);
            } else {
                let (piece, all) = (body.local(piece), body.index(pieces));
                let there = body.binary(B::Less, piece, all);
                body.if_then(there, one);
            }
        });
        let made = body.finish();
        self.copies.insert((tile, from), made);
        Ok(made)
    }

    /// By what a tile can be copied from there in bulk, if the target has such copies and the host knows how.
    fn map(&self, copy: &Copy<'_>, (tile, from): (Handle<WorkgroupVariable>, Root), width: Value) -> Option<TensorMap> {
        let Root::Binding(binding) = from else { return None };
        if self.target != Target::Cuda || !copy.is_entry {
            return None;
        }
        tensor_map::derive(self.module, self.module.workgroup[tile].tile.as_ref()?, binding, width, copy.old)
    }

    fn index(&mut self) -> Handle<Type> {
        self.module.intern(Type::Scalar(Scalar::Index))
    }

    /// A product, by the subgroup.
    fn multiply(
        &mut self,
        copy: &mut Copy<'_>,
        operation: &TileOperation,
        span: Span,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let TileOperation::Multiply { sums, a, rows, b, columns, stage } = operation else { return Ok(()) };
        let failed = |message: &str| Diagnostic::new(span, message);
        let count =
            sums_of_tiles(self.module, copy.old, sums).ok_or_else(|| failed("a product is added to no sums"))?;
        let place = copy.place(self, sums, span)?;
        let ((left, left_stages), (right, right_stages)) = (self.layout(*a, span)?, self.layout(*b, span)?);
        let scalar = self.module.workgroup[*a].tile.as_ref().map_or(Scalar::F16, |tile| tile.scalar);
        let pitches = left.pitch.zip(right.pitch).ok_or_else(|| failed("tiles lie as no matrices do"))?;
        let ty = self.index();
        let mut side = |role, scalar| {
            let (rows, columns) = (Size::Literal(STEP), Size::Literal(STEP));
            self.module.intern(Type::Matrix(Matrix { role, scalar, rows, columns }))
        };
        let types =
            [side(MatrixRole::A, scalar), side(MatrixRole::B, scalar), side(MatrixRole::Accumulator, Scalar::F32)];
        let mut given = Vec::new();
        for (value, name) in [(rows, "rows"), (columns, "columns"), (stage, "stage")] {
            let value = self.expression(copy, *value)?;
            given.push(keep(copy, value, (name, ty), span, out));
        }
        let mut code = Code { copy, ty, span };
        let across = count * STEP;
        // Nothing that is computed here can be beyond a tile.
        let line = code.modulo(given[2], left_stages, left.rows);
        let part = code.modulo(given[0], left.rows / Tile::UNIT, Tile::UNIT);
        let own = code.copy.add(ExpressionKind::Builtin(Builtin::SubgroupIndex), ty, span);
        let team = code.number(Tile::SUBGROUPS);
        let own = code.binary(B::Remainder, own, team);
        let own = code.times(own, STEP);
        let line = code.binary(B::Add, line, part);
        let line = code.binary(B::Add, line, own);
        let first = code.times(line, pitches.0);
        let first_left = keep(code.copy, first, ("left", ty), span, out);
        let line = code.modulo(given[2], right_stages, right.rows);
        let line = code.times(line, pitches.1);
        let part = code.modulo(given[1], right.width * Tile::LANES / across, across / Tile::LANES);
        let first = code.binary(B::Add, line, part);
        let first_right = keep(code.copy, first, ("right", ty), span, out);
        let local = Local { name: "step".to_owned(), ty, mutable: false, span };
        let counter = code.copy.new.locals.add(local);
        let (start, end, step) = (code.number(0), code.number(right.rows / STEP), code.number(1));
        let mut body = Block::new();
        let at = code.read(counter);
        let along = code.times(at, STEP / Tile::LANES);
        let base = code.read(first_left);
        let offset = code.binary(B::Add, base, along);
        let left = code.load((Root::Workgroup(*a), offset, pitches.0), types[0], &mut body);
        for sum in 0..count {
            let at = code.read(counter);
            let down = code.times(at, STEP * pitches.1);
            let base = code.read(first_right);
            let offset = code.binary(B::Add, base, down);
            let beside = code.number(sum * STEP / Tile::LANES);
            let offset = code.binary(B::Add, offset, beside);
            let right = code.load((Root::Workgroup(*b), offset, pitches.1), types[1], &mut body);
            let part = |code: &mut Code<'_, '_>| {
                let path = vec![Projection::Index(code.number(sum))];
                Place { root: place.root, path, guarded: false }
            };
            let (held, at) = (part(&mut code), part(&mut code));
            let [a, b] = [(left, types[0]), (right, types[1])]
                .map(|(local, ty)| code.copy.add(ExpressionKind::Local(local), ty, span));
            let c = code.copy.add(ExpressionKind::Load(held), types[2], span);
            let operation = MatrixOperation::MultiplyAdd { a, b, c };
            let result = code.matrix(operation, types[2], &mut body);
            let value = code.copy.add(ExpressionKind::Local(result), types[2], span);
            body.push(Statement { kind: StatementKind::Store { place: at, value }, span });
        }
        let kind = StatementKind::For { local: counter, start, end, step, body, unroll: false };
        out.push(Statement { kind, span });
        Ok(())
    }
}

/// A value that is read again where it is wanted.
fn keep(
    copy: &mut Copy<'_>,
    value: Value,
    (name, ty): (&str, Handle<Type>),
    span: Span,
    out: &mut Block,
) -> Handle<Local> {
    let local = copy.new.locals.add(Local { name: name.to_owned(), ty, mutable: false, span });
    out.push(Statement { kind: StatementKind::Let { local, value: Some(value) }, span });
    local
}

/// Copies a piece of 16 bytes to a tile, or zeros where there is none.
fn copy_piece(
    body: &mut FunctionBuilder<'_>,
    layout: Layout,
    piece: Handle<Local>,
    [start, high, wide]: [Handle<Local>; 3],
    (tile, binding): (Handle<WorkgroupVariable>, u32),
) {
    let part = |body: &mut FunctionBuilder<'_>, operator, name| {
        let (piece, width) = (body.local(piece), body.index(layout.width));
        let value = body.binary(operator, piece, width);
        body.bind(name, value)
    };
    let (down, across) = (part(body, B::Divide, "down"), part(body, B::Remainder, "across"));
    let (left, right) = (body.local(down), body.local(high));
    let in_rows = body.binary(B::Less, left, right);
    let (left, right) = (body.local(across), body.local(wide));
    let in_columns = body.binary(B::Less, left, right);
    let inside = body.logical(LogicalOperator::And, in_rows, in_columns);
    let (row, down_value) = (body.get_argument(1), body.local(down));
    let line = body.binary(B::Add, row, down_value);
    let width = body.get_argument(3);
    let line = body.binary(B::Multiply, line, width);
    let (column, across_value) = (body.get_argument(2), body.local(across));
    let line = body.binary(B::Add, line, column);
    let index = body.binary(B::Add, line, across_value);
    let nowhere = body.index(NOWHERE);
    let index = body.select(inside, index, nowhere);
    let (start, at) = (body.local(start), layout.place(body, down, across));
    let at = body.binary(B::Add, start, at);
    let to = Place { guarded: false, ..element(Root::Workgroup(tile), at) };
    let from = Place { guarded: true, ..element(Root::Binding(binding), index) };
    let count = body.index(1);
    body.statement(StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }));
}

/// Expressions of a copy in the making.
struct Code<'c, 'f> {
    copy: &'c mut Copy<'f>,
    ty: Handle<Type>,
    span: Span,
}

impl Code<'_, '_> {
    fn number(&mut self, value: u32) -> Value {
        self.copy.add(ExpressionKind::Literal(Literal::Index(value)), self.ty, self.span)
    }

    fn read(&mut self, local: Handle<Local>) -> Value {
        self.copy.add(ExpressionKind::Local(local), self.ty, self.span)
    }

    fn binary(&mut self, operator: B, left: Value, right: Value) -> Value {
        self.copy.add(ExpressionKind::Binary { operator, left, right }, self.ty, self.span)
    }

    fn times(&mut self, value: Value, factor: u32) -> Value {
        let factor = self.number(factor);
        self.binary(B::Multiply, value, factor)
    }

    /// `local % count * size`
    fn modulo(&mut self, local: Handle<Local>, count: u32, size: u32) -> Value {
        let (value, count) = (self.read(local), self.number(count));
        let number = self.binary(B::Remainder, value, count);
        self.times(number, size)
    }

    fn matrix(&mut self, operation: MatrixOperation, ty: Handle<Type>, out: &mut Block) -> Handle<Local> {
        let local = Local { name: "matrix".to_owned(), ty, mutable: false, span: self.span };
        let local = self.copy.new.locals.add(local);
        out.push(Statement { kind: StatementKind::Matrix { result: Some(local), operation }, span: self.span });
        local
    }

    fn load(&mut self, (root, offset, stride): (Root, Value, u32), ty: Handle<Type>, out: &mut Block) -> Handle<Local> {
        let place = Place { root, path: vec![Projection::Index(offset)], guarded: false };
        let stride = self.number(stride);
        self.matrix(MatrixOperation::Load { place, stride, order: MatrixOrder::Rows }, ty, out)
    }
}

impl RewriteAll for Tiles<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Tiles<'_> {
    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Tile(TileOperation::Copy { tile, stage, from, row, column, width }) => {
                let mut arguments = Vec::new();
                for value in [stage, row, column, width] {
                    arguments.push(CallArgument::Value(self.expression(copy, *value)?));
                }
                let function = self.copy(*tile, *from, span)?;
                let ty = self.module.intern(Type::Scalar(Scalar::U32));
                let call = copy.add(ExpressionKind::Call { function, arguments }, ty, span);
                let kind = match self.map(copy, (*tile, *from), *width) {
                    None => StatementKind::Evaluate(call),
                    Some(map) => {
                        let (stage, row) = (self.expression(copy, *stage)?, self.expression(copy, *row)?);
                        let column = self.expression(copy, *column)?;
                        let (tile, otherwise) = (*tile, call);
                        StatementKind::Tile(TileOperation::BulkCopy { tile, stage, map, row, column, otherwise })
                    }
                };
                out.push(Statement { kind, span });
                Ok(())
            }
            StatementKind::Tile(operation) if self.target != Target::Cuda => self.multiply(copy, operation, span, out),
            _ => copy.statement(self, statement, out),
        }
    }
}

/// Puts a wait behind every product.
fn wait_for_products(module: &mut Module) {
    let (collective, _) = function_facts(module);
    let mut functions = std::mem::take(&mut module.functions);
    for function in functions.iter_mut().map(|(_, function)| function).chain([&mut module.entry]) {
        let mut body = std::mem::take(&mut function.body);
        wait_in(function, &collective, &mut body);
        function.body = body;
    }
    module.functions = functions;
}

fn wait_in(function: &Function, collective: &[bool], block: &mut Block) {
    let mut waiting: Vec<Place> = Vec::new();
    for mut statement in std::mem::take(block) {
        for inner in statement.kind.blocks_mut() {
            wait_in(function, collective, inner);
        }
        let span = statement.span;
        if !waiting.is_empty() && must_wait(function, collective, &statement, &waiting) {
            let sums = std::mem::take(&mut waiting);
            block.push(Statement { kind: StatementKind::Tile(TileOperation::Finish { sums }), span });
        }
        if let StatementKind::Tile(TileOperation::Multiply { sums, .. }) = &statement.kind
            && !waiting.contains(sums)
        {
            waiting.push(sums.clone());
        }
        block.push(statement);
    }
    if let (false, Some(last)) = (waiting.is_empty(), block.last()) {
        let (span, sums) = (last.span, waiting);
        block.push(Statement { kind: StatementKind::Tile(TileOperation::Finish { sums }), span });
    }
}

/// Whether a statement, or one in it, must not come before the products for which nobody waited yet: a product of the same block goes on after them.
fn must_wait(function: &Function, collective: &[bool], statement: &Statement, waiting: &[Place]) -> bool {
    if matches!(statement.kind, StatementKind::Tile(TileOperation::Multiply { .. })) {
        return false;
    }
    let is_waiting = |root: Root| waiting.iter().any(|place| place.root == root);
    let mut found = false;
    statements(std::slice::from_ref(statement), &mut |statement| {
        found |= match &statement.kind {
            StatementKind::Barrier
            | StatementKind::UniformLoad { .. }
            | StatementKind::Return(_)
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Tile(TileOperation::Multiply { .. }) => true,
            StatementKind::Store { place, .. } => is_waiting(place.root),
            _ => false,
        };
        statement.kind.operands(&mut |operand| {
            function.tree(*operand, &mut |part| {
                found |= match &function.expressions[part].kind {
                    ExpressionKind::Load(place) => is_waiting(place.root),
                    ExpressionKind::Call { function, arguments } => {
                        let hands_on = |argument: &CallArgument| matches!(argument, CallArgument::Reference(root) if is_waiting(*root));
                        collective.get(function.index()).copied().unwrap_or(true) || arguments.iter().any(hands_on)
                    }
                    _ => false,
                };
            });
        });
    });
    found
}
