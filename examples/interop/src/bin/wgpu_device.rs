//! A kernel on a wgpu device of the program's own.
//!
//! ```text
//! cargo run -p trefoil-interop --bin wgpu_device
//! ```

use std::error::Error;

use trefoil::artefact::{Code, Features, ParamTransport, Target};
use trefoil_interop::{axpy, check, inputs, params};
use wgpu::util::DeviceExt;

fn main() -> Result<(), Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Ok(adapter) = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) else {
        println!("not run: wgpu finds no adapter");
        return Ok(());
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;

    // The text that wants no optional feature; in WGSL, parameters always lie in a uniform buffer.
    let kernel = &axpy::KERNEL;
    let variant = kernel.variant(Target::Wgsl, Features::NONE, ParamTransport::Buffer)?;
    let Code::Text(text) = &variant.code else { return Err("WGSL is a text".into()) };
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(&kernel.name),
        source: wgpu::ShaderSource::Wgsl(text.as_ref().into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(&kernel.name),
        layout: None,
        module: &module,
        entry_point: Some(&variant.entry),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });

    // Storage buffers take the bindings 0.. in the order of the signature, the parameter block the one after them.
    let (x, y) = inputs();
    let buffer = |contents: &[u8], usage| {
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
    };
    let x = buffer(bytemuck::cast_slice(&x), wgpu::BufferUsages::STORAGE);
    let y = buffer(bytemuck::cast_slice(&y), wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let params = params(2.0);
    let block = buffer(bytemuck::bytes_of(&params), wgpu::BufferUsages::UNIFORM);
    let entries: Vec<_> = [&x, &y, &block]
        .into_iter()
        .enumerate()
        .map(|(i, buffer)| wgpu::BindGroupEntry { binding: i as u32, resource: buffer.as_entire_binding() })
        .collect();
    let layout = pipeline.get_bind_group_layout(0);
    let group =
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });

    let back = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: y.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(params.group_count, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&y, 0, &back, 0, y.size());
    queue.submit([encoder.finish()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    back.map_async(wgpu::MapMode::Read, .., move |mapped| drop(sender.send(mapped)));
    device.poll(wgpu::PollType::wait_indefinitely())?;
    receiver.recv()??;
    check(bytemuck::cast_slice(&back.get_mapped_range(..)?))?;
    println!("{} on {}: right", kernel.name, adapter.get_info().name);
    Ok(())
}
