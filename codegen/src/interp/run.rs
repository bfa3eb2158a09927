//! Running a program: instruction by instruction, each over a batch of invocations.
//!
//! The interpreter is compiled once for each instruction set ([`engines`]), so that the loops over lanes use the widest vectors of the
//! machine.
//!
//! | file | what it holds |
//! |---|---|
//! | `halves` | halves side by side, by the processor's own conversion |
//! | [`lines`] | numbers that rise evenly from lane to lane |
//! | [`registers`] | where registers have their words: few of them are copied |
//! | `memory` | loads, stores and atomics |
//! | `wide_atomics` | atomics of 64 bits |
//! | `subgroups` | operations of subgroups |

mod halves;
pub(super) mod lines;
mod memory;
pub(super) mod registers;
mod subgroups;
mod wide_atomics;

use std::cell::Cell;

use self::lines::Line;
use self::registers::{Leeway, Place};
use super::build::ACTIVE;
use super::functions;
use super::lanes;
use super::program::{Comparison, Instruction, Register, Term, Two};
use super::wide;
use crate::artefact::CpuArguments;
use crate::ir::{MathFunction, Scalar};
use crate::vectors::Vectors;

/// The state of a batch.
pub(super) struct Batch<'a> {
    pub(super) arguments: &'a CpuArguments<'a>,
    /// The length of each binding, as the launch says.
    pub(super) lengths: &'a [u64],
    /// How each binding may be accessed otherwise than the program says.
    pub(super) leeway: &'a [Leeway],
    /// Where each register has its words.
    pub(super) places: &'a [Cell<Place>],
    /// Registers' own places, one after the other.
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

impl Batch<'_> {
    /// Makes all lanes active; where they are, fewer of them are too.
    pub(super) unsafe fn all_active(&mut self) {
        if !self.all {
            // SAFETY: as in `own`.
            unsafe { self.fill(ACTIVE, u32::MAX) };
        }
        (self.any, self.all) = (true, true);
    }

    /// Looks at the mask again after it changed.
    #[inline(always)]
    unsafe fn look(&mut self) {
        // SAFETY: the mask is a register.
        (self.any, self.all) = unsafe { lanes::any_and_all(self.own(ACTIVE), self.lanes) };
    }

    /// Fills a mask, which is always in its own place.
    #[inline(always)]
    unsafe fn fill(&self, mask: Register, value: u32) {
        for lane in 0..self.lanes {
            // SAFETY: as in `own`.
            unsafe { self.own(mask).add(lane).write(value) };
        }
    }

    /// `into |= active`, and nobody is active.
    #[inline(always)]
    unsafe fn leave(&mut self, into: Option<Register>) {
        // SAFETY: as in `own`.
        unsafe {
            let active = self.own(ACTIVE);
            if let Some(into) = into {
                let into = self.own(into);
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
        if self.all {
            return;
        }
        // SAFETY: as in `own`.
        unsafe {
            let (active, from) = (self.own(ACTIVE), self.own(from));
            for lane in 0..self.lanes {
                active.add(lane).write(active.add(lane).read() | from.add(lane).read());
            }
            self.look();
        }
    }

    /// Lanes whose condition is false leave.
    #[inline(always)]
    unsafe fn keep(&mut self, condition: Register, left: Register) {
        // SAFETY: as in `own`.
        unsafe {
            match self.everywhere(condition) {
                Some(u32::MAX) => return,
                Some(_) => return self.leave(Some(left)),
                None => {}
            }
            let (active, left, condition) = (self.own(ACTIVE), self.own(left), self.operand(condition));
            for lane in 0..self.lanes {
                let (a, c) = (active.add(lane).read(), condition.add(lane).read());
                left.add(lane).write(left.add(lane).read() | (a & !c));
                active.add(lane).write(a & c);
            }
            self.look();
        }
    }

    /// Whether a comparison holds in all lanes, or in none, if that is known by two numbers.
    #[inline(always)]
    fn holds_everywhere(&self, comparison: Comparison, a: Register, b: Register) -> Option<bool> {
        let line = Line::combined(Two::Compare(comparison), self.line(a)?, self.line(b)?, self.lanes)?;
        line.everywhere().map(|mask| mask != 0)
    }

    #[inline(always)]
    unsafe fn is_active(&self, lane: usize) -> bool {
        // SAFETY: as in `own`.
        self.all || unsafe { self.own(ACTIVE).add(lane).read() } != 0
    }

    /// Reads or writes registers chosen by indices.
    #[inline(always)]
    unsafe fn chosen(&self, base: Register, terms: &[Term], list: &[Register], write: bool) {
        // SAFETY: guards keep indices within the local's registers.
        unsafe {
            if let Some((first, 0)) = self.evenly(terms) {
                for (register, place) in list.iter().zip(base + first as u32..) {
                    if write { self.assign(place, *register) } else { self.copy(*register, place, None) }
                }
                return;
            }
            if !write {
                list.iter().for_each(|to| _ = self.target(*to));
            }
            for lane in 0..self.lanes {
                let offset = self.offset(terms, lane).filter(|_| self.is_active(lane));
                for (position, register) in list.iter().enumerate() {
                    match offset.map(|offset| base + (offset + position) as u32) {
                        Some(place) if write => self.kept(place).add(lane).write(self.word(*register, lane)),
                        Some(place) => self.own(*register).add(lane).write(self.word(place, lane)),
                        None if write => {}
                        None => self.own(*register).add(lane).write(0),
                    }
                }
            }
        }
    }

    unsafe fn math(&self, function: MathFunction, scalar: Scalar, to: &[Register], given: &[Vec<Register>]) {
        let count = given.first().map_or(1, Vec::len);
        let alike = given.iter().flatten().all(|register| self.everywhere(*register).is_some());
        // SAFETY: as in `own`.
        unsafe {
            let at = |lane: usize| {
                let mut words = [[0; functions::MOST]; functions::ARGUMENTS];
                for (words, registers) in words.iter_mut().zip(given) {
                    for (word, register) in words.iter_mut().zip(registers) {
                        *word = self.word(*register, lane);
                    }
                }
                functions::evaluate(function, scalar, count, &words)
            };
            if alike {
                to.iter().zip(at(0)).for_each(|(to, word)| self.set_line(*to, Line::same(word)));
                return;
            }
            to.iter().for_each(|to| _ = self.target(*to));
            for lane in 0..self.lanes {
                to.iter().zip(at(lane)).for_each(|(to, word)| self.own(*to).add(lane).write(word));
            }
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
            for (position, instruction) in code.iter().enumerate() {
                if !batch.any {
                    return;
                }
                let (lanes, next) = (batch.lanes, code.get(position + 1));
                // What is made of words that are the same in all lanes is made once.
                let mut once = 0;
                // SAFETY: programs name registers that exist, and targets that are not operands.
                unsafe {
                    match instruction {
                        Instruction::One { operation, to, a } => {
                            let alike = batch.everywhere(*a);
                            let (into, count) = batch.results(*to, alike.is_some(), &mut once, next);
                            let a = batch.words(*a, alike.as_ref());
                            lanes::one(*operation, into, a, count);
                            if alike.is_some() {
                                batch.set_line(*to, Line::same(once));
                            }
                        }
                        Instruction::Two { operation, to, a, b } => {
                            let line = match (batch.line(*a), batch.line(*b)) {
                                (Some(a), Some(b)) => Line::combined(*operation, a, b, lanes),
                                _ => None,
                            };
                            if let Some(line) = line {
                                batch.set_line(*to, line);
                                continue;
                            }
                            let alike = batch.everywhere(*a).zip(batch.everywhere(*b));
                            let (into, count) = batch.results(*to, alike.is_some(), &mut once, next);
                            let operands = (
                                batch.words(*a, alike.as_ref().map(|both| &both.0)),
                                batch.words(*b, alike.as_ref().map(|both| &both.1)),
                            );
                            lanes::two(*operation, into, operands.0, operands.1, count);
                            if alike.is_some() {
                                batch.set_line(*to, Line::same(once));
                            }
                        }
                        Instruction::MulAdd { to, a, b, c } => {
                            let operands = (batch.operand(*a), batch.operand(*b), batch.operand(*c));
                            let into = batch.result(*to, next);
                            lanes::multiply_add($fused, into, operands.0, operands.1, operands.2, lanes);
                        }
                        Instruction::Math { function, scalar, to, given } => batch.math(*function, *scalar, to, given),
                        Instruction::Wide { operation, to, from } => {
                            // Missing words are never read.
                            let at = |word: usize| batch.operand(*from.get(word).unwrap_or(&from[0]));
                            let from = [0, 1, 2, 3, 4, 5].map(at);
                            let at = |word: usize| batch.target(*to.get(word).unwrap_or(&to[0]));
                            let to = [0, 1].map(at);
                            wide::run($fused, *operation, to, from, lanes);
                        }
                        Instruction::Select { to, condition, accept, reject } => match batch.everywhere(*condition) {
                            Some(condition) => {
                                batch.copy(*to, if condition == 0 { *reject } else { *accept }, next);
                            }
                            None => {
                                let condition = batch.operand(*condition);
                                let (accept, reject) = (batch.operand(*accept), batch.operand(*reject));
                                lanes::select(batch.result(*to, next), condition, accept, reject, lanes);
                            }
                        },
                        Instruction::Choose { to, comparison, a, b, accept, reject } => {
                            match batch.holds_everywhere(*comparison, *a, *b) {
                                Some(holds) => batch.copy(*to, if holds { *accept } else { *reject }, next),
                                None => {
                                    let operands = [*a, *b, *accept, *reject].map(|register| batch.operand(register));
                                    lanes::choose(*comparison, batch.result(*to, next), operands, lanes);
                                }
                            }
                        }
                        Instruction::Copy { to, from } => batch.copy(*to, *from, next),
                        Instruction::Assign { to, from } => batch.assign(*to, *from),
                        Instruction::Pick { to, base, terms } => batch.chosen(*base, terms, to, false),
                        Instruction::Put { from, base, terms } => batch.chosen(*base, terms, from, true),
                        Instruction::Load { address, parts } => batch.load(address, parts),
                        Instruction::Store { address, parts } => batch.store(address, parts),
                        Instruction::WideAtomic { operation, order, address, to, value, compare } => {
                            batch.wide_atomic((*operation, *order), address, *to, *value, *compare);
                        }
                        Instruction::Fence => std::sync::atomic::fence(std::sync::atomic::Ordering::AcqRel),
                        Instruction::Atomic { operation, order, address, to, value, compare } => {
                            batch.atomic((*operation, *order), address, *to, *value, *compare);
                        }
                        Instruction::Uniform { to, from } => {
                            let first = (0..lanes).find(|lane| batch.is_active(*lane)).unwrap_or(0);
                            batch.set_line(*to, Line::same(batch.word(*from, first)));
                        }
                        Instruction::Subgroup { combine, to, value, lane } => {
                            batch.subgroup(*combine, *to, *value, *lane);
                        }
                        Instruction::If { condition, accept, reject } => {
                            if let Some(condition) = batch.everywhere(*condition) {
                                $name(batch, if condition == 0 { reject } else { accept });
                                continue;
                            }
                            let (active, condition) = (batch.own(ACTIVE), batch.operand(*condition));
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
                                // Where all are active nobody continues, and the mask is still empty.
                                if !batch.all {
                                    batch.rejoin(*continued);
                                    if !batch.any {
                                        break;
                                    }
                                    batch.fill(*continued, 0);
                                }
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
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
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
        let vectors = Vectors::of_processor();
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        if vectors >= Vectors::Avx512 {
            return avx512(batch, code);
        }
        #[cfg(target_arch = "x86_64")]
        if vectors >= Vectors::Avx2 {
            return avx2(batch, code);
        }
        #[cfg(target_arch = "aarch64")]
        neon(batch, code);
        #[cfg(not(target_arch = "aarch64"))]
        baseline(batch, code);
    }
}
