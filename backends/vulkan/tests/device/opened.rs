//! The device interface's rules on a device that the program opened, and what the two do between each other's commands.

#![allow(clippy::undocumented_unsafe_blocks, reason = "the program's side is Vulkan from end to end")]

use std::sync::Arc;

use ash::vk;
use trefoil_codegen::artefact::{Feature, ParamTransport};
use trefoil_dsl::device::{Command, CopyCommand, Device, DeviceOptions, Memory, MemoryRange};
use trefoil_dsl::error::Result;
use trefoil_vulkan::DeviceFeatures;

use crate::own::{Buffer, Program};
use crate::{device_rules, rules};

const SUBJECT: rules::Subject =
    rules::Subject { open: |options| Program::open(|_| ())?.share(options), ..crate::SUBJECT };

device_rules!(opened SUBJECT);

/// Leaves what is needed alone.
fn only_needed(features: &mut DeviceFeatures) {
    let mut needed = DeviceFeatures { api_version: vk::API_VERSION_1_2, ..DeviceFeatures::default() };
    needed.vulkan_12.timeline_semaphore = features.vulkan_12.timeline_semaphore;
    needed.vulkan_12.vulkan_memory_model = features.vulkan_12.vulkan_memory_model;
    *features = needed;
}

/// The same with as little as a program can enable.
mod poor {
    use super::*;

    const SUBJECT: rules::Subject =
        rules::Subject { open: |options| Program::open(only_needed)?.share(options), ..super::SUBJECT };

    device_rules!(SUBJECT; lists_run_at_once, a_recording_serves_every_extent, kernels_are_made_once);
}

/// c = 2 (a + b).
fn add(device: &Device, memory: [&Arc<dyn Memory>; 3]) -> Command {
    let pipeline = rules::load(device, &rules::kernel(&SUBJECT, "add"), ParamTransport::Value);
    rules::by_value(&pipeline, &memory, (memory[2].bytes() / 4) as usize, 2.0)
}

#[test]
fn commands_of_both_follow_each_other_without_barriers_of_the_programs() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let program = Program::open(|_| ()).unwrap();
    let on = program.share(&DeviceOptions::default()).unwrap();
    // Small memory too, to which the host writes by itself on a device that trefoil opened.
    for length in [16u64, 100_000] {
        let bytes = 4 * length;
        let buffer = Buffer::new(&program, bytes);
        let before = on.backend().counters();
        let memory = unsafe { trefoil_vulkan::memory(&on, buffer.handle, bytes, buffer.clone()) }.unwrap();
        let sum = on.zeros::<f32>(length as usize).unwrap();
        let command = add(&on, [&memory, &memory, sum.memory()]);
        let mut submitted = Vec::new();
        for value in [1f32, 3.0] {
            // The program writes, trefoil reads that and writes, the program reads that and writes, trefoil reads that.
            let fill = |device: &ash::Device, list| unsafe {
                device.cmd_fill_buffer(list, buffer.handle, 0, bytes, value.to_bits());
            };
            submitted.push(program.submit(fill));
            on.backend().execute(std::slice::from_ref(&command)).unwrap();
            let from = trefoil_vulkan::buffer(&**sum.memory()).unwrap();
            let copy = |device: &ash::Device, list| unsafe {
                let whole = [vk::BufferCopy::default().size(bytes)];
                device.cmd_copy_buffer(list, from, buffer.handle, &whole);
            };
            submitted.push(program.submit(copy));
            assert!(rules::download(&on, &memory).iter().all(|element| *element == 4.0 * value), "{length} of {value}");
            // trefoil writes what commands of the program's may still be reading.
            submitted.push(program.submit(copy));
            on.backend().write(&rules::whole(sum.memory()), &vec![0; bytes as usize]).unwrap();
            assert!(rules::download(&on, &memory).iter().all(|element| *element == 4.0 * value), "{length} of {value}");
        }
        let after = on.backend().counters();
        assert_eq!(
            (after.allocations, after.allocated_bytes),
            (before.allocations + 1, before.allocated_bytes + bytes)
        );
        // What is submitted holds the memory, and that the buffer.
        on.backend().execute(&[add(&on, [&memory, &memory, sum.memory()])]).unwrap();
        drop((command, memory));
        on.backend().wait().unwrap();
        assert_eq!(Arc::strong_count(&buffer), 1, "nothing holds the buffer any more");
        drop(submitted);
    }
    let held = Arc::strong_count(&program);
    drop(on);
    assert_eq!(Arc::strong_count(&program), held - 1, "trefoil lets go of the program's device");
}

/// An owner that is gone only when another thread has used the device, as one is whose lock that thread holds.
struct Waits {
    device: Device,
    _buffer: Arc<Buffer>,
    said: std::sync::mpsc::Sender<Option<Result<()>>>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let (answer, answered) = std::sync::mpsc::channel();
        let device = self.device.clone();
        std::thread::spawn(move || answer.send(device.backend().execute(&[])));
        let done = answered.recv_timeout(std::time::Duration::from_secs(20)).ok();
        self.said.send(done).unwrap();
    }
}

#[test]
fn owners_of_buffers_may_wait_for_others_that_use_the_device() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let program = Program::open(|_| ()).unwrap();
    let on = program.share(&DeviceOptions::default()).unwrap();
    let (said, told) = std::sync::mpsc::channel();
    let sum = on.zeros::<f32>(16).unwrap();
    for wait in [|device: &Device| device.wait(), |device: &Device| device.buffer(&[1f32]).map(drop)] {
        let buffer = Buffer::new(&program, 64);
        let handle = buffer.handle;
        let owner = Waits { device: on.clone(), _buffer: buffer, said: said.clone() };
        let memory = unsafe { trefoil_vulkan::memory(&on, handle, 64, owner) }.unwrap();
        on.backend().execute(&[add(&on, [&memory, &memory, sum.memory()])]).unwrap();
        drop(memory);
        wait(&on).unwrap();
        on.wait().unwrap();
        told.recv().unwrap().expect("the owner waited in vain").unwrap();
    }
}

/// A launch takes a buffer of the program's as elements.
#[test]
fn launches_take_buffers_of_the_program() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let program = Program::open(|_| ()).unwrap();
    let on = program.share(&DeviceOptions::default()).unwrap();
    let buffer = Buffer::new(&program, 256);
    let filled = program.submit(|device, list| unsafe {
        device.cmd_fill_buffer(list, buffer.handle, 0, 256, 3f32.to_bits());
    });
    let memory = unsafe { trefoil_vulkan::memory(&on, buffer.handle, 256, buffer.clone()) }.unwrap();
    rules::launches_read_and_write(&SUBJECT, &on, &memory, 3.0);
    drop(filled);
}

/// A buffer that is given twice is one piece of memory.
#[test]
fn a_buffer_given_twice_is_one_piece_of_memory() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let program = Program::open(|_| ()).unwrap();
    let on = program.share(&DeviceOptions::default()).unwrap();
    let buffer = Buffer::new(&program, 64);
    let memory = || unsafe { trefoil_vulkan::memory(&on, buffer.handle, 64, buffer.clone()) }.unwrap();
    let range = |memory, offset| MemoryRange { memory, offset, bytes: 32 };
    let copy = CopyCommand { from: range(memory(), 0), to: range(memory(), 16), label: "copy".into() };
    let refused = on.backend().execute(&[Command::Copy(copy)]).unwrap_err().to_string();
    assert!(refused.contains("overlap"), "{refused}");
}

#[test]
fn what_the_program_did_not_enable_is_not_used() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let rich = Program::open(|_| ()).unwrap().share(&DeviceOptions::default()).unwrap();
    let own = trefoil_vulkan::open(&DeviceOptions {
        adapter: Some(rich.properties().name.clone()),
        ..DeviceOptions::default()
    })
    .unwrap();
    assert_eq!(rich.properties().features, own.properties().features);
    let poor = Program::open(only_needed).unwrap().share(&DeviceOptions::default()).unwrap();
    for optional in [
        Feature::Int64,
        Feature::Float64,
        Feature::Int64Atomics,
        Feature::F16Storage,
        Feature::IntegerDot,
        Feature::Bf16Matrices,
    ] {
        assert!(!poor.properties().features.has(optional), "{optional:?}");
    }
    assert!(poor.properties().features.has(Feature::Ordering) && poor.properties().subgroup_sizes.is_none());

    let without = |change: fn(&mut DeviceFeatures)| {
        let refused = Program::open(change).unwrap().share(&DeviceOptions::default()).unwrap_err();
        refused.to_string()
    };
    let said = without(|features| features.vulkan_12.vulkan_memory_model = vk::FALSE);
    assert!(said.contains("was opened without the Vulkan memory model (`vulkan_12.vulkan_memory_model`)"), "{said}");
    let said = without(|features| {
        *features = DeviceFeatures { api_version: vk::API_VERSION_1_2, ..DeviceFeatures::default() }
    });
    assert!(said.contains("without timeline semaphores") && said.contains("and the Vulkan memory model"), "{said}");
    let said = without(|features| features.api_version = vk::API_VERSION_1_1);
    assert!(said.contains("is used by an instance for Vulkan 1.1, and 1.2 is needed"), "{said}");
}

#[test]
fn what_cannot_be_shared_is_named() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let program = Program::open(|_| ()).unwrap();
    let refused = |change: &dyn Fn(&mut trefoil_vulkan::OpenedDevice<'_>), options: &DeviceOptions| {
        let mut opened = program.opened();
        change(&mut opened);
        unsafe { trefoil_vulkan::open_on(opened, options) }.unwrap_err().to_string()
    };
    let defaults = DeviceOptions::default();
    let shown = format!("{:?}", program.opened());
    assert!(shown.contains(&format!("family: {}", program.family)) && shown.contains("api_version"), "{shown}");
    let said = refused(&|opened| opened.family = 77, &defaults);
    assert!(said.contains("queue family 77") && said.contains("none that computes"), "{said}");
    for (option, options) in [
        ("validate", DeviceOptions { validate: true, ..defaults.clone() }),
        ("adapter", DeviceOptions { adapter: Some("0".to_owned()), ..defaults.clone() }),
    ] {
        let said = refused(&|_| (), &options);
        assert!(said.contains(&format!("`DeviceOptions::{option}` is for devices that trefoil opens")), "{said}");
    }

    let on = program.share(&DeviceOptions { labels: true, ..defaults.clone() }).unwrap();
    let buffer = Buffer::new(&program, 64);
    let refused = |device: &Device, buffer: vk::Buffer, bytes| {
        unsafe { trefoil_vulkan::memory(device, buffer, bytes, ()) }.unwrap_err().to_string()
    };
    let said = refused(&on, buffer.handle, 20);
    assert!(said.contains("it has 20 bytes, a multiple of 16 is expected"), "{said}");
    let said = refused(&on, vk::Buffer::null(), 16);
    assert!(said.contains("its handle is null"), "{said}");
    let said = refused(&on, buffer.handle, 1 << 20);
    assert!(said.contains("1048576 bytes of it are asked for, and it takes"), "{said}");
    let own = trefoil_vulkan::open(&defaults).unwrap();
    let said = refused(&own, buffer.handle, 64);
    assert!(said.contains("itself"), "{said}");

    // A function that keeps the queue to itself loses the device, not the program.
    let mut opened = program.opened();
    opened.queue = Box::new(|_| ());
    let silent = unsafe { trefoil_vulkan::open_on(opened, &defaults) }.unwrap();
    let lost = silent.buffer(&[1f32]).and_then(|buffer| buffer.read()).unwrap_err().to_string();
    assert!(lost.contains("did not hand its queue over"), "{lost}");
    assert_eq!(on.buffer(&[1f32]).unwrap().read().unwrap(), [1.0]);
}

#[test]
fn many_threads_share_the_queue_with_the_program() -> Result<()> {
    if !rules::is_present(&SUBJECT) {
        return Ok(());
    }
    let program = Program::open(|_| ()).unwrap();
    let on = program.share(&DeviceOptions::default())?;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..50 {
                    assert_eq!(on.buffer(&[round as f32; 100]).unwrap().read().unwrap(), [round as f32; 100]);
                }
            });
        }
        let buffer = Buffer::new(&program, 64);
        for _ in 0..50 {
            drop(program.submit(|device, list| unsafe { device.cmd_fill_buffer(list, buffer.handle, 0, 64, 7) }));
        }
    });
    Ok(())
}
