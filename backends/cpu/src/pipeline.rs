//! Kernels made ready: compiled functions as they are, late instances as programs of the evaluator.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;
use trefoil_codegen::artefact::{CpuArguments, CpuFunction, Kernel, ParamTransport, Target, VariantError};
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::{self, Instance, Module};
use trefoil_codegen::verify::verify;
use trefoil_dsl::device::Pipeline;
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::state::CounterCells;

use crate::device::{Shared, lock};

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
        pipeline
            .as_any()
            .downcast_ref::<Self>()
            .ok_or_else(|| Error::OtherDevice { what: "a pipeline".to_owned(), device: shared.properties.name.clone() })
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

/// What tells pipelines of one device apart. Kernels with and without a compiled function may have equal hashes.
type Key = ([u8; 16], String, bool, ParamTransport);

/// The pipelines of a device.
#[derive(Default)]
pub(crate) struct PipelineStore {
    made: Mutex<HashMap<Key, Arc<CpuPipeline>>>,
}

impl PipelineStore {
    /// Makes kernels ready, in parallel.
    pub(crate) fn load(
        &self,
        shared: &Arc<Shared>,
        kernels: &[Arc<Kernel>],
        transport: ParamTransport,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        let key = |kernel: &Kernel| (kernel.hash, kernel.name.to_string(), kernel.cpu.is_some(), transport);
        let mut missing: Vec<&Arc<Kernel>> = Vec::new();
        {
            let made = lock(&self.made);
            let mut seen = HashSet::new();
            for kernel in kernels {
                let key = key(kernel);
                if !made.contains_key(&key) && seen.insert(key) {
                    missing.push(kernel);
                }
            }
        }
        let built: Vec<Result<CpuPipeline>> =
            shared.pool.install(|| missing.par_iter().map(|kernel| build(shared, kernel, transport)).collect());
        let mut made = lock(&self.made);
        let mut failure = None;
        for (kernel, pipeline) in missing.into_iter().zip(built) {
            match pipeline {
                Ok(pipeline) => {
                    made.entry(key(kernel)).or_insert_with(|| Arc::new(pipeline));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        kernels
            .iter()
            .map(|kernel| {
                let pipeline: Arc<dyn Pipeline> = made.get(&key(kernel)).cloned().ok_or_else(|| Error::Driver {
                    device: shared.properties.name.clone(),
                    call: "making pipelines",
                    message: format!("`{}` is missing", kernel.name),
                })?;
                Ok(pipeline)
            })
            .collect()
    }
}

fn build(shared: &Arc<Shared>, kernel: &Arc<Kernel>, transport: ParamTransport) -> Result<CpuPipeline> {
    shared.checks().kernel(kernel)?;
    let engine = match kernel.cpu {
        Some(function) => Engine::Compiled(function),
        None => Engine::Evaluated(evaluate(shared, kernel)?),
    };
    CounterCells::add(&shared.counters.pipelines);
    Ok(CpuPipeline { id: shared.id, kernel: kernel.clone(), transport, engine })
}

/// Makes the evaluator's program from the IR that a kernel carries.
fn evaluate(shared: &Shared, kernel: &Kernel) -> Result<Program> {
    let failed = |message: String| Error::Build {
        kernel: kernel.name.to_string(),
        device: shared.properties.name.clone(),
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
    let module = ir::instantiate(&module, &instance).map_err(|error| failed(error.to_string()))?;
    let verified = verify(module).map_err(|error| failed(error.to_string()))?;
    Program::new(&verified).map_err(|error| failed(error.to_string()))
}
