//! How rows lie, and which invocations share one.
//!
//! The axes that are normalised make a row's elements, the others make rows; of either, axes that follow on each other in every operand become one. Rows whose elements follow on each other, four at a time, are
//! held in registers; others are gone over by their strides, and neighbouring invocations take neighbouring elements, or neighbouring rows where the elements lie apart.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::{DeviceKind, Properties};
use trefoil_kernels::norm::rows::{HELD_BY_WIDEST, LARGEST, LARGEST_OF_HALVES, WIDE, WIDEST};
use trefoil_kernels::team::{LEVELS, SIZE};

use super::super::levels::{Level, count, merged};
use super::super::support::{is_worth_a_pipeline, number, specialised};
use crate::dim::Dim;
use crate::op::{Grid, Ineligible, Operand, ParamValue};
use crate::types::{ElementType, Layout};

/// With fewer workgroups, rows that lie side by side get more invocations each: two for each multiprocessor of a large GPU.
const FEW: i64 = 264;

/// The operands by which axes lie.
const X: usize = 0;
const Y: usize = 1;
const VECTORS: usize = 2;

/// Axes with their strides in x, in the result, and in the vectors.
type Axis = Level<3>;

/// Axes, those merged that follow on each other in some operands.
fn merged_in(axes: &[Axis], operands: &[usize]) -> Vec<Axis> {
    merged(axes.iter().cloned(), |outer, inner| outer.joined(inner, operands.iter().copied()))
}

/// How many extents there are besides the outermost.
fn levels(axes: &[Axis]) -> Dim {
    Dim::from(axes.len().saturating_sub(1))
}

/// The extents but the outermost, the last first.
fn extents(axes: &[Axis]) -> ParamValue {
    let mut extents: Vec<_> = axes.iter().skip(1).rev().map(|axis| axis.extent.clone()).collect();
    extents.resize(LEVELS, number(1));
    ParamValue::Dims(extents)
}

/// The strides in an operand as the extents stand, with the outermost's behind.
fn strides(axes: &[Axis], operand: usize) -> ParamValue {
    let mut strides: Vec<_> = axes.iter().skip(1).rev().map(|axis| axis.strides[operand].clone()).collect();
    strides.resize(LEVELS, number(0));
    strides.push(axes.first().map_or_else(|| number(0), |axis| axis.strides[operand].clone()));
    ParamValue::Dims(strides)
}

/// The rows of a tensor.
pub(super) struct Rows {
    /// Over what rows are spread.
    rows: Vec<Axis>,
    /// Over what a row's elements are.
    elements: Vec<Axis>,
    /// Whether x is contiguous.
    is_contiguous: bool,
}

/// Rows whose elements follow on each other.
pub(super) struct InQuads {
    /// How many.
    pub(super) rows: Dim,
    /// Elements of each.
    pub(super) elements: Dim,
    /// Where they start: levels, extents, strides in x and in the vectors.
    pub(super) starts: [ParamValue; 4],
    /// How many neighbours share an element of a vector, and the stride from one to the next.
    pub(super) runs: [Dim; 2],
}

/// Rows of any strides.
pub(super) struct AnyStrides {
    /// How many.
    pub(super) rows: Dim,
    /// Elements of each.
    pub(super) elements: Dim,
    /// Invocations that share one.
    pub(super) along: i64,
    /// Whether these are neighbours.
    pub(super) beside: bool,
    /// Where they lie: levels, the extents of rows and of elements, and for x, the result and the vectors the strides of both.
    pub(super) places: [ParamValue; 9],
    /// Its workgroups.
    pub(super) grid: Grid,
}

impl Rows {
    /// The rows of `x` along `axes`, with the strides of vectors that broadcast to it.
    pub(super) fn of(x: &Operand, axes: &[usize], vectors: Option<&Layout>) -> Self {
        let result = Layout::contiguous(&x.ty.shape);
        let (mut rows, mut elements) = (Vec::new(), Vec::new());
        for (axis, extent) in x.ty.shape.iter().enumerate() {
            if extent.is(1) {
                continue;
            }
            let vector = vectors.map_or_else(|| number(0), |vectors| vectors.strides[axis].clone());
            let strides = [x.layout.strides[axis].clone(), result.strides[axis].clone(), vector];
            let one = Axis { extent: extent.clone(), strides };
            if axes.contains(&axis) { elements.push(one) } else { rows.push(one) }
        }
        Self { rows, elements, is_contiguous: x.layout.is_contiguous(&x.ty.shape) }
    }

    /// As rows whose elements follow on each other, four at a time.
    ///
    /// # Errors
    /// They do not, and why.
    pub(super) fn in_quads(&self) -> Result<InQuads, Ineligible> {
        let no = |reason: String| Err(Ineligible::Other(reason));
        let elements = match merged_in(&self.elements, &[X, Y]).as_slice() {
            [all] if all.strides[X].is(1) && all.strides[Y].is(1) => all.extent.clone(),
            [] => return no("rows of one element".to_owned()),
            _ => return no("the elements of a row do not follow on each other".to_owned()),
        };
        if !elements.divides_evenly(4) {
            return no(format!("rows of {elements} elements, not a multiple of 4"));
        }
        let rows = merged_in(&self.rows, &[X, Y, VECTORS]);
        if rows.len() > LEVELS + 1 || rows.iter().any(|row| !row.strides[X].divides_evenly(4)) {
            return no("rows start at places that are no multiples of 4, or are spread over too many axes".to_owned());
        }
        let runs = match merged_in(&self.elements, &[VECTORS]).as_slice() {
            [all] if all.strides[VECTORS].is(1) => [number(1), number(1)],
            [all] if all.strides[VECTORS].is(0) => [elements.clone(), number(0)],
            [of, run] if run.strides[VECTORS].is(0) && run.extent.divides_evenly(4) => {
                [run.extent.clone(), of.strides[VECTORS].clone()]
            }
            _ => return no("the elements of a vector do not follow on each other as a row's do".to_owned()),
        };
        if runs[0].is(1) && rows.iter().any(|row| !row.strides[VECTORS].divides_evenly(4)) {
            return no("vectors start at places that are no multiples of 4".to_owned());
        }
        let starts = [ParamValue::Dim(levels(&rows)), extents(&rows), strides(&rows, X), strides(&rows, VECTORS)];
        Ok(InQuads { rows: count(&rows), elements, starts, runs })
    }

    /// As rows of any strides.
    ///
    /// # Errors
    /// They are spread over more extents than the kernels take; a copy of x may have fewer.
    pub(super) fn of_any_strides(&self) -> Result<AnyStrides, Ineligible> {
        let rows = merged_in(&self.rows, &[X, Y, VECTORS]);
        let elements = merged_in(&self.elements, &[X, Y, VECTORS]);
        if rows.len().max(elements.len()) > LEVELS + 1 {
            if !self.is_contiguous {
                return Err(Ineligible::NeedsContiguous(vec![0]));
            }
            return Err(Ineligible::Other(format!(
                "rows over {} groups of axes and elements over {}, of which kernels take {}",
                rows.len(),
                elements.len(),
                LEVELS + 1
            )));
        }
        let beside = elements.last().is_none_or(|last| last.strides[X].is(1)) && !elements.is_empty();
        let (number_of, length) = (count(&rows), count(&elements));
        let along = shared(number_of.bounds().1, length.bounds().1, beside);
        let places = [
            ParamValue::Dims(vec![levels(&rows), levels(&elements)]),
            extents(&rows),
            extents(&elements),
            strides(&rows, X),
            strides(&elements, X),
            strides(&rows, Y),
            strides(&elements, Y),
            strides(&rows, VECTORS),
            strides(&elements, VECTORS),
        ];
        let grid = Grid::Workgroups(number_of.quotient_up(SIZE as i64 / along));
        Ok(AnyStrides { rows: number_of, elements: length, along, beside, places, grid })
    }
}

/// How many invocations share a row of so many elements.
fn shared(rows: i64, elements: i64, beside: bool) -> i64 {
    let most = SIZE as i64;
    let mut along = 1;
    let wanted = if beside { most } else { most.min(8) };
    while along < wanted && elements > along * 4 {
        along *= 2;
    }
    // Narrower bundles of rows where there are few, down to a line of the cache; then whatever keeps invocations at work.
    let groups = |along: i64| rows.saturating_mul(along) / most;
    while !beside
        && along < most
        && elements > along * 8
        && (groups(along) < FEW && along < 32 || rows.saturating_mul(along) < most)
    {
        along *= 2;
    }
    along
}

/// How rows are taken that are too long for workgroups of [`SIZE`] invocations with [`LARGEST`] quads each: what was measured to be fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Longest {
    /// By workgroups of [`WIDEST`] invocations, where these hold all of a row, else of [`WIDE`].
    Widest,
    /// By workgroups of [`WIDE`] invocations: a row of 32,000 is read once.
    Wide,
    /// With twice as many quads an invocation: the same, where kernels have no more invocations.
    Twice,
    /// What is not held is read again.
    Again,
}

impl Longest {
    /// For a device; `otherwise` where its workgroups are not as wide, or its compiler's kernels were not measured to be faster so.
    pub(super) fn on(device: &Properties, otherwise: Self) -> Self {
        let is_wide = device.kind == DeviceKind::Cuda && device.limits.max_invocations >= WIDE as u32;
        if is_wide { Self::Wide } else { otherwise }
    }
}

/// How a family of kernels takes rows on a device, by what was measured to be fastest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Rows that are too long for [`SIZE`] invocations.
    pub(super) longest: Longest,
    /// Quads of an invocation where rows have 1025 to 4096 elements: the more, the fewer invocations meet for a sum.
    pub(super) middle: i64,
}

/// What of a row an invocation holds.
pub(super) struct Held {
    /// Invocations of a workgroup.
    across: usize,
    /// Groups of four elements.
    pub(super) quads: i64,
    /// `1 << bits` invocations share a row.
    pub(super) bits: i64,
}

impl Held {
    /// For rows of so many elements.
    pub(super) fn of(element: ElementType, elements: &Dim, manner: Manner) -> Self {
        let Manner { longest, middle } = manner;
        let n = elements.bounds().1;
        let held_by_widest = (4 * HELD_BY_WIDEST * WIDEST) as i64;
        let across = match longest {
            Longest::Widest if n <= held_by_widest => WIDEST,
            Longest::Widest | Longest::Wide => WIDE,
            Longest::Twice | Longest::Again => SIZE,
        };
        let across = if element == ElementType::F32 && n > 16_384 { across } else { SIZE };
        let quads = match n {
            _ if element != ElementType::F32 => LARGEST_OF_HALVES as i64,
            _ if across == WIDEST => HELD_BY_WIDEST as i64,
            ..=512 => 4,
            1025..=4096 => middle,
            // Up to 32 invocations share a row of 1024, which need no barrier where subgroups have as many.
            513..=1024 | 4097..=8192 => 8,
            _ if n <= 16_384 || longest != Longest::Twice => LARGEST as i64,
            _ => 2 * LARGEST as i64,
        };
        let most = across.ilog2().into();
        let bits = (0..most).find(|bits| (4 * quads) << bits >= n).unwrap_or(most);
        Self { across, quads, bits }
    }

    /// Whether an invocation of a workgroup of [`SIZE`] holds more than what leaves room for another workgroup.
    pub(super) fn is_long(&self) -> bool {
        self.across == SIZE && self.quads > LARGEST as i64
    }

    /// The name of the family's kernel for such rows, without its instance.
    pub(super) fn kernel(&self, family: &str, element: ElementType) -> String {
        let rows = match (element, self.across) {
            (ElementType::F32, WIDEST) => "widest_rows",
            (ElementType::F32, WIDE) => "wide_rows",
            (ElementType::F32, _) if self.is_long() => "long_rows",
            (ElementType::F32, _) => "rows",
            _ => "half_rows",
        };
        format!("{family}_{rows}")
    }

    /// A kernel for so many rows, which knows how many invocations share one where that is worth a pipeline.
    ///
    /// # Errors
    /// The kernel is for fewer invocations.
    pub(super) fn specialised(
        &self,
        kernel: Arc<Kernel>,
        rows: &Dim,
        elements: &Dim,
    ) -> Result<Arc<Kernel>, Ineligible> {
        if is_worth_a_pipeline([rows, elements]) { specialised(&kernel, &[("BITS", self.bits)]) } else { Ok(kernel) }
    }

    /// Whether that is all of rows of so many elements, which then are read once.
    pub(super) fn is_all_of(&self, elements: &Dim) -> bool {
        (4 * self.quads) << self.bits >= elements.bounds().1
    }

    /// The workgroups that take so many rows.
    pub(super) fn grid(&self, rows: &Dim) -> Grid {
        Grid::Workgroups(rows.quotient_up(self.across as i64 >> self.bits))
    }
}
