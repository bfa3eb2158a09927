//! Running a program: instruction by instruction, each over a batch of invocations.
//!
//! The interpreter is compiled once for each instruction set ([`engines`]), so that the loops over lanes use the widest vectors of the
//! machine. Loads and stores look at their indices: consecutive ones become copies of whole slices, equal ones a single read.

mod memory;
mod wide_atomics;

use super::build::ACTIVE;
use super::functions;
use super::lanes;
use super::program::{Combine, Instruction, Register, Term};
use super::wide;
use crate::artefact::CpuArguments;
use crate::ir::{MathFunction, Scalar};
use crate::vectors::Vectors;

/// The state of a batch.
pub(super) struct Batch<'a> {
    pub(super) arguments: &'a CpuArguments<'a>,
    /// The length of each binding, as the launch says.
    pub(super) lengths: &'a [u64],
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

    unsafe fn math(&self, function: MathFunction, scalar: Scalar, to: &[Register], given: &[Vec<Register>]) {
        let count = given.first().map_or(1, Vec::len);
        for lane in 0..self.lanes {
            let mut words = [[0; functions::MOST]; functions::ARGUMENTS];
            // SAFETY: as in `at`.
            unsafe {
                for (words, registers) in words.iter_mut().zip(given) {
                    for (word, register) in words.iter_mut().zip(registers) {
                        *word = self.at(*register).add(lane).read();
                    }
                }
                let result = functions::evaluate(function, scalar, count, &words);
                for (to, word) in to.iter().zip(result) {
                    self.at(*to).add(lane).write(word);
                }
            }
        }
    }

    unsafe fn subgroup(&self, combine: Combine, to: Register, value: Register, lane: Register) {
        let size = self.arguments.subgroup_size as usize;
        for first in (0..self.lanes).step_by(size) {
            let last = (first + size).min(self.lanes);
            // SAFETY: as in `at`.
            unsafe {
                let (to, value, asked) = (self.at(to), self.at(value).cast_const(), self.at(lane).cast_const());
                let given = |at: usize| value.add(at).read();
                let fill = |word: u32| (first..last).for_each(|at| to.add(at).write(word));
                let with = |operation, all: u32, at: usize| {
                    let mut sum = 0;
                    lanes::two(operation, &mut sum, &all, value.add(at), 1);
                    sum
                };
                match combine {
                    Combine::Reduce(operation) => {
                        fill((first + 1..last).fold(given(first), |all, at| with(operation, all, at)));
                    }
                    Combine::Inclusive(operation) => {
                        let mut all = given(first);
                        to.add(first).write(all);
                        for at in first + 1..last {
                            all = with(operation, all, at);
                            to.add(at).write(all);
                        }
                    }
                    Combine::Exclusive(operation, neutral) => {
                        let mut all = neutral;
                        for at in first..last {
                            to.add(at).write(all);
                            all = with(operation, all, at);
                        }
                    }
                    Combine::Any => fill((first..last).fold(0, |all, at| all | given(at))),
                    Combine::All => fill((first..last).fold(u32::MAX, |all, at| all & given(at))),
                    Combine::Ballot(word) => {
                        let from = (first + 32 * word as usize).min(last);
                        let bits = (from..(from + 32).min(last)).map(|at| (given(at) & 1) << (at - from));
                        fill(bits.fold(0, |all, bit| all | bit));
                    }
                    Combine::Broadcast | Combine::Lane | Combine::Xor | Combine::Up | Combine::Down => {
                        for at in first..last {
                            let (asked, here) = (asked.add(at).read(), (at - first) as u32);
                            let from = match combine {
                                Combine::Xor => here ^ asked,
                                Combine::Up => here.wrapping_sub(asked),
                                Combine::Down => here.wrapping_add(asked),
                                _ => asked,
                            } as usize;
                            let word = match combine {
                                _ if from < last - first => given(first + from),
                                Combine::Broadcast => 0,
                                _ => given(at),
                            };
                            to.add(at).write(word);
                        }
                    }
                }
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
                        Instruction::Math { function, scalar, to, given } => batch.math(*function, *scalar, to, given),
                        Instruction::Wide { operation, to, from } => {
                            // Missing words are never read.
                            let at = |list: &[Register], word: usize| batch.at(*list.get(word).unwrap_or(&list[0]));
                            let to = [at(to, 0), at(to, 1)];
                            let from = [0, 1, 2, 3, 4, 5].map(|word| at(from, word).cast_const());
                            wide::run($fused, *operation, to, from, lanes);
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
                        Instruction::WideAtomic { operation, order, address, to, value, compare } => {
                            batch.wide_atomic((*operation, *order), address, *to, *value, *compare);
                        }
                        Instruction::Fence => std::sync::atomic::fence(std::sync::atomic::Ordering::AcqRel),
                        Instruction::Atomic { operation, order, address, to, value, compare } => {
                            batch.atomic((*operation, *order), address, *to, *value, *compare);
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
