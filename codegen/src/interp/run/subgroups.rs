//! Operations of subgroups: neighbouring lanes of a batch, which is one workgroup.

use super::Batch;
use crate::interp::lanes;
use crate::interp::program::{Combine, Register};

impl Batch<'_> {
    pub(super) unsafe fn subgroup(&self, combine: Combine, to: Register, value: Register, lane: Register) {
        let size = self.arguments.subgroup_size as usize;
        for first in (0..self.lanes).step_by(size) {
            let last = (first + size).min(self.lanes);
            // SAFETY: as in `own`.
            unsafe {
                let (value, asked, to) = (self.operand(value), self.operand(lane), self.target(to));
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
