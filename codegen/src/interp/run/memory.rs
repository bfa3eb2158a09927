//! Memory as a batch of lanes reads and writes it: addresses, guards, runs of neighbours, and atomics.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use super::Batch;
use crate::interp::lanes;
use crate::interp::program::{Address, AtomicOperation, Bound, Held, Part, Register, Term, Where};
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
            Self::Word | Self::Half | Self::Byte => bits.into(),
        }
    }

    /// What memory holds for a word.
    #[inline(always)]
    const fn cut(self, word: u32) -> u16 {
        match self {
            Self::Upper => (word >> 16) as u16,
            _ => word as u16,
        }
    }
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
        // SAFETY: as in `at`.
        unsafe {
            let lower = u64::from(self.at(term.index).add(lane).read());
            term.upper.map_or(lower, |upper| lower | u64::from(self.at(upper).add(lane).read()) << 32)
        }
    }

    /// The offset of a lane's place, in the terms' unit; `None` past the end.
    #[inline(always)]
    pub(super) unsafe fn offset(&self, terms: &[Term], lane: usize) -> Option<usize> {
        let mut offset = 0;
        for term in terms {
            // SAFETY: as in `at`.
            let index = unsafe { self.index(term, lane) };
            if index >= self.limit(term.bound) {
                return None;
            }
            offset += index as usize * term.stride as usize;
        }
        Some(offset)
    }

    /// If all lanes are active and access consecutive elements that are all there: the first element and the stride.
    #[inline(always)]
    unsafe fn run_of_elements(&self, terms: &[Term]) -> Option<(usize, usize)> {
        let [term] = terms else { return None };
        if !self.all {
            return None;
        }
        // SAFETY: as in `at`; a batch has lanes.
        unsafe {
            // Where the lower words ascend, they do not wrap.
            let alike = term.upper.is_none_or(|upper| lanes::constant(self.at(upper), self.lanes));
            if !alike || !lanes::ascending(self.at(term.index), self.lanes) {
                return None;
            }
            let first = self.index(term, 0);
            let inside = first.saturating_add(self.lanes as u64) <= self.limit(term.bound);
            inside.then_some((first as usize * term.stride as usize, term.stride as usize))
        }
    }

    /// Whether all lanes are active and access the same place.
    #[inline(always)]
    unsafe fn one_place(&self, terms: &[Term]) -> bool {
        // SAFETY: as in `run_of_elements`.
        let alike = |register: Register| unsafe { lanes::constant(self.at(register), self.lanes) };
        self.all && terms.iter().all(|term| alike(term.index) && term.upper.is_none_or(alike))
    }

    #[inline(always)]
    pub(super) unsafe fn load(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: guards keep indices inside; those without were proved. Words are aligned to 4 bytes, halves to 2.
        unsafe {
            if !spot.relaxed
                && let Some((first, stride)) = self.run_of_elements(&address.terms)
            {
                let from = spot.pointer.add(first);
                for part in parts {
                    let (to, from) = (self.at(part.register), from.add(part.offset as usize));
                    if part.held == Held::Half && stride == 2 {
                        let from = from.cast::<u16>();
                        for lane in 0..self.lanes {
                            to.add(lane).write(u32::from(from.add(lane).read()));
                        }
                    } else if part.held != Held::Word {
                        for lane in 0..self.lanes {
                            to.add(lane).write(read(&spot, first + lane * stride, part));
                        }
                    } else {
                        let (from, step) = (from.cast::<u32>(), stride / 4);
                        match step {
                            1 => std::ptr::copy_nonoverlapping(from, to, self.lanes),
                            2 => (0..self.lanes).for_each(|lane| to.add(lane).write(from.add(lane * 2).read())),
                            4 => (0..self.lanes).for_each(|lane| to.add(lane).write(from.add(lane * 4).read())),
                            _ => (0..self.lanes).for_each(|lane| to.add(lane).write(from.add(lane * step).read())),
                        }
                    }
                }
                return;
            }
            if self.one_place(&address.terms) {
                let offset = self.offset(&address.terms, 0);
                for part in parts {
                    let word = match offset {
                        Some(offset) => read(&spot, offset, part),
                        None => 0,
                    };
                    self.fill(part.register, word);
                }
                return;
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
                    self.at(part.register).add(lane).write(word);
                }
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn store(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: as in `load`.
        unsafe {
            if !spot.relaxed
                && let Some((first, stride)) = self.run_of_elements(&address.terms)
            {
                let to = spot.pointer.add(first);
                for part in parts {
                    let (from, to) = (self.at(part.register).cast_const(), to.add(part.offset as usize));
                    if part.held == Held::Half && stride == 2 {
                        let to = to.cast::<u16>();
                        for lane in 0..self.lanes {
                            to.add(lane).write(from.add(lane).read() as u16);
                        }
                    } else if part.held != Held::Word {
                        for lane in 0..self.lanes {
                            write(&spot, first + lane * stride, part, from.add(lane).read());
                        }
                    } else {
                        let (to, step) = (to.cast::<u32>(), stride / 4);
                        match step {
                            1 => std::ptr::copy_nonoverlapping(from, to, self.lanes),
                            2 => (0..self.lanes).for_each(|lane| to.add(lane * 2).write(from.add(lane).read())),
                            4 => (0..self.lanes).for_each(|lane| to.add(lane * 4).write(from.add(lane).read())),
                            _ => (0..self.lanes).for_each(|lane| to.add(lane * step).write(from.add(lane).read())),
                        }
                    }
                }
                return;
            }
            for lane in 0..self.lanes {
                if !self.is_active(lane) {
                    continue;
                }
                let Some(offset) = self.offset(&address.terms, lane) else { continue };
                for part in parts {
                    write(&spot, offset, part, self.at(part.register).add(lane).read());
                }
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
        for lane in 0..self.lanes {
            // SAFETY: as in `load`; atomics are words.
            unsafe {
                if !self.is_active(lane) {
                    continue;
                }
                let (value, compare) = (self.at(value).add(lane).read(), self.at(compare).add(lane).read());
                let old = match self.offset(&address.terms, lane) {
                    None => 0,
                    Some(offset) => {
                        let word = AtomicU32::from_ptr(spot.pointer.add(offset).cast());
                        update(word, operation, value, compare)
                    }
                };
                if let Some(to) = to {
                    self.at(to).add(lane).write(old);
                }
            }
        }
    }
}
