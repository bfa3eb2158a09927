//! GPU kernels written once in Rust, for WGSL, SPIR-V, CUDA C and the CPU, and a tensor graph that schedules them.
//!
//! * [`prelude`]: what a kernel is written with.
//! * [`devices`]: opening devices, and the adapters that there are. `auto` is an order of kinds, not a measurement.
//! * [`check`]: running kernels where races, accesses past the end and the like are reported with their lines.
//! * [`codegen`]: the compiler behind `#[kernel]`, for programs that emit or inspect kernels themselves.
//! * `graph`, with the feature of that name: tensors, ops, models, executables.
//! * `kernels`, with `graph` or the feature of that name: the kernel library.
//!
//! What is not asked for is not built: a program with kernels of its own builds in a minute, the kernel library in several. Each kind of device is a feature too: `cpu` (default), `wgpu`, `vulkan`, `cuda`. Drivers are loaded at run time: a machine without one gets an
//! [`Error`] that says what is missing.
//!
//! ```
//! use trefoil::prelude::*;
//! use trefoil::{DeviceOptions, devices};
//!
//! /// y = a * x + y
//! #[kernel(workgroup(256))]
//! fn axpy(x: &[f32], y: &mut [f32], a: f32) {
//!     let i = global_index();
//!     if i < y.len() {
//!         y[i] = a * x[i] + y[i];
//!     }
//! }
//!
//! # fn main() -> trefoil::Result<()> {
//! let device = devices::open_by_name("auto", &DeviceOptions::default())?;
//! let x = device.buffer(&[1.0f32, 2.0, 3.0])?;
//! let mut y = device.buffer(&[10.0f32, 20.0, 30.0])?;
//! device.run(axpy(&x, &mut y, 2.0)?.over(3))?;
//! assert_eq!(y.read()?, [12.0, 24.0, 36.0]);
//! // A part of a buffer.
//! y.slice_mut(..1)?.write(&[0.0])?;
//! assert_eq!(y.slice(..2)?.read()?, [0.0, 24.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A graph, compiled once for any number of rows, with the feature `graph`:
//!
#![cfg_attr(feature = "graph", doc = "```")]
#![cfg_attr(not(feature = "graph"), doc = "```ignore")]
//! use trefoil::devices;
//! use trefoil::graph::{ElementType, Executable, Extents, Graph, Model, Options, Symbol};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rows = Symbol::new("rows", 1, 512)?;
//! let mut g = Graph::new();
//! let x = g.input("x", ElementType::F32, (&rows, 2))?;
//! let w = g.param("w", ElementType::F32, [2, 2])?;
//! let product = g.matmul(x, w)?;
//! let y = g.relu(product)?;
//! g.output("y", y)?;
//!
//! let model = Model::new(); // or `Model::from_safetensors`
//! model.set("w", &[2, 2], &[1.0f32, -1.0, 0.5, 0.25])?;
//! let device = devices::open_by_name("auto", &Default::default())?;
//! let executable = Executable::compile(&g, &model, &device, &Options::default())?;
//!
//! let mut extents = Extents::new();
//! extents.set(&rows, 1)?;
//! let outputs = executable.run(&[("x", (&[2.0f32, 4.0]).into())], &extents)?;
//! assert_eq!(outputs.get::<f32>("y")?, [4.0, 0.0]);
//! # Ok(())
//! # }
//! ```

// The macros' expansions name this crate by its own name, also inside it.
extern crate self as trefoil;

#[cfg(feature = "cpu")]
pub mod check;
pub mod devices;

pub use trefoil_codegen as codegen;
pub use trefoil_dsl as dsl;
pub use trefoil_dsl::device::{DeviceOptions, MemoryRange};
pub use trefoil_dsl::{
    Buffer, BufferSlice, BufferSliceMut, BufferView, BufferViewMut, Device, DeviceKind, Dispatch, Error, Launch,
    PinnedBuffer, Readback, Recorded, Result, Vec2, Vec3, Vec4, artefact, bf16, buffer, device, error, f16, kernel,
    launch, prelude, report,
};
#[cfg(feature = "graph")]
pub use trefoil_graph as graph;
#[cfg(feature = "kernels")]
pub use trefoil_kernels as kernels;

#[cfg(feature = "cpu")]
pub use trefoil_cpu as cpu;
#[cfg(feature = "cuda")]
pub use trefoil_cuda as cuda;
#[cfg(feature = "vulkan")]
pub use trefoil_vulkan as vulkan;
#[cfg(feature = "wgpu")]
pub use trefoil_wgpu as wgpu;

/// The book's chapter on graphs, whose programs run as examples of this crate.
#[cfg(all(doctest, feature = "graph", feature = "cpu"))]
#[doc = include_str!("../docs/src/graphs.md")]
pub struct Graphs;
