//! A graph of trefoil's on a Vulkan device of the program's own, through ash, between commands of the program. Nothing goes by way of the host, but for the check.
//!
//! ```text
//! cargo run -p trefoil-interop --bin ash_graph
//! ```

#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "Vulkan is unsafe from end to end; the page reads as Vulkan does"
)]

use std::error::Error;
use std::sync::{Arc, Mutex};

use trefoil::graph::{ElementType, Executable, Extents, Model, Options};
use trefoil::vulkan::ash::{self, vk};
use trefoil::{DeviceOptions, MemoryRange, vulkan};
use trefoil_interop::edges::{INNER, SIZE, check, graph, image};

fn main() -> Result<(), Box<dyn Error>> {
    let Ok(entry) = (unsafe { ash::Entry::load() }) else {
        println!("not run: no Vulkan loader");
        return Ok(());
    };
    let version = vk::API_VERSION_1_3;
    let application = vk::ApplicationInfo::default().api_version(version);
    let create = vk::InstanceCreateInfo::default().application_info(&application);
    let instance = unsafe { entry.create_instance(&create, None)? };
    let Some(physical) = unsafe { instance.enumerate_physical_devices()? }.into_iter().next() else {
        println!("not run: no Vulkan device");
        return Ok(());
    };
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    let family = u32::try_from(family.ok_or("no queue computes")?)?;

    // The program's device, with what kernels can use of it; a renderer adds what it needs.
    let mut features = unsafe { vulkan::device_features(&entry, &instance, physical, version)? };
    let extensions = features.extension_names();
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
    let device = unsafe { instance.create_device(physical, &features.push_onto(create), None)? };

    // Whoever submits holds the lock of the queue.
    let queue = Arc::new(Mutex::new(unsafe { device.get_device_queue(family, 0) }));
    let lock = queue.clone();
    let opened = vulkan::OpenedDevice {
        entry: &entry,
        instance: &instance,
        physical,
        device: &device,
        enabled: &features,
        family,
        queue: Box::new(move |submit| submit(*lock.lock().unwrap_or_else(|error| error.into_inner()))),
    };
    let shared = unsafe { vulkan::open_on(opened, &DeviceOptions::default())? };
    let executable = Executable::compile(&graph()?, &Model::new(), &shared, &Options::default())?;

    // Three buffers: what the host sees, the frame, and the result.
    let kinds = unsafe { instance.get_physical_device_memory_properties(physical) };
    let buffer = |elements: usize, wanted: vk::MemoryPropertyFlags| -> Result<_, Box<dyn Error>> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let bytes = (elements * size_of::<f32>()) as u64;
        let buffer = unsafe { device.create_buffer(&vk::BufferCreateInfo::default().size(bytes).usage(usage), None)? };
        let wants = unsafe { device.get_buffer_memory_requirements(buffer) };
        let fits = |i: &u32| {
            wants.memory_type_bits & (1 << i) != 0 && kinds.memory_types[*i as usize].property_flags.contains(wanted)
        };
        let kind = (0..kinds.memory_type_count).find(fits).ok_or("no memory of that kind")?;
        let allocate = vk::MemoryAllocateInfo::default().allocation_size(wants.size).memory_type_index(kind);
        let memory = unsafe { device.allocate_memory(&allocate, None)? };
        unsafe { device.bind_buffer_memory(buffer, memory, 0)? };
        Ok((buffer, memory, bytes))
    };
    let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let host = buffer(SIZE * SIZE, visible)?;
    let frame = buffer(SIZE * SIZE, vk::MemoryPropertyFlags::DEVICE_LOCAL)?;
    let result = buffer(INNER * INNER, vk::MemoryPropertyFlags::DEVICE_LOCAL)?;
    let place = unsafe { device.map_memory(host.1, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())? }.cast::<f32>();
    unsafe { place.copy_from_nonoverlapping(image().as_ptr(), SIZE * SIZE) };

    // Commands of the program's: here copies, which need no barrier towards those of trefoil's.
    let commands = vk::CommandPoolCreateInfo::default().queue_family_index(family);
    let commands = unsafe { device.create_command_pool(&commands, None)? };
    let allocate = vk::CommandBufferAllocateInfo::default().command_pool(commands).command_buffer_count(2);
    let lists = unsafe { device.allocate_command_buffers(&allocate)? };
    let submit = |list: vk::CommandBuffer, from: vk::Buffer, to: vk::Buffer, bytes: u64| unsafe {
        device.begin_command_buffer(list, &vk::CommandBufferBeginInfo::default())?;
        device.cmd_copy_buffer(list, from, to, &[vk::BufferCopy::default().size(bytes)]);
        let seen = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let (copy, host) = (vk::PipelineStageFlags::TRANSFER, vk::PipelineStageFlags::HOST);
        device.cmd_pipeline_barrier(list, copy, host, vk::DependencyFlags::empty(), &seen, &[], &[]);
        device.end_command_buffer(list)?;
        let queue = queue.lock().unwrap_or_else(|error| error.into_inner());
        device.queue_submit(*queue, &[vk::SubmitInfo::default().command_buffers(&[list])], vk::Fence::null())
    };
    // Stands for a pass that draws the frame.
    submit(lists[0], host.0, frame.0, frame.2)?;

    let whole = |(buffer, _, bytes): (vk::Buffer, vk::DeviceMemory, u64)| -> trefoil::Result<MemoryRange> {
        // The buffers outlive the executable.
        let memory = unsafe { vulkan::memory(&shared, buffer, bytes, ())? };
        Ok(MemoryRange { memory, offset: 0, bytes })
    };
    let extents = Extents::new();
    let run = executable.prepare(&extents).memory("image", ElementType::F32, whole(frame)?);
    run.take_memory("edges", ElementType::F32, whole(result)?).run()?;

    // Stands for a pass that shows the result.
    submit(lists[1], result.0, host.0, result.2)?;
    let mut edges = vec![0f32; INNER * INNER];
    unsafe {
        device.queue_wait_idle(*queue.lock().unwrap_or_else(|error| error.into_inner()))?;
        place.copy_to_nonoverlapping(edges.as_mut_ptr(), edges.len());
    }
    let name = shared.properties().name.clone();
    // What trefoil made goes before the device.
    drop((executable, shared));
    unsafe {
        device.destroy_command_pool(commands, None);
        for (buffer, memory, _) in [host, frame, result] {
            device.destroy_buffer(buffer, None);
            device.free_memory(memory, None);
        }
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
    check(&edges)?;
    println!("a graph on {name}: right");
    Ok(())
}
