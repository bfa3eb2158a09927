//! Device times of an executable's steps, and its commands for lists of the caller's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tracing::debug_span;
use trefoil_dsl::artefact::ParamTransport;
use trefoil_dsl::device::{Command, DispatchCommand, Pipeline};

use super::{Executable, Parts};
use crate::compile::by_value::by_value;
use crate::compile::steps::{Claim, Step};
use crate::dim::{Dim, Extents};
use crate::error::{Result, at};
use crate::graph::Graph;
use crate::profile::{HostTime, Profile, StepTime};

/// The floating-point operations of the nodes that a step computes, all of those of a node of which it is a part.
pub(super) fn flops(graph: &Graph, step: &Step) -> Dim {
    let mut flops = Dim::from(0i64);
    for claim in &step.claims {
        let Claim::Node(node) = *claim else { continue };
        let Some(node) = graph.nodes().get(node as usize) else { continue };
        let types = node.inputs.iter().map_while(|input| graph.type_of(*input).ok().cloned());
        flops = flops + node.op.flops(&types.collect::<Vec<_>>(), &node.outputs);
    }
    flops
}

/// What stands where a count does not fit or is below nothing: neither can be of memory that there is.
fn count(dim: &Dim, extents: &Extents) -> Result<u64> {
    Ok(u64::try_from(dim.eval(extents)?).unwrap_or(0))
}

impl Parts {
    /// What each step does for these extents; the times are still to come.
    fn work(&self, extents: &Extents) -> Result<Vec<StepTime>> {
        let steps = self.steps.iter().zip(&self.flops);
        steps
            .map(|(step, flops)| {
                let mut bytes = 0u64;
                for used in &step.uses {
                    let touched = count(used.part.as_ref().unwrap_or(&used.bytes), extents)?;
                    let times = u64::from(used.access.reads()) + u64::from(used.access.writes());
                    bytes = bytes.saturating_add(touched.saturating_mul(times));
                }
                let (label, kernel) = (step.label.clone(), step.work.name().to_owned());
                Ok(StepTime { label, kernel, nanoseconds: 0, bytes, flops: count(flops, extents)? })
            })
            .collect()
    }

    /// Has the steps of each node share its operations in the proportion of their times.
    fn share(&self, times: &mut [StepTime]) {
        // Nanoseconds of each node of several steps, which claim the same. Those of other nodes may stand between them.
        let mut of_nodes: BTreeMap<&[Claim], u64> = BTreeMap::new();
        let parts = || self.steps.iter().enumerate().filter(|(_, step)| step.part.of > 1);
        for (at, step) in parts() {
            let time = times.get(at).map_or(0, |time| time.nanoseconds);
            *of_nodes.entry(step.claims.as_slice()).or_default() += time;
        }
        for (at, step) in parts() {
            let all = of_nodes.get(step.claims.as_slice()).copied().unwrap_or(0).max(1);
            if let Some(time) = times.get_mut(at) {
                time.flops = (u128::from(time.flops) * u128::from(time.nanoseconds) / u128::from(all)) as u64;
            }
        }
    }
}

impl Executable {
    /// Runs the steps one at a time, each waiting for the one before, and gives the device time of each, with what it does in that time. Inputs are what the last run left in
    /// their places, no outputs are taken or left for [`Executable::feed`], and states are updated as by a run. The first call loads the kernels once more, since recordings take their parameters another way.
    ///
    /// ```
    /// use trefoil_graph::{Ceiling, Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [1000])?;
    /// let y = g.exp(x)?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
    /// let profile = executable.profile(&Extents::new())?.against(Ceiling::measure(&device)?);
    /// // As a table, and for https://ui.perfetto.dev.
    /// println!("{profile}");
    /// let trace: String = profile.trace().to_string();
    /// # assert_eq!((profile.steps.len(), profile.steps[0].bytes), (1, 8000));
    /// # assert!(trace.contains("exp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A symbol has no value, a state is updated where it has no such positions, the device has no clock or failed, or a kernel asserted what does not hold ([`trefoil_dsl::Device::reports`]).
    pub fn profile(&self, extents: &Extents) -> Result<Profile> {
        let _profile = debug_span!("profile").entered();
        let begin = Instant::now();
        let since = |start: Instant| u64::try_from(start.duration_since(begin).as_nanos()).unwrap_or(u64::MAX);
        let mut steps = self.parts.work(extents)?;
        let commands = self.commands_by_value(extents)?;
        let prepared = Instant::now();
        // Steps use the memory that runs use.
        let mut turn = self.turn()?;
        // What the steps compute is no run's.
        turn.run.has_outputs = false;
        turn.common.note(self.updated());
        let started = Instant::now();
        let timed = self.device.backend().time(&commands);
        let times =
            self.settled(&mut turn.common, timed.map_err(at("a run from", &Command::first_label(&commands))))?;
        let ended = Instant::now();
        drop(turn);
        self.device.hear()?;
        // Every step is one command with a label.
        let labelled = commands.iter().zip(times).filter(|(command, _)| command.label().is_some());
        for (step, (_, nanoseconds)) in steps.iter_mut().zip(labelled) {
            step.nanoseconds = nanoseconds;
        }
        self.parts.share(&mut steps);
        let span = |name, from: Instant, to: Instant| HostTime {
            name,
            start: since(from),
            nanoseconds: since(to) - since(from),
        };
        let host = vec![
            span("parameters and kernels", begin, prepared),
            span("waiting for runs", prepared, started),
            span("steps", started, ended),
        ];
        Ok(Profile { device: self.device.properties().name.clone(), ceiling: None, steps, host })
    }

    /// The commands of a run with the parameters in them, for lists of the caller's own: many runs in a row, or those of several executables. They use the memory that runs
    /// use, inputs are what the last run left in their places, and nothing keeps runs of this executable apart from theirs. The first call loads the kernels once more.
    ///
    /// # Errors
    /// A symbol has no value, a state is updated where it has no such positions, or the device failed.
    pub fn commands_by_value(&self, extents: &Extents) -> Result<Vec<Command>> {
        self.check_bound(extents)?;
        let words = self.words.fill(extents)?;
        let mut pipelines = self.pipelines_by_value()?.iter();
        let mut commands = Vec::with_capacity(self.commands.len());
        for command in &self.commands {
            commands.push(match command {
                Command::Dispatch(dispatch) => {
                    let pipeline = pipelines.next().unwrap_or(&dispatch.pipeline).clone();
                    let dispatch = DispatchCommand { pipeline, ..dispatch.clone() };
                    by_value(&Command::Dispatch(dispatch), &words)?
                }
                other => by_value(other, &words)?,
            });
        }
        Ok(commands)
    }

    /// The pipelines of the dispatches, made to take their parameters by value. They are kept: a device that waits for them in every call slows its clock down.
    fn pipelines_by_value(&self) -> Result<&[Arc<dyn Pipeline>]> {
        if let Some(pipelines) = self.by_value.get() {
            return Ok(pipelines);
        }
        let dispatches = self.commands.iter().filter_map(|command| match command {
            Command::Dispatch(dispatch) => Some(dispatch.pipeline.kernel().clone()),
            _ => None,
        });
        let pipelines = self.device.backend().load(&dispatches.collect::<Vec<_>>(), ParamTransport::Value)?;
        Ok(self.by_value.get_or_init(|| pipelines))
    }
}
