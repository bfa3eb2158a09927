//! Norms by a root of squares.

use std::sync::Arc;

use trefoil_dsl::device::{DeviceKind, Properties};
use trefoil_kernels::norm::kept::{self, norm_kept};
use trefoil_kernels::norm::kernels;
use trefoil_kernels::norm::rows::{HELD_BY_WIDEST, LARGEST, WIDEST};
use trefoil_kernels::norm::widest::norm_widest;
use trefoil_kernels::team::SIZE;

use super::plan::{Held, InQuads, Longest, Manner, Rows};
use super::{expect_axes, expect_epsilon, rows_of};
use crate::dim::Dim;
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, Operand, ParamValue, Request, Slot,
};
use crate::ops::support::{
    expect_element, expect_inputs, expect_one_of, expect_shape, instance, kernel_time, one_kernel, transfer_time, upper,
};
use crate::types::{ElementType, Layout, TensorType, broadcast};

/// By what a row is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// The mean is taken off, and the rest divided by its deviation: (v - mean v) / √(mean (v - mean v)² + ε).
    Layer,
    /// By the root of the mean of squares: v / √(mean v² + ε).
    Rms,
    /// By the length, or by ε if that is larger: v / max(√Σ v², ε).
    Length,
}

/// A norm over some axes together. Which optional operands there are is said here; those that are there are the op's inputs, in the order x, residual, bias, gamma, beta.
///
/// What is normalised is v = x + residual + bias; the result is times gamma, plus beta. The residual is of x's shape; bias, gamma and beta are all of one shape, which broadcasts to x's.
#[derive(Clone, Debug, PartialEq)]
pub struct Norm {
    /// By what a row is divided.
    pub kind: NormKind,
    /// Over which axes, in ascending order.
    pub axes: Vec<usize>,
    /// What keeps the divisor from 0; of 0, a row of zeros is left as it is, and its factor is some large number.
    pub epsilon: f32,
    /// Whether a tensor of x's shape is added first.
    pub residual: bool,
    /// Whether a vector is added first.
    pub bias: bool,
    /// Whether the result is scaled.
    pub gamma: bool,
    /// Whether the result is shifted.
    pub beta: bool,
    /// Whether v is an output too, of x's type.
    pub wants_sum: bool,
    /// Whether for each row mean and factor are an output too: of the shape of the other axes, then 2; `f32`, of `f64` that. The mean is 0 where it is not taken off.
    pub wants_moments: bool,
}

/// More than one over the root of any `f32`, and so little that its product with a scale is finite: the distance 0 of a row that does not deviate stays 0, whichever of the two it is multiplied by first.
const LARGEST_FACTOR: f32 = 1e23;

/// The names of the operands in their order.
const NAMES: [&str; 5] = ["x", "residual", "bias", "gamma", "beta"];

impl Norm {
    /// Where each optional operand stands among the inputs: residual, bias, gamma, beta.
    pub(super) fn positions(&self) -> [Option<usize>; 4] {
        let mut next = 0;
        [self.residual, self.bias, self.gamma, self.beta].map(|present| {
            next += usize::from(present);
            present.then_some(next)
        })
    }

    /// What mean and factor are computed in.
    fn computed(element: ElementType) -> ElementType {
        if element == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
    }

    /// What the sum of squares is divided by, what is added to that, and what the root may be at least.
    fn divisor(&self, elements: &Dim) -> (Dim, [f32; 2]) {
        match self.kind {
            NormKind::Layer | NormKind::Rms => (elements.clone(), [self.epsilon, 0.0]),
            NormKind::Length => (Dim::from(1i64), [0.0, self.epsilon]),
        }
    }

    /// What the sum of squares is divided by, what is added to that, and what the factor may be at most, in `f32`.
    pub(super) fn constants(&self, elements: &Dim) -> (Dim, [f32; 2]) {
        let (divisor, [added, least]) = self.divisor(elements);
        (divisor, [added, (1.0 / least).min(LARGEST_FACTOR)])
    }

    /// The layout of vectors, as x's axes have it.
    ///
    /// # Errors
    /// They lie otherwise than each other, so that some must be copied; or the residual does not lie as x does.
    fn vectors(&self, inputs: &[Operand]) -> Result<Option<Layout>, Ineligible> {
        let x = &inputs[0];
        let [residual, vectors @ ..] = self.positions();
        let strided = |at: &usize| !inputs[*at].layout.is_contiguous(&inputs[*at].ty.shape);
        let alike = |a: &Operand, b: &Operand| {
            let axes = a.layout.strides.iter().zip(&b.layout.strides).zip(&a.ty.shape);
            axes.into_iter().all(|((a, b), extent)| extent.is(1) || a == b)
        };
        let there: Vec<usize> = vectors.into_iter().flatten().collect();
        let mut copied: Vec<usize> = Vec::new();
        if residual.is_some_and(|residual| !alike(&inputs[residual], x)) {
            copied.extend([0].into_iter().chain(residual).filter(strided));
        }
        if there.iter().any(|other| !alike(&inputs[there[0]], &inputs[*other])) {
            copied.extend(there.iter().copied().filter(strided));
        }
        if !copied.is_empty() {
            return Err(Ineligible::NeedsContiguous(copied));
        }
        Ok(there.first().map(|at| inputs[*at].layout.broadcast(&inputs[*at].ty.shape, &x.ty.shape)))
    }

    /// The bindings of its kernels, with memory for outputs that nobody wants.
    fn bindings(&self, element: ElementType) -> ([Slot; 8], Vec<Dim>) {
        let [residual, bias, gamma, beta] = self.positions().map(|position| position.map_or(Slot::Empty, Slot::Input));
        let mut scratch = Vec::new();
        let mut output = 0;
        let mut optional = |wanted: bool, bytes: u64| {
            if wanted {
                output += 1;
                return Slot::Output(output);
            }
            scratch.push(Dim::from(bytes as i64));
            Slot::Scratch(scratch.len() - 1)
        };
        let sum = optional(self.wants_sum, 4 * element.bytes());
        let moments = optional(self.wants_moments, 2 * Self::computed(element).bytes());
        ([Slot::Input(0), residual, bias, gamma, beta, Slot::Output(0), sum, moments], scratch)
    }

    /// What the last part of a kernel's name says of its vectors.
    fn suffix(&self, inputs: &[Operand]) -> &'static str {
        let [.., gamma, beta] = self.positions();
        let element = gamma.or(beta).map(|at| inputs[at].ty.element);
        let single = element == Some(ElementType::F32) && inputs[0].ty.element != ElementType::F32;
        if single { "_f32" } else { "" }
    }

    /// Whether an input has an element for each of x, and is no vector that all rows read.
    fn is_of_rows(&self, input: usize) -> bool {
        input == 0 || self.positions()[0] == Some(input)
    }

    fn flags(&self) -> [ParamValue; 3] {
        [self.kind == NormKind::Layer, self.wants_sum, self.wants_moments].map(ParamValue::Bool)
    }
}

impl Op for Norm {
    fn name(&self) -> &'static str {
        match self.kind {
            NormKind::Layer => "layer_norm",
            NormKind::Rms => "rms_norm",
            NormKind::Length => "l2_normalise",
        }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("axes", format!("{:?}", self.axes)),
            ("epsilon", format!("{:?}", self.epsilon)),
            ("residual", self.residual.to_string()),
            ("bias", self.bias.to_string()),
            ("gamma", self.gamma.to_string()),
            ("beta", self.beta.to_string()),
            ("wants_sum", self.wants_sum.to_string()),
            ("wants_moments", self.wants_moments.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let positions = self.positions();
        let expected = 1 + positions.iter().flatten().count();
        expect_inputs(inputs, expected..=expected)?;
        let x = &inputs[0];
        expect_one_of("x", x, ElementType::is_float)?;
        expect_axes(x, &self.axes)?;
        expect_epsilon(self.epsilon)?;
        let [residual, bias, gamma, beta] = positions;
        if let Some(residual) = residual {
            expect_element("residual", &inputs[residual], x.element)?;
            expect_shape("residual", &inputs[residual], &x.shape)?;
        }
        if let Some(bias) = bias {
            expect_element("bias", &inputs[bias], x.element)?;
        }
        // Both are of x's type, or both `f32`.
        let scales: Vec<_> = [(3, gamma), (4, beta)].into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
        let single = x.element != ElementType::F64
            && scales.first().is_some_and(|(_, first)| inputs[*first].element == ElementType::F32);
        for (name, at) in &scales {
            expect_element(NAMES[*name], &inputs[*at], if single { ElementType::F32 } else { x.element })?;
        }
        let vectors = [(2, bias), (3, gamma), (4, beta)].into_iter().filter_map(|(name, at)| Some((name, at?)));
        let mut first: Option<&TensorType> = None;
        for (name, at) in vectors {
            let vector = &inputs[at];
            match first {
                Some(first) => expect_shape(NAMES[name], vector, &first.shape)?,
                None if broadcast([x.shape.as_slice(), &vector.shape]).is_ok_and(|shape| shape == x.shape) => {}
                None => {
                    let expected = format!("a shape that broadcasts to {x}");
                    return Err(OpError::Shape { input: NAMES[name], given: vector.to_string(), expected });
                }
            }
            first = Some(first.unwrap_or(vector));
        }
        let mut outputs = vec![x.clone()];
        outputs.extend(self.wants_sum.then(|| x.clone()));
        if self.wants_moments {
            let kept = x.shape.iter().enumerate().filter(|(axis, _)| !self.axes.contains(axis));
            let shape = kept.map(|(_, extent)| extent.clone()).chain([Dim::from(2i64)]).collect();
            outputs.push(TensorType { element: Self::computed(x.element), shape });
        }
        Ok(outputs)
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let shape = &inputs[0].shape;
        // The element of a vector that stands at a position of x.
        let of_vector = |vector: &HostTensor, position: usize| {
            let (mut rest, mut at, mut stride) = (position, 0, 1);
            for back in 1..=shape.len() {
                let coordinate = rest % shape[shape.len() - back];
                rest /= shape[shape.len() - back];
                if back <= vector.shape.len() {
                    let extent = vector.shape[vector.shape.len() - back];
                    at += if extent == 1 { 0 } else { coordinate * stride };
                    stride *= extent;
                }
            }
            vector.values[at]
        };
        let [residual, bias, gamma, beta] = self.positions().map(|at| at.map(|at| &inputs[at]));
        let sums = (0..inputs[0].values.len()).map(|at| {
            let bias = bias.map_or(0.0, |bias| of_vector(bias, at));
            inputs[0].values[at] + residual.map_or(0.0, |residual| residual.values[at]) + bias
        });
        let v = HostTensor { shape: shape.clone(), values: sums.collect() };
        let (mut y, mut moments) = (v.clone(), Vec::new());
        let epsilon = f64::from(self.epsilon);
        for row in rows_of(shape, &self.axes) {
            let length = row.len() as f64;
            let total: f64 = row.iter().map(|at| v.values[*at]).sum();
            let mean = if self.kind == NormKind::Layer { total / length } else { 0.0 };
            let squares: f64 = row.iter().map(|at| (v.values[*at] - mean).powi(2)).sum();
            let divisor = match self.kind {
                NormKind::Layer | NormKind::Rms => (squares / length + epsilon).sqrt(),
                NormKind::Length if squares.is_nan() => squares,
                NormKind::Length => squares.sqrt().max(epsilon),
            };
            // Zeros are zeros, whatever they are divided by.
            let divisor = if divisor == 0.0 { f64::MIN_POSITIVE } else { divisor };
            for at in row {
                let scaled = (v.values[at] - mean) / divisor * gamma.map_or(1.0, |gamma| of_vector(gamma, at));
                y.values[at] = scaled + beta.map_or(0.0, |beta| of_vector(beta, at));
            }
            moments.extend([mean, 1.0 / divisor]);
        }
        let mut results = vec![y];
        results.extend(self.wants_sum.then_some(v));
        if self.wants_moments {
            results.push(HostTensor { shape: outputs[outputs.len() - 1].clone(), values: moments });
        }
        results
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 8
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            // Of candidates that cost as much the first is taken.
            Box::new(Widest(self)),
            Box::new(Registers(self)),
            Box::new(Strided(self)),
            #[cfg(feature = "cpu")]
            Box::new(super::host::NormRows(self)),
        ])
    }
}

/// Bytes that go to and from memory if every tensor of x's size is moved so often.
fn moved(request: &Request<'_>, op: &Norm, reads: f64) -> f64 {
    let operands = reads * (1.0 + f64::from(u8::from(op.residual))) + 1.0 + f64::from(u8::from(op.wants_sum));
    kernel_time(request.device, transfer_time(operands * upper(&request.inputs[0].ty.bytes())))
}

/// For vectors that lie as rows do, or otherwise. Compilers read what is needed behind the sums again rather than hold it, unless they are kept from that. Vulkan's and wgpu's kernels are the slower, the more invocations meet for their two sums, but with a residual the slower, the more of a row one holds.
fn manner(op: &Norm, device: &Properties, [run, _]: &[Dim; 2]) -> Manner {
    let otherwise = if device.keeps_volatile_reads() { Longest::Twice } else { Longest::Again };
    let middle = match device.kind {
        DeviceKind::Vulkan if !op.residual => 16,
        DeviceKind::Wgpu if !op.residual => 8,
        _ => 4,
    };
    let longest = match Longest::on(device, otherwise) {
        Longest::Wide if run.is(1) && device.limits.max_invocations >= WIDEST as u32 => Longest::Widest,
        other => other,
    };
    Manner { longest, middle }
}

/// The name of the kernel for such rows, without its instance. Of long rows that are scaled and no more, vectors are read in smaller parts.
fn kernel_name(op: &Norm, held: &Held, element: ElementType) -> String {
    let is_scaled_alone = !op.residual && !op.beta;
    if held.is_long() && is_scaled_alone { "norm_long_scaled_rows".to_owned() } else { held.kernel("norm", element) }
}

/// The rows, where their elements follow on each other and operands lie so that kernels for such rows take them.
fn in_quads(op: &Norm, request: &Request<'_>) -> Result<InQuads, Ineligible> {
    let (x, no) = (&request.inputs[0], |reason: &str| Err(Ineligible::Other(reason.to_owned())));
    if x.ty.element == ElementType::F64 {
        return no("doubles are not held four at a time");
    }
    if op.wants_sum && !op.residual {
        return no("a sum without a residual");
    }
    let vectors = op.vectors(request.inputs)?;
    let found = Rows::of(x, &op.axes, vectors.as_ref()).in_quads()?;
    // A bias is read where the vectors lie as rows do; without a residual there is none.
    if op.bias && !(op.residual && found.runs[0].is(1)) {
        return no("a bias without a residual, or that lies otherwise than a row");
    }
    Ok(found)
}

/// Rows that only large workgroups hold, one of them each, without a residual: on CUDA those whose mean is taken off or that are shifted, and elsewhere those that are not shifted, as was measured to be faster.
#[derive(Debug)]
struct Widest<'a>(&'a Norm);

/// Rows that follow on each other, held in registers.
#[derive(Debug)]
struct Registers<'a>(&'a Norm);

/// Any rows.
#[derive(Debug)]
struct Strided<'a>(&'a Norm);

impl Candidate for Widest<'_> {
    fn name(&self) -> &'static str {
        "norm by a large workgroup a row"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.0, &request.inputs[0]);
        let no = |reason: String| Err(Ineligible::Other(reason));
        let InQuads { rows, elements, starts, runs } = in_quads(op, request)?;
        let is_kept = request.device.kind == DeviceKind::Cuda;
        if x.ty.element != ElementType::F32 {
            return no(format!("elements of {}", x.ty.element));
        }
        if op.residual || !runs[0].is(1) {
            return no("a residual, or vectors that lie otherwise than a row".to_owned());
        }
        let longest = if is_kept { kept::LONGEST } else { 4 * HELD_BY_WIDEST * WIDEST };
        let lengths = (4 * LARGEST * SIZE + 1) as i64..=longest as i64;
        if !lengths.contains(&elements.bounds().1) {
            return no(format!("rows of {elements} elements: it is for {} to {}", lengths.start(), lengths.end()));
        }
        if op.beta && !is_kept {
            return no("a beta, which its kernel does not add".to_owned());
        }
        let cost = moved(request, op, 1.0);
        if is_kept && op.kind != NormKind::Layer && !op.beta {
            let other = Registers(op).name();
            return no(format!(
                "it would take {cost:.1} us, as would `{other}`, measured to be faster at rows that are scaled alone"
            ));
        }
        let (divisor, numbers) = op.constants(&elements);
        let [levels, extents, x_strides, v_strides] = starts;
        let [centred, _, wants_moments] = op.flags();
        let ([x, _, _, gamma, beta, y, _, moments], scratch) = op.bindings(x.ty.element);
        let (kernel, bindings) = if is_kept {
            (&norm_kept::KERNEL, vec![x, gamma, beta, y, moments])
        } else {
            (&norm_widest::KERNEL, vec![x, gamma, y, moments])
        };
        let implementation = one_kernel(
            Arc::new(kernel.clone()),
            bindings,
            vec![
                ParamValue::Dims(vec![rows.clone(), elements, divisor]),
                levels,
                extents,
                x_strides,
                v_strides,
                ParamValue::F32s(numbers.to_vec()),
                centred,
                wants_moments,
            ],
            Grid::Workgroups(rows),
            cost,
        );
        Ok(Implementation { scratch, ..implementation })
    }

    fn passes(&self, request: &Request<'_>, input: usize) -> Option<u32> {
        in_quads(self.0, request).ok()?;
        self.0.is_of_rows(input).then_some(1)
    }
}

impl Candidate for Registers<'_> {
    fn name(&self) -> &'static str {
        "norm held in registers"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.0, &request.inputs[0]);
        let InQuads { rows, elements, starts, runs } = in_quads(op, request)?;
        let held = Held::of(x.ty.element, &elements, manner(op, request.device, &runs));
        let Held { quads, bits, .. } = held;
        let (kernel, suffix) = (kernel_name(op, &held, x.ty.element), op.suffix(request.inputs));
        let (divisor, numbers) = op.constants(&elements);
        let [levels, extents, x_strides, v_strides] = starts;
        let [centred, wants_sum, wants_moments] = op.flags();
        let (bindings, scratch) = op.bindings(x.ty.element);
        let kernel = instance(&kernels(), &format!("{kernel}{suffix}_{}_{quads}_{}", x.ty.element, op.residual))?;
        let implementation = one_kernel(
            held.specialised(kernel, &rows, &elements)?,
            bindings.to_vec(),
            vec![
                ParamValue::Dims(vec![rows.clone(), elements, divisor]),
                ParamValue::Dim(Dim::from(bits)),
                levels,
                extents,
                x_strides,
                v_strides,
                ParamValue::Dims(runs.to_vec()),
                ParamValue::F32s(numbers.to_vec()),
                centred,
                wants_sum,
                wants_moments,
            ],
            held.grid(&rows),
            moved(request, op, 1.0),
        );
        Ok(Implementation { scratch, ..implementation })
    }

    fn passes(&self, request: &Request<'_>, input: usize) -> Option<u32> {
        let (op, x) = (self.0, &request.inputs[0]);
        let InQuads { elements, runs, .. } = in_quads(op, request).ok()?;
        let held = Held::of(x.ty.element, &elements, manner(op, request.device, &runs));
        op.is_of_rows(input).then(|| if held.is_all_of(&elements) { 1 } else { 3 })
    }
}

impl Candidate for Strided<'_> {
    fn name(&self) -> &'static str {
        "norm of any strides"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.0, &request.inputs[0]);
        let vectors = op.vectors(request.inputs)?;
        let any = Rows::of(x, &op.axes, vectors.as_ref()).of_any_strides()?;
        let kernel = match x.ty.element {
            ElementType::F64 => "norm_strided_f64".to_owned(),
            element => format!("norm_strided{}_{element}", op.suffix(request.inputs)),
        };
        // The kernel of doubles takes the bound of the factor from that of the root.
        let (divisor, numbers) = match x.ty.element {
            ElementType::F64 => op.divisor(&any.elements),
            _ => op.constants(&any.elements),
        };
        let (bindings, scratch) = op.bindings(x.ty.element);
        let [levels, places @ ..] = any.places;
        let mut params = vec![
            ParamValue::Dims(vec![any.rows, any.elements, divisor]),
            ParamValue::Dim(Dim::from(any.along)),
            ParamValue::Bool(any.beside),
            levels,
        ];
        params.extend(places);
        params.push(ParamValue::F32s(numbers.to_vec()));
        params.extend(op.flags());
        let implementation =
            one_kernel(instance(&kernels(), &kernel)?, bindings.to_vec(), params, any.grid, moved(request, op, 2.0));
        Ok(Implementation { scratch, ..implementation })
    }

    fn passes(&self, _: &Request<'_>, input: usize) -> Option<u32> {
        self.0.is_of_rows(input).then_some(2)
    }
}
