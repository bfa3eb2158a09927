//! Names that authors may choose freely, whatever the printed code uses them for, on every device.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::prelude::*;
use trefoil::{Buffer, Launch, Result};

/// The CPU's code has such variables of its own for the counter `row`.
#[kernel(workgroup(64))]
fn beside_a_counter(x: &[f32], y: &mut [f32], offset: u32) {
    let first_row = offset as usize;
    let end_row = offset as usize + 1;
    let limit_row = offset as usize + 2;
    let lanes_row = local_index();
    for row in (local_index()..x.len()).step_by(64) {
        if row < y.len() {
            y[row] = x[row] + (first_row + end_row + limit_row + lanes_row) as f32;
        }
    }
}

/// Over a barrier, where a variable of each invocation is an array over all of them.
#[kernel(workgroup(64))]
fn over_a_barrier(x: &[f32], y: &mut [f32]) {
    let mut row = workgroup_array::<f32>(64);
    let memory_row = x[local_index()];
    let kept = [memory_row, 2.0];
    let lanes_kept = local_index() as f32;
    let k0 = [lanes_kept, 1.0];
    row[local_index()] = memory_row;
    barrier();
    y[global_index()] = row[63 - local_index()] + kept[local_index() % 2] + lanes_kept + memory_row + k0[0];
}

/// Kernels whose names have other meanings in WGSL, in CUDA C, or in both; in Rust they have none.
mod words {
    use trefoil::prelude::*;

    /// A word that WGSL keeps for later.
    #[kernel(workgroup(64))]
    pub fn filter(y: &mut [f32]) {
        y[global_index()] = 1.0;
    }

    /// A type of CUDA's.
    #[kernel(workgroup(64))]
    pub fn half(y: &mut [f32]) {
        y[global_index()] = 2.0;
    }

    /// What texts call their parameters.
    #[kernel(workgroup(64))]
    pub fn params(y: &mut [f32]) {
        y[global_index()] = 3.0;
    }

    /// How WGSL says what is done with a buffer.
    #[kernel(workgroup(64))]
    pub fn read_write(y: &mut [f32]) {
        y[global_index()] = 4.0;
    }

    /// C++ keeps what begins so for itself.
    #[kernel(workgroup(64))]
    pub fn _hidden(y: &mut [f32]) {
        y[global_index()] = 5.0;
    }

    #[kernel(workgroup(64))]
    pub fn main(y: &mut [f32]) {
        y[global_index()] = 6.0;
    }
}

#[test]
fn kernels_may_be_called_like_words_of_targets() {
    type Begin = fn(&mut Buffer<f32>) -> Result<Launch>;
    let launches: [Begin; 6] = [
        |y| words::filter(y),
        |y| words::half(y),
        |y| words::params(y),
        |y| words::read_write(y),
        |y| words::_hidden(y),
        |y| words::main(y),
    ];
    for subject in common::devices() {
        let device = &subject.device;
        let mut y = device.zeros::<f32>(64).unwrap();
        for (number, launch) in launches.iter().enumerate() {
            device.run(launch(&mut y).unwrap().over(64)).unwrap();
            assert_eq!(y.read().unwrap(), [number as f32 + 1.0; 64], "on {}", subject.name);
        }
    }
    assert_eq!(words::filter::KERNEL.name, "filter");
}

#[device]
fn body(x: f32) -> f32 {
    x * 2.0
}

#[device]
fn entry(x: f32) -> f32 {
    body(x) + 1.0
}

#[device]
fn baseline(x: i32) -> i32 {
    x + 1
}

#[device]
fn divide_i32(x: i32, by: i32) -> i32 {
    x / by + 100
}

#[device]
fn r#move(x: f32) -> f32 {
    x + 1.0
}

#[device]
#[derive(Clone, Copy)]
struct Named {
    r#type: f32,
    r#in: u32,
}

/// Functions have the names of what the CPU's module defines, and names that Rust keeps.
#[kernel(workgroup(64))]
fn functions(x: &[f32], y: &mut [f32], r#loop: f32, named: Named, by: i32) {
    let i = global_index();
    if i < x.len() {
        let r#move = r#move(x[i]);
        let entry = entry(r#move);
        let whole = divide_i32(baseline(entry as i32), by);
        y[i] = entry + r#loop + named.r#type + named.r#in as f32 + (whole / by) as f32;
    }
}

#[test]
fn variables_beside_those_of_the_printed_code() {
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let mut y = device.zeros::<f32>(150).unwrap();
        device.run(beside_a_counter(&there, &mut y, 5).unwrap().groups(1)).unwrap();
        let expected: Vec<f32> = (0..150).map(|i| (i + 18 + i % 64) as f32).collect();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);

        let mut y = device.zeros::<f32>(64).unwrap();
        device.run(over_a_barrier(&there, &mut y).unwrap().groups(1)).unwrap();
        let kept = |i: usize| if i.is_multiple_of(2) { i as f32 } else { 2.0 };
        let expected: Vec<f32> = (0..64).map(|i| (63 - i) as f32 + kept(i) + 3.0 * i as f32).collect();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}

#[test]
fn functions_with_names_of_the_printed_code_and_raw_ones() {
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let mut y = device.zeros::<f32>(x.len()).unwrap();
        let named = Named { r#type: 0.5, r#in: 3 };
        device.run(functions(&there, &mut y, 0.25, named, 7).unwrap().over(x.len())).unwrap();
        let expected: Vec<f32> = x
            .iter()
            .map(|x| {
                let entry = (x + 1.0) * 2.0 + 1.0;
                let whole = (entry as i32 + 1) / 7 + 100;
                entry + 0.25 + 0.5 + 3.0 + (whole / 7) as f32
            })
            .collect();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}

#[device]
#[derive(Clone, Copy)]
struct Counted {
    n: u32,
    _n: u32,
}

/// Parameters have the names that the block would give to what it holds beside them: lengths, offsets, parts of structs, and nothing at all.
#[kernel(workgroup(64))]
#[allow(clippy::too_many_arguments, reason = "one for each name")]
fn block(
    x: &[f32],
    y: &mut [f32],
    x_len: u32,
    y_offset: u32,
    group_count: u32,
    p: Counted,
    p_n: u32,
    _n: u32,
    n: u32,
    pad_0: u32,
    padding_40: u32,
    wide: Vec4<u32>,
) {
    let i = global_index();
    if i < x.len() {
        let counted = p.n + 2 * p._n + 4 * p_n + 8 * _n + 16 * n;
        let others = 32 * x_len + 64 * y_offset + 128 * group_count + 256 * pad_0 + 512 * padding_40 + 1024 * wide.w;
        y[i] = x[i] + (counted + others) as f32;
    }
}

#[test]
fn parameters_with_names_of_the_block_s_own() {
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let p = Counted { n: 1, _n: 2 };
    let sum: u32 = [1u32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].iter().enumerate().map(|(bit, value)| value << bit).sum();
    let expected: Vec<f32> = x.iter().map(|x| x + sum as f32).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let mut y = device.zeros::<f32>(x.len()).unwrap();
        let launch = block(&there, &mut y, 6, 7, 8, p, 3, 4, 5, 9, 10, Vec4::new(0, 0, 0, 11)).unwrap();
        device.run(launch.over(x.len())).unwrap();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}
