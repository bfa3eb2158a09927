//! What the stages work on: values in memory, and the work that makes them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::dim::Dim;
use crate::graph::Tensor;
use crate::op::{Implementation, Op};
use crate::types::{Layout, TensorType};

/// A value, by position in [`Program::values`].
pub type ValueId = usize;

/// Elements that lie in memory of their own, one after the other.
#[derive(Clone, Debug)]
pub struct Value {
    /// Names it in errors and in `explain`.
    pub name: String,
    /// Its bytes, without padding.
    pub bytes: Dim,
    /// Element type and shape; `None` for scratch memory and counters.
    pub ty: Option<TensorType>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it is to the graph.
    pub meaning: Meaning,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Each run brings it.
    Input,
    /// The model has it; it lies in a buffer of its own, which nothing writes.
    Param,
    /// The graph has it; it lies in a buffer of its own, which nothing writes.
    Constant(Arc<[u8]>),
    /// The executable has it from the run before; it lies in a buffer of its own, in which its versions are made.
    State,
    /// The executable has it, zero before every run and after it; it lies with other counters, in memory of which each has a part to itself.
    Counters,
    /// A step writes it.
    Computed,
    /// A step writes it over an older version of the state that is this value.
    Version(ValueId),
    /// A step writes it over this value, which nobody reads any more.
    Over(ValueId),
}

/// What a value is to the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// A tensor that is no view.
    Tensor(Tensor),
    /// The elements of a tensor, copied so that they lie one after the other.
    Copy(Tensor),
    /// Scratch memory of a node's candidate.
    Scratch {
        /// The node.
        node: u32,
        /// Which piece.
        piece: usize,
    },
    /// The counters of a node's candidate.
    Counters {
        /// The node.
        node: u32,
    },
}

/// A tensor as somebody reads it: elements of a value.
#[derive(Clone, Debug)]
pub struct Located {
    /// The graph's name for what is read.
    pub tensor: Tensor,
    /// The memory.
    pub value: ValueId,
    /// Element type and shape as the reader sees them.
    pub ty: TensorType,
    /// Where the elements lie.
    pub layout: Layout,
}

/// A piece of work.
#[derive(Clone, Debug)]
pub enum Work {
    /// A map, to be fused with others.
    Map(MapWork),
    /// A value of equal elements, which maps read without memory.
    Fill(FillWork),
    /// An expression of elements at computed coordinates.
    Pull(PullWork),
    /// A part of a state replaced.
    Update(UpdateWork),
    /// An op with kernels.
    Kernels(KernelsWork),
}

/// A map.
#[derive(Clone, Debug)]
pub struct MapWork {
    /// The node; for a copy, which no node asked for, the one that needs it.
    pub node: u32,
    /// The op.
    pub op: Arc<dyn Op>,
    /// What it reads, broadcast to the output's shape.
    pub inputs: Vec<Located>,
    /// What it writes.
    pub output: ValueId,
}

/// A pull.
#[derive(Clone, Debug)]
pub struct PullWork {
    /// The node.
    pub node: u32,
    /// The op.
    pub op: Arc<dyn Op>,
    /// What it reads.
    pub inputs: Vec<Located>,
    /// What it writes.
    pub output: ValueId,
}

/// An update of a state.
#[derive(Clone, Debug)]
pub struct UpdateWork {
    /// The node.
    pub node: u32,
    /// The version that it replaces, which it leaves as it is where it does not write; and what it writes.
    pub inputs: [Located; 2],
    /// The new version.
    pub output: ValueId,
    /// Where what it writes goes.
    pub target: Target,
}

/// Positions of a state that an update writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Where the elements lie in the state's memory.
    pub layout: Layout,
    /// The axis and its first position, if not all of the state is written.
    pub part: Option<(usize, Dim)>,
}

/// A version of a state that was copied before it was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The state.
    pub state: ValueId,
    /// The version that replaces it.
    pub by: ValueId,
    /// The copy.
    pub copy: ValueId,
    /// The nodes and outputs that read it afterwards.
    pub readers: Vec<String>,
}

/// A fill.
#[derive(Clone, Debug)]
pub struct FillWork {
    /// The node.
    pub node: u32,
    /// The bits of every element in memory.
    pub bits: u64,
    /// What it writes, if anything needs it in memory.
    pub output: ValueId,
}

/// An op with kernels.
#[derive(Clone, Debug)]
pub struct KernelsWork {
    /// The node.
    pub node: u32,
    /// The op.
    pub op: Arc<dyn Op>,
    /// What it reads.
    pub inputs: Vec<Located>,
    /// What it writes.
    pub outputs: Vec<ValueId>,
    /// How; `None` before candidates are chosen.
    pub chosen: Option<Chosen>,
}

/// The candidate of an op.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name.
    pub candidate: &'static str,
    /// What it does.
    pub implementation: Implementation,
    /// Its scratch memory.
    pub scratch: Vec<ValueId>,
    /// Its counters, if it has any.
    pub counters: Option<ValueId>,
    /// The values over which it writes its outputs.
    pub over: Vec<ValueId>,
    /// How often it reads an element of each of its inputs, if it says so.
    pub passes: Vec<Option<u32>>,
}

/// Values and the work that makes them, in an order in which it can be done.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Everything that lies in memory.
    pub values: Vec<Value>,
    /// What is done.
    pub works: Vec<Work>,
    /// What is given out, contiguous.
    pub outputs: Vec<(String, Located)>,
    /// Inputs that are there for the next run too.
    pub resident: Vec<ValueId>,
    /// Versions of states that are read after they were replaced.
    pub kept: Vec<Kept>,
    /// An empty value, bound where an optional operand is not there, if any is.
    pub nothing: Option<ValueId>,
}

/// Copies that works make, by what they are copies of.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// In the order of the works: what is read as that type, and the copy.
    made: HashMap<(ValueId, Layout), Vec<(TensorType, ValueId)>>,
}

impl Copies {
    /// Takes note of a work that makes one.
    pub(super) fn note(&mut self, program: &Program, work: &Work) {
        if let Work::Map(MapWork { inputs, output, .. }) = work
            && let ([read], Meaning::Copy(_)) = (inputs.as_slice(), program.values[*output].meaning)
        {
            self.made.entry((read.value, read.layout.clone())).or_default().push((read.ty.clone(), *output));
        }
    }
}

impl Origin {
    /// Whether it is there before the first step.
    pub fn is_given(&self) -> bool {
        !matches!(self, Self::Computed | Self::Version(_) | Self::Over(_))
    }
}

impl Work {
    /// The node.
    pub fn node(&self) -> u32 {
        match self {
            Self::Map(map) => map.node,
            Self::Fill(fill) => fill.node,
            Self::Pull(pull) => pull.node,
            Self::Update(update) => update.node,
            Self::Kernels(kernels) => kernels.node,
        }
    }

    /// The values that are gone when it is done: the version of a state, or the operands, over which it writes.
    pub fn replaces(&self) -> &[ValueId] {
        match self {
            Self::Update(update) => std::slice::from_ref(&update.inputs[0].value),
            Self::Kernels(kernels) => kernels.chosen.as_ref().map_or(&[], |chosen| &chosen.over),
            Self::Map(_) | Self::Fill(_) | Self::Pull(_) => &[],
        }
    }

    /// What it reads, to be changed.
    pub fn reads_mut(&mut self) -> &mut [Located] {
        match self {
            Self::Map(map) => &mut map.inputs,
            Self::Fill(_) => &mut [],
            Self::Pull(pull) => &mut pull.inputs,
            Self::Update(update) => &mut update.inputs,
            Self::Kernels(kernels) => &mut kernels.inputs,
        }
    }

    /// The values that it reads.
    pub fn reads(&self) -> impl Iterator<Item = &Located> {
        match self {
            Self::Map(map) => map.inputs.as_slice(),
            Self::Fill(_) => &[],
            Self::Pull(pull) => pull.inputs.as_slice(),
            Self::Update(update) => update.inputs.as_slice(),
            Self::Kernels(kernels) => kernels.inputs.as_slice(),
        }
        .iter()
    }

    /// The values that it makes.
    pub fn writes(&self) -> &[ValueId] {
        match self {
            Self::Map(map) => std::slice::from_ref(&map.output),
            Self::Fill(fill) => std::slice::from_ref(&fill.output),
            Self::Pull(pull) => std::slice::from_ref(&pull.output),
            Self::Update(update) => std::slice::from_ref(&update.output),
            Self::Kernels(kernels) => &kernels.outputs,
        }
    }
}

impl Program {
    /// Adds a value with a type.
    pub fn tensor(&mut self, name: String, ty: TensorType, origin: Origin, meaning: Meaning) -> ValueId {
        self.values.push(Value { name, bytes: ty.bytes(), ty: Some(ty), origin, meaning });
        self.values.len() - 1
    }

    /// The state of which a value is a version; itself, if it is none.
    pub fn state_of(&self, value: ValueId) -> ValueId {
        match self.values[value].origin {
            Origin::Version(state) => state,
            _ => value,
        }
    }

    /// The value in whose memory a value lies: itself, unless it is written over another.
    pub fn home_of(&self, mut value: ValueId) -> ValueId {
        while let Origin::Over(below) = self.values[value].origin {
            value = below;
        }
        value
    }

    /// Adds a copy of `source` whose elements lie one after the other, and the map that makes it. Gives the copy.
    pub fn copy(&mut self, node: u32, source: &Located) -> (MapWork, Located) {
        self.copy_along(node, source, source.ty.rank().saturating_sub(1))
    }

    /// As [`Program::copy`], with this axis behind the others in memory.
    pub fn copy_along(&mut self, node: u32, source: &Located, fastest: usize) -> (MapWork, Located) {
        let name = format!("copy of {}", self.values[source.value].name);
        let moved = moved_along(source, fastest);
        let output = self.tensor(name, moved.ty.clone(), Origin::Computed, Meaning::Copy(source.tensor));
        let located = copied_along(source, fastest, output);
        let op = Arc::new(crate::ops::map::Contiguous);
        (MapWork { node, op, inputs: vec![moved], output }, located)
    }

    /// The copy of these elements that [`Program::copy_along`] would make, if one of the works that `copies` knows makes it for another reader, nothing was written over it since, and it `serves`.
    pub(super) fn known_copy(
        &self,
        copies: &Copies,
        source: &Located,
        fastest: usize,
        serves: impl Fn(&Located) -> bool,
    ) -> Option<Located> {
        let moved = moved_along(source, fastest);
        copies.made.get(&(moved.value, moved.layout))?.iter().find_map(|(ty, copy)| {
            let is_gone = || self.values.iter().any(|other| other.origin == Origin::Over(*copy));
            let same = *ty == moved.ty && self.values[*copy].ty.as_ref() == Some(&moved.ty);
            let known = (same && !is_gone()).then(|| copied_along(source, fastest, *copy));
            known.filter(&serves)
        })
    }

    /// What every stage keeps: work reads values that are there before it and that nothing has replaced yet, each computed value is made once, and every layout stays within its memory
    /// at the symbols' upper bounds.
    ///
    /// # Errors
    /// Says what is broken.
    pub fn check(&self) -> Result<(), String> {
        let mut there: Vec<bool> = self.values.iter().map(|value| value.origin.is_given()).collect();
        let mut replaced = vec![false; self.values.len()];
        for work in &self.works {
            for read in work.reads() {
                if !there.get(read.value).copied().unwrap_or(false) {
                    return Err(format!("value {} is read before it is made", read.value));
                }
                if replaced[read.value] {
                    return Err(format!(
                        "`{}` is read after another version replaced it",
                        self.values[read.value].name
                    ));
                }
                self.within(read)?;
            }
            for gone in work.replaces() {
                replaced[*gone] = true;
            }
            for write in work.writes() {
                match there.get_mut(*write) {
                    Some(made) if !*made => *made = true,
                    _ => return Err(format!("value {write} is made twice, or given and made")),
                }
            }
        }
        for (name, output) in &self.outputs {
            if !there[output.value] {
                return Err(format!("output `{name}` is never made"));
            }
            if replaced[output.value] {
                return Err(format!("output `{name}` is replaced by what is written over it"));
            }
            if !output.layout.has_contiguous_strides(&output.ty.shape) || output.layout.offset.constant().is_none() {
                return Err(format!("output `{name}` is not contiguous"));
            }
            self.within(output)?;
        }
        Ok(())
    }

    fn within(&self, read: &Located) -> Result<(), String> {
        let value = &self.values[read.value];
        let Some(ty) = &value.ty else {
            return Err(format!("`{}` is memory without a type, read as a tensor", value.name));
        };
        let (shape, layout) = (&read.ty.shape, &read.layout);
        if layout.strides.len() != shape.len() {
            return Err(format!(
                "`{}` is read with {} strides for {} axes",
                value.name,
                layout.strides.len(),
                shape.len()
            ));
        }
        let last = shape
            .iter()
            .zip(&layout.strides)
            .fold(layout.offset.clone(), |last, (extent, stride)| last + (extent.clone() - 1i64) * stride.clone());
        let room = ty.elements() - 1i64 - last.clone();
        let empty = shape.iter().any(|extent| extent.is(0));
        // More than can be counted is refused where memory is planned.
        let countless = ty.elements().bounds().1 == i64::MAX;
        // Bounds of an expression may be wider than what it reaches; only a surely negative room is a defect.
        if !empty && !countless && room.bounds().1 < 0 {
            return Err(format!("`{}` ({ty}) is read up to element {last}", value.name));
        }
        Ok(())
    }
}

/// The elements as the map sees them that copies them: with the axes as they lie in what it makes.
fn moved_along(source: &Located, fastest: usize) -> Located {
    let mut moved = source.clone();
    if fastest < source.ty.rank() {
        moved.ty.shape[fastest..].rotate_left(1);
        moved.layout.strides[fastest..].rotate_left(1);
    }
    moved
}

/// The elements as their readers see them in the copy that is `value`.
fn copied_along(source: &Located, fastest: usize, value: ValueId) -> Located {
    let layout = Layout::contiguous_along(&source.ty.shape, fastest);
    Located { tensor: source.tensor, value, ty: source.ty.clone(), layout }
}
