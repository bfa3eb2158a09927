//! Random numbers on every device: words and uniforms bit for bit, normals in units of their last place; seeds that are given and that run on; streams, and extents that each run decides.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Values, check, compare, computes, devices};
use trefoil_dsl::device::Device;
use trefoil_dsl::prelude::*;
use trefoil_graph::ops::random::{Distribution, Random, Sampling};
use trefoil_graph::{
    Dim, ElementType, Executable, Extents, Graph, GraphError, HostTensor, Model, Op, Options, Outputs, Symbol, Tensor,
    TensorType, reference,
};
use trefoil_kernels::random::normal::{two_double_normals, two_normals};

use ElementType::{BF16, Bool, F16, F32, F64, U32, U64};

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn compile(graph: &Graph, device: &Device) -> Executable {
    Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap()
}

fn seed_words(seed: u64) -> Values {
    Values::U32(vec![seed as u32, (seed >> 32) as u32])
}

/// Adds one of each distribution and type but normals; the names say which.
fn all_kinds(graph: &mut Graph, extents: &[usize], device: &Device) {
    for element in [U32, U64] {
        let bits = graph.random_bits(shape(extents), element);
        output(graph, &format!("bits {element}"), bits);
    }
    for element in [F32, F16, BF16, F64].into_iter().filter(|element| computes(device, *element)) {
        let uniform = graph.uniform(shape(extents), -0.3, 1.7, element);
        output(graph, &format!("uniform {element}"), uniform);
    }
    let bools = graph.bernoulli(shape(extents), 0.3);
    output(graph, "bernoulli", bools);
}

fn output(graph: &mut Graph, name: &str, made: Result<Tensor, GraphError>) {
    graph.output(name, made.unwrap()).unwrap();
}

/// Everything but 64-bit words has its value in the reference, exactly; those come out as pairs of 32-bit ones.
#[test]
fn words_and_uniforms_are_the_same_everywhere() {
    for device in devices() {
        for extents in [
            &[0usize][..],
            &[1],
            &[2],
            &[3],
            &[4],
            &[5],
            &[7],
            &[1023],
            &[1024],
            &[1025],
            &[3, 0, 5],
            &[7, 11, 13],
            &[65_539],
            &[],
        ] {
            let mut graph = Graph::new();
            all_kinds(&mut graph, extents, &device);
            let executable = compile(&graph, &device);
            for seed in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
                let leaves = BTreeMap::from([("seed".to_owned(), seed_words(seed).host())]);
                let expected = reference::evaluate(&graph, &leaves, &Extents::new()).unwrap();
                let outputs = executable.run(&[("seed", seed_words(seed).data())], &Extents::new()).unwrap();
                for (name, wanted) in expected {
                    assert_eq!(
                        outputs.host(&name).unwrap(),
                        wanted,
                        "{name}{extents:?} on {}",
                        device.properties().name
                    );
                }
            }
        }
    }
}

#[test]
fn long_words_are_pairs() {
    for device in devices() {
        let mut graph = Graph::new();
        let seed = graph.seed().unwrap();
        for (name, element, count) in [("words", U32, 2 * 131), ("longs", U64, 131)] {
            let ty = TensorType::new(element, [count]);
            let op = Random { distribution: Distribution::Bits, stream: 77, ty };
            let bits = graph.add_one(op, &[seed]).unwrap();
            graph.output(name, bits).unwrap();
        }
        let outputs = compile(&graph, &device).run(&[("seed", seed_words(5).data())], &Extents::new()).unwrap();
        let words = outputs.get::<u32>("words").unwrap();
        let pairs: Vec<u64> = words.chunks(2).map(|two| u64::from(two[1]) << 32 | u64::from(two[0])).collect();
        assert_eq!(outputs.get::<u64>("longs").unwrap(), pairs);
    }
}

/// How many units in its last place a number is off, in a type of so many digits whose smallest numbers are multiples of a power of two.
fn units(given: f64, exact: f64, digits: i32, smallest: i32) -> f64 {
    let place = if exact == 0.0 { smallest } else { exact.abs().log2().floor() as i32 + 1 - digits };
    (given - exact).abs() / 2f64.powi(place.max(smallest))
}

/// Types with their digits, the exponent of their smallest number, and how many units normals may be off.
const DIGITS: [(ElementType, i32, i32, f64); 4] =
    [(F32, 24, -126, 4.0), (F16, 11, -24, 0.51), (BF16, 8, -126, 0.51), (F64, 53, -1000, 8.0)];

/// The exact formula without its last rounding: that of doubles, of the same words.
fn exact_normals(count: usize, stream: u32, seed: u64) -> Vec<f64> {
    let words = |count: usize| {
        let op = Random { distribution: Distribution::Bits, stream, ty: TensorType::new(U32, [count]) };
        let given = op.reference(&[seed_words(seed).host()], &[vec![count]]);
        given[0].values.iter().map(|word| *word as u32).collect::<Vec<u32>>()
    };
    words(count.next_multiple_of(4)).chunks(2).flat_map(|two| exact_pair(two[0], two[1])).take(count).collect()
}

/// Box and Muller's pair of two words, from its definition.
fn exact_pair(first: u32, second: u32) -> [f64; 2] {
    let first = first.max(1);
    // All but the first 24 significant bits are cut off.
    let cut = 8u32.saturating_sub(first.leading_zeros());
    let u = f64::from(first >> cut << cut) / 4_294_967_296.0;
    let quarters = second >> 30;
    let t = f64::from((second >> 5) & 0x01ff_ffff) / 33_554_432.0 - 0.5;
    let (sine, cosine) = (t * std::f64::consts::FRAC_PI_2).sin_cos();
    let radius = (-2.0 * u.ln()).sqrt();
    let (x, y) = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quarters as usize];
    [radius * x, radius * y]
}

#[test]
fn normals_are_within_units_of_the_last_place() {
    const COUNT: usize = 1 << 18;
    for device in devices() {
        for (element, digits, smallest, bound) in DIGITS.into_iter().filter(|(element, ..)| computes(&device, *element))
        {
            let mut graph = Graph::new();
            let x = graph.normal(shape(&[COUNT]), 0.0, 1.0, element).unwrap();
            graph.output("x", x).unwrap();
            let seed = 0x9_0123_4567;
            let outputs = compile(&graph, &device).run(&[("seed", seed_words(seed).data())], &Extents::new()).unwrap();
            let exact = match element {
                F64 => {
                    let leaves = BTreeMap::from([("seed".to_owned(), seed_words(seed).host())]);
                    reference::evaluate(&graph, &leaves, &Extents::new()).unwrap().remove("x").unwrap().values
                }
                _ => exact_normals(COUNT, 0, seed),
            };
            let given = outputs.host("x").unwrap().values;
            let worst = given
                .iter()
                .zip(&exact)
                .map(|(given, exact)| units(*given, *exact, digits, smallest))
                .fold(0.0, f64::max);
            println!("normals of {element} on {}: {worst} ulp", device.properties().name);
            assert!(worst <= bound, "{worst} ulp in {element} on {}, {bound} allowed", device.properties().name);
        }
    }
}

/// Normals of given words, two each.
#[kernel(workgroup(64))]
fn normals_of(words: &[u32], out: &mut [f32]) {
    let i = global_index();
    if 2 * i + 1 < words.len() {
        let pair = two_normals(words[2 * i], words[2 * i + 1]);
        out[2 * i] = pair.x;
        out[2 * i + 1] = pair.y;
    }
}

/// Words at every end of what the logarithm and the angle are made of.
fn edges() -> Vec<u32> {
    let bits = (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) - 1, (1 << bit) + 1, u32::MAX >> bit, u32::MAX << bit]);
    // The root of a half, in 24 digits.
    let roots = (0..9u32).flat_map(|bits| [11_863_282u32, 11_863_283, 11_863_284].map(|root| root << 8 >> bits));
    bits.chain(roots).chain([0x2000_0000, 0x1fff_ffff, 0x2000_001f, 0x2000_0020, 0xa000_0000, 0xe000_0000]).collect()
}

#[test]
fn normals_of_words_at_the_ends() {
    let words: Vec<u32> =
        edges().into_iter().flat_map(|first| edges().into_iter().flat_map(move |second| [first, second])).collect();
    let exact: Vec<f64> = words.chunks(2).flat_map(|two| exact_pair(two[0], two[1])).collect();
    let check = |given: &[f32], about: &str| {
        for (at, (given, exact)) in given.iter().zip(&exact).enumerate() {
            let off = units(f64::from(*given), *exact, 24, -126);
            let pair = &words[at / 2 * 2..at / 2 * 2 + 2];
            assert!(
                off <= 4.0 || *given == 0.0 && *exact == 0.0,
                "{given}, not {exact} of {pair:x?} {about}: {off} ulp"
            );
        }
    };
    let on_the_host: Vec<f32> = words.chunks(2).flat_map(|two| two_normals(two[0], two[1]).to_array()).collect();
    check(&on_the_host, "on the host");
    for device in devices() {
        let given = device.buffer(&words).unwrap();
        let mut out = device.zeros::<f32>(words.len()).unwrap();
        device.run(normals_of(&given, &mut out).unwrap().over(words.len() / 2)).unwrap();
        check(&out.read().unwrap(), &device.properties().name);
    }
}

#[test]
fn double_normals_of_words_at_the_ends() {
    for words in [
        [0; 4],
        [u32::MAX; 4],
        [0, 0, u32::MAX, 0],
        [1 << 31, 0, 1 << 31, 0],
        [u32::MAX, 0, 0x2000_0000, 0],
        [0xb504_f333, 0xf9de_6484, 7, 9],
    ] {
        let pair = two_double_normals(words.into());
        let u = ((u64::from(words[0]) << 21 | u64::from(words[1] >> 11)) + 1) as f64 / 2f64.powi(53);
        let radius = (-2.0 * u.ln()).sqrt();
        let turns = u64::from(words[2]) << 23 | u64::from(words[3] >> 9);
        let angle = (turns as f64 / 2f64.powi(53) - 0.5) * std::f64::consts::FRAC_PI_2;
        for (given, exact) in pair.to_array().into_iter().zip([radius * angle.cos(), radius * angle.sin()]) {
            // The angle of several quarters is rounded in the reference.
            assert!((given - exact).abs() <= 8e-15 * radius, "{given}, not {exact} of {words:x?}");
        }
    }
}

fn words(outputs: &Outputs) -> Vec<u32> {
    outputs.get::<u32>("x").unwrap().to_vec()
}

#[test]
fn seeds_are_given_or_run_on() {
    for device in devices() {
        let mut graph = Graph::new();
        let x = graph.random_bits(shape(&[9]), U32).unwrap();
        graph.output("x", x).unwrap();
        let executable = compile(&graph, &device);
        let given = |seed: u64| words(&executable.run(&[("seed", seed_words(seed).data())], &Extents::new()).unwrap());
        let next = || words(&executable.run(&[], &Extents::new()).unwrap());
        let known: Vec<_> = (0..4).map(given).collect();
        assert_eq!(known.iter().collect::<BTreeSet<_>>().len(), 4, "seeds differ");
        // Runs with a seed of their own do not move it on.
        assert_eq!([next(), next()], [known[0].clone(), known[1].clone()]);
        assert_eq!(given(3), known[3]);
        assert_eq!(next(), known[2]);
        executable.set_seed(u64::MAX).unwrap();
        assert_eq!(next(), given(u64::MAX));
        assert_eq!(next(), known[0], "the seed behind the last is 0");
        // A wrong seed is refused, and a graph without random numbers has none.
        assert!(executable.run(&[("seed", (&[1u32]).into())], &Extents::new()).is_err());
        assert!(executable.run(&[("seed", (&[1.0f32, 2.0]).into())], &Extents::new()).is_err());
        let mut plain = Graph::new();
        let x = plain.scalar(1.0, F32).unwrap();
        plain.output("x", x).unwrap();
        assert!(compile(&plain, &device).set_seed(1).unwrap_err().to_string().contains("`seed`"));
    }
}

/// The n-th random op of a graph draws the same numbers, whatever stands around it, and as many as a run wants.
#[test]
fn neither_neighbours_nor_extents_change_a_number() {
    let rows = Symbol::new("rows", 0, 5000).unwrap();
    let mut alone = Graph::new();
    let first = alone.normal(shape(&[1]), 0.0, 1.0, F32).unwrap();
    let second = alone.uniform(shape(&[4096, 3]), 0.0, 1.0, F32).unwrap();
    alone.output("second", second).unwrap();
    assert_ne!(first, second);
    let mut crowded = Graph::new();
    let noise = crowded.bernoulli(shape(&[7]), 1.0).unwrap();
    crowded.output("noise", noise).unwrap();
    let x = crowded.input("x", F32, vec![Dim::from(&rows), Dim::from(3usize)]).unwrap();
    let drawn = crowded.uniform(vec![Dim::from(&rows), Dim::from(3usize)], 0.0, 1.0, F32).unwrap();
    let sum = crowded.add(drawn, x).unwrap();
    let sum = crowded.relu(sum).unwrap();
    crowded.output("second", sum).unwrap();
    for device in devices() {
        let seed = seed_words(11);
        let all = compile(&alone, &device).run(&[("seed", seed.data())], &Extents::new()).unwrap();
        let all = all.host("second").unwrap().values;
        for fuse in [true, false] {
            let options = Options { fuse, ..Options::default() };
            let executable = Executable::compile(&crowded, &Model::new(), &device, &options).unwrap();
            for count in [0usize, 1, 5, 4096] {
                let mut extents = Extents::new();
                extents.set(&rows, count as i64).unwrap();
                let zeros = Values::F32(vec![0.0; 3 * count]);
                let outputs = executable.run(&[("x", zeros.data()), ("seed", seed.data())], &extents).unwrap();
                assert_eq!(outputs.host("second").unwrap().values, all[..3 * count], "{count} rows, fused {fuse}");
            }
        }
    }
}

/// Every attribute makes a difference, in the reference and on every device.
#[test]
fn every_attribute_counts() {
    use Distribution::{Bernoulli, Bits, Normal, Uniform};
    let of = |distribution, stream, element| Random { distribution, stream, ty: TensorType::new(element, [33usize]) };
    let sets = [
        vec![of(Bits, 0, U32), of(Bits, 1, U32), of(Bits, 0, U64)],
        vec![
            of(Uniform { low: 0.0, high: 1.0 }, 0, F32),
            of(Uniform { low: -1.0, high: 1.0 }, 0, F32),
            of(Uniform { low: 0.0, high: 1.5 }, 0, F32),
            of(Uniform { low: 0.0, high: 1.0 }, 9, F32),
            of(Uniform { low: 0.0, high: 1.0 }, 0, BF16),
        ],
        vec![
            of(Normal { mean: 0.0, deviation: 1.0 }, 0, F32),
            of(Normal { mean: 2.0, deviation: 1.0 }, 0, F32),
            of(Normal { mean: 0.0, deviation: 3.0 }, 0, F32),
            of(Normal { mean: 0.0, deviation: 1.0 }, 2, F32),
            of(Normal { mean: 0.0, deviation: 1.0 }, 0, F16),
        ],
        vec![of(Bernoulli { p: 0.5 }, 0, Bool), of(Bernoulli { p: 0.25 }, 0, Bool), of(Bernoulli { p: 0.5 }, 1, Bool)],
    ];
    for set in &sets {
        let results: Vec<HostTensor> =
            set.iter().map(|op| op.reference(&[seed_words(3).host()], &[vec![33]]).remove(0)).collect();
        for (at, result) in results.iter().enumerate() {
            assert!(!results[..at].contains(result), "{:?} is as another", set[at]);
        }
        let mut graph = Graph::new();
        let seed = graph.seed().unwrap();
        for (at, op) in set.iter().enumerate() {
            let tensor = graph.add_one(op.clone(), &[seed]).unwrap();
            graph.output(&at.to_string(), tensor).unwrap();
        }
        for device in devices() {
            check(&graph, &device, &[("seed", seed_words(3))], &Extents::new(), 1e-5);
        }
    }
}

#[test]
fn bounds_hold() {
    for device in devices() {
        for element in [F32, F16, BF16, F64].into_iter().filter(|element| computes(&device, *element)) {
            for (low, high) in [(0.0, 1.0), (-1.0, -0.999), (1.0, 1.008), (-3e4, 3e4), (5.0, 7.0)] {
                let mut graph = Graph::new();
                let Ok(x) = graph.uniform(shape(&[70_001]), low, high, element) else {
                    // A type of few digits may not tell them apart.
                    assert!(element != F32 && element != F64 && high - low < 0.01, "{low} to {high} of {element}");
                    continue;
                };
                graph.output("x", x).unwrap();
                let values = compile(&graph, &device).run(&[], &Extents::new()).unwrap().host("x").unwrap().values;
                let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
                let digit = f64::max(-low, high)
                    * [1e-6, 2e-3, 1.6e-2, 1e-15][DIGITS.iter().position(|of| of.0 == element).unwrap()];
                let near = (high - low) * 1e-2 + digit;
                assert!(least >= low - digit && most < high + digit, "{least} to {most} of {element}");
                assert!(least < low + near && most > high - near, "{least} to {most} of {element}");
            }
        }
        // The largest number below 1, which rounding would make 1.
        let mut graph = Graph::new();
        let x = graph.uniform(shape(&[1 << 16]), 0.0, 1.0, BF16).unwrap();
        graph.output("x", x).unwrap();
        let values = compile(&graph, &device).run(&[], &Extents::new()).unwrap().host("x").unwrap().values;
        assert_eq!(values.into_iter().fold(0.0, f64::max), 1.0 - 1.0 / 256.0);
    }
}

#[test]
fn every_kernel_runs() {
    let mut ran = BTreeSet::new();
    for device in devices() {
        let mut graph = Graph::new();
        all_kinds(&mut graph, &[5], &device);
        for element in [F32, F16, BF16, F64].into_iter().filter(|element| computes(&device, *element)) {
            let normal = graph.normal(shape(&[5]), 0.5, 2.0, element);
            output(&mut graph, &format!("normal {element}"), normal);
        }
        let executable = compile(&graph, &device);
        compare(&graph, &executable, &[("seed", seed_words(8))], &Extents::new(), 8e-3);
        ran.extend(executable.explain().steps.into_iter().map(|step| step.kernel));
    }
    for kernel in trefoil_kernels::random::kernels() {
        assert!(ran.contains(&*kernel.name), "no test runs `{}`", kernel.name);
    }
}

#[test]
fn what_is_refused() {
    let mut graph = Graph::new();
    let x = graph.input("x", U32, shape(&[3])).unwrap();
    let mut messages = Vec::new();
    let mut refused = |result: Result<Tensor, GraphError>| {
        messages.push(result.unwrap_err().to_string());
    };
    refused(graph.random_bits(shape(&[3]), F32));
    refused(graph.uniform(shape(&[3]), 1.0, 1.0, F32));
    refused(graph.uniform(shape(&[3]), 0.0, f64::INFINITY, F32));
    refused(graph.uniform(shape(&[3]), 0.0, 1e5, F16));
    refused(graph.uniform(shape(&[3]), -3e38, 3e38, F32));
    refused(graph.normal(shape(&[3]), f64::NAN, 1.0, F32));
    refused(graph.normal(shape(&[3]), 0.0, -1.0, F32));
    refused(graph.normal(shape(&[3]), 0.0, 1.0, U32));
    refused(graph.bernoulli(shape(&[3]), 1.5));
    refused(graph.bernoulli(shape(&[3]), f64::NAN));
    refused(graph.bernoulli_of(x));
    refused(graph.dropout(x, 0.5).map(|(y, _)| y));
    let y = graph.input("y", F32, shape(&[3])).unwrap();
    refused(graph.dropout(y, -0.5).map(|(y, _)| y));
    let bits = Random { distribution: Distribution::Bits, stream: 0, ty: TensorType::new(U32, [3usize]) };
    refused(graph.add_one(bits, &[x]));
    refused(graph.sample(y, Sampling { temperature: -1.0, ..Sampling::default() }));
    refused(graph.sample(y, Sampling { top_p: 0.0, ..Sampling::default() }));
    refused(graph.sample(y, Sampling { min_p: 1.5, ..Sampling::default() }));
    refused(graph.sample(x, Sampling::default()));
    let mut taken = Graph::new();
    taken.input("seed", U32, shape(&[2])).unwrap();
    refused(taken.random_bits(shape(&[3]), U32));
    let expected = [
        "random_bits(seed: u32[2]): attribute `type` is f32[3]; expected elements of u32 or u64 (`cast` converts)",
        "uniform(seed: u32[2]): attribute `high` is 1; expected a number above 1.0 in f32, and not farther from it than the largest",
        "uniform(seed: u32[2]): attribute `high` is inf; expected a number that f32 has",
        "uniform(seed: u32[2]): attribute `high` is 100000; expected a number that f16 has",
        "uniform(seed: u32[2]): attribute `high` is 300000000000000000000000000000000000000; expected a number above -3e38 in f32, and not farther from it than the largest",
        "normal(seed: u32[2]): attribute `mean` is NaN; expected a number that f32 has",
        "normal(seed: u32[2]): attribute `deviation` is -1; expected a number that f32 has, not below 0",
        "normal(seed: u32[2]): attribute `type` is u32[3]; expected elements of f32, f16, bf16 or f64 (`cast` converts)",
        "bernoulli(seed: u32[2]): attribute `p` is 1.5; expected a probability, from 0 to 1",
        "bernoulli(seed: u32[2]): attribute `p` is NaN; expected a probability, from 0 to 1",
        "bernoulli_of: input `p` is u32; expected f32, f16, bf16 or f64 (`cast` converts)",
        "dropout: input `x` is u32; expected f32, f16, bf16 or f64 (`cast` converts)",
        "dropout: attribute `p` is -0.5; expected a probability, from 0 to 1",
        "random_bits(x: u32[3]): input `seed` is u32[3]; expected u32[2]",
        "sample: attribute `temperature` is -1; expected 0 for the likeliest, or a number from 2.94e-39 to 8.5e37, whose reciprocal f32 has",
        "sample: attribute `top_p` is 0; expected a number above 0 and up to 1, which takes all",
        "sample: attribute `min_p` is 1.5; expected a number from 0, which takes all, to 1",
        "sample: input `logits` is u32; expected f32, f16 or bf16 (`cast` converts)",
        "there is already a leaf called `seed`",
    ];
    for (given, expected) in messages.iter().zip(expected) {
        assert_eq!(given, expected);
    }
    assert_eq!(messages.len(), expected.len());
}

/// What is refused leaves the graph as it was: without a seed, and with all of its streams.
#[test]
fn what_is_refused_takes_no_stream() {
    let mut graph = Graph::new();
    for refused in [
        graph.uniform(shape(&[3]), 1.0, 1.0, F32),
        graph.uniform([-3i64, -4], 0.0, 1.0, F32),
        graph.normal(shape(&[3]), 0.0, -1.0, F32),
        graph.random_bits(shape(&[3]), F32),
        graph.bernoulli(shape(&[3]), 1.5),
        graph.bernoulli([-3i64], 1.0),
    ] {
        refused.unwrap_err();
    }
    assert!(graph.nodes().is_empty() && graph.leaves().is_empty());
    for stream in ["0", "1"] {
        let x = graph.random_bits(shape(&[3]), U32).unwrap();
        let attributes = graph.nodes()[x.node()].op.attributes();
        assert!(attributes.contains(&("stream", stream.to_owned())), "{attributes:?}");
        graph.bernoulli([-3i64], 0.0).unwrap_err();
    }
}

/// Temperatures whose reciprocals are no normal numbers: minus infinity times 0 would be no number.
#[test]
fn temperatures_have_reciprocals() {
    let mut graph = Graph::new();
    let logits = graph.input("logits", F32, shape(&[2, 5])).unwrap();
    let mut with = |temperature| graph.sample(logits, Sampling { temperature, ..Sampling::default() });
    for temperature in [1e46, 1e38, 1e-39, -1.0, f64::INFINITY, f64::NAN] {
        let refused = with(temperature).unwrap_err().to_string();
        assert!(
            refused.contains("attribute `temperature`") && refused.contains("from 2.94e-39 to 8.5e37"),
            "{refused}"
        );
    }
    for temperature in [0.0, 1.0, 2.94e-39, 8.5e37] {
        with(temperature).unwrap();
    }
}
