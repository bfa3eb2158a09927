//! Running a program: instruction by instruction, each over a batch of invocations.
//!
//! The interpreter is compiled once for each instruction set ([`engines`]), so that the loops over lanes use the widest vectors of the
//! machine. Loads and stores look at their indices: consecutive ones become copies of whole slices, equal ones a single read.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::build::ACTIVE;
use super::lanes;
use super::program::{Address, AtomicOperation, Bound, Combine, Instruction, Part, Register, Term, Where};
use crate::artefact::CpuArguments;
use crate::emit::cpu::SUBGROUP_SIZE;

/// The state of a batch.
pub(super) struct Batch<'a> {
    pub(super) arguments: &'a CpuArguments<'a>,
    /// The length of each binding, as the launch says.
    pub(super) lengths: &'a [u32],
    /// Registers, one after the other.
    pub(super) registers: *mut u32,
    /// Lanes of a register.
    pub(super) stride: usize,
    /// Lanes in use.
    pub(super) lanes: usize,
    /// Workgroup memory.
    pub(super) workgroup: *mut u8,
    /// Whether any lane is active.
    pub(super) any: bool,
    /// Whether all are.
    pub(super) all: bool,
    /// Masks put aside by branches that some lanes take and others do not.
    pub(super) saved: Vec<u32>,
}

/// Where a part of a value lies, once a place's fixed parts are known.
struct Spot {
    pointer: *mut u8,
    relaxed: bool,
}

impl Batch<'_> {
    #[inline(always)]
    unsafe fn at(&self, register: Register) -> *mut u32 {
        // SAFETY: programs name registers that exist.
        unsafe { self.registers.add(register as usize * self.stride) }
    }

    /// Looks at the mask again after it changed.
    #[inline(always)]
    unsafe fn look(&mut self) {
        // SAFETY: the mask is a register.
        (self.any, self.all) = unsafe { lanes::any_and_all(self.at(ACTIVE), self.lanes) };
    }

    #[inline(always)]
    unsafe fn fill(&self, register: Register, value: u32) {
        for lane in 0..self.lanes {
            // SAFETY: as in `at`.
            unsafe { self.at(register).add(lane).write(value) };
        }
    }

    /// `into |= active`, and nobody is active.
    #[inline(always)]
    unsafe fn leave(&mut self, into: Option<Register>) {
        // SAFETY: as in `at`.
        unsafe {
            let active = self.at(ACTIVE);
            if let Some(into) = into {
                let into = self.at(into);
                for lane in 0..self.lanes {
                    into.add(lane).write(into.add(lane).read() | active.add(lane).read());
                }
            }
            self.fill(ACTIVE, 0);
        }
        (self.any, self.all) = (false, false);
    }

    /// `active |= from`.
    #[inline(always)]
    unsafe fn rejoin(&mut self, from: Register) {
        // SAFETY: as in `at`.
        unsafe {
            let (active, from) = (self.at(ACTIVE), self.at(from));
            for lane in 0..self.lanes {
                active.add(lane).write(active.add(lane).read() | from.add(lane).read());
            }
            self.look();
        }
    }

    /// Lanes whose condition is false leave.
    #[inline(always)]
    unsafe fn keep(&mut self, condition: Register, left: Register) {
        // SAFETY: as in `at`.
        unsafe {
            let (active, left, condition) = (self.at(ACTIVE), self.at(left), self.at(condition));
            for lane in 0..self.lanes {
                let (a, c) = (active.add(lane).read(), condition.add(lane).read());
                left.add(lane).write(left.add(lane).read() | (a & !c));
                active.add(lane).write(a & c);
            }
            self.look();
        }
    }

    #[inline(always)]
    unsafe fn is_active(&self, lane: usize) -> bool {
        // SAFETY: as in `at`.
        self.all || unsafe { self.at(ACTIVE).add(lane).read() } != 0
    }

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

    /// The first index that is past the end; `u64::MAX` if none is guarded.
    #[inline(always)]
    fn limit(&self, bound: Bound) -> u64 {
        match bound {
            Bound::None => u64::MAX,
            Bound::Count(count) => u64::from(count),
            Bound::Length { binding, divisor } => u64::from(self.lengths[binding as usize] / divisor),
        }
    }

    /// The offset of a lane's place, in the terms' unit; `None` past the end.
    #[inline(always)]
    unsafe fn offset(&self, terms: &[Term], lane: usize) -> Option<usize> {
        let mut offset = 0;
        for term in terms {
            // SAFETY: as in `at`.
            let index = unsafe { self.at(term.index).add(lane).read() };
            if u64::from(index) >= self.limit(term.bound) {
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
            let index = self.at(term.index);
            if !lanes::ascending(index, self.lanes) {
                return None;
            }
            let first = index.read();
            let inside = u64::from(first) + self.lanes as u64 <= self.limit(term.bound);
            inside.then_some((first as usize * term.stride as usize, term.stride as usize))
        }
    }

    /// Whether all lanes are active and access the same place.
    #[inline(always)]
    unsafe fn one_place(&self, terms: &[Term]) -> bool {
        // SAFETY: as in `run_of_elements`.
        self.all && terms.iter().all(|term| unsafe { lanes::constant(self.at(term.index), self.lanes) })
    }

    #[inline(always)]
    unsafe fn load(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: guards keep indices inside; those without were proved. Words are aligned to 4 bytes, halves to 2.
        unsafe {
            if !spot.relaxed
                && let Some((first, stride)) = self.run_of_elements(&address.terms)
            {
                let from = spot.pointer.add(first);
                for part in parts {
                    let (to, from) = (self.at(part.register), from.add(part.offset as usize));
                    if part.half {
                        let (from, step) = (from.cast::<u16>(), stride / 2);
                        if step == 1 {
                            for lane in 0..self.lanes {
                                to.add(lane).write(u32::from(from.add(lane).read()));
                            }
                        } else {
                            for lane in 0..self.lanes {
                                to.add(lane).write(u32::from(from.add(lane * step).read()));
                            }
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
    unsafe fn store(&self, address: &Address, parts: &[Part]) {
        let spot = self.spot(address);
        // SAFETY: as in `load`.
        unsafe {
            if !spot.relaxed
                && let Some((first, stride)) = self.run_of_elements(&address.terms)
            {
                let to = spot.pointer.add(first);
                for part in parts {
                    let (from, to) = (self.at(part.register).cast_const(), to.add(part.offset as usize));
                    if part.half {
                        let (to, step) = (to.cast::<u16>(), stride / 2);
                        if step == 1 {
                            for lane in 0..self.lanes {
                                to.add(lane).write(from.add(lane).read() as u16);
                            }
                        } else {
                            for lane in 0..self.lanes {
                                to.add(lane * step).write(from.add(lane).read() as u16);
                            }
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

    unsafe fn atomic(
        &self,
        operation: AtomicOperation,
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

    /// Reads or writes registers chosen by indices.
    #[inline(always)]
    unsafe fn chosen(&self, base: Register, terms: &[Term], list: &[Register], write: bool) {
        for lane in 0..self.lanes {
            // SAFETY: guards keep indices within the local's registers.
            unsafe {
                if write && !self.is_active(lane) {
                    continue;
                }
                let offset = match self.offset(terms, lane) {
                    Some(offset) if self.is_active(lane) => offset,
                    _ => {
                        if !write {
                            for to in list {
                                self.at(*to).add(lane).write(0);
                            }
                        }
                        continue;
                    }
                };
                for (position, register) in list.iter().enumerate() {
                    let place = self.at(base + (offset + position) as u32).add(lane);
                    let register = self.at(*register).add(lane);
                    if write { place.write(register.read()) } else { register.write(place.read()) }
                }
            }
        }
    }

    unsafe fn subgroup(&self, combine: Combine, to: Register, value: Register, lane: Register) {
        let size = SUBGROUP_SIZE as usize;
        for first in (0..self.lanes).step_by(size) {
            let last = (first + size).min(self.lanes);
            // SAFETY: as in `at`.
            unsafe {
                let (to, value, asked) = (self.at(to), self.at(value).cast_const(), self.at(lane).cast_const());
                match combine {
                    Combine::With(operation) => {
                        let mut all = value.add(first).read();
                        for at in first + 1..last {
                            let mut sum = 0;
                            lanes::two(operation, &mut sum, &all, value.add(at), 1);
                            all = sum;
                        }
                        (first..last).for_each(|at| to.add(at).write(all));
                    }
                    Combine::Lane | Combine::Xor => {
                        for at in first..last {
                            let asked = asked.add(at).read() as usize;
                            let from = if combine == Combine::Xor { (at - first) ^ asked } else { asked };
                            let word = if from < last - first { value.add(first + from).read() } else { 0 };
                            to.add(at).write(word);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn read(spot: &Spot, offset: usize, part: &Part) -> u32 {
    // SAFETY: the caller has checked the offset; see `Batch::load`.
    unsafe {
        let from = spot.pointer.add(offset + part.offset as usize);
        match (part.half, spot.relaxed) {
            (true, false) => u32::from(from.cast::<u16>().read()),
            (true, true) => u32::from(AtomicU16::from_ptr(from.cast()).load(Ordering::Relaxed)),
            (false, false) => from.cast::<u32>().read(),
            (false, true) => AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed),
        }
    }
}

#[inline(always)]
unsafe fn write(spot: &Spot, offset: usize, part: &Part, word: u32) {
    // SAFETY: the caller has checked the offset; see `Batch::load`.
    unsafe {
        let to = spot.pointer.add(offset + part.offset as usize);
        match (part.half, spot.relaxed) {
            (true, false) => to.cast::<u16>().write(word as u16),
            (true, true) => AtomicU16::from_ptr(to.cast()).store(word as u16, Ordering::Relaxed),
            (false, false) => to.cast::<u32>().write(word),
            (false, true) => AtomicU32::from_ptr(to.cast()).store(word, Ordering::Relaxed),
        }
    }
}

fn update(word: &AtomicU32, operation: AtomicOperation, value: u32, compare: u32) -> u32 {
    const RELAXED: Ordering = Ordering::Relaxed;
    let with = |f: &dyn Fn(i32, i32) -> i32| {
        word.fetch_update(RELAXED, RELAXED, |old| Some(f(old.cast_signed(), value.cast_signed()).cast_unsigned()))
            .unwrap_or_else(|old| old)
    };
    match operation {
        AtomicOperation::Load => word.load(RELAXED),
        AtomicOperation::Store => {
            word.store(value, RELAXED);
            0
        }
        AtomicOperation::Add => word.fetch_add(value, RELAXED),
        AtomicOperation::Subtract => word.fetch_sub(value, RELAXED),
        AtomicOperation::MinUnsigned => word.fetch_min(value, RELAXED),
        AtomicOperation::MaxUnsigned => word.fetch_max(value, RELAXED),
        AtomicOperation::MinSigned => with(&i32::min),
        AtomicOperation::MaxSigned => with(&i32::max),
        AtomicOperation::And => word.fetch_and(value, RELAXED),
        AtomicOperation::Or => word.fetch_or(value, RELAXED),
        AtomicOperation::Xor => word.fetch_xor(value, RELAXED),
        AtomicOperation::Exchange => word.swap(value, RELAXED),
        AtomicOperation::CompareExchange => {
            word.compare_exchange(compare, value, RELAXED, RELAXED).unwrap_or_else(|old| old)
        }
    }
}

/// The interpreter, once for an instruction set.
macro_rules! engines {
    ($($(#[$attribute:meta])* $name:ident, $fused:literal;)*) => { $(
        /// Runs instructions until they end or no lane is active.
        ///
        /// # Safety
        /// The machine has the instruction set; the batch's registers are as many as the program has; the arguments obey the
        /// contract of [`crate::artefact::CpuFunction`].
        $(#[$attribute])*
        pub(super) unsafe fn $name(batch: &mut Batch<'_>, code: &[Instruction]) {
            for instruction in code {
                if !batch.any {
                    return;
                }
                let lanes = batch.lanes;
                // SAFETY: programs name registers that exist, and targets that are not operands.
                unsafe {
                    match instruction {
                        Instruction::One { operation, to, a } => {
                            lanes::one(*operation, batch.at(*to), batch.at(*a), lanes);
                        }
                        Instruction::Two { operation, to, a, b } => {
                            lanes::two(*operation, batch.at(*to), batch.at(*a), batch.at(*b), lanes);
                        }
                        Instruction::MulAdd { to, a, b, c } => {
                            let operands = (batch.at(*a), batch.at(*b), batch.at(*c));
                            lanes::multiply_add($fused, batch.at(*to), operands.0, operands.1, operands.2, lanes);
                        }
                        Instruction::Select { to, condition, accept, reject } => {
                            let operands = (batch.at(*condition), batch.at(*accept), batch.at(*reject));
                            lanes::select(batch.at(*to), operands.0, operands.1, operands.2, lanes);
                        }
                        Instruction::Copy { to, from } => {
                            std::ptr::copy(batch.at(*from), batch.at(*to), lanes);
                        }
                        Instruction::Assign { to, from } => {
                            let (to, from) = (batch.at(*to), batch.at(*from));
                            if batch.all {
                                std::ptr::copy(from, to, lanes);
                            } else {
                                lanes::select(to, batch.at(ACTIVE), from, to, lanes);
                            }
                        }
                        Instruction::Pick { to, base, terms } => batch.chosen(*base, terms, to, false),
                        Instruction::Put { from, base, terms } => batch.chosen(*base, terms, from, true),
                        Instruction::Load { address, parts } => batch.load(address, parts),
                        Instruction::Store { address, parts } => batch.store(address, parts),
                        Instruction::Atomic { operation, address, to, value, compare } => {
                            batch.atomic(*operation, address, *to, *value, *compare);
                        }
                        Instruction::Uniform { to, from } => {
                            let first = (0..lanes).find(|lane| batch.is_active(*lane)).unwrap_or(0);
                            let value = batch.at(*from).add(first).read();
                            batch.fill(*to, value);
                        }
                        Instruction::Subgroup { combine, to, value, lane } => {
                            batch.subgroup(*combine, *to, *value, *lane);
                        }
                        Instruction::If { condition, accept, reject } => {
                            let (active, condition) = (batch.at(ACTIVE), batch.at(*condition));
                            let (mut yes, mut no) = (0, 0);
                            for lane in 0..lanes {
                                let (a, c) = (active.add(lane).read(), condition.add(lane).read());
                                yes |= a & c;
                                no |= a & !c;
                            }
                            if no == 0 {
                                $name(batch, accept);
                            } else if yes == 0 {
                                $name(batch, reject);
                            } else {
                                let start = batch.saved.len();
                                for lane in 0..lanes {
                                    let (a, c) = (active.add(lane).read(), condition.add(lane).read());
                                    batch.saved.push(a & !c);
                                    active.add(lane).write(a & c);
                                }
                                (batch.any, batch.all) = (true, false);
                                $name(batch, accept);
                                if !reject.is_empty() {
                                    // The others' turn; those that came through wait.
                                    for lane in 0..lanes {
                                        std::ptr::swap(&raw mut batch.saved[start + lane], active.add(lane));
                                    }
                                    (batch.any, batch.all) = (true, false);
                                    $name(batch, reject);
                                }
                                for lane in 0..lanes {
                                    active.add(lane).write(active.add(lane).read() | batch.saved[start + lane]);
                                }
                                batch.saved.truncate(start);
                                batch.look();
                            }
                        }
                        Instruction::Loop { test, condition, body, step, left, continued } => {
                            batch.fill(*left, 0);
                            batch.fill(*continued, 0);
                            loop {
                                $name(batch, test);
                                if let Some(condition) = condition {
                                    batch.keep(*condition, *left);
                                }
                                if !batch.any {
                                    break;
                                }
                                $name(batch, body);
                                batch.rejoin(*continued);
                                if !batch.any {
                                    break;
                                }
                                batch.fill(*continued, 0);
                                $name(batch, step);
                                if !batch.any {
                                    break;
                                }
                            }
                            batch.rejoin(*left);
                        }
                        Instruction::Function { body, returned } => {
                            batch.fill(*returned, 0);
                            $name(batch, body);
                            batch.rejoin(*returned);
                        }
                        Instruction::Leave { into } => batch.leave(*into),
                    }
                }
            }
        }
    )* };
}

engines! {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,fma")]
    avx512, true;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    avx2, true;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon, true;
    baseline, false;
}

/// Runs instructions with the machine's best instruction set.
///
/// # Safety
/// As the engines, but for the machine.
pub(super) unsafe fn run(batch: &mut Batch<'_>, code: &[Instruction]) {
    // SAFETY: each engine is called only where the machine has its instruction set; the rest is the caller's.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq") && has!("fma") {
                return avx512(batch, code);
            }
            if has!("avx2") && has!("fma") {
                return avx2(batch, code);
            }
            baseline(batch, code);
        }
        #[cfg(target_arch = "aarch64")]
        neon(batch, code);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        baseline(batch, code);
    }
}
