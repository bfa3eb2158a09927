//! Codes of narrow types on every device: what every code means, which code every `f16`, thousands of `f32` and every number near halfway between two others gets, how integers are cut off, and how codes are packed.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, compare, devices, numbers};
use half::{bf16, f16};
use trefoil_dsl::device::DeviceKind;
use trefoil_graph::ops::{Narrow, Overflow, Rounding};
use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, GraphError, Model, Options, Symbol, Tensor};

use ElementType::{BF16, F16, F32, I8, I16, I32, U8, U16, U32};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// Every way in which numbers of a type become codes.
fn ways(narrow: Narrow) -> impl Iterator<Item = (Overflow, Rounding)> {
    let lost = (narrow != Narrow::Float4E2M1).then_some(Overflow::Lost);
    let overflows = [Overflow::Saturated].into_iter().chain(lost);
    overflows.flat_map(move |overflow| narrow.roundings().iter().map(move |rounding| (overflow, *rounding)))
}

/// Adds outputs for numbers as codes of every type in every way.
fn encoded(graph: &mut Graph, x: Tensor, about: &str) {
    let is_float = graph.type_of(x).unwrap().element.is_float();
    for narrow in Narrow::ALL.into_iter().filter(|narrow| is_float || !narrow.is_float()) {
        for (overflow, rounding) in ways(narrow) {
            let codes = graph.encode(x, narrow, overflow, rounding).unwrap();
            graph.output(&format!("{about} as {narrow:?}, {overflow:?}, {rounding:?}"), codes).unwrap();
        }
    }
}

/// Codes and numbers from tables that stand in the formats' definitions.
#[test]
fn values_are_those_of_the_definitions() {
    let known = [
        (Narrow::Float8E4M3, 0x01, 2f64.powi(-9)),
        (Narrow::Float8E4M3, 0x08, 2f64.powi(-6)),
        (Narrow::Float8E4M3, 0x38, 1.0),
        (Narrow::Float8E4M3, 0x7e, 448.0),
        (Narrow::Float8E4M3, 0xfe, -448.0),
        (Narrow::Float8E4M3Fnuz, 0x01, 2f64.powi(-10)),
        (Narrow::Float8E4M3Fnuz, 0x40, 1.0),
        (Narrow::Float8E4M3Fnuz, 0x7f, 240.0),
        (Narrow::Float8E5M2, 0x01, 2f64.powi(-16)),
        (Narrow::Float8E5M2, 0x3c, 1.0),
        (Narrow::Float8E5M2, 0x7b, 57344.0),
        (Narrow::Float8E5M2, 0x7c, f64::INFINITY),
        (Narrow::Float8E5M2, 0xfc, f64::NEG_INFINITY),
        (Narrow::Float8E5M2Fnuz, 0x01, 2f64.powi(-17)),
        (Narrow::Float8E5M2Fnuz, 0x7f, 57344.0),
        (Narrow::Float8E8M0, 0x00, 2f64.powi(-127)),
        (Narrow::Float8E8M0, 0x7f, 1.0),
        (Narrow::Float8E8M0, 0xfe, 2f64.powi(127)),
        (Narrow::I4, 0x8, -8.0),
        (Narrow::I2, 0x3, -1.0),
        (Narrow::U2, 0x3, 3.0),
    ];
    for (narrow, code, value) in known {
        assert_eq!(narrow.value(code), value, "{code:#x} of {narrow:?}");
    }
    let fours: Vec<f64> = (0..16).map(|code| Narrow::Float4E2M1.value(code)).collect();
    assert_eq!(fours, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]);
    for (narrow, nans) in [
        (Narrow::Float8E4M3, &[0x7fu8, 0xff][..]),
        (Narrow::Float8E4M3Fnuz, &[0x80]),
        (Narrow::Float8E5M2, &[0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff]),
        (Narrow::Float8E5M2Fnuz, &[0x80]),
        (Narrow::Float8E8M0, &[0xff]),
    ] {
        let found: Vec<u8> = (0..=u8::MAX).filter(|code| narrow.value(*code).is_nan()).collect();
        assert_eq!(found, nans, "{narrow:?}");
    }
}

#[test]
fn every_code_of_every_type() {
    let codes: Vec<u8> = (0..=u8::MAX).collect();
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.input("codes", U8, shape(&[16, 16])).unwrap();
        let turned = graph.transpose(x, &[1, 0]).unwrap();
        for narrow in Narrow::ALL {
            for to in [F32, F16, BF16, I8, U8, I16, U16, I32, U32] {
                if to.is_float() || !narrow.is_float() {
                    let of = if to == F16 { turned } else { x };
                    let value = graph.decode(of, narrow, to).unwrap();
                    graph.output(&format!("{narrow:?} as {to}"), value).unwrap();
                }
            }
        }
        let executable = check(&graph, &device, &[("codes", Values::U8(codes.clone()))], &Extents::new(), 0.0);
        // Bit for bit: infinities and the least numbers too, and of zeros the sign.
        let outputs = executable.run(&[("codes", codes.as_slice().into())], &Extents::new()).unwrap();
        for narrow in Narrow::ALL {
            let given = outputs.get::<f32>(&format!("{narrow:?} as f32")).unwrap();
            for (code, given) in codes.iter().zip(given) {
                let exact = narrow.value(*code);
                let same = given.to_bits() == (exact as f32).to_bits() || given.is_nan() && exact.is_nan();
                assert!(same, "{code:#x} of {narrow:?} is {given}, not {exact}, on {}", device.properties().name);
            }
        }
    }
}

#[test]
fn every_half_float() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    // A GPU's instruction that widens a half has one NaN for all of these.
    let widened: Vec<f16> = halves.iter().map(|half| if half.is_nan() { f16::NAN } else { *half }).collect();
    for device in devices() {
        let halves = if device.properties().kind == DeviceKind::Cpu { &halves } else { &widened };
        for values in [Values::F16(halves.clone()), Values::BF16(brains.clone())] {
            let mut graph = Graph::new();
            let x = graph.input("x", values.element(), shape(&[256, 256])).unwrap();
            encoded(&mut graph, x, "x");
            check(&graph, &device, &[("x", values)], &Extents::new(), 0.0);
        }
    }
}

/// The numbers of a type, what lies halfway between neighbours, and what lies next to all of these.
fn near(narrow: Narrow) -> Vec<f32> {
    let mut all: Vec<f64> = (0..=u8::MAX).map(|code| narrow.value(code)).filter(|value| value.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let halfway: Vec<f64> = all.windows(2).map(|two| (two[0] + two[1]) / 2.0).collect();
    let [least, most] = [all[0], all[all.len() - 1]];
    all.extend(halfway);
    // Halfway to what would follow on the ends.
    all.extend([most * 1.0625, most * 1.125, most * 1.5, most * 2.0, least * 1.0625, least - 0.5, most + 0.5]);
    let around = all.into_iter().filter(|value| value.abs() <= f64::from(f32::MAX)).flat_map(|value| {
        let value = value as f32;
        [value.next_down(), value, value.next_up(), -value]
    });
    around.collect()
}

#[test]
fn numbers_near_halfway_and_at_random() {
    let mut x: Vec<f32> = Narrow::ALL.into_iter().flat_map(near).collect();
    x.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-40, -1e-45, 3e9, -3e9]);
    // Bits without a pattern: numbers of every size.
    x.extend(
        numbers(20_000, 7, 1.0)
            .iter()
            .zip(numbers(20_000, 8, 1.0))
            .map(|(a, b)| f32::from_bits(a.to_bits().rotate_left(9) ^ b.to_bits().wrapping_mul(0x9e37_79b9))),
    );
    x.extend(numbers(20_000, 9, 600.0));
    while !x.len().is_multiple_of(7) {
        x.push(1.0);
    }
    for device in devices() {
        let mut graph = Graph::new();
        let input = graph.input("x", F32, shape(&[7, x.len() / 7])).unwrap();
        let turned = graph.transpose(input, &[1, 0]).unwrap();
        encoded(&mut graph, input, "x");
        let codes = graph.encode(turned, Narrow::Float8E4M3, Overflow::Saturated, Rounding::Nearest).unwrap();
        graph.output("turned", codes).unwrap();
        check(&graph, &device, &[("x", Values::F32(x.clone()))], &Extents::new(), 0.0);
    }
}

#[test]
fn integers_are_cut_off_or_kept_within() {
    for device in devices() {
        let mut graph = Graph::new();
        let (mut inputs, count) = (Vec::new(), 301);
        for element in [I8, U8, I16, U16, I32, U32] {
            let x = graph.input(element.name(), element, shape(&[count])).unwrap();
            encoded(&mut graph, x, element.name());
            inputs.push((element.name(), Values::of(element, count, 3, 15.0)));
        }
        check(&graph, &device, &inputs, &Extents::new(), 0.0);
        let ends = [i32::MIN, i32::MAX, -9, 8, -8, 7, 16, -1, 0];
        let mut graph = Graph::new();
        let x = graph.input("x", I32, shape(&[ends.len()])).unwrap();
        encoded(&mut graph, x, "x");
        check(&graph, &device, &[("x", Values::I32(ends.to_vec()))], &Extents::new(), 0.0);
    }
}

#[test]
fn every_attribute_counts() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, shape(&[8])).unwrap();
    let values = Values::F32(vec![1.5, 0.3, 1000.0, 2.75, -9.5, 3e38, 0.6, -1.6]);
    let mut results = Vec::new();
    for narrow in Narrow::ALL {
        for (overflow, rounding) in ways(narrow) {
            if narrow == Narrow::Float8E8M0 && rounding == Rounding::Down && overflow == Overflow::Lost {
                // No number is rounded down to more than the largest.
                continue;
            }
            let codes = graph.encode(x, narrow, overflow, rounding).unwrap();
            let op = graph.nodes().last().unwrap().op.clone();
            assert!(graph.type_of(codes).is_ok());
            let made = op.reference(&[values.host()], &[vec![8]]).remove(0).values;
            assert!(!results.contains(&(narrow, made.clone())), "{op:?} is as another");
            results.push((narrow, made));
        }
    }
}

/// Codes of rows in bytes, by the definition.
fn in_bytes(codes: &[u8], row: usize, narrow: Narrow) -> Vec<u8> {
    let each = (8 / narrow.bits()) as usize;
    let of_rows = codes.chunks(row).flat_map(|row| row.chunks(each));
    of_rows
        .map(|codes| codes.iter().rev().fold(0u16, |byte, code| byte << narrow.bits() | u16::from(*code)) as u8)
        .collect()
}

/// A row of any number of codes, and of a number that fills bytes.
#[test]
fn as_many_codes_as_each_run_wants() {
    for n in [Symbol::new("n", 1, 64).unwrap(), Symbol::with_multiple("n", 0, 64, 2).unwrap()] {
        for narrow in [Narrow::U4, Narrow::I2] {
            let mut graph = Graph::new();
            let codes = graph.input("codes", U8, vec![Dim::from(3usize), Dim::from(&n)]).unwrap();
            let packed = graph.pack_codes(codes, narrow).unwrap();
            let bytes = Dim::from(&n).quotient_up(i64::from(8 / narrow.bits()));
            assert_eq!(graph.type_of(packed).unwrap().shape, [Dim::from(3usize), bytes]);
            let again = graph.unpack_codes(packed, narrow, &n).unwrap();
            assert_eq!(graph.type_of(again).unwrap(), graph.type_of(codes).unwrap());
            graph.output("packed", packed).unwrap();
            graph.output("again", again).unwrap();
            for device in devices() {
                let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
                for columns in [64usize, 30, 2, 5, 1].into_iter().filter(|of| *of as i64 % n.multiple_of() == 0) {
                    let place = format!("{columns} of {narrow:?} on {}", device.properties().name);
                    let extents = Extents::with([(&n, columns as i64)]).unwrap();
                    let given: Vec<u8> = (0..3 * columns).map(|at| (at * 37 + at / 5) as u8).collect();
                    let outputs = executable.run(&[("codes", given.as_slice().into())], &extents).unwrap();
                    let mask = ((1u32 << narrow.bits()) - 1) as u8;
                    let own: Vec<u8> = given.iter().map(|code| code & mask).collect();
                    assert_eq!(outputs.get::<u8>("again").unwrap(), own, "{place}");
                    assert_eq!(outputs.get::<u8>("packed").unwrap(), in_bytes(&own, columns, narrow), "{place}");
                }
            }
        }
    }
}

#[test]
fn codes_in_bytes() {
    let n = Symbol::new("n", 0, 64).unwrap();
    for device in devices() {
        for narrow in [Narrow::I4, Narrow::Float4E2M1, Narrow::U2, Narrow::Float8E5M2] {
            for extents in [&[0usize][..], &[1], &[2], &[3], &[5], &[3, 7], &[2, 3, 8], &[4, 0], &[257]] {
                let count = extents.iter().product();
                let mut graph = Graph::new();
                let codes = graph.input("codes", U8, shape(extents)).unwrap();
                let packed = graph.pack_codes(codes, narrow).unwrap();
                graph.output("packed", packed).unwrap();
                let again = graph.unpack_codes(packed, narrow, extents[extents.len() - 1]).unwrap();
                graph.output("again", again).unwrap();
                let given: Vec<u8> = (0..count).map(|at: usize| (at * 37 + at / 5) as u8).collect();
                let inputs = [("codes", Values::U8(given.clone()))];
                let executable = check(&graph, &device, &inputs, &Extents::new(), 0.0);
                let outputs = executable.run(&[("codes", given.as_slice().into())], &Extents::new()).unwrap();
                let mask = ((1u32 << narrow.bits()) - 1) as u8;
                let own: Vec<u8> = given.iter().map(|code| code & mask).collect();
                assert_eq!(outputs.get::<u8>("again").unwrap(), own, "{narrow:?}{extents:?}");
                let bytes = in_bytes(&own, extents[extents.len() - 1].max(1), narrow);
                assert_eq!(outputs.get::<u8>("packed").unwrap(), bytes, "{narrow:?}{extents:?}");
            }
        }
        // As many as each run wants.
        let mut graph = Graph::new();
        let x = graph.input("x", F32, vec![Dim::from(&n), Dim::from(6usize)]).unwrap();
        let codes = graph.encode(x, Narrow::Float4E2M1, Overflow::Saturated, Rounding::Nearest).unwrap();
        let packed = graph.pack_codes(codes, Narrow::Float4E2M1).unwrap();
        graph.output("packed", packed).unwrap();
        let codes = graph.unpack_codes(packed, Narrow::Float4E2M1, 6i64).unwrap();
        let y = graph.decode(codes, Narrow::Float4E2M1, F32).unwrap();
        graph.output("y", y).unwrap();
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        for rows in [0usize, 1, 64] {
            let mut extents = Extents::new();
            extents.set(&n, rows as i64).unwrap();
            compare(&graph, &executable, &[("x", Values::F32(numbers(rows * 6, 1, 7.0)))], &extents, 0.0);
        }
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", F32, shape(&[3])).unwrap();
    let d = graph.input("d", ElementType::F64, shape(&[3])).unwrap();
    let i = graph.input("i", I32, shape(&[3])).unwrap();
    let codes = graph.input("codes", U8, shape(&[3])).unwrap();
    let one = graph.input("one", U8, shape(&[])).unwrap();
    let mut messages = Vec::new();
    let mut refused = |result: Result<Tensor, GraphError>| messages.push(result.unwrap_err().to_string());
    refused(graph.encode(d, Narrow::I4, Overflow::Saturated, Rounding::Nearest));
    refused(graph.encode(i, Narrow::Float8E4M3, Overflow::Saturated, Rounding::Nearest));
    refused(graph.encode(x, Narrow::Float4E2M1, Overflow::Lost, Rounding::Nearest));
    refused(graph.encode(x, Narrow::Float8E4M3, Overflow::Saturated, Rounding::Up));
    refused(graph.decode(x, Narrow::Float8E4M3, F32));
    refused(graph.decode(codes, Narrow::Float8E4M3, I32));
    refused(graph.pack_codes(x, Narrow::I4));
    refused(graph.pack_codes(one, Narrow::I4));
    refused(graph.unpack_codes(codes, Narrow::I4, 7i64));
    let expected = [
        "encode(d: f64[3]): input `x` is f64; expected f32, f16, bf16, i8, u8, i16, u16, i32 or u32 (`cast` converts)",
        "encode(i: i32[3]): input `x` is i32; expected f32, f16 or bf16 (`cast` converts)",
        "encode(x: f32[3]): attribute `overflow` is Lost; expected Saturated, because Float4E2M1 has neither infinity nor NaN",
        "encode(x: f32[3]): attribute `rounding` is Up; expected one of [Nearest], as Float8E4M3 knows them",
        "decode(x: f32[3]): input `codes` is f32; expected u8 (cast it with `g.cast(tensor, ElementType::U8)`)",
        "decode(codes: u8[3]): attribute `to` is i32; expected f32, f16 or bf16 (`cast` converts)",
        "pack_codes: input `codes` is f32; expected u8, one code or several in each; `encode` gives them",
        "pack_codes: input `codes` is u8[]; expected an axis along which codes are packed",
        "unpack_codes: input `packed` is u8[3]; expected a last axis of 4, for 7 codes",
    ];
    for (given, expected) in messages.iter().zip(expected) {
        assert_eq!(given, expected);
    }
    assert_eq!(messages.len(), expected.len());
}
