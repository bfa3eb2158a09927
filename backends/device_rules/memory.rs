//! Memory: ranges, and how long it lives.

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::{Error, Result};

use super::{Subject, by_value, download, kernel, load, open, upload, whole};

pub fn memory_of_any_size_keeps_what_is_written(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let mut alive = 0;
    let mut held = Vec::new();
    for size in [0usize, 1, 3, 16, 17, 1000, 262_144, 262_145, 300_001, 40 * 1024 * 1024 + 3] {
        let memory = backend.allocate(size as u64, "sized").unwrap();
        assert_eq!(memory.bytes(), size as u64);
        let data: Vec<u8> = (0..size).map(|i| (i * 31 + size) as u8).collect();
        backend.write(&whole(&memory), &data).unwrap();
        let mut back = vec![0xAA; size];
        backend.read(&whole(&memory), &mut back).unwrap();
        assert!(back == data, "{size} bytes");
        if size > 16 {
            let range = MemoryRange { memory: memory.clone(), offset: 5, bytes: 7 };
            backend.write(&range, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
            let mut around = [0; 9];
            backend.read(&MemoryRange { memory: memory.clone(), offset: 4, bytes: 9 }, &mut around).unwrap();
            assert_eq!(around, [data[4], 1, 2, 3, 4, 5, 6, 7, data[12]], "{size} bytes");
        }
        alive += size as u64;
        held.push(memory);
        assert_eq!(backend.counters().allocated_bytes, alive);
    }
    drop(held);
    assert_eq!(backend.counters().allocated_bytes, 0);
}

pub fn wrong_ranges_are_errors(subject: &Subject) {
    let (device, other) = (open(subject), open(subject));
    let backend = device.backend();
    let memory = backend.allocate(10, "ten").unwrap();
    let range = |offset, bytes| MemoryRange { memory: memory.clone(), offset, bytes };
    for (offset, count) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 2)] {
        let mut data = vec![0; count as usize];
        let wrong = |result: Result<()>| assert!(matches!(result, Err(Error::OutOfRange { .. })), "{offset} {count}");
        wrong(backend.write(&range(offset, count), &data));
        wrong(backend.read(&range(offset, count), &mut data));
    }
    assert!(matches!(backend.write(&range(0, 10), &[0; 9]), Err(Error::WrongLength { .. })));
    assert!(matches!(backend.read(&range(0, 9), &mut [0; 10]), Err(Error::WrongLength { .. })));
    let foreign = other.backend().allocate(10, "foreign").unwrap();
    assert!(matches!(backend.write(&whole(&foreign), &[0; 10]), Err(Error::OtherDevice { .. })));
    assert!(matches!(backend.read(&whole(&foreign), &mut [0; 10]), Err(Error::OtherDevice { .. })));
    let largest = device.limits().max_allocation_bytes;
    for size in [largest.saturating_add(1), u64::MAX] {
        assert!(matches!(backend.allocate(size, "huge"), Err(Error::TooLarge { .. })), "{size}");
    }
}

pub fn memory_may_go_while_it_is_used(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    let len = 100_000;
    let z = upload(&device, &vec![0.0; len]);
    for round in 0..150 {
        let (x, y) = (upload(&device, &vec![round as f32; len]), upload(&device, &vec![1.0; len]));
        device.backend().execute(&[by_value(&add, &[&x, &y, &z], len, 1.0)]).unwrap();
    }
    assert_eq!(download(&device, &z), vec![150.0; len]);
    device.backend().wait().unwrap();
    assert_eq!(device.backend().counters().allocated_bytes, z.bytes());
    let pipeline = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let y = upload(&device, &vec![0.0; len]);
    device.backend().execute(&[by_value(&pipeline, &[&z, &y], len, 1.0)]).unwrap();
    // The device goes first; what it made goes after it.
    drop(device);
    drop((y, z, pipeline, add));
}
