//! What an adapter is and allows, as data.

use std::sync::OnceLock;

use trefoil_codegen::artefact::{Feature, Features, MatrixProduct};
use trefoil_dsl::device::{DeviceKind, Limits, Properties};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::adapter::without_choice;
use trefoil_dsl::support::check::BINDING_MULTIPLE;

use crate::passthrough;

/// Something that this machine lacks.
pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { kind: DeviceKind::Wgpu.name(), reason: reason.into() }
}

/// The one backend of wgpu that devices are opened on, since kernels are tested there alone.
const BACKEND: wgpu::Backends = wgpu::Backends::VULKAN;

/// wgpu's entry. Without `validate` it checks neither the driver's use nor the numbers of indirect dispatches, which `indirect.rs` does; without `labels` the driver
/// learns no names.
///
/// One instance stays for the life of the process: with the last one the driver's library goes, and NVIDIA's cannot be loaded again
/// more than about ten times.
///
/// # Errors
/// wgpu was built without [`BACKEND`].
pub(crate) fn instance(validate: bool, labels: bool) -> Result<wgpu::Instance> {
    static KEPT: OnceLock<wgpu::Instance> = OnceLock::new();
    built_with(wgpu::Instance::enabled_backend_features())?;
    let make = || {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = BACKEND;
        descriptor.flags = match (validate, labels) {
            (true, _) => wgpu::InstanceFlags::debugging(),
            (false, true) => wgpu::InstanceFlags::DEBUG,
            (false, false) => wgpu::InstanceFlags::empty(),
        };
        wgpu::Instance::new(descriptor)
    };
    KEPT.get_or_init(make);
    Ok(make())
}

/// Checks that the one backend that is used here is among those that wgpu was built with: without any, it panics when an instance is made.
fn built_with(backends: wgpu::Backends) -> Result<()> {
    if backends.contains(BACKEND) {
        return Ok(());
    }
    Err(unavailable("wgpu has no Vulkan backend on this platform, and trefoil opens devices on that backend alone"))
}

/// The adapters, in wgpu's order.
pub(crate) fn usable(instance: &wgpu::Instance) -> Result<Vec<wgpu::Adapter>> {
    let adapters = pollster::block_on(instance.enumerate_adapters(BACKEND));
    if adapters.is_empty() {
        return Err(unavailable(
            "wgpu finds no adapter: a GPU driver (on Linux, Vulkan's loader and a driver) is missing",
        ));
    }
    Ok(adapters)
}

/// How much an adapter is to be preferred.
pub(crate) fn rank(adapter: &wgpu::Adapter) -> u32 {
    match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 4,
        wgpu::DeviceType::IntegratedGpu => 3,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 1,
        wgpu::DeviceType::Cpu => 0,
    }
}

/// The optional features of wgpu that this crate uses, beside those for matrices.
pub(crate) const FEATURES: wgpu::Features = wgpu::Features::SUBGROUP
    .union(wgpu::Features::SHADER_F16)
    .union(wgpu::Features::SHADER_INT64)
    .union(wgpu::Features::SHADER_F64)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::PIPELINE_CACHE);

/// What there is to describe: all that an adapter has, or what a device was opened with.
pub(crate) struct Offer {
    info: wgpu::AdapterInfo,
    features: wgpu::Features,
    limits: wgpu::Limits,
    products: Vec<MatrixProduct>,
}

impl Offer {
    /// All that an adapter has.
    pub(crate) fn of(adapter: &wgpu::Adapter) -> Self {
        let (info, features, limits) = (adapter.get_info(), adapter.features(), adapter.limits());
        Self { info, features, limits, products: passthrough::products(adapter) }
    }

    /// What a device of that adapter was opened with.
    pub(crate) fn opened(adapter: &wgpu::Adapter, device: &wgpu::Device) -> Self {
        let features = device.features();
        let takes_spirv = features.contains(passthrough::wanted());
        let products = if takes_spirv { passthrough::products(adapter) } else { Vec::new() };
        Self { info: adapter.get_info(), features, limits: device.limits(), products }
    }
}

/// What kernels may use of an adapter, by wgpu's names.
const KERNEL_FEATURES: [(wgpu::Features, Feature); 4] = [
    (wgpu::Features::SUBGROUP, Feature::Subgroups),
    (wgpu::Features::SHADER_F16, Feature::F16Storage),
    (wgpu::Features::SHADER_INT64, Feature::Int64),
    (wgpu::Features::SHADER_F64, Feature::Float64),
];

/// The features to open a device with: what the adapter has, without what kernels must not use.
pub(crate) fn required_features(adapter: &wgpu::Adapter, allowed: Features) -> wgpu::Features {
    let refused = KERNEL_FEATURES.into_iter().filter(|(_, feature)| !allowed.contains(Features::of(&[*feature])));
    let said = refused.fold(adapter.features() & FEATURES, |all, (refused, _)| all - refused);
    let takes_spirv =
        allowed.intersection(passthrough::FEATURES) != Features::NONE && !passthrough::products(adapter).is_empty();
    if takes_spirv { said | passthrough::wanted() } else { said }
}

/// The limits to open a device with. Of what a dispatch may use they allow no more than `allowed`, so that wgpu itself refuses the rest, as a browser does.
pub(crate) fn required_limits(adapter: &wgpu::Adapter, allowed: &Limits) -> wgpu::Limits {
    let [x, y, z] = allowed.max_workgroup_size;
    let block = !passthrough::products(adapter).is_empty();
    wgpu::Limits {
        max_storage_buffer_binding_size: allowed.max_binding_bytes,
        max_storage_buffers_per_shader_stage: allowed.max_storage_buffers + u32::from(block),
        max_compute_workgroup_storage_size: allowed.max_workgroup_bytes,
        max_compute_invocations_per_workgroup: allowed.max_invocations,
        max_compute_workgroup_size_x: x,
        max_compute_workgroup_size_y: y,
        max_compute_workgroup_size_z: z,
        max_compute_workgroups_per_dimension: allowed.max_groups.into_iter().fold(0, u32::max),
        ..adapter.limits()
    }
}

/// What callers may know of it.
pub(crate) fn describe(offer: Offer) -> Properties {
    let Offer { info, features, limits, products: matrices } = offer;
    let mut kernel_features = Features::NONE;
    for (wanted, feature) in KERNEL_FEATURES {
        if features.contains(wanted) {
            kernel_features = kernel_features.union(Features::of(&[feature]));
        }
    }
    let takes_spirv = !matrices.is_empty();
    if takes_spirv {
        kernel_features = kernel_features.union(passthrough::FEATURES);
    }
    Properties {
        kind: DeviceKind::Wgpu,
        name: info.name,
        driver: format!("{} {} (wgpu on {})", info.driver, info.driver_info, info.backend),
        software: info.device_type == wgpu::DeviceType::Cpu,
        features: kernel_features,
        matrices,
        subgroup_sizes: without_choice(info.subgroup_min_size, info.subgroup_max_size),
        matrix_library: None,
        limits: Limits {
            max_allocation_bytes: limits.max_buffer_size,
            max_binding_bytes: limits.max_storage_buffer_binding_size / BINDING_MULTIPLE * BINDING_MULTIPLE,
            binding_alignment: u64::from(limits.min_storage_buffer_offset_alignment).max(BINDING_MULTIPLE),
            // In SPIR-V one of them may hold the parameter block.
            max_storage_buffers: limits.max_storage_buffers_per_shader_stage.saturating_sub(u32::from(takes_spirv)),
            max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
            max_invocations: limits.max_compute_invocations_per_workgroup,
            max_workgroup_size: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            max_groups: [limits.max_compute_workgroups_per_dimension; 3],
            min_subgroup: info.subgroup_min_size,
            max_subgroup: info.subgroup_max_size,
            shares_memory_within_dispatch: false,
            near_host_bytes: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_without_the_backend_is_told_so() {
        for lacking in [wgpu::Backends::empty(), wgpu::Backends::METAL | wgpu::Backends::DX12] {
            let refused = built_with(lacking).unwrap_err().to_string();
            assert!(refused.starts_with("no wgpu device: wgpu has no Vulkan backend"), "{refused}");
        }
        built_with(wgpu::Backends::VULKAN | wgpu::Backends::GL).unwrap();
    }
}
