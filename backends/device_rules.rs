//! Tests of the device interface's rules, which every device crate includes and runs on small kernels in its own language.
//!
//! A device crate gives three kernels by name, each with the parameter block stated here, for every transport of its target:
//! * `add`: bindings `a`, `b` (read), `c` (write); parameters `len: u32`, `scale: f32`, two unused words;
//!   `c[i] = (a[i] + b[i]) * scale` for `i < len`.
//! * `rotate`: bindings `x` (read), `y` (write); parameters as above; `y[i] = x[(i + 1) % len] * scale` for `i < len`.
//! * `table`: binding `y` (write); parameters `len: u32`, three unused words, then 31 groups of four `u32`, 512 bytes in all;
//!   `y[i] = first word of group (i % 31)` for `i < len`.
//!
//! All have workgroups of 64 invocations along x, and buffers of `f32` (`table`: `u32`).

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_codegen::artefact::{
    Access, Binding, CpuFunction, Element, GridKind, Kernel, ParamField, ParamRole, ParamScalar, ParamTransport,
    ParamType, Params, Variant,
};
use trefoil_dsl::device::{
    Command, CopyCommand, Device, DeviceKind, DeviceOptions, DispatchCommand, GroupSource, HostCommand, Limits, Memory,
    MemoryRange, ParamSource, Pipeline, RunIo,
};
use trefoil_dsl::error::{Error, Result};

/// What a device crate brings.
pub struct Subject {
    /// What it opens.
    pub kind: DeviceKind,
    /// Opens the device.
    pub open: fn(&DeviceOptions) -> Result<Device>,
    /// The variants of a kernel.
    pub variants: fn(&str) -> Vec<Variant>,
    /// Whether the device always tells that a cache on disk served a pipeline; some drivers do not.
    pub reports_cache: bool,
    /// The function that runs a kernel on the CPU; the CPU device needs it.
    pub cpu: fn(&str) -> Option<CpuFunction>,
}

/// Every test, for a static `Subject`.
#[macro_export]
macro_rules! device_rules {
    ($subject:expr; $($name:ident),* $(,)?) => { $(#[test] fn $name() {
        if rules::is_present(&$subject) {
            rules::$name(&$subject);
        }
    })* };
    ($subject:expr) => {
        device_rules!($subject;
            memory_of_any_size_keeps_what_is_written, wrong_ranges_are_errors, lists_run_at_once, dependent_commands_see_each_other,
            a_recording_serves_every_extent, groups_come_from_run_words, wrong_commands_are_errors, runs_carry_uploads_and_downloads,
            copies_move_bytes_within_the_device, device_times_are_told, poorer_devices_refuse, large_parameter_blocks_arrive, kernels_are_made_once, many_threads_may_work,
            memory_may_go_while_it_is_used, pipelines_come_from_the_cache_on_disk);
    };
}

/// Whether there is such a device to test. One that `TREFOIL_REQUIRE_DEVICES` names must be there.
pub fn is_present(subject: &Subject) -> bool {
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim() == subject.kind.name());
    match (subject.open)(&DeviceOptions::default()) {
        Err(error @ Error::Unavailable { .. }) if !required => {
            eprintln!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
        Ok(_) => true,
    }
}

fn open(subject: &Subject) -> Device {
    (subject.open)(&DeviceOptions { validate: true, ..DeviceOptions::default() })
        .or_else(|error| match error {
            // Validation is there to find our mistakes; devices without it are tested without it.
            Error::Unavailable { .. } => (subject.open)(&DeviceOptions::default()),
            other => Err(other),
        })
        .unwrap()
}

/// One of the kernels described above.
pub fn kernel(subject: &Subject, name: &'static str) -> Arc<Kernel> {
    let (bindings, words): (&[(&'static str, Access)], u32) = match name {
        "add" => (&[("a", Access::Read), ("b", Access::Read), ("c", Access::Write)], 4),
        "rotate" => (&[("x", Access::Read), ("y", Access::Write)], 4),
        "table" => (&[("y", Access::Write)], 128),
        other => panic!("no kernel {other}"),
    };
    let element = Element { name: Cow::Borrowed("f32"), size: 4, align: 4 };
    let field = |name: &'static str, scalar, offset| ParamField {
        name: Cow::Borrowed(name),
        role: ParamRole::User(offset / 4),
        ty: ParamType { scalar, count: 1, array: false },
        offset,
    };
    let mut hash = [0; 16];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    Arc::new(Kernel {
        name: Cow::Borrowed(name),
        doc: Cow::Borrowed(""),
        bindings: bindings
            .iter()
            .map(|(name, access)| Binding {
                name: Cow::Borrowed(name),
                element: element.clone(),
                access: *access,
                vector: 1,
                view: None,
            })
            .collect(),
        params: Params {
            size: words * 4,
            fields: vec![field("len", ParamScalar::U32, 0), field("scale", ParamScalar::F32, 4)].into(),
        },
        workgroup_size: [64, 1, 1],
        workgroup_bytes: 0,
        grid: GridKind::Linear,
        variants: (subject.variants)(name).into(),
        cpu: (subject.cpu)(name),
        ir: Cow::Borrowed(&[]),
        instance: Cow::Borrowed(&[]),
        hash,
    })
}

fn load(device: &Device, kernel: &Arc<Kernel>, transport: ParamTransport) -> Arc<dyn Pipeline> {
    device.backend().load(std::slice::from_ref(kernel), transport).unwrap().remove(0)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Numbers that are different everywhere and exact under the kernels' arithmetic.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 12) as f32).collect()
}

fn params(len: usize, scale: f32) -> Vec<u8> {
    let mut block = (len as u32).to_le_bytes().to_vec();
    block.extend(scale.to_le_bytes());
    block.extend([0; 8]);
    block
}

fn whole(memory: &Arc<dyn Memory>) -> MemoryRange {
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() }
}

fn bound(memory: &Arc<dyn Memory>) -> MemoryRange {
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes().max(1).next_multiple_of(16) }
}

fn upload(device: &Device, values: &[f32]) -> Arc<dyn Memory> {
    let memory = device.backend().allocate(values.len() as u64 * 4, "test").unwrap();
    device.backend().write(&whole(&memory), &bytes(values)).unwrap();
    memory
}

fn download(device: &Device, memory: &Arc<dyn Memory>) -> Vec<f32> {
    let mut data = vec![0; memory.bytes() as usize];
    device.backend().read(&whole(memory), &mut data).unwrap();
    floats(&data)
}

fn groups(len: usize) -> [u32; 3] {
    [len.div_ceil(64) as u32, 1, 1]
}

fn dispatch(
    pipeline: &Arc<dyn Pipeline>,
    memory: &[&Arc<dyn Memory>],
    params: ParamSource,
    groups: GroupSource,
) -> DispatchCommand {
    DispatchCommand {
        pipeline: pipeline.clone(),
        bindings: memory.iter().map(|memory| bound(memory)).collect(),
        params,
        groups,
        label: Arc::from(&*pipeline.kernel().name),
    }
}

fn by_value(pipeline: &Arc<dyn Pipeline>, memory: &[&Arc<dyn Memory>], len: usize, scale: f32) -> Command {
    Command::Dispatch(dispatch(
        pipeline,
        memory,
        ParamSource::Value(params(len, scale)),
        GroupSource::Value(groups(len)),
    ))
}

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
    if device.limits().shares_memory_within_dispatch {
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

/// Run words: parameter blocks of `add` and `rotate`, then the workgroups of both.
fn words(len: usize, scale: f32) -> Vec<u8> {
    let mut words = params(len, scale);
    words.resize(256, 0);
    words.extend(params(len, 1.0));
    words.resize(512, 0);
    for count in groups(len) {
        words.extend(count.to_le_bytes());
    }
    words
}

pub fn a_recording_serves_every_extent(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let kernels = [kernel(subject, "add"), kernel(subject, "rotate")];
    let pipelines = backend.load(&kernels, ParamTransport::Buffer).unwrap();
    let most = 5000;
    let (a, b) = (numbers(most, 1), numbers(most, 2));
    let (x, y) = (upload(&device, &a), upload(&device, &b));
    let (sum, turned) = (upload(&device, &vec![0.0; most]), upload(&device, &vec![-1.0; most]));
    let bound = GroupSource::Value(groups(most));
    let list = [
        Command::Dispatch(dispatch(&pipelines[0], &[&x, &y, &sum], ParamSource::RunWords(0), bound)),
        Command::Barrier,
        Command::Dispatch(dispatch(&pipelines[1], &[&sum, &turned], ParamSource::RunWords(256), bound)),
    ];
    let size = words(1, 1.0).len();
    let recording = backend.record(&list, size).unwrap();
    assert!(matches!(backend.run(&*recording, RunIo::default()), Err(Error::WrongLength { .. })), "no run words");
    let before = backend.counters();
    for (len, scale) in [(1usize, 2.0), (4999, 0.25), (77, 4.0), (5000, 1.0)] {
        backend.write(&whole(&turned), &bytes(&vec![-1.0; most])).unwrap();
        let contents = words(len, scale);
        backend.run(&*recording, RunIo { run_words: Some(&contents), ..RunIo::default() }).unwrap();
        let result = download(&device, &turned);
        for (i, value) in result[..len].iter().enumerate() {
            let from = (i + 1) % len;
            assert_eq!(*value, (a[from] + b[from]) * scale, "element {i} of {len}");
        }
        assert!(result[len..].iter().all(|rest| *rest == -1.0), "rest after {len}");
    }
    // The run words of the last run stay.
    backend.write(&whole(&turned), &bytes(&vec![-1.0; most])).unwrap();
    backend.run(&*recording, RunIo::default()).unwrap();
    assert_eq!(download(&device, &turned)[0], a[1] + b[1]);
    let after = backend.counters();
    assert_eq!((after.recordings, after.pipelines), (before.recordings, before.pipelines));
    assert_eq!((before.recordings, before.pipelines), (1, 2));
    assert!(matches!(
        backend.run(&*recording, RunIo { run_words: Some(&[0; 3]), ..RunIo::default() }),
        Err(Error::WrongLength { .. })
    ));
    let other = open(subject);
    assert!(matches!(other.backend().run(&*recording, RunIo::default()), Err(Error::OtherDevice { .. })));
}

pub fn groups_come_from_run_words(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Buffer);
    let most = 1000;
    let start = numbers(most, 9);
    let (x, y) = (upload(&device, &start), upload(&device, &vec![0.0; most]));
    let source = GroupSource::RunWords { offset: 512, bound: groups(most) };
    let list = [Command::Dispatch(dispatch(&rotate, &[&x, &y], ParamSource::RunWords(0), source))];
    let recording = backend.record(&list, words(1, 1.0).len()).unwrap();
    for len in [1000usize, 3, 640] {
        backend.write(&whole(&y), &bytes(&vec![-1.0; most])).unwrap();
        let contents = words(len, 3.0);
        backend.run(&*recording, RunIo { run_words: Some(&contents), ..RunIo::default() }).unwrap();
        let result = download(&device, &y);
        for i in 0..len {
            assert_eq!(result[i], start[(i + 1) % len] * 3.0, "element {i} of {len}");
        }
        assert!(result[len..].iter().all(|rest| *rest == -1.0), "rest after {len}");
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
    let good = || dispatch(&add, &memory, value(), one);
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
    if !device.kind().has_pointers() {
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
        let host = HostCommand {
            function: Arc::new(|_, _, _| Ok(())),
            reads: Vec::new(),
            writes: Vec::new(),
            run_words: 0..0,
            label: Arc::from("host"),
        };
        broken(backend.execute(&[Command::Host(host.clone())]), "a function of the host");
        broken(backend.time(&[Command::Host(host.clone())]).map(drop), "a function of the host");
        broken(backend.record(&[Command::Host(host)], 0).map(drop), "a function of the host");
    }
    let foreign = upload(&other, &[1.0; 64]);
    assert!(matches!(run(&|c| c.bindings[0] = bound(&foreign)), Err(Error::OtherDevice { .. })));
    let pipeline = load(&other, &kernel(subject, "add"), ParamTransport::Value);
    assert!(matches!(run(&|c| c.pipeline = pipeline.clone()), Err(Error::OtherDevice { .. })));
    let record =
        |params, groups| backend.record(&[Command::Dispatch(dispatch(&late, &memory, params, groups))], 524).map(drop);
    record(ParamSource::RunWords(256), GroupSource::RunWords { offset: 512, bound: [1; 3] }).unwrap();
    broken(record(ParamSource::RunWords(512), one), "parameters past the run words");
    broken(record(ParamSource::RunWords(128), one), "parameters misaligned");
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

pub fn runs_carry_uploads_and_downloads(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    // Below and above the size at which a device may stage transfers.
    for len in [5usize, 1000, 200_000, 10_000_000] {
        let bytes_of = len as u64 * 4;
        let (x, y) = (backend.allocate(bytes_of, "x").unwrap(), backend.allocate(bytes_of, "y").unwrap());
        // The largest transfers are more than one grid of these kernels reaches.
        let used = len.min(4_000_000);
        backend.write(&whole(&y), &bytes(&vec![-1.0; len])).unwrap();
        let recording = backend.record(&[by_value(&rotate, &[&x, &y], used, 1.0)], 0).unwrap();
        for seed in 0..2 {
            let start = numbers(len, seed);
            let data = bytes(&start);
            let (first, second) = data.split_at(8);
            let mut head = vec![0; 12];
            let mut all = vec![0; data.len()];
            let range = |memory: &Arc<dyn Memory>, offset: usize, bytes: usize| MemoryRange {
                memory: memory.clone(),
                offset: offset as u64,
                bytes: bytes as u64,
            };
            let uploads = vec![(range(&x, 0, 8), first), (range(&x, 8, second.len()), second)];
            let downloads = vec![
                (range(&y, 0, 12), &mut head[..]),
                (range(&y, 0, data.len()), &mut all[..]),
                (range(&y, 3, 0), &mut [][..]),
            ];
            backend.run(&*recording, RunIo { run_words: None, uploads, downloads }).unwrap();
            let result = floats(&all);
            assert_eq!(floats(&head), result[..3]);
            for i in 0..used {
                assert_eq!(result[i], start[(i + 1) % used], "element {i} of {len}");
            }
            assert!(result[used..].iter().all(|rest| *rest == -1.0));
        }
        let mut short = [0; 4];
        let downloads = vec![(MemoryRange { memory: y.clone(), offset: bytes_of - 3, bytes: 4 }, &mut short[..])];
        let result = backend.run(&*recording, RunIo { downloads, ..RunIo::default() });
        assert!(matches!(result, Err(Error::OutOfRange { .. })));
    }
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

pub fn poorer_devices_refuse(subject: &Subject) {
    let rich = open(subject);
    let poor = Limits {
        max_allocation_bytes: 4096,
        max_storage_buffers: 2,
        max_invocations: 64,
        max_groups: [2, 1, 1],
        ..*rich.limits()
    };
    let options = DeviceOptions { at_most: Some(poor), ..DeviceOptions::default() };
    let device = (subject.open)(&options).unwrap();
    assert_eq!(*device.limits(), poor);
    assert!(matches!(device.backend().allocate(4097, "large"), Err(Error::TooLarge { .. })));
    let add = kernel(subject, "add");
    let refused = device.backend().load(&[add], ParamTransport::Value);
    assert!(matches!(refused, Err(Error::Limit { wanted: 3, limit: 2, .. })), "{refused:?}");
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let (x, y) = (upload(&device, &[1.0; 192]), upload(&device, &[1.0; 192]));
    assert!(matches!(device.backend().execute(&[by_value(&rotate, &[&x, &y], 192, 1.0)]), Err(Error::Grid { .. })));
    let mut bare = (*kernel(subject, "rotate")).clone();
    bare.variants = Cow::Borrowed(&[]);
    bare.cpu = None;
    bare.hash = [9; 16];
    let missing = device.backend().load(&[Arc::new(bare)], ParamTransport::Value);
    assert!(matches!(missing, Err(Error::Variant(_))), "{missing:?}");
    let absent = DeviceOptions { adapter: Some("no such adapter".to_owned()), ..DeviceOptions::default() };
    assert!(matches!((subject.open)(&absent), Err(Error::NoSuchAdapter { .. })));
}

pub fn large_parameter_blocks_arrive(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let len = 100usize;
    let block = |seed: u32| {
        let mut words = vec![len as u32, 0, 0, 0];
        words.extend((0..31).flat_map(|i| [seed + i * 7, 1, 2, 3]));
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    let check = |memory: &Arc<dyn Memory>, seed: u32| {
        let mut data = vec![0; len * 4];
        backend.read(&whole(memory), &mut data).unwrap();
        for (i, word) in data.chunks_exact(4).enumerate() {
            assert_eq!(u32::from_le_bytes(word.try_into().unwrap()), seed + (i as u32 % 31) * 7, "element {i}");
        }
    };
    let table = load(&device, &kernel(subject, "table"), ParamTransport::Value);
    let memory: Vec<_> = (0..3).map(|_| upload(&device, &vec![0.0; len])).collect();
    let list: Vec<Command> = memory
        .iter()
        .zip([10, 2000, 50])
        .map(|(memory, seed)| {
            let params = ParamSource::Value(block(seed));
            Command::Dispatch(dispatch(&table, &[memory], params, GroupSource::Value(groups(len))))
        })
        .collect();
    let checked = || {
        for (memory, seed) in memory.iter().zip([10, 2000, 50]) {
            check(memory, seed);
            backend.write(&whole(memory), &vec![0; len * 4]).unwrap();
        }
    };
    backend.execute(&list).unwrap();
    checked();
    let recording = backend.record(&list, 0).unwrap();
    for _ in 0..2 {
        backend.run(&*recording, RunIo::default()).unwrap();
        checked();
    }
    backend.time(&list).unwrap();
    checked();
}

pub fn kernels_are_made_once(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let kernels = [kernel(subject, "add"), kernel(subject, "rotate"), kernel(subject, "add")];
    let pipelines = backend.load(&kernels, ParamTransport::Value).unwrap();
    let names: Vec<_> = pipelines.iter().map(|pipeline| pipeline.kernel().name.to_string()).collect();
    assert_eq!(names, ["add", "rotate", "add"]);
    assert_eq!(backend.counters().pipelines, 2);
    backend.load(&kernels, ParamTransport::Value).unwrap();
    assert_eq!(backend.counters().pipelines, 2);
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

pub fn pipelines_come_from_the_cache_on_disk(subject: &Subject) {
    let name = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let folder = std::env::temp_dir().join(format!("trefoil-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let options = DeviceOptions { cache: Some(folder.clone()), ..DeviceOptions::default() };
    let add = [kernel(subject, "add"), kernel(subject, "rotate")];
    let served = || {
        let device = (subject.open)(&options).unwrap();
        let pipelines = device.backend().load(&add, ParamTransport::Value).unwrap();
        let (x, y, z) = (upload(&device, &[1.0; 4]), upload(&device, &[2.0; 4]), upload(&device, &[0.0; 4]));
        device.backend().execute(&[by_value(&pipelines[0], &[&x, &y, &z], 4, 1.0)]).unwrap();
        assert_eq!(download(&device, &z), [3.0; 4]);
        let counters = device.backend().counters();
        assert_eq!(counters.pipelines, 2);
        counters.pipelines_from_cache
    };
    let expected = if subject.reports_cache { 2..=2 } else { 0..=2 };
    assert_eq!(served(), 0);
    assert!(std::fs::read_dir(&folder).unwrap().count() > 0);
    assert!(expected.contains(&served()));
    for entry in std::fs::read_dir(&folder).unwrap() {
        std::fs::write(entry.unwrap().path(), b"not a cache at all").unwrap();
    }
    assert_eq!(served(), 0, "a damaged cache is as good as none");
    assert!(expected.contains(&served()), "and is replaced");
    std::fs::remove_dir_all(&folder).unwrap();
}
