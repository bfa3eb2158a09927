//! A graph of trefoil's on a wgpu device of the program's own, between commands of the program: what a renderer does with a network. Nothing goes by way of the host.
//!
//! ```text
//! cargo run -p trefoil-interop --bin wgpu_graph
//! ```

use std::error::Error;

use trefoil::graph::{ElementType, Executable, Extents, Model, Options};
use trefoil::wgpu::wgpu;
use trefoil::{DeviceOptions, MemoryRange};
use trefoil_interop::edges::{INNER, SIZE, check, graph, image};

fn main() -> Result<(), Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Ok(adapter) = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) else {
        println!("not run: wgpu finds no adapter");
        return Ok(());
    };
    // The program's device, with what kernels can use of the adapter; a renderer adds what it needs.
    let (device, queue) = pollster::block_on(adapter.request_device(&trefoil::wgpu::device_descriptor(&adapter)))?;
    let shared = trefoil::wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default())?;

    let executable = Executable::compile(&graph()?, &Model::new(), &shared, &Options::default())?;

    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = |elements: usize, usage| {
        let size = (elements * size_of::<f32>()) as u64;
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let (frame, result) = (buffer(SIZE * SIZE, usage), buffer(INNER * INNER, usage));
    // Stands for a pass that draws the frame.
    queue.write_buffer(&frame, 0, bytemuck::cast_slice(&image()));

    let whole = |buffer: &wgpu::Buffer| -> trefoil::Result<MemoryRange> {
        Ok(MemoryRange { memory: trefoil::wgpu::memory(&shared, buffer)?, offset: 0, bytes: buffer.size() })
    };
    let extents = Extents::new();
    let run = executable.prepare(&extents).memory("image", ElementType::F32, whole(&frame)?);
    run.take_memory("edges", ElementType::F32, whole(&result)?).run()?;

    // Stands for a pass that shows the result.
    let back = buffer(INNER * INNER, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&result, 0, &back, 0, result.size());
    queue.submit([encoder.finish()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    back.map_async(wgpu::MapMode::Read, .., move |mapped| drop(sender.send(mapped)));
    device.poll(wgpu::PollType::wait_indefinitely())?;
    receiver.recv()??;
    let view = back.get_mapped_range(..)?;
    check(bytemuck::cast_slice(&view))?;
    println!("a graph on {}: right", adapter.get_info().name);
    Ok(())
}
