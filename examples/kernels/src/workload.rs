//! Each kernel on data that looks random, in a size of its caller's choice: what the program runs and the benches measure.

use trefoil::dsl::element::Element;
use trefoil::prelude::{Vec4, f16};
use trefoil::{Buffer, Device, DeviceKind, Dispatch, Result};

use crate::{attention, histogram, matmul_f16, matmul_tiles, philox, q4_k, radix_sort, reduce, scan, stencil, top_k};

/// Launches with their data, and what they are good for.
pub struct Workload {
    /// What is done to how much.
    pub about: String,
    /// The launches, in order.
    pub launches: Vec<Dispatch>,
    /// Floating-point operations, if they are what it is measured by.
    pub flops: Option<u64>,
    /// Bytes that the method must read and write.
    pub bytes: u64,
    /// Says what the result is, once the launches have run.
    pub result: Box<dyn Fn() -> Result<String>>,
}

/// Makes a workload of about so many elements on a device.
pub type Maker = fn(&Device, usize) -> Result<Workload>;

/// Every workload, by the name of its kernel.
pub const ALL: [(&str, Maker); 10] = [
    ("argmin", argmin),
    ("histogram", histogram),
    ("maximum", maximum),
    ("philox", philox),
    ("q4_k", q4_k),
    ("radix_sort", radix_sort),
    ("scan", scan),
    ("stencil", stencil),
    ("sum", sum),
    ("top_k", top_k),
];

/// Products of which either is enough, since the compiler makes the larger of smaller ones.
const PRODUCTS: [&str; 2] = ["16x16x16 of f16 in f32", "8x8x8 of f16 in f32"];

/// Those for devices that list such products of matrices.
pub const ON_MATRICES: [(&str, Maker); 3] =
    [("attention_f16", attention), ("matmul_f16", matmul), ("matmul_tiles", matmul_of_tiles)];

/// Every workload that a device can run.
pub fn of(device: &Device) -> Vec<(&'static str, Maker)> {
    let has = device.kind() == DeviceKind::Cpu
        || device.properties().matrices.iter().any(|product| PRODUCTS.contains(&product.to_string().as_str()));
    let more: &[_] = if has { &ON_MATRICES } else { &[] };
    [&ALL, more].concat()
}

/// Words that look random and differ from call to call of one seed.
pub fn words(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.wrapping_mul(0x2c1b_3c6d)
    };
    (0..count).map(|_| next()).collect()
}

/// Numbers from -1 to 1 that look random.
pub fn numbers(count: usize, seed: u32) -> Vec<f32> {
    words(count, seed).into_iter().map(|word| (word >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Says what the first element of a buffer is.
fn first<T: Element + std::fmt::Debug>(buffer: Buffer<T>) -> Box<dyn Fn() -> Result<String>> {
    Box::new(move || Ok(format!("{:?}", buffer.read()?.first())))
}

fn bytes(elements: usize) -> u64 {
    4 * elements as u64
}

fn sum(device: &Device, elements: usize) -> Result<Workload> {
    let x = device.buffer(&numbers(elements, 1))?;
    let mut total = device.zeros(1)?;
    let launches = reduce::sum(device, &x, &mut total)?;
    Ok(Workload {
        about: format!("sum of {elements}"),
        launches,
        flops: None,
        bytes: bytes(elements),
        result: first(total),
    })
}

fn maximum(device: &Device, elements: usize) -> Result<Workload> {
    let x = device.buffer(&numbers(elements, 2))?;
    let mut largest = device.zeros(1)?;
    let launches = reduce::maximum(device, &x, &mut largest)?;
    Ok(Workload {
        about: format!("maximum of {elements}"),
        launches,
        flops: None,
        bytes: bytes(elements),
        result: first(largest),
    })
}

fn argmin(device: &Device, elements: usize) -> Result<Workload> {
    let x = device.buffer(&numbers(elements, 3))?;
    let mut least = device.zeros::<reduce::Placed>(1)?;
    let launches = reduce::argmin(device, &x, &mut least)?;
    Ok(Workload {
        about: format!("argmin of {elements}"),
        launches,
        flops: None,
        bytes: bytes(elements),
        result: first(least),
    })
}

fn histogram(device: &Device, elements: usize) -> Result<Workload> {
    let x = device.buffer(&numbers(elements, 4))?;
    let mut counts = device.zeros::<u32>(256)?;
    let launches = histogram::histogram(&x, &mut counts, -1.0, 1.0)?;
    let result = move || Ok(format!("at most {:?} in a bin", counts.read()?.iter().max()));
    let about = format!("histogram of {elements}, 256 bins");
    Ok(Workload { about, launches, flops: None, bytes: bytes(elements), result: Box::new(result) })
}

fn stencil(device: &Device, elements: usize) -> Result<Workload> {
    let size = [elements.isqrt(); 2];
    let elements = size[0] * size[1];
    let from = device.buffer(&numbers(elements, 5))?;
    let mut to = device.uninit(elements)?;
    let weights = [0.05, 0.1, 0.05, 0.1, 0.4, 0.1, 0.05, 0.1, 0.05];
    let launches = stencil::stencil(device, &from, &mut to, size, weights, 1)?;
    Ok(Workload {
        about: format!("stencil on {size:?}"),
        launches,
        flops: None,
        bytes: 2 * bytes(elements),
        result: first(to),
    })
}

fn philox(device: &Device, elements: usize) -> Result<Workload> {
    let mut out = device.uninit(elements)?;
    let launches = philox::normals(&mut out, 2026, 0)?;
    let result = move || {
        let numbers: Vec<f32> = out.read()?;
        let moment =
            |power| numbers.iter().map(|x| f64::from(*x).powi(power)).sum::<f64>() / numbers.len().max(1) as f64;
        Ok(format!("mean {:.5}, variance {:.5}", moment(1), moment(2)))
    };
    Ok(Workload {
        about: format!("{elements} normals"),
        launches,
        flops: None,
        bytes: bytes(elements),
        result: Box::new(result),
    })
}

/// Rows of 4096 weights, 11008 of them where there are so many elements.
fn q4_k(device: &Device, elements: usize) -> Result<Workload> {
    let columns = 4096;
    let rows = (elements / columns).clamp(1, 11_008);
    let mut blocks = words(rows * columns / q4_k::BLOCK * q4_k::WORDS, 6);
    for block in blocks.chunks_exact_mut(q4_k::WORDS) {
        // The halves 2^-8 and 2^-6, lest random bits be no numbers.
        block[0] = 0x2400_1c00;
    }
    let weights = device.buffer(&blocks)?;
    let x = device.buffer(&numbers(columns, 7))?;
    let mut y = device.uninit(rows)?;
    let launches = q4_k::matvec(&weights, &x, &mut y)?;
    let bytes = bytes(blocks.len() + columns + rows);
    Ok(Workload { about: format!("Q4_K matvec {rows}x{columns}"), launches, flops: None, bytes, result: first(y) })
}

/// Pairs of a key and its number; 20 bytes each in each of four passes.
fn radix_sort(device: &Device, elements: usize) -> Result<Workload> {
    let keys = device.buffer(&words(elements, 8))?;
    let values = device.buffer(&(0..elements as u32).collect::<Vec<_>>())?;
    let (mut keys_out, mut values_out) = (device.uninit(elements)?, device.uninit(elements)?);
    let launches = radix_sort::sort_pairs(device, &keys, &values, &mut keys_out, &mut values_out)?;
    let about = format!("radix sort of {elements} pairs");
    Ok(Workload { about, launches, flops: None, bytes: 20 * bytes(elements), result: first(keys_out) })
}

fn scan(device: &Device, elements: usize) -> Result<Workload> {
    let x = device.buffer(&numbers(elements, 9))?;
    let mut y = device.uninit::<f32>(elements)?;
    let launches = scan::inclusive(device, &x, &mut y)?;
    let result = move || Ok(format!("ends with {:?}", y.read()?.last()));
    let about = format!("running sums of {elements}");
    Ok(Workload { about, launches, flops: None, bytes: 2 * bytes(elements), result: Box::new(result) })
}

/// The 50 largest of rows of 32000, 4096 of them where there are so many elements.
fn top_k(device: &Device, elements: usize) -> Result<Workload> {
    let (columns, k) = (32_000, 50);
    let rows = (elements / columns).clamp(1, 4096);
    let x = device.buffer(&numbers(rows * columns, 10))?;
    let (mut values, mut places) = (device.uninit(rows * k)?, device.uninit(rows * k)?);
    let launches = top_k::top_k(&x, &mut values, &mut places, [rows, columns], k)?;
    let about = format!("top {k} of {rows}x{columns}");
    Ok(Workload { about, launches, flops: None, bytes: bytes(rows * columns), result: first(values) })
}

/// Halves from -1 to 1 that look random.
fn halves(count: usize, seed: u32) -> Vec<f16> {
    numbers(count, seed).into_iter().map(f16::from_f32).collect()
}

/// A product of square matrices, of 4096 rows where there are 2^24 elements.
fn matmul(device: &Device, elements: usize) -> Result<Workload> {
    product(device, elements, matmul_f16::matmul)
}

/// The same, from tiles.
fn matmul_of_tiles(device: &Device, elements: usize) -> Result<Workload> {
    product(device, elements, matmul_tiles::matmul)
}

/// What gives the launches of a product.
type Product = fn(&Buffer<Vec4<u32>>, &Buffer<Vec4<u32>>, &mut Buffer<f32>, [usize; 3]) -> Result<Vec<Dispatch>>;

fn product(device: &Device, elements: usize, launches: Product) -> Result<Workload> {
    let n = elements.isqrt().clamp(1, 4096);
    let operand = |seed| device.buffer(&matmul_f16::padded(&halves(n * n, seed), n));
    let (a, b) = (operand(11)?, operand(12)?);
    let mut c = device.uninit(n * n)?;
    let launches = launches(&a, &b, &mut c, [n; 3])?;
    let about = format!("f16 product {n}^3");
    let flops = Some(2 * (n * n * n) as u64);
    Ok(Workload { about, launches, flops, bytes: 8 * (n * n) as u64, result: first(c) })
}

/// 32 heads of 128 elements, of 4096 queries and keys where there are 2^24 elements.
fn attention(device: &Device, elements: usize) -> Result<Workload> {
    let (count, dimension) = (32, 128);
    let queries = (elements / (count * dimension)).clamp(1, 4096);
    let heads = attention::Heads { count, queries, keys: queries, dimension };
    let length = count * queries * dimension;
    let operand = |seed| device.buffer(&attention::packed(&halves(length, seed)));
    let (q, k, v) = (operand(13)?, operand(14)?, operand(15)?);
    let mut out = device.uninit(length)?;
    let launches = attention::attention([&q, &k, &v], &mut out, heads)?;
    let about = format!("f16 attention, {count} heads of {queries}x{dimension}");
    let flops = Some(4 * (length * queries) as u64);
    Ok(Workload { about, launches, flops, bytes: 10 * length as u64, result: first(out) })
}
