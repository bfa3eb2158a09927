//! Weights in the order in which the product reads them: outputs fastest, then channels, then the kernel's elements, then groups.
//!
//! An element is bound as the unsigned integer of its width.

use trefoil_dsl::prelude::*;

/// packed = `[groups, elements of the kernel, channels, outputs]`, the outputs of a group filled up with zeros.
///
/// * `shape`: outputs of a group, with those that fill up, channels of a group, and elements of the kernel.
/// * `strides`: of weight from one group, output and channel to the next; elements of the kernel follow on each other.
#[kernel(workgroup(256), instances(T = [u16, u32]))]
pub fn convolution_weights<T: Element>(weight: &[T], packed: &mut [T], shape: [usize; 4], strides: [usize; 3]) {
    let (outputs, filled, channels, elements) = (shape[0], shape[1], shape[2], shape[3]);
    let i = global_index();
    if i < packed.len() {
        let output = i % filled;
        let channel = i / filled % channels;
        let element = i / (filled * channels) % elements;
        let group = i / (filled * channels * elements);
        let place = group * strides[0] + output * strides[1] + channel * strides[2] + element;
        packed[i] = weight[select(output < outputs, place, weight.len())];
    }
}
