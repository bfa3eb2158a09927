//! Pipelines: what a device refuses, how parameters arrive, and the caches.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Command, DeviceOptions, GroupSource, Limits, Memory, ParamSource, RunIo};
use trefoil_dsl::error::Error;

use super::{Subject, by_value, dispatch, download, groups, kernel, load, open, upload, whole};

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
}

pub fn adapters_that_are_not_there_are_errors(subject: &Subject) {
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

pub fn pipelines_come_from_the_cache_on_disk(subject: &Subject) {
    /// The rules of several kinds of device run beside each other in one program.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let name = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("trefoil-{name}-{}-{call}", std::process::id()));
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
