//! What kernels assert and print, on every device: who reports, from which line, with which values; and that nothing is left of it in the code that is not asked for reports.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use trefoil::artefact::{Feature, Kernel, Target};
use trefoil::check::{self, Finding, Options};
use trefoil::error::Error;
use trefoil::prelude::*;
use trefoil::report::Report;
use trefoil::{Device, Dispatch};

/// Devices are opened once for all tests of a program, and what a kernel reports comes to whoever waits next: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reports of a launch, in the order of their invocations.
fn reports(device: &Device, dispatch: Dispatch) -> Vec<Report> {
    device.run(dispatch).unwrap();
    let new = device.reports().unwrap();
    assert_eq!(new.lost, 0);
    let mut reports = new.reports;
    reports.sort_by_key(|report| (report.invocation.workgroup, report.invocation.local));
    reports
}

/// The line of this file on which a text stands, and its column.
fn place(text: &str) -> String {
    let file = include_str!("reports.rs");
    let (line, found) = file.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    format!("tests/reports.rs:{}:{}", line + 1, found.find(text).unwrap() + 1)
}

#[kernel(workgroup(64))]
fn picked(index: &[u32], x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        let from = index[i] as usize;
        assert!(from < x.len());
        y[i] = x[from];
    }
}

#[test]
fn an_assertion_that_does_not_hold_is_an_error_with_its_line_and_values() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1.0f32, 2.0, 3.0]).unwrap();
        let mut index = vec![2u32; 200];
        (index[70], index[130], index[131]) = (3, 9, u32::MAX);
        let index = device.buffer(&index).unwrap();
        let mut y = device.zeros::<f32>(200).unwrap();
        device.run(picked(&index, &x, &mut y).unwrap().over(200)).unwrap();
        let error = y.read().unwrap_err();
        let Error::Assertion { kernel, at, message, invocation, more } = &error else { panic!("{error}") };
        assert_eq!((kernel.as_str(), *more), ("picked", 2), "on {}", subject.name);
        assert_eq!(*at, place("assert!(from < x.len());"), "on {}", subject.name);
        // Which of them was first is the device's affair.
        let first = (invocation.workgroup[0] * 64 + invocation.local[0], message.as_str());
        let failed = [(70, 3), (130, 9), (131, u32::MAX)];
        let known = failed.iter().any(|(i, from)| {
            first == (*i, format!("assertion failed: from < x.len(): from is {from}, x.len() is 3").as_str())
        });
        assert!(known, "{error} on {}", subject.name);
        assert!(error.to_string().starts_with(&format!("{at}: assertion failed: from < x.len(): from is ")), "{error}");
        assert!(error.to_string().ends_with(" of kernel `picked`, and 2 more"), "{error}");

        // It is told once, and the device goes on: the kernel did, with zeros for what is not there.
        let y = y.read().unwrap();
        assert_eq!((y[69], y[70], y[130], y[199]), (3.0, 0.0, 0.0, 3.0), "on {}", subject.name);
        device.wait().unwrap();
    }
}

/// Who takes what was read hears of them, and not who begins to read.
#[test]
fn what_is_read_later_tells_of_assertions() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1.0f32]).unwrap();
        let index = device.buffer(&[5u32]).unwrap();
        let mut y = device.buffer(&[2.0f32]).unwrap();
        device.run(picked(&index, &x, &mut y).unwrap().over(1)).unwrap();
        let (read, again) = (y.read_later().unwrap(), y.read_later().unwrap());
        let mut taken = [9.0];
        let error = read.wait_into(&mut taken).unwrap_err();
        let named = matches!(&error, Error::Assertion { kernel, more: 0, .. } if kernel == "picked");
        assert!(named, "{error} on {}", subject.name);
        assert_eq!(taken, [0.0], "on {}", subject.name);
        // It is told once.
        assert_eq!(again.wait().unwrap(), [0.0], "on {}", subject.name);
    }
}

#[test]
fn what_holds_says_nothing() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1.0f32, 2.0]).unwrap();
        let index = device.buffer(&[1u32; 100]).unwrap();
        let mut y = device.zeros::<f32>(100).unwrap();
        assert_eq!(reports(device, picked(&index, &x, &mut y).unwrap().over(100)), []);
        assert_eq!(y.read().unwrap(), [2.0; 100], "on {}", subject.name);
    }
}

#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Off,
    Fast = 5,
}

#[device]
fn checked_half(x: u32, who: usize) -> u32 {
    assert_eq!(x % 2, 0, "{who} gave an odd {x:#06x}");
    x / 2
}

#[device]
fn positive<T: Number>(x: T) -> T {
    debug_assert!(x > T::lit(0.0), "{x} of a generic type");
    x
}

#[kernel(workgroup(8))]
fn every_value(x: &[u32], y: &mut [u32], mode: Mode, flag: bool, scale: f32) {
    let i = global_index();
    let half = checked_half(x[i], i);
    let _ = positive(half as i32 - 2);
    let pair = Vec2::new(scale, -scale);
    let narrow = x[i] as i8;
    println!("{i} {0} {0:?} {scale:.3} {flag} {mode:?} {pair:?} {narrow:4}|{{}}", half);
    y[i] = half;
}

#[test]
fn values_of_every_kind_are_shown_as_rust_shows_them() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[4u32, 7, 200]).unwrap();
        let mut y = device.zeros::<u32>(3).unwrap();
        let dispatch = every_value(&x, &mut y, Mode::Fast, true, 0.5).unwrap().over(3);
        let found = reports(device, dispatch);
        let texts: Vec<_> = found.iter().map(|report| (report.invocation.local[0], report.message.as_str())).collect();
        let mut texts: Vec<_> = texts.into_iter().filter(|(who, _)| *who < 3).collect();
        texts.sort_unstable();
        assert_eq!(
            texts,
            [
                (0, "0 2 2 0.500 true Fast Vec2(0.5, -0.5)    4|{}"),
                (0, "assertion failed: 0 of a generic type"),
                (1, "1 3 3 0.500 true Fast Vec2(0.5, -0.5)    7|{}"),
                (1, "assertion failed: 1 gave an odd 0x0007"),
                (2, "2 100 100 0.500 true Fast Vec2(0.5, -0.5)  -56|{}"),
            ],
            "on {}",
            subject.name
        );
        let odd = found.iter().find(|report| report.message.contains("odd")).unwrap();
        assert_eq!(odd.at, place("assert_eq!(x % 2"), "on {}", subject.name);
        assert!(odd.fails && found.iter().any(|report| !report.fails));
    }
}

#[kernel(workgroup(4), requires(Int64), targets(spirv, cuda, cpu))]
fn wide_values(x: &[i64], y: &mut [u64]) {
    let i = global_index();
    y[i] = x[i] as u64;
    println!("{} {:x}", x[i], y[i]);
}

#[test]
fn values_of_64_bits() {
    let _alone = alone();
    for subject in common::devices_with(&[Feature::Int64]) {
        if subject.device.kind().target() == Target::Wgsl {
            continue;
        }
        let device = &subject.device;
        let x = device.buffer(&[-1i64, i64::MIN, 1 << 40, 5]).unwrap();
        let mut y = device.zeros::<u64>(4).unwrap();
        let found = reports(device, wide_values(&x, &mut y).unwrap().over(4));
        let texts: Vec<_> = found.iter().map(|report| report.message.as_str()).collect();
        let expected =
            ["-1 ffffffffffffffff", "-9223372036854775808 8000000000000000", "1099511627776 10000000000", "5 5"];
        assert_eq!(texts, expected, "on {}", subject.name);
    }
}

/// Moves alone, which every device does, and so shows.
#[kernel(workgroup(4))]
fn moved_values(x: &[i64], d: &[f64], y: &mut [i64], z: &mut [f64]) {
    let i = global_index();
    y[i] = x[i];
    z[i] = d[i];
    println!("{} {:x} {:?}", x[i], x[i], d[i]);
}

#[test]
fn values_of_64_bits_where_they_are_only_moved() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let longs = [-1i64, i64::MIN, 0x0012_3456_89ab_cdef, 5];
        let doubles = [0.1f64, -0.0, 1e300, f64::NAN];
        let (x, d) = (device.buffer(&longs).unwrap(), device.buffer(&doubles).unwrap());
        let mut y = device.zeros::<i64>(4).unwrap();
        let mut z = device.zeros::<f64>(4).unwrap();
        let found = reports(device, moved_values(&x, &d, &mut y, &mut z).unwrap().over(4));
        let texts: Vec<_> = found.iter().map(|report| report.message.as_str()).collect();
        let expected: Vec<_> = longs.iter().zip(doubles).map(|(x, d)| format!("{x} {x:x} {d:?}")).collect();
        assert_eq!(texts, expected, "on {}", subject.name);
        assert_eq!(y.read().unwrap(), longs, "on {}", subject.name);
    }
}

/// Doubles are computed with, and longs are not.
#[kernel(workgroup(4), requires(Float64))]
fn halves(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    assert!(x[i] >= 0.0);
    y[i] = x[i] * 0.5;
}

#[test]
fn assertions_of_doubles() {
    let _alone = alone();
    for subject in common::devices_with(&[Feature::Float64, Feature::Int64]) {
        let device = &subject.device;
        let x = device.buffer(&[1.0f64, -0.1, 3.0, 4.0]).unwrap();
        let mut y = device.zeros::<f64>(4).unwrap();
        let found = reports(device, halves(&x, &mut y).unwrap().over(4));
        let [report] = found.as_slice() else { panic!("{found:?} on {}", subject.name) };
        assert_eq!(report.message, "assertion failed: x[i] >= 0.0: x[i] is -0.1", "on {}", subject.name);
        assert_eq!(y.read().unwrap(), [0.5, -0.05, 1.5, 2.0], "on {}", subject.name);
    }
}

#[kernel(workgroup(4), index = 64, targets(spirv, cuda, cpu))]
fn wide_indices(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        assert!(x[i] >= 0.0, "{i}");
        y[i] = x[i];
    }
}

#[test]
fn kernels_with_wide_indices() {
    let _alone = alone();
    for subject in common::devices_with(&[Feature::Int64]) {
        if subject.device.kind().target() == Target::Wgsl {
            continue;
        }
        let device = &subject.device;
        let x = device.buffer(&[1.0f32, 2.0, 3.0, 4.0, 5.0, -1.0]).unwrap();
        let mut y = device.zeros::<f32>(6).unwrap();
        let found = reports(device, wide_indices(&x, &mut y).unwrap().over(6));
        let [report] = found.as_slice() else { panic!("{found:?} on {}", subject.name) };
        assert_eq!((report.message.as_str(), report.invocation.workgroup[0]), ("assertion failed: 5", 1));
        assert_eq!(report.invocation.local, [1, 0, 0], "on {}", subject.name);
    }
}

#[kernel(workgroup(2, 3, 1))]
fn by_axis(y: &mut [u32], width: usize) {
    let at = global_id();
    let i = at.y * width + at.x;
    assert!(i != 17, "the seventeenth");
    y[i] = 1;
}

#[test]
fn positions_in_a_grid_of_axes() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let mut y = device.zeros::<u32>(36).unwrap();
        let found = reports(device, by_axis(&mut y, 6).unwrap().over_axes([6, 6, 1]));
        let [report] = found.as_slice() else { panic!("{found:?}") };
        // Row 2, column 5.
        assert_eq!(report.invocation.workgroup, [2, 0, 0], "on {}", subject.name);
        assert_eq!(report.invocation.local, [1, 2, 0], "on {}", subject.name);
        let expected = format!(
            "{}: assertion failed: the seventeenth, in invocation (1, 2, 0) of workgroup 2 of kernel `by_axis`",
            place("assert!(i != 17")
        );
        assert_eq!(report.to_string(), expected);
    }
}

/// Between barriers, in a loop, and of a specialisation constant.
#[kernel(workgroup(32), specialise(LIMIT: u32 = 10, in 1..=100))]
fn sums(x: &[u32], y: &mut [u32]) {
    let mut part = workgroup_array::<u32>(32);
    let l = local_index();
    part[l] = x[global_index()];
    barrier();
    let mut sum = 0;
    for i in 0..32usize {
        sum += part[i];
        assert!(sum <= LIMIT || l != 3, "{sum} at {i}");
    }
    barrier();
    y[global_index()] = sum;
}

#[test]
fn assertions_in_loops_and_between_barriers() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1u32; 32]).unwrap();
        let mut y = device.zeros::<u32>(32).unwrap();
        let found = reports(device, sums(&x, &mut y).unwrap().groups(1));
        assert_eq!(found.len(), 22, "on {}", subject.name);
        assert_eq!(found[0].message, "assertion failed: 11 at 10", "on {}", subject.name);
        let specialised = sums(&x, &mut y).unwrap().specialise(self::sums::Constants { limit: 30 }).unwrap();
        let found = reports(device, specialised.groups(1));
        assert_eq!(
            found.iter().map(|report| &*report.message).collect::<Vec<_>>(),
            ["assertion failed: 31 at 30", "assertion failed: 32 at 31"]
        );
        assert_eq!(y.read().unwrap(), [32; 32], "on {}", subject.name);
    }
}

#[test]
fn recordings_and_lists_report_too() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1.0f32]).unwrap();
        let index = device.buffer(&[4u32, 0]).unwrap();
        let mut y = device.zeros::<f32>(2).unwrap();
        let step = device.record([picked(&index, &x, &mut y).unwrap().over(2)]).unwrap();
        for _ in 0..3 {
            let error = step.run().unwrap_err().to_string();
            assert!(error.contains("from is 4") && error.contains("invocation 0 of workgroup 0"), "{error}");
        }
        // Who does not wait hears of it later.
        step.submit().unwrap();
        let error = device.wait().unwrap_err().to_string();
        assert!(error.contains("from is 4") && error.contains("invocation 0 of workgroup 0"), "{error}");
        index.write(&[0, 0]).unwrap();
        step.submit().unwrap();
        step.run().unwrap();
    }
}

#[kernel(workgroup(64))]
fn chatty(y: &mut [u32]) {
    let i = global_index();
    y[i] = 1;
    println!("{i}");
}

#[test]
fn what_finds_no_room_is_counted() {
    let _alone = alone();
    const COUNT: usize = 1 << 15;
    for subject in common::devices() {
        let device = &subject.device;
        let mut y = device.zeros::<u32>(COUNT).unwrap();
        for _ in 0..2 {
            device.run(chatty(&mut y).unwrap().over(COUNT)).unwrap();
            let new = device.reports().unwrap();
            assert!(new.reports.len() > 1000 && new.lost > 0, "on {}", subject.name);
            assert_eq!(new.reports.len() as u64 + new.lost, COUNT as u64, "on {}", subject.name);
            let mut seen: Vec<u32> = new.reports.iter().map(|report| report.message.parse().unwrap()).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), new.reports.len(), "on {}", subject.name);
        }
        assert_eq!(y.read().unwrap(), vec![1; COUNT], "on {}", subject.name);
    }
}

/// A buffer that fills up is emptied while another thread launches more.
#[test]
fn nothing_is_lost_between_reading_and_emptying() {
    let _alone = alone();
    // A launch reports 384 words, and the buffer is emptied from 32,768 on.
    const COUNT: usize = 64;
    const LAUNCHES: usize = 1000;
    for subject in common::devices() {
        let device = &subject.device;
        let mut y = device.zeros::<u32>(COUNT).unwrap();
        let launch = chatty(&mut y).unwrap();
        let (mut told, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            let launching = scope.spawn(|| {
                for _ in 0..LAUNCHES {
                    device.run(launch.clone().over(COUNT)).unwrap();
                }
            });
            loop {
                let is_last = launching.is_finished();
                let new = device.reports().unwrap();
                told += new.reports.len();
                lost += new.lost;
                if is_last {
                    break;
                }
            }
        });
        assert_eq!(told as u64 + lost, (COUNT * LAUNCHES) as u64, "on {}", subject.name);
    }
}

/// Eight buffers are all that WebGPU has for sure.
#[kernel(workgroup(4))]
#[allow(clippy::too_many_arguments, reason = "as many as there can be")]
fn eight(a: &[u32], b: &[u32], c: &[u32], d: &[u32], e: &[u32], f: &[u32], g: &[u32], y: &mut [u32]) {
    let i = global_index();
    let sum = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i];
    assert!(sum == 8);
    y[i] = sum;
}

#[test]
fn a_device_without_a_buffer_for_reports_runs_the_kernel_all_the_same() {
    let _alone = alone();
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&[1u32; 4]).unwrap();
        let mut y = device.zeros::<u32>(4).unwrap();
        let found = reports(device, eight(&x, &x, &x, &x, &x, &x, &x, &mut y).unwrap().over(4));
        assert!(found.is_empty() || found.len() == 4, "on {}", subject.name);
        assert!(device.limits().max_storage_buffers > 8 || found.is_empty(), "on {}", subject.name);
        assert_eq!(y.read().unwrap(), [7; 4], "on {}", subject.name);
    }
}

mod plain {
    use super::*;

    #[kernel(workgroup(64))]
    pub fn picked(index: &[u32], x: &[f32], y: &mut [f32]) {
        let i = global_index();
        if i < y.len() {
            let from = index[i] as usize;
            y[i] = x[from];
        }
    }
}

#[test]
fn nothing_is_left_of_an_assertion_in_the_code_that_does_not_report() {
    for target in [Target::Wgsl, Target::Spirv, Target::Cuda] {
        assert_eq!(picked::KERNEL.text(target), plain::picked::KERNEL.text(target), "{target:?}");
    }
    assert_eq!(picked::KERNEL.bindings, plain::picked::KERNEL.bindings);
    assert_eq!(picked::KERNEL.params, plain::picked::KERNEL.params);
    let reporting: Option<&Kernel> = picked::KERNEL.reporting;
    assert_eq!(reporting.is_some(), cfg!(debug_assertions));
    assert!(plain::picked::KERNEL.reporting.is_none());
}

#[test]
fn the_checker_reports_what_is_asserted_and_printed() {
    let (device, found) = check::device(&Options::default()).unwrap();
    let x = device.buffer(&[1.0f32, 2.0]).unwrap();
    let index = device.buffer(&[0u32, 2, 1, 5]).unwrap();
    let mut y = device.zeros::<f32>(4).unwrap();
    device.run(picked(&index, &x, &mut y).unwrap().over(4)).unwrap();
    device.wait().unwrap();
    let reports = found.take();
    let asserted: Vec<_> = reports[0]
        .findings
        .iter()
        .filter_map(|found| match &found.finding {
            Finding::Assertion { message, invocation, at } => {
                Some((message.as_str(), invocation.local[0], at, found.times))
            }
            _ => None,
        })
        .collect();
    let at = place("assert!(from < x.len());");
    assert_eq!(asserted, [("assertion failed: from < x.len(): from is 2, x.len() is 2", 1, &at, 2)]);

    let mut y = device.zeros::<u32>(8).unwrap();
    let x = device.buffer(&[2u32; 8]).unwrap();
    device.run(every_value(&x, &mut y, Mode::Off, false, 2.0).unwrap().over(8)).unwrap();
    device.wait().unwrap();
    let reports = found.take();
    let printed: Vec<_> = reports[0].printed.iter().map(|printed| printed.line.as_str()).collect();
    assert_eq!(printed[3], "3 1 1 2.000 false Off Vec2(2.0, -2.0)    2|{}");
    assert_eq!(printed.len(), 8);
    assert!(reports[0].to_string().contains("prints: 3 1 1 2.000 false Off"));
}
