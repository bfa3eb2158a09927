//! On the processor itself.

use trefoil_host::convolution::{Axis as HostAxis, Convolution as HostConvolution, convolve};

use super::Convolution;
use super::shape::Shape;
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::one_function;
use crate::ops::support::{FLOPS_PER_MICROSECOND, upper};
use crate::types::ElementType;

/// What the kernel meets laid out image by image, and the product of it.
#[derive(Debug)]
pub(super) struct LaidOut<'a>(pub(super) &'a Convolution);

/// Numbers of an axis, as they are handed over.
const NUMBERS: usize = 7;

impl Candidate for LaidOut<'_> {
    fn name(&self) -> &'static str {
        "convolution on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let element = request.inputs[0].ty.element;
        if element != ElementType::F32 {
            return Err(Ineligible::Other(format!("elements of {element}, of which it takes f32")));
        }
        let shape = Shape::new(self.0, request)?;
        let sums = upper(&request.outputs[0].elements()) * upper(&shape.channels) * upper(&shape.elements());
        let mut reads = vec![Slot::Input(0), Slot::Input(1)];
        reads.extend(self.0.bias.then_some(Slot::Input(2)));
        let Shape { images, groups, channels, outputs, axes, x_strides: [image, channel] } = shape;
        let mut sizes = vec![images, groups, channels, outputs, image, channel];
        for axis in axes {
            sizes.extend([
                axis.positions,
                axis.extent,
                axis.size,
                axis.stride,
                axis.dilation,
                axis.front,
                axis.x_stride,
            ]);
        }
        let (transposed, activation) = (self.0.transposed, self.0.activation);
        let cost = 1.0 + 2.0 * sums / FLOPS_PER_MICROSECOND;
        Ok(one_function("convolve", reads, sizes, cost, move |reads, out, sizes| {
            let (&[x, weight, ref bias @ ..], &[images, groups, channels, outputs, image, channel, ref axes @ ..]) =
                (reads, sizes)
            else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            if axes.len() != 3 * NUMBERS {
                return Err(format!("{} numbers of axes given", axes.len()));
            }
            let axes = std::array::from_fn(|axis| {
                let [positions, extent, size, stride, dilation, front, x_stride] =
                    std::array::from_fn(|number| axes[axis * NUMBERS + number]);
                HostAxis { positions, extent, size, stride, dilation, front, x_stride }
            });
            let bias = bias.first().copied();
            let x = (x, [image, channel]);
            convolve(
                &HostConvolution { transposed, images, groups, channels, outputs, axes, x, weight, bias, activation },
                out,
            )
        }))
    }
}
