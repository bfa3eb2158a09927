//! Sorting rows of any length by digits, the least significant first.
//!
//! **Idea.** Ranks stand for the elements, and where their places are wanted, these go with them. There is a pass for each byte of the ranks. In a pass a first launch counts the digits of every tile of a row;
//! running sums over the counts of a row, digit by digit and tile by tile, tell where the ranks of each digit of each tile go; and a last launch puts them there. It sorts its tile by the byte
//! first, so that ranks that go to neighbouring places lie together and are written together.
//!
//! **Sorting a tile** takes two steps of four bits. An invocation holds twelve ranks that follow each other. It counts its own digits, in a column of workgroup memory that no other invocation
//! touches: eight words, for two digits each. Running sums over the columns, digit by digit, then tell where the ranks of each digit of each invocation go. There is no atomic in it.
//!
//! **Invariants.** Ranks of equal digits stay in order in every step: within an invocation, among invocations, and among tiles. What fills up the last tile of a row are the largest ranks, which stay behind
//! all others and are not written. A column's counts fit in 16 bits, since a tile has 3072 ranks.
//!
//! **Cost.** 12 bytes an element and pass for ranks alone, 20 with places, and a tenth more for the counts.

use trefoil_dsl::prelude::*;

use crate::workgroup::sum_before;

/// Invocations of a workgroup, and values of a digit.
#[device]
pub const SIZE: usize = 256;
/// Groups of four ranks of an invocation; groups that lie twelve words apart are in different banks.
#[device]
const QUADS: usize = 3;
/// Ranks of an invocation.
#[device]
const EACH: usize = 4 * QUADS;
/// Ranks of a tile.
#[device]
pub const TILE: usize = SIZE * EACH;

/// A number for each rank of an invocation.
#[device]
pub struct Own {
    quads: [Vec4<u32>; QUADS],
}

/// What an invocation holds of a tile in workgroup memory.
#[device]
fn take(tile: &[u32]) -> Own {
    let mut own = Own { quads: [Vec4::splat(0); QUADS] };
    for quad in unroll(0..QUADS) {
        own.quads[quad] = tile.vec4(local_index() * QUADS + quad);
    }
    own
}

/// The same of `count` numbers of a buffer from `first` on, and `behind` past them; by way of the tile, so that neighbours read what lies together.
#[device]
fn read(x: &[u32], first: usize, count: usize, behind: u32, tile: &mut [u32]) -> Own {
    let mut words = [0u32; EACH];
    for part in unroll(0..EACH) {
        words[part] = x[first + part * SIZE + local_index()];
    }
    barrier();
    for part in unroll(0..EACH) {
        let i = part * SIZE + local_index();
        tile[i] = if i < count { words[part] } else { behind };
    }
    barrier();
    take(tile)
}

/// Puts numbers to their places in the tile; begins and ends with a barrier.
#[device]
fn put(own: Own, places: Own, tile: &mut [u32]) {
    barrier();
    for i in unroll(0..EACH) {
        tile[places.quads[i / 4][i % 4] as usize] = own.quads[i / 4][i % 4];
    }
    barrier();
}

/// The word of an invocation's column that counts a digit of four bits; digits from 8 on have the upper halves.
#[device]
fn counter(digit: u32) -> usize {
    (digit % 8) as usize * SIZE + local_index()
}

/// Where ranks go in the tile if it is sorted by the four bits from `shift` on. Uses as many words of `counts` as eight for each invocation.
#[device]
fn places_of(keys: Own, shift: u32, counts: &mut [u32], scratch: &mut [u32]) -> Own {
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

/// Counts the digits of each tile of each row: `counts[(row * 256 + digit) * tiles + tile]`. `shape`: `n`, tiles of a row.
#[kernel(workgroup(256))]
pub fn sort_count(ranks: &[u32], counts: &mut [u32], shape: [usize; 2], shift: u32) {
    let own = workgroup_array::<Atomic<u32>>(SIZE);
    let (n, tiles) = (shape[0], shape[1]);
    let lane = local_index();
    let (row, tile) = (group_index() / tiles, group_index() % tiles);
    let first = row * n + tile * TILE;
    let count = min(n - tile * TILE, TILE);
    own[lane].store(0);
    barrier();
    let mut words = [0u32; EACH];
    for part in unroll(0..EACH) {
        words[part] = ranks[first + part * SIZE + lane];
    }
    for part in unroll(0..EACH) {
        if part * SIZE + lane < count {
            own[((words[part] >> shift) % 256) as usize].add(1);
        }
    }
    barrier();
    counts[(row * SIZE + lane) * tiles + tile] = own[lane].load();
}

/// Puts the ranks of each tile, and with `PLACES` their places, where the running sums of the counts say. `given`: whether places are given; otherwise they are positions in
/// the row. `shape`: `n`, tiles of a row.
#[kernel(workgroup(256), instances(PLACES = [false, true]))]
pub fn sort_spread<const PLACES: bool>(
    ranks: &[u32],
    places: &[u32],
    starts: &[u32],
    ranks_out: &mut [u32],
    places_out: &mut [u32],
    shape: [usize; 2],
    shift: u32,
    given: bool,
) {
    let mut tile = workgroup_array::<u32>(TILE);
    let mut scratch = workgroup_array::<u32>(SIZE);
    // For each digit, where it begins in the sorted tile, and then how far its ranks move from there.
    let mut moves = workgroup_array::<u32>(SIZE);
    let (n, tiles) = (shape[0], shape[1]);
    let lane = local_index();
    let (row, at) = (group_index() / tiles, group_index() % tiles);
    let first = row * n + at * TILE;
    let count = min(n - at * TILE, TILE);
    // Every invocation has a digit too.
    let start = starts[(row * SIZE + lane) * tiles + at];
    moves[lane] = 0;
    let mut own = read(ranks, first, count, u32::MAX, &mut tile);
    let half = places_of(own, shift, &mut tile, &mut scratch);
    put(own, half, &mut tile);
    own = take(&tile);
    let sorted = places_of(own, shift + 4, &mut tile, &mut scratch);
    let mut both = Own { quads: [Vec4::splat(0); QUADS] };
    if PLACES {
        // The places have not moved yet: they go where both steps say at once.
        barrier();
        for quad in unroll(0..QUADS) {
            tile.set_vec4(lane * QUADS + quad, sorted.quads[quad]);
        }
        barrier();
        for i in unroll(0..EACH) {
            both.quads[i / 4][i % 4] = tile[half.quads[i / 4][i % 4] as usize];
        }
    }
    put(own, sorted, &mut tile);
    // The tile is sorted: a digit begins where the rank before has another.
    for part in unroll(0..EACH) {
        let i = part * SIZE + lane;
        let digit = (tile[i] >> shift) % 256;
        if i == 0 || (tile[i - 1] >> shift) % 256 != digit {
            moves[digit as usize] = i as u32;
        }
    }
    barrier();
    moves[lane] = start - moves[lane];
    barrier();
    let mut to = [0u32; EACH];
    for part in unroll(0..EACH) {
        let i = part * SIZE + lane;
        let rank = tile[i];
        to[part] = moves[((rank >> shift) % 256) as usize] + i as u32;
        if i < count {
            ranks_out[row * n + to[part] as usize] = rank;
        }
    }
    if PLACES {
        let mut own_places = Own { quads: [Vec4::splat(0); QUADS] };
        if given {
            own_places = read(places, first, count, 0, &mut tile);
        } else {
            for i in unroll(0..EACH) {
                own_places.quads[i / 4][i % 4] = (at * TILE + lane * EACH + i) as u32;
            }
        }
        put(own_places, both, &mut tile);
        for part in unroll(0..EACH) {
            let i = part * SIZE + lane;
            if i < count {
                places_out[row * n + to[part] as usize] = tile[i];
            }
        }
    }
}
