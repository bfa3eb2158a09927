//! Running sums in one pass, by decoupled look-back (Merrill and Garland, 2016).
//!
//! **Idea.** A workgroup publishes the sum of its tile as soon as it has it. Then it looks back: it adds the sums of the tiles before, until it meets one that already knows
//! the sum of everything up to its end, and publishes the same of its own. So no workgroup waits for more than the reading of tiles before it, and nobody reads the input twice.
//! One subgroup looks back, each of its invocations at another tile: if all invocations did, what they read again and again while they wait would keep the caches
//! from those who publish.
//!
//! **Invariants.** A workgroup takes the number of its tile from a counter as it starts, so that it waits for none that has not started. What a tile publishes
//! is one word of 64 bits, the number and a flag that says what the number is, so that no other memory has to be ordered, which would cost fences for every tile. Tile 0 knows
//! everything before it, which ends every search. Flags carry the number of the launch, which the counter of tiles counts as well: so nothing has to be cleared between launches.
//!
//! **Cost.** 8 bytes an element, and 8 bytes a tile written twice, and read by as many of the next tiles as a subgroup has invocations.

use trefoil::prelude::*;
use trefoil::{BufferSlice, BufferSliceMut, Device, DeviceKind, Dispatch, Result};

use super::tile::{set_quad, with_end};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// Groups of four elements of an invocation on a GPU: as many as its registers hold, so that few have to look back.
const QUADS: usize = 20;
/// The same on the processor, where what a workgroup holds lies in the first cache.
const FEW_QUADS: usize = 8;
/// Elements of a tile on a GPU.
pub const TILE: usize = 4 * SIZE * QUADS;
/// Elements of a tile on the processor.
pub const SMALL_TILE: usize = 4 * SIZE * FEW_QUADS;

/// In a flag, beside the number of the launch: a tile has published its sum.
#[device]
const SUM: u32 = 0;
/// A tile has published the sum of everything up to its end.
#[device]
const UP_TO: u32 = 1;

/// Writes what a tile knows.
#[device]
fn publish<T: Number>(states: &[Atomic<u64>], tile: usize, flag: u32, sum: T) {
    states[tile + 1].store((flag as u64) << 32 | bitcast::<u32>(sum) as u64);
}

/// Takes the next tile: its number, and that of the launch.
#[device]
fn take(states: &[Atomic<u64>], tiles: usize) -> Vec2<u32> {
    // The order says that this kernel's workgroups wait for each other, so that nobody runs them in step.
    let ticket = states[0].add_acquire(1);
    let tile = ticket as u32;
    // Whoever takes the last begins the next launch's count.
    if tile as usize + 1 == tiles {
        states[0].add((1u64 << 32) - tiles as u64);
    }
    // What nobody has written yet is of launch 0.
    Vec2::new(tile, ((ticket >> 32) as u32 + 1) & 0x7fff_ffff)
}

/// The sum of all tiles before one, for the first invocation.
#[device]
fn look_back<T: Number>(tile: usize, launch: u32, states: &[Atomic<u64>], agreed: &mut [u32]) -> T {
    let lane = subgroup_lane();
    let lanes = subgroup_size();
    let mut before = T::lit(0.0);
    let mut end = tile;
    let mut nearest = lanes as u32;
    while end > 0 && nearest == lanes as u32 {
        // Each invocation of the first subgroup waits for one tile, the first for the nearest.
        let mut sum = T::lit(0.0);
        let mut complete = lanes as u32;
        if subgroup_index() == 0 && lane < end {
            let mut state = states[end - lane].load();
            while (state >> 33) as u32 != launch {
                state = states[end - lane].load();
            }
            sum = bitcast::<T>(state as u32);
            if (state >> 32) as u32 & 1 == UP_TO {
                complete = lane as u32;
            }
        }
        // What lies beyond the nearest complete one is in that already.
        let least = subgroup_min(complete);
        before += subgroup_add(select(lane as u32 <= least, sum, T::lit(0.0)));
        if local_index() == 0 {
            agreed[0] = least;
        }
        nearest = workgroup_uniform_load(&agreed[0]);
        end -= min(end, lanes);
    }
    before
}

/// The running sums of all tiles of `x`, which has a whole quad at least. `states` begins with the number of tiles taken, and is zero before the first launch; all launches with it are of one length.
#[kernel(workgroup(SIZE), targets(spirv, cuda, cpu), requires(Subgroups, Int64Atomics), instances(T = [u32, f32], EXCLUSIVE = [false, true], HELD = [8, 20]))]
pub fn scan_one_pass<T: Number, const EXCLUSIVE: bool, const HELD: usize>(
    x: &[T],
    y: &mut [T],
    states: &[Atomic<u64>],
) {
    let quads = x.len() / 4;
    if quads == 0 {
        return;
    }
    let mut sums = workgroup_array::<T>(SIZE);
    let mut start = workgroup_array::<T>(1);
    let mut agreed = workgroup_array::<u32>(2);
    if local_index() == 0 {
        let taken = take(states, x.len().div_ceil(4 * SIZE * HELD));
        agreed[0] = taken.x;
        agreed[1] = taken.y;
    }
    let tile = workgroup_uniform_load(&agreed[0]) as usize;
    let launch = agreed[1];
    let lanes = subgroup_size();
    let is_whole = (tile + 1) * (4 * SIZE * HELD) <= x.len();
    // A subgroup's part lies together, and neighbours read what lies together.
    let first = tile * (SIZE * HELD) + subgroup_index() * lanes * HELD + subgroup_lane();
    let mut held = [Vec4::splat(T::lit(0.0)); HELD];
    // No read asks whether it is in range, which would cost registers: beyond the end it is the last quad again, and what comes of that nobody reads.
    for k in unroll(0..HELD) {
        held[k] = x.vec4(min(first + k * lanes, quads - 1));
    }
    if !is_whole {
        for k in unroll(0..HELD) {
            held[k] = with_end(held[k], x, first + k * lanes);
        }
    }
    // The sum of the tile alone comes first, since others wait for it.
    let mut own = T::lit(0.0);
    for k in unroll(0..HELD) {
        let a = held[k].x;
        let b = a + held[k].y;
        let c = b + held[k].z;
        let d = c + held[k].w;
        held[k] = Vec4::new(a, b, c, d);
        own += d;
    }
    let part = subgroup_add(own);
    if subgroup_lane() == 0 {
        sums[subgroup_index()] = part;
    }
    barrier();
    let mut within = T::lit(0.0);
    let mut sum = T::lit(0.0);
    for subgroup in 0..SIZE / lanes {
        if subgroup == subgroup_index() {
            within = sum;
        }
        sum += sums[subgroup];
    }
    if local_index() == 0 && tile > 0 {
        publish(states, tile, launch << 1 | SUM, sum);
    }
    // While it is on its way, the running sums within the subgroup's part.
    for k in unroll(0..HELD) {
        let with = subgroup_inclusive_add(held[k].w);
        let below = subgroup_shuffle_up(with, 1);
        let before = within + select(subgroup_lane() == 0, T::lit(0.0), below);
        within += subgroup_broadcast(with, lanes as u32 - 1);
        let up_to = if EXCLUSIVE { Vec4::new(T::lit(0.0), held[k].x, held[k].y, held[k].z) } else { held[k] };
        held[k] = Vec4::splat(before) + up_to;
    }
    let before = look_back::<T>(tile, launch, states, &mut agreed);
    if local_index() == 0 {
        publish(states, tile, launch << 1 | UP_TO, before + sum);
        start[0] = before;
    }
    let all_before = Vec4::splat(workgroup_uniform_load(&start[0]));
    if is_whole {
        for k in unroll(0..HELD) {
            y.set_vec4(first + k * lanes, all_before + held[k]);
        }
    } else {
        for k in unroll(0..HELD) {
            set_quad(y, first + k * lanes, all_before + held[k]);
        }
    }
}

/// Adds the launches that write the running sums of `x` to `y`.
///
/// # Errors
/// A buffer does not fit the device, or the device has no subgroups or no 64-bit atomics.
pub fn launches<T: Number, const EXCLUSIVE: bool>(
    device: &Device,
    x: BufferSlice<'_, T>,
    y: BufferSliceMut<'_, T>,
    list: &mut Vec<Dispatch>,
) -> Result<()> {
    list.push(match device.kind() {
        DeviceKind::Cpu => in_tiles::<T, EXCLUSIVE, FEW_QUADS>(device, x, y)?,
        DeviceKind::Wgpu | DeviceKind::Vulkan | DeviceKind::Cuda => in_tiles::<T, EXCLUSIVE, QUADS>(device, x, y)?,
    });
    Ok(())
}

/// The launch whose invocations hold so many groups of four elements.
fn in_tiles<T: Number, const EXCLUSIVE: bool, const HELD: usize>(
    device: &Device,
    x: BufferSlice<'_, T>,
    y: BufferSliceMut<'_, T>,
) -> Result<Dispatch> {
    let tiles = x.len().div_ceil(4 * SIZE * HELD);
    let mut states = device.zeros(tiles + 1)?;
    Ok(scan_one_pass::<T, EXCLUSIVE, HELD>(x, y, &mut states)?.groups(tiles))
}
