//! Memory as a batch of lanes reads and writes it: addresses, guards, places that are evenly apart, and atomics.
//!
//! Words that lie side by side are not copied where [`super::registers::Leeway`] allows it: a load only notes where they are, and what the instruction
//! before a store computes is written where the store would copy it.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use super::lines::Line;
use super::{Batch, halves};
use crate::interp::program::{Address, AtomicOperation, Bound, Held, Part, Register, Term, Where};
use crate::interp::{lanes, math};
use crate::ir::Order;

/// Where a part of a value lies, once a place's fixed parts are known.
struct Spot {
    pointer: *mut u8,
    relaxed: bool,
}

#[inline(always)]
unsafe fn read(spot: &Spot, offset: usize, part: &Part) -> u32 {
    // SAFETY: the caller has checked the offset; see `Batch::load`.
    unsafe {
        let from = spot.pointer.add(offset + part.offset as usize);
        match (part.held, spot.relaxed) {
            (Held::Word, false) => from.cast::<u32>().read(),
            (Held::Word, true) => AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed),
            (Held::Byte | Held::SignedByte, false) => part.held.extend(u16::from(from.read())),
            (Held::Byte | Held::SignedByte, true) => {
                part.held.extend(u16::from(AtomicU8::from_ptr(from).load(Ordering::Relaxed)))
            }
            (_, false) => part.held.extend(from.cast::<u16>().read()),
            (_, true) => part.held.extend(AtomicU16::from_ptr(from.cast()).load(Ordering::Relaxed)),
        }
    }
}

#[inline(always)]
unsafe fn write(spot: &Spot, offset: usize, part: &Part, word: u32) {
    // SAFETY: the caller has checked the offset; see `Batch::load`.
    unsafe {
        let to = spot.pointer.add(offset + part.offset as usize);
        let narrow = part.held.cut(word);
        match (part.held, spot.relaxed) {
            (Held::Word, false) => to.cast::<u32>().write(word),
            (Held::Word, true) => AtomicU32::from_ptr(to.cast()).store(word, Ordering::Relaxed),
            (Held::Byte | Held::SignedByte, false) => to.write(narrow as u8),
            (Held::Byte | Held::SignedByte, true) => AtomicU8::from_ptr(to).store(narrow as u8, Ordering::Relaxed),
            (_, false) => to.cast::<u16>().write(narrow),
            (_, true) => AtomicU16::from_ptr(to.cast()).store(narrow, Ordering::Relaxed),
        }
    }
}

impl Held {
    /// The word for what memory holds.
    #[inline(always)]
    fn extend(self, bits: u16) -> u32 {
        match self {
            Self::SignedByte => i32::from((bits as u8).cast_signed()).cast_unsigned(),
            Self::SignedHalf => i32::from(bits.cast_signed()).cast_unsigned(),
            Self::Upper => u32::from(bits) << 16,
            Self::Float => math::half_to_f32(bits.into()).to_bits(),
            Self::Word | Self::Half | Self::Byte => bits.into(),
        }
    }

    /// What memory holds for a word.
    #[inline(always)]
    fn cut(self, word: u32) -> u16 {
        match self {
            Self::Upper => (word >> 16) as u16,
            Self::Float => math::f32_to_half(f32::from_bits(word)) as u16,
            _ => word as u16,
        }
    }
}

/// Goes over elements of memory that are `apart` bytes from one to the next; the common distances are known to the compiler.
#[inline(always)]
fn at_distance<T>(apart: isize, each: impl Fn(isize)) {
    let size = size_of::<T>() as isize;
    match apart {
        _ if apart == size => each(size),
        _ if apart == 2 * size => each(2 * size),
        _ if apart == 4 * size => each(4 * size),
        _ => each(apart),
    }
}

/// Reads an element of memory for each lane, `apart` bytes from that of the lane before.
#[inline(always)]
unsafe fn gather<T: Copy>(to: *mut u32, from: *const u8, apart: isize, lanes: usize, extend: impl Fn(T) -> u32) {
    // SAFETY: the caller vouches for the places.
    let each = |apart: isize| unsafe {
        for lane in 0..lanes {
            to.add(lane).write(extend(from.offset(lane as isize * apart).cast::<T>().read()));
        }
    };
    at_distance::<T>(apart, each);
}

/// Writes them.
#[inline(always)]
unsafe fn scatter<T: Copy>(to: *mut u8, from: *const u32, apart: isize, lanes: usize, cut: impl Fn(u32) -> T) {
    // SAFETY: as in `gather`.
    let each = |apart: isize| unsafe {
        for lane in 0..lanes {
            to.offset(lane as isize * apart).cast::<T>().write(cut(from.add(lane).read()));
        }
    };
    at_distance::<T>(apart, each);
}

fn update(word: &AtomicU32, operation: (AtomicOperation, Order), value: u32, compare: u32) -> u32 {
    let (operation, order) = operation;
    // What a failed comparison orders, for operations that look and then write.
    let (order, seen) = (order.host(), order.of_load().host());
    let with = |f: &dyn Fn(i32, i32) -> i32| {
        word.fetch_update(order, seen, |old| Some(f(old.cast_signed(), value.cast_signed()).cast_unsigned()))
            .unwrap_or_else(|old| old)
    };
    match operation {
        AtomicOperation::Load => word.load(seen),
        AtomicOperation::Store => {
            word.store(value, order);
            0
        }
        AtomicOperation::Add => word.fetch_add(value, order),
        AtomicOperation::AddFloat => {
            let add = |old| Some((f32::from_bits(old) + f32::from_bits(value)).to_bits());
            word.fetch_update(order, seen, add).unwrap_or_else(|old| old)
        }
        AtomicOperation::Subtract => word.fetch_sub(value, order),
        AtomicOperation::MinUnsigned => word.fetch_min(value, order),
        AtomicOperation::MaxUnsigned => word.fetch_max(value, order),
        AtomicOperation::MinSigned => with(&i32::min),
        AtomicOperation::MaxSigned => with(&i32::max),
        AtomicOperation::And => word.fetch_and(value, order),
        AtomicOperation::Or => word.fetch_or(value, order),
        AtomicOperation::Xor => word.fetch_xor(value, order),
        AtomicOperation::Exchange => word.swap(value, order),
        AtomicOperation::CompareExchange => {
            word.compare_exchange(compare, value, order, seen).unwrap_or_else(|old| old)
        }
    }
}

impl Batch<'_> {
    fn spot(&self, address: &Address) -> Spot {
        match address.memory {
            Where::Binding { binding, relaxed } => Spot {
                pointer: self.arguments.buffers[binding as usize].pointer.wrapping_add(address.constant as usize),
                relaxed,
            },
            Where::Workgroup(at) => {
                Spot { pointer: self.workgroup.wrapping_add((at + address.constant) as usize), relaxed: false }
            }
        }
    }

    /// Where the memory of an address begins.
    pub(super) fn pointer(&self, address: &Address) -> *mut u8 {
        self.spot(address).pointer
    }

    /// The first index that is past the end; `u64::MAX` if none is guarded.
    #[inline(always)]
    fn limit(&self, bound: Bound) -> u64 {
        match bound {
            Bound::None => u64::MAX,
            Bound::Count(count) => u64::from(count),
            Bound::Length { binding, divisor } => self.lengths[binding as usize] / u64::from(divisor),
        }
    }

    /// A lane's index.
    #[inline(always)]
    unsafe fn index(&self, term: &Term, lane: usize) -> u64 {
        // SAFETY: as in `own`.
        unsafe {
            let lower = u64::from(self.word(term.index, lane));
            term.upper.map_or(lower, |upper| lower | u64::from(self.word(upper, lane)) << 32)
        }
    }

    /// The offset of a lane's place, in the terms' unit; `None` past the end.
    #[inline(always)]
    pub(super) unsafe fn offset(&self, terms: &[Term], lane: usize) -> Option<usize> {
        let mut offset = 0;
        for term in terms {
            // SAFETY: as in `own`.
            let index = unsafe { self.index(term, lane) };
            if index >= self.limit(term.bound) {
                return None;
            }
            offset += index as usize * term.stride as usize;
        }
        Some(offset)
    }

    /// The words of a register as numbers that rise evenly, if they do.
    #[inline(always)]
    unsafe fn found_line(&self, register: Register) -> Option<Line> {
        if let Some(line) = self.line(register) {
            return Some(line);
        }
        // SAFETY: as in `own`; a batch has lanes.
        unsafe {
            let words = self.operand(register);
            let first = words.read();
            let step = if self.lanes > 1 { words.add(1).read().wrapping_sub(first) } else { 0 };
            let line = Line { first, step };
            ((step == 0 || self.all) && lanes::even(words, line, self.lanes)).then_some(line)
        }
    }

    /// If the lanes' places are evenly apart and all there: the offset of the first, and how far the next is from it. Unless that is 0, all lanes are active.
    #[inline(always)]
    pub(super) unsafe fn evenly(&self, terms: &[Term]) -> Option<(usize, isize)> {
        let (mut offset, mut apart) = (0, 0);
        for term in terms {
            // SAFETY: as in `own`.
            let (line, upper) = unsafe {
                let upper = match term.upper {
                    None => 0,
                    Some(upper) => self.found_line(upper)?.everywhere()?,
                };
                (self.found_line(term.index)?, u64::from(upper) << 32)
            };
            let [first, last] = line.ends(self.lanes, false)?.map(|end| upper | end.cast_unsigned());
            if first.max(last) >= self.limit(term.bound) {
                return None;
            }
            offset += first as usize * term.stride as usize;
            apart += line.step.cast_signed() as isize * term.stride as isize;
        }
        (apart == 0 || self.all).then_some((offset, apart))
    }

    /// If all lanes are active and their places are all there, by one index: the lanes' indices, and the bytes from one to the next.
    #[inline(always)]
    unsafe fn scattered(&self, terms: &[Term]) -> Option<(*const u32, usize)> {
        let [Term { index, upper: None, stride, bound }] = terms else { return None };
        if !self.all {
            return None;
        }
        // SAFETY: as in `own`.
        let indices = unsafe { self.operand(*index) };
        let limit = self.limit(*bound);
        // SAFETY: as above.
        let inside = limit > u64::from(u32::MAX) || u64::from(unsafe { lanes::largest(indices, self.lanes) }) < limit;
        inside.then_some((indices, *stride as usize))
    }

    #[inline(always)]
    pub(super) unsafe fn load(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: guards keep indices inside; those without were proved. Words are aligned to 4 bytes, halves to 2. Indices are looked at before
        // targets are, which they are not among.
        unsafe {
            match self.evenly(&address.terms) {
                Some((offset, 0)) => {
                    for part in parts {
                        self.set_line(part.register, Line::same(read(&spot, offset, part)));
                    }
                    return;
                }
                Some((offset, apart)) if !spot.relaxed => {
                    for part in parts {
                        let from = spot.pointer.add(offset + part.offset as usize);
                        match address.memory {
                            Where::Binding { binding, .. }
                                if self.leeway[binding as usize].steady && part.held == Held::Word && apart == 4 =>
                            {
                                self.set_words(part.register, from.cast());
                            }
                            _ => self.read_evenly(part, from, apart),
                        }
                    }
                    return;
                }
                _ => {}
            }
            if !spot.relaxed
                && let Some((indices, stride)) = self.scattered(&address.terms)
            {
                for part in parts {
                    let to = self.target(part.register);
                    if part.held == Held::Word {
                        let from = spot.pointer.add(part.offset as usize);
                        for lane in 0..self.lanes {
                            let place = from.add(indices.add(lane).read() as usize * stride);
                            to.add(lane).write(place.cast::<u32>().read());
                        }
                    } else {
                        for lane in 0..self.lanes {
                            let offset = indices.add(lane).read() as usize * stride;
                            to.add(lane).write(read(&spot, offset, part));
                        }
                    }
                }
                return;
            }
            for part in parts {
                self.target(part.register);
            }
            for lane in 0..self.lanes {
                if !self.is_active(lane) {
                    continue;
                }
                let offset = self.offset(&address.terms, lane);
                for part in parts {
                    let word = match offset {
                        Some(offset) => read(&spot, offset, part),
                        None => 0,
                    };
                    self.own(part.register).add(lane).write(word);
                }
            }
        }
    }

    /// Reads a part of each lane's value; the first lane's is at `from`.
    #[inline(always)]
    unsafe fn read_evenly(&self, part: &Part, from: *const u8, apart: isize) {
        // SAFETY: as in `load`.
        unsafe {
            let to = self.target(part.register);
            match part.held {
                Held::Word => gather(to, from, apart, self.lanes, |word: u32| word),
                Held::Half => gather(to, from, apart, self.lanes, |bits: u16| Held::Half.extend(bits)),
                Held::Float if apart == 2 => halves::widen(from.cast(), to, self.lanes),
                Held::Float => gather(to, from, apart, self.lanes, |bits: u16| Held::Float.extend(bits)),
                Held::SignedHalf => gather(to, from, apart, self.lanes, |bits: u16| Held::SignedHalf.extend(bits)),
                Held::Upper => gather(to, from, apart, self.lanes, |bits: u16| Held::Upper.extend(bits)),
                Held::Byte => gather(to, from, apart, self.lanes, |bits: u8| Held::Byte.extend(bits.into())),
                Held::SignedByte => {
                    gather(to, from, apart, self.lanes, |bits: u8| Held::SignedByte.extend(bits.into()))
                }
            }
        }
    }

    /// Where a store writes the words of all lanes side by side, if they may be written there before it.
    #[inline(always)]
    pub(super) unsafe fn destination(&self, address: &Address, part: &Part) -> Option<*mut u32> {
        let Where::Binding { binding, relaxed: false } = address.memory else { return None };
        if !self.leeway[binding as usize].alone || part.held != Held::Word {
            return None;
        }
        // SAFETY: as in `own`.
        let (offset, apart) = unsafe { self.evenly(&address.terms) }?;
        // A lane's word lies behind that of the lane before it, so that all are there once.
        (apart == 4 && self.all).then(|| self.pointer(address).wrapping_add(offset + part.offset as usize).cast())
    }

    #[inline(always)]
    pub(super) unsafe fn store(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: as in `load`.
        unsafe {
            if !spot.relaxed && self.all {
                match self.evenly(&address.terms) {
                    Some((offset, apart)) if apart != 0 => {
                        for part in parts {
                            self.write_evenly(part, spot.pointer.add(offset + part.offset as usize), apart);
                        }
                        return;
                    }
                    _ => {}
                }
            }
            for lane in 0..self.lanes {
                if !self.is_active(lane) {
                    continue;
                }
                let Some(offset) = self.offset(&address.terms, lane) else { continue };
                for part in parts {
                    write(&spot, offset, part, self.word(part.register, lane));
                }
            }
        }
    }

    /// Writes a part of each lane's value; the first lane's is at `to`.
    #[inline(always)]
    unsafe fn write_evenly(&self, part: &Part, to: *mut u8, apart: isize) {
        // SAFETY: as in `load`.
        unsafe {
            let from = self.operand(part.register);
            match part.held {
                // It was computed there.
                Held::Word if apart == 4 && std::ptr::eq(from, to.cast()) => {}
                Held::Word => scatter(to, from, apart, self.lanes, |word| word),
                Held::Half => scatter(to, from, apart, self.lanes, |word| Held::Half.cut(word)),
                Held::Float if apart == 2 => halves::narrow(from, to.cast(), self.lanes),
                Held::Float => scatter(to, from, apart, self.lanes, |word| Held::Float.cut(word)),
                Held::SignedHalf => scatter(to, from, apart, self.lanes, |word| Held::SignedHalf.cut(word)),
                Held::Upper => scatter(to, from, apart, self.lanes, |word| Held::Upper.cut(word)),
                Held::Byte | Held::SignedByte => scatter(to, from, apart, self.lanes, |word| word as u8),
            }
        }
    }

    pub(super) unsafe fn atomic(
        &self,
        operation: (AtomicOperation, Order),
        address: &Address,
        to: Option<Register>,
        value: Register,
        compare: Register,
    ) {
        let spot = self.spot(address);
        if let Some(to) = to {
            // SAFETY: as in `own`.
            unsafe { self.target(to) };
        }
        for lane in 0..self.lanes {
            // SAFETY: as in `load`; atomics are words.
            unsafe {
                if !self.is_active(lane) {
                    continue;
                }
                let (value, compare) = (self.word(value, lane), self.word(compare, lane));
                let old = match self.offset(&address.terms, lane) {
                    None => 0,
                    Some(offset) => {
                        let word = AtomicU32::from_ptr(spot.pointer.add(offset).cast());
                        update(word, operation, value, compare)
                    }
                };
                if let Some(to) = to {
                    self.own(to).add(lane).write(old);
                }
            }
        }
    }
}
