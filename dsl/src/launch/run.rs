//! Running dispatches: pipelines made once a kernel and device, commands submitted in order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trefoil_codegen::artefact::{Kernel, ParamTransport};

use super::order::Order;
use super::{BoundBuffer, Dispatch, Grid, KernelHandle, Launch, argument, grid, params};
use crate::device::{
    Command, Device, DispatchCommand, GroupSource, MemoryRange, ParamSource, Pipeline, Recording, RunIo,
};
use crate::error::Result;

/// What tells kernels apart: their hashes, and whether Rust for the CPU was compiled with them, which hashes do not say.
type Key = ([u8; 16], bool);

fn key(kernel: &Kernel) -> Key {
    (kernel.hash, kernel.cpu.is_some())
}

/// The pipelines that a device has made for launches by hand.
#[derive(Debug, Default)]
pub struct Pipelines(Mutex<HashMap<Key, Arc<dyn Pipeline>>>);

impl Pipelines {
    /// A thread that panicked while it held the lock has at most left a pipeline out.
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<dyn Pipeline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, kernel: &Kernel) -> Option<Arc<dyn Pipeline>> {
        self.lock().get(&key(kernel)).cloned()
    }
}

/// Kernels that [`Device::record`] prepared: [`Recorded::run`] waits for them, [`Recorded::submit`] does not.
#[derive(Clone, Debug)]
pub struct Recorded {
    device: Device,
    /// None if no kernel has any workgroups.
    recording: Option<Arc<dyn Recording>>,
}

impl Recorded {
    /// Runs them all, and blocks until the last kernel is done.
    ///
    /// Scalar arguments and grids are fixed when it is recorded: keep what changes from run to run in a buffer and write that between runs.
    ///
    /// # Errors
    /// The device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn run(&self) -> Result<()> {
        match &self.recording {
            Some(recording) => {
                self.device.backend().run(&**recording, RunIo::default())?;
                self.device.hear()
            }
            None => Ok(()),
        }
    }

    /// Runs them all, without waiting for them, as [`Device::run_all`] does: it returns once the work is submitted, which on the CPU device is when it is done.
    ///
    /// They run in order with everything else that is submitted: what is submitted or read later sees what they wrote. Any number of submissions may be on their way (where a device
    /// keeps account of so many only, the call waits for the oldest, and on wgpu for a run of it by another thread); and the buffers and this recording may be dropped meanwhile.
    ///
    /// ```
    /// # use trefoil_dsl::{Buffer, Device, Dispatch, Result};
    /// # fn on(device: &Device, dispatches: Vec<Dispatch>, state: &Buffer<f32>) -> Result<()> {
    /// let frame = device.record(dispatches)?;
    /// for _ in 0..1000 {
    ///     frame.submit()?;
    /// }
    /// let after_all_of_them = state.read()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The device failed. What a kernel asserted that does not hold is told by the next call that waits ([`Device::reports`]).
    pub fn submit(&self) -> Result<()> {
        match &self.recording {
            Some(recording) => self.device.backend().submit(&**recording),
            None => Ok(()),
        }
    }
}

impl Device {
    /// Makes kernels ready ahead of their first run, in parallel.
    ///
    /// # Errors
    /// Names the first kernel that has no code for the device or that the driver refuses.
    pub fn load(&self, kernels: &[&Kernel]) -> Result<()> {
        let mut missing: Vec<Arc<Kernel>> = Vec::new();
        for kernel in kernels {
            let reporting = self.reporting(kernel)?;
            let kernel = reporting.as_ref().map_or(*kernel, KernelHandle::kernel);
            let listed = missing.iter().any(|other| key(other) == key(kernel));
            if !listed && self.pipelines().get(kernel).is_none() {
                missing.push(Arc::new(kernel.clone()));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let made = self.backend().load(&missing, ParamTransport::Value)?;
        let mut pipelines = self.pipelines().lock();
        for (kernel, pipeline) in missing.iter().zip(made) {
            pipelines.insert(key(kernel), pipeline);
        }
        Ok(())
    }

    /// Runs a kernel, without waiting for it; what is submitted or read later sees what it wrote. The first run of a kernel on a
    /// device compiles it, unless [`Device::load`] did; later ones compile nothing.
    ///
    /// # Errors
    /// An argument is missing, belongs to another device, starts where the kernel cannot read it or does not fit into its indices; the
    /// grid is larger than the device's; the kernel has no code for the device; or the device failed.
    pub fn run(&self, dispatch: Dispatch) -> Result<()> {
        match self.command(dispatch)? {
            Some(dispatch) => self.backend().execute(&[Command::Dispatch(dispatch)]),
            None => Ok(()),
        }
    }

    /// Runs kernels as if one after the other, each seeing what those before wrote, in one submission. Those that touch nothing that another of them writes may run at the same time.
    ///
    /// # Errors
    /// As [`Device::run`]; then none of them has run. There is one exception: CUDA and the CPU read the workgroup counts of an indirect dispatch ([`Launch::indirect`](super::Launch::indirect)) when those before
    /// it have run, so that these stay done where the counts are too large.
    pub fn run_all(&self, dispatches: impl IntoIterator<Item = Dispatch>) -> Result<()> {
        let commands = self.commands(dispatches)?;
        if commands.is_empty() {
            return Ok(());
        }
        self.backend().execute(&commands)
    }

    /// Prepares kernels to be run many times as [`Device::run_all`] does: a run then costs the host next to nothing (a CUDA
    /// graph, a Vulkan command buffer). The recording keeps the buffers alive.
    ///
    /// Scalar arguments and grids are fixed when it is recorded: keep what changes from run to run in a buffer and write that between runs. [`Recorded::run`] blocks until the last kernel is done, while [`Recorded::submit`]
    /// returns once the work is submitted, as [`Device::run_all`] does.
    ///
    /// ```
    /// use trefoil_dsl::prelude::*;
    /// # use trefoil_dsl::Device;
    /// # fn on(device: &Device, dispatches: Vec<trefoil_dsl::Dispatch>) -> trefoil_dsl::Result<()> {
    /// let step = device.record(dispatches)?;
    /// for _ in 0..1000 {
    ///     step.run()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`]; and an indirect dispatch cannot be recorded.
    pub fn record(&self, dispatches: impl IntoIterator<Item = Dispatch>) -> Result<Recorded> {
        let commands = self.commands(dispatches)?;
        let recording = if commands.is_empty() { None } else { Some(self.backend().record(&commands, 0)?) };
        Ok(Recorded { device: self.clone(), recording })
    }

    /// Waits until everything submitted is done.
    ///
    /// # Errors
    /// The device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn wait(&self) -> Result<()> {
        self.backend().wait()?;
        self.hear()
    }

    /// The device time that a dispatch takes, in nanoseconds by the device's own clock; it is run once.
    ///
    /// # Errors
    /// As [`Device::run`]; the device may have no clock; or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn time(&self, dispatch: Dispatch) -> Result<u64> {
        let Some(dispatch) = self.command(dispatch)? else { return Ok(0) };
        let time = self.backend().time(&[Command::Dispatch(dispatch)])?.first().copied().unwrap_or(0);
        self.hear()?;
        Ok(time)
    }

    /// The commands of dispatches, with a barrier before each that touches what one before it writes, or writes what one before it touches: for who makes lists of commands by hand ([`Backend`](crate::device::Backend)).
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn commands(&self, dispatches: impl IntoIterator<Item = Dispatch>) -> Result<Vec<Command>> {
        let mut commands = Vec::new();
        let mut order = Order::default();
        for dispatch in dispatches {
            let Some(dispatch) = self.command(dispatch)? else {
                continue;
            };
            if order.waits(&dispatch) {
                commands.push(Command::Barrier);
            }
            commands.push(Command::Dispatch(dispatch));
        }
        Ok(commands)
    }

    /// A dispatch of the kernel in the form that reports, with the buffer for that, if it has such a form.
    fn with_reports(&self, dispatch: Dispatch) -> Result<Dispatch> {
        let kernel = dispatch.kernel();
        // One with arguments missing is refused as it is.
        if dispatch.launch.buffers.len() < kernel.bindings.len() {
            return Ok(dispatch);
        }
        let Some(reporting) = self.reporting(kernel)? else { return Ok(dispatch) };
        let MemoryRange { memory, bytes, .. } = self.report_buffer(reporting.kernel())?;
        let length = bytes / size_of::<u32>() as u64;
        let (extents, strides) = (Vec::new(), Vec::new());
        let buffer = BoundBuffer { memory, device: self.id(), first: 0, length, mutable: true, extents, strides };
        let Dispatch { mut launch, grid } = dispatch;
        launch.buffers.push(buffer);
        Ok(Dispatch { launch: Launch { kernel: reporting, wide: None, ..launch }, grid })
    }

    /// The command of a dispatch; none if it has no workgroups.
    fn command(&self, dispatch: Dispatch) -> Result<Option<DispatchCommand>> {
        let dispatch = self.with_reports(dispatch)?;
        let kernel = dispatch.kernel();
        let Dispatch { launch, grid } = &dispatch;
        for (binding, buffer) in kernel.bindings.iter().zip(&launch.buffers) {
            self.check_owner(buffer.device, &format!("argument `{}` of kernel `{}`", binding.name, kernel.name))?;
        }
        if let Some(binding) = kernel.bindings.get(launch.buffers.len()) {
            return Err(argument(kernel, &binding.name, "it is not given"));
        }
        let properties = self.properties();
        if let Grid::Indirect(_, device) = grid {
            self.check_owner(*device, &format!("the workgroup counts of kernel `{}`", kernel.name))?;
        }
        let folded = grid::fold(kernel, grid, properties.limits.max_groups, &properties.name)?;
        let bound = kernel
            .bindings
            .iter()
            .zip(&launch.buffers)
            .map(|(binding, buffer)| params::bind(kernel, binding, buffer, self))
            .collect::<Result<Vec<_>>>()?;
        let block = params::block(kernel, launch, &bound, folded.count)?;
        if folded.count == 0 {
            return Ok(None);
        }
        let pipeline = match self.pipelines().get(kernel) {
            Some(pipeline) => pipeline,
            None => {
                self.load(&[kernel])?;
                self.pipelines().get(kernel).ok_or_else(|| argument(kernel, "", "the device made no pipeline"))?
            }
        };
        Ok(Some(DispatchCommand {
            pipeline,
            bindings: bound.into_iter().map(|bound| bound.range).collect(),
            params: ParamSource::Value(block),
            groups: match grid {
                Grid::Indirect(range, _) => GroupSource::Memory(range.clone()),
                Grid::Over(_) | Grid::Groups(_) | Grid::Count(_) | Grid::Invocations(_) => {
                    GroupSource::Value(folded.groups)
                }
            },
            label: kernel.name.as_ref().into(),
        }))
    }
}
