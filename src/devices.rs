//! What this machine has, and opening it.

use trefoil_dsl::device::DeviceOptions;
use trefoil_dsl::{Device, DeviceKind, Error, Result};

/// A device of this machine, or why there is none of its kind.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The kind.
    pub kind: DeviceKind,
    /// The open device, or why there is none.
    pub device: Result<Device>,
}

/// One listing for each kind, in the order of [`DeviceKind::ALL`]; opens every device that can be opened.
pub fn list(options: &DeviceOptions) -> Vec<Listing> {
    DeviceKind::ALL.into_iter().map(|kind| Listing { kind, device: open(kind, options) }).collect()
}

/// Opens the best device of a kind, or the one that the options name.
///
/// # Errors
/// The kind is not compiled in, its driver is missing, or there is no such device.
#[cfg_attr(
    not(any(feature = "cpu", feature = "wgpu", feature = "vulkan", feature = "cuda")),
    expect(unused_variables, reason = "without any device there is nothing to open")
)]
pub fn open(kind: DeviceKind, options: &DeviceOptions) -> Result<Device> {
    match kind {
        #[cfg(feature = "cpu")]
        DeviceKind::Cpu => trefoil_cpu::open(options),
        #[cfg(feature = "wgpu")]
        DeviceKind::Wgpu => trefoil_wgpu::open(options),
        #[cfg(feature = "vulkan")]
        DeviceKind::Vulkan => trefoil_vulkan::open(options),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => trefoil_cuda::open(options),
        #[cfg(not(all(feature = "cpu", feature = "wgpu", feature = "vulkan", feature = "cuda")))]
        missing => Err(Error::Unavailable {
            kind: missing.name(),
            reason: format!("this program was built without the feature `{}` of trefoil", missing.name()),
        }),
    }
}

/// Opens the device of that name: `cpu`, `wgpu`, `vulkan`, `cuda`, or `auto` for the fastest that there is. `auto` takes CUDA before Vulkan before wgpu, and
/// never a processor that plays a GPU; the CPU device is always there.
///
/// # Errors
/// There is no kind of that name, or as [`open`].
pub fn open_by_name(name: &str, options: &DeviceOptions) -> Result<Device> {
    if let Some(kind) = DeviceKind::ALL.into_iter().find(|kind| kind.name() == name) {
        return open(kind, options);
    }
    if name != "auto" {
        let names = DeviceKind::ALL.map(DeviceKind::name).join(", ");
        return Err(Error::Unavailable { kind: "such", reason: format!("`{name}` is none of auto, {names}") });
    }
    let gpus = [DeviceKind::Cuda, DeviceKind::Vulkan, DeviceKind::Wgpu];
    let real =
        gpus.into_iter().filter_map(|kind| open(kind, options).ok()).find(|device| !device.properties().software);
    real.map_or_else(|| open(DeviceKind::Cpu, options), Ok)
}
