//! States from outside: read, replaced, fed, reset; and executables that go on from a copy of them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use trefoil_dsl::device::{CallCommand, Command, CopyCommand, Device, DispatchCommand, Memory, MemoryRange};
use trefoil_dsl::error::Result as DeviceResult;
use trefoil_dsl::support::check::{COPY_MULTIPLE, padded, same_memory};

use super::run::check_data;
use super::{Common, Elements, Executable, Parts, RunState, Slot, Which, at_largest, unknown};
use crate::compile::plan::Buffer;
use crate::data::Data;
use crate::dim::Extents;
use crate::error::{Error, Result, at};

/// Zeros that are written at once.
const ZEROS: u64 = 1 << 20;

impl Executable {
    /// What the next run finds in a state. It waits for a run that another thread has begun.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let total = g.state("total", ElementType::F32, vec![Dim::from(3)])?;
    /// let x = g.input("x", ElementType::F32, vec![Dim::from(3)])?;
    /// let sum = g.add(total, x)?;
    /// g.feed(total, sum)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
    /// for _ in 0..2 {
    ///     executable.run(&[("x", (&[1f32, 2.0, 3.0]).into())], &Extents::new())?;
    /// }
    /// let other = executable.fork()?;
    /// executable.reset()?;
    /// assert_eq!(executable.state("total")?.get::<f32>()?, [0.0; 3]);
    /// assert_eq!(other.state("total")?.get::<f32>()?, [2.0, 4.0, 6.0]);
    /// other.set_state("total", (&[5f32; 3]).into())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such state, the device failed, or a kernel asserted what does not hold ([`trefoil_dsl::Device::reports`]).
    pub fn state(&self, name: &str) -> Result<Elements> {
        let (_, slot) = self.state_at(name)?;
        let mut elements = Elements::new(("state", name), slot.ty.element, slot.ty.extents());
        let bytes = elements.bytes_mut();
        let _turn = self.turn()?;
        if !bytes.is_empty() {
            self.device.backend().read(&slot.range(bytes.len()), bytes).map_err(at("state", name))?;
        }
        self.device.hear()?;
        Ok(elements)
    }

    /// Replaces what the next run finds in a state.
    ///
    /// # Errors
    /// There is no such state, the elements are of another type or number, or the device failed.
    pub fn set_state(&self, name: &str, elements: Data<'_>) -> Result<()> {
        let (position, slot) = self.state_at(name)?;
        check_data("state", name, &slot.ty, &elements, &Extents::new())?;
        let mut turn = self.turn()?;
        if elements.is_empty() {
            return Ok(());
        }
        turn.common.note([position]);
        let written = self.device.backend().write(&slot.range(elements.bytes.len()), &elements.bytes);
        self.settled(&mut turn.common, written.map_err(at("state", name)))
    }

    /// Puts rows of an output, as the last run left it on the device, into a state, where they stand from `row` on: for what is chosen after a run, such as the row of the last token that was accepted. Rows are positions
    /// of the first axis. What is known before the run is fed in the graph ([`crate::Graph::feed`], [`crate::Graph::update`]), which costs no submission of its own.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let start = g.state("start", ElementType::F32, [1, 2])?;
    /// let x = g.input("x", ElementType::F32, [3, 2])?;
    /// let y = g.add(x, start)?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
    /// executable.run(&[("x", (&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).into())], &Extents::new())?;
    /// // The next run starts from the second row.
    /// executable.feed("y", 1..2, "start", 0)?;
    /// assert_eq!(executable.state("start")?.get::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such output or state, no run has left the output, or it lies in a state that was written since; the elements or the extents behind the first axis differ, the rows lie outside of either, or the device failed.
    pub fn feed(&self, output: &str, rows: Range<u64>, state: &str, row: u64) -> Result<()> {
        let (position, to) = self.state_at(state)?;
        let from = &self.outputs[self.output_index(Which::Name(output))?];
        let refused = |reason: String| Error::Feed { output: output.to_owned(), state: state.to_owned(), reason };
        let mut turn = self.turn()?;
        let extents = turn.run.extents().ok_or_else(|| refused("no run has left it".to_owned()))?;
        let lies_in = self.states.iter().position(|other| same_memory(&other.memory, &from.memory));
        if let Some(other) = lies_in.filter(|other| turn.common.written[*other] > turn.run.left_at) {
            return Err(refused(format!("it lies in state `{}`, which was written since", self.states[other].name)));
        }
        let shape_of = |slot: &Slot| -> Result<Vec<u64>> {
            Ok(slot.shape(extents)?.into_iter().map(|extent| extent as u64).collect())
        };
        let [own, other] = [shape_of(from)?, shape_of(to)?];
        let (Some((count, inner)), Some((room, of_state))) = (own.split_first(), other.split_first()) else {
            return Err(refused("it has no rows, or the state has none: one is a single element".to_owned()));
        };
        if from.ty.element != to.ty.element || inner != of_state {
            return Err(refused(format!("it is {}{own:?}, the state {}", from.ty.element, to.ty)));
        }
        if rows.start > rows.end || rows.end > *count {
            return Err(refused(format!("rows {rows:?} given of its {count}")));
        }
        let length = rows.end - rows.start;
        if row.checked_add(length).is_none_or(|end| end > *room) {
            return Err(refused(format!("{length} rows from {row} on do not lie within the state's {room}")));
        }
        let bytes = inner.iter().product::<u64>() * to.ty.element.bytes();
        let (from, to) = (from.part(rows.start * bytes, length * bytes), to.part(row * bytes, length * bytes));
        if to.bytes == 0 {
            return Ok(());
        }
        let backend = self.device.backend();
        let whole_words = [from.offset, to.offset, to.bytes].iter().all(|number| number.is_multiple_of(COPY_MULTIPLE));
        if whole_words && !same_memory(&from.memory, &to.memory) {
            let copy = [Command::Copy(CopyCommand { from, to, label: state.into() })];
            turn.common.note([position]);
            let copied = backend.execute(&copy).and_then(|()| backend.wait());
            return self.settled(&mut turn.common, copied.map_err(at("state", state)));
        }
        let mut between = vec![0; usize::try_from(to.bytes).unwrap_or(0)];
        backend.read(&from, &mut between).map_err(at("output", output))?;
        turn.common.note([position]);
        self.settled(&mut turn.common, backend.write(&to, &between).map_err(at("state", state)))
    }

    /// Sets every state to zero, as before the first run; also after a failure, if the device still works.
    ///
    /// # Errors
    /// The device failed.
    pub fn reset(&self) -> Result<()> {
        let mut turn = self.any_turn()?;
        turn.common.failed = None;
        turn.common.note(0..self.states.len());
        let zero = self.states.iter().try_for_each(|slot| self.set_zero(slot));
        self.settled(&mut turn.common, zero)
    }

    /// Sets one state to zero.
    ///
    /// # Errors
    /// There is no such state, or the device failed.
    pub fn reset_state(&self, name: &str) -> Result<()> {
        let (position, slot) = self.state_at(name)?;
        let mut turn = self.turn()?;
        turn.common.note([position]);
        self.settled(&mut turn.common, self.set_zero(slot))
    }

    /// Another executable with a copy of the states, and of the seed that comes next. Params, constants and compiled kernels are shared; its recording and the memory of its states, counters and activations are its own, so that both run
    /// side by side.
    ///
    /// # Errors
    /// The device is out of memory or failed.
    pub fn fork(&self) -> Result<Self> {
        let turn = self.turn()?;
        let (mut memory, mut copies) = (Vec::with_capacity(self.memory.len()), Vec::new());
        for (index, (buffer, mine)) in self.parts.plan.buffers.iter().zip(&self.memory).enumerate() {
            memory.push(match buffer {
                Buffer::Param(_) | Buffer::Constant(_) => mine.clone(),
                Buffer::Activations(bytes) => {
                    let Parts { program, plan, .. } = &*self.parts;
                    let made = plan.allocate(index, *bytes, &self.device);
                    made.map_err(|error| at_largest(program, plan, index, error))?
                }
                Buffer::Counters(bytes) => {
                    zeroed(&self.device, *bytes, "counters").map_err(at("memory for", "counters"))?
                }
                Buffer::State(value) => {
                    let name = &self.parts.program.values[*value].name;
                    let made = self.device.backend().allocate(mine.bytes(), name);
                    let other = made.map_err(at("state", name))?;
                    let [from, to] = [mine, &other].map(whole);
                    copies.push(Command::Copy(CopyCommand { from, to, label: name.as_str().into() }));
                    other
                }
            });
        }
        // In the place of a piece of memory stands the fork's. Handles that share memory without being one are rare, and looked for one by one.
        let places: HashMap<*const (), usize> =
            self.memory.iter().enumerate().rev().map(|(place, known)| (handle(known), place)).collect();
        let moved = |range: &MemoryRange| {
            let place = places.get(&handle(&range.memory)).copied();
            let place = place.or_else(|| self.memory.iter().position(|known| same_memory(known, &range.memory)));
            let own = place.map_or(&range.memory, |place| &memory[place]);
            MemoryRange { memory: own.clone(), ..range.clone() }
        };
        let all = |ranges: &[MemoryRange]| ranges.iter().map(moved).collect::<Vec<_>>();
        let commands: Vec<Command> = self
            .commands
            .iter()
            .map(|command| match command {
                Command::Dispatch(dispatch) => {
                    Command::Dispatch(DispatchCommand { bindings: all(&dispatch.bindings), ..dispatch.clone() })
                }
                Command::Call(call) => {
                    Command::Call(CallCommand { reads: all(&call.reads), writes: all(&call.writes), ..call.clone() })
                }
                Command::Copy(copy) => {
                    Command::Copy(CopyCommand { from: moved(&copy.from), to: moved(&copy.to), ..copy.clone() })
                }
                Command::Barrier => Command::Barrier,
            })
            .collect();
        let slots = |slots: &[Slot]| {
            let moved = |slot: &Slot| Slot { memory: moved(&slot.range(0)).memory, ..slot.clone() };
            slots.iter().map(moved).collect::<Vec<_>>()
        };
        let (inputs, outputs, states) = (slots(&self.inputs), slots(&self.outputs), slots(&self.states));
        if !copies.is_empty() {
            let label = Command::first_label(&copies);
            self.device.backend().execute(&copies).map_err(at("state", &label))?;
            self.device.backend().wait().map_err(at("state", &label))?;
        }
        let state = RunState::new(self.inputs.len(), turn.run.params_filled);
        let common = Common::new(self.states.len(), turn.common.next_seed);
        let by_value = OnceLock::new();
        if let Some(pipelines) = self.by_value.get() {
            by_value.get_or_init(|| pipelines.clone());
        }
        let recording = self.device.backend().record(&commands, self.words.len());
        let recording = recording.map_err(at("a recording from", &Command::first_label(&commands)))?;
        Ok(Self {
            device: self.device.clone(),
            model: self.model.clone(),
            recording,
            commands,
            words: self.words.clone(),
            inputs,
            states,
            has_seed: self.has_seed,
            unused: self.unused.clone(),
            outputs,
            params: self.params.clone(),
            state: Mutex::new(state),
            common: Arc::new(Mutex::new(common)),
            lists: Mutex::default(),
            worker: Mutex::default(),
            by_value,
            memory,
            parts: Arc::clone(&self.parts),
        })
    }

    /// A state and its position.
    fn state_at(&self, name: &str) -> Result<(usize, &Slot)> {
        let found = self.states.iter().enumerate().find(|(_, slot)| *slot.name == *name);
        found.ok_or_else(|| unknown("state", name, self.states().map(|(name, _)| name)))
    }

    fn set_zero(&self, slot: &Slot) -> Result<()> {
        // With what stands behind the last element, which binds and copies as words.
        set_zero(&self.device, &slot.memory).map_err(at("state", &slot.name))
    }
}

/// Tells handles of memory apart.
fn handle(memory: &Arc<dyn Memory>) -> *const () {
    Arc::as_ptr(memory).cast()
}

/// New memory that holds zeros.
pub(super) fn zeroed(device: &Device, bytes: u64, label: &str) -> DeviceResult<Arc<dyn Memory>> {
    let memory = device.backend().allocate(bytes, label)?;
    set_zero(device, &memory)?;
    Ok(memory)
}

/// Writes zeros over all of a memory.
fn set_zero(device: &Device, memory: &Arc<dyn Memory>) -> DeviceResult<()> {
    let all = memory.bytes();
    let zeros = vec![0; usize::try_from(all.min(ZEROS)).unwrap_or(0)];
    let mut offset = 0;
    while offset < all {
        let bytes = (all - offset).min(ZEROS);
        let range = MemoryRange { memory: memory.clone(), offset, bytes };
        device.backend().write(&range, &zeros[..usize::try_from(bytes).unwrap_or(0)])?;
        offset += bytes;
    }
    Ok(())
}

/// All of a state's memory.
fn whole(memory: &Arc<dyn Memory>) -> MemoryRange {
    debug_assert_eq!(memory.bytes(), padded(memory.bytes()), "copies move words");
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() }
}
