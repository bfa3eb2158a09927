//! Sorting a tile of words in workgroup memory by four of their bits.
//!
//! An invocation holds twelve words that follow each other. It counts its own digits, in a column of workgroup memory that no other invocation
//! touches: eight words, for two digits each. Running sums over the columns, digit by digit, then tell where the words of each digit of each invocation go. There is no atomic in it.
//!
//! **Invariants.** Words of equal digits stay in order, within an invocation and among invocations. A column's counts fit in 16 bits, since a tile has 3072 words.

use trefoil_dsl::prelude::*;

use trefoil_kernels_common::workgroup::sum_before;

/// Invocations of a workgroup, and values of a digit.
#[device]
pub const SIZE: usize = 256;
/// Groups of four words of an invocation; groups that lie twelve words apart are in different banks.
#[device]
pub const QUADS: usize = 3;
/// Words of an invocation.
#[device]
pub const EACH: usize = 4 * QUADS;
/// Words of a tile.
#[device]
pub const TILE: usize = SIZE * EACH;

/// A number for each word of an invocation.
#[device]
pub struct Own {
    /// Four that follow each other in each.
    pub quads: [Vec4<u32>; QUADS],
}

/// What an invocation holds of a tile in workgroup memory.
#[device]
pub fn take(tile: &[u32]) -> Own {
    let mut own = Own { quads: [Vec4::splat(0); QUADS] };
    for quad in unroll(0..QUADS) {
        own.quads[quad] = tile.vec4(local_index() * QUADS + quad);
    }
    own
}

/// Puts numbers to their places in the tile; begins and ends with a barrier.
#[device]
pub fn put(own: Own, places: Own, tile: &mut [u32]) {
    barrier();
    for i in unroll(0..EACH) {
        tile[places.quads[i / 4][i % 4] as usize] = own.quads[i / 4][i % 4];
    }
    barrier();
}

/// The word of an invocation's column that counts a digit of four bits; digits from 8 on have the upper halves.
#[device]
pub fn counter(digit: u32) -> usize {
    (digit % 8) as usize * SIZE + local_index()
}

/// Where words go in the tile if it is sorted by the four bits from `shift` on. Uses as many words of `counts` as eight for each invocation.
#[device]
pub fn places_of(keys: Own, shift: u32, counts: &mut [u32], scratch: &mut [u32]) -> Own {
    barrier();
    for digit in unroll(0..8) {
        counts[counter(digit)] = 0;
    }
    let mut places = Own { quads: [Vec4::splat(0); QUADS] };
    for i in unroll(0..EACH) {
        let digit = (keys.quads[i / 4][i % 4] >> shift) % 16;
        let count = counts[counter(digit)];
        places.quads[i / 4][i % 4] = (count >> (digit / 8 * 16)) & 0xffff;
        counts[counter(digit)] = count + (1 << (digit / 8 * 16));
    }
    barrier();
    // Eight words that follow each other, the lower and the upper halves at once: all the lower ones come first.
    let low = counts.vec4(2 * local_index());
    let high = counts.vec4(2 * local_index() + 1);
    let own = low.x + low.y + low.z + low.w + high.x + high.y + high.z + high.w;
    let mut all = 0;
    let before = sum_before::<SIZE, u32>(own, &mut all, scratch);
    let start = before + (all << 16);
    let low_sums = Vec4::new(start, start + low.x, start + low.x + low.y, start + low.x + low.y + low.z);
    let middle = low_sums.w + low.w;
    let high_sums = Vec4::new(middle, middle + high.x, middle + high.x + high.y, middle + high.x + high.y + high.z);
    counts.set_vec4(2 * local_index(), low_sums);
    counts.set_vec4(2 * local_index() + 1, high_sums);
    barrier();
    for i in unroll(0..EACH) {
        let digit = (keys.quads[i / 4][i % 4] >> shift) % 16;
        places.quads[i / 4][i % 4] += (counts[counter(digit)] >> (digit / 8 * 16)) & 0xffff;
    }
    places
}
