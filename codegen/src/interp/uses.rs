//! How a program uses each binding, as far as it decides when memory may be read and written.

use std::ops::Range;

use super::program::{Address, Instruction, Where};
use super::run::registers::Leeway;
use crate::artefact::CpuBuffer;

/// The uses of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// Whether anything but one store, which no invocation runs twice, accesses it.
    others: bool,
    /// Whether it is written.
    written: bool,
}

impl Uses {
    /// The uses of as many bindings.
    pub(super) fn of(code: &[Instruction], bindings: usize) -> Vec<Self> {
        let mut uses = vec![Self::default(); bindings];
        note(code, false, &mut uses);
        uses
    }
}

fn note(code: &[Instruction], repeated: bool, uses: &mut [Uses]) {
    let mut access = |address: &Address, stored: bool, written: bool| {
        if let Where::Binding { binding, .. } = address.memory {
            let of = &mut uses[binding as usize];
            of.others |= !stored || repeated || of.written;
            of.written |= written;
        }
    };
    for instruction in code {
        match instruction {
            Instruction::Load { address, .. } => access(address, false, false),
            Instruction::Store { address, .. } => access(address, true, true),
            Instruction::Atomic { address, .. } | Instruction::WideAtomic { address, .. } => {
                access(address, false, true);
            }
            _ => {}
        }
    }
    for instruction in code {
        match instruction {
            Instruction::If { accept, reject, .. } => {
                note(accept, repeated, uses);
                note(reject, repeated, uses);
            }
            Instruction::Loop { test, body, step, .. } => {
                for block in [test, body, step] {
                    note(block, true, uses);
                }
            }
            Instruction::Function { body, .. } => note(body, repeated, uses),
            _ => {}
        }
    }
}

/// The leeway of each binding where these are bound.
pub(super) fn leeway<'a>(uses: &'a [Uses], buffers: &'a [CpuBuffer]) -> impl Iterator<Item = Leeway> + 'a {
    let bytes = |buffer: &CpuBuffer| -> Range<usize> {
        let first = buffer.pointer.addr();
        first..first.saturating_add(buffer.bytes)
    };
    // Whether memory of a binding is used through another as well.
    let shared = move |at: usize, by: &dyn Fn(&Uses) -> bool| {
        let mine = bytes(&buffers[at]);
        uses.iter().zip(buffers).enumerate().any(|(other, (uses, buffer))| {
            let theirs = bytes(buffer);
            other != at && by(uses) && mine.start < theirs.end && theirs.start < mine.end
        })
    };
    uses.iter().enumerate().take(buffers.len()).map(move |(at, of)| Leeway {
        steady: !of.written && !shared(at, &|other| other.written),
        alone: !of.others && !shared(at, &|_| true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::program::Register;

    const INDEX: Register = 1;

    fn address(binding: u32) -> Address {
        Address { memory: Where::Binding { binding, relaxed: false }, terms: Vec::new(), constant: 0 }
    }

    fn load(binding: u32) -> Instruction {
        Instruction::Load { address: address(binding), parts: Vec::new() }
    }

    fn store(binding: u32) -> Instruction {
        Instruction::Store { address: address(binding), parts: Vec::new() }
    }

    fn buffers(ranges: &[Range<usize>], memory: &mut [u8]) -> Vec<CpuBuffer> {
        ranges
            .iter()
            .map(|range| CpuBuffer { pointer: memory[range.clone()].as_mut_ptr(), bytes: range.len() })
            .collect()
    }

    fn known(code: &[Instruction], ranges: &[Range<usize>]) -> Vec<(bool, bool)> {
        let mut memory = [0; 64];
        let uses = Uses::of(code, ranges.len());
        let buffers = buffers(ranges, &mut memory);
        leeway(&uses, &buffers).map(|of| (of.steady, of.alone)).collect()
    }

    #[test]
    fn what_one_store_writes_is_alone() {
        let apart = [0..16, 16..32, 32..48];
        let branch = Instruction::If { condition: INDEX, accept: vec![load(0), store(1)], reject: vec![load(2)] };
        assert_eq!(known(&[branch], &apart), [(true, false), (false, true), (true, false)]);
        assert_eq!(known(&[load(1), store(1)], &apart)[1], (false, false), "read too");
        assert_eq!(known(&[store(1), store(1)], &apart)[1], (false, false), "written twice");
        let looped = Instruction::Loop {
            test: Vec::new(),
            condition: None,
            body: vec![store(1)],
            step: Vec::new(),
            left: INDEX,
            continued: INDEX,
        };
        assert_eq!(known(&[looped], &apart)[1], (false, false), "written again and again");
    }

    #[test]
    fn memory_that_is_bound_twice_is_known_by_both() {
        let code = [load(0), load(1), store(2)];
        assert_eq!(known(&code, &[0..16, 8..24, 24..40]), [(true, false), (true, false), (false, true)]);
        assert_eq!(known(&code, &[0..16, 16..32, 28..40]), [(true, false), (false, false), (false, false)]);
    }
}
