//! Numbers that are not negative, in as many digits as it takes: what exact values of functions of doubles are made of.

use std::cmp::Ordering;

/// A number of 64 bits before the point, in two words, and 32 behind it for every other word; the lowest word first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed(Vec<u32>);

impl Fixed {
    /// An integer, with so many words behind the point.
    pub fn integer(value: u64, words: usize) -> Self {
        let mut all = vec![0; words];
        all.extend([value as u32, (value >> 32) as u32]);
        Self(all)
    }

    /// A double that is not negative and below 2^64; what it has behind the last word is cut off.
    pub fn double(value: f64, words: usize) -> Self {
        let bits = value.to_bits();
        let exponent = (bits >> 52) as i64;
        let digits = (bits & ((1 << 52) - 1)) | if exponent > 0 { 1 << 52 } else { 0 };
        // The place of the lowest digit, above the lowest of all.
        let place = exponent.max(1) - 1075 + 32 * words as i64;
        let mut all = vec![0; words + 2];
        for digit in 0..53 {
            let at = place + digit;
            if at >= 0 && digits >> digit & 1 == 1 {
                all[at as usize / 32] |= 1 << (at % 32);
            }
        }
        Self(all)
    }

    /// The nearest double, but for what is cut off behind the first 64 digits.
    pub fn to_double(&self) -> f64 {
        let Some(top) = self.0.iter().rposition(|word| *word > 0) else { return 0.0 };
        let weight = 2f64.powi(32 * (top as i32 - self.0.len() as i32 + 2));
        let words = [0, 1, 2].map(|below| top.checked_sub(below).map_or(0, |at| self.0[at]));
        let [first, second, third] = words.map(u64::from);
        // One digit stands for all that is below.
        let digits = u128::from(first) << 64 | u128::from(second << 32 | third);
        (digits as f64) * 2f64.powi(-64) * weight
    }

    /// With fewer words behind the point.
    pub fn cut(&self, words: usize) -> Self {
        Self(self.0[self.0.len() - 2 - words..].to_vec())
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut carry = 0u64;
        let sum = self.0.iter().zip(&other.0).map(|(a, b)| {
            carry = u64::from(*a) + u64::from(*b) + (carry >> 32);
            carry as u32
        });
        Self(sum.collect())
    }

    /// Less a number that is not larger.
    pub fn minus(&self, other: &Self) -> Self {
        let mut borrow = 0i64;
        let rest = self.0.iter().zip(&other.0).map(|(a, b)| {
            borrow = i64::from(*a) - i64::from(*b) + (borrow >> 32);
            borrow as u32
        });
        Self(rest.collect())
    }

    pub fn times(&self, other: &Self) -> Self {
        let (count, words) = (self.0.len(), self.0.len() - 2);
        let mut product = vec![0u32; 2 * count];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.0.iter().enumerate() {
                carry += u64::from(product[i + j]) + u64::from(*a) * u64::from(*b);
                product[i + j] = carry as u32;
                carry >>= 32;
            }
            product[i + count] = carry as u32;
        }
        Self(product[words..words + count].to_vec())
    }

    pub fn over(&self, divisor: u32) -> Self {
        let mut rest = 0u64;
        let mut quotient = self.0.clone();
        for word in quotient.iter_mut().rev() {
            rest = rest << 32 | u64::from(*word);
            *word = (rest / u64::from(divisor)) as u32;
            rest %= u64::from(divisor);
        }
        Self(quotient)
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The sum of these terms, of which every other one counts as negative.
    pub fn alternating(terms: impl Iterator<Item = Self>) -> Option<Self> {
        let mut sums: [Option<Self>; 2] = [None, None];
        for (n, term) in terms.enumerate() {
            let sum = &mut sums[n % 2];
            *sum = Some(sum.as_ref().map_or_else(|| term.clone(), |sum| sum.plus(&term)));
        }
        let [positive, negative] = sums;
        Some(match (positive?, negative) {
            (positive, Some(negative)) => positive.minus(&negative),
            (positive, None) => positive,
        })
    }
}

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}
