//! Kernels made ready: compiled functions as they are, late instances as programs of the evaluator.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use trefoil_codegen::artefact::{CpuArguments, CpuFunction, Kernel, ParamTransport, Target, VariantError};
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::{self, Instance, Module};
use trefoil_codegen::verify::verify;
use trefoil_dsl::device::Pipeline;
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::pipelines::{Key, PipelineCache, key};
use trefoil_dsl::support::state::CounterCells;

use crate::device::Shared;

/// What runs a kernel.
pub(crate) enum Engine {
    /// Rust that was compiled with the program.
    Compiled(CpuFunction),
    /// The evaluator.
    Evaluated(Program),
}

/// A kernel made ready.
pub(crate) struct CpuPipeline {
    id: u64,
    kernel: Arc<Kernel>,
    /// The transport that it was loaded for.
    pub(crate) transport: ParamTransport,
    engine: Engine,
}

impl CpuPipeline {
    /// The pipeline behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(pipeline: &'a Arc<dyn Pipeline>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(pipeline.as_any(), "a pipeline")
    }

    /// Runs the workgroups `first..end`.
    ///
    /// # Safety
    /// As [`CpuFunction::entry`].
    pub(crate) unsafe fn run(&self, arguments: &CpuArguments<'_>, first: u64, end: u64) {
        match &self.engine {
            // SAFETY: the caller vouches for the arguments.
            Engine::Compiled(function) => unsafe { (function.entry)(arguments, first, end) },
            // SAFETY: the caller vouches for the arguments.
            Engine::Evaluated(program) => unsafe { program.run(arguments, first..end) },
        }
    }
}

impl fmt::Debug for CpuPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match self.engine {
            Engine::Compiled(_) => "compiled",
            Engine::Evaluated(_) => "evaluated",
        };
        write!(f, "CpuPipeline({}, {engine})", self.kernel.name)
    }
}

impl Pipeline for CpuPipeline {
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.id
    }
}

/// The pipelines of a device.
#[derive(Default)]
pub(crate) struct PipelineStore {
    made: PipelineCache<CpuPipeline, (Key, bool)>,
}

impl PipelineStore {
    /// Makes kernels ready, in parallel.
    pub(crate) fn load(
        &self,
        shared: &Arc<Shared>,
        kernels: &[Arc<Kernel>],
        transport: ParamTransport,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        // Kernels with and without a compiled function may have equal hashes.
        let key = |kernel: &Kernel| (key(kernel, transport), kernel.cpu.is_some());
        shared.pool.install(|| self.made.load(kernels, key, |kernel| build(shared, kernel, transport)))
    }
}

fn build(shared: &Arc<Shared>, kernel: &Arc<Kernel>, transport: ParamTransport) -> Result<CpuPipeline> {
    shared.state.checks().kernel(kernel)?;
    let engine = match kernel.cpu {
        Some(function) => Engine::Compiled(function),
        None => Engine::Evaluated(evaluate(shared, kernel)?),
    };
    CounterCells::add(&shared.state.counters.pipelines);
    Ok(CpuPipeline { id: shared.state.id, kernel: kernel.clone(), transport, engine })
}

/// Makes the evaluator's program from the IR that a kernel carries.
fn evaluate(shared: &Shared, kernel: &Kernel) -> Result<Program> {
    let failed = |message: String| Error::Build {
        kernel: kernel.name.to_string(),
        device: shared.state.properties.name.clone(),
        message,
    };
    let none = || Error::Variant(VariantError::NoTarget { kernel: kernel.name.to_string(), target: Target::Cpu });
    if kernel.ir.is_empty() {
        return Err(none());
    }
    let module = Module::from_bytes(&kernel.ir).map_err(|error| failed(format!("its IR is damaged: {error}")))?;
    if !module.targets.contains(&Target::Cpu) {
        return Err(none());
    }
    let instance =
        Instance::from_bytes(&kernel.instance).map_err(|error| failed(format!("its instance is damaged: {error}")))?;
    let mut module = ir::instantiate(&module, &instance).map_err(|error| failed(error.to_string()))?;
    let values: Vec<i64> = kernel.constants.iter().map(|constant| constant.value).collect();
    ir::specialise(&mut module, &values);
    let verified = verify(module).map_err(|error| failed(error.to_string()))?;
    Program::new(&verified).map_err(|error| failed(error.to_string()))
}
