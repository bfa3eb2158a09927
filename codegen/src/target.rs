//! Targets, optional features and profiles.
//!
//! A *target* is a language that kernels are emitted in. A *feature* is something a device of that target may or may not
//! have. A *profile* is a target together with the features and limits that one emitted text relies on: a kernel has one
//! variant per profile that makes a difference to it, and a device picks the first variant whose features it has.

use serde::{Deserialize, Serialize};

/// A language that kernels are emitted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// WebGPU shading language, run by wgpu and browsers.
    Wgsl,
    /// SPIR-V 1.5 (Vulkan 1.2 and later) with the Vulkan memory model, which that version contains.
    Spirv,
    /// CUDA C without headers, compiled by NVRTC.
    Cuda,
    /// Rust, compiled with the author's crate.
    Cpu,
}

impl Target {
    /// Every target, in the order in which they are listed for people.
    pub const ALL: [Self; 4] = [Self::Wgsl, Self::Spirv, Self::Cuda, Self::Cpu];

    /// The name used in attributes, file names and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wgsl => "wgsl",
            Self::Spirv => "spirv",
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
        }
    }

    /// The size of every subgroup of every device of the target, if they have one in common.
    pub const fn subgroup_size(self) -> Option<u32> {
        match self {
            Self::Cuda => Some(32),
            Self::Wgsl | Self::Spirv | Self::Cpu => None,
        }
    }

    /// Whether what lies in memory can be indexed by integers of 64 bits.
    pub const fn has_wide_indices(self) -> bool {
        !matches!(self, Self::Wgsl)
    }

    /// Whether its compilers can be told where a read belongs.
    pub const fn has_volatile_reads(self) -> bool {
        matches!(self, Self::Spirv | Self::Cuda)
    }

    /// The target of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// Who reads a WGSL text. They agree on the language and not on its extensions: browsers want subgroups enabled by a directive that naga
/// does not know, and have no types of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dialect {
    /// naga, and with it wgpu outside of browsers.
    #[default]
    Naga,
    /// Browsers, as the WebGPU standard has it.
    Browsers,
}

/// What a device reads: a target's language, and in WGSL whose dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Language {
    /// The target.
    pub target: Target,
    /// Means nothing but in WGSL.
    pub dialect: Dialect,
}

impl Language {
    /// What browsers read.
    pub const BROWSERS: Self = Self { target: Target::Wgsl, dialect: Dialect::Browsers };
}

impl From<Target> for Language {
    /// The target's language; WGSL as naga reads it.
    fn from(target: Target) -> Self {
        Self { target, dialect: Dialect::Naga }
    }
}

/// Invocations of a subgroup on the CPU, unless a device is opened with another number.
pub const CPU_SUBGROUP_SIZE: u32 = 8;

/// Rows and columns of the blocks that larger matrices are held in where a device has no larger ones.
pub const MATRIX_BLOCK: u32 = 8;

/// Invocations of a workgroup that [`Feature::LargeWorkgroups`] stands for.
pub const LARGE_WORKGROUP: u32 = 1024;
/// Bytes of workgroup memory that [`Feature::LargeWorkgroups`] stands for.
pub const LARGE_WORKGROUP_BYTES: u32 = 32 * 1024;
/// Bytes of workgroup memory that a kernel with matrices may ask for in WGSL and SPIR-V: a device with matrix units has more of the memory that feeds them. One that lacks it says so when the kernel is loaded.
const MATRIX_WORKGROUP_BYTES: u32 = 48 * 1024;
/// Bytes that a kernel may ask for on CUDA and the CPU which requires matrices or large workgroups: what one multiprocessor of a Hopper gives a workgroup. A device that lacks them says so when the kernel is loaded.
const ASKED_WORKGROUP_BYTES: u32 = 227 * 1024;
/// The most invocations of a workgroup along z.
pub const MOST_ALONG_Z: u32 = 64;

/// The most invocations that a subgroup has on any device; a power of two, as every size is.
pub const MOST_SUBGROUP: u32 = 128;

/// An optional capability of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Feature {
    /// Operations over subgroups.
    Subgroups = 0,
    /// 16-bit floats loaded from and stored to storage buffers directly; without it they travel packed in 32-bit words.
    F16Storage = 1,
    /// Arithmetic of `i64` and `u64`, which CUDA and the CPU always have; without it they are moved, converted and compared for equality.
    Int64 = 2,
    /// Arithmetic of `f64`, which CUDA and the CPU always have; without it they are moved.
    Float64 = 3,
    /// Atomics and fences that order other memory, which every target has but WGSL.
    Ordering = 4,
    /// Matrices that a subgroup holds together, with products of them; the shapes are the device's own. A device that has them has subgroups, and
    /// 16-bit floats in memory.
    CooperativeMatrices = 5,
    /// Atomics of `i64` and `u64`, which CUDA and the CPU always have and WGSL never; on the kernel it requires [`Feature::Int64`] too.
    Int64Atomics = 6,
    /// Sums and products that are rounded one by one, as [`crate::ir::Precision::Strict`] wants them, which every target has but WGSL.
    Strict = 7,
    /// Sums of the products of four bytes in one instruction, which CUDA and the CPU always have. Nothing needs it: where a device lacks it the products are made one by
    /// one, and WGSL leaves it to who reads the text.
    IntegerDot = 8,
    /// Matrices of `bf16`, which not every Vulkan device has that has matrices. A kernel with such matrices that requires [`Feature::CooperativeMatrices`] requires this too.
    Bf16Matrices = 9,
    /// Workgroups of up to [`LARGE_WORKGROUP`] invocations and [`LARGE_WORKGROUP_BYTES`] of memory, which CUDA and the CPU always have, as have most GPUs but those of phones. A CUDA or CPU kernel that requires it may ask for more memory
    /// (227 KiB), which is there if the device says so.
    LargeWorkgroups = 10,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 11] = [
        Self::Subgroups,
        Self::F16Storage,
        Self::Int64,
        Self::Float64,
        Self::Ordering,
        Self::CooperativeMatrices,
        Self::Int64Atomics,
        Self::Strict,
        Self::IntegerDot,
        Self::Bf16Matrices,
        Self::LargeWorkgroups,
    ];

    /// Whether every device of a target has it, so that kernels need not ask.
    pub const fn always(self, target: Target) -> bool {
        match self {
            Self::Subgroups | Self::CooperativeMatrices | Self::Bf16Matrices => false,
            Self::F16Storage
            | Self::Int64
            | Self::Float64
            | Self::Int64Atomics
            | Self::IntegerDot
            | Self::LargeWorkgroups => {
                matches!(target, Target::Cuda | Target::Cpu)
            }
            Self::Ordering | Self::Strict => !self.never(target),
        }
    }

    /// Whether no device of a target has it, because its language cannot say it.
    pub const fn never(self, target: Target) -> bool {
        let lacking = matches!(
            self,
            Self::Ordering
                | Self::CooperativeMatrices
                | Self::Int64Atomics
                | Self::Strict
                | Self::IntegerDot
                | Self::Bf16Matrices
        );
        lacking && matches!(target, Target::Wgsl)
    }

    /// The name used in profiles, which name files and snapshots.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Subgroups => "subgroups",
            Self::F16Storage => "f16",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::Ordering => "ordering",
            Self::CooperativeMatrices => "matrices",
            Self::Int64Atomics => "atomic64",
            Self::Strict => "strict",
            Self::IntegerDot => "dot",
            Self::Bf16Matrices => "bf16",
            Self::LargeWorkgroups => "large",
        }
    }

    /// What browsers call it; `None` if they have nothing of the kind, or have limits in its place, as for [`Feature::LargeWorkgroups`].
    pub const fn in_webgpu(self) -> Option<&'static str> {
        match self {
            Self::Subgroups => Some("subgroups"),
            Self::F16Storage => Some("shader-f16"),
            Self::Int64
            | Self::Float64
            | Self::Ordering
            | Self::CooperativeMatrices
            | Self::Int64Atomics
            | Self::Strict
            | Self::IntegerDot
            | Self::Bf16Matrices
            | Self::LargeWorkgroups => None,
        }
    }

    /// The name of its Rust variant, by which kernels name it, as in `target::has(Feature::Subgroups)` and in `requires(..)`, and messages too.
    pub const fn variant_name(self) -> &'static str {
        match self {
            Self::Subgroups => "Subgroups",
            Self::F16Storage => "F16Storage",
            Self::Int64 => "Int64",
            Self::Float64 => "Float64",
            Self::Ordering => "Ordering",
            Self::CooperativeMatrices => "CooperativeMatrices",
            Self::Int64Atomics => "Int64Atomics",
            Self::Strict => "Strict",
            Self::IntegerDot => "IntegerDot",
            Self::Bf16Matrices => "Bf16Matrices",
            Self::LargeWorkgroups => "LargeWorkgroups",
        }
    }

    /// The feature whose Rust variant has that name.
    pub fn from_variant_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.variant_name() == name)
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Features(pub u32);

impl Features {
    /// No feature.
    pub const NONE: Self = Self(0);

    /// The set of `features`.
    pub const fn of(features: &[Feature]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < features.len() {
            bits |= 1 << features[i] as u32;
            i += 1;
        }
        Self(bits)
    }

    /// What a device of that target may have.
    pub fn of_target(target: Target) -> Self {
        let may: Vec<Feature> = Feature::ALL.into_iter().filter(|feature| !feature.never(target)).collect();
        Self::of(&may)
    }

    /// Whether `feature` is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }

    /// Whether every feature of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set with what its features imply: where there are matrices there are subgroups, and what of the kernel's narrow floats are `with_matrices`.
    #[must_use]
    pub const fn closed(self, with_matrices: Self) -> Self {
        if !self.has(Feature::CooperativeMatrices) {
            return self;
        }
        self.union(Self::of(&[Feature::Subgroups])).union(with_matrices)
    }

    /// How many features the set holds.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The features of the set, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature))
    }
}

/// How launch parameters reach a kernel.
///
/// A launch by hand passes them by value. A recorded schedule keeps whatever may change from run to run in one device
/// buffer of run words, from which its kernels read their parameters, so that nothing is recorded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ParamTransport {
    /// Push constants on Vulkan, a struct by value on CUDA.
    Value,
    /// A range of a device buffer: a storage buffer on Vulkan, a pointer on CUDA. WGSL always has a uniform buffer, which serves
    /// both cases, and is emitted as `Buffer` alone.
    Buffer,
}

/// A target with the features and limits that one emitted text relies on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// The language.
    pub target: Target,
    /// Whose dialect it is, where that makes a difference.
    pub dialect: Option<Dialect>,
    /// What the text may use.
    pub features: Features,
    /// Whether matrices are held in blocks of [`MATRIX_BLOCK`] rows and columns, for devices that list products of these alone.
    pub blocks: bool,
    /// Bytes of workgroup memory that any device of the profile has.
    pub max_workgroup_bytes: u32,
    /// Storage buffers that any device of the profile can bind to one kernel.
    pub max_storage_buffers: u32,
    /// Invocations in a workgroup.
    pub max_invocations: u32,
}

impl Profile {
    /// The profile that every device of `target` has: no optional feature, 8 storage buffers (16 in SPIR-V, 64 on CUDA), 256 invocations and 16 KiB of
    /// workgroup memory (on CUDA and the CPU 1024, and 48 KiB and 32). Vulkan itself promises fewer buffers than any driver for computing has: a device that lacks them says so when the kernel is loaded.
    pub const fn portable(target: Target) -> Self {
        let (max_workgroup_bytes, max_invocations, max_storage_buffers) = match target {
            Target::Cuda => (48 * 1024, LARGE_WORKGROUP, 64),
            Target::Cpu => (LARGE_WORKGROUP_BYTES, LARGE_WORKGROUP, 8),
            Target::Wgsl => (16 * 1024, 256, 8),
            Target::Spirv => (16 * 1024, 256, 16),
        };
        Self {
            target,
            dialect: None,
            features: Features::NONE,
            blocks: false,
            max_workgroup_bytes,
            max_storage_buffers,
            max_invocations,
        }
    }

    /// The portable profile with optional features.
    #[must_use]
    pub const fn with(mut self, features: Features) -> Self {
        self.features = features;
        let large = features.has(Feature::LargeWorkgroups);
        let matrices = features.has(Feature::CooperativeMatrices);
        let asked = match self.target {
            Target::Cuda | Target::Cpu => ASKED_WORKGROUP_BYTES,
            Target::Wgsl | Target::Spirv if matrices => MATRIX_WORKGROUP_BYTES,
            Target::Wgsl | Target::Spirv => LARGE_WORKGROUP_BYTES,
        };
        if (large || matrices) && self.max_workgroup_bytes < asked {
            self.max_workgroup_bytes = asked;
        }
        if large {
            self.max_invocations = LARGE_WORKGROUP;
        }
        self
    }

    /// The most invocations of a workgroup along each axis.
    pub const fn max_along(&self) -> [u32; 3] {
        [self.max_invocations, self.max_invocations, MOST_ALONG_Z]
    }

    /// The same, for the readers of one dialect.
    #[must_use]
    pub const fn in_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// The same, with matrices in blocks.
    #[must_use]
    pub const fn in_blocks(mut self) -> Self {
        self.blocks = true;
        self
    }

    /// `portable`, or the names of the features joined by `-`, after `browsers` where only they read it, before `blocks` where matrices are in such; it is a part of file names.
    pub fn name(&self) -> String {
        let reader = (self.dialect == Some(Dialect::Browsers)).then_some("browsers");
        let blocks = self.blocks.then_some("blocks");
        let names: Vec<_> = reader.into_iter().chain(self.features.iter().map(Feature::name)).chain(blocks).collect();
        if names.is_empty() { "portable".to_owned() } else { names.join("-") }
    }
}
