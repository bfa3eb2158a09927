//! The floor through ash: a command list that is recorded once, in memory that host and device see.

#![allow(unsafe_code, reason = "Vulkan is unsafe from end to end")]

use std::ffi::CString;
use std::ptr::NonNull;

use ash::vk;
use trefoil::artefact::{Code, Features, ParamTransport, Target};

use super::{Floor, increased, params};
use crate::Outcome;

/// What is made once; the process is over before any of it need be given back.
pub struct Program {
    device: ash::Device,
    queue: vk::Queue,
    lists: [vk::CommandBuffer; 1],
    fence: vk::Fence,
    x: NonNull<f32>,
    y: NonNull<f32>,
    _entry: ash::Entry,
}

/// The device of that name, with its first family of queues that computes.
fn physical(instance: &ash::Instance, name: &str) -> Outcome<(vk::PhysicalDevice, u32)> {
    // SAFETY: the instance lives, and the devices are its own.
    let found = unsafe { instance.enumerate_physical_devices()? }.into_iter().find(|device| {
        // SAFETY: as above, of one of them.
        let properties = unsafe { instance.get_physical_device_properties(*device) };
        properties.device_name_as_c_str().is_ok_and(|known| known.to_bytes() == name.as_bytes())
    });
    let device = found.ok_or_else(|| format!("Vulkan has no device `{name}`"))?;
    // SAFETY: as above.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    let family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    Ok((device, u32::try_from(family.ok_or("no queue computes")?)?))
}

/// A buffer of one number in memory that the host sees, of the first of these kinds that there is; and where the host sees it.
fn number(
    device: &ash::Device,
    kinds: &vk::PhysicalDeviceMemoryProperties,
    wishes: [vk::MemoryPropertyFlags; 2],
) -> Outcome<(vk::Buffer, NonNull<f32>)> {
    let create = vk::BufferCreateInfo::default().size(4).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    // SAFETY: the device lives; buffer and memory are its own, the memory is of a kind that the buffer takes and is mapped once.
    unsafe {
        let buffer = device.create_buffer(&create, None)?;
        let wants = device.get_buffer_memory_requirements(buffer);
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let of = |wish: vk::MemoryPropertyFlags| {
            (0..kinds.memory_type_count).find(|i| {
                let has = kinds.memory_types[*i as usize].property_flags;
                wants.memory_type_bits & (1 << i) != 0 && has.contains(visible | wish)
            })
        };
        let kind = wishes.into_iter().find_map(of).ok_or("no memory that the host sees")?;
        let allocate = vk::MemoryAllocateInfo::default().allocation_size(wants.size).memory_type_index(kind);
        let memory = device.allocate_memory(&allocate, None)?;
        device.bind_buffer_memory(buffer, memory, 0)?;
        let place = device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
        Ok((buffer, NonNull::new(place.cast()).ok_or("memory is mapped nowhere")?))
    }
}

/// The kernel's pipeline for two buffers, with its layouts.
fn pipeline(device: &ash::Device) -> Outcome<(vk::Pipeline, vk::PipelineLayout, vk::DescriptorSetLayout)> {
    let kernel = &increased::KERNEL;
    let variant = kernel.variant(Target::Spirv, Features::NONE, ParamTransport::Value)?;
    let Code::Spirv(bytes) = &variant.code else { return Err("SPIR-V is no text".into()) };
    let words = ash::util::read_spv(&mut std::io::Cursor::new(bytes))?;
    let name = CString::new(kernel.name.as_bytes())?;
    let compute = vk::ShaderStageFlags::COMPUTE;
    let binding = |binding| {
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        vk::DescriptorSetLayoutBinding::default()
            .binding(binding)
            .descriptor_type(kind)
            .descriptor_count(1)
            .stage_flags(compute)
    };
    let bindings = [binding(0), binding(1)];
    let push = [vk::PushConstantRange::default().stage_flags(compute).size(kernel.params.size)];
    // SAFETY: the device lives, and the layouts are those that the kernel's metadata tells.
    unsafe {
        let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let sets = [device.create_descriptor_set_layout(&set, None)?];
        let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&push);
        let layout = device.create_pipeline_layout(&layout, None)?;
        let module = device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&words), None)?;
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(compute).module(module).name(&name);
        let create = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
        let made = device.create_compute_pipelines(vk::PipelineCache::null(), &create, None);
        let pipeline = made.map_err(|(_, error)| error)?.into_iter().next().ok_or("no pipeline was made")?;
        Ok((pipeline, layout, sets[0]))
    }
}

/// A set with two buffers.
fn bound(
    device: &ash::Device,
    layout: vk::DescriptorSetLayout,
    buffers: [vk::Buffer; 2],
) -> Outcome<vk::DescriptorSet> {
    let kind = vk::DescriptorType::STORAGE_BUFFER;
    let sizes = [vk::DescriptorPoolSize::default().ty(kind).descriptor_count(2)];
    let layouts = [layout];
    // SAFETY: the device lives, and layout and buffers are its own.
    unsafe {
        let pool = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let pool = device.create_descriptor_pool(&pool, None)?;
        let allocate = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = device.allocate_descriptor_sets(&allocate)?.into_iter().next().ok_or("no set was made")?;
        for (binding, buffer) in (0u32..).zip(buffers) {
            let info = [vk::DescriptorBufferInfo::default().buffer(buffer).range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(binding)
                .descriptor_type(kind)
                .buffer_info(&info);
            device.update_descriptor_sets(&[write], &[]);
        }
        Ok(set)
    }
}

impl Program {
    /// On the device of that name.
    pub fn new(name: &str) -> Outcome<Self> {
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        // SAFETY: the library is Vulkan's loader; what is made by it lives as long as the entry, which the program holds.
        unsafe {
            let entry = ash::Entry::load()?;
            let instance = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&instance, None)?;
            let (physical, family) = physical(&instance, name)?;
            let mut features = vk::PhysicalDeviceVulkan12Features::default()
                .vulkan_memory_model(true)
                .vulkan_memory_model_device_scope(true);
            let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
            let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
            let device = instance.create_device(physical, &create, None)?;
            let queue = device.get_device_queue(family, 0);
            let kinds = instance.get_physical_device_memory_properties(physical);

            let any = vk::MemoryPropertyFlags::empty();
            let (x_buffer, x) = number(&device, &kinds, [vk::MemoryPropertyFlags::DEVICE_LOCAL, any])?;
            let (y_buffer, y) = number(&device, &kinds, [vk::MemoryPropertyFlags::HOST_CACHED, any])?;
            let (pipeline, layout, set_layout) = pipeline(&device)?;
            let set = bound(&device, set_layout, [x_buffer, y_buffer])?;

            let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
            let pool = device.create_command_pool(&pool, None)?;
            let allocate = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            let list = device.allocate_command_buffers(&allocate)?.into_iter().next().ok_or("no list was made")?;
            let (compute, host) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
            let block = params();
            device.begin_command_buffer(list, &vk::CommandBufferBeginInfo::default())?;
            device.cmd_bind_pipeline(list, vk::PipelineBindPoint::COMPUTE, pipeline);
            device.cmd_bind_descriptor_sets(list, vk::PipelineBindPoint::COMPUTE, layout, 0, &[set], &[]);
            device.cmd_push_constants(list, layout, vk::ShaderStageFlags::COMPUTE, 0, bytemuck::bytes_of(&block));
            device.cmd_dispatch(list, 1, 1, 1);
            let visible = [vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::SHADER_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ)];
            device.cmd_pipeline_barrier(list, compute, host, vk::DependencyFlags::empty(), &visible, &[], &[]);
            device.end_command_buffer(list)?;
            let fence = device.create_fence(&vk::FenceCreateInfo::default(), None)?;
            Ok(Self { device, queue, lists: [list], fence, x, y, _entry: entry })
        }
    }
}

impl Floor for Program {
    fn run(&mut self, x: f32) -> Outcome<f32> {
        let submit = [vk::SubmitInfo::default().command_buffers(&self.lists)];
        // SAFETY: the numbers are mapped for as long as the program lives, and the device has none of them before it is told to run or once the fence is signalled.
        unsafe {
            self.x.as_ptr().write_volatile(x);
            self.device.queue_submit(self.queue, &submit, self.fence)?;
            while !self.device.get_fence_status(self.fence)? {
                std::hint::spin_loop();
            }
            self.device.reset_fences(&[self.fence])?;
            Ok(self.y.as_ptr().read_volatile())
        }
    }
}
