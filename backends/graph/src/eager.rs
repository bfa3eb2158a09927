//! Ops run one by one on device tensors: what a framework that has no graphs builds on.
//!
//! [`Eager`] has every method of [`Graph`] that adds an op but [`Graph::update`], since it has no states. They are derived from it and never written twice, with [`EagerTensor`]s for tensors of a graph: `eager.matmul(&a, &b)?`. Types, shapes and
//! errors are the graph's own.
//!
//! ```
//! use trefoil_graph::Eager;
//!
//! let eager = Eager::new(&trefoil_cpu::open(&Default::default())?);
//! let a = eager.tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = eager.tensor(&[3, 1], &[1.0f32, 10.0, 100.0])?;
//! let product = eager.matmul(&a, &b)?;
//! let root = eager.sqrt(&eager.abs(&product)?)?;
//! // What was gathered is submitted here.
//! assert_eq!(root.read::<f32>()?, [321.0f32.sqrt(), 654.0f32.sqrt()]);
//! // A transposed tensor is a view: nothing was launched for it.
//! let turned = eager.transpose(&a, &[1, 0])?;
//! assert_eq!(turned.shape(), [3, 2]);
//! assert_eq!(eager.statistics().launches, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a call does
//! * **The first of its kind** (the same method, attributes, shapes, types and views) builds the graph of that one method and compiles it through the stages of every other graph: milliseconds. What a method makes of several ops is
//!   fused there as anywhere. The executable is kept, up to a number of them (`single`, `cache`).
//! * **Every other** writes its key, finds the executable, takes memory for its results and scratch from a pool and adds its commands to the batch: some ten small allocations, two locks and a look-up, 1.6 us for an op of one kernel in a build of the `dev` profile. No graph is
//!   built, nothing is inferred, compiled or recorded (`call`, `batch`). To this comes what the device's backend takes for each command of a list when the batch is submitted, as for every list: a check, and the driver's own calls (on Vulkan and CUDA a few; on wgpu a new bind group,
//!   which costs more than all the rest). `trefoil bench eager` measures both together. Memory that is free already serves at once, without waiting for the device (`pool`).
//! * **Views** of all kinds are layouts: no launch and no copy, unless strides cannot say where the elements lie.
//! * **A batch** is submitted when it is full ([`EagerOptions::batch`]), by [`Eager::flush`], and when a tensor is read. Until then errors of the device are not known: they come
//!   when something needs the result ([`Error::NotComputed`], which names the op that computes it) and from `flush`; what was not computed can never be read.
//!
//! Tensors of different `Eager`s, and so of different devices, do not mix. An `Eager` is shared by threads: its calls are gathered in one order.

mod batch;
mod cache;
mod call;
mod pool;
mod seeds;
mod single;
mod strided;
mod tensor;

use std::sync::{Arc, Mutex, MutexGuard};

use trefoil_dsl::device::{Device, MemoryRange};
use trefoil_dsl::support::state::lock;

use self::batch::Batch;
use self::cache::Cache;
pub(crate) use self::call::{Call, Operands, Results};
pub use self::pool::PoolStatistics;
use self::pool::{Buffer, Pool};
use self::seeds::Seeds;
use self::single::{Place, Single, Source};
pub use self::tensor::EagerTensor;
use self::tensor::{Form, Inner, Outcome};
use crate::compile::Options;
use crate::compile::cache::{KernelCache, Kernels};
use crate::data::Data;
use crate::dim::Dim;
use crate::error::{Error, Result, at};
#[cfg(doc)]
use crate::graph::Graph;
use crate::graph::{GraphError, Leaf, LeafKind, Tensor};
use crate::op::{Op, OpError};
use crate::types::{Layout, Shape, TensorType};

/// Runs ops on a device; clones are the same one.
#[derive(Clone, Debug)]
pub struct Eager(Arc<Shared>);

/// What an [`Eager`] may hold, and how it compiles.
#[derive(Clone, Debug)]
pub struct EagerOptions {
    /// How calls are compiled. [`Options::force`] names ops, not nodes, and is for the calls that have them, as [`Options::forbid`] is for those that have such candidates.
    pub compile: Options,
    /// Launches that are submitted together, at most; 1 submits each at once.
    pub batch: usize,
    /// Executables that are kept. Pipelines that were made for those that are not stay as long as the device is open.
    pub executables: usize,
    /// Bytes of device memory that tensors, scratch memory and free buffers may take together; without it as many as the device has.
    pub budget: Option<u64>,
}

impl Default for EagerOptions {
    fn default() -> Self {
        Self { compile: Options::default(), batch: 128, executables: 1024, budget: None }
    }
}

/// What an [`Eager`] has done and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls that found their executable.
    pub hits: u64,
    /// Calls that were compiled.
    pub misses: u64,
    /// Executables that are kept now.
    pub executables: usize,
    /// Kernels and functions of the host that were added to batches.
    pub launches: u64,
    /// Barriers among them.
    pub barriers: u64,
    /// Batches that were submitted.
    pub submissions: u64,
    /// The memory.
    pub pool: PoolStatistics,
}

#[derive(Debug)]
struct Shared {
    device: Device,
    options: EagerOptions,
    kernels: KernelCache,
    pool: Arc<Pool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cache: Cache,
    batch: Batch,
    seeds: Seeds,
}

impl Eager {
    /// Runs ops on a device.
    pub fn new(device: &Device) -> Self {
        Self::with_options(device, EagerOptions::default())
    }

    /// Runs ops on a device, with options.
    pub fn with_options(device: &Device, options: EagerOptions) -> Self {
        let state = State { cache: Cache::new(options.executables), batch: Batch::default(), seeds: Seeds::default() };
        Self(Arc::new(Shared {
            device: device.clone(),
            kernels: KernelCache::default(),
            pool: Arc::new(Pool::new(device.clone(), options.budget)),
            state: Mutex::new(state),
            options,
        }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// A tensor of values of the host, which are copied.
    ///
    /// # Errors
    /// The shape is not of numbers or takes another number of values; there is no such memory; or the device failed.
    pub fn tensor<'d>(&self, shape: &[usize], values: impl Into<Data<'d>>) -> Result<EagerTensor> {
        let values = values.into();
        let shape: Shape = shape.iter().copied().map(Dim::from).collect();
        let ty = TensorType { element: values.element(), shape };
        let elements = ty.elements().constant().unwrap_or(i64::MAX);
        if u64::try_from(elements).ok() != Some(values.len()) {
            return Err(Error::Length {
                what: "tensor",
                name: "values".to_owned(),
                given: values.len(),
                expected: u64::try_from(elements).unwrap_or(0),
                ty: ty.to_string(),
            });
        }
        let buffer = self.upload(&values.bytes, "tensor")?;
        let layout = Layout::contiguous(&ty.shape);
        let form = Arc::new(Form::new(ty, layout, elements));
        let outcome = Arc::new(Outcome::default());
        Ok(EagerTensor(Arc::new(Inner { eager: self.clone(), form, buffer, outcome, op: "tensor" })))
    }

    /// Runs an op, such as one of a user's own, and gives its outputs: [`Graph::add_op`] of tensors on the device.
    ///
    /// # Errors
    /// As [`Graph::add_op`]; a tensor of another `Eager` or one that was never computed; no memory, or no way to compute it on the device.
    pub fn add_op(&self, op: impl Op, inputs: &[&EagerTensor]) -> Result<Vec<EagerTensor>> {
        self.add_shared(&(Arc::new(op) as Arc<dyn Op>), inputs)
    }

    /// [`Eager::add_op`] of an op that others hold too, such as one of a graph's nodes. A constant of a graph becomes a tensor of its values.
    ///
    /// # Errors
    /// As [`Eager::add_op`]; or the op is a leaf whose values a run or a model would give.
    pub fn add_shared(&self, op: &Arc<dyn Op>, inputs: &[&EagerTensor]) -> Result<Vec<EagerTensor>> {
        let ty: &dyn std::any::Any = &**op;
        if let Some(Leaf { kind, ty }) = ty.downcast_ref().filter(|_| inputs.is_empty()) {
            match kind {
                LeafKind::Constant(bytes) => return Ok(vec![self.constant(ty, bytes)?]),
                LeafKind::Input | LeafKind::Param | LeafKind::State => return Err(not_given(op.name(), ty)),
                LeafKind::Seed => {}
            }
        }
        let mut call = self.call(op.name());
        call.attribute(&ty.type_id());
        call.attribute(&op.attributes());
        let inputs: Vec<Tensor> = inputs.take("input", &mut call);
        call.attribute(&inputs.len());
        call.run(|graph| graph.add_shared(op, &inputs))
    }

    /// A tensor of the values of a graph's constant, which are no part of a call: its executable would hold those of the first.
    fn constant(&self, ty: &TensorType, bytes: &[u8]) -> Result<EagerTensor> {
        if ty.shape.iter().any(|extent| extent.constant().is_none()) {
            return Err(Error::Symbolic { what: "constant", name: "values".to_owned(), ty: ty.to_string() });
        }
        let values = Data::from_bytes(ty.element, bytes).ok_or_else(|| Error::Length {
            what: "constant",
            name: "values".to_owned(),
            given: bytes.len() as u64 / ty.element.bytes(),
            expected: u64::try_from(ty.elements().bounds().1).unwrap_or(0),
            ty: ty.to_string(),
        })?;
        self.tensor(&ty.extents(), values)
    }

    /// Runs an op that has one output.
    ///
    /// # Errors
    /// As [`Eager::add_op`]; and the op has another number of outputs.
    pub fn add_one(&self, op: impl Op, inputs: &[&EagerTensor]) -> Result<EagerTensor> {
        let name = op.name();
        match <[EagerTensor; 1]>::try_from(self.add_op(op, inputs)?) {
            Ok([only]) => Ok(only),
            Err(outputs) => Err(crate::graph::several_outputs(name, outputs.len()).into()),
        }
    }

    /// Submits what was gathered, without waiting for it.
    ///
    /// # Errors
    /// The device refused this batch, or one before it that no `flush` has reported yet.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.state();
        state.batch.submit(self.device());
        state.batch.failure().map_or(Ok(()), Err)
    }

    /// Submits what was gathered, and waits until the device has done it.
    ///
    /// # Errors
    /// As [`Eager::flush`]; the device failed; or a kernel of an op asserted what does not hold ([`Device::reports`]).
    pub fn wait(&self) -> Result<()> {
        self.flush()?;
        Ok(self.device().wait()?)
    }

    /// Gives the next random op this seed; those after it count on from there. Without it the first has seed 0. What draws nothing, as [`Eager::bernoulli`] does with a probability of 0 or 1, takes none.
    pub fn set_seed(&self, seed: u64) {
        self.state().seeds.set(seed);
    }

    /// Gives memory that nothing uses back to the device.
    pub fn trim(&self) {
        self.0.pool.trim();
    }

    /// What it has done so far, and what it holds.
    pub fn statistics(&self) -> Statistics {
        let state = self.state();
        let counts = state.batch.counts;
        Statistics {
            hits: state.cache.hits,
            misses: state.cache.misses,
            executables: state.cache.len(),
            launches: counts.launches,
            barriers: counts.barriers,
            submissions: counts.submissions,
            pool: self.0.pool.statistics(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    fn options(&self) -> &Options {
        &self.0.options.compile
    }

    fn kernels(&self) -> Kernels<'_> {
        Kernels::of(&self.0.kernels, &self.0.device)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Submits what was gathered; whoever needs its results learns of a failure from them.
    fn submit(&self) {
        self.state().batch.submit(self.device());
    }

    fn known(&self, key: &str) -> Option<Arc<Single>> {
        self.state().cache.get(key)
    }

    fn remember(&self, key: String, single: Single) -> Arc<Single> {
        self.state().cache.insert(key, single)
    }

    /// Memory with these bytes in it.
    fn upload(&self, bytes: &[u8], label: &str) -> Result<Arc<Buffer>> {
        let buffer = self.writable(&mut self.state(), bytes.len() as u64, label)?;
        // Nobody else has it, so that other threads go on meanwhile.
        self.write(&buffer, bytes, label)?;
        Ok(buffer)
    }

    /// Memory to which the host may write so many bytes.
    fn writable(&self, state: &mut State, bytes: u64, label: &str) -> Result<Arc<Buffer>> {
        let buffer = self.memory(state, bytes, Some(state.batch.first), label)?;
        // The host writes after what is submitted, and gathered work that still uses the memory must come first.
        if buffer.piece()?.is_used_since(state.batch.first) {
            state.batch.submit(self.device());
        }
        Ok(buffer)
    }

    fn write(&self, buffer: &Buffer, bytes: &[u8], label: &str) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let range = MemoryRange { memory: buffer.piece()?.memory.clone(), offset: 0, bytes: bytes.len() as u64 };
        self.device().backend().write(&range, bytes).map_err(at("memory of", label))
    }

    /// Memory of the pool. If there is none, what is gathered is run first, since it holds memory that nobody else does; as what was submitted may, until the device is done with it.
    fn memory(&self, state: &mut State, bytes: u64, idle_since: Option<u64>, label: &str) -> Result<Arc<Buffer>> {
        let taken = self.0.pool.take(bytes, idle_since, label);
        match taken {
            Err(error) if error.is_out_of_memory() => {
                state.batch.submit(self.device());
                self.device().backend().wait().map_err(at("memory of", label))?;
                self.0.pool.take(bytes, idle_since, label)
            }
            taken => taken,
        }
    }

    /// Adds a call to the batch.
    fn launch(&self, op: &'static str, single: &Single, operands: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        let mut state = self.state();
        let state = &mut *state;
        let mut held = Vec::with_capacity(single.buffers.len());
        for source in &single.buffers {
            held.push(match source {
                Source::Operand(operand) => (operands[*operand].0.buffer.clone(), 0),
                Source::Constant(buffer) => (buffer.clone(), 0),
                Source::Fresh(bytes) => (self.memory(state, *bytes, None, op)?, 0),
                Source::Seed => self.seed(state)?,
            });
        }
        // What stands above may have submitted a batch, and this one needs its results.
        for operand in operands {
            operand.check()?;
        }
        let buffers = held.iter().map(|(buffer, first)| Ok((buffer.piece()?, *first))).collect::<Result<Vec<_>>>()?;
        for work in &single.work {
            state.batch.add(work, &buffers)?;
        }
        let outcome = state.batch.outcome.clone();
        let gives = single.gives.iter().map(|given| {
            let inner = match given.place {
                // A view has the fate of what it is a view of.
                Place::Operand(operand) => {
                    let Inner { buffer, outcome, op, .. } = &*operands[operand].0;
                    (buffer.clone(), outcome.clone(), *op)
                }
                Place::Buffer(buffer) => (held[buffer].0.clone(), outcome.clone(), op),
            };
            let (buffer, outcome, op) = inner;
            EagerTensor(Arc::new(Inner { eager: self.clone(), form: given.form.clone(), buffer, outcome, op }))
        });
        let gives = gives.collect();
        if state.batch.waiting() >= self.0.options.batch {
            state.batch.submit(self.device());
        }
        Ok(gives)
    }

    /// The memory of the next seed.
    fn seed(&self, state: &mut State) -> Result<(Arc<Buffer>, u64)> {
        if let Some(seed) = state.seeds.take() {
            return Ok(seed);
        }
        let bytes = state.seeds.bytes();
        let buffer = self.writable(state, bytes.len() as u64, "seeds")?;
        self.write(&buffer, &bytes, "seeds")?;
        state.seeds.are_in(buffer);
        let seed = state.seeds.take();
        seed.ok_or_else(|| Error::Stage { stage: "eager", defect: "there is no seed".to_owned() })
    }
}

/// That an op is a leaf which nobody gives to ops that run one by one.
fn not_given(kind: &str, ty: &TensorType) -> Error {
    let expected = "`constant`, whose values it has; `Eager::tensor` makes tensors of others".to_owned();
    let error = OpError::Attribute { attribute: "kind", given: kind.to_owned(), expected };
    GraphError::Op { op: format!("{kind} {ty}"), error }.into()
}
