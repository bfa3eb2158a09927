//! The device interface's rules on wgpu.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../device_rules/mod.rs"]
mod rules;

use std::sync::{Arc, OnceLock};

use trefoil_codegen::artefact::{Code, Features, GridKind, ParamTransport, Target, Variant};
use trefoil_dsl::device::{
    Command, Device, DeviceKind, DeviceOptions, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource,
};
use trefoil_dsl::error::{Error, Result};

fn wgsl(name: &str) -> &'static str {
    match name {
        "add" => {
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> a: array<f32>;
            @group(0) @binding(1) var<storage, read> b: array<f32>;
            @group(0) @binding(2) var<storage, read_write> c: array<f32>;
            @group(0) @binding(3) var<uniform> params: Params;
            @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { c[i] = (a[i] + b[i]) * params.scale; }
            }"
        }
        "rotate" => {
            "struct Params { len: u32, scale: f32, p0: u32, p1: u32 }
            @group(0) @binding(0) var<storage, read> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            @group(0) @binding(2) var<uniform> params: Params;
            @compute @workgroup_size(64) fn rotate(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = x[(i + 1u) % params.len] * params.scale; }
            }"
        }
        "table" => {
            "struct Params { len: u32, p0: u32, p1: u32, p2: u32, words: array<vec4<u32>, 31> }
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @group(0) @binding(1) var<uniform> params: Params;
            @compute @workgroup_size(64) fn table(@builtin(global_invocation_id) id: vec3<u32>) {
                let i = id.x;
                if (i < params.len) { y[i] = params.words[i % 31u].x; }
            }"
        }
        other => panic!("no kernel {other}"),
    }
}

fn variants(name: &str) -> Vec<Variant> {
    vec![Variant {
        dialect: None,
        target: Target::Wgsl,
        profile: "portable".into(),
        features: Features::NONE,
        matrices: std::borrow::Cow::Borrowed(&[]),
        transport: ParamTransport::Buffer,
        tensor_maps: std::borrow::Cow::Borrowed(&[]),
        entry: name.to_owned().into(),
        code: Code::Text(wgsl(name).into()),
    }]
}

const SUBJECT: rules::Subject =
    rules::Subject { kind: DeviceKind::Wgpu, open: trefoil_wgpu::open, variants, reports_cache: false, cpu: |_| None };

device_rules!(SUBJECT);

/// The same rules on a device that the program opened.
mod shared {
    use super::*;

    fn open(options: &DeviceOptions) -> Result<Device> {
        let (adapter, device, queue) = own()?;
        trefoil_wgpu::open_on(&adapter, &device, &queue, options)
    }

    /// A device of the program's own, on the adapter that trefoil would choose too.
    pub fn own() -> Result<(wgpu::Adapter, wgpu::Device, wgpu::Queue)> {
        // One instance stays, so that the driver's library does.
        static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
        let none = |reason: String| Error::Unavailable { kind: DeviceKind::Wgpu.name(), reason };
        if wgpu::Instance::enabled_backend_features().is_empty() {
            return Err(none("wgpu, which would panic, has no backend".to_owned()));
        }
        let make = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let wanted = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let found = pollster::block_on(INSTANCE.get_or_init(make).request_adapter(&wanted));
        let adapter = found.map_err(|error| none(error.to_string()))?;
        let opened = pollster::block_on(adapter.request_device(&trefoil_wgpu::device_descriptor(&adapter)));
        let (device, queue) = opened.map_err(|error| none(error.to_string()))?;
        Ok((adapter, device, queue))
    }

    const SUBJECT: rules::Subject = rules::Subject { open, ..super::SUBJECT };

    device_rules!(opened SUBJECT);
}

#[test]
fn buffers_of_the_program_are_memory_and_the_other_way_round() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let (adapter, device, queue) = shared::own().unwrap();
    let on = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default()).unwrap();
    let made = |size, usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = made(400_000, usage);
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&vec![1f32; 100_000]));
    let before = on.backend().counters();
    let memory = trefoil_wgpu::memory(&on, &buffer).unwrap();
    // The program's writes come before the list, and what it submits behind sees what the list did.
    let pipeline = on.backend().load(&[rules::kernel(&SUBJECT, "add")], ParamTransport::Value).unwrap().remove(0);
    let sum = on.zeros::<f32>(100_000).unwrap();
    let bound = |memory: &Arc<dyn Memory>| MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() };
    let add = DispatchCommand {
        pipeline,
        bindings: [&memory, &memory, sum.memory()].map(bound).to_vec(),
        params: ParamSource::Value([&100_000u32.to_le_bytes()[..], &2f32.to_le_bytes(), &[0; 8]].concat()),
        groups: GroupSource::Value([100_000u32.div_ceil(64), 1, 1]),
        label: "add".into(),
    };
    on.backend().execute(&[Command::Dispatch(add)]).unwrap();
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(trefoil_wgpu::buffer(&**sum.memory()).unwrap(), 0, &buffer, 0, 400_000);
    queue.submit([encoder.finish()]);
    let mut back = vec![0; 400_000];
    on.backend().read(&bound(&memory), &mut back).unwrap();
    assert!(bytemuck::cast_slice::<u8, f32>(&back).iter().all(|value| *value == 4.0));
    drop(memory);
    let after = on.backend().counters();
    assert_eq!((after.allocations, after.allocated_bytes), (before.allocations + 1, before.allocated_bytes + 400_000));

    let (adapter, device_of_other, queue_of_other) = shared::own().unwrap();
    let options = DeviceOptions::default();
    let other = trefoil_wgpu::open_on(&adapter, &device_of_other, &queue_of_other, &options).unwrap();
    let refused =
        |device: &Device, buffer: &wgpu::Buffer| trefoil_wgpu::memory(device, buffer).unwrap_err().to_string();
    let unreadable = refused(&on, &made(16, usage - wgpu::BufferUsages::COPY_SRC));
    assert!(unreadable.contains("its usage lacks BufferUsages(COPY_SRC)"), "{unreadable}");
    let odd = refused(&on, &made(20, usage));
    assert!(odd.contains("it has 20 bytes, a multiple of 16 is expected"), "{odd}");
    refused(&other, &buffer);
    // Neither device is the worse for it.
    for device in [&other, &on] {
        assert_eq!(device.buffer(&[1f32]).unwrap().read().unwrap(), [1.0]);
    }
    let options = DeviceOptions { validate: true, ..DeviceOptions::default() };
    let refused = trefoil_wgpu::open_on(&adapter, &device, &queue, &options).unwrap_err().to_string();
    assert!(refused.contains("`DeviceOptions::validate` is for devices that trefoil opens"), "{refused}");
}

/// A launch takes a buffer of the program's as elements.
#[test]
fn launches_take_buffers_of_the_program() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let (adapter, device, queue) = shared::own().unwrap();
    let on = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default()).unwrap();
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer =
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 256, usage, mapped_at_creation: false });
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[3f32; 64]));
    let memory = trefoil_wgpu::memory(&on, &buffer).unwrap();
    rules::launches_read_and_write(&SUBJECT, &on, &memory, 3.0);
}

/// What wgpu refuses of a buffer of the program's is an error of the command, and the device goes on.
#[test]
fn what_wgpu_refuses_does_not_lose_the_device() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let (adapter, device, queue) = shared::own().unwrap();
    let on = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default()).unwrap();
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let made = |mapped_at_creation| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 64, usage, mapped_at_creation })
    };
    let buffer = made(true);
    let memory = trefoil_wgpu::memory(&on, &buffer).unwrap();
    let whole = rules::whole(&memory);
    let sum = on.zeros::<f32>(16).unwrap();
    let pipeline = rules::load(&on, &rules::kernel(&SUBJECT, "add"), ParamTransport::Value);
    let add = rules::by_value(&pipeline, &[&memory, &memory, sum.memory()], 16, 1.0);
    let refused = [
        on.backend().execute(std::slice::from_ref(&add)),
        on.backend().write(&whole, &[0; 64]),
        on.backend().read(&whole, &mut [0; 64]),
    ];
    for (result, label) in refused.into_iter().zip(["add", "write", "read"]) {
        let named =
            matches!(&result, Err(Error::Command { label: of, reason }) if of == label && reason.contains("map"));
        assert!(named, "{label}: {result:?}");
    }
    buffer.unmap();
    on.backend().write(&whole, bytemuck::cast_slice(&[2f32; 16])).unwrap();
    on.backend().execute(&[add]).unwrap();
    assert_eq!(sum.read().unwrap(), [4.0; 16]);

    // The same buffer given twice is one piece of memory, and bound for reading and for writing.
    let again = trefoil_wgpu::memory(&on, &buffer).unwrap();
    let twice = rules::by_value(&pipeline, &[&memory, &memory, &again], 16, 1.0);
    let refused = on.backend().execute(&[twice]).unwrap_err().to_string();
    assert!(refused.contains("parts of one piece of memory"), "{refused}");

    // Workgroup counts may lie in a buffer that was not made for them.
    let mut kernel = (*rules::kernel(&SUBJECT, "add")).clone();
    (kernel.grid, kernel.hash[15]) = (GridKind::Volume, 1);
    let pipeline = rules::load(&on, &Arc::new(kernel), ParamTransport::Value);
    let counts = made(false);
    queue.write_buffer(&counts, 0, bytemuck::cast_slice(&[9u32, 1, 1, 1]));
    let counts = trefoil_wgpu::memory(&on, &counts).unwrap();
    let Command::Dispatch(mut add) = rules::by_value(&pipeline, &[&memory, &memory, sum.memory()], 16, 0.5) else {
        panic!("a dispatch")
    };
    add.groups = GroupSource::Memory(MemoryRange { memory: counts, offset: 4, bytes: 12 });
    on.backend().execute(&[Command::Dispatch(add)]).unwrap();
    assert_eq!(sum.read().unwrap(), [2.0; 16]);
}

#[test]
fn kernels_that_do_not_build_are_named() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let device = trefoil_wgpu::open(&DeviceOptions::default()).unwrap();
    let mut kernel = (*rules::kernel(&SUBJECT, "add")).clone();
    kernel.variants.to_mut()[0].code = Code::Text("fn nonsense(".into());
    let refused = device.backend().load(&[std::sync::Arc::new(kernel)], ParamTransport::Value);
    assert!(matches!(&refused, Err(Error::Build { kernel, .. }) if kernel == "add"), "{refused:?}");
    // The device still works.
    device.backend().load(&[rules::kernel(&SUBJECT, "add")], ParamTransport::Value).unwrap();
}

/// Nobody tells trefoil that a device of the program's is gone; the next wait or read finds it, without a panic, and nothing is read that was never computed.
#[test]
fn a_device_that_the_program_destroyed_is_lost() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let open = || {
        let (adapter, device, queue) = shared::own().unwrap();
        (trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default()).unwrap(), device)
    };
    let (on, device) = open();
    let buffer = on.buffer(&[1f32; 64]).unwrap();
    on.wait().unwrap();
    device.destroy();
    let found = buffer.read();
    assert!(matches!(found, Err(Error::Lost { .. })), "{found:?}");
    let (on, device) = open();
    device.destroy();
    let waited = on.wait();
    assert!(matches!(waited, Err(Error::Lost { .. })), "{waited:?}");
    assert!(matches!(on.zeros::<f32>(4), Err(Error::Lost { .. })));
    // What was under way may have come before, and is right then.
    let (on, device) = open();
    let begin = || on.buffer(&[1f32; 64]).unwrap().read_later().unwrap();
    let (taken, dropped) = (begin(), begin());
    device.destroy();
    drop(dropped);
    let taken = taken.wait();
    let is_right = matches!(&taken, Ok(found) if *found == [1.0; 64]);
    assert!(is_right || matches!(&taken, Err(Error::Lost { .. })), "{taken:?}");
}

/// wgpu calls the program's functions from within trefoil's calls. What these ask of trefoil is refused, where it would wait for the call around it.
#[test]
fn calls_from_within_a_call_are_refused() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let (adapter, device, queue) = shared::own().unwrap();
    let on = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default()).unwrap();
    let buffer = on.buffer(&[1f32; 64]).unwrap();
    let (said, told) = std::sync::mpsc::channel();
    let within = on.clone();
    queue.on_submitted_work_done(move || said.send(within.buffer(&[2f32]).map(drop)).unwrap());
    on.wait().unwrap();
    let refused = told.try_recv().unwrap().unwrap_err().to_string();
    assert!(refused.contains("this thread is within a call of the same device"), "{refused}");
    // It is over, and the device goes on.
    assert_eq!(buffer.read().unwrap(), [1.0; 64]);
}
