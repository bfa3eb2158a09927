//! Run words: parameter blocks and grids, computed from the symbols' values.

use std::sync::Arc;

use trefoil_codegen::artefact::MOST_ELEMENTS;

use super::program::{Program, Work};
use crate::dim::{Dim, Extents, Symbol};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::types::TensorType;

/// Words of the run words that are computed from the symbols' values.
#[derive(Clone, Debug, Default)]
pub struct RunWords {
    /// What never changes, and zeros elsewhere.
    pub(super) template: Vec<u8>,
    pub(super) numbers: Vec<Number>,
    pub(super) grids: Vec<GridWords>,
    /// Where states are updated: no kernel looks whether a position is one of the state.
    pub(super) places: Vec<StatePlace>,
    /// Extents that no bound of their symbols keeps from being negative.
    extents: Vec<TensorExtent>,
}

/// An extent of a tensor.
#[derive(Clone, Debug)]
struct TensorExtent {
    tensor: Arc<str>,
    axis: usize,
    extent: Dim,
}

/// Positions of a state that an update writes.
#[derive(Clone, Debug)]
pub(super) struct StatePlace {
    pub(super) state: Arc<str>,
    pub(super) axis: usize,
    pub(super) position: Dim,
    /// How many there are.
    pub(super) length: Dim,
    /// How many the state has.
    pub(super) extent: Dim,
}

#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) at: usize,
    pub(super) value: Dim,
    /// What the value is divided by: bytes become elements.
    pub(super) divisor: i64,
    pub(super) format: Format,
    pub(super) step: Arc<str>,
    pub(super) param: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    U32,
    I32,
    U64,
    /// 32 bits, up to [`MOST_ELEMENTS`].
    Counted,
    /// For functions of the host.
    I64,
}

#[derive(Clone, Debug)]
pub(super) struct GridWords {
    /// Where the number of workgroups asked for is written, for a linear grid.
    pub(super) count_at: Option<usize>,
    /// Where the folded grid is written, if it depends on symbols.
    pub(super) groups_at: Option<usize>,
    pub(super) shape: GridShape,
    pub(super) bound: [u32; 3],
    pub(super) step: Arc<str>,
}

/// A grid of a kernel, in workgroups.
#[derive(Clone, Debug)]
pub(super) enum GridShape {
    Linear { invocations: i64, asked: Dim },
    Volume([Dim; 3]),
}

impl Number {
    pub(super) fn write(&self, extents: &Extents, words: &mut [u8]) -> Result<()> {
        let value = self.value.eval(extents)? / self.divisor.max(1);
        let misfit = |bits| Error::Param { step: self.step.to_string(), param: self.param.clone(), value, bits };
        match self.format {
            Format::U32 => {
                let word = u32::try_from(value).map_err(|_| misfit("32 bits without sign"))?;
                words[self.at..self.at + 4].copy_from_slice(&word.to_le_bytes());
            }
            Format::Counted => {
                let word = u32::try_from(value).ok().filter(|word| *word <= MOST_ELEMENTS);
                let word = word.ok_or_else(|| misfit("what indices of 32 bits count up to"))?;
                words[self.at..self.at + 4].copy_from_slice(&word.to_le_bytes());
            }
            Format::I32 => {
                let word = i32::try_from(value).map_err(|_| misfit("32 bits with sign"))?;
                words[self.at..self.at + 4].copy_from_slice(&word.to_le_bytes());
            }
            Format::U64 => {
                let number = u64::try_from(value).map_err(|_| misfit("64 bits without sign"))?;
                words[self.at..self.at + 8].copy_from_slice(&number.to_le_bytes());
            }
            Format::I64 => words[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes()),
        }
        Ok(())
    }
}

impl StatePlace {
    /// What an update says of the run's positions; `None` of other work, and of an update of all of a state.
    pub(super) fn of(program: &Program, work: &Work) -> Option<Self> {
        let Work::Update(update) = work else { return None };
        let (axis, position) = update.target.part.clone()?;
        let [old, value] = &update.inputs;
        Some(Self {
            state: program.values[program.state_of(old.value)].name.as_str().into(),
            axis,
            position,
            length: value.ty.shape[axis].clone(),
            extent: old.ty.shape[axis].clone(),
        })
    }

    fn check(&self, extents: &Extents) -> Result<()> {
        let Self { state, axis, .. } = self;
        let [position, length, extent] =
            [self.position.eval(extents)?, self.length.eval(extents)?, self.extent.eval(extents)?];
        if position >= 0 && position.checked_add(length).is_some_and(|end| end <= extent) {
            return Ok(());
        }
        Err(Error::Position { state: state.to_string(), axis: *axis, position, length, extent })
    }
}

impl GridWords {
    pub(super) fn write(&self, extents: &Extents, words: &mut [u8]) -> Result<()> {
        let narrow = |value: i64| {
            u32::try_from(value).map_err(|_| Error::Param {
                step: self.step.to_string(),
                param: "workgroups".to_owned(),
                value,
                bits: "32 bits without sign",
            })
        };
        let (groups, count) = match &self.shape {
            GridShape::Linear { asked, .. } => {
                let count = narrow(asked.eval(extents)?)?;
                let row = self.bound[0].max(1);
                (if count <= row { [count, 1, 1] } else { [row, count.div_ceil(row), 1] }, Some(count))
            }
            GridShape::Volume(axes) => {
                let mut groups = [0; 3];
                for (axis, extent) in axes.iter().enumerate() {
                    groups[axis] = narrow(extent.eval(extents)?)?;
                }
                (groups, None)
            }
        };
        if let (Some(at), Some(count)) = (self.count_at, count) {
            words[at..at + 4].copy_from_slice(&count.to_le_bytes());
        }
        if let Some(at) = self.groups_at {
            for (axis, number) in groups.iter().enumerate() {
                words[at + 4 * axis..at + 4 * axis + 4].copy_from_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Checks that no extent of a tensor is negative in a run.
///
/// # Errors
/// One is, or a symbol has no value.
pub(crate) fn expect_extents_of(tensor: &str, ty: &TensorType, extents: &Extents) -> Result<()> {
    ty.shape.iter().enumerate().try_for_each(|(axis, extent)| expect_extent(tensor, axis, extent, extents))
}

fn expect_extent(tensor: &str, axis: usize, extent: &Dim, extents: &Extents) -> Result<()> {
    let given = extent.eval(extents)?;
    if given >= 0 {
        return Ok(());
    }
    Err(Error::Extent { tensor: tensor.to_owned(), axis, extent: extent.to_string(), given })
}

impl RunWords {
    /// Has runs looked at for negative extents of what a program computes with.
    pub(crate) fn look_at(&mut self, graph: &Graph, program: &Program) {
        let values = program.values.iter().filter_map(|value| Some((value.name.as_str(), value.ty.as_ref()?)));
        let located = program.works.iter().flat_map(Work::reads).chain(program.outputs.iter().map(|(_, read)| read));
        let views = located.map(|read| (graph.nodes()[read.tensor.node()].name.as_str(), &read.ty));
        for (tensor, ty) in values.chain(views) {
            for (axis, extent) in ty.shape.iter().enumerate().filter(|(_, extent)| extent.bounds().0 < 0) {
                // The first tensor of such an extent is told.
                if !self.extents.iter().any(|known| known.extent == *extent) {
                    self.extents.push(TensorExtent { tensor: tensor.into(), axis, extent: extent.clone() });
                }
            }
        }
    }

    /// Checks that no tensor has a negative extent in a run.
    ///
    /// # Errors
    /// One has, or a symbol has no value.
    pub(crate) fn expect_extents(&self, extents: &Extents) -> Result<()> {
        let mut known = self.extents.iter();
        known.try_for_each(|TensorExtent { tensor, axis, extent }| expect_extent(tensor, *axis, extent, extents))
    }

    /// Calls `visit` for every symbol that a run looks up, some more than once.
    pub(crate) fn for_each_symbol(&self, visit: &mut impl FnMut(&Symbol)) {
        for number in &self.numbers {
            number.value.for_each_symbol(visit);
        }
        for grid in &self.grids {
            match &grid.shape {
                GridShape::Linear { asked, .. } => asked.for_each_symbol(visit),
                GridShape::Volume(axes) => axes.iter().for_each(|axis| axis.for_each_symbol(visit)),
            }
        }
        for StatePlace { position, length, extent, .. } in &self.places {
            [position, length, extent].into_iter().for_each(|dim| dim.for_each_symbol(visit));
        }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.template.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.template.is_empty()
    }

    /// The words for given values of the symbols.
    ///
    /// # Errors
    /// A symbol has no value, a number does not fit its parameter, or a state is updated where it has no such positions.
    pub fn fill(&self, extents: &Extents) -> Result<Vec<u8>> {
        let mut words = Vec::new();
        self.fill_into(extents, &mut words)?;
        Ok(words)
    }

    /// [`RunWords::fill`] in a list that is used again and again.
    ///
    /// # Errors
    /// As [`RunWords::fill`].
    pub fn fill_into(&self, extents: &Extents, words: &mut Vec<u8>) -> Result<()> {
        self.places.iter().try_for_each(|place| place.check(extents))?;
        words.clear();
        words.extend_from_slice(&self.template);
        for number in &self.numbers {
            number.write(extents, words)?;
        }
        for grid in &self.grids {
            grid.write(extents, words)?;
        }
        Ok(())
    }
}
