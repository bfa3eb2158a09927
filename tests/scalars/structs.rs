//! Structs of plain data by value.

use trefoil::prelude::*;

use super::common;

#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Inner {
    scale: f32,
    offsets: [i32; 2],
}

#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outer {
    big: f64,
    items: [Inner; 2],
    pair: Vec2<f32>,
    inner: Inner,
    n: u32,
}

/// Structs by value, nested and in arrays, read by number and by index, also past the end.
#[kernel(workgroup(64))]
fn structs_by_value(
    at: &[u32],
    y: &mut [f32],
    z: &mut [f64],
    o: &mut [Outer],
    p: Outer,
    list: [Inner; 3],
    vectors: [Vec3<f32>; 2],
    small: [u8; 3],
    half: f16,
) {
    let i = global_index();
    if i < at.len() {
        let k = at[i] as usize;
        let whole = p;
        y[8 * i] = p.inner.scale + whole.pair.y + p.items[1].scale;
        y[8 * i + 1] = p.items[k].offsets[k] as f32;
        y[8 * i + 2] = list[k].offsets[1] as f32 + list[2].scale;
        y[8 * i + 3] = list[k].offsets[k] as f32;
        y[8 * i + 4] = vectors[k].z + vectors[1].x;
        y[8 * i + 5] = (small[k] + small[0]) as f32;
        y[8 * i + 6] = half.to_f32() + p.n as f32;
        let chosen = list[k % 3];
        y[8 * i + 7] = chosen.scale + chosen.offsets[0] as f32;
        z[i] = p.big;
        o[i] = whole;
    }
}

#[test]
fn structs_are_parameters() {
    let inner = |i: i32| Inner { scale: i as f32 + 0.25, offsets: [10 * i, -i] };
    let p = Outer { big: 1e200, items: [inner(1), inner(2)], pair: Vec2::new(3.0, 4.0), inner: inner(5), n: 77 };
    let list = [inner(6), inner(7), inner(8)];
    let vectors = [Vec3::new(1.0, 2.0, 3.0), Vec3::new(4.0, 5.0, 6.0)];
    let (small, half) = ([200u8, 100, 50], f16::from_f32(0.1));
    let at: [u32; 7] = [0, 1, 2, 3, 4, 0x4000_0000, u32::MAX];
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&at).unwrap();
        let mut y = device.buffer(&[-7f32; 56]).unwrap();
        let mut z = device.buffer(&[-7f64; 7]).unwrap();
        let mut o = device.buffer(&[Outer { n: 0, ..p }; 7]).unwrap();
        let launch = structs_by_value(&there, &mut y, &mut z, &mut o, p, list, vectors, small, half);
        device.run(launch.unwrap().over(at.len())).unwrap();
        assert_eq!(z.read().unwrap(), [1e200; 7], "on {}", subject.name);
        assert_eq!(o.read().unwrap(), [p; 7], "on {}", subject.name);
        for (k, given) in at.iter().zip(y.read().unwrap().chunks(8)) {
            let k = *k as usize;
            let offset = |inner: Option<&Inner>, k: usize| {
                inner.and_then(|inner| inner.offsets.get(k)).copied().unwrap_or(0) as f32
            };
            let chosen = list[k % 3];
            let expected = [
                p.inner.scale + p.pair.y + p.items[1].scale,
                offset(p.items.get(k), k),
                offset(list.get(k), 1) + list[2].scale,
                offset(list.get(k), k),
                vectors.get(k).map_or(0.0, |vector| vector.z) + 4.0,
                f32::from(small.get(k).copied().unwrap_or(0).wrapping_add(200)),
                half.to_f32() + 77.0,
                chosen.scale + chosen.offsets[0] as f32,
            ];
            assert_eq!(given, expected, "index {k} on {}", subject.name);
        }
    }
}
