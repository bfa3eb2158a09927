//! Every element type: how it is stored at every length and offset, what lies behind it, how its arithmetic wraps, and what casts make of the extremes.
//! Expected values are those of Rust's own operators, with all bits.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::{Values, check, compare, computes, devices};
use half::{bf16, f16};
use trefoil_dsl::device::{Command, Device};
use trefoil_graph::{Data, Dim, ElementType, Error, Executable, Extents, Graph, HostElement, Model, Options, Tensor};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap()
}

/// The types that are computed with on a device.
fn computed(device: &Device) -> impl Iterator<Item = ElementType> {
    ElementType::ALL.into_iter().filter(|element| computes(device, *element))
}

/// Counts around four, a word, a workgroup and four workgroups.
const COUNTS: [usize; 15] = [0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 1023, 1024, 1025, 4099];

#[test]
fn every_type_at_every_length() {
    for device in devices() {
        for count in COUNTS {
            // One graph of all types: each value lies behind others.
            let mut graph = Graph::new();
            let (mut inputs, mut names) = (Vec::new(), Vec::new());
            for element in computed(&device) {
                names.push((element, format!("x {element}")));
            }
            for (element, name) in &names {
                let x = graph.input(name, *element, shape(&[count])).unwrap();
                let y = match element {
                    ElementType::Bool => graph.logical_not(x).unwrap(),
                    _ => {
                        let three = graph.scalar(3, *element).unwrap();
                        let y = graph.mul(x, three).unwrap();
                        graph.add(y, x).unwrap()
                    }
                };
                graph.output(&format!("y {element}"), y).unwrap();
                inputs.push((name.as_str(), Values::of(*element, count, 1, 8.0)));
            }
            check(&graph, &device, &inputs, &Extents::new(), 1e-2);
        }
    }
}

#[test]
fn what_a_device_does_not_compute_with_it_still_moves() {
    for device in devices() {
        for count in [1, 3, 4, 257] {
            let mut graph = Graph::new();
            let mut inputs = Vec::new();
            for (element, name) in [(ElementType::F64, "f64"), (ElementType::I64, "i64"), (ElementType::U64, "u64")] {
                let x = graph.input(name, element, shape(&[count])).unwrap();
                let condition = graph.input(&format!("{name}?"), ElementType::Bool, shape(&[count])).unwrap();
                let fill = graph.scalar(7, element).unwrap();
                let chosen = graph.where_(condition, x, fill).unwrap();
                graph.output(&format!("{name} chosen"), chosen).unwrap();
                let turned = graph.expand(x, shape(&[3, count])).unwrap();
                let turned = graph.transpose(turned, &[1, 0]).unwrap();
                let turned = graph.contiguous(turned).unwrap();
                graph.output(&format!("{name} turned"), turned).unwrap();
                inputs.push((name.to_owned(), Values::of(element, count, 5, 1000.0)));
                inputs.push((format!("{name}?"), Values::of(ElementType::Bool, count, 6, 1.0)));
            }
            let inputs: Vec<_> = inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            check(&graph, &device, &inputs, &Extents::new(), 0.0);
        }
    }
}

#[test]
fn arithmetic_in_a_type_that_the_device_lacks_is_an_error_that_names_it() {
    for device in devices() {
        for element in ElementType::ALL.into_iter().filter(|element| !computes(&device, *element)) {
            let mut graph = Graph::new();
            let x = graph.input("x", element, shape(&[8])).unwrap();
            let moved = graph.contiguous(x).unwrap();
            let sum = graph.add(moved, x).unwrap();
            graph.output("sum", sum).unwrap();
            let refused = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap_err();
            let message = refused.to_string();
            assert!(matches!(refused, Error::Lacking { op: "add", .. }), "{message}");
            for part in ["`add.2`", element.name(), device.properties().name.as_str(), "`cast`"] {
                assert!(message.contains(part), "{message} does not say {part}");
            }
        }
    }
}

#[test]
fn views_at_odd_offsets() {
    for device in devices() {
        for element in computed(&device) {
            let mut graph = Graph::new();
            let x = graph.input("x", element, shape(&[7, 9])).unwrap();
            let add = |graph: &mut Graph, name: &str, tensor: Tensor| {
                // The view itself, and what is computed of it.
                graph.output(name, tensor).unwrap();
                let moved = graph.contiguous(tensor).unwrap();
                graph.output(&format!("{name} moved"), moved).unwrap();
                let same = graph.eq(tensor, moved).unwrap();
                graph.output(&format!("{name} same"), same).unwrap();
            };
            for (start, length) in [(1, 1), (1, 3), (3, 4), (2, 5)] {
                let rows = graph.narrow(x, 0, start, length).unwrap();
                add(&mut graph, &format!("rows {start} {length}"), rows);
            }
            let row = graph.narrow(x, 0, 3, 1).unwrap();
            for (start, length) in [(1, 1), (2, 3), (5, 4), (3, 6)] {
                let part = graph.narrow(row, 1, start, length).unwrap();
                add(&mut graph, &format!("part {start} {length}"), part);
                let columns = graph.narrow(x, 1, start, length).unwrap();
                let turned = graph.transpose(columns, &[1, 0]).unwrap();
                add(&mut graph, &format!("columns {start} {length}"), turned);
            }
            check(&graph, &device, &[("x", Values::of(element, 63, 9, 15.0))], &Extents::new(), 0.0);
        }
    }
}

/// What kernels write ends where their outputs end, to the byte: the rest of a last word, and the padding of a binding, keep what was there.
#[test]
fn nothing_behind_an_output_is_written() {
    const POISON: u8 = 0xa5;
    for device in devices() {
        for element in computed(&device).filter(|element| *element != ElementType::Bool) {
            let mut graph = Graph::new();
            let mut inputs = Vec::new();
            for count in [1, 2, 3, 5, 63, 127, 257] {
                let name = format!("x {count}");
                let x = graph.input(&name, element, shape(&[count])).unwrap();
                let doubled = graph.add(x, x).unwrap();
                graph.output(&format!("y {count}"), doubled).unwrap();
                inputs.push((name, Values::of(element, count, count as u32, 7.0)));
            }
            let inputs: Vec<_> = inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            // Where no input lies in memory that an output takes later.
            let resident = inputs.iter().map(|(name, _)| (*name).to_owned()).collect();
            let options = Options { resident, ..Options::default() };
            let executable = Executable::compile(&graph, &Model::new(), &device, &options).unwrap();
            // Each output's binding, poisoned, with the bytes that are the output's own.
            let sizes = inputs.iter().map(|(_, values)| values.data().len() * element.bytes());
            let dispatches = executable.commands().iter().filter_map(|command| match command {
                Command::Dispatch(dispatch) => Some(dispatch),
                _ => None,
            });
            let mut guarded = Vec::new();
            for (dispatch, size) in dispatches.zip(sizes) {
                let kernel = dispatch.pipeline.kernel();
                let mut bindings = dispatch.bindings.iter().zip(&*kernel.bindings);
                let (range, _) = bindings.find(|(_, binding)| binding.access.writes()).unwrap();
                device.backend().write(range, &vec![POISON; range.bytes as usize]).unwrap();
                guarded.push((range.clone(), size as usize));
            }
            assert_eq!(guarded.len(), inputs.len());
            compare(&graph, &executable, &inputs, &Extents::new(), 0.0);
            for (range, size) in guarded {
                let mut bytes = vec![0; range.bytes as usize];
                device.backend().read(&range, &mut bytes).unwrap();
                let behind = &bytes[size..];
                let name = &device.properties().name;
                assert!(behind.iter().all(|byte| *byte == POISON), "{size} bytes of {element} on {name}: {behind:x?}");
            }
        }
    }
}

/// Runs a graph of one input and gives an output.
fn run<T: HostElement, U: HostElement>(
    device: &Device,
    values: &[T],
    build: impl Fn(&mut Graph, Tensor) -> Tensor,
) -> Vec<U> {
    let mut graph = Graph::new();
    let x = graph.input("x", T::ELEMENT, shape(&[values.len()])).unwrap();
    let y = build(&mut graph, x);
    graph.output("y", y).unwrap();
    let outputs = compile(&graph, device).run(&[("x", Data::from(values))], &Extents::new()).unwrap();
    outputs.get::<U>("y").unwrap().to_vec()
}

macro_rules! integers_wrap {
    ($device:expr, $($ty:ty)*) => {
        $({
            let element = <$ty as HostElement>::ELEMENT;
            if computes($device, element) {
                let one = 1 as $ty;
                let some = [
                    <$ty>::MIN, <$ty>::MIN + 1, <$ty>::MAX, <$ty>::MAX - 1, <$ty>::MAX / 2, <$ty>::MAX / 2 + 1,
                    0, 1, 2, 3, 7, 100, one.wrapping_neg(), (3 as $ty).wrapping_neg(), 0x55u8 as $ty, (<$ty>::MAX / 3) ^ 5,
                ];
                let pairs: Vec<($ty, $ty)> = some.iter().flat_map(|a| some.iter().map(|b| (*a, *b))).collect();
                let (a, b): (Vec<$ty>, Vec<$ty>) = pairs.iter().copied().unzip();
                let mut graph = Graph::new();
                let x = graph.input("a", element, shape(&[a.len()])).unwrap();
                let y = graph.input("b", element, shape(&[b.len()])).unwrap();
                type Function = fn($ty, $ty) -> $ty;
                let functions: [(&str, Tensor, Function); 7] = [
                    ("add", graph.add(x, y).unwrap(), <$ty>::wrapping_add),
                    ("sub", graph.sub(x, y).unwrap(), <$ty>::wrapping_sub),
                    ("mul", graph.mul(x, y).unwrap(), <$ty>::wrapping_mul),
                    ("div", graph.div(x, y).unwrap(), |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
                    ("rem", graph.rem(x, y).unwrap(), |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
                    ("minimum", graph.minimum(x, y).unwrap(), Ord::min),
                    ("maximum", graph.maximum(x, y).unwrap(), Ord::max),
                ];
                let below = graph.lt(x, y).unwrap();
                let square = graph.sqr(x).unwrap();
                graph.output("below", below).unwrap();
                graph.output("square", square).unwrap();
                for (name, tensor, _) in &functions {
                    graph.output(name, *tensor).unwrap();
                }
                let inputs = [("a", Data::from(&a)), ("b", Data::from(&b))];
                let outputs = compile(&graph, $device).run(&inputs, &Extents::new()).unwrap();
                for (name, _, function) in functions {
                    for ((a, b), got) in pairs.iter().zip(outputs.get::<$ty>(name).unwrap()) {
                        assert_eq!(*got, function(*a, *b), "{name}({a}, {b}) of {element}");
                    }
                }
                let expected: Vec<bool> = pairs.iter().map(|(a, b)| a < b).collect();
                assert_eq!(outputs.get_bools("below").unwrap(), expected, "{element}");
                let expected: Vec<$ty> = a.iter().map(|a| a.wrapping_mul(*a)).collect();
                assert_eq!(outputs.get::<$ty>("square").unwrap(), expected, "{element}");
            }
        })*
    };
}

#[test]
fn integers_wrap_in_their_own_width() {
    for device in devices() {
        integers_wrap!(&device, i8 u8 i16 u16 i32 u32 i64 u64);
    }
}

macro_rules! signs {
    ($device:expr, $($ty:ty)*) => {
        $(if computes($device, <$ty as HostElement>::ELEMENT) {
            let values = [<$ty>::MIN, <$ty>::MIN + 1, -3, -1, 0, 1, 77, <$ty>::MAX];
            assert_eq!(run::<$ty, $ty>($device, &values, |g, x| g.neg(x).unwrap()), values.map(<$ty>::wrapping_neg));
            assert_eq!(run::<$ty, $ty>($device, &values, |g, x| g.abs(x).unwrap()), values.map(<$ty>::wrapping_abs));
            assert_eq!(run::<$ty, $ty>($device, &values, |g, x| g.sign(x).unwrap()), values.map(<$ty>::signum));
            assert_eq!(run::<$ty, $ty>($device, &values, |g, x| g.relu(x).unwrap()), values.map(|x| x.max(0)));
        })*
    };
}

#[test]
fn signs_of_the_least_integers() {
    for device in devices() {
        signs!(&device, i8 i16 i32 i64);
    }
}

/// All targets of a cast from one type, in one graph, with Rust's `as` as the expected values.
macro_rules! casts {
    ($device:expr, $from:ty, $values:expr, $($to:ty)*) => {{
        let (device, values): (&Device, Vec<$from>) = ($device, $values);
        let from = <$from as HostElement>::ELEMENT;
        let mut graph = Graph::new();
        let x = graph.input("x", from, shape(&[values.len()])).unwrap();
        let copy = graph.contiguous(x).unwrap();
        let possible = |to: ElementType| {
            !(from.is_float() || to.is_float()) || from == to || computes(device, from) && computes(device, to)
        };
        $(if possible(<$to as HostElement>::ELEMENT) {
            let y = graph.cast(copy, <$to as HostElement>::ELEMENT).unwrap();
            graph.output(stringify!($to), y).unwrap();
        })*
        let outputs = compile(&graph, device).run(&[("x", Data::from(&values))], &Extents::new()).unwrap();
        $(if possible(<$to as HostElement>::ELEMENT) {
            for (value, got) in values.iter().zip(outputs.get::<$to>(stringify!($to)).unwrap()) {
                let expected = *value as $to;
                let same = *got == expected || format!("{got:?}{expected:?}") == "NaNNaN";
                assert!(same, "{value:?} as {} on {}: {got:?}, not {expected:?}", stringify!($to), device.properties().name);
            }
        })*
    }};
}

macro_rules! casts_of_integers {
    ($device:expr, $($from:ty)*) => {
        $({
            let mut values: Vec<$from> = vec![<$from>::MIN, <$from>::MAX, <$from>::MAX / 2, <$from>::MAX / 3, 0, 1, 2, 127];
            for shift in 0..<$from>::BITS {
                let power = (1 as $from) << shift;
                values.extend([power, power.wrapping_sub(1), power.wrapping_add(1), power.wrapping_neg(), !power, power | power.checked_shr(24).unwrap_or(0) | power.checked_shr(25).unwrap_or(0)]);
            }
            casts!($device, $from, values, i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);
        })*
    };
}

#[test]
fn casts_of_integers_take_their_bits_and_round_once() {
    for device in devices() {
        casts_of_integers!(&device, i8 u8 i16 u16 i32 u32 i64 u64);
    }
}

#[test]
fn casts_of_floats_saturate() {
    for device in devices() {
        let mut values = vec![0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for power in [7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 100] {
            let edge = 2f64.powi(power);
            for value in [edge, edge - 1.0, edge + 1.0, edge - 0.5, edge * (1.0 - f64::EPSILON), edge * (1.0 - 6e-8)] {
                values.extend([value, -value]);
            }
        }
        let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        casts!(&device, f32, singles.clone(), i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);
        if computes(&device, ElementType::F64) {
            casts!(&device, f64, values.clone(), i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);
        }
    }
}

/// To 16 bits everything goes by way of `f32`.
#[test]
fn casts_to_halves_round_in_f32_first() {
    for device in devices() {
        let singles: Vec<f32> = (0..1u32 << 12)
            .map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9) ^ (i << 12)))
            .chain([65504.0, 65519.996, 65520.0, -65520.0, 1e-8, 6e-8, 2.98e-8, f32::MAX, f32::NAN, f32::INFINITY])
            .filter(|value| !value.is_subnormal())
            .collect();
        let halves: Vec<f16> = run(&device, &singles, |g, x| g.cast(x, ElementType::F16).unwrap());
        let brains: Vec<bf16> = run(&device, &singles, |g, x| g.cast(x, ElementType::BF16).unwrap());
        for ((value, half), brain) in singles.iter().zip(halves).zip(brains) {
            let (expected, name) = (f16::from_f32(*value), &device.properties().name);
            assert!(
                half == expected || half.is_nan() && expected.is_nan(),
                "{value} on {name}: {half}, not {expected}"
            );
            let expected = bf16::from_f32(*value);
            assert!(
                brain == expected || brain.is_nan() && expected.is_nan(),
                "{value} on {name}: {brain}, not {expected}"
            );
        }
        let whole =
            [i32::MAX, i32::MIN, (1 << 30) + (1 << 22), (1 << 30) + (1 << 22) + 1, 65519, 65520, 2049, 2051, 257, 259];
        let brains: Vec<bf16> = run(&device, &whole, |g, x| g.cast(x, ElementType::BF16).unwrap());
        assert_eq!(brains, whole.map(|x| bf16::from_f32(x as f32)));
        let halves: Vec<f16> = run(&device, &whole, |g, x| g.cast(x, ElementType::F16).unwrap());
        assert_eq!(halves, whole.map(|x| f16::from_f32(x as f32)));
        if computes(&device, ElementType::I64) {
            let whole = [i64::MAX, i64::MIN, (1 << 62) + (1 << 54) + 1, (1 << 40) + (1 << 32) + 1, 2051, -65520];
            let brains: Vec<bf16> = run(&device, &whole, |g, x| g.cast(x, ElementType::BF16).unwrap());
            assert_eq!(brains, whole.map(|x| bf16::from_f32(x as f32)));
        }
        if computes(&device, ElementType::F64) {
            let doubles =
                [1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-11), 65_519.999_999, 1e300, -1e-3, f64::NAN];
            let halves: Vec<f16> = run(&device, &doubles, |g, x| g.cast(x, ElementType::F16).unwrap());
            let expected = doubles.map(|x| f16::from_f32(x as f32));
            assert_eq!(format!("{halves:?}"), format!("{expected:?}"));
        }
    }
}

#[test]
fn bits_are_taken_for_another_type_without_a_kernel() {
    for device in devices() {
        // Quiet and signalling NaNs among them.
        let words: Vec<u32> =
            (0..257u32).map(|i| i.wrapping_mul(0x9e37_79b9)).chain([0x7f80_0001, 0xffc0_0002]).collect();
        let floats: Vec<f32> = run(&device, &words, |g, x| g.bitcast(x, ElementType::F32).unwrap());
        assert!(floats.iter().map(|x| x.to_bits()).eq(words.iter().copied()));
        let halves: Vec<u16> = (0..=u16::MAX).step_by(7).collect();
        for element in [ElementType::F16, ElementType::BF16] {
            // A view of a view, at an odd offset, copied, and back.
            let back: Vec<u16> = run(&device, &halves, |g, x| {
                let x = g.narrow(x, 0, 3, 1001).unwrap();
                let bits = g.bitcast(x, element).unwrap();
                g.bitcast(bits, ElementType::U16).unwrap()
            });
            assert_eq!(back, halves[3..1004]);
        }
        // What one kernel would have as two types: the sum's value, and its bits.
        let mut graph = Graph::new();
        let x = graph.input("x", ElementType::BF16, shape(&[66])).unwrap();
        let sum = graph.add(x, x).unwrap();
        let bits = graph.bitcast(sum, ElementType::I16).unwrap();
        let one = graph.scalar(1, ElementType::I16).unwrap();
        let next = graph.add(bits, one).unwrap();
        let half = graph.scalar(0.5, ElementType::F16).unwrap();
        let fill = graph.bitcast(half, ElementType::I16).unwrap();
        let fill = graph.add(bits, fill).unwrap();
        let twice = graph.add(sum, x).unwrap();
        for (name, tensor) in [("sum", sum), ("next", next), ("fill", fill), ("twice", twice)] {
            graph.output(name, tensor).unwrap();
        }
        check(&graph, &device, &[("x", Values::of(ElementType::BF16, 66, 2, 3.0))], &Extents::new(), 0.0);
    }
}

#[test]
fn what_bitcast_and_functions_refuse() {
    let mut graph = Graph::new();
    let x = graph.input("x", ElementType::F16, shape(&[4])).unwrap();
    let refused = graph.bitcast(x, ElementType::I32).unwrap_err().to_string();
    assert!(refused.contains("expected f32, i32 or u32, to take"), "{refused}");
    let bools = graph.input("bools", ElementType::Bool, shape(&[4])).unwrap();
    let refused = graph.bitcast(bools, ElementType::I32).unwrap_err().to_string();
    assert!(refused.contains("`cast` converts values"), "{refused}");
    let bytes = graph.input("bytes", ElementType::U8, shape(&[4])).unwrap();
    let refused = graph.exp(bytes).unwrap_err().to_string();
    assert!(
        refused.contains("input `x` is u8; expected a float (f32, f16, bf16 or f64; `cast` converts)"),
        "{refused}"
    );
    let refused = graph.neg(bytes).unwrap_err().to_string();
    assert!(
        refused.contains("a number with a sign (f32, f16, bf16, f64, i8, i16, i32 or i64; `cast` converts)"),
        "{refused}"
    );
    let refused = graph.add(x, bytes).unwrap_err().to_string();
    assert!(refused.contains("`cast` to f16 converts"), "{refused}");
}

#[test]
fn fills_and_constants_are_exact() {
    for device in devices() {
        let mut graph = Graph::new();
        let most = graph.fill(u64::MAX, ElementType::U64, shape(&[5])).unwrap();
        let least = graph.fill(i64::MIN + 1, ElementType::I64, shape(&[5])).unwrap();
        let odd = graph.fill((1i64 << 53) + 1, ElementType::I64, shape(&[5])).unwrap();
        let byte = graph.fill(-128, ElementType::I8, shape(&[5])).unwrap();
        let double = graph.fill(0.1, ElementType::F64, shape(&[5])).unwrap();
        let brain = graph.fill(0.1, ElementType::BF16, shape(&[5])).unwrap();
        let values = [u64::MAX, 1 << 63, (1 << 53) + 1];
        let constant = graph.constant(ElementType::U64, shape(&[3]), &values).unwrap();
        let bytes = graph.constant(ElementType::I8, shape(&[3]), &[-1i8, 5, -128]).unwrap();
        let bytes = graph.add(bytes, bytes).unwrap();
        let outputs = [
            ("most", most),
            ("least", least),
            ("odd", odd),
            ("byte", byte),
            ("double", double),
            ("brain", brain),
            ("constant", constant),
            ("bytes", bytes),
        ];
        for (name, tensor) in outputs {
            graph.output(name, tensor).unwrap();
        }
        let outputs = compile(&graph, &device).run(&[], &Extents::new()).unwrap();
        assert_eq!(outputs.get::<u64>("most").unwrap(), [u64::MAX; 5]);
        assert_eq!(outputs.get::<i64>("least").unwrap(), [i64::MIN + 1; 5]);
        assert_eq!(outputs.get::<i64>("odd").unwrap(), [(1i64 << 53) + 1; 5]);
        assert_eq!(outputs.get::<i8>("byte").unwrap(), [-128i8; 5]);
        assert_eq!(outputs.get::<f64>("double").unwrap(), [0.1f64; 5]);
        assert_eq!(outputs.get::<bf16>("brain").unwrap(), [bf16::from_f64(0.1); 5]);
        assert_eq!(outputs.get::<u64>("constant").unwrap(), values);
        assert_eq!(outputs.get::<i8>("bytes").unwrap(), [-2i8, 10, 0]);
        // Half way between two `bf16`, but for a last bit that an `f64` does not hold: rounded once.
        let tie = (1i64 << 62) + (1 << 54);
        for (value, expected) in [(tie, 0x5e80u16), (tie + 1, 0x5e81), (tie - 1, 0x5e80), (-tie - 1, 0xde81)] {
            let mut graph = Graph::new();
            let brain = graph.fill(value, ElementType::BF16, shape(&[3])).unwrap();
            graph.output("brain", brain).unwrap();
            let outputs = compile(&graph, &device).run(&[], &Extents::new()).unwrap();
            assert_eq!(outputs.get::<bf16>("brain").unwrap(), [bf16::from_bits(expected); 3]);
        }
        assert!(outputs.get::<i64>("most").unwrap_err().to_string().contains("i64"));
    }
    let mut graph = Graph::new();
    let refused = graph.fill(9_007_199_254_740_994.0, ElementType::I64, shape(&[1])).unwrap_err().to_string();
    assert!(refused.contains("9007199254740994_i64"), "{refused}");
    for (value, element) in
        [(256, ElementType::U8), (-1, ElementType::U64), (2, ElementType::Bool), (40000, ElementType::I16)]
    {
        let refused = graph.fill(value, element, shape(&[1])).unwrap_err().to_string();
        assert!(refused.contains("because the tensor is") && refused.contains(element.name()), "{refused}");
    }
}

#[test]
fn models_hold_every_type() {
    let file = std::env::temp_dir().join(format!("trefoil types {}.safetensors", std::process::id()));
    let tensors: [(&str, &str, Vec<u8>); 9] = [
        ("bf16", "BF16", [1.5f32, -2.0, 3.0].iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect()),
        ("f64", "F64", [1.5f64, -2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("i8", "I8", vec![1, 0xff, 3]),
        ("u8", "U8", vec![1, 0xff, 3]),
        ("i16", "I16", [1i16, -2, 3].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("u16", "U16", [1u16, 65535, 3].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("i64", "I64", [1i64, i64::MIN, 3].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("u64", "U64", [1u64, u64::MAX, 3].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("bool", "BOOL", vec![1, 0, 1]),
    ];
    let (mut header, mut data) = (Vec::new(), Vec::<u8>::new());
    for (name, dtype, bytes) in &tensors {
        let (start, end) = (data.len(), data.len() + bytes.len());
        header.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":[3],"data_offsets":[{start},{end}]}}"#));
        data.extend(bytes);
    }
    let header = format!("{{{}}}", header.join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(&file, bytes).unwrap();
    let model = Model::from_safetensors(&[&file]).unwrap();
    for device in devices() {
        let mut graph = Graph::new();
        for (name, _, _) in &tensors {
            let element = ElementType::ALL.into_iter().find(|element| element.name() == *name).unwrap();
            let param = graph.param(name, element, shape(&[3])).unwrap();
            let copy = graph.contiguous(param).unwrap();
            graph.output(name, copy).unwrap();
        }
        let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
        let outputs = executable.run(&[], &Extents::new()).unwrap();
        for (name, _, _) in &tensors {
            assert_eq!(outputs.host(name).unwrap().values, model.values(name).unwrap().values, "{name}");
        }
        assert_eq!(outputs.get_bools("bool").unwrap(), [true, false, true]);
        assert_eq!(outputs.get::<u64>("u64").unwrap(), [1, u64::MAX, 3]);
        assert_eq!(outputs.get::<i8>("i8").unwrap(), [1, -1, 3]);
    }
    std::fs::remove_file(file).unwrap();
}
