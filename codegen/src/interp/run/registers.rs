//! Where registers have their words: in places of their own, nowhere if lanes rise evenly, or in the memory that is bound.
//!
//! A register whose words lie in bound memory was loaded from a binding that nobody writes ([`Leeway::steady`]), or is what a store writes there
//! ([`Leeway::alone`]). So nothing changes those words while the batch runs, and a register that holds the same may refer to them too.

use std::cell::Cell;

use super::Batch;
use super::lines::Line;
use crate::interp::build::ACTIVE;
use crate::interp::lanes;
use crate::interp::program::{Held, Instruction, Register};

/// Where a register has its words.
#[derive(Clone, Copy, Debug)]
pub(in crate::interp) enum Place {
    /// From there on: its own place, or bound memory.
    Words(*mut u32),
    /// Nowhere; or in its own place as well, once somebody asked for them.
    Line { line: Line, spread: bool },
}

/// What is known of a binding's memory during a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::interp) struct Leeway {
    /// Nobody writes it, so that it may be read later than a load says.
    pub(in crate::interp) steady: bool,
    /// One store writes it, each place at most once, and nobody reads it, so that it may be written earlier than the store says.
    pub(in crate::interp) alone: bool,
}

impl Batch<'_> {
    /// A register's own place.
    #[inline(always)]
    pub(super) unsafe fn own(&self, register: Register) -> *mut u32 {
        // SAFETY: programs name registers that exist.
        unsafe { self.registers.add(register as usize * self.stride) }
    }

    #[inline(always)]
    fn place(&self, register: Register) -> &Cell<Place> {
        &self.places[register as usize]
    }

    /// The numbers of a register whose lanes are known to rise evenly.
    #[inline(always)]
    pub(super) fn line(&self, register: Register) -> Option<Line> {
        match self.place(register).get() {
            Place::Line { line, .. } => Some(line),
            Place::Words(_) => None,
        }
    }

    /// The word of a register that is known to have the same in all lanes.
    #[inline(always)]
    pub(super) fn everywhere(&self, register: Register) -> Option<u32> {
        self.line(register).and_then(Line::everywhere)
    }

    #[inline(always)]
    pub(in crate::interp) fn set_line(&self, register: Register, line: Line) {
        self.place(register).set(Place::Line { line, spread: false });
    }

    #[inline(always)]
    pub(super) fn set_words(&self, register: Register, words: *mut u32) {
        self.place(register).set(Place::Words(words));
    }

    /// Where all words of a register are read.
    #[inline(always)]
    pub(super) unsafe fn operand(&self, register: Register) -> *const u32 {
        match self.place(register).get() {
            Place::Words(words) => words,
            Place::Line { line, spread } => {
                // SAFETY: as in `own`.
                unsafe {
                    let own = self.own(register);
                    if !spread {
                        for lane in 0..self.lanes {
                            own.add(lane).write(line.at(lane));
                        }
                        self.place(register).set(Place::Line { line, spread: true });
                    }
                    own
                }
            }
        }
    }

    /// A lane's word.
    #[inline(always)]
    pub(super) unsafe fn word(&self, register: Register, lane: usize) -> u32 {
        match self.place(register).get() {
            // SAFETY: a register has a word for each lane.
            Place::Words(words) => unsafe { words.add(lane).read() },
            Place::Line { line, .. } => line.at(lane),
        }
    }

    /// Where all words of a register are written; what it held is lost.
    #[inline(always)]
    pub(in crate::interp) unsafe fn target(&self, register: Register) -> *mut u32 {
        // SAFETY: as in `own`.
        let own = unsafe { self.own(register) };
        self.set_words(register, own);
        own
    }

    /// The same for what the next instruction perhaps stores: then they are written where it would copy them to.
    #[inline(always)]
    pub(super) unsafe fn result(&self, register: Register, next: Option<&Instruction>) -> *mut u32 {
        if let Some(Instruction::Store { address, parts }) = next
            && let [part] = parts.as_slice()
            && part.register == register
            && part.held == Held::Word
            && address.terms.iter().all(|term| term.index != register && term.upper != Some(register))
            // SAFETY: as in `own`; nothing stands between here and the store, and its indices are known.
            && let Some(to) = unsafe { self.destination(address, part) }
        {
            self.set_words(register, to);
            return to;
        }
        // SAFETY: as in `own`.
        unsafe { self.target(register) }
    }

    /// Where an operation writes, and how many words: one if all lanes get the same.
    #[inline(always)]
    pub(super) unsafe fn results(
        &self,
        register: Register,
        alike: bool,
        once: &mut u32,
        next: Option<&Instruction>,
    ) -> (*mut u32, usize) {
        if alike {
            return (once, 1);
        }
        // SAFETY: as in `own`.
        (unsafe { self.result(register, next) }, self.lanes)
    }

    /// Where an operation reads: the one word, if all lanes have the same.
    #[inline(always)]
    pub(super) unsafe fn words(&self, register: Register, alike: Option<&u32>) -> *const u32 {
        // SAFETY: as in `own`.
        alike.map_or_else(|| unsafe { self.operand(register) }, std::ptr::from_ref)
    }

    /// Where some words of a register are written and others stay.
    #[inline(always)]
    pub(super) unsafe fn kept(&self, register: Register) -> *mut u32 {
        // SAFETY: as in `own`.
        unsafe {
            let own = self.own(register);
            let words = self.operand(register);
            if !std::ptr::eq(words, own) {
                std::ptr::copy_nonoverlapping(words, own, self.lanes);
            }
            self.set_words(register, own);
            own
        }
    }

    /// All lanes of a register become those of another.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, to: Register, from: Register, next: Option<&Instruction>) {
        match self.place(from).get() {
            Place::Line { line, .. } => self.set_line(to, line),
            // SAFETY: as in `own`; places of registers are apart.
            Place::Words(words) => unsafe {
                if std::ptr::eq(words, self.own(from)) {
                    std::ptr::copy(words, self.result(to, next), self.lanes);
                } else {
                    self.set_words(to, words);
                }
            },
        }
    }

    /// Active lanes of a register become those of another.
    #[inline(always)]
    pub(super) unsafe fn assign(&self, to: Register, from: Register) {
        // SAFETY: as in `own`.
        unsafe {
            if self.all {
                self.copy(to, from, None);
            } else {
                let (from, to) = (self.operand(from), self.kept(to));
                lanes::select(to, self.own(ACTIVE), from, to, self.lanes);
            }
        }
    }
}
