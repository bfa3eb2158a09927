//! What a run did to its tensors, step by step: statistics of all that was read and written, the first NaN, and how far each step is from what its ops' references make of what it read.
//!
//! A difference is that of one step: the reference gets the very elements that the step got from the device, so that a step that is right stays right behind one that is wrong.

use std::fmt;
use std::sync::Arc;

use crate::reference::tolerance;
use crate::types::ElementType;

/// What a debugging run does beside running ([`crate::Run::debug`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugOptions {
    /// Holds every step against the references of its ops, in `f64` on the host, which takes long for large tensors.
    pub reference: bool,
    /// Fills memory that holds nothing with bytes that are NaN in every type of floats, before the run and as soon as the last reader of a tensor is done: what is read too late or was never written is seen then.
    pub poison: bool,
}

impl Default for DebugOptions {
    fn default() -> Self {
        Self { reference: true, poison: true }
    }
}

/// What is said of the elements of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// How many there are.
    pub elements: usize,
    /// How many are NaN.
    pub nans: usize,
    /// How many are infinite.
    pub infinities: usize,
    /// How many are 0.
    pub zeros: usize,
    /// The least that is finite; 0 where none is.
    pub min: f64,
    /// The greatest that is finite; 0 where none is.
    pub max: f64,
    /// The mean of those that are finite; 0 where none is.
    pub mean: f64,
}

/// The element that is farthest from what the reference says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Its position, the last axis fastest.
    pub element: usize,
    /// What the device has.
    pub given: f64,
    /// What the reference says, rounded to the element type.
    pub expected: f64,
    /// How far they are from each other, relative to the reference, or to 1 if that is more; infinite where one of them is no finite number and the other is another.
    pub relative: f64,
}

/// A tensor as a step left it, or as the run found it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTensor {
    /// Its name, as in [`crate::Executable::explain`].
    pub name: String,
    /// What its elements are.
    pub element: ElementType,
    /// Its extents in this run.
    pub shape: Vec<usize>,
    /// What is said of its elements.
    pub statistics: Statistics,
    /// How far it is from the reference; none where that was not asked for, or of tensors that were given.
    pub difference: Option<Difference>,
}

/// A step, and the tensors that it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenStep {
    /// Its label, as in [`crate::Executable::explain`].
    pub label: Arc<str>,
    /// The kernel, or the function of the host.
    pub kernel: String,
    /// What it wrote; nothing where only a later step of the same node completes a tensor.
    pub tensors: Vec<SeenTensor>,
}

/// What a run did to its tensors ([`crate::Run::debug`]).
#[derive(Clone, Debug, PartialEq)]
pub struct DebugReport {
    /// The device's name.
    pub device: String,
    /// Inputs, params, constants and states, as the first step found them that reads them.
    pub given: Vec<SeenTensor>,
    /// The steps, in order.
    pub steps: Vec<SeenStep>,
}

impl Statistics {
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = |is: fn(f64) -> bool| values.iter().filter(|value| is(**value)).count();
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let sum: f64 = finite().sum();
        Self {
            elements: values.len(),
            nans: count(f64::is_nan),
            infinities: count(f64::is_infinite),
            zeros: count(|value| value == 0.0),
            min: finite().reduce(f64::min).unwrap_or(0.0),
            max: finite().reduce(f64::max).unwrap_or(0.0),
            mean: sum / finite().count().max(1) as f64,
        }
    }
}

impl Difference {
    /// The farthest of elements from those that are expected; none where there are no elements, or another number of them.
    pub(crate) fn of(element: ElementType, given: &[f64], expected: &[f64]) -> Option<Self> {
        if given.len() != expected.len() {
            return None;
        }
        let each = given.iter().zip(expected).enumerate().map(|(position, (given, expected))| {
            let (given, expected) = (*given, element.rounded(*expected));
            let relative = if given == expected || given.is_nan() && expected.is_nan() {
                0.0
            } else if given.is_finite() && expected.is_finite() {
                (given - expected).abs() / expected.abs().max(1.0)
            } else {
                f64::INFINITY
            };
            Self { element: position, given, expected, relative }
        });
        each.reduce(|farthest, next| if next.relative > farthest.relative { next } else { farthest })
    }
}

impl DebugReport {
    /// The first tensor with a NaN, and the step that wrote it; none for one that was given.
    pub fn first_nan(&self) -> Option<(Option<&SeenStep>, &SeenTensor)> {
        let given = self.given.iter().map(|tensor| (None, tensor));
        let written = self.written().map(|(step, tensor)| (Some(step), tensor));
        given.chain(written).find(|(_, tensor)| tensor.statistics.nans > 0)
    }

    /// The first tensor that is farther from the reference than so many times the [`tolerance`] of its element type, and the step that wrote it. Long sums of large terms may be some times as far.
    pub fn first_beyond(&self, times: f64) -> Option<(&SeenStep, &SeenTensor)> {
        self.written()
            .find(|(_, tensor)| tensor.difference.is_some_and(|far| far.relative > times * tolerance(tensor.element)))
    }

    fn written(&self) -> impl Iterator<Item = (&SeenStep, &SeenTensor)> {
        self.steps.iter().flat_map(|step| step.tensors.iter().map(move |tensor| (step, tensor)))
    }
}

impl fmt::Display for SeenTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Statistics { nans, infinities, zeros, min, max, mean, .. } = self.statistics;
        write!(f, "{:>8} {:>8} {:>10} {:>11.3e} {:>11.3e} {:>11.3e} ", nans, infinities, zeros, min, max, mean)?;
        match self.difference {
            Some(far) if far.relative == 0.0 => write!(f, "{:>9}", "0")?,
            Some(far) => write!(f, "{:>9.1e}", far.relative)?,
            None => write!(f, "{:>9}", "")?,
        }
        write!(f, "  {}: {}{:?}", self.name, self.element, self.shape)
    }
}

impl fmt::Display for DebugReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} steps, one at a time", self.device, self.steps.len())?;
        let names = ("NaN", "infinite", "zero", "min", "max", "mean", "off by");
        let (nan, infinite, zero, min, max, mean, off) = names;
        writeln!(f, "{nan:>8} {infinite:>8} {zero:>10} {min:>11} {max:>11} {mean:>11} {off:>9}  tensor")?;
        writeln!(f, "given")?;
        for tensor in &self.given {
            writeln!(f, "{tensor}")?;
        }
        for SeenStep { label, kernel, tensors } in &self.steps {
            writeln!(f, "{label}: {kernel}")?;
            for tensor in tensors {
                writeln!(f, "{tensor}")?;
            }
        }
        if let Some((step, tensor)) = self.first_nan() {
            let by = step.map_or_else(|| "which was given".to_owned(), |step| format!("of step `{}`", step.label));
            writeln!(f, "the first NaN is in `{}`, {by}", tensor.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_elements() {
        let told = Statistics::of(&[1.0, f64::NAN, 0.0, f64::INFINITY, -3.0, -0.0]);
        let expected = Statistics { elements: 6, nans: 1, infinities: 1, zeros: 2, min: -3.0, max: 1.0, mean: -0.5 };
        assert_eq!(told, expected);
        assert_eq!(Statistics::of(&[]), Statistics::default());
    }

    #[test]
    fn the_farthest_element() {
        let far = |given: &[f64], expected: &[f64]| Difference::of(ElementType::F32, given, expected);
        let found = far(&[1.0, 210.0, f64::NAN], &[1.5, 200.0, f64::NAN]).unwrap();
        assert_eq!((found.element, found.given, found.expected, found.relative), (0, 1.0, 1.5, 0.5 / 1.5));
        assert_eq!(far(&[f64::INFINITY], &[1e39]).unwrap().relative, 0.0, "the type has no such number");
        assert_eq!(far(&[f64::NAN], &[0.0]).unwrap().relative, f64::INFINITY);
        assert_eq!(far(&[0.0], &[f64::NEG_INFINITY]).unwrap().relative, f64::INFINITY);
        assert_eq!(far(&[], &[]), None);
        assert_eq!(far(&[1.0], &[]), None);
    }
}
