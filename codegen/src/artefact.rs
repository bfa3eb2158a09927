//! What a compiled kernel is: the artefact that macros build into the author's crate and that late instances build at run time.
//!
//! A [`Kernel`] is plain data. For listed instances every part is a constant in the author's binary (`Cow::Borrowed`); for kernels
//! built while a graph is compiled the parts are owned. Devices need nothing else to run it, and neither do programs that bring
//! a device of their own.
//!
//! # Binding and parameter layout
//! * Storage buffers take bindings `0..bindings.len()` of group (descriptor set) 0, in the order of the author's signature.
//! * Parameters are one block of [`Params::size`] bytes, the same bytes on every target, little-endian, described field by field.
//!   With [`ParamTransport::Buffer`] the block is binding `bindings.len()`: a uniform buffer with a dynamic offset on WGSL, a
//!   storage buffer with a dynamic offset on Vulkan, a pointer argument after the buffers' on CUDA. With
//!   [`ParamTransport::Value`] it is the push-constant range on Vulkan and a struct by value after the buffers on CUDA.
//! * Beside the author's own parameters the block holds hidden ones ([`ParamRole`]): the length and the first element of each
//!   buffer, the extents and strides of views, and the number of workgroups asked for.
//! * A variant with [`Variant::tensor_maps`] takes these as one more argument, by value, behind the block. What they say of matrices is derived
//!   from the block ([`TensorMap::shape`]).
//! * A device that has pointers (CUDA, CPU) adds the byte offset to the pointer and passes [`ParamRole::Offset`] as 0.
//! * Every binding covers a multiple of 16 bytes.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::ir::{
    BinaryOperator, Format, IndexWidth, MatrixNeed, MatrixProduct, MatrixRole, MatrixScalar, Piece, Style,
};
pub use crate::share::ShareStep;
pub use crate::site::{Reported, Site, SiteValue};
pub use crate::target::{Dialect, Feature, Features, Language, ParamTransport, Target};
pub use crate::tensor_map::{MapShape, TensorMap, Term};
pub use crate::vectors::Vectors;

/// A string that is a constant or owned.
pub type Text = Cow<'static, str>;
/// A list that is a constant or owned.
pub type List<T> = Cow<'static, [T]>;

/// Names this state of the compiler: what another one made of a kernel may be something else.
pub const SOURCES: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TREFOIL_COMPILER"));

/// The most elements of a binding, and the largest extent of a view, of an instance whose indices have 32 bits. A launch keeps to it, so that a step of up to
/// 2^16 from below a length does not pass the largest index.
pub const MOST_ELEMENTS: u32 = u32::MAX - 0xffff;

/// A kernel instance, compiled for every target that it lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// The instance's name: the author's, followed by the values of its generics (`matmul_f32_64`) and `index64` if its indices are 64 bits wide. The
    /// entry point has it too, where the target's language has no other meaning for it ([`Variant::entry`]).
    pub name: Text,
    /// The author's documentation.
    pub doc: Text,
    /// Storage buffers, in signature order.
    pub bindings: List<Binding>,
    /// The parameter block.
    pub params: Params,
    /// Specialisation constants, with the values that a pipeline is made with.
    pub constants: List<Constant>,
    /// Invocations of a workgroup along x, y, z.
    pub workgroup_size: [u32; 3],
    /// Invocations of a subgroup, if the kernel states them: a device must run it with full subgroups of this size or not at all.
    pub subgroup_size: Option<u32>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Whether its pipelines ask a driver that can be asked (`VK_EXT_pipeline_robustness`) to leave out its own checks of accesses to buffers. Those that are not proved to be in range are guarded in the code in
    /// either case; some loops are compiled much better without the driver's, and some much worse.
    pub no_robustness: bool,
    /// How wide its indices are: lengths, extents, strides and offsets of its buffers must fit.
    pub index: IndexWidth,
    /// How many grid dimensions the kernel looks at.
    pub grid: GridKind,
    /// Emitted code: for each target, the variants from the one that wants most features to the one that wants least.
    pub variants: List<Variant>,
    /// The function that runs it on the CPU; `None` for a late instance, which the evaluator runs from `ir`.
    #[serde(skip)]
    pub cpu: Option<CpuFunction>,
    /// What it reports, if it is a kernel that does: then its last binding is the report buffer ([`crate::site`]).
    pub sites: List<Site>,
    /// The same kernel, which reports what its author asserts and prints; there for listed instances whose author does, in crates that are built with debug assertions.
    #[serde(skip)]
    pub reporting: Option<&'static Self>,
    /// The generic IR, as `ir::Module::to_bytes` wrote it.
    pub ir: List<u8>,
    /// The values of the generics in this instance, as `ir::Instance::to_bytes` wrote them.
    pub instance: List<u8>,
    /// A hash of everything that decides the emitted code; equal kernels have equal hashes, on every machine.
    pub hash: [u8; 16],
}

impl Kernel {
    /// A late instance as bytes, for [`Kernel::from_bytes`] of the same [`SOURCES`]. A listed instance's function for the CPU is code of the author's program, and not among them.
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// Reads what [`Kernel::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }

    /// What was emitted for a target, to be read: the WGSL or CUDA C of the variant that wants most features, or its SPIR-V as [`Code`] displays it. `None` where the kernel has nothing for that target, and of the CPU, which runs
    /// compiled Rust.
    pub fn text(&self, target: Target) -> Option<String> {
        self.variants.iter().find(|variant| variant.target == target).map(|variant| variant.code.to_string())
    }

    /// [`Kernel::variant_with`], of a device that multiplies no matrices.
    ///
    /// # Errors
    /// As there.
    pub fn variant(
        &self,
        language: impl Into<Language>,
        features: Features,
        transport: ParamTransport,
    ) -> Result<&Variant, VariantError> {
        self.variant_with(language, features, &[], transport)
    }

    /// The variant in `language` (a [`Target`], or [`Language::BROWSERS`]) that wants the most features among those that `features` and `transport` allow, on a
    /// device that lists these products of matrices, and the reason why there is none.
    ///
    /// # Errors
    /// Names the kernel and either the missing target, or the features or matrices that every variant wants and the device lacks.
    pub fn variant_with(
        &self,
        language: impl Into<Language>,
        features: Features,
        products: &[MatrixProduct],
        transport: ParamTransport,
    ) -> Result<&Variant, VariantError> {
        let Language { target, dialect } = language.into();
        let read = |variant: &&Variant| variant.target == target && variant.dialect.is_none_or(|own| own == dialect);
        let mut of_target = self.variants.iter().filter(read).filter(|v| v.transport == transport).peekable();
        if of_target.peek().is_none() {
            return Err(VariantError::NoTarget { kernel: self.name.to_string(), target });
        }
        let (mut least, mut unlisted) = (None, None);
        for variant in of_target {
            if features.contains(variant.features) {
                let Some(missing) = variant.matrices.iter().find(|need| !need.is_met(products)) else {
                    return Ok(variant);
                };
                // The first is what the author wrote; others are made of smaller ones.
                unlisted.get_or_insert_with(|| {
                    let listed: Vec<String> = products.iter().map(ToString::to_string).collect();
                    VariantError::MissingMatrices {
                        kernel: self.name.to_string(),
                        target,
                        missing: missing.to_string(),
                        listed: if listed.is_empty() { "none".to_owned() } else { listed.join(", ") },
                    }
                });
            }
            least = Some(variant.features);
        }
        if let Some(unlisted) = unlisted {
            return Err(unlisted);
        }
        let missing = least.map_or(Features::NONE, |f| Features(f.0 & !features.0));
        Err(VariantError::MissingFeatures {
            kernel: self.name.to_string(),
            target,
            missing: missing.iter().map(Feature::variant_name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The kernel with other values of its specialisation constants, given by name, as which it has pipelines of its own.
    ///
    /// # Errors
    /// A name that it lacks, or a value that its constant does not accept; the reason names the values that it does.
    pub fn specialise(&self, values: &[(&str, i64)]) -> Result<Self, ConstantError> {
        let mut kernel = self.clone();
        for (name, value) in values {
            let Some(constant) = kernel.constants.to_mut().iter_mut().find(|constant| constant.name == *name) else {
                return Err(ConstantError {
                    kernel: self.name.to_string(),
                    constant: (*name).to_owned(),
                    reason: "the kernel has no such constant".to_owned(),
                });
            };
            if !constant.accepts(*value) {
                let multiple = if constant.multiple > 1 {
                    format!(", a multiple of {}", constant.multiple)
                } else {
                    String::new()
                };
                let reason = format!("{value} is not in {}..={}{multiple}", constant.low, constant.high);
                return Err(ConstantError { kernel: self.name.to_string(), constant: (*name).to_owned(), reason });
            }
            constant.value = *value;
        }
        let mut bytes = self.hash.to_vec();
        for constant in &*kernel.constants {
            bytes.extend(constant.value.to_le_bytes());
        }
        kernel.hash = xxhash_rust::xxh3::xxh3_128(&bytes).to_le_bytes();
        Ok(kernel)
    }

    /// The position of the binding of that name.
    pub fn binding(&self, name: &str) -> Option<usize> {
        self.bindings.iter().position(|binding| binding.name == name)
    }
}

/// Why a specialisation constant cannot have a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("constant `{constant}` of kernel `{kernel}`: {reason}")]
pub struct ConstantError {
    /// The kernel.
    pub kernel: String,
    /// The constant.
    pub constant: String,
    /// What is wrong.
    pub reason: String,
}

/// Why a kernel has no code for a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    /// The author's `targets(..)` leaves this target out.
    #[error("kernel `{kernel}` is not compiled for {}", target.name())]
    NoTarget {
        /// The kernel.
        kernel: String,
        /// The target asked for.
        target: Target,
    },
    /// Every variant wants a feature that the device lacks.
    #[error("kernel `{kernel}` needs the feature {missing} on {}, which this device lacks", target.name())]
    MissingFeatures {
        /// The kernel.
        kernel: String,
        /// The target asked for.
        target: Target,
        /// The names of what is missing.
        missing: String,
    },
    /// Every variant for which the device has the features wants matrices that it does not list.
    #[error("kernel `{kernel}` wants {missing} on {}, which this device does not list: it has {listed}", target.name())]
    MissingMatrices {
        /// The kernel.
        kernel: String,
        /// The target asked for.
        target: Target,
        /// What is missing.
        missing: String,
        /// The products that the device lists.
        listed: String,
    },
}

/// A specialisation constant: `@id(position)` in WGSL, `SpecId` in SPIR-V, the name `SPECIALISE_NAME` to be defined before CUDA C.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// The author's name for it.
    pub name: Text,
    /// What it is: `I32`, `U32`, `Index` or `Bool`.
    pub scalar: ParamScalar,
    /// Its value, for a `bool` 0 or 1.
    pub value: i64,
    /// The smallest value.
    pub low: i64,
    /// The largest value.
    pub high: i64,
    /// Every value is a multiple of it.
    pub multiple: u32,
}

/// The name that CUDA C knows the value of a specialisation constant by.
pub fn defined_name(constant: &str) -> String {
    format!("SPECIALISE_{constant}")
}

impl Constant {
    /// Whether a value is one of those that the kernel declares.
    pub const fn accepts(&self, value: i64) -> bool {
        // An artefact that was read from bytes may say anything.
        self.multiple != 0 && value >= self.low && value <= self.high && value % self.multiple as i64 == 0
    }
}

/// One storage buffer of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The author's name for it.
    pub name: Text,
    /// What the slice's elements are, as the host sees them.
    pub element: Element,
    /// What the kernel does with it.
    pub access: Access,
    /// Elements that the widest access moves at once: an element offset must be a multiple of it.
    pub vector: u32,
    /// For a view, its rank; `None` for a plain slice.
    pub view: Option<u32>,
}

/// The element type of a buffer, as host memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    /// Its name in Rust: `f32`, `Vec4<f32>`, `Particle`.
    pub name: Text,
    /// Bytes from one element to the next.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// `&[T]`: reads only.
    Read,
    /// `&mut [T]` of which no element is read.
    Write,
    /// `&mut [T]`.
    ReadWrite,
    /// `&[Atomic<T>]`.
    Atomic,
}

impl Access {
    /// Whether the kernel may change the buffer.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether the kernel may look at the buffer's contents.
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Write)
    }
}

/// The parameter block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Bytes of the block, a multiple of 16 and of its fields' alignments.
    pub size: u32,
    /// Its fields, by ascending offset.
    pub fields: List<ParamField>,
}

/// One field of the parameter block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamField {
    /// The name in the emitted text: the author's, or `x_len`, `x_offset`, `x_extents`, `x_strides`, `group_count`, with a number behind it where another field has it.
    pub name: Text,
    /// What it means.
    pub role: ParamRole,
    /// What it is.
    pub ty: ParamType,
    /// Bytes from the start of the block.
    pub offset: u32,
}

/// What a parameter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ParamRole {
    /// One of the author's, by position among them; a struct counts as the scalars, vectors and arrays of scalars in it.
    User(u32),
    /// The value of a specialisation constant, by position among [`Kernel::constants`].
    Constant(u32),
    /// Elements of the buffer at that binding.
    Length(u32),
    /// The element of the bound range at which the buffer at that binding starts.
    Offset(u32),
    /// A view's extents.
    Extents(u32),
    /// A view's strides, in elements.
    Strides(u32),
    /// The number of workgroups asked for; those beyond return at once. Only kernels with [`GridKind::Linear`] have it.
    GroupCount,
}

/// The type of a parameter: `count` values of `scalar`, an array if `array`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ParamType {
    /// The scalar, as it lies in the block: `bool` is 0 or 1, `usize` and enums are `u32`; where indices are 64 bits wide, `usize` is `u64`.
    pub scalar: ParamScalar,
    /// 1 for a scalar, 2 to 4 for a vector, the length of an array.
    pub count: u32,
    /// Whether it is an array; arrays start at a multiple of 16 bytes and fill one.
    pub array: bool,
}

/// The scalar types that parameters are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ParamScalar {
    /// 32-bit float.
    F32,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// `usize` on the host, 32 bits in the block. Where indices are 64 bits wide, a `usize` is `U64`.
    Index,
    /// 0 or 1 in 32 bits.
    Bool,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit float.
    F64,
}

impl ParamScalar {
    /// The type in Rust. Narrow numbers travel in the words of others.
    pub const fn rust_name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Index => "usize",
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
        }
    }

    /// Bytes that it takes in the block.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::F32 | Self::I32 | Self::U32 | Self::Index | Self::Bool => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// How a grid is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GridKind {
    /// The kernel knows only linear indices: the device may fold the workgroups over x and y as its limits want; the linear
    /// workgroup index is `x + y * groups_x`, and workgroups from `group_count` on return before any barrier.
    Linear,
    /// The kernel looks at x, y and z: the grid is launched as given.
    Volume,
}

/// The code of one variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Variant {
    /// The language.
    pub target: Target,
    /// Names the profile in file names: `portable`, `subgroups`, `f16`, `browsers-subgroups-f16`.
    pub profile: Text,
    /// Whose dialect it is in; all read it if there is none.
    pub dialect: Option<Dialect>,
    /// What a device must have.
    pub features: Features,
    /// The matrices that it multiplies, and others that it holds: a device must list them.
    pub matrices: List<MatrixNeed>,
    /// How parameters reach it.
    pub transport: ParamTransport,
    /// What tensor maps CUDA's text takes, as one argument behind the parameter block: 128 bytes each, which count on an sm_90a alone.
    pub tensor_maps: List<TensorMap>,
    /// The name of the entry point: the kernel's, or where that has another meaning in the target's language (`filter` in WGSL, `half` in CUDA C) the name with a number behind.
    pub entry: Text,
    /// The code itself.
    pub code: Code,
}

/// Emitted code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Code {
    /// WGSL or CUDA C.
    Text(Text),
    /// SPIR-V words, little-endian, aligned to 4 bytes.
    Spirv(List<u8>),
}

impl fmt::Display for Code {
    /// The text; SPIR-V disassembled, where this crate is built with its emitter (the feature `spirv`, which devices of Vulkan bring), and else how long it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            #[cfg(feature = "spirv")]
            Self::Spirv(bytes) => {
                let (words, _) = bytes.as_chunks::<4>();
                let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
                f.write_str(&crate::emit::spirv::disassemble(&words))
            }
            #[cfg(not(feature = "spirv"))]
            Self::Spirv(bytes) => {
                writeln!(f, "{} words of SPIR-V, which the feature `spirv` disassembles", bytes.len() / 4)
            }
        }
    }
}

/// The compiled form of a kernel on the CPU.
#[derive(Clone, Copy)]
pub struct CpuFunction {
    /// Runs the workgroups `first..end` (linear, x fastest) of the grid in `arguments`.
    ///
    /// # Safety
    /// `arguments` must describe, for each binding, memory that is valid for reads (and writes, where the binding's access says
    /// so) of its bytes for the whole call, not otherwise accessed in a conflicting way, and aligned to the element size times `Binding::vector` (16 bytes at most); `params` must
    /// be a block laid out as the kernel's [`Params`]. Other threads may run other workgroups of the same launch meanwhile if all that run lie among as many, one behind the other in the
    /// grid, as [`CpuFunction::at_once`] says.
    pub entry: unsafe fn(arguments: &CpuArguments<'_>, first: u64, end: u64),
    /// The steps to the number of elements that each workgroup has to itself of a buffer that is accessed plainly; none where no buffer is that the kernel writes.
    pub share: &'static [ShareStep],
}

impl CpuFunction {
    /// How many workgroups, one behind the other in the grid, may run at once in a launch with that parameter block: all, but where indices wrap in a grid so large that two of its
    /// workgroups may touch one element.
    #[must_use]
    pub fn at_once(&self, params: &[u8]) -> u64 {
        crate::share::at_once(self.share, params)
    }
}

impl fmt::Debug for CpuFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CpuFunction")
    }
}

/// What a kernel on the CPU gets.
#[derive(Clone, Copy, Debug)]
pub struct CpuArguments<'a> {
    /// One for each binding, in order; offsets are already added.
    pub buffers: &'a [CpuBuffer],
    /// The parameter block, aligned to 16 bytes.
    pub params: &'a [u8],
    /// Workgroups along x, y, z; for [`GridKind::Linear`] all of them lie along x.
    pub groups: [u32; 3],
    /// Invocations of a subgroup: a power of two up to [`crate::target::MOST_SUBGROUP`], and [`Kernel::subgroup_size`] if the kernel states one.
    pub subgroup_size: u32,
}

/// Memory of one binding on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuBuffer {
    /// Its first byte.
    pub pointer: *mut u8,
    /// Bytes that may be accessed from there.
    pub bytes: usize,
}
