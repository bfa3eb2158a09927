//! Regions that read a tensor across the way in which they write: its elements lie together along another axis than the last.
//!
//! An invocation takes a block of four by four elements. Of what lies across it reads four times four that lie together, one for each position along the last axis, and turns them in registers; everything
//! else it reads as other wide kernels do, once for each of the four rows. A workgroup takes 16 by 16 blocks, and 32 neighbours of it eight by four: what they write of a row are 128 bytes of `f32` that
//! follow on each other, and what they read across it 64.

use trefoil_codegen::ir::{BinaryOperator, Builtin, Handle, Local};

use super::kernel::{Body, LANES};
use super::plan::Read;
use super::read::{Pattern, Strided, Wide};
use crate::dim::Dim;
use crate::op::{Grid, ParamValue};

/// Blocks of a workgroup along either axis.
const BLOCKS: i64 = 16;

/// How a region is cut in blocks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    /// The extents by which the reads across it count.
    extents: Vec<Dim>,
    /// The axis along which their elements lie together.
    axis: usize,
}

/// An axis that blocks do not reach along.
struct Rest {
    extent: Dim,
    /// From one position to the next, in groups of four elements of the region.
    apart: Dim,
}

impl Turn {
    /// How to cut a region whose reads are these, none of them widened; the reads are then as a block takes them. `None` where one cannot be read so.
    pub(super) fn of(reads: &[Read]) -> Option<(Self, Vec<Pattern>)> {
        let mut turn: Option<Self> = None;
        let mut patterns = Vec::with_capacity(reads.len());
        for read in reads {
            if let Some(wide) = read.pattern.widened() {
                patterns.push(wide);
                continue;
            }
            let Pattern::Strided(strided) = &read.pattern else { return None };
            let (own, turned) = Self::across(strided)?;
            if turn.as_ref().is_some_and(|known| *known != own) {
                return None;
            }
            turn = Some(own);
            patterns.push(Pattern::Strided(turned));
        }
        Some((turn?, patterns))
    }

    /// How blocks read what lies so, strides in groups of four elements.
    fn across(strided: &Strided) -> Option<(Self, Strided)> {
        let last = strided.strides.len() - 1;
        let axis = strided.strides.iter().position(|stride| stride.is(1))?;
        let in_fours = |dim: &Dim| dim.divides_evenly(i64::from(LANES));
        let others = strided.strides.iter().enumerate().filter(|(other, _)| *other != axis);
        let aligned = axis != last
            && in_fours(&strided.extents[axis])
            && in_fours(&strided.extents[last])
            && in_fours(&strided.offset)
            && others.clone().all(|(_, stride)| in_fours(stride));
        if !aligned {
            return None;
        }
        let four = Dim::from(i64::from(LANES));
        let mut turned = strided.clone();
        turned.offset = turned.offset.quotient(&four);
        for (other, stride) in turned.strides.iter_mut().enumerate() {
            if other != axis {
                *stride = stride.quotient(&four);
            }
        }
        turned.wide = Wide::Turned;
        Some((Self { extents: strided.extents.clone(), axis }, turned))
    }

    /// What tells kernels apart.
    pub(super) fn structure(&self) -> (usize, usize) {
        (self.axis, self.extents.len())
    }

    /// Blocks along the axis of the reads, and along the last.
    fn blocks(&self) -> [Dim; 2] {
        let last = self.extents.len() - 1;
        [self.axis, last].map(|axis| self.extents[axis].quotient(&Dim::from(i64::from(LANES))))
    }

    /// From one position along an axis to the next, in groups of four elements of the region.
    fn apart(&self, axis: usize) -> Dim {
        let inner: Dim = self.extents[axis + 1..].iter().cloned().product();
        inner.quotient(&Dim::from(i64::from(LANES)))
    }

    /// The axes that blocks do not reach along, the innermost first.
    fn others(&self) -> impl Iterator<Item = usize> {
        let axis = self.axis;
        (0..self.extents.len() - 1).rev().filter(move |other| *other != axis)
    }

    /// These axes.
    fn rest(&self) -> Vec<Rest> {
        self.others().map(|axis| Rest { extent: self.extents[axis].clone(), apart: self.apart(axis) }).collect()
    }

    /// The parameter from which an invocation finds its block, in the order in which [`Body::turned`] reads it.
    pub(super) fn param(&self) -> ParamValue {
        let blocks = self.blocks();
        let mut numbers: Vec<Dim> = blocks.iter().map(|blocks| blocks.quotient_up(BLOCKS)).collect();
        numbers.extend(blocks);
        numbers.push(self.apart(self.axis));
        for Rest { extent, apart } in self.rest() {
            numbers.extend([extent, apart]);
        }
        ParamValue::Dims(numbers)
    }

    /// How many numbers that are.
    pub(super) fn numbers(&self) -> u32 {
        (5 + 2 * (self.extents.len() - 2)) as u32
    }

    /// The workgroups.
    pub(super) fn grid(&self) -> Grid {
        let tiles = self.blocks().into_iter().map(|blocks| blocks.quotient_up(BLOCKS));
        let rest = self.rest().into_iter().map(|rest| rest.extent);
        Grid::Workgroups(tiles.chain(rest).product())
    }
}

/// A block as an invocation finds it.
struct Block {
    /// Its number along the axis of the reads across, and along the last.
    at: [Handle<Local>; 2],
    /// The positions along the other axes, the innermost first.
    rest: Vec<Handle<Local>>,
}

impl Body<'_, '_> {
    /// The whole body of a kernel of blocks; `param` is [`Turn::param`].
    pub(super) fn turned(&mut self, turn: &Turn, param: u32) {
        use BinaryOperator::{Add, Divide, Less, Multiply, Remainder};
        // Of 32 neighbours eight are beside each other along the last axis and four along the other.
        let local = self.builder.builtin(Builtin::LocalIndex);
        let local = self.bound("local", local);
        // Of the invocation's number in its workgroup what is left by a division, of another.
        let part = |body: &mut Self, divisor: u32, size: u32| {
            let (value, divisor) = (body.builder.local(local), body.builder.index(divisor));
            let quotient = body.op(Divide, value, divisor);
            let size = body.builder.index(size);
            body.op(Remainder, quotient, size)
        };
        // Its block among the workgroup's along either axis: of so many side by side, and how many times as many.
        let mut within = Vec::new();
        for ([low, beside], [high, times]) in [([8, 4], [64, 4]), ([1, 8], [32, 2])] {
            let near = part(self, low, beside);
            let far = part(self, high, times);
            let beside = self.builder.index(beside);
            let far = self.op(Multiply, far, beside);
            within.push(self.op(Add, near, far));
        }
        let group = self.builder.builtin(Builtin::GroupIndex);
        let mut left = self.bound("group", group);
        // The last axis is counted first.
        let mut at = Vec::new();
        for (axis, own) in within.into_iter().enumerate().rev() {
            let (value, tiles) = (self.builder.local(left), self.number(param, axis as u32));
            let tile = self.op(Remainder, value, tiles);
            let size = self.builder.index(BLOCKS as u32);
            let first = self.op(Multiply, tile, size);
            let block = self.op(Add, first, own);
            at.insert(0, self.bound("block", block));
            let (value, tiles) = (self.builder.local(left), self.number(param, axis as u32));
            let outer = self.op(Divide, value, tiles);
            left = self.bound("rest", outer);
        }
        let others = turn.extents.len() - 2;
        let mut rest = Vec::new();
        for other in 1..others {
            let extent_at = 3 + 2 * other as u32;
            let (value, extent) = (self.builder.local(left), self.number(param, extent_at));
            let position = self.op(Remainder, value, extent);
            rest.push(self.bound("c", position));
            let (value, extent) = (self.builder.local(left), self.number(param, extent_at));
            let outer = self.op(Divide, value, extent);
            left = self.bound("rest", outer);
        }
        // A grid may be larger than it was asked for.
        let (value, end) = if others > 0 {
            rest.push(left);
            (self.builder.local(left), self.number(param, 3 + 2 * others as u32))
        } else {
            (self.builder.local(left), self.builder.index(1))
        };
        let inside = self.op(Less, value, end);
        let at = [at[0], at[1]];
        self.nested_if(inside, |body| {
            let (value, end) = (body.builder.local(at[0]), body.number(param, 2));
            let inside = body.op(Less, value, end);
            body.nested_if(inside, |body| {
                let (value, end) = (body.builder.local(at[1]), body.number(param, 3));
                let inside = body.op(Less, value, end);
                body.nested_if(inside, |body| body.block(turn, param, &Block { at, rest }));
            });
        });
    }

    /// Reads, computes and writes a block.
    fn block(&mut self, turn: &Turn, param: u32, block: &Block) {
        use BinaryOperator::{Add, Multiply};
        // The group of four of each row, of the region's.
        let mut first = self.builder.local(block.at[1]);
        for (other, position) in block.rest.iter().enumerate() {
            let (position, apart) = (self.builder.local(*position), self.number(param, 6 + 2 * other as u32));
            let distance = self.op(Multiply, position, apart);
            first = self.op(Add, first, distance);
        }
        let (row, four) = (self.builder.local(block.at[0]), self.builder.index(u32::from(LANES)));
        let row = self.op(Multiply, row, four);
        let apart = self.number(param, 4);
        let distance = self.op(Multiply, row, apart);
        let first = self.op(Add, first, distance);
        let mut rows = vec![self.bound("i", first)];
        for _ in 1..LANES {
            let (before, apart) = (self.builder.local(rows[rows.len() - 1]), self.number(param, 4));
            let next = self.op(Add, before, apart);
            rows.push(self.bound("i", next));
        }
        // What lies across comes as four columns; everything is read before anything is written.
        let across: Vec<_> = (0..self.plan.reads.len()).map(|read| self.columns(turn, read, block)).collect();
        let read: Vec<Vec<_>> = rows
            .iter()
            .enumerate()
            .map(|(row, i)| {
                let coordinates: Vec<_> = (0..self.plan.extents.len()).map(|set| self.coordinates(set, *i)).collect();
                (0..self.plan.reads.len())
                    .map(|read| match &across[read] {
                        Some(columns) => {
                            let lanes = columns
                                .iter()
                                .map(|column| {
                                    let column = self.builder.local(*column);
                                    self.builder.lane(column, row as u32)
                                })
                                .collect();
                            let four = self.builder.compose(lanes);
                            self.bound("x", four)
                        }
                        None => self.read(read, *i, &coordinates, LANES),
                    })
                    .collect()
            })
            .collect();
        for (i, read) in rows.into_iter().zip(read) {
            self.compute(i, &read, LANES);
        }
    }

    /// The four columns of a block of a read that lies across; `None` of another.
    fn columns(&mut self, turn: &Turn, position: usize, block: &Block) -> Option<Vec<Handle<Local>>> {
        use BinaryOperator::{Add, Multiply};
        let read = &self.plan.reads[position];
        let Pattern::Strided(Strided { wide: Wide::Turned, .. }) = &read.pattern else { return None };
        let binding = read.binding;
        let way = self.names.reads[position]?;
        let last = turn.extents.len() - 1;
        let stride = |axis: usize| axis as u32 + 1;
        let mut first = self.number(way, 0);
        for (axis, at) in turn.others().zip(&block.rest) {
            let (at, stride) = (self.builder.local(*at), self.number(way, stride(axis)));
            let distance = self.op(Multiply, at, stride);
            first = self.op(Add, first, distance);
        }
        let along = self.builder.local(block.at[0]);
        let first = self.op(Add, first, along);
        let (column, four) = (self.builder.local(block.at[1]), self.builder.index(u32::from(LANES)));
        let column = self.op(Multiply, column, four);
        let apart = self.number(way, stride(last));
        let distance = self.op(Multiply, column, apart);
        let first = self.op(Add, first, distance);
        let mut at = self.bound("first", first);
        let mut columns = Vec::new();
        for column in 0..LANES {
            if column > 0 {
                let (before, apart) = (self.builder.local(at), self.number(way, stride(last)));
                let next = self.op(Add, before, apart);
                at = self.bound("next", next);
            }
            let index = self.builder.local(at);
            columns.push(self.load(binding, index, Wide::Vector, LANES));
        }
        Some(columns)
    }
}
