//! Tensors at other sizes, linearly between neighbours along any number of their last axes.
//!
//! Where positions lie in x is counted once for each axis. A row of the result is made of a row of x for each neighbour along the axes before the last: they are blended first, as they lie in memory, into one row that stays in the
//! cache, and each element is made of two elements of that. Neighbours whose weight is 0 are blended as the others are: of an infinity or a NaN that is a NaN, as it is where kernels do it.
//!
//! A blended row has its outer elements twice, so that those of which an element is made always follow on each other. Where it would be much longer than what is made of it, it holds these alone, two by two.

use crate::isa::{self, Work};
use crate::math::mul_add;
use crate::number::Number;
use crate::rows::blocks;

/// The most positions of an axis: a table of 12 bytes for each is kept.
pub const POSITIONS: usize = 1 << 20;

/// The most elements of x along the last axis that are blended for each of the result: with more, no two that are wanted lie in one cache line.
pub const BLENDED: usize = 16;

/// The most elements of a blended row that holds what it is not asked for.
const LONG: usize = 1 << 20;

/// One axis, of which position `i` lies at `(i * step + start) / over`.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Of the result.
    pub positions: usize,
    /// Of x.
    pub extent: usize,
    /// From one position to the next.
    pub step: i64,
    /// Where the first lies.
    pub start: i64,
    /// Of how many parts an element of x is; above 0.
    pub over: i64,
}

/// The neighbours of a position, which are within the axis, and the weight of the upper one.
#[derive(Clone, Copy)]
struct Place {
    below: u32,
    above: u32,
    part: f32,
}

impl Axis {
    /// # Errors
    /// It has too many positions, x has no elements along it or more than `u32` counts, or a position is no `i64`.
    fn places(&self) -> Result<Vec<Place>, String> {
        let Self { positions, extent, step, start, over } = *self;
        let wrong = || format!("{self:?} is no axis of some elements and up to {POSITIONS} positions");
        let last = u32::try_from(extent).ok().and_then(|extent| extent.checked_sub(1)).ok_or_else(wrong)?;
        // All others lie between the first and this one.
        let end = i64::try_from(positions).ok().and_then(|end| end.checked_mul(step)?.checked_add(start));
        if positions > POSITIONS || over < 1 || end.is_none() {
            return Err(wrong());
        }
        let within = |place: i64| place.clamp(0, i64::from(last)) as u32;
        let place = |position: usize| {
            let place = position as i64 * step + start;
            let below = place.div_euclid(over);
            let part = place.rem_euclid(over) as f32 / over as f32;
            Place { below: within(below), above: within(below.saturating_add(1)), part }
        };
        Ok((0..positions).map(place).collect())
    }
}

/// An axis before the last.
struct Outer {
    extent: usize,
    places: Vec<Place>,
    /// Rows of the result from one position to the next.
    behind: usize,
}

/// The last axis.
struct Columns {
    extent: usize,
    /// The elements of x that a blended row holds, where it does not hold all of them with the outer ones twice.
    wanted: Option<Vec<u32>>,
    /// Elements of a blended row.
    length: usize,
    /// For each position, the first of the two elements of a blended row.
    firsts: Vec<u32>,
    /// For each position, the weight of the second.
    parts: Vec<f32>,
}

impl Columns {
    /// # Errors
    /// Those of [`Axis::places`].
    fn new(axis: &Axis) -> Result<Self, String> {
        let (places, extent) = (axis.places()?, axis.extent);
        let parts = places.iter().map(|place| place.part).collect();
        if extent > LONG.min(BLENDED * axis.positions) {
            let wanted: Vec<u32> = places.iter().flat_map(|place| [place.below, place.above]).collect();
            let firsts = (0..wanted.len() as u32).step_by(2).collect();
            return Ok(Self { extent, length: wanted.len(), wanted: Some(wanted), firsts, parts });
        }
        // Element `i` of x is element `i + 1` here; both neighbours are the last beyond the end, and the first in front of the beginning.
        let first = |place: &Place| place.above + u32::from(place.below == place.above && place.above > 0);
        let firsts = places.iter().map(first).collect();
        Ok(Self { extent, wanted: None, length: extent + 2, firsts, parts })
    }

    /// Blends rows of x, of which the numbers and weights are given.
    #[inline(always)]
    fn blend<const FMA: bool, T: Number>(&self, x: &[T], terms: &[(usize, f32)], row: &mut [f32]) {
        for (term, (number, weight)) in terms.iter().enumerate() {
            let x = &x[number * self.extent..][..self.extent];
            match &self.wanted {
                Some(wanted) => add::<FMA>(row, wanted.iter().map(|at| x[*at as usize].wide()), *weight, term == 0),
                None => add::<FMA>(&mut row[1..=self.extent], x.iter().map(|x| x.wide()), *weight, term == 0),
            }
        }
        if self.wanted.is_none() {
            row[0] = row[1];
            row[self.extent + 1] = row[self.extent];
        }
    }

    /// Makes a row of the result of a blended one.
    #[inline(always)]
    fn make<const FMA: bool, T: Number>(&self, row: &[f32], out: &mut [T]) {
        let above = &row[1..];
        let below = &row[..above.len()];
        let Some(last) = above.len().checked_sub(1) else { return };
        for ((out, first), part) in out.iter_mut().zip(&self.firsts).zip(&self.parts) {
            // No first one is above it: this spares the loop its checks.
            let at = (*first as usize).min(last);
            *out = T::narrow(mul_add::<FMA>(above[at], *part, below[at] * (1.0 - *part)));
        }
    }
}

/// Adds values by a weight to sums, or begins these with them.
#[inline(always)]
fn add<const FMA: bool>(sums: &mut [f32], values: impl Iterator<Item = f32>, weight: f32, begins: bool) {
    let both = sums.iter_mut().zip(values);
    if begins {
        both.for_each(|(sum, value)| *sum = value * weight);
    } else {
        both.for_each(|(sum, value)| *sum = mul_add::<FMA>(value, weight, *sum));
    }
}

/// What every row needs.
struct Resize<'a, T> {
    x: &'a [T],
    /// Outermost first.
    outer: Vec<Outer>,
    /// Rows of an image of the result.
    rows: usize,
    columns: Columns,
}

impl<T> Resize<'_, T> {
    /// The rows of x of which a row of the result is made, with their weights.
    fn terms(&self, row: usize, terms: &mut Vec<(usize, f32)>) {
        terms.clear();
        terms.push((row / self.rows, 1.0));
        for Outer { extent, places, behind } in &self.outer {
            let Place { below, above, part } = places[row / behind % places.len()];
            let count = terms.len();
            terms.extend_from_within(..);
            let (of_below, of_above) = terms.split_at_mut(count);
            for (terms, neighbour, by) in [(of_below, below, 1.0 - part), (of_above, above, part)] {
                for (number, weight) in terms {
                    *number = *number * extent + neighbour as usize;
                    *weight *= by;
                }
            }
        }
    }
}

/// Some rows of the result.
struct Rows<'t, 'a, T> {
    resize: &'t Resize<'a, T>,
    /// The number of the first.
    first: usize,
    out: &'t mut [T],
}

impl<T: Number> Work for Rows<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { resize, first, out } = self;
        let columns = &resize.columns;
        let (mut row, mut terms) = (vec![0.0_f32; columns.length], Vec::new());
        for (index, out) in out.chunks_exact_mut(columns.firsts.len()).enumerate() {
            resize.terms(first + index, &mut terms);
            columns.blend::<FMA, T>(resize.x, &terms, &mut row);
            columns.make::<FMA, T>(&row, out);
        }
    }
}

/// Computes `images` images of the axes' positions from as many of their extents, one after the other. Elements are computed in `f32`; all neighbours count, also those whose weight is 0.
///
/// # Errors
/// `x` or `out` is too short, or an axis cannot be counted.
pub fn linear<T: Number>(x: &[T], images: usize, axes: &[Axis], out: &mut [T]) -> Result<(), String> {
    let all = |of: fn(&Axis) -> usize| axes.iter().try_fold(images, |all, axis| all.checked_mul(of(axis)));
    let short = |name: &str, given: usize| format!("`{name}`: {given} elements given for {images} of {axes:?}");
    let given = out.len();
    let out = all(|axis| axis.positions).and_then(|all| out.get_mut(..all)).ok_or_else(|| short("out", given))?;
    if out.is_empty() {
        return Ok(());
    }
    let x = all(|axis| axis.extent).and_then(|all| x.get(..all)).ok_or_else(|| short("x", x.len()))?;
    let Some((last, others)) = axes.split_last() else {
        out.copy_from_slice(x);
        return Ok(());
    };
    let (mut outer, mut rows) = (Vec::new(), 1);
    for axis in others.iter().rev() {
        outer.push(Outer { extent: axis.extent, places: axis.places()?, behind: rows });
        rows *= axis.positions;
    }
    outer.reverse();
    let resize = Resize { x, outer, rows, columns: Columns::new(last)? };
    let columns = last.positions;
    blocks(out, columns, columns.max(resize.columns.length), |first, out| {
        isa::run(Rows { resize: &resize, first: first / columns, out })
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::isa::tests::at_every_level;

    /// The outer edges meet.
    fn edges(extent: usize, positions: usize) -> Axis {
        let [from, to] = [extent, positions].map(|count| count as i64);
        Axis { positions, extent, step: 2 * from, start: from - to, over: 2 * to }
    }

    fn at(extent: usize, positions: usize, [step, start, over]: [i64; 3]) -> Axis {
        Axis { positions, extent, step, start, over }
    }

    /// The same in `f64`, one axis after the other.
    fn reference(x: &[f64], images: usize, axes: &[Axis]) -> Vec<f64> {
        let Some((axis, others)) = axes.split_first() else { return x.to_vec() };
        let behind = x.len() / (images * axis.extent);
        let mut y = Vec::new();
        for image in x.chunks(axis.extent * behind) {
            for position in 0..axis.positions {
                let place = (position as i64 * axis.step + axis.start) as f64 / axis.over as f64;
                let part = place - place.floor();
                let start = |place: f64| place.clamp(0.0, axis.extent as f64 - 1.0) as usize * behind;
                let (below, above) = (start(place.floor()), start(place.floor() + 1.0));
                y.extend((0..behind).map(|i| image[below + i] * (1.0 - part) + image[above + i] * part));
            }
        }
        reference(&y, images * axis.positions, others)
    }

    /// Compares with the reference, of which elements may be off by `share` of their size, and by what blending rounds.
    fn check<T: Number>(images: usize, axes: &[Axis], share: f64) {
        let count = axes.iter().fold(images, |count, axis| count * axis.extent);
        let x: Vec<T> = (0..count).map(|i| T::narrow((i * 7919 % 1013) as f32 / 64.0 - 8.0)).collect();
        let wide: Vec<f64> = x.iter().map(|x| f64::from(x.wide())).collect();
        let wanted = reference(&wide, images, axes);
        at_every_level(|| {
            let mut out = vec![T::narrow(f32::NAN); wanted.len()];
            linear(&x, images, axes, &mut out).unwrap();
            for (index, (y, wanted)) in out.iter().zip(&wanted).enumerate() {
                let y = y.wide();
                let error = (f64::from(y) - wanted).abs();
                // Weights are off by 1.5e-7 an axis and their products by 1.2e-7, which elements below 8 make 4.6e-6; blending rounds six times by half a unit of 4.8e-7.
                let most = 6.2e-6 + share * wanted.abs();
                assert!(error <= most, "{images} of {axes:?}, at {index}: {y}, not {wanted}");
            }
        });
    }

    #[test]
    fn axes_of_any_number_and_place() {
        let all: [(usize, &[Axis]); 14] = [
            (3, &[]),
            (1, &[edges(1, 1)]),
            (2, &[edges(5, 13)]),
            (5, &[edges(17, 4)]),
            (2, &[edges(1, 9)]),
            // The first meets the first and the last the last, and far in front of and behind all elements.
            (3, &[at(6, 11, [5, 0, 10])]),
            (2, &[at(4, 30, [5, -70, 7])]),
            (2, &[at(4, 30, [-5, 70, 7])]),
            (2, &[edges(7, 12), edges(9, 20)]),
            (3, &[edges(12, 5), edges(1, 3)]),
            (1, &[edges(3, 700), edges(40, 90)]),
            (2, &[edges(3, 4), edges(5, 2), edges(6, 11)]),
            // Few of many elements are wanted.
            (2, &[edges(8, 3), edges(200, 5)]),
            (3, &[at(1000, 2, [3500, -100, 7])]),
        ];
        for (images, axes) in all {
            check::<f32>(images, axes, 0.0);
            // Half a unit in the last of 11 and of 8 places.
            check::<f16>(images, axes, 1.0 / 2048.0);
            check::<bf16>(images, axes, 1.0 / 256.0);
        }
    }

    #[test]
    fn places_on_elements_are_exact() {
        let x: Vec<f32> = (0..70).map(|i| (i as f32 * 0.37).sin()).collect();
        let axes = [at(7, 4, [2, 0, 1]), at(10, 20, [3, 0, 3])];
        at_every_level(|| {
            let mut out = vec![f32::NAN; 80];
            linear(&x, 1, &axes, &mut out).unwrap();
            for (index, y) in out.iter().enumerate() {
                assert_eq!(*y, x[index / 20 * 20 + (index % 20).min(9)], "{index}");
            }
        });
    }

    #[test]
    fn neighbours_without_weight_count() {
        let mut x = [1.0_f32; 9];
        x[4] = f32::INFINITY;
        let mut out = [0.0; 9];
        linear(&x, 1, &[edges(3, 3); 2], &mut out).unwrap();
        // The element itself stays; it is a neighbour without weight of those before it.
        let made: Vec<bool> = out.iter().map(|y| y.is_nan()).collect();
        assert_eq!(made, [true, true, false, true, false, false, false, false, false]);
        assert_eq!(out[4], f32::INFINITY);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let mut out = [0.0_f32; 6];
        let told = linear(&[0.0; 3], 1, &[edges(4, 6)], &mut out).unwrap_err();
        assert!(told.starts_with("`x`: 3 elements given"), "{told}");
        let told = linear(&[0.0; 8], 2, &[edges(4, 6)], &mut out).unwrap_err();
        assert!(told.starts_with("`out`: 6 elements given"), "{told}");
        for axis in [at(0, 6, [1, 0, 1]), at(4, 6, [1, 0, 0]), at(4, 6, [i64::MAX, 0, 1])] {
            let told = linear(&[0.0; 4], 1, &[axis], &mut out).unwrap_err();
            assert!(told.contains("is no axis"), "{told}");
        }
        // Nothing is asked for.
        linear(&[0.0_f32; 0], 0, &[edges(4, 6)], &mut out).unwrap();
        linear(&[0.0_f32; 4], 1, &[at(4, 0, [1, 0, 1])], &mut out).unwrap();
    }
}
