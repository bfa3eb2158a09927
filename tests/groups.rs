//! Operations over subgroups, on every device that has them, on the CPU at several sizes, whole subgroups and parts of them; and atomics of floats.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::Subject;
use trefoil::DeviceKind;
use trefoil::device::DeviceOptions;
use trefoil::devices;
use trefoil::prelude::*;

/// The devices with subgroups, the CPU at four sizes.
fn devices_with_subgroups() -> Vec<Subject> {
    let mut subjects = common::devices_with(&[Feature::Subgroups]);
    for size in [1, 4, 32, 128] {
        let options = DeviceOptions { subgroup_size: Some(size), ..DeviceOptions::default() };
        let device = devices::open(DeviceKind::Cpu, &options).unwrap();
        assert_eq!(device.limits().max_subgroup, size);
        subjects.push(Subject { name: format!("cpu with subgroups of {size}"), device });
    }
    subjects
}

/// Where each invocation finds itself.
#[kernel(workgroup(128), requires(Subgroups))]
fn places_full(y: &mut [u32]) {
    let i = local_index();
    y[i * 3] = subgroup_index() as u32;
    y[i * 3 + 1] = subgroup_lane() as u32;
    y[i * 3 + 2] = subgroup_size() as u32;
}

#[kernel(workgroup(40), requires(Subgroups))]
fn places_part(y: &mut [u32]) {
    let i = local_index();
    y[i * 3] = subgroup_index() as u32;
    y[i * 3 + 1] = subgroup_lane() as u32;
    y[i * 3 + 2] = subgroup_size() as u32;
}

macro_rules! numbers_kernel {
    ($name:ident, $size:literal) => {
        /// Every operation on integers.
        #[kernel(workgroup($size), requires(Subgroups))]
        fn $name(x: &[u32], asked: &[u32], y: &mut [u32]) {
            let i = local_index();
            let v = x[i];
            let s = v as i32;
            let a = asked[i];
            let add = subgroup_add(v);
            let mul = subgroup_mul(v);
            let min = subgroup_min(s);
            let max = subgroup_max(s);
            let and = subgroup_and(v);
            let or = subgroup_or(v);
            let xor = subgroup_xor(v);
            let in_add = subgroup_inclusive_add(v);
            let in_mul = subgroup_inclusive_mul(v);
            let in_min = subgroup_inclusive_min(s);
            let in_max = subgroup_inclusive_max(v);
            let in_and = subgroup_inclusive_and(v);
            let in_or = subgroup_inclusive_or(v);
            let in_xor = subgroup_inclusive_xor(v);
            let ex_add = subgroup_exclusive_add(v);
            let ex_mul = subgroup_exclusive_mul(v);
            let ex_min = subgroup_exclusive_min(v);
            let ex_max = subgroup_exclusive_max(s);
            let ex_and = subgroup_exclusive_and(v);
            let ex_or = subgroup_exclusive_or(v);
            let ex_xor = subgroup_exclusive_xor(v);
            let first = subgroup_broadcast_first(v);
            let third = subgroup_broadcast(v, 2);
            let from = subgroup_shuffle(v, a);
            let across = subgroup_shuffle_xor(v, 1);
            let across_any = subgroup_shuffle_xor(v, a);
            let up = subgroup_shuffle_up(v, 1);
            let up_any = subgroup_shuffle_up(v, a);
            let down = subgroup_shuffle_down(v, 2);
            let down_any = subgroup_shuffle_down(v, a);
            let votes = subgroup_ballot(v % 3 == 0);
            let any = subgroup_any(v % 5 == 0);
            let all = subgroup_all(v % 5 != 0);
            let pair = subgroup_inclusive_add(Vec2::new(v, 1));
            let at = i * 38;
            y[at] = add;
            y[at + 1] = mul;
            y[at + 2] = min as u32;
            y[at + 3] = max as u32;
            y[at + 4] = and;
            y[at + 5] = or;
            y[at + 6] = xor;
            y[at + 7] = in_add;
            y[at + 8] = in_mul;
            y[at + 9] = in_min as u32;
            y[at + 10] = in_max;
            y[at + 11] = in_and;
            y[at + 12] = in_or;
            y[at + 13] = in_xor;
            y[at + 14] = ex_add;
            y[at + 15] = ex_mul;
            y[at + 16] = ex_min;
            y[at + 17] = ex_max as u32;
            y[at + 18] = ex_and;
            y[at + 19] = ex_or;
            y[at + 20] = ex_xor;
            y[at + 21] = first;
            y[at + 22] = third;
            y[at + 23] = from;
            y[at + 24] = across;
            y[at + 25] = across_any;
            y[at + 26] = up;
            y[at + 27] = up_any;
            y[at + 28] = down;
            y[at + 29] = down_any;
            y[at + 30] = votes.x;
            y[at + 31] = votes.y;
            y[at + 32] = votes.z;
            y[at + 33] = votes.w;
            y[at + 34] = any as u32;
            y[at + 35] = all as u32;
            y[at + 36] = pair.x + pair.y;
            y[at + 37] = subgroup_elect() as u32;
        }
    };
}

numbers_kernel!(numbers_full, 128);
numbers_kernel!(numbers_part, 40);

const ROWS: usize = 38;
const NAMES: [&str; ROWS] = [
    "add",
    "mul",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "inclusive add",
    "inclusive mul",
    "inclusive min",
    "inclusive max",
    "inclusive and",
    "inclusive or",
    "inclusive xor",
    "exclusive add",
    "exclusive mul",
    "exclusive min",
    "exclusive max",
    "exclusive and",
    "exclusive or",
    "exclusive xor",
    "broadcast first",
    "broadcast",
    "shuffle",
    "shuffle xor 1",
    "shuffle xor",
    "shuffle up 1",
    "shuffle up",
    "shuffle down 2",
    "shuffle down",
    "ballot x",
    "ballot y",
    "ballot z",
    "ballot w",
    "any",
    "all",
    "inclusive add of Vec2",
    "elect",
];

/// What one lane of a subgroup that holds `values` must get.
fn expected(values: &[u32], lane: usize, asked: u32) -> [u32; ROWS] {
    let signed = |value: &u32| value.cast_signed();
    let upto = &values[..=lane];
    let before = &values[..lane];
    let own = values[lane];
    let sum = |part: &[u32]| part.iter().fold(0u32, |a, b| a.wrapping_add(*b));
    let product = |part: &[u32]| part.iter().fold(1u32, |a, b| a.wrapping_mul(*b));
    let and = |part: &[u32]| part.iter().fold(u32::MAX, |a, b| a & b);
    let or = |part: &[u32]| part.iter().fold(0, |a, b| a | b);
    let xor = |part: &[u32]| part.iter().fold(0, |a, b| a ^ b);
    let at = |lane: u32| values.get(lane as usize).copied().unwrap_or(own);
    let here = lane as u32;
    let mut votes = [0u32; 4];
    for (lane, value) in values.iter().enumerate() {
        votes[lane / 32] |= u32::from(value % 3 == 0) << (lane % 32);
    }
    [
        sum(values),
        product(values),
        values.iter().map(signed).min().unwrap().cast_unsigned(),
        values.iter().map(signed).max().unwrap().cast_unsigned(),
        and(values),
        or(values),
        xor(values),
        sum(upto),
        product(upto),
        upto.iter().map(signed).min().unwrap().cast_unsigned(),
        *upto.iter().max().unwrap(),
        and(upto),
        or(upto),
        xor(upto),
        sum(before),
        product(before),
        before.iter().copied().min().unwrap_or(u32::MAX),
        before.iter().map(signed).max().unwrap_or(i32::MIN).cast_unsigned(),
        and(before),
        or(before),
        xor(before),
        values[0],
        values.get(2).copied().unwrap_or(0),
        at(asked),
        at(here ^ 1),
        at(here ^ asked),
        at(here.wrapping_sub(1)),
        at(here.wrapping_sub(asked)),
        at(here + 2),
        at(here.wrapping_add(asked)),
        votes[0],
        votes[1],
        votes[2],
        votes[3],
        values.iter().any(|value| value % 5 == 0).into(),
        values.iter().all(|value| value % 5 != 0).into(),
        sum(upto).wrapping_add(here + 1),
        (lane == 0).into(),
    ]
}

#[test]
fn integers_over_subgroups() {
    for subject in devices_with_subgroups() {
        let device = &subject.device;
        for count in [128usize, 40] {
            // Odd numbers, so that products do not vanish; lanes asked for within and beyond.
            let x: Vec<u32> = (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) | 1).collect();
            let asked: Vec<u32> =
                (0..count as u32).map(|i| [0, 3, 1, 7, 130, u32::MAX, 31, 2][i as usize % 8]).collect();
            let (x_there, asked_there) = (device.buffer(&x).unwrap(), device.buffer(&asked).unwrap());
            let mut places = device.buffer(&vec![0u32; count * 3]).unwrap();
            let mut y = device.buffer(&vec![0u32; count * ROWS]).unwrap();
            if count == 128 {
                device.run(places_full(&mut places).unwrap().groups(1)).unwrap();
                device.run(numbers_full(&x_there, &asked_there, &mut y).unwrap().groups(1)).unwrap();
            } else {
                device.run(places_part(&mut places).unwrap().groups(1)).unwrap();
                device.run(numbers_part(&x_there, &asked_there, &mut y).unwrap().groups(1)).unwrap();
            }
            let (places, y) = (places.read().unwrap(), y.read().unwrap());
            let size = places[2] as usize;
            let limits = device.limits();
            assert!((limits.min_subgroup..=limits.max_subgroup).contains(&places[2]), "{size} on {}", subject.name);
            // The invocations of each subgroup, by lane.
            let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
            for (i, place) in places.chunks(3).enumerate() {
                let (group, lane) = (place[0] as usize, place[1] as usize);
                assert_eq!(groups[group].len(), lane, "lanes follow the invocations on {}", subject.name);
                groups[group].push(i);
            }
            for group in &groups {
                assert!(group.len() <= size);
                let values: Vec<u32> = group.iter().map(|i| x[*i]).collect();
                for (lane, i) in group.iter().enumerate() {
                    let words = &y[i * ROWS..(i + 1) * ROWS];
                    for ((name, word), wanted) in NAMES.iter().zip(words).zip(expected(&values, lane, asked[*i])) {
                        let (count, size) = (group.len(), &subject.name);
                        assert_eq!(*word, wanted, "{name} in lane {lane} of {count} on {size}");
                    }
                }
            }
        }
    }
}

/// Operations on floats and their vectors.
#[kernel(workgroup(64), requires(Subgroups))]
fn floats(x: &[f32], y: &mut [f32]) {
    let i = local_index();
    let v = x[i];
    let add = subgroup_add(v);
    let mul = subgroup_mul(v);
    let min = subgroup_min(v);
    let max = subgroup_exclusive_max(v);
    let sum = subgroup_exclusive_add(Vec3::new(v, 1.0, -v));
    let most = subgroup_inclusive_max(Vec2::new(v, -v));
    let least = subgroup_exclusive_min(v);
    let moved = subgroup_shuffle_down(Vec4::new(v, 2.0, v, 3.0), 1);
    let at = i * 8;
    y[at] = add;
    y[at + 1] = mul;
    y[at + 2] = min;
    y[at + 3] = max;
    y[at + 4] = sum.x + sum.y;
    y[at + 5] = most.y;
    y[at + 6] = least;
    y[at + 7] = moved.z;
}

#[test]
fn floats_over_subgroups() {
    // Powers of two, of which every sum and product is exact.
    let x: Vec<f32> = (0..64).map(|i| if i % 3 == 0 { 2.0 } else { 0.5 }).collect();
    for subject in devices_with_subgroups() {
        let device = &subject.device;
        let x_there = device.buffer(&x).unwrap();
        let mut places = device.buffer(&[0u32; 384]).unwrap();
        device.run(places_full(&mut places).unwrap().groups(1)).unwrap();
        let size = places.read().unwrap()[2] as usize;
        let mut y = device.buffer(&[0.0f32; 512]).unwrap();
        device.run(floats(&x_there, &mut y).unwrap().groups(1)).unwrap();
        for (i, found) in y.read().unwrap().chunks(8).enumerate() {
            let first = i / size * size;
            let group = &x[first..(first + size).min(64)];
            let (before, upto) = (&x[first..i], &x[first..=i]);
            let expected = [
                group.iter().sum(),
                group.iter().product(),
                group.iter().copied().fold(f32::INFINITY, f32::min),
                before.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                before.iter().sum::<f32>() + before.len() as f32,
                upto.iter().map(|v| -v).fold(f32::NEG_INFINITY, f32::max),
                before.iter().copied().fold(f32::INFINITY, f32::min),
                group.get(i - first + 1).copied().unwrap_or(x[i]),
            ];
            assert_eq!(found, expected, "invocation {i} on {}", subject.name);
        }
    }
}

#[test]
fn a_size_that_a_device_does_not_offer_is_refused() {
    for (kind, size) in [(DeviceKind::Cpu, 3), (DeviceKind::Cpu, 256), (DeviceKind::Vulkan, 1 << 20)] {
        let options = DeviceOptions { subgroup_size: Some(size), ..DeviceOptions::default() };
        match devices::open(kind, &options) {
            Ok(_) => panic!("{kind} opens with subgroups of {size}"),
            Err(error) => {
                let said = error.to_string();
                assert!(kind != DeviceKind::Cpu || said.contains(&format!("no subgroups of {size}")), "{said}");
            }
        }
    }
}

/// Sums by four atomics of each workgroup, and then of all.
#[kernel(workgroup(64))]
fn float_sums(x: &[f32], sums: &[Atomic<f32>], old: &mut [f32]) {
    let part = workgroup_array::<Atomic<f32>>(4);
    let i = global_index();
    if local_index() < 4 {
        part[local_index()].store(0.0);
    }
    barrier();
    part[i % 4].add(x[i]);
    barrier();
    if local_index() < 4 {
        let all = part[local_index()].load();
        sums[local_index()].add(all);
    }
    if i == 0 {
        old[0] = sums[4].exchange(7.5);
        old[1] = sums[5].load();
        old[2] = sums[100].add(1.0);
        sums[6].store(-0.25);
    }
}

#[test]
fn floats_are_added_by_atomics() {
    // Sums of multiples of 1/4 are exact in any order.
    let x: Vec<f32> = (0..640).map(|i| (i % 37) as f32 * 0.25 - 3.0).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let x_there = device.buffer(&x).unwrap();
        let mut sums = device.buffer(&[0.5f32, 0.0, 0.0, 0.0, 2.5, -4.0, 9.0]).unwrap();
        let mut old = device.buffer(&[9.0f32; 3]).unwrap();
        device.run(float_sums(&x_there, &mut sums, &mut old).unwrap().groups(10)).unwrap();
        let of = |k: usize| x.iter().skip(k).step_by(4).sum::<f32>();
        let expected = [0.5 + of(0), of(1), of(2), of(3), 7.5, -4.0, -0.25];
        assert_eq!(sums.read().unwrap(), expected, "on {}", subject.name);
        assert_eq!(old.read().unwrap(), [2.5, -4.0, 0.0], "what was there on {}", subject.name);
    }
}

/// What subgroups of a stated size give: every lane its size, its place and the sum before it.
#[kernel(workgroup(128), subgroup(S), instances(S = [4, 8, 16, 32, 64, 128]), targets(wgsl, spirv, cpu))]
fn stated<const S: usize>(x: &[u32], y: &mut [u32]) {
    let mut parts = workgroup_array::<u32>(128 / S);
    let i = local_index();
    let before = subgroup_exclusive_add(x[i]);
    let other = subgroup_shuffle_xor(x[i], S as u32 / 2);
    if subgroup_lane() + 1 == subgroup_size() {
        parts[subgroup_index()] = before + x[i];
    }
    barrier();
    y[4 * i] = subgroup_size() as u32;
    y[4 * i + 1] = before;
    y[4 * i + 2] = other;
    y[4 * i + 3] = parts[i / S];
}

/// The size that CUDA has too.
#[kernel(workgroup(64, 2), subgroup(32))]
fn stated_everywhere(y: &mut [u32]) {
    let all = subgroup_ballot(true);
    y[local_index()] = all.x & subgroup_size() as u32;
}

fn run_stated<const S: usize>(subject: &Subject) {
    let device = &subject.device;
    let x: Vec<u32> = (0..128).map(|i| i * i + 1).collect();
    let x_there = device.buffer(&x).unwrap();
    let mut y = device.buffer(&[0u32; 512]).unwrap();
    let done = device.run(stated::<S>(&x_there, &mut y).unwrap().groups(1));
    if !device.properties().offers_subgroups_of(S as u32) {
        let said = done.expect_err("a size that the device lacks").to_string();
        assert!(said.contains("stated") && said.contains(&format!("wants subgroups of {S};")), "{said}");
        return;
    }
    done.unwrap_or_else(|error| panic!("{S} on {}: {error}", subject.name));
    for (i, found) in y.read().unwrap().chunks(4).enumerate() {
        let first = i / S * S;
        let expected =
            [S as u32, x[first..i].iter().sum(), x[first + ((i - first) ^ (S / 2))], x[first..first + S].iter().sum()];
        assert_eq!(found, expected, "invocation {i} of subgroups of {S} on {}", subject.name);
    }
}

#[test]
fn a_stated_size_is_kept_or_refused() {
    for subject in devices_with_subgroups() {
        let device = &subject.device;
        let sizes = device.properties().subgroup_sizes.clone();
        let own = device.limits().max_subgroup;
        assert!(sizes.is_none_or(|sizes| sizes.contains(&own)), "{}", subject.name);
        if device.kind() != DeviceKind::Cuda {
            run_stated::<4>(&subject);
            run_stated::<8>(&subject);
            run_stated::<16>(&subject);
            run_stated::<32>(&subject);
            run_stated::<64>(&subject);
            run_stated::<128>(&subject);
        }
        let mut y = device.buffer(&[0u32; 128]).unwrap();
        let done = device.run(stated_everywhere(&mut y).unwrap().groups(1));
        assert_eq!(done.is_ok(), device.properties().offers_subgroups_of(32), "{}: {done:?}", subject.name);
        if done.is_ok() {
            assert_eq!(y.read().unwrap(), [32; 128], "on {}", subject.name);
        }
    }
}
