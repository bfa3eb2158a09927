//! Sorting rows of any length by digits, the least significant first.
//!
//! **Idea.** Ranks stand for the elements, and where their places are wanted, these go with them. There is a pass for each byte of the ranks. In a pass a first launch counts the digits of every tile of a row;
//! running sums over the counts of a row, digit by digit and tile by tile, tell where the ranks of each digit of each tile go; and a last launch puts them there. It sorts its tile by the byte
//! first, so that ranks that go to neighbouring places lie together and are written together.
//!
//! **Sorting a tile** takes two steps of four bits ([`super::tile`]).
//!
//! **Invariants.** Ranks of equal digits stay in order in every step, and among tiles. What fills up the last tile of a row are the largest ranks, which stay behind
//! all others and are not written.
//!
//! **Cost.** 12 bytes an element and pass for ranks alone, 20 with places, and a tenth more for the counts.

use trefoil_dsl::prelude::*;

use super::tile::{EACH, Own, QUADS, SIZE, TILE, places_of, put, take};

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

/// Counts the digits of each tile of each row: `counts[(row * 256 + digit) * tiles + tile]`. `shape`: `n`, tiles of a row.
#[kernel(workgroup(256), no_robustness)]
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
#[kernel(workgroup(256), no_robustness, instances(PLACES = [false, true]))]
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
