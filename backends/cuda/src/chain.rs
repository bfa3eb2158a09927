//! Launches that go to the driver many at a time.
//!
//! A launch by itself costs the host four microseconds, a node of a graph half of one. So there is one graph whose nodes stand in a row. It is made of the first launches that
//! come in such number; those that come later are written into its nodes and start with it. What was started before does not notice.
//!
//! Nodes in a row run as launches on a stream do: one after the other.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_dsl::device::{DispatchCommand, Pipeline};
use trefoil_dsl::error::Result;

use crate::device::Shared;
use crate::driver::message;
use crate::record::{Graph, Launch};

/// Launches that go together. Twice as many cost 0.1 us less each, and half as many come twice as often.
pub(crate) const TOGETHER: usize = 8;

/// A launch that waits for others to go with.
pub(crate) type Waiting<'a> = (&'a DispatchCommand, Launch<'a>);

/// The graph.
pub(crate) struct Chain {
    shared: Arc<Shared>,
    // Both are there until the chain goes.
    graph: Option<Graph>,
    launched: sys::CUgraphExec,
    nodes: Vec<Node>,
}

struct Node {
    node: sys::CUgraphNode,
    // The driver may look at a function as long as a node has it: the graph's has the first, what is launched the last.
    _first: Arc<dyn Pipeline>,
    last: Arc<dyn Pipeline>,
}

// SAFETY: the driver's handles may be used from any thread in which the context is current.
unsafe impl Send for Chain {}

impl Chain {
    /// A chain of these launches, which are not started.
    fn new(shared: &Arc<Shared>, launches: &mut [Waiting<'_>]) -> Result<Self, result::DriverError> {
        let graph = Graph::new()?;
        let mut nodes: Vec<Node> = Vec::with_capacity(launches.len());
        for (dispatch, launch) in launches {
            let before = nodes.last().map(|before| before.node);
            let node = graph.kernel(launch, before.as_slice())?;
            nodes.push(Node { node, _first: dispatch.pipeline.clone(), last: dispatch.pipeline.clone() });
        }
        let launched = graph.instantiate()?;
        Ok(Self { shared: shared.clone(), graph: Some(graph), launched, nodes })
    }

    /// Writes other launches into the nodes, as many as there are.
    fn rewrite(&mut self, launches: &mut [Waiting<'_>]) -> Result<()> {
        for (node, (dispatch, launch)) in self.nodes.iter_mut().zip(launches) {
            launch
                .as_node(|parameters| {
                    // SAFETY: the context is current; the node is of the graph of which this was made, which is still there; the function is loaded and takes these arguments, which `finish` checked; the driver copies them during the call.
                    unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.launched, node.node, parameters) }.result()
                })
                .map_err(|error| self.shared.state.lost(&dispatch.label, message(error)))?;
            node.last = dispatch.pipeline.clone();
        }
        Ok(())
    }

    /// Starts [`TOGETHER`] launches on the device's stream, in this order, and makes `chain` if there is none; says whether it did. Where the driver does not make one, nothing is started and nothing is lost: what came before in the list may run already, so
    /// that the list must go on, and launches do as well one by one.
    pub(crate) fn start(chain: &mut Option<Self>, shared: &Arc<Shared>, launches: &mut [Waiting<'_>]) -> Result<bool> {
        let chain = match chain {
            Some(chain) => {
                chain.rewrite(launches)?;
                chain
            }
            None => match Self::new(shared, launches) {
                Ok(made) => chain.insert(made),
                Err(_) => return Ok(false),
            },
        };
        let Some((first, _)) = launches.first() else { return Ok(true) };
        // SAFETY: the context is current; graph and stream are the device's; memory that goes meanwhile is freed in the order of the stream.
        unsafe { result::graph::launch(chain.launched, shared.handles.stream) }
            .map_err(|error| shared.state.lost(&first.label, message(error)))?;
        Ok(true)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the driver made it, and it is destroyed once; launches that are under way go on.
            let _ = unsafe { result::graph::exec_destroy(self.launched) };
            self.graph = None;
        } else {
            // Without a context nothing can be given back.
            std::mem::forget(self.graph.take());
        }
    }
}
