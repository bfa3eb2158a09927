//! Recordings, and the run words that their commands read.

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Command, GroupSource, MemoryRange, ParamSource, RunIo};
use trefoil_dsl::error::Error;

use super::{
    Subject, by_value, bytes, dispatch, download, floats, groups, kernel, load, numbers, open, params, part, upload,
    whole,
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
