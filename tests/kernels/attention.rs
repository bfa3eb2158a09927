//! Attention: every kernel in every element type, with all operands and with none, keys whole and in parts that are joined by the last workgroup or by a kernel of its own, lengths around its blocks of rows and tiles of keys.

use std::collections::BTreeSet;

use trefoil::artefact::Kernel;
use trefoil::dsl::element::Element;
use trefoil::kernels::attention::UNBOUNDED;
use trefoil::kernels::attention::join::AT_ONCE;
use trefoil::kernels::attention::plain::{SIZE, Scores};
use trefoil::kernels::attention::row::ELEMENTS;
use trefoil::prelude::Vec4;
use trefoil::{Buffer, Device, DeviceKind, Launch, Result, bf16, f16};

use crate::case::{EPSILON, kernel};
use crate::numbers::numbers;
use crate::stand::Stand;

/// Elements before and after a slice that belong to nobody.
const GUARD: usize = 72;
/// Elements between heads that belong to nobody.
const GAP: usize = 8;

/// An element type.
trait Value: Element {
    const NAME: &'static str;
    const NAN: Self;
    /// Half a unit in the last place of a number near 1.
    const ROUNDING: f64;
    fn of(x: f32) -> Self;
    fn number(self) -> f64;
}

macro_rules! values {
    ($($ty:ident: $rounding:expr, $of:expr, $number:expr;)*) => {
        $(impl Value for $ty {
            const NAME: &'static str = stringify!($ty);
            const NAN: Self = $ty::NAN;
            const ROUNDING: f64 = $rounding;

            fn of(x: f32) -> Self {
                let of: fn(f32) -> Self = $of;
                of(x)
            }

            fn number(self) -> f64 {
                let number: fn(Self) -> f64 = $number;
                number(self)
            }
        })*
    };
}

values! {
    f32: EPSILON / 2.0, |x| x, f64::from;
    f16: 1.0 / 2048.0, f16::from_f32, f16::to_f64;
    bf16: 1.0 / 256.0, bf16::from_f32, bf16::to_f64;
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batches: usize,
    group: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    elements: usize,
    value_elements: usize,
    /// Whether there are a bias, lengths, sinks, a cap, and a window of 20 keys before the query and none behind it.
    all: bool,
    /// How many workgroups share the keys.
    cut: usize,
}

/// Which kernel, and of how many rows and columns a workgroup is.
#[derive(Clone, Debug)]
struct Way {
    name: String,
    rows: usize,
    columns: usize,
}

impl Way {
    /// Whether keys and values are given in pieces of 16 bytes.
    fn takes_pieces(&self) -> bool {
        self.name.contains("row") || self.name.contains("grouped")
    }

    /// Whether its last workgroup joins the parts of a row.
    fn joins(&self) -> bool {
        self.name.contains("joining")
    }

    /// Whether it takes heads of so many elements of a type.
    fn takes<T>(&self, elements: usize) -> bool {
        !self.takes_pieces() || elements <= self.columns && (elements * size_of::<T>()).is_multiple_of(16)
    }
}

/// The kernels but the one that joins what others have left.
fn ways(element: &str) -> Vec<Way> {
    let mut ways = vec![Way { name: format!("attention_plain_{element}"), rows: 1, columns: SIZE }];
    for (at_once, wide) in [(2, 1), (2, 2), (8, 1), (8, 2)] {
        let name = format!("attention_tiled_{element}_{at_once}_{wide}");
        ways.push(Way { name, rows: 8 * at_once, columns: 64 * wide });
    }
    for (kernel, team) in [("row", 8), ("row", 16), ("row_joining", 8), ("row_joining", 16)] {
        let name = format!("attention_{kernel}_{element}_{team}");
        ways.push(Way { name, rows: 1, columns: ELEMENTS * team });
    }
    for (rows, team) in [(2, 8), (2, 16), (4, 8), (4, 16), (8, 8), (8, 16)] {
        let name = format!("attention_grouped_{element}_{rows}_{team}");
        ways.push(Way { name, rows, columns: ELEMENTS * team });
    }
    ways
}

fn shapes() -> Vec<Shape> {
    let shape = |[batches, group, key_heads, queries, keys, elements, value_elements]: [usize; 7], all, cut| Shape {
        batches,
        group,
        key_heads,
        queries,
        keys,
        elements,
        value_elements,
        all,
        cut,
    };
    vec![
        shape([1, 1, 1, 1, 1, 4, 4], false, 1),
        shape([2, 3, 2, 7, 131, 36, 60], true, 1),
        shape([1, 2, 1, 37, 300, 64, 64], false, 3),
        shape([2, 1, 2, 65, 129, 20, 12], true, 2),
        shape([1, 1, 1, 3, 0, 8, 8], false, 1),
        shape([1, 5, 1, 2, 257, 128, 100], true, 5),
        // Of whole pieces of halves.
        shape([2, 3, 2, 7, 131, 40, 56], true, 1),
        shape([1, 5, 1, 2, 257, 128, 104], true, 5),
        // A query or a few of heads in groups.
        shape([1, 2, 1, 1, 61, 64, 64], false, 1),
        shape([2, 4, 1, 1, 517, 128, 128], true, 3),
        shape([1, 7, 1, 1, 131, 80, 80], true, 1),
        shape([1, 8, 2, 1, 259, 64, 128], false, 2),
        shape([1, 2, 1, 4, 203, 128, 80], false, 1),
        // Parts by the dozen, of which some have no key.
        shape([1, 4, 1, 1, 67, 128, 72], false, 21),
    ]
}

/// Strides of batch, head and position, heads inside of positions, and elements in all.
fn layout(batches: usize, heads: usize, positions: usize, elements: usize) -> ([usize; 3], usize) {
    let head = elements + GAP;
    ([positions * heads * head, head, heads * head], batches * positions * heads * head)
}

/// Numbers where heads are and NaN between them.
fn operand<T: Value>(count: usize, elements: usize, seed: u32) -> Vec<T> {
    let values = numbers(count, seed, 1.0).into_iter().enumerate();
    values.map(|(at, x)| if at % (elements + GAP) < elements { T::of(x) } else { T::NAN }).collect()
}

/// Everything that a launch reads.
struct Given<T> {
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    bias: Vec<T>,
    lengths: Vec<u32>,
    sinks: Vec<T>,
}

const SCALE: f32 = 0.4;

impl Shape {
    fn heads(&self) -> usize {
        self.group * self.key_heads
    }

    /// Multiplications.
    fn operations(&self) -> usize {
        self.batches * self.heads() * self.queries * self.keys * (self.elements + self.value_elements)
    }

    /// How many invocations put together a quad: several where there are more parts than one asks for at once.
    fn sharers(&self) -> usize {
        if self.cut > AT_ONCE { 8 } else { 1 }
    }

    fn join<T: Value>(&self) -> String {
        format!("attention_join_{}_{}", T::NAME, self.sharers())
    }

    fn cap(&self) -> f32 {
        if self.all { 1.5 } else { 0.0 }
    }

    fn window(&self) -> [i32; 2] {
        if self.all { [20, 0] } else { [UNBOUNDED.cast_signed(); 2] }
    }

    fn given<T: Value>(&self) -> Given<T> {
        let Shape { batches, key_heads, queries, keys, elements, value_elements, all, .. } = *self;
        let some = |count: usize| if all { count } else { 0 };
        let mut bias = numbers(some(queries * keys), 18, 2.0);
        bias.iter_mut().step_by(7).for_each(|x| *x = f32::NEG_INFINITY);
        let lengths = (0..some(batches)).map(|batch| (keys - keys * batch / 3) as u32);
        Given {
            q: operand(layout(batches, self.heads(), queries, elements).1, elements, 15),
            k: operand(layout(batches, key_heads, keys, elements).1, elements, 16),
            v: operand(layout(batches, key_heads, keys, value_elements).1, value_elements, 17),
            bias: bias.into_iter().map(T::of).collect(),
            lengths: lengths.collect(),
            sinks: numbers(some(self.heads()), 19, 1.0).into_iter().map(T::of).collect(),
        }
    }

    /// What must come out, with `None` between heads.
    fn expected<T: Value>(&self, given: &Given<T>) -> Vec<Option<f64>> {
        let Shape { batches, group, key_heads, queries, keys, elements, value_elements, .. } = *self;
        let (qs, _) = layout(batches, self.heads(), queries, elements);
        let (ks, _) = layout(batches, key_heads, keys, elements);
        let (vs, _) = layout(batches, key_heads, keys, value_elements);
        let (os, count) = layout(batches, self.heads(), queries, value_elements);
        let mut expected = vec![None; count];
        for (batch, head, query) in (0..batches * self.heads() * queries)
            .map(|at| (at / queries / self.heads(), at / queries % self.heads(), at % queries))
        {
            let length = given.lengths.get(batch).map_or(keys, |length| *length as usize);
            let position = query as i64 + length as i64 - queries as i64;
            let place = |s: [usize; 3], head: usize, position: usize| batch * s[0] + head * s[1] + position * s[2];
            let score = |key: usize| -> f64 {
                let (from, to) = (place(qs, head, query), place(ks, head / group, key));
                let product: f64 = (0..elements).map(|e| given.q[from + e].number() * given.k[to + e].number()).sum();
                let mut score = product * f64::from(SCALE);
                let behind = key as i64 - position;
                if self.all {
                    let cap = f64::from(self.cap());
                    score = cap * (score / cap).tanh() + given.bias[query * keys + key].number();
                }
                let hidden = key >= length || self.all && !(-20..=0).contains(&behind);
                if hidden { f64::NEG_INFINITY } else { score }
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let seen = largest > f64::NEG_INFINITY;
            let weights: Vec<f64> = scores.iter().map(|x| if seen { (x - largest).exp() } else { 0.0 }).collect();
            let sink = given.sinks.get(head).map_or(0.0, |sink| (sink.number() - largest).exp());
            let total = weights.iter().sum::<f64>() + sink;
            for e in 0..value_elements {
                let of = |key: usize| weights[key] * given.v[place(vs, head / group, key) + e].number();
                let sum: f64 = (0..keys).map(of).sum();
                expected[place(os, head, query) + e] = Some(if seen { sum / total } else { 0.0 });
            }
        }
        expected
    }

    /// Runs a kernel, and where it leaves keys in parts the one that joins them. Gives the result with its guards.
    fn run<T: Value>(&self, device: &Device, way: &Way, given: &Given<T>, count: usize) -> Result<Vec<T>> {
        let Shape { batches, group, key_heads, queries, keys, elements, value_elements, cut, .. } = *self;
        let buffer = |values: &[T]| device.buffer(&[&[T::NAN; GUARD], values, &[T::NAN; GUARD]].concat());
        let [q, k, v, bias, sinks] = [&given.q, &given.k, &given.v, &given.bias, &given.sinks].map(|x| buffer(x));
        let (q, k, v, bias, sinks) = (q?, k?, v?, bias?, sinks?);
        let lengths = device.buffer(&given.lengths)?;
        let mut out = device.buffer(&vec![T::NAN; count + 2 * GUARD])?;
        let inside = |buffer: &Buffer<T>, values: &[T]| GUARD..buffer.len().min(GUARD + values.len());
        let plain = way.name.contains("plain");
        let cut = if plain { 1 } else { cut };
        let rows = batches * key_heads * group * queries;
        let mut parts = device.zeros::<f32>(rows * cut * (value_elements + 2) + 4)?;
        let mut counters = device.zeros::<u32>(rows)?;
        let mut told = device.zeros::<T>(4)?;
        let strides = [
            layout(batches, self.heads(), queries, elements).0,
            layout(batches, key_heads, keys, elements).0,
            layout(batches, key_heads, keys, value_elements).0,
            layout(batches, self.heads(), queries, value_elements).0,
        ];
        let bias_strides = [0, 0, if self.all { keys } else { 0 }, usize::from(self.all)];
        // The kernels of few rows take keys and values as pieces.
        let in_pieces = |values: &[T]| {
            let all = [&[T::NAN; GUARD], values, &[T::NAN; GUARD]].concat();
            device.buffer(&bytemuck::pod_collect_to_vec::<T, Vec4<u32>>(&all))
        };
        let (k_pieces, v_pieces) = (in_pieces(&given.k)?, in_pieces(&given.v)?);
        let pieces = |elements: usize| elements * size_of::<T>() / size_of::<Vec4<u32>>();
        let within = |values: &[T]| pieces(GUARD)..pieces(GUARD + values.len());
        let launch = Launch::of(kernel(&way.name)).read(q.slice(inside(&q, &given.q))?)?;
        let launch = if way.takes_pieces() {
            launch.read(k_pieces.slice(within(&given.k))?)?.read(v_pieces.slice(within(&given.v))?)?
        } else {
            launch.read(k.slice(inside(&k, &given.k))?)?.read(v.slice(inside(&v, &given.v))?)?
        };
        let launch = launch
            .read(bias.slice(inside(&bias, &given.bias))?)?
            .read(&lengths)?
            .read(sinks.slice(inside(&sinks, &given.sinks))?)?
            .write(out.slice_mut(GUARD..GUARD + count)?)?;
        let mut launch = if plain {
            launch.write(&mut told)?.value([group, key_heads, queries, keys, elements, value_elements])?
        } else {
            let quads = [elements / 4, value_elements / 4];
            let launch = launch.write(&mut parts)?;
            let launch = if way.joins() { launch.write(&mut counters)? } else { launch };
            launch.value([group, key_heads, queries, keys, quads[0], quads[1], rows * cut])?
        };
        for [batch, head, position] in strides {
            launch = if plain {
                launch.value([batch, head, position, 1])?
            } else {
                launch.value([batch, head, position])?
            };
        }
        launch = launch.value(bias_strides)?.value(SCALE)?.value(self.cap())?.value(0i32)?.value(true)?;
        launch = launch.value(self.window())?;
        launch = if plain { launch.value(Scores::Nothing)? } else { launch.value(cut)? };
        let per_head = if plain { group * queries } else { (group * queries).div_ceil(way.rows) };
        let columns = if way.takes_pieces() { 1 } else { value_elements.div_ceil(way.columns) };
        device.run(launch.groups(batches * key_heads * per_head * columns * cut))?;
        assert!(counters.read()?.iter().all(|count| *count == 0), "{}: counters are left as they were found", way.name);
        if cut > 1 && !way.joins() {
            let join = Launch::of(kernel(&self.join::<T>()))
                .read(&parts)?
                .read(sinks.slice(inside(&sinks, &given.sinks))?)?
                .write(out.slice_mut(GUARD..GUARD + count)?)?
                .value([group, key_heads, queries, value_elements / 4, rows])?
                .value(strides[3])?
                .value(cut)?;
            device.run(join.over(rows * value_elements / 4 * self.sharers()))?;
        }
        out.read()
    }
}

/// Those for matrix units, for much workgroup memory and for doubles, which not every device has: the op's tests hold them to its reference, where a device takes them.
pub const BY_THE_OP: [&str; 7] = [
    "attention_matrices_f16_4",
    "attention_matrices_f16_8",
    "attention_matrices_bf16_4",
    "attention_matrices_bf16_8",
    "attention_staged_1",
    "attention_staged_2",
    "attention_plain_f64",
];

/// The kernels that are tested, here but for [`BY_THE_OP`].
pub fn tested() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BY_THE_OP.map(str::to_owned).into();
    for element in [f32::NAME, f16::NAME, bf16::NAME] {
        names.extend(ways(element).into_iter().map(|way| way.name));
        names.extend([1, 8].map(|sharers| format!("attention_join_{element}_{sharers}")));
    }
    names
}

/// Runs every kernel that the device can.
pub fn check(stand: &Stand) {
    let here = tested().into_iter().filter(|name| !BY_THE_OP.contains(&name.as_str()));
    let every: Vec<&'static Kernel> = here.map(|name| kernel(&name)).collect();
    let software = stand.device.properties().software && stand.device.kind() != DeviceKind::Cpu;
    // A processor that plays a GPU takes minutes to compile them all.
    let here = |kernel: &&'static Kernel| stand.runs(kernel) && (!software || kernel.name.contains("f32"));
    let compiled: Vec<_> = every.iter().copied().filter(here).collect();
    stand.device.load(&compiled).unwrap();
    check_of::<f32>(stand);
    if !software {
        check_of::<f16>(stand);
        check_of::<bf16>(stand);
    }
}

fn check_of<T: Value>(stand: &Stand) {
    let ways: Vec<Way> = ways(T::NAME).into_iter().filter(|way| stand.runs(kernel(&way.name))).collect();
    for shape in shapes().into_iter().filter(|shape| stand.affords(shape.operations())) {
        let takes = |way: &&Way| [shape.elements, shape.value_elements].iter().all(|count| way.takes::<T>(*count));
        let fit: Vec<&Way> = ways.iter().filter(takes).collect();
        if fit.is_empty() {
            continue;
        }
        let given = shape.given::<T>();
        let expected = shape.expected(&given);
        for way in fit {
            check_way(stand, shape, way, &given, &expected);
        }
    }
}

/// Runs one kernel on one shape.
fn check_way<T: Value>(stand: &Stand, shape: Shape, way: &Way, given: &Given<T>, expected: &[Option<f64>]) {
    let place = format!("{}, {shape:?}, on {}", way.name, stand.name);
    let run = shape.run(&stand.device, way, given, expected.len());
    let all = run.unwrap_or_else(|error| panic!("{place}: {error}"));
    let joined = shape.cut > 1 && !way.joins() && !way.name.contains("plain");
    let join = joined.then(|| kernel(&shape.join::<T>()));
    stand.ran([kernel(&way.name)].into_iter().chain(join), &place);
    let (before, rest) = all.split_at(GUARD);
    let (written, after) = rest.split_at(expected.len());
    assert!(before.iter().chain(after).all(|x| x.number().is_nan()), "{place}: a guard was overwritten");
    // Scores are at most 0.4 times so many elements, and each sum rounds once a term; values are at most 1.
    let tolerance = (shape.elements + shape.keys + 32) as f64 * 4.0 * EPSILON + T::ROUNDING;
    for (index, (given, expected)) in written.iter().zip(expected).enumerate() {
        let given = given.number();
        match expected {
            None => assert!(given.is_nan(), "{place}: element {index} is {given}, and must not be written"),
            Some(value) => {
                let close = (given - value).abs() <= tolerance;
                assert!(close, "{place}: element {index} is {given}, {value} within {tolerance:e} expected");
            }
        }
    }
}
