//! Workgroup counts that lie in memory. Where one of them is above the device's limits, nothing is to run, and drivers do not promise that: a small kernel looks at the counts before the dispatch reads them.
//!
//! wgpu has such a check too (`InstanceFlags::VALIDATION_INDIRECT_CALL`). That goes before each indirect dispatch, those of run words among them, which were checked on the host; makes two bind groups for every piece of memory; and allows
//! no buffer of more than 4 GiB.

use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::GROUP_BYTES;

use crate::device::Shared;
use crate::memory::WgpuMemory;

/// Counts as they may be dispatched. Commands of a queue follow each other, so that all dispatches of a device share one place.
#[derive(Debug)]
pub(crate) struct CheckedCounts {
    /// The three counts, or zeros.
    pub(crate) buffer: wgpu::Buffer,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
}

impl CheckedCounts {
    /// Those of a device.
    pub(crate) fn new(shared: &Shared) -> Result<Self> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::INDIRECT | wgpu::BufferUsages::COPY_DST;
        let buffer = shared.buffer(GROUP_BYTES as u64, usage, "workgroup counts")?;
        let [x, y, z] = shared.state.properties.limits.max_groups;
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> counts: array<u32, 3>;\n\
             @compute @workgroup_size(1) fn check_counts() {{\n    \
                 if counts[0] > {x}u || counts[1] > {y}u || counts[2] > {z}u {{\n        \
                     counts = array<u32, 3>();\n    \
                 }}\n\
             }}\n"
        );
        let label = Some("check of workgroup counts");
        let made = shared.scoped(|| {
            let source = wgpu::ShaderSource::Wgsl(source.into());
            let module = shared.device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source });
            let pipeline = shared.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: None,
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            let bindings = shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
            });
            (pipeline, bindings)
        });
        let (pipeline, bindings) =
            made.map_err(|error| shared.state.driver("making the check of workgroup counts", error))?;
        Ok(Self { buffer, pipeline, bindings })
    }

    /// Takes counts from memory for the dispatch that comes next; no pass is under way.
    pub(crate) fn take(&self, from: &MemoryRange, shared: &Shared, encoder: &mut wgpu::CommandEncoder) -> Result<()> {
        let memory = WgpuMemory::of(&from.memory, shared)?;
        encoder.copy_buffer_to_buffer(&memory.buffer, from.offset, &self.buffer, 0, GROUP_BYTES as u64);
        let descriptor =
            wgpu::ComputePassDescriptor { label: Some("check of workgroup counts"), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bindings, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        Ok(())
    }
}
