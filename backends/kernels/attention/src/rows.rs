//! Few queries: what counts is how fast keys and values are read, once for all rows that share them.
//!
//! **Who does what.** A workgroup has up to `ROWS` rows and a part of the keys. A *team* of 16 invocations takes a key: each has every sixteenth quad of it, of the value, and of every row and its sum. A product is added up over the
//! team, so that all of the team know a score; each team has a softmax of its own, corrected as it goes, and at the end the teams put together what they found.
//!
//! **Why it is fast.** An invocation asks for everything of several keys and their values at once, with `EARLY` while those before them are weighed, and there is no barrier before the end, where subgroups have 16 invocations or more. Elsewhere teams
//! add up through workgroup memory.
//!
//! **Targets.** As of [`super::tiled`].

use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, result, seen, share, sink_of, weight, wide};

/// Invocations of a team.
#[device]
const TEAM: usize = 16;
/// Teams of a workgroup.
#[device]
const TEAMS: usize = 8;

/// The sum over the team of each of four numbers, by way of workgroup memory.
#[device]
fn sum_in_memory(own: Vec4<f32>, at: usize, scratch: &mut [f32]) -> Vec4<f32> {
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
fn team_sum(own: Vec4<f32>, at: usize, scratch: &mut [f32]) -> Vec4<f32> {
    if const { target::has(Feature::Subgroups) } {
        if subgroup_size() < TEAM {
            sum_in_memory(own, at, scratch)
        } else {
            let eights = own + subgroup_shuffle_xor(own, 8);
            let fours = eights + subgroup_shuffle_xor(eights, 4);
            let twos = fours + subgroup_shuffle_xor(fours, 2);
            twos + subgroup_shuffle_xor(twos, 1)
        }
    } else {
        sum_in_memory(own, at, scratch)
    }
}

/// As [`super::tiled::attention_tiled`], of heads of at most `64 * QUADS` elements.
#[kernel(
    workgroup(128),
    targets(wgsl, spirv, cuda),
    volatile(cuda(k, v)),
    specialise(EARLY: bool = false; WHOLE: bool = false),
    instances(T = [f32, f16, bf16], ROWS = [1, 8], QUADS = [1, 2])
)]
pub fn attention_rows<T: Float, const ROWS: usize, const QUADS: usize>(
    q: &[T],
    k: &[T],
    v: &[T],
    bias: &[T],
    lengths: &[u32],
    sinks: &[T],
    out: &mut [T],
    parts: &mut [f32],
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
    // What teams add up; in the end each team's sum of a row, its largest score and its sum of weights.
    let mut shared = workgroup_array::<f32>(TEAMS * 132);
    let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    let (quads, value_quads) = (sizes[4], sizes[5]);
    let rows = group * queries;
    let blocks = rows.div_ceil(ROWS);
    let first_row = group_index() % blocks * ROWS;
    let part = group_index() / blocks % cut;
    let key_head = group_index() / (blocks * cut) % key_heads;
    let batch = group_index() / (blocks * cut * key_heads);
    // Lanes of a subgroup that are neighbours are of one team.
    let mut at = local_index();
    if const { target::has(Feature::Subgroups) } {
        at = subgroup_index() * subgroup_size() + subgroup_lane();
    }
    let (lane, team) = (at % TEAM, at / TEAM);

    let count = key_count(lengths, batch, keys);
    let position = first_position(offset, from_end, count, queries);
    let last_row = min(first_row + ROWS, rows) - 1;
    let first_seen = seen(position + (first_row / group) as i32, count, window);
    let last_seen = seen(position + (last_row / group) as i32, count, window);
    let (low, high) = (first_seen.x, max(first_seen.y, last_seen.y));
    let each = (high - low).div_ceil(cut);
    let from = min(low + part * each, high);
    let to = min(from + each, high);
    let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / 4;
    let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / 4;
    let k_step = k_strides[2] / 4;
    let v_step = v_strides[2] / 4;

    let mut own = [Vec4::splat(0.0); 16];
    let mut sums = [Vec4::splat(0.0); 16];
    let mut largest = [f32::NEG_INFINITY; ROWS];
    let mut totals = [0.0; ROWS];
    let mut ends = [Vec2::new(0usize, 0usize); ROWS];
    let mut added = [0usize; ROWS];
    for r in unroll(0..ROWS) {
        let row = first_row + r;
        let head = key_head * group + row % group;
        let first = (batch * q_strides[0] + head * q_strides[1] + row / group * q_strides[2]) / 4;
        for i in unroll(0..QUADS) {
            let quad = lane + i * TEAM;
            own[r * QUADS + i] = wide(q.vec4(select(row < rows && quad < quads, first + quad, q.len()))) * scale;
        }
        ends[r] = seen(position + (row / group) as i32, count, window);
        added[r] = batch * bias_strides[0] + head * bias_strides[1] + row / group * bias_strides[2];
    }

    // Four keys of a team at a time. No read asks whether it is in range: behind the last key it is that one again, whose weight is nothing then, and beside a head of fewer elements, where
    // not all lanes have one (`WHOLE`), its last ones, which count as zeros and of which nobody writes a sum.
    let (k_quads, v_quads) = (k.len() / 4, v.len() / 4);
    let mut k_at = [0usize; QUADS];
    let mut v_at = [0usize; QUADS];
    for i in unroll(0..QUADS) {
        k_at[i] = k_first + min(lane + i * TEAM, max(quads, 1) - 1);
        v_at[i] = v_first + min(lane + i * TEAM, max(value_quads, 1) - 1);
    }
    if k_quads > 0 && v_quads > 0 {
        let mut next_k = [Vec4::splat(T::lit(0.0)); 8];
        let mut next_v = [Vec4::splat(T::lit(0.0)); 8];
        if EARLY {
            for n in unroll(0..4) {
                let key = min(from + n * TEAMS + team, to - 1);
                for i in unroll(0..QUADS) {
                    next_k[n * QUADS + i] = k.vec4(min(k_at[i] + key * k_step, k_quads - 1));
                }
                for i in unroll(0..QUADS) {
                    next_v[n * QUADS + i] = v.vec4(min(v_at[i] + key * v_step, v_quads - 1));
                }
            }
        }
        for start in (from..to).step_by(4 * TEAMS) {
            let mut read_k = next_k;
            let mut read_v = next_v;
            let ahead = if EARLY { start + 4 * TEAMS } else { start };
            for n in unroll(0..4) {
                let key = min(ahead + n * TEAMS + team, to - 1);
                for i in unroll(0..QUADS) {
                    next_k[n * QUADS + i] = k.vec4(min(k_at[i] + key * k_step, k_quads - 1));
                }
                for i in unroll(0..QUADS) {
                    next_v[n * QUADS + i] = v.vec4(min(v_at[i] + key * v_step, v_quads - 1));
                }
            }
            if !EARLY {
                read_k = next_k;
                read_v = next_v;
            }
            for r in unroll(0..ROWS) {
                let mut products = Vec4::splat(0.0);
                for n in unroll(0..4) {
                    let mut product = Vec4::splat(0.0);
                    for i in unroll(0..QUADS) {
                        let mut quad = wide(read_k[n * QUADS + i]);
                        if !WHOLE {
                            // An infinity times zero is none.
                            quad = select(lane + i * TEAM < quads, quad, Vec4::splat(0.0));
                        }
                        product = quad * own[r * QUADS + i] + product;
                    }
                    products[n] = (product.x + product.y) + (product.z + product.w);
                }
                let mut scores = team_sum(products, at, &mut shared);
                let mut most = largest[r];
                for n in unroll(0..4) {
                    let key = start + n * TEAMS + team;
                    let mut score = capped(scores[n], cap);
                    if !bias.is_empty() {
                        let place =
                            select(key < to && first_row + r < rows, added[r] + key * bias_strides[3], bias.len());
                        score = biased(score, bias[place].to_f32());
                    }
                    if key < ends[r].x || key >= min(ends[r].y, to) {
                        score = f32::NEG_INFINITY;
                    }
                    scores[n] = score;
                    most = max(most, score);
                }
                let shrink = weight(largest[r], most);
                let mut total = totals[r] * shrink;
                for i in unroll(0..QUADS) {
                    sums[r * QUADS + i] = sums[r * QUADS + i] * shrink;
                }
                for n in unroll(0..4) {
                    let own_weight = weight(scores[n], most);
                    total += own_weight;
                    for i in unroll(0..QUADS) {
                        sums[r * QUADS + i] = wide(read_v[n * QUADS + i]) * own_weight + sums[r * QUADS + i];
                    }
                }
                largest[r] = most;
                totals[r] = total;
            }
        }
    }

    for r in unroll(0..ROWS) {
        barrier();
        for i in unroll(0..QUADS) {
            shared.set_vec4(team * 33 + lane + i * TEAM, sums[r * QUADS + i]);
        }
        if lane == 0 {
            shared[team * 132 + 128] = largest[r];
            shared[team * 132 + 129] = totals[r];
        }
        barrier();
        let row = first_row + r;
        let quad = local_index();
        if row < rows && quad < value_quads {
            let mut most = f32::NEG_INFINITY;
            for other in unroll(0..TEAMS) {
                most = max(most, shared[other * 132 + 128]);
            }
            let mut total = 0.0;
            let mut sum = Vec4::splat(0.0);
            for other in unroll(0..TEAMS) {
                let factor = weight(shared[other * 132 + 128], most);
                total += shared[other * 132 + 129] * factor;
                sum = shared.vec4(other * 33 + quad) * factor + sum;
            }
            if cut == 1 {
                let head = key_head * group + row % group;
                let out_first = (batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
                out.set_vec4(out_first + quad, result(sum, share(most, total, sink_of(sinks, head))));
            } else {
                let slot = ((batch * key_heads + key_head) * rows + row) * cut + part;
                parts.set_vec4(slot * value_quads + quad, sum);
                if quad == 0 {
                    parts[sizes[6] * value_quads * 4 + slot * 2] = most;
                    parts[sizes[6] * value_quads * 4 + slot * 2 + 1] = total;
                }
            }
        }
    }
}
