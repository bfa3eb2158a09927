//! trefoil's tensor graph: ops as data, compiled for a device into one recording that serves every run.
//!
//! # The life of a graph
//! 1. **Building.** A [`graph::Graph`] has one method for each op. Types and shapes are known at once; a dimension is an expression over bounded symbols ([`dim`]).
//! 2. **Params.** A [`model::Model`] holds them, from mapped files or slices, and shares them among executables, one copy a device.
//! 3. **Compiling** ([`executable::Executable::compile`]): views become layouts; each op gets the cheapest kernel that the device can run; maps are fused into generated kernels; every value
//!    gets a place; barriers stand where byte ranges need them; a proof that shares no code with any of this is run; the commands are recorded.
//! 4. **Running.** An [`executable::Executable`] takes inputs by name and the symbols' values. Whatever may change from run to run lies in run words, which the kernels read: nothing is
//!    compiled or recorded again. A [`executable::Run`] says more of one run: inputs from the device or as they were; some outputs, rows of them or none, into the caller's memory. A [`executable::QueuedRun`] owns what it reads and writes, and is done beside the program.
//!
//! What stays from run to run is a state ([`ops::state`]): runs update it in the graph, and programs read, replace, reset and fork it.
//! Ops also run one by one, without a graph, on tensors of a device: [`eager`].
//!
//! An op is a value of a type that implements [`op::Op`]; a user's own is as good as the library's (`examples/own_op.rs`).

// Public for the tests and tools of this workspace, which look at single stages: what programs need of it stands at the crate's root and in `explain`.
#[doc(hidden)]
pub mod compile;
pub mod data;
pub mod debug;
pub mod dim;
pub mod eager;
pub mod error;
pub mod executable;
pub mod explain;
pub mod graph;
pub mod model;
pub mod op;
pub mod ops;
pub mod profile;
pub mod pull;
pub mod reference;
pub mod types;

#[doc(inline)]
pub use compile::{IntoKernels, Options};
pub use data::{Data, DataMut, HostElement, OwnedData};
pub use debug::{DebugOptions, DebugReport};
pub use dim::{Dim, DimError, Extents, Symbol};
pub use eager::{Eager, EagerOptions, EagerTensor};
pub use error::{Error, Result};
pub use executable::{
    Elements, Executable, Finished, InputId, OutputId, Outputs, Pending, Plans, PlansStatistics, QueuedRun, Run, Which,
};
pub use explain::Explanation;
pub use graph::{Graph, GraphError, Tensor};
pub use model::{Model, ModelParam};
pub use op::{HostTensor, Op, OpError};
pub use profile::{Ceiling, Profile};
pub use types::{ElementType, IntoShape, Shape, TensorType};
