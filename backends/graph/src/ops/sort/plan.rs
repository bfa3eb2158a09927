//! How a sort is cut into launches.
//!
//! The axes that are not sorted are rows, merged where they follow on each other; rows and their elements are read where they lie. Rows that a workgroup holds are sorted in one launch. Of the best few of
//! longer rows, pieces are looked through by a workgroup each, whose finds are sorted. Everything else is sorted by the digits of ranks, which lie one after the other in scratch memory.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::Properties;
use trefoil_kernels::sort::{kernels, rows, tile, top as candidates};

use super::super::levels::{Level, count, innermost_first, merged_in_all};
use super::super::scan::running_counts;
use super::super::support::{
    LAUNCH, instance, kernel_time, number, power_of_two, specialised, steps_within, transfer_time, upper,
};
use super::order::order;
use super::{Gives, Order, Sort};
use crate::dim::Dim;
use crate::op::{Grid, Implementation, Ineligible, KernelStep, Operand, ParamValue, Slot, Step};
use crate::types::{ElementType, Layout, TensorType};

/// The most extents over which rows are spread.
const LEVELS: usize = 4;
/// With fewer rows they are cut in pieces: four workgroups for each multiprocessor.
const WANTED: i64 = 528;

/// A way to do the work.
pub(super) type Method = fn(Work<'_>, &Properties) -> Result<Implementation, Ineligible>;

/// Rows of tensors that agree in all extents but that of one axis: the extents over which they are spread, and each tensor's strides.
struct Rows<const N: usize> {
    levels: Vec<Level<N>>,
    /// Along a row.
    steps: [Dim; N],
    count: Dim,
}

impl<const N: usize> Rows<N> {
    /// # Errors
    /// The axes are too many that do not follow on each other.
    fn new(shape: &[Dim], axis: usize, strides: [&[Dim]; N]) -> Result<Self, Ineligible> {
        let levels = merged_in_all(
            (0..shape.len())
                .filter(|at| *at != axis)
                .map(|at| Level { extent: shape[at].clone(), strides: strides.map(|strides| strides[at].clone()) }),
        );
        if levels.len() > LEVELS {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let count = count(&levels);
        Ok(Self { levels, steps: strides.map(|strides| strides[axis].clone()), count })
    }

    /// The number of levels, their extents, and the strides of some of the tensors.
    fn params(&self, of: &[usize]) -> Vec<ParamValue> {
        let extents = innermost_first(&self.levels, LEVELS, |level| level.extent.clone());
        let mut params = vec![ParamValue::Dim(Dim::from(self.levels.len())), extents];
        let strides = |tensor: &usize| innermost_first(&self.levels, LEVELS, |level| level.strides[*tensor].clone());
        params.extend(of.iter().map(strides));
        params
    }

    /// Whether a tensor's rows begin at multiples of four elements.
    fn aligned(&self, tensor: usize) -> bool {
        self.levels.iter().all(|level| level.strides[tensor].divides_evenly(4))
    }
}

/// Strides of rows of `length` that lie one after the other, in the order of their numbers.
fn rows_after_rows(shape: &[Dim], axis: usize, length: &Dim) -> Vec<Dim> {
    let mut extents = shape.to_vec();
    extents[axis] = number(1);
    let strides = Layout::contiguous(&extents).strides;
    let step = |at: usize, stride: Dim| if at == axis { number(1) } else { stride * length.clone() };
    strides.into_iter().enumerate().map(|(at, stride)| step(at, stride)).collect()
}

/// What is to be done, and the steps so far.
pub(super) struct Work<'a> {
    x: &'a Operand,
    sort: &'a Sort,
    n: Dim,
    k: Dim,
    /// Strides of elements, of results, of rows of `n` that lie one after the other, and of rows of `k`.
    rows: Rows<4>,
    order: [u32; 5],
    steps: Vec<Step>,
    scratch: Vec<Dim>,
}

impl<'a> Work<'a> {
    pub(super) fn new(x: &'a Operand, sort: &'a Sort, output: &TensorType) -> Result<Self, Ineligible> {
        let (shape, axis) = (&x.ty.shape, sort.axis);
        let (n, k) = (shape[axis].clone(), output.shape[axis].clone());
        let results = Layout::contiguous(&output.shape).strides;
        let (whole, short) = (rows_after_rows(shape, axis, &n), rows_after_rows(shape, axis, &k));
        let rows = Rows::new(shape, axis, [&x.layout.strides, &results, &whole, &short])?;
        // Of values alone, zeros keep their signs.
        let order = order(x.ty.element, sort.order, sort.gives != Gives::Values);
        Ok(Self { x, sort, n, k, rows, order, steps: Vec::new(), scratch: Vec::new() })
    }

    fn scratch(&mut self, bytes: Dim) -> Slot {
        self.scratch.push(bytes);
        Slot::Scratch(self.scratch.len() - 1)
    }

    /// A binding that is written holds something.
    fn nothing(&mut self) -> Slot {
        self.scratch(number(8))
    }

    fn order(&self) -> ParamValue {
        ParamValue::Dims(self.order.iter().map(|word| Dim::from(*word)).collect())
    }

    /// Where values and places go, and whether they are wanted.
    fn outputs(&mut self) -> [(Slot, bool); 2] {
        match self.sort.gives {
            Gives::Values => [(Slot::Output(0), true), (self.nothing(), false)],
            Gives::Places => [(self.nothing(), false), (Slot::Output(0), true)],
            Gives::Top(_) => [(Slot::Output(0), true), (Slot::Output(1), true)],
        }
    }

    fn push(&mut self, name: &str, bindings: Vec<Slot>, params: Vec<ParamValue>, grid: Grid) -> Result<(), Ineligible> {
        let kernel = instance(&kernels() as &[&'static Kernel], name)?;
        self.push_kernel(kernel, bindings, params, grid);
        Ok(())
    }

    fn push_kernel(&mut self, kernel: Arc<Kernel>, bindings: Vec<Slot>, params: Vec<ParamValue>, grid: Grid) {
        self.steps.push(Step::Kernel(KernelStep { kernel, bindings, params, grid }));
    }

    fn done(self, device: &Properties, microseconds: f64) -> Implementation {
        let launches = LAUNCH * self.steps.len() as f64;
        let cost = kernel_time(device, microseconds + launches);
        Implementation { steps: self.steps, scratch: self.scratch, cost }
    }

    /// The unsigned integer of the width of the elements, which the kernels are called after.
    fn width(&self) -> &'static str {
        unsigned(self.x.ty.element)
    }

    /// Writes the elements at the places `found`, `[rows, length]`, and these places; `through` has rows of the true places.
    fn take(&mut self, found: Slot, length: usize, through: Option<(Slot, Dim)>) -> Result<(), Ineligible> {
        let [(values, gives_values), (places, gives_places)] = self.outputs();
        let mapped = through.is_some();
        let (through, long) = through.unwrap_or((Slot::Empty, number(0)));
        let steps = [0, 1, length].map(|of| self.rows.steps[of].clone());
        let mut params = vec![ParamValue::Dims(vec![self.k.clone(), long]), ParamValue::Dims(steps.to_vec())];
        params.extend(self.rows.params(&[0, 1, length]));
        params.push(ParamValue::Dim(self.rows.count.clone()));
        params.extend([mapped, gives_values, gives_places].map(ParamValue::Bool));
        let name = format!("sort_take_{}", self.width());
        let grid = Grid::Invocations(self.rows.count.clone() * self.k.clone());
        self.push(&name, vec![Slot::Input(0), found, through, values, places], params, grid)
    }
}

/// The unsigned integer of an element type's width.
fn unsigned(element: ElementType) -> &'static str {
    match element.bytes() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        _ => "u64",
    }
}

/// A launch of [`rows::sort_rows`]: `[n, k, width]`, steps, and the rows.
fn rows_params(
    shape: [Dim; 4],
    steps: [Dim; 2],
    rows: Vec<ParamValue>,
    order: ParamValue,
    flags: [bool; 3],
) -> Vec<ParamValue> {
    let mut params = vec![ParamValue::Dims(shape.to_vec()), ParamValue::Dims(steps.to_vec())];
    params.extend(rows);
    params.push(order);
    params.extend(flags.map(ParamValue::Bool));
    params
}

/// Sorts rows that a workgroup holds.
pub(super) fn held(mut work: Work<'_>, device: &Properties) -> Result<Implementation, Ineligible> {
    let most = work.n.bounds().1;
    let holds = rows::HELD as i64;
    if most > holds {
        return Err(Ineligible::Other(format!("rows may have {most} elements, a workgroup holds {holds}")));
    }
    let width = power_of_two(most, rows::HELD as i64);
    let [(values, gives_values), (places, gives_places)] = work.outputs();
    let steps = [work.rows.steps[0].clone(), work.rows.steps[1].clone()];
    let beside = !steps[0].is(1);
    let shape = [work.rows.count.clone(), work.n.clone(), work.k.clone(), number(width)];
    let rows = work.rows.params(&[0, 1]);
    let params = rows_params(shape, steps, rows, work.order(), [beside, gives_values, gives_places]);
    // Of rows that have no elements nothing is launched: it would read a first one.
    let one_if_any = work.n.minimum(&number(1));
    let grid = Grid::Workgroups(work.rows.count.quotient_up(holds / width) * one_if_any);
    let name = format!("sort_rows_{}", work.width());
    work.push(&name, vec![Slot::Input(0), values, places], params, grid)?;
    let cost = transfer_time(3.0 * upper(&work.x.ty.bytes()));
    Ok(work.done(device, cost))
}

/// The best few of long rows.
pub(super) fn top(mut work: Work<'_>, device: &Properties) -> Result<Implementation, Ineligible> {
    let Gives::Top(k) = work.sort.gives else {
        return Err(Ineligible::Other("all elements are wanted".to_owned()));
    };
    let Some(holds) = candidates::HELD.into_iter().find(|holds| k <= holds / 4 || *holds > 512 && k <= holds / 2)
    else {
        return Err(Ineligible::Other(format!(
            "{k} elements are wanted, a workgroup finds {}",
            candidates::HELD[1] / 2
        )));
    };
    let (count, most) = (work.rows.count.clone(), work.n.bounds().1);
    if most <= rows::HELD as i64 {
        return Err(Ineligible::Other(format!("rows have at most {most} elements, which a workgroup holds")));
    }
    // Pieces of four rounds at least, and no more of them than a workgroup sorts what they leave.
    let round = (candidates::SIZE * candidates::EACH) as i64;
    let fits = rows::HELD as i64 / i64::try_from(k).unwrap_or(i64::MAX);
    let pieces = (WANTED / count.bounds().1.max(1)).min(most / (4 * round)).min(fits).max(1);
    // A piece that is not the last has as many elements as are wanted of it: what fills it up ranks as the last elements do, whose places would come behind it.
    let least = number((i64::try_from(k).unwrap_or(i64::MAX) + 3) / 4);
    let chunk = if pieces == 1 { work.n.clone() } else { work.n.quotient_up(4 * pieces).maximum(&least) * 4i64 };
    let finish = pieces == 1;
    // Of several pieces each begins at a multiple of four.
    let quads = work.rows.steps[0].is(1) && work.rows.aligned(0);
    let finds = count.clone() * (pieces * k as i64);
    let [(values, _), (places, _)] = work.outputs();
    let [values, places, ranks] = if finish {
        [values, places, work.nothing()]
    } else {
        [work.nothing(), work.scratch(finds.clone() * 4i64), work.scratch(finds * 4i64)]
    };
    let mut params = vec![
        ParamValue::Dims(vec![work.n.clone(), Dim::from(k), chunk, number(pieces)]),
        ParamValue::Dims(vec![work.rows.steps[0].clone(), work.rows.steps[1].clone()]),
    ];
    params.extend(work.rows.params(&[0, 1]));
    params.push(work.order());
    params.extend([finish, true].map(ParamValue::Bool));
    let kernel = instance(&kernels() as &[&'static Kernel], &format!("top_rows_{}_{holds}", work.width()))?;
    let kernel = specialised(&kernel, &[("QUADS", i64::from(quads))])?;
    let bindings = vec![Slot::Input(0), values, places.clone(), ranks.clone()];
    work.push_kernel(kernel, bindings, params, Grid::Workgroups(count.clone() * pieces));
    let read = transfer_time(upper(&work.x.ty.bytes()));
    if finish {
        return Ok(work.done(device, 1.5 * read));
    }
    // What pieces leave is in order, and equal ranks are in the order of their places: so are their numbers.
    let length = pieces * k as i64;
    let width = power_of_two(length, rows::HELD as i64);
    let found = work.scratch(count.clone() * Dim::from(k) * 4i64);
    let flat =
        Rows::new(&[count.clone(), number(length)], 1, [&[number(length), number(1)], &[Dim::from(k), number(1)]])?;
    let nothing = work.nothing();
    let plain = order(ElementType::U32, Order::Ascending, true);
    let plain = ParamValue::Dims(plain.iter().map(|word| Dim::from(*word)).collect());
    let shape = [count.clone(), number(length), Dim::from(k), number(width)];
    let params = rows_params(shape, [number(1), number(1)], flat.params(&[0, 1]), plain, [false, false, true]);
    let grid = Grid::Workgroups(count.quotient_up(rows::HELD as i64 / width));
    work.push("sort_rows_u32", vec![ranks, nothing, found.clone()], params, grid)?;
    work.take(found, 3, Some((places, number(length))))?;
    Ok(work.done(device, 1.5 * read))
}

/// Sorts by digits.
pub(super) fn digits(mut work: Work<'_>, device: &Properties) -> Result<Implementation, Ineligible> {
    let element = work.x.ty.element;
    let values_alone = work.sort.gives == Gives::Values;
    let all = work.rows.count.clone() * work.n.clone();
    let bytes = all.clone() * 4i64;
    let (mut ranks, mut other_ranks) = (work.scratch(bytes.clone()), work.scratch(bytes.clone()));
    let (mut places, mut other_places) = if values_alone {
        (work.nothing(), work.nothing())
    } else {
        (work.scratch(bytes.clone()), work.scratch(bytes))
    };
    let mut params = vec![ParamValue::Dim(work.n.clone()), ParamValue::Dim(work.rows.steps[0].clone())];
    params.extend(work.rows.params(&[0]));
    params.push(work.order());
    let name = format!("sort_ranks_{}", work.width());
    work.push(&name, vec![Slot::Input(0), ranks.clone()], params, Grid::Invocations(all.clone()))?;

    let tiles = work.n.quotient_up(tile::TILE as i64);
    let counts_shape = vec![work.rows.count.clone(), tiles.clone() * tile::SIZE as i64];
    let counts_bytes = counts_shape.iter().cloned().product::<Dim>() * 4i64;
    let (counts, starts) = (work.scratch(counts_bytes.clone()), work.scratch(counts_bytes));
    let sums = running_counts(counts_shape, device)?;
    let sums = steps_within(sums, &counts, &starts, &mut work.scratch);
    let grid = Grid::Workgroups(work.rows.count.clone() * tiles.clone());
    let shape = ParamValue::Dims(vec![work.n.clone(), tiles]);
    let passes = i64::try_from(element.bytes()).unwrap_or(4);
    for pass in 0..passes {
        let shift = ParamValue::Dim(number(32 - 8 * (passes - pass)));
        let params = vec![shape.clone(), shift.clone()];
        work.push("sort_count", vec![ranks.clone(), counts.clone()], params, grid.clone())?;
        work.steps.extend(sums.iter().cloned());
        let given = pass > 0 && !values_alone;
        let params = vec![shape.clone(), shift, ParamValue::Bool(given)];
        let from = if given { places.clone() } else { Slot::Empty };
        let bindings = vec![ranks.clone(), from, starts.clone(), other_ranks.clone(), other_places.clone()];
        work.push(if values_alone { "sort_spread_false" } else { "sort_spread_true" }, bindings, params, grid.clone())?;
        std::mem::swap(&mut ranks, &mut other_ranks);
        std::mem::swap(&mut places, &mut other_places);
    }
    if values_alone {
        let mut params = vec![ParamValue::Dim(work.n.clone()), ParamValue::Dim(work.rows.steps[1].clone())];
        params.extend(work.rows.params(&[1]));
        params.push(work.order());
        let name = format!("sort_elements_{}", work.width());
        work.push(&name, vec![ranks, Slot::Output(0)], params, Grid::Invocations(all))?;
    } else {
        work.take(places, 2, None)?;
    }
    let moved = (if values_alone { 13.0 } else { 21.0 }) * passes as f64 + 16.0;
    let cost = transfer_time(moved * upper(&work.rows.count) * upper(&work.n));
    Ok(work.done(device, cost))
}
