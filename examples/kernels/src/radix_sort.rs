//! Sorting by digits, the least significant first: pairs of a `u32` key and a `u32` value, stable.
//!
//! **Idea.** Four passes, one for each byte of the keys. In a pass a first launch counts the digits of every tile; running sums over all counts, digit by digit and
//! tile by tile, tell where the keys of each digit of each tile go; and a last launch puts them there. It sorts its tile by the byte first, so that keys that go to neighbouring places
//! lie together and are written together.
//!
//! **Sorting a tile** takes two steps of four bits, as the library's sorts do it ([`trefoil::kernels::sort::tile`]); nothing depends on subgroups.
//!
//! **Invariants.** Keys of equal digits stay in order in every step, and among tiles. The last tile is filled up with the largest keys,
//! which stay behind all others and are not written.
//!
//! **Cost.** 20 bytes a pair and pass, 80 in all, and a tenth more for the counts. Workgroup memory limits it on GPUs: a key passes through it fifteen times a pass. Twelve keys an
//! invocation, and not eight or sixteen, because groups of four that lie twelve words apart are in different banks.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::kernels::sort::tile::{EACH, Own, QUADS, SIZE, TILE, places_of, put, take};
use trefoil::prelude::*;
use trefoil::{BufferSlice, BufferSliceMut, Device, Dispatch, Result};

use crate::scan::tile::with_end;
use crate::{expect_length, scan};

/// The same of the workgroup's tile in a buffer; zeros past the end.
#[device]
fn read(x: &[u32]) -> Own {
    let first = (group_index() * SIZE + local_index()) * QUADS;
    let mut own = Own { quads: [Vec4::splat(0); QUADS] };
    for quad in unroll(0..QUADS) {
        own.quads[quad] = x.vec4(first + quad);
    }
    for quad in unroll(0..QUADS) {
        own.quads[quad] = with_end(own.quads[quad], x, first + quad);
    }
    own
}

/// Counts the digits of each tile: `counts[digit * tiles + tile]`.
#[kernel(workgroup(256))]
pub fn radix_count(keys: &[u32], counts: &mut [u32], shift: u32) {
    let own = workgroup_array::<Atomic<u32>>(SIZE);
    let lane = local_index();
    own[lane].store(0);
    barrier();
    for part in unroll(0..EACH) {
        let i = group_index() * TILE + part * SIZE + lane;
        if i < keys.len() {
            own[((keys[i] >> shift) % 256) as usize].add(1);
        }
    }
    barrier();
    counts[lane * group_count() + group_index()] = own[lane].load();
}

/// Puts the pairs of each tile where the running sums of the counts say.
#[kernel(workgroup(256))]
pub fn radix_scatter(
    keys: &[u32],
    values: &[u32],
    starts: &[u32],
    keys_out: &mut [u32],
    values_out: &mut [u32],
    shift: u32,
) {
    let mut tile = workgroup_array::<u32>(TILE);
    let mut scratch = workgroup_array::<u32>(SIZE);
    // For each digit, where it begins in the sorted tile, and then how far its keys move from there.
    let mut moves = workgroup_array::<u32>(SIZE);
    let lane = local_index();
    let first = group_index() * TILE;
    // Every invocation has a digit too.
    let start = starts[lane * group_count() + group_index()];
    moves[lane] = 0;
    let mut own = read(keys);
    for i in unroll(0..EACH) {
        if first + lane * EACH + i >= keys.len() {
            own.quads[i / 4][i % 4] = u32::MAX;
        }
    }
    let half = places_of(own, shift, &mut tile, &mut scratch);
    put(own, half, &mut tile);
    own = take(&tile);
    let places = places_of(own, shift + 4, &mut tile, &mut scratch);
    // The values have not moved yet: they go to the places of both steps at once.
    barrier();
    for quad in unroll(0..QUADS) {
        tile.set_vec4(lane * QUADS + quad, places.quads[quad]);
    }
    barrier();
    let mut both = Own { quads: [Vec4::splat(0); QUADS] };
    for i in unroll(0..EACH) {
        both.quads[i / 4][i % 4] = tile[half.quads[i / 4][i % 4] as usize];
    }
    put(own, places, &mut tile);
    // The tile is sorted: a digit begins where the key before has another.
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
        let key = tile[i];
        to[part] = moves[((key >> shift) % 256) as usize] + i as u32;
        if first + i < keys.len() {
            keys_out[to[part] as usize] = key;
        }
    }
    put(read(values), both, &mut tile);
    for part in unroll(0..EACH) {
        let i = part * SIZE + lane;
        if first + i < keys.len() {
            values_out[to[part] as usize] = tile[i];
        }
    }
}

/// `keys_out` = `keys` in order, `values_out` = their values; pairs of equal keys stay in order.
///
/// # Errors
/// The slices have not one length, or a buffer does not fit the device.
pub fn sort_pairs<'a>(
    device: &Device,
    keys: impl ReadBuffer<'a, u32>,
    values: impl ReadBuffer<'a, u32>,
    keys_out: impl WriteBuffer<'a, u32>,
    values_out: impl WriteBuffer<'a, u32>,
) -> Result<Vec<Dispatch>> {
    let (keys, values) = (keys.slice(), values.slice());
    let (mut keys_out, mut values_out) = (keys_out.slice_mut(), values_out.slice_mut());
    let length = keys.len();
    expect_length("sort_pairs", "values", values.len(), length)?;
    expect_length("sort_pairs", "keys_out", keys_out.len(), length)?;
    expect_length("sort_pairs", "values_out", values_out.len(), length)?;
    let tiles = length.div_ceil(TILE);
    let mut counts = device.uninit::<u32>(SIZE * tiles)?;
    let mut starts = device.uninit::<u32>(SIZE * tiles)?;
    let (mut other_keys, mut other_values) = (device.uninit::<u32>(length)?, device.uninit::<u32>(length)?);
    let mut launches = Vec::new();
    let mut pass = |keys: BufferSlice<'_, u32>,
                    values: BufferSlice<'_, u32>,
                    keys_out: BufferSliceMut<'_, u32>,
                    values_out: BufferSliceMut<'_, u32>,
                    shift: u32|
     -> Result<()> {
        launches.push(radix_count(keys, &mut counts, shift)?.groups(tiles));
        launches.extend(scan::exclusive(device, &counts, &mut starts)?);
        launches.push(radix_scatter(keys, values, &starts, keys_out, values_out, shift)?.groups(tiles));
        Ok(())
    };
    pass(keys, values, (&mut other_keys).into(), (&mut other_values).into(), 0)?;
    pass((&other_keys).into(), (&other_values).into(), keys_out.reborrow(), values_out.reborrow(), 8)?;
    let (between_keys, between_values) = (keys_out.reborrow().shared(), values_out.reborrow().shared());
    pass(between_keys, between_values, (&mut other_keys).into(), (&mut other_values).into(), 16)?;
    pass((&other_keys).into(), (&other_values).into(), keys_out, values_out, 24)?;
    Ok(launches)
}
