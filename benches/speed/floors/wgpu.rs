//! The floor through wgpu: a write, a pass, a copy to memory that is mapped.

use std::sync::mpsc::channel;

use trefoil::artefact::{Code, Features, ParamTransport, Target};
use wgpu::util::DeviceExt;

use super::{Floor, increased, params};
use crate::Outcome;

/// What is made once.
pub struct Program {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    x: wgpu::Buffer,
    y: wgpu::Buffer,
    back: wgpu::Buffer,
}

impl Program {
    /// On the adapter of that name.
    pub fn new(adapter: &str) -> Outcome<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let found = adapters.into_iter().find(|known| known.get_info().name == adapter);
        let adapter = found.ok_or_else(|| format!("wgpu finds no adapter `{adapter}`"))?;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;

        let kernel = &increased::KERNEL;
        let variant = kernel.variant(Target::Wgsl, Features::NONE, ParamTransport::Buffer)?;
        let Code::Text(text) = &variant.code else { return Err("WGSL is a text".into()) };
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(text.as_ref().into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(&kernel.name),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let number = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 4, usage, mapped_at_creation: false })
        };
        let x = number(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
        let y = number(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let back = number(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let block = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: None,
            contents: bytemuck::bytes_of(&params()),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let entries: Vec<_> = (0u32..)
            .zip([&x, &y, &block])
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        Ok(Self { device, queue, pipeline, group, x, y, back })
    }
}

impl Floor for Program {
    fn run(&mut self, x: f32) -> Outcome<f32> {
        self.queue.write_buffer(&self.x, 0, &x.to_le_bytes());
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&self.y, 0, &self.back, 0, 4);
        self.queue.submit([encoder.finish()]);
        let (sender, receiver) = channel();
        self.back.map_async(wgpu::MapMode::Read, .., move |mapped| drop(sender.send(mapped)));
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        receiver.recv()??;
        let y = {
            let mapped = self.back.get_mapped_range(..)?;
            mapped.first_chunk().copied().map(f32::from_le_bytes)
        };
        self.back.unmap();
        y.ok_or_else(|| "fewer than four bytes are mapped".into())
    }
}
