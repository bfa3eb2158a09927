//! Asynchronous copies of every size of element and piece, from any element on and past the end, on every device: compiled, and on the CPU in the
//! evaluator too.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::Arc;

use trefoil::artefact::Kernel;
use trefoil::prelude::*;
use trefoil::{DeviceKind, Launch};

macro_rules! copies {
    ($($name:ident: $ty:ty, $count:literal, $number:expr;)*) => {
        $(
            /// 16 invocations copy a piece each, and write out what is there.
            #[kernel(workgroup(16))]
            fn $name(x: &[$ty], y: &mut [$ty], at: usize, first: usize) {
                let mut tile = workgroup_array::<$ty>(20 * $count);
                let i = local_index();
                copy_async(&mut tile, at + i * $count, x, first + i * $count, $count);
                async_commit();
                async_wait(0);
                barrier();
                for k in 0..$count {
                    y[i * $count + k] = tile[at + i * $count + k];
                }
            }
        )*

        #[test]
        fn pieces_come_whole() {
            for subject in common::devices() {
                let device = &subject.device;
                $({
                    // The number 0 is zero; there are fewer than the last pieces want.
                    let number: fn(u32) -> $ty = $number;
                    let numbers: Vec<$ty> = (1..15 * $count + 2).map(number).collect();
                    let x = device.buffer(&numbers).unwrap();
                    let mut kernels = vec![Arc::new($name::KERNEL.clone())];
                    if device.kind() == DeviceKind::Cpu {
                        kernels.push(Arc::new(Kernel { cpu: None, ..$name::KERNEL.clone() }));
                    }
                    for kernel in kernels {
                        for (at, first) in [(0usize, 0usize), (0, 1), (1, 0), ($count, $count), (3, 2), (2 * $count, 3 * $count), (0, 40 * $count)] {
                            let mut y = device.zeros::<$ty>(16 * $count).unwrap();
                            let launch = Launch::of(kernel.clone()).read(&x).unwrap().write(&mut y).unwrap();
                            let launch = launch.value(at).unwrap().value(first).unwrap();
                            device.run(launch.groups(1)).unwrap();
                            let there = |k: usize| numbers.get(first + k).copied().unwrap_or_else(|| number(0));
                            let expected: Vec<$ty> = (0..16 * $count).map(there).collect();
                            let given = y.read().unwrap();
                            assert_eq!(given, expected, "{} at {at} from {first} on {}", stringify!($name), subject.name);
                        }
                    }
                })*
            }
        }
    };
}

copies! {
    words_4: f32, 1, |i| i as f32;
    words_8: u32, 2, |i| i;
    words_16: f32, 4, |i| i as f32;
    halves_8: f16, 4, |i| f16::from_f32(i as f32);
    halves_16: f16, 8, |i| f16::from_f32(i as f32);
    brains_16: bf16, 8, |i| bf16::from_f32(i as f32);
    bytes_4: u8, 4, |i| i as u8;
    bytes_16: i8, 16, |i| i as i8;
    longs_8: u64, 1, |i| u64::from(i) << 20;
    longs_16: i64, 2, |i| -i64::from(i);
    vectors_8: Vec2<f32>, 1, |i| Vec2::splat(i as f32);
    vectors_16: Vec2<u32>, 2, Vec2::splat;
    vectors_of_four: Vec4<f32>, 1, |i| Vec4::splat(i as f32);
}

#[test]
fn slices_start_at_a_piece() {
    let subject = common::devices().remove(0);
    let x = subject.device.buffer(&vec![0.0f32; 64]).unwrap();
    let mut y = subject.device.zeros::<f32>(64).unwrap();
    let launch = words_16(x.slice(2..64).unwrap(), &mut y, 0, 0).unwrap();
    let error = subject.device.run(launch.groups(1)).unwrap_err().to_string();
    assert!(error.contains("multiple of 4"), "{error}");
}
