//! A graph of trefoil's on a wgpu device of the program's own, between commands of the program: what a renderer does with a network. Nothing goes by way of the host.
//!
//! ```text
//! cargo run -p trefoil-interop --bin wgpu_graph
//! ```

use std::error::Error;

use trefoil::device::{DeviceOptions, MemoryRange};
use trefoil::graph::ops::pull::convolution::Slide;
use trefoil::graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
use trefoil::kernels::activation::Activation;

/// Rows and columns of an image.
const SIZE: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Ok(adapter) = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) else {
        println!("not run: wgpu finds no adapter");
        return Ok(());
    };
    // The program's device, with what kernels can use of the adapter; a renderer adds what it needs.
    let (device, queue) = pollster::block_on(adapter.request_device(&trefoil_wgpu::device_descriptor(&adapter)))?;
    let shared = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default())?;

    // Softened edges of a grey image.
    let mut g = Graph::new();
    let image = g.input("image", ElementType::F32, [1, 1, SIZE, SIZE].map(Dim::from))?;
    let kernel =
        g.constant(ElementType::F32, [1, 1, 3, 3].map(Dim::from), &[-1f32, -1., -1., -1., 8., -1., -1., -1., -1.])?;
    let edges = g.conv(image, kernel, None, &[Slide::default(), Slide::default()], 1, Activation::Tanh)?;
    g.output("edges", edges)?;
    let executable = Executable::compile(&g, &Model::new(), &shared, &Options::default())?;

    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = |elements: usize, usage| {
        let size = (elements * size_of::<f32>()) as u64;
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let inner = SIZE - 2;
    let (frame, result) = (buffer(SIZE * SIZE, usage), buffer(inner * inner, usage));
    // Stands for a pass that draws the frame: a bright square.
    let bright = |i: usize| (16..48).contains(&(i / SIZE)) && (16..48).contains(&(i % SIZE));
    let pixels: Vec<f32> = (0..SIZE * SIZE).map(|i| f32::from(u8::from(bright(i)))).collect();
    queue.write_buffer(&frame, 0, bytemuck::cast_slice(&pixels));

    let whole = |buffer: &wgpu::Buffer| -> trefoil::Result<MemoryRange> {
        Ok(MemoryRange { memory: trefoil_wgpu::memory(&shared, buffer)?, offset: 0, bytes: buffer.size() })
    };
    let extents = Extents::new();
    let run = executable.prepare(&extents).memory("image", ElementType::F32, whole(&frame)?);
    run.take_memory("edges", ElementType::F32, whole(&result)?).run()?;

    // Stands for a pass that shows the result.
    let back = buffer(inner * inner, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&result, 0, &back, 0, result.size());
    queue.submit([encoder.finish()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    back.map_async(wgpu::MapMode::Read, .., move |mapped| drop(sender.send(mapped)));
    device.poll(wgpu::PollType::wait_indefinitely())?;
    receiver.recv()??;
    let view = back.get_mapped_range(..)?;
    let edges: &[f32] = bytemuck::cast_slice(&view);
    let at = |row: usize, column: usize| edges[(row - 1) * inner + column - 1];
    // A corner of the square has five dark neighbours, an edge three; inside and outside all are alike.
    let expected = [((16, 16), 5f32.tanh()), ((16, 30), 3f32.tanh()), ((30, 30), 0.0), ((5, 5), 0.0)];
    for ((row, column), value) in expected {
        let got = at(row, column);
        if (got - value).abs() > 1e-5 {
            return Err(format!("pixel {row}, {column} is {got}, not {value}").into());
        }
    }
    println!("a graph on {}: right", adapter.get_info().name);
    Ok(())
}
