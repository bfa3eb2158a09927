//! Ops that pull their elements from computed places: joining, bordering, arranging, gathering; each is an expression ([`crate::pull`]) and a reference of its own.

pub mod arrange;
pub mod blocks;
pub mod border;
pub mod convolution;
pub mod gather;
pub mod join;
pub mod made;
pub mod masks;
pub mod patches;
pub mod pool;
pub mod resize;
pub mod sample;
pub mod sequence;
pub mod slices;

use crate::dim::Dim;
use crate::op::{HostTensor, OpError};
use crate::pull::Calculator;
use crate::types::{ElementType, TensorType};

/// What every op of the family says alike: the way it is computed, its name, its attributes.
macro_rules! pull_op {
    ($way:ident, $text:literal $(, $attribute:ident)*) => {
        fn name(&self) -> &'static str {
            $text
        }

        fn attributes(&self) -> Vec<(&'static str, String)> {
            vec![$((stringify!($attribute), format!("{:?}", self.$attribute))),*]
        }

        fn flops(&self, _: &[$crate::types::TensorType], outputs: &[$crate::types::TensorType]) -> $crate::dim::Dim {
            outputs[0].elements() * pull_op!(@flops $way)
        }

        fn kind(&self) -> $crate::op::OpKind<'_> {
            $crate::op::OpKind::Pull($crate::pull::Pull::$way(self))
        }
    };
    (@flops moves) => { 0i64 };
    (@flops computes) => { 1i64 };
}
pub(in crate::ops) use pull_op;

/// The numbers that a reference needs of its op. References know numbers alone: there is none of an op whose attributes depend on symbols.
fn constants<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Option<Vec<i64>> {
    dims.into_iter().map(Dim::constant).collect()
}

/// What a reference gives: a value for each position.
fn each(shape: &[usize], mut value: impl FnMut(&[i64]) -> f64) -> Vec<HostTensor> {
    let count: usize = shape.iter().product();
    let mut at = vec![0i64; shape.len()];
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(value(&at));
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] as i64 {
                break;
            }
            at[axis] = 0;
        }
    }
    vec![HostTensor { shape: shape.to_vec(), values }]
}

/// The value at a position, if the tensor has it.
fn at(x: &HostTensor, position: &[i64]) -> Option<f64> {
    let linear = position.iter().zip(&x.shape).try_fold(0usize, |linear, (at, extent)| {
        let at = usize::try_from(*at).ok().filter(|at| at < extent)?;
        Some(linear * extent + at)
    })?;
    x.values.get(linear).copied()
}

fn attribute_error(attribute: &'static str, given: impl ToString, expected: impl Into<String>) -> OpError {
    OpError::Attribute { attribute, given: given.to_string(), expected: expected.into() }
}

/// Checks that an axis is there.
fn has_axis(ty: &TensorType, axis: usize) -> Result<(), OpError> {
    if axis < ty.rank() {
        return Ok(());
    }
    Err(attribute_error("axis", axis, format!("an axis below {}, of {ty}", ty.rank())))
}

/// Checks that an input holds integers.
fn expect_integers(input: &'static str, ty: &TensorType) -> Result<(), OpError> {
    if ty.element.is_integer() {
        return Ok(());
    }
    let expected = format!("an integer ({}; `cast` converts)", ElementType::list(ElementType::is_integer));
    Err(OpError::ElementType { input, given: ty.element, expected })
}

/// The first and the last axis of which something holds, as how many axes stand before and behind them.
fn span(rank: usize, touched: impl Fn(usize) -> bool) -> (usize, usize) {
    match ((0..rank).find(|axis| touched(*axis)), (0..rank).rev().find(|axis| touched(*axis))) {
        (Some(first), Some(last)) => (first, rank - 1 - last),
        _ => (0, rank),
    }
}

/// Numbers that go with the axes an op works on: those of the last of them are distances, the others plain numbers.
fn along<const N: usize>(axes: impl ExactSizeIterator<Item = [Dim; N]>) -> (Vec<Dim>, Vec<Dim>) {
    let mut all: Vec<Dim> = axes.flatten().collect();
    let last = all.split_off(all.len().saturating_sub(N));
    (all, last)
}

/// The numbers of one axis out of [`along`]'s.
fn of_axis<I: Copy, const N: usize>(given: &crate::pull::Given<'_, I>, axis: usize) -> [I; N] {
    std::array::from_fn(|position| match axis + 1 == given.at.len() {
        true => given.distances[position],
        false => given.numbers[axis * N + position],
    })
}

/// An element that counts in a sum, along one axis.
struct Tap<C: Calculator> {
    /// Where it stands: within the axis, also where there is none.
    place: C::Index,
    /// By what it is multiplied.
    weight: C::Value,
    /// Whether there is one, if there may be none: 0 stands for it then, whatever is at the place.
    there: Option<C::Truth>,
}

/// The sum of an input's elements by the weights of their places along each of the last axes; `from` is where they stand along the others.
fn weighted<C: Calculator>(calculator: C, taps: &[Vec<Tap<C>>], from: &[C::Index]) -> C::Value {
    sum(calculator, taps, from, None)
}

fn sum<C: Calculator>(calculator: C, taps: &[Vec<Tap<C>>], from: &[C::Index], there: Option<C::Truth>) -> C::Value {
    let zero = calculator.value(0.0);
    let Some((axis, others)) = taps.split_first() else {
        let element = calculator.read(0, from);
        return there.map_or(element, |there| calculator.pick(there, element, zero));
    };
    let parts = axis.iter().map(|tap| {
        let all = match (there, tap.there) {
            (Some(there), Some(this)) => Some(there & this),
            (there, this) => there.or(this),
        };
        sum(calculator, others, &[from, &[tap.place]].concat(), all) * tap.weight
    });
    parts.reduce(|sum, part| sum + part).unwrap_or(zero)
}
