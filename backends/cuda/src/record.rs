//! Recordings: a list of commands as a CUDA graph, which is launched as a whole.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::{result, sys};
use trefoil_dsl::device::{
    Command, CopyCommand, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource, Pipeline, Recording,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::{WordRules, padded};
use trefoil_dsl::support::state::CounterCells;

use crate::device::{CudaBackend, Shared};
use crate::driver::message;
use crate::library::{Library, Ready};
use crate::memory::{CudaMemory, RawMemory};
use crate::pipeline::CudaPipeline;

/// Edges between two groups of kernels beyond which a node without work between them takes fewer.
const MOST_EDGES: usize = 16;

/// How often a product is captured at most: a thread that makes the context wait, as the unloading of a kernel does, ends the captures of others.
const CAPTURES: u32 = 8;

/// Everything that one launch of a kernel takes, in the form that the driver takes it.
pub(crate) struct Launch<'a> {
    /// The pipeline.
    pub(crate) pipeline: &'a CudaPipeline,
    /// Workgroups; none of them is 0.
    pub(crate) groups: [u32; 3],
    /// Invocations of a workgroup.
    pub(crate) size: [u32; 3],
    // The values of the pointer arguments.
    pointers: Vec<sys::CUdeviceptr>,
    // The parameter block, where it is passed by value; in words, so that it is aligned.
    block: Vec<u64>,
    // What bulk copies are told of matrices.
    maps: Vec<sys::CUtensorMap>,
}

impl<'a> Launch<'a> {
    /// Prepares a dispatch whose rules were checked; `None` if it has no workgroups, which the driver does not take.
    pub(crate) fn of(
        shared: &Shared,
        dispatch: &'a DispatchCommand,
        run_words: Option<sys::CUdeviceptr>,
    ) -> Result<Option<Self>> {
        let pipeline = CudaPipeline::of(&dispatch.pipeline, shared)?;
        shared.state.checks().transport(dispatch, pipeline.transport)?;
        let kernel = pipeline.kernel();
        let mut pointers = Vec::with_capacity(dispatch.bindings.len() + 1);
        for range in &dispatch.bindings {
            pointers.push(CudaMemory::of(&range.memory, shared)?.address() + range.offset);
        }
        let (mut block, mut maps) = (Vec::new(), Vec::new());
        match &dispatch.params {
            _ if kernel.params.size == 0 => {}
            ParamSource::Value(bytes) => {
                block.resize(bytes.len().div_ceil(size_of::<u64>()), 0u64);
                for (word, chunk) in block.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
                    let mut whole = [0; size_of::<u64>()];
                    whole[..chunk.len()].copy_from_slice(chunk);
                    *word = u64::from_ne_bytes(whole);
                }
                maps = pipeline.maps.of_launch(dispatch, &pointers, bytes)?;
            }
            ParamSource::RunWords(offset) => {
                let words = run_words.ok_or_else(|| Error::Command {
                    label: dispatch.label.to_string(),
                    reason: "it uses run words, and there are none".to_owned(),
                })?;
                pointers.push(words + u64::from(*offset));
            }
        }
        let groups = match &dispatch.groups {
            GroupSource::Value(groups) => *groups,
            // There is no indirect dispatch: workgroups past the end return at once.
            GroupSource::RunWords { bound, .. } => *bound,
            // Read before the launch.
            GroupSource::Memory(_) => [1; 3],
        };
        if groups.contains(&0) {
            return Ok(None);
        }
        Ok(Some(Self { pipeline, groups, size: kernel.workgroup_size, pointers, block, maps }))
    }

    /// The addresses of the arguments, which point into `self`.
    pub(crate) fn arguments(&mut self) -> Vec<*mut c_void> {
        let mut arguments: Vec<*mut c_void> =
            self.pointers.iter_mut().map(|pointer| (&raw mut *pointer).cast()).collect();
        if !self.block.is_empty() {
            arguments.push(self.block.as_mut_ptr().cast());
        }
        if !self.maps.is_empty() {
            arguments.push(self.maps.as_mut_ptr().cast());
        }
        arguments
    }

    /// What a node of a graph is told of it. Pointers in it hold for the call alone.
    pub(crate) fn as_node<T>(&mut self, call: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS_v2_st) -> T) -> T {
        let mut arguments = self.arguments();
        call(&sys::CUDA_KERNEL_NODE_PARAMS_v2_st {
            func: self.pipeline.function,
            gridDimX: self.groups[0],
            gridDimY: self.groups[1],
            gridDimZ: self.groups[2],
            blockDimX: self.size[0],
            blockDimY: self.size[1],
            blockDimZ: self.size[2],
            sharedMemBytes: self.pipeline.dynamic_bytes,
            kernelParams: arguments.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        })
    }
}

/// A copy within the GPU, by address.
pub(crate) struct Copy {
    /// What is read.
    pub(crate) from: sys::CUdeviceptr,
    /// What is written.
    pub(crate) to: sys::CUdeviceptr,
    /// How many bytes; not 0.
    pub(crate) bytes: usize,
}

impl Copy {
    /// Prepares a copy whose rules were checked; `None` if it has nothing to copy.
    pub(crate) fn of(shared: &Shared, copy: &CopyCommand) -> Result<Option<Self>> {
        let at =
            |range: &MemoryRange| -> Result<_> { Ok(CudaMemory::of(&range.memory, shared)?.address() + range.offset) };
        let bytes = usize::try_from(copy.from.bytes).unwrap_or(usize::MAX);
        Ok((bytes > 0).then_some(Self { from: at(&copy.from)?, to: at(&copy.to)?, bytes }))
    }
}

/// What one command does.
enum Work<'a> {
    Launch(Launch<'a>),
    Copy(Copy),
    Product(Ready),
}

/// A graph that is being built; it goes with its scope, in which the context is current.
pub(crate) struct Graph(sys::CUgraph);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph was made by the driver and is destroyed once.
        let _ = unsafe { result::graph::destroy(self.0) };
    }
}

impl Graph {
    pub(crate) fn new() -> Result<Self, result::DriverError> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the context is current.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result()?;
        Ok(Self(graph))
    }

    /// A node that launches a kernel after `after`.
    pub(crate) fn kernel(
        &self,
        launch: &mut Launch<'_>,
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode, result::DriverError> {
        let mut node = std::ptr::null_mut();
        launch.as_node(|parameters| {
            // SAFETY: the context is current; the function is loaded and takes these arguments, which `finish` checked; the driver
            // copies them during the call; `after` are nodes of this graph.
            unsafe { sys::cuGraphAddKernelNode_v2(&mut node, self.0, after.as_ptr(), after.len(), parameters) }.result()
        })?;
        Ok(node)
    }

    /// A node that copies after `after`.
    fn copy(
        &self,
        copy: &Copy,
        context: sys::CUcontext,
        after: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode, result::DriverError> {
        let parameters = sys::CUDA_MEMCPY3D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: copy.from,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: copy.bytes,
            srcHeight: 1,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: copy.to,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: copy.bytes,
            dstHeight: 1,
            WidthInBytes: copy.bytes,
            Height: 1,
            Depth: 1,
        };
        let mut node = std::ptr::null_mut();
        // SAFETY: the context is current; both ranges lie within memory that the recording holds; `after` are nodes of this graph.
        unsafe { sys::cuGraphAddMemcpyNode(&mut node, self.0, after.as_ptr(), after.len(), &parameters, context) }
            .result()?;
        Ok(node)
    }

    /// A node that multiplies matrices after `after`: what cuBLASLt hands to a stream, captured.
    fn product(&self, shared: &Shared, product: &Ready, after: &[sys::CUgraphNode]) -> Result<sys::CUgraphNode> {
        let failed = |error| shared.state.driver("capturing a product of matrices", message(error));
        let mut attempt = 1;
        let captured = loop {
            let stream = Captured::begin().map_err(failed)?;
            let started = product.start(stream.0);
            // Ended in any case: a stream that captures takes nothing else.
            let captured = stream.end();
            let ended = sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
            if captured.as_ref().is_err_and(|error| error.0 == ended) && attempt < CAPTURES {
                attempt += 1;
                continue;
            }
            // Nothing has run, so that the device goes on.
            started.map_err(|error| Error::Command {
                label: product.label().to_string(),
                reason: format!("cuBLASLt cannot record it: {error}"),
            })?;
            break captured.map_err(failed)?;
        };
        let mut node = std::ptr::null_mut();
        // SAFETY: the driver copies the captured graph, which lives until the end of this function; `after` are nodes of this graph.
        unsafe { sys::cuGraphAddChildGraphNode(&mut node, self.0, after.as_ptr(), after.len(), captured.0) }
            .result()
            .map_err(failed)?;
        Ok(node)
    }

    /// The graph as something to launch.
    pub(crate) fn instantiate(&self) -> Result<sys::CUgraphExec, result::DriverError> {
        // SAFETY: the context is current, and the graph is complete.
        unsafe { result::graph::instantiate(self.0, sys::CUgraphInstantiate_flags(0)) }
    }

    /// A node that does nothing after `after`.
    fn join(&self, after: &[sys::CUgraphNode]) -> Result<sys::CUgraphNode, result::DriverError> {
        let mut node = std::ptr::null_mut();
        // SAFETY: `after` are nodes of this graph.
        unsafe { sys::cuGraphAddEmptyNode(&mut node, self.0, after.as_ptr(), after.len()) }.result()?;
        Ok(node)
    }
}

/// A stream that notes what it is given instead of doing it; it goes with its scope.
struct Captured(sys::CUstream);

impl Captured {
    fn begin() -> Result<Self, result::DriverError> {
        let stream = Self(result::stream::create(result::stream::StreamKind::NonBlocking)?);
        // Libraries load their kernels when they first need them, which stricter modes forbid.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the context is current, and the stream is ours alone.
        unsafe { result::stream::begin_capture(stream.0, mode) }?;
        Ok(stream)
    }

    fn end(&self) -> Result<Graph, result::DriverError> {
        // SAFETY: the stream captures.
        unsafe { result::stream::end_capture(self.0) }.map(Graph)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // SAFETY: the stream was made by `begin` and is destroyed once.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

/// Commands made ready to run many times.
pub(crate) struct CudaRecording {
    shared: Arc<Shared>,
    /// The graph; `None` if no command has any work.
    pub(crate) graph: Option<sys::CUgraphExec>,
    /// Where run words lie, if there are any.
    pub(crate) run_words: Option<RawMemory>,
    /// What they must keep.
    pub(crate) rules: WordRules,
    /// Names the recording in errors.
    pub(crate) label: Arc<str>,
    /// Whether it has run; held during a run, so that run words are not changed under it.
    pub(crate) ran: Mutex<bool>,
    _memory: Vec<Arc<dyn Memory>>,
    _pipelines: Vec<Arc<dyn Pipeline>>,
    _library: Option<Arc<Library>>,
}

// SAFETY: the driver's handles may be used from any thread in which the context is current.
unsafe impl Send for CudaRecording {}
// SAFETY: as above; who launches the graph holds the lock of the queue.
unsafe impl Sync for CudaRecording {}

impl CudaRecording {
    /// Checks that this device made it.
    pub(crate) fn of<'a>(recording: &'a dyn Recording, shared: &Shared) -> Result<&'a Self> {
        let own: &Self = shared.state.own(recording.as_any(), "a recording")?;
        shared.state.made(own.shared.state.id, "a recording")?;
        Ok(own)
    }
}

impl fmt::Debug for CudaRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaRecording(`{}` and what follows)", self.label)
    }
}

impl Drop for CudaRecording {
    fn drop(&mut self) {
        if let (Some(graph), Ok(_entered)) = (self.graph, self.shared.enter()) {
            // SAFETY: the graph is destroyed once; the driver frees it when launches that are under way are done. What they use is given back behind them: see `Handles::give_back`.
            let _ = unsafe { result::graph::exec_destroy(graph) };
        }
    }
}

impl Recording for CudaRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CudaBackend {
    /// Records `list`. Commands between two barriers may overlap; those after a barrier wait for all before it.
    pub(crate) fn make_recording(&self, list: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        let shared = &self.shared;
        let rules = shared.state.checks().recording(list, run_words)?;
        let words = match run_words {
            0 => None,
            bytes => {
                shared.state.checks().allocation(bytes as u64, "run words")?;
                Some(RawMemory::new(shared, padded(bytes as u64), "run words")?)
            }
        };
        let failed = |call: &'static str| move |error| shared.state.driver(call, message(error));
        let graph = Graph::new().map_err(failed("making a graph"))?;
        let mut memory = Vec::new();
        let mut pipelines = Vec::new();
        let mut library = None;
        // What the present group waits for, and the present group.
        let mut before: Vec<sys::CUgraphNode> = Vec::new();
        let mut group: Vec<Work<'_>> = Vec::new();
        let mut close = |group: &mut Vec<Work<'_>>| -> Result<()> {
            if group.is_empty() {
                return Ok(());
            }
            if before.len() * group.len() > MOST_EDGES {
                before = vec![graph.join(&before).map_err(failed("joining commands in a graph"))?];
            }
            let mut nodes = Vec::with_capacity(group.len());
            // Products share memory: each waits for the one before.
            let mut product = None;
            for work in group.drain(..) {
                let node = match work {
                    Work::Launch(mut launch) => graph.kernel(&mut launch, &before),
                    Work::Copy(copy) => graph.copy(&copy, shared.handles.context, &before),
                    Work::Product(ready) => {
                        let after: Vec<_> = before.iter().copied().chain(product).collect();
                        let node = graph.product(shared, &ready, &after)?;
                        product = Some(node);
                        Ok(node)
                    }
                };
                nodes.push(node.map_err(failed("adding a command to a graph"))?);
            }
            before = nodes;
            Ok(())
        };
        for command in list {
            match command {
                Command::Barrier => close(&mut group)?,
                Command::Call(call) => {
                    let ready = self.ready_call(call)?;
                    memory.extend(call.reads.iter().chain(&call.writes).map(|range| range.memory.clone()));
                    library = Some(ready.library().clone());
                    group.push(Work::Product(ready));
                }
                Command::Dispatch(dispatch) => {
                    pipelines.push(dispatch.pipeline.clone());
                    memory.extend(dispatch.bindings.iter().map(|range| range.memory.clone()));
                    let launch = Launch::of(shared, dispatch, words.as_ref().map(|words| words.address))?;
                    group.extend(launch.map(Work::Launch));
                }
                Command::Copy(copy) => {
                    memory.extend([copy.from.memory.clone(), copy.to.memory.clone()]);
                    group.extend(Copy::of(shared, copy)?.map(Work::Copy));
                }
            }
        }
        close(&mut group)?;
        let graph_exec =
            if before.is_empty() { None } else { Some(graph.instantiate().map_err(failed("instantiating a graph"))?) };
        let recording = CudaRecording {
            shared: shared.clone(),
            graph: graph_exec,
            run_words: words,
            rules,
            label: Command::first_label(list),
            ran: Mutex::new(false),
            _memory: memory,
            _pipelines: pipelines,
            _library: library,
        };
        if let Some(graph) = recording.graph {
            // SAFETY: the graph and the stream are the device's. So the first run is as quick as the others.
            unsafe { result::graph::upload(graph, shared.handles.stream) }.map_err(failed("uploading a graph"))?;
        }
        CounterCells::add(&shared.state.counters.recordings);
        Ok(Arc::new(recording))
    }
}
