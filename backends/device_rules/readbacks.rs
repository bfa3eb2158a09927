//! Reads that are taken later.

use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Device, MemoryRange};
use trefoil_dsl::element::Element;
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
use trefoil_dsl::{Readback, Vec4, f16};

use super::{Subject, by_value, kernel, load, numbers, open, part, whole};

/// No read takes as long, so that one that does is never ready.
const LONGEST: Duration = Duration::from_secs(120);

/// Asks until a read is ready; nobody waits for it meanwhile.
fn becomes_ready<T: Element>(read: &Readback<T>) {
    let start = Instant::now();
    while !read.is_ready().unwrap() {
        assert!(start.elapsed() < LONGEST, "it is never ready");
        std::thread::yield_now();
    }
}

pub fn what_is_read_later_is_as_it_was(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    // Memory to which the host may have a way of its own, and memory to which it has none.
    for len in [16usize, 300_000] {
        let (a, b) = (numbers(len, 1), numbers(len, 2));
        let (x, y) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let z = device.zeros::<f32>(len).unwrap();
        let run = |scale: f32| {
            let list = [by_value(&add, &[x.memory(), y.memory(), z.memory()], len, scale)];
            device.backend().execute(&list).unwrap();
        };
        let sums = |scale: f32| a.iter().zip(&b).map(|(a, b)| (a + b) * scale).collect::<Vec<f32>>();
        let zeros = z.read_later().unwrap();
        run(2.0);
        let first = z.read_later().unwrap();
        run(4.0);
        let second = z.read_later().unwrap();
        z.write(&vec![-1.0; len]).unwrap();
        let written = z.read_later().unwrap();
        run(0.5);
        assert!(written.wait().unwrap() == vec![-1.0; len], "{len} that were written");
        assert!(second.wait().unwrap() == sums(4.0), "{len} of the second launch");
        assert!(first.wait().unwrap() == sums(2.0), "{len} of the first launch");
        assert!(zeros.wait().unwrap() == vec![0.0; len], "{len} zeros");
        assert!(z.read().unwrap() == sums(0.5), "{len} of the last launch");
    }
}

pub fn any_number_of_reads_may_be_under_way(subject: &Subject) {
    let device = open(subject);
    let x = device.uninit::<u32>(1000).unwrap();
    let begin = |round: u32| {
        x.write(&[round; 1000]).unwrap();
        (round, x.read_later().unwrap())
    };
    let mut reads: Vec<_> = (0..150).map(begin).collect();
    // The last first.
    while let Some((round, read)) = reads.pop() {
        assert_eq!(read.wait().unwrap(), [round; 1000]);
    }
}

/// Reads every part of some elements, which are overwritten before the first is taken.
fn parts<T: Element + PartialEq + Debug>(device: &Device, values: &[T]) {
    let len = values.len();
    let buffer = device.buffer(values).unwrap();
    let begin = |range: Range<usize>| {
        let read = buffer.slice(range.clone()).unwrap().read_later().unwrap();
        (range, read)
    };
    let reads: Vec<_> = (0..=len).flat_map(|first| (first..=len).map(move |end| first..end)).map(begin).collect();
    buffer.write(&vec![T::zeroed(); len]).unwrap();
    for (range, read) in reads.into_iter().rev() {
        assert_eq!((read.len(), read.is_empty()), (range.len(), range.is_empty()));
        assert_eq!(read.wait().unwrap(), &values[range]);
    }
}

pub fn parts_are_read_later(subject: &Subject) {
    let device = open(subject);
    parts(&device, &[1u8, 2, 3, 4, 5, 6, 7, 8, 9]);
    parts(&device, &[10u16, 20, 30, 40, 50, 60, 70]);
    parts(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0].map(f16::from_f32));
    parts(&device, &[1u32, 2, 3, 4, 5]);
    parts(&device, &[1.5f64, -2.5, 3.5].map(Vec4::splat));
    parts::<u32>(&device, &[]);
}

pub fn reads_and_buffers_outlive_each_other(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    let len = 100_000;
    let filled = |value: f32| device.buffer(&vec![value; len]).unwrap();
    let kept = {
        let buffer = filled(1.5);
        drop(buffer.read_later().unwrap());
        buffer.read_later().unwrap()
    };
    // Memory that is made may be what buffers and reads had that are gone.
    for round in 0..60 {
        let (x, y, z) = (filled(round as f32), filled(1.0), filled(0.0));
        let list = [by_value(&add, &[x.memory(), y.memory(), z.memory()], len, 2.0)];
        device.backend().execute(&list).unwrap();
        let dropped = z.read_later().unwrap();
        let taken = z.read_later().unwrap();
        drop((dropped, x, y, z));
        if round % 7 == 0 {
            assert!(taken.wait().unwrap() == vec![2.0 * (round as f32 + 1.0); len], "round {round}");
        }
    }
    assert!(kept.wait().unwrap() == vec![1.5; len]);
    device.wait().unwrap();
    assert_eq!(device.backend().counters().allocated_bytes, 0);
    // A read keeps the device, and one of the interface beneath outlives it.
    let buffer = device.buffer(&[7u32, 8, 9]).unwrap();
    let last = buffer.read_later().unwrap();
    let raw = device.backend().read_later(&part(buffer.memory(), 4, 8)).unwrap();
    let left = device.backend().read_later(&whole(buffer.memory())).unwrap();
    drop((buffer, add, device));
    assert_eq!(last.wait().unwrap(), [7, 8, 9]);
    let mut found = [0; 8];
    raw.finish(&mut found).unwrap();
    assert_eq!(found, [8, 0, 0, 0, 9, 0, 0, 0]);
    drop(left);
}

pub fn large_reads_are_whole(subject: &Subject) {
    let device = open(subject);
    // More than devices stage at a time for reads that are waited for, and no whole number of words.
    let size = (33 << 20) + 3;
    let data: Vec<u8> = (0..size).map(|i: usize| ((i * 31) >> 3) as u8).collect();
    let buffer = device.buffer(&data).unwrap();
    let all = buffer.read_later().unwrap();
    let inner = buffer.slice(5..size - 2).unwrap().read_later().unwrap();
    drop(buffer.read_later().unwrap());
    buffer.write(&vec![0; size]).unwrap();
    let mut found = vec![0xA5; size];
    all.wait_into(&mut found).unwrap();
    assert!(found == data, "all of it");
    assert!(inner.wait().unwrap() == data[5..size - 2], "a part of it");
}

pub fn a_read_is_ready_without_anybody_who_waits(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    for len in [1usize, 1000, 300_000] {
        let (x, y) = (device.buffer(&vec![1f32; len]).unwrap(), device.buffer(&vec![2f32; len]).unwrap());
        let z = device.zeros::<f32>(len).unwrap();
        let list = [by_value(&add, &[x.memory(), y.memory(), z.memory()], len, 2.0)];
        let before = z.read_later().unwrap();
        device.backend().execute(&list).unwrap();
        let after = z.read_later().unwrap();
        becomes_ready(&after);
        // It stays so, and what was submitted before is done before.
        assert!(after.is_ready().unwrap() && before.is_ready().unwrap());
        assert!(after.wait().unwrap() == vec![6.0; len] && before.wait().unwrap() == vec![0.0; len], "{len}");
    }
}

pub fn many_threads_may_read_later(subject: &Subject) {
    let device = open(subject);
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let device = &device;
            scope.spawn(move || {
                let x = device.uninit::<u32>(5000).unwrap();
                for round in 0..25 {
                    let first = 1000 * thread + round;
                    let begin = |value: u32| {
                        x.write(&[value; 5000]).unwrap();
                        x.read_later().unwrap()
                    };
                    let (one, other) = (begin(first), begin(!first));
                    // It asks while the others submit.
                    becomes_ready(&other);
                    assert_eq!(other.wait().unwrap(), [!first; 5000]);
                    assert_eq!(one.wait().unwrap(), [first; 5000]);
                }
            });
        }
    });
    let read = device.buffer(&[5u8; 7]).unwrap().read_later().unwrap();
    assert_eq!(std::thread::spawn(move || read.wait().unwrap()).join().unwrap(), [5; 7]);
}

pub fn wrong_reads_are_errors(subject: &Subject) {
    let (device, other) = (open(subject), open(subject));
    let backend = device.backend();
    let buffer = device.buffer(&[1u32, 2, 3, 4]).unwrap();
    let said = buffer.read_later().unwrap().wait_into(&mut [0; 3]).unwrap_err().to_string();
    assert_eq!(said, "buffer of 4 u32: 3 elements given, 4 expected");
    let said = buffer.slice(1..3).unwrap().read_later().unwrap().wait_into(&mut [0; 5]).unwrap_err().to_string();
    assert_eq!(said, "elements 1..3 of a buffer of 4 u32: 5 elements given, 2 expected");

    let begin = |offset, bytes| backend.read_later(&MemoryRange { memory: buffer.memory().clone(), offset, bytes });
    for (offset, bytes) in [(0, 17), (16, 1), (17, 0), (u64::MAX, 2), (2, u64::MAX)] {
        let refused: Result<Box<dyn PendingRead>> = begin(offset, bytes);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{offset} {bytes}");
    }
    let foreign = other.buffer(&[1u32]).unwrap();
    assert!(matches!(backend.read_later(&whole(foreign.memory())), Err(Error::OtherDevice { .. })));
    for given in [0, 7, 9] {
        let refused = begin(4, 8).unwrap().finish(&mut vec![0; given]);
        assert!(matches!(refused, Err(Error::WrongLength { .. })), "{given}");
    }
    for offset in [0, 5, 16] {
        let empty = begin(offset, 0).unwrap();
        let start = Instant::now();
        while !empty.is_ready().unwrap() {
            assert!(start.elapsed() < LONGEST, "it is never ready");
        }
        empty.finish(&mut []).unwrap();
    }
    // Nothing of that did any harm.
    assert_eq!(buffer.read_later().unwrap().wait().unwrap(), [1, 2, 3, 4]);
}

pub fn reads_may_fail_later(subject: &Subject) {
    let (faults, device) = Faults::over(&open(subject));
    let x = device.buffer(&[1u32, 2, 3]).unwrap();
    faults.plant(Fault { call: Call::Submission, after: 0, then: Then::GoesOn });
    assert!(matches!(x.read_later(), Err(Error::Driver { call: "submitting", .. })));
    faults.plant(Fault { call: Call::Readback, after: 1, then: Then::GoesOn });
    let (first, second) = (x.read_later().unwrap(), x.read_later().unwrap());
    assert_eq!(first.wait().unwrap(), [1, 2, 3]);
    becomes_ready(&second);
    assert!(matches!(second.wait(), Err(Error::Driver { call: "reading", .. })));
    assert_eq!((faults.calls(Call::Submission), faults.calls(Call::Readback)), (2, 2));
    faults.plant(Fault { call: Call::Readback, after: 0, then: Then::Lost });
    let (first, second) = (x.read_later().unwrap(), x.read_later().unwrap());
    assert!(first.wait().unwrap_err().is_lost());
    assert!(second.is_ready().unwrap_err().is_lost());
    assert!(second.wait().unwrap_err().is_lost());
    assert!(x.read_later().unwrap_err().is_lost());
}
