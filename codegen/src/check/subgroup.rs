//! Operations over a subgroup: neighbouring lanes of the workgroup, of which all take part.

use super::lanes::Lanes;
use super::machine::{Frame, Machine, Run};
use super::math;
use super::scalar;
use crate::ir::{Expression, Handle, Scalar, SubgroupFunction as F, SubgroupOperator};

/// Two values combined.
fn combined(operator: SubgroupOperator, scalar: Scalar, x: u64, y: u64) -> u64 {
    match operator.of_two() {
        Ok(operator) => scalar::binary(operator, scalar, x, y),
        Err(function) => math::lanewise(function, scalar, &[x, y]),
    }
}

impl<'m> Machine<'m> {
    pub(super) fn subgroup(
        &mut self,
        frame: &Frame<'m>,
        function: F,
        value: Handle<Expression>,
        lane: Option<Handle<Expression>>,
        lanes: &Lanes,
    ) -> Run<Vec<u64>> {
        let ty = frame.function.expressions[value].ty;
        let scalar = self.scalar(ty);
        let words = self.value(frame, value, lanes)?;
        let asked = match lane {
            Some(lane) => self.value(frame, lane, lanes)?,
            None => Vec::new(),
        };
        let n = self.count;
        let parts = if function == F::Ballot { 4 } else { self.shape(ty).count() };
        let mut out = self.take(parts * n);
        for first in (0..n).step_by(self.subgroup) {
            let members = first..(first + self.subgroup).min(n);
            let size = members.len();
            for part in 0..parts {
                let given = match function {
                    F::Ballot => &words[members.clone()],
                    _ => &words[part * n..][members.clone()],
                };
                let to = &mut out[part * n..][members.clone()];
                match function {
                    F::Reduce(operator) => {
                        let all = given.iter().copied().reduce(|x, y| combined(operator, scalar, x, y));
                        to.fill(all.unwrap_or(0));
                    }
                    F::InclusiveScan(operator) | F::ExclusiveScan(operator) => {
                        let exclusive = matches!(function, F::ExclusiveScan(_));
                        let neutral = operator.neutral(scalar).map_or(0, |literal| literal.bits());
                        let mut all = scalar::canonical(scalar, neutral);
                        for (index, (to, given)) in to.iter_mut().zip(given).enumerate() {
                            let next = if index == 0 { *given } else { combined(operator, scalar, all, *given) };
                            *to = if exclusive { all } else { next };
                            all = next;
                        }
                    }
                    F::Any => to.fill(u64::from(given.iter().any(|word| *word != 0))),
                    F::All => to.fill(u64::from(given.iter().all(|word| *word != 0))),
                    F::Ballot => {
                        let bits = given.iter().enumerate().skip(32 * part).take(32);
                        to.fill(bits.fold(0, |all, (index, word)| all | word << (index - 32 * part)));
                    }
                    F::Broadcast | F::Shuffle | F::ShuffleXor | F::ShuffleUp | F::ShuffleDown => {
                        for (here, to) in to.iter_mut().enumerate() {
                            let asked = asked[first + here] as u32;
                            let from = match function {
                                F::ShuffleXor => here as u32 ^ asked,
                                F::ShuffleUp => (here as u32).wrapping_sub(asked),
                                F::ShuffleDown => (here as u32).wrapping_add(asked),
                                _ => asked,
                            } as usize;
                            *to = match function {
                                _ if from < size => given[from],
                                F::Broadcast => 0,
                                _ => given[here],
                            };
                        }
                    }
                }
            }
        }
        self.give(words);
        self.give(asked);
        Ok(out)
    }
}
