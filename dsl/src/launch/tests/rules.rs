//! What launches and the checks of every device refuse, so that no kernel leaves what is bound.

use super::*;

#[test]
fn other_types_of_the_same_size_are_refused() {
    let (device, _) = device(DeviceKind::Wgpu, WIDE);
    let x = device.zeros::<f32>(8).unwrap();
    let mut y = device.zeros::<f32>(8).unwrap();
    let (integers, mut words) = (device.zeros::<i32>(8).unwrap(), device.zeros::<u32>(8).unwrap());
    let begin = || Launch::of(copy_kernel(1, 4));
    let message = |result: Result<Launch>| result.unwrap_err().to_string();
    assert_eq!(
        message(begin().read(&integers)),
        "kernel `subject`, argument `x`: elements of 4 bytes (i32) given, elements of 4 bytes (f32) expected"
    );
    let bound = begin().read(&x).unwrap();
    assert_eq!(
        message(bound.clone().write(&mut words)),
        "kernel `subject`, argument `y`: elements of 4 bytes (u32) given, elements of 4 bytes (f32) expected"
    );
    let full = bound.write(&mut y).unwrap();
    assert_eq!(message(full.clone().value(2.0f32)), "kernel `subject`, argument `n`: `f32` given, `usize` expected");
    assert_eq!(message(full.clone().value(true)), "kernel `subject`, argument `n`: `bool` given, `usize` expected");
    assert_eq!(message(full.value(2u32)), "kernel `subject`, argument `n`: `u32` given, `usize` expected");
}

#[test]
fn ranges_that_kernels_would_leave_are_refused() {
    for kind in [DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Vulkan, DeviceKind::Wgpu] {
        let (device, fake) = device(kind, WIDE);
        let x = device.zeros::<f32>(1024).unwrap();
        let mut y = device.zeros::<f32>(100).unwrap();
        let launch = |vector| Launch::of(copy_kernel(vector, 4)).read(x.slice(64..).unwrap()).unwrap();
        let launch = launch(4).write(&mut y).unwrap().value(100usize).unwrap();
        device.run(launch.over(100)).unwrap();
        let good = fake.ran.lock().unwrap().pop().unwrap();
        let run = |change: &dyn Fn(&mut DispatchCommand)| {
            let mut command = good.clone();
            change(&mut command);
            device.backend().execute(&[Command::Dispatch(command)])
        };
        let set = |command: &mut DispatchCommand, at: usize, word: u32| {
            let ParamSource::Value(block) = &mut command.params else { panic!("a launch by hand passes values") };
            block[at..at + 4].copy_from_slice(&word.to_le_bytes());
        };
        let said = |result: Result<()>, words: &str| {
            let error = result.unwrap_err();
            assert!(matches!(&error, Error::Command { label, .. } if label == "subject"), "{error:?}");
            assert!(error.to_string().contains(words), "{error} does not say {words} on {kind}");
        };
        run(&|_| {}).unwrap();
        // The length of `y`, which is bound up to its 100th element, and where it begins.
        run(&|command| set(command, 12, 100)).unwrap();
        let said_of_y = "`y` has 101 elements from element 0 on, and 400 bytes are bound";
        said(run(&|command| set(command, 12, 101)), said_of_y);
        said(run(&|command| set(command, 16, 1)), "`y` has 100 elements from element 1 on, and 400 bytes are bound");
        said(run(&|command| set(command, 12, u32::MAX)), "`y` has 4294967295 elements");
        // An empty slice is nowhere.
        run(&|command| {
            set(command, 12, 0);
            set(command, 16, 1000);
        })
        .unwrap();
        // Misaligned for its scalars, and for what the kernel moves at once.
        for offset in [2, 4, 8] {
            let wrong = |command: &mut DispatchCommand| command.bindings[0].offset += offset;
            said(
                run(&wrong),
                if kind.has_pointers() { "not from a multiple of 16" } else { "not from a multiple of 256" },
            );
        }
        said(
            run(&|command| command.groups = GroupSource::Value([65535, 65535, 2])),
            "a grid of [65535, 65535, 2] workgroups",
        );
    }
}

#[test]
fn run_words_are_held_to_what_was_recorded() {
    let (device, fake) = device(DeviceKind::Vulkan, WIDE);
    let x = device.zeros::<f32>(100).unwrap();
    let mut y = device.zeros::<f32>(100).unwrap();
    let launch = Launch::of(copy_kernel(1, 4)).read(&x).unwrap().write(&mut y).unwrap().value(100usize).unwrap();
    device.run(launch.over(100)).unwrap();
    let mut command = fake.ran.lock().unwrap().pop().unwrap();
    let ParamSource::Value(block) = std::mem::replace(&mut command.params, ParamSource::RunWords(256)) else {
        panic!("a launch by hand passes values")
    };
    let bound = groups(&command);
    command.groups = GroupSource::RunWords { offset: 512, bound };
    let checks = Checks { id: fake.id, properties: &fake.properties };
    let rules = checks.recording(&[Command::Barrier, Command::Dispatch(command)], 524).unwrap();
    let run = |length: u32, groups: [u32; 3]| {
        let mut words = vec![0xFF; 524];
        words[256..256 + block.len()].copy_from_slice(&block);
        words[256 + 12..256 + 16].copy_from_slice(&length.to_le_bytes());
        for (place, count) in words[512..].chunks_mut(4).zip(groups) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        checks.io(&RunIo { run_words: Some(&words), ..RunIo::default() }, &rules, false)
    };
    run(100, bound).unwrap();
    run(0, [0; 3]).unwrap();
    let said = |result: Result<()>, words: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("`subject`: ") && error.contains(words), "{error} does not say {words}");
    };
    said(run(101, bound), "`y` has 101 elements from element 0 on, and 400 bytes are bound");
    said(
        run(100, [bound[0] + 1, 1, 1]),
        "its run words say [14, 1, 1] workgroups, and it was recorded with at most [13, 1, 1]",
    );
    assert!(matches!(checks.io(&RunIo::default(), &rules, false), Err(Error::WrongLength { .. })));
    checks.io(&RunIo::default(), &rules, true).unwrap();
    said(rules.expect_none("subject"), "its recording has 524 bytes of run words");
    checks.recording(&[Command::Barrier], 0).unwrap().expect_none("subject").unwrap();
}
