//! Numbers that rise evenly from lane to lane. Most indices are such, and numbers that are the same in all lanes; what is made of them is found
//! without looking at lanes.

use crate::interp::lanes::mask;
use crate::interp::program::{Comparison, Two};

/// `first + lane * step` in each lane, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::interp) struct Line {
    pub(in crate::interp) first: u32,
    pub(in crate::interp) step: u32,
}

impl Line {
    /// The same number in all lanes.
    pub(in crate::interp) const fn same(first: u32) -> Self {
        Self { first, step: 0 }
    }

    /// The number in a lane.
    #[inline(always)]
    pub(in crate::interp) const fn at(self, lane: usize) -> u32 {
        self.first.wrapping_add(self.step.wrapping_mul(lane as u32))
    }

    /// The number, if it is the same in all lanes.
    #[inline(always)]
    pub(super) const fn everywhere(self) -> Option<u32> {
        if self.step == 0 { Some(self.first) } else { None }
    }

    /// The first number and the last, if those between do not wrap.
    pub(super) fn ends(self, lanes: usize, signed: bool) -> Option<[i64; 2]> {
        let first = if signed { i64::from(self.first.cast_signed()) } else { i64::from(self.first) };
        let far = i64::from(self.step.cast_signed()).checked_mul(i64::try_from(lanes).ok()?.checked_sub(1)?)?;
        let last = first.checked_add(far)?;
        let fits = if signed { i32::try_from(last).is_ok() } else { u32::try_from(last).is_ok() };
        fits.then_some([first, last])
    }

    /// What an operation makes of two, where that rises evenly too.
    pub(super) fn combined(operation: Two, a: Self, b: Self, lanes: usize) -> Option<Self> {
        let scaled =
            |line: Self, by: u32| Self { first: line.first.wrapping_mul(by), step: line.step.wrapping_mul(by) };
        match operation {
            Two::Add => Some(Self { first: a.first.wrapping_add(b.first), step: a.step.wrapping_add(b.step) }),
            Two::Subtract => Some(Self { first: a.first.wrapping_sub(b.first), step: a.step.wrapping_sub(b.step) }),
            Two::Multiply => match (a.everywhere(), b.everywhere()) {
                (_, Some(by)) => Some(scaled(a, by)),
                (Some(by), _) => Some(scaled(b, by)),
                _ => None,
            },
            Two::ShiftLeft => b.everywhere().map(|by| scaled(a, 1u32.wrapping_shl(by))),
            Two::DivideUnsigned => Some(a.divided(b.everywhere()?, lanes)?[0]),
            Two::RemainderUnsigned => Some(a.divided(b.everywhere()?, lanes)?[1]),
            Two::Compare(Comparison::LessUnsigned) => Self::less(a, b, lanes, false, false),
            Two::Compare(Comparison::LessSigned) => Self::less(a, b, lanes, true, false),
            Two::Compare(Comparison::LessEqualUnsigned) => Self::less(a, b, lanes, false, true),
            Two::Compare(Comparison::LessEqualSigned) => Self::less(a, b, lanes, true, true),
            _ => None,
        }
    }

    /// The quotients and remainders, where all quotients are the same or all remainders are.
    fn divided(self, by: u32, lanes: usize) -> Option<[Self; 2]> {
        let [first, last] = self.ends(lanes, false)?;
        let (quotient, rest) = (self.first.checked_div(by)?, self.first % by);
        if first / i64::from(by) == last / i64::from(by) {
            return Some([Self::same(quotient), Self { first: rest, step: self.step }]);
        }
        let step = self.step.cast_signed();
        let steps = i64::from(step) / i64::from(by);
        (i64::from(step) % i64::from(by) == 0).then(|| [Self { first: quotient, step: steps as u32 }, Self::same(rest)])
    }

    /// Whether `a < b`, or `a <= b`, where it is so in all lanes or in none: what lies between the ends is between them in the difference too.
    fn less(a: Self, b: Self, lanes: usize, signed: bool, or_equal: bool) -> Option<Self> {
        let ([a, b], [c, d]) = (a.ends(lanes, signed)?, b.ends(lanes, signed)?);
        let holds = |left: i64, right: i64| left < right || or_equal && left == right;
        (holds(a, c) == holds(b, d)).then(|| Self::same(mask(holds(a, c))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::lanes;

    #[test]
    fn lines_are_what_their_numbers_are() {
        const LANES: usize = 37;
        let numbers = [
            0,
            1,
            2,
            5,
            36,
            37,
            38,
            74,
            1000,
            1 << 16,
            i32::MAX as u32 - 36,
            i32::MAX as u32,
            1 << 31,
            u32::MAX - 36,
            u32::MAX,
        ];
        let steps = [0, 1, 2, 3, 8, 37, 1 << 20, 1 << 31, u32::MAX, u32::MAX - 7];
        let operations = [
            Two::Add,
            Two::Subtract,
            Two::Multiply,
            Two::ShiftLeft,
            Two::DivideUnsigned,
            Two::RemainderUnsigned,
            Two::Compare(Comparison::LessUnsigned),
            Two::Compare(Comparison::LessSigned),
            Two::Compare(Comparison::LessEqualUnsigned),
            Two::Compare(Comparison::LessEqualSigned),
        ];
        let lines = || numbers.iter().flat_map(|first| steps.iter().map(|step| Line { first: *first, step: *step }));
        let spread = |line: Line| -> [u32; LANES] { std::array::from_fn(|lane| line.at(lane)) };
        for (a, b) in lines().flat_map(|a| lines().map(move |b| (a, b))) {
            for operation in operations {
                let Some(found) = Line::combined(operation, a, b, LANES) else { continue };
                let (left, right, mut wanted) = (spread(a), spread(b), [0; LANES]);
                // SAFETY: all three have so many words.
                unsafe { lanes::two(operation, wanted.as_mut_ptr(), left.as_ptr(), right.as_ptr(), LANES) };
                assert_eq!(spread(found), wanted, "{operation:?} of {a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn counting_through_rows_stays_even() {
        let index = Line { first: 4096, step: 1 };
        let row = Line::same(4096);
        assert_eq!(Line::combined(Two::RemainderUnsigned, index, row, 1024), Some(Line { first: 0, step: 1 }));
        assert_eq!(Line::combined(Two::DivideUnsigned, index, row, 1024), Some(Line::same(1)));
        assert_eq!(Line::combined(Two::RemainderUnsigned, index, row, 4097), None);
        assert_eq!(
            Line::combined(Two::Compare(Comparison::LessUnsigned), index, Line::same(4096 + 7), 7),
            Some(Line::same(u32::MAX))
        );
        assert_eq!(Line::combined(Two::Compare(Comparison::LessUnsigned), index, Line::same(4096 + 7), 8), None);
    }
}
