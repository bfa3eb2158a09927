//! Times candle's ops on its CPU device, as `trefoil bench --device cpu` times ours: the same names, shapes and element types.
//!
//! usage: ops [FILTER..] [--list]
//!
//! Runs the cases whose name contains one of the filters; `--list` prints names alone. Prints one JSON object a line: `{"system", "case", "median_ns"}`. As there,
//! tensors rotate until caches do not hold them, and a case warms up. Results are kept as long, so that the memory of one is not what caches still hold of the one before, as ours
//! is not either. A time is that of the call, with the memory of the result, which candle takes anew for each. RAYON_NUM_THREADS sets the number of threads. Where candle has several ways to compute something, the fastest is timed.

use std::error::Error;
use std::time::{Duration, Instant};

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops;
use serde_json::json;

/// Tensors rotate until they are as many bytes together, or so many times.
const BEYOND_CACHES: usize = 512 << 20;
const MOST_SETS: usize = 24;
/// How often and how long a case is run, as by trefoil's bench.
const WARM_UP: Duration = Duration::from_millis(500);
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=50;
const BUDGET: Duration = Duration::from_secs(5);

/// What is computed of tensors; a case has one way or several.
type Way = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

struct Case {
    name: String,
    shapes: Vec<Vec<usize>>,
    element: DType,
    ways: Vec<Way>,
}

fn case(
    name: impl Into<String>,
    element: DType,
    shapes: &[&[usize]],
    way: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Case {
    Case {
        name: name.into(),
        shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
        element,
        ways: vec![Box::new(way)],
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (options, filters): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let lists = match options.as_slice() {
        [] => false,
        [only] if only == "--list" => true,
        [first, ..] => return Err(format!("`{first}`: usage: ops [FILTER..] [--list]").into()),
    };
    let mut cases = elements();
    cases.extend(rows());
    cases.extend(moves());
    cases.extend(products());
    for case in cases {
        if !filters.is_empty() && !filters.iter().any(|filter| case.name.contains(filter.as_str())) {
            continue;
        }
        if lists {
            println!("{}", case.name);
            continue;
        }
        let line = json!({"system": "candle 0.11, cpu", "case": case.name, "median_ns": median_of(&case)? as u64});
        println!("{line}");
    }
    Ok(())
}

/// Nanoseconds of the fastest way.
fn median_of(case: &Case) -> Result<u128> {
    let elements: usize = case.shapes.iter().map(|shape| shape.iter().product::<usize>()).sum();
    let sets = BEYOND_CACHES.div_ceil(elements * case.element.size_in_bytes()).clamp(1, MOST_SETS);
    let mut tensors = Vec::new();
    for _ in 0..sets {
        let set: Result<Vec<_>> = case.shapes.iter().map(|shape| random(shape, case.element)).collect();
        tensors.push(set?);
    }
    let mut fastest = u128::MAX;
    for way in &case.ways {
        let mut results: Vec<Option<Tensor>> = vec![None; sets];
        let mut time = |round: usize| -> Result<u128> {
            let start = Instant::now();
            let result = std::hint::black_box(way(&tensors[round % sets])?);
            let time = start.elapsed().as_nanos();
            results[round % sets] = Some(result);
            Ok(time)
        };
        let (mut round, begin) = (0, Instant::now());
        while round < sets.max(2) || begin.elapsed() < WARM_UP {
            time(round)?;
            round += 1;
        }
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.len() < *ROUNDS.start() || (times.len() < *ROUNDS.end() && begin.elapsed() < BUDGET) {
            times.push(time(round + times.len())?);
        }
        times.sort_unstable();
        fastest = fastest.min(times[times.len() / 2]);
    }
    Ok(fastest)
}

/// Numbers between -1 and 1.
fn random(shape: &[usize], element: DType) -> Result<Tensor> {
    Tensor::rand(-1f32, 1f32, shape, &Device::Cpu)?.to_dtype(element)
}

/// Functions of elements, casts and choices.
fn elements() -> Vec<Case> {
    type Unary = fn(&Tensor) -> Result<Tensor>;
    type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;
    const UNARY: [(&str, Unary); 20] = [
        ("neg", Tensor::neg),
        ("abs", Tensor::abs),
        ("sign", Tensor::sign),
        ("sqr", Tensor::sqr),
        ("sqrt", Tensor::sqrt),
        ("recip", Tensor::recip),
        ("exp", Tensor::exp),
        ("log", Tensor::log),
        ("sin", Tensor::sin),
        ("cos", Tensor::cos),
        ("tanh", Tensor::tanh),
        ("erf", Tensor::erf),
        ("round", Tensor::round),
        ("floor", Tensor::floor),
        ("ceil", Tensor::ceil),
        ("relu", Tensor::relu),
        ("silu", Tensor::silu),
        ("gelu", Tensor::gelu_erf),
        ("gelu_tanh", Tensor::gelu),
        ("affine", |x| x.affine(2.0, 0.5)),
    ];
    const BINARY: [(&str, Binary); 8] = [
        ("add", |a, b| a.add(b)),
        ("sub", |a, b| a.sub(b)),
        ("mul", |a, b| a.mul(b)),
        ("div", |a, b| a.div(b)),
        ("minimum", |a, b| a.minimum(b)),
        ("maximum", |a, b| a.maximum(b)),
        ("lt", |a, b| a.lt(b)),
        ("eq", |a, b| a.eq(b)),
    ];
    // What trefoil's bench has at all three sizes.
    const SIZED: [&str; 5] = ["relu", "exp", "gelu", "add", "mul"];
    let mut cases = Vec::new();
    for element in [DType::F32, DType::F16] {
        for mebi in [1, 4, 64] {
            let count = mebi << 20;
            let name = |about: &str| format!("map {about} {} {mebi} Mi", element.as_str());
            let wanted = |function: &str| mebi == 4 || element == DType::F32 && SIZED.contains(&function);
            for (function, apply) in UNARY.into_iter().filter(|(function, _)| wanted(function)) {
                cases.push(case(name(function), element, &[&[count]], move |x| apply(&x[0])));
            }
            for (function, apply) in BINARY.into_iter().filter(|(function, _)| wanted(function)) {
                cases.push(case(name(function), element, &[&[count], &[count]], move |x| apply(&x[0], &x[1])));
            }
            if mebi != 4 && element != DType::F32 {
                continue;
            }
            for to in [DType::F32, DType::F16, DType::BF16, DType::I32] {
                if to != element && (mebi == 4 || to == DType::F16) {
                    let about = format!("cast to {}", to.as_str());
                    cases.push(case(name(&about), element, &[&[count]], move |x| x[0].to_dtype(to)));
                }
            }
            cases.push(case(name("where a < b"), element, &[&[count], &[count]], |x| {
                x[0].lt(&x[1])?.where_cond(&x[0], &x[1])
            }));
        }
    }
    cases
}

/// Norms, reductions, scans and sorts of rows.
fn rows() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, columns] in [[2048, 4096], [16_384, 1024], [1024, 32_000]] {
        let of = format!("{rows}x{columns}");
        let (matrix, vector): (&[usize], &[usize]) = (&[rows, columns], &[columns]);
        cases.push(case(format!("norm softmax {of}"), DType::F32, &[matrix], |x| ops::softmax_last_dim(&x[0])));
        cases.push(case(format!("norm log_softmax {of}"), DType::F32, &[matrix], |x| ops::log_softmax(&x[0], D::Minus1)));
        cases.push(case(format!("norm layer_norm {of}"), DType::F32, &[matrix, vector, vector], |x| {
            ops::layer_norm(&x[0], &x[1], &x[2], 1e-5)
        }));
        cases.push(case(format!("norm rms_norm {of}"), DType::F32, &[matrix, vector], |x| {
            ops::rms_norm(&x[0], &x[1], 1e-5)
        }));
        cases.push(case(format!("norm softmax axis 0 {of}"), DType::F32, &[matrix], |x| ops::softmax(&x[0], 0)));
    }
    for [rows, columns] in [[1024, 4096], [8192, 1024], [512, 32_000]] {
        let of = format!("{rows}x{columns}");
        let matrix: &[usize] = &[rows, columns];
        cases.push(case(format!("reduce Sum {of} last axis"), DType::F32, &[matrix], |x| x[0].sum(1)));
        cases.push(case(format!("reduce Sum {of} axis 0"), DType::F32, &[matrix], |x| x[0].sum(0)));
        cases.push(case(format!("reduce Sum {of} all"), DType::F32, &[matrix], |x| x[0].sum_all()));
        cases.push(case(format!("reduce ArgMax {of} last axis"), DType::F32, &[matrix], |x| x[0].argmax(1)));
        cases.push(case(format!("reduce ArgMax {of} axis 0"), DType::F32, &[matrix], |x| x[0].argmax(0)));
        cases.push(case(format!("reduce ArgMax {of} all"), DType::F32, &[matrix], |x| x[0].flatten_all()?.argmax(0)));
    }
    cases.push(case("cumsum 512x4096 axis 1", DType::F32, &[&[512, 4096]], |x| x[0].cumsum(1)));
    cases.push(case("cumsum 512x4096 axis 0", DType::F32, &[&[512, 4096]], |x| x[0].cumsum(0)));
    // It has no selection of the largest: they are the first of the sorted ones.
    for (rows, columns, k) in [(256, 32_000, 50), (4096, 1024, 8)] {
        cases.push(case(format!("top_k {k} of {rows}x{columns}"), DType::F32, &[&[rows, columns]], move |x| {
            let (values, places) = x[0].sort_last_dim(false)?;
            places.narrow(1, 0, k)?.contiguous()?;
            values.narrow(1, 0, k)?.contiguous()
        }));
    }
    cases.push(case("sort f32 4194304", DType::F32, &[&[4_194_304]], |x| Ok(x[0].sort_last_dim(true)?.0)));
    cases.push(case("sort f32 4096x1024", DType::F32, &[&[4096, 1024]], |x| Ok(x[0].sort_last_dim(true)?.0)));
    cases
}

/// What is moved, and windows.
fn moves() -> Vec<Case> {
    type Move = fn(&Tensor) -> Result<Tensor>;
    const MOVES: [(&str, Move); 9] = [
        ("transpose", |x| x.t()?.contiguous()),
        ("concat rows", |x| Tensor::cat(&[x, x], 0)),
        ("concat columns", |x| Tensor::cat(&[x, x], 1)),
        ("tile rows", |x| x.repeat((2, 1))),
        ("roll columns by 64", |x| x.roll(64, 1)),
        ("pad rows", |x| x.pad_with_zeros(0, 8, 8)),
        ("pad columns by 1", |x| x.pad_with_zeros(1, 1, 1)),
        ("reverse rows", |x| x.flip(&[0])),
        ("reverse columns", |x| x.flip(&[1])),
    ];
    let mut cases: Vec<Case> = MOVES
        .into_iter()
        .map(|(about, apply)| {
            case(format!("pull {about} 2048x4096"), DType::F32, &[&[2048, 4096]], move |x| apply(&x[0]))
        })
        .collect();
    for columns in [384, 4096] {
        let places: Vec<u32> = (0..8192u64).map(|i| (i * 48_271 % 12_500) as u32).collect();
        cases.push(case(
            format!("pull gather 8192 of 12500 rows of {columns}"),
            DType::F32,
            &[&[12_500, columns]],
            move |x| x[0].index_select(&Tensor::from_slice(&places, places.len(), &Device::Cpu)?, 0),
        ));
    }
    cases.push(case("pull resize linear to 224 of 32x64x112x112", DType::F32, &[&[32, 64, 112, 112]], |x| {
        x[0].upsample_bilinear2d(224, 224, false)
    }));
    cases
}

/// Products, convolutions and attention.
fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1024, 512] {
        cases.push(case(format!("matmul f32 {n}^3"), DType::F32, &[&[n, n], &[n, n]], |x| x[0].matmul(&x[1])));
    }
    for (m, n, k) in [(1, 2752, 1024), (8, 2752, 1024), (32, 1024, 1024), (128, 1024, 1024)] {
        cases.push(case(format!("product f32 NT 1x{m}x{n}x{k}"), DType::F32, &[&[1, m, k], &[1, n, k]], |x| {
            x[0].matmul(&x[1].t()?)
        }));
    }
    cases.push(case("product f32 NN 1x1x2752x1024", DType::F32, &[&[1, 1, 1024], &[1, 1024, 2752]], |x| {
        x[0].matmul(&x[1])
    }));
    for [channels, extent, outputs, size, stride, groups] in
        [[64, 56, 64, 3, 1, 1], [256, 14, 256, 3, 1, 1], [256, 56, 64, 1, 1, 1], [3, 224, 64, 7, 2, 1], [256, 56, 256, 3, 1, 256]]
    {
        let mut by = if stride == 1 { String::new() } else { format!(" by {stride}") };
        if groups > 1 {
            by = format!("{by} groups {groups}");
        }
        cases.push(case(
            format!("conv 4x{channels}x{extent}x{extent} to {outputs}, {size}x{size}{by}"),
            DType::F32,
            &[&[4, channels, extent, extent], &[outputs, channels / groups, size, size]],
            move |x| x[0].conv2d(&x[1], size / 2, stride, 1, groups),
        ));
    }
    for (heads, positions, elements) in [(32, 512, 64), (32, 512, 128), (12, 16, 32)] {
        let shape: &[usize] = &[1, heads, positions, elements];
        let scale = (elements as f64).sqrt().recip();
        let mut attention = case(
            format!("attention f32 {heads}/{heads}x{positions}x{positions}x{elements}"),
            DType::F32,
            &[shape, shape, shape],
            move |x| {
                let scores = (x[0].matmul(&x[1].t()?)? * scale)?;
                ops::softmax_last_dim(&scores)?.matmul(&x[2])
            },
        );
        // Its own attention takes positions before heads.
        attention.ways.push(Box::new(move |x| {
            let [q, k, v] = [0, 1, 2].map(|at| x[at].transpose(1, 2));
            flash_attn::<f32>(&q?, &k?, &v?, scale as f32, AttnMask::None, None, None)
        }));
        cases.push(attention);
    }
    cases
}
