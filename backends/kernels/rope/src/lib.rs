//! Rotary positions: pairs of a head's elements, turned by an angle that depends on the position.
//!
//! An invocation makes `WIDTH` neighbouring elements of the result. It reads them and their partners, which the neighbour that makes those reads as well, so that they come from memory once.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [rope::KERNELS, rope_f64::KERNELS].concat()
}

/// Which elements are a pair.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// Element i of the first half and element i of the second, as in GPT-NeoX and Llama.
    Halves,
    /// Elements 2 i and 2 i + 1, as in GPT-J.
    Neighbours,
}

/// Four elements as numbers to compute with.
#[device]
fn wide<T: Float>(x: Vec4<T>) -> Vec4<f32> {
    Vec4::new(x.x.to_f32(), x.y.to_f32(), x.z.to_f32(), x.w.to_f32())
}

/// Which element of its head a unit of `WIDTH` elements begins with, where the head begins in x, and where its angles begin in the tables.
#[device]
fn place_of<N: Element, const WIDTH: usize>(
    unit: usize,
    cosines: &[N],
    positions: &[u32],
    sizes: [usize; 5],
    x_strides: [usize; 4],
    table_strides: [usize; 3],
    position_strides: [usize; 3],
) -> Vec3<usize> {
    let (units, turned) = (sizes[3] / WIDTH, sizes[4]);
    let element = unit % units * WIDTH;
    let head = unit / units;
    let third = head % sizes[2];
    let second = head / sizes[2] % sizes[1];
    let first = head / (sizes[2] * sizes[1]);
    let from = first * x_strides[0] + second * x_strides[1] + third * x_strides[2];
    let mut row = first * table_strides[0] + second * table_strides[1] + third * table_strides[2];
    if !positions.is_empty() {
        let place = first * position_strides[0] + second * position_strides[1] + third * position_strides[2];
        row = positions[place] as usize * (turned / 2);
        // A row that the table lacks begins behind its end, even where the product wraps: what it turns is 0.
        if positions[place] as usize >= cosines.len() / max(turned / 2, 1) {
            row = cosines.len();
        }
    }
    Vec3::new(element, from, row)
}

/// The element at a place, turned if it is one of the first `turned`; elements lie `step` apart.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a part of a kernel's body")]
fn turned_element<T: Element, N: Number, R: Fn(T) -> N>(
    x: &[T],
    cosines: &[N],
    sines: &[N],
    place: Vec3<usize>,
    turned: usize,
    step: usize,
    pairs: Pairs,
    number: R,
) -> N {
    let (element, from, row) = (place.x, place.y, place.z);
    let own = number(x[from + element * step]);
    let mut made = own;
    if element < turned {
        let halves = pairs == Pairs::Halves;
        let is_first = if halves { element < turned / 2 } else { element % 2 == 0 };
        let apart = if halves { turned / 2 } else { 1 };
        let partner = if is_first { element + apart } else { element - apart };
        let angle = row + if halves { min(element, partner) } else { element / 2 };
        let other = number(x[from + partner * step]);
        let along = cosines[angle] * own;
        let across = sines[angle] * other;
        // The zeros behind a table's end would not make 0 of an infinity.
        let turn = if is_first { along - across } else { along + across };
        made = select(row < cosines.len(), turn, N::lit(0.0));
    }
    made
}

/// y = x with the pairs of the first `sizes[4]` elements of each head turned: the first becomes cos · first - sin · second, the second sin · first + cos · second.
///
/// * `sizes`: the extents of the result, which is contiguous, three axes and the elements of a head; and how many of these are turned.
/// * `x_strides`: along the three axes and the elements.
/// * `table_strides`: of cosines and sines, along the three axes, where there are no positions; else along their rows, of which `positions` says one for each place, by `position_strides`.
///
/// With a `WIDTH` of four all strides, extents of elements and halves of what is turned are multiples of four, and a head's elements lie together.
#[kernel(workgroup(256), instances(T = [f32, f16, bf16], WIDTH = [1, 4]))]
pub fn rope<T: Float, const WIDTH: usize>(
    x: &[T],
    cosines: &[f32],
    sines: &[f32],
    positions: &[u32],
    y: &mut [T],
    sizes: [usize; 5],
    x_strides: [usize; 4],
    table_strides: [usize; 3],
    position_strides: [usize; 3],
    pairs: Pairs,
) {
    let (elements, turned) = (sizes[3], sizes[4]);
    let unit = global_index();
    if unit < sizes[0] * sizes[1] * sizes[2] * (elements / WIDTH) {
        let place = place_of::<f32, WIDTH>(unit, cosines, positions, sizes, x_strides, table_strides, position_strides);
        if WIDTH == 4 {
            let (element, from, row) = (place.x, place.y, place.z);
            let own = wide(x.vec4((from + element) / 4));
            let mut made = own;
            if element < turned {
                if pairs == Pairs::Halves {
                    let in_first = element < turned / 2;
                    let partner = if in_first { element + turned / 2 } else { element - turned / 2 };
                    let other = wide(x.vec4((from + partner) / 4));
                    let angle = (row + min(element, partner)) / 4;
                    let turn = if in_first { -sines.vec4(angle) } else { sines.vec4(angle) };
                    made = cosines.vec4(angle) * own + turn * other;
                } else {
                    let (c, s) = (cosines.vec2((row + element / 2) / 2), sines.vec2((row + element / 2) / 2));
                    made = Vec4::new(
                        c.x * own.x - s.x * own.y,
                        s.x * own.x + c.x * own.y,
                        c.y * own.z - s.y * own.w,
                        s.y * own.z + c.y * own.w,
                    );
                }
                made = select(row < cosines.len(), made, Vec4::splat(0.0));
            }
            let kept = Vec4::new(T::from_f32(made.x), T::from_f32(made.y), T::from_f32(made.z), T::from_f32(made.w));
            y.set_vec4(unit, kept);
        } else {
            let made = turned_element(x, cosines, sines, place, turned, x_strides[3], pairs, |x| x.to_f32());
            y[unit] = T::from_f32(made);
        }
    }
}

/// As [`rope`] of one element at a time, of doubles with tables of doubles.
#[kernel(workgroup(256), requires(Float64))]
pub fn rope_f64(
    x: &[f64],
    cosines: &[f64],
    sines: &[f64],
    positions: &[u32],
    y: &mut [f64],
    sizes: [usize; 5],
    x_strides: [usize; 4],
    table_strides: [usize; 3],
    position_strides: [usize; 3],
    pairs: Pairs,
) {
    let unit = global_index();
    if unit < sizes[0] * sizes[1] * sizes[2] * sizes[3] {
        let place = place_of::<f64, 1>(unit, cosines, positions, sizes, x_strides, table_strides, position_strides);
        y[unit] = turned_element(x, cosines, sines, place, sizes[4], x_strides[3], pairs, |x| x);
    }
}
