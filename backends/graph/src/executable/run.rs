//! One run: what it is given, which outputs it takes and where to, checks of all of it, and the run itself.
//!
//! Lists that a run fills are kept by the executable for the next one, so that a run whose outputs go into the caller's memory allocates nothing here.

use std::ops::Range;

use tracing::debug_span;
use trefoil_dsl::buffer::{BufferSlice, BufferSliceMut};
use trefoil_dsl::device::{Command, CopyCommand, Device, MemoryRange, RunIo};
use trefoil_dsl::element::Element;
use trefoil_dsl::error::Error as DeviceError;
use trefoil_dsl::support::check::COPY_MULTIPLE;

use super::debug::Watch;
use super::slots::{InputId, OutputId, Slot, Which};
use super::{Elements, Executable, Outputs};
use crate::data::{Data, DataMut, HostElement};
use crate::dim::{Dim, Extents};
use crate::error::{Error, Result, at, check_element};
use crate::graph::SEED;
use crate::types::{ElementType, TensorType, counted};

/// A run that is being put together ([`Executable::prepare`]): what it is given and what it takes. A wrong name, element type or device is answered by [`Run::run`], before anything runs.
#[derive(Debug)]
#[must_use = "nothing runs before `run` is called"]
pub struct Run<'a> {
    pub(super) executable: &'a Executable,
    extents: &'a Extents,
    lists: Lists<'a>,
    /// Whether the caller said which outputs it takes; all of them otherwise.
    chosen: bool,
    /// The first thing that was wrong.
    refused: Option<Error>,
}

/// What a run is told.
#[derive(Debug, Default)]
pub(super) struct Lists<'a> {
    /// By position of the input.
    given: Vec<Option<Given<'a>>>,
    taken: Vec<Taken<'a>>,
}

/// Lists for what is made of it; empty between runs.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    uploads: Vec<(MemoryRange, &'static [u8])>,
    downloads: Vec<(MemoryRange, &'static mut [u8])>,
    copies: Vec<Command>,
    words: Vec<u8>,
}

/// Where an input comes from.
#[derive(Debug)]
enum Given<'a> {
    Elements(Data<'a>),
    Memory(MemoryRange),
    Unchanged,
}

/// Memory of the caller's for what a run takes.
#[derive(Debug)]
pub(super) enum Room<H> {
    Host(H),
    Device(ElementType, MemoryRange),
}

/// A part of an output, and where it goes.
#[derive(Debug)]
struct Taken<'a> {
    output: usize,
    rows: Option<Range<u64>>,
    /// The caller's memory; otherwise among the [`Outputs`].
    into: Option<Room<DataMut<'a>>>,
    /// Where it lies, once the run's extents are known.
    part: Option<MemoryRange>,
}

/// An empty list of elements that may live longer, or shorter: in the memory of `list`, which the standard library uses again for elements of the same layout.
fn emptied<A, B>(mut list: Vec<A>) -> Vec<B> {
    list.clear();
    list.into_iter().filter_map(|_| None).collect()
}

impl Executable {
    /// A run to be put together: inputs from the host, from the device or as they were, and all outputs, some, rows of them or none, as values or into the caller's memory.
    ///
    /// Inputs and outputs are given by name, or by ids that were looked up once; then a run whose outputs go into the caller's memory neither looks anything up nor allocates.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [3, 2])?;
    /// let by = g.input("by", ElementType::F32, [2])?;
    /// let sum = g.add(x, by)?;
    /// let product = g.mul(x, by)?;
    /// g.output("sum", sum)?;
    /// g.output("product", product)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let options = Options { resident: ["by".to_owned()].into(), ..Options::default() };
    /// let executable = Executable::compile(&g, &Model::new(), &device, &options)?;
    /// let extents = Extents::new();
    /// let rows = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    ///
    /// // One output of two, as a value.
    /// let outputs = executable.prepare(&extents).input("x", &rows).input("by", &[10f32, 100.0]).take("sum").run()?;
    /// assert_eq!(outputs.get::<f32>("sum")?, [11.0, 102.0, 13.0, 104.0, 15.0, 106.0]);
    ///
    /// // The last row alone, into the caller's memory; `by` is still there, and `x` comes from a buffer of the device.
    /// let (x, sum) = (executable.input("x")?, executable.output("sum")?);
    /// let buffer = device.buffer(&rows)?;
    /// let mut last = [0f32; 2];
    /// executable.prepare(&extents).buffer(x, &buffer).unchanged("by").take_rows_into(sum, 2..3, &mut last).run()?;
    /// assert_eq!(last, [15.0, 106.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare<'a>(&'a self, extents: &'a Extents) -> Run<'a> {
        let lists = self.lists.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
        let mut given = lists.given;
        given.resize_with(self.inputs.len() + self.unused.len(), || None);
        let lists = Lists { given, taken: lists.taken };
        Run { executable: self, extents, lists, chosen: false, refused: None }
    }

    /// Runs the graph: every input by name, and the values of the symbols. It blocks until the device has computed the graph and all outputs are on the host. The seed of random numbers ([`crate::Graph::seed`]) may be left out: then it is the executable's next one.
    ///
    /// [`Executable::prepare`] takes inputs from the device, and some outputs, rows of them or none; [`Executable::queue`] runs without blocking.
    ///
    /// # Errors
    /// An input is missing, unknown, given twice, of another element type or length; a symbol has no value, or one is given that the graph lacks; a param was never given; a state is updated where it has no such positions; the device failed; or a kernel asserted what does not hold ([`Device::reports`]): then the run is done nevertheless, states and all.
    pub fn run(&self, inputs: &[(&str, Data<'_>)], extents: &Extents) -> Result<Outputs> {
        let all = self.prepare(extents);
        inputs.iter().fold(all, |run, (name, data)| run.input(*name, data.borrowed())).run()
    }
}

impl<'a> Run<'a> {
    /// Gives an input elements of the host, which the run uploads.
    pub fn input(self, which: impl Into<Which<'a, InputId>>, elements: impl Into<Data<'a>>) -> Self {
        let elements = elements.into();
        self.give(which.into(), Some(elements.element), Given::Elements(elements))
    }

    /// Gives an input the first elements of a buffer of the same device, or of a slice of one from a multiple of 4 bytes on. They are copied on the device, since what is recorded reads the input where it lies.
    pub fn buffer<T: Element + HostElement>(
        self,
        which: impl Into<Which<'a, InputId>>,
        elements: impl Into<BufferSlice<'a, T>>,
    ) -> Self {
        let slice = elements.into();
        let bytes = |count: usize| count as u64 * size_of::<T>() as u64;
        let memory = slice.buffer().memory().clone();
        self.memory(which, T::ELEMENT, MemoryRange { memory, offset: bytes(slice.first()), bytes: bytes(slice.len()) })
    }

    /// As [`Run::buffer`], for memory that is no typed buffer: elements one after the other (of bools, words that are 1 or 0), from a multiple of 4 bytes on.
    pub fn memory(self, which: impl Into<Which<'a, InputId>>, element: ElementType, range: MemoryRange) -> Self {
        self.give(which.into(), Some(element), Given::Memory(range))
    }

    /// Leaves an input as the last run had it: nothing is uploaded. [`crate::Options::resident`] must name it, an earlier run must have been given it, and it must have as many elements in this one.
    pub fn unchanged(self, which: impl Into<Which<'a, InputId>>) -> Self {
        self.give(which.into(), None, Given::Unchanged)
    }

    /// Takes an output, as one of the [`Outputs`], which are in the order of the calls. The others are left on the device, unless other calls take them.
    pub fn take(self, which: impl Into<Which<'a, OutputId>>) -> Self {
        self.want(which.into(), None, None)
    }

    /// Takes rows of an output, positions of its first axis, as one of the [`Outputs`]. Nothing else of it is downloaded.
    pub fn take_rows(self, which: impl Into<Which<'a, OutputId>>, rows: Range<u64>) -> Self {
        self.want(which.into(), Some(rows), None)
    }

    /// Takes an output into the caller's memory, which has room for exactly its elements. If the run fails, what is there is unspecified.
    pub fn take_into(self, which: impl Into<Which<'a, OutputId>>, into: impl Into<DataMut<'a>>) -> Self {
        self.want(which.into(), None, Some(Room::Host(into.into())))
    }

    /// Takes an output into the first elements of a buffer of the same device, or of a slice of one from a multiple of 4 bytes on: it is copied there on the device, and does not go to the host. Whole words of 4 bytes are written, so
    /// that a slice which ends before its buffer does has room for as many. What is submitted after the run finds it.
    pub fn take_buffer<T: Element + HostElement>(
        self,
        which: impl Into<Which<'a, OutputId>>,
        into: impl Into<BufferSliceMut<'a, T>>,
    ) -> Self {
        let slice = into.into();
        let bytes = |count: usize| count as u64 * size_of::<T>() as u64;
        let memory = slice.buffer().memory().clone();
        let range = MemoryRange { memory, offset: bytes(slice.first()), bytes: bytes(slice.len()) };
        self.take_memory(which, T::ELEMENT, range)
    }

    /// As [`Run::take_buffer`], for memory that is no typed buffer, such as a buffer of a renderer that shares the device: elements one after the other (of bools, words that are 1 or 0), from a multiple of 4 bytes on.
    pub fn take_memory(self, which: impl Into<Which<'a, OutputId>>, element: ElementType, range: MemoryRange) -> Self {
        self.want(which.into(), None, Some(Room::Device(element, range)))
    }

    /// Takes rows of an output into the caller's memory, which has room for exactly their elements.
    pub fn take_rows_into(
        self,
        which: impl Into<Which<'a, OutputId>>,
        rows: Range<u64>,
        into: impl Into<DataMut<'a>>,
    ) -> Self {
        self.want(which.into(), Some(rows), Some(Room::Host(into.into())))
    }

    /// Takes no output: the run updates states, or leaves rows for [`Executable::feed`].
    pub fn take_nothing(mut self) -> Self {
        self.chosen = true;
        self
    }

    /// Runs, and blocks until the device has computed the graph and everything that is taken to the host is there; also where nothing is taken. Outputs that went into the caller's memory are not among the [`Outputs`].
    ///
    /// Copies of outputs to device memory ([`Run::take_buffer`], [`Run::take_memory`]) are submitted behind the graph, and may still be under way when this returns: what is submitted later finds them, [`Device::wait`] waits for
    /// them, and what goes wrong with them on the device is the error of a later call. [`Executable::queue`] is for runs that do not block the caller.
    ///
    /// # Errors
    /// Those of [`Executable::run`]; an id of another graph's executable; device memory of another device, or of fewer elements; an input to stay as it is that cannot; an output of another element type than the memory for it, or of another length; rows that
    /// it does not have; or the device refuses the copies of outputs to its memory: then the run is done nevertheless, states and all.
    pub fn run(mut self) -> Result<Outputs> {
        let _run = debug_span!("run").entered();
        self.done(None)
    }

    /// Runs, and gives the executable its lists back.
    pub(super) fn done(&mut self, watch: Option<&mut Watch<'_>>) -> Result<Outputs> {
        let mut outputs = Outputs::default();
        let done = match self.refused.take() {
            Some(refused) => Err(refused),
            // What kernels report is told when all else is done: the run was one like others.
            None => self.go(&mut outputs.tensors, watch).and_then(|()| Ok(self.executable.device.hear()?)),
        };
        // The caller's memory goes here, where nothing is locked: what owns it may take locks of the program's as it goes.
        let Lists { given, taken } = std::mem::take(&mut self.lists);
        let lists = Lists { given: emptied(given), taken: emptied(taken) };
        if let Ok(mut kept) = self.executable.lists.lock() {
            *kept = lists;
        }
        done.map(|()| outputs)
    }

    fn give(mut self, which: Which<'_, InputId>, element: Option<ElementType>, given: Given<'a>) -> Self {
        if self.refused.is_none() {
            self.refused = self.put(which, element, given).err();
        }
        self
    }

    fn put(&mut self, which: Which<'_, InputId>, element: Option<ElementType>, given: Given<'a>) -> Result<()> {
        let Executable { device, .. } = self.executable;
        let index = self.executable.input_index(which)?;
        let (name, ty, slot) = self.executable.input_at(index);
        if self.lists.given[index].is_some() {
            return Err(Error::Twice { what: "input", name: name.to_owned() });
        }
        if let Some(element) = element {
            check_element("input", name, ty.element, element)?;
        }
        match &given {
            Given::Elements(_) => {}
            Given::Memory(range) => check_memory(device, range, "input", name)?,
            Given::Unchanged => {
                if slot.is_some_and(|slot| !slot.resident) {
                    let reason = "its memory serves again once it is read, unless `Options::resident` names it";
                    return Err(Error::Unchanged { name: name.to_owned(), reason: reason.to_owned() });
                }
            }
        }
        self.lists.given[index] = Some(given);
        Ok(())
    }

    fn want(mut self, which: Which<'_, OutputId>, rows: Option<Range<u64>>, into: Option<Room<DataMut<'a>>>) -> Self {
        self.chosen = true;
        match self.executable.output_index(which) {
            Ok(output) => self.lists.taken.push(Taken { output, rows, into, part: None }),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
        self
    }

    fn go(&mut self, outputs: &mut Vec<Elements>, mut watch: Option<&mut Watch<'_>>) -> Result<()> {
        let Self { executable, extents, lists, .. } = self;
        // One run at a time: all runs use the same memory.
        let mut turn = executable.turn()?;
        let (state, common) = (&mut *turn.run, &mut *turn.common);
        executable.check_bound(extents)?;
        let Scratch { uploads, downloads, mut copies, mut words } = std::mem::take(&mut state.scratch);
        let mut uploads: Vec<(MemoryRange, &[u8])> = uploads;
        let mut downloads: Vec<(MemoryRange, &mut [u8])> = emptied(downloads);

        let (next_seed, mut takes_next) = (common.next_seed.to_le_bytes(), false);
        for (index, slot) in executable.inputs.iter().enumerate() {
            match &lists.given[index] {
                None if executable.has_seed && &*slot.name == SEED => {
                    takes_next = true;
                    uploads.push((slot.range(next_seed.len()), &next_seed));
                }
                None => {
                    return Err(Error::Missing { what: "input", name: slot.name.to_string(), ty: slot.ty.to_string() });
                }
                Some(Given::Elements(data)) => {
                    check_data("input", &slot.name, &slot.ty, data, extents)?;
                    if !data.is_empty() {
                        uploads.push((slot.range(data.bytes.len()), &*data.bytes));
                    }
                }
                Some(Given::Memory(range)) => copies.extend(copy(slot, range, extents)?),
                Some(Given::Unchanged) => check_unchanged(slot, state.given[index], extents)?,
            }
        }
        // What no output needs is checked, and left where it is.
        for ((name, ty), given) in executable.unused.iter().zip(&lists.given[executable.inputs.len()..]) {
            match given {
                Some(Given::Elements(data)) => check_data("input", name, ty, data, extents)?,
                Some(Given::Memory(range)) => {
                    let (given, wanted) = (range.bytes / ty.element.bytes(), elements(ty, extents)?);
                    check_length("input", name, ty, given.min(wanted), wanted, extents)?;
                }
                Some(Given::Unchanged) | None => {}
            }
        }
        if !self.chosen {
            let all = (0..executable.outputs.len()).map(|output| Taken { output, rows: None, into: None, part: None });
            lists.taken.extend(all);
        }
        for taken in &mut lists.taken {
            taken.locate(&executable.device, &executable.outputs[taken.output], extents, outputs)?;
        }
        let losses = executable.model.losses();
        if state.params_filled != Some(losses) {
            executable.check_params()?;
            state.params_filled = Some(losses);
        }
        let has_words = state.has_words && state.extents().is_some_and(|known| known == *extents);
        if !has_words {
            executable.words.fill_into(extents, &mut words)?;
        }
        let (mut owned, mut behind) = (outputs.iter_mut(), Vec::new());
        for Taken { output, into, part, .. } in &mut lists.taken {
            let part = part.take();
            // Memory of the caller's stays in the list until the turn is over.
            if let Some(Room::Device(_, to)) = into {
                behind.extend(part.and_then(|from| copy_out(&executable.outputs[*output], from, to.clone())));
                continue;
            }
            let bytes = match into.take() {
                Some(Room::Host(into)) => Some(into.bytes),
                Some(Room::Device(..)) | None => owned.next().map(Elements::bytes_mut),
            };
            if let (Some(part), Some(bytes)) = (part, bytes.filter(|bytes| !bytes.is_empty())) {
                downloads.push((part, bytes));
            }
        }

        // If the run fails, nobody knows what the device has.
        (state.has_words, state.has_outputs) = (false, false);
        common.note(executable.updated());
        for (last, given) in state.given.iter_mut().zip(&lists.given) {
            if given.as_ref().is_some_and(|given| !matches!(given, Given::Unchanged)) {
                *last = None;
            }
        }
        let backend = executable.device.backend();
        if let Some(watch) = &watch {
            watch.begin()?;
        }
        if !copies.is_empty() {
            backend.execute(&copies).map_err(at("an input of a run from", &Command::first_label(&copies)))?;
        }
        let run_words = (!has_words && !words.is_empty()).then_some(&*words);
        let io = RunIo { run_words, uploads: &uploads, downloads: &mut downloads };
        let failed = |error| at("a run from", &Command::first_label(&executable.commands))(error);
        let ran = match &mut watch {
            None => backend.run(&*executable.recording, io).map_err(failed),
            Some(watch) => watch.run(io, extents),
        };
        executable.settled(common, ran)?;
        // What takes outputs on the device follows, in the order of the queue. They touch no state: where they fail, the run is done nevertheless.
        let taken = match behind.as_slice() {
            [] => Ok(()),
            copies => backend.execute(copies).map_err(at("an output of a run from", &Command::first_label(copies))),
        };
        for ((last, given), slot) in state.given.iter_mut().zip(&lists.given).zip(&executable.inputs) {
            if given.as_ref().is_some_and(|given| !matches!(given, Given::Unchanged)) {
                *last = Some(elements(&slot.ty, extents)?);
            }
        }
        // A run that is watched does not use the recording.
        (state.has_words, state.has_outputs, state.left_at) = (watch.is_none(), true, common.clock);
        state.extents.become_equal(extents);
        if takes_next {
            common.next_seed = common.next_seed.wrapping_add(1);
        }
        copies.clear();
        state.scratch = Scratch { uploads: emptied(uploads), downloads: emptied(downloads), copies, words };
        taken
    }
}

impl Taken<'_> {
    /// Finds the bytes that are taken, and makes room for them if the caller has none.
    fn locate(&mut self, device: &Device, slot: &Slot, extents: &Extents, outputs: &mut Vec<Elements>) -> Result<()> {
        let refused = |rows: &Range<u64>| match slot.shape(extents) {
            Ok(shape) => Error::Rows { output: slot.name.to_string(), rows: rows.clone(), shape },
            Err(error) => error,
        };
        let all = slot.ty.shape.first().map_or(Ok(1), |dim| extent(dim, extents))?;
        let inner = counted(slot.ty.shape.iter().skip(1).map(|dim| extent(dim, extents)))?;
        let rows = match &self.rows {
            None => 0..all,
            Some(rows) if slot.ty.rank() == 0 || rows.start > rows.end || rows.end > all => return Err(refused(rows)),
            Some(rows) => rows.clone(),
        };
        let (first, count) = (rows.start.saturating_mul(inner), (rows.end - rows.start).saturating_mul(inner));
        let size = slot.ty.element.bytes();
        self.part = Some(slot.part(first.saturating_mul(size), count.saturating_mul(size)));
        match &self.into {
            Some(Room::Host(into)) => {
                check_element("output", &slot.name, slot.ty.element, into.element)?;
                return check_length("output", &slot.name, &slot.ty, into.len(), count, extents);
            }
            Some(Room::Device(element, to)) => {
                check_element("output", &slot.name, slot.ty.element, *element)?;
                check_memory(device, to, "output", &slot.name)?;
                if to.bytes / size < count {
                    check_length("output", &slot.name, &slot.ty, to.bytes / size, count, extents)?;
                }
                // Behind the end of memory there is padding, but behind a part of it what is somebody else's.
                let is_last = to.offset.checked_add(to.bytes) == Some(to.memory.bytes());
                if !is_last && to.bytes < (count * size).next_multiple_of(COPY_MULTIPLE) {
                    let reason =
                        format!("it has room for {} bytes; whole words of {COPY_MULTIPLE} are written", to.bytes);
                    let label = format!("the memory for output `{}`", slot.name);
                    return Err(DeviceError::Command { label, reason }.into());
                }
                return Ok(());
            }
            None => {}
        }
        let mut shape = slot.shape(extents)?;
        if let (Some(first), Some(rows)) = (shape.first_mut(), &self.rows) {
            *first = usize::try_from(rows.end - rows.start).unwrap_or(0);
        }
        outputs.push(Elements::new(("output", &slot.name), slot.ty.element, shape));
        Ok(())
    }
}

/// What an extent is in a run.
fn extent(dim: &Dim, extents: &Extents) -> Result<u64> {
    Ok(u64::try_from(dim.eval(extents)?).unwrap_or(0))
}

/// How many elements a tensor has in a run.
fn elements(ty: &TensorType, extents: &Extents) -> Result<u64> {
    counted(ty.shape.iter().map(|dim| extent(dim, extents)))
}

/// Checks that there are as many elements as a run takes.
pub(super) fn check_data(
    what: &'static str,
    name: &str,
    ty: &TensorType,
    data: &Data<'_>,
    extents: &Extents,
) -> Result<()> {
    check_element(what, name, ty.element, data.element)?;
    check_length(what, name, ty, data.len(), elements(ty, extents)?, extents)
}

fn check_length(
    what: &'static str,
    name: &str,
    ty: &TensorType,
    given: u64,
    expected: u64,
    extents: &Extents,
) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    let values: Vec<_> = ty.shape.iter().map(|extent| extent.eval(extents)).collect::<Result<_, _>>()?;
    Err(Error::Length { what, name: name.to_owned(), given, expected, ty: format!("{ty}, here {values:?}") })
}

fn check_unchanged(slot: &Slot, last: Option<u64>, extents: &Extents) -> Result<()> {
    let wanted = elements(&slot.ty, extents)?;
    let reason = match last {
        Some(last) if last == wanted => return Ok(()),
        Some(last) => format!("the last run had {last} elements of it, this one has {wanted}"),
        None => "no run was given it".to_owned(),
    };
    Err(Error::Unchanged { name: slot.name.to_string(), reason })
}

/// Checks that memory of the caller's is the device's and can be copied from or to.
fn check_memory(device: &Device, range: &MemoryRange, what: &str, name: &str) -> Result<()> {
    let what = || format!("the memory of {what} `{name}`");
    if range.memory.device() != device.id() {
        device.check_owner(range.memory.device(), &what())?;
    }
    if range.offset.checked_add(range.bytes).is_none_or(|end| end > range.memory.bytes()) {
        let what = format!("{}, counted in bytes", what());
        let (first, count, length) = (range.offset, range.bytes, range.memory.bytes());
        return Err(DeviceError::OutOfRange { what, first, count, length }.into());
    }
    if !range.offset.is_multiple_of(COPY_MULTIPLE) {
        let reason = format!("it starts at byte {}, not at a multiple of {COPY_MULTIPLE}", range.offset);
        return Err(DeviceError::Command { label: what(), reason }.into());
    }
    Ok(())
}

/// The copy of an output from its place to device memory, which has room for it; `None` if it is empty.
fn copy_out(slot: &Slot, from: MemoryRange, to: MemoryRange) -> Option<Command> {
    // Whole words: values lie in memory that is padded to them.
    let bytes = from.bytes.next_multiple_of(COPY_MULTIPLE);
    let (from, to) = (MemoryRange { bytes, ..from }, MemoryRange { bytes, ..to });
    (bytes > 0).then(|| Command::Copy(CopyCommand { from, to, label: slot.name.clone() }))
}

/// The copy of an input from device memory to its place; `None` if it is empty.
fn copy(slot: &Slot, range: &MemoryRange, extents: &Extents) -> Result<Option<Command>> {
    let wanted = elements(&slot.ty, extents)?;
    let size = slot.ty.element.bytes();
    if range.bytes / size < wanted {
        check_length("input", &slot.name, &slot.ty, range.bytes / size, wanted, extents)?;
    }
    // Whole words: behind either range there is padding, or what the copy does not matter to.
    let bytes = (wanted * size).next_multiple_of(COPY_MULTIPLE);
    let (from, to) = (MemoryRange { bytes, ..range.clone() }, slot.part(0, bytes));
    Ok((bytes > 0).then(|| Command::Copy(CopyCommand { from, to, label: slot.name.clone() })))
}
