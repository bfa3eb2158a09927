//! Sorts and the best of rows, of elements of any type by the order of their ranks (`order`): rows that a workgroup holds (`rows`), the best few of long rows (`top`), and rows of any length by
//! digits (`radix`, tile by `tile`).
//!
//! An element is bound as the unsigned integer of its width, so that there is one kernel for all types of a width. Types of 64 bits are sorted by their halves, one after the other.

pub mod order;
pub mod radix;
pub mod rows;
pub mod tile;
pub mod top;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use order::{Ranked, rank_of, word_of};
use rows::sort_rows;
use top::top_rows;

/// The rank of an element that `word` makes a word.
#[device]
fn rank_of_element<T: Element, W: Fn(T) -> u32>(x: T, order: [u32; 5], word: W) -> u32 {
    rank_of(word(x), order)
}

/// The element of a rank, which `element` makes of a word.
#[device]
fn element_of_rank<T: Element, E: Fn(u32) -> T>(rank: u32, order: [u32; 5], element: E) -> T {
    element(word_of(rank, order))
}

/// Makes the kernels of every width, and the list of them: the element type, how it becomes a word, and how a word becomes it.
macro_rules! widths {
    ($($element:ident: $rows:ident $top:ident $ranks:ident $elements:ident, [$($to:tt)*], [$($from:tt)*];)*) => {
        $(
            /// Sorts rows of up to 2048 elements.
            #[kernel(workgroup(256))]
            pub fn $rows(
                x: &[$element],
                values: &mut [$element],
                places: &mut [u32],
                shape: [usize; 4],
                steps: [usize; 2],
                levels: usize,
                extents: [usize; 4],
                x_strides: [usize; 4],
                y_strides: [usize; 4],
                order: [u32; 5],
                beside: bool,
                gives_values: bool,
                gives_places: bool,
            ) {
                let mut held = workgroup_array::<Ranked>(rows::HELD);
                sort_rows(
                    x, values, places, &mut held, shape, steps, levels, extents, x_strides, y_strides, order, beside,
                    gives_values, gives_places, $($to)*,
                );
            }

            /// The best of long rows, or of their pieces; at most half of `HELD`.
            #[kernel(workgroup(256), no_robustness, instances(HELD = [512, 1024]), specialise(QUADS: bool = false))]
            pub fn $top<const HELD: usize>(
                x: &[$element],
                values: &mut [$element],
                places: &mut [u32],
                ranks: &mut [u32],
                shape: [usize; 4],
                steps: [usize; 2],
                levels: usize,
                extents: [usize; 4],
                x_strides: [usize; 4],
                y_strides: [usize; 4],
                order: [u32; 5],
                finish: bool,
                gives_values: bool,
            ) {
                let mut held = workgroup_array::<Ranked>(HELD);
                let queued = workgroup_array::<Atomic<u32>>(1);
                let mut agreed = workgroup_array::<u32>(1);
                top_rows::<HELD, $element, _>(
                    x, values, places, ranks, &mut held, &queued, &mut agreed, shape, steps, levels, extents,
                    x_strides, y_strides, order, QUADS, finish, gives_values, $($to)*,
                );
            }

            /// The ranks of the elements of rows of `n`, which lie `step` apart, one after the other.
            #[kernel(workgroup(256))]
            pub fn $ranks(
                x: &[$element],
                ranks: &mut [u32],
                n: usize,
                step: usize,
                levels: usize,
                extents: [usize; 4],
                x_strides: [usize; 4],
                order: [u32; 5],
            ) {
                let i = global_index();
                if i < ranks.len() {
                    let mut at = i % n * step;
                    let mut rest = i / n;
                    for level in 0..levels {
                        at += rest % extents[level] * x_strides[level];
                        rest /= extents[level];
                    }
                    ranks[i] = rank_of_element(x[at], order, $($to)*);
                }
            }

            /// The elements of ranks in rows of `n`, one after the other, to rows whose elements lie `step` apart.
            #[kernel(workgroup(256))]
            pub fn $elements(
                ranks: &[u32],
                y: &mut [$element],
                n: usize,
                step: usize,
                levels: usize,
                extents: [usize; 4],
                y_strides: [usize; 4],
                order: [u32; 5],
            ) {
                let i = global_index();
                if i < ranks.len() {
                    let mut at = i % n * step;
                    let mut rest = i / n;
                    for level in 0..levels {
                        at += rest % extents[level] * y_strides[level];
                        rest /= extents[level];
                    }
                    y[at] = element_of_rank(ranks[i], order, $($from)*);
                }
            }
        )*

        /// Every kernel of this family.
        pub fn kernels() -> Vec<&'static Kernel> {
            let kernels = [
                sort_take::KERNELS,
                radix::sort_count::KERNELS,
                radix::sort_spread::KERNELS,
                $($rows::KERNELS, $top::KERNELS, $ranks::KERNELS, $elements::KERNELS),*
            ];
            kernels.concat()
        }
    };
}

widths! {
    u8: sort_rows_u8 top_rows_u8 sort_ranks_u8 sort_elements_u8, [|x| (x as u32) << 24], [|word| (word >> 24) as u8];
    u16: sort_rows_u16 top_rows_u16 sort_ranks_u16 sort_elements_u16, [|x| (x as u32) << 16], [|word| (word >> 16) as u16];
    u32: sort_rows_u32 top_rows_u32 sort_ranks_u32 sort_elements_u32, [|x| x], [|word| word];
}

/// The elements of rows at the places that were found, `k` in a row, and these places themselves.
///
/// * `shape`: `k`, and how long a row of `through` is.
/// * `mapped`: whether what was found are places in rows of `through`, which holds the true ones.
/// * Rows are spread over `levels` extents, the last first, with strides of elements, of results and of what was found; `steps` are those along a row.
#[kernel(workgroup(256), instances(T = [u8, u16, u32]))]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn sort_take<T: Element>(
    x: &[T],
    found: &[u32],
    through: &[u32],
    values: &mut [T],
    places: &mut [u32],
    shape: [usize; 2],
    steps: [usize; 3],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 4],
    y_strides: [usize; 4],
    found_strides: [usize; 4],
    rows: usize,
    mapped: bool,
    gives_values: bool,
    gives_places: bool,
) {
    let k = shape[0];
    let i = global_index();
    if i < rows * k {
        let (row, column) = (i / k, i % k);
        let mut x_first = 0;
        let mut y_at = column * steps[1];
        let mut found_at = column * steps[2];
        let mut rest = row;
        for level in 0..levels {
            let position = rest % extents[level];
            x_first += position * x_strides[level];
            y_at += position * y_strides[level];
            found_at += position * found_strides[level];
            rest /= extents[level];
        }
        let mut place = found[found_at];
        if mapped {
            place = through[row * shape[1] + place as usize];
        }
        if gives_values {
            values[y_at] = x[x_first + place as usize * steps[0]];
        }
        if gives_places {
            places[y_at] = place;
        }
    }
}
