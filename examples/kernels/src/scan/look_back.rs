//! Running sums in one pass, by decoupled look-back (Merrill and Garland, 2016).
//!
//! **Idea.** A workgroup publishes the sum of its tile as soon as it has it. Then it looks back: it adds the sums of the tiles before, until it meets one that already knows
//! the sum of everything up to its end, and publishes the same of its own. So no workgroup waits for more than the reading of tiles before it, and nobody reads the input twice.
//! All invocations look back at once, each at another tile.
//!
//! **Invariants.** A workgroup takes the number of its tile from a counter as it starts, so that it waits for none that has not started. What a tile publishes
//! lies in two words, half of the number's bits in each beside a flag that says what the number is. Each word is written whole and twice at most, and both count as
//! read when their flags agree; so no other memory has to be ordered, which would cost fences for every tile. Tile 0 knows everything before it, which ends every search.
//!
//! **Cost.** 8 bytes an element, and 8 bytes a tile of 4096 written twice, and read by the next 256. Memory limits it, as long as a sum is known within the time in which
//! 256 tiles are read.

use trefoil::prelude::*;
use trefoil::{BufferSlice, BufferSliceMut, Device, Dispatch, Result};

use super::tile::{QUADS, SIZE, TILE, quad_sum, set_tile, tile_at};
use crate::workgroup::{four_sums_before, least_all, sum_all};

/// A tile has published its sum.
#[device]
const SUM: u32 = 1;
/// A tile has published the sum of everything up to its end.
#[device]
const UP_TO: u32 = 2;

/// No tile is taken, and none has published anything.
#[kernel(workgroup(256))]
pub fn scan_clear(states: &mut [u32]) {
    let i = global_index();
    if i < states.len() {
        states[i] = 0;
    }
}

/// Writes what a tile knows.
#[device]
fn publish<T: Number>(states: &[Atomic<u32>], tile: usize, flag: u32, sum: T) {
    let bits = bitcast::<u32>(sum);
    states[2 * tile + 1].store((flag << 16) | (bits & 0xffff));
    states[2 * tile + 2].store((flag << 16) | (bits >> 16));
}

/// The sum of all tiles before one, the same for all invocations.
#[device]
fn look_back<T: Number>(tile: usize, states: &[Atomic<u32>], scratch: &mut [T], agreed: &mut [u32]) -> T {
    let lane = local_index();
    let mut before = T::lit(0.0);
    let mut end = tile;
    let mut nearest = SIZE as u32;
    while end > 0 && nearest == SIZE as u32 {
        // Each invocation waits for one tile, the first for the nearest.
        let mut sum = T::lit(0.0);
        let mut complete = SIZE as u32;
        if lane < end {
            let place = 2 * (end - 1 - lane);
            let mut low = states[place + 1].load();
            let mut high = states[place + 2].load();
            while low >> 16 == 0 || low >> 16 != high >> 16 {
                low = states[place + 1].load();
                high = states[place + 2].load();
            }
            sum = bitcast::<T>((low & 0xffff) | (high << 16));
            if low >> 16 == UP_TO {
                complete = lane as u32;
            }
        }
        // What lies beyond the nearest complete one is in that already.
        nearest = least_all::<SIZE>(complete, agreed);
        let counted = select(lane as u32 <= nearest, sum, T::lit(0.0));
        before += sum_all::<SIZE, T>(counted, 0, scratch);
        barrier();
        end -= min(end, SIZE);
    }
    before
}

/// The running sums of all tiles. `states` begins with the number of tiles taken.
#[kernel(workgroup(256), targets(spirv, cuda, cpu), instances(T = [u32, f32], EXCLUSIVE = [false, true]))]
pub fn scan_one_pass<T: Number, const EXCLUSIVE: bool>(x: &[T], y: &mut [T], states: &[Atomic<u32>]) {
    let mut scratch = workgroup_array::<T>(4 * SIZE);
    let mut agreed = workgroup_array::<u32>(SIZE);
    if local_index() == 0 {
        // The order says that this kernel's workgroups wait for each other, so that nobody runs them in step.
        agreed[0] = states[0].add_acquire(1);
    }
    let tile = workgroup_uniform_load(&agreed[0]) as usize;
    let first = tile * SIZE * QUADS + local_index();
    let held = tile_at(x, first);
    let own = Vec4::new(quad_sum(held[0]), quad_sum(held[1]), quad_sum(held[2]), quad_sum(held[3]));
    let mut all = own;
    let within = four_sums_before::<SIZE, T>(own, &mut all, &mut scratch);
    let sum = quad_sum(all);
    if local_index() == 0 && tile > 0 {
        publish(states, tile, SUM, sum);
    }
    barrier();
    let start = look_back(tile, states, &mut scratch, &mut agreed);
    if local_index() == 0 {
        publish(states, tile, UP_TO, start + sum);
    }
    set_tile::<T, EXCLUSIVE>(y, first, held, within, all, start);
}

/// Adds the launches that write the running sums of `x` to `y`.
///
/// # Errors
/// A buffer does not fit the device, or the device has no ordered atomics.
pub fn launches<T: Number, const EXCLUSIVE: bool>(
    device: &Device,
    x: BufferSlice<'_, T>,
    y: BufferSliceMut<'_, T>,
    list: &mut Vec<Dispatch>,
) -> Result<()> {
    let tiles = x.len().div_ceil(TILE);
    let mut states = device.uninit(2 * tiles + 1)?;
    list.push(scan_clear(&mut states)?.over(2 * tiles + 1));
    list.push(scan_one_pass::<T, EXCLUSIVE>(x, y, &mut states)?.groups(tiles));
    Ok(())
}
