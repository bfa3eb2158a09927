//! Recordings, and the run words that their commands read.

use std::sync::Arc;

use trefoil_codegen::artefact::{Kernel, ParamRole, ParamTransport};
use trefoil_dsl::device::{
    Command, CopyCommand, Device, GroupSource, Memory, MemoryRange, ParamSource, Recording, RunIo,
};
use trefoil_dsl::error::Error;

use super::{
    LARGE, Subject, beside, by_value, bytes, dispatch, download, floats, groups, kernel, load, numbers, open, params,
    part, upload, whole,
};

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
        Command::Dispatch(dispatch(&pipelines[0], &[&x, &y, &sum], ParamSource::RunWords(0), bound.clone())),
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

pub fn lengths_and_counts_are_held_to_what_is_bound(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    // Its first parameter is now the length of what it writes, as it is in kernels of authors.
    let mut kernel = Kernel::clone(&kernel(subject, "rotate"));
    kernel.params.fields.to_mut()[0].role = ParamRole::Length(1);
    kernel.hash[15] = 1;
    let kernel = Arc::new(kernel);
    let (x, y) = (upload(&device, &numbers(64, 1)), upload(&device, &numbers(64, 2)));
    let said = |result: trefoil_dsl::error::Result<()>, words: &str| match result {
        Err(Error::Command { label, reason }) => assert!(label == "rotate" && reason.contains(words), "{reason}"),
        other => panic!("{other:?} does not say {words}"),
    };
    let pipeline = load(&device, &kernel, ParamTransport::Value);
    backend.execute(&[by_value(&pipeline, &[&x, &y], 64, 1.0)]).unwrap();
    said(backend.execute(&[by_value(&pipeline, &[&x, &y], 65, 1.0)]), "`y` has 65 elements from element 0 on");
    said(backend.record(&[by_value(&pipeline, &[&x, &y], 65, 1.0)], 0).map(drop), "`y` has 65 elements");

    let pipeline = load(&device, &kernel, ParamTransport::Buffer);
    let source = GroupSource::RunWords { offset: 256, bound: [1, 1, 1] };
    let list = [Command::Dispatch(dispatch(&pipeline, &[&x, &y], ParamSource::RunWords(0), source))];
    let recording = backend.record(&list, 268).unwrap();
    let run = |len: usize, groups: [u32; 3]| {
        let mut words = params(len, 1.0);
        words.resize(256, 0);
        words.extend(groups.into_iter().flat_map(u32::to_le_bytes));
        backend.run(&*recording, RunIo { run_words: Some(&words), ..RunIo::default() })
    };
    said(run(65, [1, 1, 1]), "`y` has 65 elements from element 0 on");
    said(run(64, [1, 2, 1]), "its run words say [1, 2, 1] workgroups");
    // Words that were refused are not those of a first run.
    assert!(matches!(backend.run(&*recording, RunIo::default()), Err(Error::WrongLength { .. })));
    run(64, [1, 1, 1]).unwrap();
    assert_eq!(download(&device, &y)[63], numbers(64, 1)[0]);
}

pub fn many_threads_may_run_one_recording(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    // What the host reads by itself, what is staged, and what goes by itself, since two such downloads are more than is staged.
    for (len, rounds) in [(20usize, 200), (10_000, 50), (100_000, 20), (10_000_000, 2)] {
        let (x, y) = (upload(&device, &vec![0.0; len]), upload(&device, &vec![-1.0; len]));
        let used = len.min(4_000_000);
        let recording = backend.record(&[by_value(&rotate, &[&x, &y], used, 1.0)], 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (x, y, recording) = (&x, &y, &recording);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let start = vec![(thread * rounds + round) as f32; used];
                        let data = bytes(&start);
                        let (mut one, mut other) = (vec![0; 4 * len], vec![0; 4 * len]);
                        let mut downloads = [(whole(y), &mut one[..]), (whole(y), &mut other[..])];
                        let uploads = [(part(x, 0, data.len()), &data[..])];
                        let io = RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads };
                        backend.run(&**recording, io).unwrap();
                        let is_own = |found: &[u8]| found[..data.len()] == data;
                        assert!(is_own(&one) && is_own(&other), "thread {thread}, round {round}, {len} elements");
                    }
                });
            }
        });
    }
}

fn copy(from: &Arc<dyn Memory>, to: &Arc<dyn Memory>) -> Command {
    Command::Copy(CopyCommand { from: whole(from), to: whole(to), label: Arc::from("copy") })
}

pub fn a_run_follows_the_lists_before_it(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let long = 4_000_000;
    let [from, to] = [0.0, 1.0].map(|value| upload(&device, &vec![value; long]));
    // What the host reaches by itself where a device has such memory, and what is staged.
    for len in [16usize, 40_000] {
        let [x, y, seen] = [0.0; 3].map(|value| upload(&device, &vec![value; len]));
        let recording = backend.record(&[by_value(&rotate, &[&x, &y], len, 1.0)], 0).unwrap();
        // The device comes to `x` when it has done much else.
        let list = [by_value(&rotate, &[&from, &to], long, 1.0), Command::Barrier, copy(&x, &seen)];
        for round in 1..6u8 {
            let data = bytes(&vec![f32::from(round); len]);
            let mut back = vec![0; data.len()];
            backend.execute(&list).unwrap();
            let uploads = [(whole(&x), &data[..])];
            let mut downloads = [(whole(&y), &mut back[..])];
            backend.run(&*recording, RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads }).unwrap();
            assert!(back == data, "round {round} of {len} elements");
            assert_eq!(download(&device, &seen), vec![f32::from(round - 1); len], "round {round}");
        }
    }
}

pub fn what_a_run_takes_is_no_mixture(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    for (len, rounds) in [(16usize, 200), (40_000, 50)] {
        let [x, y, one, other] = [1.0, 2.0, 3.0, 4.0].map(|value| upload(&device, &vec![value; len]));
        let recording = backend.record(&[by_value(&rotate, &[&x, &y], len, 1.0)], 0).unwrap();
        std::thread::scope(|scope| {
            // Lists of another thread write where the run does.
            let writer = scope.spawn(|| {
                for _ in 0..rounds {
                    backend.execute(&[copy(&one, &y)]).unwrap();
                    backend.execute(&[copy(&other, &y)]).unwrap();
                }
            });
            while !writer.is_finished() {
                let mut back = vec![0; 4 * len];
                let mut downloads = [(whole(&y), &mut back[..])];
                backend.run(&*recording, RunIo { downloads: &mut downloads, ..RunIo::default() }).unwrap();
                let found = floats(&back);
                assert!(found.iter().all(|element| *element == found[0]), "{len} elements");
            }
        });
    }
}

pub fn nothing_comes_between_the_parts_of_a_run(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    // What the host may reach by itself, what is staged, and what goes in parts.
    for (size, rounds) in [(64usize, 100), (160_000, 50), (LARGE, 4)] {
        let [x, y] = ["x", "y"].map(|name| backend.allocate(size as u64, name).unwrap());
        let near = backend.allocate_near_host(16, "near").unwrap();
        let other = backend.allocate(16, "other").unwrap();
        backend.write(&whole(&other), &[255; 16]).unwrap();
        let copy = |from, to| Command::Copy(CopyCommand { from, to, label: Arc::from("copy") });
        let ends = |memory: &Arc<dyn Memory>| [part(memory, 0, 16), part(memory, size - 16, 16)];
        // It brings `x`, of which it moves both ends to `y` and one to `near`, and takes these.
        let [from, to] = [ends(&x), ends(&y)];
        let list = [
            copy(from[0].clone(), to[0].clone()),
            copy(from[1].clone(), to[1].clone()),
            copy(from[0].clone(), whole(&near)),
        ];
        let recording = backend.record(&list, 0).unwrap();
        // All of that another thread writes meanwhile.
        let written = ends(&x).into_iter().chain(ends(&y)).chain([whole(&near)]);
        let others: Vec<Command> = written.map(|range| copy(whole(&other), range)).collect();
        beside(
            || {
                (0..8).for_each(|_| backend.execute(&others).unwrap());
                // Not without end: the runs wait for all of it.
                backend.wait().unwrap();
            },
            || {
                let (mut found, mut found_near) = (vec![0; size], [0; 16]);
                for round in 0..rounds {
                    let data = vec![round; size];
                    let uploads = [(whole(&x), &data[..])];
                    let mut downloads = [(whole(&y), &mut found[..]), (whole(&near), &mut found_near[..])];
                    let io = RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads };
                    backend.run(&*recording, io).unwrap();
                    assert_eq!(found[..16], [round; 16], "the first bytes of {size}");
                    assert_eq!(found[size - 16..], [round; 16], "the last bytes of {size}");
                    assert_eq!(found_near, [round; 16], "the bytes near the host, beside {size}");
                }
            },
        );
    }
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
            let uploads = [(part(&x, 0, 8), first), (part(&x, 8, second.len()), second)];
            let mut downloads = [
                (part(&y, 0, 12), &mut head[..]),
                (part(&y, 0, data.len()), &mut all[..]),
                (part(&y, 3, 0), &mut [][..]),
            ];
            backend.run(&*recording, RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads }).unwrap();
            let result = floats(&all);
            assert_eq!(floats(&head), result[..3]);
            for i in 0..used {
                assert_eq!(result[i], start[(i + 1) % used], "element {i} of {len}");
            }
            assert!(result[used..].iter().all(|rest| *rest == -1.0));
        }
        let mut short = [0; 4];
        let mut downloads = [(MemoryRange { memory: y.clone(), offset: bytes_of - 3, bytes: 4 }, &mut short[..])];
        let result = backend.run(&*recording, RunIo { downloads: &mut downloads, ..RunIo::default() });
        assert!(matches!(result, Err(Error::OutOfRange { .. })));
    }
}

/// A recording that adds 1 to all of `x`, with memory and a kernel that nobody else holds.
fn increment(subject: &Subject, device: &Device, x: &Arc<dyn Memory>) -> Arc<dyn Recording> {
    let add = load(device, &kernel(subject, "add"), ParamTransport::Value);
    let len = x.bytes() as usize / 4;
    let [one, sum] = [1.0, 0.0].map(|value| upload(device, &vec![value; len]));
    let list = [by_value(&add, &[x, &one, &sum], len, 1.0), Command::Barrier, copy(&sum, x)];
    device.backend().record(&list, 0).unwrap()
}

pub fn submissions_follow_each_other(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    // What the host reaches by itself where a device has such memory, and what is staged.
    for len in [16usize, 40_000] {
        let [x, seen] = [0.0; 2].map(|value| upload(&device, &vec![value; len]));
        let step = increment(subject, &device, &x);
        let all = |value: u8| vec![f32::from(value); len];
        // More than a device may have on its way.
        let before = backend.counters().submissions;
        for _ in 0..100 {
            backend.submit(&*step).unwrap();
        }
        assert_eq!(backend.counters().submissions - before, 100);
        assert_eq!(download(&device, &x), all(100), "{len} elements");
        for round in 1..6 {
            // Among writes, runs and lists.
            backend.write(&whole(&x), &bytes(&all(round))).unwrap();
            backend.submit(&*step).unwrap();
            backend.run(&*step, RunIo::default()).unwrap();
            backend.submit(&*step).unwrap();
            backend.execute(&[copy(&x, &seen)]).unwrap();
            backend.submit(&*step).unwrap();
            assert_eq!(download(&device, &seen), all(round + 3), "round {round} of {len} elements");
            assert_eq!(download(&device, &x), all(round + 4), "round {round} of {len} elements");
            // And a run that brings and takes follows what was submitted before, and comes before what is submitted next.
            for _ in 0..10 {
                backend.submit(&*step).unwrap();
            }
            let data = bytes(&all(10 * round));
            let mut back = vec![0; data.len()];
            let uploads = [(whole(&x), &data[..])];
            let mut downloads = [(whole(&x), &mut back[..])];
            backend.run(&*step, RunIo { run_words: None, uploads: &uploads, downloads: &mut downloads }).unwrap();
            backend.submit(&*step).unwrap();
            assert_eq!(floats(&back), all(10 * round + 1), "round {round} of {len} elements");
            backend.wait().unwrap();
            assert_eq!(download(&device, &x), all(10 * round + 2), "round {round} of {len} elements");
        }
    }
}

pub fn what_is_submitted_outlives_its_recording(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Value);
    let long = 4_000_000;
    let [from, to] = [0.0, 1.0].map(|value| upload(&device, &vec![value; long]));
    // The device comes to what is submitted when it has done much else.
    let busy = [by_value(&rotate, &[&from, &to], long, 1.0)];
    for len in [16usize, 40_000] {
        for round in 0..5 {
            let x = upload(&device, &vec![0.0; len]);
            let step = increment(subject, &device, &x);
            backend.execute(&busy).unwrap();
            for _ in 0..5 {
                backend.submit(&*step).unwrap();
            }
            drop(step);
            // These may get what the recording had.
            let others = [-1.0; 3].map(|value| upload(&device, &vec![value; len]));
            let next = increment(subject, &device, &others[0]);
            backend.submit(&*next).unwrap();
            assert_eq!(download(&device, &x), vec![5.0; len], "round {round} of {len} elements");
            // Nobody reads what this was for.
            let unread = upload(&device, &vec![0.0; len]);
            let step = increment(subject, &device, &unread);
            backend.execute(&busy).unwrap();
            backend.submit(&*step).unwrap();
            drop(unread);
            drop(step);
            assert_eq!(download(&device, &others[0]), vec![0.0; len], "round {round} of {len} elements");
            assert_eq!(download(&device, &others[1]), vec![-1.0; len], "round {round} of {len} elements");
        }
    }
    // The device too may go before what it does, and before its recording.
    let step = increment(subject, &device, &from);
    backend.execute(&busy).unwrap();
    backend.submit(&*step).unwrap();
    drop(device);
    drop(step);
}

pub fn many_threads_may_submit_one_recording(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    for len in [16usize, 40_000] {
        let x = upload(&device, &vec![0.0; len]);
        let step = increment(subject, &device, &x);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let step = &step;
                scope.spawn(move || {
                    for round in 0..60 {
                        // Each of them waits now and then.
                        if round % 20 == thread {
                            backend.run(&**step, RunIo::default()).unwrap();
                        } else {
                            backend.submit(&**step).unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(download(&device, &x), vec![180.0; len], "{len} elements");
    }
}

pub fn what_has_run_words_is_not_submitted(subject: &Subject) {
    let device = open(subject);
    let backend = device.backend();
    let rotate = load(&device, &kernel(subject, "rotate"), ParamTransport::Buffer);
    let start = numbers(64, 4);
    let (x, y) = (upload(&device, &start), upload(&device, &[-1.0; 64]));
    let list =
        [Command::Dispatch(dispatch(&rotate, &[&x, &y], ParamSource::RunWords(0), GroupSource::Value(groups(64))))];
    let contents = words(64, 2.0);
    let recording = backend.record(&list, contents.len()).unwrap();
    let is_refused = || match backend.submit(&*recording) {
        Err(Error::Command { label, reason }) => {
            assert!(label == "rotate" && reason.contains("524 bytes of run words"), "{label}: {reason}");
        }
        other => panic!("{other:?}"),
    };
    is_refused();
    assert_eq!(download(&device, &y), [-1.0; 64]);
    // Nor when it has run, and they would be there.
    backend.run(&*recording, RunIo { run_words: Some(&contents), ..RunIo::default() }).unwrap();
    is_refused();
    assert_eq!(download(&device, &y)[0], start[1] * 2.0);
    let other = open(subject);
    let step = increment(subject, &other, &upload(&other, &[0.0; 16]));
    assert!(matches!(backend.submit(&*step), Err(Error::OtherDevice { .. })));
}
