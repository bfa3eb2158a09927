//! Every op that pulls its elements from computed places against its reference: awkward shapes, all element types, strided operands, extents that a run decides, on every device.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeMap;

use common::{Values, compare, computes, devices, numbers, tolerance};
use trefoil_graph::ops::pull::arrange::Reverse;
use trefoil_graph::ops::{BlockOrder, Border, Number};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Options, Symbol, Tensor,
    reference,
};

const F32: ElementType = ElementType::F32;

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// A graph with its inputs; ops are added to it as outputs.
struct Case {
    graph: Graph,
    inputs: Vec<(String, Values)>,
    extents: Extents,
    outputs: usize,
    /// The type without which a device refuses the graph.
    needs: ElementType,
    tolerance: f64,
}

impl Case {
    fn new() -> Self {
        Self {
            graph: Graph::new(),
            inputs: Vec::new(),
            extents: Extents::new(),
            outputs: 0,
            needs: F32,
            tolerance: 0.0,
        }
    }

    fn given(&mut self, extents: &[usize], values: Values) -> Tensor {
        let name = format!("x{}", self.inputs.len());
        let tensor = self.graph.input(&name, values.element(), shape(extents)).unwrap();
        self.inputs.push((name, values));
        tensor
    }

    fn input(&mut self, element: ElementType, extents: &[usize]) -> Tensor {
        let values = Values::of(element, extents.iter().product(), self.inputs.len() as u32 + 1, 9.0);
        self.given(extents, values)
    }

    /// A tensor whose axes lie in memory the other way round.
    fn turned(&mut self, element: ElementType, extents: &[usize]) -> Tensor {
        let there: Vec<usize> = extents.iter().rev().copied().collect();
        let x = self.input(element, &there);
        let order: Vec<usize> = (0..extents.len()).rev().collect();
        self.graph.transpose(x, &order).unwrap()
    }

    /// Indices below an extent, one after the last, and far ones.
    fn indices(&mut self, element: ElementType, extents: &[usize], below: usize) -> Tensor {
        let count: usize = extents.iter().product();
        let place = |i: usize| (i * 7 + 3) % (below + 1);
        let values = match element {
            ElementType::I64 => Values::I64(
                (0..count)
                    .map(|i| if i % 5 == 4 { (1 << 32) + (i as i64 & 1) } else { place(i) as i64 - (i as i64 & 1) })
                    .collect(),
            ),
            ElementType::U8 => Values::U8((0..count).map(|i| place(i) as u8).collect()),
            ElementType::U32 => {
                Values::U32((0..count).map(|i| if i % 5 == 4 { u32::MAX } else { place(i) as u32 }).collect())
            }
            _ => Values::I32((0..count).map(|i| if i % 5 == 4 { -1 } else { place(i) as i32 }).collect()),
        };
        self.given(extents, values)
    }

    fn output(&mut self, tensor: Result<Tensor, GraphError>) {
        let name = format!("y{}", self.outputs);
        self.outputs += 1;
        self.graph.output(&name, tensor.unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap();
    }

    fn check(&self) {
        let inputs: Vec<(&str, Values)> =
            self.inputs.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        for device in devices() {
            let compiled = Executable::compile(&self.graph, &Model::new(), &device, &Options::default());
            if !computes(&device, self.needs) {
                assert!(
                    matches!(compiled, Err(Error::Lacking { .. })),
                    "{:?} on {}",
                    self.needs,
                    device.properties().name
                );
                continue;
            }
            let executable = compiled.unwrap_or_else(|error| panic!("{error} on {}", device.properties().name));
            compare(&self.graph, &executable, &inputs, &self.extents, self.tolerance);
        }
    }
}

/// The references of two results for the same input differ, in shape or in a value.
fn differ(
    about: &str,
    extents: &[usize],
    one: impl Fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>,
    other: impl Fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>,
) {
    let result = |op: &dyn Fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>| {
        let mut graph = Graph::new();
        let x = graph.input("x", F32, shape(extents)).unwrap();
        let y = op(&mut graph, x).unwrap_or_else(|error| panic!("{about}: {error}"));
        graph.output("y", y).unwrap();
        let values = (1..=extents.iter().product::<usize>()).map(|i| i as f64).collect();
        let leaves = BTreeMap::from([("x".to_owned(), HostTensor { shape: extents.to_vec(), values })]);
        reference::evaluate(&graph, &leaves, &Extents::new()).unwrap()
    };
    assert_ne!(result(&one), result(&other), "{about} makes no difference");
}

#[test]
fn joins() {
    for element in ElementType::ALL {
        let mut case = Case::new();
        for axis in 0..3 {
            let with = |extent: usize| {
                let mut extents = [3, 5, 7];
                extents[axis] = extent;
                extents
            };
            let parts = [case.input(element, &with(4)), case.turned(element, &with(1)), case.input(element, &with(0))];
            let y = case.graph.concat(&parts, axis as isize);
            case.output(y);
        }
        // Rows and blocks of 16 bytes and more, and some that are not.
        for [a, b, c] in [[64, 32, 16], [8, 4, 2], [160, 160, 160]] {
            let parts = [case.input(element, &[3, a]), case.input(element, &[3, b]), case.input(element, &[3, c])];
            let y = case.graph.concat(&parts, -1);
            case.output(y);
        }
        let same = case.input(element, &[2, 3]);
        let y = case.graph.stack(&[same, same], 1);
        case.output(y);
        case.check();
    }
    // More than any device binds, inside and outside; and a part of a tensor that starts where 16 bytes do not.
    let mut case = Case::new();
    for axis in [0, 1] {
        let parts: Vec<Tensor> =
            (0..21).map(|i| case.input(F32, &if axis == 0 { [i % 4, 12] } else { [5, i % 5] })).collect();
        let y = case.graph.concat(&parts, axis);
        case.output(y);
    }
    let x = case.input(F32, &[5, 40]);
    let parts = [case.graph.narrow(x, 1, 3, 8).unwrap(), case.graph.narrow(x, 1, 16, 8).unwrap()];
    let y = case.graph.concat(&parts, 0);
    case.output(y);
    case.check();
}

/// Extents that a run decides.
#[test]
fn symbols() {
    let n = |value: i64| Dim::from(value);
    for rows in [0usize, 1, 3, 8] {
        let mut case = Case::new();
        let symbol = Symbol::new("rows", 0, 8).unwrap();
        case.extents.set(&symbol, rows as i64).unwrap();
        let x = case.graph.input("x0", F32, vec![Dim::from(&symbol), n(12)]).unwrap();
        case.inputs.push(("x0".to_owned(), Values::F32(numbers(rows * 12, 1, 1.0))));
        let turned = case.graph.transpose(x, &[1, 0]).unwrap();
        let fixed = case.input(F32, &[5, 12]);
        let i = case.indices(ElementType::U8, &[4], 7);
        let all = [
            case.graph.concat(&[x, fixed], 0),
            case.graph.concat(&[turned, turned], 1),
            case.graph.roll(x, &[(0, n(3)), (1, n(-5))]),
            case.graph.pad(x, &[[n(1), n(2)], [n(4), n(-4)]], Border::Constant(Number::Float(2.5))),
            case.graph.tile(turned, &[n(1), n(2)]),
            case.graph.reverse(turned, &[1]),
            case.graph.gather(x, i, 0),
            case.graph.gather(turned, i, 1),
            case.graph.tril(x, 1),
            case.graph.eye(Dim::from(&symbol), 3, 0, F32),
        ];
        for y in all {
            case.output(y);
        }
        case.check();
    }
}

#[test]
fn attributes_count() {
    let n = |value: i64| Dim::from(value);
    let pads = |value: i64| vec![[n(value), n(1)], [n(0), n(2)]];
    let constant = |value: f64| Border::Constant(Number::Float(value));
    let x = &[4usize, 6][..];
    differ("concat axis", x, |g, x| g.concat(&[x, x], 0), |g, x| g.concat(&[x, x], 1));
    differ("stack axis", x, |g, x| g.stack(&[x, x], 0), |g, x| g.stack(&[x, x], 2));
    differ("pads", x, |g, x| g.pad(x, &pads(1), constant(0.0)), |g, x| g.pad(x, &pads(2), constant(0.0)));
    differ("border value", x, |g, x| g.pad(x, &pads(1), constant(0.0)), |g, x| g.pad(x, &pads(1), constant(1.0)));
    let borders = [constant(0.0), Border::Edge, Border::Reflect, Border::Wrap];
    for (index, one) in borders.iter().enumerate() {
        for other in &borders[..index] {
            differ("border", x, |g, x| g.pad(x, &pads(1), *one), |g, x| g.pad(x, &pads(1), *other));
        }
    }
    differ("repeats", x, |g, x| g.tile(x, &[n(2), n(1)]), |g, x| g.tile(x, &[n(1), n(2)]));
    differ("times", x, |g, x| g.repeat_interleave(x, 2, 0), |g, x| g.repeat_interleave(x, 3, 0));
    differ("interleave axis", x, |g, x| g.repeat_interleave(x, 2, 0), |g, x| g.repeat_interleave(x, 2, 1));
    differ("shift", x, |g, x| g.roll(x, &[(0, n(1))]), |g, x| g.roll(x, &[(0, n(2))]));
    differ("shift axis", x, |g, x| g.roll(x, &[(0, n(1))]), |g, x| g.roll(x, &[(1, n(1))]));
    differ("axes", x, |g, x| g.reverse(x, &[0]), |g, x| g.reverse(x, &[1]));
    differ("slice start", x, |g, x| g.slice(x, 1, 0, 6, 2), |g, x| g.slice(x, 1, 1, 6, 2));
    differ("slice end", x, |g, x| g.slice(x, 1, 0, 6, 2), |g, x| g.slice(x, 1, 0, 4, 2));
    differ("slice step", x, |g, x| g.slice(x, 1, 0, 6, 2), |g, x| g.slice(x, 1, 0, 6, 3));
    let indices = |g: &mut Graph| g.constant(ElementType::I32, shape(&[2, 2]), &[1i32, 0, 3, 2]);
    differ(
        "gather axis",
        x,
        |g, x| indices(g).and_then(|i| g.gather(x, i, 0)),
        |g, x| indices(g).and_then(|i| g.gather(x, i, 1)),
    );
    differ(
        "gather_elements axis",
        x,
        |g, x| indices(g).and_then(|i| g.gather_elements(x, i, 0)),
        |g, x| indices(g).and_then(|i| g.gather_elements(x, i, 1)),
    );
    let pairs = |g: &mut Graph| g.constant(ElementType::I32, shape(&[4, 1]), &[1i32, 0, 3, 2]);
    differ(
        "batch_axes",
        x,
        |g, x| pairs(g).and_then(|i| g.gather_nd(x, i, 0)),
        |g, x| pairs(g).and_then(|i| g.gather_nd(x, i, 1)),
    );
    let hot = |depth: i64, off: f64, on: f64, element, axis| {
        move |g: &mut Graph, _: Tensor| {
            let i = g.constant(ElementType::I32, shape(&[3]), &[1i32, 2, 0])?;
            g.one_hot(i, depth, [Number::Float(off), Number::Float(on)], element, axis)
        }
    };
    differ("depth", x, hot(3, 0.0, 1.0, F32, 0), hot(4, 0.0, 1.0, F32, 0));
    differ("off", x, hot(3, 0.0, 1.0, F32, 0), hot(3, 2.0, 1.0, F32, 0));
    differ("on", x, hot(3, 0.0, 1.0, F32, 0), hot(3, 0.0, 3.0, F32, 0));
    differ("hot axis", x, hot(3, 0.0, 1.0, F32, 0), hot(3, 0.0, 1.0, F32, 1));
    differ("hot element", x, hot(3, 0.0, 0.3, F32, 0), hot(3, 0.0, 0.3, ElementType::F16, 0));
    differ("upper", x, |g, x| g.tril(x, 0), |g, x| g.triu(x, 0));
    differ("diagonal", x, |g, x| g.tril(x, 0), |g, x| g.tril(x, 1));
    differ("eye diagonal", x, |g, _| g.eye(3, 3, 0, F32), |g, _| g.eye(3, 3, 1, F32));
    differ("eye rows", x, |g, _| g.eye(3, 3, 0, F32), |g, _| g.eye(4, 3, 0, F32));
    differ("eye columns", x, |g, _| g.eye(3, 3, 0, F32), |g, _| g.eye(3, 4, 0, F32));
    let steps =
        |start, step, count: i64, element| move |g: &mut Graph, _: Tensor| g.arange(start, step, count, element);
    differ("start", x, steps(0.0, 1.0, 3, F32), steps(1.0, 1.0, 3, F32));
    differ("step", x, steps(0.0, 1.0, 3, F32), steps(0.0, 2.0, 3, F32));
    differ("count", x, steps(0.0, 1.0, 3, F32), steps(0.0, 1.0, 4, F32));
    differ("element", x, steps(0.0, 0.3, 3, F32), steps(0.0, 0.3, 3, ElementType::F16));
    differ("last", x, |g, _| g.linspace(0.0, 1.0, 3, F32), |g, _| g.linspace(0.0, 2.0, 3, F32));
}

#[test]
fn borders() {
    let n = |value: i64| Dim::from(value);
    for element in ElementType::ALL {
        let mut case = Case::new();
        let one = Number::Integer(1);
        for border in [Border::Constant(one), Border::Edge, Border::Reflect, Border::Wrap] {
            let x = case.input(element, &[3, 5, 8]);
            let y = case.graph.pad(x, &[[n(1), n(2)], [n(0), n(0)], [n(0), n(0)]], border);
            case.output(y);
            let y = case.graph.pad(x, &[[n(0), n(0)], [n(-1), n(7)], [n(4), n(-4)]], border);
            case.output(y);
            let x = case.turned(element, &[2, 3, 4]);
            let y = case.graph.pad(x, &[[n(0), n(0)], [n(2), n(-1)], [n(5), n(3)]], border);
            case.output(y);
        }
        let none = case.input(element, &[0, 3]);
        let y = case.graph.pad(none, &[[n(1), n(1)], [n(0), n(2)]], Border::Constant(one));
        case.output(y);
        case.check();
    }
}

#[test]
fn arrangements() {
    let n = |value: i64| Dim::from(value);
    for element in ElementType::ALL {
        let mut case = Case::new();
        for extents in [&[3usize, 5, 8][..], &[1, 1, 1], &[2, 0, 3], &[5, 7, 11]] {
            let [x, t] = [case.input(element, extents), case.turned(element, extents)];
            for x in [x, t] {
                let all = [
                    case.graph.tile(x, &[n(2), n(1), n(3)]),
                    case.graph.tile(x, &[n(2), n(3), n(1), n(1)]),
                    case.graph.tile(x, &[n(1), n(0), n(1)]),
                    case.graph.repeat_interleave(x, 3, 1),
                    case.graph.roll(x, &[(0, n(2))]),
                    case.graph.roll(x, &[(-1, n(-4)), (1, n(3))]),
                    case.graph.reverse(x, &[0]),
                    case.graph.reverse(x, &[-1, 0]),
                ];
                for y in all {
                    case.output(y);
                }
            }
        }
        let x = case.input(element, &[7, 9]);
        for (axis, start, end, step) in
            [(0, 1, 7, 2), (1, 0, 9, 4), (0, 6, -1, -1), (1, 8, 1, -3), (0, 3, 3, 2), (1, 2, 5, -1)]
        {
            let y = case.graph.slice(x, axis, start, end, step);
            case.output(y);
        }
        case.check();
    }
}

/// Only what is left of a shift by the extent counts, which coordinates hold.
#[test]
fn far_shifts() {
    let far = [1 - (1i64 << 31), i64::from(i32::MIN), i64::from(i32::MAX), (1 << 40) + 3, i64::MAX, i64::MIN];
    let mut case = Case::new();
    let x = case.input(F32, &[100]);
    let rows = case.input(F32, &[7, 12]);
    let n = Symbol::new("n", 0, 1000).unwrap();
    case.extents.set(&n, 9).unwrap();
    let open = case.graph.input("x2", F32, vec![Dim::from(&n)]).unwrap();
    case.inputs.push(("x2".to_owned(), Values::F32(numbers(9, 5, 1.0))));
    for shift in far {
        let y = case.graph.roll(x, &[(0, Dim::from(shift))]);
        case.output(y);
        let y = case.graph.roll(rows, &[(0, Dim::from(shift)), (1, Dim::from(shift))]);
        case.output(y);
    }
    for shift in &far[..4] {
        let y = case.graph.roll(open, &[(0, Dim::from(*shift))]);
        case.output(y);
    }
    case.check();
}

#[test]
fn gathers() {
    for element in ElementType::ALL {
        let mut case = Case::new();
        for kind in [ElementType::I32, ElementType::U32, ElementType::I64, ElementType::U8] {
            for (extents, rows) in
                [([7usize, 5, 16], [2usize, 3]), ([1, 1, 1], [1, 1]), ([3, 0, 4], [2, 2]), ([5, 4, 3], [0, 3])]
            {
                let [x, t] = [case.input(element, &extents), case.turned(element, &extents)];
                for axis in 0..3 {
                    let i = case.indices(kind, &rows, extents[axis]);
                    let y = case.graph.gather(if axis == 1 { t } else { x }, i, axis as isize);
                    case.output(y);
                    let mut like = extents;
                    like[axis] = 4;
                    let i = case.indices(kind, &like, extents[axis]);
                    let y = case.graph.gather_elements(x, i, axis as isize - 3);
                    case.output(y);
                }
            }
            let x = case.input(element, &[3, 4, 5, 8]);
            for (batch, extents) in
                [(0, &[2usize, 3][..]), (1, &[3, 6, 2]), (2, &[3, 4, 1]), (0, &[5, 4]), (1, &[3, 1])]
            {
                let i = case.indices(kind, extents, 4);
                let y = case.graph.gather_nd(x, i, batch);
                case.output(y);
            }
            case.check();
            case = Case::new();
        }
    }
    let mut case = Case::new();
    for [rows, columns, count] in [[1usize, 1, 1], [7, 5, 11], [131, 384, 7], [9, 4096, 3]] {
        let table = case.input(F32, &[rows, columns]);
        let i = case.indices(ElementType::U32, &[1, count], rows);
        let y = case.graph.embedding(table, i);
        case.output(y);
    }
    case.check();
}

#[test]
fn masks() {
    for element in ElementType::ALL {
        let mut case = Case::new();
        let values = [Number::Integer(0), Number::Integer(1)];
        for axis in 0..3 {
            let i = case.indices(ElementType::I32, &[3, 5], 6);
            let y = case.graph.one_hot(i, 6, values, element, axis);
            case.output(y);
        }
        let i = case.indices(ElementType::I64, &[7], 4);
        let y = case.graph.one_hot(i, 4, values, element, -1);
        case.output(y);
        for extents in [&[4usize, 6][..], &[2, 5, 3], &[0, 3], &[1, 1]] {
            // The last two are no coordinates with a row added.
            for diagonal in [0, 2, -1, -9, i32::MAX, i32::MIN] {
                let x = case.turned(element, extents);
                for y in [case.graph.tril(x, diagonal), case.graph.triu(x, diagonal)] {
                    case.output(y);
                }
            }
        }
        for [rows, columns, diagonal] in
            [[3, 3, 0], [2, 5, 1], [5, 2, -2], [0, 4, 0], [3, 3, i32::MAX], [3, 3, i32::MIN]]
        {
            let y = case.graph.eye(rows, columns, diagonal, element);
            case.output(y);
        }
        let y = case.graph.identity(1, element);
        case.output(y);
        case.check();
    }
}

#[test]
fn steps() {
    for element in ElementType::ALL.into_iter().filter(|element| *element != ElementType::Bool) {
        let mut case = Case::new();
        case.tolerance = tolerance(element);
        for (start, step, count) in [(3.0, 2.0, 17), (5.0, 1.0, 0), (20.0, -1.0, 5), (0.0, 0.0, 3)] {
            let y = case.graph.arange(start, step, count, element);
            case.output(y);
        }
        if element.is_float() {
            case.needs = element;
            for (start, last, count) in [(-1.0, 1.5, 11), (2.0, 9.0, 1), (2.0, 9.0, 2), (0.0, 1.0, 0), (7.0, 7.0, 3)] {
                let y = case.graph.linspace(start, last, count, element);
                case.output(y);
            }
        }
        case.check();
    }
    // Both ends are exact.
    let mut graph = Graph::new();
    let y = graph.linspace(0.1, 0.7, 1000, F32).unwrap();
    graph.output("y", y).unwrap();
    for device in devices() {
        let executable = Executable::compile(&graph, &Model::new(), &device, &Options::default()).unwrap();
        let outputs = executable.run(&[], &Extents::new()).unwrap();
        let y = outputs.get::<f32>("y").unwrap();
        assert_eq!([y[0], y[999]], [0.1, 0.7]);
    }
    // The distance of the ends is more than the largest number.
    let mut case = Case::new();
    case.tolerance = tolerance(F32);
    for count in [5, 3, 2, 1] {
        let y = case.graph.linspace(-3e38, 3e38, count, F32);
        case.output(y);
    }
    case.check();
}

/// Lengths beyond the axis read 0; negative ones, and those that are none of 32 bits with a sign, turn nothing.
#[test]
fn sequences_of_any_length() {
    let lengths = [
        Values::U32(vec![3_000_000_000, 2, 0]),
        Values::I64(vec![1 << 40, -5, 3]),
        Values::U64(vec![u64::MAX, 1 << 31, 4]),
        Values::I32(vec![i32::MAX, i32::MIN, 1]),
    ];
    let mut case = Case::new();
    let x = case.given(&[3, 4], Values::F32((1..=12).map(|x| x as f32).collect()));
    for lengths in lengths {
        let of = case.given(&[3], lengths);
        let y = case.graph.reverse_sequence(x, of, 0, 1);
        case.output(y);
    }
    case.check();
}

fn refused(result: Result<Tensor, GraphError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn mistakes() {
    let mut g = Graph::new();
    let x = g.input("x", F32, shape(&[2, 3])).unwrap();
    let wide = g.input("wide", F32, shape(&[2, 4])).unwrap();
    let i = g.input("i", ElementType::I32, shape(&[2])).unwrap();
    let n = |value: i64| Dim::from(value);
    assert_eq!(
        refused(g.concat(&[x, wide], 0)),
        "concat(x: f32[2, 3], wide: f32[2, 4]): input `tensors` is f32[2, 4]; expected the extents of f32[2, 3] but along axis 0"
    );
    assert!(refused(g.concat(&[], 0)).contains("0 inputs given"));
    assert!(refused(g.concat(&[x, i], 0)).contains("i32"));
    assert!(refused(g.concat(&[x], 2)).contains("an axis below 2"));
    assert!(refused(g.pad(x, &[[n(1), n(1)]], Border::Edge)).contains("a pair for each of the 2 axes"));
    assert!(refused(g.pad(x, &[[n(-2), n(-1)], [n(0), n(0)]], Border::Edge)).contains("axis 0"));
    assert!(refused(g.pad(i, &[[n(1), n(0)]], Border::Constant(Number::Float(0.5)))).contains("a number that i32 has"));
    assert!(refused(g.tile(x, &[n(1)])).contains("a number for each of the 2 axes"));
    assert!(refused(g.tile(x, &[n(1), n(-1)])).contains("not negative"));
    assert!(refused(g.slice(x, 0, 0, 2, 0)).contains("a number other than 0"));
    assert!(refused(g.slice(x, 0, 1, 4, 1)).contains("axis 0"));
    assert!(refused(g.gather(x, x, 0)).contains("an integer"));
    assert!(refused(g.gather(x, i, 5)).contains("an axis below 2"));
    assert!(refused(g.gather_elements(x, i, 0)).contains("no larger extents"));
    assert!(refused(g.gather_nd(x, i, 1)).contains("batch_axes"));
    // Numbers whose sums and products would be beyond 64 bits.
    assert!(refused(g.gather_nd(x, i, usize::MAX)).contains("batch_axes"));
    assert!(refused(g.dynamic_slice(x, i, usize::MAX, &[])).contains("starts"));
    let none = g.input("none", F32, shape(&[3, 0, 0])).unwrap();
    assert!(refused(g.depth_to_space(none, 1 << 32, BlockOrder::ChannelFirst)).contains("block"));
    assert!(refused(g.space_to_depth(none, 1 << 32, BlockOrder::ChannelFirst)).contains("block"));
    assert!(refused(g.add_one(Reverse { axes: vec![1, 0] }, &[x])).contains("ascending"));
    assert!(refused(g.embedding(i, i)).contains("a matrix of rows"));
    assert!(refused(g.tril(i, 0)).contains("at least two axes"));
    assert!(refused(g.arange(0.5, 1.0, 3, ElementType::I32)).contains("integers that i32 has"));
    for element in [ElementType::U32, ElementType::U64, ElementType::I8] {
        let nothing = g.arange(0.0, 1.0, 0, element).unwrap();
        assert_eq!(g.type_of(nothing).unwrap().to_string(), format!("{element}[0]"));
    }
    assert!(refused(g.arange(200.0, 100.0, 3, ElementType::U8)).contains("integers that u8 has"));
    // What a float rounds to an end of 64 bits, or is just behind one.
    let (half, all) = (2f64.powi(63), 2f64.powi(64));
    for (start, step, count, element) in [
        (half, 1.0, 1, ElementType::I64),
        (half - 1024.0, 1.0, 1025, ElementType::I64),
        (-half, -1.0, 2, ElementType::I64),
        (0.0, f64::MAX, 2, ElementType::I64),
        (all, 0.0, 1, ElementType::U64),
        (all - 2048.0, 2048.0, 2, ElementType::U64),
        (f64::INFINITY, 0.0, 1, ElementType::U64),
        (0.0, -1.0, 2, ElementType::U64),
    ] {
        assert!(refused(g.arange(start, step, count, element)).contains(&format!("integers that {element} has")));
    }
    g.arange(half - 1024.0, 1.0, 1024, ElementType::I64).unwrap();
    g.arange(-half, 1.0, 3, ElementType::I64).unwrap();
    g.arange(all - 2048.0, 1.0, 2048, ElementType::U64).unwrap();
}
