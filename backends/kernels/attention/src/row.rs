//! One query of many keys: what counts is how fast keys and values are read.
//!
//! **Who does what.** A workgroup has a row and a part of the keys. A *team* of `TEAM` invocations takes a key: each has eight elements of it, of the value, of the row and of its sum, in pieces of 16 bytes: two pieces of `f32` a
//! team apart, or one of halves. A product is added up over the team, so that all of the team know a score; each team has a softmax of its own, corrected as it goes, and at the end the teams put together what they found.
//!
//! **Why it is fast.** An invocation asks for everything of several keys and their values at once, with `EARLY` while those before them are weighed, and there is no barrier before the end, where subgroups have as many invocations as teams.
//! Elsewhere teams add up through workgroup memory.
//!
//! **Parts.** Where several workgroups share the keys of a row, each leaves a sum of weighted values, its largest score and its sum of weights in `parts`, and then counts itself: one invocation adds to the row's counter, behind a barrier,
//! which releases what all of its workgroup wrote and acquires what those released that were counted before. Whoever finds all others counted joins the parts: nobody waits for another, and it takes no second launch. Parts are joined in an order that depends on
//! their number alone, so that a result is the same whoever comes last. That one puts the counter back to 0, as it was found. WGSL has no atomics that order other memory: there the parts are left for [`super::join`].
//!
//! **Targets.** As of [`super::tiled`].

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use super::{
    add_part, biased, capped, first_position, has_seen, key_count, result, seen, share, sink_of, weight, wide,
};

use trefoil_kernels_common::pieces::{four_bf16, four_f16, four_f32};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 128;
/// Elements of a head that an invocation has.
#[device]
pub const ELEMENTS: usize = 8;
/// Parts of a row of which an invocation asks for everything before it uses the first.
#[device]
const PARTS: usize = 4;

/// The sum over the team of each of four numbers, by way of workgroup memory.
#[device]
fn sum_in_memory<const TEAM: usize>(own: Vec4<f32>, at: usize, scratch: &mut [f32]) -> Vec4<f32> {
    scratch.set_vec4(at, own);
    barrier();
    let mut sum = Vec4::splat(0.0);
    for other in unroll(0..TEAM) {
        sum += scratch.vec4(at / TEAM * TEAM + other);
    }
    barrier();
    sum
}

/// The sum over the team of each of four numbers. All of the workgroup get here.
#[device]
fn team_sum<const TEAM: usize>(own: Vec4<f32>, at: usize, scratch: &mut [f32]) -> Vec4<f32> {
    if const { target::has(Feature::Subgroups) } {
        if subgroup_size() < TEAM {
            sum_in_memory::<TEAM>(own, at, scratch)
        } else {
            let eights = if TEAM > 8 { own + subgroup_shuffle_xor(own, 8) } else { own };
            let fours = eights + subgroup_shuffle_xor(eights, 4);
            let twos = fours + subgroup_shuffle_xor(fours, 2);
            twos + subgroup_shuffle_xor(twos, 1)
        }
    } else {
        sum_in_memory::<TEAM>(own, at, scratch)
    }
}

/// Makes kernels of an element type, of which so many quads are a piece, whose teams take so many keys at once: one that leaves parts of a row where they are, and one that joins them; and the list of all.
macro_rules! row {
    ($($name:ident $joining:ident $element:ident $four:ident: $quads:tt quads, $keys:tt keys;)*) => {
        $(
            row! { @kernel $name [targets(wgsl)] [$element $four $quads $keys] }
            row! { @kernel $joining [targets(spirv, cuda), no_robustness, volatile(cuda(k, v))] [$element $four $quads $keys] counters }
        )*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS, $joining::KERNELS),*].concat()
        }
    };
    (@kernel $name:ident [$($attribute:tt)*] [$element:ident $four:ident $quads:tt $keys:tt] $($counters:ident)?) => {
        /// As the kernel of [`super::tiled`], of heads of at most `ELEMENTS * TEAM` elements; keys and values are of whole pieces, and begin at pieces. With `counters`, one for each row, which are zeros before and after it, no parts are left to be joined.
        #[kernel(
            workgroup(SIZE),
            $($attribute)*,
            specialise(EARLY: bool = false; WHOLE: bool = false),
            instances(TEAM = [8, 16])
        )]
        pub fn $name<const TEAM: usize>(
            q: &[$element],
            k: &[Vec4<u32>],
            v: &[Vec4<u32>],
            bias: &[$element],
            lengths: &[u32],
            sinks: &[$element],
            out: &mut [$element],
            parts: &mut [f32],
            $($counters: &[Atomic<u32>],)?
            sizes: [usize; 7],
            q_strides: [usize; 3],
            k_strides: [usize; 3],
            v_strides: [usize; 3],
            out_strides: [usize; 3],
            bias_strides: [usize; 4],
            scale: f32,
            cap: f32,
            offset: i32,
            from_end: bool,
            window: [i32; 2],
            cut: usize,
        ) {
            // What teams add up; in the end each team's sum, its largest score and its sum of weights.
            let mut shared = workgroup_array::<f32>(SIZE / TEAM * 132);
            let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
            let (quads, value_quads) = (sizes[4], sizes[5]);
            let teams = SIZE / TEAM;
            // Of a key an invocation has so many pieces.
            let pieces = 2 / $quads;
            let rows = group * queries;
            let row = group_index() % rows;
            let part = group_index() / rows % cut;
            let key_head = group_index() / (rows * cut) % key_heads;
            let batch = group_index() / (rows * cut * key_heads);
            let head = key_head * group + row % group;
            // Lanes of a subgroup that are neighbours are of one team.
            let mut at = local_index();
            if const { target::has(Feature::Subgroups) } {
                at = subgroup_index() * subgroup_size() + subgroup_lane();
            }
            let (lane, team) = (at % TEAM, at / TEAM);

            let count = key_count(lengths, batch, keys);
            let position = first_position(offset, from_end, count, queries) + (row / group) as i32;
            let own_seen = seen(position, count, window);
            let (low, high) = (own_seen.x, own_seen.y);
            let each = (high - low).div_ceil(cut);
            let from = min(low + part * each, high);
            let to = min(from + each, high);
            let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / (4 * $quads);
            let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / (4 * $quads);
            let k_step = k_strides[2] / (4 * $quads);
            let v_step = v_strides[2] / (4 * $quads);

            let mut own = [Vec4::splat(0.0); 2];
            let mut sums = [Vec4::splat(0.0); 2];
            let mut largest = f32::NEG_INFINITY;
            let mut total = 0.0;
            let first = (batch * q_strides[0] + head * q_strides[1] + row / group * q_strides[2]) / 4;
            for i in unroll(0..2) {
                let quad = (lane + i / $quads * TEAM) * $quads + i % $quads;
                own[i] = wide(q.vec4(select(quad < quads, first + quad, q.len()))) * scale;
            }
            let added = batch * bias_strides[0] + head * bias_strides[1] + row / group * bias_strides[2];

            // No read asks whether it is in range: behind the last key it is that one again, whose weight is nothing then, and beside a head of fewer elements, where
            // not all lanes have one (`WHOLE`), its last ones, which count as zeros and of which nobody writes a sum.
            let mut k_at = [0usize; 2 / $quads];
            let mut v_at = [0usize; 2 / $quads];
            for p in unroll(0..2 / $quads) {
                k_at[p] = k_first + min(lane + p * TEAM, max(quads / $quads, 1) - 1);
                v_at[p] = v_first + min(lane + p * TEAM, max(value_quads / $quads, 1) - 1);
            }
            if k.len() > 0 && v.len() > 0 {
                let mut next_k = [Vec4::<u32>::splat(0); $keys * 2 / $quads];
                let mut next_v = [Vec4::<u32>::splat(0); $keys * 2 / $quads];
                if EARLY {
                    for n in unroll(0..$keys) {
                        let key = min(from + n * teams + team, to - 1);
                        for p in unroll(0..2 / $quads) {
                            next_k[n * pieces + p] = k[min(k_at[p] + key * k_step, k.len() - 1)];
                        }
                        for p in unroll(0..2 / $quads) {
                            next_v[n * pieces + p] = v[min(v_at[p] + key * v_step, v.len() - 1)];
                        }
                    }
                }
                for start in (from..to).step_by(SIZE / TEAM * $keys) {
                    let mut read_k = next_k;
                    let mut read_v = next_v;
                    let ahead = if EARLY { start + $keys * teams } else { start };
                    for n in unroll(0..$keys) {
                        let key = min(ahead + n * teams + team, to - 1);
                        for p in unroll(0..2 / $quads) {
                            next_k[n * pieces + p] = k[min(k_at[p] + key * k_step, k.len() - 1)];
                        }
                        for p in unroll(0..2 / $quads) {
                            next_v[n * pieces + p] = v[min(v_at[p] + key * v_step, v.len() - 1)];
                        }
                    }
                    if !EARLY {
                        read_k = next_k;
                        read_v = next_v;
                    }
                    // Behind the last key the last value was read again: an infinity times the weight of nothing is none.
                    if start + $keys * teams > to {
                        for n in unroll(0..$keys) {
                            if start + n * teams + team >= to {
                                for p in unroll(0..2 / $quads) {
                                    read_v[n * pieces + p] = Vec4::<u32>::splat(0);
                                }
                            }
                        }
                    }
                    let mut scores = [0.0; $keys];
                    let mut most = largest;
                    // A sum over the team is of four keys.
                    for four in unroll(0..$keys / 4) {
                        let mut products = Vec4::splat(0.0);
                        for n in unroll(0..4) {
                            let mut product = Vec4::splat(0.0);
                            for i in unroll(0..2) {
                                let mut quad = $four(read_k[(four * 4 + n) * pieces + i / $quads], i % $quads);
                                if !WHOLE {
                                    // An infinity times zero is none.
                                    let here = (lane + i / $quads * TEAM) * $quads + i % $quads;
                                    quad = select(here < quads, quad, Vec4::splat(0.0));
                                }
                                product = quad * own[i] + product;
                            }
                            products[n] = (product.x + product.y) + (product.z + product.w);
                        }
                        let summed = team_sum::<TEAM>(products, at, &mut shared);
                        for n in unroll(0..4) {
                            let key = start + (four * 4 + n) * teams + team;
                            let mut score = capped(summed[n], cap);
                            if !bias.is_empty() {
                                let place = select(key < to, added + key * bias_strides[3], bias.len());
                                score = biased(score, bias[place].to_f32());
                            }
                            if key < low || key >= to {
                                score = f32::NEG_INFINITY;
                            }
                            scores[four * 4 + n] = score;
                            most = max(most, score);
                        }
                    }
                    let shrink = weight(largest, most);
                    total *= shrink;
                    for i in unroll(0..2) {
                        sums[i] = sums[i] * shrink;
                    }
                    for n in unroll(0..$keys) {
                        let own_weight = weight(scores[n], most);
                        total += own_weight;
                        for i in unroll(0..2) {
                            sums[i] = $four(read_v[n * pieces + i / $quads], i % $quads) * own_weight + sums[i];
                        }
                    }
                    largest = most;
                }
            }

            barrier();
            for i in unroll(0..2) {
                shared.set_vec4(team * 33 + (lane + i / $quads * TEAM) * $quads + i % $quads, sums[i]);
            }
            if lane == 0 {
                shared[team * 132 + 128] = largest;
                shared[team * 132 + 129] = total;
            }
            barrier();
            let own_row = (batch * key_heads + key_head) * rows + row;
            let out_first = (batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
            let quad = local_index();
            if quad < value_quads {
                let mut most = f32::NEG_INFINITY;
                for other in unroll(0..SIZE / TEAM) {
                    most = max(most, shared[other * 132 + 128]);
                }
                let mut total = 0.0;
                let mut sum = Vec4::splat(0.0);
                for other in unroll(0..SIZE / TEAM) {
                    let factor = weight(shared[other * 132 + 128], most);
                    total += shared[other * 132 + 129] * factor;
                    sum = shared.vec4(other * 33 + quad) * factor + sum;
                }
                if cut == 1 {
                    out.set_vec4(out_first + quad, result(sum, share(most, total, sink_of(sinks, head))));
                } else {
                    let slot = own_row * cut + part;
                    parts.set_vec4(slot * value_quads + quad, sum);
                    if quad == 0 {
                        parts[sizes[6] * value_quads * 4 + slot * 2] = most;
                        parts[sizes[6] * value_quads * 4 + slot * 2 + 1] = total;
                    }
                }
            }
            $(
                let mut agreed = workgroup_array::<u32>(1);
                if cut > 1 {
                    // What all of the workgroup have written comes before what one of them releases; and what teams left is read.
                    barrier();
                    if local_index() == 0 {
                        agreed[0] = $counters[own_row].add_acq_rel(1);
                    }
                    // What that one acquires comes before what all of the workgroup read behind the barrier in this.
                    let before = workgroup_uniform_load(&agreed[0]) as usize;
                    if before + 1 == cut {
                        if local_index() == 0 {
                            $counters[own_row].store(0);
                        }
                        // A row has at most twice as many quads as a team has invocations. That many have one each, and those beside them share its parts.
                        let own_quad = local_index() % (2 * TEAM);
                        let sharer = local_index() / (2 * TEAM);
                        let first = own_row * cut;
                        let stats = sizes[6] * value_quads * 2 + first;
                        let mut largest = f32::NEG_INFINITY;
                        let mut total = 0.0;
                        let mut sum = Vec4::splat(0.0);
                        if own_quad < value_quads {
                            for start in (0..cut).step_by(PARTS * SIZE / (2 * TEAM)) {
                                let mut told = [Vec2::new(0.0, 0.0); PARTS];
                                let mut read = [Vec4::splat(0.0); PARTS];
                                for i in unroll(0..PARTS) {
                                    // Behind the last part it is that one again, which is not counted twice.
                                    let other = min(start + i * SIZE / (2 * TEAM) + sharer, cut - 1);
                                    told[i] = parts.vec2(stats + other);
                                    read[i] = parts.vec4((first + other) * value_quads + own_quad);
                                }
                                for i in unroll(0..PARTS) {
                                    if start + i * SIZE / (2 * TEAM) + sharer < cut && has_seen(told[i].x, told[i].y) {
                                        add_part(&mut largest, &mut total, &mut sum, told[i].x, told[i].y, read[i]);
                                    }
                                }
                            }
                        }
                        let scores = SIZE * 4;
                        shared.set_vec4(local_index(), sum);
                        shared[scores + local_index() * 2] = largest;
                        shared[scores + local_index() * 2 + 1] = total;
                        barrier();
                        if sharer == 0 && own_quad < value_quads {
                            for other in unroll(1..SIZE / (2 * TEAM)) {
                                let place = local_index() + other * (2 * TEAM);
                                let (score, weights) = (shared[scores + place * 2], shared[scores + place * 2 + 1]);
                                add_part(&mut largest, &mut total, &mut sum, score, weights, shared.vec4(place));
                            }
                            out.set_vec4(out_first + own_quad, result(sum, share(largest, total, sink_of(sinks, head))));
                        }
                    }
                }
            )?
        }
    };
}

// As much of keys and values as registers have room for.
row! {
    attention_row_f32 attention_row_joining_f32 f32 four_f32: 1 quads, 4 keys;
    attention_row_f16 attention_row_joining_f16 f16 four_f16: 2 quads, 8 keys;
    attention_row_bf16 attention_row_joining_bf16 bf16 four_bf16: 2 quads, 8 keys;
}
