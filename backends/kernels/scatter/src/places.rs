//! Where updates go: the slot of each update, the last update of each slot, and all updates of each slot.
//!
//! A *slot* is what one place of the result is, whatever stands there: an element, a row, a part of several axes. Indices are words, or pairs of words where they have 64 bits; what is out of range in any
//! of its indices goes nowhere, and what is negative is out of range.
//!
//! **All updates of a slot**, in their order: the slots are the keys by which updates are sorted, stably, and a search for each slot finds where its updates begin.

use trefoil_dsl::prelude::*;

/// The most extents over which updates are spread, and the most indices of a place.
#[device]
pub const LEVELS: usize = 8;
/// Updates in the order of their slots are also taken in chunks of so many.
#[device]
pub const CHUNK: usize = 64;

/// The slot of an update; `u32::MAX` if it goes nowhere.
///
/// * `words`: those of an index.
/// * `levels`: over how many extents updates are spread, the last first: `extents`, with the strides of indices and of slots.
/// * `depth`, `step`: how many indices an update has, and how far they lie from each other.
/// * `ranges`, `strides`: for each of them, what it is below, and how far its steps go among the slots.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a part of a kernel's body")]
pub fn slot_of(
    indices: &[u32],
    update: usize,
    words: usize,
    levels: usize,
    extents: [usize; 8],
    index_strides: [usize; 8],
    slot_strides: [usize; 8],
    depth: usize,
    step: usize,
    ranges: [usize; 8],
    strides: [usize; 8],
) -> u32 {
    let mut index = 0;
    let mut slot = 0;
    let mut rest = update;
    for level in 0..levels {
        let position = rest % extents[level];
        index += position * index_strides[level];
        slot += position * slot_strides[level];
        rest /= extents[level];
    }
    let mut inside = true;
    for axis in 0..depth {
        let at = (index + axis * step) * words;
        let low = indices[at];
        let high = if words == 2 { indices[at + 1] } else { 0 };
        inside = inside && high == 0 && (low as usize) < ranges[axis];
        slot += low as usize * strides[axis];
    }
    if inside { slot as u32 } else { u32::MAX }
}

/// Zeros.
#[kernel(workgroup(256))]
pub fn scatter_clear(last: &mut [u32]) {
    let i = global_index();
    if i < last.len() {
        last[i] = 0;
    }
}

/// For each slot, the number of its last update, from 1 up; what is not updated keeps its 0. `count` updates.
#[kernel(workgroup(256))]
#[expect(clippy::too_many_arguments, reason = "it is a kernel")]
pub fn scatter_last(
    indices: &[u32],
    last: &[Atomic<u32>],
    count: usize,
    words: usize,
    levels: usize,
    extents: [usize; 8],
    index_strides: [usize; 8],
    slot_strides: [usize; 8],
    depth: usize,
    step: usize,
    ranges: [usize; 8],
    strides: [usize; 8],
) {
    let i = global_index();
    if i < count {
        let slot =
            slot_of(indices, i, words, levels, extents, index_strides, slot_strides, depth, step, ranges, strides);
        if slot != u32::MAX {
            last[slot as usize].max(i as u32 + 1);
        }
    }
}

/// Makes the kernels for each type of keys.
macro_rules! keys {
    ($($key:ident: $keys:ident $runs:ident;)*) => {
        $(
            /// The slots of `count` updates; of those that go nowhere, the largest number of the type.
            #[kernel(workgroup(256))]
            #[expect(clippy::too_many_arguments, reason = "it is a kernel")]
            pub fn $keys(
                indices: &[u32],
                keys: &mut [$key],
                count: usize,
                words: usize,
                levels: usize,
                extents: [usize; 8],
                index_strides: [usize; 8],
                slot_strides: [usize; 8],
                depth: usize,
                step: usize,
                ranges: [usize; 8],
                strides: [usize; 8],
            ) {
                let i = global_index();
                if i < count {
                    let slot = slot_of(
                        indices, i, words, levels, extents, index_strides, slot_strides, depth, step, ranges, strides,
                    );
                    keys[i] = slot as $key;
                }
            }

            /// Where the updates of each slot begin among all in the order of their slots, `places`, and where those of the last end; behind that, for each chunk of these, whether all are of one
            /// slot. `shape`: updates, slots, chunks.
            #[kernel(workgroup(256))]
            pub fn $runs(keys: &[$key], places: &[u32], runs: &mut [u32], shape: [usize; 3]) {
                let (count, slots, chunks) = (shape[0], shape[1], shape[2]);
                let i = global_index();
                if i <= slots {
                    let mut low = 0;
                    let mut high = count;
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if (keys[places[middle] as usize] as usize) < i {
                            low = middle + 1;
                        } else {
                            high = middle;
                        }
                    }
                    runs[i] = low as u32;
                }
                if i < chunks {
                    let first = keys[places[i * CHUNK] as usize] as usize;
                    let last = keys[places[i * CHUNK + CHUNK - 1] as usize] as usize;
                    runs[slots + 1 + i] = (first == last && first < slots) as u32;
                }
            }
        )*
    };
}

keys! {
    u16: scatter_keys_u16 scatter_runs_u16;
    u32: scatter_keys_u32 scatter_runs_u32;
}
