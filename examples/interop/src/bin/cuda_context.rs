//! A kernel in a CUDA context of the program's own.
//!
//! ```text
//! cargo run -p trefoil-interop --bin cuda_context
//! ```

use std::error::Error;

use cudarc::driver::{CudaContext, DeviceRepr, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::compile_ptx;
use trefoil::artefact::{Code, Features, ParamTransport, Target};
use trefoil_interop::{axpy, check, inputs, params};

/// The parameter block, as an argument by value.
#[repr(transparent)]
struct Block(axpy::Params);

// SAFETY: the block is plain data of the size and layout that the kernel's text declares.
#[allow(unsafe_code, reason = "cudarc takes arguments of types for which the program vouches")]
unsafe impl DeviceRepr for Block {}

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: opening the libraries runs their initialisers, which want nothing of the program.
    #[allow(unsafe_code, reason = "cudarc panics where the driver is missing")]
    let present = unsafe { sys::is_culib_present() && cudarc::nvrtc::sys::is_culib_present() };
    if !present {
        println!("not run: no NVIDIA driver, or no NVRTC");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();

    // One text for every device; it includes no header, so that any NVRTC compiles it.
    let kernel = &axpy::KERNEL;
    let features = kernel.variants.iter().fold(Features::NONE, |all, variant| all.union(variant.features));
    let variant = kernel.variant(Target::Cuda, features, ParamTransport::Value)?;
    let Code::Text(text) = &variant.code else { return Err("CUDA C is a text".into()) };
    let function = context.load_module(compile_ptx(text)?)?.load_function(&variant.entry)?;

    // Pointers in the order of the signature, then the parameter block by value.
    let (x, y) = inputs();
    let (x, mut y) = (stream.clone_htod(&x)?, stream.clone_htod(&y)?);
    let params = params(2.0);
    let [width, height, depth] = kernel.workgroup_size;
    let config =
        LaunchConfig { grid_dim: (params.group_count, 1, 1), block_dim: (width, height, depth), shared_mem_bytes: 0 };
    let block = Block(params);
    // SAFETY: the arguments are those of the kernel's signature, and the lengths in the block are those of the buffers.
    #[allow(unsafe_code, reason = "a launch is unchecked")]
    unsafe {
        stream.launch_builder(&function).arg(&x).arg(&mut y).arg(&block).launch(config)?;
    }
    check(&stream.clone_dtoh(&y)?)?;
    println!("{} on {}: right", kernel.name, context.name()?);
    Ok(())
}
