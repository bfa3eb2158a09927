//! Memory: ranges, and how long it lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::Vec4;
use trefoil_dsl::device::{Command, CopyCommand, MemoryRange, RunIo};
use trefoil_dsl::error::{Error, Result};

use super::{
    LARGE, Subject, beside, by_value, bytes, download, floats, kernel, load, numbers, open, part, upload, whole,
};

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

pub fn parts_of_words_may_be_written_at_once(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    // The last word is not whole, and what is behind it is nobody's.
    let memory = backend.allocate(7, "seven").unwrap();
    for round in 0..40u8 {
        std::thread::scope(|scope| {
            for at in 0..7 {
                let memory = &memory;
                scope.spawn(move || {
                    backend.write(&part(memory, at, 1), &[round.wrapping_mul(7).wrapping_add(at as u8)]).unwrap()
                });
            }
        });
        let mut back = [0; 7];
        backend.read(&whole(&memory), &mut back).unwrap();
        assert_eq!(back, [0, 1, 2, 3, 4, 5, 6].map(|at| round.wrapping_mul(7).wrapping_add(at)), "round {round}");
    }
}

pub fn parts_of_words_may_be_written_beside_lists(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rounds = 100u8;
    let sources: Vec<u8> = (0..rounds).flat_map(|round| [0, round, round, round]).collect();
    let (from, to) = (backend.allocate(sources.len() as u64, "from").unwrap(), backend.allocate(4, "to").unwrap());
    backend.write(&whole(&from), &sources).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It writes the first byte of the word, and no other.
        let writer = scope.spawn(|| {
            for byte in 0..4_000u32 {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                backend.write(&part(&to, 0, 1), &[byte as u8]).unwrap();
                std::thread::yield_now();
            }
        });
        let mut lost = None;
        for round in 0..rounds {
            let copy =
                CopyCommand { from: part(&from, 4 * usize::from(round), 4), to: whole(&to), label: Arc::from("copy") };
            backend.execute(&[Command::Copy(copy)]).unwrap();
            let mut back = [0; 4];
            backend.read(&whole(&to), &mut back).unwrap();
            if back[1..] != [round; 3] {
                lost = lost.or(Some((round, back)));
            }
        }
        is_done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        assert_eq!(lost, None, "what a list wrote is there");
    });
}

pub fn large_writes_are_whole(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let size = LARGE;
    let large = backend.allocate(size as u64, "large").unwrap();
    let ends = backend.allocate(32, "ends").unwrap();
    backend.write(&whole(&large), &vec![0; size]).unwrap();
    let end = |from: usize, to: usize| {
        Command::Copy(CopyCommand { from: part(&large, from, 16), to: part(&ends, to, 16), label: Arc::from("end") })
    };
    let list = [end(0, 0), end(size - 16, 16)];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..7u8 {
                backend.write(&whole(&large), &vec![round; size]).unwrap();
            }
        });
        while !writer.is_finished() {
            backend.execute(&list).unwrap();
            let mut found = [0; 32];
            backend.read(&whole(&ends), &mut found).unwrap();
            assert_eq!(found, [found[0]; 32], "a part of a write");
        }
    });
}

pub fn what_is_read_is_of_one_state(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    // What the host may reach by itself, and what goes in parts.
    for (size, rounds) in [(64usize, 200), (LARGE, 8)] {
        let memory = backend.allocate(size as u64, "read").unwrap();
        backend.write(&whole(&memory), &vec![0; size]).unwrap();
        // Each list changes both ends.
        let lists: Vec<[Command; 2]> = (1..9u8)
            .map(|state| {
                let from = backend.allocate(16, "state").unwrap();
                backend.write(&whole(&from), &[state; 16]).unwrap();
                [0, size - 16].map(|at| {
                    let to = part(&memory, at, 16);
                    Command::Copy(CopyCommand { from: whole(&from), to, label: Arc::from("end") })
                })
            })
            .collect();
        let again = || {
            lists.iter().for_each(|list| backend.execute(list).unwrap());
            // Not without end: the reads wait for all of it.
            backend.wait().unwrap();
        };
        beside(again, || {
            let mut found = vec![0; size];
            for round in 0..rounds {
                backend.read(&whole(&memory), &mut found).unwrap();
                assert_eq!(found[..16], found[size - 16..], "round {round} of {size} bytes");
                assert_eq!(found[..16], [found[0]; 16], "round {round} of {size} bytes");
            }
        });
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

pub fn pinned_memory_is_moved_both_ways(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    assert!(device.pinned::<f32>(0).unwrap().is_empty());
    assert!(matches!(device.pinned::<f32>(usize::MAX), Err(Error::OutOfMemory { .. })));
    // The elements that are aligned most. All are held, so that not each lies at the start of a block.
    let held = [0usize, 1, 10_000, 1, 3].map(|len| (len, device.pinned::<Vec4<f64>>(len).unwrap()));
    assert!(held.iter().all(|(len, pinned)| pinned.len() == *len && pinned.iter().all(|x| *x == Vec4::splat(0.0))));
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    // Below and above the sizes at which a device copies what is pinned, stages transfers, and lets them go by themselves.
    for len in [5usize, 1000, 40_000, 10_000_000] {
        let (x, y) = (upload(&device, &vec![0.0; len]), upload(&device, &vec![-1.0; len]));
        // The largest transfers are more than one grid of these kernels reaches.
        let used = len.min(4_000_000);
        let recording = backend.record(&[by_value(&rotate, &[&x, &y], used, 1.0)], 0).unwrap();
        let size = 4 * len;
        let mut host = device.pinned::<u8>(2 * size + 12).unwrap();
        assert!(host.iter().all(|byte| *byte == 0));
        for seed in 0..3 {
            // Neither side starts where the memory does, and there are bytes behind each.
            let (from, to) = host[4..].split_at_mut(size + 4);
            let start = numbers(len, seed);
            from[..size].copy_from_slice(&bytes(&start));
            to.fill(0xA5);
            backend.write(&whole(&x), &from[..size]).unwrap();
            // It is ours again: the device does not see this.
            from.fill(0x5A);
            backend.read(&whole(&x), &mut to[..size]).unwrap();
            assert!(floats(&to[..size]) == start, "{len} there and back");
            assert_eq!(to[size..], [0xA5; 4], "{len}: bytes behind");

            let start = numbers(len, seed + 3);
            from[..size].copy_from_slice(&bytes(&start));
            // A part of the transfers lies in other memory.
            let first = bytes(&start[..1]);
            let mut last = [0; 4];
            let uploads = [(part(&x, 4, size - 4), &from[4..size]), (part(&x, 0, 4), &first[..])];
            let mut downloads = [(part(&y, 0, size), &mut to[..size]), (part(&y, size - 4, 4), &mut last[..])];
            backend.run(&*recording, RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads }).unwrap();
            let result = floats(&to[..size]);
            for i in 0..used {
                assert_eq!(result[i], start[(i + 1) % used], "element {i} of {len}");
            }
            assert!(result[used..].iter().all(|rest| *rest == -1.0), "rest of {len}");
            assert_eq!((&last[..], &to[size..]), (&to[size - 4..size], &[0xA5; 4][..]), "{len}");
        }
    }
}
