//! States from outside: read, replaced, reset; and executables that go on from a copy of them.

use std::sync::{Arc, Mutex, OnceLock};

use trefoil_dsl::device::{Command, CopyCommand, DispatchCommand, HostCommand, Memory, MemoryRange};
use trefoil_dsl::support::check::{padded, same_memory};

use super::{Elements, Executable, RunState, Slot, check_data};
use crate::compile::plan::Buffer;
use crate::data::Data;
use crate::dim::Extents;
use crate::error::{Error, Result, names};
use crate::types::TensorType;

/// Zeros that are written at once.
const ZEROS: u64 = 1 << 20;

impl Executable {
    /// The names and types of the states, in the order in which the graph named them.
    pub fn states(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.states.iter().map(|slot| (slot.name.as_str(), &slot.ty))
    }

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
    /// There is no such state, or the device failed.
    pub fn state(&self, name: &str) -> Result<Elements> {
        let slot = self.find_state(name)?;
        let extents =
            slot.ty.shape.iter().map(|extent| extent.constant().and_then(|extent| usize::try_from(extent).ok()));
        let shape = extents.map(|extent| extent.unwrap_or(0)).collect();
        let mut elements = Elements::new(("state", name), slot.ty.element, shape);
        let bytes = elements.bytes_mut();
        let _turn = self.turn()?;
        if !bytes.is_empty() {
            self.device.backend().read(&slot.range(bytes.len()), bytes)?;
        }
        Ok(elements)
    }

    /// Replaces what the next run finds in a state.
    ///
    /// # Errors
    /// There is no such state, the elements are of another type or number, or the device failed.
    pub fn set_state(&self, name: &str, elements: Data<'_>) -> Result<()> {
        let slot = self.find_state(name)?;
        check_data("state", name, &slot.ty, &elements, &Extents::new())?;
        let _turn = self.turn()?;
        if !elements.is_empty() {
            self.device.backend().write(&slot.range(elements.bytes.len()), &elements.bytes)?;
        }
        Ok(())
    }

    /// Sets every state to zero, as before the first run.
    ///
    /// # Errors
    /// The device failed.
    pub fn reset(&self) -> Result<()> {
        let _turn = self.turn()?;
        self.states.iter().try_for_each(|slot| self.set_zero(slot))
    }

    /// Sets one state to zero.
    ///
    /// # Errors
    /// There is no such state, or the device failed.
    pub fn reset_state(&self, name: &str) -> Result<()> {
        let slot = self.find_state(name)?;
        let _turn = self.turn()?;
        self.set_zero(slot)
    }

    /// Another executable with a copy of the states, and of the seed that comes next. Params, constants and compiled kernels are shared; its recording and the memory of its states and activations are its own, so that both run
    /// side by side.
    ///
    /// # Errors
    /// The device is out of memory or failed.
    pub fn fork(&self) -> Result<Self> {
        let turn = self.turn()?;
        let (mut memory, mut copies) = (Vec::with_capacity(self.memory.len()), Vec::new());
        for (buffer, mine) in self.parts.plan.buffers.iter().zip(&self.memory) {
            memory.push(match buffer {
                Buffer::Param(_) | Buffer::Constant(_) => mine.clone(),
                Buffer::Activations(bytes) => self.device.backend().allocate(*bytes, "activations")?,
                Buffer::State(value) => {
                    let name = &self.parts.program.values[*value].name;
                    let other = self.device.backend().allocate(mine.bytes(), name)?;
                    let [from, to] = [mine, &other].map(whole);
                    copies.push(Command::Copy(CopyCommand { from, to, label: name.as_str().into() }));
                    other
                }
            });
        }
        // In the place of a piece of memory stands the fork's.
        let moved = |range: &MemoryRange| {
            let place = self.memory.iter().position(|known| same_memory(known, &range.memory));
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
                Command::Host(host) => {
                    Command::Host(HostCommand { reads: all(&host.reads), writes: all(&host.writes), ..host.clone() })
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
            self.device.backend().execute(&copies)?;
            self.device.backend().wait()?;
        }
        // Its run words are not there yet.
        let state = RunState { extents: None, ..turn.clone() };
        let by_value = OnceLock::new();
        if let Some(pipelines) = self.by_value.get() {
            by_value.get_or_init(|| pipelines.clone());
        }
        Ok(Self {
            device: self.device.clone(),
            model: self.model.clone(),
            recording: self.device.backend().record(&commands, self.words.len())?,
            commands,
            words: self.words.clone(),
            inputs,
            states,
            has_seed: self.has_seed,
            unused: self.unused.clone(),
            outputs,
            params: self.params.clone(),
            state: Mutex::new(state),
            by_value,
            memory,
            parts: Arc::clone(&self.parts),
        })
    }

    fn find_state(&self, name: &str) -> Result<&Slot> {
        self.states.iter().find(|slot| slot.name == name).ok_or_else(|| Error::Unknown {
            what: "state",
            name: name.to_owned(),
            known: names(self.states().map(|(name, _)| name)),
        })
    }

    fn set_zero(&self, slot: &Slot) -> Result<()> {
        // With what stands behind the last element, which binds and copies as words.
        let all = slot.memory.bytes();
        let zeros = vec![0; usize::try_from(all.min(ZEROS)).unwrap_or(0)];
        let mut offset = 0;
        while offset < all {
            let bytes = (all - offset).min(ZEROS);
            let range = MemoryRange { memory: slot.memory.clone(), offset, bytes };
            self.device.backend().write(&range, &zeros[..usize::try_from(bytes).unwrap_or(0)])?;
            offset += bytes;
        }
        Ok(())
    }
}

/// All of a state's memory.
fn whole(memory: &Arc<dyn Memory>) -> MemoryRange {
    debug_assert_eq!(memory.bytes(), padded(memory.bytes()), "copies move words");
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() }
}
