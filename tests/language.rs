//! What the language offers to structure kernels, on every device: functions of functions, methods and operators, enums, specialisation constants.
//!
//! Expected values are computed by plain Rust, most of it the very functions that the kernels call.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

use trefoil::artefact::Kernel;
use trefoil::prelude::*;
use trefoil::{DeviceKind, Launch};

#[device]
fn reduce_row<F: Fn(f32, f32) -> f32>(x: &[f32], start: usize, length: usize, combine: F) -> f32 {
    let mut result = x[start];
    for i in 1..length {
        result = combine(result, x[start + i]);
    }
    result
}

#[device]
fn twice<T: Number, F>(x: T, f: F) -> T
where
    F: Fn(T) -> T + Copy,
{
    once(once(x, f), f)
}

#[device]
fn once<T: Number>(x: T, f: impl Fn(T) -> T) -> T {
    f(x)
}

#[device]
fn larger_size(a: f32, b: f32) -> f32 {
    if abs(a) < abs(b) { b } else { a }
}

#[device]
fn each_lane(tile: &mut [f32], f: impl Fn(f32) -> f32) {
    let lane = local_index();
    barrier();
    let other = f(tile[63 - lane]);
    barrier();
    tile[lane] = other;
}

/// Each invocation reduces a row of `width` in six ways.
#[kernel(workgroup(64))]
fn rows(x: &[f32], u: &[u32], y: &mut [f32], width: usize) {
    let row = global_index();
    if (row + 1) * width <= x.len() {
        let at = row * 6;
        let start = row * width;
        y[at] = reduce_row(x, start, width, |a, b| a + b);
        y[at + 1] = reduce_row(x, start, width, |a, b| a.max(b));
        y[at + 2] = reduce_row(x, start, width, larger_size);
        y[at + 3] = reduce_row(x, start, width, min);
        y[at + 4] = twice(x[start], |v| v * 3.0 + 1.0);
        y[at + 5] = twice(u[row], |v: u32| -> u32 {
            let next = v + 7;
            if next > 20 { next / 2 } else { next }
        }) as f32;
    }
}

#[test]
fn functions_of_functions() {
    let (count, width) = (70, 5);
    let x: Vec<f32> = (0..count * width).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
    let u: Vec<u32> = (0..count as u32).collect();
    let mut expected = Vec::new();
    for (row, u) in x.chunks(width).zip(&u) {
        expected.push(row.iter().sum());
        expected.push(row.iter().copied().fold(f32::MIN, f32::max));
        expected.push(row[1..].iter().fold(row[0], |a, b| if a.abs() < b.abs() { *b } else { a }));
        expected.push(row.iter().copied().fold(f32::MAX, f32::min));
        expected.push((row[0] * 3.0 + 1.0) * 3.0 + 1.0);
        let step = |v: u32| if v + 7 > 20 { (v + 7) / 2 } else { v + 7 };
        expected.push(step(step(*u)) as f32);
    }
    for subject in common::devices() {
        let device = &subject.device;
        let (x, u) = (device.buffer(&x).unwrap(), device.buffer(&u).unwrap());
        let mut y = device.buffer(&vec![f32::NAN; count * 6]).unwrap();
        device.run(rows(&x, &u, &mut y, width).unwrap().over(count)).unwrap();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}

/// A helper with barriers, given a closure.
#[kernel(workgroup(64))]
fn mirrored(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    tile[local_index()] = x[global_index()];
    each_lane(&mut tile, |v| v * 2.0);
    y[global_index()] = tile[local_index()];
}

#[test]
fn collective_functions_of_functions() {
    let x: Vec<f32> = (0..128).map(|i| i as f32).collect();
    let expected: Vec<f32> = (0..128).map(|i| 2.0 * (i / 64 * 64 + 63 - i % 64) as f32).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&x).unwrap();
        let mut y = device.buffer(&[0.0; 128]).unwrap();
        device.run(mirrored(&x, &mut y).unwrap().over(128)).unwrap();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}

/// A quaternion.
#[device(methods, operators(Add, Sub, Mul, Mul<f32>, Neg, SubAssign, PartialEq))]
#[derive(Debug)]
struct Quaternion {
    real: f32,
    i: f32,
    j: f32,
    k: f32,
}

#[device(uses(Mul, Mul<f32>))]
impl Quaternion {
    const ONE: Self = Self { real: 1.0, i: 0.0, j: 0.0, k: 0.0 };
    const PARTS: usize = 4;

    fn new(real: f32, i: f32, j: f32, k: f32) -> Self {
        Self { real, i, j, k }
    }

    fn conjugate(self) -> Self {
        Self::new(self.real, -self.i, -self.j, -self.k)
    }

    fn norm(&self) -> f32 {
        (*self * self.conjugate()).real
    }

    fn halve(&mut self) {
        *self = *self * 0.5;
    }

    fn halve_twice(&mut self) {
        self.halve();
        Self::halve(self);
    }

    fn sum(self) -> f32 {
        let parts = [self.real, self.i, self.j, self.k];
        let mut sum = 0.0;
        for part in 0..Self::PARTS {
            sum += parts[part];
        }
        sum
    }
}

#[device]
impl Add for Quaternion {
    type Output = Self;
    fn add(self, other: Self) -> Self::Output {
        Self { real: self.real + other.real, i: self.i + other.i, j: self.j + other.j, k: self.k + other.k }
    }
}

#[device(uses(Add, Neg))]
impl Sub for Quaternion {
    type Output = Quaternion;
    fn sub(self, other: Self) -> Quaternion {
        self + -other
    }
}

#[device]
impl Mul for Quaternion {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Self {
            real: self.real * o.real - self.i * o.i - self.j * o.j - self.k * o.k,
            i: self.real * o.i + self.i * o.real + self.j * o.k - self.k * o.j,
            j: self.real * o.j - self.i * o.k + self.j * o.real + self.k * o.i,
            k: self.real * o.k + self.i * o.j - self.j * o.i + self.k * o.real,
        }
    }
}

#[device]
impl Mul<f32> for Quaternion {
    type Output = Self;
    fn mul(self, by: f32) -> Self {
        Self { real: self.real * by, i: self.i * by, j: self.j * by, k: self.k * by }
    }
}

#[device(uses(Mul_f32))]
impl std::ops::Neg for Quaternion {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1.0
    }
}

#[device(uses(Sub))]
impl std::ops::SubAssign for Quaternion {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[device]
impl PartialEq for Quaternion {
    fn eq(&self, other: &Self) -> bool {
        self.real == other.real && self.i == other.i && self.j == other.j && self.k == other.k
    }
}

/// What a kernel makes of two quaternions; the host calls the same function.
#[device]
fn mixed(a: Quaternion, b: Quaternion) -> Quaternion {
    let mut result = (a * b - b * a) * 2.0 + Quaternion::ONE;
    result -= a.conjugate();
    result.halve_twice();
    if a == b || a * b != b * a {
        result = -result + Quaternion::new(a.norm(), 0.0, 0.0, b.sum());
    }
    result
}

#[kernel(workgroup(64))]
fn turned(a: &[Quaternion], b: &mut [Quaternion]) {
    let i = global_index();
    if i < a.len() {
        b[i] = mixed(a[i], b[i]);
        b[i].halve();
    }
}

#[test]
fn methods_and_operators() {
    let of = |i: usize, by: usize| {
        let part = |n: usize| ((i * by + n * 5) % 9) as f32 - 4.0;
        Quaternion::new(part(0), part(1), part(2), part(3))
    };
    let a: Vec<Quaternion> = (0..100).map(|i| of(i, 7)).collect();
    let b: Vec<Quaternion> = (0..100).map(|i| if i % 5 == 0 { of(i, 7) } else { of(i, 4) }).collect();
    let expected: Vec<Quaternion> = a.iter().zip(&b).map(|(a, b)| mixed(*a, *b) * 0.5).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let a = device.buffer(&a).unwrap();
        let mut b = device.buffer(&b).unwrap();
        device.run(turned(&a, &mut b).unwrap().over(100)).unwrap();
        assert!(b.read().unwrap() == expected, "on {}", subject.name);
    }
}

/// A mode that host and kernel share.
#[device(methods)]
#[derive(Debug)]
enum Act {
    Keep,
    Relu = 4,
    Square,
    Leaky = 40,
}

#[device]
impl Act {
    const FIRST: Act = Act::Keep;

    fn apply(self, x: f32) -> f32 {
        match self {
            Self::Keep => x,
            Act::Relu => x.max(0.0),
            Act::Square => x * x,
            Act::Leaky => select(x < 0.0, 0.25 * x, x),
        }
    }

    fn next(self) -> Self {
        match self {
            Act::Keep => Act::Relu,
            Act::Relu | Act::Square => Act::Leaky,
            _ => Self::FIRST,
        }
    }
}

#[kernel(workgroup(64))]
fn acted(x: &[f32], y: &mut [f32], act: Act) {
    let i = global_index();
    if i < y.len() {
        let mut then = act;
        let mut steps = 0;
        while then != Act::Keep && steps < 3 {
            then = then.next();
            steps += 1;
        }
        let bent = act.next().apply(x[i]);
        y[i] = act.apply(x[i]) + 1000.0 * bent + 100000.0 * (steps as f32) + (then as u32) as f32;
    }
}

/// What a layer does; not for buffers, since it holds an enum.
#[device]
#[derive(Debug)]
struct Layer {
    scale: f32,
    act: Act,
}

#[device]
fn layered(layer: Layer, x: f32) -> f32 {
    layer.act.apply(layer.scale * x)
}

#[device]
fn harder(layer: Layer) -> Layer {
    Layer { scale: layer.scale + 1.0, act: layer.act.next() }
}

#[kernel(workgroup(64))]
fn layers(x: &[f32], y: &mut [f32], act: Act) {
    let i = global_index();
    if i < y.len() {
        let mut stack = [Layer { scale: 2.0, act }; 3];
        for depth in 1..3 {
            stack[depth] = harder(stack[depth - 1]);
            if stack[depth].act == Act::Leaky && i % 2 == 0 {
                stack[depth].act = Act::Square;
            }
        }
        let mut value = x[i];
        for depth in 0..3 {
            value = layered(stack[depth], value);
        }
        y[i] = value;
    }
}

#[test]
fn structs_with_enums() {
    let x: Vec<f32> = (0..100).map(|i| (i as f32 - 50.0) / 8.0).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let x_there = device.buffer(&x).unwrap();
        for act in [Act::Keep, Act::Relu, Act::Square, Act::Leaky] {
            let mut y = device.buffer(&[0.0; 100]).unwrap();
            device.run(layers(&x_there, &mut y, act).unwrap().over(100)).unwrap();
            let expected: Vec<f32> = x
                .iter()
                .enumerate()
                .map(|(i, x)| {
                    let mut layer = Layer { scale: 2.0, act };
                    let mut value = layered(layer, *x);
                    for _ in 1..3 {
                        layer = harder(layer);
                        if layer.act == Act::Leaky && i % 2 == 0 {
                            layer.act = Act::Square;
                        }
                        value = layered(layer, value);
                    }
                    value
                })
                .collect();
            assert_eq!(y.read().unwrap(), expected, "{act:?} on {}", subject.name);
        }
    }
}

#[test]
fn enums() {
    let x: Vec<f32> = (0..100).map(|i| i as f32 - 50.0).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let x_there = device.buffer(&x).unwrap();
        for (act, steps) in [(Act::Keep, 0.0), (Act::Relu, 2.0), (Act::Square, 2.0), (Act::Leaky, 1.0)] {
            let mut y = device.buffer(&[0.0; 100]).unwrap();
            device.run(acted(&x_there, &mut y, act).unwrap().over(100)).unwrap();
            let expected: Vec<f32> =
                x.iter().map(|x| act.apply(*x) + 1000.0 * act.next().apply(*x) + 100_000.0 * steps).collect();
            assert_eq!(y.read().unwrap(), expected, "{act:?} on {}", subject.name);
        }
    }
}

/// Each workgroup sums tiles of `TILE` elements, through an array of exactly so many.
#[kernel(workgroup(64), specialise(TILE: usize = 16, in 4..=64, multiple_of 4; SCALE: i32 = -2, in -8..=8; HALF: bool = false))]
fn tiled(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(TILE);
    let mut edge = workgroup_array::<u32>(TILE * 2 + 1);
    let lane = local_index();
    let group = group_index();
    tile[lane] = x[group * TILE + lane];
    edge[TILE * 2 - lane] = lane as u32;
    edge[TILE * 2] = TILE as u32;
    barrier();
    if lane == 0 {
        let mut sum = 0.0;
        for i in 0..TILE {
            sum += tile[i];
        }
        let four = tile.vec4(TILE / 4 - 1);
        // Past the end of the array as it is, within what it may be.
        sum += tile[TILE] + tile.vec4(TILE / 4).x + tile[TILE + 7];
        let scaled = (sum + four.w) * (SCALE as f32);
        y[group * 3] = if HALF { scaled * 0.5 } else { scaled };
        y[group * 3 + 1] = (edge.len() + tile.len()) as f32;
        y[group * 3 + 2] = edge[TILE * 2] as f32;
    }
}

#[test]
fn specialisation_constants() {
    let usual = tiled::Constants::default();
    assert_eq!(usual, tiled::Constants { tile: 16, scale: -2, half: false });
    let cases = [
        usual,
        tiled::Constants { tile: 4, scale: 8, half: true },
        tiled::Constants { tile: 64, ..usual },
        tiled::Constants { tile: 28, scale: -8, half: true },
    ];
    let x: Vec<f32> = (0..64 * 5).map(|i| ((i * 7) % 13) as f32).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        for constants in cases {
            let groups = 5;
            let mut y = device.buffer(&vec![f32::NAN; groups * 3]).unwrap();
            let launch = tiled(&there, &mut y).unwrap();
            // The usual values need not be said.
            let launch = if constants == usual { launch } else { launch.specialise(constants).unwrap() };
            device.run(launch.groups(groups)).unwrap();
            let tiled::Constants { tile, scale, half } = constants;
            let mut expected = Vec::new();
            for group in x.chunks(tile).take(groups) {
                let sum = group.iter().sum::<f32>() + group[tile - 1];
                expected.push(sum * scale as f32 * if half { 0.5 } else { 1.0 });
                expected.push((3 * tile + 1) as f32);
                expected.push(tile as f32);
            }
            assert_eq!(y.read().unwrap(), expected, "{constants:?} on {}", subject.name);
            if device.kind() == DeviceKind::Cpu {
                // The evaluator, which runs what has no compiled function.
                let late = Arc::new(Kernel { cpu: None, ..tiled::KERNEL.clone() });
                let mut y = device.buffer(&vec![f32::NAN; groups * 3]).unwrap();
                let launch = Launch::of(late).read(&there).unwrap().write(&mut y).unwrap();
                device.run(launch.specialise(constants).unwrap().groups(groups)).unwrap();
                assert_eq!(y.read().unwrap(), expected, "{constants:?} in the evaluator");
            }
        }
    }
}

#[test]
fn constants_out_of_range() {
    let subject = common::devices().remove(0);
    let x = subject.device.buffer(&[0.0; 64]).unwrap();
    let mut y = subject.device.buffer(&[0.0; 3]).unwrap();
    let mut refused = |constants| {
        let launch = tiled(&x, &mut y).unwrap();
        launch.specialise(constants).unwrap_err().to_string()
    };
    for (constants, name, words) in [
        (tiled::Constants { tile: 68, ..Default::default() }, "TILE", "68 is not in 4..=64, a multiple of 4"),
        (tiled::Constants { tile: 18, ..Default::default() }, "TILE", "18 is not in 4..=64, a multiple of 4"),
        (tiled::Constants { scale: 9, ..Default::default() }, "SCALE", "9 is not in -8..=8"),
    ] {
        let said = refused(constants);
        assert!(said.contains("tiled") && said.contains(name) && said.contains(words), "{said}");
    }
}

/// The fields of such constants are words of Rust's.
#[kernel(workgroup(64), specialise(FINAL: u32 = 1, in 0..=9; TYPE: bool = false; LOOP: i32 = -2, in -9..=9))]
fn words_of_rust(y: &mut [i32]) {
    let more = if TYPE { LOOP * 100 } else { 0 };
    y[global_index()] = FINAL as i32 + more;
}

#[test]
fn constants_may_be_called_like_words_of_rust() {
    let usual = words_of_rust::Constants::default();
    let others = words_of_rust::Constants { r#final: 7, r#type: true, ..usual };
    for subject in common::devices() {
        let device = &subject.device;
        let mut y = device.zeros::<i32>(3).unwrap();
        for (constants, expected) in [(usual, 1), (others, -193)] {
            let launch = words_of_rust(&mut y).unwrap().specialise(constants).unwrap();
            device.run(launch.over(3)).unwrap();
            assert_eq!(y.read().unwrap(), [expected; 3], "{constants:?} on {}", subject.name);
        }
    }
}

/// Bits that `low` of `x` leaves, as a sum over several types.
#[device]
fn folded<T: Int, U, const N: usize>(x: T, weights: [U; N], bits: u32) -> T
where
    U: Number,
{
    let mut low = x & !(!T::lit(0.0) << bits);
    for i in 0..N {
        if weights[i] > U::lit(1.0) {
            low ^= x >> (i as u32);
        } else {
            low += doubled(x);
        }
    }
    low % T::lit(1000.0)
}

#[device]
fn doubled<T: Number>(x: T) -> T {
    x + x
}

/// Generic over two types, with bounds in both places, and a constant.
#[kernel(workgroup(64), instances(T = [i32, u32], U = [f32, i32], N = [1, 3]))]
fn generic<T, U: Number, const N: usize>(x: &[T], v: &[U], y: &mut [T])
where
    T: Int,
{
    let i = global_index();
    if i < y.len() {
        let mut weights = [v[i]; N];
        weights[N - 1] = U::lit(2.0);
        y[i] = folded(x[i], weights, count_ones(x[i]));
    }
}

fn generic_instance<T: Int + std::fmt::Debug, U: Number, const N: usize>(x: &[T], v: &[U]) {
    let expected: Vec<T> = x
        .iter()
        .zip(v)
        .map(|(x, v)| {
            let mut weights = [*v; N];
            weights[N - 1] = U::lit(2.0);
            folded(*x, weights, count_ones(*x))
        })
        .collect();
    for subject in common::devices() {
        let device = &subject.device;
        let (x, v) = (device.buffer(x).unwrap(), device.buffer(v).unwrap());
        let mut y = device.buffer(&vec![T::lit(-1.0); expected.len()]).unwrap();
        device.run(generic::<T, U, N>(&x, &v, &mut y).unwrap().over(expected.len())).unwrap();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}

#[test]
fn several_generics() {
    let unsigned: Vec<u32> = (0..80).map(|i| i * 77_777 % 65_521).collect();
    let signed: Vec<i32> = unsigned.iter().map(|x| *x as i32 - 30_000).collect();
    let floats: Vec<f32> = (0..80).map(|i| (i % 3) as f32).collect();
    let integers: Vec<i32> = (0..80).map(|i| i % 3).collect();
    generic_instance::<u32, f32, 1>(&unsigned, &floats);
    generic_instance::<u32, i32, 3>(&unsigned, &integers);
    generic_instance::<i32, f32, 3>(&signed, &floats);
    generic_instance::<i32, i32, 1>(&signed, &integers);
}

/// More than the 16 bytes to which devices pad what they bind.
#[device]
#[derive(Debug, PartialEq)]
struct Wide {
    parts: [Vec4<u32>; 3],
}

#[kernel(workgroup(64))]
fn lengths(x: &[Wide], y: &mut [u32]) {
    y[0] = x.len() as u32;
    y[1] = x[0].parts[2].w;
}

#[test]
fn empty_slices_of_large_elements() {
    for subject in common::devices() {
        let device = &subject.device;
        let wide = |word| Wide { parts: [Vec4::splat(word); 3] };
        for held in [vec![], vec![wide(5)], vec![wide(5); 7]] {
            let x = device.buffer(&held).unwrap();
            for first in 0..=held.len() {
                let mut y = device.buffer(&[9u32; 2]).unwrap();
                let launch = lengths(x.slice(first..first).unwrap(), &mut y).unwrap();
                device.run(launch.groups(1)).unwrap();
                assert_eq!(y.read().unwrap(), [0, 0], "{first} of {} on {}", held.len(), subject.name);
            }
        }
    }
}

/// What is written where hangs on whether the place or the value comes first.
#[device]
fn in_order(h: &mut [f16], u: &mut [u32], x: &[f16]) {
    let mut i = 0;
    h[i] += {
        i += 1;
        x[i]
    };
    u[i] += {
        i += 1;
        i as u32
    };
    u.set_vec2(i, {
        i += 1;
        Vec2::new(i as u32, 9)
    });
    u.set_vec4(i, {
        i -= 1;
        Vec4::splat(i as u32)
    });
}

#[kernel(workgroup(1))]
fn places_and_values(h: &mut [f16], u: &mut [u32], x: &[f16]) {
    in_order(h, u, x);
}

#[test]
fn places_and_values_are_evaluated_in_rusts_order() {
    let halves = |numbers: [f32; 4]| numbers.map(f16::from_f32);
    let (x, mut h, mut u) = (halves([0.5, 3.0, 5.0, 7.0]), halves([1.0, 2.0, 4.0, 8.0]), [1u32; 16]);
    let (h_before, u_before) = (h, u);
    in_order(&mut h, &mut u, &x);
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let (mut h_there, mut u_there) = (device.buffer(&h_before).unwrap(), device.buffer(&u_before).unwrap());
        device.run(places_and_values(&mut h_there, &mut u_there, &there).unwrap().groups(1)).unwrap();
        assert_eq!(h_there.read().unwrap(), h, "on {}", subject.name);
        assert_eq!(u_there.read().unwrap(), u, "on {}", subject.name);
    }
}
