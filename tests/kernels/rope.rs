//! Rotary positions, in every element type, four elements at a time and one; of doubles one.

use std::collections::BTreeSet;

use trefoil::artefact::Feature;
use trefoil::dsl::element::Element;
use trefoil::kernels::rope::Pairs;
use trefoil::{DeviceKind, Launch, Result, bf16, f16};

use crate::case::kernel;
use crate::numbers::numbers;
use crate::stand::Stand;

/// Elements before and after a slice that belong to nobody.
const GUARD: usize = 68;

/// The kernels that are tested here.
pub fn tested() -> BTreeSet<String> {
    let names = ["f32", "f16", "bf16"].into_iter();
    let names = names.flat_map(|element| [1, 4].map(|width| format!("rope_{element}_{width}")));
    names.chain(["rope_f64".to_owned()]).collect()
}

/// Runs every kernel that the device can.
pub fn check(stand: &Stand) {
    check_of::<f32, f32>(stand, ["rope_f32_1", "rope_f32_4"], 1e-6, |x| x, f64::from);
    check_of::<f16, f32>(stand, ["rope_f16_1", "rope_f16_4"], 1.0 / 1024.0, f16::from_f32, f16::to_f64);
    check_of::<bf16, f32>(stand, ["rope_bf16_1", "rope_bf16_4"], 1.0 / 128.0, bf16::from_f32, bf16::to_f64);
    let features = stand.device.properties().features;
    if stand.device.kind() == DeviceKind::Cpu || features.has(Feature::Float64) {
        check_of::<f64, f64>(stand, ["rope_f64"], 1e-15, f64::from, |x| x);
    }
}

fn check_of<T: Element, Table: Element + From<f32> + Into<f64>>(
    stand: &Stand,
    names: impl AsRef<[&'static str]>,
    tolerance: f64,
    of: fn(f32) -> T,
    number: fn(T) -> f64,
) {
    let device = &stand.device;
    for [first, second, third, elements, turned] in
        [[1, 1, 1, 8, 8], [2, 3, 5, 24, 16], [3, 1, 67, 64, 64], [1, 2, 0, 8, 8]]
    {
        for (pairs, given) in [(Pairs::Halves, false), (Pairs::Neighbours, true), (Pairs::Halves, true)] {
            for name in names.as_ref() {
                let width = if name.ends_with("_4") { 4 } else { 1 };
                let x: Vec<T> = numbers(first * second * third * elements, 5, 1.0).into_iter().map(of).collect();
                let half = turned / 2;
                let tables = [6, 7]
                    .map(|seed| numbers(second * half, seed, 1.0).into_iter().map(Table::from).collect::<Vec<_>>());
                let rows: Vec<u32> = (0..second as u32).rev().collect();
                let positions: &[u32] = if given { &rows } else { &[] };
                let run = || -> Result<Vec<T>> {
                    let nan = [of(f32::NAN); GUARD];
                    let from = device.buffer(&[&nan, x.as_slice(), &nan].concat())?;
                    let (cosines, sines) = (device.buffer(&tables[0])?, device.buffer(&tables[1])?);
                    let positions = device.buffer(positions)?;
                    let mut y = device.buffer(&vec![of(f32::NAN); x.len() + 2 * GUARD])?;
                    let launch = Launch::of(kernel(name))
                        .read(from.slice(GUARD..GUARD + x.len())?)?
                        .read(&cosines)?
                        .read(&sines)?
                        .read(&positions)?
                        .write(y.slice_mut(GUARD..GUARD + x.len())?)?
                        .value([first, second, third, elements, turned])?
                        .value([second * third * elements, third * elements, elements, 1])?
                        .value([0, half, 0])?
                        .value([0usize, 1, 0])?
                        .value(pairs)?;
                    device.run(launch.over(x.len() / width))?;
                    y.read()
                };
                let place = format!("{name}, {:?}, {pairs:?}, {given}", [first, second, third, elements, turned]);
                let all: Vec<f64> =
                    run().unwrap_or_else(|error| panic!("{place}: {error}")).into_iter().map(number).collect();
                stand.ran([kernel(name)], &place);
                let (before, rest) = all.split_at(GUARD);
                let (made, after) = rest.split_at(x.len());
                assert!(before.iter().chain(after).all(|x| x.is_nan()), "{place}: a guard was overwritten");
                for (at, made) in made.iter().enumerate() {
                    let (e, position) = (at % elements, at / elements / third % second);
                    let row = if given { second - 1 - position } else { position };
                    let value = |at: usize| number(x[at]);
                    let table = |which: usize, pair: usize| -> f64 { tables[which][row * half + pair].into() };
                    let expected = match pairs {
                        _ if e >= turned => value(at),
                        Pairs::Halves if e < half => table(0, e) * value(at) - table(1, e) * value(at + half),
                        Pairs::Halves => table(1, e - half) * value(at - half) + table(0, e - half) * value(at),
                        Pairs::Neighbours if e.is_multiple_of(2) => {
                            table(0, e / 2) * value(at) - table(1, e / 2) * value(at + 1)
                        }
                        Pairs::Neighbours => table(1, e / 2) * value(at - 1) + table(0, e / 2) * value(at),
                    };
                    assert!((made - expected).abs() <= tolerance, "{place}: element {at} is {made}, not {expected}");
                }
            }
        }
    }
}
