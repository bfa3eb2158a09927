//! A context and a stream that the program opened, and memory of the program's own.

use std::any::Any;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use cudarc::driver::{CudaSlice, DevicePtr, result, sys};
use trefoil_dsl::device::{Device, DeviceOptions};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::BINDING_MULTIPLE;

use crate::context::{Busy, Handles, Origin};
use crate::device::{CudaBackend, Shared};
use crate::driver::{message, start, unavailable};
use crate::limits::{Adapter, of_device};
use crate::memory::CudaMemory;

/// The handle by which the driver means another stream in every thread.
const PER_THREAD: usize = 2;

/// What the program's context and stream are, and the handles.
///
/// # Safety
/// Those of [`crate::open_on_raw`].
pub(crate) unsafe fn connect(
    context: sys::CUcontext,
    stream: sys::CUstream,
    owner: Box<dyn Any + Send + Sync>,
    options: &DeviceOptions,
) -> Result<(Adapter, Handles)> {
    start()?;
    if context.is_null() {
        return Err(unavailable("the program's context is null"));
    }
    if stream.addr() == PER_THREAD {
        return Err(unavailable("the per-thread default stream is another one in every thread, and trefoil needs one"));
    }
    let handles = Handles::new(context, stream, Origin::Program { _owner: owner });
    let failed = |what: &str, error| unavailable(format!("{what}: {}", message(error)));
    let _entered = handles.enter().map_err(|error| failed("the program's context cannot be entered", error))?;
    let mut own = std::ptr::null_mut();
    // SAFETY: the stream is alive, by the caller's promise; of a default stream the driver gives the current context.
    let told = unsafe { sys::cuStreamGetCtx(stream, &mut own) }.result();
    if told.is_ok() && own != context {
        return Err(unavailable("the program's stream is of another context than the one given"));
    }
    // What is said of a capture comes before what the driver makes of one.
    match handles.ready() {
        Ok(()) => {}
        Err(Busy::Captured(_)) => return Err(unavailable(format!("the program's stream is not free: {CAPTURED}"))),
        Err(Busy::Failed(error)) => return Err(failed("the program's stream takes no commands", error)),
    }
    told.map_err(|error| failed("the program's stream does not tell its context", error))?;
    let mut device = 0;
    // SAFETY: a context is current.
    unsafe { sys::cuCtxGetDevice(&mut device) }
        .result()
        .map_err(|error| failed("the program's context does not tell its GPU", error))?;
    let adapter = of_device(device)?;
    if options.adapter.is_some() {
        return Err(unavailable(format!(
            "`DeviceOptions::adapter` is for devices that trefoil opens, and that of {} is open already",
            adapter.properties.name
        )));
    }
    Ok((adapter, handles))
}

/// What a call says while the program captures the stream.
pub(crate) const CAPTURED: &str =
    "the program captures it, or another stream that waits for it; nothing can be done there before the capture ends";

fn backend(device: &Device) -> Result<&CudaBackend> {
    device.backend_of("memory of CUDA")
}

fn refused(reason: String) -> Error {
    Error::Command { label: "memory of the program's own".to_owned(), reason }
}

fn check_size(pointer: sys::CUdeviceptr, bytes: u64) -> Result<()> {
    if bytes == 0 || !bytes.is_multiple_of(BINDING_MULTIPLE) {
        return Err(refused(format!("it has {bytes} bytes, a multiple of {BINDING_MULTIPLE} is expected")));
    }
    if !pointer.is_multiple_of(BINDING_MULTIPLE) {
        return Err(refused(format!("it begins at {pointer:#x}, a multiple of {BINDING_MULTIPLE} is expected")));
    }
    Ok(())
}

/// A slice as memory.
pub(crate) fn adopt_slice<T: AnyBitPattern>(device: &Device, slice: Arc<CudaSlice<T>>) -> Result<CudaMemory> {
    let shared = &backend(device)?.shared;
    let (stream, context) = (slice.stream().cu_stream(), slice.context().cu_ctx());
    if (stream, context) != (shared.handles.stream, shared.handles.context) {
        return Err(refused("the slice was made on another stream, in whose order it would be freed".to_owned()));
    }
    let pointer = {
        let _entered = shared.enter()?;
        shared.ready()?;
        // What other streams wrote there is waited for once; commands of this one are in order anyway.
        let (pointer, _used) = slice.device_ptr(slice.stream());
        pointer
    };
    let bytes = slice.num_bytes() as u64;
    check_size(pointer, bytes)?;
    Ok(CudaMemory::adopt(shared, pointer, bytes, Box::new(slice)))
}

/// Memory at an address.
///
/// # Safety
/// Those of [`crate::memory_at`].
pub(crate) unsafe fn adopt(
    device: &Device,
    pointer: sys::CUdeviceptr,
    bytes: u64,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<CudaMemory> {
    let shared = &backend(device)?.shared;
    check_size(pointer, bytes)?;
    let _entered = shared.enter()?;
    known(shared, pointer, bytes).map_err(refused)?;
    Ok(CudaMemory::adopt(shared, pointer, bytes, owner))
}

/// Checks what the driver knows of an address: that memory of the context's GPU lies there, and so many bytes of it. Of some memory, such as that of pools, it does not tell everything.
fn known(shared: &Shared, pointer: sys::CUdeviceptr, bytes: u64) -> Result<(), String> {
    use sys::CUpointer_attribute as Attribute;
    // SAFETY: the context is current; the attribute is a number of 32 bits.
    let kind: u32 = unsafe { attribute(pointer, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) }
        .map_err(|error| format!("the driver knows no memory at {pointer:#x}: {}", message(error)))?;
    if kind != sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 {
        return Err(format!("what lies at {pointer:#x} is not memory of a GPU (the driver's type {kind})"));
    }
    // SAFETY: as above.
    let ordinal: Result<i32, _> = unsafe { attribute(pointer, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) };
    if let Ok(ordinal) = ordinal
        && ordinal != shared.ordinal
    {
        return Err(format!("it is memory of GPU {ordinal}, and the context is of GPU {}", shared.ordinal));
    }
    // SAFETY: as above; the attribute is a pointer.
    let context: Result<usize, _> = unsafe { attribute(pointer, Attribute::CU_POINTER_ATTRIBUTE_CONTEXT) };
    if context.is_ok_and(|context| context != 0 && context != shared.handles.context.addr()) {
        return Err(format!("the memory at {pointer:#x} is of another context"));
    }
    // SAFETY: as above; both attributes are as long as a pointer.
    let (first, size): (Result<u64, _>, Result<u64, _>) = unsafe {
        (
            attribute(pointer, Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR),
            attribute(pointer, Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE),
        )
    };
    if let (Ok(first), Ok(size)) = (first, size)
        && pointer.saturating_sub(first).saturating_add(bytes) > size
    {
        return Err(format!(
            "{bytes} bytes from {pointer:#x} on are not within the {size} bytes that the driver has from {first:#x} on"
        ));
    }
    Ok(())
}

/// What the driver says of an address.
///
/// # Safety
/// The context is current, and the attribute is a number as long as `T`.
unsafe fn attribute<T: AnyBitPattern>(
    pointer: sys::CUdeviceptr,
    attribute: sys::CUpointer_attribute,
) -> Result<T, result::DriverError> {
    let mut value = T::zeroed();
    // SAFETY: the caller's promise; of the address the driver only says what it knows.
    unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, pointer) }.result()?;
    Ok(value)
}
