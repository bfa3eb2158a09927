//! What a run of one element costs without trefoil: one kernel, launched by a program that talks to the driver's library itself.
//!
//! Each floor does what [`crate::runs`] does for a graph of one step, as such a program would do it: everything that can be made before is made
//! before; a run writes a number, launches the kernel, waits, and reads the number that it left.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "vulkan")]
mod vulkan;
#[cfg(feature = "wgpu")]
mod wgpu;

use std::time::Instant;

use trefoil::prelude::*;
use trefoil::{Device, DeviceKind};

use crate::Outcome;
use crate::figure::Figure;
use crate::measure::medians;

/// Adds one.
#[kernel(workgroup(64))]
fn increased(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = x[i] + 1.0;
    }
}

/// The parameter block for one element.
fn params() -> increased::Params {
    increased::Params { x_len: 1, y_len: 1, group_count: 1, ..increased::Params::default() }
}

/// A program of its own that runs the kernel.
trait Floor {
    /// A number, one larger.
    fn run(&mut self, x: f32) -> Outcome<f32>;
}

/// Its name in the table.
pub fn name() -> String {
    "run of one element, the driver's library alone".to_owned()
}

/// A run's wall clock, from the number in the host's memory to the result there; `None` for devices that have no library below them.
pub fn measure(device: &Device) -> Outcome<Option<Figure>> {
    let mut floor: Box<dyn Floor> = match device.properties().kind {
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => Box::new(cuda::Program::new()?),
        #[cfg(feature = "vulkan")]
        DeviceKind::Vulkan => Box::new(vulkan::Program::new(&device.properties().name)?),
        #[cfg(feature = "wgpu")]
        DeviceKind::Wgpu => Box::new(self::wgpu::Program::new(&device.properties().name)?),
        _ => return Ok(None),
    };
    let [wall] = medians(1, |round| {
        let given = round as f32;
        let start = Instant::now();
        let got = floor.run(given)?;
        let time = u64::try_from(start.elapsed().as_nanos())?;
        if got != given + 1.0 {
            return Err(format!("one more than {given} was {got}").into());
        }
        Ok([time])
    })?;
    Ok(Some(Figure::alone(name(), wall)))
}
