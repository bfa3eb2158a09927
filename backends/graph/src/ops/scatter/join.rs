//! Slots joined with all of their updates.

use trefoil_dsl::device::Properties;
use trefoil_kernels::scatter::join::SIZE;
use trefoil_kernels::scatter::kernels;
use trefoil_kernels::scatter::places::CHUNK;

use super::super::sort::places_in_order;
use super::super::support::{
    LAUNCH, expect_element, expect_inputs, instance, kernel_time, shape_error, steps_within, transfer_time, upper,
};
use super::places::Named;
use super::{Update, result};
use crate::dim::Dim;
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, Operand, ParamValue,
    Request, Slot, Step,
};
use crate::types::{ElementType, Layout, TensorType};

use ElementType::{BF16, F16, F32, F64, I32, I64, U32, U64};

/// Bytes that an atomic moves at least: those of a sector of a GPU's memory, there and back.
const SECTOR: f64 = 64.0;

/// `x`, `[lines, .., columns]`, with the updates, `[lines, count, columns]`, joined with the slots that indices tell: inputs are `x`, the indices and the updates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Join {
    /// What an update does; it does not set.
    pub update: Update,
    /// What indices name of the axes in the middle.
    pub named: Named,
    /// What the elements are.
    pub element: ElementType,
}

impl Join {
    /// The kernel that joins slots, if it takes such elements.
    fn kernel(&self) -> Option<String> {
        let of = match self.element {
            I32 | U32 if self.wraps() => "words",
            I64 | U64 if self.wraps() => "longs",
            F32 | F16 | BF16 | F64 | I32 | U32 | I64 | U64 => self.element.name(),
            _ => return None,
        };
        (self.update != Update::Set).then(|| format!("{}_{of}", self.update.name()))
    }

    /// Whether integers with and without a sign are the same to it.
    fn wraps(&self) -> bool {
        matches!(self.update, Update::Add | Update::Mul)
    }

    /// The kernel that does it by atomics, if the type has them.
    fn atomic(&self) -> Option<&'static str> {
        Some(match (self.update, self.element) {
            (Update::Add, F32) => "scatter_atomic_add_f32",
            (Update::Add, I32 | U32) => "scatter_atomic_add_words",
            (Update::Max, U32) => "scatter_atomic_max_u32",
            (Update::Max, I32) => "scatter_atomic_max_i32",
            (Update::Min, U32) => "scatter_atomic_min_u32",
            (Update::Min, I32) => "scatter_atomic_min_i32",
            _ => return None,
        })
    }

    /// `old` joined with an update, for references.
    fn joined(&self, old: f64, update: f64) -> f64 {
        let exact = |whole: fn(i128, i128) -> i128, real: fn(f64, f64) -> f64| match self.element.is_float() {
            true => real(old, update),
            false => self.element.wrapped(whole(old as i128, update as i128)),
        };
        let extreme = |better: fn(f64, f64) -> f64| {
            if old.is_nan() || update.is_nan() { f64::NAN } else { better(old, update) }
        };
        match self.update {
            Update::Set => update,
            Update::Add => exact(|a, b| a + b, |a, b| a + b),
            // What two numbers of 64 bits make may take more than 127; the lowest bits are right.
            Update::Mul => exact(i128::wrapping_mul, |a, b| a * b),
            Update::Max => extreme(f64::max),
            Update::Min => extreme(f64::min),
        }
    }
}

impl Op for Join {
    fn name(&self) -> &'static str {
        self.update.name()
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("update", format!("{:?}", self.update)), ("named", format!("{:?}", self.named))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=3)?;
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        if self.kernel().is_none() {
            let expected = "f32, f16, bf16, f64, i32, u32, i64 or u64, which are not set (`cast` converts)".to_owned();
            return Err(OpError::ElementType { input: "x", given: self.element, expected });
        }
        expect_element("x", x, self.element)?;
        expect_element("updates", updates, self.element)?;
        let [first, slots @ .., last] = &*x.shape else {
            return Err(shape_error("x", x, "lines, axes that indices name, and columns".to_owned()));
        };
        self.named.check(indices, slots)?;
        let wanted = [first.clone(), self.named.count(indices), last.clone()];
        super::super::support::expect_shape("updates", updates, &wanted)?;
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        let extents = &x.shape[1..x.shape.len() - 1];
        let (count, columns, slots) = (updates.shape[1], updates.shape[2], extents.iter().product::<usize>());
        let mut values = x.values.clone();
        for (update, slot) in self.named.slots(indices, extents).into_iter().enumerate() {
            let Some(slot) = slot else { continue };
            for (line, column) in (0..x.shape[0]).flat_map(|line| (0..columns).map(move |column| (line, column))) {
                let value = &mut values[(line * slots + slot) * columns + column];
                *value = self.joined(*value, updates.values[(line * count + update) * columns + column]);
            }
        }
        vec![HostTensor { shape: x.shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[2].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        let ways = [true, false].into_iter().flat_map(|in_place| {
            let ways: [Box<dyn Candidate + '_>; 2] =
                [Box::new(InOrder { op: self, in_place }), Box::new(Atomics { op: self, in_place })];
            ways
        });
        OpKind::Kernels(ways.collect())
    }
}

/// Extents and strides of a request.
struct Work<'a> {
    indices: &'a Operand,
    /// Over which slots are counted.
    extents: Vec<Dim>,
    lines: Dim,
    slots: Dim,
    columns: Dim,
    count: Dim,
    /// From a line, a slot or an update, and a column to the next.
    x_strides: [Dim; 3],
    update_strides: [Dim; 3],
    steps: Vec<Step>,
    scratch: Vec<Dim>,
}

impl<'a> Work<'a> {
    fn new(op: &Join, request: &Request<'a>) -> Result<Self, Ineligible> {
        let [x, indices, updates] = request.inputs else { return Err(Ineligible::Other("three inputs".to_owned())) };
        let rank = x.ty.rank();
        let extents = x.ty.shape[1..rank - 1].to_vec();
        // Slots have one stride if their axes follow on each other.
        let strides = &x.layout.strides;
        let step = strides[rank - 2].clone();
        let follow = Layout::contiguous(&extents).strides;
        if extents
            .iter()
            .zip(&follow)
            .zip(&strides[1..])
            .any(|((extent, follow), stride)| !extent.is(1) && *stride != follow.clone() * step.clone())
        {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let [from_line, from_update, from_column] = &*updates.layout.strides else {
            return Err(Ineligible::Other("updates of three axes".to_owned()));
        };
        Ok(Self {
            indices,
            lines: x.ty.shape[0].clone(),
            slots: extents.iter().cloned().product(),
            columns: x.ty.shape[rank - 1].clone(),
            count: op.named.count(&indices.ty),
            x_strides: [strides[0].clone(), step, strides[rank - 1].clone()],
            update_strides: [from_line.clone(), from_update.clone(), from_column.clone()],
            extents,
            steps: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn scratch(&mut self, bytes: Dim) -> Slot {
        // A binding that is written holds something.
        self.scratch.push(bytes + 16i64);
        Slot::Scratch(self.scratch.len() - 1)
    }

    fn push(&mut self, name: &str, bindings: Vec<Slot>, params: Vec<ParamValue>, grid: Grid) -> Result<(), Ineligible> {
        let kernel = instance(&kernels(), name)?;
        self.steps.push(Step::Kernel(KernelStep { kernel, bindings, params, grid }));
        Ok(())
    }

    /// Finds the slot of each update, as numbers of that type.
    fn keys(&mut self, op: &Join, key: ElementType) -> Result<Slot, Ineligible> {
        let keys = self.scratch(self.count.clone() * i64::try_from(key.bytes()).unwrap_or(4));
        let mut params = vec![ParamValue::Dim(self.count.clone())];
        // They are the second input.
        let places = op.named.params(self.indices, &self.extents);
        params.extend(places.map_err(|error| match error {
            Ineligible::NeedsContiguous(_) => Ineligible::NeedsContiguous(vec![1]),
            other => other,
        })?);
        let name = format!("scatter_keys_{key}");
        let grid = Grid::Invocations(self.count.clone());
        self.push(&name, vec![Slot::Input(1), keys.clone()], params, grid)?;
        Ok(keys)
    }

    /// Whether four columns can be taken at a time.
    fn quads(&self) -> bool {
        let [x_line, x_slot, x_column] = &self.x_strides;
        let [line, update, column] = &self.update_strides;
        let four = [&self.columns, x_line, x_slot, line, update];
        x_column.is(1) && column.is(1) && four.into_iter().all(|stride| stride.divides_evenly(4))
    }

    fn done(self, device: &Properties, bytes: f64, others: f64) -> Implementation {
        let launches = LAUNCH * self.steps.len() as f64;
        let cost = kernel_time(device, transfer_time(bytes) + launches) + others;
        Implementation { steps: self.steps, scratch: self.scratch, cost }
    }
}

/// As many neighbours as share a row of so many elements, as a power of two.
pub(super) fn bits(row: i64) -> u32 {
    let most = SIZE.trailing_zeros();
    (0..most).find(|bits| 1 << bits >= row).unwrap_or(most)
}

pub(super) fn of_bits(bits: u32) -> ParamValue {
    ParamValue::Dim(Dim::from(i64::from(bits)))
}

/// A grid for so many rows that `1 << bits` invocations share.
pub(super) fn grid(rows: Dim, bits: u32) -> Grid {
    Grid::Workgroups(rows.quotient_up((SIZE >> bits) as i64))
}

/// The updates of each slot, in their order.
#[derive(Debug)]
struct InOrder<'a> {
    op: &'a Join,
    /// Whether the result takes over the memory of x.
    in_place: bool,
}

impl Candidate for InOrder<'_> {
    fn name(&self) -> &'static str {
        if self.in_place {
            "updates in the order of their slots, in place"
        } else {
            "updates in the order of their slots"
        }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = self.op;
        let result = result(request, self.in_place)?;
        let mut work = Work::new(op, request)?;
        let (lines, slots, columns, count) =
            (work.lines.clone(), work.slots.clone(), work.columns.clone(), work.count.clone());
        // The largest key is that of no slot, and half the digits are half the work.
        let key = if slots.bounds().1 < i64::from(u16::MAX) { ElementType::U16 } else { U32 };
        let keys = work.keys(op, key)?;
        let places = work.scratch(count.clone() * 4i64);
        let sort = places_in_order(key, count.clone(), request.device)?;
        let sorting = sort.cost;
        work.steps.extend(steps_within(sort, &keys, &places, &mut work.scratch));
        // With few updates no slot has many chunks.
        let chunks =
            if count.bounds().1 < 4 * CHUNK as i64 { Dim::from(0i64) } else { count.quotient(&Dim::from(CHUNK)) };
        let of_runs = slots.clone() + 1i64 + chunks.clone();
        let runs = work.scratch(of_runs.clone() * 4i64);
        let shape = ParamValue::Dims(vec![count, slots.clone(), chunks.clone()]);
        let name = format!("scatter_runs_{key}");
        work.push(&name, vec![keys, places.clone(), runs.clone()], vec![shape], Grid::Invocations(of_runs))?;

        let name = op.kernel().unwrap_or_default();
        let kernel = instance(&kernels(), &name)?;
        let value = kernel.bindings.get(4).map_or(4, |binding| i64::from(binding.element.size));
        let partials = work.scratch(lines.clone() * chunks.clone() * columns.clone() * value);
        let quads = work.quads();
        let most = columns.bounds().1;
        let bits = bits(if quads { most / 4 } else { most });
        let join = |of_chunks: bool| {
            vec![
                ParamValue::Bool(of_chunks),
                ParamValue::Bool(self.in_place),
                ParamValue::Bool(quads),
                ParamValue::Dims(vec![lines.clone(), slots.clone(), columns.clone(), chunks.clone()]),
                ParamValue::Dims(work.x_strides.to_vec()),
                ParamValue::Dims(work.update_strides.to_vec()),
                of_bits(bits),
            ]
        };
        let passes = if chunks.is(0) { vec![false] } else { vec![true, false] };
        for (of_chunks, params) in passes.into_iter().map(|pass| (pass, join(pass))).collect::<Vec<_>>() {
            let x = if self.in_place { Slot::Empty } else { Slot::Input(0) };
            let bindings = [x, Slot::Input(2), places.clone(), runs.clone(), partials.clone()];
            let rows = lines.clone() * if of_chunks { chunks.clone() } else { slots.clone() };
            work.push(&name, bindings.into_iter().chain([result.clone()]).collect(), params, grid(rows, bits))?;
        }
        let [x, updates] = [0, 2].map(|input| upper(&request.inputs[input].ty.bytes()));
        // In place, rows without updates are not touched.
        let touched = if self.in_place { x.min(updates) } else { x };
        Ok(work.done(request.device, 2.0 * touched + updates + 8.0 * upper(&slots), sorting))
    }
}

/// Each update by itself, to what is there or a copy of it.
#[derive(Debug)]
struct Atomics<'a> {
    op: &'a Join,
    /// Whether the result takes over the memory of x.
    in_place: bool,
}

impl Candidate for Atomics<'_> {
    fn name(&self) -> &'static str {
        if self.in_place { "atomics in place" } else { "atomics" }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = self.op;
        let name = op.atomic().ok_or_else(|| {
            Ineligible::Other(format!("there are no atomics for {} of {}", op.update.name(), op.element))
        })?;
        if request.deterministic && op.element.is_float() {
            return Err(Ineligible::Other("the order of its sums varies from run to run".to_owned()));
        }
        let result = result(request, self.in_place)?;
        let x = &request.inputs[0];
        if !x.layout.has_contiguous_strides(&x.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let mut work = Work::new(op, request)?;
        let all = x.ty.elements();
        let copied = Grid::Workgroups(all.quotient_up(16 * SIZE as i64));
        if !self.in_place {
            work.push("scatter_copy", vec![Slot::Input(0), Slot::Output(0)], Vec::new(), copied)?;
        }
        let keys = work.keys(op, U32)?;
        let most = work.columns.bounds().1;
        let bits = bits(most);
        let rows = work.lines.clone() * work.count.clone();
        let shape = [&work.lines, &work.count, &work.columns, &work.slots].map(Clone::clone);
        let params =
            vec![ParamValue::Dims(shape.to_vec()), ParamValue::Dims(work.update_strides.to_vec()), of_bits(bits)];
        work.push(name, vec![Slot::Input(2), keys, result], params, grid(rows, bits))?;
        let updates = &request.inputs[2].ty;
        // Neighbours share sectors.
        let written =
            (2.0 * upper(&updates.bytes())).max(upper(&updates.elements()) * SECTOR / most.clamp(1, 8) as f64);
        let copied = if self.in_place { 0.0 } else { 2.0 * upper(&x.ty.bytes()) };
        let bytes = copied + upper(&updates.bytes()) + 2.0 * written;
        Ok(work.done(request.device, bytes, 0.0))
    }
}
