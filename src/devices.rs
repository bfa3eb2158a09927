//! Opening devices: [`open`] and [`open_by_name`] open one, and [`list`] one device of each kind. [`adapters`] names all that a kind has, of which [`DeviceOptions::adapter`] asks for one.

use trefoil_dsl::device::DeviceOptions;
use trefoil_dsl::{Device, DeviceKind, Error, Result};

/// The device of a kind that was opened, or why there is none.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The kind.
    pub kind: DeviceKind,
    /// The open device, or why there is none.
    pub device: Result<Device>,
}

/// One listing for each kind, in the order of [`DeviceKind::ALL`]; opens one device of each kind that is there, as [`open`] does. Of several adapters of a kind it has one: [`adapters`] names them all.
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
        missing => Err(not_built(missing)),
    }
}

/// The names of the adapters of a kind, at the positions by which [`DeviceOptions::adapter`] may ask for them; no device is opened.
///
/// ```
/// use trefoil::{DeviceKind, DeviceOptions, devices};
///
/// # fn main() -> trefoil::Result<()> {
/// for (position, name) in devices::adapters(DeviceKind::Cpu)?.iter().enumerate() {
///     println!("{position}: {name}");
/// }
/// // By position, or by a part of the name.
/// let options = DeviceOptions { adapter: Some("0".to_owned()), ..DeviceOptions::default() };
/// let device = devices::open(DeviceKind::Cpu, &options)?;
/// # assert_eq!(devices::adapters(DeviceKind::Cpu)?, [device.properties().name.clone()]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The kind is not compiled in, its driver is missing, or it has no usable adapter.
pub fn adapters(kind: DeviceKind) -> Result<Vec<String>> {
    match kind {
        #[cfg(feature = "cpu")]
        DeviceKind::Cpu => trefoil_cpu::adapters(),
        #[cfg(feature = "wgpu")]
        DeviceKind::Wgpu => trefoil_wgpu::adapters(),
        #[cfg(feature = "vulkan")]
        DeviceKind::Vulkan => trefoil_vulkan::adapters(),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => trefoil_cuda::adapters(),
        #[cfg(not(all(feature = "cpu", feature = "wgpu", feature = "vulkan", feature = "cuda")))]
        missing => Err(not_built(missing)),
    }
}

/// What is answered for a kind that is not compiled in.
#[cfg(not(all(feature = "cpu", feature = "wgpu", feature = "vulkan", feature = "cuda")))]
fn not_built(kind: DeviceKind) -> Error {
    Error::Unavailable {
        kind: kind.name(),
        reason: format!("this program was built without the feature `{}` of trefoil", kind.name()),
    }
}

/// Opens the device of that name: `cpu`, `wgpu`, `vulkan`, `cuda`, or `auto`, in any case of its letters. `auto` is an order of kinds, not a measurement: the first of CUDA, Vulkan and wgpu that this machine has, but never a processor that
/// plays a GPU, and else the CPU. A kind is passed over only if it is not there ([`Error::Unavailable`]); what else keeps a device from opening is an error.
///
/// With an `adapter` in the options, `auto` is the first kind that has one of that name, whatever it is. Where a GPU is there and cannot do what the options ask for (`subgroup_size`, `validate`), `auto` goes on to the next GPU and not to the
/// CPU.
///
/// # Errors
/// There is no kind of that name, and the error lists the names; no kind has such an adapter, and the error lists those that there are; GPUs are there and cannot do what the options ask for; or as [`open`].
pub fn open_by_name(name: &str, options: &DeviceOptions) -> Result<Device> {
    if let Ok(kind) = name.parse::<DeviceKind>() {
        return open(kind, options);
    }
    if !name.eq_ignore_ascii_case("auto") {
        let names = DeviceKind::ALL.map(DeviceKind::name).join(", ");
        return Err(Error::Unavailable { kind: "such", reason: format!("`{name}` is none of auto, {names}") });
    }
    let is_wanted = |device: &Device| options.adapter.is_some() || !device.properties().software;
    // Adapters of other names, and what the first GPU said that cannot do what is asked for.
    let (mut others, mut refused) = (Vec::new(), None);
    for kind in [DeviceKind::Cuda, DeviceKind::Vulkan, DeviceKind::Wgpu] {
        match open(kind, options) {
            Ok(device) if is_wanted(&device) => return Ok(device),
            Ok(_) => {}
            Err(Error::NoSuchAdapter { present, .. }) => others.push(format!("{kind} {present}")),
            Err(error @ Error::Unavailable { .. }) => {
                if opens_without(kind, options).is_some_and(|device| is_wanted(&device)) {
                    refused.get_or_insert(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = refused {
        return Err(error);
    }
    let last = open(DeviceKind::Cpu, options);
    if let Err(Error::NoSuchAdapter { present, .. }) = &last {
        others.push(format!("{} {present}", DeviceKind::Cpu));
    }
    let is_another = matches!(last, Err(Error::NoSuchAdapter { .. })) || !cfg!(feature = "cpu");
    match &options.adapter {
        Some(asked) if is_another && !others.is_empty() => {
            Err(Error::NoSuchAdapter { kind: "usable", asked: asked.clone(), present: others.join("; ") })
        }
        _ => last,
    }
}

/// The device of a kind without the options for which it may say that it is not there, if some are set.
fn opens_without(kind: DeviceKind, options: &DeviceOptions) -> Option<Device> {
    if options.subgroup_size.is_none() && !options.validate {
        return None;
    }
    open(kind, &DeviceOptions { subgroup_size: None, validate: false, ..options.clone() }).ok()
}
