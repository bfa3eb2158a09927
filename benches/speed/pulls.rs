//! Ops that pull their elements from computed places: what is moved in wide units, what is moved element by element, and windows.

use trefoil::graph::graph::{Graph, GraphError, Tensor};
use trefoil::graph::ops::fill::Number;
use trefoil::graph::ops::pull::border::Border;
use trefoil::graph::ops::pull::pool::{Pooling, Window};
use trefoil::graph::ops::pull::resize::{Interpolation, ResizeAxis};
use trefoil::graph::{Dim, ElementType};

use crate::cases::Case;
use crate::measure::Scale;

/// An op on a tensor.
type Build = fn(&mut Graph, Tensor) -> Result<Tensor, GraphError>;

/// Rows of the square tensors on a GPU, and their columns.
const ROWS: i64 = 16_384;
const COLUMNS: i64 = 4096;
/// How many rows are gathered.
const GATHERED: u32 = 8192;
/// Tables that are turned by their diagonal.
const TURNED: [[i64; 2]; 2] = [[8192, 4096], [65_536, 1024]];

fn constant() -> Border {
    Border::Constant(Number::Float(0.0))
}

/// Names, ops, and how many elements of the result there are to one of `x`; of those as many are read, but for pools.
const OPS: [(&str, Build, [i64; 2]); 10] = [
    ("concat rows", |g, x| g.concat(&[x, x], 0), [2, 1]),
    ("concat columns", |g, x| g.concat(&[x, x], 1), [2, 1]),
    ("tile rows", |g, x| g.tile(x, &[2, 1].map(Dim::from)), [2, 1]),
    ("roll columns by 64", |g, x| g.roll(x, &[(1, Dim::from(64))]), [1, 1]),
    ("roll columns by 1", |g, x| g.roll(x, &[(1, Dim::from(1))]), [1, 1]),
    ("pad rows", |g, x| g.pad(x, &[[8, 8], [0, 0]].map(|pads| pads.map(Dim::from)), constant()), [1, 1]),
    ("pad columns by 1", |g, x| g.pad(x, &[[0, 0], [1, 1]].map(|pads| pads.map(Dim::from)), constant()), [1, 1]),
    ("reverse rows", |g, x| g.reverse(x, &[0]), [1, 1]),
    ("reverse columns", |g, x| g.reverse(x, &[1]), [1, 1]),
    ("tril", |g, x| g.tril(x, 0), [1, 1]),
];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 8,
        Scale::Software => 64,
    };
    let rows = ROWS / less;
    let mut cases = Vec::new();
    for (about, build, [results, of]) in OPS {
        // What an op reads twice comes from memory twice: it is larger than caches.
        cases.push(case(
            format!("pull {about} {rows}x{COLUMNS}"),
            vec![rows, COLUMNS],
            8 * rows * COLUMNS * results / of,
            build,
        ));
    }
    for [rows, columns] in TURNED {
        let rows = rows / less;
        cases.push(case(format!("pull transpose {rows}x{columns}"), vec![rows, columns], 8 * rows * columns, turned));
    }
    for columns in [384, 4096] {
        let table = 100_000 / less;
        let moved = 8 * i64::from(GATHERED) * columns;
        cases.push(Case {
            name: format!("pull gather {GATHERED} of {table} rows of {columns}"),
            inputs: vec![("x", vec![table, columns])],
            build: Box::new(move |g, inputs| {
                // Far from each other, each once or seldom.
                let places = (0..GATHERED).map(|i| (u64::from(i) * 48_271 % table.unsigned_abs()) as u32);
                let places: Vec<u32> = places.collect();
                let indices = g.constant(ElementType::U32, vec![Dim::from(places.len())], &places)?;
                let result = g.gather(inputs[0], indices, 0)?;
                g.output("result", result)
            }),
            bytes: moved.unsigned_abs(),
            flops: None,
        });
    }
    let images = 256 / less;
    let extents = vec![images, 64, 112, 112];
    let elements: i64 = extents.iter().product();
    let pools: [(&str, Build, i64); 3] = [
        ("max_pool 3x3 by 2", pooled, 4 * elements + elements),
        ("adaptive_mean 7x7", |g, x| g.adaptive_mean(x, &[7, 7].map(Dim::from)), 4 * elements + elements / 64),
        ("resize linear to 224", resized, 4 * elements * 5),
    ];
    for (about, build, bytes) in pools {
        cases.push(case(format!("pull {about} of {images}x64x112x112"), extents.clone(), bytes, build));
    }
    cases
}

fn case(name: String, shape: Vec<i64>, bytes: i64, build: Build) -> Case {
    Case {
        name,
        inputs: vec![("x", shape)],
        build: Box::new(move |g, inputs| {
            let result = build(g, inputs[0])?;
            g.output("result", result)
        }),
        bytes: bytes.unsigned_abs(),
        flops: None,
    }
}

fn turned(g: &mut Graph, x: Tensor) -> Result<Tensor, GraphError> {
    let turned = g.transpose(x, &[1, 0])?;
    g.contiguous(turned)
}

fn pooled(g: &mut Graph, x: Tensor) -> Result<Tensor, GraphError> {
    let one = Dim::from(1);
    let window = Window { stride: Dim::from(2), padding: [one.clone(), one], ..Window::new(3) };
    g.pool(x, Pooling::Max, &[window.clone(), window])
}

fn resized(g: &mut Graph, x: Tensor) -> Result<Tensor, GraphError> {
    g.resize(x, &[ResizeAxis::new(224), ResizeAxis::new(224)], Interpolation::Linear)
}
