//! The kernels of products: which one, cut how.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::DeviceKind;
use trefoil_kernels::activation::Activation;
use trefoil_kernels::matmul::{kernels, narrow, strided, tiled};

use super::MatMul;
use super::matrices;
use super::product::Product;
use super::rows::Rows;
use super::types::Types;
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, ParamValue, Request, Slot, Step};
use crate::ops::support::{LAUNCH, instance, kernel_time, not_on_processors, one_kernel, specialised, upper};

/// Every kernel's candidate.
pub(super) fn all(op: MatMul) -> Vec<Box<dyn Candidate>> {
    let mut all: Vec<Box<dyn Candidate>> = Vec::new();
    all.extend(matrices::Tile::ALL.map(|tile| Box::new(matrices::Matrices { op, tile }) as Box<dyn Candidate>));
    all.extend(Tile::ALL.map(|tile| Box::new(Tiled { op, tile }) as Box<dyn Candidate>));
    all.push(Box::new(Narrow(op)));
    all.extend([false, true].map(|exchanged| Box::new(Rows { op, exchanged }) as Box<dyn Candidate>));
    all.push(Box::new(Direct(op)));
    all.push(Box::new(Strided(op)));
    all
}

/// Workgroups that keep a large GPU busy; with fewer, smaller tiles are better.
const BUSY_WORKGROUPS: i64 = 128;
/// The shortest part of K that is worth a workgroup of its own.
const LEAST_PART: i64 = 256;
/// The most parts.
const MOST_PARTS: i64 = 32;
/// What a large GPU's cache moves in a microsecond.
const CACHE_BYTES: f64 = 4.0e6;

/// The types of a product that a graph has.
pub(super) fn types(op: &MatMul, request: &Request<'_>) -> Result<Types, Ineligible> {
    let [a, b, ..] = request.inputs else { return Err(Ineligible::Other("fewer than two operands".to_owned())) };
    Types::new(&a.ty, &b.ty, op.out).map_err(|error| Ineligible::Other(error.to_string()))
}

/// The kernel of a family for these types.
fn kernel_of(types: Types, family: &str) -> Result<Arc<Kernel>, Ineligible> {
    instance(&kernels(), &types.kernel(family))
}

/// Demands that the bias, if there is one, is contiguous.
pub(super) fn contiguous_bias(request: &Request<'_>) -> Result<(), Ineligible> {
    match request.inputs.get(2) {
        Some(bias) if !bias.layout.has_contiguous_strides(&bias.ty.shape) => Err(Ineligible::NeedsContiguous(vec![2])),
        _ => Ok(()),
    }
}

/// Demands that extents and strides, and where operands begin, are multiples of so many elements.
pub(super) fn multiples<'a>(
    request: &'a Request<'_>,
    sizes: impl IntoIterator<Item = &'a Dim>,
    of: i64,
) -> Result<(), Ineligible> {
    let offsets = request.inputs.iter().map(|operand| &operand.layout.offset);
    match offsets.chain(sizes).find(|size| !size.divides_evenly(of)) {
        Some(size) => Err(Ineligible::Other(format!("an extent, stride or start of {size}, not a multiple of {of}"))),
        None => Ok(()),
    }
}

/// The bias's slot.
pub(super) fn bias_of(op: &MatMul) -> Slot {
    if op.bias { Slot::Input(2) } else { Slot::Empty }
}

/// Adds up `parts` of every batch, which lie in scratch memory, to the result.
fn sum_parts(op: &MatMul, request: &Request<'_>, product: &Product, parts: i64) -> Result<(Step, Dim), Ineligible> {
    let elements = request.outputs[0].elements();
    let name = format!("matmul_sum_parts_{}", op.out.name());
    let step = Step::Kernel(KernelStep {
        kernel: instance(narrow::matmul_sum_parts::KERNELS, &name)?,
        bindings: vec![Slot::Scratch(0), bias_of(op), Slot::Output(0)],
        params: vec![
            ParamValue::Dim(product.m.clone() * product.n.clone()),
            ParamValue::Dim(product.n.clone()),
            ParamValue::Dim(Dim::from(parts)),
            ParamValue::Enum(op.activation as u32),
        ],
        grid: Grid::Invocations(elements.quotient_up(4)),
    });
    Ok((step, elements * parts * 4))
}

/// In how many parts K is summed, where so many workgroups have places at once.
pub(super) fn parts_for(places: i64, tiles: &Dim, k: &Dim) -> i64 {
    (places / tiles.bounds().1.max(1)).min(k.bounds().1 / LEAST_PART).clamp(1, MOST_PARTS)
}

/// What a kernel binds as bias and as result, and its activation: of several parts each is a sum alone, and [`sum_parts`] does the rest.
pub(super) fn ends(op: &MatMul, parts: i64) -> ([Slot; 2], ParamValue) {
    let (slots, activation) = match parts {
        1 => ([bias_of(op), Slot::Output(0)], op.activation),
        _ => ([Slot::Empty, Slot::Scratch(0)], Activation::Identity),
    };
    (slots, ParamValue::Enum(activation as u32))
}

/// A product by a kernel that takes so many microseconds, and the sum of its parts if there are several.
///
/// # Errors
/// There is no kernel that adds such parts.
pub(super) fn summed(
    op: &MatMul,
    request: &Request<'_>,
    product: &Product,
    parts: i64,
    kernel: KernelStep,
    mut cost: f64,
) -> Result<Implementation, Ineligible> {
    let (mut steps, mut scratch) = (vec![Step::Kernel(kernel)], Vec::new());
    if parts > 1 {
        let (step, bytes) = sum_parts(op, request, product, parts)?;
        steps.push(step);
        cost += LAUNCH + 2.0 * upper(&bytes) / CACHE_BYTES;
        scratch.push(bytes);
    }
    Ok(Implementation { steps, scratch, cost: kernel_time(request.device, cost) })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tile {
    Large,
    Middle,
    Any,
}

impl Tile {
    const ALL: [Self; 3] = [Self::Large, Self::Middle, Self::Any];

    /// Rows and columns.
    const fn edge(self) -> i64 {
        match self {
            Self::Large => 128,
            Self::Middle | Self::Any => 64,
        }
    }

    /// Microseconds that a busy multiprocessor takes for one tile and one step along K, measured on a large GPU.
    const fn time(self) -> f64 {
        match self {
            Self::Large => 0.07,
            Self::Middle => 0.025,
            Self::Any => 0.035,
        }
    }

    /// How far it goes along K in a step, in which every invocation moves as many groups of four.
    const fn depth(self) -> i64 {
        (4 * tiled::EACH * tiled::SIZE) as i64 / self.edge()
    }

    /// Workgroups that a large GPU has at once.
    const fn places(self) -> i64 {
        match self {
            Self::Large => 264,
            Self::Middle | Self::Any => 528,
        }
    }

    /// What the names of its kernels begin with.
    const fn family(self) -> &'static str {
        match self {
            Self::Large => "matmul_tiled_128",
            Self::Middle => "matmul_tiled_64",
            Self::Any => "matmul_tiled_any",
        }
    }
}

/// Microseconds for a tile's first pieces and for its result, beside its steps.
const TILE_ENDS: f64 = 1.5;

/// The tiled kernels.
#[derive(Debug)]
struct Tiled {
    op: MatMul,
    tile: Tile,
}

/// Whether an operand's lines go along K, and how far they are apart: its strides along K and across it, and its extents there.
fn lines(along: &Dim, across: &Dim, k: &Dim, other: &Dim) -> Option<(bool, Dim)> {
    if along.is(1) || k.is(1) {
        Some((true, across.clone()))
    } else if across.is(1) || other.is(1) {
        Some((false, along.clone()))
    } else {
        None
    }
}

/// The lines of both operands: whether they go along K, and how far they are apart.
///
/// # Errors
/// Those of one do neither follow on each other along K nor across it.
pub(super) fn lines_of(product: &Product) -> Result<[(bool, Dim); 2], Ineligible> {
    let Product { m, n, k, a, b, .. } = product;
    let a_lines = lines(&a[1], &a[0], k, m).ok_or_else(|| Ineligible::NeedsContiguous(vec![0]))?;
    let b_lines = lines(&b[0], &b[1], k, n).ok_or_else(|| Ineligible::NeedsContiguous(vec![1]))?;
    Ok([a_lines, b_lines])
}

impl Candidate for Tiled {
    fn name(&self) -> &'static str {
        match self.tile {
            Tile::Large => "matmul in tiles of 128",
            Tile::Middle => "matmul in tiles of 64",
            Tile::Any => "matmul in tiles of 64 of any extents",
        }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        not_on_processors(request)?;
        let kernel = kernel_of(types(&self.op, request)?, self.tile.family())?;
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        let Product { batch, m, n, k, a_batch, b_batch, .. } = &product;
        let [(a_along, a_line), (b_along, b_line)] = lines_of(&product)?;
        if self.tile != Tile::Any {
            let a_length = if a_along { k } else { m };
            multiples(request, [a_length, k, n, a_batch, b_batch, &a_line, &b_line], 4)?;
        }
        let plain = self.op.activation == Activation::Identity;
        let early = request.device.kind != DeviceKind::Cuda;
        let constants = [("A_ALONG", a_along), ("B_ALONG", b_along), ("PLAIN", plain), ("EARLY", early)]
            .map(|(name, is)| (name, i64::from(is)));
        let kernel = specialised(&kernel, &constants)?;
        let edge = self.tile.edge();
        let tiles = m.quotient_up(edge) * n.quotient_up(edge) * batch.clone();
        // Sums of parts are singles, and are added up four at a time.
        let takes_parts = types(&self.op, request)?.are_single() && n.divides_evenly(4);
        let parts = if takes_parts { parts_for(self.tile.places(), &tiles, k) } else { 1 };
        let depth = self.tile.depth();
        let ([bias, result], activation) = ends(&self.op, parts);
        let step = KernelStep {
            kernel,
            bindings: vec![Slot::Input(0), Slot::Input(1), bias, result],
            params: vec![
                ParamValue::Dims(vec![m.clone(), n.clone(), k.clone()]),
                ParamValue::Dims(vec![a_batch.clone(), a_line, b_batch.clone(), b_line]),
                ParamValue::Dims(vec![Dim::from(parts), k.quotient_up(depth * parts) * depth]),
                activation,
            ],
            grid: Grid::Workgroups(tiles.clone() * parts),
        };
        // What counts is how many rounds of workgroups there are, and how long one takes.
        let rounds = (upper(&tiles) * parts as f64 / BUSY_WORKGROUPS as f64).max(1.0);
        let cost = LAUNCH + TILE_ENDS + rounds * upper(k) / parts as f64 * self.tile.time();
        summed(&self.op, request, &product, parts, step, cost)
    }
}

/// Few rows or columns of `f32`.
#[derive(Debug)]
struct Narrow(MatMul);

/// Microseconds for one tile and one step along K, and until the sums of its groups have met.
const NARROW_TIME: f64 = 0.006;
const NARROW_ENDS: f64 = 1.0;

impl Candidate for Narrow {
    fn name(&self) -> &'static str {
        "matmul in tiles of 16 by 32, K shared"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = &self.0;
        if !types(op, request)?.are_single() {
            return Err(Ineligible::Other("elements that are not f32".to_owned()));
        }
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        let Product { batch, m, n, k, a, b, a_batch, b_batch } = &product;
        if !a[1].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let rows_are_n = b[0].is(1);
        if !rows_are_n && !b[1].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![1]));
        }
        let b_line = if rows_are_n { &b[1] } else { &b[0] };
        multiples(request, [k, n, a_batch, b_batch, &a[0], b_line], 4)?;
        let tiles = m.quotient_up(narrow::ROWS as i64) * n.quotient_up(narrow::COLUMNS as i64) * batch.clone();
        let parts = parts_of(&product, &tiles);
        let mut params: Vec<_> =
            [m, n, k, &a[0], b_line, a_batch, b_batch].map(|dim| ParamValue::Dim(dim.clone())).to_vec();
        params.push(ParamValue::Dim(Dim::from(parts)));
        let ([bias, result], activation) = ends(op, parts);
        params.push(activation);
        let kernel = instance(narrow::matmul_narrow::KERNELS, &format!("matmul_narrow_{rows_are_n}"))?;
        let unbranched = request.device.kind != DeviceKind::Cuda;
        let mut steps = vec![Step::Kernel(KernelStep {
            kernel: specialised(&kernel, &[("UNBRANCHED", i64::from(unbranched))])?,
            bindings: vec![Slot::Input(0), Slot::Input(1), bias, result],
            params,
            grid: Grid::Workgroups(tiles.clone() * parts),
        })];
        let mut scratch = Vec::new();
        if parts > 1 {
            let (step, bytes) = sum_parts(op, request, &product, parts)?;
            steps.push(step);
            scratch.push(bytes);
        }
        let rounds = (upper(&tiles) * upper(&Dim::from(parts)) / BUSY_WORKGROUPS as f64).max(1.0);
        let depth = upper(k) / upper(&Dim::from(parts));
        let cost = LAUNCH * steps.len() as f64 + NARROW_ENDS + rounds * depth * NARROW_TIME;
        let cost = kernel_time(request.device, cost);
        Ok(Implementation { steps, scratch, cost })
    }
}

/// In how many parts K is summed so that there are workgroups enough; a part is long enough to pay for the second dispatch.
fn parts_of(product: &Product, tiles: &Dim) -> i64 {
    let wanted = 2 * BUSY_WORKGROUPS / tiles.bounds().1.max(1);
    wanted.min(product.k.bounds().1 / 512).clamp(1, 16)
}

/// An element an invocation, of `f32`.
#[derive(Debug)]
struct Direct(MatMul);

/// Microseconds from one element along K to the next, and pairs that are multiplied in one, which come from caches.
const DIRECT_STEP: f64 = 0.05;
const DIRECT_PAIRS: f64 = 1.0e6;

impl Candidate for Direct {
    fn name(&self) -> &'static str {
        "matmul element by element"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        not_on_processors(request)?;
        let kernel = kernel_of(types(&self.0, request)?, "matmul_direct")?;
        let product = Product::new(request)?;
        let (elements, k) = (request.outputs[0].elements(), upper(&product.k));
        let cost = LAUNCH + k * DIRECT_STEP + upper(&elements) * k / DIRECT_PAIRS;
        let cost = kernel_time(request.device, cost);
        of_any_strides(&self.0, request, product, kernel, Grid::Invocations(elements), cost)
    }
}

/// Any strides and extents.
#[derive(Debug)]
struct Strided(MatMul);

/// Microseconds for one element along K: of one tile, since neighbours wait for each other, and of each of many.
const STRIDED_STEP: f64 = 0.02;
const STRIDED_TIME: f64 = 0.002;

impl Candidate for Strided {
    fn name(&self) -> &'static str {
        "matmul of any strides"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let kernel = kernel_of(types(&self.0, request)?, "matmul_strided")?;
        let product = Product::new(request)?;
        let edge = strided::EDGE as i64;
        let tiles = product.m.quotient_up(edge) * product.n.quotient_up(edge) * product.batch.clone();
        let step = (upper(&tiles) * STRIDED_TIME).max(STRIDED_STEP);
        let cost = kernel_time(request.device, LAUNCH + upper(&product.k) * step);
        of_any_strides(&self.0, request, product, kernel, Grid::Workgroups(tiles), cost)
    }
}

/// A product by a kernel that takes the operands as they lie.
fn of_any_strides(
    op: &MatMul,
    request: &Request<'_>,
    product: Product,
    kernel: Arc<Kernel>,
    grid: Grid,
    cost: f64,
) -> Result<Implementation, Ineligible> {
    let Product { m, n, k, a: [a_row, a_column], b: [b_row, b_column], a_batch, b_batch, .. } = product;
    contiguous_bias(request)?;
    let params = vec![
        ParamValue::Dims(vec![m, n, k]),
        ParamValue::Dims(vec![a_batch, a_row, a_column]),
        ParamValue::Dims(vec![b_batch, b_row, b_column]),
        ParamValue::Enum(op.activation as u32),
    ];
    let bindings = vec![Slot::Input(0), Slot::Input(1), bias_of(op), Slot::Output(0)];
    Ok(one_kernel(kernel, bindings, params, grid, cost))
}
