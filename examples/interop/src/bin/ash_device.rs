//! A kernel on a Vulkan device of the program's own, through ash.
//!
//! ```text
//! cargo run -p trefoil-interop --bin ash_device
//! ```

#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "Vulkan is unsafe from end to end; the page reads as Vulkan does"
)]

use std::error::Error;
use std::ffi::CString;

use ash::vk;
use trefoil::artefact::{Code, Features, ParamTransport, Target};
use trefoil_interop::{axpy, check, inputs, params};

fn main() -> Result<(), Box<dyn Error>> {
    let Ok(entry) = (unsafe { ash::Entry::load() }) else {
        println!("not run: no Vulkan loader");
        return Ok(());
    };
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
    let instance =
        unsafe { entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&application), None)? };
    let Some(physical) = unsafe { instance.enumerate_physical_devices()? }.into_iter().next() else {
        println!("not run: no Vulkan device");
        return Ok(());
    };
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    let family = u32::try_from(family.ok_or("no queue computes")?)?;

    // Every SPIR-V that trefoil emits relies on the Vulkan memory model, and on nothing else that is optional unless its variant says so.
    let mut features =
        vk::PhysicalDeviceVulkan12Features::default().vulkan_memory_model(true).vulkan_memory_model_device_scope(true);
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
    let device = unsafe { instance.create_device(physical, &create, None)? };
    let queue = unsafe { device.get_device_queue(family, 0) };

    let kernel = &axpy::KERNEL;
    let variant = kernel.variant(Target::Spirv, Features::NONE, ParamTransport::Value)?;
    let Code::Spirv(bytes) = &variant.code else { return Err("SPIR-V is no text".into()) };
    let words = ash::util::read_spv(&mut std::io::Cursor::new(bytes))?;
    let name = CString::new(variant.entry.as_bytes())?;

    // Storage buffers take the bindings 0.. of set 0 in the order of the signature; parameters by value are push constants.
    let bindings: Vec<_> = (0..kernel.bindings.len() as u32)
        .map(|binding| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let push = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(kernel.params.size)];
    let set_layout = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    let set_layout = [unsafe { device.create_descriptor_set_layout(&set_layout, None)? }];
    let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_layout).push_constant_ranges(&push);
    let layout = unsafe { device.create_pipeline_layout(&layout, None)? };
    let module = unsafe { device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&words), None)? };
    let stage =
        vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).module(module).name(&name);
    let create = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    let pipelines = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &create, None) };
    let pipeline = pipelines.map_err(|(_, error)| error)?[0];

    // Buffers in memory that the host sees.
    let (x, y) = inputs();
    let kinds = unsafe { instance.get_physical_device_memory_properties(physical) };
    let buffer = |contents: &[f32]| -> Result<(vk::Buffer, vk::DeviceMemory), Box<dyn Error>> {
        let bytes = size_of_val(contents) as u64;
        let create = vk::BufferCreateInfo::default().size(bytes).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        let buffer = unsafe { device.create_buffer(&create, None)? };
        let wants = unsafe { device.get_buffer_memory_requirements(buffer) };
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let fits = |i: &u32| {
            wants.memory_type_bits & (1 << i) != 0 && kinds.memory_types[*i as usize].property_flags.contains(visible)
        };
        let kind = (0..kinds.memory_type_count).find(fits).ok_or("no memory that the host sees")?;
        let allocate = vk::MemoryAllocateInfo::default().allocation_size(wants.size).memory_type_index(kind);
        let memory = unsafe { device.allocate_memory(&allocate, None)? };
        unsafe {
            device.bind_buffer_memory(buffer, memory, 0)?;
            let place = device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            place.cast::<f32>().copy_from_nonoverlapping(contents.as_ptr(), contents.len());
            device.unmap_memory(memory);
        }
        Ok((buffer, memory))
    };
    let buffers = [buffer(&x)?, buffer(&y)?];

    let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(2)];
    let pool = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    let pool = unsafe { device.create_descriptor_pool(&pool, None)? };
    let allocate = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&set_layout);
    let sets = unsafe { device.allocate_descriptor_sets(&allocate)? };
    for (binding, (buffer, _)) in (0u32..).zip(&buffers) {
        let info = [vk::DescriptorBufferInfo::default().buffer(*buffer).range(vk::WHOLE_SIZE)];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(sets[0])
            .dst_binding(binding)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .buffer_info(&info);
        unsafe { device.update_descriptor_sets(&[write], &[]) };
    }

    let params = params(2.0);
    let commands = vk::CommandPoolCreateInfo::default().queue_family_index(family);
    let commands = unsafe { device.create_command_pool(&commands, None)? };
    let allocate = vk::CommandBufferAllocateInfo::default().command_pool(commands).command_buffer_count(1);
    unsafe {
        let lists = device.allocate_command_buffers(&allocate)?;
        let list = lists[0];
        device.begin_command_buffer(list, &vk::CommandBufferBeginInfo::default())?;
        device.cmd_bind_pipeline(list, vk::PipelineBindPoint::COMPUTE, pipeline);
        device.cmd_bind_descriptor_sets(list, vk::PipelineBindPoint::COMPUTE, layout, 0, &sets, &[]);
        device.cmd_push_constants(list, layout, vk::ShaderStageFlags::COMPUTE, 0, bytemuck::bytes_of(&params));
        device.cmd_dispatch(list, params.group_count, 1, 1);
        let visible = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let (compute, host) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
        device.cmd_pipeline_barrier(list, compute, host, vk::DependencyFlags::empty(), &visible, &[], &[]);
        device.end_command_buffer(list)?;
        device.queue_submit(queue, &[vk::SubmitInfo::default().command_buffers(&lists)], vk::Fence::null())?;
        device.queue_wait_idle(queue)?;
    }

    let mut result = vec![0.0f32; y.len()];
    unsafe {
        let place = device.map_memory(buffers[1].1, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
        place.cast::<f32>().copy_to_nonoverlapping(result.as_mut_ptr(), result.len());
        device.unmap_memory(buffers[1].1);
        device.destroy_command_pool(commands, None);
        device.destroy_descriptor_pool(pool, None);
        for (buffer, memory) in buffers {
            device.destroy_buffer(buffer, None);
            device.free_memory(memory, None);
        }
        device.destroy_pipeline(pipeline, None);
        device.destroy_shader_module(module, None);
        device.destroy_pipeline_layout(layout, None);
        device.destroy_descriptor_set_layout(set_layout[0], None);
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
    check(&result)?;
    println!("{} on a Vulkan device: right", kernel.name);
    Ok(())
}
