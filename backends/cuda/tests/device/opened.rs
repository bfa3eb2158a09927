//! The same rules on a context and a stream that the program opened, and what the two do between each other's commands.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cudarc::driver::{CudaContext, CudaStream, sys};
use trefoil_codegen::artefact::ParamTransport;
use trefoil_dsl::device::{Command, Device, DeviceKind, DeviceOptions, Memory};
use trefoil_dsl::error::{Error, Result};

use crate::{device_rules, rules};

/// A context of the program's own, on the first usable GPU.
fn context() -> Result<Arc<CudaContext>> {
    // Names what is missing, which cudarc would panic for.
    trefoil_cuda::adapters()?;
    let none = |error: cudarc::driver::DriverError| Error::Unavailable {
        kind: DeviceKind::Cuda.name(),
        reason: error.to_string(),
    };
    CudaContext::new(0).map_err(none)
}

/// Held for writing while a test captures. Before it makes the first stream of a context, cudarc waits for all that is done there, which breaks whatever is captured meanwhile.
static CAPTURES: RwLock<()> = RwLock::new(());

/// A stream of the program's. Other tests' devices capture too, within their calls, and the driver refuses to wait meanwhile.
fn new_stream(context: &Arc<CudaContext>) -> Arc<CudaStream> {
    let _none = CAPTURES.read().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..500 {
        match context.new_stream() {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => std::thread::yield_now(),
            made => return made.unwrap(),
        }
    }
    context.new_stream().unwrap()
}

/// A stream that stays, and with it the context that these tests share: it is no context's first stream that they make. When it waited for one, as above, libcuda (580.159) has crashed in `cuCtxSynchronize`, while devices of other tests came and went in that context.
static STAYS: Mutex<Option<Arc<CudaStream>>> = Mutex::new(None);

fn stream() -> Result<Arc<CudaStream>> {
    let mut stays = STAYS.lock().unwrap_or_else(PoisonError::into_inner);
    let first = match &*stays {
        Some(first) => first,
        None => stays.insert(new_stream(&context()?)),
    };
    first.context().bind_to_thread().unwrap();
    Ok(new_stream(first.context()))
}

const SUBJECT: rules::Subject =
    rules::Subject { open: |options| trefoil_cuda::open_on(&stream()?, options), ..crate::SUBJECT };

device_rules!(opened SUBJECT);

/// And on the stream that everybody shares.
mod default {
    use super::*;

    const SUBJECT: rules::Subject = rules::Subject {
        open: |options| trefoil_cuda::open_on(&context()?.default_stream(), options),
        ..super::SUBJECT
    };

    device_rules!(opened SUBJECT);
}

/// c = 2 (a + b).
fn add(device: &Device, memory: [&Arc<dyn Memory>; 3]) -> Command {
    let pipeline = rules::load(device, &rules::kernel(&SUBJECT, "add"), ParamTransport::Value);
    rules::by_value(&pipeline, &memory, (memory[2].bytes() / 4) as usize, 2.0)
}

#[test]
fn commands_of_both_follow_each_other() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let stream = stream().unwrap();
    let on = trefoil_cuda::open_on(&stream, &DeviceOptions::default()).unwrap();
    let before = on.backend().counters();
    let sum = on.zeros::<f32>(100_000).unwrap();
    // Two slices in a row, so that the first is freed while commands that use it may not be done.
    for value in [1f32, 3.0] {
        let slice = Arc::new(stream.clone_htod(&vec![value; 100_000]).unwrap());
        let memory = trefoil_cuda::memory(&on, slice.clone()).unwrap();
        assert_eq!(trefoil_cuda::pointer(&*memory).unwrap() % 16, 0);
        on.backend().execute(&[add(&on, [&memory, &memory, sum.memory()])]).unwrap();
        let mut copy = stream.alloc_zeros::<f32>(100_000).unwrap();
        let from = trefoil_cuda::pointer(&**sum.memory()).unwrap();
        // SAFETY: what lies there are 100,000 elements, which the slice does not free.
        let lent = std::mem::ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<f32>(from, 100_000) });
        stream.memcpy_dtod(&*lent, &mut copy).unwrap();
        assert!(stream.clone_dtoh(&copy).unwrap().iter().all(|element| *element == 4.0 * value), "{value}");
        assert_eq!(sum.read().unwrap(), vec![4.0 * value; 100_000]);
        drop(memory);
        assert_eq!(Arc::strong_count(&slice), 1);
    }
    let after = on.backend().counters();
    assert_eq!((after.allocations, after.allocated_bytes), (before.allocations + 1, before.allocated_bytes + 400_000));
    let held = Arc::strong_count(&stream);
    drop((sum, on));
    assert!(Arc::strong_count(&stream) < held, "trefoil lets go of the stream");
    assert_eq!(stream.clone_dtoh(&stream.clone_htod(&[5u32]).unwrap()).unwrap(), [5]);
}

/// A launch takes a slice of the program's as elements.
#[test]
fn launches_take_slices_of_the_program() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let stream = stream().unwrap();
    let on = trefoil_cuda::open_on(&stream, &DeviceOptions::default()).unwrap();
    let memory = trefoil_cuda::memory(&on, Arc::new(stream.clone_htod(&[3f32; 64]).unwrap())).unwrap();
    rules::launches_read_and_write(&SUBJECT, &on, &memory, 3.0);
}

#[test]
fn a_capture_of_the_programs_is_left_alone() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let stream = stream().unwrap();
    let options = DeviceOptions::default();
    let on = trefoil_cuda::open_on(&stream, &options).unwrap();
    let (stays, goes) = (on.buffer(&[1f32, 2.0]).unwrap(), on.buffer(&[3f32]).unwrap());
    let other = trefoil_cuda::open_on(&stream.context().new_stream().unwrap(), &options).unwrap();
    let ones = other.buffer(&[1f32; 64]).unwrap();
    let slice = Arc::new(stream.clone_htod(&[0u32; 4]).unwrap());
    let (taken, dropped) = (stays.read_later().unwrap(), stays.read_later().unwrap());
    stream.synchronize().unwrap();
    let alone = CAPTURES.write().unwrap_or_else(PoisonError::into_inner);
    // It forbids much to this thread, and nothing else to those of other tests.
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    drop(goes);
    let refused = [
        stays.read().map(|_| ()).unwrap_err(),
        stays.read_later().map(|_| ()).unwrap_err(),
        on.buffer(&[4f32]).map(|_| ()).unwrap_err(),
        on.backend().wait().unwrap_err(),
        trefoil_cuda::memory(&on, slice.clone()).map(|_| ()).unwrap_err(),
        trefoil_cuda::open_on(&stream, &options).map(|_| ()).unwrap_err(),
    ];
    // What was begun before needs the stream no more.
    assert!(taken.is_ready().unwrap());
    assert_eq!(taken.wait().unwrap(), [1.0, 2.0]);
    drop(dropped);
    // Another stream goes on meanwhile, with whatever a call does.
    assert_eq!(other.buffer(&[6f32]).unwrap().read().unwrap(), [6.0]);
    assert_eq!(other.pinned::<f32>(16).unwrap().len(), 16);
    let sum = other.zeros::<f32>(64).unwrap();
    other.backend().execute(&[add(&other, [ones.memory(), ones.memory(), sum.memory()])]).unwrap();
    assert_eq!(sum.read().unwrap(), [4.0; 64]);
    stream.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap();
    drop(alone);
    for error in refused {
        assert!(error.to_string().contains("the program captures it"), "{error}");
    }
    assert_eq!(stays.read().unwrap(), [1.0, 2.0]);
    assert_eq!(on.backend().counters().allocated_bytes, 8);
}

#[test]
fn the_threads_context_stays() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let on = trefoil_cuda::open_on(&stream().unwrap(), &DeviceOptions::default()).unwrap();
    let current = || cudarc::driver::result::ctx::get_current().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(current(), None, "a new thread");
            assert_eq!(on.buffer(&[1f32]).unwrap().read().unwrap(), [1.0]);
            assert_eq!(current(), None, "after calls");
        });
    });
    let other = CudaContext::new_non_primary(0, 0).unwrap();
    other.bind_to_thread().unwrap();
    assert_eq!(on.buffer(&[1f32]).unwrap().read().unwrap(), [1.0]);
    assert_eq!(current(), Some(other.cu_ctx()));
    // A context that is not the primary one serves as well.
    let in_other = trefoil_cuda::open_on(&new_stream(&other), &DeviceOptions::default()).unwrap();
    let sum = in_other.zeros::<f32>(64).unwrap();
    let ones = in_other.buffer(&[1f32; 64]).unwrap();
    in_other.backend().execute(&[add(&in_other, [ones.memory(), ones.memory(), sum.memory()])]).unwrap();
    assert_eq!(sum.read().unwrap(), [4.0; 64]);
}

#[test]
fn what_cannot_be_shared_is_named() {
    if !rules::is_present(&SUBJECT) {
        return;
    }
    let options = DeviceOptions::default();
    let stream = stream().unwrap();
    let context = stream.context().clone();
    let on = trefoil_cuda::open_on(&stream, &options).unwrap();
    let refused = |opened: Result<Device>| opened.unwrap_err().to_string();
    let said = refused(trefoil_cuda::open_on(&context.per_thread_stream(), &options));
    assert!(said.contains("per-thread"), "{said}");
    let said =
        refused(trefoil_cuda::open_on(&stream, &DeviceOptions { adapter: Some("0".to_owned()), ..options.clone() }));
    assert!(said.contains("`DeviceOptions::adapter` is for devices that trefoil opens"), "{said}");
    // SAFETY: the handles are alive for the call.
    let raw = |context, stream| unsafe { trefoil_cuda::open_on_raw(context, stream, (), &options) };
    let said = refused(raw(std::ptr::null_mut(), stream.cu_stream()));
    assert!(said.contains("context is null"), "{said}");
    let other = CudaContext::new_non_primary(0, 0).unwrap();
    let said = refused(raw(other.cu_ctx(), stream.cu_stream()));
    assert!(said.contains("another context"), "{said}");

    let refused = |given: Result<Arc<dyn Memory>>| given.unwrap_err().to_string();
    let odd = refused(trefoil_cuda::memory(&on, Arc::new(stream.clone_htod(&[0f32; 5]).unwrap())));
    assert!(odd.contains("it has 20 bytes, a multiple of 16 is expected"), "{odd}");
    let elsewhere = context.new_stream().unwrap();
    let foreign = refused(trefoil_cuda::memory(&on, Arc::new(elsewhere.clone_htod(&[0f32; 4]).unwrap())));
    assert!(foreign.contains("another stream"), "{foreign}");
    let host = [0u128; 4];
    // SAFETY: the bytes outlive the call, which refuses them.
    let at = |pointer, bytes| refused(unsafe { trefoil_cuda::memory_at(&on, pointer, bytes, ()) });
    let unknown = at(host.as_ptr().addr() as u64, 64);
    assert!(unknown.contains("the driver knows no memory") || unknown.contains("is not memory of a GPU"), "{unknown}");
    let buffer = on.buffer(&[0f32; 64]).unwrap();
    let inside = trefoil_cuda::pointer(&**buffer.memory()).unwrap();
    let crooked = at(inside + 4, 16);
    assert!(crooked.contains("a multiple of 16 is expected"), "{crooked}");
    // SAFETY: the buffer outlives the memory.
    let part = unsafe { trefoil_cuda::memory_at(&on, inside + 16, 32, ()) }.unwrap();
    on.backend().write(&rules::whole(&part), &[1; 32]).unwrap();
    assert_eq!(buffer.read().unwrap()[3..5], [0.0, f32::from_le_bytes([1; 4])]);
    // Nothing of that did any harm.
    assert_eq!(on.buffer(&[1f32]).unwrap().read().unwrap(), [1.0]);
}
