//! What goes in and out, by name and by position: looked up once, then found without a look-up.

use trefoil_dsl::device::{Memory, MemoryRange};

use std::sync::Arc;

use super::Executable;
use crate::dim::Extents;
use crate::error::{Error, Result, names};
use crate::types::TensorType;

/// Where an input, output or state lies.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub name: Arc<str>,
    pub ty: TensorType,
    pub memory: Arc<dyn Memory>,
    pub offset: u64,
    /// Whether nothing else uses the memory within a run.
    pub resident: bool,
}

/// An input of an executable and of its forks, looked up once ([`Executable::input`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputId {
    family: u64,
    index: usize,
}

/// An output of an executable and of its forks, looked up once ([`Executable::output`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputId {
    family: u64,
    index: usize,
}

/// An input or output of a run: by name, or by the id that was looked up before.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a, Id> {
    /// By name.
    Name(&'a str),
    /// By id.
    Id(Id),
}

impl<'a, Id> From<&'a str> for Which<'a, Id> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a, Id> From<&'a String> for Which<'a, Id> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

impl From<InputId> for Which<'_, InputId> {
    fn from(id: InputId) -> Self {
        Self::Id(id)
    }
}

impl From<OutputId> for Which<'_, OutputId> {
    fn from(id: OutputId) -> Self {
        Self::Id(id)
    }
}

impl Slot {
    /// So many bytes from the first of it on.
    pub fn range(&self, bytes: usize) -> MemoryRange {
        self.part(0, bytes as u64)
    }

    /// Bytes within it.
    pub fn part(&self, first: u64, bytes: u64) -> MemoryRange {
        MemoryRange { memory: self.memory.clone(), offset: self.offset + first, bytes }
    }

    /// The extents in a run.
    pub fn shape(&self, extents: &Extents) -> Result<Vec<usize>> {
        Ok(self.ty.shape_in(extents)?)
    }
}

impl Executable {
    /// The inputs that a run is given, by name; random numbers' seed, which it may leave out, among them, and last those that no output needs.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Executable, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [2, 3])?;
    /// let y = g.cast(x, ElementType::F16)?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
    /// for (name, ty) in executable.inputs() {
    ///     assert_eq!((name, ty.to_string().as_str(), ty.bytes().constant()), ("x", "f32[2, 3]", Some(24)));
    /// }
    /// for (name, ty) in executable.outputs() {
    ///     assert_eq!((name, ty.to_string().as_str(), ty.bytes().constant()), ("y", "f16[2, 3]", Some(12)));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        let used = self.inputs.iter().map(|slot| (&*slot.name, &slot.ty));
        used.chain(self.unused.iter().map(|(name, ty)| (name.as_str(), ty)))
    }

    /// The outputs, in the order in which the graph named them.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.outputs.iter().map(|slot| (&*slot.name, &slot.ty))
    }

    /// The params that runs read.
    pub fn params(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.params.iter().map(|slot| (&*slot.name, &slot.ty))
    }

    /// Checks that the model has given every param that runs read, as the runs themselves do, without running: a program finds out right after loading what is missing, and how the model's other params are called.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Executable, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let w = g.param("layer.w", ElementType::F32, [2])?;
    /// let y = g.exp(w)?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let model = Model::new();
    /// model.set("model.layer.w", &[2], &[1f32, 2.0])?;
    /// let executable = Executable::compile(&g, &model, &device, &Options::default())?;
    /// let missing = executable.check_params().map_err(|error| error.to_string());
    /// assert_eq!(missing, Err("param `layer.w` (f32[2]) is not given; the model has `model.layer.w`".to_owned()));
    /// model.set("layer.w", &[2], &[1f32, 2.0])?;
    /// executable.check_params()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Params are not given, or did not reach the device ([`Error::MissingParams`]); or another thread panicked while it changed the model.
    pub fn check_params(&self) -> Result<()> {
        let mut missing = Vec::new();
        for slot in &self.params {
            if !self.model.is_filled(&self.device, &slot.name, &slot.memory)? {
                missing.push(slot);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let declared = self.parts.graph.leaves();
        missing.sort_by_key(|slot| declared.get(&*slot.name).map(|leaf| leaf.node()));
        let missing = missing.into_iter().map(|slot| (slot.name.to_string(), slot.ty.to_string())).collect();
        let mut others = self.model.names()?;
        others.retain(|name| !declared.contains_key(name));
        Err(Error::MissingParams { missing, others })
    }

    /// The names and types of the states, in the order in which the graph named them.
    pub fn states(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        self.states.iter().map(|slot| (&*slot.name, &slot.ty))
    }

    /// An input, for runs that look nothing up ([`Executable::prepare`]).
    ///
    /// # Errors
    /// There is no such input.
    pub fn input(&self, name: &str) -> Result<InputId> {
        self.input_id(Which::Name(name))
    }

    /// An output, for runs that look nothing up.
    ///
    /// # Errors
    /// There is no such output.
    pub fn output(&self, name: &str) -> Result<OutputId> {
        self.output_id(Which::Name(name))
    }

    pub(super) fn input_id(&self, which: Which<'_, InputId>) -> Result<InputId> {
        Ok(InputId { family: self.parts.family, index: self.input_index(which)? })
    }

    pub(super) fn output_id(&self, which: Which<'_, OutputId>) -> Result<OutputId> {
        Ok(OutputId { family: self.parts.family, index: self.output_index(which)? })
    }

    /// The position of an input in [`Executable::inputs`].
    pub(super) fn input_index(&self, which: Which<'_, InputId>) -> Result<usize> {
        match which {
            Which::Name(name) => self
                .inputs()
                .position(|(known, _)| known == name)
                .ok_or_else(|| unknown("input", name, self.inputs().map(|(known, _)| known))),
            Which::Id(InputId { family, index }) if family == self.parts.family => Ok(index),
            Which::Id(_) => Err(Error::OtherExecutable { what: "input" }),
        }
    }

    /// The position of an output in [`Executable::outputs`].
    pub(super) fn output_index(&self, which: Which<'_, OutputId>) -> Result<usize> {
        match which {
            Which::Name(name) => self
                .outputs()
                .position(|(known, _)| known == name)
                .ok_or_else(|| unknown("output", name, self.outputs().map(|(known, _)| known))),
            Which::Id(OutputId { family, index }) if family == self.parts.family => Ok(index),
            Which::Id(_) => Err(Error::OtherExecutable { what: "output" }),
        }
    }

    /// The name and type of an input by its position, and where it lies if an output needs it.
    pub(super) fn input_at(&self, index: usize) -> (&str, &TensorType, Option<&Slot>) {
        match self.inputs.get(index) {
            Some(slot) => (&slot.name, &slot.ty, Some(slot)),
            None => {
                let (name, ty) = &self.unused[index - self.inputs.len()];
                (name, ty, None)
            }
        }
    }
}

/// That there is nothing of a name.
pub(super) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    Error::Unknown { what, name: name.to_owned(), known: names(known) }
}
