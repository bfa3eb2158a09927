//! What a physical device is and allows, as data.

use std::ffi::CStr;

use ash::vk;
use trefoil_codegen::artefact::{Feature, Features, MatrixProduct, MatrixScalar};
use trefoil_dsl::device::{DeviceKind, Limits, Properties};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::BINDING_MULTIPLE;

use crate::features::{BFLOAT16, BFLOAT16_COMPONENT, DeviceFeatures, ShaderBfloat16Features};
use crate::instance::unavailable;

/// Pieces of memory up to this size are mapped where device memory can be.
const DIRECT_BYTES: u64 = 256 * 1024;
/// Bytes of outputs that kernels write to memory of the host: a read of device memory takes the host one to three microseconds for each 16 bytes, a copy by the device with its barrier some four.
const NEAR_HOST: u64 = 4096;

/// A physical device that can be opened.
pub(crate) struct Adapter {
    /// The handle.
    pub(crate) physical: vk::PhysicalDevice,
    /// Its name.
    pub(crate) name: String,
    /// What kind of hardware it is.
    pub(crate) kind: vk::PhysicalDeviceType,
    /// What callers may know.
    pub(crate) properties: Properties,
    /// What only this crate needs.
    pub(crate) traits: Traits,
    /// What a device of it is made with, or was.
    pub(crate) features: DeviceFeatures,
}

/// The functions by which a physical device is asked.
#[derive(Clone, Copy)]
pub(crate) struct Api<'a> {
    /// The loader's.
    pub(crate) entry: &'a ash::Entry,
    /// The instance's.
    pub(crate) instance: &'a ash::Instance,
    /// The version that the instance was made for.
    pub(crate) version: u32,
}

/// What only this crate needs to know of a device.
#[derive(Clone, Debug)]
pub(crate) struct Traits {
    /// The family of the one queue.
    pub(crate) family: u32,
    /// Bytes of push constants.
    pub(crate) push_constant_bytes: u32,
    /// Nanoseconds of one tick of the device's clock; 0 if the queue has none.
    pub(crate) tick: f64,
    /// The bits of a timestamp that count.
    pub(crate) timestamp_mask: u64,
    /// Whether pipelines may require full subgroups.
    pub(crate) full_subgroups: bool,
    /// Whether pipelines may require a size of subgroups.
    pub(crate) required_sizes: bool,
    /// The most subgroups of a workgroup in a pipeline that requires a size.
    pub(crate) max_subgroups: u32,
    /// The size that every pipeline requires, if one was asked for.
    pub(crate) required_subgroup: Option<u32>,
    /// Whether pipelines report whether a cache served them.
    pub(crate) feedback: bool,
    /// Whether pipelines say whether the driver checks accesses to buffers.
    pub(crate) chooses_robustness: bool,
    /// Whether compilers keep infinities, NaNs and the sign of zero if a module asks for it, in floats of 32 and of 64 bits.
    pub(crate) keeps_what_is_no_number: [bool; 2],
    /// Bytes of the largest buffer of any memory; [`Limits::max_allocation_bytes`] is of the device's.
    pub(crate) max_buffer_bytes: u64,
    /// Memory up to this size is made host-visible on the device.
    pub(crate) direct_bytes: u64,
    /// Whether a short wait may spin: not on a device that computes on the processor.
    pub(crate) spins: bool,
    /// Names the driver's build, for the pipeline cache.
    pub(crate) driver_key: Vec<u8>,
}

/// The adapters that can be opened, in the loader's order.
///
/// # Errors
/// There is none; the reason says for each adapter what it lacks.
pub(crate) fn usable(api: Api<'_>) -> Result<Vec<Adapter>> {
    // SAFETY: the instance is alive.
    let all = unsafe { api.instance.enumerate_physical_devices() }
        .map_err(|error| unavailable(format!("the Vulkan loader lists no devices: {error}")))?;
    let mut adapters = Vec::new();
    let mut reasons = Vec::new();
    for physical in all {
        // SAFETY: the instance listed the device.
        match unsafe { describe(api, physical, None) } {
            Ok(adapter) => adapters.push(adapter),
            Err(reason) => reasons.push(reason),
        }
    }
    if adapters.is_empty() {
        let reason = if reasons.is_empty() {
            "the Vulkan loader is there, but no driver offers a device".to_owned()
        } else {
            reasons.join("; ")
        };
        return Err(unavailable(reason));
    }
    Ok(adapters)
}

/// How much an adapter is to be preferred.
pub(crate) fn rank(kind: vk::PhysicalDeviceType) -> u32 {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => 4,
        vk::PhysicalDeviceType::INTEGRATED_GPU => 3,
        vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
        vk::PhysicalDeviceType::CPU => 0,
        _ => 1,
    }
}

fn text(chars: Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    chars.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Describes a physical device, or says why it cannot be used. A logical device that is open has no more features than it was made with, and one queue family to use.
///
/// # Safety
/// `physical` is a device of the instance.
pub(crate) unsafe fn describe(
    api: Api<'_>,
    physical: vk::PhysicalDevice,
    opened: Option<(&DeviceFeatures, u32)>,
) -> Result<Adapter, String> {
    let instance = api.instance;
    // SAFETY: the caller's promise.
    let basic = unsafe { instance.get_physical_device_properties(physical) };
    let name = text(basic.device_name_as_c_str());
    let version = basic.api_version.min(api.version);
    if version < vk::API_VERSION_1_2 {
        let (offers, version) = match basic.api_version < vk::API_VERSION_1_2 {
            true => ("offers", basic.api_version),
            false => ("is used by an instance for", api.version),
        };
        return Err(format!(
            "{name} {offers} Vulkan {}.{}, and 1.2 is needed",
            vk::api_version_major(version),
            vk::api_version_minor(version)
        ));
    }
    let is_1_3 = version >= vk::API_VERSION_1_3;
    // SAFETY: as above, and the version is that of both.
    let mut features = unsafe { DeviceFeatures::of(instance, physical, version) }
        .map_err(|error| format!("{name} lists no extensions: {error}"))?;
    if let Some((enabled, _)) = opened {
        features = features.and(enabled);
    }
    let (int64, float64) = (features.core.shader_int64 == vk::TRUE, features.core.shader_float64 == vk::TRUE);
    let storage_16bit = features.vulkan_11.storage_buffer16_bit_access == vk::TRUE;
    let int64_atomics = int64
        && features.vulkan_12.shader_buffer_int64_atomics == vk::TRUE
        && features.vulkan_12.shader_shared_int64_atomics == vk::TRUE;
    let integer_dot = features.vulkan_13.shader_integer_dot_product == vk::TRUE;

    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut identity = vk::PhysicalDeviceIDProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut maintenance_3 = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut maintenance_4 = vk::PhysicalDeviceMaintenance4Properties::default();
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut floats = vk::PhysicalDeviceFloatControlsProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut driver)
        .push_next(&mut identity)
        .push_next(&mut subgroup)
        .push_next(&mut floats)
        .push_next(&mut maintenance_3);
    if is_1_3 {
        properties = properties.push_next(&mut maintenance_4).push_next(&mut sizes);
    }
    // SAFETY: as above; every structure of the chain belongs to a version that the device has.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    // SAFETY: as above.
    let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
    // SAFETY: as above.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };

    let mut missing = Vec::new();
    if features.vulkan_12.timeline_semaphore == vk::FALSE {
        missing.push("timeline semaphores (`vulkan_12.timeline_semaphore`)");
    }
    if features.vulkan_12.vulkan_memory_model == vk::FALSE {
        missing.push("the Vulkan memory model (`vulkan_12.vulkan_memory_model`)");
    }
    let compute = |family: &vk::QueueFamilyProperties| family.queue_flags.contains(vk::QueueFlags::COMPUTE);
    let family = match opened {
        Some((_, family)) => {
            let at = usize::try_from(family).unwrap_or(usize::MAX);
            if !families.get(at).is_some_and(compute) {
                let count = families.len();
                return Err(format!("queue family {family} of {name}, which has {count}, is none that computes"));
            }
            Some(at)
        }
        // A queue that only computes starts what it is given sooner than one that draws as well.
        None => {
            let wanted: [&dyn Fn(&vk::QueueFamilyProperties) -> bool; 3] = [
                &|family| family.timestamp_valid_bits > 0 && !family.queue_flags.contains(vk::QueueFlags::GRAPHICS),
                &|family| family.timestamp_valid_bits > 0,
                &|_| true,
            ];
            wanted.iter().find_map(|is_wanted| families.iter().position(|family| compute(family) && is_wanted(family)))
        }
    };
    if family.is_none() {
        missing.push("a queue that computes");
    }
    let (Some(family), true) = (family, missing.is_empty()) else {
        let lacks = if opened.is_some() { "was opened without" } else { "lacks" };
        return Err(format!("{name} {lacks} {}", missing.join(" and ")));
    };

    // The memory model has them.
    let mut kernel_features = Features::of(&[Feature::Ordering, Feature::Strict]);
    let wanted = vk::SubgroupFeatureFlags::BASIC
        | vk::SubgroupFeatureFlags::ARITHMETIC
        | vk::SubgroupFeatureFlags::VOTE
        | vk::SubgroupFeatureFlags::SHUFFLE
        | vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE
        | vk::SubgroupFeatureFlags::BALLOT;
    if subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE)
        && subgroup.supported_operations.contains(wanted)
    {
        kernel_features = kernel_features.union(Features::of(&[Feature::Subgroups]));
    }
    if storage_16bit {
        kernel_features = kernel_features.union(Features::of(&[Feature::F16Storage]));
    }

    for (has, feature) in [
        (int64, Feature::Int64),
        (float64, Feature::Float64),
        (int64_atomics, Feature::Int64Atomics),
        (integer_dot, Feature::IntegerDot),
    ] {
        if has {
            kernel_features = kernel_features.union(Features::of(&[feature]));
        }
    }

    let matrices = if features.has(ash::khr::cooperative_matrix::NAME)
        && features.cooperative_matrix.cooperative_matrix == vk::TRUE
        && storage_16bit
        // Modules with matrices ask for rounding to the nearest where halves are made for them.
        && floats.shader_rounding_mode_rte_float16 == vk::TRUE
        && floats.rounding_mode_independence != vk::ShaderFloatControlsIndependence::NONE
        && features.vulkan_12.shader_float16 == vk::TRUE
        && kernel_features.has(Feature::Subgroups)
    {
        let bfloat16 = features.has(BFLOAT16)
            && features.shader_bfloat16.shader_bfloat16_type == vk::TRUE
            && features.shader_bfloat16.shader_bfloat16_cooperative_matrix == vk::TRUE;
        products(api, physical, bfloat16).map_err(|error| format!("{name} lists no matrices: {error}"))?
    } else {
        Vec::new()
    };
    if matrices.is_empty() {
        // Halves are computed with in matrices alone.
        features.vulkan_12.shader_float16 = vk::FALSE;
        features.cooperative_matrix = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        features.extensions.retain(|name| *name != ash::khr::cooperative_matrix::NAME);
    }
    if !matrices.is_empty() {
        kernel_features = kernel_features.union(Features::of(&[Feature::CooperativeMatrices]));
    }
    if matrices.iter().any(|product| product.input == MatrixScalar::BF16) {
        kernel_features = kernel_features.union(Features::of(&[Feature::Bf16Matrices]));
    } else {
        features.shader_bfloat16 = ShaderBfloat16Features::default();
        features.extensions.retain(|name| *name != BFLOAT16);
    }

    let limits = &basic.limits;
    let largest_heap = |flags: vk::MemoryPropertyFlags| {
        memory
            .memory_types_as_slice()
            .iter()
            .filter(|t| t.property_flags.contains(flags))
            .map(|t| memory.memory_heaps_as_slice().get(t.heap_index as usize).map_or(0, |heap| heap.size))
            .max()
            .unwrap_or(0)
    };
    let device_heap = largest_heap(vk::MemoryPropertyFlags::DEVICE_LOCAL);
    let mapped_heap = largest_heap(
        vk::MemoryPropertyFlags::DEVICE_LOCAL
            | vk::MemoryPropertyFlags::HOST_VISIBLE
            | vk::MemoryPropertyFlags::HOST_COHERENT,
    );
    let max_buffer = if is_1_3 { maintenance_4.max_buffer_size } else { u64::MAX };
    let max_allocation_bytes = maintenance_3.max_memory_allocation_size.min(max_buffer).min(device_heap);
    let storage_buffers =
        limits.max_per_stage_descriptor_storage_buffers.min(limits.max_descriptor_set_storage_buffers);
    let software = basic.device_type == vk::PhysicalDeviceType::CPU;
    let timestamp_bits = families[family].timestamp_valid_bits;
    let full_subgroups =
        features.vulkan_13.subgroup_size_control == vk::TRUE && features.vulkan_13.compute_full_subgroups == vk::TRUE;
    let chosen = sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let subgroup_sizes = match (full_subgroups, chosen) {
        (false, _) => None,
        (true, true) => Some(sizes.min_subgroup_size..=sizes.max_subgroup_size),
        (true, false) => Some(subgroup.subgroup_size..=subgroup.subgroup_size),
    };
    let mut driver_key = Vec::new();
    driver_key.extend(identity.device_uuid);
    driver_key.extend(identity.driver_uuid);
    driver_key.extend(basic.pipeline_cache_uuid);
    driver_key.extend(basic.driver_version.to_le_bytes());
    driver_key.extend(name.as_bytes());
    let driver_name = text(driver.driver_name_as_c_str());
    let driver_info = text(driver.driver_info_as_c_str());
    Ok(Adapter {
        physical,
        kind: basic.device_type,
        properties: Properties {
            kind: DeviceKind::Vulkan,
            name: name.clone(),
            driver: format!(
                "{driver_name} {driver_info} (Vulkan {}.{})",
                vk::api_version_major(basic.api_version),
                vk::api_version_minor(basic.api_version)
            ),
            software,
            features: kernel_features,
            matrices,
            subgroup_sizes,
            matrix_library: None,
            limits: Limits {
                max_allocation_bytes,
                max_binding_bytes: u64::from(limits.max_storage_buffer_range) / BINDING_MULTIPLE * BINDING_MULTIPLE,
                binding_alignment: limits.min_storage_buffer_offset_alignment.max(BINDING_MULTIPLE),
                // One of them may hold the parameter block.
                max_storage_buffers: storage_buffers.saturating_sub(1),
                max_workgroup_bytes: limits.max_compute_shared_memory_size,
                max_invocations: limits.max_compute_work_group_invocations,
                max_workgroup_size: limits.max_compute_work_group_size,
                max_groups: limits.max_compute_work_group_count,
                // Pipelines do not allow varying sizes, so that every subgroup has this one.
                min_subgroup: subgroup.subgroup_size,
                max_subgroup: subgroup.subgroup_size,
                shares_memory_within_dispatch: true,
                near_host_bytes: if opened.is_some() { 0 } else { NEAR_HOST },
            },
        },
        traits: Traits {
            // There are far fewer families than 2^32.
            family: family as u32,
            push_constant_bytes: limits.max_push_constants_size,
            tick: if timestamp_bits == 0 { 0.0 } else { f64::from(limits.timestamp_period) },
            timestamp_mask: 1u64.checked_shl(timestamp_bits).map_or(u64::MAX, |bit| bit - 1),
            full_subgroups,
            required_sizes: full_subgroups && chosen,
            max_subgroups: sizes.max_compute_workgroup_subgroups,
            required_subgroup: None,
            feedback: is_1_3,
            chooses_robustness: features.has(ash::ext::pipeline_robustness::NAME)
                && features.pipeline_robustness.pipeline_robustness == vk::TRUE,
            max_buffer_bytes: max_buffer,
            direct_bytes: if mapped_heap >= device_heap { DIRECT_BYTES } else { 0 },
            spins: !software,
            keeps_what_is_no_number: [
                floats.shader_signed_zero_inf_nan_preserve_float32 == vk::TRUE,
                floats.shader_signed_zero_inf_nan_preserve_float64 == vk::TRUE,
            ],
            driver_key,
        },
        features,
        name,
    })
}

/// The products of matrices that a subgroup of the device computes, without those of integers, and of `bf16` if kernels may use them.
fn products(api: Api<'_>, physical: vk::PhysicalDevice, bfloat16: bool) -> Result<Vec<MatrixProduct>, vk::Result> {
    let extension = ash::khr::cooperative_matrix::Instance::new(api.entry, api.instance);
    // SAFETY: the device has the extension.
    let all = unsafe { extension.get_physical_device_cooperative_matrix_properties(physical) }?;
    let scalar = |ty: vk::ComponentTypeKHR| match ty {
        vk::ComponentTypeKHR::FLOAT16 => Some(MatrixScalar::F16),
        vk::ComponentTypeKHR::FLOAT32 => Some(MatrixScalar::F32),
        BFLOAT16_COMPONENT if bfloat16 => Some(MatrixScalar::BF16),
        _ => None,
    };
    let product = |one: &vk::CooperativeMatrixPropertiesKHR<'_>| {
        let same = one.a_type == one.b_type && one.c_type == one.result_type && one.scope == vk::ScopeKHR::SUBGROUP;
        let (input, accumulator) = (scalar(one.a_type)?, scalar(one.c_type)?);
        let (rows, columns, depth) = (one.m_size, one.n_size, one.k_size);
        same.then_some(MatrixProduct { rows, columns, depth, input, accumulator })
    };
    Ok(all.iter().filter_map(product).collect())
}
