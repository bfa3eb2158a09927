//! `attention(q, k, v, mask?, scale, causal)`: softmax(q k^T * scale + mask) v, head by head.

#[cfg(feature = "cpu")]
mod host;

use trefoil_kernels::attention::{QUERIES, attention};

use super::support::{contiguous, expect_element, expect_inputs, holding, instance, kernel_time, one_kernel, upper};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, Operand, ParamValue, Request, Slot,
};
use crate::types::{ElementType, Layout, TensorType};

/// How queries, keys, values and the result are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionLayout {
    /// `[batch, heads, positions, elements]`
    Bhsd,
    /// `[batch, positions, heads, elements]`
    Bshd,
}

/// Scaled dot-product attention in `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// How the operands and the result are arranged.
    pub layout: AttentionLayout,
    /// Multiplies the scores.
    pub scale: f32,
    /// Whether query i sees only keys up to `i + keys - queries`.
    pub causal: bool,
    /// Whether there is a mask, as fourth input: `f32`, added to the scores, of a shape that broadcasts to `[batch, heads, queries, keys]`.
    pub mask: bool,
}

impl Graph {
    /// Attention of `q` over `k` and `v`. There may be several query heads for each key head. A query that sees no key gives zeros.
    ///
    /// # Errors
    /// An operand is not `f32`, or the shapes do not fit each other.
    pub fn attention(
        &mut self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Option<Tensor>,
        op: Attention,
    ) -> Result<Tensor, GraphError> {
        let op = Attention { mask: mask.is_some(), ..op };
        let inputs: Vec<_> = [Some(q), Some(k), Some(v), mask].into_iter().flatten().collect();
        self.add_one(op, &inputs)
    }
}

impl Attention {
    /// The axes of batch, head, position and element.
    const fn axes(self) -> [usize; 4] {
        match self.layout {
            AttentionLayout::Bhsd => [0, 1, 2, 3],
            AttentionLayout::Bshd => [0, 2, 1, 3],
        }
    }

    /// Extents as batch, heads, positions, elements.
    fn extents(self, ty: &TensorType) -> [Dim; 4] {
        self.axes().map(|axis| ty.shape[axis].clone())
    }
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("layout", format!("{:?}", self.layout)),
            ("scale", format!("{:?}", self.scale)),
            ("causal", self.causal.to_string()),
            ("mask", self.mask.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = 3 + usize::from(self.mask);
        expect_inputs(inputs, count..=count)?;
        let shape_error =
            |input, ty: &TensorType, expected: String| OpError::Shape { input, given: ty.to_string(), expected };
        for (name, ty) in ["q", "k", "v"].into_iter().zip(inputs) {
            expect_element(name, ty, ElementType::F32)?;
            if ty.rank() != 4 {
                return Err(shape_error(name, ty, "batch, heads, positions and elements".to_owned()));
            }
        }
        let [batch, heads, queries, elements] = self.extents(&inputs[0]);
        let [k_batch, key_heads, keys, k_elements] = self.extents(&inputs[1]);
        if k_batch != batch || k_elements != elements {
            return Err(shape_error("k", &inputs[1], format!("batch {batch} and heads of {elements} elements, as q")));
        }
        let groups = heads.constant().zip(key_heads.constant()).is_some_and(|(q, k)| k > 0 && q % k == 0);
        if heads != key_heads && !groups {
            return Err(shape_error("k", &inputs[1], format!("a number of heads that divides q's {heads}")));
        }
        if inputs[2] != inputs[1] {
            return Err(shape_error("v", &inputs[2], inputs[1].to_string()));
        }
        if let Some(mask) = inputs.get(3) {
            expect_element("mask", mask, ElementType::F32)?;
            let scores = [batch, heads, queries, keys];
            let offset = 4usize.checked_sub(mask.rank());
            let fits = offset.is_some_and(|offset| {
                mask.shape.iter().zip(&scores[offset..]).all(|(given, wanted)| given.is(1) || given == wanted)
            });
            if !fits {
                return Err(shape_error("mask", mask, format!("a shape that broadcasts to {scores:?}")));
            }
        }
        Ok(vec![inputs[0].clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let axes = self.axes();
        let at = |tensor: &HostTensor, index: [usize; 4]| {
            let mut place = [0; 4];
            axes.iter().zip(index).for_each(|(axis, index)| place[*axis] = index);
            tensor.shape.iter().zip(place).fold(0, |sum, (extent, index)| sum * extent + index)
        };
        let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
        let extent = |tensor: &HostTensor, which: usize| tensor.shape[axes[which]];
        let (heads, queries, keys, elements) = (extent(q, 1), extent(q, 2), extent(k, 2), extent(q, 3));
        let mut out = HostTensor { shape: outputs[0].clone(), values: vec![0.0; q.values.len()] };
        for b in 0..extent(q, 0) {
            for h in 0..heads {
                let key_head = h / (heads / extent(k, 1));
                for i in 0..queries {
                    let mut scores = vec![f64::NEG_INFINITY; keys];
                    for (j, score) in scores.iter_mut().enumerate() {
                        if self.causal && j + queries > i + keys {
                            continue;
                        }
                        let dot: f64 = (0..elements)
                            .map(|e| q.values[at(q, [b, h, i, e])] * k.values[at(k, [b, key_head, j, e])])
                            .sum();
                        *score = dot * f64::from(self.scale)
                            + inputs.get(3).map_or(0.0, |m| broadcast_value(m, [b, h, i, j]));
                    }
                    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    if largest == f64::NEG_INFINITY {
                        continue;
                    }
                    let weights: Vec<_> = scores.iter().map(|score| (score - largest).exp()).collect();
                    let total: f64 = weights.iter().sum();
                    for e in 0..elements {
                        let sum: f64 = (0..keys).map(|j| weights[j] * v.values[at(v, [b, key_head, j, e])]).sum();
                        out.values[at(q, [b, h, i, e])] = sum / total;
                    }
                }
            }
        }
        vec![out]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        let [.., keys, _] = self.extents(&inputs[1]);
        inputs[0].elements() * keys * 4
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            Box::new(Online(*self)),
            #[cfg(feature = "cpu")]
            Box::new(host::Rows(*self)),
        ])
    }
}

/// An element of a tensor that broadcasts to four axes.
fn broadcast_value(tensor: &HostTensor, index: [usize; 4]) -> f64 {
    let offset = 4 - tensor.shape.len();
    let place = tensor
        .shape
        .iter()
        .zip(&index[offset..])
        .fold(0, |sum, (extent, index)| sum * extent + if *extent == 1 { 0 } else { *index });
    tensor.values[place]
}

/// The mask's strides along batch, head, query and key, 0 where it is broadcast or there is none.
fn mask_strides(request: &Request<'_>) -> [Dim; 4] {
    [0usize, 1, 2, 3].map(|axis| {
        let own = request.inputs.get(3).and_then(|mask| {
            let axis = axis.checked_sub(4 - mask.ty.rank())?;
            (!mask.ty.shape[axis].is(1)).then(|| mask.layout.strides[axis].clone())
        });
        own.unwrap_or_else(|| Dim::from(0i64))
    })
}

/// Keys step by step, with a softmax that is corrected as it goes.
#[derive(Debug)]
struct Online(Attention);

impl Candidate for Online {
    fn name(&self) -> &'static str {
        "attention with online softmax"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = self.0;
        let [batch, heads, queries, elements] = op.extents(&request.inputs[0].ty);
        let [_, key_heads, keys, _] = op.extents(&request.inputs[1].ty);
        if !elements.divides_evenly(4) {
            return Err(Ineligible::Other(format!("heads of {elements} elements, not a multiple of 4")));
        }
        let held = holding(&elements, 1, &[32, 64, 128])
            .ok_or_else(|| Ineligible::Other(format!("heads of {elements} elements, more than 128")))?;
        let unfit = |operand: &Operand| {
            let [b, h, s, e] = op.axes().map(|axis| &operand.layout.strides[axis]);
            !(e.is(1) && [b, h, s, &operand.layout.offset].into_iter().all(|stride| stride.divides_evenly(4)))
        };
        let strided: Vec<_> = (0..3).filter(|position| unfit(&request.inputs[*position])).collect();
        if !strided.is_empty() {
            contiguous(request.inputs)?;
            return Err(Ineligible::Other("heads whose elements do not lie together".to_owned()));
        }
        let strides = |layout: &Layout| {
            let [b, h, s, _] = op.axes();
            ParamValue::Dims([b, h, s].map(|axis| layout.strides[axis].clone()).to_vec())
        };
        let out = Layout::contiguous(&request.outputs[0].shape);
        let per_key_head = heads.quotient(&key_heads);
        let guess = 3.0 + upper(&request.outputs[0].elements()) * upper(&keys) * 4.0e-7;
        let cost = kernel_time(request.device, guess);
        Ok(one_kernel(
            instance(attention::KERNELS, &format!("attention_{}", held / 4))?,
            vec![
                Slot::Input(0),
                Slot::Input(1),
                Slot::Input(2),
                if op.mask { Slot::Input(3) } else { Slot::Empty },
                Slot::Output(0),
            ],
            vec![
                ParamValue::Dim(heads.clone()),
                ParamValue::Dim(per_key_head),
                ParamValue::Dim(queries.clone()),
                ParamValue::Dim(keys),
                ParamValue::Dim(elements),
                strides(&request.inputs[0].layout),
                strides(&request.inputs[1].layout),
                strides(&request.inputs[2].layout),
                strides(&out),
                ParamValue::Dims(mask_strides(request).to_vec()),
                ParamValue::F32(op.scale),
                ParamValue::Bool(op.causal),
            ],
            Grid::Workgroups(queries.quotient_up(QUERIES as i64) * heads * batch),
            cost,
        ))
    }
}
