//! Lists of commands that are executed at once.

use std::sync::Arc;

use trefoil_codegen::artefact::ParamTransport;
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::{
    Call, CallCommand, Command, CopyCommand, DeviceKind, DispatchCommand, GroupSource, Memory, MemoryRange,
    ParamSource, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::product::{LibraryProduct, MatrixLayout};

use super::{Subject, bound, by_value, bytes, dispatch, download, kernel, load, numbers, open, params, upload, whole};

pub fn lists_run_at_once(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    for len in [1usize, 63, 64, 65, 1000, 100_003] {
        let (a, b) = (numbers(len, 1), numbers(len, 2));
        let (x, y) = (upload(&device, &a), upload(&device, &b));
        let z = upload(&device, &vec![-7.0; len + 9]);
        device.backend().execute(&[by_value(&add, &[&x, &y, &z], len, 0.5)]).unwrap();
        let result = download(&device, &z);
        for (i, value) in result[..len].iter().enumerate() {
            assert_eq!(*value, (a[i] + b[i]) * 0.5, "element {i} of {len}");
        }
        assert!(result[len..].iter().all(|guard| *guard == -7.0), "guards after {len}");
    }
    device.backend().execute(&[]).unwrap();
    let memory = upload(&device, &[3.0]);
    let nothing =
        dispatch(&add, &[&memory, &memory, &memory], ParamSource::Value(params(0, 1.0)), GroupSource::Value([0, 1, 1]));
    // Kernels on the CPU have slices, also where they do nothing.
    if device.limits().shares_memory_within_dispatch && device.kind() != DeviceKind::Cpu {
        device.backend().execute(&[Command::Dispatch(nothing)]).unwrap();
    } else {
        assert!(matches!(device.backend().execute(&[Command::Dispatch(nothing)]), Err(Error::Command { .. })));
    }
    assert_eq!(download(&device, &memory), [3.0]);
}

pub fn dependent_commands_see_each_other(subject: &Subject) {
    let device = open(subject);
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let len = 70_001;
    let start = numbers(len, 5);
    let (x, y) = (upload(&device, &start), upload(&device, &vec![0.0; len]));
    let mut list = Vec::new();
    for _ in 0..10 {
        list.extend([by_value(&rotate, &[&x, &y], len, 2.0), Command::Barrier]);
        list.extend([by_value(&rotate, &[&y, &x], len, 0.5), Command::Barrier]);
    }
    // Lists follow each other without a barrier of ours.
    for _ in 0..3 {
        device.backend().execute(&list).unwrap();
    }
    let result = download(&device, &x);
    for i in 0..len {
        assert_eq!(result[i], start[(i + 60) % len], "element {i}");
    }
}

/// Lists of many lengths whose kernels change from place to place, and go when their list is done.
pub fn kernels_take_turns(subject: &Subject) {
    let device = open(subject);
    let len = 1_000;
    let mut expected = [numbers(len, 7), numbers(len, 8)];
    let memory = [0, 1].map(|side: usize| upload(&device, &expected[side]));
    for (turn, launches) in [1, 7, 8, 9, 40, 3, 16].into_iter().enumerate() {
        let [add, rotate] = ["add", "rotate"].map(|name| load(&device, &kernel(subject, name), ParamTransport::Value));
        let mut list = Vec::new();
        for launch in 0..launches {
            let (from, to) = (launch % 2, (launch + 1) % 2);
            // Fewer workgroups each time.
            let count = len - 70 * (launch % 11);
            if (turn + launch) % 3 == 0 {
                list.push(by_value(&rotate, &[&memory[from], &memory[to]], count, 0.5));
                let turned = (0..count).map(|i| expected[from][(i + 1) % count] * 0.5).collect::<Vec<_>>();
                expected[to][..count].copy_from_slice(&turned);
            } else {
                list.push(by_value(&add, &[&memory[from], &memory[from], &memory[to]], count, 0.75));
                let sums = expected[from][..count].iter().map(|value| (value + value) * 0.75).collect::<Vec<_>>();
                expected[to][..count].copy_from_slice(&sums);
            }
            list.push(Command::Barrier);
            if launch % 13 == 12 {
                list.push(Command::Copy(CopyCommand {
                    from: whole(&memory[to]),
                    to: whole(&memory[from]),
                    label: Arc::from("copy"),
                }));
                list.push(Command::Barrier);
                expected[from] = expected[to].clone();
            }
        }
        device.backend().execute(&list).unwrap();
    }
    for side in 0..2 {
        assert_eq!(download(&device, &memory[side])[..len], expected[side], "side {side}");
    }
}

pub fn wrong_commands_are_errors(subject: &Subject) {
    let (device, other) = (open(subject), open(subject));
    let backend = device.backend();
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    let late = load(&device, &kernel(subject, "add"), ParamTransport::Buffer);
    let memory: Vec<_> = (0..3).map(|_| upload(&device, &[1.0; 64])).collect();
    let memory: Vec<&Arc<dyn Memory>> = memory.iter().collect();
    let value = || ParamSource::Value(params(64, 1.0));
    let one = GroupSource::Value([1, 1, 1]);
    let good = || dispatch(&add, &memory, value(), one.clone());
    let run = |change: &dyn Fn(&mut DispatchCommand)| {
        let mut command = good();
        change(&mut command);
        backend.execute(&[Command::Dispatch(command)])
    };
    run(&|_| {}).unwrap();
    let broken =
        |result: Result<()>, what: &str| assert!(matches!(result, Err(Error::Command { .. })), "{what}: {result:?}");
    broken(run(&|c| c.bindings.truncate(2)), "a binding is missing");
    broken(run(&|c| c.params = ParamSource::Value(vec![0; 12])), "the block is too short");
    broken(run(&|c| c.params = ParamSource::RunWords(0)), "run words outside of a recording");
    broken(run(&|c| c.groups = GroupSource::RunWords { offset: 0, bound: [1; 3] }), "groups outside of a recording");
    let counts = MemoryRange { memory: memory[0].clone(), offset: 0, bytes: 12 };
    broken(run(&|c| c.groups = GroupSource::Memory(counts.clone())), "a kernel whose workgroups the host counts");
    if device.kind().has_pointers() {
        broken(run(&|c| c.bindings[0].offset = 2), "misaligned");
    } else {
        broken(run(&|c| c.bindings[0].offset = 4), "misaligned");
        broken(run(&|c| c.bindings[0].bytes = 250), "length not padded");
        broken(run(&|c| c.bindings[0].bytes = 0), "nothing bound");
    }
    broken(run(&|c| c.bindings[1].bytes = 272), "past the end");
    broken(run(&|c| c.pipeline = late.clone()), "other transport");
    let mut limit = device.limits().max_groups;
    if limit[0] < u32::MAX {
        limit[0] += 1;
        let result = run(&|c| c.groups = GroupSource::Value([limit[0], 1, 1]));
        assert!(matches!(result, Err(Error::Grid { .. })), "{result:?}");
    }
    if device.kind() != DeviceKind::Cpu {
        let host = CallCommand {
            call: Call::Host(Arc::new(|_, _, _| Ok(()))),
            reads: Vec::new(),
            writes: Vec::new(),
            run_words: 0..0,
            label: Arc::from("host"),
        };
        broken(backend.execute(&[Command::Call(host.clone())]), "a function of the host");
        broken(backend.time(&[Command::Call(host.clone())]).map(drop), "a function of the host");
        broken(backend.record(&[Command::Call(host)], 0).map(drop), "a function of the host");
    }
    // A product by a library: refused where there is none, and where its matrices do not fit.
    let in_rows = |line| MatrixLayout { in_rows: true, line, batch: 0 };
    let product = LibraryProduct {
        operands: Scalar::F32,
        result: Scalar::F32,
        batch: 1,
        rows: 8,
        columns: 8,
        depth: 8,
        a: in_rows(8),
        b: in_rows(8),
        bias: false,
    };
    let of = |product: LibraryProduct, reads: usize| {
        let ranges: Vec<MemoryRange> = memory.iter().map(|memory| bound(memory)).collect();
        let [a, b, c] = ranges.as_slice() else { panic!("three pieces of memory are wanted") };
        Command::Call(CallCommand {
            call: Call::Product(product),
            reads: [a, b].into_iter().take(reads).cloned().collect(),
            writes: vec![c.clone()],
            run_words: 0..0,
            label: Arc::from("product"),
        })
    };
    if device.properties().matrix_library.is_none() {
        broken(backend.execute(&[of(product, 2)]), "a product without a library");
    } else {
        backend.execute(&[of(product, 2)]).unwrap();
        broken(backend.execute(&[of(product, 1)]), "a product of one matrix");
        broken(backend.execute(&[of(LibraryProduct { rows: 9, ..product }, 2)]), "a matrix that does not fit");
        broken(backend.execute(&[of(LibraryProduct { depth: 0, ..product }, 2)]), "a product of nothing");
        let words = LibraryProduct { operands: Scalar::I32, result: Scalar::I32, ..product };
        broken(backend.execute(&[of(words, 2)]), "a product of integers");
    }
    let foreign = upload(&other, &[1.0; 64]);
    assert!(matches!(run(&|c| c.bindings[0] = bound(&foreign)), Err(Error::OtherDevice { .. })));
    let pipeline = load(&other, &kernel(subject, "add"), ParamTransport::Value);
    assert!(matches!(run(&|c| c.pipeline = pipeline.clone()), Err(Error::OtherDevice { .. })));
    let record =
        |params, groups| backend.record(&[Command::Dispatch(dispatch(&late, &memory, params, groups))], 524).map(drop);
    record(ParamSource::RunWords(256), GroupSource::RunWords { offset: 512, bound: [1; 3] }).unwrap();
    broken(record(ParamSource::RunWords(512), one.clone()), "parameters past the run words");
    broken(record(ParamSource::RunWords(128), one.clone()), "parameters misaligned");
    broken(
        record(ParamSource::RunWords(0), GroupSource::RunWords { offset: 516, bound: [1; 3] }),
        "groups past the end",
    );
    broken(record(ParamSource::RunWords(0), GroupSource::RunWords { offset: 2, bound: [1; 3] }), "groups misaligned");
    // The device still works.
    run(&|_| {}).unwrap();
    backend.wait().unwrap();
    assert_eq!(download(&device, memory[2])[0], 2.0);
}

fn copy(from: (&Arc<dyn Memory>, u64), to: (&Arc<dyn Memory>, u64), bytes: u64) -> Command {
    let range = |(memory, offset): (&Arc<dyn Memory>, u64)| MemoryRange { memory: memory.clone(), offset, bytes };
    Command::Copy(CopyCommand { from: range(from), to: range(to), label: Arc::from("copy") })
}

pub fn copies_move_bytes_within_the_device(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let len = 10_001;
    let start = numbers(len, 3);
    let x = upload(&device, &start);
    let fresh = || upload(&device, &vec![-1.0; len]);
    let (y, z) = (fresh(), fresh());
    // Between kernels: rotated by one, moved by three elements, rotated once more.
    let moved = |z: &Arc<dyn Memory>| {
        vec![
            by_value(&rotate, &[&x, &y], len, 1.0),
            Command::Barrier,
            copy((&y, 12), (z, 0), (len as u64 - 3) * 4),
            copy((&y, 8), (z, 16), 0),
            Command::Barrier,
            by_value(&rotate, &[z, &y], len - 3, 1.0),
        ]
    };
    let check = |what: &str| {
        let result = download(&device, &y);
        for (i, value) in result.iter().enumerate().take(len - 3) {
            let before = (i + 1) % (len - 3) + 3;
            assert_eq!(*value, start[(before + 1) % len], "{what}, element {i}");
        }
        backend.write(&whole(&y), &bytes(&vec![-1.0; len])).unwrap();
        backend.write(&whole(&z), &bytes(&vec![-1.0; len])).unwrap();
    };
    backend.execute(&moved(&z)).unwrap();
    assert_eq!(download(&device, &z)[len - 3..], [-1.0; 3], "what a copy does not reach");
    check("executed");
    let recording = backend.record(&moved(&z), 0).unwrap();
    for _ in 0..2 {
        backend.run(&*recording, RunIo::default()).unwrap();
        check("recorded");
    }
    let times = backend.time(&moved(&z)).unwrap();
    assert!(times[0] > 0 && times[2] > 0 && times[5] > 0 && times[2] < 10_000_000_000, "{times:?}");
    check("timed");
    // The padding after the last byte may be copied too.
    let (odd, other_odd) = (backend.allocate(5, "odd").unwrap(), backend.allocate(5, "odd").unwrap());
    backend.write(&whole(&odd), &[1, 2, 3, 4, 5]).unwrap();
    backend.execute(&[copy((&odd, 0), (&other_odd, 0), 8)]).unwrap();
    let mut back = [0; 5];
    backend.read(&whole(&other_odd), &mut back).unwrap();
    assert_eq!(back, [1, 2, 3, 4, 5]);

    let broken = |command: Command, what: &str| {
        let list = [command];
        for result in [backend.execute(&list), backend.time(&list).map(drop), backend.record(&list, 0).map(drop)] {
            assert!(matches!(result, Err(Error::Command { .. })), "{what}: {result:?}");
        }
    };
    broken(copy((&x, 2), (&y, 0), 8), "the source is at half a word");
    broken(copy((&x, 0), (&y, 2), 8), "the destination is at half a word");
    broken(copy((&x, 0), (&y, 0), 6), "half a word is copied");
    broken(copy((&x, 0), (&y, 0), len as u64 * 4 + 16), "past the end");
    broken(copy((&x, u64::MAX - 3), (&y, 0), 8), "far past the end");
    broken(copy((&x, 0), (&x, 4), 8), "overlap");
    let mut lengths = copy((&x, 0), (&y, 0), 8);
    if let Command::Copy(lengths) = &mut lengths {
        lengths.to.bytes = 12;
    }
    broken(lengths, "two lengths");
    let within = backend.execute(&[copy((&x, 0), (&x, 16), 16)]);
    if device.limits().shares_memory_within_dispatch {
        within.unwrap();
        assert_eq!(download(&device, &x)[4..8], start[..4]);
    } else {
        assert!(matches!(within, Err(Error::Command { .. })), "{within:?}");
    }
    let other = open(subject);
    let foreign = upload(&other, &[1.0; 64]);
    for command in [copy((&foreign, 0), (&x, 0), 16), copy((&x, 0), (&foreign, 0), 16)] {
        assert!(matches!(backend.execute(&[command]), Err(Error::OtherDevice { .. })));
    }
}

pub fn device_times_are_told(subject: &Subject) {
    let device = open(subject);
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let len = 1_000_000;
    let (x, y) = (upload(&device, &numbers(len, 1)), upload(&device, &vec![0.0; len]));
    let list = [by_value(&rotate, &[&x, &y], len, 1.0), Command::Barrier, by_value(&rotate, &[&y, &x], len, 1.0)];
    let times = device.backend().time(&list).unwrap();
    assert_eq!(times.len(), 3);
    assert!(times[0] > 0 && times[2] > 0, "{times:?}");
    assert!(times.iter().all(|time| *time < 10_000_000_000), "{times:?}");
    assert_eq!(times[1], 0);
    assert_eq!(device.backend().time(&[]).unwrap(), [0; 0]);
}

pub fn many_threads_may_work(subject: &Subject) {
    let device = open(subject);
    let add = load(&device, &kernel(subject, "add"), ParamTransport::Value);
    let (x, y) = (upload(&device, &numbers(500, 1)), upload(&device, &numbers(500, 2)));
    let z = upload(&device, &vec![0.0; 500]);
    let recording = device.backend().record(&[by_value(&add, &[&x, &y, &z], 500, 1.0)], 0).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (device, add, recording) = (&device, &add, &recording);
            scope.spawn(move || {
                for round in 0..40 {
                    let len = 200 + 37 * round;
                    let (a, b) = (numbers(len, seed), numbers(len, seed + 9));
                    let (x, y) = (upload(device, &a), upload(device, &b));
                    let z = upload(device, &vec![0.0; len]);
                    device.backend().execute(&[by_value(add, &[&x, &y, &z], len, 0.5)]).unwrap();
                    device.backend().run(&**recording, RunIo::default()).unwrap();
                    let result = download(device, &z);
                    assert!((0..len).all(|i| result[i] == (a[i] + b[i]) * 0.5), "thread {seed}, round {round}");
                }
            });
        }
    });
    device.backend().wait().unwrap();
}
