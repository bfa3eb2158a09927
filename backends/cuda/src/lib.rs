//! trefoil's CUDA device: NVIDIA GPUs from compute capability 7.5 on.
//!
//! The driver and NVRTC are opened at run time, so that a machine without them gets an error that says what is missing. Kernels
//! come as CUDA C, which NVRTC compiles to machine code (cubin) for the very GPU; nothing here knows what they compute.
//!
//! # How work reaches the GPU
//! Each device has one stream of its own, on which everything is ordered: copies, lists, recordings, and the making and freeing
//! of memory. So memory that is freed while the GPU uses it goes when the GPU comes to it, and lists see what earlier lists wrote.
//! A recording is a CUDA graph whose edges are the barriers that the list asked for; running it is one launch.
//!
//! Products of matrices may also be cuBLASLt's, where it is installed: in a recording they are what a stream captured of it.
//!
//! # Pointers
//! A kernel gets one pointer for each binding, then its parameter block: as one struct by value, or as a pointer into the
//! recording's run words.
//!
//! # On a stream of the program's
//! [`open_on`] takes the program's context and stream. Everything above is on that stream then, in order with what the program hands to it. See `context.rs` for what a call leaves alone.

mod chain;
mod context;
mod device;
mod driver;
mod foreign;
mod library;
mod limits;
mod memory;
mod nvrtc;
mod pipeline;
mod ranges;
mod readback;
mod record;
mod submit;
mod tensor_map;
mod timing;

use std::any::Any;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUstream};
use cudarc::driver::{CudaSlice, CudaStream};
use trefoil_dsl::device::{Device, DeviceOptions, Memory, next_device_id};
use trefoil_dsl::error::Result;

/// The cudarc whose streams and slices [`open_on`] and [`memory()`] take.
pub use cudarc;

/// Opens the CUDA device that `options` ask for: the driver's first unless they name one.
///
/// # Errors
/// The driver, NVRTC or a usable GPU is missing, no GPU goes by that name, or the driver failed.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::CudaBackend::open(options, id)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// Runs trefoil on a stream that the program opened and goes on using, in its context: trefoil's commands and the program's follow each other in the order in which they are handed to the stream. Both stay alive until the
/// returned device and everything made with it is dropped, and neither is destroyed here.
///
/// The legacy default stream serves as well as any other; the per-thread one does not, since threads of trefoil's hand commands over too. trefoil captures streams of its own alone, and sets no flags or limits of the context.
/// Its memory comes from a pool of its own, which keeps up to 1 GiB of what was freed; the program's pools stay as they are. Each call leaves the thread's current context as it was.
///
/// While the program captures the stream, every call is an error that says so, and changes nothing; no capture of it may begin during a call. Captures of other streams are not disturbed. What goes during a capture is freed by the next call, or stays
/// with the context if the device itself goes then.
///
/// Commands on other streams are for the program to order ([`CudaStream::join`]). An error of an earlier command of the program's shows in the next call, as everywhere in CUDA, and loses the device.
///
/// ```
/// use std::sync::Arc;
///
/// use cudarc::driver::{CudaContext, sys};
/// use trefoil_dsl::device::DeviceOptions;
///
/// // SAFETY: opening the libraries runs their initialisers, which want nothing of the program.
/// if !unsafe { sys::is_culib_present() && cudarc::nvrtc::sys::is_culib_present() } {
///     return Ok(());
/// }
/// let Ok(context) = CudaContext::new(0) else { return Ok(()) };
/// let stream = context.new_stream()?;
/// let shared = trefoil_cuda::open_on(&stream, &DeviceOptions::default())?;
///
/// // A slice of the program's is memory for trefoil, and the other way round.
/// let numbers = Arc::new(stream.clone_htod(&[7f32; 16])?);
/// let memory = trefoil_cuda::memory(&shared, numbers.clone())?;
/// // Launches take it as elements.
/// let sevens = shared.buffer_of::<f32>(&memory, 16)?;
/// assert_eq!(sevens.read()?, [7.0; 16]);
/// let buffer = shared.buffer(&[1f32, 2.0])?;
/// assert!(trefoil_cuda::pointer(&**buffer.memory()).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The driver or NVRTC is missing, or the GPU cannot be used; the stream is the per-thread default stream, or is captured; `options` ask for another adapter, which is settled; the cache's folder cannot be made; or the driver failed.
pub fn open_on(stream: &Arc<CudaStream>, options: &DeviceOptions) -> Result<Device> {
    let (context, handle) = (stream.context().cu_ctx(), stream.cu_stream());
    // SAFETY: the stream is of that context and keeps it; both live as long as the owner.
    unsafe { open_on_raw(context, handle, stream.clone(), options) }
}

/// As [`open_on`], for handles of other bindings. `owner` is dropped after the last use of them, and may be what keeps them alive; `()` where the program sees to that. A null stream is the legacy default stream.
///
/// # Errors
/// As [`open_on`]; or the context is null, or not the stream's.
///
/// # Safety
/// Context and stream are valid, and live until `owner` is dropped: with the returned device and everything made with it.
pub unsafe fn open_on_raw(
    context: CUcontext,
    stream: CUstream,
    owner: impl Any + Send + Sync,
    options: &DeviceOptions,
) -> Result<Device> {
    let id = next_device_id();
    // SAFETY: the caller's promise.
    let backend = unsafe { device::CudaBackend::open_on(context, stream, Box::new(owner), options, id) }?;
    Ok(Device::new(Arc::new(backend), id))
}

/// A slice of the program's own as memory of a device that shares the stream on which the slice was made ([`open_on`]), for inputs and outputs of runs, and for launches as a typed buffer ([`Device::buffer_of`]). The memory keeps the slice; it writes there whatever kernels and
/// copies say, for which elements may have any bits.
///
/// # Errors
/// `device` is none of CUDA's, the slice was made on another stream, the stream is captured, or the slice's size is no multiple of 16 bytes.
pub fn memory<T: AnyBitPattern>(device: &Device, slice: Arc<CudaSlice<T>>) -> Result<Arc<dyn Memory>> {
    Ok(Arc::new(foreign::adopt_slice(device, slice)?))
}

/// As [`memory`], for `bytes` bytes from an address on: memory of other bindings, or of a slice that the program goes on writing to. `owner` is held as long as the memory, and may be what keeps the bytes alive; `()` where the program sees to that.
///
/// # Errors
/// `device` is none of CUDA's; address or size is no multiple of 16; or the driver knows the address as something else than memory of that context's GPU, or as less of it.
///
/// # Safety
/// * The bytes are memory that the device's context reaches, and live until `owner` is dropped; commands that use them may be on the stream even then, so that it frees them in the order of the stream or waits for that.
/// * The bytes overlap no other memory that the device knows, but what was given from the same address on: what a kernel writes is told from what it reads by where memory begins.
/// * Elements that the program reads there may have any bits.
pub unsafe fn memory_at(
    device: &Device,
    pointer: CUdeviceptr,
    bytes: u64,
    owner: impl Any + Send + Sync,
) -> Result<Arc<dyn Memory>> {
    // SAFETY: the caller's promise.
    Ok(Arc::new(unsafe { foreign::adopt(device, pointer, bytes, Box::new(owner)) }?))
}

/// Where a piece of memory of a CUDA device lies; none of other devices'. It has room for whole multiples of 16 bytes and lives as long as the memory; what is handed to the device's stream before that goes is in order.
pub fn pointer(memory: &dyn Memory) -> Option<CUdeviceptr> {
    memory.as_any().downcast_ref().map(memory::CudaMemory::address)
}

/// The names of the usable GPUs, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// The driver or NVRTC is missing, or no GPU is usable, with the reason.
pub fn adapters() -> Result<Vec<String>> {
    driver::start()?;
    Ok(limits::usable()?.into_iter().map(|adapter| adapter.properties.name).collect())
}
