//! `matmul(a, b, bias?, activation)`: activation(a b + bias), with batch broadcasting and operands in any strides.

#[cfg(feature = "cpu")]
mod host;

use trefoil_kernels::activation::Activation;
use trefoil_kernels::matmul::narrow::{self, matmul_narrow, matmul_sum_parts};
use trefoil_kernels::matmul::strided::matmul_strided;
use trefoil_kernels::matmul::tiled::matmul_tiled;

use super::support::{expect_element, expect_inputs, expect_shape, instance, kernel_time, upper};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, Operand, ParamValue,
    Request, Slot, Step,
};
use crate::types::{ElementType, TensorType, broadcast};

/// activation(a b + bias): a is `[.., M, K]`, b is `[.., K, N]`, bias is `[N]`; the leading axes broadcast.
#[derive(Clone, Copy, Debug)]
pub struct MatMul {
    /// Whether there is a bias, as third input.
    pub bias: bool,
    /// Applied to each element last.
    pub activation: Activation,
}

impl Graph {
    /// The product of two `f32` tensors over the last axis of `a` and the last but one of `b`; leading axes broadcast. Transposed operands are
    /// read in place: `let bt = g.transpose(b, &[1, 0])?; g.matmul(a, bt)?`.
    ///
    /// # Errors
    /// An operand is not `f32`, has fewer than two axes, or the extents do not fit.
    pub fn matmul(&mut self, a: Tensor, b: Tensor) -> Result<Tensor, GraphError> {
        self.product(a, b, None, Activation::Identity)
    }

    /// `activation(x weight^T + bias)` with a weight of `[N, K]`, as models store it.
    ///
    /// # Errors
    /// As [`Graph::matmul`]; or the bias is not `[N]`.
    pub fn linear(
        &mut self,
        x: Tensor,
        weight: Tensor,
        bias: Option<Tensor>,
        activation: Activation,
    ) -> Result<Tensor, GraphError> {
        let weight = self.transpose(weight, &[1, 0])?;
        self.product(x, weight, bias, activation)
    }

    fn product(
        &mut self,
        a: Tensor,
        b: Tensor,
        bias: Option<Tensor>,
        activation: Activation,
    ) -> Result<Tensor, GraphError> {
        let (a, b) = (self.repeated(a, b)?, self.repeated(b, a)?);
        let inputs: Vec<_> = [Some(a), Some(b), bias].into_iter().flatten().collect();
        self.add_one(MatMul { bias: bias.is_some(), activation }, &inputs)
    }

    /// `operand` with its leading axes as those of its product with `other`, if some of them are repeated and some are not: kernels step through batches by one stride.
    fn repeated(&mut self, operand: Tensor, other: Tensor) -> Result<Tensor, GraphError> {
        let leading = |ty: &TensorType| ty.shape[..ty.rank().saturating_sub(2)].to_vec();
        let (ty, other) = (self.type_of(operand)?.clone(), leading(self.type_of(other)?));
        let own = leading(&ty);
        // What does not broadcast is for the op to refuse.
        let Ok(mut shape) = broadcast([own.as_slice(), &other]) else { return Ok(operand) };
        let added = shape.len() - own.len();
        let is_own = |axis: usize| axis >= added && own[axis - added] == shape[axis];
        let (mut repeats, mut steps) = (false, false);
        for axis in (0..shape.len()).filter(|axis| !shape[*axis].is(1)) {
            if is_own(axis) { steps = true } else { repeats = true }
        }
        if !(repeats && steps) {
            return Ok(operand);
        }
        shape.extend_from_slice(&ty.shape[ty.rank() - 2..]);
        let spread = self.expand(operand, shape)?;
        self.contiguous(spread)
    }
}

impl Op for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("bias", self.bias.to_string()), ("activation", format!("{:?}", self.activation))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = 2 + usize::from(self.bias);
        expect_inputs(inputs, count..=count)?;
        let (a, b) = (&inputs[0], &inputs[1]);
        for (name, ty) in [("a", a), ("b", b)] {
            expect_element(name, ty, ElementType::F32)?;
            if ty.rank() < 2 {
                let expected = "a matrix, or a batch of them".to_owned();
                return Err(OpError::Shape { input: name, given: ty.to_string(), expected });
            }
        }
        let (a_batch, a_matrix) = a.shape.split_at(a.rank() - 2);
        let (b_batch, b_matrix) = b.shape.split_at(b.rank() - 2);
        if a_matrix[1] != b_matrix[0] {
            let expected = format!("{} rows, as many as {a} has columns", a_matrix[1]);
            return Err(OpError::Shape { input: "b", given: b.to_string(), expected });
        }
        let mut shape = broadcast([a_batch, b_batch]).map_err(|(_, ours, theirs)| OpError::Shape {
            input: "b",
            given: b.to_string(),
            expected: format!("leading axes that broadcast with those of {a}; {ours} and {theirs} do not"),
        })?;
        shape.extend([a_matrix[0].clone(), b_matrix[1].clone()]);
        if self.bias {
            expect_element("bias", &inputs[2], ElementType::F32)?;
            expect_shape("bias", &inputs[2], std::slice::from_ref(&b_matrix[1]))?;
        }
        Ok(vec![TensorType { element: ElementType::F32, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (a, b, shape) = (&inputs[0], &inputs[1], &outputs[0]);
        let rank = shape.len();
        let (m, n) = (shape[rank - 2], shape[rank - 1]);
        let k = a.shape[a.shape.len() - 1];
        let batches: usize = shape[..rank - 2].iter().product();
        let mut values = Vec::with_capacity(batches * m * n);
        for batch in 0..batches {
            let a_first = matrix_of(&a.shape, &shape[..rank - 2], batch) * m * k;
            let b_first = matrix_of(&b.shape, &shape[..rank - 2], batch) * k * n;
            for row in 0..m {
                for column in 0..n {
                    let mut sum: f64 =
                        (0..k).map(|i| a.values[a_first + row * k + i] * b.values[b_first + i * n + column]).sum();
                    if self.bias {
                        sum += inputs[2].values[column];
                    }
                    values.push(activated(sum, self.activation));
                }
            }
        }
        vec![HostTensor { shape: shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim {
        let k = inputs[0].shape.last().cloned().unwrap_or_else(|| Dim::from(1i64));
        outputs[0].elements() * k * 2
    }

    fn kind(&self) -> OpKind<'_> {
        let tiled = [Tile::Large, Tile::Middle, Tile::Narrow].map(|tile| Tiled { op: *self, tile });
        let mut candidates: Vec<Box<dyn Candidate>> = Vec::new();
        candidates.extend(tiled.into_iter().map(|tiled| Box::new(tiled) as Box<dyn Candidate>));
        candidates.push(Box::new(Strided(*self)));
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::Panels(*self)));
        OpKind::Kernels(candidates)
    }
}

/// Which matrix of an operand belongs to a batch of the result, by broadcasting.
fn matrix_of(operand: &[usize], batch_shape: &[usize], batch: usize) -> usize {
    let own = &operand[..operand.len() - 2];
    let (mut rest, mut index, mut stride) = (batch, 0, 1);
    for (position, extent) in batch_shape.iter().enumerate().rev() {
        let at = rest % extent;
        rest /= extent;
        let from_last = batch_shape.len() - position;
        if from_last <= own.len() {
            let mine = own[own.len() - from_last];
            if mine != 1 {
                index += at * stride;
            }
            stride *= mine;
        }
    }
    index
}

/// The activation in `f64`.
fn activated(x: f64, activation: Activation) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => 0.5 * x * (1.0 + super::real::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}

/// A product as kernels see it: one batch axis, and strides.
struct Product {
    batch: Dim,
    m: Dim,
    n: Dim,
    k: Dim,
    /// Row and column stride.
    a: [Dim; 2],
    b: [Dim; 2],
    a_batch: Dim,
    b_batch: Dim,
}

impl Product {
    /// Merges the leading axes: into the rows of A where B has none, else into one batch axis.
    fn new(request: &Request<'_>) -> Result<Self, Ineligible> {
        let (a, b, c) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
        let one = || Dim::from(1i64);
        let rank = c.rank();
        let leading = &c.shape[..rank - 2];
        let a_leading = leading_strides(a, leading);
        let b_leading = leading_strides(b, leading);
        let a_last = a.layout.strides.len() - 2;
        let b_last = b.layout.strides.len() - 2;
        let mut product = Self {
            batch: one(),
            m: c.shape[rank - 2].clone(),
            n: c.shape[rank - 1].clone(),
            k: a.ty.shape[a_last + 1].clone(),
            a: [a.layout.strides[a_last].clone(), a.layout.strides[a_last + 1].clone()],
            b: [b.layout.strides[b_last].clone(), b.layout.strides[b_last + 1].clone()],
            a_batch: Dim::from(0i64),
            b_batch: Dim::from(0i64),
        };
        if b_leading.iter().zip(leading).all(|(stride, extent)| stride.is(0) || extent.is(1)) {
            let extents: Vec<_> = leading.iter().chain([&product.m]).cloned().collect();
            let strides: Vec<_> = a_leading.iter().chain([&product.a[0]]).cloned().collect();
            if let Some((extent, stride)) = merge(&extents, &strides) {
                product.m = extent;
                product.a[0] = stride;
                return Ok(product);
            }
        }
        let (Some((batch, a_batch)), Some((_, b_batch))) = (merge(leading, &a_leading), merge(leading, &b_leading))
        else {
            return Err(Ineligible::NeedsContiguous(vec![0, 1]));
        };
        Ok(Self { batch, a_batch, b_batch, ..product })
    }
}

/// An operand's strides along the result's leading axes, 0 where it is broadcast.
fn leading_strides(operand: &Operand, leading: &[Dim]) -> Vec<Dim> {
    let own = operand.layout.strides.len() - 2;
    (0..leading.len())
        .map(|axis| {
            let from_last = leading.len() - axis;
            match own.checked_sub(from_last) {
                Some(axis) if !operand.ty.shape[axis].is(1) => operand.layout.strides[axis].clone(),
                _ => Dim::from(0i64),
            }
        })
        .collect()
}

/// One axis in place of several, if strides allow it.
fn merge(extents: &[Dim], strides: &[Dim]) -> Option<(Dim, Dim)> {
    let mut merged: Option<(Dim, Dim)> = None;
    for (extent, stride) in extents.iter().zip(strides) {
        if extent.is(1) {
            continue;
        }
        merged = match merged {
            None => Some((extent.clone(), stride.clone())),
            Some((outer, outer_stride)) if outer_stride == stride.clone() * extent.clone() => {
                Some((outer * extent.clone(), stride.clone()))
            }
            Some(_) => return None,
        };
    }
    Some(merged.unwrap_or_else(|| (Dim::from(1i64), Dim::from(0i64))))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tile {
    Large,
    Middle,
    Narrow,
}

impl Tile {
    /// Rows and columns.
    const fn extents(self) -> [i64; 2] {
        match self {
            Self::Large => [128, 128],
            Self::Middle => [64, 64],
            Self::Narrow => [narrow::ROWS as i64, narrow::COLUMNS as i64],
        }
    }

    /// Microseconds that a busy multiprocessor takes for one tile and one step along K, measured on a large GPU.
    const fn time(self) -> f64 {
        match self {
            Self::Large => 0.07,
            Self::Middle => 0.025,
            Self::Narrow => 0.006,
        }
    }
}

/// Demands that the bias, if there is one, is contiguous.
fn contiguous_bias(request: &Request<'_>) -> Result<(), Ineligible> {
    match request.inputs.get(2) {
        Some(bias) if !bias.layout.is_contiguous(&bias.ty.shape) => Err(Ineligible::NeedsContiguous(vec![2])),
        _ => Ok(()),
    }
}

/// The tiled kernels, four elements at a time.
#[derive(Debug)]
struct Tiled {
    op: MatMul,
    tile: Tile,
}

/// Workgroups that keep a large GPU busy; with fewer, smaller tiles are better.
const BUSY_WORKGROUPS: i64 = 128;

impl Candidate for Tiled {
    fn name(&self) -> &'static str {
        match self.tile {
            Tile::Large => "matmul in tiles of 128",
            Tile::Middle => "matmul in tiles of 64",
            Tile::Narrow => "matmul in tiles of 16 by 32, K shared",
        }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let product = Product::new(request)?;
        let by_four = |dim: &Dim| dim.divides_evenly(4);
        let offsets = request.inputs.iter().map(|operand| &operand.layout.offset);
        let mut all = offsets.chain([&product.k, &product.n, &product.a_batch, &product.b_batch]);
        if !all.all(by_four) {
            return Err(Ineligible::Other("extents or strides that are not multiples of 4".to_owned()));
        }
        if !product.a[1].is(1) || !by_four(&product.a[0]) {
            return Err(Ineligible::Other("K is not contiguous in a".to_owned()));
        }
        let rows_are_n = product.b[0].is(1) && by_four(&product.b[1]);
        if !rows_are_n && (!product.b[1].is(1) || !by_four(&product.b[0])) {
            return Err(Ineligible::Other("neither K nor N is contiguous in b".to_owned()));
        }
        contiguous_bias(request)?;
        let [rows, columns] = self.tile.extents();
        let kernel = match self.tile {
            Tile::Large | Tile::Middle => instance(matmul_tiled::KERNELS, &format!("matmul_tiled_{rows}_{rows_are_n}")),
            Tile::Narrow => instance(matmul_narrow::KERNELS, &format!("matmul_narrow_{rows_are_n}")),
        }?;
        let tiles = product.m.quotient_up(rows) * product.n.quotient_up(columns) * product.batch.clone();
        let is_narrow = self.tile == Tile::Narrow;
        let parts = if is_narrow { parts_of(&product, &tiles) } else { 1 };
        let b_stride = if rows_are_n { product.b[1].clone() } else { product.b[0].clone() };
        let bias = if self.op.bias { Slot::Input(2) } else { Slot::Empty };
        let whole = parts == 1;
        let mut params: Vec<_> =
            [&product.m, &product.n, &product.k, &product.a[0], &b_stride, &product.a_batch, &product.b_batch]
                .map(|dim| ParamValue::Dim(dim.clone()))
                .to_vec();
        if is_narrow {
            params.push(ParamValue::Dim(Dim::from(parts)));
        }
        params.push(ParamValue::Enum(if whole { self.op.activation } else { Activation::Identity } as u32));
        let product_step = KernelStep {
            kernel,
            bindings: vec![
                Slot::Input(0),
                Slot::Input(1),
                if whole { bias.clone() } else { Slot::Empty },
                if whole { Slot::Output(0) } else { Slot::Scratch(0) },
            ],
            params,
            grid: Grid::Workgroups(tiles.clone() * parts),
        };
        let mut steps = vec![Step::Kernel(product_step)];
        let mut scratch = Vec::new();
        let elements = request.outputs[0].elements();
        if !whole {
            scratch.push(elements.clone() * parts * 4);
            steps.push(Step::Kernel(KernelStep {
                kernel: instance(matmul_sum_parts::KERNELS, "matmul_sum_parts")?,
                bindings: vec![Slot::Scratch(0), bias, Slot::Output(0)],
                params: vec![
                    ParamValue::Dim(product.m.clone() * product.n.clone()),
                    ParamValue::Dim(product.n.clone()),
                    ParamValue::Dim(Dim::from(parts)),
                    ParamValue::Enum(self.op.activation as u32),
                ],
                grid: Grid::Invocations(elements.quotient_up(4)),
            }));
        }
        // What counts is how many rounds of workgroups there are, and how long one takes.
        let rounds = (upper(&tiles) * upper(&Dim::from(parts)) / BUSY_WORKGROUPS as f64).max(1.0);
        let depth = upper(&product.k) / upper(&Dim::from(parts));
        let second = if whole { 0.0 } else { 3.0 };
        let cost = kernel_time(request.device, 3.0 + second + rounds * depth * self.tile.time());
        Ok(Implementation { steps, scratch, cost })
    }
}

/// In how many parts K is summed so that there are workgroups enough; a part is long enough to pay for the second dispatch.
fn parts_of(product: &Product, tiles: &Dim) -> i64 {
    let wanted = 2 * BUSY_WORKGROUPS / tiles.bounds().1.max(1);
    wanted.min(product.k.bounds().1 / 512).clamp(1, 16)
}

/// Any strides and extents.
#[derive(Debug)]
struct Strided(MatMul);

impl Candidate for Strided {
    fn name(&self) -> &'static str {
        "matmul of any strides"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        let tiles = product.m.quotient_up(16) * product.n.quotient_up(16) * product.batch.clone();
        let cost = kernel_time(request.device, 2.0 + upper(&tiles) * upper(&product.k) * 0.002);
        let step = KernelStep {
            kernel: instance(matmul_strided::KERNELS, "matmul_strided")?,
            bindings: vec![
                Slot::Input(0),
                Slot::Input(1),
                if self.0.bias { Slot::Input(2) } else { Slot::Empty },
                Slot::Output(0),
            ],
            params: vec![
                ParamValue::Dim(product.m),
                ParamValue::Dim(product.n),
                ParamValue::Dim(product.k),
                ParamValue::Dims(product.a.to_vec()),
                ParamValue::Dims(product.b.to_vec()),
                ParamValue::Dim(product.a_batch),
                ParamValue::Dim(product.b_batch),
                ParamValue::Enum(self.0.activation as u32),
            ],
            grid: Grid::Workgroups(tiles),
        };
        Ok(Implementation { steps: vec![Step::Kernel(step)], scratch: Vec::new(), cost })
    }
}
