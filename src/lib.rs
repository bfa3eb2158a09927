//! GPU kernels written once in Rust, and a tensor graph that schedules them.

// The macros' expansions name this crate by its own name, also inside it.
extern crate self as trefoil;

pub use trefoil_dsl as dsl;

pub use trefoil_dsl::*;

pub use trefoil_graph as graph;
pub use trefoil_kernels as kernels;

#[cfg(feature = "cpu")]
pub use trefoil_cpu as cpu;
#[cfg(feature = "cuda")]
pub use trefoil_cuda as cuda;
#[cfg(feature = "vulkan")]
pub use trefoil_vulkan as vulkan;
#[cfg(feature = "wgpu")]
pub use trefoil_wgpu as wgpu;
