//! A convolution as kernels see it: groups, and three axes, of which the first are left out where there are fewer.

use super::Convolution;
use crate::dim::Dim;
use crate::op::{Ineligible, ParamValue, Request};

/// One axis: positions of the result, extents of x and of the kernel, and how the kernel moves.
pub(super) struct Axis {
    pub(super) positions: Dim,
    pub(super) extent: Dim,
    pub(super) size: Dim,
    pub(super) stride: Dim,
    pub(super) dilation: Dim,
    pub(super) front: Dim,
    pub(super) x_stride: Dim,
}

/// A convolution over three axes.
pub(super) struct Shape {
    pub(super) images: Dim,
    pub(super) groups: Dim,
    /// Of a group.
    pub(super) channels: Dim,
    /// Of a group.
    pub(super) outputs: Dim,
    pub(super) axes: [Axis; 3],
    /// Of x, from one image and one channel to the next.
    pub(super) x_strides: [Dim; 2],
}

impl Shape {
    /// # Errors
    /// There are more axes, x is read backwards, or the weight or the bias must be contiguous.
    pub(super) fn new(op: &Convolution, request: &Request<'_>) -> Result<Self, Ineligible> {
        let (x, weight) = (&request.inputs[0], &request.inputs[1]);
        let count = op.slides.len();
        if !(1..=3).contains(&count) {
            return Err(Ineligible::Other(format!("{count} axes, of which it takes one to three")));
        }
        let apart: Vec<usize> = (1..request.inputs.len())
            .filter(|input| !request.inputs[*input].layout.is_contiguous(&request.inputs[*input].ty.shape))
            .collect();
        if !apart.is_empty() {
            return Err(Ineligible::NeedsContiguous(apart));
        }
        if x.layout.strides.iter().any(|stride| stride.bounds().0 < 0) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let [zero, one] = [Dim::from(0i64), Dim::from(1i64)];
        let axes = std::array::from_fn(|axis| {
            let Some(own) = (axis + count).checked_sub(3) else {
                let [positions, extent, size, stride, dilation] = std::array::from_fn(|_| one.clone());
                return Axis { positions, extent, size, stride, dilation, front: zero.clone(), x_stride: zero.clone() };
            };
            let slide = &op.slides[own];
            Axis {
                positions: request.outputs[0].shape[2 + own].clone(),
                extent: x.ty.shape[2 + own].clone(),
                size: weight.ty.shape[2 + own].clone(),
                stride: slide.stride.clone(),
                dilation: slide.dilation.clone(),
                front: slide.padding[0].clone(),
                x_stride: x.layout.strides[2 + own].clone(),
            }
        });
        let [channels, outputs] = op.of_group(&weight.ty, &x.ty);
        Ok(Self {
            images: x.ty.shape[0].clone(),
            groups: op.groups.clone(),
            channels,
            outputs,
            axes,
            x_strides: [x.layout.strides[0].clone(), x.layout.strides[1].clone()],
        })
    }

    pub(super) fn positions(&self) -> Dim {
        self.axes.iter().map(|axis| axis.positions.clone()).product()
    }

    /// Of the kernel.
    pub(super) fn elements(&self) -> Dim {
        self.axes.iter().map(|axis| axis.size.clone()).product()
    }

    /// A number of each axis.
    pub(super) fn each(&self, of: impl Fn(&Axis) -> &Dim) -> ParamValue {
        ParamValue::Dims(self.axes.iter().map(|axis| of(axis).clone()).collect())
    }
}
