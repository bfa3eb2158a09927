//! Running sums: each element of the result is the sum of the elements of the input up to it, or before it.
//!
//! A workgroup takes a *tile* of some thousand elements and lacks the sum of all tiles before its own. There are two ways to get that: [`look_back`] reads each element once, 8 bytes an
//! element in all, but waits for other workgroups; [`levels`] does not, and reads each element twice, 12 bytes. Integers wrap; floats round alike each time in levels, while by looking back
//! the order of additions, and so the last places, depend on who came first.

pub mod levels;
pub mod look_back;
pub mod tile;

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Device, DeviceKind, Dispatch, Result};

use crate::expect_length;

/// How running sums are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In one pass, for devices on which a workgroup that has started makes progress.
    LookBack,
    /// In two levels, for all.
    Levels,
}

impl Method {
    /// The best that is right on a device.
    pub fn of(device: &Device) -> Self {
        let properties = device.properties();
        match properties.kind {
            DeviceKind::Cpu | DeviceKind::Cuda => Self::LookBack,
            // Vulkan promises nothing. These drivers set no workgroup aside that has started; lavapipe does not either, but ends loops that wait for long.
            DeviceKind::Vulkan if properties.name.contains("NVIDIA") => Self::LookBack,
            DeviceKind::Vulkan | DeviceKind::Wgpu => Self::Levels,
        }
    }
}

/// `y[i]` = the sum of `x[0..=i]`, or of `x[0..i]` if it is exclusive; for `u32` and `f32`.
///
/// # Errors
/// The slices have not one length, the elements have another type, a buffer does not fit the device, or the device cannot do the method.
pub fn scan<'a, T: Number, const EXCLUSIVE: bool>(
    device: &Device,
    x: impl ReadBuffer<'a, T>,
    y: impl WriteBuffer<'a, T>,
    method: Method,
) -> Result<Vec<Dispatch>> {
    let (x, y) = (x.slice(), y.slice_mut());
    expect_length("scan", "y", y.len(), x.len())?;
    let mut list = Vec::new();
    match method {
        // Which needs a whole quad.
        Method::LookBack if x.len() >= 4 => look_back::launches::<T, EXCLUSIVE>(device, x, y, &mut list)?,
        Method::LookBack | Method::Levels => levels::launches::<T, EXCLUSIVE>(device, x, y, &mut list)?,
    }
    Ok(list)
}

/// `y[i]` = the sum of `x[0..=i]`, by the best method of the device.
///
/// # Errors
/// As [`scan`].
pub fn inclusive<'a, T: Number>(
    device: &Device,
    x: impl ReadBuffer<'a, T>,
    y: impl WriteBuffer<'a, T>,
) -> Result<Vec<Dispatch>> {
    scan::<T, false>(device, x, y, Method::of(device))
}

/// `y[i]` = the sum of `x[0..i]`, by the best method of the device.
///
/// # Errors
/// As [`scan`].
pub fn exclusive<'a, T: Number>(
    device: &Device,
    x: impl ReadBuffer<'a, T>,
    y: impl WriteBuffer<'a, T>,
) -> Result<Vec<Dispatch>> {
    scan::<T, true>(device, x, y, Method::of(device))
}
