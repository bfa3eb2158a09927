//! The floor through cudarc: a copy, a launch and a copy on one stream.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::compile_ptx;
use trefoil::artefact::{Code, Features, ParamTransport, Target};

use super::{Floor, increased, params};
use crate::Outcome;

/// The parameter block, as an argument by value.
#[repr(transparent)]
struct Block(increased::Params);

// SAFETY: the block is plain data of the size and layout that the kernel's text declares.
#[allow(unsafe_code, reason = "cudarc takes arguments of types for which the program vouches")]
unsafe impl DeviceRepr for Block {}

/// What is made once.
pub struct Program {
    stream: Arc<CudaStream>,
    function: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Program {
    /// On the first device, which is the one that trefoil opens.
    pub fn new() -> Outcome<Self> {
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        let kernel = &increased::KERNEL;
        let features = kernel.variants.iter().fold(Features::NONE, |all, variant| all.union(variant.features));
        let variant = kernel.variant(Target::Cuda, features, ParamTransport::Value)?;
        let Code::Text(text) = &variant.code else { return Err("CUDA C is a text".into()) };
        let function = context.load_module(compile_ptx(text)?)?.load_function(&kernel.name)?;
        let (x, y) = (stream.alloc_zeros(1)?, stream.alloc_zeros(1)?);
        Ok(Self { stream, function, x, y })
    }
}

impl Floor for Program {
    fn run(&mut self, x: f32) -> Outcome<f32> {
        self.stream.memcpy_htod(&[x], &mut self.x)?;
        let [width, height, depth] = increased::KERNEL.workgroup_size;
        let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (width, height, depth), shared_mem_bytes: 0 };
        let block = Block(params());
        // SAFETY: the arguments are those of the kernel's signature, and the lengths in the block are those of the buffers.
        #[allow(unsafe_code, reason = "a launch is unchecked")]
        unsafe {
            self.stream.launch_builder(&self.function).arg(&self.x).arg(&mut self.y).arg(&block).launch(config)?;
        }
        let mut y = [0.0];
        self.stream.memcpy_dtoh(&self.y, &mut y)?;
        self.stream.synchronize()?;
        Ok(y[0])
    }
}
