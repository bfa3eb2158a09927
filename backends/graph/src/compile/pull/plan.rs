//! How a pull's elements are counted and moved: axes that behave as one are put together, and as many elements as possible become one unit.

use trefoil_codegen::ir::Scalar;

use crate::dim::Dim;
use crate::pull::Frame;
use crate::types::{ElementType, Layout, TensorType};

/// Bytes that an invocation moves at once, at most.
const WIDEST: i64 = 16;
/// Units that an invocation moves where runs are long, each far from the others so that neighbours stay neighbours.
const UNITS: i64 = 4;
/// The least bytes of a run that is worth a copy of its own.
const LONG: i64 = 64;
/// The least units of a piece of a run that neighbouring invocations move.
const PIECE: i64 = 8;

/// How elements may be moved.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Whether an invocation may move several units.
    pub spread: bool,
    /// Whether a unit is made of elements, which others may compute with, rather than of words.
    pub by_elements: bool,
}

/// What is moved at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What memory is bound as.
    pub scalar: Scalar,
    /// So many of these.
    pub lanes: u8,
    /// Its bytes.
    pub bytes: i64,
}

/// An axis along which elements are counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// In units, divided by the units of an invocation if it is the run.
    pub extent: Dim,
    /// The distance in the output.
    pub output: Dim,
    /// The distance in each moved input, if the axis passes through.
    pub inputs: Vec<Dim>,
}

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its element type.
    pub element: ElementType,
    /// Whether it is moved, rather than read as indices.
    pub moved: bool,
    /// The first unit, or element of indices.
    pub offset: Dim,
    /// The distances along the axes by which the op reads it.
    pub strides: Vec<Dim>,
}

/// Everything about a pull that does not depend on its expression.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is moved at once; an element, if it is computed with.
    pub unit: Unit,
    /// Units that an invocation moves: the second lies one extent of the last axis behind the first.
    pub units: i64,
    /// What elements are computed in, if they are.
    pub computes_in: Option<ElementType>,
    /// Whether memory is bound as what its elements are, though they are only moved.
    pub by_elements: bool,
    /// The output's element type.
    pub element: ElementType,
    /// Axes that pass through in front, those that do not, and those that pass through behind, of which the last is the run.
    pub axes: Vec<Axis>,
    /// How many of them pass through in front.
    pub lead: usize,
    /// How many do not pass through.
    pub middle: usize,
    /// Whether units of the last axis lie one after the other everywhere.
    pub run: bool,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The output's first unit.
    pub offset: Dim,
    /// Whether unit `i` of the count is unit `i` of the output.
    pub flat: bool,
    /// [`Frame::distances`], in blocks.
    pub distances: Vec<Dim>,
    /// [`Frame::numbers`].
    pub numbers: Vec<Dim>,
    /// [`Frame::reals`].
    pub reals: Vec<f64>,
}

/// A tensor and where it lies.
pub type Tensor<'a> = (&'a TensorType, &'a Layout);

impl Plan {
    /// The plan for given tensors.
    pub fn new(
        frame: Frame,
        computes_in: Option<ElementType>,
        inputs: &[Tensor<'_>],
        (ty, layout): Tensor<'_>,
        way: Way,
    ) -> Self {
        let moved = inputs.len().saturating_sub(frame.indices);
        let (rank, bytes) = (ty.rank(), ty.element.bytes() as i64);
        let behind = rank.saturating_sub(frame.tail);
        let stride = |input: &Tensor<'_>, axis: usize| {
            let at = if axis < frame.lead { Some(axis) } else { (input.0.rank() + axis).checked_sub(rank) };
            at.and_then(|at| input.1.strides.get(at)).cloned().unwrap_or(Dim::from(0i64))
        };
        let axes = (0..rank).map(|axis| Axis {
            extent: ty.shape[axis].clone(),
            output: layout.strides[axis].clone(),
            inputs: match axis < frame.lead || axis >= behind {
                true => inputs[..moved].iter().map(|input| stride(input, axis)).collect(),
                false => Vec::new(),
            },
        });
        let inputs = inputs.iter().enumerate().map(|(position, (ty, layout))| {
            let is_moved = position < moved;
            let strides = match is_moved {
                true => &layout.strides[frame.lead.min(layout.strides.len())..],
                false => &layout.strides,
            };
            let count = strides.len().saturating_sub(if is_moved { frame.tail } else { 0 });
            let strides = strides[..count].to_vec();
            Input { element: ty.element, moved: is_moved, offset: layout.offset.clone(), strides }
        });
        let mut plan = Self {
            unit: Unit { scalar: ty.element.stored(), lanes: 1, bytes },
            units: 1,
            computes_in,
            by_elements: way.by_elements,
            element: ty.element,
            inputs: inputs.collect(),
            axes: axes.collect(),
            lead: frame.lead,
            middle: behind.saturating_sub(frame.lead),
            run: false,
            offset: layout.offset.clone(),
            flat: layout.is_contiguous(&ty.shape),
            distances: frame.distances,
            numbers: frame.numbers,
            reals: frame.reals,
        };
        if computes_in.is_none() {
            if frame.in_blocks {
                plan.take_blocks(bytes);
            }
            plan.merge();
            plan.widen(bytes, way.spread);
        } else {
            plan.merge();
        }
        plan
    }

    /// Puts neighbouring axes that pass through together where they lie so everywhere, and drops those of one position.
    fn merge(&mut self) {
        let (lead, tail) = (self.lead, self.lead + self.middle);
        let mut behind = self.axes.split_off(tail);
        let middle = self.axes.split_off(lead);
        let mut front = std::mem::take(&mut self.axes);
        for part in [&mut front, &mut behind] {
            let mut merged: Vec<Axis> = Vec::new();
            for axis in std::mem::take(part).into_iter().filter(|axis| !axis.extent.is(1)) {
                match merged.last_mut() {
                    Some(outer) if outer.goes_on_in(&axis) => {
                        *outer = Axis { extent: outer.extent.clone() * axis.extent.clone(), ..axis };
                    }
                    _ => merged.push(axis),
                }
            }
            *part = merged;
        }
        self.lead = front.len();
        self.axes = front;
        self.axes.extend(middle);
        self.axes.extend(behind);
    }

    /// Cuts the last axis that the op works on into blocks, of which the inner part passes through.
    fn take_blocks(&mut self, bytes: i64) {
        let tail = self.lead + self.middle;
        let Some(last) = tail.checked_sub(1).filter(|last| *last >= self.lead) else { return };
        let inner: Dim = self.axes[tail..].iter().map(|axis| axis.extent.clone()).product();
        // The axis and those behind it lie one after the other everywhere.
        let mut length = Dim::from(1i64);
        for axis in self.axes[tail..].iter().rev() {
            let dense = axis.extent.is(1) || axis.output == length && axis.inputs.iter().all(|s| *s == length);
            if !dense {
                return;
            }
            length = length * axis.extent.clone();
        }
        let moved = || self.inputs.iter().filter(|input| input.moved);
        if self.axes[last].output != inner || moved().any(|input| input.strides.last() != Some(&inner)) {
            return;
        }
        let along = || self.distances.iter().chain([&self.axes[last].extent]);
        let constants: Option<Vec<i64>> = along().map(Dim::constant).collect();
        let block = match constants {
            Some(all) => {
                let all = all.into_iter().map(i64::unsigned_abs).fold(0, greatest_common_divisor);
                i64::try_from(all).unwrap_or(1)
            }
            // The largest of which everything is a multiple, up to what is moved at once.
            None => (1..=4)
                .rev()
                .map(|power| 1i64 << power)
                .find(|block| *block <= WIDEST / bytes && along().all(|distance| distance.divides_evenly(*block)))
                .unwrap_or(1),
        };
        if block <= 1 {
            return;
        }
        let by = Dim::from(block);
        let far = inner.clone() * block;
        let count = self.inputs.iter().filter(|input| input.moved).count();
        self.axes[last].extent = self.axes[last].extent.quotient(&by);
        self.axes[last].output = far.clone();
        for input in self.inputs.iter_mut().filter(|input| input.moved) {
            if let Some(stride) = input.strides.last_mut() {
                *stride = far.clone();
            }
        }
        for distance in &mut self.distances {
            *distance = distance.quotient(&by);
        }
        self.axes.insert(tail, Axis { extent: by, output: inner.clone(), inputs: vec![inner; count] });
    }

    /// Makes the units as wide as the last axis and the places of all others allow.
    fn widen(&mut self, bytes: i64, spread: bool) {
        let tail = self.lead + self.middle;
        let one = Dim::from(1i64);
        let last = self.axes.len().checked_sub(1).filter(|last| *last >= tail);
        let run = last.filter(|last| {
            let axis = &self.axes[*last];
            axis.output == one && axis.inputs.iter().all(|stride| *stride == one)
        });
        let mut width = bytes;
        if let Some(run) = run {
            self.run = true;
            let all_but_run = || self.axes.iter().enumerate().filter(|(at, _)| *at != run).map(|(_, axis)| axis);
            let moved = || self.inputs.iter().filter(|input| input.moved);
            let fits = |width: &i64| {
                let factor = width / bytes;
                let even = |dim: &Dim| dim.divides_evenly(factor);
                factor <= 1
                    || even(&self.axes[run].extent)
                        && even(&self.offset)
                        && all_but_run().all(|axis| even(&axis.output) && axis.inputs.iter().all(even))
                        && moved().all(|input| even(&input.offset) && input.strides.iter().all(even))
            };
            let most = if self.by_elements { bytes * most_lanes(bytes) } else { WIDEST };
            let widths = [WIDEST, 8, 4, 2].into_iter().filter(|width| (bytes + 1..=most).contains(width));
            width = widths.into_iter().find(fits).unwrap_or(bytes);
            let factor = Dim::from(width / bytes);
            if width > bytes {
                for (at, axis) in self.axes.iter_mut().enumerate() {
                    if at == run {
                        axis.extent = axis.extent.quotient(&factor);
                    } else {
                        let strides = axis.inputs.iter_mut().chain([&mut axis.output]);
                        strides.for_each(|stride| *stride = stride.quotient(&factor));
                    }
                }
                for input in self.inputs.iter_mut().filter(|input| input.moved) {
                    let strides = input.strides.iter_mut().chain([&mut input.offset]);
                    strides.for_each(|stride| *stride = stride.quotient(&factor));
                }
                self.offset = self.offset.quotient(&factor);
            }
            let extent = &mut self.axes[run].extent;
            if spread && extent.divides_evenly(UNITS) && extent.bounds().0 >= UNITS * PIECE {
                *extent = extent.quotient(&Dim::from(UNITS));
                self.units = UNITS;
            }
        }
        let (scalar, lanes) = match width {
            _ if self.by_elements => (self.element.stored(), (width / bytes) as u8),
            1 => (Scalar::U8, 1),
            2 => (Scalar::U16, 1),
            4 => (Scalar::U32, 1),
            8 => (Scalar::U32, 2),
            _ => (Scalar::U32, 4),
        };
        self.unit = Unit { scalar, lanes, bytes: width };
    }

    /// Whether whole runs are copied that are long enough for that to be quicker than moving them unit by unit.
    pub fn moves_runs(&self) -> bool {
        let run = self.axes.last().filter(|_| self.run && self.computes_in.is_none());
        run.is_some_and(|run| run.extent.bounds().0.saturating_mul(self.units * self.unit.bytes) >= LONG)
    }

    /// The extent of an axis that the op works on which surely has more positions than there are coordinates.
    pub fn uncounted(&self) -> Option<&Dim> {
        let mut middle = self.axes[self.lead..].iter().take(self.middle).map(|axis| &axis.extent);
        middle.find(|extent| extent.bounds().0 > i64::from(i32::MAX))
    }

    /// How many invocations there are.
    pub fn invocations(&self) -> Dim {
        self.axes.iter().map(|axis| axis.extent.clone()).product()
    }
}

impl Axis {
    /// Whether the inner axis's end is this one's next position, everywhere.
    fn goes_on_in(&self, inner: &Self) -> bool {
        let goes_on = |outer: &Dim, stride: &Dim| *outer == stride.clone() * inner.extent.clone();
        goes_on(&self.output, &inner.output)
            && self.inputs.iter().zip(&inner.inputs).all(|(outer, stride)| goes_on(outer, stride))
    }
}

/// Elements of so many bytes that are read and written at once, at most.
const fn most_lanes(bytes: i64) -> i64 {
    if bytes <= 4 { 4 } else { 1 }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Symbol;

    #[test]
    fn positions_beyond_coordinates_are_known() {
        let plan = |extents: [Dim; 2]| {
            let of = |extent: Dim| TensorType { element: ElementType::U8, shape: vec![extent] };
            let all = of(extents.iter().cloned().fold(Dim::from(0i64), |sum, extent| sum + extent));
            let inputs = extents.clone().map(of);
            let layouts = inputs.each_ref().map(|input| Layout::contiguous(&input.shape));
            let tensors: Vec<_> = inputs.iter().zip(&layouts).collect();
            let frame = Frame { distances: extents.to_vec(), in_blocks: true, ..Frame::default() };
            let way = Way { spread: true, by_elements: false };
            Plan::new(frame, None, &tensors, (&all, &Layout::contiguous(&all.shape)), way)
        };
        let numbers = |extents: [i64; 2]| plan(extents.map(Dim::from)).uncounted().and_then(Dim::constant);
        assert_eq!(numbers([1_500_000_000, 1_200_000_001]), Some(2_700_000_001));
        // In blocks of 16 they can be counted.
        assert_eq!(numbers([1_500_000_000, 1_200_000_000]), None);
        assert_eq!(numbers([1_000_000_000, 1_147_483_647]), None);
        let open = Dim::from(&Symbol::new("n", 1, 1 << 40).expect("the bounds are in order"));
        assert_eq!(plan([open.clone(), open]).uncounted(), None);
    }
}
