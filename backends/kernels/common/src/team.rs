//! Teams of invocations that share a row, and where rows lie.
//!
//! A workgroup is cut in teams of `1 << bits` invocations. Of rows whose elements follow on each other a team's invocations are neighbours, so that subgroups can join what they
//! have: a team is a part of a subgroup, or some whole subgroups, since both are powers of two.

use trefoil_dsl::prelude::*;

/// Invocations of a workgroup, but where kernels say otherwise.
#[device]
pub const SIZE: usize = 256;
/// The most extents over which rows, or the elements of a row, are spread, besides the outermost.
pub const LEVELS: usize = 4;

/// How many bits a team's size has: `known`, a constant of the pipeline, by which what an invocation reads lies at known distances and loops over the team are written out; of 15, which no workgroup has, what was `told`.
#[device]
pub fn known_or(known: usize, told: usize) -> usize {
    if known < 15 { known } else { told }
}

/// Where an invocation stands in its workgroup, so that those of a subgroup are neighbours.
#[device]
pub fn standing() -> usize {
    if const { target::has(Feature::Subgroups) } {
        subgroup_index() * subgroup_size() + subgroup_lane()
    } else {
        local_index()
    }
}

/// The place of a position that counts over extents, the first of `extents` fastest, with their strides; behind these stands the stride of the outermost, whose extent nobody asks for.
#[device]
pub fn spread(position: usize, levels: usize, extents: [usize; 4], strides: [usize; 5]) -> usize {
    let mut rest = position;
    let mut place = 0;
    for level in 0..levels {
        place += rest % extents[level] * strides[level];
        rest /= extents[level];
    }
    place + rest * strides[4]
}

/// What all of a team have together, the same for each, in workgroups of `ACROSS` invocations: `join` of two values, `whole` of a subgroup's. It uses elements of `scratch` from `first` on, a multiple
/// of four, that no other call uses: as many as the workgroup has subgroups, and on devices without them as it has invocations. There is no barrier where a subgroup holds the team.
#[device]
pub fn of_team<const ACROSS: usize, J: Fn(f32, f32) -> f32, S: Fn(f32) -> f32>(
    value: f32,
    bits: usize,
    first: usize,
    scratch: &mut [f32],
    join: J,
    whole: S,
) -> f32 {
    let along = 1 << bits;
    let mut all = value;
    if const { target::has(Feature::Subgroups) } {
        if along >= subgroup_size() {
            all = whole(value);
        } else {
            let mut distance = 1;
            while distance < along {
                all = join(all, subgroup_shuffle_xor(all, distance as u32));
                distance *= 2;
            }
        }
        if along > subgroup_size() {
            if subgroup_lane() == 0 {
                scratch[first + subgroup_index()] = all;
            }
            barrier();
            let parts = along / subgroup_size();
            if parts == 8 {
                // Two loads and no loop: memory waits meanwhile.
                let from = first / 4 + (standing() >> bits) * 2;
                let low = scratch.vec4(from);
                let high = scratch.vec4(from + 1);
                all = join(
                    join(join(low.x, low.y), join(low.z, low.w)),
                    join(join(high.x, high.y), join(high.z, high.w)),
                );
            } else if ACROSS > SIZE && along == ACROSS && parts == 16 {
                // What the whole workgroup has, so that its place is known and needs no guard.
                let from = first / 4;
                let mut fours = [Vec4::splat(0.0); 4];
                for i in unroll(0..4) {
                    fours[i] = scratch.vec4(from + i);
                }
                let mut joined = [0.0; 4];
                for i in unroll(0..4) {
                    joined[i] = join(join(fours[i].x, fours[i].y), join(fours[i].z, fours[i].w));
                }
                all = join(join(joined[0], joined[1]), join(joined[2], joined[3]));
            } else if ACROSS > SIZE && along == ACROSS && parts == subgroup_size() {
                all = whole(scratch[first + subgroup_lane()]);
            } else {
                let from = first + (standing() >> bits) * parts;
                all = scratch[from];
                for part in 1..parts {
                    all = join(all, scratch[from + part]);
                }
            }
        }
    } else {
        let own = first + local_index();
        let at = local_index() & (along - 1);
        if along > 1 {
            scratch[own] = value;
            barrier();
            let mut half = along / 2;
            while half > 0 {
                if at < half {
                    scratch[own] = join(scratch[own], scratch[own + half]);
                }
                barrier();
                half /= 2;
            }
            all = scratch[own - at];
        }
    }
    all
}

/// The sum of a team's values, as [`of_team`].
#[device]
#[expect(clippy::redundant_closure, reason = "kernels pass functions of subgroups on in closures")]
pub fn sum_of_team<const ACROSS: usize>(value: f32, bits: usize, first: usize, scratch: &mut [f32]) -> f32 {
    of_team::<ACROSS, _, _>(value, bits, first, scratch, |a, b| a + b, |a| subgroup_add(a))
}

/// The largest of a team's values, as [`of_team`].
#[device]
#[expect(clippy::redundant_closure, reason = "kernels pass functions of subgroups on in closures")]
pub fn largest_of_team<const ACROSS: usize>(value: f32, bits: usize, first: usize, scratch: &mut [f32]) -> f32 {
    of_team::<ACROSS, _, _>(value, bits, first, scratch, max, |a| subgroup_max(a))
}

/// As [`of_team`], for teams whose invocations are `apart` in the workgroup and values of any type: `at` is this one's place in its team. It begins with a barrier.
#[device]
pub fn of_any_team<A: Number, J: Fn(A, A) -> A>(
    value: A,
    at: usize,
    along: usize,
    apart: usize,
    scratch: &mut [A],
    join: J,
) -> A {
    barrier();
    let own = local_index();
    scratch[own] = value;
    barrier();
    let mut half = along / 2;
    while half > 0 {
        if at < half {
            scratch[own] = join(scratch[own], scratch[own + half * apart]);
        }
        barrier();
        half /= 2;
    }
    scratch[own - at * apart]
}
