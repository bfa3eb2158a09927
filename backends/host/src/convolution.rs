//! Convolutions and their transposes over up to three axes, as products with what the kernel meets, which is laid out image by image, as many positions of one at once as fit.
//!
//! What is laid out is `[channels of a group, elements of the kernel, positions]`; where the kernel has one element that meets every position, x itself is that already. So a convolution costs, beside the product, one write and
//! one read of its x times the elements of the kernel. Positions have sums of their own, so that results are the same however many are laid out at once.

use std::mem;
use std::sync::Mutex;

use rayon::prelude::*;
use trefoil_dsl::support::state::lock;
use trefoil_kernels::activation::Activation;

use crate::isa::{self, Work};
use crate::math::activate;
use crate::product::{COLUMNS, Matrices, Product, multiply_into};

/// Elements that are laid out at once, by all threads together: 32 megabytes. Only where fewer positions than a panel has columns have as many, it is that panel.
const LAID_OUT: usize = 1 << 23;

/// One axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Of the result.
    pub positions: usize,
    /// Of x.
    pub extent: usize,
    /// Of the kernel.
    pub size: usize,
    /// From one position to the next.
    pub stride: usize,
    /// From one element of the kernel to the next.
    pub dilation: usize,
    /// Zeros in front of x; of the transpose what is left out in front.
    pub front: usize,
    /// From one element of x to the next in memory.
    pub x_stride: usize,
}

/// A convolution.
#[derive(Clone, Copy, Debug)]
pub struct Convolution<'a> {
    /// Whether it is the transpose.
    pub transposed: bool,
    /// How many images.
    pub images: usize,
    /// Into how many parts channels and outputs are divided.
    pub groups: usize,
    /// Channels of a group.
    pub channels: usize,
    /// Outputs of a group.
    pub outputs: usize,
    /// The axes; the first may have one element.
    pub axes: [Axis; 3],
    /// x, and the distances from one image and one channel to the next.
    pub x: (&'a [f32], [usize; 2]),
    /// The weight: `[groups, outputs, channels, elements of the kernel]`, or of the transpose `[groups, channels, outputs, elements of the kernel]`.
    pub weight: &'a [f32],
    /// Added to every position of an output.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

/// A row of an output, and what becomes of it last.
struct Finish<'a> {
    row: &'a mut [f32],
    bias: f32,
    activation: Activation,
}

impl Work for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        self.row.iter_mut().for_each(|y| *y += self.bias);
        activate::<FMA>(self.row, self.activation);
    }
}

impl Axis {
    /// Where an element of the kernel meets x from a position on, if it does.
    fn met(&self, transposed: bool, position: usize, step: usize) -> Option<usize> {
        let reach = step * self.dilation;
        let place = if transposed {
            let apart = (position + self.front).checked_sub(reach)?;
            if !apart.is_multiple_of(self.stride) {
                return None;
            }
            apart / self.stride
        } else {
            (position * self.stride + reach).checked_sub(self.front)?
        };
        (place < self.extent).then_some(place)
    }
}

impl Convolution<'_> {
    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.positions).product()
    }

    fn elements(&self) -> usize {
        self.axes.iter().map(|axis| axis.size).product()
    }

    /// Whether x is laid out already: its positions follow on each other, and the kernel's one element meets each in its place.
    fn is_laid_out(&self) -> bool {
        let mut stride = 1;
        self.axes.iter().rev().all(|axis| {
            let follows = axis.extent == 1 || axis.x_stride == stride;
            stride *= axis.extent;
            let plain = axis.size == 1 && axis.stride == 1 && axis.front == 0 && axis.positions == axis.extent;
            follows && plain
        })
    }

    /// What one element of the kernel meets in one channel, from `first` in x on, at as many positions as the row has, from `start` on.
    fn lay_out(&self, first: usize, element: usize, start: usize, row: &mut [f32]) {
        let [a, b, c] = &self.axes;
        let steps = [element / (b.size * c.size), element / c.size % b.size, element % c.size];
        let (x, transposed) = (self.x.0, self.transposed);
        // Positions from the first that meets x on follow on each other there.
        let run = !transposed && c.stride == 1 && c.x_stride == 1;
        // The first line may be cut, in front and behind.
        let (first_line, in_line) = (start / c.positions, start % c.positions);
        let (head, others) = row.split_at_mut(row.len().min(c.positions - in_line));
        let lines = std::iter::once((in_line, head)).chain(others.chunks_mut(c.positions).map(|row| (0, row)));
        for (line, (position, row)) in lines.enumerate() {
            let line = first_line + line;
            let met_a = a.met(transposed, line / b.positions, steps[0]);
            let met_b = b.met(transposed, line % b.positions, steps[1]);
            let (Some(met_a), Some(met_b)) = (met_a, met_b) else {
                row.fill(0.0);
                continue;
            };
            let from = first + met_a * a.x_stride + met_b * b.x_stride;
            if run {
                let reach = position + steps[2] * c.dilation;
                let start = c.front.saturating_sub(reach).min(row.len());
                let end = (c.extent + c.front).saturating_sub(reach).clamp(start, row.len());
                row[..start].fill(0.0);
                row[end..].fill(0.0);
                if start < end {
                    let from = from + start + reach - c.front;
                    row[start..end].copy_from_slice(&x[from..from + end - start]);
                }
            } else {
                for (index, to) in row.iter_mut().enumerate() {
                    let place = c.met(transposed, position + index, steps[2]);
                    *to = place.map_or(0.0, |place| x[from + place * c.x_stride]);
                }
            }
        }
    }

    /// # Errors
    /// An operand is too short.
    fn check(&self) -> Result<(), String> {
        let weights = self.groups * self.outputs * self.channels * self.elements();
        if self.weight.len() < weights {
            return Err(format!("`weight`: {} elements given, {weights} expected", self.weight.len()));
        }
        let outputs = self.groups * self.outputs;
        if let Some(bias) = self.bias.filter(|bias| bias.len() < outputs) {
            return Err(format!("`bias`: {} elements given, {outputs} expected", bias.len()));
        }
        let (x, [image, channel]) = self.x;
        let extents = [self.images, self.groups * self.channels].into_iter().zip([image, channel]);
        let mut all = extents.chain(self.axes.iter().map(|axis| (axis.extent, axis.x_stride)));
        let last = all.try_fold(0usize, |sum, (extent, stride)| {
            extent.checked_sub(1).map(|last| sum.saturating_add(last.saturating_mul(stride)))
        });
        match last {
            Some(last) if last >= x.len() => Err(format!("`x`: {} elements given, {} expected", x.len(), last + 1)),
            _ => Ok(()),
        }
    }
}

/// Memory in which something is laid out, which the next convolution takes again: new memory costs as much as what is written to it.
struct Scratch {
    memory: Vec<f32>,
    count: usize,
}

/// What no convolution uses at present, of at most as many elements as are laid out at once.
static KEPT: Mutex<Vec<f32>> = Mutex::new(Vec::new());

impl Scratch {
    /// Memory for so many elements, whatever they are.
    fn of(count: usize) -> Self {
        let kept = if count == 0 { Vec::new() } else { mem::take(&mut *lock(&KEPT)) };
        let memory = if kept.len() < count { vec![0.0; count] } else { kept };
        Self { memory, count }
    }

    fn values(&mut self) -> &mut [f32] {
        &mut self.memory[..self.count]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut kept = lock(&KEPT);
        if (kept.len() + 1..=LAID_OUT).contains(&self.memory.len()) {
            mem::swap(&mut *kept, &mut self.memory);
        }
    }
}

/// How many positions are laid out at once where each has `depth` elements, if some `most` fit.
fn at_once(positions: usize, depth: usize, most: usize) -> usize {
    let fitting = most / depth.max(1);
    if fitting >= positions {
        return positions;
    }
    // As many panels for each thread, where there are so many: threads wait for each other behind each product.
    let even = COLUMNS * rayon::current_num_threads();
    let unit = if fitting < even { COLUMNS } else { even };
    (fitting / unit * unit).max(COLUMNS).min(positions)
}

/// Computes a convolution into `out`, which is `[images, groups, outputs, positions]`.
///
/// # Errors
/// An operand or the result is too short.
pub fn convolve(convolution: &Convolution<'_>, out: &mut [f32]) -> Result<(), String> {
    convolve_within(convolution, LAID_OUT, out)
}

/// The same with some `most` elements laid out at once.
fn convolve_within(convolution: &Convolution<'_>, most: usize, out: &mut [f32]) -> Result<(), String> {
    let Convolution { transposed, images, groups, channels, outputs, weight, bias, activation, .. } = *convolution;
    // A bias is one of a row here, and of a column in a product: where there is one, both come after the product.
    let in_product = if bias.is_none() { activation } else { Activation::Identity };
    convolution.check()?;
    let (positions, elements) = (convolution.positions(), convolution.elements());
    let (given, wanted) = (out.len(), images * groups * outputs * positions);
    let out = out.get_mut(..wanted).ok_or_else(|| format!("the result: {given} elements given, {wanted} expected"))?;
    if out.is_empty() {
        return Ok(());
    }
    let (x, [image_stride, channel_stride]) = convolution.x;
    let depth = channels * elements;
    let is_laid_out = convolution.is_laid_out();
    let at_once = if is_laid_out { positions } else { at_once(positions, depth, most) };
    let mut scratch = Scratch::of(if is_laid_out { 0 } else { depth * at_once });
    let laid_out = scratch.values();
    let mut turned: Vec<f32> = Vec::new();
    for group in 0..groups {
        let weight = &weight[group * outputs * depth..][..outputs * depth];
        if transposed {
            // A row of outputs has its weights in rows of elements, channel by channel.
            let places = (0..outputs).flat_map(|output| (0..depth).map(move |row| (output, row)));
            turned.clear();
            let place = |(output, row): (usize, usize)| (row / elements * outputs + output) * elements + row % elements;
            turned.extend(places.map(|of_turned| weight[place(of_turned)]));
        }
        let a = Matrices { values: if transposed { turned.as_slice() } else { weight }, strides: [0, depth, 1] };
        for image in 0..images {
            let out = &mut out[(image * groups + group) * outputs * positions..][..outputs * positions];
            let first = image * image_stride + group * channels * channel_stride;
            for start in (0..positions).step_by(at_once) {
                let count = at_once.min(positions - start);
                let b = if is_laid_out {
                    Matrices { values: x.get(first..).unwrap_or_default(), strides: [0, channel_stride, 1] }
                } else {
                    laid_out.par_chunks_mut(at_once).enumerate().for_each(|(row, to)| {
                        let first = first + row / elements * channel_stride;
                        convolution.lay_out(first, row % elements, start, &mut to[..count]);
                    });
                    // The same strides for the last positions too: a product of one row goes by them.
                    Matrices { values: &*laid_out, strides: [0, at_once, 1] }
                };
                let (m, n, k) = (outputs, count, depth);
                let product = Product { batch: 1, m, n, k, a, b, bias: None, activation: in_product };
                multiply_into(&product, out.chunks_mut(positions).map(|row| &mut row[start..][..count]))?;
            }
            if let Some(bias) = bias {
                let bias = &bias[group * outputs..][..outputs];
                let rows = out.par_chunks_mut(positions).zip(bias);
                rows.for_each(|(row, bias)| isa::run(Finish { row, bias: *bias, activation }));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two images in two groups, strided, dilated and padded, and the transpose: small numbers of positions end within lines.
    #[test]
    fn results_are_the_same_however_many_positions_are_laid_out_at_once() {
        const EXTENT: usize = 13;
        let x: Vec<f32> = (0..2 * 6 * EXTENT * EXTENT).map(|i| (i * 31 % 97) as f32 / 7.0 - 5.0).collect();
        // Products with powers of two are exact, so that instruction sets agree, of which other tests may choose one meanwhile.
        let weight: Vec<f32> = (0..2 * 70 * 3 * 9).map(|i| [0.5, -1.0, 2.0, 1.0, -0.25][i % 5]).collect();
        let bias: Vec<f32> = (0..2 * 70).map(|i| i as f32 / 4.0).collect();
        // Stride, dilation, zeros in front, positions.
        for (transposed, outputs, [stride, dilation, front, positions]) in [
            (false, 70, [1, 1, 1, 13]),
            (false, 1, [1, 1, 1, 13]),
            (false, 3, [2, 2, 3, 8]),
            (true, 5, [1, 2, 0, 17]),
            (true, 1, [2, 1, 1, 26]),
        ] {
            let axis = Axis { positions, extent: EXTENT, size: 3, stride, dilation, front, x_stride: 1 };
            let none = Axis { positions: 1, extent: 1, size: 1, stride: 1, dilation: 1, front: 0, x_stride: 0 };
            let axes = [none, Axis { x_stride: EXTENT, ..axis }, axis];
            for bias in [None, Some(bias.as_slice())] {
                let convolution = Convolution {
                    transposed,
                    images: 2,
                    groups: 2,
                    channels: 3,
                    outputs,
                    axes,
                    x: (&x, [6 * EXTENT * EXTENT, EXTENT * EXTENT]),
                    weight: &weight,
                    bias,
                    activation: Activation::Relu,
                };
                let count = 2 * 2 * outputs * positions * positions;
                let by = |most: usize, threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let mut out = vec![f32::NAN; count];
                    pool.install(|| convolve_within(&convolution, most, &mut out)).unwrap();
                    out
                };
                let whole = by(usize::MAX, 1);
                // What another convolution left is not looked at.
                Scratch::of(27 * 169).values().fill(f32::NAN);
                for most in [1, 27 * 50, 27 * 97, 27 * 100] {
                    assert!(by(most, 1) == whole && by(most, 2) == whole, "{transposed} {outputs} {stride}, {most}");
                }
            }
        }
    }

    #[test]
    fn what_is_laid_out_at_once_is_bounded() {
        assert_eq!(at_once(1000, 27, usize::MAX), 1000);
        assert_eq!(at_once(1000, 0, 0), COLUMNS);
        assert_eq!(at_once(7, 1 << 30, LAID_OUT), 7);
        for depth in [1, 27, 2304, 18_432, 100_000] {
            let count = at_once(1 << 24, depth, LAID_OUT);
            assert!(count >= COLUMNS && depth * count <= LAID_OUT, "{count} positions of {depth}");
            assert!(count.is_multiple_of(COLUMNS));
        }
    }
}
