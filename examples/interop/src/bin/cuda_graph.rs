//! A graph of trefoil's on a CUDA stream of the program's own, between commands of the program. Nothing goes by way of the host.
//!
//! ```text
//! cargo run -p trefoil-interop --bin cuda_graph
//! ```

use std::error::Error;
use std::sync::Arc;

use trefoil::cuda::cudarc::driver::{self, CudaContext, CudaSlice};
use trefoil::cuda::cudarc::nvrtc;
use trefoil::graph::{ElementType, Executable, Extents, Model, Options};
use trefoil::{DeviceOptions, MemoryRange};
use trefoil_interop::edges::{INNER, check, graph, image};

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: opening the libraries runs their initialisers, which want nothing of the program.
    #[allow(unsafe_code, reason = "cudarc panics where the driver is missing")]
    let present = unsafe { driver::sys::is_culib_present() && nvrtc::sys::is_culib_present() };
    if !present {
        println!("not run: no NVIDIA driver, or no NVRTC");
        return Ok(());
    }
    // The program's context and stream.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let shared = trefoil::cuda::open_on(&stream, &DeviceOptions::default())?;
    let executable = Executable::compile(&graph()?, &Model::new(), &shared, &Options::default())?;

    // Stands for a kernel of the program's that makes the frame.
    let frame = Arc::new(stream.clone_htod(&image())?);
    let result = Arc::new(stream.alloc_zeros::<f32>(INNER * INNER)?);

    let whole = |slice: &Arc<CudaSlice<f32>>| -> trefoil::Result<MemoryRange> {
        let memory = trefoil::cuda::memory(&shared, slice.clone())?;
        Ok(MemoryRange { bytes: memory.bytes(), memory, offset: 0 })
    };
    let extents = Extents::new();
    let run = executable.prepare(&extents).memory("image", ElementType::F32, whole(&frame)?);
    run.take_memory("edges", ElementType::F32, whole(&result)?).run()?;

    // Stands for a kernel of the program's that uses the result.
    check(&stream.clone_dtoh(&*result)?)?;
    println!("a graph on {}: right", context.name()?);
    Ok(())
}
