//! Tables of operations: what each must give for each input, and a kernel that computes all rows.

use super::common::Subject;
use trefoil::Launch;

/// A row of the table.
pub struct Row<I> {
    /// Names it.
    pub words: &'static str,
    /// What it must be.
    pub meaning: fn(I) -> Value,
}

/// What a row gives.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// These bits.
    Bits(u32),
    /// This number, at most so many steps of `f32` away; any NaN for a NaN; a zero of either sign for a zero.
    Float(f32, u32),
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Bits(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Bits(value.cast_unsigned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bits(value.into())
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::Float(value, 0)
    }
}

impl Value {
    fn is(self, bits: u32) -> bool {
        match self {
            Self::Bits(expected) => bits == expected,
            Self::Float(expected, steps) => {
                let given = f32::from_bits(bits);
                // Bits as integers that count the steps from zero.
                let place = |value: f32| {
                    let size = i64::from(value.to_bits() & 0x7fff_ffff);
                    if value.is_sign_negative() { -size } else { size }
                };
                (expected.is_nan() && given.is_nan())
                    || (!expected.is_nan() && !given.is_nan() && place(given).abs_diff(place(expected)) <= steps.into())
            }
        }
    }
}

/// Poison that no row gives by chance.
pub const POISON: u32 = 0xdead_beef;

/// Runs a kernel over `inputs` and holds its words against the table.
pub fn check<I: Copy + std::fmt::Debug>(
    subject: &Subject,
    inputs: &[I],
    table: &[Row<I>],
    launch: impl FnOnce(&mut trefoil::Buffer<u32>) -> trefoil::Result<Launch>,
) {
    let device = &subject.device;
    // Words after the last row must stay as they are.
    let mut y = device.buffer(&vec![POISON; inputs.len() * table.len() + 8]).unwrap();
    device.run(launch(&mut y).unwrap().over(inputs.len())).unwrap();
    let words = y.read().unwrap();
    let mut failures = Vec::new();
    for (input, words) in inputs.iter().zip(words.chunks(table.len())) {
        for (row, word) in table.iter().zip(words) {
            let expected = (row.meaning)(*input);
            if !expected.is(*word) {
                let float = f32::from_bits(*word);
                failures.push(format!("{} of {input:?} is {word:#x} ({float:e}), {expected:x?} expected", row.words));
            }
        }
    }
    assert!(failures.is_empty(), "on {}:\n{}", subject.name, failures.join("\n"));
    assert!(
        words[inputs.len() * table.len()..].iter().all(|word| *word == POISON),
        "on {}: past the end",
        subject.name
    );
}

pub fn pairs<T: Copy>(values: &[T]) -> Vec<(T, T)> {
    values.iter().flat_map(|a| values.iter().map(|b| (*a, *b))).collect()
}

pub fn unzip<T: Copy>(pairs: &[(T, T)]) -> (Vec<T>, Vec<T>) {
    pairs.iter().copied().unzip()
}
