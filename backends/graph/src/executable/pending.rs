//! Runs that go on while the program does something else.
//!
//! What such a run reads and writes on the host belongs to it until it is done, so that nobody sees it half done and nothing is freed under it. A thread of the executable does them in the order in which they were started: all
//! runs use the executable's memory, so that the next one begins when the device is done with the one before. Forks have threads of their own, so that one uploads while another computes.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use trefoil_dsl::device::{Command, MemoryRange};
use trefoil_dsl::support::state::lock;

use super::run::Room;
use super::slots::{InputId, OutputId, Which};
use super::{Executable, Outputs};
use crate::data::OwnedData;
use crate::dim::Extents;
use crate::error::{Error, Result};
use crate::types::ElementType;

/// Stages of a started run: it waits for its turn, it has begun or was refused, or it was called off before.
const WAITS: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;

/// What the thread of an executable is told to do.
pub(super) type Task = Box<dyn FnOnce() + Send>;

/// A run that is being put together, to be done beside the program ([`Executable::queue`]). It owns all that it takes. It is given what [`super::Run`] is given, but no typed buffers (device memory, by its range, it is), and it has no `debug`.
#[derive(Debug)]
#[must_use = "nothing runs before `start` is called"]
pub struct QueuedRun {
    executable: Arc<Executable>,
    extents: Extents,
    /// Without an id where there was none, and the run is refused.
    inputs: Vec<(Option<InputId>, Given)>,
    outputs: Vec<Taken>,
    /// Whether the caller said which outputs it takes; all of them otherwise.
    chosen: bool,
    /// The first thing that was wrong.
    refused: Option<Error>,
}

#[derive(Debug)]
enum Given {
    Elements(OwnedData),
    Memory(ElementType, MemoryRange),
    Unchanged,
}

#[derive(Debug)]
struct Taken {
    output: Option<OutputId>,
    rows: Option<Range<u64>>,
    into: Option<Room<OwnedData>>,
}

/// A run that was started. Dropping it lets the run go on; what it owns is freed when it is done. Threads may share it: any of them asks whether the run is done, or calls it off.
#[derive(Debug)]
pub struct Pending {
    stage: Arc<AtomicU8>,
    /// Behind a lock, since a receiver is for one thread at a time.
    answer: Mutex<Answer>,
}

/// What a started run answers.
#[derive(Debug)]
struct Answer {
    receiver: Receiver<Finished>,
    /// What was received, if somebody looked before it was waited for; or what is known without a run.
    finished: Option<Finished>,
}

/// A run that is over, and all that belonged to it; the memory is lost only if the thread of the executable does not start, or a run panicked.
#[derive(Debug)]
pub struct Finished {
    /// What [`super::Run::run`] would have given.
    pub result: Result<Outputs>,
    /// The elements of inputs, in the order of the calls.
    pub inputs: Vec<OwnedData>,
    /// The memory that outputs were taken into, in the order of the calls; filled if the run was right.
    pub outputs: Vec<OwnedData>,
}

impl Executable {
    /// A run to be put together and started without waiting for it. What it reads and writes is handed over, and comes back with its result. Any number of them may be on their way: they are done in the order in which they were
    /// started, one after the other; those of a fork beside them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [3])?;
    /// let y = g.neg(x)?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Arc::new(Executable::compile(&g, &Model::new(), &device, &Options::default())?);
    /// let start = |x: Vec<f32>| executable.queue(&Extents::new()).input("x", x).take_into("y", vec![0f32; 3]).start();
    /// let (first, second) = (start(vec![1.0, 2.0, 3.0]), start(vec![4.0, 5.0, 6.0]));
    /// // Both are on their way.
    /// for (pending, wanted) in [(first, [-1f32, -2.0, -3.0]), (second, [-4.0, -5.0, -6.0])] {
    ///     let mut finished = pending.wait();
    ///     finished.result?;
    ///     assert_eq!(finished.outputs.remove(0).into_vec::<f32>()?, wanted);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(self: &Arc<Self>, extents: &Extents) -> QueuedRun {
        QueuedRun {
            executable: self.clone(),
            extents: extents.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            chosen: false,
            refused: None,
        }
    }

    /// Hands a task to the executable's thread, which the first one starts.
    fn hand_over(&self, mut task: Task) -> Result<()> {
        let mut worker = self.worker.lock().map_err(|_| Error::Poisoned)?;
        if let Some(known) = &*worker {
            match known.send(task) {
                Ok(()) => return Ok(()),
                // A run panicked, and the thread is gone.
                Err(refused) => task = refused.0,
            }
        }
        let started = start_thread().map_err(|error| Error::Thread { reason: error.to_string() })?;
        let sent = started.send(task).map_err(|_| Error::Poisoned);
        *worker = Some(started);
        sent
    }
}

/// A thread that does tasks until nobody can hand it any.
fn start_thread() -> std::io::Result<Sender<Task>> {
    let (sender, tasks) = channel::<Task>();
    let work = move || tasks.into_iter().for_each(|task| task());
    std::thread::Builder::new().name("trefoil-runs".to_owned()).spawn(work)?;
    Ok(sender)
}

impl QueuedRun {
    /// Gives an input elements of the host, which the run uploads and gives back.
    pub fn input<'w>(self, which: impl Into<Which<'w, InputId>>, elements: impl Into<OwnedData>) -> Self {
        self.give(which.into(), Given::Elements(elements.into()))
    }

    /// Gives an input memory of the same device, as [`super::Run::memory`]. What was submitted before the run begins is done before it reads it.
    pub fn memory<'w>(self, which: impl Into<Which<'w, InputId>>, element: ElementType, range: MemoryRange) -> Self {
        self.give(which.into(), Given::Memory(element, range))
    }

    /// Leaves an input as the run before had it, as [`super::Run::unchanged`].
    pub fn unchanged<'w>(self, which: impl Into<Which<'w, InputId>>) -> Self {
        self.give(which.into(), Given::Unchanged)
    }

    /// Takes an output, as one of the [`Outputs`].
    pub fn take<'w>(self, which: impl Into<Which<'w, OutputId>>) -> Self {
        self.want(which.into(), None, None)
    }

    /// Takes rows of an output, as one of the [`Outputs`].
    pub fn take_rows<'w>(self, which: impl Into<Which<'w, OutputId>>, rows: Range<u64>) -> Self {
        self.want(which.into(), Some(rows), None)
    }

    /// Takes an output into memory that has room for exactly its elements, and comes back with the result.
    pub fn take_into<'w>(self, which: impl Into<Which<'w, OutputId>>, into: impl Into<OwnedData>) -> Self {
        self.want(which.into(), None, Some(Room::Host(into.into())))
    }

    /// Takes an output into memory of the same device, as [`super::Run::take_memory`].
    pub fn take_memory<'w>(
        self,
        which: impl Into<Which<'w, OutputId>>,
        element: ElementType,
        range: MemoryRange,
    ) -> Self {
        self.want(which.into(), None, Some(Room::Device(element, range)))
    }

    /// Takes rows of an output into memory that has room for exactly their elements.
    pub fn take_rows_into<'w>(
        self,
        which: impl Into<Which<'w, OutputId>>,
        rows: Range<u64>,
        into: impl Into<OwnedData>,
    ) -> Self {
        self.want(which.into(), Some(rows), Some(Room::Host(into.into())))
    }

    /// Takes no output.
    pub fn take_nothing(mut self) -> Self {
        self.chosen = true;
        self
    }

    /// Starts the run, and does not wait for anything. Whatever is wrong with it is its result ([`Finished::result`]).
    pub fn start(mut self) -> Pending {
        let (sender, receiver) = channel();
        let stage = Arc::new(AtomicU8::new(WAITS));
        if let Some(refused) = self.refused.take() {
            let finished = self.finish(Err(refused)).1;
            return Pending::new(stage, receiver, Some(finished));
        }
        let executable = self.executable.clone();
        let own = stage.clone();
        let task = move || {
            let begun = own.compare_exchange(WAITS, BEGUN, Ordering::AcqRel, Ordering::Acquire);
            let result = match begun {
                Ok(_) => self.run(),
                Err(_) => Err(Error::Cancelled { step: Command::first_label(&self.executable.commands).to_string() }),
            };
            let (executable, finished) = self.finish(result);
            // Who has waited for the run finds that it holds nothing any more.
            drop(executable);
            // Nobody may wait.
            let _ = sender.send(finished);
        };
        let handed = executable.hand_over(Box::new(task));
        let failed = |error| Finished { result: Err(error), inputs: Vec::new(), outputs: Vec::new() };
        Pending::new(stage, receiver, handed.err().map(failed))
    }

    fn give(mut self, which: Which<'_, InputId>, given: Given) -> Self {
        let input = self.executable.input_id(which).map_err(|error| self.refused.get_or_insert(error)).ok();
        self.inputs.push((input, given));
        self
    }

    fn want(mut self, which: Which<'_, OutputId>, rows: Option<Range<u64>>, into: Option<Room<OwnedData>>) -> Self {
        self.chosen = true;
        let output = self.executable.output_id(which).map_err(|error| self.refused.get_or_insert(error)).ok();
        self.outputs.push(Taken { output, rows, into });
        self
    }

    fn run(&mut self) -> Result<Outputs> {
        let mut run = self.executable.prepare(&self.extents);
        for (input, given) in &self.inputs {
            let Some(input) = input else { continue };
            run = match given {
                Given::Elements(elements) => run.input(*input, elements.data()),
                Given::Memory(element, range) => run.memory(*input, *element, range.clone()),
                Given::Unchanged => run.unchanged(*input),
            };
        }
        if self.chosen {
            run = run.take_nothing();
        }
        for Taken { output, rows, into } in &mut self.outputs {
            let Some(output) = output else { continue };
            run = match (rows.clone(), into) {
                (None, None) => run.take(*output),
                (Some(rows), None) => run.take_rows(*output, rows),
                (None, Some(Room::Host(into))) => run.take_into(*output, into.data_mut()),
                (Some(rows), Some(Room::Host(into))) => run.take_rows_into(*output, rows, into.data_mut()),
                // Nobody asks for rows of it.
                (_, Some(Room::Device(element, range))) => run.take_memory(*output, *element, range.clone()),
            };
        }
        run.run()
    }

    /// What comes back, and the executable that the run held.
    fn finish(self, result: Result<Outputs>) -> (Arc<Executable>, Finished) {
        let elements = |(_, given)| match given {
            Given::Elements(elements) => Some(elements),
            Given::Memory(..) | Given::Unchanged => None,
        };
        let inputs = self.inputs.into_iter().filter_map(elements).collect();
        let host = |taken: Taken| match taken.into {
            Some(Room::Host(into)) => Some(into),
            Some(Room::Device(..)) | None => None,
        };
        let outputs = self.outputs.into_iter().filter_map(host).collect();
        (self.executable, Finished { result, inputs, outputs })
    }
}

impl Pending {
    /// A run whose answer comes, or is there: then nothing is left to be called off.
    fn new(stage: Arc<AtomicU8>, receiver: Receiver<Finished>, finished: Option<Finished>) -> Self {
        if finished.is_some() {
            stage.store(BEGUN, Ordering::Release);
        }
        Self { stage, answer: Mutex::new(Answer { receiver, finished }) }
    }

    /// Calls the run off, if it has not begun: then it answers [`Error::Cancelled`] with the step before which it stopped, gives back all that was handed over to it, and states are as the run before left them; the next run
    /// begins in its place. A run that has begun goes on to its end, since no device takes back what was submitted. Gives whether it was in time.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use trefoil_graph::{Executable, Extents};
    /// # fn of(executable: &Arc<Executable>, extents: &Extents) {
    /// let first = executable.queue(extents).start();
    /// let second = executable.queue(extents).start();
    /// if second.cancel() {
    ///     assert!(second.wait().result.is_err());
    /// }
    /// # }
    /// ```
    pub fn cancel(&self) -> bool {
        match self.stage.compare_exchange(WAITS, CANCELLED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(stage) => stage == CANCELLED,
        }
    }

    /// Blocks until the run is done, as [`Run::run`](super::Run::run) does, and gives what it did with all that was handed over to it. Runs that were started before are done by then too.
    pub fn wait(self) -> Finished {
        let lost = || Finished { result: Err(Error::Poisoned), inputs: Vec::new(), outputs: Vec::new() };
        let Answer { receiver, finished } = self.answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        finished.unwrap_or_else(|| receiver.recv().unwrap_or_else(|_| lost()))
    }

    /// Whether the run is done, so that [`Pending::wait`] does not block.
    pub fn is_finished(&self) -> bool {
        let mut answer = lock(&self.answer);
        if answer.finished.is_none() {
            match answer.receiver.try_recv() {
                Ok(finished) => answer.finished = Some(finished),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {}
            }
        }
        true
    }
}
