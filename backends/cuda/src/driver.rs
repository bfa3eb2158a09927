//! The presence of the driver and of NVRTC, and the words for what they lack.

use cudarc::driver::{result, sys};
use trefoil_dsl::device::DeviceKind;
use trefoil_dsl::error::{Error, Result};

/// The oldest driver that has every function that this crate calls (CUDA 12.8), as the driver counts versions.
const OLDEST_DRIVER: i32 = 12_080;

/// Something that this machine lacks.
pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { kind: DeviceKind::Cuda.name(), reason: reason.into() }
}

/// Starts the driver, after making sure that calling it cannot fail for want of a library or of a function.
pub(crate) fn start() -> Result<()> {
    // SAFETY: opening the libraries runs their initialisers, which have no requirements towards us.
    let (driver, compiler) = unsafe { (sys::is_culib_present(), crate::nvrtc::is_present()) };
    match (driver, compiler) {
        (true, true) => {}
        (false, true) => return Err(unavailable("the NVIDIA driver (libcuda) is not installed")),
        (true, false) => return Err(unavailable("NVRTC (libnvrtc) is not installed; it comes with the CUDA toolkit")),
        (false, false) => {
            return Err(unavailable("neither the NVIDIA driver (libcuda) nor NVRTC (libnvrtc) is installed"));
        }
    }
    let mut version = 0;
    // SAFETY: the library is present, and this function is in every version of it.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| unavailable(format!("the NVIDIA driver does not tell its version: {:?}", error.0)))?;
    if version < OLDEST_DRIVER {
        return Err(unavailable(format!(
            "the NVIDIA driver is for CUDA {}.{}, and {}.{} is needed",
            version / 1000,
            version % 1000 / 10,
            OLDEST_DRIVER / 1000,
            OLDEST_DRIVER % 1000 / 10
        )));
    }
    result::init().map_err(|error| unavailable(format!("the NVIDIA driver does not start: {}", message(error))))
}

/// What the driver says of a failure.
pub(crate) fn message(error: result::DriverError) -> String {
    let text = |text: Result<&std::ffi::CStr, result::DriverError>| {
        text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_else(|_| format!("{:?}", error.0))
    };
    format!("{} ({})", text(error.error_string()), text(error.error_name()))
}
