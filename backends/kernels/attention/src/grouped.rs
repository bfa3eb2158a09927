//! Several queries of the same keys, such as those of all heads that share a head of keys: what counts is that a multiprocessor reads keys and values once, and does little else for each of them.
//!
//! **Who does what.** A workgroup has 2, 4 or 8 rows and a part of the keys. A *team* of `TEAM` invocations takes several keys at once: each has eight elements of them, of their values and of every row's sum, in pieces of 16 bytes, as in
//! [`super::row`]; the queries lie in workgroup memory, where all teams read the same ones.
//!
//! **Scores** of so many rows and keys would keep a team busy if each of its invocations knew them all. So products are added up over the team in halves: with every exchange an invocation gives away half of its sums and adds up the others,
//! until it has one, two or four (`team_sums`). For these alone it looks at masks and takes a power of two; then the team hands weights round (`handed_round`). That is two exchanges for a row and a key, where a sum that all know takes four.
//!
//! **Softmax.** An invocation has keys of one row, so that it keeps one largest score, which it shares with its neighbours of that row, and its own sum of weights. At the end teams put together what they found, two rows at a time.
//!
//! **Memory.** The next keys are asked for as soon as products are there, into the registers that held those before, and the next values as soon as the last were weighed: something is on its way all the time, and nothing is held twice.
//!
//! **Targets.** As of [`super::row`]; where subgroups are smaller than teams, or none are there, teams exchange through workgroup memory.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, result, seen, share, sink_of, weight, wide};

use trefoil_kernels_common::pieces::{four_bf16, four_f16, four_f32};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 128;

/// Whether a team lies within a subgroup.
#[device]
fn together<const TEAM: usize>() -> bool {
    if const { target::has(Feature::Subgroups) } { subgroup_size() >= TEAM } else { false }
}

/// Sums over the team of each of `PAIRS` numbers, `KEYS` of each row, by way of workgroup memory. An invocation gets its part of them, `PAIRS / TEAM` in the order of their indices and of invocations, at the front; what is behind them means nothing.
#[device]
fn sums_in_memory<const TEAM: usize, const KEYS: usize, const PAIRS: usize>(
    own: [f32; PAIRS],
    at: usize,
    scratch: &mut [f32],
) -> [f32; PAIRS] {
    let mut sums = own;
    let first = at % TEAM * (PAIRS / TEAM);
    for row in unroll(0..PAIRS / KEYS) {
        for key in unroll(0..KEYS) {
            scratch[at * KEYS + key] = own[row * KEYS + key];
        }
        barrier();
        if first / KEYS == row {
            for i in unroll(0..PAIRS / TEAM) {
                let mut sum = 0.0;
                for other in 0..TEAM {
                    sum += scratch[(at / TEAM * TEAM + other) * KEYS + first % KEYS + i];
                }
                sums[i] = sum;
            }
        }
        barrier();
    }
    sums
}

/// As [`sums_in_memory`], by exchanges within the subgroup where a team lies within one. All of the workgroup get here.
#[device]
fn team_sums<const TEAM: usize, const KEYS: usize, const PAIRS: usize>(
    own: [f32; PAIRS],
    at: usize,
    scratch: &mut [f32],
) -> [f32; PAIRS] {
    if const { target::has(Feature::Subgroups) } {
        let mut sums = own;
        if together::<TEAM>() {
            for step in unroll(1..5) {
                let other = TEAM >> step;
                if other > 0 {
                    let upper = at & other != 0;
                    for i in unroll(0..PAIRS / 2) {
                        let half = PAIRS >> step;
                        if i < half {
                            let kept = select(upper, sums[half + i], sums[i]);
                            let given = select(upper, sums[i], sums[half + i]);
                            sums[i] = kept + subgroup_shuffle_xor(given, other as u32);
                        }
                    }
                }
            }
        } else {
            sums = sums_in_memory::<TEAM, KEYS, PAIRS>(own, at, scratch);
        }
        sums
    } else {
        sums_in_memory::<TEAM, KEYS, PAIRS>(own, at, scratch)
    }
}

/// As [`handed_round`], by way of workgroup memory.
#[device]
fn handed_round_in_memory<const TEAM: usize, const COUNT: usize>(
    own: [f32; COUNT],
    at: usize,
    scratch: &mut [f32],
) -> [f32; COUNT] {
    let mut all = own;
    let each = if COUNT > TEAM { COUNT / TEAM } else { 1 };
    for i in unroll(0..COUNT) {
        if i < each {
            scratch[at * each + i] = own[i];
        }
    }
    barrier();
    for i in unroll(0..COUNT) {
        all[i] = scratch[(at / TEAM * TEAM + i * TEAM / COUNT) * each + i % each];
    }
    barrier();
    all
}

/// All `COUNT` numbers of the team, of which each invocation has its part, `COUNT / TEAM` from the front of `own` on; where there are fewer numbers than invocations, neighbours have the same one. All of the workgroup get here.
#[device]
fn handed_round<const TEAM: usize, const COUNT: usize>(
    own: [f32; COUNT],
    at: usize,
    scratch: &mut [f32],
) -> [f32; COUNT] {
    if const { target::has(Feature::Subgroups) } {
        let mut all = own;
        if together::<TEAM>() {
            let each = if COUNT > TEAM { COUNT / TEAM } else { 1 };
            let first = subgroup_lane() / TEAM * TEAM;
            for i in unroll(0..COUNT) {
                all[i] = subgroup_shuffle(own[i % each], (first + i * TEAM / COUNT) as u32);
            }
        } else {
            all = handed_round_in_memory::<TEAM, COUNT>(own, at, scratch);
        }
        all
    } else {
        handed_round_in_memory::<TEAM, COUNT>(own, at, scratch)
    }
}

/// As [`row_max`], by way of workgroup memory.
#[device]
fn row_max_in_memory<const TEAM: usize, const ROWS: usize>(own: f32, at: usize, scratch: &mut [f32]) -> f32 {
    scratch[at] = own;
    barrier();
    let mut most = own;
    let sharers = TEAM / ROWS;
    for other in 0..sharers {
        most = max(most, scratch[at / sharers * sharers + other]);
    }
    barrier();
    most
}

/// The largest of the numbers of those of a team that have the same row, of `ROWS`. All of the workgroup get here.
#[device]
fn row_max<const TEAM: usize, const ROWS: usize>(own: f32, at: usize, scratch: &mut [f32]) -> f32 {
    if const { target::has(Feature::Subgroups) } {
        let mut most = own;
        if together::<TEAM>() {
            for step in unroll(0..3) {
                if 1 << step < TEAM / ROWS {
                    most = max(most, subgroup_shuffle_xor(most, 1 << step));
                }
            }
        } else {
            most = row_max_in_memory::<TEAM, ROWS>(own, at, scratch);
        }
        most
    } else {
        row_max_in_memory::<TEAM, ROWS>(own, at, scratch)
    }
}

/// Makes kernels of an element type, of which so many quads are a piece, for so many rows, whose teams take so many keys at once, which makes so many pairs of a row and a key; and the list of them.
macro_rules! grouped {
    ($($name:ident $element:ident $four:ident: $rows:literal rows, $quads:literal quads, $keys:literal keys, $pairs:literal pairs;)*) => {
        $(
            /// As the kernel of [`super::tiled`], of heads of at most `ELEMENTS * TEAM` elements; keys and values are of whole pieces, and begin at pieces.
            #[kernel(
                workgroup(SIZE),
                targets(wgsl, spirv, cuda),
                no_robustness,
                volatile(cuda(k, v)),
                specialise(WHOLE: bool = false),
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
                // Quads of a head, and one so that teams do not write to the same banks.
                let line = 2 * TEAM + 1;
                let mut queries = workgroup_array::<f32>($rows * TEAM * 8);
                // What teams exchange; in the end each team's sums of two rows.
                let mut shared = workgroup_array::<f32>(SIZE / TEAM * 2 * (2 * TEAM + 1) * 4);
                // Each invocation's largest score and sum of weights.
                let mut told = workgroup_array::<f32>(SIZE * 2);
                let (group, key_heads, own_queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
                let (quads, value_quads) = (sizes[4], sizes[5]);
                let teams = SIZE / TEAM;
                // Of a key an invocation has so many pieces.
                let pieces = 2 / $quads;
                let rows = group * own_queries;
                let blocks = rows.div_ceil($rows);
                let first_row = group_index() % blocks * $rows;
                let part = group_index() / blocks % cut;
                let key_head = group_index() / (blocks * cut) % key_heads;
                let batch = group_index() / (blocks * cut * key_heads);
                // Lanes of a subgroup that are neighbours are of one team.
                let mut at = local_index();
                if const { target::has(Feature::Subgroups) } {
                    at = subgroup_index() * subgroup_size() + subgroup_lane();
                }
                let (lane, team) = (at % TEAM, at / TEAM);

                for start in (0..$rows * TEAM * 2).step_by(SIZE) {
                    let place = start + local_index();
                    let (row, quad) = (first_row + place / (TEAM * 2), place % (TEAM * 2));
                    let head = key_head * group + row % group;
                    let first = (batch * q_strides[0] + head * q_strides[1] + row / group * q_strides[2]) / 4;
                    let here = row < rows && quad < quads;
                    if place < $rows * TEAM * 2 {
                        queries.set_vec4(place, wide(q.vec4(select(here, first + quad, q.len()))) * scale);
                    }
                }
                barrier();

                let count = key_count(lengths, batch, keys);
                let position = first_position(offset, from_end, count, own_queries);
                let last_row = min(first_row + $rows, rows) - 1;
                let first_seen = seen(position + (first_row / group) as i32, count, window);
                let last_seen = seen(position + (last_row / group) as i32, count, window);
                let (low, high) = (first_seen.x, max(first_seen.y, last_seen.y));
                let each = (high - low).div_ceil(cut);
                let from = min(low + part * each, high);
                let to = min(from + each, high);
                let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / (4 * $quads);
                let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / (4 * $quads);
                let k_step = k_strides[2] / (4 * $quads);
                let v_step = v_strides[2] / (4 * $quads);

                // Of the team's pairs an invocation has some of one row, from a key on.
                let own_pairs = $pairs / TEAM;
                let own_row = first_row + lane / (TEAM / $rows);
                let own_key = lane * own_pairs % $keys;
                let own_seen = seen(position + (own_row / group) as i32, count, window);
                let own_head = key_head * group + own_row % group;
                let added = batch * bias_strides[0] + own_head * bias_strides[1] + own_row / group * bias_strides[2];
                let mut largest = f32::NEG_INFINITY;
                let mut total = 0.0;
                let mut sums = [Vec4::splat(0.0); $rows * 2];

                // No read asks whether it is in range: behind the last key it is that one again, whose weight is nothing then, and beside a head of fewer elements, where
                // not all lanes have one (`WHOLE`), its last ones, which count as zeros and of which nobody writes a sum.
                let mut k_at = [0usize; 2 / $quads];
                let mut v_at = [0usize; 2 / $quads];
                for p in unroll(0..2 / $quads) {
                    k_at[p] = k_first + min(lane + p * TEAM, max(quads / $quads, 1) - 1);
                    v_at[p] = v_first + min(lane + p * TEAM, max(value_quads / $quads, 1) - 1);
                }
                if k.len() > 0 && v.len() > 0 {
                    let mut read_k = [Vec4::<u32>::splat(0); $keys * 2 / $quads];
                    let mut read_v = [Vec4::<u32>::splat(0); $keys * 2 / $quads];
                    for n in unroll(0..$keys) {
                        let key = min(from + n * teams + team, to - 1);
                        for p in unroll(0..2 / $quads) {
                            read_k[n * pieces + p] = k[min(k_at[p] + key * k_step, k.len() - 1)];
                        }
                    }
                    for n in unroll(0..$keys) {
                        let key = min(from + n * teams + team, to - 1);
                        for p in unroll(0..2 / $quads) {
                            read_v[n * pieces + p] = v[min(v_at[p] + key * v_step, v.len() - 1)];
                        }
                    }
                    for start in (from..to).step_by(SIZE / TEAM * $keys) {
                        let ahead = start + $keys * teams;
                        let mut products = [0.0; $pairs];
                        for i in unroll(0..2) {
                            let place = (lane + i / $quads * TEAM) * $quads + i % $quads;
                            for n in unroll(0..$keys) {
                                let mut quad = $four(read_k[n * pieces + i / $quads], i % $quads);
                                if !WHOLE {
                                    // An infinity times zero is none.
                                    quad = select(place < quads, quad, Vec4::splat(0.0));
                                }
                                for r in unroll(0..$rows) {
                                    let query = queries.vec4(r * TEAM * 2 + place);
                                    let mut product = quad.x * query.x + products[r * $keys + n];
                                    product = quad.y * query.y + product;
                                    product = quad.z * query.z + product;
                                    products[r * $keys + n] = quad.w * query.w + product;
                                }
                            }
                        }
                        // The next ones, into the same registers.
                        for n in unroll(0..$keys) {
                            let key = min(ahead + n * teams + team, to - 1);
                            for p in unroll(0..2 / $quads) {
                                read_k[n * pieces + p] = k[min(k_at[p] + key * k_step, k.len() - 1)];
                            }
                        }

                        let mut scores = team_sums::<TEAM, $keys, $pairs>(products, at, &mut shared);
                        let mut most = largest;
                        for i in unroll(0..$pairs) {
                            if i < own_pairs {
                                let key = start + (own_key + i) * teams + team;
                                let mut score = capped(scores[i], cap);
                                if !bias.is_empty() {
                                    let reads = key < to && own_row < rows;
                                    let place = select(reads, added + key * bias_strides[3], bias.len());
                                    score = biased(score, bias[place].to_f32());
                                }
                                if key < own_seen.x || key >= min(own_seen.y, to) {
                                    score = f32::NEG_INFINITY;
                                }
                                scores[i] = score;
                                most = max(most, score);
                            }
                        }
                        most = row_max::<TEAM, $rows>(most, at, &mut shared);
                        let shrink = weight(largest, most);
                        total *= shrink;
                        largest = most;
                        for i in unroll(0..$pairs) {
                            if i < own_pairs {
                                scores[i] = weight(scores[i], most);
                                total += scores[i];
                            }
                        }
                        let weights = handed_round::<TEAM, $pairs>(scores, at, &mut shared);
                        let shrinks = handed_round::<TEAM, $rows>([shrink; $rows], at, &mut shared);
                        // Behind the last key the last value was read again: an infinity times the weight of nothing is none.
                        if ahead > to {
                            for n in unroll(0..$keys) {
                                if start + n * teams + team >= to {
                                    for p in unroll(0..2 / $quads) {
                                        read_v[n * pieces + p] = Vec4::<u32>::splat(0);
                                    }
                                }
                            }
                        }
                        for i in unroll(0..2) {
                            for r in unroll(0..$rows) {
                                sums[r * 2 + i] = sums[r * 2 + i] * shrinks[r];
                            }
                            for n in unroll(0..$keys) {
                                let value = $four(read_v[n * pieces + i / $quads], i % $quads);
                                for r in unroll(0..$rows) {
                                    sums[r * 2 + i] = value * weights[r * $keys + n] + sums[r * 2 + i];
                                }
                            }
                        }
                        for n in unroll(0..$keys) {
                            let key = min(ahead + n * teams + team, to - 1);
                            for p in unroll(0..2 / $quads) {
                                read_v[n * pieces + p] = v[min(v_at[p] + key * v_step, v.len() - 1)];
                            }
                        }
                    }
                }

                told.set_vec2(at, Vec2::new(largest, total));
                for two in unroll(0..$rows / 2) {
                    barrier();
                    for r in unroll(0..2) {
                        for i in unroll(0..2) {
                            let quad = (lane + i / $quads * TEAM) * $quads + i % $quads;
                            shared.set_vec4((team * 2 + r) * line + quad, sums[(two * 2 + r) * 2 + i]);
                        }
                    }
                    barrier();
                    let (r, quad) = (local_index() / (SIZE / 2), local_index() % (SIZE / 2));
                    let row = first_row + two * 2 + r;
                    if row < rows && quad < value_quads {
                        // Invocations that have the row, of each team.
                        let sharers = TEAM / $rows;
                        let first = (two * 2 + r) * sharers;
                        let mut most = f32::NEG_INFINITY;
                        for other in unroll(0..SIZE / TEAM) {
                            most = max(most, told[(other * TEAM + first) * 2]);
                        }
                        let mut total = 0.0;
                        let mut sum = Vec4::splat(0.0);
                        for other in unroll(0..SIZE / TEAM) {
                            let factor = weight(told[(other * TEAM + first) * 2], most);
                            let mut weights = 0.0;
                            for sharer in unroll(0..TEAM / $rows) {
                                weights += told[(other * TEAM + first + sharer) * 2 + 1];
                            }
                            total += weights * factor;
                            sum = shared.vec4((other * 2 + r) * line + quad) * factor + sum;
                        }
                        let head = key_head * group + row % group;
                        if cut == 1 {
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
        )*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

// As many keys as registers have room for beside the sums, and at least as many pairs as the larger team has invocations.
grouped! {
    attention_grouped_f32_2 f32 four_f32: 2 rows, 1 quads, 8 keys, 16 pairs;
    attention_grouped_f32_4 f32 four_f32: 4 rows, 1 quads, 4 keys, 16 pairs;
    attention_grouped_f32_8 f32 four_f32: 8 rows, 1 quads, 4 keys, 32 pairs;
    attention_grouped_f16_2 f16 four_f16: 2 rows, 2 quads, 8 keys, 16 pairs;
    attention_grouped_f16_4 f16 four_f16: 4 rows, 2 quads, 8 keys, 32 pairs;
    attention_grouped_f16_8 f16 four_f16: 8 rows, 2 quads, 4 keys, 32 pairs;
    attention_grouped_bf16_2 bf16 four_bf16: 2 rows, 2 quads, 8 keys, 16 pairs;
    attention_grouped_bf16_4 bf16 four_bf16: 4 rows, 2 quads, 8 keys, 32 pairs;
    attention_grouped_bf16_8 bf16 four_bf16: 8 rows, 2 quads, 4 keys, 32 pairs;
}
