//! How the evaluator accesses memory: what lies side by side it reads and writes where it is bound, and the result is that of one invocation after the other, wherever
//! tensors begin, however long they are and whatever else is bound to their memory.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/evaluated.rs"]
mod evaluated;

use evaluated::{Bind, evaluate, evaluated};
use trefoil_codegen::front;
use trefoil_codegen::ir::{Instance, Module, instantiate};

/// Around a batch, which has 1,024 invocations at most, and around a workgroup.
const LENGTHS: [usize; 14] = [1, 2, 3, 7, 63, 64, 65, 100, 1000, 1023, 1024, 1025, 2049, 5000];
const WORKGROUP: usize = 64;
/// What is in memory that nobody writes.
const UNTOUCHED: u32 = 0xdead_beef;

fn module(signature: &str, body: &str) -> Module {
    let source = format!("#[kernel(workgroup({WORKGROUP}), targets(cpu))]\nfn k({signature}) {{\n{body}\n}}");
    let outputs = front::parse_source(&source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Numbers that look random, of moderate size.
fn floats(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 20) as f32 - 8.0
    };
    (0..count).map(|_| next()).collect()
}

/// What a kernel makes of some inputs for results of so many words.
type Wanted<'f> = &'f dyn Fn(&[Vec<f32>], usize) -> Vec<Vec<f32>>;

/// Runs a kernel whose last bindings are results of `count` words each, at several distances from the beginning of their memory.
fn holds(signature: &str, body: &str, inputs: &dyn Fn(usize) -> Vec<Vec<f32>>, wanted: Wanted<'_>) {
    let module = module(signature, body);
    for count in LENGTHS {
        for shift in [0, 1, 3, 6] {
            let inputs = inputs(count);
            let wanted = wanted(&inputs, count);
            let results = wanted.len();
            let mut memories: Vec<Vec<u32>> = inputs
                .iter()
                .map(|values| {
                    [vec![UNTOUCHED; shift], values.iter().map(|value| value.to_bits()).collect(), vec![UNTOUCHED; 2]]
                        .concat()
                })
                .collect();
            memories.extend((0..results).map(|_| vec![UNTOUCHED; shift + count + 2]));
            let binds: Vec<_> = memories
                .iter()
                .enumerate()
                .map(|(memory, words)| {
                    let words = words.len() - shift - 2;
                    Bind { memory, first: shift, words, elements: words as u32 }
                })
                .collect();
            let before = memories.clone();
            evaluate(&module, &mut memories, &binds, count.div_ceil(WORKGROUP) as u32);
            assert!(memories[..inputs.len()] == before[..inputs.len()], "{body}: {count} at {shift}: an input changed");
            for (found, wanted) in memories[inputs.len()..].iter().zip(&wanted) {
                let bits: Vec<u32> = wanted.iter().map(|value| value.to_bits()).collect();
                assert!(found[shift..][..count] == bits, "{body}: {count} at {shift}");
                assert!(
                    found[..shift].iter().chain(&found[shift + count..]).all(|word| *word == UNTOUCHED),
                    "{body}: {count} at {shift}: beyond its end"
                );
            }
        }
    }
}

/// The same with as many numbers in each input, and a result for each position.
fn each(inputs: usize, body: &str, of: &dyn Fn(&[Vec<f32>], usize) -> f32) {
    let names = ["a", "b", "c"];
    let signature: Vec<String> = names[..inputs].iter().map(|name| format!("{name}: &[f32]")).collect();
    holds(
        &format!("{}, y: &mut [f32]", signature.join(", ")),
        body,
        &|count| (0..inputs).map(|input| floats(count, input as u32 + 1)).collect(),
        &|given, count| vec![(0..count).map(|i| of(given, i)).collect()],
    );
}

#[test]
fn maps_are_computed_where_they_lie() {
    each(1, "let i = global_index(); if i < y.len() { y[i] = a[i].max(0.0); }", &|x, i| x[0][i].max(0.0));
    each(2, "let i = global_index(); if i < y.len() { y[i] = a[i] * b[i]; }", &|x, i| x[0][i] * x[1][i]);
    each(2, "let i = global_index(); if i < y.len() { y[i] = a[i] / (b[i] + 9.0) - 1.5; }", &|x, i| {
        x[0][i] / (x[1][i] + 9.0) - 1.5
    });
    each(3, "let i = global_index(); if i < y.len() { y[i] = if a[i] < b[i] { c[i] } else { a[i] }; }", &|x, i| {
        if x[0][i] < x[1][i] { x[2][i] } else { x[0][i] }
    });
    each(1, "let i = global_index(); if i < y.len() { y[i] = a[i]; }", &|x, i| x[0][i]);
    each(1, "let i = global_index(); if i < y.len() { y[i] = 2.5; }", &|_, _| 2.5);
}

/// Selects that are one instruction each: by a comparison, and where a NaN is kept by hand. Numbers, infinities, zeros of both signs and NaNs meet each other.
#[test]
fn selects_by_comparisons_and_nans_are_what_they_say() {
    const KINDS: [f32; 8] = [1.0, -2.5, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3.0];
    type Meaning = fn(f32, f32) -> f32;
    let rows: [(&str, Meaning); 10] = [
        ("select(is_nan(a), a, select(is_nan(b), b, max(a, b)))", |a, b| {
            if a.is_nan() {
                a
            } else if b.is_nan() {
                b
            } else {
                a.max(b)
            }
        }),
        ("select(is_nan(a), a, select(is_nan(b), b, min(b, a)))", |a, b| {
            if a.is_nan() {
                a
            } else if b.is_nan() {
                b
            } else {
                a.min(b)
            }
        }),
        // Of another number, and of the wrong one: none of these is an extreme.
        ("select(is_nan(a), a, select(is_nan(b), b, max(a, 2.0)))", |a, b| {
            if a.is_nan() {
                a
            } else if b.is_nan() {
                b
            } else {
                a.max(2.0)
            }
        }),
        ("select(is_nan(a), b, select(is_nan(b), a, max(a, b)))", |a, b| {
            if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else {
                a.max(b)
            }
        }),
        ("select(is_nan(a), a, select(a < b, b, a))", |a, b| {
            if a.is_nan() {
                a
            } else if a < b {
                b
            } else {
                a
            }
        }),
        ("select(is_nan(a), a, select(a != b, b, a))", |a, b| {
            if a.is_nan() {
                a
            } else if a != b {
                b
            } else {
                a
            }
        }),
        ("select(is_nan(a), a, select(b < 1.0, b, a))", |a, b| {
            if a.is_nan() {
                a
            } else if b < 1.0 {
                b
            } else {
                a
            }
        }),
        ("select(is_nan(a), a, select(a >= b, a, b))", |a, b| if a.is_nan() || a >= b { a } else { b }),
        ("select(a > 0.0, 1.0, select(a < 0.0, -1.0, a))", |a, _| {
            if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else {
                a
            }
        }),
        ("copysign(a, b)", f32::copysign),
    ];
    for (expression, meaning) in rows {
        let body =
            format!("let i = global_index(); if i < y.len() {{ let a = x[i]; let b = z[i]; y[i] = {expression}; }}");
        let module = module("x: &[f32], z: &[f32], y: &mut [f32]", &body);
        let pairs: Vec<(f32, f32)> = KINDS.iter().flat_map(|a| KINDS.iter().map(move |b| (*a, *b))).collect();
        let words = |of: fn(&(f32, f32)) -> f32| -> Vec<u32> { pairs.iter().map(|pair| of(pair).to_bits()).collect() };
        let count = pairs.len() as u32;
        let bindings =
            vec![(words(|pair| pair.0), count), (words(|pair| pair.1), count), (vec![0; pairs.len()], count)];
        let found = evaluated(&module, bindings);
        for ((a, b), found) in pairs.iter().zip(&found[2]) {
            let (wanted, found) = (meaning(*a, *b), f32::from_bits(*found));
            assert!(wanted == found || wanted.is_nan() && found.is_nan(), "{expression} of {a} and {b}: {found}");
        }
    }
}

/// Halves that are floats while they are computed with, side by side and apart.
#[test]
fn halves_are_converted_where_they_are_read_and_written() {
    let halves = |values: &[f32]| -> Vec<u32> {
        values
            .chunks(2)
            .map(|two| {
                two.iter().rev().fold(0, |word, value| word << 16 | u32::from(half::f16::from_f32(*value).to_bits()))
            })
            .collect()
    };
    for stride in [1usize, 3] {
        for count in [1usize, 2, 31, 64, 1000, 2050] {
            let count = count.next_multiple_of(2);
            let body = format!(
                "let i = global_index(); if i < y.len() {{ y[i] = f16::from_f32(x[i * {stride}].to_f32() * 1.5 + 0.25); }}"
            );
            let module = module("x: &[f16], y: &mut [f16]", &body);
            let given: Vec<f32> = (0..count * stride).map(|i| (i % 997) as f32 / 8.0 - 60.0).collect();
            let wanted: Vec<f32> = given.iter().step_by(stride).map(|x| x * 1.5 + 0.25).collect();
            let mut memories = vec![halves(&given), vec![UNTOUCHED; count / 2]];
            let binds = [(0, given.len()), (1, count)].map(|(memory, elements)| Bind {
                memory,
                first: 0,
                words: elements / 2,
                elements: elements as u32,
            });
            evaluate(&module, &mut memories, &binds, count.div_ceil(WORKGROUP) as u32);
            assert!(memories[1] == halves(&wanted), "{count} elements {stride} apart");
        }
    }
}

#[test]
fn places_may_be_apart_reversed_shared_or_in_rows() {
    let guarded = |index: &str| format!("let i = global_index(); if i < y.len() {{ y[i] = a[{index}] + 1.0; }}");
    each(1, &guarded("y.len() - 1 - i"), &|x, i| x[0][x[0].len() - 1 - i] + 1.0);
    each(1, &guarded("i / 7"), &|x, i| x[0][i / 7] + 1.0);
    each(1, &guarded("i % 300"), &|x, i| x[0][i % 300] + 1.0);
    each(1, &guarded("0"), &|x, _| x[0][0] + 1.0);
    // Beyond the end a load gives 0.
    each(1, &guarded("i * 3"), &|x, i| x[0].get(i * 3).copied().unwrap_or(0.0) + 1.0);
    each(1, &guarded("i + 5"), &|x, i| x[0].get(i + 5).copied().unwrap_or(0.0) + 1.0);
    each(1, &guarded("i.wrapping_sub(1)"), &|x, i| if i == 0 { 1.0 } else { x[0][i - 1] + 1.0 });
    // Written backwards.
    each(1, "let i = global_index(); if i < y.len() { y[y.len() - 1 - i] = a[i]; }", &|x, i| x[0][x[0].len() - 1 - i]);
}

#[test]
fn stores_that_are_not_the_only_one_keep_their_order() {
    each(1, "let i = global_index(); if i < y.len() { let t = a[i] * 2.0; y[i] = t; y[i] = t + y[i]; }", &|x, i| {
        x[0][i] * 2.0 + x[0][i] * 2.0
    });
    each(
        1,
        "let i = global_index(); if i < y.len() { let t = a[i] * 2.0; y[i] = t; y[i] = 1.0; y[i] = t - 1.0; }",
        &|x, i| x[0][i] * 2.0 - 1.0,
    );
    each(
        1,
        "let i = global_index(); if i < y.len() { for j in 0..3 { let t = a[i] + j as f32; y[i] = t; } }",
        &|x, i| x[0][i] + 2.0,
    );
    // A value is used again after it was stored.
    holds(
        "a: &[f32], y: &mut [f32], z: &mut [f32]",
        "let i = global_index(); if i < y.len() { let t = a[i] * 3.0; y[i] = t; let u = t - a[i]; z[i] = u * t; }",
        &|count| vec![floats(count, 5)],
        &|given, _| {
            let tripled = |x: &f32| x * 3.0;
            let other = |x: &f32| (x * 3.0 - x) * (x * 3.0);
            vec![given[0].iter().map(tripled).collect(), given[0].iter().map(other).collect()]
        },
    );
}

#[test]
fn lanes_may_part() {
    each(
        1,
        "let i = global_index(); if i < y.len() { let mut t = a[i]; let mut n = 0; while t < 4.0 { t = t + 1.5; n += 1; if n > 3 { break; } } if n == 2 { t = t * 3.0; } y[i] = t; }",
        &|x, i| {
            let (mut t, mut n) = (x[0][i], 0);
            while t < 4.0 {
                t += 1.5;
                n += 1;
                if n > 3 {
                    break;
                }
            }
            if n == 2 { t * 3.0 } else { t }
        },
    );
    each(
        1,
        "let i = global_index(); if i >= y.len() { return; } if i % 3 == 1 { y[i] = a[i]; } else { y[i] = -a[i]; }",
        &|x, i| if i % 3 == 1 { x[0][i] } else { -x[0][i] },
    );
    // An array whose indices are the same in all lanes, and others.
    each(
        1,
        "let i = global_index(); if i < y.len() { let mut t = [0.0; 4]; for j in 0..4 { t[j] = a[i] * j as f32; } t[i % 4] += 1.0; y[i] = t[3] + t[i % 2]; }",
        &|x, i| {
            let mut t: [f32; 4] = std::array::from_fn(|j| x[0][i] * j as f32);
            t[i % 4] += 1.0;
            t[3] + t[i % 2]
        },
    );
}

#[test]
fn results_in_the_memory_of_operands_are_right() {
    let twice =
        module("a: &[f32], y: &mut [f32]", "let i = global_index(); if i < y.len() { y[i] = a[i] * 2.0 + 1.0; }");
    let wide = module(
        "a: &[f32], b: &[f32], y: &mut [f32], z: &mut [f32]",
        "let i = global_index(); if i < y.len() { let s = a[i] + b[i]; let d = a[i] - b[i]; y[i] = s; z[i] = d; }",
    );
    for count in LENGTHS {
        let x = floats(2 * count, 9);
        let bits = || -> Vec<u32> { x.iter().map(|value| value.to_bits()).collect() };
        let bind = |first: usize| Bind { memory: 0, first, words: count, elements: count as u32 };
        let groups = count.div_ceil(WORKGROUP) as u32;
        let mut memory = [bits()];
        evaluate(&twice, &mut memory, &[bind(0), bind(0)], groups);
        let wanted: Vec<u32> = x[..count].iter().map(|x| (x * 2.0 + 1.0).to_bits()).collect();
        assert!(memory[0][..count] == wanted && memory[0][count..] == bits()[count..], "{count} in place");
        // Each result lies where an operand was, which is read before.
        let mut memory = [bits()];
        evaluate(&wide, &mut memory, &[bind(0), bind(count), bind(0), bind(count)], groups);
        let both = (0..2 * count).map(|i| {
            let (a, b) = (x[i % count], x[count + i % count]);
            if i < count { (a + b).to_bits() } else { (a - b).to_bits() }
        });
        assert!(memory[0] == both.collect::<Vec<_>>(), "{count}, two in place");
    }
}

#[test]
fn narrow_elements_are_read_and_written_by_runs() {
    for (scalar, bytes, widened, of) in [
        ("u8", 1, "u32", (|x| x.wrapping_mul(3) & 0xff) as fn(u32) -> u32),
        ("i8", 1, "i32", |x| x.wrapping_mul(3) & 0xff),
        ("u16", 2, "u32", |x| x.wrapping_mul(3) & 0xffff),
        ("i16", 2, "i32", |x| x.wrapping_mul(3) & 0xffff),
    ] {
        for index in ["i", "y.len() - 1 - i"] {
            let body = format!(
                "let i = global_index(); if i < y.len() {{ y[i] = (a[{index}] as {widened} * 3) as {scalar}; }}"
            );
            let module = module(&format!("a: &[{scalar}], y: &mut [{scalar}]"), &body);
            for count in LENGTHS {
                let words = (count * bytes).div_ceil(4);
                let x: Vec<u32> = floats(words, 3).iter().map(|value| value.to_bits()).collect();
                let element = |words: &[u32], i: usize| {
                    words[i * bytes / 4] >> (i * bytes % 4 * 8) & (u32::MAX >> (32 - 8 * bytes))
                };
                let mut memories = [x.clone(), vec![0; words]];
                let bind = |memory| Bind { memory, first: 0, words, elements: count as u32 };
                evaluate(&module, &mut memories, &[bind(0), bind(1)], count.div_ceil(WORKGROUP) as u32);
                for i in 0..count {
                    let from = if index == "i" { i } else { count - 1 - i };
                    assert_eq!(element(&memories[1], i), of(element(&x, from)), "{body}: {i} of {count}");
                }
            }
        }
    }
}
