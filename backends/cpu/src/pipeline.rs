//! Kernels made ready: compiled functions as they are, late instances as programs of the evaluator, and on a device that checks all of them as programs of the checker.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use trefoil_codegen::artefact::{CpuArguments, CpuFunction, Kernel, ParamTransport, Target, VariantError};
use trefoil_codegen::check;
use trefoil_codegen::compile::is_described;
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::{self, Instance, Module};
use trefoil_codegen::verify::{verify, verify_reporting};
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
    Evaluated(Box<Program>),
    /// The checker, which runs a grid as a whole.
    Checked(Box<check::Program>),
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

    /// The checker's program, on a device that checks.
    pub(crate) fn checked(&self) -> Option<&check::Program> {
        match &self.engine {
            Engine::Checked(program) => Some(program),
            Engine::Compiled(_) | Engine::Evaluated(_) => None,
        }
    }

    /// How many workgroups, one behind the other in the grid, may run at once in a launch with that parameter block.
    pub(crate) fn at_once(&self, params: &[u8]) -> u64 {
        match &self.engine {
            Engine::Compiled(function) => function.at_once(params),
            Engine::Evaluated(program) => program.at_once(params),
            Engine::Checked(_) => 1,
        }
    }

    /// Runs the workgroups `first..end`; nothing where [`CpuPipeline::checked`] has what runs them.
    ///
    /// # Safety
    /// As [`CpuFunction::entry`].
    pub(crate) unsafe fn run(&self, arguments: &CpuArguments<'_>, first: u64, end: u64) {
        match &self.engine {
            // SAFETY: the caller vouches for the arguments.
            Engine::Compiled(function) => unsafe { (function.entry)(arguments, first, end) },
            // SAFETY: the caller vouches for the arguments.
            Engine::Evaluated(program) => unsafe { program.run(arguments, first..end) },
            Engine::Checked(_) => {}
        }
    }
}

impl fmt::Debug for CpuPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match self.engine {
            Engine::Compiled(_) => "compiled",
            Engine::Evaluated(_) => "evaluated",
            Engine::Checked(_) => "checked",
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
        self.made.load(kernels, key, |kernel| build(shared, kernel, transport))
    }
}

fn build(shared: &Arc<Shared>, kernel: &Arc<Kernel>, transport: ParamTransport) -> Result<CpuPipeline> {
    shared.state.checks().kernel(kernel)?;
    let engine = match kernel.cpu {
        // On the threads that run kernels, whose stacks are large: these follow the source however deep it nests.
        _ if shared.reports.is_some() => Engine::Checked(Box::new(shared.on_pool(|| check_program(shared, kernel))?)),
        Some(function) => Engine::Compiled(function),
        None => Engine::Evaluated(Box::new(shared.on_pool(|| evaluate(shared, kernel))?)),
    };
    CounterCells::add(&shared.state.counters.pipelines);
    Ok(CpuPipeline { id: shared.state.id, kernel: kernel.clone(), transport, engine })
}

fn failed(shared: &Shared, kernel: &Kernel, message: String) -> Error {
    Error::Build { kernel: kernel.name.to_string(), device: shared.state.properties.name.clone(), message }
}

/// What a kernel carries of its source: the generic IR, the instance, and the values of its specialisation constants.
fn carried(shared: &Shared, kernel: &Kernel) -> Result<(Module, Instance, Vec<i64>)> {
    if kernel.ir.is_empty() {
        return Err(no_target(kernel));
    }
    let module = Module::from_bytes(&kernel.ir)
        .map_err(|error| failed(shared, kernel, format!("its IR is damaged: {error}")))?;
    let instance = Instance::from_bytes(&kernel.instance)
        .map_err(|error| failed(shared, kernel, format!("its instance is damaged: {error}")))?;
    Ok((module, instance, kernel.constants.iter().map(|constant| constant.value).collect()))
}

fn no_target(kernel: &Kernel) -> Error {
    Error::Variant(VariantError::NoTarget { kernel: kernel.name.to_string(), target: Target::Cpu })
}

/// Makes the checker's program, also of a kernel that has no code for the CPU.
fn check_program(shared: &Shared, kernel: &Kernel) -> Result<check::Program> {
    let (module, instance, values) = carried(shared, kernel)?;
    check::Program::new(&module, &instance, &values).map_err(|error| failed(shared, kernel, error.reason))
}

/// Makes the evaluator's program from the IR that a kernel carries.
fn evaluate(shared: &Shared, kernel: &Kernel) -> Result<Program> {
    let (module, instance, values) = carried(shared, kernel)?;
    if !module.targets.contains(&Target::Cpu) {
        return Err(no_target(kernel));
    }
    let mut module = ir::instantiate(&module, &instance).map_err(|error| failed(shared, kernel, error.to_string()))?;
    ir::specialise(&mut module, &values);
    // One that reports writes to its last binding what others leave out.
    let reports = !kernel.sites.is_empty();
    let verified = if reports { verify_reporting(module).map(|(verified, _)| verified) } else { verify(module) };
    let verified = verified.map_err(|error| failed(shared, kernel, error.to_string()))?;
    // Memory is bound as the artefact says, and accessed as the IR does.
    if !is_described(kernel, &verified) {
        return Err(failed(
            shared,
            kernel,
            "it is damaged: its bindings and parameters are not those of its IR".to_owned(),
        ));
    }
    Program::new(&verified).map_err(|error| failed(shared, kernel, error.to_string()))
}
