//! The context and the stream of a device: opened here and closed with the last handle, or the program's.
//!
//! A call leaves everything as it was: the thread's current context, which may be that of another library on another GPU, and the thread's mode of stream captures. That is *relaxed* meanwhile: a call breaks no capture of another stream, and is not
//! refused while another thread captures one.
//! While the program captures the very stream, nothing can be done on it: calls are errors, and what goes meanwhile is freed by the next call.

use std::any::Any;
use std::sync::Mutex;

use cudarc::driver::{result, sys};
use trefoil_dsl::support::state::lock;

/// Whose context and stream they are.
pub(crate) enum Origin {
    /// Retained and made here.
    Own(sys::CUdevice),
    /// The program's, with what keeps them alive.
    Program { _owner: Box<dyn Any + Send + Sync> },
}

/// What is given back to the driver, in the order of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Left {
    /// A piece of memory.
    Memory(sys::CUdeviceptr),
    /// A module.
    Module(sys::CUmodule),
}

/// The driver's objects of an open device.
pub(crate) struct Handles {
    /// The device's context: the primary one, or the program's.
    pub(crate) context: sys::CUcontext,
    /// The one stream. One that is made here is never the default stream, which other users of the context share.
    pub(crate) stream: sys::CUstream,
    /// Where memory comes from, if the device has pools. It is trefoil's in any case.
    pub(crate) pool: Option<sys::CUmemoryPool>,
    // What went while the program captured the stream.
    left: Mutex<Vec<Left>>,
    origin: Origin,
}

// SAFETY: the driver's handles may be used from any thread in which the context is current, which `Handles::enter` sees to.
unsafe impl Send for Handles {}
// SAFETY: as above; the driver locks what threads share.
unsafe impl Sync for Handles {}

/// The context is current in this thread; what was before is again when this goes.
#[must_use]
pub(crate) struct Entered {
    /// What was current before; null if nothing was.
    context: sys::CUcontext,
    /// How the thread captured before, on the program's.
    mode: Option<sys::CUstreamCaptureMode>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: mode and context are those that the thread had. There is nobody to tell of a failure.
        unsafe {
            if let Some(mut mode) = self.mode {
                let _ = sys::cuThreadExchangeStreamCaptureMode(&mut mode).result();
            }
            let _ = result::ctx::set_current(self.context);
        }
    }
}

/// Why a stream takes no commands now.
pub(crate) enum Busy {
    /// A capture is under way, which the driver's message is about, if there is one.
    Captured(Option<result::DriverError>),
    /// An earlier command failed.
    Failed(result::DriverError),
}

impl Handles {
    /// A context and a stream, without memory.
    pub(crate) const fn new(context: sys::CUcontext, stream: sys::CUstream, origin: Origin) -> Self {
        Self { context, stream, pool: None, left: Mutex::new(Vec::new()), origin }
    }

    const fn is_shared(&self) -> bool {
        matches!(self.origin, Origin::Program { .. })
    }

    /// Makes the context current in this thread, as every driver call needs it.
    pub(crate) fn enter(&self) -> Result<Entered, result::DriverError> {
        let context = result::ctx::get_current()?.unwrap_or(std::ptr::null_mut());
        // SAFETY: the context is alive until `self` goes.
        unsafe { result::ctx::set_current(self.context) }?;
        let mut entered = Entered { context, mode: None };
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver writes the mode that was.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }.result()?;
        entered.mode = Some(mode);
        Ok(entered)
    }

    /// Whether the stream takes commands; the context is current. A stream that is made here always does.
    pub(crate) fn ready(&self) -> Result<(), Busy> {
        use sys::CUresult;
        if !self.is_shared() {
            return Ok(());
        }
        // SAFETY: the stream is alive, and the context is current.
        match unsafe { result::stream::is_capturing(self.stream) } {
            Ok(sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE) => Ok(()),
            Ok(_) => Err(Busy::Captured(None)),
            // The default stream, while another that waits for it is captured.
            Err(error) if error.0 == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => Err(Busy::Captured(Some(error))),
            Err(error) => Err(Busy::Failed(error)),
        }
    }

    /// Gives something back after everything submitted before; the context is current.
    pub(crate) fn give_back(&self, left: Left) {
        match self.ready() {
            Ok(()) => self.give_back_now(left),
            Err(_) => lock(&self.left).push(left),
        }
    }

    /// Gives back what went while that was not possible; the stream takes commands, and the context is current.
    pub(crate) fn tidy(&self) {
        if self.is_shared() {
            for left in std::mem::take(&mut *lock(&self.left)) {
                self.give_back_now(left);
            }
        }
    }

    fn give_back_now(&self, left: Left) {
        // SAFETY: it was made by this device and is given back once, in the order of the stream or after waiting for it: after everything submitted before. A recording holds what it uses, and goes after its last submission. There is nobody to tell of a failure.
        unsafe {
            match left {
                Left::Memory(address) if self.pool.is_some() => {
                    let _ = result::free_async(address, self.stream);
                }
                Left::Memory(address) => {
                    let _ = result::stream::synchronize(self.stream);
                    let _ = result::free_sync(address);
                }
                Left::Module(module) => {
                    let _ = result::stream::synchronize(self.stream);
                    let _ = result::module::unload(module);
                }
            }
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        if let Ok(_entered) = self.enter() {
            // Where the program captures its stream, what is left stays with the context.
            let ready = self.ready().is_ok();
            if ready {
                self.tidy();
            }
            // SAFETY: everything that was made with the device held `Shared`, which holds `self`, so that only these objects are left.
            // There is nobody to tell of a failure.
            unsafe {
                if ready && (self.is_shared() || !self.stream.is_null()) {
                    let _ = result::stream::synchronize(self.stream);
                }
                if let Some(pool) = self.pool {
                    let _ = sys::cuMemPoolDestroy(pool).result();
                }
                if !self.is_shared() && !self.stream.is_null() {
                    let _ = result::stream::destroy(self.stream);
                }
            }
        }
        if let Origin::Own(device) = self.origin {
            // SAFETY: the primary context was retained once for `self`.
            let _ = unsafe { result::primary_ctx::release(device) };
        }
    }
}
