//! The kernels of attention: which one, cut how.

use trefoil_dsl::artefact::{Feature, Kernel};
use trefoil_dsl::device::DeviceKind;
use trefoil_kernels::attention::UNBOUNDED;
use trefoil_kernels::attention::grouped::kernels as grouped_kernels;
use trefoil_kernels::attention::join::{AT_ONCE, attention_join};
use trefoil_kernels::attention::matrices::{
    KEYS as MATRIX_KEYS, LARGEST_SUBGROUP, ROWS as MATRIX_ROWS, kernels as matrix_kernels,
};
use trefoil_kernels::attention::plain::{SIZE, attention_plain, attention_plain_f64};
use trefoil_kernels::attention::row::{ELEMENTS, kernels as row_kernels};
use trefoil_kernels::attention::staged::{KEYS as STAGED_KEYS, ROWS as STAGED_ROWS, attention_staged};
use trefoil_kernels::attention::tiled::{KEYS, ROWS_AT_ONCE, attention_tiled};

use super::super::support::{LAUNCH, instance, kernel_time, not_on_processors, one_kernel, specialised, upper};
use super::{Attend, Queries, Scores};
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, Operand, ParamValue, Request, Slot, Step};
use crate::types::{ElementType, Layout};

/// Workgroups that keep a large GPU busy, two for each multiprocessor: more of them have fewer keys, and memory waits while they put together what they found.
const BUSY: i64 = 264;
/// Of the kernel of one row of `f32` on CUDA, which has fewer bytes on their way.
const BUSY_LONG: i64 = 528;
/// Of the kernel with most of a multiprocessor's workgroup memory.
const BUSY_STAGES: i64 = 132;
/// The fewest keys that are worth a workgroup of their own.
const LEAST_KEYS: i64 = 128;
/// What a large GPU does in a microsecond: bytes, and operations of the kernels.
const BYTES: f64 = 4.0e6;
const TILED_FLOPS: f64 = 30.0e6;
const NARROW_FLOPS: f64 = 12.0e6;
const ROW_FLOPS: f64 = 15.0e6;
const GROUPED_FLOPS: f64 = 14.0e6;
const STAGED_FLOPS: f64 = 40.0e6;
const MATRIX_FLOPS: f64 = 100.0e6;
const PLAIN_FLOPS: f64 = 0.3e6;
/// How much slower than other kernels one for matrix units is on a processor, which has none.
const WITHOUT_MATRICES: f64 = 100.0;

/// Every kernel's candidate.
pub(super) fn all(op: &Attend) -> Vec<Box<dyn Candidate>> {
    vec![
        Box::new(Kernels { op: *op, way: Way::Tiled }),
        Box::new(Kernels { op: *op, way: Way::Narrow }),
        Box::new(Kernels { op: *op, way: Way::Rows }),
        Box::new(Staged(*op)),
        Box::new(Matrices(*op)),
        Box::new(Plain(*op)),
    ]
}

/// The sizes of an attention.
pub(super) struct Sizes {
    pub(super) batch: Dim,
    pub(super) heads: Dim,
    pub(super) key_heads: Dim,
    pub(super) queries: Dim,
    pub(super) keys: Dim,
    pub(super) elements: Dim,
    pub(super) value_elements: Dim,
    /// Heads that share a head of keys.
    group: Dim,
}

impl Sizes {
    pub(super) fn new(op: &Attend, request: &Request<'_>) -> Self {
        let [batch, heads, queries, elements] = op.extents(&request.inputs[0].ty);
        let [_, key_heads, keys, _] = op.extents(&request.inputs[1].ty);
        let [.., value_elements] = op.extents(&request.inputs[2].ty);
        let group = if heads == key_heads { Dim::from(1i64) } else { heads.quotient(&key_heads) };
        Self { batch, heads, key_heads, queries, keys, elements, value_elements, group }
    }

    /// The most elements that a head of queries or of values may have.
    fn widest(&self) -> i64 {
        self.elements.bounds().1.max(self.value_elements.bounds().1)
    }

    /// Whether heads of queries and of values both have so many elements.
    fn fill(&self, elements: i64) -> bool {
        self.elements.is(elements) && self.value_elements.is(elements)
    }
}

impl Attend {
    /// An operand's strides of batch, head, position and element.
    pub(super) fn strides(&self, layout: &Layout) -> [Dim; 4] {
        self.axes().map(|axis| layout.strides[axis].clone())
    }

    /// The bias's strides of batch, head, query and key, 0 where it is broadcast or there is none.
    pub(super) fn bias_strides(&self, inputs: &[Operand]) -> [Dim; 4] {
        [0usize, 1, 2, 3].map(|axis| {
            let own = self.optional(inputs, 0).and_then(|bias| {
                let axis = axis.checked_sub(4 - bias.ty.rank())?;
                (!bias.ty.shape[axis].is(1)).then(|| bias.layout.strides[axis].clone())
            });
            own.unwrap_or_else(|| Dim::from(0i64))
        })
    }

    /// Demands that lengths and sinks are contiguous.
    pub(super) fn contiguous_vectors(&self, inputs: &[Operand]) -> Result<(), Ineligible> {
        let slots = self.slots();
        let strided = slots[1..].iter().filter_map(|slot| match slot {
            Slot::Input(at) if !inputs[*at].layout.has_contiguous_strides(&inputs[*at].ty.shape) => Some(*at),
            _ => None,
        });
        match strided.collect::<Vec<_>>() {
            strided if strided.is_empty() => Ok(()),
            strided => Err(Ineligible::NeedsContiguous(strided)),
        }
    }

    /// What all kernels are told at the end: the bias's strides, scale, cap, and who sees what.
    fn told(&self, inputs: &[Operand]) -> Vec<ParamValue> {
        let (offset, from_end) = match self.attention.queries {
            Queries::Last => (0, true),
            Queries::From(first) => (i64::from(first), false),
        };
        vec![
            ParamValue::Dims(self.bias_strides(inputs).to_vec()),
            ParamValue::F32(self.attention.scale),
            ParamValue::F32(self.attention.cap.unwrap_or(0.0)),
            ParamValue::Dim(Dim::from(offset)),
            ParamValue::Bool(from_end),
            ParamValue::Dims(self.window().map(Dim::from).to_vec()),
        ]
    }

    /// The constants of kernels of tiles: `PLAIN` if scores are neither capped nor biased, `WHOLE` if every query sees every key, but for those that a bias hides, in tiles that are `whole`.
    fn ways(&self, inputs: &[Operand], whole: bool) -> [(&'static str, i64); 2] {
        let plain = self.attention.cap.is_none() && self.optional(inputs, 0).is_none();
        let sees_all = self.window() == [i64::from(UNBOUNDED); 2] && self.optional(inputs, 1).is_none();
        [("PLAIN", i64::from(plain)), ("WHOLE", i64::from(whole && sees_all))]
    }

    /// What all kernels read.
    fn reads(&self) -> Vec<Slot> {
        (0..3).map(Slot::Input).chain(self.slots()).collect()
    }
}

/// Demands that heads of queries, keys and values begin at multiples of so many elements and lie together.
fn strided(op: &Attend, inputs: &[Operand], multiple: i64) -> Result<(), Ineligible> {
    let unfit = |operand: &Operand| {
        let [outer @ .., element] = op.strides(&operand.layout);
        !element.is(1) || outer.iter().chain([&operand.layout.offset]).any(|stride| !stride.divides_evenly(multiple))
    };
    match (0..3).filter(|position| unfit(&inputs[*position])).collect::<Vec<_>>() {
        strided if strided.is_empty() => Ok(()),
        strided => Err(Ineligible::NeedsContiguous(strided)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// 64 rows at a time.
    Tiled,
    /// 16 rows at a time.
    Narrow,
    /// A row, or 2, 4 or 8 that share keys.
    Rows,
}

/// The kernels that read several elements at a time.
#[derive(Debug)]
struct Kernels {
    op: Attend,
    way: Way,
}

impl Candidate for Kernels {
    fn name(&self) -> &'static str {
        match self.way {
            Way::Tiled => "attention in tiles of 64 rows",
            Way::Narrow => "attention in tiles of 16 rows",
            Way::Rows => "attention of few rows",
        }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, inputs) = (&self.op, request.inputs);
        not_on_processors(request)?;
        if op.scores != Scores::Nothing {
            return Err(Ineligible::Other("it gives no scores".to_owned()));
        }
        if inputs[0].ty.element == ElementType::F64 {
            return Err(Ineligible::Other("elements of f64".to_owned()));
        }
        let sizes = Sizes::new(op, request);
        // The kernel of rows reads 16 bytes of keys and values.
        let multiple = if self.way == Way::Rows { 16 / inputs[0].ty.element.bytes() as i64 } else { 4 };
        for (what, elements) in [("queries", &sizes.elements), ("values", &sizes.value_elements)] {
            if !elements.divides_evenly(multiple) {
                return Err(Ineligible::Other(format!("{what} of {elements} elements, not a multiple of {multiple}")));
            }
            // It takes keys without elements for no keys.
            if self.way == Way::Rows && elements.bounds().0 < 1 {
                return Err(Ineligible::Other(format!("{what} of {elements} elements, which may be none")));
            }
            if self.way == Way::Rows && elements.bounds().1 > WHOLE_HEAD {
                return Err(Ineligible::Other(format!("{what} of {elements} elements, more than {WHOLE_HEAD}")));
            }
        }
        strided(op, inputs, multiple)?;
        op.contiguous_vectors(inputs)?;
        let most = |dim: &Dim| dim.bounds().1.max(1);
        let rows = sizes.group.clone() * sizes.queries.clone();
        let element = inputs[0].ty.element.name();
        // Where atomics order other memory, the last workgroup of a row that is cut joins what all of them have found.
        let joining = self.way == Way::Rows && most(&rows) == 1 && request.device.features.has(Feature::Ordering);
        // Rows of a workgroup, columns of the values that it has, and what tells the instance.
        let (height, width, name, second) = match self.way {
            Way::Tiled | Way::Narrow => {
                let at_once = if self.way == Way::Tiled { 8 } else { 2 };
                let wide = if sizes.value_elements.bounds().1 <= 64 { 1 } else { 2 };
                (ROWS_AT_ONCE as i64 * at_once, 64 * wide, format!("attention_tiled_{element}_{at_once}"), wide)
            }
            Way::Rows => {
                let at_once = [1, 2, 4].into_iter().find(|at_once| most(&rows) <= *at_once).unwrap_or(8);
                let name = match at_once {
                    1 if joining => format!("attention_row_joining_{element}"),
                    1 => format!("attention_row_{element}"),
                    _ => format!("attention_grouped_{element}_{at_once}"),
                };
                (at_once, 128, name, if sizes.widest() <= 64 { 8 } else { 16 })
            }
        };
        let blocks = rows.quotient_up(height);
        let columns = sizes.value_elements.quotient_up(width);
        let groups = sizes.batch.clone() * sizes.key_heads.clone() * blocks.clone() * columns.clone();
        let is_long = self.way == Way::Rows
            && height == 1
            && request.device.kind == DeviceKind::Cuda
            && inputs[0].ty.element == ElementType::F32;
        let busy = if is_long { BUSY_LONG } else { BUSY };
        let cut = (busy / most(&groups)).min(most(&sizes.keys) / LEAST_KEYS).clamp(1, 128);
        let all_rows = sizes.batch.clone() * sizes.key_heads.clone() * rows;
        let slots = all_rows.clone() * cut;
        // One even if nobody counts.
        let counters = joining.then(|| if cut == 1 { 1 } else { most(&all_rows).unsigned_abs() });
        // A quad of a sum for each, and behind them two numbers for each; something even if nobody writes it.
        let bytes = slots.clone() * (sizes.value_elements.clone() + 2i64) * 4i64;
        let scratch = if cut == 1 { Dim::from(16i64) } else { bytes };
        let quads = |elements: &Dim| elements.quotient(&Dim::from(4i64));
        let out = op.strides(&Layout::contiguous(&request.outputs[0].shape))[..3].to_vec();
        let mut params = vec![ParamValue::Dims(vec![
            sizes.group.clone(),
            sizes.key_heads.clone(),
            sizes.queries.clone(),
            sizes.keys.clone(),
            quads(&sizes.elements),
            quads(&sizes.value_elements),
            slots,
        ])];
        params.extend(inputs[..3].iter().map(|operand| ParamValue::Dims(op.strides(&operand.layout)[..3].to_vec())));
        params.push(ParamValue::Dims(out.clone()));
        params.extend(op.told(inputs));
        params.push(ParamValue::Dim(Dim::from(cut)));
        let kernels = match self.way {
            Way::Rows if height == 1 => row_kernels(),
            Way::Rows => grouped_kernels(),
            Way::Tiled | Way::Narrow => attention_tiled::KERNELS.to_vec(),
        };
        let mut kernel = instance(&kernels, &format!("{name}_{second}"))?;
        if self.way == Way::Rows {
            let whole = ("WHOLE", i64::from(sizes.elements.is(ELEMENTS as i64 * second)));
            // On CUDA it is slower; what has several rows reads early by itself.
            let early = ("EARLY", i64::from(request.device.kind != DeviceKind::Cuda));
            let constants = if height == 1 { &[early, whole][..] } else { &[whole] };
            kernel = specialised(&kernel, constants)?;
        } else {
            let whole = sizes.keys.divides_evenly(KEYS as i64)
                && sizes.elements.divides_evenly(16)
                && sizes.value_elements.divides_evenly(width);
            kernel = specialised(&kernel, &op.ways(inputs, whole))?;
        }
        let mut bindings = op.reads();
        bindings.extend([Slot::Output(0), Slot::Scratch(0)]);
        bindings.extend(counters.map(Slot::Counters));
        let mut steps =
            vec![Step::Kernel(KernelStep { kernel, bindings, params, grid: Grid::Workgroups(groups.clone() * cut) })];
        if cut > 1 && !joining {
            let [.., sinks] = op.slots();
            let sharers = if cut > AT_ONCE as i64 { 8 } else { 1 };
            steps.push(Step::Kernel(KernelStep {
                kernel: instance(attention_join::KERNELS, &format!("attention_join_{element}_{sharers}"))?,
                bindings: vec![Slot::Scratch(0), sinks, Slot::Output(0)],
                params: vec![
                    ParamValue::Dims(vec![
                        sizes.group.clone(),
                        sizes.key_heads.clone(),
                        sizes.queries.clone(),
                        quads(&sizes.value_elements),
                        all_rows.clone(),
                    ]),
                    ParamValue::Dims(out),
                    ParamValue::Dim(Dim::from(cut)),
                ],
                grid: Grid::Invocations(all_rows * quads(&sizes.value_elements) * sharers),
            }));
        }
        let launches = steps.len() as f64;
        let used = (upper(&groups) * cut as f64 / busy as f64).min(1.0);
        let rate = match self.way {
            Way::Tiled => TILED_FLOPS,
            Way::Narrow => NARROW_FLOPS,
            Way::Rows if height == 1 => ROW_FLOPS,
            Way::Rows => GROUPED_FLOPS,
        };
        // Rows and columns that a workgroup computes but nobody has cost as much as others.
        let products = upper(&sizes.elements.quotient_up(16)) * 16.0 + upper(&columns) * width as f64;
        let flops = upper(&groups) * height as f64 * upper(&sizes.keys) * products * 2.0;
        let bytes = upper(&inputs[1].ty.bytes()) + upper(&inputs[2].ty.bytes());
        let time = (flops / rate / used.max(1e-3)).max(bytes * upper(&blocks) / BYTES);
        Ok(Implementation {
            steps,
            scratch: vec![scratch],
            cost: kernel_time(request.device, LAUNCH * launches + time),
        })
    }
}

/// How many elements a head has at most for kernels that hold it whole.
const WHOLE_HEAD: i64 = 128;

/// A kernel that holds whole heads, of which it reads pieces of 16 bytes: how many elements these are, rows of a workgroup, keys of a tile, workgroups that keep a large GPU busy, and operations that it does there in a microsecond.
struct Heads {
    piece: i64,
    rows: usize,
    keys: usize,
    busy: i64,
    rate: f64,
}

impl Heads {
    /// The sizes, if such a kernel can have them.
    fn sizes(&self, op: &Attend, request: &Request<'_>) -> Result<Sizes, Ineligible> {
        let piece = self.piece;
        if op.scores != Scores::Nothing {
            return Err(Ineligible::Other("it gives no scores".to_owned()));
        }
        let sizes = Sizes::new(op, request);
        for (what, elements) in [("queries", &sizes.elements), ("values", &sizes.value_elements)] {
            if !elements.divides_evenly(piece) || elements.bounds().1 > WHOLE_HEAD {
                return Err(Ineligible::Other(format!(
                    "{what} of {elements} elements, no multiple of {piece} up to {WHOLE_HEAD}"
                )));
            }
        }
        strided(op, request.inputs, piece)?;
        op.contiguous_vectors(request.inputs)?;
        Ok(sizes)
    }

    /// An instance whose heads have room for so many elements.
    fn implementation(
        &self,
        op: &Attend,
        request: &Request<'_>,
        sizes: &Sizes,
        (kernel, room): (&Kernel, i64),
    ) -> Result<Implementation, Ineligible> {
        let inputs = request.inputs;
        let blocks = (sizes.group.clone() * sizes.queries.clone()).quotient_up(self.rows as i64);
        let groups = sizes.batch.clone() * sizes.key_heads.clone() * blocks;
        let pieces = |elements: &Dim| elements.quotient(&Dim::from(self.piece));
        let mut params = vec![ParamValue::Dims(vec![
            sizes.group.clone(),
            sizes.key_heads.clone(),
            sizes.queries.clone(),
            sizes.keys.clone(),
            pieces(&sizes.elements),
            pieces(&sizes.value_elements),
        ])];
        let out = Layout::contiguous(&request.outputs[0].shape);
        let layouts = inputs[..3].iter().map(|operand| &operand.layout).chain([&out]);
        params.extend(layouts.map(|layout| ParamValue::Dims(op.strides(layout)[..3].to_vec())));
        params.extend(op.told(inputs));
        let whole = sizes.keys.divides_evenly(self.keys as i64) && sizes.fill(room);
        let used = (upper(&groups) / self.busy as f64).clamp(1e-3, 1.0);
        let flops = upper(&groups) * self.rows as f64 * upper(&sizes.keys) * room as f64 * 4.0;
        Ok(one_kernel(
            specialised(kernel, &op.ways(inputs, whole))?,
            op.reads().into_iter().chain([Slot::Output(0)]).collect(),
            params,
            Grid::Workgroups(groups),
            kernel_time(request.device, LAUNCH + flops / self.rate / used),
        ))
    }
}

/// The kernel of `f32` with stages in workgroup memory.
#[derive(Debug)]
struct Staged(Attend);

impl Candidate for Staged {
    fn name(&self) -> &'static str {
        "attention in stages"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, inputs) = (&self.0, request.inputs);
        not_on_processors(request)?;
        if inputs[0].ty.element != ElementType::F32 {
            return Err(Ineligible::Other(format!("elements of {}, not f32", inputs[0].ty.element)));
        }
        let heads = Heads { piece: 4, rows: STAGED_ROWS, keys: STAGED_KEYS, busy: BUSY_STAGES, rate: STAGED_FLOPS };
        let sizes = heads.sizes(op, request)?;
        let wide = if sizes.widest() <= 64 { 1 } else { 2 };
        let kernel = instance(attention_staged::KERNELS, &format!("attention_staged_{wide}"))?;
        heads.implementation(op, request, &sizes, (&kernel, 64 * wide))
    }
}

/// The kernels of halves for matrix units.
#[derive(Debug)]
struct Matrices(Attend);

impl Candidate for Matrices {
    fn name(&self) -> &'static str {
        "attention on matrix units"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, inputs) = (&self.0, request.inputs);
        let element = inputs[0].ty.element;
        if ![ElementType::F16, ElementType::BF16].contains(&element) {
            return Err(Ineligible::Other(format!("elements of {element}, not f16 or bf16")));
        }
        if request.device.limits.max_subgroup > LARGEST_SUBGROUP {
            let largest = request.device.limits.max_subgroup;
            return Err(Ineligible::Other(format!("subgroups of up to {largest}, more than {LARGEST_SUBGROUP}")));
        }
        let slower = if request.device.kind == DeviceKind::Cpu { WITHOUT_MATRICES } else { 1.0 };
        let rate = MATRIX_FLOPS / slower;
        let heads = Heads { piece: 8, rows: MATRIX_ROWS, keys: MATRIX_KEYS, busy: BUSY, rate };
        let sizes = heads.sizes(op, request)?;
        let parts = if sizes.widest() <= 64 { 4 } else { 8 };
        let kernel = instance(&matrix_kernels(), &format!("attention_matrices_{element}_{parts}"))?;
        heads.implementation(op, request, &sizes, (&kernel, 16 * parts))
    }
}

/// One row a workgroup.
#[derive(Debug)]
struct Plain(Attend);

impl Candidate for Plain {
    fn name(&self) -> &'static str {
        "attention of any strides"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, inputs) = (&self.0, request.inputs);
        op.contiguous_vectors(inputs)?;
        let Sizes { batch, heads, key_heads, queries, keys, elements, value_elements, group } = Sizes::new(op, request);
        let tells = op.scores != Scores::Nothing;
        let dims = |values: &[&Dim]| ParamValue::Dims(values.iter().map(|value| (*value).clone()).collect());
        let mut params = vec![dims(&[&group, &key_heads, &queries, &keys, &elements, &value_elements])];
        let out = Layout::contiguous(&request.outputs[0].shape);
        let layouts = inputs[..3].iter().map(|operand| &operand.layout).chain([&out]);
        params.extend(layouts.map(|layout| ParamValue::Dims(op.strides(layout).to_vec())));
        params.extend(op.told(inputs));
        params.push(ParamValue::Enum(op.scores as u32));
        let told = if tells { Slot::Output(1) } else { Slot::Scratch(0) };
        // Scores are told even where values have no elements.
        let columns = value_elements.quotient_up(SIZE as i64).maximum(&Dim::from(1i64));
        let flops = upper(&request.outputs[0].elements()) * upper(&keys) * 4.0;
        let element = inputs[0].ty.element;
        let kernels = if element == ElementType::F64 { attention_plain_f64::KERNELS } else { attention_plain::KERNELS };
        let kernel = instance(kernels, &format!("attention_plain_{element}"))?;
        let step = KernelStep {
            kernel,
            bindings: op.reads().into_iter().chain([Slot::Output(0), told]).collect(),
            params,
            grid: Grid::Workgroups(columns * queries * heads * batch),
        };
        Ok(Implementation {
            steps: vec![Step::Kernel(step)],
            scratch: if tells { Vec::new() } else { vec![Dim::from(16i64)] },
            cost: kernel_time(request.device, LAUNCH + flops / PLAIN_FLOPS),
        })
    }
}
