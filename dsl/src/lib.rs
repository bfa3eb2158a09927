//! What the author of a kernel imports, and the interface that devices implement.
//!
//! Kernel code uses [`prelude`]; programs use [`Device`], [`Buffer`] and the launch functions that `#[kernel]` makes; device crates
//! implement [`device::Backend`].

// The macros' expansions name this crate by its own name, also inside it.
extern crate self as trefoil_dsl;

pub mod asynchronous;
pub mod atomic;
pub mod buffer;
pub mod device;
pub mod element;
pub mod error;
#[doc(hidden)]
pub mod expansion;
pub mod intrinsics;
pub mod launch;
#[doc(hidden)]
pub mod layout;
pub mod math;
pub mod matrix;
pub mod memory;
pub mod param;
pub mod pinned;
pub mod prelude;
pub mod product;
mod properties;
pub mod readback;
pub mod report;
pub mod support;
pub mod tile;
pub mod vector;

pub use trefoil_codegen::artefact;
pub use trefoil_macros::{device, kernel};

pub use buffer::{Buffer, BufferSlice, BufferSliceMut, BufferView, BufferViewMut};
pub use device::{Device, DeviceKind};
pub use error::{Error, Result};
pub use half::{bf16, f16};
pub use launch::{Dispatch, Launch, Recorded};
pub use pinned::PinnedBuffer;
pub use readback::Readback;
pub use vector::{Vec2, Vec3, Vec4};
