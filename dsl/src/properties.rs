//! What devices are and allow, as data: what a device may do differently is never a method to ask.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use trefoil_codegen::artefact::{Feature, Features, MatrixProduct, Target};
use trefoil_codegen::target::{LARGE_WORKGROUP, LARGE_WORKGROUP_BYTES};

use crate::error::Error;
use crate::product::{LibraryProduct, MatrixLibrary};

/// What kind of device it is, which is also the name by which users ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// The processor, through compiled Rust.
    Cpu,
    /// Any GPU with a Vulkan driver, through wgpu, which is built with that backend alone: there is no Metal and no DX12 yet.
    Wgpu,
    /// Any GPU with a Vulkan driver.
    Vulkan,
    /// NVIDIA GPUs.
    Cuda,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Wgpu, Self::Vulkan, Self::Cuda];

    /// `cpu`, `wgpu`, `vulkan` or `cuda`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wgpu => "wgpu",
            Self::Vulkan => "vulkan",
            Self::Cuda => "cuda",
        }
    }

    /// The language that such a device loads.
    pub const fn target(self) -> Target {
        match self {
            Self::Cpu => Target::Cpu,
            Self::Wgpu => Target::Wgsl,
            Self::Vulkan => Target::Spirv,
            Self::Cuda => Target::Cuda,
        }
    }
}

impl DeviceKind {
    /// Whether kernels get pointers, to which the byte offset of a bound range is added: such a device binds from the exact byte on,
    /// and the parameter [`trefoil_codegen::artefact::ParamRole::Offset`] is 0. Other devices bind from a multiple of
    /// [`Limits::binding_alignment`] on, and the parameter makes up for the rest.
    pub const fn has_pointers(self) -> bool {
        matches!(self, Self::Cpu | Self::Cuda)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of a [`name`](DeviceKind::name), in any case of its letters.
///
/// ```
/// # use trefoil_dsl::DeviceKind;
/// assert_eq!("cuda".parse::<DeviceKind>()?, DeviceKind::Cuda);
/// assert_eq!("CUDA".parse::<DeviceKind>()?, DeviceKind::Cuda);
/// let error = "abacus".parse::<DeviceKind>().unwrap_err().to_string();
/// assert_eq!(error, "no such device: `abacus` is none of cpu, wgpu, vulkan, cuda");
/// # Ok::<(), trefoil_dsl::Error>(())
/// ```
impl FromStr for DeviceKind {
    type Err = Error;

    /// # Errors
    /// [`Error::Unavailable`], which names the four, if `name` is none of them.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Unavailable { kind: "such", reason: format!("`{name}` is none of {names}") }
        })
    }
}

/// What a device is and what it allows, as data.
#[derive(Clone, Debug)]
pub struct Properties {
    /// The kind.
    pub kind: DeviceKind,
    /// The adapter's name, as its driver tells it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether it is a processor that plays a GPU; `auto` never picks such a device.
    pub software: bool,
    /// Optional features that kernels may use.
    pub features: Features,
    /// The products of matrices that kernels may ask for, if [`Feature::CooperativeMatrices`] is among the features; the CPU has every one,
    /// and lists none.
    pub matrices: Vec<MatrixProduct>,
    /// The sizes of subgroups that a kernel may state, from the least to the largest: of the device's choice where it gives one, otherwise the one that all
    /// of its subgroups have. None where they vary and nobody can choose.
    pub subgroup_sizes: Option<RangeInclusive<u32>>,
    /// The library that multiplies matrices for the device's lists ([`Call::Product`](crate::device::Call::Product)), if there is one on this machine.
    pub matrix_library: Option<MatrixLibrary>,
    /// Numbers that launches and plans must respect.
    pub limits: Limits,
}

impl Properties {
    /// The adapter's name with the kind, which tells the devices of one adapter from each other.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.kind.name())
    }

    /// [`Error::OtherDevice`], which names `what`: this is not the device that made it.
    pub fn other_device(&self, what: impl Into<String>) -> Error {
        Error::OtherDevice { what: what.into(), device: self.label() }
    }

    /// Whether the device can promise subgroups of a size.
    pub fn offers_subgroups_of(&self, size: u32) -> bool {
        size.is_power_of_two() && self.subgroup_sizes.as_ref().is_some_and(|sizes| sizes.contains(&size))
    }

    /// Whether reads that a kernel says are `volatile` stay where it has them. WGSL has no word for it, so that devices of wgpu keep them only where they take SPIR-V, as those do that multiply matrices.
    pub fn keeps_volatile_reads(&self) -> bool {
        self.kind != DeviceKind::Wgpu || self.features.contains(Features::of(&[Feature::CooperativeMatrices]))
    }

    /// There is no memory left for the `bytes` bytes that `label` names.
    pub fn out_of_memory(&self, label: &str, bytes: u64) -> Error {
        Error::OutOfMemory { what: format!("`{label}`"), bytes, device: self.name.clone() }
    }

    /// The library that multiplies matrices.
    ///
    /// # Errors
    /// There is none; the message says so.
    pub fn library(&self) -> Result<&MatrixLibrary, String> {
        let missing = || format!("{} has no library that multiplies matrices", self.name);
        self.matrix_library.as_ref().ok_or_else(missing)
    }

    /// Checks that lists of the device may hold a product.
    ///
    /// # Errors
    /// There is no library, or it does not multiply so; the message says why.
    pub fn multiplies(&self, product: &LibraryProduct) -> Result<(), String> {
        self.library()?.refusal(product).map_or(Ok(()), Err)
    }
}

/// Numbers that launches and plans must respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the largest single piece of memory.
    pub max_allocation_bytes: u64,
    /// Bytes of the largest range bound to a kernel.
    pub max_binding_bytes: u64,
    /// A bound range starts at a multiple of this many bytes; 1 on devices that have pointers.
    pub binding_alignment: u64,
    /// Storage buffers that one kernel may bind, the parameter block not counted.
    pub max_storage_buffers: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Invocations in a workgroup.
    pub max_invocations: u32,
    /// Invocations in a workgroup, by axis.
    pub max_workgroup_size: [u32; 3],
    /// Workgroups in a dispatch, by axis.
    pub max_groups: [u32; 3],
    /// The smallest subgroup.
    pub min_subgroup: u32,
    /// The largest subgroup.
    pub max_subgroup: u32,
    /// Whether one dispatch may bind parts of one piece of memory both for reading and for writing. wgpu and browsers refuse
    /// that even for disjoint ranges.
    pub shares_memory_within_dispatch: bool,
    /// Up to so many bytes the host reads sooner if kernels write them to [`Backend::allocate_near_host`](crate::device::Backend::allocate_near_host); 0 where it makes no difference.
    pub near_host_bytes: u64,
}

impl Limits {
    /// Whether workgroups may be as large as [`Feature::LargeWorkgroups`] lets kernels have them: a device whose limits depend on the machine has the feature where this holds.
    pub fn allow_large_workgroups(&self) -> bool {
        let [x, y, _] = self.max_workgroup_size;
        self.max_invocations.min(x).min(y) >= LARGE_WORKGROUP && self.max_workgroup_bytes >= LARGE_WORKGROUP_BYTES
    }
}
