//! Memory with its shadow: beside each scalar, who accessed it last and when.
//!
//! Time is counted in *stretches*: the part of a workgroup's run between two barriers. Each has a number of its own over all workgroups, so that of two
//! numbers the smaller is of an earlier workgroup, or of the same one before a barrier. Two accesses of different invocations in one stretch have no
//! barrier between them, and neither have two of different workgroups. It is enough to know the last write and a few reads of each scalar: a write is
//! held against the last read, another of the same stretch by somebody else, and another of another workgroup; which read is told of matters to nobody.

use crate::ir::Scalar;

use super::shape::Shape;

/// The stretch of an access that never was.
const NEVER: u32 = 0;
/// That of an access which an asynchronous copy is still to do.
const UNDER_WAY: u32 = u32::MAX;

/// Who accesses memory: a lane of the workgroup, or an operation that moves a matrix for the lane's subgroup.
///
/// Which of a subgroup's lanes accesses an element of a matrix is the device's affair. So each such operation writes as somebody of its own, whom nothing but a barrier
/// orders before others. It reads as the lane, lest a matrix could not be stored where it was loaded: its value comes from there.
pub(super) mod who {
    /// Bits for a lane: workgroups have no more invocations than that.
    const LANE_BITS: u32 = 12;
    /// So many operations are told apart.
    pub(in crate::check) const OPERATIONS: u32 = (1 << (32 - LANE_BITS)) - 1;

    /// A lane in an operation; 0 is none.
    pub(in crate::check) const fn of(lane: u32, operation: u32) -> u32 {
        operation << LANE_BITS | lane
    }

    /// The lane.
    pub(in crate::check) const fn lane(who: u32) -> u32 {
        who & ((1 << LANE_BITS) - 1)
    }
}

/// An access: by whom in its workgroup, which the stretch tells, and the place in the source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touch {
    pub(super) stretch: u32,
    pub(super) lane: u32,
    pub(super) span: u32,
}

impl Touch {
    pub(super) const fn happened(self) -> bool {
        self.stretch != NEVER
    }

    /// One that an asynchronous copy is still to do.
    pub(super) const fn under_way(lane: u32, span: u32) -> Self {
        Self { stretch: UNDER_WAY, lane, span }
    }

    pub(super) const fn is_under_way(self) -> bool {
        self.stretch == UNDER_WAY
    }
}

/// When it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) stretch: u32,
    /// The workgroup's first.
    pub(super) first: u32,
}

/// The shadow of a scalar.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    pub(super) write: Touch,
    read: Touch,
    /// A read of the same stretch as `read`, by another invocation.
    beside: Touch,
    /// A read of another workgroup than that of `read`.
    apart: Touch,
}

/// What stands against an access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Against {
    /// An earlier access; whether it wrote.
    Race(Touch, bool),
    /// A copy that nobody waited for; whether it is to write there.
    Copy(Touch, bool),
}

impl Cell {
    /// Notes a read; `shared` is whether other workgroups have the memory too.
    #[inline]
    pub(super) fn read(&mut self, now: Now, who: u32, span: u32, shared: bool) -> Option<Against> {
        let (write, lane) = (self.write, who::lane(who));
        if self.read.lane != lane || self.read.stretch != now.stretch {
            if self.read.stretch == now.stretch {
                self.beside = self.read;
            } else if self.read.stretch < now.first {
                self.apart = self.read;
            }
            self.read = Touch { stretch: now.stretch, lane, span };
        }
        against(write, now, who, shared, true)
    }

    /// Notes a write.
    #[inline]
    pub(super) fn write(&mut self, now: Now, who: u32, span: u32, shared: bool) -> Option<Against> {
        let (before, lane) = (*self, who::lane(who));
        self.write = Touch { stretch: now.stretch, lane: who, span };
        against(before.write, now, who, shared, true)
            .or_else(|| against(before.read, now, lane, shared, false))
            .or_else(|| against(before.beside, now, lane, shared, false))
            .or_else(|| against(before.apart, now, lane, shared, false))
    }

    /// Notes an atomic write, which races with no other atomic; memory of atomics is accessed by nothing else. What reads are noted for elsewhere is the
    /// workgroup's first write here.
    pub(super) fn atomic(&mut self, now: Now, lane: u32, span: u32) {
        if !self.is_written(now) {
            self.read = Touch { stretch: now.stretch, lane, span };
        }
        self.write = Touch { stretch: now.stretch, lane, span };
    }

    /// Who gave an atomic of the workgroup its first value, if that was somebody else and no barrier ago.
    pub(super) fn begun_beside(&self, now: Now, lane: u32) -> Option<u32> {
        let first = self.read;
        (self.is_written(now) && first.stretch == now.stretch && first.lane != lane).then_some(first.lane)
    }

    /// Notes a write that a copy is to do.
    pub(super) fn begin(&mut self, now: Now, lane: u32, span: u32) -> Option<Against> {
        let found = self.write(now, lane, span, false);
        self.write.stretch = UNDER_WAY;
        found
    }

    /// A copy to it is done.
    pub(super) fn finish(&mut self, now: Now, lane: u32) {
        if self.write.is_under_way() && self.write.lane == lane {
            self.write.stretch = now.stretch;
        }
    }

    /// The workgroup whose copy is under way is no more.
    pub(super) fn forget(&mut self) {
        self.write = Touch::default();
    }

    /// Whether the workgroup has written it.
    #[inline]
    pub(super) const fn is_written(&self, now: Now) -> bool {
        self.write.stretch >= now.first
    }
}

/// Whether an earlier access and one of `lane` now are ordered by nothing.
#[inline]
fn against(earlier: Touch, now: Now, lane: u32, shared: bool, wrote: bool) -> Option<Against> {
    if earlier.stretch == UNDER_WAY {
        return Some(Against::Copy(earlier, wrote));
    }
    let beside = earlier.stretch == now.stretch && earlier.lane != lane;
    let apart = shared && earlier.stretch < now.first && earlier.happened();
    (beside || apart).then_some(Against::Race(earlier, wrote))
}

/// A binding or workgroup variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) words: Vec<u64>,
    /// Empty where no access can race.
    pub(super) cells: Vec<Cell>,
    /// Scalars of an element.
    pub(super) each: usize,
    /// Elements that there are, by which guards go.
    pub(super) length: u64,
    /// Whether other workgroups have it too.
    pub(super) shared: bool,
    /// Whether it holds atomics.
    pub(super) atomic: bool,
}

/// Reads a scalar of some bytes, little-endian.
fn gather(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

impl Memory {
    /// The elements of a buffer, as many as there are bytes for.
    pub(super) fn of_bytes(shape: &Shape, length: u64, bytes: &[u8]) -> Self {
        let size = shape.bytes.max(1) as usize;
        let held = (bytes.len() / size).min(usize::try_from(length).unwrap_or(usize::MAX));
        let mut words = Vec::with_capacity(held * shape.count());
        for element in bytes.chunks_exact(size).take(held) {
            for (scalar, offset) in shape.scalars.iter().zip(&shape.offsets) {
                let at = *offset as usize;
                let bits = gather(&element[at..at + scalar.bytes().unwrap_or(4) as usize]);
                words.push(super::scalar::canonical(*scalar, bits));
            }
        }
        Self { words, cells: Vec::new(), each: shape.count(), length: held as u64, shared: true, atomic: false }
    }

    /// Puts what was written into the buffer's bytes, and leaves the rest as it is.
    pub(super) fn to_bytes(&self, shape: &Shape, bytes: &mut [u8]) {
        let size = shape.bytes.max(1) as usize;
        let elements = bytes.chunks_exact_mut(size).zip(self.words.chunks_exact(self.each.max(1)));
        for ((element, words), cells) in elements.zip(self.cells.chunks_exact(self.each.max(1))) {
            for (((scalar, offset), word), cell) in shape.scalars.iter().zip(&shape.offsets).zip(words).zip(cells) {
                if cell.write.happened() {
                    let (at, count) = (*offset as usize, scalar.bytes().unwrap_or(4) as usize);
                    element[at..at + count].copy_from_slice(&word.to_le_bytes()[..count]);
                }
            }
        }
    }

    /// Workgroup memory of so many elements.
    pub(super) fn of_workgroup(scalars: &[Scalar], length: u32, atomic: bool) -> Self {
        let count = scalars.len() * length as usize;
        Self {
            words: vec![0; count],
            cells: vec![Cell::default(); count],
            each: scalars.len(),
            length: u64::from(length),
            shared: false,
            atomic,
        }
    }
}
