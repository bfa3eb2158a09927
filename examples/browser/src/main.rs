//! Writes what a web page needs to run trefoil's kernels: their WGSL in the browsers' dialect with every optional feature or none, inputs,
//! parameter blocks and what must come out.
//!
//! ```text
//! cargo run -p trefoil-browser -- cases.json
//! ```
//!
//! `page/` holds the page that reads it, and `scripts/test-browser.sh` runs all of it in a headless Chromium.

mod kernels;

use std::error::Error;

use bytemuck::{NoUninit, bytes_of, cast_slice};
use kernels::{BINS, TILE, histogram, product, sums};
use serde::Serialize;
use trefoil::artefact::{Code, Dialect, Kernel, Target};

/// A kernel, and a launch of it with a known result.
#[derive(Serialize)]
struct Case {
    name: &'static str,
    texts: Vec<Text>,
    /// Storage buffers, in the order of their bindings: the words that they hold before.
    buffers: Vec<Vec<u32>>,
    /// The parameter block; its binding is the one after the buffers.
    params: Vec<u32>,
    grid: [u32; 3],
    /// The buffer to look at.
    output: usize,
    expected: Expected,
}

/// One text that a browser may read.
#[derive(Serialize)]
struct Text {
    profile: &'static str,
    /// Features of the adapter that it wants, by their names in WebGPU.
    features: Vec<&'static str>,
    /// The name of the entry point.
    entry: &'static str,
    wgsl: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    /// Every word.
    Exactly(Vec<u32>),
    /// Numbers, to a part in a hundred thousand: sums may be taken in any order.
    Nearly(Vec<f32>),
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: trefoil-browser FILE")?;
    let cases = [histogram_case()?, product_case()?, sums_case()?];
    std::fs::write(&path, serde_json::to_vec(&cases)?).map_err(|error| format!("{path}: {error}"))?;
    println!("{} kernels in {path}", cases.len());
    Ok(())
}

/// The texts of a kernel that browsers read.
fn texts(kernel: &'static Kernel) -> Result<Vec<Text>, Box<dyn Error>> {
    let read = kernel
        .variants
        .iter()
        .filter(|variant| variant.target == Target::Wgsl && variant.dialect != Some(Dialect::Naga))
        .map(|variant| match &variant.code {
            Code::Text(wgsl) => Ok(Text {
                profile: &variant.profile,
                features: variant
                    .features
                    .iter()
                    .map(|feature| feature.in_webgpu().ok_or("a browser has no such feature"))
                    .collect::<Result<_, _>>()?,
                entry: &variant.entry,
                wgsl,
            }),
            Code::Spirv(_) => Err("WGSL is a text".into()),
        });
    read.collect()
}

fn words<T: NoUninit>(values: &[T]) -> Vec<u32> {
    cast_slice(values).to_vec()
}

/// Numbers without a pattern.
fn noise(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|i| (i ^ i >> 7).wrapping_mul(0x9e37_79b9) >> 8)
}

fn histogram_case() -> Result<Case, Box<dyn Error>> {
    let values: Vec<u32> = noise(100_003).collect();
    let mut expected = vec![0; BINS];
    for value in &values {
        expected[*value as usize % BINS] += 1;
    }
    let count = values.len() as u32;
    let groups = count.div_ceil(histogram::KERNEL.workgroup_size[0]);
    let params = histogram::Params {
        values_len: count,
        bins_len: BINS as u32,
        group_count: groups,
        ..histogram::Params::default()
    };
    Ok(Case {
        name: "histogram",
        texts: texts(&histogram::KERNEL)?,
        buffers: vec![values, vec![0; BINS]],
        params: words(bytes_of(&params)),
        grid: [groups, 1, 1],
        output: 1,
        expected: Expected::Exactly(expected),
    })
}

fn product_case() -> Result<Case, Box<dyn Error>> {
    // No multiple of the tile.
    let n = 7 * TILE + 5;
    let matrix = |skip| noise((2 * n * n) as u32).skip(skip).take(n * n).map(|x| (x % 1000) as f32 / 500.0 - 1.0);
    let (a, b): (Vec<f32>, Vec<f32>) = (matrix(0).collect(), matrix(n * n).collect());
    let element = |row: usize, column: usize| -> f64 {
        (0..n).map(|k| f64::from(a[row * n + k]) * f64::from(b[k * n + column])).sum()
    };
    let expected = (0..n * n).map(|i| element(i / n, i % n) as f32).collect();
    let length = (n * n) as u32;
    let params = product::Params { a_len: length, b_len: length, c_len: length, n: n as u32, ..Default::default() };
    let groups = n.div_ceil(TILE) as u32;
    Ok(Case {
        name: "product",
        texts: texts(&product::KERNEL)?,
        buffers: vec![words(&a), words(&b), vec![0; n * n]],
        params: words(bytes_of(&params)),
        grid: [groups, groups, 1],
        output: 2,
        expected: Expected::Nearly(expected),
    })
}

fn sums_case() -> Result<Case, Box<dyn Error>> {
    let x: Vec<f32> = noise(10_007).map(|x| (x % 1000) as f32 / 8.0).collect();
    let width = sums::KERNEL.workgroup_size[0];
    let expected: Vec<f32> = x.chunks(width as usize).map(|block| block.iter().sum()).collect();
    let (count, groups) = (x.len() as u32, expected.len() as u32);
    let params = sums::Params { x_len: count, out_len: groups, group_count: groups, ..sums::Params::default() };
    Ok(Case {
        name: "sums",
        texts: texts(&sums::KERNEL)?,
        buffers: vec![words(&x), vec![0; expected.len()]],
        params: words(bytes_of(&params)),
        grid: [groups, 1, 1],
        output: 1,
        expected: Expected::Nearly(expected),
    })
}
