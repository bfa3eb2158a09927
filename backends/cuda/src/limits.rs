//! What a GPU is and allows, as data.

use cudarc::driver::{result, sys};
use trefoil_codegen::artefact::{Feature, Features, MatrixProduct, MatrixScalar, Target};
use trefoil_dsl::device::{DeviceKind, Limits, Properties};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::BINDING_MULTIPLE;

use crate::driver::{message, unavailable};

/// The oldest compute capability that current NVRTC compiles for.
const OLDEST: (i32, i32) = (7, 5);
/// The oldest compute capability with the products that the emitter knows.
const MATRICES: (i32, i32) = (8, 0);
/// Bytes of arguments that any kernel may have.
pub(crate) const ARGUMENT_BYTES: u64 = 4096;
/// Workgroup memory up to this size is declared in the source; beyond it the launch provides it.
pub(crate) const STATIC_WORKGROUP_BYTES: u32 = 48 * 1024;

/// A GPU that can be opened.
pub(crate) struct Adapter {
    /// The driver's handle.
    pub(crate) device: sys::CUdevice,
    /// Its position among the driver's devices.
    pub(crate) ordinal: i32,
    /// What NVRTC compiles for: `sm_90a`.
    pub(crate) architecture: String,
    /// Whether memory can be made and freed in the order of a stream.
    pub(crate) pools: bool,
    /// What callers may know.
    pub(crate) properties: Properties,
}

/// The GPUs that can be opened, in the driver's order. The driver must have been started.
///
/// # Errors
/// There is none; the reason says for each GPU what it lacks.
pub(crate) fn usable() -> Result<Vec<Adapter>> {
    let count = result::device::get_count()
        .map_err(|error| unavailable(format!("the NVIDIA driver lists no GPUs: {}", message(error))))?;
    let mut adapters = Vec::new();
    let mut reasons = Vec::new();
    for ordinal in 0..count {
        match describe(ordinal) {
            Ok(Ok(adapter)) => adapters.push(adapter),
            Ok(Err(reason)) => reasons.push(reason),
            Err(error) => reasons.push(format!("GPU {ordinal}: {}", message(error))),
        }
    }
    if adapters.is_empty() {
        let none = "the NVIDIA driver is there, but no GPU is".to_owned();
        return Err(unavailable(if reasons.is_empty() { none } else { reasons.join("; ") }));
    }
    Ok(adapters)
}

/// The GPU of a context, whose handle the driver gave.
///
/// # Errors
/// It cannot be used; the reason says what it lacks.
pub(crate) fn of_device(device: sys::CUdevice) -> Result<Adapter> {
    let failed =
        |error| unavailable(format!("the NVIDIA driver does not describe the context's GPU: {}", message(error)));
    for ordinal in 0..result::device::get_count().map_err(failed)? {
        if result::device::get(ordinal).map_err(failed)? == device {
            return describe(ordinal).map_err(failed)?.map_err(unavailable);
        }
    }
    Err(unavailable("the NVIDIA driver does not list the context's GPU"))
}

/// What `mma.sync` of 16 by 8 by 16 multiplies, alone or twice.
fn products() -> Vec<MatrixProduct> {
    use MatrixScalar::{BF16, F16, F32};
    let scalars = [(F16, F32), (F16, F16), (BF16, F32)];
    let both = |(input, accumulator)| {
        [16, 8].map(|columns| MatrixProduct { rows: 16, columns, depth: 16, input, accumulator })
    };
    scalars.into_iter().flat_map(both).collect()
}

/// Describes a GPU, or says why it cannot be used.
fn describe(ordinal: i32) -> Result<Result<Adapter, String>, result::DriverError> {
    use sys::CUdevice_attribute as Attribute;
    let device = result::device::get(ordinal)?;
    let name = result::device::get_name(device)?;
    // SAFETY: the driver gave the device.
    let attribute = |attribute: Attribute| unsafe { result::device::get_attribute(device, attribute) };
    let number = |wanted: Attribute| attribute(wanted).map(|value| u32::try_from(value).unwrap_or(0));
    let capability = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    if capability < OLDEST {
        return Ok(Err(format!(
            "{name} has compute capability {}.{}, and {}.{} is needed",
            capability.0, capability.1, OLDEST.0, OLDEST.1
        )));
    }
    // Matrix instructions of Hopper are in the architecture's own variant.
    let suffix = if capability == (9, 0) { "a" } else { "" };
    // SAFETY: the driver gave the device.
    let memory = unsafe { result::device::total_mem(device) }? as u64;
    let mut version = 0;
    // SAFETY: the driver was started.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    let all = Features::of_target(Target::Cuda);
    let without = Features::of(&[Feature::CooperativeMatrices, Feature::Bf16Matrices]);
    let (features, matrices) =
        if capability >= MATRICES { (all, products()) } else { (Features(all.0 & !without.0), Vec::new()) };
    let warp = number(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    Ok(Ok(Adapter {
        device,
        ordinal,
        architecture: format!("sm_{}{}{suffix}", capability.0, capability.1),
        pools: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        properties: Properties {
            kind: DeviceKind::Cuda,
            name,
            driver: format!(
                "CUDA {}.{}, compute capability {}.{}",
                version / 1000,
                version % 1000 / 10,
                capability.0,
                capability.1
            ),
            software: false,
            features,
            matrices,
            subgroup_sizes: Some(warp..=warp),
            matrix_library: crate::library::is_present().then_some(crate::library::LIBRARY),
            limits: Limits {
                max_allocation_bytes: memory,
                max_binding_bytes: memory / BINDING_MULTIPLE * BINDING_MULTIPLE,
                binding_alignment: 1,
                // Each takes a pointer of the arguments; half of them are left to parameters.
                max_storage_buffers: (ARGUMENT_BYTES / 2 / size_of::<u64>() as u64) as u32,
                max_workgroup_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
                max_invocations: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                max_workgroup_size: [
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
                ],
                max_groups: [
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                    number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
                ],
                min_subgroup: warp,
                max_subgroup: warp,
                shares_memory_within_dispatch: true,
                near_host_bytes: 0,
            },
        },
    }))
}
